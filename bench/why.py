#!/usr/bin/env python3
"""Does a job report why it is slow, which task is the cause, and the gain of a
cure?  Run as root.

Each cause is provoked in jobs by parameter servers in sync and async and by a
ring, whose tasks are in network namespaces and wait instead of computing
(bench/paced.c).  A row has the summary's verdict; with --cure the first cure is
applied (a flag is given, or the provoked cause is removed), and the gain in
examples/s compared with the predicted one.
"""
import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/fault"))
import netns  # noqa: E402

MODES = ["sync", "async", "ring"]
WORKERS = 3
VICTIM = 2
PORT, RELAY = 2222, 2300
LIMIT_S = 90
GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
PERIOD_US = 100000


@dataclasses.dataclass(frozen=True)
class Kind:
    name: str
    what: str            # the cause, as summaries name it
    word: str = ""       # part of the sentence
    task: str = ""       # the culprit
    modes: tuple = tuple(MODES)
    model: str = "lenet"
    seconds: float = 0.05    # of computing
    batch: int = 8
    steps: int = 60          # in sync mode
    flags: tuple = ()
    servers: int = 1
    # The provoked cause:
    all_links: str = ""      # a rate
    slow_link: str = ""      # of the victim
    server_link: str = ""
    slowdown: float = 1      # of the victim
    input_s: float = 0       # of all
    victim_input_s: float = 0
    score_s: float = 0
    quota: float = 0         # of a core, of the victim
    server_quota: float = 0
    stops: bool = False
    crowd: int = 0           # processes on the victim's core
    delay_s: float = 0       # of a message to a server, each way


    @property
    def is_in_spells(self):
        return self.stops or self.score_s > 0


SLOW = {"what": "slow worker", "task": f"worker {VICTIM}"}
PS = ("sync", "async")
KINDS = [
    Kind("computing", "computing"),
    Kind("hardware", **SLOW, word="slower processor", slowdown=3),
    Kind("quota", **SLOW, word="quota", quota=0.02, slowdown=0.06,
         steps=40),
    Kind("starved", **SLOW, word="had no processor", crowd=4, slowdown=0.4,
         steps=40),
    Kind("stops", **SLOW, word="stops now and then", stops=True, steps=100),
    Kind("victim's link", **SLOW, word="its link is slow", slow_link="10mbit",
         steps=20),
    Kind("victim's input", **SLOW, word="takes longer to read data",
         victim_input_s=0.1),
    Kind("input", "reading", "reading data", input_s=0.1),
    Kind("server link", "server link", modes=PS, server_link="20mbit",
         steps=12),
    Kind("link", "link", modes=("ring",), all_links="20mbit", steps=20),
    Kind("link of many servers", "link", modes=PS, servers=3,
         all_links="10mbit", steps=15),
    Kind("server processor", "server processor", task="ps 0", modes=PS,
         server_quota=0.03, seconds=0.03, steps=10, model="mlp",
         flags=("--hidden", "1000,1000")),
    Kind("latency", "latency", modes=PS, model="softmax", seconds=0.005,
         delay_s=0.02, steps=60),
    Kind("evaluation", "evaluation", modes=("sync", "ring"), score_s=0.2, steps=60,
         flags=("--eval-every", "5", "--test-examples", "16")),
]


class Relay:
    """Forwards the data of a port of one host, with a delay."""

    SOURCE = ROOT / "tests/fault/relay.py"

    def __init__(self, net, host, port, to, delay_s):
        self.process = subprocess.Popen(
            net.command(host, [sys.executable, str(self.SOURCE), str(port),
                               to, str(delay_s)]), stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def stops(process):
    """Half a second of every second."""
    over = threading.Event()

    def stop_and_go():
        while not over.wait(0.5) and process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            over.wait(0.5)
            process.send_signal(signal.SIGCONT)
    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def limited(pid, share):
    """The process gets this share of a core, by a cgroup of its own."""
    group = GROUPS / f"{netns.PREFIX}-{os.getpid()}-{pid}"
    group.mkdir()
    try:
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(
            str(max(1000, int(PERIOD_US * share))))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        with contextlib.suppress(OSError):  # it has ended
            (GROUPS / "cgroup.procs").write_text(str(pid))
        group.rmdir()


@contextlib.contextmanager
def crowded(pid, others):
    """Other processes are busy on the core that the process is bound to."""
    core = sorted(os.sched_getaffinity(0))[-1]
    os.sched_setaffinity(pid, {core})  # inherited by later threads
    busy = [subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c",
                              "while True: pass"]) for _ in range(others)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


class Job:
    """One run of a kind in a mode."""

    def __init__(self, options, folder, kind, mode, workers=WORKERS):
        self.program = str(options.build / "paced")
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        self.kind, self.mode, self.workers = kind, mode, workers
        self.servers = 0 if mode == "ring" else kind.servers
        self.roles = ([("worker", i) for i in range(workers)] +
                      [("ps", i) for i in range(self.servers)])

    def addresses(self, net, role, relayed):
        hosts = [h for h, (r, _) in enumerate(self.roles) if r == role]
        if relayed and role == "ps":
            return [f"{net.address(h)}:{RELAY}" for h in hosts]
        return [f"{net.address(h)}:{PORT}" for h in hosts]

    def cluster(self, net, role):
        """The file for tasks of this role: workers reach servers by relays."""
        path = self.folder / f"cluster-{role}.json"
        relayed = self.kind.delay_s > 0 and role == "worker"
        found = {r: self.addresses(net, r, relayed)
                 for r in ("worker", "ps")}
        if not path.exists():
            path.write_text(json.dumps({"cluster": {
                r: at for r, at in found.items() if at}}))
        return str(path)

    def environment(self, role, index):
        kind = self.kind
        victim = (role, index) == ("worker", VICTIM)
        factor = kind.slowdown if victim else 1
        layers = {"softmax": 1, "mlp": 3}.get(kind.model, 5)
        ns = kind.seconds * factor * 1e9 / 3 / layers
        path = self.folder / f"pace-{role}-{index}"
        path.write_text(f"{ns:.0f} {2 * ns:.0f}\n0 0\n" * layers)
        input_s = kind.input_s + (kind.victim_input_s if victim else 0)
        more = {"PACED": str(path), "PACED_INPUT": f"{input_s * 1e9:.0f}",
                "PACED_SCORE": f"{kind.score_s * 1e9:.0f}",
                "PACED_STEPS": str(self.folder / f"steps-{role}-{index}")}
        if victim and (kind.quota or kind.crowd):
            more["PACED_SPIN"] = "1"
        return dict(os.environ, **more)

    def flags(self, steps):
        how = {"ring": ["--strategy", "allreduce"]}.get(
            self.mode, ["--strategy", "ps", "--mode", self.mode])
        given = list(map(str, self.kind.flags))
        given += [] if "--codec" in given else ["--codec", "plain"]
        for name in ("--eval-every", "--checkpoint-every"):
            given += [] if name in given else [name, "never"]
        if "--test-examples" in given:
            at = given.index("--test-examples")
            given[at:at + 2] = []
        return ["--data", "synthetic", "--examples", "1000", "--batch",
                str(self.kind.batch), "--threads", "1", "--insecure",
                "--transport", "tcp", "--heartbeat-timeout", "60",
                "--steps", str(steps), *how, *given]

    def slow_links(self, net):
        kind = self.kind
        for host, (role, index) in enumerate(self.roles):
            rate = kind.all_links
            if (role, index) == ("worker", VICTIM) and kind.slow_link:
                rate = kind.slow_link
            if role == "ps" and kind.server_link:
                rate = kind.server_link
            if rate:
                net.slow_host(host, rate, "16kb")

    def start(self, net, role, index, steps):
        host = self.roles.index((role, index))
        home = self.folder / f"{role}-{index}"
        home.mkdir()
        words = [self.program, "train", self.kind.model, *self.flags(steps),
                 "--cluster", self.cluster(net, role), "--role", role,
                 "--index", str(index), "--json", "--quiet"]
        # Not by `ip netns exec`, which hides the files of cgroups.
        words = ["nsenter", f"--net=/run/netns/{net.host(host)}", "unshare",
                 "--uts", "sh", "-c", 'hostname "$0" && exec "$@"',
                 f"node{host}", *words]
        return subprocess.Popen(
            words, cwd=home, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment(role, index))

    def provoke(self, stack, tasks):
        kind = self.kind
        victim = tasks["worker", VICTIM]
        if kind.stops:
            stack.enter_context(stops(victim))
        if kind.quota:
            stack.enter_context(limited(victim.pid, kind.quota))
        if kind.crowd:
            stack.enter_context(crowded(victim.pid, kind.crowd))
        for i in range(self.servers if kind.server_quota else 0):
            stack.enter_context(limited(tasks["ps", i].pid,
                                        kind.server_quota))

    def run(self):
        """The summary and examples/s."""
        steps = self.kind.steps * (1 if self.mode != "async" else self.workers)
        tasks = {}
        with netns.Network("why", len(self.roles)) as net, \
                contextlib.ExitStack() as stack:
            self.slow_links(net)
            for host, (role, _) in enumerate(self.roles):
                if role == "ps" and self.kind.delay_s:
                    relay = Relay(net, host, RELAY,
                                  f"{net.address(host)}:{PORT}",
                                  self.kind.delay_s)
                    stack.callback(relay.close)
            try:
                for role, index in self.roles:
                    tasks[role, index] = self.start(net, role, index, steps)
                self.provoke(stack, tasks)
                out, err = tasks["worker", 0].communicate(timeout=LIMIT_S)
                if tasks["worker", 0].returncode:
                    raise RuntimeError(err.decode()[-500:])
                for task in tasks.values():
                    task.communicate(timeout=LIMIT_S)
            finally:
                stack.close()
                for task in tasks.values():
                    task.kill()
                    task.wait()
        return json.loads(out.splitlines()[-1]), self.speed()

    def speed(self):
        """By the median step, because of other load, when steps are alike."""
        rates = []
        for i in range(self.workers):
            text = (self.folder / f"steps-worker-{i}").read_text()
            begin = [int(t) * 1e-9 for t in text.split()][2:]
            steps = [b - a for a, b in zip(begin, begin[1:])]
            usual = (statistics.mean if self.kind.is_in_spells
                     else statistics.median)
            rates.append(self.kind.batch / usual(steps) if steps else 0)
        return sum(rates)


def healed(kind):
    """Without the provoked cause."""
    blank = Kind(kind.name, kind.what)
    causes = ("all_links slow_link server_link slowdown input_s "
              "victim_input_s quota server_quota stops crowd delay_s").split()
    return dataclasses.replace(kind, **{c: getattr(blank, c) for c in causes})


def with_flag(kind, name, value):
    flags = list(kind.flags)
    if name in flags:
        flags[flags.index(name) + 1] = value
    else:
        flags += [name, value]
    return dataclasses.replace(kind, flags=tuple(flags))


def cured(options, folder, kind, mode, cure):
    """The job with this cure; None: it cannot be applied automatically."""
    if match := re.match(r"--ps (\d+)$", cure):
        return Job(options, folder, dataclasses.replace(
            kind, servers=int(match[1])), mode)
    if cure.startswith("--strategy allreduce"):
        links = kind.all_links or kind.server_link
        return Job(options, folder, dataclasses.replace(
            kind, all_links=links), "ring")
    if cure.startswith("--mode async"):
        return Job(options, folder, kind, "async")
    if match := re.match(r"--workers (\d+) on", cure):
        return Job(options, folder, kind, mode, int(match[1]))
    if cure.startswith("a --batch 4"):
        return Job(options, folder, dataclasses.replace(
            kind, batch=4 * kind.batch, seconds=4 * kind.seconds,
            steps=kind.steps // 2), mode)
    if match := re.match(r"(--\w+-every) 10 times", cure):
        old = int(kind.flags[kind.flags.index(match[1]) + 1])
        return Job(options, folder, with_flag(kind, match[1], str(10 * old)),
                   mode)
    if match := re.match(r"(--codec|--local-steps) (\w+)", cure):
        return Job(options, folder, with_flag(kind, match[1], match[2]), mode)
    if match := re.match(r"(--replicas-to-aggregate) (\d+)", cure):
        return Job(options, folder, with_flag(kind, match[1], match[2]), mode)
    if cure.startswith("--"):
        return None
    return Job(options, folder, healed(kind), mode)


def judge(kind, found):
    """The errors of a verdict; empty: none."""
    wrong = []
    if found["what"] != kind.what:
        wrong.append(f"expected {kind.what}")
    if kind.task and found.get("task") != kind.task:
        wrong.append(f"expected {kind.task}")
    if kind.word not in found["text"]:
        wrong.append(f'expected "{kind.word}"')
    return ", ".join(wrong)


def try_kind(options, folder, kind, mode):
    """(wrong, predicted gain, measured gain) of one case."""
    summary, before = Job(options, folder, kind, mode).run()
    found = summary["bottleneck"]
    wrong = judge(kind, found)
    gains = (None, None)
    cures = found.get("cures") or []
    if options.cure and cures and not wrong:
        job = cured(options, folder, kind, mode, cures[0]["text"])
        if job is not None:
            gains = (cures[0]["gain"], job.run()[1] / before)
    told = (f"{gains[0]:.2f} | {gains[1]:.2f} "
            f"| {100 * (gains[0] / gains[1] - 1):+.0f}"
            if gains[0] is not None else "| |")
    print(f"| {kind.name} | {mode} | {wrong or 'right'} | {found['text']} "
          f"| {told} |", flush=True)
    if options.verbose and wrong:
        print(json.dumps(summary))
    return wrong, *gains


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=ROOT / "build",
        help="where paced is [build]")
    add("--only", default="", help="kinds whose names match this")
    add("--modes", default=",".join(MODES), help="[%(default)s]")
    add("--cure", action="store_true",
        help="apply the first cure, and measure its gain")
    add("--verbose", action="store_true",
        help="print the summaries of wrong verdicts")
    return parser.parse_args()


def main():
    options = parse_arguments()
    why = netns.why_not()
    if why:
        sys.exit(f"why: {why}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))
    netns.remove_leftovers()
    rows = []
    print("| provoked | mode | verdict | what it said | predicted gain "
          "| measured | error % |\n|---|---|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            if not re.search(options.only, kind.name):
                continue
            for mode in options.modes.split(","):
                if mode not in kind.modes:
                    continue
                try:
                    rows.append(try_kind(options, folder, kind, mode))
                except (RuntimeError, OSError,
                        subprocess.TimeoutExpired) as error:
                    print(f"| {kind.name} | {mode} | failed: {error} |||||",
                          flush=True)
                    rows.append(("failed", None, None))
    errors = [abs(p / m - 1) for _, p, m in rows if p is not None]
    print(f"\n{sum(not wrong for wrong, *_ in rows)} of {len(rows)} right")
    if errors:
        print(f"{len(errors)} gains; error: median "
              f"{100 * statistics.median(errors):.0f} %, worst "
              f"{100 * max(errors):.0f} %")


if __name__ == "__main__":
    main()
