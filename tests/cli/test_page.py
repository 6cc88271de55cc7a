"""`paceline page`: runs in a browser, for holders of the URL."""

import json
import os
import re
import socket
import time

import pytest

from conftest import wait_for
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
        log.write(b"<b>" * 30000 + b"\nthe <b>end\0\n")
    page = start()
    page.enter()
    answer, body = page.get("/")
    assert answer.status == 200
    row = re.search(r'<a href="/run/a">a</a>.*</tr>', body)[0]
    cells = [re.sub("<[^>]*>", "", cell) for cell in row.split("<td")]
    cells = [cell.split(">", 1)[-1] for cell in cells]
    assert cells[1:5] == ["softmax", "single", "1", "5/5"], cells
    assert re.fullmatch(r"\d+\.\d\d %", cells[7]), cells
    assert body.index("/run/b") < body.index("/run/a"), "the newest first"
    assert '<a href="/run/b%20%3Ci%3E%26">b &lt;i&gt;&amp;</a>' in body
    assert "data-changing" in body
    answer, body = page.get("/run/b%20%3Ci%3E%26")
    assert answer.status == 200
    assert "<h1>b &lt;i&gt;&amp;</h1>" in body and "<i>" not in body
    assert "Training loss" in body and "data-changing" not in body
    assert '</h1>\n<p class=back><a href="/">All runs</a></p>' in body
    place = "/log/b%20%3Ci%3E%26/worker-1.log"
    assert f'data-log="{place}"><summary>worker-1.log</summary>' in body
    answer, text = page.get(place)
    assert answer.status == 200 and text == "the <b>end\0\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    for asset, kind in (("/page.css", "text/css"), ("/page.js", "javascript"),
                        ("/live.js", "javascript"),
                        ("/figures.js", "javascript")):
        assert f"={asset}>" in body
        answer, text = page.get(asset)
        assert answer.status == 200 and len(text) > 100
        assert kind in answer.headers["Content-Type"]
    assert "for one more browser: http://" in page.end()


def test_a_running_job_is_refreshed(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    (cli.folder / "runs/a/summary.json").unlink()
    page = start("runs/a")
    page.enter()
    (cli.folder / "runs/a/run.json").touch()
    _, body = page.get("/run/a")
    again_ms = int(re.search(r"<main data-changing=(\d+)>", body)[1])
    assert 2000 <= again_ms <= 20000
    assert "<b>running</b> <span>state</span>" in body
    host = socket.gethostname()
    task = re.search("<tr><td class=text>worker-0<td.*</tr>", body)[0]
    cells = [re.sub("^[^>]*>", "", cell) for cell in task[:-5].split("<td")]
    assert cells[1:5] == ["worker-0", host, "running", "5"], cells
    assert float(cells[7]) > 1 and cells[8] == "0", cells
    _, body = page.get("/")
    assert "<tr class=running>" in body
    long_ago = time.time() - 1000
    for file in (cli.folder / "runs/a").rglob("*"):
        os.utime(file, (long_ago, long_ago))
    _, body = page.get("/run/a")
    assert re.search(r"<b>silent for \d\d:\d\d</b>", body)
    assert re.search("<tr class=missing><td class=text>worker-0<td class=text>"
                     + host + r"<td class=text>silent for \d\d:\d\d; its "
                     "next step is awaited", body)
    _, body = page.get("/")
    assert "class=running" not in body


def test_runs_lie_side_by_side(cli, start):
    for name in "a", "b", "c":
        cli.ok(*TRAIN, "--run", f"runs/{name}")
    (cli.folder / "runs/a/summary.json").unlink()
    page = start()
    page.enter()
    answer, body = page.get("/overlay/a:c")
    assert answer.status == 200 and "Runs side by side" in body
    model = json.loads(re.search("id=model>(.*?)</script>", body, re.S)[1])
    # The same flags, yet neither is a repetition of the other.
    assert [(run["name"], run["label"], run["like"])
            for run in model["runs"]] == [("a", "a", 0), ("c", "c", 1)]
    assert model["figures"][0]["id"] == "curve-loss"
    assert {s["run"] for s in model["series"] if s["metric"] == "loss"} == {0, 1}
    # One that has not ended comes first, however old.
    _, body = page.get("/")
    places = [body.index(f'"/run/{name}"') for name in "acb"]
    assert places == sorted(places)
    for path in "/overlay/", "/overlay/a:d", "/overlay/" + ":".join(65 * "a"):
        answer, body = page.get(path)
        assert answer.status == 404 and body.startswith("overlay: "), path


def test_malformed_files_do_not_block_it(cli, start):
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
    answer, body = page.get("/log/a/worker-0.log")
    assert answer.status == 200 and len(body) == 65536
    os.truncate(log, 0)
    answer, body = page.get("/log/a/worker-0.log")
    assert answer.status == 200 and body == ""
    os.mkfifo(runs / "a/log/fifo.log")
    answer, body = page.get("/log/a/fifo.log")
    assert answer.status == 500 and "not a regular file" in body
    page.get("/run/fifo")
    assert page.get("/run/a")[0].status == 200
    page.end()


def test_requests_without_the_token_are_refused(cli, start):
    cli.ok(*TRAIN, "--run", "runs/a")
    page = start()
    for path in ("/", "/run/a", "/page.js", "/?token=" + 64 * "0",
                 page.way_in[:-1], page.way_in.replace("/?", "/?x=1&t")):
        answer, body = page.get(path)
        assert answer.status == 403, path
        assert "Open the URL that the server printed last" in body
    # A foreign name that resolves to this host.
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
    for path in "/overlay/../other", "/overlay/a:../other", "/overlay//etc":
        answer, body = page.get(path)
        assert answer.status == 404 and body.startswith("overlay: "), path
    for path in ("/log/a/../run.json", "/log/a/run.json", "/log/a", "/log/",
                 "/log/other/x", "/log/a//etc/passwd", "/sweep/..", "/sweep/"):
        answer, body = page.get(path)
        assert answer.status == 404, path
        assert re.match("there is no (log|sweep) ", body), path
    for path in ("/run/../other", "/run/%2e%2e/other", "/run/a/../../other",
                 "/run/a/run.json", "/run/", "/run", "/run/a%2f", "//",
                 "/etc/passwd", "/run//etc/passwd", "/%2e%2e/other/run.json"):
        answer, body = page.get(path)
        assert answer.status == 404, path
        assert body.startswith("there is no page /")
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH"):
        assert page.get("/", method=method)[0].status == 405
    answer, body = page.get("/", method="HEAD")
    assert answer.status == 200 and body == ""


def going(cli, *args):
    """A long job that trains."""
    job = cli.start(*TRAIN, "--epochs", "1000000", "--run", "runs/a", *args)
    events = cli.folder / "runs/a/events"
    wait_for(lambda: (cli.folder / "runs/a/run.json").exists() and
             any(events.rglob("*tfevents*")), "a training")
    return job


@pytest.mark.parametrize("args", [[], ["--workers", "2", "--ps", "1"]])
def test_a_run_is_stopped_as_by_ctrl_c(cli, start, args):
    job = going(cli, *args)
    page = start()
    page.enter()
    _, body = page.get("/run/a")
    assert '<button type=button data-stop="/stop/a">' in body
    own = f"http://127.0.0.1:{page.port}"
    # Only with the cookie, and only from a page of this server.
    for origin in (None, "null", "http://evil.example", own + "0",
                   f"http://127.0.0.1:{page.port + 1}", own[7:]):
        headers = {"Origin": origin} if origin else {}
        answer, body = page.get("/stop/a", method="POST", **headers)
        assert answer.status == 403, origin
        assert body == "only a page of this server may do that\n"
    answer, _ = page.get("/stop/a", method="POST", Origin=own, Cookie="")
    assert answer.status == 403
    answer, _ = page.get("/stop/a")
    assert answer.status == 404 and job.poll() is None
    answer, body = page.get("/stop/a", method="POST", Origin=own)
    assert answer.status == 200 and body == "a saves and ends\n"
    said = job.communicate(timeout=DEADLINE_S)[1].decode()
    assert job.returncode == 130, said
    summary = json.loads((cli.folder / "runs/a/summary.json").read_text())
    assert summary["stopped_by"] == "interrupt"
    assert not (cli.folder / "runs/a/control.sock").exists()
    answer, body = page.get("/stop/a", method="POST", Origin=own)
    assert answer.status == 409
    assert body == "a has already ended (interrupt)\n"
    _, body = page.get("/run/a")
    assert "data-stop" not in body
    # It is resumed where it was stopped.
    cli.ok("train", "softmax", "--run", "runs/a", "--resume", "--quiet",
           "--epochs", summary["steps"] // 2 + 1)


def test_no_other_socket_is_reached(cli, start):
    """A run folder from elsewhere cannot make the page stop another job."""
    job = going(cli)
    runs = cli.folder / "runs"
    cli.ok(*TRAIN, "--run", "runs/b")
    (runs / "b/summary.json").unlink()
    socket_path = runs / "b/control.sock"
    page = start()
    page.enter()
    own = {"Origin": f"http://localhost:{page.port}"}
    for make in (lambda: None, lambda: os.mkfifo(socket_path),
                 lambda: socket_path.symlink_to("../a/control.sock"),
                 lambda: socket_path.symlink_to("/dev/tty")):
        make()
        _, body = page.get("/run/b")
        assert "data-stop" not in body
        answer, body = page.get("/stop/b", method="POST", **own)
        assert answer.status in (409, 500), body
        assert ("no process of this host runs b" in body or
                "expected a socket of this user" in body)
        socket_path.unlink(missing_ok=True)
    for path in "/stop/../a", "/stop/", "/stop/a/control.sock", "/run/a", "/":
        assert page.get(path, method="POST", **own)[0].status == 404, path
    assert job.poll() is None
    # A job that was killed leaves its socket behind, and the page reports it.
    job.kill()
    job.communicate()
    assert (runs / "a/control.sock").exists()
    answer, body = page.get("/stop/a", method="POST", **own)
    assert answer.status == 409 and "no process of this host runs a" in body


def test_a_folder_without_runs_is_reported(cli, start):
    (cli.folder / "empty").mkdir()
    page = start("empty")
    page.enter()
    answer, body = page.get("/")
    assert answer.status == 404 and "nor a folder of run folders" in body
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


def test_malformed_requests_are_survived(cli, start):
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
