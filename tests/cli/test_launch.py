"""A training started on several hosts by `launch`, with a stand-in for ssh."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from conftest import SMALL, leaks_allowed, wait_for
from hosts import HOSTS, apart_ssh, descendants, fake_ssh, mapped_ssh
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
    result = cli.ok(*launch(cli, "--engine", "mpi", hosts=HOSTS[:2]),
                    env=dict(cli.env, ASAN_OPTIONS=leaks_allowed()))
    assert result.json["strategy"] == "allreduce"
    assert result.json["workers"] == 2
    assert "by mpirun" in result.err


def test_matmul_runs_on_the_hosts(cli):
    flags = ["matmul", "--n", 120, "--blocks", 6, "--seed", 3, "--json"]
    here = cli.ok(*flags, "--workers", 3).json
    start = ["launch", "--ssh", fake_ssh(cli.folder), "--hosts",
             ",".join(HOSTS), "--"]
    there = cli.ok(*start, *flags)
    assert there.json["workers"] == 3
    for key in "n", "blocks", "bytes_moved", "checked", "verified":
        assert there.json[key] == here[key], key
    called = (cli.folder / "ssh.log").read_text()
    assert all(host in called for host in HOSTS)
    cli.refused(2, *start, *flags, "--compare",
                says="--compare is not for workers that launch starts")


def test_resume_of_a_missing_run_is_refused(cli):
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
    # Before the first step there is nothing to resume.
    assert wait_for((cli.folder / "a/run.json").exists, "the run", process)
    process.send_signal(signal.SIGINT)
    result = cli.end(process)
    assert result.code == 130, result
    assert "--run a --resume" in result.err
    gone(pids)


def test_killed_launcher_leaves_no_process(cli):
    """agent A1"""
    process, pids = running(cli)
    process.kill()
    process.communicate()
    gone(pids)


def test_killed_ssh_is_named_and_leaves_no_process(cli):
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
def test_killed_task_is_restarted(cli, role, index):
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
    assert "[src/" not in result.err
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


def test_copy_sends_data_once(cli):
    """Each host gets the files that it lacks, or has otherwise."""
    (cli.folder / "data").mkdir()
    for name, label in ("a.svm", 1), ("b.svm", -1):
        (cli.folder / "data" / name).write_text(f"{label} 3:1 7:1\n" * 50)
    start = ["launch", "--copy", "--ssh", mapped_ssh(cli.folder), "--hosts",
             ",".join(HOSTS[:2]), "--", "train", "sparse", "--data",
             "libsvm:data/*.svm", "--features", 10, "--workers", 2, "--ps", 1,
             "--batch", 10, "--steps", 3, "--eval-every", "never"]
    assert "data: 2 files, 4 copies sent to 2 hosts" in cli.ok(*start).err
    copies = [cli.folder / host / "data" / name for host in HOSTS[:2]
              for name in ("a.svm", "b.svm")]
    for copy in copies:
        assert copy.read_bytes() == \
            (cli.folder / "data" / copy.name).read_bytes()
        assert len(list(copy.parent.iterdir())) == 2  # and nothing else
    copies[3].write_text("1 3:1 9:1\n" * 50)
    assert "data: 2 files, 1 copies sent to 2 hosts" in cli.ok(*start).err
    assert copies[3].read_bytes() == copies[1].read_bytes()
    assert "data: 2 files, 0 copies sent to 2 hosts" in cli.ok(*start).err


def test_a_file_truncated_while_it_is_copied_is_named(cli):
    """Its checksum takes a second at least, of bytes that are not there."""
    path = cli.folder / "a.svm"
    with path.open("wb") as file:
        file.truncate(2 << 30)
    process = cli.start(
        "launch", "--copy", "--ssh", mapped_ssh(cli.folder), "--hosts",
        HOSTS[0], "--", "train", "sparse", "--data", f"libsvm:{path}",
        "--features", 10, "--workers", 1, "--ps", 1, "--steps", 3)
    maps = pathlib.Path(f"/proc/{process.pid}/maps")
    assert wait_for(lambda: str(path) in maps.read_text(), "the file", process)
    os.truncate(path, 100)
    result = cli.end(process)
    assert result.code == 1, result
    assert f"{path} changed while it was read" in result.err, result
    assert not (cli.folder / HOSTS[0] / "a.svm").exists()


def test_cluster_file_assigns_tasks_to_hosts(cli):
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
    (["--hosts", "a,a", "--", "train", "softmax"], "host a is named twice"),
    (["--hosts", "-oProxyCommand=x", "--", "train", "softmax"],
     "is not the name of a host"),
    (["--hosts", "a", "--", "eval"], "launch starts `train`, `sweep` or `matmul`"),
    (["--", "sweep", "a.sweep"], "no hosts: give --hosts a,b,c"),
    (["--hosts", "a", "--deploy", "b", "--", "train", "softmax"],
     "--deploy needs --cluster"),
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


def test_entry_of_a_cluster_file_is_picked_by_its_name(cli):
    (cli.folder / "c.json").write_text(json.dumps({
        "one": {"worker": ["127.0.0.1:0"]},
        "two": {"ps": ["127.0.0.1:4711"],
                "worker": ["127.0.0.1:4712", "127.0.0.2:4713"]}}))
    words = ["launch", "--ssh", fake_ssh(cli.folder), "--cluster", "c.json"]
    rest = ["--", "train", "softmax", "--json", *SMALL]
    cli.refused(2, *words, *rest, says="choose one with --deploy: one, two")
    result = cli.ok(*words, "--deploy", "two", *rest)
    assert result.json["workers"] == 2 and result.json["ps"] == 1


# --- hosts that share nothing -------------------------------------------

@pytest.fixture
def apart(cli, tmp_path_factory):
    """Launch over hosts that have neither this folder nor its runs."""
    homes = tmp_path_factory.mktemp("homes")
    ssh = apart_ssh(cli.folder, homes)
    if ssh is None:
        pytest.skip("no mount namespaces here")

    def words(*flags, hosts=HOSTS[1:], train=SMALL):
        return ["launch", "--ssh", ssh, "--hosts", ",".join(hosts), "--",
                "train", "softmax", "--json", *train, *flags]
    words.homes = homes
    yield words


def left(homes):
    """Run folders that hosts still keep."""
    return list(homes.glob("*/.cache/paceline/jobs/*"))


def test_records_of_hosts_that_share_nothing_arrive(cli, apart):
    here = cli.train("--workers", 2, "--ps", 1, *SMALL)
    there = cli.ok(*apart("--workers", 2, "--ps", 1, "--profile", "--run",
                          "a"))
    assert there.json["parameters_sha256"] == here["parameters_sha256"]
    assert there.json["run"] == "a"
    assert "2 of 2 hosts do not share the run folder" in there.err
    run = cli.folder / "a"
    tasks = ["ps-0", "worker-0", "worker-1"]
    for task in tasks:
        assert any((run / "events" / task).iterdir())
        assert (run / f"trace/{task}.json").exists()
        assert (run / f"log/{task}.log").exists()
    tables = {path.stem for path in (run / "resources").glob("*.csv")}
    assert tables == {f"node-{host}" for host in HOSTS[1:]}
    assert json.loads((run / "summary.json").read_text()) == there.json
    events = [json.loads(line)["event"] for line in
              (run / "timeline.jsonl").read_text().splitlines()]
    assert events[0] == "start" and "test" in events
    manifests = list((run / "checkpoints").glob("*/manifest.json"))
    assert manifests
    cli.ok("report", "a", "-o", "report.html")
    page = (cli.folder / "report.html").read_text()
    assert all(f"node-{host}" in page for host in HOSTS[1:])
    assert not left(apart.homes)


def test_run_of_hosts_that_share_nothing_is_resumed(cli, apart):
    here = cli.train("--workers", 2, "--ps", 1, *SMALL)
    half = [word if word != "50" else 25 for word in SMALL]
    cli.ok(*apart("--workers", 2, "--ps", 1, "--run", "a", train=half))
    there = cli.ok(*apart("--workers", 2, "--ps", 1, "--run", "a",
                          "--resume"))
    assert there.json["resumed_step"] == 25
    assert there.json["parameters_sha256"] == here["parameters_sha256"]
    # A host continues its own table.
    assert len(list((cli.folder / "a/resources").glob("*.csv"))) == 2


def test_servers_that_share_no_folder_are_refused(cli, apart):
    result = cli.run(*apart("--workers", 2, "--ps", 2, "--run", "a"))
    assert result.code == 1
    assert "ps 1 on 127.0.0.3 and the chief on 127.0.0.2 do not share the " \
        "run folder a" in result.err.splitlines()[-1], result
    assert not left(apart.homes)


def test_received_records_of_a_lost_host_are_kept(cli, apart):
    process = cli.start(*apart("--workers", 2, "--ps", 1, "--run", "a",
                               train=LONG))
    events = cli.folder / "a/events/worker-1"
    assert wait_for(lambda: events.exists() and
                    any(path.stat().st_size > 0 for path in events.iterdir()),
                    "events of worker 1", process)
    agent, = [pid for pid in descendants(process.pid)
              if "--agent" in words_of(pid) and "sh" not in words_of(pid)[:1]
              and "127.0.0.3" in "".join(environment(pid))
              and "unshare" not in words_of(pid)[0]]
    os.kill(agent, signal.SIGKILL)
    result = cli.end(process)
    assert result.code == 1
    assert "127.0.0.3 did not send all of its records; the missing part is " \
        "in" in result.err, result
    assert any(path.stat().st_size > 0 for path in events.iterdir())
    assert (cli.folder / "a/run.json").exists()
