"""`sweep`: cells one after another, resumed, reported."""

import contextlib
import fcntl
import itertools
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios

import pytest

from conftest import ROOT, leaks_allowed, program, wait_for
from hosts import HOSTS, fake_ssh

DATA = ["--data", "synthetic", "--examples", "2000"]
EXAMPLES = sorted((ROOT / "examples" / "sweeps").glob("*.sweep"))


def states(folder):
    cells = json.loads((folder / "sweep.json").read_text())["cells"]
    return {cell["name"]: cell["state"] for cell in cells}


def test_a_grid_is_run_and_its_results_shown(cli):
    command = ["sweep", "--grid", "mode=sync,async workers=0,1", "--out", "s",
               "--", "softmax", *DATA, "--steps", "20"]
    result = cli.ok(*command)
    names = ["single", "mode-sync_workers-1", "mode-async_workers-1"]
    assert list(states(cli.folder / "s")) == names
    assert set(states(cli.folder / "s").values()) == {"done"}
    for number, name in enumerate(names, 1):
        assert f"[{number}/3] {name}: " in result.err
        run = json.loads((cli.folder / "s" / name / "run.json").read_text())
        assert run["args"]["steps"] == "20"
        assert name in result.out
    said = [line for line in result.err.splitlines() if line[:1] == "["]
    assert [bool(re.search(r"  ETA \d+:\d\d$", line)) for line in said] == [
        True, True, False]
    before = os.stat(cli.folder / "s" / "single" / "summary.json").st_mtime_ns
    again = cli.ok(*command)
    assert "3 of 3 cells are already done" in again.err
    assert "[" not in again.err
    assert os.stat(cli.folder / "s" / "single" /
                   "summary.json").st_mtime_ns == before


def flushes(cli, rates):
    """fsync calls of a sweep over these rates, and of its trainings."""
    trace = cli.folder / f"{len(rates)}.trace"
    subprocess.run(
        ["env", f"ASAN_OPTIONS={leaks_allowed()}", "strace", "-f", "-qq", "-o",
         trace, "-e", "trace=fsync", program(), "sweep", "--grid",
         f"lr={','.join(rates)}", "--out", f"s{len(rates)}", "--", "softmax",
         *DATA, "--steps", "2"],
        cwd=cli.folder, env=cli.env, check=True, capture_output=True)
    return len(re.findall(r"fsync\(", trace.read_text()))


@pytest.mark.skipif(shutil.which("strace") is None,
                    reason="strace is not installed")
def test_a_cell_waits_for_the_disk_no_more_often_than_it_must(cli):
    """The state, run.json, two files of a checkpoint, confusion.json and
    summary.json, each with its folder; the folders of the run, of checkpoints,
    of the checkpoint and of events."""
    assert flushes(cli, ["0.1", "0.2"]) - flushes(cli, ["0.1"]) == 6 * 2 + 4


def test_the_end_of_a_cell_is_known_when_the_next_one_runs(cli):
    command = ["sweep", "--grid", "steps=2,9000000000", "--out", "s", "--",
               "softmax", *DATA, "--eval-every", "never"]
    process = cli.start(*command)
    second = cli.folder / "s" / "steps-9000000000" / "run.json"
    wait_for(second.exists, "the second cell", process)
    assert list(states(cli.folder / "s").values()) == ["done", "running"]
    process.send_signal(signal.SIGINT)
    assert cli.end(process, *command).code == 130
    assert list(states(cli.folder / "s").values()) == ["done", "running"]


def test_a_file_is_run_with_repetitions(cli):
    (cli.folder / "small.sweep").write_text(
        "# a comment\nmodel softmax\nflags --steps 10\ngrid batch=10,20\n"
        "repeat 2\n")
    result = cli.ok("sweep", "small.sweep", "--", *DATA)
    out = cli.folder / "sweeps" / "small"
    assert list(states(out)) == ["batch-10_r1", "batch-10_r2", "batch-20_r1",
                                 "batch-20_r2"]
    assert "±" in result.out
    rows = json.loads(cli.ok("compare", out, "--mean", "--json").out)
    assert [row["repetitions"] for row in rows] == [2, 2]


def test_a_failed_cell_is_reported_and_retried(cli):
    """One cell's data is missing at first."""
    grid = f"data=synthetic,idx:{cli.folder}/digits"
    command = ["sweep", "--grid", grid, "--out", "s", "--", "softmax",
               "--steps", "10"]
    result = cli.run(*command)
    assert result.code == 1, result
    assert "1 of 2 cells failed" in result.err.splitlines()[-1]
    failed = [name for name, state in states(cli.folder / "s").items()
              if state == "failed"]
    assert len(failed) == 1 and "digits" in failed[0]
    assert f"{failed[0]}: ended with exit status 1: paceline: " in result.err
    assert (cli.folder / "s" / "log" / f"{failed[0]}.log").exists()
    cli.ok("data", "digits", "--out", "digits")
    cli.ok(*command)
    assert set(states(cli.folder / "s").values()) == {"done"}


def start_endless(cli, out):
    """A sweep whose first cell would not end by itself."""
    command = ["sweep", "--grid", "batch=1,2", "--out", out, "--", "softmax",
               *DATA, "--checkpoint-every", "1000", "--eval-every", "never",
               "--steps", "9000000000"]
    process = cli.start(*command)
    first = cli.folder / out / "batch-1" / "checkpoints"
    wait_for(lambda: any(first.glob("step-*/manifest.json")), "a checkpoint",
             process)
    return command, process


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_ends_it_cleanly_and_the_cell_resumes(cli):
    command, process = start_endless(cli, "s")
    child, = children(process.pid)
    process.send_signal(signal.SIGINT)
    result = cli.end(process, *command)
    assert result.code == 130, result
    assert result.err.splitlines()[-1].endswith(
        "interrupted; 0 of 2 cells are done. Repeat the command to continue")
    assert not alive(child)
    assert states(cli.folder / "s") == {"batch-1": "running",
                                        "batch-2": "waiting"}
    process = cli.start(*command)
    log = cli.folder / "s" / "log" / "batch-1.log"
    wait_for(lambda: log.read_text().count("--- start") == 2 and
             "resum" in log.read_text().split("--- start")[2], "the cell",
             process)
    process.send_signal(signal.SIGTERM)
    assert cli.end(process, *command).code == 130


def test_a_killed_sweep_leaves_no_process(cli):
    command, process = start_endless(cli, "s")
    child, = children(process.pid)
    process.kill()
    cli.end(process, *command)
    wait_for(lambda: not alive(child), "the end of the training")
    second = cli.start(*command)
    wait_for(lambda: children(second.pid), "the cell", second)
    third = cli.run(*command)
    assert third.code == 2, third
    assert "another sweep is running in s" in third.err
    second.kill()
    cli.end(second, *command)


def test_the_bar_fits_the_terminal(cli):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = cli.start("sweep", "--grid", "optimizer=momentum,adam "
                        "eval-every=100,200 checkpoint-every=100000",
                        "--out", "s", "--", "softmax", *DATA, "--steps", "500",
                        stderr=theirs)
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(ours, 65536):
            text += piece
    os.close(ours)
    assert cli.end(process).code == 0
    bars = [line for line in text.decode().replace("\x1b[K", "").split("\r")
            if line.startswith("[") and "]" in line and ": " not in line]
    assert any("ETA" in bar for bar in bars)
    assert max(map(len, bars)) < 80


def test_other_flags_are_refused(cli):
    start = ["sweep", "--grid", "batch=10", "--out", "s", "--", "softmax",
             *DATA]
    cli.ok(*start, "--steps", "10")
    cli.refused(2, *start, "--steps", "20", says=["batch-10", "other flags"])
    cli.refused(2, "sweep", "--grid", "batch=10", "--out", "s", "--", "lenet",
                says="to a sweep of softmax")
    (cli.folder / "t" / "batch-10").mkdir(parents=True)
    cli.refused(2, "sweep", "--grid", "batch=10", "--out", "t", "--",
                "softmax", says="does not belong to this sweep")
    (cli.folder / "s" / "sweep.json").write_text('{"format": 99}')
    cli.refused(1, *start, "--steps", "10", says="newer paceline")


@pytest.mark.parametrize("words, says", [
    ([], "sweep FILE"),
    (["--grid", "batch=1"], "sweep FILE"),
    (["--grid", "batch=1", "--", "softmax"], "--out"),
    (["--grid", "batch", "--out", "s", "--", "softmax"], "FLAG=VALUE"),
    (["--grid", "batch=1,x", "--out", "s", "--", "softmax"], "batch-x"),
    (["--grid", "batch=1", "--out", "s", "--", "sofmax"], "softmax"),
    (["--grid", "batch=1", "--out", "s", "--", "softmax", "--nope"], "--nope"),
    (["--repeat", "0", "x"], "--repeat"),
])
def test_wrong_usage_runs_nothing(cli, words, says):
    cli.refused(2, "sweep", *words, says=says)


def test_a_missing_file_is_reported(cli):
    cli.refused(1, "sweep", "no.sweep", says="no.sweep")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda f: f.stem)
def test_the_examples_are_right(cli, file):
    lines = cli.ok("sweep", file, "--list").out.splitlines()
    assert lines
    assert all(" train " in line and f"--run sweeps/{file.stem}/" in line
               for line in lines)
    assert f"experiment {file.stem.split('-')[0].upper()} " in file.read_text()


BATCHES = "1,5,10,20,40,100,200,600"
MATRICES = {
    "a1-batch": "batch=10,50,100,200,500",
    "a2-epochs": "epochs=6,10,50,100,200",
    "a4-curves": "batch=100 eval-every=100 record-every=1",
    "a5-workers": "mode=async,sync workers=1,2,3",
    "a7-batch-by-mode": "mode=async,sync workers=3 batch=10,50,100,200,500",
    "a8-alexnet-batch": "batch=32,64,128,256,512",
    "a9-alexnet-workers": "mode=sync workers=2,3 batch=32,64,128,256",
    "b2-modes": "mode=sync,async workers=4 batch=100 eval-every=20000ex",
    "b3-resources": "mode=sync,async workers=4 batch=20",
    "c1-stop-loss-single": f"batch={BATCHES} eval-every=100",
    "c2-stop-loss-async":
        f"mode=async workers=1,2,3 batch={BATCHES} eval-every=100",
    "c3-stop-loss-sync":
        f"mode=sync workers=1,2,3 batch={BATCHES} eval-every=100",
    "c5-lenet": "activation=relu,tanh steps-per-epoch=375,1000 epochs=50",
    "c6-lenet-workers": "workers=1,2,3 batch=32,64,128,256 epochs=50",
    "d1-traffic": "traffic=sparse,dense mode=sync,async workers=5",
    "e5-alexnet-nodes": "mode=sync workers=1,2,4 batch=32,64,128,256",
}


# Cells outside of the matrix, of which a report shows curves.
CURVES = {
    "c2-stop-loss-async": ("async", "3", "50", "100"),
    "c3-stop-loss-sync": ("sync", "3", "50", "100"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_matrices_are_complete(cli, name):
    file = ROOT / "examples" / "sweeps" / f"{name}.sweep"
    grid = dict(word.split("=") for word in MATRICES[name].split())
    cells = set()
    for line in cli.ok("sweep", file, "--list").out.splitlines():
        words = line.split()
        cells.add(tuple(words[words.index(f"--{flag}") + 1] for flag in grid))
    expected = set(itertools.product(
        *(values.split(",") for values in grid.values())))
    if name in CURVES:
        expected.add(CURVES[name])
    assert cells == expected


def test_data_of_the_kind_a_file_asks_for_bring_their_flags(cli):
    (cli.folder / "m.sweep").write_text(
        "model softmax\ndata mnist --train-examples 55000\ngrid batch=1\n")
    text = cli.ok("sweep", "m.sweep", "--list", "--data", "mnist:here").out
    assert "--data mnist:here --train-examples 55000" in text
    other = cli.ok("sweep", "m.sweep", "--list", "--data", "idx:here")
    assert "--train-examples" not in other.out
    assert "--train-examples" not in cli.ok("sweep", "m.sweep", "--list").out


PUBLISHED = """experiment X1 "Does it work?"
model softmax
data idx
flags --steps 20
grid batch=10,20
published test_accuracy 50% ?
published seconds machine 100 200
"""


def test_published_values_are_shown(cli):
    (cli.folder / "x.sweep").write_text(PUBLISHED)
    cli.ok("data", "digits", "--out", "digits")
    text = cli.ok("sweep", "x.sweep", "--data", "idx:digits").out
    assert text.startswith("X1: Does it work?\n")
    assert "published elsewhere [s]" in text and "[points]" in text
    assert "depend on the machine: seconds." in text
    first, second = json.loads(
        cli.ok("compare", "sweeps/x", "--json").out)
    assert first["published.test_accuracy"] == 0.5
    assert first["difference.test_accuracy"] == pytest.approx(
        first["test_accuracy"] - 0.5)
    assert second["published.test_accuracy"] is None
    assert second["published.seconds"] == 200
    cli.ok("report", "sweeps", "-o", "r.html")
    page = (cli.folder / "r.html").read_text()
    assert "X1: Does it work?" in page and "difference [points]" in page
    assert "published: all runs" in page


def test_other_data_are_not_compared_with_published_values(cli):
    (cli.folder / "x.sweep").write_text(PUBLISHED)
    result = cli.ok("sweep", "x.sweep")
    assert "x: other data: the experiment uses idx" in result.err
    text = result.out
    assert "published [%]" in text and "difference" not in text.split("\n")[1]
    assert "the experiment uses idx" in text


def test_wrong_published_values_are_reported(cli):
    (cli.folder / "x.sweep").write_text(PUBLISHED.replace("50% ?", "50%"))
    cli.refused(2, "sweep", "x.sweep",
                says="x.sweep:6: 1 values of test_accuracy; expected 2")


SMALL = "model softmax\nflags --data {data} --steps {steps}\ngrid batch=10,20\n"


def write_series(cli, broken="synthetic"):
    folder = cli.folder / "all"
    folder.mkdir()
    (folder / "a10.sweep").write_text(
        SMALL.format(data="synthetic", steps=10) + "quick --steps 5 batch=20\n")
    (folder / "a2.sweep").write_text(
        SMALL.format(data=broken, steps=10) + "quick --steps 5\n"
        "published steps 10 10\n")
    (folder / "readme.txt").write_text("not a sweep")


def test_a_folder_is_run_in_order_and_resumed(cli):
    write_series(cli)
    command = ["sweep", "all", "--out", "s"]
    result = cli.ok(*command)
    said = [line.split(":")[0] for line in result.err.splitlines()
            if line.startswith("[")]
    assert said == ["[1/4] a2/batch-10", "[2/4] a2/batch-20",
                    "[3/4] a10/batch-10", "[4/4] a10/batch-20"]
    assert "report s -o" in result.out
    for name in "a2", "a10":
        assert set(states(cli.folder / "s" / name).values()) == {"done"}
    again = cli.ok(*command)
    assert "a10: 2 of 2 cells are already done" in again.err
    assert "[" not in again.err
    rows = json.loads(cli.ok("compare", "s", "--json").out)
    assert [row["sweep"] for row in rows] == ["a2", "a2", "a10", "a10"]
    cli.ok("report", "s", "-o", "r.html", "--files", "files")
    assert (cli.folder / "files" / "a2-runs.csv").exists()
    assert (cli.folder / "files" / "a10-runs.csv").exists()


def test_a_failed_cell_leaves_the_other_sweeps_standing(cli):
    write_series(cli, broken="idx:nowhere")
    result = cli.run("sweep", "all/a2.sweep", "all/a10.sweep", "--out", "s")
    assert result.code == 1, result
    assert "2 of 4 cells failed" in result.err.splitlines()[-1]
    assert set(states(cli.folder / "s" / "a2").values()) == {"failed"}
    assert set(states(cli.folder / "s" / "a10").values()) == {"done"}
    assert "batch-20" in result.out


def test_a_mistake_in_the_last_file_runs_nothing(cli):
    write_series(cli)
    (cli.folder / "all" / "z.sweep").write_text("model softmax\ngrid x=1\n")
    cli.refused(2, "sweep", "all", says=["all/z.sweep", "x is not a flag"])
    (cli.folder / "a2.sweep").write_text("model softmax\ngrid lr=1\n")
    cli.refused(2, "sweep", "all/a2.sweep", "a2.sweep", says="the same name")
    (cli.folder / "none").mkdir()
    cli.refused(1, "sweep", "none", says="no file *.sweep")


def test_a_quick_sweep_says_how_it_was_scaled(cli):
    write_series(cli)
    result = cli.ok("sweep", "all", "--quick")
    assert "a10: quick: --steps 5 (not 10); only batch 20" in result.err
    assert "a2: quick: --steps 5 (not 10)" in result.err
    out = cli.folder / "sweeps" / "quick"
    assert list(states(out / "a10")) == ["batch-20"]
    text = cli.ok("compare", out / "a2").out
    assert "quick: --steps 5 (not 10)" in text
    assert "published" in text and "difference" not in text.split("\n")[0]
    cli.refused(2, "sweep", "--grid", "batch=1", "--out", "g", "--quick",
                "--", "softmax", says="no quick line")


def test_there_are_examples():
    assert len(EXAMPLES) >= 20 and program()


@pytest.mark.parametrize("by_launch", [False, True])
def test_cells_are_trained_over_hosts(cli, by_launch):
    hosts = ["--hosts", ",".join(HOSTS[:2]), "--ssh", fake_ssh(cli.folder)]
    command = ["launch", *hosts, "--", "sweep"] if by_launch else \
        ["sweep", *hosts]
    command += ["--grid", "mode=sync workers=0,2 data=synthetic,idx:nowhere",
                "--out", "s", "--", "softmax", "--steps", "20"]
    result = cli.run(*command)
    assert result.code == 1 and "2 of 4 cells failed" in result.err, result
    found = states(cli.folder / "s")
    assert all(("nowhere" in name) == (state == "failed")
               for name, state in found.items()), found
    summaries = {}
    for name, state in found.items():
        if state == "done":
            run = cli.folder / "s" / name
            summary = json.loads((run / "summary.json").read_text())
            summaries[summary["workers"]] = summary["strategy"]
            log = (cli.folder / f"s/log/{name}.log").read_text()
            assert "worker 0 on 127.0.0.1: " in log
    assert summaries == {1: "single", 2: "ps"}
    # Finished cells are skipped.
    again = cli.run(*command)
    assert "2 of 4 cells are already done" in again.err


def test_commands_over_hosts_are_listed(cli):
    result = cli.ok("sweep", "--hosts", "a,b", "--copy", "--list", "--grid",
                    "batch=10", "--out", "s", "--", "softmax")
    assert result.out == ("paceline launch --hosts a,b --copy -- train softmax "
                          "--batch 10 --run s/batch-10\n")
