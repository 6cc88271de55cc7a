// page.js - the functions of a report's page besides drawing figures: sorting
// and filtering tables, choosing runs and how curves are shown, and figures
// made by the reader.
"use strict";

const { html } = Figures;

/* --- tables ----------------------------------------------------------- */

const FILTERED = 6; // tables with more rows have a filter field

function valueOf(cell) {
    const text = (cell.dataset.sort ?? cell.textContent).trim();
    const number = Number(text.replace(/ ±.*/, "").replace(/,/g, ""));
    return text === "" ? null : Number.isNaN(number) ? text : number;
}

// Numbers before texts, empty cells last.
function compare(a, b) {
    if (a === null || b === null)
        return (a === null) - (b === null);
    if (typeof a !== typeof b)
        return typeof a === "number" ? -1 : 1;
    return typeof a === "number" ? a - b
        : a.localeCompare(b, "en", { numeric: true });
}

// Sort by the order that the column heads show.
function sortRows(table) {
    const head = table.querySelector("th[aria-sort]");
    if (!head)
        return;
    const up = head.getAttribute("aria-sort") === "ascending";
    const rows = [...table.tBodies[0].rows];
    const keys = new Map(rows.map(
        row => [row, valueOf(row.cells[head.cellIndex])]));
    rows.sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        return x === null || y === null || up ? compare(x, y) : compare(y, x);
    });
    table.tBodies[0].append(...rows);
}

function sortBy(table, head) {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of head.parentElement.children)
        other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    sortRows(table);
}

const SIGNS = { "<": (a, b) => a < b, ">": (a, b) => a > b,
                "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
                "=": (a, b) => String(a).toLowerCase() === String(b) };

// Parses a filter: "test accuracy>90 sync" compares the column with that name,
// the longest that matches, and searches for a word.
function wishesOf(text, names) {
    const conditions = [];
    const order = [...names.keys()].filter(index => names[index] !== "")
        .sort((a, b) => names[b].length - names[a].length);
    for (const index of order) {
        const name = names[index].replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
        text = text.replace(new RegExp(
            `(?<!\\S)${name}\\s*(<=|>=|<|>|=)\\s*(\\S+)`, "g"),
            (_, sign, limit) => {
                conditions.push({ index, sign, limit });
                return " ";
            });
    }
    return { conditions, words: text.split(/\s+/).filter(Boolean) };
}

function holds(row, { index, sign, limit }) {
    const value = valueOf(row.cells[index]);
    return value !== null && SIGNS[sign](value,
        typeof value === "number" && sign !== "=" ? Number(limit) : limit);
}

// The row must contain every word and meet every condition.
function matches(row, { conditions, words }) {
    const text = row.textContent.toLowerCase();
    return words.every(word => text.includes(word)) &&
        conditions.every(condition => holds(row, condition));
}

const filters = new WeakMap(); // table: its field and row count

function filterRows(table) {
    if (!filters.has(table))
        return;
    const { field, count } = filters.get(table);
    const names = [...table.tHead.rows[0].cells].map(cell =>
        cell.textContent.replace(/ \[.*/, "").trim().toLowerCase());
    const wishes = wishesOf(field.value.toLowerCase(), names);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows)
        row.hidden = !matches(row, wishes);
    const left = rows.filter(row => !row.hidden).length;
    count.textContent = field.value.trim() === "" ? ""
        : `${left} of ${rows.length}`;
}

// Make scrollable elements reachable by keyboard, too.
const scrollers = new ResizeObserver(entries => {
    for (const { target: part } of entries) {
        const scrolls = part.scrollWidth > part.clientWidth + 1 ||
                        part.scrollHeight > part.clientHeight + 1;
        part.toggleAttribute("tabindex", scrolls);
        if (scrolls)
            part.tabIndex = 0;
    }
});

function enliven(table) {
    const place = table.parentElement;
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", table.caption.textContent);
    scrollers.observe(place);
    for (const head of table.querySelectorAll("thead th:not(.plain)")) {
        const [, name, unit] = head.textContent.match(/^([^[]*)(\[.*\])?$/) ??
            [null, head.textContent];
        const button = html("button", { type: "button", title: "Sort" },
            name.startsWith("--") ? html("span", { class: "flag" }, name) : name,
            ...unit ? [html("span", { class: "unit" }, unit)] : []);
        head.replaceChildren(button);
        button.addEventListener("click", () => sortBy(table, head));
    }
    if (!table.tBodies[0] ||
        (table.tBodies[0].rows.length <= FILTERED && table.id !== "runs"))
        return;
    const count = html("span", { role: "status" });
    const name = table.caption.textContent;
    const field = html("input", { type: "search", placeholder:
        `Filter: words, or ${table.id === "runs" ? "loss<0.5" : "batch<100"}`,
        "aria-label": `Filter ${name}`,
        on: { input: () => filterRows(table) } });
    filters.set(table, { field, count });
    table.parentElement.before(html("div", { class: "filter" }, field, count));
}

// A dot in the colour of the run's curves.
function markRuns() {
    const byName = new Map(Figures.model.runs.map(
        (run, index) => [run.name, index]));
    for (const row of document.querySelectorAll(".wide tbody tr")) {
        const cell = row.cells[0], index = byName.get(cell.textContent);
        if (index === undefined)
            continue;
        let dot = cell.querySelector("i");
        if (!dot) {
            dot = html("i", { class: "dot" });
            cell.prepend(dot);
        }
        dot.style.background = Figures.colourOf(index);
    }
}

/* --- choosing runs and display ---------------------------------------- */

function choice(label, values, value, act) {
    const select = html("select", { on: { change: () => act(select.value) } },
        ...values.map(([key, name]) => html("option",
            { value: key, selected: key === value }, name)));
    return html("label", {}, `${label} `, select);
}

function runChip(index, run, many) {
    const box = html("input", { type: "checkbox", on: { change: () =>
        Figures.toggle([run.name], box.checked) } });
    const swatch = html("i", { class: "dot" });
    const show = () => {
        box.checked = Figures.isShown(index);
        swatch.style.background = Figures.colourOf(index);
    };
    Figures.listen(show);
    show();
    return html("label", { class: "chip", title: run.name }, box, swatch,
                many ? run.name : run.label);
}

function fillDisplay(place) {
    const { runs, axes, series } = Figures.model;
    const names = runs.map(run => run.name);
    const repeats = runs.some((run, index) => run.like !== index);
    const count = html("span", { role: "status" });
    const chips = runs.map((run, index) => runChip(index, run,
        new Set(runs.map(r => r.label)).size < runs.length));
    const all = on => html("button", { type: "button", on: { click: () =>
        Figures.toggle(names.filter((_, i) => !chips[i].hidden), on) } },
        on ? "All" : "None");
    const search = html("input", { type: "search", placeholder: "Find runs",
        "aria-label": "Find runs", on: { input: () => chips.forEach((chip, i) => {
            chip.hidden = !search.value.toLowerCase().split(/\s+/).every(word =>
                `${runs[i].name} ${runs[i].label}`.toLowerCase()
                    .includes(word));
        }) } });
    const tell = () => {
        const on = names.filter((_, index) => Figures.isShown(index)).length;
        count.textContent = `${on} of ${names.length} runs shown`;
    };
    const smooth = html("input", { type: "range", min: 0, max: 0.98, step: 0.02,
        value: 0, "aria-label": "Smoothing", on: { input: () =>
            Figures.display({ smooth: Number(smooth.value) }) } });
    const mean = html("input", { type: "checkbox", checked: true, on: {
        change: () => Figures.display({ mean: mean.checked }) } });
    const steps = runs.some(run => run.each);
    Figures.listen(tell);
    tell();
    if (names.length < 2 && series.length === 0)
        return;
    place.append(
        ...names.length > 1 ? [html("details", {}, html("summary", {}, count),
            html("div", { class: "chips" }, search, all(true), all(false),
                 ...chips))] : [],
        ...series.length === 0 ? [] : [html("div", { class: "controls" },
        choice("Curves by", [["step", "step"], ...steps
            ? [["epoch", "epoch"], ["examples", "examples"]] : [],
            ["time", "time"]], Figures.shown.x, x => Figures.display({ x })),
        ...axes.length > 0 ? [choice("Color by", [["run", "run"],
            ...axes.map(axis => [axis, axis])], Figures.shown.colour, colour => {
            Figures.display({ colour });
            markRuns();
        })] : [],
        html("label", {}, "Smoothing ", smooth),
        ...repeats ? [html("label", {}, mean, " mean of repetitions")] : [])]);
}

/* --- the run shown in some figures ------------------------------------ */

function fillChooser(place) {
    const { model } = Figures, { chooser, run } = place.dataset;
    const runs = Drawings.choices(chooser);
    const first = runs.includes(Drawings.chosen(chooser))
        ? Drawings.chosen(chooser) : Number(run);
    Drawings.choose(chooser, first);
    if (runs.length > 1)
        place.replaceChildren(choice("Run", runs.map(index => [String(index),
            model.runs[index].label === model.runs[index].name
                ? model.runs[index].name
                : `${model.runs[index].name}: ${model.runs[index].label}`]),
            String(first), value => {
            Drawings.choose(chooser, Number(value));
            Figures.redraw();
        }));
}

/* --- figures made by the reader --------------------------------------- */

const CURVES = ["step", "epoch", "examples", "time"];

function sortedMetrics(keys) {
    const order = Object.keys(Figures.model.metrics);
    const place = key => (order.indexOf(key) + order.length + 1) %
                         (order.length + 1);
    return [...keys].sort((a, b) => place(a) - place(b) || (a < b ? -1 : 1))
        .map(key => [key, Figures.labelOf(key)]);
}

function yChoices(x) {
    const { runs, series } = Figures.model;
    return sortedMetrics(new Set(CURVES.includes(x)
        ? series.filter(s => x === "time" || s.x).map(s => s.metric)
        : runs.flatMap(run => Object.keys(run.results))));
}

// The figure that the reader requested; null: the runs have no data for it.
function explored(want) {
    const part = want.part === "" ? undefined : Number(want.part);
    const name = key => Figures.metric(key).label;
    const title = `${name(want.y)}${want.second
        ? ` and ${name(want.second)}` : ""} by ${want.x}`;
    const common = { id: "explored", logY: want.logY, log: want.logX,
                     title: title[0].toUpperCase() + title.slice(1) };
    if (!CURVES.includes(want.x))
        return { ...common, ...Figures.byFlag({ ...want, part }), ...common };
    return { ...common, kind: "curves", curve: want.y, part,
             second: want.second || undefined, facet: want.facet || undefined,
             tasks: want.tasks,
             display: { x: want.x, colour: want.colour, smooth:
                        Number(want.smooth), mean: !want.tasks } };
}

let explore = () => {}; // show a figure of the report as a start
addEventListener("explore", event => explore(event.detail));

function readHash() {
    const [place, query] = location.hash.slice(1).split("?");
    return place === "explored" && query
        ? Object.fromEntries(new URLSearchParams(query)) : {};
}

function fillExplorer(place) {
    const { axes, runs, series } = Figures.model;
    const xs = [...axes.map(axis => [axis, axis]),
                ...series.length > 0 ? CURVES.map(key => [key, key]) : []];
    if (xs.length === 0) {
        place.append(html("p", {}, "Nothing was varied or recorded over time."));
        return;
    }
    const parts = new Set(runs.map(run => run.part)).size;
    const want = { x: xs[0][0], y: "", second: "",
                   colour: Figures.shown.colour, facet: "",
                   smooth: "0", logX: false, logY: false, tasks: false,
                   part: parts > 1 ? "0" : "" };
    const given = readHash();
    for (const key of Object.keys(want))
        if (given[key] !== undefined)
            want[key] = typeof want[key] === "boolean"
                ? given[key] === "true" : given[key];
    const form = html("form", { class: "controls", on: {
        submit: event => event.preventDefault() } });
    const figure = html("figure", { class: "large" });
    const link = html("a", { href: "#explored" }, "Link to this figure");
    let mounted = false;

    const show = () => {
        const choices = yChoices(want.x);
        if (choices.length === 0)
            return;
        const isLine = key => !CURVES.includes(want.x) ||
            series.some(s => s.metric === key && s.y.length > 1);
        if (!choices.some(([key]) => key === want.y))
            want.y = (choices.find(([key]) => isLine(key)) ?? choices[0])[0];
        if (!choices.some(([key]) => key === want.second))
            want.second = "";
        const curves = CURVES.includes(want.x), result = explored(want);
        const none = [["", "none"]];
        const tick = (label, key) => {
            const box = html("input", { type: "checkbox", checked: want[key],
                on: { change: () => change(key, box.checked) } });
            return html("label", {}, box, ` ${label}`);
        };
        const flags = axes.map(axis => [axis, axis]);
        const smooth = html("input", { type: "range", min: 0, max: 0.98,
            step: 0.02, value: want.smooth, on: { change: () =>
                change("smooth", smooth.value) } });
        form.replaceChildren(
            choice("x", xs, want.x, x => change("x", x)),
            choice("y", choices, want.y, y => change("y", y)),
            choice("second y", [...none, ...choices], want.second,
                   second => change("second", second)),
            ...parts > 1 ? [choice("runs of", [...new Set(runs.map(r => r.part))]
                .map(part => [String(part), Figures.model.parts[part] ||
                    "no sweep"]), want.part,
                part => change("part", part))] : [],
            ...curves || result.kind === "lines" ? [choice("color by",
                [curves ? ["run", "run"] : ["run", "line"], ...flags.filter(
                    ([key]) => key !== want.x)], want.colour,
                colour => change("colour", colour))] : [],
            ...axes.length > 0 ? [choice("facet by", [...none, ...flags.filter(
                ([key]) => key !== want.x)], want.facet,
                facet => change("facet", facet))] : [],
            tick("log x", "logX"), tick("log y", "logY"),
            ...curves ? [html("label", {}, "smoothing ", smooth),
                         tick("each task", "tasks")] : [], link);
        if (mounted)
            Figures.update(figure, result);
        else
            Figures.mount(figure, result);
        mounted = true;
        link.href = `#explored?${new URLSearchParams(want)}`;
    };
    const change = (key, value) => {
        const focus = [...form.elements].indexOf(document.activeElement);
        want[key] = value;
        show();
        form.elements[Math.min(focus, form.elements.length - 1)]?.focus();
    };
    place.append(form, figure);
    show();
    explore = given => {
        Object.assign(want, { second: "", facet: "" }, given,
                      { part: parts > 1 ? String(given.part) : "" });
        show();
        place.scrollIntoView({ behavior: "smooth" });
    };
    if (location.hash.startsWith("#explored"))
        place.scrollIntoView();
}

/* --- all -------------------------------------------------------------- */

// Fill in the page's elements; also after it was replaced.
function fill() {
    const { figures } = Figures.model;
    for (const element of document.querySelectorAll("figure[data-figure]"))
        if (!Figures.views.has(element) && figures[element.dataset.figure])
            Figures.mount(element, figures[element.dataset.figure]);
    for (const table of document.querySelectorAll(".wide table"))
        enliven(table);
    if (!Figures.model.runs)
        return; // a page without runs
    markRuns();
    for (const place of document.querySelectorAll("[data-chooser]"))
        fillChooser(place);
    for (const [id, act] of [["display", fillDisplay],
                             ["explorer", fillExplorer]]) {
        const place = document.getElementById(id);
        if (place)
            act(place);
    }
}

// Only one open menu at a time.
document.addEventListener("click", event => {
    for (const menu of document.querySelectorAll("details.menu[open]"))
        if (!menu.contains(event.target))
            menu.open = false;
});
document.addEventListener("keydown", event => {
    if (event.key === "Escape")
        for (const menu of document.querySelectorAll("details.menu[open]")) {
            menu.open = false;
            menu.querySelector("summary").focus();
        }
});

Figures.load(JSON.parse(document.getElementById("model").textContent));
fill();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    Figures.model.runs && markRuns());
if (location.hash.length > 1 && !location.hash.includes("?"))
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
