// Draws the figures of a report: those in sight at once, others as soon as
// there is time, those of a folded part when it is opened.  A figure that was
// drawn has data-drawn.
"use strict";

const figures = JSON.parse(document.getElementById("figures").textContent);
const charts = new Map(); // element of a figure: its chart

// Distinct for those who see colours otherwise, too, on white and on dark;
// marks and dashes tell apart what has the same colour.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                 "#56b4e9", "#8c6d31", "#7f7f7f"];
const MARKS = ["circle", "rect", "triangle", "rectRot", "star", "crossRot"];
const FEW = 20;
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];

function styleOf(index) {
    return {
        colour: COLOURS[index % COLOURS.length],
        mark: MARKS[index % MARKS.length],
        dash: DASHES[Math.floor(index / COLOURS.length) % DASHES.length],
    };
}

function cssColour(name) {
    return getComputedStyle(document.documentElement)
        .getPropertyValue(name).trim();
}

function lineSet(figure, series, index) {
    const style = styleOf(index);
    return {
        label: series.name,
        data: series.points.map(([x, y]) => ({ x, y })),
        spread: series.spread,
        borderColor: style.colour,
        backgroundColor: style.colour,
        borderDash: style.dash,
        borderWidth: 1.5,
        pointStyle: style.mark,
        pointRadius: figure.marks || series.points.length === 1 ? 4 : 0,
        pointHitRadius: 6,
    };
}

function barSet(figure, series, index) {
    const data = figure.categories.map(() => null);
    for (const [at, y] of series.points)
        data[at] = y;
    const style = styleOf(index);
    return { label: series.name, data, backgroundColor: style.colour };
}

// Vertical strokes of one standard deviation up and down.
const spreads = {
    id: "spreads",
    afterDatasetsDraw(chart) {
        const { ctx, scales } = chart;
        chart.data.datasets.forEach((set, index) => {
            if (!set.spread || !chart.isDatasetVisible(index))
                return;
            const { left, top, width, height } = chart.chartArea;
            ctx.save();
            ctx.beginPath();
            ctx.rect(left - 1, top, width + 2, height);
            ctx.clip();
            ctx.strokeStyle = set.borderColor;
            ctx.beginPath();
            set.data.forEach((point, i) => {
                const x = scales.x.getPixelForValue(point.x);
                ctx.moveTo(x, scales.y.getPixelForValue(
                    point.y - set.spread[i]));
                ctx.lineTo(x, scales.y.getPixelForValue(
                    point.y + set.spread[i]));
            });
            ctx.stroke();
            ctx.restore();
        });
    },
};

function axis(text, more) {
    const ink = cssColour("--ink");
    return {
        title: { display: true, text, color: ink },
        ticks: { color: ink },
        grid: { color: cssColour("--line") },
        ...more,
    };
}

// Few places of points are labelled each; many as the library likes.
function lineScales(figure) {
    const places = [...new Set(figure.series.flatMap(
        series => series.points.map(point => point[0])))];
    const x = axis(figure.x, { type: figure.log ? "logarithmic" : "linear" });
    if (figure.marks && places.length <= FEW) {
        x.afterBuildTicks = scale => {
            scale.ticks = places.map(value => ({ value }));
        };
        x.ticks.callback = value => String(value);
    }
    return { x, y: axis(figure.y, ends(figure)) };
}

// How far the strokes of spreads reach.
function ends(figure) {
    const reach = sign => figure.series.flatMap(series =>
        series.spread ? series.points.map(
            (point, i) => point[1] + sign * series.spread[i]) : []);
    const low = reach(-1), high = reach(1);
    return low.length === 0 ? {} : { suggestedMin: Math.min(...low),
                                     suggestedMax: Math.max(...high) };
}

// Names that would not fit below the bars stand beside them.
function isLong(figure) {
    return figure.categories.length > 6;
}

function barScales(figure) {
    const stacked = figure.kind === "stacked";
    const names = axis(figure.x, { stacked });
    const values = axis(figure.y, { stacked, beginAtZero: true });
    names.ticks.autoSkip = false;
    if (stacked)
        values.max = 100;
    return isLong(figure) ? { x: values, y: names } : { x: names, y: values };
}

function options(figure) {
    const lines = figure.kind === "lines";
    return {
        animation: false,
        responsive: true,
        maintainAspectRatio: false,
        indexAxis: isLong(figure) ? "y" : "x",
        interaction: { mode: "nearest", intersect: false },
        plugins: {
            legend: {
                position: "bottom",
                display: figure.series.length > 1,
                labels: { color: cssColour("--ink"), usePointStyle: lines,
                          boxWidth: 8, boxHeight: 8, font: { size: 11 } },
            },
        },
        scales: lines ? lineScales(figure) : barScales(figure),
    };
}

function dataOf(figure) {
    const make = figure.kind === "lines" ? lineSet : barSet;
    return {
        labels: figure.categories,
        datasets: figure.series.map((series, index) =>
            make(figure, series, index)),
    };
}

// Before any is drawn, so that nothing moves when it is.
function makeRoom(element) {
    const figure = figures[Number(element.dataset.figure)];
    if (!isLong(figure))
        return;
    const bars = figure.kind === "stacked" ? 1 : figure.series.length;
    element.classList.add("long");
    element.querySelector(".chart").style.height =
        `${90 + figure.categories.length * (10 + 8 * bars)}px`;
}

function draw(element) {
    const figure = figures[Number(element.dataset.figure)];
    const chart = new Chart(element.querySelector("canvas"), {
        type: figure.kind === "lines" ? "line" : "bar",
        data: dataOf(figure),
        options: options(figure),
        plugins: [spreads],
    });
    charts.set(element, chart);
    element.dataset.drawn = "yes";
}

// In colours that suit what the page is shown on now.
function recolour() {
    for (const [element, chart] of charts) {
        chart.options = options(figures[Number(element.dataset.figure)]);
        chart.resize();
        chart.update();
    }
}

function isFolded(element) {
    return element.closest("details:not([open])") !== null;
}

const waiting = []; // elements of figures that are to be drawn
const whenIdle = window.requestIdleCallback ?? setTimeout;

function drawOne() {
    const element = waiting.shift();
    if (element && element.isConnected && !charts.has(element) &&
        !isFolded(element))
        draw(element);
}

// One at a time: the page can be scrolled in between.
function drawNext() {
    drawOne();
    if (waiting.length > 0)
        whenIdle(drawNext);
}

function drawWithin(part) {
    const begin = waiting.length === 0;
    for (const element of part.querySelectorAll("figure[data-figure]"))
        if (!charts.has(element) && !isFolded(element)) {
            makeRoom(element);
            waiting.push(element);
        }
    const inSight = element => {
        const place = element.getBoundingClientRect();
        return place.top < innerHeight && place.bottom > 0;
    };
    waiting.filter(inSight).forEach(element => {
        if (!charts.has(element))
            draw(element);
    });
    if (begin)
        whenIdle(drawNext);
}

// What is printed is drawn first.
function drawAll() {
    while (waiting.length > 0)
        drawOne();
}

// Toggles do not bubble, but are seen on the way down.
document.addEventListener("toggle", event => drawWithin(event.target), true);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
matchMedia("print").addEventListener("change", recolour);
addEventListener("beforeprint", () => {
    drawAll();
    recolour();
});
addEventListener("afterprint", recolour);
drawWithin(document);
