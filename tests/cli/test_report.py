"""`report`: one page with the tables and figures of runs."""

import csv
import html.parser
import json
import pathlib
import re
import shutil

import pytest

from conftest import Cli, SMALL, listing


class Page(html.parser.HTMLParser):
    """What a page holds: its figures, tables, headings, addresses."""

    def __init__(self, text):
        super().__init__()
        self.captions, self.headings, self.addresses = [], [], []
        self.tables, self.where, self.json = 0, None, ""
        self.feed(text)
        self.model = json.loads(self.json)
        self.figures = self.model["figures"]
        # What gnuplot can draw, too.
        self.plots = [figure for figure in self.figures if figure["kind"] in
                      ("lines", "bars", "stacked", "curves")]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.where = tag
        if tag == "script" and attrs.get("id") == "model":
            self.where = "model"
        self.tables += tag == "table"
        for name in "src", "href":
            if name in attrs and not attrs[name].startswith("#"):
                self.addresses.append(attrs[name])

    def handle_endtag(self, tag):
        self.where = None

    def handle_data(self, data):
        if self.where == "figcaption":
            self.captions.append(data)
        elif self.where == "h2":
            self.headings.append(data)
        elif self.where == "model":
            self.json += data


@pytest.fixture(scope="module")
def trained(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("trained"), home)
    for batch in 10, 100:
        for mode in "sync", "async":
            cli.train(*SMALL, "--batch", batch, "--mode", mode, "--workers", 2,
                      "--ps", 1, "--run", f"all/{mode}-{batch}")
    return cli.folder / "all"


@pytest.fixture
def runs(cli, trained):
    """A copy of its own for each test."""
    return pathlib.Path(shutil.copytree(trained, cli.folder / "all"))


def test_usage_of_tasks_is_split_by_role(cli):
    """From their own counters; and the means of the host are theirs.  The run
    is too long for any task to be called too short to be measured."""
    summary = cli.train(*SMALL, "--batch", 10, "--workers", 2, "--ps", 1,
                        "--steps", 20000, "--run", "r")
    cli.ok("report", "r", "-o", "r.html", "--files", "files")
    tasks = summary["per_worker"] + summary["per_server"]

    def table(name):
        with open(cli.folder / f"files/{name}.csv", newline="") as file:
            return list(csv.DictReader(file))
    roles = {row["role"]: row for row in table("usage")}
    assert {name: row["tasks"] for name, row in roles.items()} == {
        "worker": "2", "ps": "1", "all": "3"}
    for key in "user_seconds", "system_seconds", "peak_rss_mb":
        assert float(roles["all"][key]) == pytest.approx(
            sum(task[key] for task in tasks)), key
    assert float(roles["ps"]["sent_mb"]) == pytest.approx(
        summary["per_server"][0]["bytes_sent"] / 1e6)
    assert float(roles["all"]["cpu_percent"]) == pytest.approx(
        summary["cpu_percent"])
    names = [row["task"] for row in table("usage-tasks")]
    assert names == ["worker 0", "worker 1", "ps 0"]
    host, = table("resources")
    assert float(host["job_cpu_mean"]) == pytest.approx(summary["cpu_percent"])


def test_a_page_with_everything(cli, runs):
    result = cli.ok("report", "all", "-o", "r.html", "--files", "files")
    assert result.out.startswith("r.html: 4 runs")
    page = Page((cli.folder / "r.html").read_text())
    assert page.addresses == []
    titles = [figure["title"] for figure in page.figures]
    assert titles == page.captions
    chosen = [f for f in page.plots if "of each worker" not in f["title"]]
    assert len(chosen) <= 12
    assert {figure["kind"] for figure in page.figures} >= {
        "confusion", "classes", "misclassified", "pairs"}
    for entry in page.model["pairs"]:
        name = page.model["runs"][entry["run"]]["name"]
        told = json.loads((runs / name / "summary.json").read_text())
        peers = [peer for row in told["per_worker"] for peer in row["peers"]]
        assert len(entry["transfers"]) == 2 * len(peers) == 4
        assert sum(item[2] for item in entry["transfers"]) == sum(
            peer["bytes_sent"] + peer["bytes_received"] for peer in peers)
    for title in ("Test accuracy by batch", "Training time by batch",
                  "Throughput by batch", "Where the workers' time went",
                  "Training loss", "Test accuracy"):
        assert title in titles
    for figure in page.plots:
        assert figure["x"] and figure["y"] and figure["id"]
        assert figure.get("series") or figure["kind"] == "curves"
    accuracy = page.figures[titles.index("Test accuracy by batch")]
    assert [s["name"] for s in accuracy["series"]] == ["mode async",
                                                       "mode sync"]
    summary = json.loads((runs / "async-10" / "summary.json").read_text())
    assert accuracy["series"][0]["points"][0] == pytest.approx(
        [10, 100 * summary["test_accuracy"]], rel=1e-5)
    for heading in ("Results", "Explore", "What limits", "Workers",
                    "Configuration"):
        assert heading in page.headings


def test_yes_or_no_models_show_their_precision_by_step(cli):
    for batch in 50, 100:
        cli.ok("train", "sparse", "--examples", "3000", "--features", "1000",
               "--batch", batch, "--eval-every", "10", "--run", f"s/{batch}")
    cli.ok("report", "s", "-o", "s.html")
    page = Page((cli.folder / "s.html").read_text())
    figure, = [f for f in page.figures if f["title"] == "Test precision"]
    assert figure["kind"] == "curves" and figure["x"] == "step"


def test_workers_are_shown_side_by_side(cli, runs):
    cli.ok("report", "all")
    page = Page((cli.folder / "report.html").read_text())
    for title, key in (("Time of each worker", "seconds"),
                       ("Steps of each worker", "steps")):
        figure, = [f for f in page.figures if f["title"] == title]
        assert figure["categories"] == [
            "batch 10, mode async", "batch 100, mode async",
            "batch 10, mode sync", "batch 100, mode sync"]
        for index, series in enumerate(figure["series"]):
            assert series["name"] == f"worker {index}"
            told = [json.loads((runs / name / "summary.json").read_text())
                    ["per_worker"][index][key] for name in
                    ("async-10", "async-100", "sync-10", "sync-100")]
            assert [y for _, y in series["points"]] == pytest.approx(
                told, rel=1e-5)


def test_the_culprit_and_the_cure_are_shown(cli, runs):
    path = runs / "sync-10/summary.json"
    summary = json.loads(path.read_text())
    summary["bottleneck"] = {
        "what": "slow worker", "share": 0.61, "worker": 1, "task": "worker 1",
        "host": "node3", "text": "waiting for worker 1 on node3: 61 %",
        "cures": [{"text": "free its processor", "gain": 2.5},
                  {"text": "--mode async", "gain": 1.5}]}
    path.write_text(json.dumps(summary))
    cli.ok("report", "all", "--files", "files")
    row, = [row for row in csv.DictReader((cli.folder / "files/limits.csv")
                                          .read_text().splitlines())
            if row["run"] == "sync-10"]
    assert {**row, "share": float(row["share"])} == {
        "run": "sync-10", "what": "slow worker", "share": 0.61,
        "task": "worker 1", "host": "node3", "cure": "free its processor",
        "gain": "2.5"}
    cli.ok("report", "all/sync-10")
    assert "Bottleneck: waiting for worker 1 on node3: 61 %." in (
        cli.folder / "report.html").read_text()


def test_curves_are_written_in_full(cli, runs):
    """What the page thins to 2,000 points."""
    path, = (runs / "sync-10/resources").glob("*.csv")
    lines = path.read_text().splitlines()
    head, begin = lines[0].split(","), float(lines[1].split(",")[0])
    path.write_text(lines[0] + "\n" + "".join(
        ",".join([str(begin + i), *(len(head) - 1) * ["7"]]) + "\n"
        for i in range(5000)))
    cli.ok("report", "all", "--files", "files")
    with open(cli.folder / "files/curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    own = [row for row in rows if row["run"] == "sync-10"]
    cpu = [row for row in own if (row["task"], row["metric"]) ==
           (path.stem, "job_cpu")]
    assert len(cpu) == 5000
    assert {(row["step"], row["value"]) for row in cpu} == {("", "7")}
    assert float(cpu[-1]["time"]) - float(cpu[0]["time"]) == 4999
    model = Page((cli.folder / "report.html").read_text()).model
    loss, = [s for s in model["series"] if s["run"] == 2 and
             s["metric"] == "loss" and s["task"] == "worker-0"]
    points = [(int(row["step"]), float(row["value"])) for row in own
              if (row["task"], row["metric"]) == ("worker-0", "loss")]
    assert [step for step, _ in points] == loss["x"]
    assert [value for _, value in points] == pytest.approx(loss["y"], rel=1e-5)


def test_the_page_holds_all_recorded_data(cli, runs):
    """All that was recorded: the reader makes figures of it."""
    cli.ok("report", "all")
    model = Page((cli.folder / "report.html").read_text()).model
    assert model["axes"] == ["batch", "mode"]
    names = [run["name"] for run in model["runs"]]
    assert names == ["async-10", "async-100", "sync-10", "sync-100"]
    run = model["runs"][2]
    summary = json.loads((runs / "sync-10" / "summary.json").read_text())
    assert run["flags"] == {"batch": "10", "mode": "sync"}
    assert run["results"]["seconds"] == pytest.approx(summary["seconds"],
                                                      rel=1e-8)
    assert run["each"]["examples"] == pytest.approx(
        summary["examples"] / summary["steps"])
    loss, = [s for s in model["series"] if s["run"] == 2 and
             s["metric"] == "loss" and s["task"] == "worker-0"]
    assert len(loss["x"]) == len(loss["t"]) == len(loss["y"]) > 0
    assert loss["x"] == sorted(loss["x"]) and loss["t"] == sorted(loss["t"])
    assert 0 <= loss["t"][0] <= loss["t"][-1] < 600
    assert "test" in {event["kind"] for event in model["events"]}


def test_each_table_and_figure_is_a_file(cli, runs):
    cli.ok("report", "all", "--files", "it's")
    page = Page((cli.folder / "report.html").read_text())
    names = sorted(p.name for p in (cli.folder / "it's").iterdir())
    names.remove("curves.csv")
    assert len([n for n in names if n.endswith(".csv")]) == page.tables
    if shutil.which("gnuplot"):
        drawn = [n for n in names if n.endswith(".svg")]
        assert len(drawn) == len(page.plots)
        svg = (cli.folder / "it's" / "accuracy-by-batch.svg").read_text()
        assert "test accuracy [%]" in svg and "mode sync" in svg
        assert len(names) == page.tables + len(drawn)


def test_curves_of_each_worker(cli, runs):
    """As far as the runs have recorded them."""
    cli.ok("report", "all/sync-10")
    page = Page((cli.folder / "report.html").read_text())
    loss, = [f for f in page.figures if f["title"] == "Training loss"]
    assert loss["curve"] == "loss" and loss["tasks"]
    series = [s for s in page.model["series"] if s["metric"] == "loss"]
    assert [s["task"] for s in series] == ["worker-0", "worker-1"]
    assert all(s["y"] for s in series)


def test_servers_come_after_workers(cli, runs):
    """So a worker has the same colour in every figure."""
    events = runs / "sync-10/events"
    shutil.rmtree(events / "ps-0")
    for name in "ps-0", "worker-10":
        shutil.copytree(events / "worker-1", events / name)
    cli.ok("report", "all/sync-10")
    page = Page((cli.folder / "report.html").read_text())
    assert [s["task"] for s in page.model["series"]
            if s["metric"] == "loss"] == [
        "worker-0", "worker-1", "worker-10", "ps-0"]


def test_names_cannot_break_out(cli, runs):
    name = "</script><script>alert(1)</script>"
    shutil.copytree(runs / "sync-10", runs / name.replace("/", "%"))
    record = json.loads((runs / "sync-100" / "run.json").read_text())
    record["args"]["mode"] = name
    (runs / "sync-100" / "run.json").write_text(json.dumps(record))
    cli.ok("report", "all", "--title", name)
    text = (cli.folder / "report.html").read_text()
    assert "<script>alert" not in text
    assert len(re.findall(r"<script", text)) == 3


# What a foreign run folder may hold where a name or a text is expected; each
# would make "pwned" if a reader took it for a command.
HOSTILE = [
    "x'.svg'; system('touch pwned'); y='",
    'x"; system("touch pwned"); y="',
    "x`touch pwned`", "x$(touch pwned)", "x\\'; !touch pwned",
    "x\n!touch pwned\n", "x\nsystem('touch pwned')\n",
    "../../pwned", "=cmd|' /C touch pwned'!A0",
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>",
    "\u2028alert(1)\u2029", "\x1b]0;pwned\x07\x1b[2J", "\u009b2J",
]


def poison(folder, number):
    """Put hostile names and texts wherever a report takes one from."""
    path = folder / "run.json"
    record = json.loads(path.read_text())
    for i, text in enumerate(HOSTILE):
        record["args"][text] = str(number)  # a flag to draw results over
        record["args"][f"flag-{i}"] = text + str(number)
    record["model"] = record["started"] = HOSTILE[number]
    record["paceline"] = HOSTILE[-number]
    record.setdefault("machine", {})["host"] = HOSTILE[9]
    path.write_text(json.dumps(record))
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    for i, worker in enumerate(summary["per_worker"]):
        worker["host"] = HOSTILE[i + number]
    path.write_text(json.dumps(summary))
    for kind in "events", "resources":
        for old in list((folder / kind).iterdir())[:1]:
            for text in HOSTILE[:3] + HOSTILE[9:]:
                name = text.replace("/", "%") + old.suffix
                if old.is_dir():
                    shutil.copytree(old, old.with_name(name))
                else:
                    shutil.copy(old, old.with_name(name))


def test_hostile_run_folders_run_nothing(cli, runs):
    for number, folder in enumerate(list(runs.iterdir())):
        poison(folder, number + 1)
    for text in HOSTILE[:5] + HOSTILE[9:]:
        copy = runs / text.replace("/", "%")
        shutil.copytree(runs / "sync-10", copy)
        path = copy / "run.json"  # runs that differ in one flag alone
        record = json.loads(path.read_text())
        record["args"][HOSTILE[0]] = str(HOSTILE.index(text))
        path.write_text(json.dumps(record))
    result = cli.ok("report", "all", "-o", "r.html", "--files", "files")
    assert not list(cli.folder.rglob("pwned*"))
    text = (cli.folder / "r.html").read_text()
    page = Page(text)
    written = listing(cli.folder / "files")
    assert all(re.fullmatch(r"[\w.-]+\.(csv|svg)", name) for name in written)
    if shutil.which("gnuplot"):
        assert any(name.startswith("accuracy-by-x-.svg---system--touch-pwned")
                   for name in written)
        assert f"files: {len(page.plots)} figures" in result.out
    assert len(re.findall(r"<script", text)) == 3
    assert "<img" not in text and "\u2028" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert any(HOSTILE[0] in figure["x"] for figure in page.figures)
    for table in (cli.folder / "files").glob("*.csv"):
        rows = list(csv.reader(table.open(newline="")))
        assert len({len(row) for row in rows}) == 1
        for cell in sum(rows, []):
            assert not re.match("[=@\t\r]", cell), cell
            assert cell.isprintable(), cell


@pytest.mark.parametrize("flags", [[], ["--csv"], ["--json"]])
def test_a_terminal_gets_no_escape_sequences(cli, runs, flags):
    poison(runs / "sync-10", 1)
    result = cli.ok("compare", "all", *flags)
    assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028]",
                         result.out + result.err)
    if flags == ["--json"]:
        assert any(HOSTILE[-1] in text for row in result.json
                   for text in map(str, list(row) + list(row.values())))


def test_unreadable_records_are_skipped_and_reported(cli, runs):
    record = json.loads((runs / "sync-10" / "run.json").read_text())
    record["format"] = 99
    (runs / "sync-10" / "run.json").write_text(json.dumps(record))
    (runs / "sync-100" / "summary.json").write_bytes(b"\x00\xff")
    events = next((runs / "async-10" / "events").glob("*/*"))
    events.write_bytes(b"x" * 100)
    result = cli.ok("report", "all")
    assert result.out.startswith("report.html: 2 runs")
    assert result.err.count("left out") == 2
    page = Page((cli.folder / "report.html").read_text())
    assert "Left out" in page.headings
    text = (cli.folder / "report.html").read_text()
    assert "newer paceline" in text and "damaged at byte 0" in text


def test_without_gnuplot_there_are_tables(cli, runs):
    cli.env["PATH"] = "/nowhere"
    result = cli.run("report", "all", "--files", "files")
    assert result.code == 1 and "gnuplot" in result.err, result
    assert (cli.folder / "report.html").exists()
    assert (cli.folder / "files" / "runs.csv").exists()


@pytest.mark.parametrize("words, code, says", [
    ([], 2, "report RUN..."),
    (["no/such"], 1, "no/such"),
    (["."], 1, "no run.json"),
    (["--nope"], 2, "--nope"),
])
def test_wrong_usage_is_one_sentence(cli, words, code, says):
    cli.refused(code, "report", *words, says=says)


def test_an_unwritable_page_is_reported(cli, runs):
    cli.refused(1, "report", "all", "-o", "no/such/r.html",
                says="no/such/r.html")
