"""All-reduce over the ring: its bits, and what becomes of a job that loses a
worker."""

import json
import re
import signal

import pytest

from conftest import Cli, checkpoints
from jobs import (gone, interrupted, log_of, started, task, tasks,
                  wait_for_checkpoint, wait_for_text)

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never"]
RING = ["--engine", "ring"]
JOB = [*RING, "--workers", "3", "--checkpoint-every", "50", "--steps", "2500"]
ENDLESS = ["--steps", "1000000"]
SOON = ["--heartbeat-timeout", "1"]


def disturbed(cli, index, number, *flags):
    """A job of which one worker gets a signal during training: its result.
    All its processes are gone afterwards."""
    job = started(cli, *DATA, *JOB, *flags)
    wait_for_checkpoint(cli, job)
    pids = [t.pid for t in tasks(job)]
    task(job, "worker", index).send(number)
    result = cli.end(job, *flags)
    gone(pids)
    return result


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("undisturbed"), home)
    summary = cli.train(*DATA, *JOB, "--run", "a")
    assert summary["strategy"] == "allreduce" and summary["ps"] == 0
    assert summary["mode"] is None and summary["deterministic"] is True
    assert [row["steps"] for row in summary["per_worker"]] == [2500] * 3
    return summary["parameters_sha256"]


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("number,says", [
    (signal.SIGKILL, "was killed by signal 9"),
    (signal.SIGSTOP, "was declared lost and killed"),
])
def test_a_lost_worker_comes_back_to_the_same_bits(cli, undisturbed, index,
                                                   number, says):
    result = disturbed(cli, index, number, *SOON)
    assert result.code == 0, result
    assert f"worker {index} {says}" in result.err
    assert "started again (1 of 5)" in result.err
    summary = result.json
    assert summary["parameters_sha256"] == undisturbed
    assert summary["deterministic"] is True
    assert 1 <= summary["restarts"] <= result.err.count("; started again (")
    assert [row["steps"] for row in summary["per_worker"]] == [2500] * 3


@pytest.mark.parametrize("index", [0, 2])
def test_a_kill_during_a_checkpoint(cli, undisturbed, index):
    """Checkpoints at every step: one is being written whenever it strikes."""
    result = disturbed(cli, index, signal.SIGKILL, *SOON, "--checkpoint-every",
                       "1")
    assert result.code == 0, result
    assert result.json["parameters_sha256"] == undisturbed


def test_all_are_killed_in_turn(cli, undisturbed):
    job = started(cli, *DATA, *JOB, *SOON)
    for index in 0, 1, 2:
        wait_for_checkpoint(cli, job)
        task(job, "worker", index).kill()
    result = cli.end(job)
    assert result.code == 0, result
    assert result.json["parameters_sha256"] == undisturbed


def test_continuing_without_the_lost_worker(cli, undisturbed):
    result = disturbed(cli, 1, signal.SIGKILL, *SOON, "--on-worker-loss",
                       "continue", "--restarts", "0")
    assert result.code == 0, result
    assert "the job continues without it" in result.err
    assert re.search(r"worker 1 \(127.0.0.1:\d+\) is lost: it has been "
                     r"silent for \d+\.\d s; continuing without it",
                     log_of(cli, "worker-0"))
    summary = result.json
    assert summary["steps"] == 2500 and summary["deterministic"] is False
    assert summary["parameters_sha256"] != undisturbed


def test_continuing_without_two_workers_lost_together(cli):
    """Two of four, lost for good: neither ends the job."""
    job = started(cli, *DATA, *JOB, "--workers", "4", *SOON,
                  "--on-worker-loss", "continue", "--restarts", "0")
    wait_for_checkpoint(cli, job)
    pids = [t.pid for t in tasks(job)]
    lost = task(job, "worker", 1), task(job, "worker", 3)
    for one in lost:
        one.kill()
    result = cli.end(job)
    gone(pids)
    assert result.code == 0, result
    assert result.err.count("the job continues without it") == 2
    log = log_of(cli, "worker-0")
    assert re.search(r"worker 1 \(127.0.0.1:\d+\) is lost", log), log
    assert re.search(r"worker 3 \(127.0.0.1:\d+\) is lost", log), log
    # Their shares are dealt to the others when the epoch ends (25 steps).
    dealt = re.findall(r"from step (\d+) on (\d) workers share the examples; "
                       r"this one reads share (\d)",
                       log + log_of(cli, "worker-2"))
    assert dealt and {n for _, n, _ in dealt} <= {"2", "3"}, dealt
    last = max(int(step) for step, n, _ in dealt if n == "2")
    shares = {share for step, n, share in dealt if int(step) == last}
    assert shares == {"0", "1"}, dealt
    summary = result.json
    assert summary["steps"] == 2500 and summary["deterministic"] is False


def test_a_worker_that_comes_back_gets_its_share_again(cli):
    job = started(cli, *DATA, *JOB, *SOON, *ENDLESS, "--on-worker-loss",
                  "continue")
    wait_for_checkpoint(cli, job)
    frozen = task(job, "worker", 1)
    frozen.send(signal.SIGSTOP)
    log = cli.folder / "a/log/worker-0.log"
    wait_for_text(log, "on 2 workers share the examples; this one reads share "
                  "0", job)
    wait_for_text(log, "on 3 workers share the examples; this one reads share "
                  "0", job)
    interrupted(cli, job)


def test_abort_ends_the_job(cli):
    result = disturbed(cli, 1, signal.SIGSTOP, *SOON, *ENDLESS,
                       "--on-worker-loss", "abort")
    assert result.code == 1, result
    assert re.search(r"worker 1 \(127.0.0.1:\d+\) is lost.*the job ends "
                     r"\(--on-worker-loss abort\)",
                     result.err.splitlines()[-1]), result
    assert "started again" not in result.err


def test_interrupt_saves_and_resumes_to_the_same_bits(cli):
    job = started(cli, *DATA, *JOB, *ENDLESS)
    wait_for_checkpoint(cli, job)
    job.send_signal(signal.SIGINT)
    result = cli.end(job)
    assert result.code == 130, result
    step = result.json["steps"]
    assert f"interrupted at step {step}" in result.err
    steps = ["--steps", step + 500]
    summary = cli.train("--run", "a", "--resume", *steps)
    assert summary["resumed_step"] == step > 0
    whole = cli.train(*DATA, *JOB, *steps, "--run", "whole")
    assert summary["parameters_sha256"] == whole["parameters_sha256"]


def test_two_workers_have_the_bits_of_a_server(cli):
    flags = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
             "--steps", "100", "--threads", "1"]
    for extra in [], ["--optimizer", "adam", "--aggregate", "sum"], \
            ["--micro-batches", "2", "--clip", "0.5"]:
        ring = cli.train(*flags, *extra, *RING, "--workers", "2")
        again = cli.train(*flags, *extra, *RING, "--workers", "2",
                          "--bucket-bytes", "4096", "--transport", "tcp")
        server = cli.train(*flags, *extra, "--workers", "2", "--ps", "1")
        assert ring["parameters_sha256"] == again["parameters_sha256"]
        assert ring["parameters_sha256"] == server["parameters_sha256"]


def test_three_workers_agree_with_a_server(cli):
    flags = ["--data", "synthetic", "--examples", "3000", "--global-batch",
             "60", "--steps", "100", "--workers", "3"]
    ring, again = cli.train(*flags, *RING), cli.train(*flags, *RING)
    server = cli.train(*flags, "--ps", "1")
    assert ring["parameters_sha256"] == again["parameters_sha256"]
    assert abs(ring["test_loss"] - server["test_loss"]) < 1e-5
    assert ring["batch"] == 20


def test_stop_loss_ends_all(cli):
    summary = cli.train(*RING, "--workers", "3", "--steps", "5000",
                        "--eval-every", "20", "--stop-loss", "1.5")
    assert summary["stopped_by"] == "stop_loss"
    assert summary["steps"] % 20 == 0 and summary["test_loss"] <= 1.5
    assert [row["steps"] for row in summary["per_worker"]] == \
        [summary["steps"]] * 3


def test_the_bucket_size_is_kept(cli):
    flags = [*DATA, *RING, "--workers", "2", "--run", "a"]
    cli.train(*flags, "--steps", "20", "--bucket-bytes", "8192")
    cli.train(*flags, "--steps", "40", "--resume")
    text = (checkpoints(cli.folder / "a")[-1] / "manifest.json").read_text()
    assert '"bucket_bytes": 8192' in text


def test_an_epoch_may_have_any_number_of_steps(cli):
    """The data have 5 steps; they repeat as often as needed."""
    summary = cli.train("--data", "synthetic", "--examples", "200", "--batch",
                        "20", *RING, "--workers", "2", "--epochs", "50",
                        "--steps-per-epoch", "8", "--eval-every", "10ep")
    assert summary["steps"] == 400 and summary["epochs"] == 50
    assert summary["stopped_by"] == "epochs"


def test_without_mpirun_the_ring_is_taken(cli):
    cli.train(*DATA, "--workers", "2", "--steps", "20", "--run", "a",
              env={**cli.env, "PATH": str(cli.folder)})
    args = json.loads((cli.folder / "a/run.json").read_text())["args"]
    assert args["engine"] == "ring"


def test_traces_have_one_clock(cli):
    """The chief's, which the others compare theirs with."""
    cli.train(*DATA, *RING, "--workers", "3", "--steps", "50", "--profile",
              "--run", "a")
    known = ['"ahead_ns":' in (cli.folder / f"a/trace/worker-{w}.json")
             .read_text() for w in range(3)]
    assert known == [False, True, True]


def test_the_last_test_records_the_answers(cli):
    cli.train("--data", "synthetic", "--examples", "500", "--steps", "20",
              *RING, "--workers", "2", "--run", "a")
    matrix = json.loads((cli.folder / "a/confusion.json").read_text())
    assert matrix["classes"] == 10


LOCAL = [*DATA, "--workers", "2", "--local-steps", "8", "--steps", "501"]


def test_local_steps_move_an_eighth_and_keep_their_bits(cli):
    plain = cli.train(*DATA, *RING, "--workers", "2", "--steps", "501",
                      "--transport", "tcp")
    ring = cli.train(*LOCAL, *RING, "--transport", "tcp")
    assert ring["steps"] == 501 and ring["deterministic"] is True
    assert ring["parameters_sha256"] != plain["parameters_sha256"]
    assert ring["bytes_sent"] < plain["bytes_sent"] / 7
    assert "local_steps" not in plain["codec"]
    assert plain["codec"]["changes_bits"] is False
    assert all(0 <= row["stolen_share"] <= 1 for row in ring["per_worker"])
    assert ring["codec"]["local_steps"] == 8
    assert ring["codec"]["changes_bits"] is True
    again = cli.train(*LOCAL, *RING)
    assert again["parameters_sha256"] == ring["parameters_sha256"]


def test_the_summary_says_that_local_steps_change_the_result(cli):
    said = "parameters averaged every 4 steps; the result depends on it"
    flags = ["train", "softmax", *DATA, *RING, "--workers", "2", "--steps", "20"]
    assert said in cli.ok(*flags, "--local-steps", "4").out
    assert "the result depends on it" not in cli.ok(*flags).out


@pytest.mark.parametrize("index", [0, 2])
def test_local_steps_survive_a_lost_worker(cli, index):
    outer = ["--optimizer", "momentum", "--lr", "0.01", "--local-steps", "7",
             "--outer-momentum", "0.5", "--outer-lr", "0.7"]
    calm = cli.train(*DATA, *JOB, *outer, "--run", "calm")
    result = disturbed(cli, index, signal.SIGKILL, *SOON, *outer)
    assert result.code == 0, result
    assert result.json["parameters_sha256"] == calm["parameters_sha256"]


def test_local_steps_that_have_no_meaning_are_refused(cli):
    for flags, words in [
        (["--workers", "2", "--ps", "1", "--local-steps", "4"],
         "--local-steps needs --strategy allreduce"),
        (["--workers", "2", "--outer-lr", "0.5"],
         "--outer-lr is for several updates between exchanges"),
        (["--workers", "2", "--local-steps", "4", "--aggregate", "sum"],
         "parameters have a mean, not a sum"),
    ]:
        result = cli.run("train", "softmax", *flags)
        assert result.code == 2 and words in result.err, result
