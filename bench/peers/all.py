#!/usr/bin/env python3
"""All comparisons with other systems in sequence, for `make bench-peers`.

Prints the table "Measured" of README.md as Markdown, after the machine, the
date and the commit.  The report of each part and its individual results go to
files.  See bench/README.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import typing

import run
from turns import spread

HERE = pathlib.Path(__file__).resolve().parent
OUT = run.ROOT / "build/peers"
ROUNDS = 3
SERVER = "TensorFlow's parameter server"
DDP = "PyTorch DDP, gloo"
PEER_TEXTS = {
    "tf1": "TensorFlow 1 style", "tf2": "TensorFlow",
    "tf2_loop": "TensorFlow, loop in the graph", "tf2_jit": "TensorFlow, XLA",
    "keras": "Keras", "keras_spe": "Keras, many steps a call",
    "torch": "PyTorch", "torch_compile": "PyTorch, compiled",
    "torch_cl": "PyTorch, channels last",
    "torch_bf16": "PyTorch, autocast to bfloat16",
}


class Part(typing.NamedTuple):
    script: str
    flags: str          # in addition to those of every part
    quick: str          # and for --quick
    environment: str    # whose Python it gets or runs with
    what: str = ""      # of its rows
    pairs: tuple = ()   # (row, ours, ours over TCP or by MPI, peer's)
    peer: str = ""      # its name in a row
    scale: int = 1      # from a rate to what the row counts


def servers(mode):
    return f"{mode} shm", f"{mode} tcp", f"tensorflow {mode}"


def sparse_servers(batch):
    return Part("ps.py", "--work sparse --modes async --workers 2 --batch "
                f"{batch}", "--seconds 0.3", "tf",
                f"sparse, 1 ps + 2 workers, batch {batch}",
                ((", async: examples/s", *servers("async")),), SERVER, batch)


def allreduce(model, title):
    return Part("allreduce.py", f"--model {model}",
                "--seconds 0.3", "pt",
                f"{title}, all-reduce, 2 workers, batch 32 each",
                (("", "ring", "mpi", DDP),), DDP)


def links(model, title, workers, rate):
    return Part("links.py", f"--model {model} --workers {workers} --rate "
                f"{rate}", "--seconds 0.3 --steps 2", "pt",
                f"{title}, all-reduce, {workers} hosts, links of {rate}",
                (("", "paceline auto", "", "DDP"),), DDP)


PARTS = {
    "single": Part(
        "run.py", "--work softmax,lenet,three_blocks,sparse --peers "
        "tf2,tf2_loop,torch:1,torch",
        "--seconds 0.3 --windows 1", "all"),
    "alexnet": Part(
        "run.py", "--work alexnet --seconds 4 --peers "
        "tf2,tf2_jit,torch,torch_cl,torch_bf16",
        "--seconds 0.3 --windows 1", "all"),
    "ps": Part(
        "ps.py", "--work mnist", "--seconds 0.3", "tf",
        "softmax, 1 ps + 3 workers",
        ((", async: gradients/s", *servers("async")),
         (", sync: gradients/s", *servers("sync"))), SERVER),
    "ps_sparse_100": sparse_servers(100),
    "ps_sparse_1000": sparse_servers(1000),
    "allreduce_lenet": allreduce("lenet", "LeNet"),
    "allreduce_alexnet": allreduce("alexnet", "AlexNet"),
    "files": Part(
        "sparse_files.py", "", "--examples 20000", "vw",
        "sparse files, decode and train, batch 100",
        ((", TFRecord", "tfrecord batch 100", "", "vw text"),
         (", cache", "cache batch 100", "", "vw cache")), "Vowpal Wabbit"),
    "links_alexnet_1gbit": links("alexnet", "AlexNet", 2, "1gbit"),
    "links_alexnet_100mbit": links("alexnet", "AlexNet", 2, "100mbit"),
    "links_lenet_100mbit": links("lenet", "LeNet", 3, "100mbit"),
}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--env", type=pathlib.Path, default=OUT,
        help="folder of the environments tf, pt and vw; those that are not\n"
             "there are made (gigabytes from PyPI) [build/peers]")
    add("--mnist", type=pathlib.Path, default=os.environ.get("MNIST_DIR"),
        help="folder of the MNIST files [$MNIST_DIR; else built-in digits]")
    add("--only", default=",".join(PARTS),
        help=f"some of {', '.join(PARTS)} [all]")
    add("--no-peers", action="store_true",
        help="measure paceline alone; no environment is needed")
    add("--quick", action="store_true",
        help="one round of short windows: shows that every part works, its\n"
             "figures mean nothing")
    options = parser.parse_args()
    options.only = [name for name in options.only.split(",") if name]
    for name in options.only:
        if name not in PARTS:
            parser.error(f"--only {name}: expected some of "
                         f"{', '.join(PARTS)}")
    return options


# Measuring.

def peers_flags(options, part):
    """The arguments that name the environments of the peers."""
    if options.no_peers:
        return ["--peers", ""] if part.script == "run.py" else []
    if part.script == "sparse_files.py":
        return []  # its own Python has them
    if part.environment == "pt":
        return ["--python", options.env / "pt/bin/python"]
    return ["--env", options.env]


def command(options, name):
    part = PARTS[name]
    python = sys.executable
    if part.environment == "vw" and not options.no_peers:
        python = options.env / "vw/bin/python"
    words = [python, HERE / part.script, *part.flags.split()]
    if part.script in ("run.py", "ps.py") and options.mnist:
        words += ["--mnist", options.mnist]
    words += part.quick.split() if options.quick else []
    words += ["--rounds", rounds_of(options)]
    return [str(w) for w in
            (*words, *peers_flags(options, part), "--out", results_of(name))]


def rounds_of(options):
    return 1 if options.quick else ROUNDS


def results_of(name):
    return OUT / f"{name}.json"


def measure(options, name):
    """Run a part; its results, or None if it failed."""
    report = OUT / f"{name}.md"
    print(f"bench-peers: {name}", file=sys.stderr, flush=True)
    with open(report, "w") as out:
        done = subprocess.run(command(options, name), stdout=out, check=False)
    if done.returncode != 0:
        print(f"bench-peers: left out: {name}, status {done.returncode}",
              file=sys.stderr)
        return None
    text = results_of(name).read_text()
    if PARTS[name].script != "run.py":
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines()[1:]]


# The table.

def amount(rate):
    """In the table's form: 1.83 M, 63.5 k, 897, 66.5."""
    if rate >= 1e6:
        return f"{rate * 1e-6:.2f} M"
    if rate >= 1e3:
        return f"{rate * 1e-3:.{0 if rate >= 1e5 else 1}f} k"
    return f"{rate:.{run.digits_of(rate)}f}"


def peer_text(name):
    name, _, threads = name.partition(":")
    text = PEER_TEXTS.get(name, name)
    return f"{text}, {threads} thread" if threads == "1" else text


def single_row(results, work, batch, bf16):
    own = [r for r in results if r["work"] == work]
    rates = run.medians_of(own, batch)
    ours = run.fastest(rates, True, bf16)
    peer = run.fastest(rates, False, bf16)
    if ours is None:
        return None
    theirs = ratio = ""
    if peer is not None:
        theirs = f"{peer_text(peer)}: {amount(statistics.median(rates[peer]))}"
        ratio = spread(run.round_ratios(own, batch, ours, peer), 1)
    precision = ", --precision bf16" if bf16 else ""
    return (f"{work}, batch {batch}{precision}",
            amount(statistics.median(rates[ours])), theirs, ratio)


def single_rows(results):
    cells = dict.fromkeys((r["work"], r["batch"], run.is_bf16(r["name"]))
                          for r in results if r["work"] is not None)
    return [row for cell in cells if (row := single_row(results, *cell))]


def least_most(values, text):
    found = sorted(values)
    if not found:
        return ""
    low, high = text(found[0]), text(found[-1])
    return low if low == high else f"{low}-{high}"


def start_rows(results):
    """The start, and the peak memory while softmax trains."""
    def split(found):
        return ([v for n, v in found if n.startswith("paceline")],
                [v for n, v in found if not n.startswith("paceline")])
    starts = split([(r["name"], r["first_step_s"]) for r in results
                    if r["work"] is None])
    peaks = split([(r["name"], r["peak_rss_mb"]) for r in results
                   if r["work"] == "softmax"])
    rows = []
    if starts[0]:
        rows.append(("softmax: start to first step", *(
            least_most(v, "{:.3f} s".format) for v in starts), ""))
    if peaks[0]:
        rows.append(("softmax: peak memory, data included", *(
            least_most(v, "{:.0f} MB".format) for v in peaks), ""))
    return rows


def pair_row(part, rounds, pair):
    """A row of rates of rounds; the second of ours is in brackets."""
    title, ours, other, peer = pair

    def rates(name):
        return [r[name] * part.scale for r in rounds if name in r]

    def ratios(name):
        return [r[name] / r[peer] for r in rounds if name in r and peer in r]
    if not rates(ours):
        return None
    found = amount(statistics.median(rates(ours)))
    ratio = spread(ratios(ours), 1)
    label = "MPI" if other == "mpi" else "TCP"
    if rates(other):
        found += f" ({label} {amount(statistics.median(rates(other)))})"
        ratio += f"; {label} {spread(ratios(other), 1)}" if ratio else ""
    theirs = rates(peer)
    return (part.what + title, found, f"{part.peer}: "
            f"{amount(statistics.median(theirs))}" if theirs else "", ratio)


def rows_of(name, results):
    part = PARTS[name]
    if part.script == "run.py":
        return single_rows(results) + start_rows(results)
    rows = (pair_row(part, results, pair) for pair in part.pairs)
    return [row for row in rows if row]


def head(options, busy):
    text = (f"# paceline and its peers\n\n{run.processor()}, "
            f"{os.cpu_count()} threads; paceline {run.commit()}; "
            f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}.\n"
            f"{'MNIST' if options.mnist else 'Built-in digits'}; rounds in turns: "
            f"{rounds_of(options)}; medians of examples/s unless\nthe row says "
            "otherwise; the ratio to the fastest peer is the median of the "
            "rounds, with\nthe least and the most.\n")
    if busy > run.DISTURBED:
        text += (f"\n**Disturbed: others kept up to {busy:.1f} processors "
                 "busy. Not to be published.**\n")
    return text


def busiest(results):
    """Processors kept busy by others, if the part measured it."""
    return max((r.get("foreign_cpus", 0) for r in results), default=0)


def main():
    options = parse_arguments()
    OUT.mkdir(parents=True, exist_ok=True)
    for name in () if options.no_peers else run.ENVIRONMENTS:
        run.make_environment(name, options.env)
    rows, busy = [], 0
    for name in options.only:
        busy = max(busy, run.foreign_now())
        results = measure(options, name)
        if results is not None:
            busy = max(busy, busiest(results))
            rows += rows_of(name, results)
    print(head(options, busy))
    print("| | paceline | fastest peer | ratio |\n|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(f"bench-peers: the reports of the parts are in {OUT}",
          file=sys.stderr)


if __name__ == "__main__":
    main()
