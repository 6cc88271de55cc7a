#!/usr/bin/env python3
"""Measure paceline and its peers, alternating.

Each round runs every configuration once, so that a slow hour of the machine
affects all of them.  Prints a Markdown report; the individual results go to a
file of JSON lines.  See bench/README.md.
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
import typing

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ENVIRONMENTS = {"tf": ["tensorflow==2.21.0"], "pt": ["torch==2.15.0", "numpy"],
                "vw": ["vowpalwabbit"]}
CNN_PEERS = ("tf2", "tf2_loop", "keras", "torch", "torch_compile")
ALEXNET_PEERS = ("tf2", "tf2_jit", "torch", "torch_cl", "torch_bf16")
SPARSE_PEERS = ("tf2", "tf2_loop", "torch")
SOFTMAX_PEERS = ("tf1", "keras_spe", *CNN_PEERS)
PEERS = tuple(dict.fromkeys(SOFTMAX_PEERS + ALEXNET_PEERS))


class Workload(typing.NamedTuple):
    title: str
    batches: tuple
    flags: tuple       # of paceline, in addition to those of every workload
    script: tuple      # of the peers, with its arguments
    peers: tuple       # supported by the script
    probe: int         # examples to find the number of steps in a window
    example: str = ""  # a program beside paceline, instead of it
    source: str = ""   # of paceline's data, instead of the common one


WORKLOADS = {
    "softmax": Workload(
        "Softmax regression 784 x 10", (10, 100, 500), ("--lr", "0.5"),
        ("lr_mnist.py",), SOFTMAX_PEERS, 100000),
    "lenet": Workload(
        "LeNet-5 with max pooling", (32, 256),
        ("--lr", "0.01", "--pool", "max"),
        ("cnn_mnist.py", "--model", "lenet"), CNN_PEERS, 5000),
    "three_blocks": Workload(
        "Three blocks of 3x3 convolutions, examples/three_blocks.c",
        (32, 256), ("--lr", "0.01"),
        ("cnn_mnist.py", "--model", "three_blocks"), CNN_PEERS, 2000,
        "three_blocks"),
    "alexnet": Workload(
        "AlexNet without dropout, images [3, 224, 224], 1000 classes",
        (32, 128), ("--lr", "0.01", "--dropout", "0", "--examples", "256"),
        ("alexnet.py",), ALEXNET_PEERS, 64, source="synthetic"),
    "sparse": Workload(
        "Sparse logistic regression, 33,762,578 features, 39 non-zeros",
        (100, 1000), ("--lr", "0.5"), ("sparse_lr.py",), SPARSE_PEERS, 200000,
        source="synthetic-sparse"),
}
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
    add("--work", default="softmax,lenet",
        help=f"some of {', '.join(WORKLOADS)} [softmax,lenet]")
    add("--batches", help="of all workloads [10,100,500 for softmax, 32,128 "
                          "for alexnet, else 32,256]")
    add("--accuracy", action="store_true",
        help="of the convolutional networks after one epoch, in round 1")
    add("--rounds", type=int, default=3, help="[3]")
    add("--seconds", type=float, default=2, help="of one window [2]")
    add("--windows", type=int, default=3, help="in each run [3]")
    add("--out", type=pathlib.Path, default=ROOT / "build/peers/results.jsonl",
        help="JSON lines [build/peers/results.jsonl]")
    return parser.parse_args()


# The machine.

def busy_seconds():
    """Processor seconds used by all processes and stolen by the host."""
    with open("/proc/stat") as file:
        v = [int(x) for x in file.readline().split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / tick


def own_seconds():
    """Processor seconds of this process and its ended children."""
    return sum(os.times()[:4])


class Watch:
    """Processors kept busy by others between start and stop."""

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


def is_bf16(name):
    """Whether a configuration multiplies in bfloat16: such ones are compared
    with each other."""
    return name.partition(":")[0].endswith("_bf16")


class Paceline:
    """The configuration `paceline`, `paceline:N` or `paceline_bf16`."""

    def __init__(self, options, name):
        self.name, self.options = name, options
        _, _, threads = name.partition(":")
        self.threads = int(threads or os.cpu_count())
        self.flags = ("--precision", "bf16") if is_bf16(name) else ()
        self.steps = {}  # of a window, by workload and batch

    def takes(self, work):
        return work == "alexnet" or not self.flags

    def train(self, work, batch, *more):
        kind = WORKLOADS[work]
        program = self.options.paceline
        if kind.example:
            program = program.with_name(kind.example)
        run = self.options.folder / "run"
        subprocess.run(["rm", "-rf", run], check=True)
        return run_child([
            program, "train", work, "--data",
            kind.source or self.options.source, "--batch", batch,
            "--threads", self.threads, *kind.flags, *self.flags,
            "--checkpoint-every", "never", "--run", run, "--quiet", "--json",
            *more])

    def train_steps(self, work, batch, steps):
        return self.train(work, batch, "--steps", steps, "--eval-every",
                          "never")

    def speed(self, work, batch, accuracy):
        """A window is a run of its own; its start is not counted, as with the
        peers."""
        key = work, batch
        if key not in self.steps:
            result, _, _ = self.train_steps(
                work, batch, max(1, WORKLOADS[work].probe // batch))
            self.steps[key] = max(
                1, int(result["steps_per_s"] * self.options.seconds))
        rates, peak = [], 0
        for _ in range(self.options.windows):
            result, _, mb = self.train_steps(work, batch, self.steps[key])
            rates.append(result["steps_per_s"])
            peak = max(peak, mb)
        found = {"windows": rates, "peak_rss_mb": peak}
        if accuracy:
            result, _, _ = self.train(work, batch, "--epochs", 1)
            found["accuracy"] = result["test_accuracy"]
        return found

    def start(self):
        """To the exit of the process: an upper bound of the first step."""
        result, seconds, peak = self.train_steps("softmax", 100, 1)
        return {"first_step_s": seconds, "peak_rss_mb": peak,
                "startup_s": result["startup_seconds"]}


class Peer:
    """A configuration of the scripts beside this, `torch` or `torch:1`."""

    def __init__(self, options, name):
        self.name, self.options = name, options
        self.peer, _, threads = name.partition(":")
        self.threads = int(threads or os.cpu_count())
        where = "pt" if self.peer.startswith("torch") else "tf"
        self.python = options.python(where)

    def takes(self, work):
        return self.peer in WORKLOADS[work].peers

    def run(self, script, *more):
        return run_child([self.python, HERE / script, "--peer", self.peer,
                          "--data", self.options.data, *more])

    def speed(self, work, batch, accuracy):
        script = (*WORKLOADS[work].script, "--batch", batch, "--threads",
                  self.threads)
        result, _, peak = self.run(
            *script, "--seconds", self.options.seconds, "--windows",
            self.options.windows)
        found = {"windows": result["windows"], "peak_rss_mb": peak,
                 "version": result["version"]}
        if accuracy:  # a run of its own: testing takes memory
            result, _, _ = self.run(*script, "--accuracy")
            found["accuracy"] = result["accuracy"]
        return found

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
    """Data, environments and a working folder."""
    options.folder = ROOT / "build/peers"
    options.folder.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.works = [w for w in options.work.split(",") if w]
    for work in options.works:
        if work not in WORKLOADS:
            sys.exit(f"--work {work}: expected some of "
                     f"{', '.join(WORKLOADS)}")
    for program in {options.paceline, *(options.paceline.with_name(
            WORKLOADS[w].example) for w in options.works
            if WORKLOADS[w].example)}:
        if not program.exists():
            sys.exit(f"{program} is not there: make build")
    if options.mnist:
        options.data = pathlib.Path(options.mnist)
        options.source = f"mnist:{options.data}"
    else:
        options.data = options.folder / "digits"
        options.source = f"idx:{options.data}"
        if not options.data.exists():
            subprocess.run([options.paceline, "data", "digits", "--out",
                            options.data], check=True, stdout=sys.stderr)
    pythons = {}

    def python(name):
        if options.env:
            return options.env / name / "bin/python"
        if name not in pythons:
            pythons[name] = make_environment(name, options.folder)
        return pythons[name]
    options.python = python


def configurations(options):
    ours = [Paceline(options, "paceline:1"), Paceline(options, "paceline")]
    if os.cpu_count() == 1:
        ours.pop()
    if "alexnet" in options.works:
        ours.append(Paceline(options, "paceline_bf16"))
    names = [name for name in options.peers.split(",") if name]
    for name in names:
        if name.partition(":")[0] not in PEERS:
            sys.exit(f"--peers {name}: expected some of {', '.join(PEERS)}")
    return ours + [Peer(options, name) for name in names]


# Measuring.

def batches_of(options, work):
    if options.batches:
        return [int(b) for b in options.batches.split(",")]
    return WORKLOADS[work].batches


def starts_of(options, configs):
    """The configurations whose start differs: those of softmax regression,
    where threads and loops make no difference."""
    starts = {}
    for config in configs if "softmax" in options.works else ():
        kind = config.name.partition(":")[0].removesuffix("_loop")
        if kind in ("paceline", "tf1", "tf2", "torch") and kind not in starts:
            starts[kind] = type(config)(options, kind)
    return list(starts.values())


def turns(options, configs):
    """(round, configuration, workload, batch) in measuring order; a start has
    neither workload nor batch."""
    starts = starts_of(options, configs)
    for number in range(1, options.rounds + 1):
        for work in options.works:
            takers = [c for c in configs if c.takes(work)]
            for batch in batches_of(options, work):
                for config in takers:
                    yield number, config, work, batch
        for start in starts:
            yield number, start, None, None


def measure_one(options, number, config, work, batch):
    watch = Watch()
    if work is None:
        result = config.start()
    else:
        accuracy = options.accuracy and number == 1 and \
            work in ("lenet", "three_blocks")
        result = config.speed(work, batch, accuracy)
    result.update(name=config.name, threads=config.threads, work=work,
                  batch=batch, round=number,
                  foreign_cpus=round(watch.stop(), 2))
    return result


def digits_of(rate):
    """Decimals, for examples per second."""
    return 0 if rate >= 100 else 1


def progress(result):
    if result["work"] is None:
        return f"start: first step after {result['first_step_s']:.3f} s"
    rate = result["batch"] * statistics.median(result["windows"])
    return (f"{result['work']} batch {result['batch']}: "
            f"{rate:,.{digits_of(rate)}f} ex/s")


def measure(options, configs, out):
    results = []
    for turn in turns(options, configs):
        try:
            result = measure_one(options, *turn)
        except (RuntimeError, json.JSONDecodeError) as error:
            print(f"peers: left out: {error}", file=sys.stderr)
            continue
        results.append(result)
        out.write(json.dumps(result) + "\n")
        out.flush()
        print(f"peers: round {result['round']}, {result['name']}, "
              f"{progress(result)}", file=sys.stderr)
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


def fastest(rates, ours, bf16):
    """Of our configurations, or of the peers', those of one precision."""
    names = [n for n in rates
             if n.startswith("paceline") == ours and is_bf16(n) == bf16]
    return max(names, key=lambda n: statistics.median(rates[n]), default=None)


def report_batch(results, batch):
    rates = medians_of(results, batch)
    for name in sorted(rates, key=lambda n: -statistics.median(rates[n])):
        runs = [r for r in results
                if r["batch"] == batch and r["name"] == name]
        ratio, best = "", fastest(rates, False, is_bf16(name))
        if name == best:
            ratio = "fastest peer"
        elif best and name.startswith("paceline"):
            found = round_ratios(results, batch, name, best)
            ratio = spread(found, 2) if found else ""
        foreign = max(r["foreign_cpus"] for r in runs)
        peak = max(r["peak_rss_mb"] for r in runs)
        tested = [f"{r['accuracy']:.4f}" for r in runs if "accuracy" in r]
        digits = digits_of(statistics.median(rates[name]))
        print(f"| {batch} | {name.partition(':')[0]} | {runs[0]['threads']} "
              f"| {spread(rates[name], digits)} | {ratio} | {peak:.0f} "
              f"| {foreign:.2f} |" + (f" {tested[0]} |" if tested else ""))


def report_work(results, work):
    """The section of a workload; `results` are its own."""
    tested = any("accuracy" in r for r in results)
    print(f"## {work}\n\n{WORKLOADS[work].title}.\n")
    print("| batch | configuration | threads | examples/s | ratio "
          "| peak RSS MB | foreign CPUs |" +
          (" accuracy after an epoch |" if tested else "") +
          "\n|--:|---|--:|--:|--:|--:|--:|" + ("--:|" if tested else ""))
    for batch in dict.fromkeys(r["batch"] for r in results):
        report_batch(results, batch)
    print()


def report_starts(results):
    names = dict.fromkeys(r["name"] for r in results if r["batch"] is None)
    if not names:
        return
    print("## Starts\n\npaceline's start is measured to the exit of the "
          "process, with its checkpoint; the others\nsay themselves when the "
          "first step is done.\n")
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
          f"{machine['versions']}; {machine['date']}.\nPlain SGD, "
          f"{machine['data']}; {options.rounds} rounds in turns, "
          f"{options.windows} windows of {options.seconds:g} s each.\n")
    worst = max([machine["foreign_cpus"]] +
                [r["foreign_cpus"] for r in results])
    if worst > DISTURBED:
        print(f"**Disturbed: others kept up to {worst:.1f} processors busy. "
              "Not to be published.**\n")
    print("Median over all windows (slowest-fastest).  Ratio: to the fastest "
          "peer of that batch\nsize, median of the rounds (least-most).\n")
    for work in options.works:
        own = [r for r in results if r["work"] == work]
        if own:
            report_work(own, work)
    report_starts(results)


def data_text(options):
    names = [WORKLOADS[w].source or ("MNIST" if options.mnist else
                                     "built-in digits")
             for w in options.works]
    return " and ".join(dict.fromkeys(names))


def main():
    options = parse_arguments()
    prepare(options)
    configs = configurations(options)
    machine = {"cpu": processor(), "threads": os.cpu_count(),
               "commit": commit(), "data": data_text(options), "foreign_cpus": round(foreign_now(), 2),
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
