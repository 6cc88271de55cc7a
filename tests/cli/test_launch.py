"""A training started on several hosts by `launch`, with a stand-in for ssh."""

import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import SMALL, wait_for
from hosts import HOSTS, descendants, fake_ssh
from jobs import gone, wait_for_text, words_of

LONG = ["--data", "synthetic", "--examples", 2000, "--steps", 100000000]


def launch(cli, *flags, hosts=HOSTS, train=SMALL, more=()):
    return ["launch", "--ssh", fake_ssh(cli.folder), "--hosts",
            ",".join(hosts), *more, "--", "train", "softmax", "--json",
            *train, *flags]


def parameter_servers(cli, *flags, **more):
    return launch(cli, "--workers", 3, "--ps", 2, *flags, **more)


def test_job_ends_in_the_bits_of_one_machine(cli):
    here = cli.train("--workers", 3, "--ps", 2, *SMALL)
    there = cli.ok(*parameter_servers(cli, "--run", "there"))
    assert there.json["parameters_sha256"] == here["parameters_sha256"]
    assert there.json["workers"] == 3 and there.json["ps"] == 2
    # Only the chief's summary is on standard output; all else has a prefix.
    assert len(there.out.splitlines()) == 1
    assert "worker 2 on 127.0.0.3: " in there.err, there
    logs = {path.name for path in (cli.folder / "there/log").iterdir()}
    assert {"ps-0.log", "ps-1.log", "worker-0.log", "worker-1.log",
            "worker-2.log"} <= logs
    assert (cli.folder / "there/summary.json").exists()


def test_ring_ends_in_the_bits_of_one_machine(cli):
    here = cli.train("--workers", 3, "--engine", "ring", *SMALL)
    there = cli.ok(*launch(cli)).json
    assert there["strategy"] == "allreduce" and there["workers"] == 3
    assert there["parameters_sha256"] == here["parameters_sha256"]


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="without mpirun")
def test_mpi_job_is_started_by_mpirun(cli):
    # MPI itself leaks, which only sanitizers mind.
    options = cli.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    result = cli.ok(*launch(cli, "--engine", "mpi", hosts=HOSTS[:2]),
                    env=dict(cli.env, ASAN_OPTIONS=options))
    assert result.json["strategy"] == "allreduce"
    assert result.json["workers"] == 2
    assert "by mpirun" in result.err


def test_resume_of_a_run_that_is_not_there_is_refused(cli):
    cli.refused(2, *launch(cli, "--run", "typo", "--resume"),
                says="--resume: there is no run folder typo")


def test_secret_is_in_no_command_line_and_no_environment(cli):
    process = cli.start(*parameter_servers(cli, train=LONG))
    assert wait_for(lambda: len(tasks(process)) == 5, "five tasks", process)
    for pid in descendants(process.pid):
        words = " ".join(words_of(pid))
        assert "PACELINE_KEYS" not in words
        for text in environment(pid):
            if text.startswith("PACELINE_KEYS="):
                assert text.startswith("PACELINE_KEYS=/proc/self/fd/")
    process.send_signal(signal.SIGINT)
    cli.end(process)
    assert "--secret" not in (cli.folder / "ssh.log").read_text()


def tasks(process):
    """Processes of the job that train or serve."""
    return [pid for pid in descendants(process.pid)
            if "train" in words_of(pid) and "launch" not in words_of(pid)
            and "sh" not in words_of(pid)[:1]]


def running(cli, *flags, count=5, err=subprocess.PIPE, **more):
    process = cli.start(*parameter_servers(cli, *flags, train=LONG, **more),
                        stderr=err)
    assert wait_for(lambda: len(tasks(process)) == count, "all tasks",
                    process), process.communicate()
    return process, descendants(process.pid)


def test_ctrl_c_ends_all_everywhere(cli):
    process, pids = running(cli, "--run", "a")
    # Before it has begun there is nothing to resume.
    assert wait_for((cli.folder / "a/run.json").exists, "the run", process)
    process.send_signal(signal.SIGINT)
    result = cli.end(process)
    assert result.code == 130, result
    assert "--run a --resume" in result.err
    gone(pids)


def test_killed_launcher_leaves_nobody(cli):
    process, pids = running(cli)
    process.kill()
    process.communicate()
    gone(pids)


def test_killed_ssh_is_named_and_leaves_nobody(cli):
    process, pids = running(cli)
    agents = [pid for pid in pids if "--agent" in words_of(pid)]
    os.kill(agents[1], signal.SIGKILL)
    result = cli.end(process)
    assert result.code == 1 and "127.0.0." in result.err.splitlines()[-1], \
        result
    gone(pids)


def environment(pid):
    """Of a process; empty when it is gone."""
    try:
        return open(f"/proc/{pid}/environ").read().split("\0")
    except OSError:
        return []


def place_of(pid):
    """(role, index) of a task."""
    for text in environment(pid):
        if text.startswith("TF_CONFIG="):
            task = json.loads(text.removeprefix("TF_CONFIG="))["task"]
            return task["type"], task["index"]
    return None


@pytest.mark.parametrize("role, index", [("worker", 0), ("worker", 2),
                                         ("ps", 1)])
def test_killed_task_is_started_again(cli, role, index):
    said = cli.folder / "said"
    with said.open("wb") as err:
        process, _ = running(cli, "--run", "a", err=err)
    record = cli.folder / "a/run.json"
    assert wait_for(record.exists, "the run of the chief", process)
    victim, = [pid for pid in tasks(process)
               if place_of(pid) == (role, index)]
    os.kill(victim, signal.SIGKILL)
    assert wait_for(lambda: len(tasks(process)) == 5 and
                    victim not in tasks(process), "a new task", process), \
        said.read_text()
    wait_for_text(said, "was killed by signal 9 (Killed); started again "
                  "(1 of 5)", process)
    process.send_signal(signal.SIGINT)
    assert cli.end(process).code == 130, said.read_text()
    assert f"{role} {index} on " in said.read_text()


def test_host_that_cannot_be_used_is_named_with_the_reason(cli):
    result = cli.run(*launch(cli, "--ps", 1,
                             hosts=["127.0.0.1", "127.0.0.99", "127.0.0.97"]))
    assert result.code == 1
    assert "127.0.0.99 does not answer: ssh: connect to host 127.0.0.99 " \
        "port 22: No route to host" in result.err, result
    assert "127.0.0.97 has paceline 9.9, this is" in result.err
    assert "2 of 3 hosts" in result.err.splitlines()[-1]


def test_host_without_the_program_is_named_once(cli):
    result = cli.run(*launch(cli, more=["--program", "/none/paceline"],
                             hosts=HOSTS[:1]))
    assert result.code == 1
    assert result.err.count("127.0.0.1 has no paceline there") == 1, result


def test_host_without_the_data_is_named(cli):
    result = cli.run(*parameter_servers(cli, "--data", "idx:nowhere",
                                        train=["--steps", 10]))
    assert result.code == 1 and "nowhere" in result.err, result
    assert "3 of 3 hosts" in result.err.splitlines()[-1]


def test_copy_sends_the_program(cli):
    result = cli.ok(*parameter_servers(cli, more=["--copy"]))
    assert result.json["steps"] == 50
    copy = os.path.join(cli.env["HOME"], ".cache/paceline/bin/paceline")
    assert os.access(copy, os.X_OK)
    assert copy in (cli.folder / "ssh.log").read_text()


def test_cluster_file_says_who_is_where(cli):
    from jobs import free_ports
    ports = free_ports(3)
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"],
               "worker": [f"127.0.0.2:{ports[1]}", f"127.0.0.1:{ports[2]}"]}
    (cli.folder / "c.json").write_text(json.dumps({"cluster": cluster}))
    result = cli.ok("launch", "--ssh", fake_ssh(cli.folder), "--cluster",
                    "c.json", "--", "train", "softmax", "--json", *SMALL)
    assert result.json["workers"] == 2
    assert "worker 0 on 127.0.0.2: " in result.err, result


def test_evaluator_is_started_too(cli):
    result = cli.ok(*parameter_servers(cli, "--evaluator"))
    assert "evaluator 0 on 127.0.0.1: " in result.err, result


@pytest.mark.parametrize("words, says", [
    ([], "launch needs the command"),
    (["--hosts", "a"], "launch needs the command"),
    (["--hosts", "a", "train", "softmax"], "put -- before the command"),
    (["--", "train", "softmax"], "give --hosts a,b,c or --cluster FILE"),
    (["--hosts", "a,,b", "--", "train", "softmax"], "--hosts"),
    (["--hosts", "a,a", "--", "train", "softmax"], "host a is there twice"),
    (["--hosts", "-oProxyCommand=x", "--", "train", "softmax"],
     "is not the name of a host"),
    (["--hosts", "a", "--", "eval"], "launch starts `train`"),
    (["--hosts", "a", "--", "train"], "train needs a model"),
    (["--hosts", "a", "--", "train", "sofmax"], "did you mean softmax"),
    (["--hosts", "a", "--", "train", "softmax", "--btach", "1"],
     "did you mean --batch"),
    (["--hosts", "a", "--", "train", "softmax", "--role", "ps"], "--role"),
    (["--hosts", "a", "--cluster", "c", "--", "train", "softmax"],
     "not both"),
])
def test_wrong_command_is_one_sentence(cli, words, says):
    cli.env.pop("SLURM_JOB_NODELIST", None)
    cli.refused(2, "launch", *words, says=says)


SRUN = """#!/bin/sh
# srun FLAGS... --nodelist HOST COMMAND...: what it is told is noted, as anyone
# on the way could.
while [ "$1" != --nodelist ]; do shift; done
shift 2
tee -a '{folder}/heard' | "$@"
"""


def test_the_secret_does_not_go_through_srun(cli):
    srun = cli.folder / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN.format(folder=cli.folder))
    srun.chmod(0o755)
    env = {**cli.env, "PATH": f"{srun.parent}:{os.environ['PATH']}",
           "SLURM_JOB_NODELIST": ",".join(HOSTS[:2])}
    result = cli.ok("launch", "--", "train", "softmax", "--json", *SMALL,
                    "--workers", 2, "--ps", 1, "--run", "a", env=env)
    assert result.json["steps"] == 50
    heard = (cli.folder / "heard").read_text()
    assert '"start"' in heard and '"secret_file"' in heard, heard
    assert '"secret":' not in heard
    assert not re.search(r"[0-9a-f]{64}", heard)
    assert not list((cli.folder / "a").glob(".key-*"))
