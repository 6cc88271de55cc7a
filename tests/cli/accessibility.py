"""Accessibility of a page without a mouse or without sight, by WCAG 2.1 AA;
each function returns the violations."""

# Names, roles, labels, unique ids, order of headings, focusable controls.
FAULTS = """(() => {
    const out = [], say = (what, e) => out.push(
        `${what}: ${e.outerHTML.slice(0, 90)}`);
    const seen = e => e.checkVisibility();
    const nameOf = e => (e.getAttribute("aria-label") ||
        (e.labels && [...e.labels].map(l => l.textContent).join(" ")) ||
        e.textContent || e.title || "").trim();
    if (document.documentElement.lang === "")
        say("no language", document.documentElement);
    if (document.title === "" || !document.querySelector("main h1"))
        say("no title", document.body);
    const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
    for (const id of ids.filter((id, i) => ids.indexOf(id) !== i))
        out.push(`id twice: ${id}`);
    for (const e of document.querySelectorAll(
             "button, a, select, input, summary, [tabindex]")) {
        if (!seen(e))
            continue;
        if (nameOf(e) === "")
            say("no name", e);
        if (e.tabIndex > 0 || (e.tabIndex < 0 && !e.disabled))
            say("not in the order of Tab", e);
        const box = e.getBoundingClientRect();
        if (!e.matches(".plot, td a") && (box.width < 12 || box.height < 12))
            say("too small", e);
    }
    let level = 1;
    for (const e of document.querySelectorAll("h1, h2, h3, h4")) {
        const own = Number(e.localName[1]);
        if (own > level + 1)
            say("a level of headings is left out", e);
        level = own;
    }
    for (const e of document.querySelectorAll(".plot svg, td svg"))
        if (e.getAttribute("role") !== "img" || !e.getAttribute("aria-label"))
            say("a picture without a name", e);
    for (const e of document.querySelectorAll("table"))
        if (!e.caption?.textContent || !e.querySelector("thead th"))
            say("a table without caption or heads", e);
    for (const e of document.querySelectorAll(".wide"))
        if (seen(e) && (e.scrollWidth > e.clientWidth + 1 ||
                        e.scrollHeight > e.clientHeight + 1) &&
            e.tabIndex !== 0)
            say("scrolls by mouse alone", e);
    for (const e of document.querySelectorAll("[aria-label]"))
        if (!e.matches("a, button, select, input, summary, nav, " +
            "progress, svg, [role]") &&
            seen(e))
            say("a name without a role", e);
    return out;
})()"""

# Texts of figures that leave them or are cut.
OUTSIDE = """[...document.querySelectorAll("figure[data-drawn] .plot svg")]
    .flatMap(svg => [...svg.querySelectorAll("text")].filter(text => {
        const own = text.getBoundingClientRect();
        const all = svg.getBoundingClientRect();
        return own.left < all.left - 2 || own.right > all.right + 2 ||
               own.bottom > all.bottom + 2;
    }).map(text => text.textContent))"""

# Texts whose contrast with their background is below 4.5.
PALE = """(() => {
    const parse = c => c.match(/[\\d.]+/g).map(Number);
    const light = c => {
        const [r, g, b] = parse(c).map(v => v / 255).map(v =>
            v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const behind = e => {
        for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (parse(c)[3] !== 0)
                return c;
        }
        return "rgb(255, 255, 255)";
    };
    return [...document.querySelectorAll(
        "main :is(h1, h2, p, li, td, th, a, label, summary, button, text)" +
        ":not(.on-cell)")]
        .filter(e => e.textContent.trim() && e.getClientRects().length)
        .filter(e => {
            const own = getComputedStyle(e);
            const [a, b] = [light(e.localName === "text" ? own.fill
                : own.color), light(behind(e))].sort((x, y) => y - x);
            return (a + .05) / (b + .05) < 4.5;
        }).map(e => `${e.localName}: ${e.textContent.slice(0, 40)}`);
})()"""

# The controls that Tab reaches and how many of them show no focus.
FOCUS = """(() => {
    const e = document.activeElement, style = getComputedStyle(e);
    return [e.outerHTML.slice(0, 90), style.outlineStyle !== "none" &&
            parseFloat(style.outlineWidth) >= 1];
})()"""


def faults(browser):
    return browser.evaluate(FAULTS)


def press(browser, key, **more):
    for kind in "keyDown", "keyUp":
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, **more)


def without_focus(browser, times):
    """Press Tab this often; the controls reached that show no focus."""
    found, reached = [], set()
    for _ in range(times):
        press(browser, "Tab", code="Tab", windowsVirtualKeyCode=9)
        what, shown = browser.evaluate(FOCUS)
        reached.add(what)
        if not shown and not what.startswith("<body"):
            found.append(what)
    assert len(reached) > times // 3, reached
    return found


def adapt(browser, width, scheme):
    browser.call("Emulation.setEmulatedMedia", media="", features=[
        {"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Emulation.setDeviceMetricsOverride", width=width,
                 height=1000, deviceScaleFactor=1, mobile=False)
