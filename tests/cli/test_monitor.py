"""`paceline monitor`, and what a training records of its host."""

import contextlib
import csv
import os
import pty
import signal
import socket
import subprocess

import pytest

from conftest import SMALL, program, wait_for

HOST = socket.gethostname()
# Busy until the monitor has seen it.
BUSY = ["python3", "-c", """
import csv, pathlib
def seen():
    with open("m.csv", newline="") as file:
        return any(float(row["job_cpu"] or 0) > 0
                   for row in csv.DictReader(file) if row["job_cpu"])
while not seen():
    sum(range(100000))
"""]


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_training_records_what_it_uses(cli):
    process = cli.start("train", "softmax", "--steps", "1000000000", "--quiet",
                        "--monitor-every", "0.1", "--run", "a",
                        "--threads", "1")
    path = cli.folder / f"a/resources/{HOST}.csv"

    def seen():
        found = rows(path) if path.exists() else []
        return len(found) > 5 and any(float(row["job_cpu"] or 0) > 0
                                      for row in found[:-1])
    assert wait_for(seen, "samples", process)
    process.send_signal(signal.SIGINT)
    assert cli.end(process).code == 130
    found = rows(path)
    assert all(None not in row and None not in row.values() for row in found)
    assert {"time", "cpu", "cpu0", "job_cpu", "job_rss_mb",
            "lo_sent_bytes_per_s"} <= found[0].keys()
    times = [float(row["time"]) for row in found]
    assert times == sorted(times)
    assert max(float(row["job_cpu"]) for row in found) > 0
    assert all(float(row["job_rss_mb"]) > 1 for row in found[:-1])
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("flags,tasks", [
    (["--ps", "1"], "3"),
    (["--strategy", "allreduce", "--engine", "ring"], "2"),
])
def test_tasks_of_one_host_share_a_file(cli, flags, tasks):
    process = cli.start("train", "softmax", "--steps", "1000000000", "--quiet",
                        "--monitor-every", "0.1", "--run", "a", "--workers",
                        "2", "--threads", "1", *flags)
    path = cli.folder / f"a/resources/{HOST}.csv"

    def seen():
        return path.exists() and any(
            row["job_tasks"] == tasks and
            float(row["job_sent_bytes_per_s"] or 0) > 0
            for row in rows(path) if None not in row.values())
    wait_for(seen, "all tasks", process)
    process.send_signal(signal.SIGINT)
    assert cli.end(process).code == 130
    names = [p.name for p in path.parent.iterdir()]
    assert [n for n in names if n.endswith(".csv")] == [path.name]


def test_a_short_job_is_sampled_by_role_and_without_its_tail(cli):
    """At one sample a second: the first ones come sooner."""
    cli.train(*SMALL, "--steps", "4000", "--workers", "2", "--ps", "1",
              "--threads", "1", "--run", "a")
    found = rows(cli.folder / f"a/resources/{HOST}.csv")
    assert any(row["worker_tasks"] == "2" and row["ps_tasks"] == "1"
               for row in found), found
    full = [row for row in found if row["job_tasks"] == "3"]
    for row in full:
        parts = float(row["worker_rss_mb"]) + float(row["ps_rss_mb"])
        assert abs(parts - float(row["job_rss_mb"])) < 0.2, row
    assert found[-1]["worker_tasks"] != "0", found[-1]


def test_samples_may_be_ten_milliseconds_apart(cli):
    process = cli.start("train", "softmax", "--steps", "1000000000", "--quiet",
                        "--monitor-every", "0.01", "--run", "a",
                        "--threads", "1")
    path = cli.folder / f"a/resources/{HOST}.csv"
    assert wait_for(lambda: path.exists() and
                    len(path.read_text().splitlines()) > 50, "rows", process)
    process.send_signal(signal.SIGINT)
    assert cli.end(process).code == 130
    times = [float(row["time"]) for row in rows(path)]
    pauses = sorted(b - a for a, b in zip(times, times[1:]))
    assert pauses[0] < 0.015, pauses


def test_an_interval_of_0_takes_no_samples(cli):
    cli.train(*SMALL, "--monitor-every", "0", "--run", "a")
    assert not (cli.folder / "a/resources").exists()


def test_an_unusable_folder_is_reported_once(cli):
    (cli.folder / "a").mkdir()
    (cli.folder / "a/resources").write_text("in the way")
    result = cli.ok("train", "softmax", *SMALL, "--run", "a")
    said = [line for line in result.err.splitlines() if "resources" in line]
    assert len(said) == 1 and "training continues" in said[0], result


def test_the_summary_names_the_bottleneck(cli):
    long = [*SMALL, "--steps", "2000"]  # too short to be meaningful
    summary = cli.train(*long, "--run", "a")
    assert summary["bottleneck"]["what"] in ("computing", "cores", "reading")
    shown = cli.ok("train", "softmax", *long, "--run", "b", "--quiet").out
    assert "\nbottleneck     " in shown


def test_monitor_watches_a_command(cli):
    result = cli.run("monitor", "--every", "0.1", "--csv", "m.csv", "--",
                     *BUSY)
    assert result.code == 0 and result.out == "", result
    found = rows(cli.folder / "m.csv")
    assert sum(float(row["job_cpu"]) for row in found) > 0
    assert found[0]["job_sent_bytes_per_s"] == ""
    assert "command: cpu mean" in result.err


def test_monitor_ends_as_its_command_does(cli):
    assert cli.run("monitor", "--", "sh", "-c", "exit 7").code == 7
    assert cli.run("monitor", "--", "sh", "-c", "kill -9 $$").code == 137
    cli.refused(1, "monitor", "--", "no-such-command",
                says=["no-such-command"])
    cli.refused(1, "monitor", "--csv", "no/folder/x", "--", "true",
                says=["--csv no/folder/x"])
    cli.refused(2, "monitor", "--every", "0", says=["--every"])


def test_monitor_does_not_wait_for_a_reader_of_its_lines(cli):
    """A standard error that is full and not read."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(4096))
        os.set_blocking(writer, True)
        process = subprocess.Popen(
            [program(), "monitor", "--every", "0.05", "--", "sh", "-c",
             "sleep 0.5; exit 7"], cwd=cli.folder, stderr=writer,
            stdin=subprocess.DEVNULL)
        try:
            assert process.wait(timeout=60) == 7
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(reader)
        os.close(writer)


def test_monitor_of_the_host_ends_at_ctrl_c(cli):
    process = cli.start("monitor", "--every", "0.05")
    line = process.stdout.readline().decode()
    assert "cpu" in line and "memory" in line
    process.send_signal(signal.SIGINT)
    result = cli.end(process)
    assert result.code == 0 and "mean" in result.out, result


def test_monitor_draws_on_a_terminal(cli):
    ours, theirs = pty.openpty()
    process = subprocess.Popen([program(), "monitor", "--every", "0.05"],
                               stdout=theirs, cwd=cli.folder,
                               stdin=subprocess.DEVNULL)
    os.close(theirs)
    shown, asked = b"", False
    with contextlib.suppress(OSError):  # all ends are closed
        while data := os.read(ours, 4096):  # a full terminal would stop it
            shown += data
            if shown.count(b"context switches") >= 2 and not asked:
                process.send_signal(signal.SIGINT)
                asked = True
    assert process.wait(60) == 0
    os.close(ours)
    assert asked and b"cpu0" in shown and b"\x1b[" in shown
