"""The share of a worker that is gone for good is read by the others: no
example of an epoch is lost, and none is read twice."""

import pathlib
import signal

import pytest

from conftest import checkpoints, wait_for
from jobs import (hand, log_of, task, wait_for_text,
                  write_cluster)  # hand is a fixture

EXAMPLES, BATCH, EPOCHS = 30000, 10, 3
ALL = EPOCHS * EXAMPLES // BATCH
PACE = ["--batch", BATCH, "--epochs", EPOCHS, "--threads", "1", "--eval-every",
        "never", "--mode", "async", "--heartbeat-timeout", "1",
        "--on-worker-loss", "continue"]
SPARSE = ["sparse", "--features", "100000"]


def killed(cli, *flags):
    """A job that loses worker 1 for good when that has made some steps: its
    summary, and what server 0 logged."""
    job = cli.start("train", *flags, *PACE, "--json", "--run", "a",
                    "--workers", "3", "--restarts", "0", "--rejoin-timeout",
                    "1", "--checkpoint-every", "never")

    def trains():
        said = cli.folder / "a" / "log" / "worker-1.log"
        return said.exists() and "reads" in said.read_text()
    victim = task(job, "worker", 1)
    assert wait_for(trains, "worker 1 to read", job)
    assert wait_for(lambda: "worker 1 joined" in log_of(cli, "ps-0"),
                    "worker 1 to join", job)
    victim.kill()
    result = cli.end(job)
    assert result.code == 0, result
    assert result.json["per_worker"][1]["lost"] is True
    return result.json, log_of(cli, "ps-0")


def is_whole(summary):
    assert summary["steps"] == ALL
    assert summary["examples"] == ALL * BATCH
    assert sum(row["steps"] for row in summary["per_worker"]) == ALL


@pytest.mark.parametrize("ps,flags", [
    (1, [*SPARSE, "--examples", EXAMPLES]),
    (2, [*SPARSE, "--examples", EXAMPLES]),
    (1, ["softmax", "--data", "synthetic", "--examples", EXAMPLES]),
])
def test_the_others_read_the_share_of_one_that_was_killed(cli, ps, flags):
    summary, log = killed(cli, *flags, "--ps", ps)
    assert "reads on for worker 1" in log
    if ps == 1:
        is_whole(summary)
    else:  # the push that it died in may be at one server only
        assert ALL <= summary["steps"] <= ALL + 1


def test_blocks_of_files_go_to_the_others(cli):
    cli.ok("data", "convert", "synthetic-sparse", "libsvm:x.svm", "--features",
           "100000", "--examples", EXAMPLES)
    summary, log = killed(cli, *SPARSE, "--data", "libsvm:x.svm",
                          "--shuffle-buffer", "2000", "--ps", "1")
    assert "reads on for worker 1" in log
    # Blocks are not of one size: the least share counts for all.
    assert summary["steps"] % 3 == 0
    assert sum(row["steps"] for row in summary["per_worker"]) == \
        summary["steps"]


def test_one_that_was_frozen_takes_its_share_back(cli, hand):
    """Each gradient counts once, whoever of the two made it."""
    flags = [*PACE, "--data", "synthetic", "--examples", EXAMPLES,
             "--checkpoint-every", "never"]
    write_cluster(cli, 2, 1)
    log = cli.folder / "ps.log"
    with log.open("wb") as file:
        job = [hand.start("ps", 0, *flags, stderr=file)]
    wait_for_text(log, "listens on", job[0])
    job += [hand.start("worker", i, *flags) for i in range(2)]
    wait_for_text(log, "worker 1 joined", job[0])
    job[2].send_signal(signal.SIGSTOP)
    wait_for_text(log, "worker 0 reads on for worker 1", job[0])
    job[2].send_signal(signal.SIGCONT)
    results = [hand.end(process) for process in job]
    assert [result.code for result in results] == [0] * 3, results
    assert "worker 1 is back" in log.read_text()
    is_whole(results[1].json)


def cpu_ticks(process):
    text = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
    return sum(map(int, text.rsplit(")", 1)[1].split()[11:13]))


def test_one_that_is_done_waits_for_a_server_to_be_back(cli, hand):
    """The chief was not done, so what the server lost is made again, and for
    that all are needed."""
    flags = [*PACE, "--data", "synthetic", "--examples", EXAMPLES,
             "--checkpoint-every", "never"]
    write_cluster(cli, 2, 1)
    logs = [cli.folder / name for name in ("ps.log", "chief.log", "other.log")]
    files = [path.open("ab") for path in logs]
    job = [hand.start("ps", 0, *flags, stderr=files[0])]
    wait_for_text(logs[0], "listens on", job[0])
    job += [hand.start("worker", i, *flags, stderr=files[1 + i])
            for i in range(2)]
    # The first checkpoint is written, and the chief has gone on.
    wait_for(lambda: checkpoints(cli.folder / "a"), "a checkpoint", job[1])
    begun = cpu_ticks(job[1])
    wait_for(lambda: cpu_ticks(job[1]) > begun + 4, "the chief", job[1])
    job[1].send_signal(signal.SIGSTOP)
    wait_for_text(logs[0], "worker 1 is done", job[0])
    job[0].kill()
    hand.end(job[0])
    wait_for_text(logs[2], "waits for ps 0", job[2])
    job[0] = hand.start("ps", 0, *flags, stderr=files[0])
    job[1].send_signal(signal.SIGCONT)
    results = [hand.end(process) for process in job]
    for file in files:
        file.close()
    assert [result.code for result in results] == [0] * 3, results
    is_whole(results[1].json)
