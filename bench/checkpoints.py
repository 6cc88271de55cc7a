#!/usr/bin/env python3
"""What checkpoints cost a job with parameter servers.

Trains a model with and without checkpoints, the two in turn, and prints the
seconds of training that one checkpoint costs, what that is of the examples a
second at one checkpoint a minute, and the most memory of a server.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--model", default="alexnet", help="[alexnet]")
    add("--batch", type=int, default=16, help="per worker [16]")
    add("--workers", type=int, default=2, help="[2]")
    add("--ps", type=int, default=1, help="[1]")
    add("--mode", default="sync", help="[sync]")
    add("--optimizer", default="momentum", help="[momentum]")
    add("--steps", type=int, default=60, help="of a run [60]")
    add("--every", type=int, default=10, help="steps of a checkpoint [10]")
    add("--rounds", type=int, default=3, help="[3]")
    add("flags", nargs="*", help="more for `paceline train`, behind --")
    return parser.parse_args()


def train(args, every):
    """Seconds from the first update to the last, and the checkpoints within."""
    with tempfile.TemporaryDirectory() as folder:
        words = [args.paceline, "train", args.model, "--data", "synthetic",
                 "--examples", max(256, 2 * args.batch * args.workers),
                 "--batch", args.batch, "--workers", args.workers, "--ps",
                 args.ps, "--mode", args.mode, "--optimizer", args.optimizer,
                 "--lr", "0.001", "--steps", args.steps, "--eval-every",
                 "never", "--checkpoint-every", every, "--keep", "1", "--run",
                 f"{folder}/run", "--json", "--quiet", *args.flags]
        done = subprocess.run([str(word) for word in words], check=True,
                              stdout=subprocess.PIPE)
    summary = json.loads(done.stdout.splitlines()[-1])
    count = 0 if every == "never" else (args.steps - 1) // args.every
    return summary["seconds"], count, summary["peak_rss_mb"]


def main():
    args = parse_arguments()
    costs, shares = [], []
    for turn in range(args.rounds):
        plain, _, plain_mb = train(args, "never")
        saving, count, saving_mb = train(args, args.every)
        cost = (saving - plain) / count
        costs.append(cost)
        shares.append(100 * cost / 60)
        print(f"round {turn + 1}: {plain:.2f} s without, {saving:.2f} s with "
              f"{count} checkpoints: {cost:.3f} s each; most memory of a task "
              f"{plain_mb:.0f} and {saving_mb:.0f} MB", flush=True)
    print(f"{args.model}, {args.workers} workers, {args.ps} ps, {args.mode}: "
          f"{statistics.median(costs):.3f} s of training a checkpoint, "
          f"{statistics.median(shares):.2f} % at one a minute")


if __name__ == "__main__":
    main()
