"""Tasks started by hand: where each keeps its events, resources and log."""

import json
import os
import re
import signal
import subprocess

import pytest

from conftest import program
from jobs import free_ports, wait_for_text

TRAIN = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
         "--batch", "20", "--threads", "1", "--steps", "60",
         "--monitor-every", "0.05"]


class Job:
    """A job whose tasks are started one by one."""

    def __init__(self, cli, workers=2, ps=1):
        self.cli = cli
        ports = iter(free_ports(workers + ps))
        self.cluster = {}
        if ps > 0:
            self.cluster["ps"] = [f"127.0.0.1:{next(ports)}"
                                  for _ in range(ps)]
        self.cluster["worker"] = [f"127.0.0.1:{next(ports)}"
                                  for _ in range(workers)]
        self.started = {}

    def start(self, role, index, *flags, prefix=(), cwd=None):
        folder = cwd or self.cli.folder
        path = folder / "cluster.json"
        if not path.exists():
            path.write_text(json.dumps({"cluster": self.cluster}))
        words = [*prefix, program(), *TRAIN, "--cluster",
                 "cluster.json", "--role", role, "--index", index, *flags]
        with self.said(role, index).open("wb") as file:
            self.started[role, index] = subprocess.Popen(
                [str(word) for word in words], cwd=folder, env=self.cli.env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file)

    def said(self, role, index):
        """What it writes to standard error."""
        return self.cli.folder / f"{role}-{index}.err"

    def end(self, interrupted=()):
        """Wait for all; what each wrote to standard error."""
        results = {task: self.cli.end(process)
                   for task, process in self.started.items()}
        for task, result in results.items():
            assert result.code == (130 if task in interrupted else 0), \
                (task, result, self.said(*task).read_text())
        return {task: self.said(*task).read_text() for task in results}

    def kill(self):
        for process in self.started.values():
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def jobs(cli):
    made = []

    def make(**more):
        made.append(Job(cli, **more))
        return made[-1]
    yield make
    for job in made:
        job.kill()


def runs(folder):
    return sorted(path for path in folder.glob("runs/*") if path.is_dir())


def assert_records(run, role, index, late=False):
    """The task's log and its events. A worker that may come too late for
    any step has an event file that holds the version alone."""
    events = list((run / f"events/{role}-{index}").glob("events.out.*"))
    assert events, (role, index)
    size = events[0].stat().st_size
    assert size >= 40 if late else size > 100, (role, index)
    log = (run / f"log/{role}-{index}.log").read_text()
    assert log.splitlines(), (role, index)
    return log


CHIEF_FIRST = [("worker", 0), ("ps", 0), ("worker", 1)]
CHIEF_LAST = [("ps", 0), ("worker", 1), ("worker", 0)]


@pytest.mark.parametrize("order", [CHIEF_FIRST, CHIEF_LAST])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_tasks_of_one_folder_share_the_chiefs(cli, jobs, order, mode):
    job = jobs()
    for task in order:
        job.start(*task, "--mode", mode)
    said = job.end()
    assert len(runs(cli.folder)) == 1
    run, = runs(cli.folder)
    for task in order:
        log = assert_records(run, *task, late=mode == "async")
        assert log.splitlines()[0] in said[task]
        if task != ("worker", 0):
            assert f"records are in the chief's run folder {run}" in said[task]
    table, = run.glob("resources/*.csv")
    assert table.read_text().startswith("time,cpu,")


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_ring_workers_share_the_chiefs(cli, jobs, order):
    job = jobs(workers=3, ps=0)
    for index in order:
        job.start("worker", index)
    job.end()
    run, = runs(cli.folder)
    for index in order:
        assert_records(run, "worker", index)


def test_the_evaluator_and_the_traces_are_recorded_too(cli, jobs):
    """A job that continues until the evaluator, for which no task waits, has
    joined."""
    job = jobs()
    endless = ["--steps", "1000000"]
    job.start("ps", 0, *endless, "--profile")
    for index in (1, 0):
        job.start("worker", index, *endless, "--profile")
    job.start("evaluator", 0, *endless)
    wait_for_text(job.said("evaluator", 0), "test loss",
                  job.started["evaluator", 0])
    job.started["worker", 0].send_signal(signal.SIGINT)
    job.end(interrupted=[("worker", 0)])
    run, = runs(cli.folder)
    for task in job.started:
        assert_records(run, *task)
    assert {path.name for path in run.glob("trace/*")} == \
        {"ps-0.json", "worker-0.json", "worker-1.json"}


def test_other_working_folders_make_no_difference(cli, jobs, tmp_path):
    """The chief's folder is found by its path, wherever a task was started."""
    job = jobs()
    for role, index in CHIEF_LAST:
        folder = tmp_path / f"{role}-{index}"
        folder.mkdir()
        job.start(role, index, cwd=folder)
    job.end()
    run, = runs(tmp_path / "worker-0")
    for task in CHIEF_LAST:
        assert_records(run, *task)
        if task != ("worker", 0):
            assert not (tmp_path / f"{task[0]}-{task[1]}" / "runs").exists()


def local_of(err, folder):
    """The folder that the task named at its start."""
    found = re.search(r"the chief's run folder is not visible from here; the "
                      r"records of this task are in (\S+) on \S+", err)
    assert found, err
    return folder / found.group(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide a folder")
def test_a_hidden_folder_means_a_local_one(cli, jobs, tmp_path):
    """As on another host: worker 1 has its own mount of the runs folder.  What
    it writes there goes to a disk that we can look at."""
    hidden = ("worker", 1)
    runs_folder, disk = cli.folder / "runs", tmp_path / "disk"
    runs_folder.mkdir()
    disk.mkdir()
    prefix = ["unshare", "-m", "sh", "-c",
              f"mount --bind {disk} {runs_folder} && exec \"$@\"", "sh"]
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("cannot mount in a namespace of its own")
    job = jobs()
    for task in CHIEF_LAST:
        job.start(*task, prefix=prefix if task == hidden else ())
    said = job.end()
    run, = runs(cli.folder)
    local = local_of(said[hidden], cli.folder)
    assert local.parent == runs_folder and not local.exists()
    assert [path.name for path in disk.iterdir()] == [local.name]
    assert_records(disk / local.name, *hidden)
    assert list((disk / local.name).glob("resources/*.csv"))
    for task in CHIEF_LAST[0], CHIEF_LAST[2]:
        assert_records(run, *task)
    assert not (run / "events/worker-1").exists()


def test_a_folder_of_its_own_is_used_and_named(cli, jobs):
    """Of a worker; a server keeps its checkpoints where the chief has its."""
    job = jobs()
    for task in CHIEF_LAST:
        job.start(*task, "--run", "own" if task == ("worker", 1) else "chief")
    said = job.end()
    for task in CHIEF_LAST:
        own = task == ("worker", 1)
        assert_records(cli.folder / ("own" if own else "chief"), *task)
        if own:
            assert "records of this task are in own on" in said[task]
    assert not runs(cli.folder)


def test_a_server_with_a_folder_of_its_own_is_refused(cli, jobs):
    """It would keep its checkpoints where no other task finds them."""
    job = jobs(workers=1)
    job.start("ps", 0, "--run", "own")
    job.start("worker", 0, "--run", "chief")
    for process in job.started.values():
        assert job.cli.end(process).code == 1
    for task in job.started:
        assert "every parameter server must see the run folder" in \
            job.said(*task).read_text(), task


def test_the_folder_of_another_job_is_left_alone(cli, jobs):
    cli.train("--data", "synthetic", "--examples", "2000", "--steps", "10",
              "--run", "other")
    before = sorted((cli.folder / "other").rglob("*"))
    job = jobs()
    for task in CHIEF_LAST:
        job.start(*task, "--run", "other" if task == ("worker", 1) else "a")
    said = job.end()
    assert sorted((cli.folder / "other").rglob("*")) == before
    assert "--run other holds the run of another job" in said["worker", 1]
    assert_records(local_of(said["worker", 1], cli.folder), "worker", 1)
