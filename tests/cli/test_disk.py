"""Checkpoints on disks that fill up, turn read-only, or lose their process at
any system call: nothing that was complete is lost, and the error is reported.
"""

import os
import shutil
import signal
import subprocess

import pytest

from conftest import Cli, checkpoints, leaks_allowed, program, wait_for
from jobs import (hand, interrupted, log_of, newest, same_bits, started,
                  wait_for_progress, write_cluster)  # hand is a fixture

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never", "--optimizer", "momentum",
        "--lr", "0.05"]
SHORT = [*DATA, "--steps", "150", "--checkpoint-every", "50"]
# Until it is asked to end.
LONG = [*DATA, "--steps", "100000000", "--checkpoint-every", "100"]
JOB = ["--workers", "2", "--ps", "2"]
NO_ROOM = "No space left on device; free some space"

needs_strace = pytest.mark.skipif(shutil.which("strace") is None,
                                  reason="strace is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0,
                                reason="only root can mount a small disk")


def killing(call, nth):
    """A prefix of a command: its process, whichever of its threads makes
    this system call for the nth time, is killed as it begins it."""
    return ["env", f"ASAN_OPTIONS={leaks_allowed()}", "strace", "-f", "-qq",
            "-o", "/dev/null", "-e", f"trace={call}", "-e",
            f"inject={call}:signal=SIGKILL:when={nth}"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("undisturbed"), home)
    return cli.train(*SHORT, "--run", "a")["parameters_sha256"]


@needs_strace
@pytest.mark.parametrize("call", ["mkdir", "write", "fsync", "rename",
                                  "unlink"])
def test_killed_at_each_call_of_a_checkpoint(cli, undisturbed, call):
    """Whatever was being written, the newest complete one is found, and the
    end is the same."""
    for nth in range(1, 60):
        run = f"{call}{nth}"
        words = [*killing(call, nth), program(), "train", "softmax", "--quiet",
                 *SHORT, "--run", run]
        done = subprocess.run(words, cwd=cli.folder, env=cli.env,
                              capture_output=True, timeout=120)
        if done.returncode == 0:
            break
        assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), done
        complete = [int(path.name[5:])
                    for path in checkpoints(cli.folder / run)]
        ended = (cli.folder / run / "summary.json").exists()
        summary = cli.train(*SHORT, "--run", run, "--resume-or-start")
        if not ended:
            assert summary["resumed_step"] == max(complete, default=0), nth
        assert summary["parameters_sha256"] == undisturbed, nth
    assert 1 < nth < 59


@needs_strace
@pytest.mark.parametrize("victim,call,nth", [
    (0, "fsync", 1), (0, "fsync", 5), (0, "rename", 3), (0, "rename", 4),
    (1, "fsync", 3), (1, "rename", 2), (1, "write", 40),
])
def test_server_killed_while_it_saves(cli, hand, victim, call, nth):
    """Started again by hand, it reads its part of the newest complete one."""
    write_cluster(cli, 2, 2)
    flags = LONG
    task = ["train", "softmax", *flags, "--cluster", "c.json", "--role", "ps",
            "--index", victim]
    killed = subprocess.Popen([*killing(call, nth), program(),
                               *map(str, task)], cwd=cli.folder, env=cli.env,
                              stderr=subprocess.PIPE)
    hand.processes.append(killed)
    hand.start("ps", 1 - victim, *flags)
    hand.start("worker", 1, *flags)
    chief = hand.start("worker", 0, *flags)
    assert wait_for(lambda: killed.poll() is not None, "the kill", chief)
    assert killed.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    again = hand.start("ps", victim, *flags)
    wait_for_progress(cli, chief)
    same_bits(cli, interrupted(cli, chief).json, *DATA)
    assert hand.end(again).code == 0


@pytest.fixture
def small_disk(cli):
    """A file system of its own, for a run of one or two checkpoints."""
    folder = cli.folder / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
                   check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def remount(folder, how):
    """As soon as no file there is open for writing."""
    words = ["mount", "-o", f"remount,{how}", folder]
    assert wait_for(lambda: subprocess.run(
        words, capture_output=True).returncode == 0, " ".join(map(str, words)))


def fill(folder):
    """A file that takes all room that is left."""
    with pytest.raises(OSError), (folder / "ballast").open("ab") as file:
        while True:
            file.write(bytes(4096))
            file.flush()


@needs_root
@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_job_continues_while_the_disk_refuses(cli, small_disk, trouble):
    """The logs are elsewhere; the checkpoints that were there still count;
    when the disk is well again there are new ones, and the end is the same."""
    run = cli.folder / "a"
    run.mkdir()
    (run / "checkpoints").symlink_to(small_disk)
    job = started(cli, *LONG, *JOB)
    assert wait_for(lambda: len(checkpoints(run)) >= 2, "checkpoints", job)
    says = NO_ROOM if trouble == "full" else "Read-only file system"
    if trouble == "read-only":
        remount(small_disk, "ro")

    def refused():
        if trouble == "full":
            fill(small_disk)  # again: an older one may have been removed
        return says in log_of(cli, "worker-0")
    assert wait_for(refused, f"{says} in the chief's log", job)
    assert checkpoints(run)
    if trouble == "full":
        (small_disk / "ballast").unlink()
    else:
        remount(small_disk, "rw")
    wait_for_progress(cli, job)
    summary = interrupted(cli, job).json
    same_bits(cli, summary, *DATA)
    assert newest(cli) == summary["steps"]
    told = [line for line in log_of(cli, "worker-0").splitlines()
            if says in line]
    assert all("checkpoint of step" in line for line in told), told


@needs_root
@pytest.mark.parametrize("job", [[], JOB], ids=["single", "ps"])
def test_full_disk_is_the_runs_failure(cli, small_disk, job):
    """A job with servers does not begin without a checkpoint, and what cannot
    save its end has not ended well."""
    fill(small_disk)
    run = cli.folder / "a"
    run.mkdir()
    (run / "checkpoints").symlink_to(small_disk)
    result = cli.run("train", "softmax", "--quiet", *SHORT, *job, "--run", "a")
    assert result.code == 1, result
    assert NO_ROOM in result.err.splitlines()[-1], result
    assert not checkpoints(run)
    assert not (run / "summary.json").exists()


@needs_root
@pytest.mark.parametrize("job", [[], JOB], ids=["single", "ps"])
def test_read_only_folder_is_refused_at_the_start(cli, small_disk, job):
    remount(small_disk, "ro")
    result = cli.run("train", "softmax", "--quiet", *SHORT, *job, "--run",
                     "disk/a")
    assert result.code == 1, result
    assert "Read-only file system; choose another folder" in \
        result.err.splitlines()[-1], result


@needs_root
def test_server_that_does_not_see_the_folder_is_named(cli, hand):
    """As on another machine: its folder of that name is another one."""
    write_cluster(cli, 1, 2)
    (cli.folder / "a").mkdir()
    task = [program(), "train", "softmax", *SHORT, "--cluster", "c.json",
            "--role", "ps", "--index", "1"]
    hand.processes.append(subprocess.Popen(
        ["unshare", "-m", "sh", "-c", 'mount -t tmpfs tmpfs a && exec "$@"',
         "sh", *task], cwd=cli.folder, env=cli.env, stderr=subprocess.PIPE))
    hand.start("ps", 0, *SHORT)
    result = hand.end(hand.start("worker", 0, *SHORT))
    assert result.code == 1, result
    last = result.err.splitlines()[-1]
    assert "ps 1 (127.0.0.1:" in last, result
    assert "every parameter server must see the run folder" in last, result
