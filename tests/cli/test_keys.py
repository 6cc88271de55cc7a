"""Jobs with keys: admission, what the wire shows, what is refused."""

import json
import os
import pathlib
import select
import socket
import stat
import threading

import pytest

from conftest import SMALL
from jobs import free_ports

FLAGS = ["train", "softmax", "--quiet", "--json", *SMALL]


def own_address():
    """An address of this host that is not loopback; None: it has none."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        address = probe.getsockname()[0]
        socket.create_server((address, 0)).close()
    except OSError:
        return None
    finally:
        probe.close()
    return None if address.startswith("127.") else address


@pytest.fixture
def beyond():
    address = own_address()
    if address is None:
        pytest.skip("this host has no address but loopback")
    return address


def write_cluster(cli, ps, name="c.json"):
    (cli.folder / name).write_text(json.dumps(
        {"cluster": {"ps": ps, "worker": ["localhost:11", "localhost:12"]}}))
    return name


def task(cli, role, index, cluster, *flags):
    # A server uses no other run folder than its own, which is the chief's.
    return cli.start(*FLAGS, "--cluster", cluster, "--role", role, "--index",
                     index, "--run", "job", *flags)


def by_hand(cli, ps, *flags, clients=None):
    """A job of two workers started by hand: the summary.  `clients` is where
    workers find the servers, if that is elsewhere."""
    theirs = write_cluster(cli, ps)
    ours = write_cluster(cli, clients or ps, "w.json")
    others = [task(cli, "ps", i, theirs, *flags) for i in range(len(ps))]
    others.append(task(cli, "worker", 1, ours, *flags))
    chief = cli.end(task(cli, "worker", 0, ours, *flags))
    ends = [cli.end(p) for p in others]
    assert chief.code == 0, (chief, ends)
    assert all(e.code == 0 for e in ends), ends
    return chief.json, chief.err + "".join(e.err for e in ends)


@pytest.fixture(scope="module")
def expected(tmp_path_factory, home):
    from conftest import Cli
    cli = Cli(tmp_path_factory.mktemp("alone"), home)
    return cli.train(*SMALL, "--workers", "2", "--ps",
                     "1")["parameters_sha256"]


def test_a_key_file_is_its_owners_alone(cli):
    cli.ok("keys", "-o", "job.key")
    path = cli.folder / "job.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    cli.refused(2, "keys", "--out", "job.key", says="already exists")
    assert path.read_bytes() == before
    cli.ok("keys", "-o", "other.key")
    assert (cli.folder / "other.key").read_bytes() != before
    cli.refused(2, "keys", says="keys -o FILE")


def test_key_files_that_cannot_be_used_are_named(cli):
    cluster = write_cluster(cli, ["127.0.0.1:1"])
    cli.ok("keys", "-o", "job.key")
    path = cli.folder / "job.key"
    args = [*FLAGS, "--cluster", cluster, "--role", "ps"]
    path.chmod(0o644)
    cli.refused(2, *args, "--keys", "job.key", says="chmod 600 job.key")
    cli.env["PACELINE_KEYS"] = "job.key"
    cli.refused(2, *args, says=["PACELINE_KEYS", "chmod 600 job.key"])
    cli.refused(2, *args, "--keys", "none.key", says="none.key")
    path.chmod(0o600)
    path.write_text("paceline job key 1\nabc\n")
    cli.refused(2, *args, "--keys", "job.key", says="64 hexadecimal digits")


def test_flags_that_do_not_fit_are_refused(cli):
    cli.ok("keys", "-o", "job.key")
    for flags, says in [
            (["--keys", "job.key"], "--keys needs a job of several processes"),
            (["--ps", "1", "--keys", "job.key"], "started by hand"),
            (["--ps", "1", "--insecure"], "started by hand")]:
        cli.refused(2, "train", "softmax", *flags, says=says)
    cluster = write_cluster(cli, ["127.0.0.1:1"])
    cli.refused(2, "train", "softmax", "--cluster", cluster, "--role", "ps",
                "--keys", "job.key", "--insecure", says="not both")


@pytest.mark.parametrize("role", ["ps", "worker", "evaluator"])
@pytest.mark.parametrize("address", ["0.0.0.0:4711", "192.0.2.77:4711"])
def test_beyond_loopback_keys_are_needed(cli, role, address):
    cluster = write_cluster(cli, [address])
    cli.refused(2, *FLAGS, "--cluster", cluster, "--role", role, "--index",
                "0", says=["paceline keys -o job.key", "--keys job.key",
                           "ps 0 at " + address])


def test_the_secret_of_a_local_job_is_not_shown(cli):
    """Neither arguments nor environment of the tasks hold 64 digits."""
    job = cli.start("train", "softmax", "--data", "synthetic", "--examples",
                    "2000", "--epochs", "100000", "--workers", "1", "--ps",
                    "1", "--run", "r")
    seen = set()
    try:
        while len(seen) < 2 and job.poll() is None:
            children = pathlib.Path(
                f"/proc/{job.pid}/task/{job.pid}/children").read_text()
            for pid in children.split():
                try:
                    shown = (open(f"/proc/{int(pid)}/cmdline", "rb").read() +
                             open(f"/proc/{int(pid)}/environ", "rb").read())
                except OSError:
                    continue
                if b"--control" in shown:
                    seen.add(pid)
                    own = b"\0".join(os.fsencode(f"{k}={v}")
                                     for k, v in cli.env.items())
                    words = set(shown.split(b"\0")) - set(own.split(b"\0"))
                    assert not any(len(w) >= 64 and w.isalnum()
                                   for w in words), words
        assert len(seen) == 2
    finally:
        job.kill()
        job.communicate()


@pytest.mark.parametrize("flags", [[], ["--keys", "job.key"],
                                   ["--keys", "job.key", "--transport",
                                    "tcp"]])
def test_keys_change_no_bit_on_loopback(cli, expected, flags):
    cli.ok("keys", "-o", "job.key")
    ps = [f"127.0.0.1:{port}" for port in free_ports(2)]
    summary, _ = by_hand(cli, ps, *flags)
    assert summary["parameters_sha256"] == expected


def test_keys_change_no_bit_beyond_loopback(cli, beyond, expected):
    cli.ok("keys", "-o", "job.key")
    cli.env["PACELINE_KEYS"] = "job.key"
    ps = [f"{beyond}:{port}" for port in free_ports(2)]
    summary, _ = by_hand(cli, ps, "--transport", "tcp")
    assert summary["parameters_sha256"] == expected


def test_insecure_is_reported_by_every_task(cli, beyond, expected):
    ps = [f"{beyond}:{port}" for port in free_ports(1)]
    summary, said = by_hand(cli, ps, "--insecure")
    assert summary["parameters_sha256"] == expected
    assert said.count("--insecure: anyone who can reach") == 3


def test_a_task_with_other_keys_is_refused(cli, expected):
    cli.ok("keys", "-o", "job.key")
    cli.ok("keys", "-o", "other.key")
    ps = [f"127.0.0.1:{port}" for port in free_ports(1)]
    cluster = write_cluster(cli, ps)
    server = task(cli, "ps", 0, cluster, "--keys", "job.key")
    # Without keys it may see that the connection closes, not why: it retries.
    for flags in ["--keys", "other.key"], ["--join-timeout", "10"]:
        bad = cli.end(cli.start(*FLAGS, "--cluster", cluster, "--role",
                                "worker", "--index", 1, "--run", "bad",
                                *flags))
        assert bad.code == 1, bad
        assert ps[0] in bad.err and "key" in bad.err, bad
    other = task(cli, "worker", 1, cluster, "--keys", "job.key")
    chief = cli.end(task(cli, "worker", 0, cluster, "--keys", "job.key"))
    assert chief.code == 0, chief
    assert chief.json["parameters_sha256"] == expected
    assert cli.end(other).code == 0
    log = cli.end(server)
    assert log.code == 0 and "did not prove to be a task of this job" in \
        log.err, log


class Relay(threading.Thread):
    """Passes bytes between clients and a server and keeps them."""

    def __init__(self, host, server):
        super().__init__(daemon=True)
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        self.server = server
        self.bytes = {}  # what came from each
        self.way = {}

    def run(self):
        while True:
            ready, _, _ = select.select([self.listener, *self.way], [], [])
            for s in ready:
                if s is self.listener:
                    self.accept()
                elif s in self.way:
                    self.move(s)

    def accept(self):
        client = self.listener.accept()[0]
        try:
            server = socket.create_connection(self.server)
        except OSError:
            client.close()
            return
        self.way[client], self.way[server] = server, client
        self.bytes[client], self.bytes[server] = bytearray(), bytearray()

    def move(self, s):
        try:
            data = s.recv(1 << 16)
            self.bytes[s] += data  # before its receiver can end
            self.way[s].sendall(data)
        except OSError:
            data = b""
        if not data:
            other = self.way.pop(s)
            self.way.pop(other, None)
            s.close()
            other.close()


class Player(Relay):
    """Replays the messages of a client to the server, on a connection of its
    own, once there are enough; all others wait meanwhile."""

    def __init__(self, host, server):
        super().__init__(host, server)
        self.clients, self.answers = set(), []

    def accept(self):
        before = set(self.way)
        super().accept()
        self.clients |= {s for s in set(self.way) - before
                         if s.getsockname()[1] == self.port}

    def move(self, s):
        super().move(s)
        if s in self.clients and len(self.bytes[s]) > 100000:
            self.clients.remove(s)
            self.play(bytes(self.bytes[s]))

    def play(self, said):
        answer = b""
        with socket.create_connection(self.server, timeout=60) as peer:
            try:
                peer.sendall(said[:72])
                answer = peer.recv(72)
                peer.sendall(said[72:])
                while more := peer.recv(1 << 16):
                    answer += more
            except ConnectionError:
                pass  # ended during the exchange
        self.answers.append(answer)


def test_a_recorded_connection_cannot_be_played_back(cli, beyond, expected):
    """The server sends a new nonce on each connection, so messages of another
    prove nothing; the job continues."""
    cli.ok("keys", "-o", "job.key")
    port = free_ports(1)[0]
    player = Player(beyond, (beyond, port))
    player.start()
    summary, said = by_hand(cli, [f"{beyond}:{port}"], "--keys", "job.key",
                            "--transport", "tcp",
                            clients=[f"{beyond}:{player.port}"])
    assert summary["parameters_sha256"] == expected
    assert len(player.answers) >= 2
    # A hello and a refusal, but no message.
    assert all(0 < len(answer) < 400 for answer in player.answers)
    assert "did not prove to be a task of this job" in said


@pytest.mark.parametrize("keys", [True, False])
def test_nothing_is_readable_on_the_wire(cli, beyond, expected, keys):
    """Neither the marks of our messages nor the parameters are readable;
    without keys they are, so the test would find them."""
    cli.ok("keys", "-o", "job.key")
    flags = ["--keys", "job.key"] if keys else ["--insecure"]
    port = free_ports(1)[0]
    relay = Relay(beyond, (beyond, port))
    relay.start()
    summary, _ = by_hand(cli, [f"{beyond}:{port}"], *flags, "--transport",
                         "tcp", clients=[f"{beyond}:{relay.port}"])
    assert summary["parameters_sha256"] == expected
    file = next((cli.folder / "job" / "checkpoints").glob(
        "step-*50/*.safetensors"))
    # 16 bytes out of the middle of what the last pull brought.
    data = file.read_bytes()
    pattern = data[len(data) // 2:][:16]
    assert len(set(pattern)) > 8
    wire = b"".join(relay.bytes.values())
    assert len(wire) > 50 * 4 * 7850
    for mark in b'"role"', b"worker", pattern:
        assert (mark in wire) == (not keys), mark
