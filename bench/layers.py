#!/usr/bin/env python3
"""Where the time of a training step goes, operator by operator.

Trains on one thread with --profile and prints a Markdown table: for each step
of the plan the lower quartile over the run, which other load hardly changes,
times the number of its runs per batch.  GFLOP/s count the products of the
layer as `paceline models` does, even if a kernel skips some at an edge, so a
share may exceed 100 %.  The layers of the model must follow one another.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

# The names of gradients in a trace, and the layers whose products they repeat.
GRADIENTS = {"matmul": "inner", "inner_weights": "inner",
             "conv2d_src": "conv2d", "conv2d_weights": "conv2d"}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paceline", default="build/paceline",
                        help="the program, or an example [build/paceline]")
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--data", default="digits")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--examples", type=int, default=40000,
                        help="to train on [40000]")
    parser.add_argument("--peak", type=float,
                        help="GFLOP/s of one thread; else paceline-bench, "
                        "beside the program, measures them")
    return parser.parse_args()


def measured_peak(program):
    bench = pathlib.Path(program).resolve().parent / "paceline-bench"
    lines = subprocess.run([bench, "--only", "limits", "--json"], check=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return max(row["1_thread_max"] for row in map(json.loads, lines)
               if row.get("unit") == "GFLOP/s")


def products(program, model):
    """{operator: [(layer, multiply-adds of one example)]} in order."""
    text = subprocess.run([program, "models", model], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    layers = collections.defaultdict(list)
    for line in text.splitlines():
        words = line.split()
        if len(words) > 3 and words[1] in GRADIENTS.values():
            layers[words[1]].append((words[0], int(words[-1])))
    return layers


def profile(o):
    """The spans of one thread, in order."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        subprocess.run([o.paceline, "train", o.model, "--data", o.data,
                        "--batch", str(o.batch), "--threads", "1",
                        "--steps", str(max(o.examples // o.batch, 10)),
                        "--eval-every", "never", "--run", run, "--profile"],
                       check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        trace = json.loads((run / "trace" / "worker-0.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    return [e for e in events if e.get("ph") == "X"]


def collect(spans):
    """{step of the plan: [microseconds]}; a second step of a name within a
    shard converts its result."""
    times, seen = {}, collections.Counter()
    for span in spans:
        name = span["name"]
        if name == "input":
            seen.clear()
        seen[name] += 1
        again = seen[name] > 1 and name != "combine"
        times.setdefault(name + (", converted" if again else ""),
                         []).append(span["dur"])
    return times


def layer_of(names, layers):
    """{step: (layer, multiply-adds)}; gradients come last layer first."""
    found = {layer: (layer, count) for kind in layers.values()
             for layer, count in kind}
    for prefix, operator in GRADIENTS.items():
        mine = [n for n in names if n.rstrip("0123456789") == prefix]
        found.update(zip(mine, reversed(layers[operator])))
    return found


def main():
    o = options()
    peak = o.peak or measured_peak(o.paceline)
    spans = profile(o)
    updates = len({span["args"]["step"] for span in spans})
    times = collect(spans)
    layers = layer_of(times, products(o.paceline, o.model))
    print(f"{o.model}, batch {o.batch}, one thread, peak {peak:.1f} GFLOP/s\n")
    print("| step | layer | us a batch | GFLOP/s | share |")
    print("|---|---|---|---|---|")
    total = flops = 0.0
    for name, each in times.items():
        us = sorted(each)[len(each) // 4] * round(len(each) / updates)
        layer, count = layers.get(name, ("", 0))
        rate = 2e-3 * count * o.batch / us if count else 0.0
        total += us
        flops += 2e-3 * count * o.batch
        print(f"| {name} | {layer} | {us:.1f} |" +
              (f" {rate:.1f} | {rate / peak:.0%} |" if count else " | |"))
    print(f"| all | | {total:.1f} | {flops / total:.1f} |"
          f" {flops / total / peak:.0%} |")


if __name__ == "__main__":
    main()
