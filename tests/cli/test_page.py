"""`paceline page`: runs in a browser, for who was given the URL."""

import os
import re
import socket
import time

import pytest

from served import DEADLINE_S, Page


@pytest.fixture
def start(cli):
    pages = []

    def go(*args):
        pages.append(Page(cli, *args))
        return pages[-1]
    yield go
    for page in pages:
        page.close()


TRAIN = ["train", "softmax", "--data", "synthetic", "--examples", "500",
         "--epochs", "1", "--quiet"]


def test_it_lists_and_shows_runs(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    cli.ok(*TRAIN, "--run", "runs/b <i>&", "--workers", "2", "--ps", "1")
    with open(cli.folder / "runs/b <i>&/log/worker-1.log", "ab") as log:
        log.write(b"<b>" * 9000 + b"\nthe <b>end\0\n")
    page = start()
    page.enter()
    answer, body = page.get("/")
    assert answer.status == 200
    assert re.search(r'<a href="/run/a">a</a> softmax: ended \(epochs\) at '
                     r'step 5, test loss', body)
    assert '<a href="/run/b%20%3Ci%3E%26">b &lt;i&gt;&amp;</a>' in body
    assert "data-changing" in body
    answer, body = page.get("/run/b%20%3Ci%3E%26")
    assert answer.status == 200
    assert "<h1>b &lt;i&gt;&amp;</h1>" in body and "<i>" not in body
    assert "Training loss" in body and "data-changing" not in body
    assert ("<summary>worker-1.log</summary>\n"
            "<pre>the &lt;b&gt;end?\n</pre>" in body)
    for asset, kind in (("/page.css", "text/css"), ("/page.js", "javascript"),
                        ("/live.js", "javascript"),
                        ("/chart.js", "javascript")):
        assert f"={asset}>" in body
        answer, text = page.get(asset)
        assert answer.status == 200 and len(text) > 100
        assert kind in answer.headers["Content-Type"]
    assert "for one more browser: http://" in page.end()


def test_a_run_that_goes_on_is_changing(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    (cli.folder / "runs/a/summary.json").unlink()
    page = start("runs/a")
    page.enter()
    (cli.folder / "runs/a/run.json").touch()
    _, body = page.get("/run/a")
    assert "<main data-changing>" in body
    assert re.search(r"softmax: going on, last written \d+ s ago", body)
    long_ago = time.time() - 1000
    for file in (cli.folder / "runs/a").rglob("*"):
        os.utime(file, (long_ago, long_ago))
    _, body = page.get("/run/a")
    assert re.search(r"softmax: not ended, silent for 1\d\d\d s", body)


def test_files_that_are_none_do_not_hold_it(cli, start):
    """FIFOs where records are expected, logs that shrink and are huge."""
    for name in "a", "fifo":
        cli.ok(*TRAIN, "--run", f"runs/{name}", "--workers", "2", "--ps", "1")
    runs = cli.folder / "runs"
    (runs / "none").mkdir()
    places = [runs / "none/run.json", runs / "fifo/summary.json",
              runs / "fifo/log/worker-0.log",
              next((runs / "fifo/resources").iterdir()),
              next((runs / "fifo/events").glob("*/*"))]
    for place in places:
        place.unlink(missing_ok=True)
        os.mkfifo(place)
    log = runs / "a/log/worker-0.log"
    os.truncate(log, 1 << 40)  # a hole of zeros, mapped it would be a terabyte
    page = start()
    page.enter()
    answer, body = page.get("/")
    assert answer.status == 200 and "none/run.json: not a regular file" in body
    answer, body = page.get("/run/a")
    assert answer.status == 200 and "<pre>????" in body
    os.truncate(log, 0)
    answer, body = page.get("/run/a")
    assert answer.status == 200 and "worker-0.log" not in body
    page.get("/run/fifo")
    assert page.get("/run/a")[0].status == 200
    page.end()


def test_others_are_refused(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    page = start()
    for path in ("/", "/run/a", "/page.js", "/?token=" + 64 * "0",
                 page.way_in[:-1], page.way_in.replace("/?", "/?x=1&t")):
        answer, body = page.get(path)
        assert answer.status == 403, path
        assert body == "open the URL that the server printed last\n"
    # A name of somebody else's that means this host.
    answer, _ = page.get(page.way_in, Host=f"evil.example:{page.port}")
    assert answer.status == 421
    page.enter()
    stranger = page.cookie
    # The token was good once.
    page.cookie = None
    assert page.get(page.way_in)[0].status == 403
    page.cookie = stranger[:-1] + ("0" if stranger[-1] != "0" else "1")
    assert page.get("/")[0].status == 403
    page.cookie = stranger
    assert page.get("/")[0].status == 200
    assert page.get("/", Host="127.0.0.1")[0].status == 421
    assert page.get("/", Host=f"localhost:{page.port}")[0].status == 200


def test_every_answer_forbids_what_is_not_needed(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    page = start()
    page.enter()
    for path in ("/", "/run/a", "/page.js", "/none"):
        headers = page.get(path)[0].headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"


def test_no_path_leaves_the_folder(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    cli.ok(*TRAIN, "--run", "other")
    page = start("runs")
    page.enter()
    for path in ("/run/../other", "/run/%2e%2e/other", "/run/a/../../other",
                 "/run/a/run.json", "/run/", "/run", "/run/a%2f", "//",
                 "/etc/passwd", "/run//etc/passwd", "/%2e%2e/other/run.json"):
        answer, body = page.get(path)
        assert answer.status == 404, path
        assert body.startswith("there is no page /")
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert page.get("/", method=method)[0].status == 405
    answer, body = page.get("/", method="HEAD")
    assert answer.status == 200 and body == ""


def test_a_folder_without_runs_is_told(cli, start):
    (cli.folder / "empty").mkdir()
    page = start("empty")
    page.enter()
    answer, body = page.get("/")
    assert answer.status == 404 and "nor a folder of them" in body
    cli.ok(*TRAIN, "--run", "empty/a")
    assert page.get("/")[0].status == 200
    # A run folder that cannot be read is named.
    (cli.folder / "empty/a/run.json").write_text("{")
    answer, body = page.get("/")
    assert answer.status == 200 and "is not a run folder" in body


def test_wrong_usage(cli, start):
    cli.refused(1, "page", "none", says="none: there is no such folder")
    cli.refused(2, "page", "a", "b", says="one folder")
    cli.ok(*TRAIN, "--run", "runs/a")
    page = start()
    cli.refused(1, "page", "--port", page.port,
                says=f"listen at 127.0.0.1:{page.port}: Address already")


def test_nonsense_is_survived(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    page = start()
    for junk in (b"\0" * 100, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000,
                 b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                 b"GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", page.port),
                                      DEADLINE_S) as peer:
            try:
                peer.sendall(junk)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
            except OSError:
                pass  # dropped: as good as an answer
    page.enter()
    assert page.get("/")[0].status == 200
