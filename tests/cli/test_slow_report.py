"""Reports in a real Chromium: figures are drawn, tables sort, runs are shown
and hidden, without requests and without errors."""

import xml.etree.ElementTree

import pytest

from accessibility import OUTSIDE, PALE, adapt, faults, press, without_focus


@pytest.fixture(scope="module")
def page(tmp_path_factory, home):
    from conftest import Cli
    cli = Cli(tmp_path_factory.mktemp("report"), home)
    cli.ok("sweep", "--quiet", "--repeat", "2", "--grid",
           "mode=sync,async batch=50,500 workers=0,2", "--out", "s", "--",
           "softmax", "--data", "synthetic", "--examples", "2000", "--epochs",
           "2", "--lr", "0.001")
    cli.ok("report", "s")
    return cli.folder / "report.html"


# Until this many figures are drawn; those out of sight are when they are near.
DRAWN = """new Promise(done => {
    const look = () =>
        document.querySelectorAll("figure[data-drawn]").length >= %d ?
            done() : requestAnimationFrame(look);
    look();
})"""

# How many shapes each figure has, and whether text leaves it or is cut.
SHAPES = """[...document.querySelectorAll("figure[data-drawn] .plot svg")].map(
    svg => svg.querySelectorAll(
        "path.curve, .bar rect, rect.cell, image").length)"""


def show(browser, page, width=1280, scheme="light"):
    adapt(browser, width, scheme)
    browser.open(page.as_uri())


@pytest.mark.parametrize("width, scheme", [
    (1280, "light"), (1280, "dark"), (360, "light")])
def test_all_figures_are_drawn(browser, page, width, scheme):
    show(browser, page, width, scheme)
    assert browser.complaints() == []
    asked = [r["request"]["url"]
             for r in browser.seen("Network.requestWillBeSent")]
    assert asked == [page.as_uri()]
    figures = browser.evaluate(
        "document.querySelectorAll('figure[data-figure]').length")
    # 12, two of the workers, those of classes, traffic and the model, the
    # reader's own.
    assert 8 < figures <= 20
    browser.evaluate("Figures.drawAll()")
    browser.evaluate(DRAWN % figures)
    shapes = browser.evaluate(SHAPES)
    assert len(shapes) == figures and min(shapes) > 0, shapes
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(
        "document.querySelectorAll('.spread').length") > 0
    paper = browser.evaluate(
        "getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.evaluate(PALE) == []
    assert browser.complaints() == []
    # Nothing is wider than the page, but for tables that scroll.
    assert browser.evaluate(
        "document.documentElement.scrollWidth <= innerWidth")


COLUMN = """[...document.querySelector(".wide table").tBodies[0].rows]
    .filter(row => !row.hidden).map(row => row.cells[%d].textContent.trim())"""


def test_the_table_of_runs_sorts_and_filters(browser, page):
    show(browser, page)
    heads = browser.evaluate("""[...document.querySelector(".wide table")
        .tHead.rows[0].cells].map(cell => cell.textContent)""")
    at = heads.index("batch")
    press = f"""document.querySelector(".wide table").tHead.rows[0]
        .cells[{at}].querySelector("button").click()"""
    browser.evaluate(press)
    values = list(map(int, browser.evaluate(COLUMN % at)))
    assert values == sorted(values) and len(set(values)) == 2
    browser.evaluate(press)
    assert list(map(int, browser.evaluate(COLUMN % at))) == values[::-1]
    assert browser.evaluate(
        "document.querySelector('[aria-sort=descending]').textContent"
        ) == "batch"


@pytest.mark.parametrize("wish", [
    "most often mistaken for<5", "Most often mistaken for < 5",
    "async most often mistaken for<5 batch-50_"])
def test_columns_with_blanks_in_their_names_are_compared(browser, page, wish):
    show(browser, page)
    table = """[...document.querySelectorAll(".wide table")].find(
        table => table.caption.textContent === "Results by class")"""
    rows = f"""[...{table}.tBodies[0].rows].filter(row => !row.hidden).map(
        row => [row.cells[0].textContent, valueOf(row.cells[7])])"""
    expected = [row for row in browser.evaluate(rows)
                if row[1] is not None and row[1] < 5 and
                ("batch-50_" in row[0] or "batch" not in wish)
                and ("async" in row[0] or "async" not in wish)]
    assert expected
    browser.evaluate(f"""(() => {{
        const {{ field }} = filters.get({table});
        field.value = "{wish}";
        field.dispatchEvent(new Event("input"));
    }})()""")
    assert browser.evaluate(rows) == expected


def test_runs_are_hidden_in_all_figures(browser, page):
    show(browser, page)
    lines = """[...document.querySelectorAll(
        "#accuracy-by-batch path.curve, #curve-loss path.curve")].length"""
    browser.evaluate("Figures.drawAll()")
    before = browser.evaluate(lines)
    browser.evaluate("""document.querySelector("#display details").open = true;
        for (const chip of document.querySelectorAll(".chip"))
            if (chip.textContent.includes("sync") &&
                !chip.textContent.includes("async"))
                chip.querySelector("input").click()""")
    assert 0 < browser.evaluate(lines) < before
    assert "of 12 runs" in browser.evaluate(
        "document.querySelector('#display summary').textContent")
    assert browser.complaints() == []


RANGE = """(() => {
    const { x } = Figures.views.get(document.getElementById("%s")).panels[0];
    return [x.from, x.to];
})()"""


def test_a_brush_zooms_the_figures_of_a_section(browser, page):
    show(browser, page)
    browser.evaluate("Figures.drawAll()")
    browser.evaluate("document.getElementById('curve-loss').scrollIntoView("
                     "{block: 'center', behavior: 'instant'})")
    full = browser.evaluate(RANGE % "curve-test-accuracy")
    box = browser.evaluate("""(() => {
        const b = document.querySelector("#curve-loss svg")
            .getBoundingClientRect();
        return [b.left, b.top, b.width, b.height];
    })()""")
    y = box[1] + box[3] / 2
    for kind, part in (("mousePressed", .4), ("mouseMoved", .6),
                       ("mouseReleased", .6)):
        browser.call("Input.dispatchMouseEvent", type=kind,
                     x=box[0] + part * box[2], y=y, button="left", buttons=1,
                     clickCount=1)
    for name in "curve-loss", "curve-test-accuracy":
        now = browser.evaluate(RANGE % name)
        assert now[1] - now[0] < .5 * (full[1] - full[0]), name
    by_flag = browser.evaluate(RANGE % "accuracy-by-batch")
    assert by_flag[1] > 400  # another x axis does not zoom along
    browser.evaluate("document.querySelector('#curve-loss .reset').click()")
    assert browser.evaluate(RANGE % "curve-test-accuracy") == full


def test_keys_read_values_and_zoom(browser, page):
    show(browser, page)
    browser.evaluate("Figures.drawAll();"
                     "document.querySelector('#curve-loss .plot').focus()")

    def press(key):
        for kind in "keyDown", "keyUp":
            browser.call("Input.dispatchKeyEvent", type=kind, key=key,
                         **{"text": key} if len(key) == 1 and
                         kind == "keyDown" else {})
    press("ArrowRight")
    press("End")
    said = browser.evaluate("document.getElementById('tip').textContent")
    # Which lines go on to the last step is up to the async runs.
    assert said.startswith("epoch ") and "batch 50" in said
    press("+")
    assert not browser.evaluate(
        "document.querySelector('#curve-loss .reset').hidden")
    press("0")
    assert browser.evaluate(
        "document.querySelector('#curve-loss .reset').hidden")
    press("Escape")
    assert browser.evaluate("document.getElementById('tip').hidden")


def test_the_reader_makes_a_figure(browser, page):
    show(browser, page)
    browser.evaluate("""(() => {
        const pick = (label, value) => {
            const select = [...document.querySelectorAll("#explorer label")]
                .find(l => l.firstChild.textContent.trim() === label)
                .querySelector("select");
            select.value = value;
            select.dispatchEvent(new Event("change"));
        };
        pick("x", "time");
        pick("y", "loss");
        pick("facet by", "batch");
        pick("second y", "examples_per_s");
    })()""")
    browser.evaluate("Figures.drawAll()")
    said = browser.evaluate(
        "document.querySelector('#explored figcaption span').textContent")
    assert said == "Training loss and throughput by time"
    assert browser.evaluate("Figures.views.get(document.getElementById("
                            "'explored')).panels.length") == 2
    link = browser.evaluate(
        "document.querySelector('#explorer form a').href")
    assert "#explored?x=time" in link
    csv = browser.evaluate("Figures.csv(Figures.views.get("
                           "document.getElementById('explored')).figure)")
    assert csv.startswith("panel,line,time [s],training loss")
    browser.open("about:blank")  # another fragment alone loads nothing
    browser.open(link)
    assert browser.evaluate(
        "document.querySelector('#explored figcaption span').textContent"
        ) == said
    assert browser.complaints() == []


def test_the_reader_colours_lines_by_a_flag(browser, page):
    show(browser, page)
    browser.open("about:blank")
    want = "#explored?x=batch&y=test_accuracy&colour="
    lines = """Figures.drawAll(); Figures.views.get(document.getElementById(
        "explored")).plot.panels[0].lines.map(
            line => [line.colour, line.dash, line.name])"""
    for flag, colours in ("workers", 2), ("mode", 3), ("run", 3):
        browser.open("about:blank")  # another fragment alone loads nothing
        browser.open(page.as_uri() + want + flag)
        assert browser.evaluate("""[...document.querySelectorAll(
            "#explorer label")].find(label => label.firstChild.textContent
                .trim() === "color by").querySelector("select").value""") == \
            flag
        seen = browser.evaluate(lines)
        assert len({colour for colour, _, _ in seen}) == colours, seen
        assert len({(colour, dash) for colour, dash, _ in seen}) == 3, seen
    assert browser.complaints() == []


# What the menu of a figure would save: [type, content].
SAVED = """(async () => {
    const out = {}, figure = document.getElementById("accuracy-by-batch");
    HTMLAnchorElement.prototype.click = () => {};
    for (const kind of ["CSV", "SVG", "PNG"]) {
        const blob = await new Promise(done => {
            URL.createObjectURL = content => {
                done(content);
                return "";
            };
            [...figure.querySelectorAll(".menu button")].find(
                button => button.textContent === kind).click();
        });
        const bytes = new Uint8Array(await blob.arrayBuffer());
        out[kind] = [blob.type, kind === "PNG"
            ? String.fromCharCode(...bytes.slice(0, 8)) : await blob.text()];
    }
    return out;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_saved(browser, page, scheme):
    show(browser, page, scheme=scheme)
    browser.evaluate("Figures.drawAll()")
    saved = browser.evaluate(SAVED)
    assert saved["CSV"][0] == "text/csv"
    assert saved["CSV"][1].startswith("panel,line,batch,test accuracy [%]")
    kind, text = saved["SVG"]
    root = xml.etree.ElementTree.fromstring(text)
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert kind == "image/svg+xml" and root.tag.endswith("}svg")
    assert "Test accuracy by batch" in texts
    assert "mode async, workers 2" in texts  # its legend, too
    assert saved["PNG"] == ["image/png", "\x89PNG\r\n\x1a\n"]
    assert browser.complaints() == []


# The contrast of the numbers on a heat map's cells.
ON_CELLS = """Math.min(...[...document.querySelectorAll(".on-cell")].map(text => {
    const light = c => {
        const [r, g, b] = c.match(/\\d+/g).slice(0, 3).map(v => v / 255).map(
            v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const [a, b] = [text, text.previousElementSibling].map(
        e => light(getComputedStyle(e).fill)).sort((x, y) => y - x);
    return (a + .05) / (b + .05);
}))"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_classifier_s_answers_are_shown(browser, page, scheme):
    show(browser, page, scheme=scheme)
    browser.evaluate("Figures.drawAll()")
    count = "document.querySelectorAll('%s').length"
    assert browser.evaluate(count % "#confusion rect.cell") == 100
    assert 0 < browser.evaluate(count % "#misclassified image") <= 16
    assert browser.evaluate(count % "#classes .bar rect") > 20
    assert browser.evaluate(ON_CELLS) >= 4.5
    table = "Figures.csv({kind: 'confusion'})"
    before = browser.evaluate(table)
    counts = [line.split(",")[1:] for line in before.splitlines()[1:]]
    tests = browser.evaluate("Figures.model.tests.map(test => test.counts)")
    assert [int(n) for row in counts for n in row] in tests
    browser.evaluate("""(() => {
        const select = document.querySelector("[data-chooser=tested] select");
        select.selectedIndex = (select.selectedIndex + 4) % 8;
        select.dispatchEvent(new Event("change"));
    })()""")
    assert browser.evaluate(table) != before
    assert browser.complaints() == []


def test_the_page_is_accessible(browser, page):
    show(browser, page)
    browser.evaluate("Figures.drawAll()")
    assert faults(browser) == []
    assert without_focus(browser, 40) == []
    assert browser.complaints() == []


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (360, "dark")])
def test_lines_and_bars_are_distinguishable(browser, page, width, scheme):
    """Six lines have three colours, full and dashed; bars a column a flag."""
    show(browser, page, width, scheme)
    browser.evaluate("Figures.drawAll()")
    lines = browser.evaluate("""Figures.views.get(document.getElementById(
        "accuracy-by-batch")).plot.panels[0].lines.map(
            line => [line.colour, line.dash].join())""")
    assert len(lines) == len(set(lines)) >= 3
    # Curves of many runs have no dots, which would hide the lines.
    dots = """document.querySelectorAll("#curve-loss g path" +
        '[stroke-width="1"]').length"""
    assert browser.evaluate(dots) > 0
    browser.evaluate("Figures.display({ mean: false })")
    assert browser.evaluate(dots) == 0
    texts = browser.evaluate("""[...document.querySelectorAll(
        "#time-shares svg text")].map(text => text.textContent)""")
    assert "batch" in texts and "workers" in texts
    assert not any("…" in text for text in texts), texts


def test_many_curves_are_distinguishable(browser, page):
    """Colours show one flag, dashes another, and the legend both."""
    show(browser, page)
    browser.evaluate("Figures.drawAll()")
    browser.evaluate("""Figures.load({ ...Figures.model, runs:
        Figures.model.runs.map((run, i) => ({ ...run, label: `run ${i}` })) });
        Figures.display({ colour: "batch", mean: false })""")
    curves = """[...new Set(Figures.views.get(document.getElementById(
        "curve-loss")).plot.panels[0].lines.map(line => JSON.stringify([
            Figures.model.runs[line.run].flags.batch,
            Figures.model.runs[line.run].flags.mode ?? "", line.colour,
            line.dash])))].map(JSON.parse)"""
    lines = browser.evaluate(curves)
    assert len(lines) == 6, lines
    for part in (0, 2), (1, 3):
        pairs = {tuple(line[i] for i in part) for line in lines}
        assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == \
            len(pairs), pairs
    keys = "#curve-loss .legend button"
    assert sorted(browser.evaluate(f"""[...document.querySelectorAll("{keys}")]
        .map(key => key.textContent)""")) == [
            "batch 50", "batch 500", "mode async", "mode not set", "mode sync"]
    browser.evaluate(f"""[...document.querySelectorAll("{keys}")].find(
        key => key.textContent === "mode async").click()""")
    assert [line[:2] for line in browser.evaluate(curves)] == \
        [line[:2] for line in lines if line[1] != "async"]
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def traced(tmp_path_factory, home):
    from conftest import Cli
    cli = Cli(tmp_path_factory.mktemp("traced"), home)
    cli.ok("train", "lenet", "--data", "synthetic", "--examples", "640",
           "--workers", "2", "--ps", "2", "--epochs", "1", "--profile",
           "--quiet", "--run", "r")
    cli.ok("report", "r")
    return cli.folder / "report.html"


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (360, "dark")])
def test_a_traced_run_has_time_line_and_graph(browser, traced, width, scheme):
    show(browser, traced, width, scheme)
    browser.evaluate("Figures.drawAll()")
    rows = browser.evaluate("""[...document.querySelectorAll(
        "#timeline svg text")].map(text => text.textContent)""")
    for name in "worker 0", "worker 1", "ps 0", "ps 1":
        assert name in rows
    count = "document.querySelectorAll('#timeline rect.cell').length"
    before = browser.evaluate(count)
    assert before > 15
    # Waiting is pale, work is not.
    keys = dict(browser.evaluate("""[...document.querySelectorAll(
        "#timeline .legend button")].map(key => [key.textContent,
            getComputedStyle(key.firstChild).color])"""))
    pale = browser.evaluate("""(() => {
        const probe = document.createElement("i");
        probe.style.color = "var(--line)";
        document.body.append(probe);
        const colour = getComputedStyle(probe).color;
        probe.remove();
        return colour;
    })()""")
    assert [name for name in keys if keys[name] == pale] == ["wait"], keys
    browser.evaluate("document.querySelector('#timeline .plot').focus()")
    press(browser, "ArrowRight")
    said = browser.evaluate("document.getElementById('tip').textContent")
    assert "step" in said
    press(browser, "+", text="+")
    assert 0 < browser.evaluate(count) < before
    assert not browser.evaluate(
        "document.querySelector('#timeline .reset').hidden")
    devices = browser.evaluate("""[...document.querySelectorAll(
        "#graph .legend button")].map(button => button.textContent)""")
    assert devices == ["worker 0", "ps 0", "ps 1"]
    boxes = browser.evaluate("""[...document.querySelectorAll(
        "#graph rect.cell title")].map(title => title.textContent)""")
    assert any(b.startswith("conv1/weights [6 × 1 × 5 × 5] on ps 0")
               for b in boxes), boxes
    # What happened is marked in every curve.
    browser.evaluate("""Figures.load({ ...Figures.model, events: [{ run: 0,
        t: 0.01, step: 3, kind: "lost", task: "worker 1",
        text: "worker 1: lost, was killed" }] }); Figures.drawAll()""")
    assert browser.evaluate("""[...document.querySelectorAll(
        "#curve-loss .event title")].map(e => e.textContent)""") == \
        ["worker 1: lost, was killed"]
    for figure in "timeline", "graph":
        csv = browser.evaluate(f"Figures.csv({{kind: '{figure}'}})")
        assert csv.count("\n") > 20
    assert browser.evaluate(ON_CELLS) >= 4.5
    assert browser.evaluate(OUTSIDE) == [] == browser.evaluate(PALE)
    assert faults(browser) == []
    assert browser.complaints() == []
    assert browser.evaluate(
        "document.documentElement.scrollWidth <= innerWidth")


def test_the_page_prints(browser, page):
    show(browser, page, scheme="dark")
    # What is out of sight was not scrolled to.
    assert browser.evaluate(
        "document.querySelectorAll('figure:not([data-drawn])').length") > 0
    pdf = browser.call("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 50000
    assert browser.evaluate(
        "document.querySelectorAll('figure:not([data-drawn])').length") == 0
    assert browser.complaints() == []


@pytest.mark.parametrize("width, scheme", [(1280, "light"), (360, "dark")])
def test_the_page_of_a_plan_is_drawn(cli, browser, width, scheme):
    cli.ok("plan", "softmax", "--seconds", "0.1", "--hosts", "64", "-o",
           "plan.html")
    show(browser, cli.folder / "plan.html", width, scheme)
    browser.evaluate("Figures.drawAll()")
    browser.evaluate(DRAWN % 6)
    assert min(browser.evaluate(SHAPES)) >= 3
    assert browser.evaluate(OUTSIDE) == [] == browser.evaluate(PALE)
    assert browser.complaints() == []
    assert browser.evaluate(
        "document.documentElement.scrollWidth <= innerWidth")
