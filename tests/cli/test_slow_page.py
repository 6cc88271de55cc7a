"""`paceline page` in a real Chromium: a job is followed while it trains."""

import json
import re

import pytest

from conftest import wait_for
from served import Page

JOB = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
       "--workers", "2", "--ps", "1", "--epochs", "100000", "--eval-every",
       "200", "--quiet", "--run", "runs/a"]
POINTS = """[...charts.values()].flatMap(
    c => c.data.datasets.map(s => Math.max(...s.data.map(p => p.x))))"""


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
        browser.open(f"http://127.0.0.1:{page.port}/run/a")
        assert browser.evaluate("sign.textContent") == "live"
        wait_for(lambda: browser.evaluate("charts.size") > 5, "figures")
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
        said = browser.evaluate("document.querySelector('main > p').textContent")
        assert re.match(r"softmax: ended \(interrupt\) at step \d+", said)
        summary = json.loads((cli.folder / "runs/a/summary.json").read_text())
        assert f"step {summary['steps']}" in said
        assert browser.complaints() == []
        page.end()
    finally:
        page.close()
