"""A thousand strangers at the port of a running job, and its remaining
descriptors."""

import contextlib
import resource
import struct
import subprocess

import pytest

import wire
from conftest import program, skip_when_sanitized
from jobs import (hand, same_bits, wait_for_checkpoint, wait_for_progress,
                  wait_for_text, write_cluster)  # hand is a fixture

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never"]
ENDLESS = [*DATA, "--steps", "1000000", "--checkpoint-every", "100"]
STRANGERS = 1000


def huge(size):
    """Announces a message of this many bytes, once it is admitted."""
    return b"PLM1" + struct.pack("<I", size)


KINDS = [
    lambda peer: None,  # idle
    lambda peer: peer.sendall(b"\xff" * 4096),
    lambda peer: peer.sendall(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10000),
    lambda peer: peer.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    lambda peer: peer.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00NULL"),
    lambda peer: peer.sendall(wire.hello()[:20]),  # and no more
    lambda peer: peer.sendall(wire.hello() + huge(16 << 20)),
    lambda peer: peer.sendall(wire.hello() + huge(2**32 - 1)),
    lambda peer: peer.sendall(wire.hello() + wire.message(bytes(72))),
    lambda peer: peer.sendall(wire.hello(wire.ENCRYPTED, "worker 0", "ps 0")),
]


def memory_mb(process):
    with open(f"/proc/{process.pid}/status") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024


@contextlib.contextmanager
def many_files():
    """This process opens a socket for each stranger."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < 2 * STRANGERS:
        pytest.skip(f"at most {before[1]} open files")
    resource.setrlimit(resource.RLIMIT_NOFILE,
                       (max(before[0], 2 * STRANGERS), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_thousand_strangers_cost_little(cli, hand):
    skip_when_sanitized()  # whose memory grows by itself
    address, = write_cluster(cli, 2, 1)
    log = cli.folder / "ps.log"
    with log.open("wb") as file:
        job = [hand.start("ps", 0, *ENDLESS, stderr=file)]
    wait_for_text(log, "listens on", job[0])
    before = memory_mb(job[0])
    strangers = []
    with many_files():
        for number in range(STRANGERS):
            strangers.append(wire.connect(address))
            with contextlib.suppress(ConnectionError):  # ended meanwhile
                KINDS[number % len(KINDS)](strangers[-1])
            if number == STRANGERS // 2:  # tasks are admitted among them
                job += [hand.start("worker", i, *ENDLESS) for i in range(2)]
        wait_for_checkpoint(cli, job[1])
        wait_for_progress(cli, job[1])
        grown = memory_mb(job[0]) - before
        for peer in strangers:
            peer.close()
    assert grown < 64, grown
    summary = hand.interrupt(job[1], job[0], job[2])
    same_bits(cli, summary, *DATA)
    lines = [line for line in log.read_text().splitlines()
             if "dropped what was received from" in line]
    assert 1 <= len(lines) <= 60, len(lines)


def test_a_job_without_enough_descriptors_is_refused_at_its_start(cli):
    job = ["--steps", "20", "--workers", "12", "--ps", "1", "--run", "few"]
    result = subprocess.run(
        ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", program(), "train",
         "softmax", *DATA, *job], cwd=cli.folder, capture_output=True,
        text=True, timeout=60, check=False)
    assert result.returncode == 2, result
    assert "needs up to 118 open files" in result.stderr
    assert "ulimit -n 118" in result.stderr
    assert not (cli.folder / "few" / "checkpoints").exists()


def test_a_process_without_enough_descriptors_is_refused_at_its_start(cli):
    result = subprocess.run(
        ["sh", "-c", 'ulimit -n 12; exec "$@"', "sh", program(), "train",
         "softmax", *DATA, "--steps", "20", "--run", "few"], cwd=cli.folder,
        capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2, result
    assert "a training needs up to 24 open files" in result.stderr
    assert not (cli.folder / "few" / "checkpoints").exists()


def test_the_limit_of_open_files_is_raised(cli):
    """The soft limit is too low, the hard one is not."""
    job = ["--steps", "20", "--workers", "12", "--ps", "1", "--run", "more"]
    result = subprocess.run(
        ["sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh", program(), "train",
         "softmax", *DATA, *job], cwd=cli.folder, capture_output=True,
        text=True, timeout=300, check=False)
    assert result.returncode == 0, result
