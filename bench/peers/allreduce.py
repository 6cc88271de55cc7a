#!/usr/bin/env python3
"""All-reduce in turns: paceline's engines and PyTorch's DistributedDataParallel
over gloo; workers of one machine, one thread each.

Each round runs every configuration once.  Prints a Markdown table: examples
all workers trained a second, the ratio to PyTorch and to one process of
paceline with the same global batch.  See bench/README.md.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from turns import add_out, run_json, spread, write_rounds

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--python", type=pathlib.Path,
        help="a Python with PyTorch; without it PyTorch is left out")
    add("--model", choices=("lenet", "alexnet"), default="lenet",
        help="[lenet]")
    add("--workers", type=int, default=2, help="[2]")
    add("--batch", type=int, default=32, help="of each worker [32]")
    add("--engines", default="ring,mpi", help="[ring,mpi]")
    add("--rounds", type=int, default=3, help="[3]")
    add("--seconds", type=float, default=5, help="of one run [5]")
    add_out(add)
    return parser.parse_args()


class Paceline:
    def __init__(self, options, name, *flags):
        self.name, self.options, self.flags = name, options, flags
        self.steps = None

    def train(self, steps):
        options = self.options
        source = "digits" if options.model == "lenet" else "synthetic"
        with tempfile.TemporaryDirectory() as folder:
            return run_json([
                options.paceline, "train", options.model, "--data", source,
                "--steps", steps, "--eval-every", "never",
                "--checkpoint-every", "never", "--run", f"{folder}/run",
                "--quiet", "--json", *self.flags])

    def measure(self):
        if self.steps is None:
            first = 200 if self.options.model == "lenet" else 3
            rate = self.train(first)["steps_per_s"]
            self.steps = max(first, int(rate * self.options.seconds))
        return self.train(self.steps)["examples_per_s"]


class Torch:
    name = "PyTorch DDP, gloo"

    def __init__(self, options):
        self.options = options

    def measure(self):
        options = self.options
        return run_json([
            options.python, HERE / "allreduce_torch.py", "--work",
            options.model, "--workers", options.workers, "--batch",
            options.batch, "--seconds", options.seconds])["examples_per_s"]


def configurations(options):
    whole = options.batch * options.workers
    found = [Paceline(options, "single", "--strategy", "single", "--batch",
                      whole, "--threads", os.cpu_count())]
    for engine in options.engines.split(","):
        found.append(Paceline(
            options, engine, "--strategy", "allreduce", "--engine", engine,
            "--workers", options.workers, "--batch", options.batch,
            "--threads", 1))
    if options.python:
        found.append(Torch(options))
    return found


def ratios(rounds, name, other):
    return [r[name] / r[other] for r in rounds
            if name in r and other in r and name != other]


def report(options, configs, rounds):
    print(f"{options.model}, {options.workers} workers, batch {options.batch} "
          f"each, {options.rounds} rounds in turns; median (least-most)\n")
    print("| configuration | examples/s | times PyTorch | of single |\n"
          "|---|--:|--:|--:|")
    for config in configs:
        rates = [r[config.name] for r in rounds if config.name in r]
        if rates:
            print(f"| {config.name} | {spread(rates, 0)} "
                  f"| {spread(ratios(rounds, config.name, Torch.name), 2)} "
                  f"| {spread(ratios(rounds, config.name, 'single'), 2)} |")


def main():
    options = parse_arguments()
    configs = configurations(options)
    rounds = []
    for number in range(1, options.rounds + 1):
        rounds.append({})
        for config in configs:
            try:
                rate = config.measure()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"allreduce: left out: {error}", file=sys.stderr)
                continue
            rounds[-1][config.name] = rate
            print(f"allreduce: round {number}, {config.name}: {rate:,.0f} "
                  "examples/s", file=sys.stderr, flush=True)
    write_rounds(options.out, rounds)
    report(options, configs, rounds)


if __name__ == "__main__":
    main()
