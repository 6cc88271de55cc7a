"""One cell of the fault matrix: a job of real processes, a host for each,
that is disturbed once and must end right."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import time

FAULTS = ["kill", "freeze", "cut", "disk"]
ROLES = ["worker", "chief", "ps", "evaluator"]
MODES = ["sync", "async", "ssp"]

PS, WORKERS = 2, 2
HOSTS = PS + 1 + WORKERS + 1  # with the chief and the evaluator
DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1"]
DEADLINE_S = 300
NAMED_WITHIN_S = 25  # much less than the time to rejoin
REJOIN_S = 60
DISK_BYTES = 4 << 20


@dataclasses.dataclass(frozen=True)
class Pace:
    """How soon a silent task is lost, and for how long tasks are silent."""
    heartbeat_s: float
    away_s: float
    sync_steps: int
    own_pace_steps: int  # in async and ssp

    def steps(self, mode):
        return self.sync_steps if mode == "sync" else self.own_pace_steps


FAST = Pace(heartbeat_s=1, away_s=2, sync_steps=1500, own_pace_steps=6000)
FULL = Pace(heartbeat_s=5, away_s=7, sync_steps=3000, own_pace_steps=24000)


@dataclasses.dataclass(frozen=True)
class Cell:
    fault: str
    role: str
    mode: str
    policy: str = ""  # --on-worker-loss, where it is given

    @property
    def name(self):
        return "-".join(filter(None, [self.fault, self.role, self.mode,
                                      self.policy]))


MATRIX = [Cell(fault, role, mode)
          for fault in FAULTS for role in ROLES for mode in MODES] + \
    [Cell(fault, "worker", mode, "abort")
     for fault in ("kill", "freeze", "cut") for mode in MODES]


class Wrong(Exception):
    """The cell did not end right."""


def program():
    return os.path.abspath(os.environ["PACELINE"])


def undisturbed(pace, folder):
    """The bits of the sync job: those of one process that takes as many
    batches a step."""
    done = subprocess.run(
        [program(), "train", "softmax", *DATA, "--steps", str(pace.sync_steps),
         "--micro-batches", str(1 + WORKERS), "--eval-every", "never",
         "--checkpoint-every", "never", "--json", "--quiet", "--run", "alone"],
        cwd=folder, check=True, capture_output=True, timeout=DEADLINE_S)
    return json.loads(done.stdout.splitlines()[-1])["parameters_sha256"]


class Task:
    """A task of the job, however often it is started."""

    def __init__(self, job, role, index, host):
        self.job, self.role, self.index, self.host = job, role, index, host
        self.folder = job.folder / f"{role}-{index}"
        self.folder.mkdir()
        self.log = job.folder / f"{role}-{index}.log"
        self.starts = 0
        self.process = None

    def flags(self):
        flags = ["--role", self.role, "--index", self.index]
        if self.role == "chief":
            flags += ["--json", "--run", self.job.run]
            flags += ["--resume-or-start"] if self.starts > 0 else []
        return flags

    def start(self):
        words = [program(), "train", "softmax", *self.job.flags(),
                 *self.flags()]
        with self.log.open("ab") as log, self.job.stdout.open("ab") as out:
            self.process = subprocess.Popen(
                self.job.net.command(self.host, list(map(str, words))),
                cwd=self.folder, stdin=subprocess.DEVNULL, stderr=log,
                stdout=out if self.role == "chief" else subprocess.DEVNULL)
        self.starts += 1

    def ended(self):
        return self.process.poll() is not None

    def last_words(self):
        return (self.log.read_text(errors="replace").splitlines() or [""])[-1]


class Job:
    """Its tasks, each on a host of its own."""

    def __init__(self, cell, pace, net, folder):
        self.cell, self.pace, self.net, self.folder = cell, pace, net, folder
        self.deadline = time.monotonic() + DEADLINE_S
        self.over_before = False
        self.run, self.stdout = folder / "run", folder / "stdout"
        names = [("ps", i) for i in range(PS)] + [("chief", 0)] + \
            [("worker", i) for i in range(WORKERS)]
        if cell.role == "evaluator":
            names.append(("evaluator", 0))
        self.tasks = [Task(self, *name, host)
                      for host, name in enumerate(names)]
        where = {}
        for task in self.tasks:
            if task.role != "evaluator":
                where.setdefault(task.role, []).append(
                    f"{net.address(task.host)}:2222")
        (folder / "c.json").write_text(json.dumps({"cluster": where}))
        subprocess.run([program(), "keys", "-o", folder / "job.key"],
                       check=True, capture_output=True)

    def flags(self):
        cell, steps = self.cell, self.pace.steps(self.cell.mode)
        flags = [*DATA, "--cluster", self.folder / "c.json", "--keys",
                 self.folder / "job.key", "--transport", "tcp",
                 "--mode", cell.mode, "--steps", steps,
                 "--checkpoint-every", steps // 30,
                 "--heartbeat-timeout", self.pace.heartbeat_s,
                 "--join-timeout", 60, "--rejoin-timeout", REJOIN_S]
        flags += ["--staleness", 3] if cell.mode == "ssp" else []
        flags += ["--on-worker-loss", cell.policy] if cell.policy else []
        flags += ["--eval-every", steps // 10 if cell.role == "evaluator"
                  else "never"]
        return flags

    def task(self, role, index=0):
        return next(t for t in self.tasks if (t.role, t.index) ==
                    (role, index))

    def step(self):
        """Of the newest complete checkpoint; -1: none."""
        found = self.run.glob("checkpoints/step-*/manifest.json")
        return max((int(path.parent.name[5:]) for path in found), default=-1)

    def wait(self, condition, what):
        while not condition():
            if time.monotonic() > self.deadline:
                raise Wrong(f"hangs: waited {DEADLINE_S} s for {what}")
            time.sleep(0.01)

    def trains_until(self, step):
        def there():
            for task in self.tasks:
                if task.ended():
                    raise Wrong(f"{task.role} {task.index} ended before step "
                                f"{step}: {task.last_words()}")
            return self.step() >= step
        self.wait(there, f"step {step}")

    def kill_all(self):
        for task in self.tasks:
            if task.process is not None:
                task.process.kill()
                task.process.wait()


def pass_time(seconds):
    """The length of the fault itself, not a wait for something."""
    time.sleep(seconds)


def kill(job, victim):
    """kill -9; the supervisor of the job restarts it."""
    victim.process.kill()
    victim.process.wait()
    if job.cell.policy != "abort":
        victim.start()


def freeze(job, victim):
    victim.process.send_signal(signal.SIGSTOP)
    pass_time(job.pace.away_s)
    victim.process.send_signal(signal.SIGCONT)


def cut(job, victim):
    job.net.cut(victim.host)
    pass_time(job.pace.away_s)
    job.net.heal(victim.host)


def disk(job, victim):
    """The disk of the task is full: for the chief until it has reported it,
    for the others until the end."""
    filler = victim.folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass  # full
    if victim.role == "chief":
        job.wait(lambda: "No space left" in victim.log.read_text(),
                 "the chief to say that the disk is full")
        filler.unlink()


ACTS = {"kill": kill, "freeze": freeze, "cut": cut, "disk": disk}


def mount(job, victim):
    """A small disk below all that the task writes; the chief's log is
    elsewhere, to be read."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}",
                    "plfault", victim.folder], check=True)
    if victim.role == "chief":
        job.run = victim.folder / "run"
    else:
        victim.log = victim.folder / "log"


def unmount(victim):
    subprocess.run(["umount", "--lazy", victim.folder], check=False)


def judge(job, victim, expected_sha):
    """All have ended: as they should?"""
    mode = job.cell.mode
    # Restarted, or reconnecting to a job that need not wait for it, it may have
    # found no task any more.
    job.over_before |= (victim.starts > 1 or mode != "sync") and \
        "ps 0" in victim.last_words() and \
        "did not answer within" in victim.last_words()
    for task in job.tasks:
        if task.process.returncode != 0 and not (task is victim and
                                                 job.over_before):
            raise Wrong(f"{task.role} {task.index} exits with "
                        f"{task.process.returncode}: {task.last_words()}")
    summary = json.loads(job.stdout.read_text().splitlines()[-1])
    if summary["steps"] != job.pace.steps(mode):
        raise Wrong(f"{summary['steps']} steps")
    back = ", over before it was back" if job.over_before else ""
    if mode != "sync":
        return "right" + back
    if summary["parameters_sha256"] != expected_sha:
        raise Wrong("other bits than the undisturbed run")
    if not summary["deterministic"]:
        raise Wrong("not deterministic")
    return "same bits" + back


def judge_abort(job, victim, began):
    """All others end soon, and name the lost task."""
    said = f"{victim.role} {victim.index}"
    others = [task for task in job.tasks if task is not victim]
    job.wait(lambda: all(task.ended() for task in others),
             "the end of all others")
    seconds = time.monotonic() - began
    limit = job.pace.heartbeat_s + NAMED_WITHIN_S
    for task in others:
        if task.process.returncode != 1 or said not in task.last_words():
            raise Wrong(f"{task.role} {task.index} exits with "
                        f"{task.process.returncode}: {task.last_words()}")
    if seconds > limit:
        raise Wrong(f"all ended after {seconds:.1f} s, expected {limit} s")
    return "abort, named"


def run(cell, seed, pace, net, folder, expected_sha):
    """The result of the cell, in a few words.  Raises Wrong."""
    rng = random.Random(f"{cell.name} {seed}")
    job = Job(cell, pace, net, folder)
    count = {"ps": PS, "worker": WORKERS}.get(cell.role, 1)
    victim = job.task(cell.role, rng.randrange(count))
    steps = pace.steps(cell.mode)
    if cell.fault == "disk":
        mount(job, victim)
    try:
        for task in rng.sample(job.tasks, len(job.tasks)):
            task.start()
        job.trains_until(rng.randrange(steps // 20, steps // 3))
        began = time.monotonic()
        ACTS[cell.fault](job, victim)
        # A job that can do without the victim need not wait for it.
        job.over_before = job.task("chief").ended()
        if cell.policy == "abort":
            return judge_abort(job, victim, began)
        job.wait(lambda: all(task.ended() for task in job.tasks),
                 "the end of all")
        return judge(job, victim, expected_sha)
    finally:
        job.kill_all()
        net.heal(victim.host)
        if cell.fault == "disk":
            unmount(victim)


def table(outcomes):
    """{cell: text} as lines: fault and role, then the result of each mode."""
    rows = [["fault", "role", *MODES]]
    keys = {(c.fault, c.role, c.policy) for c in outcomes}
    for fault, role, policy in sorted(
            keys, key=lambda k: (k[2], FAULTS.index(k[0]), ROLES.index(k[1]))):
        found = {c.mode: text for c, text in outcomes.items()
                 if (c.fault, c.role, c.policy) == (fault, role, policy)}
        rows.append([fault, f"{role} ({policy})" if policy else role,
                     *(found.get(mode, "-") for mode in MODES)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in
                               zip(row, widths)).rstrip() for row in rows)
