"""What people see of a run: one line, a table and a curve, a plot."""

from __future__ import annotations

from html import escape
from typing import Any, List, Mapping, Tuple

import numpy as np

# Rows of the table: heading, key of the summary, format.
_ROWS = (
    ("steps", "steps", "{:,d}"),
    ("examples/s", "examples_per_s", "{:,.0f}"),
    ("training loss", "train_loss", "{:.4g}"),
    ("test loss", "test_loss", "{:.4g}"),
    ("test accuracy", "test_accuracy", "{:.4f}"),
    ("stopped by", "stopped_by", "{}"),
    ("run", "run", "{}"),
)

_WIDTH, _HEIGHT, _MARGIN = 320, 120, 4
_POINTS = 300


def _rows(settings: Mapping[str, Any], summary: Mapping[str, Any]) -> List[Tuple[str, str]]:
    workers = summary.get("workers") or 1
    servers = summary.get("ps") or 0
    rows = [("model", str(settings.get("model", "")))]
    if workers > 1 or servers:
        rows.append(("tasks", f"{workers} workers, {servers} servers"))
    for heading, key, form in _ROWS:
        value = summary.get(key)
        if value is not None:
            rows.append((heading, form.format(value)))
    return rows


def one_line(settings: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """'softmax, steps 600, test accuracy 0.9012', or that it goes on."""
    if not summary:
        return f"{settings.get('model')}, not ended"
    rows = dict(_rows(settings, summary))
    parts = [rows["model"]]
    for heading in ("steps", "test accuracy", "stopped by"):
        if heading in rows:
            parts.append(f"{heading} {rows[heading]}")
    return ", ".join(parts)


def _path(series: Any) -> str:
    """Points of an SVG line, in the frame; few, since a notebook keeps them."""
    good = np.isfinite(series.value)
    x, y = series.step[good], series.value[good]
    if len(x) < 2:
        return ""
    pick = np.unique(np.linspace(0, len(x) - 1, _POINTS).astype(int))
    x, y = x[pick], y[pick]

    def fit(v: np.ndarray, size: int) -> np.ndarray:
        spread = v.max() - v.min()
        scaled = (v - v.min()) / spread if spread > 0 else np.full(len(v), 0.5)
        return _MARGIN + scaled * (size - 2 * _MARGIN)

    left, up = fit(x, _WIDTH), fit(y, _HEIGHT)
    return " ".join(f"{a:.1f},{_HEIGHT - b:.1f}" for a, b in zip(left, up))


def html(
    settings: Mapping[str, Any],
    summary: Mapping[str, Any],
    series: Mapping[Tuple[str, str], Any],
) -> str:
    """A table, and the curve of the training loss where it was recorded."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in _rows(settings, summary)
    )
    curves = [s for (_, name), s in series.items() if name == "loss"]
    points = _path(curves[0]) if curves else ""
    if not points:
        return f"<table>{rows}</table>"
    return (
        f"<table>{rows}</table>"
        f"<svg width='{_WIDTH}' height='{_HEIGHT}' role='img' "
        "style='border:1px solid #ccc'><title>training loss</title>"
        f"<polyline fill='none' stroke='#1f77b4' points='{points}'/></svg>"
    )


def plot(curves: Mapping[str, Any], name: str, ax: Any) -> Any:
    """Curves by task on matplotlib's axes, which are returned."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install matplotlib") from error
        ax = pyplot.subplots()[1]
    for task, series in curves.items():
        ax.plot(series.step, series.value, label=task)
    ax.set_xlabel("step")
    ax.set_ylabel(name)
    if len(curves) > 1:
        ax.legend()
    return ax
