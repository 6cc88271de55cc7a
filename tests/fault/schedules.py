#!/usr/bin/env python3
"""Random fault schedules: jobs that are hit, each of which must end right.

    PACELINE=build/release/paceline tests/fault/schedules.py [--first SEED]
        [--count N] [--jobs N] [--kind KIND]

A seed decides the kind of a schedule, the size of its job, its mode, and which
task is hit when:

    chaos   --chaos kills and freezes tasks all the time
    pieces  the same, with a model whose gradient is many messages
    sparse  the same, with a sparse model
    ring    the same, with all-reduce over the ring
    gone    workers are killed and not started again (--on-worker-loss continue)
    early   a task is killed before the first checkpoint that has a step
    two     two tasks are killed at the same moment

A job ends right when it exits with status 0 after exactly its steps, in sync
with the bits of an undisturbed run (unless it went on without a worker and
says that it is not deterministic), and leaves no process behind.  One whose
chief is killed between its last message and its summary reports it, and is
resumed; --chaos never does that.  One line a schedule; the exit status is 1
when one was wrong, and its folder is kept.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

DEADLINE_S = 300
DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1"]
SPARSE = ["--features", "100000", "--examples", "6000", "--batch", "20",
          "--threads", "1", "--optimizer", "ftrl"]
STEPS = {"sync": 6000, "async": 20000, "ssp": 20000}
KINDS = ["chaos", "pieces", "sparse", "ring", "gone", "early", "two"]
COMPLETE = "the training is complete and saved"
SIDE = 512  # of a large image: 10 MB of parameters
LARGE = 60  # such images


def write_large(folder):
    """Images so large that a gradient is many messages."""
    rng = random.Random(1)
    for name in "train", "t10k":
        with (folder / f"{name}-images-idx3-ubyte").open("wb") as file:
            for number in 0x803, LARGE, SIDE, SIDE:
                file.write(number.to_bytes(4, "big"))
            for _ in range(LARGE):
                file.write(rng.randbytes(SIDE * SIDE))
        with (folder / f"{name}-labels-idx1-ubyte").open("wb") as file:
            for number in 0x801, LARGE:
                file.write(number.to_bytes(4, "big"))
            file.write(bytes(rng.randrange(10) for _ in range(LARGE)))


class Schedule:
    """What one seed stands for."""

    def __init__(self, seed, kind=None):
        rng = random.Random(seed)
        self.seed = seed
        self.kind = kind or rng.choice(KINDS)
        self.mode = rng.choice(sorted(STEPS))
        self.workers = rng.randint(1, 4)
        self.ps = rng.randint(1, 3)
        self.evaluator = rng.random() < 0.3
        self.transport = rng.choice(["auto", "tcp"])
        self.heartbeat = rng.choice([0.5, 1, 2])
        # A frozen task is lost after the heartbeat: most of the time all must
        # be there, or there is no progress.
        self.rate = rng.choice([0.25, 0.5, 1]) / self.heartbeat
        self.model = "sparse" if self.kind == "sparse" or (
            self.kind in ("early", "two") and rng.random() < 0.5) \
            else "softmax"
        ring = self.kind == "ring" or (
            self.kind in ("gone", "two") and self.model == "softmax"
            and rng.random() < 0.5)
        if self.kind == "gone":
            # Nothing is started again: a server that a loaded host holds up
            # must not be declared lost.
            self.heartbeat = 2
        if ring or self.kind == "gone":
            self.workers = max(self.workers, 2 + rng.randint(0, 2))
        if ring:
            self.ps, self.mode, self.evaluator = 0, "sync", False
        if self.model == "sparse" or self.kind == "pieces":
            self.evaluator = False
        self.steps = {"pieces": 120}.get(
            self.kind, STEPS[self.mode] // (2 if self.model == "sparse" else 1))
        self.kills = self.choose_kills(rng)

    def choose_kills(self, rng):
        """[(seconds after all tasks were started, [(role, index), ...])]"""
        tasks = [("ps", i) for i in range(self.ps)] + \
            [("worker", i) for i in range(self.workers)]
        if self.kind == "gone":
            lost = rng.sample(range(1, self.workers),
                              rng.randint(1, self.workers - 1))
            if rng.random() < 0.5:  # all at once
                return [(rng.uniform(0.5, 2), [("worker", w) for w in lost])]
            return [(rng.uniform(0.5, 2), [("worker", w)]) for w in lost]
        if self.kind == "early":
            return [(rng.uniform(0.02, 1), [rng.choice(tasks)])]
        if self.kind == "two":
            return [(rng.uniform(0.1, 2), rng.sample(tasks, 2))
                    for _ in range(rng.randint(1, 2))]
        return []

    def job(self):
        """The job itself, without what disturbs it."""
        flags = SPARSE if self.model == "sparse" else \
            ["--data", "idx:../large", "--batch", "2", "--threads", "1"] \
            if self.kind == "pieces" else DATA
        flags = [*flags, "--seed", self.seed, "--steps", self.steps,
                 "--workers", self.workers, "--transport", self.transport]
        flags += ["--ps", self.ps, "--mode", self.mode] if self.ps > 0 else \
            ["--engine", "ring"]
        if self.mode == "ssp":
            flags += ["--staleness", 3]
        flags += ["--evaluator", "--eval-every", self.steps // 10] \
            if self.evaluator else ["--eval-every", "never"]
        return [str(flag) for flag in flags]

    def flags(self):
        every = "never" if self.kind == "early" else self.steps // 40
        flags = [*self.job(), "--heartbeat-timeout", self.heartbeat,
                 "--checkpoint-every", every]
        if self.kind == "gone":
            flags += ["--restarts", 0, "--on-worker-loss", "continue",
                      "--rejoin-timeout", 10]
        else:
            flags += ["--restarts", 100]
        if not self.kills:
            flags += ["--chaos", self.rate]
        return [str(flag) for flag in flags]

    def name(self):
        hit = ", ".join(f"{'+'.join(f'{r} {i}' for r, i in who)} "
                        f"at {when:.1f} s" for when, who in self.kills) or \
            f"{self.rate:5} faults/s"
        return (f"{self.kind:6} {self.model:7} {self.mode:5} "
                f"{self.workers} workers {self.ps} ps "
                f"{'evaluator' if self.evaluator else '':9} "
                f"{self.transport:4} heartbeat {self.heartbeat:3} s  {hit}")


def children(pid):
    """{(role, index): pid} of the tasks of a supervisor."""
    found = {}
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
        for child in map(int, text.split()):
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes() \
                .decode().split("\0")
            if "--role" in words:
                found[words[words.index("--role") + 1],
                      int(words[words.index("--index") + 1])] = child
    except OSError:
        pass  # one has just ended
    return found


def strike(job, schedule, done):
    """Kill the tasks of the schedule at its times."""
    wanted = schedule.ps + schedule.workers
    while len(children(job.pid)) < wanted and not done.wait(0.005):
        pass
    began = time.monotonic()
    for when, who in sorted(schedule.kills):
        if done.wait(max(0, began + when - time.monotonic())):
            return
        now = children(job.pid)
        for task in who:
            if task in now:
                try:
                    os.kill(now[task], signal.SIGKILL)
                except ProcessLookupError:
                    pass


def paceline(folder, model, flags, deadline_s, schedule=None):
    """Exit status (None: not done in time), both outputs, seconds.  No process
    stays."""
    began = time.monotonic()
    job = subprocess.Popen(
        [os.path.abspath(os.environ["PACELINE"]), "train", model,
         "--json", "--run", "a", *flags],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    done = threading.Event()
    striker = None
    if schedule is not None and schedule.kills:
        striker = threading.Thread(target=strike, args=(job, schedule, done))
        striker.start()
    try:
        out, err = job.communicate(timeout=deadline_s)
        code = job.returncode
    except subprocess.TimeoutExpired:
        job.kill()
        out, err = job.communicate()
        code = None
    done.set()
    if striker is not None:
        striker.join()
    return code, out, err, time.monotonic() - began


@functools.cache
def single(seed, workers, steps):
    """The bits of one process with as many batches."""
    with tempfile.TemporaryDirectory() as folder:
        code, out, err, _ = paceline(
            folder, "softmax",
            [*DATA, "--seed", str(seed), "--steps", str(steps),
             "--micro-batches", str(workers), "--eval-every", "never",
             "--checkpoint-every", "never"], DEADLINE_S)
    assert code == 0, err
    return json.loads(out.splitlines()[-1])["parameters_sha256"]


def undisturbed(schedule, base):
    """The bits that a sync job must have: those of one process, where that
    adds up in the same order; otherwise those of the same job without
    faults."""
    if schedule.model == "softmax" and schedule.kind != "pieces" and \
            schedule.ps > 0:
        return single(schedule.seed, schedule.workers, schedule.steps)
    folder = base / f"peace-{schedule.seed}"
    folder.mkdir()
    code, out, err, _ = paceline(folder, schedule.model, schedule.job(),
                                 DEADLINE_S)
    assert code == 0, err
    shutil.rmtree(folder)
    return json.loads(out.splitlines()[-1])["parameters_sha256"]


def judge_bits(schedule, summary, err, base):
    """Of a sync job."""
    if not summary["deterministic"]:
        return None if "the job continues without it" in err else \
            "not deterministic"
    if summary["parameters_sha256"] != undisturbed(schedule, base):
        return "other bits than the undisturbed run"
    return None


def judge(schedule, code, out, err, base):
    """What is wrong with how the job ended; None: nothing."""
    if code is None:
        return f"hangs: not done in {DEADLINE_S} s"
    # Killed while it ended: as it advises.  --chaos spares a job that ends.
    if code == 1 and COMPLETE in err and schedule.kills:
        code, out, more, _ = paceline(base / f"seed-{schedule.seed}",
                                      schedule.model, ["--resume"], DEADLINE_S)
        err += more
    if code != 0:
        return f"exit status {code}: {(err.splitlines() or [''])[-1]}"
    summary = json.loads(out.splitlines()[-1])
    if summary["steps"] != schedule.steps:
        return f"{summary['steps']} steps"
    if summary["faults"] != err.count("chaos: fault"):
        return f"{summary['faults']} faults counted, " \
               f"{err.count('chaos: fault')} said"
    if schedule.mode != "sync":
        made = sum(row["steps"] for row in summary["per_worker"])
        return None if made == schedule.steps else f"{made} steps of workers"
    return judge_bits(schedule, summary, err, base)


def run_one(base, seed, kind=None):
    """(seed, what is wrong or None, the line to print)"""
    schedule = Schedule(seed, kind)
    folder = base / f"seed-{seed}"
    folder.mkdir()
    code, out, err, seconds = paceline(folder, schedule.model,
                                       schedule.flags(), DEADLINE_S, schedule)
    (folder / "stdout").write_text(out)
    (folder / "stderr").write_text(err)
    wrong = judge(schedule, code, out, err, base)
    faults = err.count("chaos: fault") or sum(
        len(who) for _, who in schedule.kills)
    return seed, wrong, (f"seed {seed:5}  {schedule.name()}  {faults:3} "
                         f"faults {seconds:6.1f} s  {wrong or 'right'}")


def run(first, count, jobs, base, show=print, kind=None):
    """The schedules that went wrong, as {seed: why}."""
    wrong = {}
    (base / "large").mkdir()
    write_large(base / "large")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(run_one, base, seed, kind)
                for seed in range(first, first + count)]
        for each in concurrent.futures.as_completed(runs):
            seed, why, line = each.result()
            show(line)
            if why is None:
                shutil.rmtree(base / f"seed-{seed}")
            else:
                wrong[seed] = why
    shutil.rmtree(base / "large")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--count", type=int, default=200, metavar="N")
    parser.add_argument("--jobs", type=int, default=3, metavar="N",
                        help="schedules at the same time (default: 3)")
    parser.add_argument("--kind", choices=KINDS, help="only schedules of it")
    args = parser.parse_args()
    if "PACELINE" not in os.environ:
        parser.error("PACELINE must name the program")
    base = pathlib.Path(tempfile.mkdtemp(prefix="schedules-"))
    began = time.monotonic()
    wrong = run(args.first, args.count, args.jobs, base,
                lambda line: print(line, flush=True), args.kind)
    print(f"{args.count - len(wrong)} of {args.count} schedules ended right "
          f"in {time.monotonic() - began:.0f} s")
    if wrong:
        print(f"what the others left is in {base}")
        sys.exit(1)
    base.rmdir()


if __name__ == "__main__":
    main()
