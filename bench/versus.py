#!/usr/bin/env python3
"""Two builds of paceline in alternation: the speed and memory of new to old.

    bench/versus.py --old OTHER/build/paceline --new build/paceline

Each workload runs as pairs, old and new in an order that changes from pair to
pair, so that a slow spell of the machine affects both.  A row gives the median
of the pairs' ratios with their quartiles: examples a second (above 1: the new
build is faster), the largest task's peak memory (below 1: it uses less), and
for `start` the wall time of the shortest job as old to new.
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

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEVER = ["--eval-every", "never", "--checkpoint-every", "never"]
SOFTMAX = ["softmax", "--batch", "100"]
PS = SOFTMAX + ["--workers", "2", "--ps", "1", "--threads", "1"]
RING = ["lenet", "--batch", "32", "--workers", "2", "--engine", "ring",
        "--threads", "1", "--steps", "600"]
WORKLOADS = {
    "softmax 100": SOFTMAX + ["--steps", "30000"],
    "lenet 32": ["lenet", "--batch", "32", "--steps", "1500"],
    "alexnet 32": ["alexnet", "--data", "synthetic", "--examples", "64",
                   "--batch", "32", "--steps", "3"],
    "sparse 100": ["sparse", "--batch", "100", "--steps", "15000"],
    "ps async shm": PS + ["--mode", "async", "--steps", "20000"],
    "ps async tcp": PS + ["--mode", "async", "--steps", "10000",
                          "--transport", "tcp"],
    "ps sync shm": PS + ["--mode", "sync", "--steps", "10000"],
    "ps sync tcp": PS + ["--mode", "sync", "--steps", "5000",
                         "--transport", "tcp"],
    "ring shm": RING,
    "ring tcp": RING + ["--transport", "tcp"],
    "start": PS + ["--steps", "1"],
}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--old", type=pathlib.Path, required=True)
    add("--new", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--pairs", type=int, default=15, help="[15]")
    add("--only", help="workloads whose name contains this")
    return parser.parse_args()


def measure(program, flags):
    """Wall seconds of one job, and its summary."""
    folder = tempfile.mkdtemp()
    begin = time.monotonic()
    done = subprocess.run([program.resolve(), "train", *flags, *NEVER, "--json",
                           "--run", "r"], cwd=folder, text=True,
                          capture_output=True)
    seconds = time.monotonic() - begin
    shutil.rmtree(folder)
    if done.returncode != 0:
        sys.exit(f"{program} train {' '.join(flags)}: {done.stderr}")
    return seconds, json.loads(done.stdout.splitlines()[-1])


def spread(ratios):
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} ({low:.3f}-{high:.3f})"


def row(name, flags, args):
    speeds, memory = [], []
    for pair in range(args.pairs):
        programs = [args.old, args.new]
        results = {p: measure(p, flags) for p in programs[::(-1) ** pair]}
        (old_s, old), (new_s, new) = (results[p] for p in programs)
        speeds.append(old_s / new_s if name == "start" else
                      new["examples_per_s"] / old["examples_per_s"])
        memory.append(new["peak_rss_mb"] / old["peak_rss_mb"])
    return f"| {name} | {spread(speeds)} | {spread(memory)} |"


def main():
    args = parse_arguments()
    print(f"| workload, {args.pairs} pairs | speed, new / old (quartiles) "
          "| memory, new / old |\n|---|---|---|")
    for name, flags in WORKLOADS.items():
        if args.only is None or args.only in name:
            print(row(name, flags, args), flush=True)


if __name__ == "__main__":
    main()
