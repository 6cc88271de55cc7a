"""The share of a worker that is gone for good is read by the others: no
example of an epoch is lost, and none is read twice."""

import contextlib
import pathlib
import signal

import pytest

from conftest import checkpoints, wait_for
from jobs import (hand, log_of, task, wait_for_text,
                  write_cluster)  # hand is a fixture

BATCH, EPOCHS = 10, 3
# A machine may be too fast for the first number, so larger ones follow.
EXAMPLES = [30000, 100000, 300000]
PACE = ["--batch", BATCH, "--epochs", EPOCHS, "--threads", "1", "--eval-every",
        "never", "--mode", "async", "--heartbeat-timeout", "1",
        "--on-worker-loss", "continue", "--checkpoint-every", "never"]
SPARSE = ["sparse", "--features", "100000"]


def cpu_ticks(process):
    """Processor time of a process, in clock ticks; None: it has ended."""
    with contextlib.suppress(OSError):
        text = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
        return sum(map(int, text.rsplit(")", 1)[1].split()[11:13]))


def killed(cli, ps, examples, *flags):
    """A job that loses worker 1 for good when that has made some steps, so
    that the others read its share: its summary; None when it was over
    before.  No task waits --rejoin-timeout for it."""
    run = f"a{examples}"
    job = cli.start("train", *flags, *PACE, "--json", "--run", run, "--ps", ps,
                    "--workers", "3", "--restarts", "0", "--rejoin-timeout",
                    "1000")

    def trains():
        said = cli.folder / run / "log" / "worker-1.log"
        return said.exists() and "reads" in said.read_text()
    victim = task(job, "worker", 1)
    wait_for(trains, "worker 1 to read", job)
    # One that dies before it has joined all servers is started again.
    for index in range(ps):
        wait_for(lambda: "worker 1 joined" in log_of(cli, f"ps-{index}", run),
                 "worker 1 to join", job)
    before = cpu_ticks(victim)
    wait_for(lambda: cpu_ticks(victim) != before, "worker 1 to train", job)
    with contextlib.suppress(ProcessLookupError):
        victim.kill()
    result = cli.end(job)
    assert result.code == 0, result
    if "reads the data share of worker 1" not in log_of(cli, "ps-0", run):
        return None
    assert result.json["per_worker"][1]["lost"] is True
    return result.json


def in_time(attempt):
    """The result of an attempt, and its number of examples."""
    for examples in EXAMPLES:
        found = attempt(examples)
        if found is not None:
            return found, examples
    pytest.fail("the job was always over before the fault")


def is_whole(summary, examples):
    steps = EPOCHS * examples // BATCH
    assert summary["steps"] == steps
    assert summary["examples"] == steps * BATCH
    assert sum(row["steps"] for row in summary["per_worker"]) == steps


@pytest.mark.parametrize("ps,flags", [
    (1, SPARSE), (2, SPARSE), (1, ["softmax", "--data", "synthetic"])])
def test_the_others_read_the_share_of_a_killed_worker(cli, ps, flags):
    summary, examples = in_time(lambda examples: killed(
        cli, ps, examples, *flags, "--examples", examples))
    is_whole(summary, examples)


def test_blocks_of_files_go_to_the_others(cli):
    def attempt(examples):
        cli.ok("data", "convert", "synthetic-sparse", "libsvm:x.svm",
               "--features", "100000", "--examples", examples)
        return killed(cli, 1, examples, *SPARSE, "--data", "libsvm:x.svm",
                      "--shuffle-buffer", "2000")
    summary, _ = in_time(attempt)
    # Blocks are not of one size: the least share counts for all.
    assert summary["steps"] % 3 == 0
    assert sum(row["steps"] for row in summary["per_worker"]) == \
        summary["steps"]


def by_hand(cli, hand, examples, *more):
    """Two workers and a server, started one by one: the processes, their logs
    and their flags."""
    flags = [*PACE, "--data", "synthetic", "--examples", examples, *more]
    logs = [cli.folder / f"{name}-{examples}.log"
            for name in ("ps", "chief", "other")]
    write_cluster(cli, 2, 1)
    with logs[0].open("ab") as file:
        job = [hand.start("ps", 0, *flags, stderr=file)]
    wait_for_text(logs[0], "listens on", job[0])
    for index in range(2):
        with logs[1 + index].open("ab") as file:
            job.append(hand.start("worker", index, *flags, stderr=file))
    return job, logs, flags


def alone(cli, hand, examples):
    """A job of which worker 1 is killed and never comes back: the summary of
    the chief; None when it was over before."""
    job, (log, *_), _ = by_hand(cli, hand, examples, "--rejoin-timeout", "1000")
    wait_for_text(log, "worker 1 joined", job[0])
    job[2].kill()
    job[2].wait()
    results = [hand.end(process) for process in job[:2]]
    (cli.folder / "a").rename(cli.folder / f"a{examples}")
    if "worker 0 reads the data share of worker 1" not in log.read_text():
        return None
    assert [result.code for result in results] == [0] * 2, results
    return results[1].json


def test_no_task_waits_for_a_lost_worker(cli, hand):
    is_whole(*in_time(lambda examples: alone(cli, hand, examples)))


def frozen(cli, hand, examples):
    """A job of which worker 1 is frozen until the chief reads its share, then
    the chief until worker 1 is back: the summary; None when it was over
    before."""
    job, (log, *_), _ = by_hand(cli, hand, examples)

    def said(text):
        return text in log.read_text()
    wait_for_text(log, "worker 1 joined", job[0])
    job[2].send_signal(signal.SIGSTOP)
    wait_for(lambda: said("worker 0 reads the data share of worker 1"), "the chief",
             job[1])
    job[1].send_signal(signal.SIGSTOP)
    job[2].send_signal(signal.SIGCONT)
    wait_for(lambda: said("worker 1 is back"), "worker 1", job[2])
    job[1].send_signal(signal.SIGCONT)
    results = [hand.end(process) for process in job]
    (cli.folder / "a").rename(cli.folder / f"a{examples}")
    if not said("worker 1 is back"):
        return None
    assert [result.code for result in results] == [0] * 3, results
    return results[1].json


def test_a_frozen_worker_takes_its_share_back(cli, hand):
    """Each gradient counts once, whichever of the two made it."""
    is_whole(*in_time(lambda examples: frozen(cli, hand, examples)))


def test_a_finished_worker_waits_for_a_restarted_server(cli, hand):
    """The chief had not finished, so the steps that the server lost are made
    again, which needs all workers."""
    examples = 60000
    job, logs, flags = by_hand(cli, hand, examples)
    # The first checkpoint is written, and the chief has gone on.
    wait_for(lambda: checkpoints(cli.folder / "a"), "a checkpoint", job[1])
    begun = cpu_ticks(job[1])
    wait_for(lambda: cpu_ticks(job[1]) > begun + 6, "the chief")
    job[1].send_signal(signal.SIGSTOP)
    wait_for_text(logs[0], "worker 1 is done", job[0])
    job[0].kill()
    hand.end(job[0])
    wait_for_text(logs[2], "waits for ps 0", job[2])
    with logs[0].open("ab") as file:
        job[0] = hand.start("ps", 0, *flags, stderr=file)
    job[1].send_signal(signal.SIGCONT)
    results = [hand.end(process) for process in job]
    assert [result.code for result in results] == [0] * 3, results
    is_whole(results[1].json, examples)
