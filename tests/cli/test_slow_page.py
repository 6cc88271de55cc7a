"""`paceline page` in a real Chromium: a job is followed while it trains."""

import json
import re

import pytest

from accessibility import OUTSIDE, PALE, adapt, faults, without_focus
from conftest import wait_for
from served import Page

JOB = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
       "--workers", "2", "--ps", "1", "--epochs", "100000", "--eval-every",
       "200", "--quiet", "--run", "runs/a"]
POINTS = """Figures.model.series.filter(s => s.x).map(
    s => s.x[s.x.length - 1])"""


@pytest.fixture
def job(cli):
    process = cli.start(*JOB)
    events = cli.folder / "runs/a/events"
    wait_for(lambda: any(f.stat().st_size > 2000
                         for f in events.rglob("*tfevents*")), "events")
    yield process
    process.terminate()
    process.communicate()


def test_a_job_is_followed(cli, job, browser):
    page = Page(cli)
    try:
        browser.open(page.url)
        assert browser.evaluate("location.href") == \
            f"http://127.0.0.1:{page.port}/"
        assert browser.evaluate(
            "document.querySelector('main a').textContent") == "a"
        assert browser.evaluate(
            "document.querySelector('#runs tr.running .state').textContent") \
            == "running"
        assert faults(browser) == [] == without_focus(browser, 20)
        browser.open(f"http://127.0.0.1:{page.port}/run/a")
        assert browser.evaluate("sign.textContent") == "live"
        assert faults(browser) == [] == without_focus(browser, 30)
        wait_for(lambda: browser.evaluate("Figures.views.size") > 5, "figures")
        browser.evaluate("scrollTo(0, 300); "
                         "document.querySelector('details').open = true")
        before = browser.evaluate(POINTS)
        # The same charts go on, nothing is closed or scrolled away.
        wait_for(lambda: sum(browser.evaluate(POINTS)) > sum(before),
                 "more points")
        assert browser.evaluate("document.querySelector('details').open")
        assert browser.evaluate("scrollY") > 0
        job.terminate()
        job.communicate()
        wait_for(lambda: browser.evaluate("sign.textContent") == "",
                 "the end of the run")
        said = browser.evaluate(
            "document.querySelector('.numbers').textContent")
        summary = json.loads((cli.folder / "runs/a/summary.json").read_text())
        assert re.search("stopped.*state", said)
        assert (f"{summary['steps']:,}/" if summary["steps"] > 9999
                else f"{summary['steps']}/") in said
        # Each task has a colour, and unchanged rows are kept.
        strokes = browser.evaluate("""Figures.drawAll(); [...document
            .querySelectorAll('#curve-loss path.curve')].map(
                path => path.getAttribute('stroke'))""")
        assert len(strokes) == len(set(strokes)) == 2
        browser.evaluate("""document.querySelector('#explored').mine = true;
            document.querySelector('.wide th button').click()""")
        browser.evaluate("refresh()")
        assert browser.evaluate("document.querySelector('#explored').mine")
        assert browser.evaluate(
            "document.querySelector('.wide th').ariaSort") == "ascending"
        assert browser.evaluate(
            "document.querySelectorAll('.wide th button').length") > 5
        assert browser.evaluate(
            "document.querySelectorAll('td .dot').length") > 0
        assert browser.complaints() == []
        page.end()
    finally:
        page.close()


@pytest.mark.parametrize("width, scheme", [(1280, "dark"), (360, "light"),
                                           (360, "dark")])
def test_the_pages_are_accessible(cli, job, browser, width, scheme):
    page = Page(cli)
    adapt(browser, width, scheme)
    try:
        browser.open(page.url)
        for path in "/", "/run/a":
            browser.open(f"http://127.0.0.1:{page.port}{path}")
            browser.evaluate("Figures.drawAll()")
            assert browser.evaluate(PALE) == [] == browser.evaluate(OUTSIDE)
            assert faults(browser) == []
            # Nothing is wider than the page, but for tables that scroll.
            assert browser.evaluate(
                "document.documentElement.scrollWidth <= innerWidth"), path
        assert browser.complaints() == []
    finally:
        page.close()


LINES = "document.querySelector('.log[open] pre').textContent"


def test_logs_are_filtered_and_followed(cli, job, browser):
    page = Page(cli)
    log = cli.folder / "runs/a/log/worker-1.log"
    with log.open("a") as file:
        file.write("".join(f"line {i}\n" for i in range(500)))
    try:
        browser.open(page.url)
        browser.open(f"http://127.0.0.1:{page.port}/run/a")
        browser.evaluate(
            "document.querySelector('.log[data-log$=\"worker-1.log\"]')"
            ".open = true")
        wait_for(lambda: "line 499" in browser.evaluate(LINES), "the log")
        assert browser.evaluate("words.placeholder") == \
            "Filter the last 64 KB of each log"
        place = "document.querySelector('.log[open] pre')"
        end = f"{place}.scrollTop + {place}.clientHeight >= " \
              f"{place}.scrollHeight - 2"
        assert browser.evaluate(end)
        with log.open("a") as file:
            file.write("one <b>more\n")
        wait_for(lambda: "one <b>more" in browser.evaluate(LINES), "a line")
        assert browser.evaluate(end)
        # A reader who scrolled up stays there.
        browser.evaluate(f"follow.click(); {place}.scrollTop = 0")
        with log.open("a") as file:
            file.write("the last\n")
        wait_for(lambda: "the last" in browser.evaluate(LINES), "a line")
        assert browser.evaluate(f"{place}.scrollTop") == 0
        browser.evaluate("""words.value = 'MORE one';
            words.dispatchEvent(new Event('input'))""")
        assert browser.evaluate(LINES) == "one <b>more"
        assert browser.complaints() == []
    finally:
        page.close()


def test_stop_and_a_restarted_server(cli, job, browser):
    page = Page(cli)
    tell = "sign.textContent"
    try:
        browser.open(page.url)
        browser.open(f"http://127.0.0.1:{page.port}/run/a")
        page.end()
        wait_for(lambda: "does not answer" in browser.evaluate(tell), "an end")
        page = Page(cli, "--port", page.port)
        wait_for(lambda: "printed" in browser.evaluate(tell), "what to do")
        # Once its URL was opened in this browser, the page continues.
        browser.evaluate(f"fetch('{page.way_in}')")
        wait_for(lambda: browser.evaluate(tell) == "live", "the server")
        browser.evaluate("""confirm = text => { asked = text; return false };
            document.querySelector('[data-stop]').click()""")
        assert "as by Ctrl-C" in browser.evaluate("asked")
        assert job.poll() is None
        browser.evaluate("""confirm = () => true;
            document.querySelector('[data-stop]').click()""")
        said = job.communicate(timeout=120)[1].decode()
        assert job.returncode == 130 and "interrupted at step" in said
        wait_for(lambda: browser.evaluate(tell) == "", "the end of the run")
        assert browser.evaluate("document.querySelector('[data-stop]')") is None
    finally:
        page.close()


def test_sweeps_are_groups(cli, browser):
    cli.ok("sweep", "--grid", "batch=10,50", "--out", "runs/grid", "--quiet",
           "--", "softmax", "--data", "synthetic", "--examples", "200",
           "--epochs", "1")
    cli.ok("train", "softmax", "--data", "synthetic", "--examples", "200",
           "--epochs", "1", "--quiet", "--run", "runs/alone")
    path = cli.folder / "runs/grid/sweep.json"
    sweep = json.loads(path.read_text())
    sweep["cells"] += [dict(sweep["cells"][0], name=f"x{i}", state=state)
                       for i, state in enumerate(["waiting", "failed"])]
    path.write_text(json.dumps(sweep))
    page = Page(cli)
    seen = """[...document.querySelectorAll('#runs tbody tr')].filter(
        row => row.offsetParent !== null).length"""
    try:
        browser.open(page.url)
        row = browser.evaluate(
            "document.querySelector('#sweeps tbody tr').innerText").split("\t")
        assert row[0] == "grid" and row[1].strip() == "2 of 4", row
        assert row[2:4] == ["0", "1"], row
        assert browser.evaluate(
            "document.querySelector('#sweeps progress').position") == 0.75
        assert browser.evaluate(seen) == 1  # the others are folded
        browser.evaluate("document.querySelector('#sweeps td button').click()")
        assert browser.evaluate(seen) == 3
        browser.evaluate("refresh()")
        assert browser.evaluate(seen) == 3
        browser.evaluate("document.querySelector('#sweeps td button').click()")
        browser.evaluate(FILTER % "batch-50")
        assert browser.evaluate(seen) == 1  # found where it is folded
        browser.open(f"http://127.0.0.1:{page.port}/sweep/grid")
        assert browser.evaluate("Figures.model.runs.length") == 2
        assert browser.evaluate("document.querySelector('h1').textContent") == \
            "grid"
        assert browser.complaints() == []
    finally:
        page.close()


NAMES = """[...document.querySelectorAll('#runs tbody tr')]
    .filter(row => !row.hidden).map(row => row.cells[2].textContent).join('')"""
FILTER = """(() => {
    const field = document.querySelector('.filter input');
    field.value = '%s';
    field.dispatchEvent(new Event('input', { bubbles: true }));
})()"""


@pytest.fixture
def listed(cli, browser):
    for name, epochs in ("a", 3), ("b", 1), ("c", 2):
        cli.ok("train", "softmax", "--data", "synthetic", "--examples", "500",
               "--epochs", epochs, "--quiet", "--run", f"runs/{name}")
    page = Page(cli)
    browser.open(page.url)
    yield page
    page.close()


def test_the_list_is_sorted_and_filtered(listed, browser):
    assert browser.evaluate(NAMES) == "cba"  # the newest first
    step = "document.querySelectorAll('#runs th')[6]"
    browser.evaluate(f"{step}.querySelector('button').click()")
    assert browser.evaluate(NAMES) == "bca"
    browser.evaluate(f"{step}.querySelector('button').click()")
    assert browser.evaluate(NAMES) == "acb"
    assert browser.evaluate(f"{step}.ariaSort") == "descending"
    browser.evaluate(FILTER % "softmax step>5")
    assert browser.evaluate(NAMES) == "ac"
    assert browser.evaluate(
        "document.querySelector('.filter span').textContent") == "2 of 3"
    # What the reader chose outlives a refresh, and so does the focus.
    browser.evaluate("""document.querySelector('#runs input[value=c]').focus();
        document.activeElement.click(); refresh()""")
    wait_for(lambda: browser.evaluate(
        "document.querySelector('.wide').dataset.was !== undefined"),
        "a refresh")
    assert browser.evaluate(NAMES) == "ac"
    assert browser.evaluate("document.activeElement.value") == "c"
    assert browser.evaluate("document.activeElement.checked")
    browser.evaluate(FILTER % "nothing-like-it")
    assert browser.evaluate(NAMES) == ""
    browser.evaluate(FILTER % "")
    assert browser.evaluate(NAMES) == "acb"
    assert browser.complaints() == []


def test_ticked_runs_are_overlaid(listed, browser):
    tick = "document.querySelector('#runs input[value=%s]').click()"
    browser.evaluate(tick % "c")
    assert browser.evaluate("overlay.disabled")
    browser.evaluate(tick % "a")
    assert not browser.evaluate("overlay.disabled")
    browser.evaluate("overlay.click()")
    wait_for(lambda: browser.evaluate(
        "location.pathname === '/overlay/c:a' && "
        "document.readyState === 'complete'"), "the overlay")
    browser.evaluate("Figures.drawAll()")
    assert browser.evaluate("Figures.model.runs.map(run => run.name)") == \
        ["c", "a"]
    assert browser.evaluate("document.querySelectorAll("
                            "'#curve-loss path.curve').length") == 2
    assert browser.evaluate(
        "[...document.querySelectorAll('#curve-loss .legend button')].map("
        "button => button.textContent)") == ["c", "a"]
    # Bars have the names of the runs, and the colours of their curves.
    names = browser.evaluate("""[...document.querySelectorAll(
        "#seconds-by-run svg text")].map(text => text.textContent)""")
    assert names[-2:] == ["c", "a"], names
    fills, strokes = browser.evaluate("""[
        [...document.querySelectorAll("#seconds-by-run .bar rect")].map(
            bar => bar.getAttribute("fill")),
        [...document.querySelectorAll("#curve-loss path.curve")].map(
            path => path.getAttribute("stroke"))]""")
    assert fills == strokes and len(set(fills)) == 2
    browser.evaluate("document.querySelector('.back a').click()")
    wait_for(lambda: browser.evaluate("location.pathname") == "/", "the list")
    assert browser.complaints() == []
