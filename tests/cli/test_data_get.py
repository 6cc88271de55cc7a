"""`data get mnist` from a server that breaks off, refuses, or lies.

Where the files of MNIST are (PACELINE_MNIST), they are also got.
"""

import http.server
import os
import pathlib
import signal
import socket
import threading

import pytest

from conftest import ROOT, wait_for

FOLDER = pathlib.Path(os.environ.get("PACELINE_MNIST",
                                     ROOT.parent / "shared/data/mnist"))
NAMES = [f"{part}-{what}-ubyte.gz" for part in ("train", "t10k")
         for what in ("images-idx3", "labels-idx1")]
needs_mnist = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason=f"no {FOLDER}; PACELINE_MNIST can name the folder")


class Server(http.server.ThreadingHTTPServer):
    """Sends files[name]; `disturb` sees each request first, and may answer it
    itself."""

    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.seen, self.disturb = files, [], None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/data"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        name = self.path.rsplit("/", 1)[1]
        first = self.headers.get("Range", "bytes=0-")[6:-1]
        self.server.seen.append((name, int(first)))
        if self.server.disturb and self.server.disturb(self, name, int(first)):
            return
        self.give(name, int(first))

    def give(self, name, first, most=None):
        body = self.server.files.get(name)
        if body is None:
            self.send_error(404)
            return
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range",
                             f"bytes {first}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - first))
        self.end_headers()
        self.wfile.write(body[first:][:most])


@pytest.fixture
def serve():
    servers = []

    def start(files):
        servers.append(Server(files))
        return servers[-1]
    yield start
    for server in servers:
        server.shutdown()


@pytest.fixture
def mnist():
    return {name: (FOLDER / name).read_bytes() for name in NAMES}


@pytest.fixture(autouse=True)
def direct(cli):
    cli.env["no_proxy"] = "127.0.0.1"


@needs_mnist
def test_interrupted_downloads_are_resumed_and_verified(cli, serve, mnist):
    server = serve(mnist)

    def once_in_the_middle(handler, name, first):
        if first == 0 and len(mnist[name]) > 10000:
            handler.give(name, 0, most=len(mnist[name]) // 3)
            return True
        return False
    server.disturb = once_in_the_middle
    result = cli.ok("data", "get", "mnist", "--from", server.url, "--out", "m")
    assert "--data mnist:m" in result.out
    assert result.err.count("trying again") == 3
    assert sorted(os.listdir(cli.folder / "m")) == sorted(NAMES)
    for name in NAMES:
        assert (cli.folder / "m" / name).read_bytes() == mnist[name]
        if len(mnist[name]) > 10000:
            assert (name, len(mnist[name]) // 3) in server.seen
    asked = len(server.seen)
    again = cli.ok("data", "get", "mnist", "--from", server.url, "--out", "m")
    assert again.out.count("already there") == 4 and len(server.seen) == asked
    cli.train("--data", "mnist:m", "--steps", "1")


@needs_mnist
def test_two_at_once_get_each_file_once(cli, serve, mnist):
    server = serve(mnist)
    command = ["data", "get", "mnist", "--from", server.url]
    both = [cli.start(*command) for _ in range(2)]
    for process in both:
        result = cli.end(process, *command)
        assert result.code == 0, result
    assert sorted(server.seen) == sorted((name, 0) for name in NAMES)


@needs_mnist
def test_an_interrupted_command_resumes(cli, serve, mnist):
    server = serve(mnist)
    held = threading.Event()
    cut = 1000000

    def hold(handler, name, first):
        if first == 0 and name == NAMES[0]:
            handler.give(name, 0, most=cut)
            handler.wfile.flush()
            held.wait()
            return True
        return False
    server.disturb = hold
    process = cli.start("data", "get", "mnist", "--from", server.url)
    part = cli.folder / "mnist" / f".{NAMES[0]}.part"
    wait_for(lambda: part.exists() and part.stat().st_size == cut, "bytes",
             process)
    process.send_signal(signal.SIGINT)
    result = cli.end(process, "data get")
    held.set()
    assert result.code == 130 and "to continue" in result.err, result
    cli.ok("data", "get", "mnist", "--from", server.url)
    assert (NAMES[0], cut) in server.seen


def test_wrong_bytes_are_refused_and_not_kept(cli, serve):
    server = serve({name: b"\x1f\x8b not a gzip file" for name in NAMES})
    result = cli.run("data", "get", "mnist", "--from", server.url)
    assert result.code == 1 and "gave up after 5 tries" in result.err, result
    assert server.url in result.err and NAMES[0] in result.err
    assert os.listdir(cli.folder / "mnist") == []
    assert len(server.seen) == 5


def test_a_damaged_file_is_not_accepted(cli, serve):
    (cli.folder / "mnist").mkdir()
    (cli.folder / "mnist" / NAMES[0]).write_bytes(b"what is this")
    result = cli.run("data", "get", "mnist", "--from", serve({}).url)
    assert result.code == 1 and "downloading it again" in result.err, result
    assert "answered 404" in result.err.splitlines()[-1]


def test_a_refusal_is_not_retried(cli, serve):
    server = serve({})
    cli.refused(1, "data", "get", "mnist", "--from", server.url,
                says=["answered 404", NAMES[0]])
    assert len(server.seen) == 1


def test_a_dead_server_is_given_up(cli):
    with socket.socket() as nobody:  # has the port, but does not listen
        nobody.bind(("127.0.0.1", 0))
        url = "http://127.0.0.1:%d/data" % nobody.getsockname()[1]
        result = cli.run("data", "get", "mnist", "--from", url, "--timeout",
                         "2")
    assert result.code == 1 and "--timeout" in result.err, result


@pytest.mark.parametrize("words, says", [
    (["get", "mnist", "--from", "ftp://a/b"], ["--from", "http://"]),
    (["get", "cifar"], ["cifar", "mnist"]),
    (["get"], ["data get mnist"]),
    (["get", "mnist", "--timeout", "0"], ["--timeout"]),
])
def test_wrong_words_are_usage_errors(cli, words, says):
    cli.refused(2, "data", *words, says=says)


def test_an_unwritable_folder_is_reported(cli):
    (cli.folder / "file").write_text("")
    cli.refused(1, "data", "get", "mnist", "--out", "file/x", says="file/x")
