"""Jobs that lose a task: the effect on the others, and on the result."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import Cli, checkpoints, program, wait_for
from jobs import (children, gone, interrupted, log_of, started, task, tasks,
                  wait_for_checkpoint, wait_for_text)

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never"]
JOB = ["--workers", "3", "--ps", "2", "--checkpoint-every", "100"]
SYNC = ["--steps", "6000"]
ENDLESS = ["--steps", "1000000"]
ASYNC = ["--steps", "40000", "--mode", "async"]
SSP = ["--steps", "40000", "--mode", "ssp", "--staleness", "3"]
SOON = ["--heartbeat-timeout", "1"]


def disturbed(cli, role, index, number, *flags):
    """A job of which one task gets a signal in mid-training: its result.
    All its processes are gone afterwards."""
    job = started(cli, *DATA, *JOB, *flags)
    wait_for_checkpoint(cli, job)
    pids = [t.pid for t in tasks(job)]
    task(job, role, index).send(number)
    result = cli.end(job, *flags)
    gone(pids)
    return result


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("undisturbed"), home)
    return cli.train(*DATA, *JOB, *SYNC, "--run", "a")["parameters_sha256"]


@pytest.mark.parametrize("index,number,says", [
    (1, signal.SIGKILL, "worker 1 was killed by signal 9"),
    (0, signal.SIGKILL, "worker 0 was killed by signal 9"),
    (2, signal.SIGSTOP, "worker 2 was declared lost and killed"),
])
def test_sync_waits_and_ends_in_the_same_bits(cli, undisturbed, index, number,
                                              says):
    result = disturbed(cli, "worker", index, number, *SYNC, *SOON)
    assert result.code == 0, result
    assert says in result.err and "started again (1 of 5)" in result.err
    summary = result.json
    assert summary["parameters_sha256"] == undisturbed
    assert summary["deterministic"] is True
    assert 1 <= summary["restarts"] <= result.err.count("; started again (")
    assert summary["dropped_gradients"] == 0
    assert [row["steps"] for row in summary["per_worker"]] == [6000] * 3
    if number == signal.SIGSTOP:
        assert "worker 2 (" in log_of(cli, "ps-0")
        assert "is lost at step" in log_of(cli, "ps-0")


@pytest.mark.parametrize("mode,index,number", [
    (ASYNC, 1, signal.SIGKILL), (ASYNC, 0, signal.SIGKILL),
    (SSP, 2, signal.SIGSTOP),
])
def test_async_and_ssp_continue(cli, mode, index, number):
    """The count of steps is exact, with and without the lost one's."""
    result = disturbed(cli, "worker", index, number, *mode, *SOON)
    assert result.code == 0, result
    summary = result.json
    assert summary["steps"] == 40000
    assert sum(row["steps"] for row in summary["per_worker"]) == 40000
    assert summary["deterministic"] is False


def test_sync_continues_without_the_lost_worker(cli, undisturbed):
    result = disturbed(cli, "worker", 1, signal.SIGKILL, *SYNC, *SOON,
                       "--on-worker-loss", "continue", "--restarts", "0")
    assert result.code == 0, result
    assert "the job continues without it" in result.err
    assert "continuing without it" in log_of(cli, "ps-0")
    summary = result.json
    assert summary["steps"] == 6000
    assert summary["deterministic"] is False and summary["restarts"] == 0
    assert summary["parameters_sha256"] != undisturbed
    lost = summary["per_worker"][1]
    assert lost["lost"] is True and lost["index"] == 1
    assert 0 < lost["steps"] < 6000
    # Its share is dealt to the others when the epoch ends (33 steps).
    dealt = re.findall(r"from step (\d+) on (\d) workers share the examples; "
                       r"this one reads share (\d)",
                       log_of(cli, "worker-0") + log_of(cli, "worker-2"))
    assert len(dealt) == 2 and {n for _, n, _ in dealt} == {"2"}, dealt
    assert {share for _, _, share in dealt} == {"0", "1"}, dealt
    assert len({step for step, _, _ in dealt}) == 1, dealt
    assert int(dealt[0][0]) % 33 == 0, dealt


def test_a_worker_that_comes_back_to_sync_gets_its_share_again(cli):
    job = started(cli, *DATA, *JOB, *ENDLESS, *SOON, "--on-worker-loss",
                  "continue")
    wait_for_checkpoint(cli, job)
    task(job, "worker", 1).send(signal.SIGSTOP) # lost, and started again
    log = cli.folder / "a/log/worker-0.log"
    wait_for_text(log, "on 2 workers share the examples; this one reads share "
                  "0", job)
    wait_for_text(log, "on 3 workers share the examples; this one reads share "
                  "0", job)
    interrupted(cli, job)


@pytest.mark.parametrize("number,says", [
    (signal.SIGKILL, "worker 1 was killed by signal 9"),
    (signal.SIGSTOP, "(--on-worker-loss abort)"),
])
def test_abort_ends_the_job(cli, number, says):
    result = disturbed(cli, "worker", 1, number, *ENDLESS, *SOON,
                       "--on-worker-loss", "abort")
    assert result.code == 1, result
    assert says in result.err.splitlines()[-1]
    assert "started again" not in result.err
    assert not (cli.folder / "a" / "summary.json").exists()


def test_a_chief_frozen_at_its_end_does_not_hold_the_job(cli):
    """All is done and saved; it prints its summary, which is not read yet."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, bytes(65536)):
            pass
    os.set_blocking(writer, True)
    job = subprocess.Popen(
        [program(), "train", "softmax", "--json", "--run", "a", *DATA, *JOB,
         "--steps", "200", *SOON], cwd=cli.folder, env=cli.env,
        stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
        text=True)
    os.close(writer)

    chief = task(job, "worker", 0)
    where = pathlib.Path(f"/proc/{chief.pid}/wchan")
    assert wait_for(lambda: "pipe_write" in where.read_text(), "the summary")
    chief.send(signal.SIGSTOP)
    _, err = job.communicate(timeout=120)
    os.close(reader)
    assert job.returncode == 1, err
    assert "worker 0 was declared lost and killed: the training is complete " \
        "and saved, only the summary is missing: --resume prints it" in err
    assert cli.train("--run", "a", "--resume")["steps"] == 200


def test_without_restarts_a_loss_ends_the_job(cli):
    """It ends at once, without waiting for a worker that cannot come back, and
    the state is saved."""
    result = disturbed(cli, "worker", 1, signal.SIGKILL, *ENDLESS, *SOON,
                       "--restarts", "0")
    assert result.code == 1, result
    assert "worker 1 was killed by signal 9" in result.err.splitlines()[-1]
    assert "still running" not in result.err
    step = int(checkpoints(cli.folder / "a")[-1].name[5:])
    summary = cli.train("--resume", "--run", "a", "--steps", step + 500)
    assert summary["resumed_step"] == step >= 100
    assert summary["steps"] == step + 500


def test_a_loss_that_blows_up_ends_the_job_once(cli):
    """No task is restarted to blow up once more."""
    result = cli.run("train", "softmax", *DATA, *JOB, *SYNC, "--lr", "1000000",
                     "--weight-decay", "1000000", "--run", "a")
    assert result.code == 1, result
    assert "started again" not in result.err
    assert "smaller --lr" in result.err.splitlines()[-1], result


@pytest.mark.parametrize("index,number,says", [
    (0, signal.SIGKILL, "killed by signal 9"),
    (1, signal.SIGKILL, "killed by signal 9"),
    (1, signal.SIGSTOP, "declared lost and killed"),
    (0, signal.SIGSTOP, "declared lost and killed"),
])
def test_a_lost_server_is_recovered(cli, undisturbed, index, number, says):
    """Restarted, it gets its part of the last checkpoint, and all continue
    from there: the same bits."""
    result = disturbed(cli, "ps", index, number, *SYNC, *SOON)
    assert result.code == 0, result
    assert f"ps {index} was {says}" in result.err
    assert "started again (1 of 5)" in result.err
    summary = result.json
    back = re.findall(r"continuing at step (\d+)", log_of(cli, "worker-0"))
    lost = re.findall(r"partition of the parameters at step (\d+)",
                      log_of(cli, "ps-0"))
    assert back and summary["rolled_back"] >= 0, result
    if index == 1:  # the chief may not know of the last step
        steps = sum(map(int, lost)) - sum(map(int, back))
        assert 0 <= steps - summary["rolled_back"] <= len(lost), result
    assert summary["parameters_sha256"] == undisturbed
    assert summary["steps"] == 6000 and summary["deterministic"] is True
    assert summary["dropped_gradients"] == 0


@pytest.mark.parametrize("role,index", [("ps", 0), ("ps", 1), ("worker", 0)])
def test_losses_while_a_job_begins_change_no_bit(cli, undisturbed, role,
                                                 index):
    """With or without a first checkpoint: what is there is complete, or it is
    written again; then a server is lost once more."""
    flags = [*SYNC, *SOON, "--checkpoint-every", "never"]
    job = started(cli, *DATA, "--workers", "3", "--ps", "2", *flags)
    folder = cli.folder / "a" / "checkpoints" / "step-0000000000"
    assert wait_for(folder.exists, "the first checkpoint's folder", job)
    task(job, role, index).kill()
    assert wait_for((folder / "manifest.json").exists, "it is complete", job)
    task(job, "ps", 1 - index).kill()
    result = cli.end(job)
    assert result.code == 0, result
    assert result.err.count("; started again (") >= 1, result
    assert result.json["parameters_sha256"] == undisturbed
    assert result.json["steps"] == 6000


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("mode", [ASYNC, SSP], ids=["async", "ssp"])
def test_async_and_ssp_recover_a_server(cli, mode, index):
    """What is rolled back is made again: the count of steps is exact."""
    result = disturbed(cli, "ps", index, signal.SIGKILL, *mode, *SOON)
    assert result.code == 0, result
    summary = result.json
    assert summary["steps"] == 40000
    assert sum(row["steps"] for row in summary["per_worker"]) == 40000


def timeline(cli, kind=None):
    """The events of a run, or those of a kind."""
    path = cli.folder / "a" / "timeline.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [e for e in events if kind is None or e["event"] == kind]


def test_losses_and_rollbacks_are_recorded(cli):
    """A killed worker, then a killed server before any checkpoint but the
    first: the timeline, the terminal and the summary report it."""
    flags = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
             "--threads", "1", "--eval-every", "500", "--workers", "2",
             "--ps", "1", "--checkpoint-every", "never", "--steps", "12000"]
    job = cli.start("train", "softmax", "--run", "a", *flags)
    assert wait_for(lambda: timeline(cli, "test"), "a test", job)
    task(job, "worker", 1).kill()
    assert wait_for(lambda: timeline(cli, "restart"), "a restart", job)
    first = timeline(cli, "test")[-1]["step"]
    assert wait_for(lambda: timeline(cli, "test")[-1]["step"] > first,
                    "another test", job)
    task(job, "ps", 0).kill()
    result = cli.end(job)
    assert result.code == 0, result

    events = timeline(cli)
    times = [event["time"] for event in events]
    assert events[0]["event"] == "start" and min(times) == times[0]
    happened = [(e["event"], e["task"]) for e in events
                if e["event"] in ("lost", "restart", "rollback")]
    assert happened == [
        ("lost", "worker 1"), ("restart", "worker 1"), ("lost", "ps 0"),
        ("restart", "ps 0"), ("rollback", "worker 0")], happened
    assert "signal 9" in timeline(cli, "lost")[0]["text"]
    back, = timeline(cli, "rollback")
    assert back["step"] == 0 < back["from"] <= 12000
    saved = [e["step"] for e in timeline(cli, "checkpoint")]
    assert saved == [12000]
    assert timeline(cli, "test")[-1]["test_loss"] > 0

    told = f"the job was rolled back from step {back['from']} to step 0"
    assert told in result.err
    summary = json.loads((cli.folder / "a" / "summary.json").read_text())
    assert summary["restarts"] == 2 and summary["rollbacks"] == 1
    assert summary["rolled_back"] == back["from"]
    assert [e["event"] for e in summary["incidents"]] == \
        [kind for kind, _ in happened]
    lost = {e["task"]: e["step"] for e in timeline(cli, "lost")}
    assert 0 <= lost["worker 1"] <= lost["ps 0"] <= back["from"]
    when = r" \(after [\d.]+ s\)"
    how = r" and restarted: was killed by signal 9 \(Killed\)\n"
    assert re.search(
        r"^restarts       2\n"
        rf"what happened  worker 1 was lost near step {lost['worker 1']}"
        rf"{when}{how}"
        rf"               ps 0 was lost near step {lost['ps 0']}{when}{how}"
        rf"               the job rolled back from step {back['from']} to step 0"
        rf"{when}$", result.out, re.M), result


@pytest.mark.parametrize("index", [0, 1])
def test_without_restarts_a_lost_server_ends_the_job(cli, index):
    result = disturbed(cli, "ps", index, signal.SIGKILL, *ENDLESS, *SOON,
                       "--restarts", "0", "--rejoin-timeout", "2")
    assert result.code == 1, result
    last = result.err.splitlines()[-1]
    assert f"ps {index} at 127.0.0.1:" in last and "killed by signal 9" in last
    assert "started again" not in result.err
    assert "still running" not in result.err
    assert not (cli.folder / "a" / "summary.json").exists()


def test_no_task_outlives_its_supervisor(cli):
    job = started(cli, *DATA, *JOB, *ENDLESS, "--evaluator", "--eval-every", "1")
    wait_for_checkpoint(cli, job)
    pids = children(job.pid)
    assert len(pids) == 6
    job.kill()
    job.communicate()
    gone(pids)


def test_backup_workers_do_not_wait_for_a_slow_worker(cli):
    """Worker 2 is stopped while the two others make steps, then wakes with a
    gradient that is too old."""
    job = started(cli, *DATA, *JOB, *SYNC, "--replicas-to-aggregate", "2",
                  "--heartbeat-timeout", "60")
    wait_for_checkpoint(cli, job)
    slow = task(job, "worker", 2)
    slow.send(signal.SIGSTOP)
    before = checkpoints(cli.folder / "a")[-1]
    assert wait_for(lambda: checkpoints(cli.folder / "a")[-1] > before,
                    "more steps", job)
    slow.send(signal.SIGCONT)
    result = cli.end(job)
    assert result.code == 0, result
    summary = result.json
    assert summary["steps"] == 6000
    assert summary["dropped_gradients"] > 0
    assert summary["deterministic"] is False
    assert summary["restarts"] == 0
    assert summary["per_worker"][2]["dropped"] > 0


def test_every_restart_is_counted_when_all_tasks_are_killed(cli, undisturbed):
    """Server 0, which counts the tasks that rejoin, is killed, too."""
    job = started(cli, *DATA, *JOB, *SYNC)
    wait_for_checkpoint(cli, job)
    all_tasks = tasks(job)
    for one in all_tasks:
        one.kill()
    result = cli.end(job)
    assert result.code == 0, result
    assert result.json["parameters_sha256"] == undisturbed
    assert result.json["restarts"] >= len(all_tasks)
    assert result.json["restarts"] == result.err.count("; started again (")
