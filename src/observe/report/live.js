// Asks for the page again while something may still change, and shows what
// did, in place: what is open stays open, what was scrolled to stays there.
"use strict";

const EVERY_MS = 2000;

const sign = document.createElement("p");
sign.id = "live";
sign.setAttribute("role", "status");
document.body.prepend(sign);

function isChanging() {
    return document.querySelector("main").hasAttribute("data-changing");
}

function tell(text) {
    sign.textContent = text;
}

// The parts of a page in order: the same list means the same page.
function outline(page) {
    return [...page.querySelectorAll("h1, h2, summary, figcaption, .wide")]
        .map(part => part.matches(".wide") ? "table" : part.textContent)
        .join("\n");
}

// Lines that the reader has hidden stay hidden.
function update(chart, figure) {
    const hidden = new Set(chart.data.datasets
        .filter((set, index) => !chart.isDatasetVisible(index))
        .map(set => set.label));
    chart.data = dataOf(figure);
    chart.options = options(figure);
    chart.data.datasets.forEach((set, index) =>
        chart.setDatasetVisibility(index, !hidden.has(set.label)));
    chart.update("none");
}

function replaceTexts(fresh) {
    const kinds = "main > p, .wide, pre";
    const news = [...fresh.querySelectorAll(kinds)];
    [...document.querySelectorAll(kinds)].forEach((part, index) => {
        if (news[index] && part.innerHTML !== news[index].innerHTML)
            part.innerHTML = news[index].innerHTML;
    });
    document.querySelector("main").toggleAttribute(
        "data-changing", fresh.querySelector("main[data-changing]") !== null);
}

function replaceAll(fresh) {
    const open = new Set([...document.querySelectorAll("details[open]")]
        .map(part => part.firstElementChild.textContent));
    for (const chart of charts.values())
        chart.destroy();
    charts.clear();
    document.querySelector("main").replaceWith(fresh.querySelector("main"));
    for (const part of document.querySelectorAll("details"))
        part.open = open.has(part.firstElementChild.textContent);
    drawWithin(document);
}

function show(fresh) {
    figures.splice(0, figures.length,
        ...JSON.parse(fresh.getElementById("figures").textContent));
    if (outline(fresh) !== outline(document)) {
        replaceAll(fresh);
        return;
    }
    replaceTexts(fresh);
    for (const [element, chart] of charts)
        update(chart, figures[Number(element.dataset.figure)]);
}

async function refresh() {
    if (!document.hidden) {
        try {
            const answer = await fetch(location.href);
            const text = await answer.text();
            if (answer.ok) {
                show(new DOMParser().parseFromString(text, "text/html"));
                tell(isChanging() ? "live" : "");
            } else
                tell(text);
        } catch {
            tell("the server does not answer: is `paceline page` running?");
        }
    }
    if (isChanging())
        setTimeout(refresh, EVERY_MS);
}

if (isChanging()) {
    tell("live");
    setTimeout(refresh, EVERY_MS);
}
