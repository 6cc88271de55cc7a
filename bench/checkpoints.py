#!/usr/bin/env python3
"""What checkpoints cost a job with parameter servers.

Trains a model with and without checkpoints in alternation, and prints the
seconds of training that one checkpoint costs, that cost as a share of the
examples per second at one checkpoint a minute, and the peak memory of a server.
The goal for the sparse model is 4 bytes per feature and optimizer slot plus
100 MB, a quarter more while a checkpoint is written.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

FEATURES = 33762578
SLOTS = {"sgd": 0, "momentum": 1, "adagrad": 1, "rmsprop": 1, "ftrl": 2,
         "adam": 2}
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


def server_mb(job):
    """The peak memory of the job's servers so far."""
    most = 0
    try:
        children = pathlib.Path(
            f"/proc/{job.pid}/task/{job.pid}/children").read_text()
        for pid in children.split():
            task = pathlib.Path(f"/proc/{pid}")
            words = task.joinpath("cmdline").read_bytes().split(b"\0")
            if words[words.index(b"--role") + 1] != b"ps":
                continue
            for line in task.joinpath("status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    most = max(most, int(line.split()[1]) * 1024 / 1e6)
    except (OSError, ValueError):
        pass  # it has just ended or started
    return most


def train(args, every):
    """Seconds from the first update to the last, the checkpoints in between,
    and the peak memory of a server."""
    data = ["--data", "synthetic", "--examples",
            max(256, 2 * args.batch * args.workers)]
    if args.model == "sparse":
        data = ["--features", FEATURES, "--examples", 20000]
    with tempfile.TemporaryDirectory() as folder:
        words = [args.paceline, "train", args.model, *data,
                 "--batch", args.batch, "--workers", args.workers, "--ps",
                 args.ps, "--mode", args.mode, "--optimizer", args.optimizer,
                 "--lr", "0.001", "--steps", args.steps, "--eval-every",
                 "never", "--checkpoint-every", every, "--keep", "1", "--run",
                 f"{folder}/run", "--json", "--quiet", *args.flags]
        job = subprocess.Popen([str(word) for word in words],
                               stdout=subprocess.PIPE)
        most = 0
        while job.poll() is None:
            most = max(most, server_mb(job))
            time.sleep(0.02)
        lines = job.stdout.read().splitlines()
    if job.returncode != 0:
        raise SystemExit(f"paceline ended with status {job.returncode}")
    count = 0 if every == "never" else (args.steps - 1) // args.every
    return json.loads(lines[-1])["seconds"], count, most


def goals_mb(args):
    """Of a server, without a checkpoint and while one is written."""
    table = 4 * FEATURES * (1 + SLOTS[args.optimizer]) / args.ps / 1e6
    return table + 100, 1.25 * table + 100


def main():
    args = parse_arguments()
    costs, shares, memory = [], [], [0, 0]
    for turn in range(args.rounds):
        plain, _, plain_mb = train(args, "never")
        saving, count, saving_mb = train(args, args.every)
        cost = (saving - plain) / count
        costs.append(cost)
        shares.append(100 * cost / 60)
        print(f"round {turn + 1}: {plain:.2f} s without, {saving:.2f} s with "
              f"{count} checkpoints: {cost:.3f} s each; most memory of a "
              f"server {plain_mb:.0f} and {saving_mb:.0f} MB", flush=True)
        memory = [max(memory[0], plain_mb), max(memory[1], saving_mb)]
    print(f"{args.model}, {args.workers} workers, {args.ps} ps, {args.mode}: "
          f"{statistics.median(costs):.3f} s of training a checkpoint, "
          f"{statistics.median(shares):.2f} % at one a minute")
    if args.model == "sparse":
        for what, most, goal in zip(("without", "with"), memory,
                                    goals_mb(args)):
            print(f"memory of a server {what} checkpoints, {args.optimizer}: "
                  f"{most:.0f} MB, goal at most {goal:.0f}: "
                  f"{'reached' if most <= goal else 'MISSED'}")


if __name__ == "__main__":
    main()
