#!/usr/bin/env python3
"""Weak scaling of all-reduce: the engine `ring` on 1, 2 and 4 hosts, which are
network namespaces on a switch with links of 1 Gbit/s.  As root.

Steps are measured first, by training on one thread: when in a step each
gradient is done, and the time of the whole step.  Then the workers wait for
that time instead of computing, so that two cores can simulate four hosts; sums
and updates are real.

efficiency  time of a step on one host / on N hosts
bound       min(1, step / link), link: the time of the ring's bytes, 2 (N - 1) / N
            of the gradient, at the rate of the link
of bound    the goal is 0.9.  The bound assumes that sums and computing overlap
            in the whole step, and no packet headers.  When dense layers are
            sent as factors: by the bytes that the busiest worker sent
of best     the same relative to the reachable: no gradient is sent before it is
            done, and 1448 of 1514 bytes of a packet are payload
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/fault"))
import netns  # noqa: E402

WORKLOADS = {"lenet:32": 300, "lenet:2048": 30, "alexnet:32": 4}  # and steps
RATE = "1gbit"
BYTES_PER_NS = 1e9 / 8 * 1e-9
PAYLOAD = 1448 / 1514
BURST = "128kb"  # a millisecond: little is made up for after a pause
PORT = 7070
LIMIT_S = 600


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--build", type=pathlib.Path, default=ROOT / "build",
        help="where scaling_worker is [build]")
    add("--hosts", default="2,4", help="[2,4]")
    add("--work", default=",".join(WORKLOADS),
        help="MODEL:BATCH,... [%(default)s]")
    add("--codec", choices=("auto", "plain"), default="auto",
        help="as of `paceline train`: dense layers as factors where that is\n"
             "faster, or not; the time of the others' products is measured\n"
             "on one thread and waited for [%(default)s]")
    add("--local-steps", type=int, default=1, metavar="H",
        help="steps between two means of the parameters [1]")
    add("--rounds", type=int, default=3, help="in turns [3]")
    return parser.parse_args()


class Work:
    """A model and batch, and the time of its steps here."""

    def __init__(self, options, name, folder):
        self.name = name
        self.model, batch = name.split(":")
        self.local_steps = options.local_steps
        self.codec = options.codec
        self.steps = WORKLOADS.get(name, 10)
        self.program = options.build / "scaling_worker"
        self.path = folder / f"{self.model}-{batch}.json"
        done = subprocess.run(
            [self.program, "measure", self.model, batch], check=True,
            stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
        self.path.write_text(done.stdout)
        self.profile = json.loads(done.stdout)

    def run(self, network, hosts):
        """The output of the workers on this many hosts, the first with the
        time."""
        addresses = [f"{network.address(h)}:{PORT}" for h in range(hosts)]
        workers = [subprocess.Popen(
            network.command(h, [str(self.program), "run", self.model,
                                str(self.path), str(self.steps),
                                str(self.local_steps), self.codec, str(h),
                                *addresses]),
            stdout=subprocess.PIPE, text=True) for h in range(hosts)]
        try:
            texts = [w.communicate(timeout=LIMIT_S)[0] for w in workers]
        finally:
            for worker in workers:
                worker.kill()
        if any(w.returncode for w in workers):
            raise RuntimeError(f"{self.name}: a worker failed")
        return [json.loads(text) for text in texts]

    def link_ns(self, hosts):
        share = 2 * (hosts - 1) / hosts / self.local_steps
        return 4 * sum(self.profile["floats"]) * share / BYTES_PER_NS

    def bound(self, link_ns):
        return min(1, self.profile["step_ns"] / link_ns)

    def best(self, hosts):
        """The efficiency when a link rests only while nothing can be sent."""
        p = self.profile
        if self.local_steps > 1:  # parameters are sent when all are computed
            return p["step_ns"] / (p["step_ns"] + self.link_ns(hosts) / PAYLOAD)
        per_float = self.link_ns(hosts) / sum(p["floats"]) / PAYLOAD
        at = 0
        for ready, floats in reversed(list(zip(p["ready_ns"], p["floats"]))):
            at = max(at, ready) + floats * per_float
        update = p["step_ns"] - p["compute_ns"]
        return p["step_ns"] / (max(at, p["compute_ns"]) + update)


def report(work, hosts, rounds):
    alone = work.profile["step_ns"]
    steps = [workers[0]["step_ns"] for workers in rounds]
    each = [alone / step for step in steps]
    efficiency = statistics.median(each)
    factors = rounds[0][0]["factors"]
    link_ns = work.link_ns(hosts)
    best = f"{efficiency / work.best(hosts):.2f}"
    if factors:  # their send times and destinations are not modelled
        link_ns = max(w["sent_bytes"] for w in rounds[0]) / BYTES_PER_NS
        best = "-"
    bound = work.bound(link_ns)
    print(f"| {work.name} | {hosts} | {'factors' if factors else 'plain'} "
          f"| {alone * 1e-6:.2f} | {link_ns * 1e-6:.2f} "
          f"| {statistics.median(steps) * 1e-6:.2f} "
          f"| {efficiency:.3f} ({min(each):.3f}-{max(each):.3f}) "
          f"| {bound:.3f} | {efficiency / bound:.2f} "
          f"| {best} |", flush=True)


def main():
    options = parse_arguments()
    why = netns.why_not()
    if why:
        sys.exit(f"scaling: {why}")
    netns.remove_leftovers()
    counts = [int(h) for h in options.hosts.split(",")]
    with tempfile.TemporaryDirectory() as folder, \
            netns.Network("scaling", max(counts)) as network:
        works = [Work(options, name, pathlib.Path(folder))
                 for name in options.work.split(",")]
        network.slow(RATE, BURST)
        print(f"Links of {RATE}; local steps {options.local_steps}; "
              f"{options.rounds} rounds in turns; median (least-most)\n")
        print("| model:batch | hosts | codec | step alone ms | link ms | step ms "
              "| efficiency | bound | of bound | of best |\n"
              "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|")
        for work in works:
            rounds = [{h: work.run(network, h) for h in counts}
                      for _ in range(options.rounds)]
            for hosts in counts:
                report(work, hosts, [r[hosts] for r in rounds])


if __name__ == "__main__":
    main()
