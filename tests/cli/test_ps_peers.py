"""Jobs beside other jobs, doubled tasks, and peers that replay, forge, or send
malformed messages."""

import contextlib
import random
import re
import signal
import socket
import struct
import threading

import pytest

import wire
from conftest import wait_for
from jobs import (hand, same_bits, started, wait_for_checkpoint,
                  wait_for_progress, wait_for_text,
                  write_cluster)  # hand is a fixture

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never"]
ENDLESS = [*DATA, "--steps", "1000000", "--checkpoint-every", "100"]
SHORT = [*DATA, "--steps", "1000"]


def alone(cli, workers, *flags):
    """The bits of a job of this many workers, from one process."""
    return cli.train(*flags, "--micro-batches", workers, "--run",
                     "alone")["parameters_sha256"]


def log_of(cli, role, index):
    return (cli.folder / f"{role}-{index}.log").read_text()


def start(cli, hand, role, index, *flags):
    """A task of a job without an end, which logs behind what is there."""
    with (cli.folder / f"{role}-{index}.log").open("ab") as file:
        return hand.start(role, index, *ENDLESS, *flags, stderr=file)


def by_hand(cli, hand, *flags, workers=2):
    """A server and its workers, of which there should be two: the processes
    and the server's address."""
    address, = write_cluster(cli, 2, 1)
    job = [start(cli, hand, "ps", 0, *flags)]
    wait_for_text(cli.folder / "ps-0.log", "listens on", job[0])
    job += [start(cli, hand, "worker", i, *flags) for i in range(workers)]
    return job, address


def end_well(cli, hand, job):
    """The job trains on, all end well, and in the bits of an undisturbed run;
    the server's log."""
    ps, chief, worker = job
    wait_for_progress(cli, chief)
    same_bits(cli, hand.interrupt(chief, ps, worker), *DATA)
    return log_of(cli, "ps", 0)


@contextlib.contextmanager
def stopped(job):
    """The chief stands still, so the job does not end meanwhile."""
    job[1].send_signal(signal.SIGSTOP)
    yield
    job[1].send_signal(signal.SIGCONT)


def test_two_jobs_at_once(cli):
    """Each has its ports, its secret and its run folder."""
    jobs = [started(cli, *DATA, "--steps", "1000", "--workers", "2", "--ps",
                    "2", "--seed", seed, run=f"job{seed}") for seed in (1, 2)]
    shas = []
    for process in jobs:
        result = cli.end(process)
        assert result.code == 0, result
        shas.append(result.json["parameters_sha256"])
    assert shas[0] != shas[1]
    assert shas[1] == alone(cli, 2, *DATA, "--steps", "1000", "--seed", "2")


def test_32_workers_on_one_machine(cli):
    flags = [*DATA, "--steps", "60"]
    summary = cli.train(*flags, "--workers", "32", "--ps", "2", "--run", "a")
    assert [row["steps"] for row in summary["per_worker"]] == [60] * 32
    assert summary["restarts"] == 0
    assert summary["parameters_sha256"] == alone(cli, 32, *flags)


def test_a_second_process_of_a_worker_replaces_the_first(cli, hand):
    job, _ = by_hand(cli, hand, "--heartbeat-timeout", "60")
    wait_for_checkpoint(cli, job[1])
    with stopped(job):
        first, job[2] = job[2], start(cli, hand, "worker", 1)
        replaced = hand.end(first)
    assert replaced.code == 1, replaced
    assert "a newer process has taken this task's place" in \
        log_of(cli, "worker", 1)
    end_well(cli, hand, job)


def speak_next_version(listener):
    """To the next task that says something."""
    with contextlib.suppress(EOFError, OSError):  # given up: it tries again
        peer = listener.accept()[0]
        peer.settimeout(60)
        with peer:
            wire.read(peer, wire.BYTES)
            peer.sendall(wire.hello(version=wire.VERSION + 1))


def test_a_server_of_another_version_is_named(cli, hand):
    """A server of the next version takes the place of one that died; when the
    right one starts the job continues."""
    flags = ["--heartbeat-timeout", "1"]
    job, address = by_hand(cli, hand, *flags)
    wait_for_checkpoint(cli, job[1])
    job[0].kill()
    hand.end(job[0])

    def is_named():
        return any(f"version {wire.VERSION + 1} of the protocol, but this program "
                   f"uses version {wire.VERSION}" in log_of(cli, "worker", index) for index in range(2))
    with socket.create_server(("127.0.0.1", int(address.split(":")[1]))) as \
            other:
        other.settimeout(5)
        wait_for(lambda: speak_next_version(other) or is_named(), "the version")
    job[0] = start(cli, hand, "ps", 0, *flags)
    end_well(cli, hand, job)


class Echo(threading.Thread):
    """A relay between workers and a server that repeats some messages of the
    workers: at once, later, and over another connection."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.server, self.random = server, random.Random(1)
        self.stranger, self.lock = wire.join(server), threading.Lock()
        self.replayed = self.forged = 0

    def run(self):
        while True:
            client = self.listener.accept()[0]
            server = wire.connect(self.server)
            for end in (client, server):  # frames are sent in two pieces
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for way in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.carry, args=way,
                                 daemon=True).start()

    def carry(self, source, target, up):
        try:
            target.sendall(wire.read(source, wire.BYTES))  # its hello
            old = []
            while True:
                parts = wire.read_message(source)
                wire.send(target, *parts)
                if up:
                    self.repeat(target, parts, old)
        except (EOFError, OSError):
            source.close()
            target.close()

    def repeat(self, target, parts, old):
        old[:] = [*old[-20:], parts]
        if self.random.random() < 0.3:
            wire.send(target, *self.random.choice(old))
            self.replayed += 1
        if self.random.random() < 0.02 and parts[0][6] != wire.JOIN:
            with self.lock:  # both workers' messages go there
                wire.send(self.stranger, *parts)
            self.forged += 1


def test_frames_that_are_replayed_or_forged_change_nothing(cli, hand):
    address, = write_cluster(cli, 2, 1)
    with (cli.folder / "ps.log").open("wb") as file:
        job = [hand.start("ps", 0, *SHORT, stderr=file)]
    wait_for_text(cli.folder / "ps.log", "listens on", job[0])
    echo = Echo(address)
    echo.start()
    cluster = cli.folder / "c.json"
    cluster.write_text(cluster.read_text().replace(address, echo.address))
    job += [hand.start("worker", i, *SHORT, "--transport", "tcp")
            for i in range(2)]
    results = [hand.end(process) for process in job]
    assert [result.code for result in results] == [0] * 3, results
    assert results[1].json["parameters_sha256"] == alone(cli, 2, *SHORT)
    assert echo.replayed > 100 and echo.forged > 10


def nonsense(rng):
    """Parts of a message: some are no frame, most are one with wrong
    content."""
    size = rng.choice([0, 1, 7, 64, 1000, 70000])
    if rng.random() < 0.1:
        return [rng.randbytes(size)]
    kind = rng.randrange(1, 22)
    values = struct.pack("<IIQqqIIqq", rng.choice([0, 1, 2, 2**32 - 1]),
                         rng.choice([0, 1, 2, 2**31]), rng.choice([0, 1, 9]),
                         rng.choice([0, 5, -1, 2**62]),
                         rng.choice([0, -1, 2**62]),
                         rng.choice([0, 1, size // 4, 2**32 - 1]),
                         rng.choice([0, 1, 2**32 - 1]),
                         rng.choice([0, -1, 2**62]), rng.choice([0, -1, 1]))
    head = wire.header(kind=kind, payload_bytes=size)
    return [head[:8] + values + head[64:], rng.randbytes(size)]


@pytest.mark.parametrize("who", ["worker 1", "evaluator 0"])
def test_malformed_messages_with_the_right_key_do_no_harm(cli, hand, who):
    """It is a task of the job by its key, and still none of its messages is
    trusted."""
    cli.ok("keys", "-o", "job.key")
    job, address = by_hand(cli, hand, "--keys", "job.key",
                           "--heartbeat-timeout", "60")
    wait_for_checkpoint(cli, job[1])
    rng = random.Random(who)
    key = wire.proof_key(cli.folder / "job.key", who)
    peers = []
    with stopped(job):
        for _ in range(20):
            peers.append(wire.join_proof(address, who, key))
            with contextlib.suppress(ConnectionError):  # dropped meanwhile
                for _ in range(50):
                    wire.send(peers[-1], *nonsense(rng))
        said = f"{who} at .* is dropped after 8 malformed messages"
        assert wait_for(lambda: re.search(said, log_of(cli, "ps", 0)), said,
                        job[0]), log_of(cli, "ps", 0)
    for peer in peers:
        peer.close()
    end_well(cli, hand, job)


def test_a_flood_of_connections_is_named_and_the_job_continues(cli, hand):
    """More than the server keeps, some silent, some as if they were tasks; a
    later task is still admitted."""
    job, address = by_hand(cli, hand, workers=1)
    flood = []
    for i in range(300):
        flood.append(wire.connect(address))
        if i % 2:
            flood[-1].sendall(wire.hello()[:3])
    strangers = []
    for _ in range(200):
        strangers.append(wire.join(address))
        wire.send(strangers[-1], wire.header(kind=6))
    wait_for_text(cli.folder / "ps-0.log", "too many", job[0])
    for _ in range(200):  # these are ended by the server
        with wire.connect(address) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n" + bytes(64))
            with contextlib.suppress(ConnectionError):
                while peer.recv(100):
                    pass
    job.append(start(cli, hand, "worker", 1))
    log = end_well(cli, hand, job)
    for peer in flood + strangers:
        peer.close()
    # How many are named depends on when the server looks: the sum that the
    # log gives of the others is checked in tests/unit/net/test_hostile.c.
    assert log.count("dropped what was received from") <= 30, log
