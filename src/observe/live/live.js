// Requests the page again while something may still change, and shows the
// changes in place: open elements and scroll positions are kept.
"use strict";

const RETRY_MS = 2000;
const LOST = "the server does not answer: is `paceline page` running?";

const sign = document.createElement("p");
sign.id = "live";
sign.setAttribute("role", "status");
document.body.prepend(sign);

let notice = ""; // result of the reader's last request

function isChanging() {
    return document.querySelector("main").hasAttribute("data-changing");
}

// The server sets the interval.
function againIn() {
    return Number(document.querySelector("main").dataset.changing);
}

function tell(text) {
    sign.textContent = text;
    sign.className = text === "live" ? "on" : "";
}

// The parts of a page in order, without those made by the reader: equal lists
// mean the same page.
function outline(page) {
    return [...page.querySelectorAll(
        "h1, h2, figure[data-figure]:not(#explorer *), .wide, pre")]
        .map(part => part.matches("h1, h2") ? part.textContent
            : part.querySelector("thead")?.textContent ??
              (part.id || part.localName)).join("\n");
}

// The table head is kept, and with it the order; so are filter, ticks and
// focus.
function replaceRows(table, fresh) {
    const key = part => part.value || part.getAttribute("href");
    const held = table.tBodies[0].contains(document.activeElement)
        ? key(document.activeElement) : null;
    table.tBodies[0].replaceChildren(...fresh.tBodies[0].rows);
    sortRows(table);
    filterRows(table);
    if (held !== null)
        [...table.tBodies[0].querySelectorAll("a, input")]
            .find(part => key(part) === held)?.focus();
}

function replacePart(part, fresh) {
    if (part.dataset.was === fresh.innerHTML)
        return;
    part.dataset.was = fresh.innerHTML;
    if (part.matches(".wide"))
        replaceRows(part.firstElementChild, fresh.firstElementChild);
    else
        part.innerHTML = fresh.innerHTML;
}

function replaceTexts(fresh) {
    const kinds = "main > p, .numbers, .findings, .wide";
    const news = [...fresh.querySelectorAll(kinds)];
    [...document.querySelectorAll(kinds)].forEach((part, index) => {
        if (news[index])
            replacePart(part, news[index]);
    });
    if (Figures.model.runs)
        markRuns();
    showTicked();
    foldRuns();
    const { changing } = fresh.querySelector("main").dataset;
    if (changing === undefined)
        delete document.querySelector("main").dataset.changing;
    else
        document.querySelector("main").dataset.changing = changing;
}

function replaceAll(fresh) {
    const open = new Set([...document.querySelectorAll("details[open]")]
        .map(part => part.firstElementChild.textContent));
    for (const element of Figures.views.keys())
        Figures.unmount(element);
    document.querySelector("main").replaceWith(fresh.querySelector("main"));
    fill();
    fillList();
    fillLogs();
    for (const part of document.querySelectorAll("main details"))
        part.open = open.has(part.firstElementChild.textContent);
}

// Keep what the reader has hidden or zoomed to.
function show(fresh) {
    const same = outline(fresh) === outline(document);
    Figures.load(JSON.parse(fresh.getElementById("model").textContent));
    if (same)
        replaceTexts(fresh);
    else
        replaceAll(fresh);
}

/* --- the list of runs: ticked runs are overlaid ------------------------- */

const ticked = new Set(); // encoded for a URL
const overlay = html("button", { type: "button", on: { click: () => {
    location.href = "/overlay/" + [...ticked].join(":");
} } }, "Overlay");

function showTicked() {
    for (const tick of document.querySelectorAll("#runs input"))
        tick.checked = ticked.has(tick.value);
    overlay.disabled = ticked.size < 2;
    overlay.title = overlay.disabled ? "Tick two runs or more" : "";
}

function fillList() {
    const table = document.getElementById("runs");
    if (!table)
        return;
    table.addEventListener("change", ({ target }) => {
        ticked[target.checked ? "add" : "delete"](target.value);
        showTicked();
    });
    const { field, count } = filters.get(table);
    count.after(overlay);
    field.addEventListener("input", foldRuns);
    showTicked();
    foldRuns();
}

/* --- sweeps: their runs are folded until opened -------------------------- */

const unfolded = new Set();

// Filters also find folded runs.
function foldRuns() {
    const table = document.getElementById("runs");
    if (!document.getElementById("sweeps") || !table)
        return;
    const filtered = filters.get(table).field.value.trim() !== "";
    for (const row of table.tBodies[0].rows)
        row.classList.toggle("folded", row.dataset.sweep !== undefined &&
            !filtered && !unfolded.has(row.dataset.sweep));
    for (const button of document.querySelectorAll("#sweeps button[data-sweep]"))
        button.textContent = unfolded.has(button.dataset.sweep)
            ? "Hide runs" : "Show runs";
}

document.addEventListener("click", ({ target }) => {
    if (!target.matches("#sweeps button[data-sweep]"))
        return;
    const { sweep } = target.dataset;
    if (!unfolded.delete(sweep))
        unfolded.add(sweep);
    foldRuns();
});

/* --- logs: the end of each open log -------------------------------------- */

const logs = new WeakMap(); // element: the text from the server
const words = html("input", { type: "search",
    placeholder: "Filter the last 64 KB of each log",
    "aria-label": "Filter the last 64 KB of each log", on: { input: () => {
        for (const part of document.querySelectorAll(".log[open]"))
            showLog(part);
    } } });
const follow = html("input", { type: "checkbox", checked: true });

// Lines that contain every word of the filter.
function showLog(part) {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const lines = (logs.get(part) ?? "").split("\n").filter(line =>
        wanted.every(word => line.toLowerCase().includes(word)));
    const place = part.querySelector("pre");
    place.textContent = lines.join("\n");
    if (follow.checked)
        place.scrollTop = place.scrollHeight;
}

async function readLog(part) {
    const answer = await fetch(part.dataset.log);
    const text = await answer.text();
    if (text === logs.get(part))
        return;
    logs.set(part, text);
    showLog(part);
}

async function readLogs() {
    for (const part of document.querySelectorAll(".log[open]"))
        await readLog(part);
}

function fillLogs() {
    const parts = [...document.querySelectorAll(".log")];
    parts[0]?.before(html("div", { class: "filter" }, words,
                          html("label", {}, follow, " follow")));
    for (const part of parts)
        part.addEventListener("toggle", () => part.open &&
            readLog(part).catch(() => tell(LOST)));
}

/* --- stopping a run ----------------------------------------------------- */

document.addEventListener("click", async ({ target }) => {
    if (!target.matches("button[data-stop]") ||
        !confirm("Stop this run? It saves a checkpoint and ends, as by Ctrl-C; " +
                 "it can be resumed."))
        return;
    target.disabled = true;
    try {
        const answer = await fetch(target.dataset.stop, { method: "POST" });
        notice = await answer.text();
    } catch {
        notice = LOST;
    }
    tell(notice);
    refreshIn(RETRY_MS);
});

let timer; // of the only pending refresh

function refreshIn(ms) {
    clearTimeout(timer);
    timer = setTimeout(refresh, ms);
}

async function refresh() {
    let again = RETRY_MS;
    if (!document.hidden) {
        try {
            const answer = await fetch(location.href);
            const text = await answer.text();
            if (answer.ok) {
                show(new DOMParser().parseFromString(text, "text/html"));
                await readLogs();
                tell(isChanging() ? notice || "live" : "");
                again = againIn();
            } else
                tell(text);
        } catch {
            tell(LOST);
        }
    }
    if (isChanging())
        refreshIn(again);
}

if (isChanging()) {
    tell("live");
    refreshIn(againIn());
}
fillList();
fillLogs();
