#!/usr/bin/env python3
"""One pass over a file of sparse examples, decode and train, alternating
with Vowpal Wabbit, if installed for this Python (`pip install vowpalwabbit`).

Each round runs every configuration once.  A text pass is the first one: for
paceline the whole time from the start of the process to the last step, for
Vowpal Wabbit the same without the start of Python.  A cached pass, of both, is
a tenth of the time of ten more passes.  All files are cached.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from turns import add_out, spread, write_rounds

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FEATURES = 33762578
FORMATS = ("libsvm", "tfrecord", "cache")
STYLES = {"batch 100": ["--batch", "100"], "hogwild": ["--hogwild"]}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline",
        help="the program [build/paceline]")
    add("--examples", type=int, default=500000, help="[500000]")
    add("--rounds", type=int, default=3, help="[3]")
    add_out(add)
    return parser.parse_args()


def write_files(options, folder):
    """The same examples for all; Vowpal Wabbit has its own text."""
    for kind in FORMATS:
        subprocess.run([options.paceline, "data", "convert",
                        "synthetic-sparse", f"{kind}:{folder}/{kind}",
                        "--examples", str(options.examples), "--quiet"],
                       check=True, stdout=subprocess.DEVNULL)
    with open(folder / "libsvm") as src, open(folder / "vw", "w") as dst:
        for line in src:
            label, rest = line.split(" ", 1)
            dst.write(f"{1 if label == '1' else -1} | "
                      f"{rest.replace(':1', '')}")


def seconds_of_vw(folder, passes):
    import vowpalwabbit
    begin = time.monotonic()
    vowpalwabbit.Workspace(
        f"-d {folder}/vw -b 26 --loss_function logistic --sgd --passes "
        f"{passes} -c -k --cache_file {folder}/vw.cache --holdout_off "
        f"--quiet").finish()
    return time.monotonic() - begin


def seconds_of_paceline(options, folder, kind, style, passes):
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    done = subprocess.run(
        [options.paceline, "train", "sparse", "--data",
         f"{kind}:{folder}/{kind}", "--features", str(FEATURES),
         "--epochs", str(passes), "--shuffle-buffer", "32768", "--eval-every", "never", "--checkpoint-every", "never", *style, "--run", run,
         "--quiet", "--json"],
        check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return found["startup_seconds"] + found["seconds"]


def rates_of(options, seconds):
    """Of a first and of a further pass, from the times of 1 and 11."""
    one = seconds(1)
    return options.examples / one, 10 * options.examples / (seconds(11) - one)


def measure_round(options, folder):
    rates = {}
    if importlib.util.find_spec("vowpalwabbit"):
        rates["vw text"], rates["vw cache"] = rates_of(
            options, lambda n: seconds_of_vw(folder, n))
    for kind in FORMATS:
        for name, style in STYLES.items():
            first, further = rates_of(
                options, lambda n: seconds_of_paceline(options, folder, kind,
                                                       style, n))
            rates[f"{kind} {name}"] = further if kind == "cache" else first
    return rates


def report(rounds):
    print("| what | examples/s | x Vowpal Wabbit, same round |")
    print("|---|--:|--:|")
    for name in rounds[0]:
        rates = [r[name] for r in rounds]
        peer = "vw cache" if name.startswith("cache") else "vw text"
        ratios = [r[name] / r[peer] for r in rounds if peer in r]
        print(f"| {name} | {statistics.median(rates):,.0f} | "
              f"{spread(ratios, 1)} |")


def main():
    options = parse_arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="paceline-vw-"))
    try:
        write_files(options, folder)
        rounds = []
        for number in range(1, options.rounds + 1):
            rounds.append(measure_round(options, folder))
            print(f"round {number} of {options.rounds}, load "
                  f"{os.getloadavg()[0]:.1f}", file=sys.stderr)
        write_rounds(options.out, rounds)
        report(rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
