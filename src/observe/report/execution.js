// execution.js - figures of the execution: the operators of a few steps on a
// timeline, and the model's graph by device.
"use strict";

(() => {
const { make, text, number, register, showTip, hideTip, ticks, tickText, scale }
    = Figures;
const { entryOf, inkOn, parse } = Drawings;
const nothing = "No run shown here recorded it.";
const LANE = 26, NAMES_MOST = 8; // operators with a colour of their own
const IDLE = "wait"; // pale, so that work stands out

/* --- the timeline ----------------------------------------------------- */

// One row per thread, workers before servers.
function lanesOf(trace) {
    const tasks = new Map(trace.lanes.filter(lane => lane[1] < 0).map(
        ([pid, , name]) => [pid, name]));
    const rows = new Map();
    for (const [pid, tid] of trace.spans)
        rows.set(`${pid} ${tid}`, { pid, tid });
    const list = [...rows.values()];
    for (const row of list) {
        const alone = list.filter(({ pid }) => pid === row.pid).length === 1;
        const thread = trace.lanes.find(
            lane => lane[0] === row.pid && lane[1] === row.tid);
        row.name = (tasks.get(row.pid) ?? `task ${row.pid}`) +
            (alone ? "" : `, ${thread?.[2] ?? `thread ${row.tid}`}`);
    }
    return list.sort((a, b) => a.name.startsWith("ps") - b.name.startsWith("ps")
        || a.name.localeCompare(b.name, "en", { numeric: true }));
}

// The names that take the most time have separate colours, the others share
// one.
function coloursOf(trace, t) {
    const sums = new Map();
    for (const [, , , took, , name] of trace.spans)
        sums.set(name, (sums.get(name) ?? 0) + took);
    const order = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name)
        .filter(name => name !== IDLE);
    const top = order.slice(0, NAMES_MOST);
    return { top: sums.has(IDLE) ? [IDLE, ...top] : top, of: name => {
        const index = top.indexOf(name);
        return name === IDLE ? t.line
            : index >= 0 ? t.colours[index] : t.colours.at(-1);
    } };
}

function timeText(us) {
    return us >= 1e6 ? `${number(us / 1e6)} s`
        : us >= 1000 ? `${number(us / 1000)} ms` : `${number(us)} µs`;
}

function drawTimeline(view, figure, width, t) {
    const trace = entryOf("traced");
    if (!trace)
        return make("svg", { width, height: 20 });
    view.scope = `${view.section}\ntimeline`;
    const rows = lanesOf(trace), colours = coloursOf(trace, t);
    const left = Math.min(width * .3, 16 + 6.4 * Math.max(
        ...rows.map(row => row.name.length)));
    const box = { left, top: 6, width: width - left - 14,
                  height: rows.length * LANE };
    const [from, to] = Figures.zoomOf(view) ?? [0, trace.us];
    const unit = to - from >= 5000 ? 1000 : 1;
    const x = scale(from, to, box.left, box.left + box.width);
    const height = box.top + box.height + 36;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width,
                              height });
    const marks = ticks(from / unit, to / unit,
                        Math.max(2, Math.floor(box.width / 80)));
    for (const value of marks.list)
        svg.append(make("line", { x1: x.at(value * unit), y1: box.top,
            x2: x.at(value * unit), y2: box.top + box.height, stroke: t.line,
            "stroke-width": .6 }), text(x.at(value * unit),
            box.top + box.height + 15, tickText(value, marks.step), t,
            { "text-anchor": "middle" }));
    svg.append(text(box.left + box.width / 2, box.top + box.height + 31,
        unit === 1000 ? "time [ms]" : "time [µs]", t,
        { "text-anchor": "middle" }));
    const places = new Map(rows.map(({ pid, tid, name }, i) => {
        const room = Math.floor((left - 12) / 6.4);
        svg.append(text(left - 6, box.top + i * LANE + LANE / 2 + 4,
            name.length > room ? `${name.slice(0, room - 1)}…` : name, t,
            { "text-anchor": "end", fill: t.ink }));
        return [`${pid} ${tid}`, i];
    }));
    // Spans inside a longer one come after it, and so are drawn on top of it.
    const spans = trace.spans.map(([pid, tid, begin, took, step, name]) =>
        ({ begin, end: begin + took, step, name, lane:
           places.get(`${pid} ${tid}`) })).sort((a, b) =>
        a.begin - b.begin || b.end - a.end);
    for (const span of spans) {
        const low = x.at(Math.max(span.begin, from));
        const high = x.at(Math.min(span.end, to));
        if (span.end < from || span.begin > to || high - low < .15)
            continue;
        const fill = colours.of(span.name);
        svg.append(make("rect", { x: low, y: box.top + span.lane * LANE + 3,
            width: Math.max(.5, high - low - (high - low > 3 ? .6 : 0)),
            height: LANE - 6, fill, class: "cell" }));
        if (high - low > 6.4 * span.name.length + 8)
            svg.append(text((low + high) / 2, box.top + span.lane * LANE +
                LANE / 2 + 4, span.name, t, { "text-anchor": "middle",
                class: "on-cell", "font-size": 10.5, fill: inkOn(parse(fill)),
                "pointer-events": "none" }));
    }
    view.panels = [{ box, x, panel: { lines: [], marks: [] } }];
    view.keys = [...colours.top.map(name => ({ name, runs: [],
                                               colour: colours.of(name) })),
                 ...new Set(spans.map(s => s.name)).size > colours.top.length
                     ? [{ name: "others", runs: [], colour: t.colours.at(-1) }]
                     : []];
    view.timeline = { spans, rows, colours, box, x };
    return svg;
}

function showSpan(view, span) {
    const { rows, colours, box, x } = view.timeline;
    const place = view.svg.getBoundingClientRect();
    const rest = { colour: "transparent" };
    showTip(span.name, [
        { name: "time", value: timeText(span.end - span.begin),
          colour: colours.of(span.name) },
        { name: rows[span.lane].name, value: span.step >= 0
            ? `step ${span.step}` : "", ...rest }],
        place.left + Math.max(box.left, x.at(span.begin)),
        place.top + box.top + span.lane * LANE + 20);
}

function tellSpan(view, event) {
    const { spans, rows, box, x } = view.timeline ?? { rows: [] };
    const place = view.svg.getBoundingClientRect();
    const lane = Math.floor((event.clientY - place.top - box?.top) / LANE);
    const px = event.clientX - place.left;
    const at = rows[lane] && px >= box.left ? x.back(px) : NaN;
    const near = (x?.to - x?.from) / box?.width;
    const span = spans?.findLast(s => s.lane === lane &&
        s.begin - near <= at && s.end + near >= at);
    if (span)
        showSpan(view, span);
    else
        hideTip(view);
}

// Left and right visit the spans of all lanes in order.
function stepSpan(view, key) {
    const { spans, x } = view.timeline ?? {};
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step || !spans)
        return false;
    const seen = spans.filter(s => s.end >= x.from && s.begin <= x.to);
    const last = seen.indexOf(view.span);
    view.span = seen[Math.max(0, Math.min(seen.length - 1, last + step))];
    if (view.span) {
        view.cursor = (view.span.begin + view.span.end) / 2;
        showSpan(view, view.span);
    }
    return true;
}

register("timeline", {
    draw: drawTimeline,
    whole: true,
    rows() {
        const trace = entryOf("traced"), lanes = trace ? lanesOf(trace) : [];
        const name = (pid, tid) => lanes.find(lane => lane.pid === pid &&
                                              lane.tid === tid).name;
        return [["task", "step", "operator", "begin [us]", "time [us]"],
                ...(trace?.spans ?? []).map(([pid, tid, begin, took, step, op]) =>
                    [name(pid, tid), step, op, begin, took])];
    },
    says: () => `${entryOf("traced")?.spans.length ?? 0} spans of ` +
        `${entryOf("traced") ? lanesOf(entryOf("traced")).length : 0} threads`,
    tell: tellSpan,
    key: stepSpan,
    note() {
        const trace = entryOf("traced");
        return trace ? `3 steps, from step ${trace.first}. All steps: ` +
            "`paceline profile RUN --merge all.json`, opened in " +
            "ui.perfetto.dev." : nothing;
    },
});

/* --- the model by device ---------------------------------------------- */

const ROW = 30, BOX = 22;

function deviceText(device) {
    const [, job, task] = device.match(/^\/job:(\w+)(?:\/task:(\d+))?/) ?? [];
    return job === undefined ? device || "not placed"
        : task === undefined ? job : `${job} ${task}`;
}

// Operators in execution order, each with the parameters that it reads first;
// an operator that only transforms the previous result (an activation, a
// pooling) is drawn in the same box.
function layout(nodes) {
    const made = new Map(nodes.map(([name, op, device, shape, inputs]) =>
        [name, { name, op, device, shape, inputs, users: 0 }]));
    const isParameter = node => node.op === "parameter";
    for (const node of made.values())
        for (const input of node.inputs)
            if (made.has(input))
                made.get(input).users++;
    const rows = [];
    for (const node of made.values()) {
        if (isParameter(node))
            continue;
        const inputs = node.inputs.map(name => made.get(name)).filter(Boolean);
        const parameters = inputs.filter(isParameter);
        const others = inputs.filter(input => !isParameter(input));
        const last = rows.at(-1);
        if (others.length === 1 && parameters.length === 0 && last &&
            last.nodes.at(-1) === others[0] && others[0].users === 1 &&
            others[0].device === node.device && last.nodes.length < 4) {
            last.nodes.push(node);
            node.row = rows.length - 1;
            continue;
        }
        node.row = rows.length;
        rows.push({ nodes: [node], parameters: parameters.filter(
            parameter => !parameter.placed), from: others });
        for (const parameter of parameters)
            parameter.placed = true;
    }
    return rows;
}

function shapeText(shape) {
    return shape.map(size => size < 0 ? "batch" : size).join(" × ");
}

function box(svg, at, label, fill, t, tip) {
    svg.append(make("rect", { x: at.x, y: at.y, width: at.width, height: BOX,
        rx: 4, fill, class: "cell" }, Object.assign(make("title"),
        { textContent: tip })));
    const room = Math.floor((at.width - 10) / 6.4);
    svg.append(text(at.x + at.width / 2, at.y + 15, label.length > room
        ? `${label.slice(0, Math.max(1, room - 1))}…` : label, t,
        { "text-anchor": "middle", class: "on-cell", fill: inkOn(parse(fill)),
          "pointer-events": "none" }));
}

function drawGraph(view, figure, width, t) {
    const graph = entryOf("modelled");
    if (!graph)
        return make("svg", { width, height: 20 });
    const rows = layout(graph.nodes);
    const devices = [...new Set(graph.nodes.map(node => node[2]))].sort(
        (a, b) => a.includes("/job:ps") - b.includes("/job:ps") ||
            a.localeCompare(b, "en", { numeric: true }));
    const fill = device => t.colours[devices.indexOf(device) %
                                     t.colours.length];
    const wide = width > 560;
    const side = { x: 4, width: wide ? width * .3 : width * .36 };
    const main = { x: side.x + side.width + 26, width: wide ? width * .34
                                                            : width * .44 };
    const height = rows.length * ROW + 22;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width,
                              height });
    svg.append(text(side.x, 11, "parameters", t),
               text(main.x, 11, "operators", t));
    if (wide)
        svg.append(text(main.x + main.width + 40, 11, "result", t));
    rows.forEach((row, i) => {
        const y = 18 + i * ROW, middle = y + BOX / 2;
        for (const from of row.from) {
            const up = 18 + from.row * ROW;
            const right = main.x + main.width;
            svg.append(make("path", { fill: "none", stroke: t.faint,
                class: "curve", d: from.row === i - 1
                    ? `M${main.x + main.width / 2} ${up + BOX}V${y}`
                    : `M${right} ${up + BOX / 2}c18 0 18 ` +
                      `${y - up} 0 ${y - up}` }));
        }
        const each = side.width / Math.max(1, row.parameters.length);
        row.parameters.forEach((parameter, k) => {
            const own = `${row.nodes[0].name}/`;
            box(svg, { x: side.x + k * each, y, width: each - 4 },
                !wide && parameter.name.startsWith(own)
                    ? parameter.name.slice(own.length) : parameter.name, fill(parameter.device), t,
                `${parameter.name} [${shapeText(parameter.shape)}] on ` +
                deviceText(parameter.device));
        });
        if (row.parameters.length > 0)
            svg.append(make("path", { d: `M${side.x + side.width - 4} ` +
                `${middle}H${main.x}`, stroke: t.faint, fill: "none",
                class: "curve" }));
        const last = row.nodes.at(-1);
        box(svg, { ...main, y }, row.nodes.map(node => node.name).join(" · "),
            fill(last.device), t, row.nodes.map(node =>
                `${node.name} (${node.op}) [${shapeText(node.shape)}] on ` +
                deviceText(node.device)).join("\n"));
        if (wide)
            svg.append(text(main.x + main.width + 40, middle + 4,
                            shapeText(last.shape) || "one number", t));
    });
    view.keys = devices.map(device => ({ name: deviceText(device), runs: [],
                                         colour: fill(device) }));
    return svg;
}

register("graph", {
    draw: drawGraph,
    whole: true,
    rows: () => [["name", "operator", "device", "shape", "inputs"],
                 ...(entryOf("modelled")?.nodes ?? []).map(
                     ([name, op, device, shape, inputs]) => [name, op, device,
                         shapeText(shape), inputs.join(" ")])],
    says: () => `${entryOf("modelled")?.nodes.length ?? 0} nodes`,
    note: () => entryOf("modelled") ? "Parameters and the operators that read " +
        "them, from the data to the loss, in the colors of their devices."
        : nothing,
});
})();
