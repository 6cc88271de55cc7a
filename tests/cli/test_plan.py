"""`plan`: the predicted speed of strategies on a cluster that does not
exist."""

import json

import pytest

from hosts import fake_ssh

BYTES = 4 * (784 * 10 + 10)  # softmax
GBIT = 125e6
PAYLOAD = 0.95  # of a link's bytes; the rest is headers


def make_run(cli, compute_s, input_s=0.0, steps=100, ps=0):
    """A run of softmax whose steps took so long."""
    (cli.folder / "run").mkdir()
    seconds = steps * (compute_s + input_s)
    (cli.folder / "run/run.json").write_text(json.dumps({
        "format": 1, "paceline": "0.1.0", "model": "softmax",
        "args": {"batch": "100", "threads": "1", "codec": "auto",
                 "local-steps": "1"},
        "example": [28, 28], "classes": 10}))
    (cli.folder / "run/summary.json").write_text(json.dumps({
        "model": "softmax", "strategy": "ps" if ps else "single",
        "workers": 1, "ps": ps,
        "steps": steps, "stopped_by": "steps", "per_worker": [
            {"index": 0, "host": "a", "steps": steps, "seconds": seconds,
             "input_share": steps * input_s / seconds,
             "computing_share": steps * compute_s / seconds}]}))


def plan(cli, *flags):
    return cli.ok("plan", *flags, "--json").json


def rows(found, strategy, mode=None):
    return {(r["workers"], r["ps"]): r for r in found["rows"]
            if r["strategy"] == strategy and r["mode"] == mode}


def test_the_bytes_of_a_run_over_a_slow_link(cli):
    make_run(cli, compute_s=0.5, input_s=0.25)
    found = plan(cli, "--from", "run", "--hosts", 4, "--cores", 1, "--link",
                 "8kbit", "--rtt", "0ms")
    single = rows(found, "single")[1, 0]
    assert single["step_seconds"] == pytest.approx(0.75)
    assert single["examples_per_s"] == pytest.approx(100 / 0.75)
    assert single["efficiency"] == 1 and single["limit"] == "computing"
    for n in 2, 4:
        row = rows(found, "allreduce")[n, 0]
        sums = (2 * (n - 1) / n * BYTES / (PAYLOAD * 1000) +
                2 * (n - 1) * 10e-6)
        assert row["step_seconds"] == pytest.approx(0.75 + sums)
        assert row["link_bytes"] == round(2 * (n - 1) / n * BYTES)
        assert row["limit"] == "link" and row["codec"] == "plain"
    # One server for 4 workers: it sends and takes 3 times the parameters.
    row = rows(found, "ps", "sync")[4, 1]
    assert row["step_seconds"] > 6 * BYTES / 1000
    assert row["limit"] == "server link"


@pytest.mark.parametrize("ps", [0, 1])
def test_the_update_of_a_run_counts_once(cli, ps):
    """Only servers make it outside of the computing that a run records."""
    update = 0.5e-9 * BYTES
    make_run(cli, compute_s=4 * update, ps=ps)
    found = plan(cli, "--from", "run", "--hosts", 2, "--cores", 1)
    assert rows(found, "single")[1, 0]["step_seconds"] == pytest.approx(
        (4 + ps) * update, rel=1e-3)


def test_more_of_anything_is_never_slower(cli):
    make_run(cli, compute_s=0.01)
    base = ["--from", "run", "--cores", 2, "--hosts", 16]
    slow, fast = (plan(cli, *base, "--link", rate)["rows"]
                  for rate in ("10Mbit", "10Gbit"))
    for a, b in zip(slow, fast):
        assert a["examples_per_s"] <= b["examples_per_s"] * (1 + 1e-9)
    near, far = (plan(cli, *base, "--rtt", rtt)["rows"]
                 for rtt in ("10us", "10ms"))
    for a, b in zip(far, near):
        assert a["examples_per_s"] <= b["examples_per_s"] * (1 + 1e-9)
    assert all(0 < r["efficiency"] <= 1 + 1e-9 for r in fast)


def test_the_fewest_workers_for_a_speed_up(cli):
    make_run(cli, compute_s=1.0)
    base = ["--from", "run", "--cores", 1, "--link", "10Gbit"]
    found = plan(cli, *base, "--hosts", 1000, "--for", "9.5x")
    assert found["smallest"]["workers"] == 10
    assert found["smallest"]["speedup"] >= 9.5
    assert found["best"]["workers"] == 1000
    found = plan(cli, *base, "--hosts", 8, "--for", "9.5x")
    assert found["smallest"] is None and found["wanted_speedup"] == 9.5
    shown = cli.ok("plan", *base, "--hosts", 8, "--for", "9.5x").out
    assert "no cluster of up to 8 hosts is 9.5 x as fast" in shown


def test_flags_of_train_narrow_the_table_and_reach_the_command(cli):
    make_run(cli, compute_s=1.0)
    base = ["softmax", "--from", "run", "--hosts", 4, "--cores", 1]
    found = plan(cli, *base, "--ps", 2, "--mode", "async", "--lr", "0.2")
    assert {(r["strategy"], r["mode"], r["ps"]) for r in found["rows"]} == \
        {("ps", "async", 2)}
    assert found["best"]["command"] == \
        "paceline launch --hosts A,B,... -- train softmax --lr 0.2 " \
        "--workers 4 --ps 2 --mode async"
    # Stale gradients are not compared with others unless asked for.
    found = plan(cli, *base)
    assert found["best"]["mode"] != "async"
    assert any(r["mode"] == "async" for r in found["rows"])


def test_local_steps_share_an_exchange(cli):
    """A round averages the parameters and the optimizer's slots."""
    make_run(cli, compute_s=0.5)
    base = ["softmax", "--from", "run", "--hosts", 4, "--cores", 1, "--link",
            "8kbit", "--rtt", "0ms"]
    found = plan(cli, *base, "--local-steps", 8, "--optimizer", "adam")
    assert {r["strategy"] for r in found["rows"]} == {"allreduce"}
    row = rows(found, "allreduce")[4, 0]
    each = rows(plan(cli, *base), "allreduce")[4, 0]
    assert row["link_bytes"] == pytest.approx(each["link_bytes"] * 3 / 8, abs=1)
    assert row["step_seconds"] == pytest.approx(
        0.5 + (each["step_seconds"] - 0.5) * 3 / 8)
    assert found["best"]["command"].endswith(
        "train softmax --local-steps 8 --optimizer adam --workers 4 "
        "--strategy allreduce")


def test_planned_command_trains(cli):
    found = plan(cli, "softmax", "--hosts", 1, "--cores", 2, "--seconds",
                 "0.1", "--steps", 3, "--strategy", "ps")
    assert found["best"]["ps"] > 0 and found["best"]["examples_per_s"] > 0
    words = found["best"]["command"].split()
    assert cli.ok(*words[1:], "--json").json["steps"] == 3


def test_links_between_named_hosts_are_measured(cli):
    make_run(cli, compute_s=1.0)
    named = ["--from", "run", "--cores", 1, "--ssh", fake_ssh(cli.folder),
             "--hosts"]
    found = plan(cli, *named, "127.0.0.1,127.0.0.2")
    assert found["hosts"] == 2
    assert found["link_bytes_per_s"] not in (0, GBIT)
    assert found["round_trip_seconds"] > 0
    # Names may begin with digits.
    assert found["best"]["command"].startswith(
        "paceline launch --hosts 127.0.0.1,127.0.0.2 -- train softmax")


def test_a_link_that_cannot_be_measured_is_reported(cli):
    """192.0.2.1 (RFC 5737) is an address of no host, so that the agent that
    stands for it cannot listen there."""
    make_run(cli, compute_s=1.0)
    named = ["--from", "run", "--cores", 1, "--ssh", fake_ssh(cli.folder),
             "--hosts", "127.0.0.1,192.0.2.1"]
    failed = cli.run("plan", *named)
    assert failed.code == 1, failed
    assert "a link could not be measured; 192.0.2.1: cannot listen" in failed.err
    assert failed.out == ""
    called = cli.folder / "ssh.log"
    called.unlink()
    found = plan(cli, *named, "--link", "1Gbit", "--rtt", "1ms")
    assert found["link_bytes_per_s"] == GBIT and not called.exists()


def test_a_sparse_model_has_no_allreduce(cli):
    found = plan(cli, "sparse", "--seconds", "0.1", "--batch", 100,
                 "--examples", 2000, "--features", 10000, "--hosts", 2)
    assert not rows(found, "allreduce") and rows(found, "ps", "sync")
    # A batch moves its keys, not the table.
    assert rows(found, "ps", "sync")[2, 1]["link_bytes"] < 4 * 10000


@pytest.mark.parametrize("flags, words", [
    ([], "plan needs a model"),
    (["softmax", "--hosts", "0"], "--hosts: expected 1 to 1000"),
    (["softmax", "--link", "fast"], "--link: expected a rate"),
    (["softmax", "--rtt", "1"], "--rtt: expected a time"),
    (["softmax", "--for", "x"], "--for: expected a speed-up"),
    (["softmax", "--ssh", "ssh"], "--ssh needs names"),
    (["softmax", "--from", "run", "--seconds", "1"], "give one of them"),
    (["lenet", "--from", "run"], "it trained the model softmax"),
    (["softmax", "--global-batch", "8"], "give --batch"),
    (["softmax", "--from", "run", "--workers", "1", "--ps", "1"],
     "leave nothing to compare"),
    (["softmax", "--codec", "bf16", "--local-steps", "8"],
     "with --local-steps no gradient is sent"),
    (["--from", "run", "--batch", "50"], 'the run was started with "100"'),
    (["softmax", "--from", "run", "--workers", "1", "--local-steps", "8"],
     "leave nothing to compare"),
])
def test_wrong_flags_are_refused(cli, flags, words):
    make_run(cli, compute_s=1.0)
    result = cli.run("plan", *flags)
    assert result.code == 2 and words in result.err, result


def test_a_run_without_steps_is_refused(cli):
    make_run(cli, compute_s=0.5, steps=1)
    path = cli.folder / "run/summary.json"
    path.write_text(path.read_text().replace('"computing_share"', '"other"'))
    result = cli.run("plan", "--from", "run")
    assert result.code == 2 and "has no computing times" in result.err


def page_model(text):
    begin = "<script type=application/json id=model>"
    return json.loads(text.split(begin)[1].split("</script>")[0])


def lines(figure):
    return {s["name"]: {round(x): y for x, y in s["points"]}
            for s in figure["series"]}


def test_a_page_has_the_curves(cli):
    make_run(cli, compute_s=0.01)
    base = ["--from", "run", "--hosts", 16, "--cores", 1, "--link", "2Gbit"]
    found = json.loads(cli.ok("plan", *base, "--json", "-o", "p.html").out)
    figures = {f["title"]: f for f in page_model(
        (cli.folder / "p.html").read_text())["figures"]}
    own = lines(figures["Speed-up by workers"])
    assert list(own) == ["allreduce", "ps sync", "ps async", "ideal"]
    for name, (strategy, mode) in {"allreduce": ("allreduce", None),
                                   "ps sync": ("ps", "sync")}.items():
        for workers, speedup in own[name].items():
            best = max([r["speedup"] for (n, _), r in
                        rows(found, strategy, mode).items() if n == workers],
                       default=1)
            assert speedup == pytest.approx(best, rel=1e-5)
    assert set(own["allreduce"]) == {1, 2, 4, 8, 16}
    # The fastest link on top; the one that was asked for among them.
    links = lines(figures["Speed-up of allreduce by link"])
    assert list(links) == ["unlimited", "100 Gbit/s", "10 Gbit/s", "2 Gbit/s",
                           "1 Gbit/s", "100 Mbit/s", "ideal"]
    assert links["2 Gbit/s"] == own["allreduce"]
    at_16 = [line[16] for line in links.values()][:-1]
    assert at_16 == sorted(at_16, reverse=True)
    assert at_16[0] > 1.2 * at_16[-1]


def test_a_page_goes_to_standard_output_alone(cli):
    make_run(cli, compute_s=0.01)
    shown = cli.ok("plan", "--from", "run", "--hosts", 1, "--cores", 2, "-o",
                   "-").out
    assert shown.startswith("<!DOCTYPE html>")
    assert shown.rstrip().endswith("</html>")
    result = cli.run("plan", "--from", "run", "--json", "-o", "-")
    assert result.code == 2 and "--json and --out -" in result.err


def test_factors_are_rows_where_they_pay(cli):
    """Batch 32 of LeNet's dense layers, over a link that is slower than the
    products."""
    flags = ["lenet", "--data", "synthetic", "--examples", 600, "--batch", 32,
             "--seconds", 0.1, "--hosts", 4, "--cores", 1, "--workers", 4]
    slow = plan(cli, *flags, "--link", "10Mbit")
    both = {r["codec"]: r for r in slow["rows"] if r["strategy"] == "allreduce"}
    assert set(both) == {"plain", "factors"}
    assert both["factors"]["link_bytes"] < both["plain"]["link_bytes"]
    assert "--codec factors" in slow["best"]["command"]
    fast = plan(cli, *flags, "--link", "100Gbit")
    assert {r["codec"] for r in fast["rows"]} == {"plain"}
    rounded = plan(cli, *flags, "--link", "10Mbit", "--codec", "bf16")
    half = [r for r in rounded["rows"] if r["strategy"] == "allreduce"]
    assert [r["codec"] for r in half] == ["bf16"]
    assert half[0]["link_bytes"] == pytest.approx(
        both["plain"]["link_bytes"] / 2)
    # Of parameter servers, both ways.
    assert rows(rounded, "ps", "sync")[4, 1]["link_bytes"] == pytest.approx(
        rows(slow, "ps", "sync")[4, 1]["link_bytes"] / 2)
