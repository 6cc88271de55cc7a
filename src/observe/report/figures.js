// figures.js - draws figures as SVG from one model of runs, for the report and
// for the live page.
//
//   Figures.load(model)          set the model (observe/model/model.h) and
//                                redraw all figures
//   Figures.mount(element, figure)   show a figure in an element; it is drawn
//                                when it becomes visible
//   Figures.drawAll()            also draw figures that are not visible
//   Figures.display(change)      how curves are shown: {x, smooth, colour,
//                                mean}
//   Figures.toggle(names, on)    show or hide runs, in every figure
//
// A figure is data:
//   {id, title, kind: "lines" | "bars" | "stacked", x, y, log, logY, marks,
//    categories, series: [{name, style, points: [[x, y]], spread, runs}]}
//   {id, title, kind: "curves", curve, second, colour, facet, tasks, part, run}
// The second form is resolved here, from model.series; "explore" figures of
// results by flag are resolved into the first form by byFlag().  Other kinds
// are drawn by drawings.js:
//   Figures.register(kind, {draw(view, figure, width, theme), rows(figure),
//                           says(figure), tell(view, event), note(figure),
//                           isEmpty(figure), key(view, name), whole})
// where draw returns an SVG, rows the content of the CSV, says a description
// for screen readers; the others are optional.  draw may set view.panels, whose
// x is zoomed by a brush, and view.keys, the legend; whole figures are as wide
// as the page; key handles a key and returns whether it did.
//
// Figures within one element that has data-zoom zoom together.
"use strict";

const Figures = (() => {
const SVG = "http://www.w3.org/2000/svg";
const LIGHT = ["#0067a5", "#c2410c", "#00795a", "#a3388f", "#8a6100",
               "#4f5bd5", "#b3261e", "#4d6a00", "#00778a", "#5f6b7a"];
const DARK = ["#58b0ff", "#ff9a5c", "#35cfa0", "#e58bd4", "#e3b341",
              "#a5adff", "#ff8a80", "#b5d455", "#4fd1e0", "#aab4c0"];
const DASHES = ["", "6 3", "2 3", "9 3 2 3"];
const MARKED = ["lost", "restart", "rollback", "start"];
const FEW = 12; // places on an axis that all have a label
const IN_LEGEND = 24;
const EACH_A_COLOUR = 5; // lines; with more, dashes show one flag
const DOTTED = 12; // points up to which each point of a curve is marked,
const DOTTED_LINES = 8; // in figures with at most this many curves
const TALL = 14;   // bars from which a figure takes the whole width
const CURVES_IN_LEGEND = 8; // with more, the list of runs is the legend

let model = { metrics: {}, runs: [], series: [], events: [], axes: [] };
let begun = false; // the initial selection was made
const hidden = new Set(); // names of runs
const shown = { x: "step", smooth: 0, colour: "run", mean: true };
const zooms = new Map();  // scope of a zoom: [from, to]
const views = new Map();  // element: its view
const listeners = [];
const kinds = new Map();  // drawing functions by kind

/* --- small helpers ---------------------------------------------------- */

function make(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes))
        if (value !== undefined && value !== null && value !== "")
            element.setAttribute(key, value);
    element.append(...children);
    return element;
}

function html(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        if (key === "on")
            for (const [event, act] of Object.entries(value))
                element.addEventListener(event, act);
        else if (value === true)
            element.setAttribute(key, "");
        else if (value !== undefined && value !== null && value !== false)
            element.setAttribute(key, value);
    element.append(...children);
    return element;
}

function theme() {
    const style = getComputedStyle(document.documentElement);
    const get = name => style.getPropertyValue(name).trim();
    return { ink: get("--ink"), faint: get("--faint"), line: get("--line"),
             paper: get("--paper"), alarm: get("--alarm"),
             colours: get("--scheme") === "dark" ? DARK : LIGHT };
}

// Few digits for display; the CSV has every digit.
function number(value) {
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e9))
        return value.toExponential(3).replace(/\.?0+e/, "e");
    const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 3 : 4;
    return Number(value.toFixed(digits)).toLocaleString("en");
}

// For an axis: as few digits as its step needs.
function tickText(value, step) {
    const size = Math.abs(value);
    for (const [unit, sign] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
        if (size >= unit && (unit > 1e3 || size >= 1e4 || step >= 1000))
            return String(Number((value / unit).toPrecision(4))) + sign;
    if (size !== 0 && size < 1e-4)
        return value.toExponential(0);
    return String(Number(value.toPrecision(6)));
}

function metric(key) {
    return model.metrics[key] ?? { label: key, unit: "", scale: 1 };
}

function labelOf(key) {
    const { label, unit } = metric(key);
    return unit ? `${label} [${unit}]` : label;
}

/* --- scales ----------------------------------------------------------- */

function scale(from, to, low, high, log) {
    const f = log ? Math.log10 : v => v, g = log ? v => 10 ** v : v => v;
    const a = f(from), b = f(to) === a ? a + 1 : f(to);
    return { from, to, log,
             at: v => low + (f(v) - a) / (b - a) * (high - low),
             back: px => g(a + (px - low) / (high - low) * (b - a)) };
}

function niceStep(rough, whole) {
    const power = 10 ** Math.floor(Math.log10(rough));
    const fine = whole && power < 10 ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
    const step = fine.find(m => m * power >= rough * 0.999) * power;
    return whole ? Math.max(1, step) : step;
}

function ticks(from, to, count, log, whole) {
    if (log && to / from > 3) {
        const list = [], decades = Math.log10(to / from);
        const digits = decades > 5 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
        for (let p = Math.floor(Math.log10(from)); 10 ** p <= to; p++)
            for (const d of digits)
                if (d * 10 ** p >= from * 0.999 && d * 10 ** p <= to * 1.001)
                    list.push(d * 10 ** p);
        const skip = Math.ceil(list.length / Math.max(2, count * 1.5));
        return { list: list.filter((_, i) => i % skip === 0), step: 0 };
    }
    let step, list;
    for (let fit = Math.max(1, count); ; fit *= 1.6) { // at least three
        step = niceStep(Math.max((to - from) / fit, 1e-300), whole);
        list = [];
        for (let i = Math.ceil(from / step - 1e-9);
             i * step <= to + step * 1e-9; i++)
            list.push(Number((i * step).toPrecision(12)));
        if (list.length > 2 || fit > 3 * count || (whole && step === 1))
            return { list, step };
    }
}

// The range of an axis of values: from zero if that costs little space, never
// below zero for values that cannot be negative.
function extent(values, log, percent) {
    let low = Infinity, high = -Infinity;
    for (const v of values)
        if (Number.isFinite(v) && (!log || v > 0)) {
            low = Math.min(low, v);
            high = Math.max(high, v);
        }
    if (low > high)
        return null;
    if (log)
        return low === high ? [low / 2, high * 2] : [low / 1.1, high * 1.1];
    const pad = (high - low || Math.abs(high) || 1) * 0.06;
    let from = low - pad, to = high + pad;
    if (low >= 0 && (from < 0 || low < 0.6 * high || low === high))
        from = 0;
    if (low >= 0 && high === 0)
        to = 1;
    if (percent && high <= 100)
        to = Math.min(to, Math.max(100, high));
    return [from, to];
}

/* --- from the model to lines ------------------------------------------ */

function isShown(run) {
    return !hidden.has(model.runs[run].name);
}

// The position of a point of a series on the x axis.
function places(series, x) {
    if (x === "time" || !series.x)
        return series.t;
    if (x === "step")
        return series.x;
    const each = model.runs[series.run].each?.[x];
    return each ? series.x.map(step => step * each) : series.x;
}

// The exponential moving average, without bias towards the first value.
function smoothed(points, weight) {
    let mean = 0, sum = 0;
    return points.map(([x, y]) => {
        mean = weight * mean + (1 - weight) * y;
        sum = weight * sum + (1 - weight);
        return [x, mean / sum];
    });
}

// The value of a line at x, between its points.
function valueAt(points, x) {
    let low = 0, high = points.length - 1;
    if (high < 0 || x < points[0][0] || x > points[high][0])
        return NaN;
    while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (points[middle][0] <= x)
            low = middle;
        else
            high = middle;
    }
    const [a, b] = [points[low], points[high]];
    return b[0] === a[0] ? b[1]
        : a[1] + (x - a[0]) / (b[0] - a[0]) * (b[1] - a[1]);
}

// Repetitions as one line: their mean and one standard deviation above and
// below, where all of them have values.
function meanOf(lines) {
    const from = Math.max(...lines.map(line => line.points[0][0]));
    const to = Math.min(...lines.map(line => line.points.at(-1)[0]));
    const most = lines.reduce((a, b) =>
        b.points.length > a.points.length ? b : a).points;
    const xs = most.map(point => point[0]).filter(x => x >= from && x <= to);
    return xs.map(x => {
        const values = lines.map(line => valueAt(line.points, x));
        const mean = values.reduce((a, b) => a + b, 0) / values.length;
        const spread = Math.sqrt(values.reduce(
            (sum, v) => sum + (v - mean) ** 2, 0) / (values.length - 1));
        return [x, mean, mean - spread, mean + spread];
    });
}

function groupBy(list, keyOf) {
    const groups = new Map();
    for (const item of list) {
        const key = keyOf(item);
        if (!groups.has(key))
            groups.set(key, []);
        groups.get(key).push(item);
    }
    return groups;
}

// The colour of a run: by its position among the shown runs, or by the value of
// a flag.
function colourIndex(run, by) {
    const own = model.runs[run];
    if (by === "run" || !by)
        return own.colour ?? run;
    const values = [...new Set(model.runs.map(r => r.flags[by] ?? ""))];
    return values.indexOf(own.flags[by] ?? "");
}

// If there are more runs than colours, the colour shows the flag with few
// values.
function firstColour() {
    const groups = new Set(model.runs.map((run, i) => run.like ?? i));
    if (groups.size <= CURVES_IN_LEGEND)
        return "run";
    return model.axes.find(axis => {
        const values = new Set(model.runs.map(run => run.flags[axis] ?? ""));
        return values.size > 1 && values.size <= LIGHT.length;
    }) ?? "run";
}

// Runs with the same number of epochs but different steps share epochs on x.
function firstX() {
    const ratio = key => {
        const values = model.runs.map(run => run.results?.[key]);
        return Math.max(...values) / Math.min(...values);
    };
    return model.runs.length > 1 && model.runs.every(run => run.each?.epoch) &&
        ratio("epochs") < 1.2 && ratio("steps") > 1.5 ? "epoch" : "step";
}

function runLabel(run) {
    return model.runs[run].label || model.runs[run].name;
}

// The series shown in a figure of curves.
function chosenSeries(figure, key) {
    const all = model.series.filter(s => s.metric === key &&
        (figure.part === undefined ||
         model.runs[s.run].part === figure.part) &&
        (figure.run === undefined || s.run === figure.run) && isShown(s.run));
    if (figure.tasks)
        return all;
    const first = new Map(); // one task, or all hosts, represents the run
    for (const s of all)
        if (!first.has(s.run))
            first.set(s.run, s);
    return [...first.values()];
}

function curveLines(figure, key, axis) {
    const display = { ...shown, ...figure.display };
    const factor = metric(key).scale;
    const ofOne = figure.run !== undefined || model.runs.length === 1;
    const list = chosenSeries(figure, key).map((s, index) => {
        const xs = places(s, display.x);
        return { run: s.run, runs: [s.run], task: s.task, axis,
                 name: figure.tasks
                     ? ofOne ? s.task : `${runLabel(s.run)}, ${s.task}`
                     : runLabel(s.run),
                 colour: figure.tasks && ofOne
                     ? index : colourIndex(s.run, display.colour),
                 facet: figure.facet
                     ? model.runs[s.run].flags[figure.facet] ?? "" : "",
                 points: s.y.map((y, i) => [xs[i], y * factor]) };
    }).filter(line => line.points.length > 0);
    const lines = [];
    for (const group of groupBy(list, line =>
        display.mean && !figure.tasks ? model.runs[line.run].like
                                      : lines.length + list.indexOf(line))
        .values()) {
        const points = group.length > 1 ? meanOf(group) : [];
        if (points.length > 0)
            lines.push({ ...group[0], points, band: true,
                         runs: group.flatMap(line => line.runs),
                         name: group[0].name });
        else
            lines.push(...group);
    }
    if (axis === 1)
        for (const line of lines) {
            line.dash = "6 3";
            line.name += `: ${metric(key).label}`;
        }
    if (!(display.smooth > 0))
        return lines;
    return lines.flatMap(line => [
        { ...line, pale: true, band: false },
        { ...line, band: false, points: smoothed(line.points, display.smooth) },
    ]);
}

// Events of the runs of some lines, with their positions on the x axis.
function marksOf(lines, x) {
    const runs = new Set(lines.flatMap(line => line.runs));
    if (runs.size > 6)
        return [];
    return model.events.filter(e => runs.has(e.run) && MARKED.includes(e.kind))
        .map(e => ({ run: e.run, text: e.text, kind: e.kind,
                     x: x === "time" ? e.t
                        : e.step === undefined ? NaN
                        : x === "step" ? e.step
                        : e.step * (model.runs[e.run].each?.[x] ?? NaN) }))
        .filter(mark => Number.isFinite(mark.x) && mark.x > 0);
}

// If colours show a flag, dashes show another one: the one with the most values
// for which there are enough dashes; undefined: none.
function dashesOf(figure, colour) {
    if (!model.axes.includes(colour) || figure.second)
        return undefined;
    const runs = model.runs.filter(run => figure.part === undefined ||
                                          run.part === figure.part);
    return model.axes.filter(axis => axis !== colour && axis !== figure.facet)
        .map(axis => ({ axis,
            values: [...new Set(runs.map(run => run.flags[axis] ?? ""))] }))
        .filter(({ values }) => values.length > 1 &&
                                values.length <= DASHES.length)
        .sort((a, b) => b.values.length - a.values.length)[0];
}

const X_LABELS = { step: "step", epoch: "epoch", examples: "examples",
                   time: "time [s]" };

function resolveCurves(figure) {
    const display = { ...shown, ...figure.display };
    const lines = curveLines(figure, figure.curve, 0);
    if (figure.second)
        lines.push(...curveLines(figure, figure.second, 1));
    const dashes = dashesOf(figure, display.colour);
    for (const line of dashes ? lines : [])
        line.dash = DASHES[dashes.values.indexOf(
            model.runs[line.run].flags[dashes.axis] ?? "")];
    const timed = lines.length > 0 &&
        model.series.find(s => s.metric === figure.curve && !s.x) !== undefined;
    const x = timed ? "time" : display.x;
    const panels = [...groupBy(lines, line => line.facet)].map(
        ([value, list]) => ({
            title: figure.facet ? `${figure.facet} ${value || "not set"}` : "",
            lines: list, marks: marksOf(list, x),
        }));
    return { panels, curves: true, colour: display.colour, dashes, xKey: x,
             xLabel: X_LABELS[x], log: figure.log,
             whole: x === "step" || x === "examples",
             dotted: lines.length <= DOTTED_LINES,
             labels: [labelOf(figure.curve),
                      figure.second ? labelOf(figure.second) : ""],
             percent: metric(figure.curve).unit === "%", logY: figure.logY,
             note: display.smooth > 0
                 ? `smoothed (moving average, weight ${display.smooth}); ` +
                   "measured values in pale" : "" };
}

// Many lines over two or more flags: dashes show the flag with the fewest
// values, colours the others.
function tellApart(lines, x) {
    const own = lines.filter(line => line.style === undefined &&
                                     line.runs.length > 0);
    if (own.length <= EACH_A_COLOUR || lines.some(line =>
        line.style === "published"))
        return;
    // A run without a flag, such as one worker without a mode, is in several
    // lines.
    const flag = (line, axis) => line.runs.map(run =>
        model.runs[run].flags[axis]).findLast(value => value) ?? "";
    const axes = model.axes.filter(axis => axis !== x).map(axis => ({ axis,
        values: [...new Set(own.map(line => flag(line, axis)))] })).filter(
        ({ values }) => values.length > 1).sort(
        (a, b) => a.values.length - b.values.length);
    if (axes.length < 2 || axes[0].values.length > DASHES.length)
        return;
    const rest = line => axes.slice(1).map(({ axis }) =>
        flag(line, axis)).join("\n");
    const colours = [...new Set(own.map(rest))];
    for (const line of own) {
        line.dash = DASHES[axes[0].values.indexOf(flag(line, axes[0].axis))];
        line.colour = colours.indexOf(rest(line));
    }
}

// A point is shown if one of its runs is.
function resolveGiven(figure) {
    // Published and ideal lines use no colour of their own, so that a line has
    // the same colour in figures with and without them.
    let measured = 0;
    const lines = figure.series.map(series => ({
        name: series.name, style: series.style,
        colour: series.colour ?? (series.style ? measured : measured++),
        dash: series.dash ?? (series.style === "ideal" ? "3 4"
            : series.style === "published" ? "6 3" : ""),
        axis: series.axis ?? 0,
        runs: [...new Set((series.runs ?? []).flat())],
        facet: series.facet ?? "",
        points: series.points.map(([x, y], i) => {
            const spread = series.spread?.[i];
            return spread ? [x, y, y - spread, y + spread] : [x, y];
        }).filter((_, i) => {
            const own = series.runs?.[i];
            return !own || own.length === 0 || own.some(isShown);
        }),
    })).filter(line => line.points.length > 0);
    // Published values have the colour of the line they are compared with.
    for (const line of lines)
        if (line.style === "published") {
            const own = lines.find(other =>
                `published: ${other.name}` === line.name);
            line.colour = own ? own.colour : line.colour;
        }
    if (!figure.coloured)
        tellApart(lines, figure.xKey ?? figure.x);
    const values = lines.flatMap(line => line.points.map(point => point[0]));
    return { panels: [...groupBy(lines, line => line.facet)].map(
                 ([title, list]) => ({ title, lines: list, marks: [] })),
             xKey: figure.xKey ?? figure.x, xLabel: figure.x, log: figure.log,
             logY: figure.logY, marked: true,
             places: [...new Set(values)].sort((a, b) => a - b),
             labels: [figure.y, figure.second ?? ""],
             percent: /%\]?$/.test(figure.y), note: figure.note ?? "" };
}

// Results by a flag, as a figure with series: one for each combination of the
// other flags.  A run that lacks a flag because of its x belongs to all lines:
// a single process has no mode.  Lines with the same value of the flag `colour`
// share its colour, and dashes distinguish them.
function byFlag({ x, y, second, part, facet, colour, logX, logY }) {
    const runs = model.runs.map((run, index) => ({ run, index })).filter(
        ({ run }) => (part === undefined || run.part === part) &&
            run.results[y] !== undefined && run.flags[x] !== undefined);
    const others = model.axes.filter(axis => axis !== x &&
        new Set(runs.map(({ run }) => run.flags[axis])).size > 1);
    const numeric = runs.every(({ run }) => run.flags[x] !== "" &&
                                            Number.isFinite(+run.flags[x]));
    const categories = numeric ? [] : [...new Set(runs.map(
        ({ run }) => run.flags[x]))];
    const lacks = ({ run }, axis) => run.flags[axis] === undefined &&
        runs.every(other => other.run.flags[x] !== run.flags[x] ||
                            other.run.flags[axis] === undefined);
    const names = item => others.filter(axis => !lacks(item, axis)).map(
        axis => [axis, item.run.flags[axis] ?? ""]);
    const label = list => list.filter(([axis, value]) => axis !== facet &&
                                                         value !== "")
        .map(pair => pair.join(" ")).join(", ") || "all runs";
    const full = [...groupBy(runs.filter(item =>
        names(item).length === others.length),
        item => JSON.stringify(names(item))).keys()].map(JSON.parse);
    const lines = full.length > 0 ? full : [[]];
    const coloured = others.includes(colour);
    const valueOf = line => (line.find(([axis]) => axis === colour) ?? [])[1];
    const rest = line => JSON.stringify(line.filter(
        ([axis]) => axis !== colour));
    const colours = [...new Set(lines.map(valueOf))];
    const rests = [...new Set(lines.map(rest))];
    const series = [];
    for (const key of [y, ...second ? [second] : []])
        lines.forEach((line, index) => {
            const own = runs.filter(item => names(item).every(([axis, value]) =>
                line.length === 0 ||
                line.some(([a, v]) => a === axis && v === value)) &&
                item.run.results[key] !== undefined);
            const points = [], spread = [], owners = [];
            for (const group of groupBy(own, ({ run }) => run.flags[x])
                .values()) {
                const values = group.map(({ run }) =>
                    run.results[key] * metric(key).scale);
                const mean = values.reduce((a, b) => a + b, 0) / values.length;
                const at = group[0].run.flags[x];
                points.push([numeric ? +at : categories.indexOf(at), mean]);
                spread.push(values.length < 2 ? 0 : Math.sqrt(values.reduce(
                    (s, v) => s + (v - mean) ** 2, 0) / (values.length - 1)));
                owners.push(group.map(({ index: i }) => i));
            }
            const order = points.map((_, i) => i).sort(
                (a, b) => points[a][0] - points[b][0]);
            series.push({ name: label(line) +
                              (second ? `: ${metric(key).label}` : ""),
                          style: key === y ? undefined : "published",
                          colour: coloured ? colours.indexOf(valueOf(line))
                              : index,
                          dash: coloured && !second
                              ? DASHES[rests.indexOf(rest(line)) %
                                       DASHES.length] : undefined,
                          axis: key === y ? 0 : 1,
                          facet: facet && line.length > 0
                              ? `${facet} ${(line.find(([a]) => a === facet)
                                             ?? [])[1] ?? "not set"}` : "",
                          points: order.map(i => points[i]),
                          spread: order.map(i => spread[i]),
                          runs: order.map(i => owners[i]) });
        });
    return { kind: numeric ? "lines" : "bars", x, xKey: x, y: labelOf(y),
             second: second ? labelOf(second) : "", log: logX, logY,
             marks: true, categories, series, coloured };
}

function resolve(figure) {
    return figure.kind === "curves" ? resolveCurves(figure)
                                    : resolveGiven(figure);
}

function isEmpty(plot) {
    return plot.panels.every(panel => panel.lines.length === 0);
}

/* --- drawing: lines --------------------------------------------------- */

function text(x, y, content, t, more = {}) {
    const element = make("text", { x, y, fill: t.faint, "font-size": 11,
                                   ...more });
    element.textContent = content;
    return element;
}

// At most two points per pixel: the lowest and the highest.
function path(points, x, y) {
    const out = [];
    let column = NaN, low, high, first = true;
    const put = ([px, py]) => {
        out.push(`${first ? "M" : "L"}${px.toFixed(1)} ${py.toFixed(1)}`);
        first = false;
    };
    const flush = () => {
        if (low === undefined)
            return;
        if (low === high)
            put(low);
        else
            [low, high].sort((a, b) => a[0] - b[0]).forEach(put);
    };
    const dense = points.length > 2 * Math.abs(x.at(x.to) - x.at(x.from));
    for (const [vx, vy] of points) {
        const px = x.at(vx), py = y.at(vy);
        if (!Number.isFinite(px) || !Number.isFinite(py))
            continue;
        if (!dense) {
            put([px, py]);
            continue;
        }
        if (Math.floor(px) !== column) {
            flush();
            column = Math.floor(px);
            low = high = [px, py];
        } else {
            low = py > low[1] ? [px, py] : low;
            high = py < high[1] ? [px, py] : high;
        }
    }
    if (dense)
        flush();
    return out.join("");
}

function mark(x, y, index, fill, paper) {
    const shape = [
        `M${x - 3.5} ${y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0`,
        `M${x - 3.2} ${y - 3.2}h6.4v6.4h-6.4z`,
        `M${x} ${y - 4.2}l4.2 7.4h-8.4z`,
        `M${x} ${y - 4.6}l4.6 4.6l-4.6 4.6l-4.6 -4.6z`,
    ][index % 4];
    return make("path", { d: shape, fill, stroke: paper, "stroke-width": 1 });
}

function drawAxes(group, box, x, y, y2, plot, t, outer) {
    const count = Math.max(2, Math.floor(box.width / 62));
    // For a few epochs fractions are labelled; for more they would be clutter.
    let marks = ticks(x.from, x.to, count, x.log, plot.whole ||
        (plot.xKey === "epoch" && x.to - x.from >= 2));
    if (plot.places && plot.places.length <= FEW)
        marks = { list: plot.places.filter(v => v >= x.from && v <= x.to),
                  step: 0 };
    let last = -Infinity;
    for (const value of marks.list) {
        const at = x.at(value), label = tickText(value, marks.step);
        const half = label.length * 3.2 + 3;
        group.append(make("line", { x1: at, x2: at, y1: box.top,
            y2: box.top + box.height, stroke: t.line, "stroke-width": .6 }));
        if (at - half < last)
            continue;
        last = at + half;
        group.append(text(at, box.top + box.height + 15, label, t,
                          { "text-anchor": "middle" }));
    }
    const rows = Math.max(2, Math.floor(box.height / 32));
    const steps = ticks(y.from, y.to, rows, y.log, plot.wholeY);
    for (const value of steps.list) {
        const at = y.at(value);
        group.append(
            make("line", { x1: box.left, x2: box.left + box.width, y1: at,
                y2: at, stroke: t.line, "stroke-width": .6 }),
            text(box.left - 6, at + 4, tickText(value, steps.step), t,
                 { "text-anchor": "end" }));
    }
    if (y2)
        for (const value of ticks(y2.from, y2.to, rows, y2.log).list)
            group.append(text(box.left + box.width + 6, y2.at(value) + 4,
                              tickText(value, 0), t));
    group.append(make("line", { x1: box.left, x2: box.left + box.width,
        y1: box.top + box.height, y2: box.top + box.height, stroke: t.faint }));
    if (outer)
        group.append(text(box.left + box.width / 2, box.top + box.height + 31,
                          plot.xLabel, t, { "text-anchor": "middle" }));
}

function drawBand(group, line, x, y, colour) {
    const spread = line.points.filter(point => point.length > 2);
    if (line.band && spread.length > 1) {
        const up = path(spread.map(p => [p[0], p[3]]), x, y);
        const down = path(spread.map(p => [p[0], p[2]]).reverse(), x, y);
        group.append(make("path", { d: up + down.replace("M", "L") + "z",
            fill: colour, "fill-opacity": .18 }));
        return;
    }
    for (const [vx, , low, high] of spread) {
        const at = x.at(vx), top = y.at(high);
        const bottom = y.at(y.log && low <= 0 ? y.from : low);
        group.append(make("path", { d: `M${at - 3} ${top}h6M${at} ${top}V` +
            `${bottom}M${at - 3} ${bottom}h6`, stroke: colour, fill: "none",
            "stroke-width": 1, class: "spread" }));
    }
}

function drawLine(group, line, index, x, y, plot, t) {
    const colour = t.colours[line.colour % t.colours.length];
    const round = Math.floor(line.colour / t.colours.length);
    if (!line.pale)
        drawBand(group, line, x, y, colour);
    group.append(make("path", { d: path(line.points, x, y), fill: "none",
        stroke: line.style === "ideal" ? t.faint : colour,
        "stroke-width": line.pale ? 1 : 1.8,
        "stroke-opacity": line.pale ? .3 : undefined,
        "stroke-linejoin": "round", class: "curve",
        "stroke-dasharray": line.dash || DASHES[round % DASHES.length] }));
    const few = plot.marked || line.points.length === 1 ||
        (line.points.length <= DOTTED && plot.dotted);
    if (few && line.style !== "ideal" && !line.pale)
        for (const [vx, vy] of line.points)
            group.append(mark(x.at(vx), y.at(vy), line.colour, colour, t.paper));
}

function drawMarks(group, panel, x, box, t) {
    for (const event of panel.marks) {
        const at = x.at(event.x);
        if (!(at >= box.left && at <= box.left + box.width))
            continue;
        group.append(
            make("line", { x1: at, x2: at, y1: box.top, y2: box.top +
                box.height, stroke: t.alarm, "stroke-dasharray": "3 3" }),
            make("path", { d: `M${at - 5} ${box.top - 7}h10l-5 8z`,
                fill: t.alarm, class: "event" },
                 Object.assign(make("title"), { textContent: event.text })));
    }
}

function xRange(plot, zoom) {
    const values = plot.panels.flatMap(panel => panel.lines.flatMap(
        line => line.points.map(point => point[0])));
    let low = Infinity, high = -Infinity;
    for (const v of values)
        if (Number.isFinite(v) && (!plot.log || v > 0)) {
            low = Math.min(low, v);
            high = Math.max(high, v);
        }
    if (low > high)
        return null;
    if (plot.marked) {
        const pad = plot.log ? (high / low) ** .04 : (high - low) * .04 ||
            Math.abs(high) * .1 || 1;
        [low, high] = plot.log ? [low / (pad || 1.1), high * (pad || 1.1)]
                               : [low - pad, high + pad];
        if (low === high)
            [low, high] = [low / 1.5, high * 1.5];
    } else if (low === high)
        [low, high] = [Math.max(0, low - 1), high + 1];
    else if (!plot.log && low > 0 && low < .2 * high)
        low = 0;
    return zoom ? [Math.max(low, zoom[0]), Math.min(high, zoom[1])]
                : [low, high];
}

function yValues(plot, axis, [from, to]) {
    const values = [];
    for (const panel of plot.panels)
        for (const line of panel.lines)
            if (line.axis === axis)
                for (const [x, y, low, high] of line.points)
                    if (x >= from && x <= to) {
                        values.push(y);
                        if (low !== undefined)
                            values.push(low, high);
                    }
    return values;
}

// Do not repeat the title: only the unit remains.
function yLabel(label, title) {
    const [, name, unit] = label.match(/^(.*?)(?: \[(.*)\])?$/);
    return title.toLowerCase().startsWith(name.toLowerCase())
        ? unit ?? "" : label;
}

function drawLines(view, plot, width, t) {
    const count = plot.panels.length;
    const columns = Math.max(1, Math.min(count, Math.floor(width / 300)));
    const rows = Math.ceil(count / columns);
    const height = count > 1 ? 190 : Math.max(220, Math.min(300, width * .55));
    const second = plot.panels.some(p => p.lines.some(l => l.axis === 1));
    const titled = plot.panels.some(panel => panel.title);
    const svg = make("svg", { viewBox: `0 0 ${width} ${rows * height}`, width,
                              height: rows * height });
    const range = xRange(plot, zooms.get(view.scope));
    if (range === null)
        return svg;
    view.panels = [];
    const extents = [0, 1].map(axis => extent(yValues(plot, axis, range),
        plot.logY && axis === 0, plot.percent && axis === 0) ?? [0, 1]);
    plot.panels.forEach((panel, i) => {
        const box = { left: i % columns * width / columns + 50,
                      top: Math.floor(i / columns) * height +
                           (titled ? 38 : 26) };
        box.width = width / columns - 50 - (second ? 48 : 14);
        box.height = Math.floor(i / columns) * height + height - 38 - box.top;
        const x = scale(...range, box.left, box.left + box.width, plot.log);
        const [y, y2] = extents.map(([from, to], axis) => scale(from, to,
            box.top + box.height, box.top, plot.logY && axis === 0));
        const group = make("g");
        drawAxes(group, box, x, y, second ? y2 : null, plot, t, true);
        const clip = `clip-${view.number}-${i}`;
        svg.append(make("clipPath", { id: clip }, make("rect", {
            x: box.left - 5, y: box.top - 8, width: box.width + 10,
            height: box.height + 13 })));
        const inner = make("g", { "clip-path": `url(#${clip})` });
        drawMarks(inner, panel, x, box, t);
        panel.lines.forEach((line, index) =>
            drawLine(inner, line, index, x, line.axis ? y2 : y, plot, t));
        group.append(inner);
        if (panel.title)
            group.append(text(box.left, box.top - 20, panel.title, t,
                { fill: t.ink, "font-weight": 600 }));
        if (i % columns === 0)
            group.append(text(box.left - 44, box.top - (titled ? 6 : 12),
                              yLabel(plot.labels[0], second ? ""
                                  : view.figure.title), t));
        if (second)
            group.append(text(box.left + box.width + 44,
                box.top - (titled ? 6 : 12), plot.labels[1], t,
                { "text-anchor": "end" }));
        svg.append(group);
        view.panels.push({ box, x, y, y2, panel });
    });
    return svg;
}

/* --- drawing: bars ---------------------------------------------------- */

const CHARACTER = 6.4; // approximate width of a character

// The names of bars as a table, with a column for each flag that differs
// between their runs: a single text would be cut off where it differs.
function barColumns(figure, rows, width) {
    const runs = rows.map(({ i }) => model.runs[figure.owners?.[i]?.[0]]);
    if (runs.length === 0 || model.apart || rows.some(({ name }, k) =>
        !runs[k]?.flags || runs[k].label !== name))
        return [];
    const columns = model.axes.map(axis => ({ title: axis,
        cells: runs.map(run => run.flags[axis] ?? "") }))
        .filter(({ cells }) => new Set(cells).size > 1);
    let at = 0;
    for (const column of columns) {
        at += 12 + CHARACTER * Math.max(column.title.length,
            ...column.cells.map(cell => cell.length));
        column.right = at;
    }
    return columns.length > 1 && at < width * .55 ? columns : [];
}

// Runs selected by hand have the colours of their curves.
function barColour(figure, i, k, t) {
    const own = figure.owners?.[i]?.[0];
    const index = model.apart && own !== undefined &&
        figure.series.length === 1 ? colourIndex(own, shown.colour) : k;
    return t.colours[index % t.colours.length];
}

// Horizontal, because names of runs are long.
function drawBars(view, figure, width, t) {
    const stacked = figure.kind === "stacked";
    const owners = i => figure.owners?.[i];
    const rows = figure.categories.map((name, i) => ({ name, i })).filter(
        ({ i }) => !owners(i) || owners(i).some(isShown));
    const columns = barColumns(figure, rows, width);
    const longest = Math.max(0, ...rows.map(row => row.name.length));
    const left = columns.length > 0 ? columns.at(-1).right + 8
        : Math.min(longest * CHARACTER + 12, width * .42);
    const each = stacked ? (rows.length > TALL ? 13 : 18)
                         : 8 + 10 * figure.series.length;
    const top = columns.length > 0 ? 22 : 8;
    const height = top + rows.length * (each + 6) + 38;
    const values = figure.series.map(series => new Map(series.points));
    const totals = rows.map(({ i }) => {
        const list = values.map(map => map.get(i) ?? 0);
        return stacked ? list.reduce((a, b) => a + b, 0) : Math.max(...list);
    });
    const most = stacked ? 100 : Math.max(...totals, 0) * 1.04 || 1;
    const x = scale(0, most, left, width - 14);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width,
                              height });
    const bottom = top + rows.length * (each + 6);
    const marks = ticks(0, most, Math.max(2, Math.floor(width / 110)));
    for (const value of marks.list)
        svg.append(make("line", { x1: x.at(value), x2: x.at(value), y1: top,
            y2: bottom, stroke: t.line, "stroke-width": .6 }),
            text(x.at(value), bottom + 14, tickText(value, marks.step), t,
                 { "text-anchor": "middle" }));
    svg.append(text((left + width) / 2, bottom + 30, figure.y, t,
                    { "text-anchor": "middle" }));
    for (const { title, right } of columns)
        svg.append(text(right, 13, title, t, { "text-anchor": "end" }));
    rows.forEach(({ name, i }, row) => {
        const at = top + row * (each + 6) + 3;
        const room = Math.floor((left - 12) / CHARACTER + .01);
        const base = at + each / 2 + 4;
        const label = columns.length > 0
            ? columns.map(({ cells, right }) => text(right, base, cells[row],
                t, { "text-anchor": "end", fill: t.ink }))
            : [text(left - 6, base, name.length > room
                ? `${name.slice(0, room - 1)}…` : name, t,
                { "text-anchor": "end", fill: t.ink })];
        svg.append(...label);
        let from = 0;
        const group = make("g", { class: "bar" });
        figure.series.forEach((series, k) => {
            const value = values[k].get(i);
            if (value === undefined)
                return;
            const start = stacked ? from : 0;
            from += value;
            group.append(make("rect", {
                x: x.at(start), y: stacked ? at : at + 4 + k * 10,
                width: Math.max(.5, x.at(start + value) - x.at(start)),
                height: stacked ? each : 9, rx: 1.5,
                fill: barColour(figure, i, k, t) }));
        });
        svg.append(group);
    });
    view.bars = { rows, each, top, figure, values };
    view.panels = [];
    return svg;
}

/* --- the values below the pointer ------------------------------------- */

const tip = html("div", { id: "tip", role: "status", hidden: true });

function showTip(title, rows, left, top) {
    tip.replaceChildren(html("strong", {}, title), ...rows.map(row => {
        const swatch = html("i");
        swatch.style.background = row.colour;
        return html("div", {}, swatch, html("span", {}, row.name),
                    html("b", {}, row.value));
    }));
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, left + size.width + 24 > innerWidth
        ? left - size.width - 14 : left + 14)}px`;
    tip.style.top = `${Math.max(4, Math.min(top - 20,
        innerHeight - size.height - 8))}px`;
}

function hideTip(view) {
    tip.hidden = true;
    view?.svg?.querySelector(".cross")?.remove();
}

// The position nearest to x among the points of all lines.
function nearest(panel, x) {
    let best = NaN;
    for (const line of panel.lines)
        for (const [at] of line.points)
            if (!(Math.abs(at - x) >= Math.abs(best - x)))
                best = at;
    return best;
}

function tellAt(view, shownPanel, x) {
    const { box, panel } = shownPanel, t = theme();
    const at = nearest(panel, x), near = 12 / box.width *
        (shownPanel.x.to - shownPanel.x.from);
    if (!Number.isFinite(at))
        return;
    const rows = panel.lines.filter(line => !line.pale).map(line => {
        const y = view.plot.marked
            ? (line.points.find(point => point[0] === at) ?? [])[1]
            : valueAt(line.points, at);
        const point = line.points.find(p => p[0] === at && p.length > 2);
        return { name: line.name, y, colour: line.style === "ideal" ? t.faint
                     : t.colours[line.colour % t.colours.length],
                 value: Number.isFinite(y) ? number(y) +
                     (point ? ` ± ${number(point[3] - y)}` : "") : "" };
    }).filter(row => row.value !== "").sort((a, b) => b.y - a.y);
    const more = rows.length - 18;
    if (more > 0)
        rows.splice(18, more, { name: `and ${more} more`, value: "",
                                colour: "transparent" });
    for (const event of panel.marks)
        if (Math.abs(event.x - at) <= near)
            rows.push({ name: event.text, value: "", colour: t.alarm });
    view.svg.querySelector(".cross")?.remove();
    const px = shownPanel.x.at(at);
    view.svg.append(make("line", { class: "cross", x1: px, x2: px, y1: box.top,
        y2: box.top + box.height, stroke: t.ink, "stroke-width": .8 }));
    view.cursor = at;
    const place = view.svg.getBoundingClientRect();
    showTip(`${view.plot.xLabel.replace(/ \[.*/, "")} ${number(at)}` +
            (/\[s\]/.test(view.plot.xLabel) ? " s" : ""), rows,
            place.left + px, place.top + box.top + 20);
}

function tellBar(view, event) {
    const { rows, each, top, figure, values } = view.bars, t = theme();
    const place = view.svg.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - place.top - top) /
                                (each + 6))];
    if (!row)
        return hideTip(view);
    showTip(row.name, figure.series.map((series, k) => ({ name: series.name,
        colour: barColour(figure, row.i, k, t),
        value: values[k].has(row.i) ? number(values[k].get(row.i)) : "" }))
        .filter(item => item.value !== ""), event.clientX, event.clientY);
}

// The browser also reports a resting pointer when the page scrolls below it;
// that must not replace what the reader selected with the keys.
function isMoved(event) {
    return event.movementX !== 0 || event.movementY !== 0;
}

function panelAt(view, event) {
    const place = view.svg.getBoundingClientRect();
    const px = event.clientX - place.left, py = event.clientY - place.top;
    const found = view.panels.find(({ box }) => px >= box.left - 8 &&
        px <= box.left + box.width + 8 && py >= box.top - 8 &&
        py <= box.top + box.height + 8);
    return found ? { found, px } : null;
}

/* --- zooming ---------------------------------------------------------- */

function zoomTo(view, range) {
    if (range === null)
        zooms.delete(view.scope);
    else
        zooms.set(view.scope, range);
    hideTip(view);
    for (const other of views.values())
        if (other.scope === view.scope && other.svg)
            draw(other);
}

function startBrush(view, event) {
    const start = panelAt(view, event);
    if (!start || event.button !== 0 || event.pointerType === "touch")
        return;
    const { box, x } = start.found, t = theme();
    const rectangle = make("rect", { y: box.top, height: box.height, x: 0,
        width: 0, fill: t.ink, "fill-opacity": .12 });
    view.svg.append(rectangle);
    event.preventDefault();
    view.plotBox.focus({ preventScroll: true });
    const bound = px => Math.min(box.left + box.width, Math.max(box.left, px));
    const place = view.svg.getBoundingClientRect();
    const ends = e => [bound(start.px), bound(e.clientX - place.left)]
        .sort((a, b) => a - b);
    const move = e => {
        const [from, to] = ends(e);
        rectangle.setAttribute("x", from);
        rectangle.setAttribute("width", to - from);
    };
    const stop = e => {
        removeEventListener("pointermove", move);
        removeEventListener("pointerup", stop);
        rectangle.remove();
        const [from, to] = ends(e);
        if (to - from > 6)
            zoomTo(view, [x.back(from), x.back(to)]);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
}

function keyPressed(view, event) {
    const own = view.panels?.[0];
    if (!own || event.ctrlKey || event.metaKey || event.altKey)
        return;
    const { x, panel } = own, places = [...new Set(panel.lines.flatMap(
        line => line.points.map(point => point[0])))]
        .filter(v => v >= x.from && v <= x.to).sort((a, b) => a - b);
    const index = Math.max(0, places.indexOf(view.cursor));
    const jump = Math.max(1, Math.floor(places.length / 100));
    const middle = view.cursor ?? (x.from + x.to) / 2;
    const part = (x.to - x.from) / 4;
    if (kinds.get(view.figure.kind)?.key?.(view, event.key)) {
        event.preventDefault();
        return;
    }
    const acts = {
        ArrowRight: () => tellAt(view, own, places[Math.min(places.length - 1,
            view.cursor === undefined ? 0 : index + jump)]),
        ArrowLeft: () => tellAt(view, own, places[Math.max(0, index - jump)]),
        Home: () => tellAt(view, own, places[0]),
        End: () => tellAt(view, own, places.at(-1)),
        "+": () => zoomTo(view, [middle - part, middle + part]),
        "-": () => zoomTo(view, null),
        0: () => zoomTo(view, null),
        Escape: () => hideTip(view),
    };
    if (!acts[event.key])
        return;
    event.preventDefault();
    acts[event.key]();
}

/* --- exporting a figure ----------------------------------------------- */

// Texts that a spreadsheet would take for a formula get an apostrophe.
function csvCell(value) {
    let cell = String(value ?? "");
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(cell))
        cell = `'${cell}`;
    return /[",\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}

function csv(figure) {
    const rows = [];
    if (kinds.has(figure.kind))
        rows.push(...kinds.get(figure.kind).rows(figure));
    else if (figure.kind === "bars" || figure.kind === "stacked") {
        rows.push(["name", ...figure.series.map(series => series.name)]);
        figure.categories.forEach((name, i) => rows.push([name,
            ...figure.series.map(s => s.points.find(p => p[0] === i)?.[1])]));
    } else {
        const plot = resolve(figure);
        rows.push(["panel", "line", plot.xLabel, plot.labels[0], "low",
                   "high"]);
        for (const panel of plot.panels)
            for (const line of panel.lines)
                for (const point of line.points)
                    rows.push([panel.title, line.name +
                        (line.pale ? " (measured)" : ""), ...point]);
    }
    return rows.map(row => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

// With title, legend and background: complete without the page.
function standalone(view) {
    const t = theme(), copy = view.svg.cloneNode(true);
    const width = +copy.getAttribute("width");
    const height = +copy.getAttribute("height");
    const names = legendItems(view);
    const out = make("svg", { xmlns: SVG, width, "font-family":
        "system-ui, sans-serif", height: height + 34 + names.length * 16 });
    copy.querySelector(".cross")?.remove();
    copy.setAttribute("y", 24);
    out.append(make("rect", { width: "100%", height: "100%", fill: t.paper }),
               text(8, 17, view.figure.title, t, { fill: t.ink,
                   "font-size": 14, "font-weight": 600 }), copy);
    names.forEach((item, i) => out.append(
        make("rect", { x: 12, y: height + 30 + i * 16 - 9, width: 10,
                       height: 10, fill: item.colour }),
        text(28, height + 30 + i * 16, item.name, t, { fill: t.ink })));
    return new XMLSerializer().serializeToString(out);
}

function save(name, type, content) {
    const link = html("a", { download: name, href: URL.createObjectURL(
        content instanceof Blob ? content : new Blob([content], { type })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function savePng(view) {
    const picture = new Image();
    picture.onload = () => {
        const canvas = html("canvas");
        canvas.width = 2 * picture.width;
        canvas.height = 2 * picture.height;
        canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width,
                                          canvas.height);
        canvas.toBlob(blob => save(`${view.figure.id}.png`, "image/png", blob));
    };
    picture.src = "data:image/svg+xml;charset=utf-8," +
        encodeURIComponent(standalone(view));
}

/* --- one figure on the page ------------------------------------------- */

function legendItems(view) {
    const t = theme(), seen = new Map();
    if (kinds.has(view.figure.kind) && !view.bars)
        return view.keys ?? [];
    if (view.bars)
        return view.bars.figure.series.length < 2 ? []
            : view.bars.figure.series.map((series, k) => ({ name: series.name,
                runs: [], colour: t.colours[k % t.colours.length] }));
    for (const panel of view.plot.panels)
        for (const line of panel.lines)
            if (!line.pale)
                seen.set(line.name, { name: line.name, runs: line.runs,
                    dash: line.dash, colour: line.style === "ideal" ? t.faint
                        : t.colours[line.colour % t.colours.length] });
    return seen.size < 2 && !view.figure.series?.some(s => s.style)
        ? [] : [...seen.values()];
}

// One entry per colour, if a flag gives the colour.
function legendByFlag(items, by) {
    if (!model.axes.includes(by))
        return items;
    return [...groupBy(items, item => item.colour).values()].map(group => ({
        ...group[0], runs: group.flatMap(item => item.runs), dash: "",
        name: `${by} ${model.runs[group[0].runs[0]].flags[by] || "not set"}`,
    }));
}

// One line per dash pattern, for the values that dashes show.
function legendByDash(dashes, items) {
    return (dashes?.values ?? []).map((value, i) => ({
        name: `${dashes.axis} ${value || "not set"}`, dash: DASHES[i],
        runs: items.flatMap(item => item.runs).filter(run =>
            (model.runs[run].flags[dashes.axis] ?? "") === value),
    })).filter(item => item.runs.length > 0);
}

function swatchOf(item) {
    const swatch = item.colour
        ? html("i", { class: item.dash ? "dashed" : "" })
        : make("svg", { width: 26, height: 4, "aria-hidden": true },
               make("path", { d: "M0 2h26", stroke: "currentColor",
                   "stroke-width": 3, "stroke-dasharray": item.dash }));
    if (item.colour)
        swatch.style.color = item.colour;
    return swatch;
}

function drawLegend(view) {
    let items = legendItems(view), dashes = [];
    if (view.plot.curves && items.length > CURVES_IN_LEGEND) {
        dashes = legendByDash(view.plot.dashes, items);
        items = legendByFlag(items, view.plot.colour);
    }
    if (view.plot.curves && items.length > LIGHT.length) {
        view.legend.replaceChildren(html("span", {}, `${items.length} lines, ` +
            "in the colors of the runs above; the pointer tells their names"));
        return;
    }
    const some = [...items.slice(0, IN_LEGEND), ...dashes].map(item => {
        const names = item.runs.map(run => model.runs[run].name);
        return html("button", { type: "button", disabled: names.length === 0,
            title: names.length ? "Hide in all figures" : item.name,
            on: { click: () => toggle(names, false) } }, swatchOf(item),
            item.name);
    });
    if (items.length > IN_LEGEND)
        some.push(html("span", {}, `and ${items.length - IN_LEGEND} more`));
    view.legend.replaceChildren(...some);
}

function draw(view) {
    const t = theme(), { figure } = view;
    view.element.classList.toggle("whole", Boolean(
        figure.categories?.length > TALL || kinds.get(figure.kind)?.whole));
    const width = Math.max(240, Math.floor(view.plotBox.clientWidth));
    const bars = figure.kind === "bars" || figure.kind === "stacked";
    const drawing = kinds.get(figure.kind);
    view.bars = null;
    if (drawing) {
        view.panels = [];
        view.plot = { panels: [], note: drawing.note?.(figure) };
        view.svg = drawing.draw(view, figure, width, t);
        view.element.hidden = drawing.isEmpty?.(figure) ?? false;
    } else if (bars) {
        view.plot = { panels: [], labels: [figure.y], xLabel: figure.x };
        view.svg = drawBars(view, figure, width, t);
    } else {
        view.plot = resolve(figure);
        view.scope = `${view.section}\n${view.plot.xKey}`;
        view.svg = drawLines(view, view.plot, width, t);
    }
    view.svg.setAttribute("role", "img");
    view.svg.setAttribute("aria-label", `${figure.title}: ` +
        (drawing ? drawing.says(figure)
            : bars ? `${figure.categories.length} bars`
              : `${view.plot.panels.reduce((n, p) => n + p.lines.length, 0)} ` +
                `lines by ${view.plot.xLabel}`));
    view.plotBox.replaceChildren(view.svg);
    view.note.textContent = !bars && !drawing && isEmpty(view.plot)
        ? "No data: the runs of this figure are hidden, or none recorded it."
        : view.plot.note ?? "";
    view.reset.hidden = !zooms.has(view.scope);
    drawLegend(view);
    view.element.dataset.drawn = "yes";
    view.width = width;
}

function menu(view) {
    const item = (name, act) => html("button", { type: "button", on: { click() {
        view.menu.open = false;
        act();
    } } }, name);
    const { figure } = view;
    return html("details", { class: "menu" },
        html("summary", { "aria-label": `Save or link “${figure.title}”`,
                          title: "Save, link, explore" }, "⋯"),
        html("div", {},
            item("CSV", () => save(`${figure.id}.csv`, "text/csv",
                                   csv(view.figure))),
            item("SVG", () => save(`${figure.id}.svg`, "image/svg+xml",
                                   standalone(view))),
            item("PNG", () => savePng(view)),
            html("a", { href: `#${figure.id}` }, "Link"),
            ...figure.explore ? [item("Explore", () =>
                dispatchEvent(new CustomEvent("explore",
                    { detail: figure.explore })))] : []));
}

let number_ = 0;

const sight = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries)
        if (isIntersecting && views.has(target) && !views.get(target).svg)
            draw(views.get(target));
}, { rootMargin: "400px" });

const sizes = new ResizeObserver(entries => {
    for (const { target } of entries) {
        const view = views.get(target.closest("figure"));
        if (view?.svg && Math.abs(view.plotBox.clientWidth - view.width) > 2)
            draw(view);
    }
});

function mount(element, figure) {
    const view = { element, figure, number: number_++,
                   section: element.closest("[data-zoom]")?.dataset.zoom ??
                            element.id };
    views.set(element, view);
    element.id = figure.id;
    element.dataset.figure = figure.id;
    view.legend = html("div", { class: "legend" });
    view.note = html("p", { class: "note" });
    view.reset = html("button", { type: "button", class: "reset", hidden: true,
        on: { click: () => zoomTo(view, null) } }, "Reset zoom");
    view.plotBox = html("div", { class: "plot", tabindex: 0,
        ...kinds.has(figure.kind) ? { role: "group",
            "aria-label": figure.title +
                (kinds.get(figure.kind).key ? ". Arrow keys read values, plus " +
                "zooms in, zero shows all." : "") } : { role: "application",
            "aria-label": `${figure.title}. Arrow keys read values, plus ` +
                "zooms in, zero shows all." },
        on: { keydown: event => keyPressed(view, event),
              blur: () => hideTip(view),
              pointerleave: event => isMoved(event) && hideTip(view),
              pointerdown: event => startBrush(view, event),
              dblclick: () => zoomTo(view, null),
              pointermove(event) {
                  if (!isMoved(event))
                      return;
                  const drawing = kinds.get(view.figure.kind);
                  if (drawing)
                      return drawing.tell?.(view, event);
                  if (view.bars)
                      return tellBar(view, event);
                  const at = view.svg && panelAt(view, event);
                  if (at)
                      tellAt(view, at.found, at.found.x.back(at.px));
                  else
                      hideTip(view);
              } } });
    view.menu = menu(view);
    element.replaceChildren(
        html("figcaption", {}, html("span", {}, figure.title), view.reset,
             view.menu), view.plotBox, view.legend, view.note);
    sight.observe(element);
    sizes.observe(view.plotBox);
    return view;
}

function update(element, figure) {
    const view = views.get(element);
    view.figure = figure;
    view.element.querySelector("figcaption span").textContent = figure.title;
    if (view.svg)
        draw(view);
}

function unmount(element) {
    sight.unobserve(element);
    views.delete(element);
}

/* --- all figures ------------------------------------------------------ */

function redraw() {
    for (const view of views.values())
        if (view.svg && view.element.isConnected)
            draw(view);
}

function drawAll() {
    for (const view of views.values())
        if (view.element.closest("details:not([open])") === null)
            draw(view);
}

function changed() {
    redraw();
    for (const listener of listeners)
        listener();
}

function toggle(names, on) {
    for (const name of names)
        if (on)
            hidden.delete(name);
        else
            hidden.add(name);
    changed();
}

function load(fresh) {
    model = fresh;
    if (!begun && model.runs?.length > 0) {
        begun = true;
        Object.assign(shown, { x: firstX(), colour: firstColour() });
    }
    for (const view of views.values()) {
        const same = (fresh.figures ?? []).find(
            figure => figure.id === view.figure.id);
        if (same)
            view.figure = same;
    }
    changed();
}

function display(change) {
    Object.assign(shown, change);
    changed();
}

addEventListener("scroll", () => hideTip(), { passive: true });
addEventListener("DOMContentLoaded", () => document.body.append(tip));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
matchMedia("print").addEventListener("change", redraw);
addEventListener("beforeprint", drawAll);
addEventListener("afterprint", redraw);

return { register: (kind, drawing) => kinds.set(kind, drawing), make, text,
         theme, scale, ticks, tickText, drawBars, tellBar, showTip, hideTip,
         load, mount, update, unmount, redraw, drawAll, display, toggle, csv,
         byFlag, html, number, zoomOf: view => zooms.get(view.scope), labelOf, metric, runLabel,
         colourOf: run => theme().colours[
             colourIndex(run, shown.colour) % LIGHT.length],
         get model() { return model; }, get shown() { return { ...shown }; },
         views, isShown, listen: act => listeners.push(act) };
})();
