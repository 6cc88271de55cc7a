#!/usr/bin/env python3
"""The accuracy of `paceline plan`.  Run as root.

Each configuration is planned first, and then trained, by hand-started tasks in
network namespaces whose links tc limits: softmax, lenet, sparse and alexnet on
1 to 4 hosts, over 100 Mbit/s, 1 Gbit/s and unlimited links, by a ring and
by parameter servers in sync and async.

Waiting replaces computing (bench/paced.c), so that two cores can simulate four
hosts; all else is real, including the processor time of messages.  Here the
hosts share the cores for it, while a plan gives each host its own: rows over
unlimited links exceed the capacity of two cores.

A worker's speed is that of its median step, because of other load.

  error    predicted examples/s / measured ones - 1
  fastest  for each model, number of hosts and link: of the strategies that were
           run, is the one with the highest prediction the fastest, or within 5 %
           of it?
"""
import argparse
import dataclasses
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/fault"))
import netns  # noqa: E402

# A millisecond, so that little is sent in a burst after a pause.
BURSTS = {"100mbit": "16kb", "1gbit": "128kb"}
LINKS = [*BURSTS, "unlimited"]
PORT = 2222
LIMIT_S = 240
WINDOW_S = 4  # of a run, at least LEAST_STEPS
LEAST_STEPS = 6
WARM_STEPS = 2
NEAR = 0.05
ROUND_TRIPS = 200

# Multiply-adds of the layers, which have two parameters each.
LAYERS = {
    "softmax": [1],
    "lenet": [118, 240, 48, 10, 1],
    "sparse": [1],
    "alexnet": [105, 448, 149, 224, 149, 38, 17, 4],
}


@dataclasses.dataclass(frozen=True)
class Work:
    """A model, and the seconds that its workers compute in a step."""
    model: str
    seconds: float
    flags: tuple
    data: str = "synthetic"

    def pace(self, factor=1):
        """The file for PACED: the forward pass takes a third of the time."""
        layers = LAYERS[self.model]
        shares = [x / sum(layers) for m in layers for x in (m, 0)]
        ns = factor * self.seconds * 1e9
        return "".join(f"{s * ns / 3:.0f} {s * ns * 2 / 3:.0f}\n"
                       for s in shares)


WORKS = [
    Work("softmax", 0.050, ("--batch", "20", "--examples", "2000")),
    Work("lenet", 0.050, ("--batch", "8", "--examples", "2000")),
    Work("sparse", 0.050, ("--batch", "100", "--examples", "20000"),
         "synthetic-sparse"),
    Work("alexnet", 2.0, ("--batch", "1", "--examples", "16")),
]


@dataclasses.dataclass(frozen=True)
class Case:
    work: Work
    hosts: int
    link: str
    strategy: str  # single, ring, sync, async
    ps: int

    @property
    def name(self):
        servers = f" ps {self.ps}" if self.ps else ""
        return (f"{self.work.model} {self.hosts} {self.link} "
                f"{self.strategy}{servers}")

    def row_of(self, plan):
        """The prediction for this case."""
        strategy = {"single": "single", "ring": "allreduce"}.get(
            self.strategy, "ps")
        mode = self.strategy if strategy == "ps" else None
        for row in plan["rows"]:
            if (row["strategy"], row.get("mode"), row["workers"],
                    row["ps"], row["codec"]) == (strategy, mode, self.hosts,
                                                 self.ps, "plain"):
                return row
        raise LookupError(f"{self.name}: the plan has no such row")

    def flags(self):
        if self.strategy == "ring":
            return ["--strategy", "allreduce", "--codec", "plain"]
        if self.strategy == "single":
            return []
        return ["--strategy", "ps", "--mode", self.strategy]


def cases():
    for work in WORKS:
        yield Case(work, 1, "unlimited", "single", 0)
        for hosts in (2, 3, 4):
            for link in LINKS:
                large = work.model == "alexnet"
                if large and (link == "100mbit" or hosts > 2):
                    continue  # minutes
                if work.model != "sparse":
                    yield Case(work, hosts, link, "ring", 0)
                for ps in (1,) if hosts == 2 else (1, 2):
                    yield Case(work, hosts, link, "sync", ps)
                    yield Case(work, hosts, link, "async", ps)


def round_trip_s(net):
    """Median round trip of a byte over TCP between two hosts."""
    server = ("import socket,sys;s=socket.create_server(('10.0.0.1',9));"
              "print(1,flush=True);c=s.accept()[0];"
              "c.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1)\n"
              "while b:=c.recv(1):c.send(b)")
    client = ("import socket,time;c=socket.create_connection(('10.0.0.1',9));"
              "c.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1)\n"
              f"for _ in range({ROUND_TRIPS}):\n"
              " t=time.monotonic();c.send(b'x');c.recv(1);"
              "print(time.monotonic()-t)")
    with subprocess.Popen(net.command(0, [sys.executable, "-c", server]),
                          stdout=subprocess.PIPE) as echo:
        echo.stdout.readline()
        done = subprocess.run(net.command(1, [sys.executable, "-c", client]),
                              check=True, stdout=subprocess.PIPE, text=True,
                              timeout=LIMIT_S)
    return statistics.median(float(t) for t in done.stdout.split())


class Bench:
    def __init__(self, program, folder):
        self.program = str(program)
        self.folder = folder

    def environment(self, work, factor=1, spin=False):
        path = self.folder / f"{work.model}-{factor}.pace"
        if not path.exists():
            path.write_text(work.pace(factor))
        extra = {"PACED_SPIN": "1"} if spin else {}
        return dict(os.environ, PACED=str(path), **extra)

    def plan(self, work, hosts, link, rtt_s, seconds):
        done = subprocess.run(
            [self.program, "plan", work.model, "--data", work.data,
             *work.flags, "--threads", "1", "--hosts", str(hosts), "--link",
             link, "--rtt", f"{rtt_s * 1e6:.0f}us", "--seconds", str(seconds),
             "--json"], check=True, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=self.folder, timeout=LIMIT_S,
            env=self.environment(work))
        return json.loads(done.stdout)

    def train(self, net, case, steps):
        """The summary of a job whose tasks are on their hosts, and the
        median step of each worker."""
        cluster = self.folder / "cluster.json"
        where = {"worker": [f"{net.address(h)}:{PORT}"
                            for h in range(case.hosts)],
                 "ps": [f"{net.address(h)}:{PORT + 1}"
                        for h in range(case.ps)]}
        cluster.write_text(json.dumps({"cluster": {
            role: at for role, at in where.items() if at}}))
        common = [self.program, "train", case.work.model, "--data",
                  case.work.data, *case.work.flags, "--threads", "1",
                  "--eval-every", "never", "--checkpoint-every", "never",
                  "--monitor-every", "0", "--steps", str(steps), "--json",
                  "--quiet", *case.flags()]
        roles = [(role, i) for role, at in where.items()
                 for i in range(len(at))]
        tasks = []
        homes = []
        try:
            for role, i in roles:
                home = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                homes += [home] if role == "worker" else []
                words = common + (
                    ["--cluster", str(cluster), "--insecure", "--transport",
                     "tcp", "--heartbeat-timeout", "60", "--role", role,
                     "--index", str(i)] if case.hosts > 1 else [])
                tasks.append(subprocess.Popen(
                    net.command(i, words), cwd=home, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    env=dict(self.environment(case.work),
                             PACED_STEPS=str(home / "steps"))))
            out, err = tasks[0].communicate(timeout=LIMIT_S)
            if tasks[0].returncode:
                raise RuntimeError(f"{case.name}: {err.decode()}")
            for task in tasks[1:]:
                task.communicate(timeout=LIMIT_S)
        finally:
            for task in tasks:
                task.kill()
                task.wait()
        return json.loads(out.splitlines()[-1]), [
            median_step_s(home / "steps") for home in homes]


def median_step_s(path):
    begin = [int(line) for line in path.read_text().split()][WARM_STEPS:]
    return 1e-9 * statistics.median(b - a for a, b in zip(begin, begin[1:]))


def run(bench, net, case, plan):
    """Measured examples/s."""
    row = case.row_of(plan)
    updates = case.hosts if case.strategy == "async" else 1
    steps = max(LEAST_STEPS, round(WINDOW_S / row["step_seconds"]))
    summary, workers = bench.train(net, case, steps * updates)
    return sum(summary["batch"] / step for step in workers)


def groups(chosen):
    """Cases of the same model, hosts and link."""
    found = {}
    for case in chosen:
        found.setdefault((case.work, case.hosts, case.link), []).append(case)
    return found


def measure_group(bench, options, key, members, known):
    """Add rounds of measured speeds and round trips to `known`."""
    work, hosts, link = key
    with netns.Network("plan", max(hosts, 2)) as net:
        if link != "unlimited":
            net.slow(link, BURSTS[link])
        rtt = round_trip_s(net)
        plan = bench.plan(work, hosts, link, rtt, options.seconds)
        for _ in range(options.rounds):
            for case in members:
                try:
                    found = run(bench, net, case, plan)
                except (RuntimeError, statistics.StatisticsError,
                        subprocess.TimeoutExpired) as error:
                    print(f"{case.name}: {error}", file=sys.stderr)
                    continue
                known.setdefault(case.name, []).append([found, rtt])
                if options.measured:
                    options.measured.write_text(json.dumps(known))


def predict(bench, options, key, members, known):
    """{case: (predicted, measured)} of the measured cases."""
    work, hosts, link = key
    members = [c for c in members if known.get(c.name)]
    if not members:
        return {}
    rtt = statistics.median(r for c in members for _, r in known[c.name])
    plan = bench.plan(work, hosts, link, rtt, options.seconds)
    return {c: (c.row_of(plan)["examples_per_s"],
                statistics.median(s for s, _ in known[c.name]))
            for c in members}


def report(results):
    print("| case | predicted | measured | error % |\n|---|--:|--:|--:|")
    errors = []
    for case, (predicted, measured) in results.items():
        error = predicted / measured - 1
        errors.append(abs(error))
        print(f"| {case.name} | {predicted:.0f} | {measured:.0f} "
              f"| {100 * error:+.1f} |")
    right = [chooses_right(members, results)
             for members in groups(results).values() if len(members) > 1]
    print(f"\n{len(errors)} configurations; error: median "
          f"{100 * statistics.median(errors):.1f} %, worst "
          f"{100 * max(errors):.1f} %, above 30 %: "
          f"{sum(e > 0.3 for e in errors)}; fastest right: "
          f"{sum(right)} of {len(right)}")


def chooses_right(members, results):
    best = max(members, key=lambda c: results[c][0])
    fastest = max(results[c][1] for c in members)
    return results[best][1] >= (1 - NEAR) * fastest


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=ROOT / "build",
        help="where paced is [build]")
    add("--only", default="", help="of cases whose names begin so")
    add("--rounds", type=int, default=1, help="in turns [1]")
    add("--seconds", type=float, default=2, help="of a plan [2]")
    add("--measured", type=pathlib.Path, metavar="FILE",
        help="keep what is measured there")
    add("--again", action="store_true",
        help="predict only what FILE has, and measure nothing")
    return parser.parse_args()


def main():
    options = parse_arguments()
    known = {}
    if options.measured and options.measured.exists():
        known = json.loads(options.measured.read_text())
    why = netns.why_not()
    if why and not options.again:
        sys.exit(f"plan: {why}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))
    netns.remove_leftovers()
    chosen = [c for c in cases() if c.name.startswith(options.only)]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build / "paced", pathlib.Path(folder))
        for key, members in groups(chosen).items():
            if not options.again:
                measure_group(bench, options, key, members, known)
            results |= predict(bench, options, key, members, known)
    report(results)


if __name__ == "__main__":
    main()
