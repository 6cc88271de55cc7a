"""Shared by the tests of the program: start it, inspect the results.

PACELINE names the program.  Every command runs in the test's own folder, with
a home of its own and a deadline.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import sysconfig
import time

import pytest

DEADLINE_S = 300
ROOT = pathlib.Path(__file__).resolve().parents[2]
# A small training: one model, generated data, a few steps.
SMALL = ["--data", "synthetic", "--examples", "2000", "--steps", "50"]

# A shell that runs the tests in the background lets them ignore Ctrl-C, and
# and so does all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def program():
    path = os.environ.get("PACELINE")
    if not path:
        pytest.exit("PACELINE must name the program to test", returncode=2)
    return os.path.abspath(path)


def skip_when_sanitized():
    if b"__asan_init" in open(program(), "rb").read():
        pytest.skip("AddressSanitizer itself needs more memory, and time")


def leaks_allowed():
    """ASAN_OPTIONS for memory that MPI does not free at its end, and for
    strace, under which LeakSanitizer does not work."""
    return os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"


class Result:
    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def json(self):
        """The object in the last line of standard output."""
        return json.loads(self.out.splitlines()[-1])

    def __repr__(self):
        words = " ".join(str(a) for a in self.args)
        return (f"paceline {words}\nexit status {self.code}\n"
                f"--- stdout\n{self.out}\n--- stderr\n{self.err}")


class Cli:
    """The program, started in `folder`."""

    def __init__(self, folder, home):
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("XDG_")}
        self.env["HOME"] = str(home)

    def start(self, *args, **more):
        more.setdefault("cwd", self.folder)
        more.setdefault("env", self.env)
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([program(), *map(str, args)], **more)

    def end(self, process, *args):
        """Wait for a started one."""
        try:
            out, err = process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail(f"paceline {args}: not done in {DEADLINE_S} s")
        return Result(args, process.returncode, (out or b"").decode(),
                      (err or b"").decode())

    def run(self, *args, **more):
        return self.end(self.start(*args, **more), *args)

    def ok(self, *args, **more):
        result = self.run(*args, **more)
        assert result.code == 0, result
        return result

    def train(self, *flags, **more):
        """Train to the end; the summary."""
        return self.ok("train", "softmax", "--quiet", "--json", *flags,
                       **more).json

    def page(self, name):
        """Run the shell blocks of a document in one shell, in order; their
        output."""
        blocks = re.findall(r"```sh\n(.*?)```", (ROOT / name).read_text(), re.S)
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "paceline").symlink_to(program())
        (tools / "python3").symlink_to(sys.executable)
        env = self.env | {"PATH": f"{tools}:{self.env['PATH']}"}
        # A link to a venv's Python finds its packages by this.
        env["PYTHONPATH"] = sysconfig.get_path("purelib")
        result = subprocess.run(["sh", "-c", "set -e\n" + "".join(blocks)],
                                cwd=self.folder, env=env, capture_output=True,
                                text=True, timeout=DEADLINE_S)
        assert blocks and result.returncode == 0, result.stderr
        return result.stdout

    def refused(self, code, *args, says=(), **more):
        """Must fail with one sentence that names its subject, and leave
        nothing behind when the command itself was wrong."""
        before = listing(self.folder)
        result = self.run(*args, **more)
        assert result.code == code, result
        lines = result.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("paceline: "), result
        for text in [says] if isinstance(says, str) else says:
            assert text in lines[0], (text, result)
        if code == 2:
            assert "[src/" not in lines[0], result
            assert listing(self.folder) == before, result
        return result


def listing(folder):
    return sorted(str(p.relative_to(folder)) for p in
                  pathlib.Path(folder).rglob("*"))


def wait_for(condition, what, process=None):
    """Poll until the condition holds, or the process has ended: then False."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if process is not None and process.poll() is not None:
            return bool(condition())
        assert time.monotonic() < end, f"waited {DEADLINE_S} s for {what}"
        time.sleep(0.002)
    return True


def checkpoints(run):
    """Folders of the complete checkpoints, the oldest first."""
    return sorted(p.parent for p in
                  pathlib.Path(run).glob("checkpoints/step-*/manifest.json"))


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def cli(tmp_path, home):
    folder = tmp_path / "work"
    folder.mkdir()
    return Cli(folder, home)


@pytest.fixture(scope="session")
def digits(tmp_path_factory, home):
    """A folder of IDX files made by `data digits`."""
    folder = tmp_path_factory.mktemp("digits")
    Cli(folder, home).ok("data", "digits", "--out", "idx")
    return folder / "idx"


@pytest.fixture
def browser():
    from browser import Browser  # most tests need none
    started = Browser("--window-size=1280,1000")
    yield started
    started.close()
