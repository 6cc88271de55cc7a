"""All-reduce by MPI: real ranks, started by us and by mpirun itself."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from conftest import DEADLINE_S, Cli, leaks_allowed, program, wait_for
from jobs import (children, gone, interrupted, started, wait_for_checkpoint,
                  wait_for_progress, wait_for_text, words_of)

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never"]
JOB = ["--workers", "3", "--engine", "mpi", "--checkpoint-every", "100"]
STEPS = ["--steps", "500"]

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun") is None, reason="mpirun is not installed")


@pytest.fixture(scope="module", autouse=True)
def no_leak_check():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASAN_OPTIONS", leaks_allowed())
        yield


def ranks(supervisor):
    """The processes of the ranks, the first one first."""
    found = []
    for mpirun in children(supervisor.pid):
        for pid in children(mpirun):
            if "train" in words_of(pid):
                found.append(pid)
    return sorted(found)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("undisturbed"), home)
    return cli.train(*DATA, *JOB, *STEPS, "--run", "a")


def test_agrees_with_the_parameter_server(cli, undisturbed):
    assert undisturbed["strategy"] == "allreduce"
    assert undisturbed["mode"] is None and undisturbed["ps"] == 0
    assert undisturbed["deterministic"] is True
    assert [row["steps"] for row in undisturbed["per_worker"]] == [500] * 3
    by_servers = cli.train(*DATA, *STEPS, "--workers", "3", "--ps", "1")
    assert undisturbed["train_loss"] == pytest.approx(
        by_servers["train_loss"], abs=1e-5)


def test_local_steps_have_the_bits_of_the_ring(cli):
    flags = [*DATA, "--workers", "2", "--local-steps", "8", "--steps", "501"]
    assert cli.train(*flags, "--engine", "mpi")["parameters_sha256"] == \
        cli.train(*flags, "--engine", "ring")["parameters_sha256"]


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_two_workers_give_the_bits_of_the_parameter_server(cli, optimizer):
    """A sum of two has one order only."""
    flags = [*DATA, "--steps", "100", "--optimizer", optimizer, "--workers",
             "2"]
    together = cli.train(*flags, "--engine", "mpi")
    servers = cli.train(*flags, "--ps", "1")
    assert together["parameters_sha256"] == servers["parameters_sha256"]


def endless(cli, *flags):
    """A job that ends on request, and its output."""
    said = cli.folder / "said"
    with said.open("wb") as err:
        job = started(cli, *DATA, *JOB, "--steps", "100000000", *flags,
                      stderr=err)
    wait_for_checkpoint(cli, job)
    return job, said


def same_steps_undisturbed(cli, steps):
    return cli.train(*DATA, *JOB, "--steps", steps,
                     "--run", "b")["parameters_sha256"]


@pytest.mark.parametrize("rank,number", [
    (0, signal.SIGKILL), (2, signal.SIGKILL), (1, signal.SIGSTOP)])
def test_job_is_restarted_after_a_lost_rank(cli, rank, number):
    stopped = number == signal.SIGSTOP
    job, said = endless(cli, "--heartbeat-timeout", "5" if stopped else "60")
    pids = ranks(job)
    os.kill(pids[rank], number)
    wait_for_text(said, "restarting it from its last checkpoint with 3 "
                  "workers (1 of 5)", job)
    gone(pids)
    wait_for_progress(cli, job)
    summary = interrupted(cli, job).json
    if stopped:
        assert re.search(r"worker \d \(\S+\) is lost: it has been silent "
                         r"for \d\.\d s", said.read_text())
        assert summary["restarts"] >= 1  # a machine can be that slow
    else:
        assert "exited on signal 9" in said.read_text()
        assert summary["restarts"] == 1
    assert summary["parameters_sha256"] == \
        same_steps_undisturbed(cli, summary["steps"])


def test_job_continues_with_fewer_ranks(cli):
    job, said = endless(cli, "--min-workers", "2", "--heartbeat-timeout", "60")
    os.kill(ranks(job)[1], signal.SIGKILL)
    wait_for_text(said, "with 2 workers", job)
    wait_for_progress(cli, job)
    summary = interrupted(cli, job).json
    assert len(summary["per_worker"]) == 2
    assert summary["deterministic"] is False


def test_interrupt_saves_and_resume_gives_the_same_bits(cli):
    job, _ = endless(cli)
    pids = ranks(job)
    saved = interrupted(cli, job).json["steps"]
    gone(pids)
    again = cli.train("--run", "a", "--resume", "--steps", saved + 500)
    assert again["resumed_step"] == saved
    assert again["parameters_sha256"] == \
        same_steps_undisturbed(cli, saved + 500)


def heard(process, number):
    """The signal was delivered: the next one is another."""
    path = pathlib.Path(f"/proc/{process.pid}/status")

    def there():
        pending = re.findall(r"(?:Sig|Shd)Pnd:\s*(\w+)", path.read_text())
        return not any(int(mask, 16) >> (number - 1) & 1 for mask in pending)
    wait_for(there, f"the delivery of signal {number}", process)


@pytest.mark.parametrize("launcher_too", [False, True])
def test_a_second_ctrl_c_leaves_no_process(cli, launcher_too):
    """Frozen, the ranks cannot do what the first one asks for."""
    job, _ = endless(cli, "--heartbeat-timeout", "600")
    pids = ranks(job)
    mpirun = children(job.pid)
    for pid in [*pids, *(mpirun if launcher_too else [])]:
        os.kill(pid, signal.SIGSTOP)
    job.send_signal(signal.SIGINT)
    heard(job, signal.SIGINT)
    job.send_signal(signal.SIGINT)
    job.wait(DEADLINE_S)  # not for the end of its output, which others hold
    left = [pid for pid in [*mpirun, *pids] if words_of(pid)]
    result = cli.end(job)
    assert result.code == 130, result
    if launcher_too:
        gone(left)  # killed, they may still be on their way
    else:
        assert not left


def test_no_rank_is_left_when_the_supervisor_is_killed(cli):
    job, _ = endless(cli)
    pids = [*children(job.pid), *ranks(job)]
    job.kill()
    cli.end(job)
    gone(pids)


def test_under_mpirun(cli, undisturbed):
    allow = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    done = subprocess.run(
        ["mpirun", "--oversubscribe", *allow, "-n", "3", program(), "train",
         "softmax", *DATA, *STEPS, "--json", "--run", "by-hand"],
        cwd=cli.folder, env=cli.env, capture_output=True, text=True,
        timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done
    assert undisturbed["parameters_sha256"] in done.stdout
    assert done.stdout.count("parameters_sha256") == 1  # the chief alone


@pytest.mark.parametrize("flags,says", [
    (["--workers", "2", "--ps", "1", "--strategy", "allreduce"],
     "leave out --ps"),
    (["--workers", "2", "--mode", "async"], "--mode needs a parameter server"),
    (["--workers", "2", "--engine", "mpi", "--keys", "k"],
     "--keys has no effect with --engine mpi"),
    (["--workers", "2", "--min-workers", "3"], "there are only 2"),
])
def test_flags_that_do_not_fit(cli, flags, says):
    cli.refused(2, "train", "softmax", *flags, says=says)
