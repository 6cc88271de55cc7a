#!/usr/bin/env python3
"""Precision over examples: the model sparse by 1 server and 4 workers, sync and
async, and by one process.

Trains on 200,000 examples with a test every 20,000, prints a Markdown table and
writes a picture (SVG, by gnuplot).  See docs/sparse.md.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
from tfevents import scalars
COLORS = {"single": "#777777", "sync": "#1b6ca8", "async": "#c8553d"}
JOB = ["--workers", "4", "--ps", "1"]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--picture", type=pathlib.Path,
        default=ROOT / "docs/images/sparse_precision.svg")
    add("--batch", type=int, default=100, help="[100]")
    add("--examples", type=int, default=200000, help="[200000]")
    add("--lr", type=float, default=0.1, help="[0.1]")
    add("--optimizer", default="adagrad", help="[adagrad]")
    return parser.parse_args()


def train(options, folder, name, flags):
    run = folder / name
    begin = time.monotonic()
    done = subprocess.run(
        [str(options.paceline), "train", "sparse", "--quiet", "--json",
         "--examples", str(options.examples), "--batch", str(options.batch),
         "--optimizer", options.optimizer, "--lr", str(options.lr),
         "--eval-every", f"{options.examples // 10}ex", "--checkpoint-every",
         "never", "--run", str(run), *flags],
        check=True, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    summary = json.loads(done.stdout)
    each = summary["examples"] / summary["steps"]
    curves = scalars(next((run / "events").glob("worker-0")))
    points = {tag: [(step * each, value) for step, value in curves[tag]]
              for tag in curves if "test" in tag}
    return summary, points, seconds


def draw(options, curves):
    tags = [tag for tag in curves["sync"] if "precision" in tag]
    data, plots = "", []
    for number, (name, points) in enumerate(curves.items()):
        rows = "\n".join(f"{x} {y}" for x, y in points[tags[0]])
        data += f"${name} << EOD\n{rows}\nEOD\n"
        plots.append(f'${name} with linespoints lw 2 pt {number + 5} ps 0.6 '
                     f'lc rgb "{COLORS[name]}" title "{name}"')
    script = f'''set terminal svg size 640,400 font "sans-serif,13"
set output "{options.picture}"
set xlabel "examples"
set ylabel "test precision"
set format x "%.0s%c"
set grid lc rgb "#dddddd"
set key bottom right
set yrange [0:1]
{data}plot {", ".join(plots)}
'''
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def value_at(points, part, at):
    tag = [t for t in points if part in t]
    near = min(points[tag[0]], key=lambda p: abs(p[0] - at))
    return f"{near[1]:.3f}"


def main():
    options = parse_arguments()
    curves, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, flags in [("single", []), ("sync", [*JOB, "--mode", "sync"]),
                            ("async", [*JOB, "--mode", "async"])]:
            summary, points, seconds = train(options, pathlib.Path(folder),
                                             name, flags)
            curves[name] = points
            half, all_ = options.examples // 2, options.examples
            rows.append(f"| {name} | {seconds:.1f} | "
                        f"{value_at(points, 'precision', half)} | "
                        f"{value_at(points, 'precision', all_)} | "
                        f"{value_at(points, 'auc', all_)} | "
                        f"{summary['test_loss']:.4f} |")
    print("| | whole run, s | precision, half way | precision | AUC | log loss "
          "|\n|---|--:|--:|--:|--:|--:|")
    print("\n".join(rows))
    draw(options, curves)


if __name__ == "__main__":
    main()
