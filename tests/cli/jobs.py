"""Jobs of several processes, as the tests observe them."""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket

import pytest

from conftest import DEADLINE_S, checkpoints, wait_for


class Task:
    """One process of a job."""

    def __init__(self, pid, role, index):
        self.pid, self.role, self.index = pid, role, index

    def send(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send(signal.SIGKILL)

    def peak_mb(self):
        """Its most memory so far, as the kernel counts it; 0 when it is
        gone."""
        try:
            text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0
        for line in text.splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0


def words_of(pid):
    """The command line of a process; empty when it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        state = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    if state.rsplit(")", 1)[1].split()[0] == "Z":
        return []
    return [word.decode() for word in text.split(b"\0")[:-1]]


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def tasks(supervisor):
    """The tasks that a supervisor has at the moment."""
    found = []
    for pid in children(supervisor.pid):
        words = words_of(pid)
        if "--role" in words:
            found.append(Task(pid, words[words.index("--role") + 1],
                              int(words[words.index("--index") + 1])))
    return found


def task(supervisor, role, index):
    """Wait until this task is there."""
    found = []

    def there():
        found[:] = [t for t in tasks(supervisor)
                    if (t.role, t.index) == (role, index)]
        return found
    assert wait_for(there, f"{role} {index}", supervisor)
    return found[0]


def gone(pids):
    """Wait until none of these processes is left."""
    wait_for(lambda: not any(words_of(pid) for pid in pids),
             f"the end of {pids}")


def started(cli, *flags, run="a", **more):
    """A job that was started in run folder `run`."""
    return cli.start("train", "softmax", "--json", "--run", run, *flags,
                     **more)


def wait_for_checkpoint(cli, process, run="a"):
    """The job trains: it has written a checkpoint of a step it made, not only
    the one that each job begins with: in sync of step 0, else of what others
    did until the chief saved it."""
    def there():
        return any(int(path.name[5:]) > 0
                   for path in checkpoints(cli.folder / run))
    assert wait_for(there, "a checkpoint after step 0", process), \
        process.communicate()


def newest(cli, run="a"):
    """The step of the newest complete checkpoint; -1: there is none."""
    return max((int(path.name[5:]) for path in checkpoints(cli.folder / run)),
               default=-1)


def wait_for_progress(cli, process, run="a"):
    """The job trains on, whatever happened to it before: of the checkpoints
    that were not there yet, one may have been under way."""
    before = newest(cli, run)
    seen = {before}

    def there():
        seen.add(max(before, newest(cli, run)))
        return len(seen) > 2
    assert wait_for(there, f"checkpoints after step {before}", process), \
        process.communicate()


def interrupted(cli, process):
    """End a job that would not end by itself; it saves, and its chief sums
    up."""
    process.send_signal(signal.SIGINT)
    result = cli.end(process)
    assert result.code == 130, result
    assert result.json["stopped_by"] == "interrupt", result
    return result


def wait_for_text(path, text, process):
    def there():
        return path.exists() and text in path.read_text(errors="replace")
    assert wait_for(there, f"{text!r} in {path}", process), \
        (path.exists() and path.read_text(), process.communicate())


HELD = []  # ports in use, until the tests end


def free_ports(count):
    """Ports on which nothing listens or will: the system assigns higher ones,
    `launch` does, and tests that run beside these leave them alone, as a name
    of each is taken."""
    ports = []
    while len(ports) < count:
        port = random.randrange(10000, 20000)
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0paceline test port {port}")
            with socket.socket() as probe:
                probe.bind(("", port))
        except OSError:
            name.close()
            continue
        HELD.append(name)
        ports.append(port)
    return ports


@contextlib.contextmanager
def knocked(address):
    """A client started here has tried this address, and will retry."""
    host, port = address.rsplit(":", 1)
    with socket.create_server((host, int(port))) as listener:
        listener.settimeout(DEADLINE_S)
        yield
        listener.accept()[0].close()


def write_cluster(cli, workers, ps):
    """c.json with free ports; the addresses of the servers."""
    ports = [f"127.0.0.1:{port}" for port in free_ports(workers + ps)]
    cluster = {"worker": ports[ps:], "ps": ports[:ps]}
    (cli.folder / "c.json").write_text(json.dumps({"cluster": cluster}))
    return ports[:ps]


def log_of(cli, name, run="a"):
    return (cli.folder / run / "log" / f"{name}.log").read_text()


class Hand:
    """Tasks started by hand; none outlives the test."""

    def __init__(self, cli):
        self.cli, self.processes = cli, []

    def start(self, role, index, *flags, env=None, cluster=True, **more):
        words = ["train", "softmax", *flags]
        if cluster:
            words += ["--cluster", "c.json", "--role", role, "--index", index]
        if (role, index) in [("worker", 0), ("chief", 0)]:
            words += ["--run", "a", "--json"]
        process = self.cli.start(*words, env={**self.cli.env, **(env or {})},
                                 **more)
        self.processes.append(process)
        return process

    def end(self, process):
        return self.cli.end(process)

    def interrupt(self, chief, *others):
        """Ctrl-C to the chief of a job that would not end by itself: all end
        well.  The chief's summary."""
        summary = interrupted(self.cli, chief).json
        results = [self.end(process) for process in others]
        assert [result.code for result in results] == [0] * len(others), \
            results
        return summary


def same_bits(cli, summary, *flags):
    """A job of two workers reached what one process does in as many steps."""
    alone = cli.train(*flags, "--steps", summary["steps"], "--micro-batches",
                      "2", "--run", "alone")
    assert summary["parameters_sha256"] == alone["parameters_sha256"]
    assert summary["deterministic"] is True


@pytest.fixture
def hand(cli):
    hand = Hand(cli)
    yield hand
    for process in hand.processes:
        if process.poll() is None:
            process.kill()
        process.communicate()
