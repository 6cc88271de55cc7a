#!/usr/bin/env python3
"""Measure paceline and its peers in turns, on softmax regression.

Each round runs every configuration once, one after the other, so that a slow
hour of the machine slows all of them.  Prints a Markdown report; the single
results go to a file of JSON lines.  See bench/README.md.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BATCHES = (10, 100, 500)
ENVIRONMENTS = {"tf": ["tensorflow==2.21.0"], "pt": ["torch==2.15.0", "numpy"]}
PEERS = ("tf1", "tf2", "tf2_loop", "keras", "keras_spe", "torch",
         "torch_compile")
DISTURBED = 0.10  # processors kept busy by others
CHILD_TIMEOUT_S = 600


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--paceline", type=pathlib.Path, default=ROOT / "build/paceline",
        help="the program [build/paceline]")
    add("--env", type=pathlib.Path,
        help="folder with tf/bin/python and pt/bin/python; without it they\n"
             "are made in build/peers (gigabytes from PyPI)")
    add("--mnist", type=pathlib.Path, default=os.environ.get("MNIST_DIR"),
        help="folder of the MNIST files [$MNIST_DIR; else built-in digits]")
    add("--peers", default="tf2,tf2_loop,torch:1,torch",
        help=f"some of {', '.join(PEERS)};\n"
             "with :N for N threads instead of all "
             "[tf2,tf2_loop,torch:1,torch]")
    add("--batches", default=",".join(map(str, BATCHES)), help="[10,100,500]")
    add("--rounds", type=int, default=3, help="[3]")
    add("--seconds", type=float, default=2, help="of one window [2]")
    add("--windows", type=int, default=3, help="in each run [3]")
    add("--out", type=pathlib.Path, default=ROOT / "build/peers/results.jsonl",
        help="JSON lines [build/peers/results.jsonl]")
    return parser.parse_args()


# The machine.

def busy_seconds():
    """Processor seconds spent by all processes, and taken by the host."""
    with open("/proc/stat") as file:
        v = [int(x) for x in file.readline().split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / tick


def own_seconds():
    """Processor seconds of this process and its ended children."""
    return sum(os.times()[:4])


class Watch:
    """How many processors others kept busy between start and stop."""

    def __init__(self):
        self.time, self.busy = time.monotonic(), busy_seconds()
        self.own = own_seconds()

    def stop(self):
        wall = max(time.monotonic() - self.time, 0.01)
        if wall < 0.5:  # the system counts in hundredths of a second
            return 0.0
        foreign = busy_seconds() - self.busy - (own_seconds() - self.own)
        return max(0.0, foreign / wall)


def foreign_now(seconds=2):
    watch = Watch()
    time.sleep(seconds)
    return watch.stop()


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"


def commit():
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
            capture_output=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


# Running one thing.

def run_child(argv):
    """Run to the end: (last line of the output as JSON, seconds, peak MB).

    This program stays small on purpose: a child's peak starts with that of
    the process it was started from."""
    begin = time.monotonic()
    child = subprocess.Popen([str(a) for a in argv], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    errors = []
    reader = threading.Thread(
        target=lambda: errors.append(child.stderr.read()))
    reader.start()
    limit = threading.Timer(CHILD_TIMEOUT_S, child.kill)
    limit.start()
    lines = child.stdout.read().strip().splitlines()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    limit.cancel()
    reader.join()
    child.stdout.close()
    child.stderr.close()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0 or not lines:
        tail = "\n".join(errors[0].splitlines()[-15:])
        raise RuntimeError(f"{' '.join(map(str, argv))}: status "
                           f"{child.returncode}\n{tail}")
    return json.loads(lines[-1]), seconds, usage.ru_maxrss * 1024 / 1e6


class Paceline:
    """The configuration `paceline` or `paceline:N`."""

    def __init__(self, options, name):
        self.name, self.options = name, options
        _, _, threads = name.partition(":")
        self.threads = int(threads or os.cpu_count())
        self.steps = {}  # of a window, by batch

    def train(self, batch, steps):
        run = self.options.work / "run"
        subprocess.run(["rm", "-rf", run], check=True)
        return run_child([
            self.options.paceline, "train", "softmax", "--data",
            self.options.source, "--batch", batch, "--threads", self.threads,
            "--steps", steps, "--lr", "0.5", "--eval-every", "never",
            "--checkpoint-every", "never", "--run", run, "--quiet", "--json"])

    def speed(self, batch):
        """A window is a run of its own; its start is not counted, as with the
        peers."""
        if batch not in self.steps:
            result, _, _ = self.train(batch, 100000 // batch)
            self.steps[batch] = max(
                1, int(result["steps_per_s"] * self.options.seconds))
        rates, peak = [], 0
        for _ in range(self.options.windows):
            result, _, mb = self.train(batch, self.steps[batch])
            rates.append(result["steps_per_s"])
            peak = max(peak, mb)
        return {"windows": rates, "peak_rss_mb": peak}

    def start(self):
        """To the exit of the process: an upper bound of the first step."""
        result, seconds, peak = self.train(100, 1)
        return {"first_step_s": seconds, "peak_rss_mb": peak,
                "startup_s": result["startup_seconds"]}


class Peer:
    """A configuration of lr_mnist.py, `torch` or `torch:1`."""

    def __init__(self, options, name):
        self.name, self.options = name, options
        self.peer, _, threads = name.partition(":")
        self.threads = int(threads or os.cpu_count())
        where = "pt" if self.peer.startswith("torch") else "tf"
        self.python = options.python(where)

    def run(self, script, *more):
        return run_child([self.python, HERE / script, "--peer", self.peer,
                          "--data", self.options.data, *more])

    def speed(self, batch):
        result, _, peak = self.run(
            "lr_mnist.py", "--batch", batch, "--threads", self.threads,
            "--seconds", self.options.seconds, "--windows",
            self.options.windows)
        return {"windows": result["windows"], "peak_rss_mb": peak,
                "version": result["version"]}

    def start(self):
        result, _, peak = self.run("startup.py")
        return {"first_step_s": result["first_step_s"], "peak_rss_mb": peak}


# Preparing.

def make_environment(name, folder):
    python = folder / name / "bin/python"
    if not python.exists():
        print(f"peers: making {folder / name} ({ENVIRONMENTS[name][0]})",
              file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", folder / name],
                       check=True)
        subprocess.run([python, "-m", "pip", "install", "-q",
                        "--disable-pip-version-check", *ENVIRONMENTS[name]],
                       check=True)
    return python


def prepare(options):
    """Data, environments and a place to work."""
    options.work = ROOT / "build/peers"
    options.work.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if not options.paceline.exists():
        sys.exit(f"{options.paceline} is not there: make build")
    if options.mnist:
        options.data = pathlib.Path(options.mnist)
        options.source = f"mnist:{options.data}"
    else:
        options.data = options.work / "digits"
        options.source = f"idx:{options.data}"
        if not options.data.exists():
            subprocess.run([options.paceline, "data", "digits", "--out",
                            options.data], check=True, stdout=sys.stderr)
    pythons = {}

    def python(name):
        if options.env:
            return options.env / name / "bin/python"
        if name not in pythons:
            pythons[name] = make_environment(name, options.work)
        return pythons[name]
    options.python = python


def configurations(options):
    ours = [Paceline(options, "paceline:1"), Paceline(options, "paceline")]
    if os.cpu_count() == 1:
        ours.pop()
    names = [name for name in options.peers.split(",") if name]
    for name in names:
        if name.partition(":")[0] not in PEERS:
            sys.exit(f"--peers {name}: expected some of {', '.join(PEERS)}")
    return ours + [Peer(options, name) for name in names]


# Measuring.

def turns(options, configs):
    """(round, configuration, batch or None for a start) in measuring order."""
    batches = [int(b) for b in options.batches.split(",")]
    starts, seen = [], set()
    for config in configs:  # threads and loops make no difference to a start
        kind = config.name.partition(":")[0].removesuffix("_loop")
        if kind in ("paceline", "tf1", "tf2", "torch") and kind not in seen:
            seen.add(kind)
            start = type(config)(options, kind)
            starts.append(start)
    for number in range(1, options.rounds + 1):
        for batch in batches:
            for config in configs:
                yield number, config, batch
        for start in starts:
            yield number, start, None


def measure(options, configs, out):
    results = []
    for number, config, batch in turns(options, configs):
        watch = Watch()
        try:
            result = config.start() if batch is None else config.speed(batch)
        except (RuntimeError, json.JSONDecodeError) as error:
            print(f"peers: left out: {error}", file=sys.stderr)
            continue
        result.update(name=config.name, threads=config.threads, batch=batch,
                      round=number, foreign_cpus=round(watch.stop(), 2))
        results.append(result)
        out.write(json.dumps(result) + "\n")
        out.flush()
        what = (f"first step after {result['first_step_s']:.3f} s"
                if batch is None else
                f"{batch * statistics.median(result['windows']):,.0f} ex/s")
        print(f"peers: round {number}, {config.name}, "
              f"{'start' if batch is None else f'batch {batch}'}: {what}",
              file=sys.stderr)
    return results


# Reporting.

def medians_of(results, batch):
    """{name: list of examples/s in all windows of all rounds}"""
    rates = {}
    for r in results:
        if r["batch"] == batch:
            rates.setdefault(r["name"], []).extend(
                batch * w for w in r["windows"])
    return rates


def round_ratios(results, batch, name, other):
    """The ratio of two configurations in each round: neighbours in time."""
    by_round = {}
    for r in results:
        if r["batch"] == batch and r["name"] in (name, other):
            by_round.setdefault(r["round"], {})[r["name"]] = \
                statistics.median(r["windows"])
    return [v[name] / v[other] for v in by_round.values() if len(v) == 2]


def spread(values, digits=0):
    def text(x):
        return f"{x:,.{digits}f}"
    return (f"{text(statistics.median(values))} "
            f"({text(min(values))}-{text(max(values))})")


def report_batch(results, batch):
    rates = medians_of(results, batch)
    theirs = [n for n in rates if not n.startswith("paceline")]
    best = max(theirs, key=lambda n: statistics.median(rates[n]), default=None)
    for name in sorted(rates, key=lambda n: -statistics.median(rates[n])):
        runs = [r for r in results
                if r["batch"] == batch and r["name"] == name]
        ratio = ""
        if name == best:
            ratio = "fastest peer"
        elif best and name.startswith("paceline"):
            found = round_ratios(results, batch, name, best)
            ratio = spread(found, 2) if found else ""
        foreign = max(r["foreign_cpus"] for r in runs)
        peak = max(r["peak_rss_mb"] for r in runs)
        print(f"| {batch} | {name.partition(':')[0]} | {runs[0]['threads']} "
              f"| {spread(rates[name])} | {ratio} | {peak:.0f} "
              f"| {foreign:.2f} |")


def report_starts(results):
    names = dict.fromkeys(r["name"] for r in results if r["batch"] is None)
    print("| configuration | start to first step, s | peak RSS MB "
          "| foreign CPUs |\n|---|--:|--:|--:|")
    for name in names:
        runs = [r for r in results
                if r["batch"] is None and r["name"] == name]
        print(f"| {name} | {spread([r['first_step_s'] for r in runs], 3)} "
              f"| {max(r['peak_rss_mb'] for r in runs):.0f} "
              f"| {max(r['foreign_cpus'] for r in runs):.2f} |")


def report(options, results, machine):
    print(f"# paceline and its peers\n\n{machine['cpu']}, "
          f"{machine['threads']} threads; paceline {machine['commit']}; "
          f"{machine['versions']}; {machine['date']}.\nSoftmax regression 784 "
          f"x 10, SGD, {machine['data']}; {options.rounds} rounds in turns, "
          f"{options.windows} windows of {options.seconds:g} s each.\n")
    worst = max([machine["foreign_cpus"]] +
                [r["foreign_cpus"] for r in results])
    if worst > DISTURBED:
        print(f"**Disturbed: others kept up to {worst:.1f} processors busy. "
              "Not to be published.**\n")
    print("Median over all windows (slowest-fastest).  Ratio: to the fastest "
          "peer of that batch\nsize, median of the rounds (least-most).\n")
    print("| batch | configuration | threads | examples/s | ratio "
          "| peak RSS MB | foreign CPUs |\n|--:|---|--:|--:|--:|--:|--:|")
    for batch in dict.fromkeys(r["batch"] for r in results if r["batch"]):
        report_batch(results, batch)
    print("\npaceline's start is measured to the exit of the process, with "
          "its checkpoint; the others\nsay themselves when the first step is "
          "done.\n")
    report_starts(results)


def main():
    options = parse_arguments()
    prepare(options)
    configs = configurations(options)
    machine = {"cpu": processor(), "threads": os.cpu_count(),
               "commit": commit(), "data": "MNIST" if options.mnist
               else "built-in digits", "foreign_cpus": round(foreign_now(), 2),
               "date": datetime.datetime.now(datetime.timezone.utc)
               .strftime("%Y-%m-%d %H:%M UTC")}
    if machine["foreign_cpus"] > DISTURBED:
        print(f"peers: others keep {machine['foreign_cpus']} processors busy",
              file=sys.stderr)
    with open(options.out, "w") as out:
        out.write(json.dumps({"machine": machine}) + "\n")
        results = measure(options, configs, out)
    versions = {r["name"].partition(":")[0]: r["version"]
                for r in results if "version" in r}
    machine["versions"] = ", ".join(f"{n} {v}" for n, v in versions.items()) \
        or "no peers"
    report(options, results, machine)
    print(f"peers: single results are in {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
