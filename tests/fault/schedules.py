#!/usr/bin/env python3
"""Random fault schedules: jobs under --chaos, each of which must end right.

    PACELINE=build/release/paceline tests/fault/schedules.py [--first SEED]
        [--count N] [--jobs N] [--keep]

A seed decides the size of a job, its mode, how often it is hit and how soon a
silent task is lost; the rest is chosen by --chaos from the same seed.  A job
ends right when it exits with status 0 after exactly its steps, in sync with
the bits of a run that nobody disturbed, and leaves no process behind.  One
line a schedule; the exit status is 1 when one was wrong, and its folder is
kept.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

DEADLINE_S = 300
DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1"]
STEPS = {"sync": 6000, "async": 20000, "ssp": 20000}


class Schedule:
    """What one seed stands for."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.seed = seed
        self.mode = rng.choice(sorted(STEPS))
        self.workers = rng.randint(1, 4)
        self.ps = rng.randint(1, 3)
        self.evaluator = rng.random() < 0.3
        self.transport = rng.choice(["auto", "tcp"])
        self.heartbeat = rng.choice([0.5, 1, 2])
        # A frozen task is lost after the heartbeat: most of the time all must
        # be there, or there is no progress.
        self.rate = rng.choice([0.25, 0.5, 1]) / self.heartbeat
        self.steps = STEPS[self.mode]

    def flags(self):
        flags = [*DATA, "--seed", self.seed, "--steps", self.steps,
                 "--workers", self.workers, "--ps", self.ps,
                 "--mode", self.mode, "--transport", self.transport,
                 "--heartbeat-timeout", self.heartbeat,
                 "--checkpoint-every", self.steps // 40,
                 "--restarts", 100, "--chaos", self.rate]
        if self.mode == "ssp":
            flags += ["--staleness", 3]
        flags += ["--evaluator", "--eval-every", self.steps // 10] \
            if self.evaluator else ["--eval-every", "never"]
        return [str(flag) for flag in flags]

    def name(self):
        return (f"{self.mode:5} {self.workers} workers {self.ps} ps "
                f"{'evaluator' if self.evaluator else '':9} "
                f"{self.transport:4} {self.rate:5} faults/s "
                f"heartbeat {self.heartbeat:3} s")


def paceline(folder, flags, deadline_s):
    """Exit status (None: not done in time), both outputs, seconds.  Nothing
    that was started stays."""
    began = time.monotonic()
    job = subprocess.Popen(
        [os.path.abspath(os.environ["PACELINE"]), "train", "softmax",
         "--json", "--run", "a", *flags],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    try:
        out, err = job.communicate(timeout=deadline_s)
        code = job.returncode
    except subprocess.TimeoutExpired:
        job.kill()
        out, err = job.communicate()
        code = None
    return code, out, err, time.monotonic() - began


@functools.cache
def undisturbed(seed, workers, steps):
    """The bits of a sync job: those of one process with as many batches."""
    with tempfile.TemporaryDirectory() as folder:
        code, out, err, _ = paceline(
            folder, [*DATA, "--seed", str(seed), "--steps", str(steps),
                     "--micro-batches", str(workers), "--eval-every", "never",
                     "--checkpoint-every", "never"], DEADLINE_S)
    assert code == 0, err
    return json.loads(out.splitlines()[-1])["parameters_sha256"]


def judge(schedule, code, out, err):
    """What is wrong with how the job ended; None: nothing."""
    if code is None:
        return f"hangs: not done in {DEADLINE_S} s"
    if code != 0:
        return f"exit status {code}: {(err.splitlines() or [''])[-1]}"
    summary = json.loads(out.splitlines()[-1])
    if summary["steps"] != schedule.steps:
        return f"{summary['steps']} steps"
    if summary["faults"] != err.count("chaos: fault"):
        return f"{summary['faults']} faults counted, " \
               f"{err.count('chaos: fault')} said"
    if schedule.mode == "sync" and summary["parameters_sha256"] != \
            undisturbed(schedule.seed, schedule.workers, schedule.steps):
        return "other bits than the undisturbed run"
    if schedule.mode == "sync" and not summary["deterministic"]:
        return "not deterministic"
    return None


def run_one(base, seed):
    """(seed, what is wrong or None, the line to print)"""
    schedule = Schedule(seed)
    folder = base / f"seed-{seed}"
    folder.mkdir()
    code, out, err, seconds = paceline(folder, schedule.flags(), DEADLINE_S)
    (folder / "stdout").write_text(out)
    (folder / "stderr").write_text(err)
    wrong = judge(schedule, code, out, err)
    faults = err.count("chaos: fault")
    return seed, wrong, (f"seed {seed:5}  {schedule.name()}  {faults:3} "
                         f"faults {seconds:6.1f} s  {wrong or 'right'}")


def run(first, count, jobs, base, show=print):
    """The schedules that went wrong, as {seed: why}."""
    wrong = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(run_one, base, seed)
                for seed in range(first, first + count)]
        for each in concurrent.futures.as_completed(runs):
            seed, why, line = each.result()
            show(line)
            if why is None:
                shutil.rmtree(base / f"seed-{seed}")
            else:
                wrong[seed] = why
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--count", type=int, default=200, metavar="N")
    parser.add_argument("--jobs", type=int, default=3, metavar="N",
                        help="schedules at the same time (default: 3)")
    args = parser.parse_args()
    if "PACELINE" not in os.environ:
        parser.error("PACELINE must name the program")
    base = pathlib.Path(tempfile.mkdtemp(prefix="schedules-"))
    began = time.monotonic()
    wrong = run(args.first, args.count, args.jobs, base,
                lambda line: print(line, flush=True))
    print(f"{args.count - len(wrong)} of {args.count} schedules ended right "
          f"in {time.monotonic() - began:.0f} s")
    if wrong:
        print(f"what the others left is in {base}")
        sys.exit(1)
    base.rmdir()


if __name__ == "__main__":
    main()
