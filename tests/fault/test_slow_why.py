"""One worker of a job is made slow, and the summary must name it and say why.

Stops by SIGSTOP in spells, and a slow link by tc, with a parameter server in
lock step, where all workers take equally long."""

import contextlib
import json
import os
import signal
import subprocess
import threading

import pytest

import netns

WORKERS = 3
VICTIM = 2
DEADLINE_S = 240
STEPS = {"stops": 500, "link": 60}  # of some milliseconds, and of 0.2 s
# What a sentence about it says.
WORDS = {"stops": "stops now and then", "link": "its link is slow"}


@contextlib.contextmanager
def stops(process):
    """Half a second of every one."""
    over = threading.Event()

    def stop_and_go():
        while not over.wait(0.5) and process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            over.wait(0.5)
            process.send_signal(signal.SIGCONT)
    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def program():
    return os.path.abspath(os.environ["PACELINE"])


ROLES = [("ps", 0)] + [("worker", i) for i in range(WORKERS)]


def flags_of(cause, folder):
    return ["--data", "synthetic", "--examples", "2000", "--batch", "32",
            "--threads", "1", "--eval-every", "never", "--checkpoint-every",
            "never", "--cluster", folder / "c.json", "--keys",
            folder / "job.key", "--transport", "tcp", "--heartbeat-timeout",
            "30", "--steps", STEPS[cause]]


def train(cause, net, folder):
    """The summary of a job whose worker VICTIM is slow."""
    where = {}
    for host, (role, _) in enumerate(ROLES):
        where.setdefault(role, []).append(f"{net.address(host)}:2222")
    (folder / "c.json").write_text(json.dumps({"cluster": where}))
    subprocess.run([program(), "keys", "-o", folder / "job.key"], check=True,
                   capture_output=True)
    tasks = {}
    for host, (role, index) in enumerate(ROLES):
        words = [program(), "train", "lenet", *flags_of(cause, folder),
                 "--role", role, "--index", index, "--json", "--quiet"]
        if (role, index) == ("worker", 0):
            words += ["--run", folder / "run"]
        home = folder / f"{role}-{index}"
        home.mkdir()
        tasks[role, index] = subprocess.Popen(
            net.command(host, list(map(str, words))), cwd=home,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if cause == "link" and (role, index) == ("worker", VICTIM):
            net.slow_host(host, "20mbit", "64kb")
    victim = tasks["worker", VICTIM]
    try:
        with stops(victim) if cause == "stops" else contextlib.nullcontext():
            out, err = tasks["worker", 0].communicate(timeout=DEADLINE_S)
    finally:
        for task in tasks.values():
            task.kill()
            task.wait()
    assert tasks["worker", 0].returncode == 0, err.decode()
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("cause", STEPS)
def test_the_slow_worker_is_named(cause, tmp_path):
    reason = netns.why_not()
    if reason is not None:
        pytest.skip(reason)
    netns.remove_leftovers()
    with netns.Network(cause, WORKERS + 1) as net:
        summary = train(cause, net, tmp_path)
    found = summary["bottleneck"]
    told = json.dumps(found) + json.dumps(summary["per_worker"])
    assert found["what"] == "slow worker", told
    assert found["task"] == f"worker {VICTIM}", told
    assert WORDS[cause] in found["text"], told
    assert found.get("spells", False) == (cause == "stops"), told
    # Some cure gains enough, and the first is the best.
    gains = [cure["gain"] for cure in found["cures"]]
    assert gains and gains == sorted(gains, reverse=True), told
