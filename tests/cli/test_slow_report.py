"""Reports in a real Chromium: every figure is drawn, nobody is asked, and
nothing is complained of."""

import pytest


@pytest.fixture
def page(cli):
    cli.ok("sweep", "--quiet", "--repeat", "2", "--grid",
           "mode=sync,async batch=50,500 workers=0,2", "--out", "s", "--",
           "softmax", "--data", "synthetic", "--examples", "2000", "--epochs",
           "2")
    cli.ok("report", "s")
    return cli.folder / "report.html"


# How many pixels of each chart are not blank.
INK = """[...document.querySelectorAll("figure[data-drawn] canvas")].map(c => {
    const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let ink = 0;
    for (let i = 3; i < d.length; i += 4)
        ink += d[i] > 0;
    return ink;
})"""


UNFOLDED = """[...document.querySelectorAll("figure[data-figure]")].filter(
    f => !f.closest("details:not([open])")).length"""

# Until so many figures are drawn; those out of sight are when there is time.
DRAWN = """new Promise(done => {
    const look = () =>
        document.querySelectorAll("figure[data-drawn]").length >= %d ?
            done() : requestAnimationFrame(look);
    look();
})"""


# How many points have a spread; an error when one leaves its chart.
SPREADS = """[...charts.values()].flatMap(c => c.data.datasets.flatMap(set =>
    (set.spread ?? []).map((s, i) => {
        const y = set.data[i].y;
        if (y - s < c.scales.y.min || y + s > c.scales.y.max)
            throw new Error("a spread leaves its chart");
        return s;
    }))).length"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_figures_are_drawn(browser, page, scheme):
    browser.call("Emulation.setEmulatedMedia", features=[
        {"name": "prefers-color-scheme", "value": scheme}])
    browser.open(page.as_uri())
    assert browser.complaints() == []
    asked = [r["request"]["url"]
             for r in browser.seen("Network.requestWillBeSent")]
    assert asked == [page.as_uri()]
    figures = browser.evaluate(
        "document.querySelectorAll('figure[data-figure]').length")
    unfolded = browser.evaluate(UNFOLDED)
    assert 5 < unfolded < figures
    browser.evaluate(DRAWN % unfolded)
    assert min(browser.evaluate(INK)) > 500
    browser.evaluate(
        "document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.evaluate(DRAWN % figures)
    drawn = browser.evaluate(INK)
    assert len(drawn) == figures and min(drawn) > 500
    assert browser.evaluate(SPREADS) > 0
    paper = browser.evaluate(
        "getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.complaints() == []
    # Nothing is wider than the page, but for tables that scroll.
    assert browser.evaluate(
        "document.documentElement.scrollWidth <= innerWidth")


def test_it_prints(browser, page):
    # Nobody gave it time to draw what is not in sight.
    browser.call("Page.addScriptToEvaluateOnNewDocument",
                 source="window.requestIdleCallback = () => 0")
    browser.open(page.as_uri())
    unfolded = browser.evaluate(UNFOLDED)
    assert len(browser.evaluate(INK)) < unfolded
    pdf = browser.call("Page.printToPDF", printBackground=True)["data"]
    assert len(pdf) > 50000
    assert len(browser.evaluate(INK)) == unfolded
    assert browser.complaints() == []
