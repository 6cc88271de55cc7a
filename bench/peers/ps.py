#!/usr/bin/env python3
"""Parameter servers, alternating: paceline's over shared memory and TCP, and
TensorFlow's own, on one machine: softmax regression on MNIST, or logistic
regression over 33,762,578 sparse features.

Each round runs every configuration once.  Prints a Markdown table: gradients
all workers made a second, the ratio to TensorFlow and to one process of
paceline on all cores; for --work sparse also examples a second, the bytes that
a worker sent and received per example, and their ratio to the least: the
delta-coded keys of a batch once and 4 bytes per value in each direction.  See
bench/README.md.
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
FEATURES = 33762578  # of synthetic-sparse


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline")
    add("--env", type=pathlib.Path,
        help="folder with tf/bin/python; without it TensorFlow is left out")
    add("--mnist", type=pathlib.Path, default=os.environ.get("MNIST_DIR"),
        help="folder of the MNIST files [$MNIST_DIR; else built-in digits]")
    add("--work", choices=("mnist", "sparse"), default="mnist",
        help="[mnist]")
    add("--modes", default="async,sync", help="[async,sync]")
    add("--workers", type=int, default=3, help="[3]")
    add("--batch", type=int, default=100, help="[100]")
    add("--rounds", type=int, default=3, help="[3]")
    add("--seconds", type=float, default=3, help="of one run [3]")
    add_out(add)
    return parser.parse_args()


class Paceline:
    def __init__(self, options, name, *flags):
        self.name, self.options, self.flags = name, options, flags
        self.steps = None

    def train(self, steps):
        options = self.options
        model = ["sparse"]
        if options.work == "mnist":
            model = ["softmax", "--data", f"mnist:{options.mnist}"
                     if options.mnist else "digits"]
        with tempfile.TemporaryDirectory() as folder:
            return run_json([
                options.paceline, "train", *model,
                "--batch", options.batch, "--lr", 0.5, "--steps", steps,
                "--eval-every", "never", "--checkpoint-every", "never",
                "--run", f"{folder}/run", "--quiet", "--json", *self.flags])

    def measure(self):
        if self.steps is None:
            rate = self.train(2000)["steps_per_s"]
            self.steps = max(100, int(rate * self.options.seconds))
        result = self.train(self.steps)
        each = result["workers"] if result["mode"] == "sync" else 1
        last = (result.get("per_worker") or [{}])[-1]
        sent = last.get("bytes_sent", 0) + last.get("bytes_received", 0)
        return {"gradients_per_s": result["steps_per_s"] * each,
                "worker_mb": result["peak_rss_mb"],
                "bytes": sent / max(1, last.get("examples", 1))}


class TensorFlow:
    def __init__(self, options, mode):
        self.name, self.options, self.mode = f"tensorflow {mode}", options, mode

    def measure(self):
        options = self.options
        data = []
        if options.work == "mnist":
            data = ["--data", options.mnist or make_digits(options)]
        return run_json([
            options.env / "tf/bin/python", HERE / "ps_tf.py", "--work",
            options.work, *data, "--mode", self.mode, "--workers", options.workers, "--batch",
            options.batch, "--seconds", options.seconds])


def make_digits(options):
    folder = ROOT / "build/peers/digits"
    if not folder.exists():
        subprocess.run([options.paceline, "data", "digits", "--out", folder],
                       check=True, stdout=sys.stderr)
    return folder


def list_bytes(keys):
    """Bytes of sorted keys in messages (docs/formats/wire.md)."""
    total = before = 0
    for at in range(0, len(keys), 32):
        widest = 0
        block = keys[at:at + 32]
        for key in block:
            widest = max(widest, key - before)
            before = key + 1
        total += 1 + (len(block) * widest.bit_length() + 7) // 8
    return total


def least_bytes(options):
    """Of an example: the distinct keys of batches of the same data."""
    batches, total = max(3, 10000 // options.batch), 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([options.paceline, "data", "convert",
                        "synthetic-sparse", f"libsvm:{folder}/examples",
                        "--examples", str(batches * options.batch), "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
        with open(f"{folder}/examples", encoding="ascii") as file:
            for _ in range(batches):
                keys = {FEATURES}  # the bias
                for _ in range(options.batch):
                    keys.update(int(word.partition(":")[0])
                                for word in file.readline().split()[1:])
                total += list_bytes(sorted(keys)) + 8 * len(keys)
    return total / (batches * options.batch)


def configurations(options):
    job = ("--workers", options.workers, "--ps", 1)
    found = [Paceline(options, "single", "--threads", os.cpu_count())]
    for mode in options.modes.split(","):
        for transport in ("shm", "tcp"):
            found.append(Paceline(options, f"{mode} {transport}", *job,
                                  "--mode", mode, "--transport", transport))
        if options.env:
            found.append(TensorFlow(options, mode))
    return found


def ratios(rounds, name, other):
    return [r[name]["gradients_per_s"] / r[other]["gradients_per_s"]
            for r in rounds if name in r and other in r]


def report(options, configs, rounds):
    print(f"{options.work}: {options.workers} workers, 1 ps, batch "
          f"{options.batch}, "
          f"{options.rounds} rounds in turns; median (least-most)\n")
    sparse = options.work == "sparse"
    more, rule = (" examples/s | bytes an example | of the least |",
                  "--:|--:|--:|") if sparse else ("", "")
    least = least_bytes(options) if sparse else 0
    print("| configuration | gradients/s | times TensorFlow | of single "
          f"| worker MB |{more}\n|---|--:|--:|--:|--:|{rule}")
    for config in configs:
        own = [r[config.name] for r in rounds if config.name in r]
        if not own:
            continue
        peer = f"tensorflow {config.name.split()[0]}"
        if config.name.startswith("tensorflow"):
            peer = None
        rates = [r["gradients_per_s"] for r in own]
        print(f"| {config.name} | {spread(rates, 0)} "
              f"| {spread(ratios(rounds, config.name, peer), 1)} "
              f"| {spread(ratios(rounds, config.name, 'single'), 2)} "
              f"| {max(r['worker_mb'] for r in own):.0f} |", end="")
        if sparse:
            examples = [rate * options.batch for rate in rates]
            moved = max(r.get("bytes", 0) for r in own)
            share = f"{moved:.0f} | {moved / least:.3f}" if moved else " | "
            print(f" {spread(examples, 0)} | {share} |", end="")
        print()


def main():
    options = parse_arguments()
    configs = configurations(options)
    rounds = []
    for number in range(1, options.rounds + 1):
        rounds.append({})
        for config in configs:
            try:
                result = config.measure()
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"ps: left out: {error}", file=sys.stderr)
                continue
            rounds[-1][config.name] = result
            print(f"ps: round {number}, {config.name}: "
                  f"{result['gradients_per_s']:,.0f} gradients/s",
                  file=sys.stderr)
    write_rounds(options.out, [{name: r["gradients_per_s"]
                                for name, r in found.items()}
                               for found in rounds])
    report(options, configs, rounds)


if __name__ == "__main__":
    main()
