#!/usr/bin/env python3
"""Sums of a gradient between two processes, alternating: the ring in
shared memory, over TCP and encrypted, the engine mpi, a bare MPI_Allreduce,
and PyTorch's gloo.

Each round runs every variant once.  Prints a Markdown table: the time of a sum,
compared with gloo, MPI and a plain TCP connection that moves as many bytes.
See bench/README.md.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

from turns import RUN_LIMIT_S, run_json, spread

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SIZES = {"lenet": 61706, "alexnet": 61100840}  # floats
MPIRUN = ["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none"]
BESIDE = {"gloo": "gloo", "bare MPI": "MPI_Allreduce", "raw TCP": "raw TCP"}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=ROOT / "build",
        help="where paceline-bench and mpi_sums are [build]")
    add("--python", type=pathlib.Path,
        help="a Python with PyTorch; without it gloo is left out")
    add("--rounds", type=int, default=3, help="[3]")
    add("--seconds", type=float, default=1, help="of one way [1]")
    return parser.parse_args()


def rings(options):
    """Both sizes over all transports of the ring, and raw TCP."""
    done = subprocess.run(
        [options.build / "paceline-bench", "--only", "allreduce", "--json"],
        capture_output=True, text=True, check=True, timeout=RUN_LIMIT_S)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(row["way"], row["bytes"] // 4): row["us"]
            for row in rows if "way" in row}


def mpi(options, how, floats):
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    os.environ.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    return run_json([*MPIRUN, options.build / "mpi_sums", how, floats,
                     options.seconds])["us"]


def gloo(options, floats):
    return run_json([options.python, HERE / "allreduce_torch.py", "--work",
                     "gloo", "--floats", floats, "--seconds",
                     options.seconds])["us"]


def make_round(options):
    """Microseconds by variant and size."""
    found = rings(options)
    for floats in SIZES.values():
        found["mpi", floats] = mpi(options, "engine", floats)
        found["bare MPI", floats] = mpi(options, "bare", floats)
        if options.python:
            found["gloo", floats] = gloo(options, floats)
    return found


def report(rounds, model, floats):
    print(f"\n{model}, {4 * floats:,} bytes; median (least-most)\n")
    print("| way | us | " + " | ".join(f"x {n}" for n in BESIDE.values())
          + " |\n|---|--:|" + "--:|" * len(BESIDE))
    for way in (w for w, size in rounds[0] if size == floats):
        ratios = [spread([r[way, floats] / r[other, floats] for r in rounds
                          if (other, floats) in r], 2) for other in BESIDE]
        print(f"| {way} | {spread([r[way, floats] for r in rounds], 0)} | "
              + " | ".join(ratios) + " |")


def main():
    options = parse_arguments()
    rounds = []
    for number in range(options.rounds):
        rounds.append(make_round(options))
        print(f"sums: round {number + 1} of {options.rounds}",
              file=sys.stderr, flush=True)
    for model, floats in SIZES.items():
        report(rounds, model, floats)


if __name__ == "__main__":
    main()
