#!/usr/bin/env python3
"""How fast a report over many long runs is made and opened.

Writes run folders as training does, each with a curve of a given number of
points (an event file in TensorBoard's format) and an hour of resources, runs
`paceline report` on them, opens the report in Chromium, and prints the seconds
until the first figure is on the screen and the time to draw every figure that
is not folded.  The goals for 50 runs of 100,000 points are the first figure in
under 1 s and at most 20 MB.  Needs numpy and Chromium: run it with
build/venv-long/bin/python.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
from browser import Browser  # noqa: E402

GOAL_S = 1
GOAL_MB = 20
BEGIN = 1763200000.0
HOUR = 3600


def crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(0x82F63B78),
                         table >> 1)
    return table


TABLE = crc_table()


def masked_crc(rows):
    """The masked CRC32C of each row of bytes, as 4 bytes."""
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in rows.T:
        crc = TABLE[(crc ^ column) & 0xFF] ^ crc >> np.uint32(8)
    crc = ~crc
    crc = (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(0xA282EAD8)
    return as_bytes(crc, "<u4")


def as_bytes(values, kind):
    return np.ascontiguousarray(values.astype(kind)).view(np.uint8).reshape(
        len(values), -1)


def records(messages):
    """The frame of a TFRecord around each row."""
    lengths = as_bytes(np.full(len(messages), messages.shape[1]), "<u8")
    return np.hstack([lengths, masked_crc(lengths), messages,
                      masked_crc(messages)]).tobytes()


def constant(count, data):
    return np.tile(np.frombuffer(data, np.uint8), (count, 1))


def varints(values, length):
    columns = [values >> 7 * i & 0x7F | (0x80 if i < length - 1 else 0)
               for i in range(length)]
    return np.stack(columns, 1).astype(np.uint8)


def scalars(tag, steps, values):
    """Event { wall_time, step, summary { value { tag, simple_value } } }"""
    value = b"\x0a" + bytes([len(tag)]) + tag.encode() + b"\x15"
    inner = b"\x0a" + bytes([len(value) + 4]) + value
    inner = b"\x2a" + bytes([len(inner) + 4]) + inner
    data = b""
    for length in range(1, 6):  # steps whose varint has this length
        mine = steps < 1 << 7 * length
        mine &= steps >= (1 << 7 * (length - 1) if length > 1 else 0)
        n = int(mine.sum())
        if n == 0:
            continue
        data += records(np.hstack([
            constant(n, b"\x09"), as_bytes(BEGIN + 0.05 * steps[mine], "<f8"),
            constant(n, b"\x10"), varints(steps[mine], length),
            constant(n, inner), as_bytes(values[mine], "<f4")]))
    return data


def write_run(seed, folder, index, points):
    """A run like `seed`, with another learning rate and another curve."""
    shutil.copytree(seed, folder)
    run = json.loads((folder / "run.json").read_text())
    rate = 0.001 * (index + 1)
    run["args"]["lr"] = f"{rate:.3f}"
    (folder / "run.json").write_text(json.dumps(run))
    file = next((folder / "events/worker-0").iterdir())
    steps = np.arange(1, points + 1)
    noise = np.random.default_rng(index).normal(0, 0.1, points)
    loss = 2.3 * np.exp(-steps * rate / 100) + 0.3 + 0.3 * noise ** 2
    file.write_bytes(scalars("loss", steps, loss))
    table = next((folder / "resources").iterdir())
    head = table.read_text().splitlines()[0]
    use = np.random.default_rng(index).integers(100, size=(HOUR,
                                                           head.count(",")))
    rows = [",".join([f"{BEGIN + second:.3f}", *map(str, fields)])
            for second, fields in enumerate(use)]
    table.write_text("\n".join([head, *rows]) + "\n")


# A figure is on the screen one frame after it was drawn.
FIRST = """new Promise(done => {
    const look = () => requestAnimationFrame(
        document.querySelector("figure[data-drawn]")
            ? () => done(performance.now()) : look);
    look();
})"""
ALL = """(() => {
    const begin = performance.now();
    Figures.drawAll();
    return performance.now() - begin;
})()"""


def open_page(page):
    """Seconds until the first figure is shown, seconds to draw all, and the
    number of figures."""
    browser = Browser("--window-size=1280,1000")
    try:
        browser.open(page.as_uri())
        shown = browser.evaluate(FIRST) / 1e3
        drawn = browser.evaluate(ALL) / 1e3
        return shown, drawn, browser.evaluate(
            "document.querySelectorAll('figure[data-drawn]').length")
    finally:
        browser.close()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--runs", type=int, default=50, help="[50]")
    add("--points", type=int, default=100000, help="of a run [100000]")
    add("--rounds", type=int, default=5, help="times to open it [5]")
    opts = parser.parse_args()
    program = opts.paceline.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([program, "train", "softmax", "--epochs", "1",
                        "--quiet", "--run", "seed"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for i in range(opts.runs):
            write_run(folder / "seed", folder / f"runs/lr-{i + 1}", i,
                      opts.points)
        begin = time.monotonic()
        subprocess.run([program, "report", "runs", "-o", "report.html"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        made = time.monotonic() - begin
        page = folder / "report.html"
        opened = [open_page(page) for _ in range(opts.rounds)]
        shown, drawn, figures = zip(*opened)
        median, size = statistics.median(shown), page.stat().st_size / 1e6
        met = median < GOAL_S and size <= GOAL_MB
        print(f"{opts.runs} runs of {opts.points} points: made in {made:.1f} s, "
              f"{size:.1f} MB\n"
              f"first figure in {median:.2f} s "
              f"({min(shown):.2f}-{max(shown):.2f}), all {figures[0]} figures "
              f"drawn in {statistics.median(drawn):.2f} s "
              f"({min(drawn):.2f}-{max(drawn):.2f}); goal under {GOAL_S} s and "
              f"{GOAL_MB} MB: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
