// drawings.js - figures of the report's data other than lines and bars: the
// answers of a classifier, and the bytes sent between tasks.  Each kind is
// registered with figures.js.
"use strict";

const Drawings = (() => {
const { make, text, number, register, showTip, hideTip } = Figures;
const chosen = new Map(); // section: the run that it shows

// The model's data for a section in which the reader selects a run.
const sources = { tested: "tests", pairs: "pairs", traced: "traces",
                  modelled: "graphs" };

function choices(what) {
    return (Figures.model[sources[what]] ?? []).map(entry => entry.run);
}

function entryOf(what) {
    return (Figures.model[sources[what]] ?? []).find(
        entry => entry.run === chosen.get(what));
}

/* --- heat maps -------------------------------------------------------- */

function parse(colour) {
    return [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
}

function mix(from, to, share) {
    const [a, b] = [parse(from), parse(to)];
    return a.map((v, i) => Math.round(v + (b[i] - v) * share));
}

// Black or white, whichever is easier to read on the colour.
function inkOn(rgb) {
    const [r, g, b] = rgb.map(v => v / 255).map(v =>
        v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b > .179 ? "#000000" : "#ffffff";
}

// A matrix: {rows, columns: names, cell(i, j): {label, share, colour},
// tip(i, j): {title, rows}, x, y: titles of columns and rows, wide: maximum
// width of a cell}.
function drawMatrix(view, matrix, width, t) {
    const { rows, columns } = matrix;
    const longest = Math.max(...rows.map(name => name.length));
    const left = Math.min(26 + longest * 6.4, width * .35);
    const size = Math.min(matrix.wide ?? 44, (width - left - 8) / columns.length);
    const high = Math.min(size, 34);
    const slanted = Math.max(...columns.map(n => n.length)) * 6.4 > size;
    const top = slanted ? 24 + Math.min(90, Math.max(...columns.map(
        n => n.length)) * 4.8) : 38;
    const height = top + high * rows.length + 8;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width,
                              height });
    const skip = Math.ceil(13 / size), skipRow = Math.ceil(13 / high);
    const room = Math.floor((left - 24) / 6.2);
    const short = (name, most) => name.length > most
        ? `${name.slice(0, most - 1)}…` : name;
    svg.append(text(left, 13, matrix.x, t),
               text(0, 0, matrix.y, t, { "text-anchor": "middle", transform:
                   `translate(11 ${top + high * rows.length / 2}) ` +
                   "rotate(-90)" }));
    columns.forEach((name, j) => {
        const at = left + size * (j + .5);
        if (j % skip === 0)
            svg.append(text(0, 0, short(name, 18), t, {
                "text-anchor": slanted ? "start" : "middle", fill: t.ink,
                transform: `translate(${at + (slanted ? 3 : 0)} ${top - 6})` +
                    (slanted ? " rotate(-45)" : "") }));
    });
    rows.forEach((name, i) => {
        const at = top + high * i;
        if (i % skipRow === 0)
            svg.append(text(left - 6, at + high / 2 + 4, short(name, room), t,
                            { "text-anchor": "end", fill: t.ink }));
        columns.forEach((_, j) => {
            const { label, share, colour } = matrix.cell(i, j);
            const rgb = mix(t.paper, colour ?? t.colours[0], share);
            svg.append(make("rect", { x: left + size * j, y: at, width: size -
                (size > 8 ? 1 : 0), height: high - (high > 8 ? 1 : 0),
                fill: `rgb(${rgb})`, class: "cell" }));
            if (label && label.length * 5.6 < size)
                svg.append(text(left + size * (j + .5), at + high / 2 + 4,
                    label, t, { "text-anchor": "middle", class: "on-cell",
                                "font-size": 10, fill: inkOn(rgb) }));
        });
    });
    view.matrix = { matrix, left, top, size, high };
    return svg;
}

function tellCell(view, event) {
    const { matrix, left, top, size, high } = view.matrix ?? {};
    const place = view.svg.getBoundingClientRect();
    const j = Math.floor((event.clientX - place.left - left) / size);
    const i = Math.floor((event.clientY - place.top - top) / high);
    if (!matrix || !(i >= 0 && i < matrix.rows.length && j >= 0 &&
                     j < matrix.columns.length))
        return hideTip(view);
    const { title, rows } = matrix.tip(i, j);
    showTip(title, rows, event.clientX, event.clientY);
}

/* --- the answers of a classifier -------------------------------------- */

function sumOf(list) {
    return list.reduce((a, b) => a + b, 0);
}

// Right answers in one colour, by their share of the class; wrong ones in
// another, by their share relative to the most frequent mistake.
function confusion(test, t) {
    const n = test.classes, names = [...Array(n).keys()].map(String);
    const at = (i, j) => test.counts[i * n + j];
    const totals = names.map((_, i) => sumOf(names.map((__, j) => at(i, j))));
    const share = (i, j) => totals[i] > 0 ? at(i, j) / totals[i] : 0;
    const worst = Math.max(1e-9, ...names.flatMap((_, i) => names.map(
        (__, j) => i === j ? 0 : share(i, j))));
    return { rows: names, columns: names, x: "predicted class", y: "true class",
             cell: (i, j) => ({
                 label: at(i, j) > 0 ? String(at(i, j)) : "",
                 share: i === j ? share(i, j) : share(i, j) / worst * .9,
                 colour: i === j ? t.colours[0] : t.colours[1] }),
             tip: (i, j) => ({ title: `true class ${i}, predicted ${j}`,
                 rows: [{ name: "examples", colour: "transparent",
                          value: number(at(i, j)) },
                        { name: `of class ${i}`, colour: "transparent",
                          value: `${number(100 * share(i, j))} %` }] }) };
}

// One class against all others, in percent.
function classResults(test) {
    const n = test.classes, at = (i, j) => test.counts[i * n + j];
    return [...Array(n).keys()].map(c => {
        const others = [...Array(n).keys()];
        const examples = sumOf(others.map(j => at(c, j)));
        const predicted = sumOf(others.map(i => at(i, c)));
        return { name: String(c), examples,
                 precision: 100 * at(c, c) / predicted,
                 recall: 100 * at(c, c) / examples,
                 f1: 200 * at(c, c) / (examples + predicted) };
    }).filter(row => row.examples > 0);
}

const BARS_MOST = 20;

function classBars(figure) {
    const test = entryOf("tested"), all = test ? classResults(test) : [];
    const some = all.length <= BARS_MOST ? all
        : [...all].sort((a, b) => a.f1 - b.f1).slice(0, BARS_MOST);
    return { ...figure, kind: "bars", y: "[%]", categories: some.map(
                 row => `class ${row.name}`),
             series: [["precision", "precision"], ["recall", "recall"],
                      ["f1", "F1"]].map(([key, name]) => ({ name,
                 points: some.map((row, i) => [i, row[key]]).filter(
                     point => Number.isFinite(point[1])) })),
             left: all.length - some.length };
}

/* --- examples as pictures --------------------------------------------- */

// The data URL of a PNG, from [channels, height, width] bytes in base64.
function picture(test, pixels) {
    const { width, height, channels } = test, bytes = atob(pixels);
    const canvas = Figures.html("canvas", { width, height });
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let p = 0; p < width * height; p++)
        for (let c = 0; c < 4; c++)
            image.data[4 * p + c] = c === 3 ? 255
                : bytes.charCodeAt((channels === 3 ? c : 0) * width * height +
                                   p);
    context.putImageData(image, 0, 0);
    return canvas.toDataURL();
}

function drawPictures(view, figure, width, t) {
    const test = entryOf("tested");
    const list = (test?.wrong ?? []).filter(wrong => wrong.pixels);
    const columns = Math.max(2, Math.min(8, Math.floor(width / 88)));
    const cell = width / columns, side = Math.min(cell - 14, 72);
    const rows = Math.ceil(list.length / columns);
    const height = Math.max(30, rows * (side + 46));
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width,
                              height });
    list.forEach((wrong, i) => {
        const x = (i % columns + .5) * cell;
        const y = Math.floor(i / columns) * (side + 46) + 4;
        const middle = { "text-anchor": "middle" };
        svg.append(
            make("image", { x: x - side / 2, y, width: side, height: side,
                href: picture(test, wrong.pixels), "image-rendering":
                "pixelated", preserveAspectRatio: "xMidYMid" }),
            text(x, y + side + 14, `${wrong.label} → ${wrong.predicted}`, t,
                 { ...middle, fill: t.ink, "font-weight": 600 }),
            text(x, y + side + 28, `${(100 * wrong.probability).toFixed(1)} %`,
                 t, middle));
    });
    view.pictures = { list, columns, cell, high: side + 46 };
    return svg;
}

function tellPicture(view, event) {
    const { list, columns, cell, high } = view.pictures;
    const place = view.svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - place.left) / cell);
    const wrong = column < columns && list[columns *
        Math.floor((event.clientY - place.top) / high) + column];
    if (!wrong)
        return hideTip(view);
    showTip(`example ${wrong.index} of the test set`, [
        { name: "true class", value: String(wrong.label) },
        { name: "predicted", value: String(wrong.predicted) },
        { name: "probability", value: number(wrong.probability) },
    ].map(row => ({ ...row, colour: "transparent" })), event.clientX,
            event.clientY);
}

/* --- bytes sent between tasks ----------------------------------------- */

function bytesText(bytes) {
    for (const [unit, name] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"],
                                [1e3, "kB"]])
        if (bytes >= unit)
            return `${Number((bytes / unit).toPrecision(3))} ${name}`;
    return `${bytes} B`;
}

// Workers before servers, numbers by value.
function pairs({ transfers }) {
    const order = (a, b) => a.startsWith("ps") - b.startsWith("ps") ||
        a.localeCompare(b, "en", { numeric: true });
    const rows = [...new Set(transfers.map(item => item[0]))].sort(order);
    const columns = [...new Set(transfers.map(item => item[1]))].sort(order);
    const found = new Map(transfers.map(item => [`${item[0]}\n${item[1]}`,
                                                 item]));
    const at = (i, j) => found.get(`${rows[i]}\n${columns[j]}`);
    const most = Math.max(1, ...transfers.map(item => item[2]));
    return { rows, columns, x: "receiver", y: "sender", wide: 62,
             cell: (i, j) => ({ label: at(i, j) ? bytesText(at(i, j)[2]) : "",
                                share: at(i, j) ? .06 + .94 *
                                    (at(i, j)[2] / most) : 0 }),
             tip: (i, j) => ({ title: `${rows[i]} to ${columns[j]}`,
                 rows: [["bytes", at(i, j)?.[2]], ["messages", at(i, j)?.[3]]]
                     .map(([name, value]) => ({ name, colour: "transparent",
                         value: value === undefined ? "none"
                             : value.toLocaleString("en") })) }) };
}

/* --- the kinds -------------------------------------------------------- */

const nothing = "No run shown here recorded it.";

register("confusion", {
    draw: (view, figure, width, t) => entryOf("tested")
        ? drawMatrix(view, confusion(entryOf("tested"), t), width, t)
        : make("svg", { width, height: 20 }),
    rows(figure) {
        const { classes, counts } = entryOf("tested") ?? { classes: 0 };
        const names = [...Array(classes).keys()];
        return [["true class", ...names.map(c => `predicted ${c}`)],
                ...names.map(c => [c, ...counts.slice(c * classes,
                                                      (c + 1) * classes)])];
    },
    says: () => `${entryOf("tested")?.classes ?? 0} classes`,
    tell: tellCell,
    note: () => entryOf("tested") ? "Rows are true classes, columns predicted " +
        "ones; right answers are colored by their share of the class, wrong " +
        "ones by their share of the most frequent mistake." : nothing,
});

register("classes", {
    draw: (view, figure, width, t) =>
        Figures.drawBars(view, classBars(figure), width, t),
    rows: () => [["class", "examples", "precision [%]", "recall [%]", "F1 [%]"],
                 ...classResults(entryOf("tested") ?? { classes: 0 }).map(row =>
                     [row.name, row.examples, row.precision, row.recall,
                      row.f1])],
    says: figure => `${classBars(figure).categories.length} classes`,
    tell: (view, event) => Figures.tellBar(view, event),
    note(figure) {
        const { left } = classBars(figure);
        return left > 0 ? `The ${BARS_MOST} classes with the lowest F1; ` +
            `${left} more are in the table and in the CSV.` : "";
    },
});

register("misclassified", {
    draw: drawPictures,
    rows: () => [["example", "true class", "predicted", "probability"],
                 ...(entryOf("tested")?.wrong ?? []).map(wrong =>
                     [wrong.index, wrong.label, wrong.predicted,
                      wrong.probability])],
    says: () => `${entryOf("tested")?.wrong.length ?? 0} examples`,
    tell: tellPicture,
    note: () => "True class → predicted class, with the probability that the " +
        "model gave it: the wrong answers it was surest of.",
    isEmpty: () => !entryOf("tested")?.wrong.some(wrong => wrong.pixels),
});

register("pairs", {
    draw: (view, figure, width, t) => entryOf("pairs")
        ? drawMatrix(view, pairs(entryOf("pairs")), width, t)
        : make("svg", { width, height: 20 }),
    rows: () => [["sender", "receiver", "bytes", "messages"],
                 ...entryOf("pairs")?.transfers ?? []],
    says: () => `${entryOf("pairs")?.transfers.length ?? 0} pairs of tasks`,
    tell: tellCell,
    note: () => entryOf("pairs") ? "Rows send, columns receive, as the workers " +
        "counted it; shared memory included." : nothing,
});

return { choices, entryOf, inkOn, parse, choose: (what, run) => chosen.set(what, run),
         chosen: what => chosen.get(what) };
})();
