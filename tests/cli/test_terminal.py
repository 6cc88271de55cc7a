"""Progress, log lines and summaries on one terminal."""

import json
import re
import signal
import subprocess

import pytest

from conftest import program
from jobs import task
from terminal import Terminal

EPOCH = re.compile(r"epoch \d+/\d+  loss \d")
FINAL = re.compile(r"softmax: (\d+) steps, ")
LONG = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
        "--batch", "100", "--run", "r"]
JOBS = [[], ["--workers", "2", "--ps", "1"]]


def start(cli, terminal, *args, term="xterm"):
    process = cli.start(*args, stdout=terminal.follower,
                        stderr=terminal.follower,
                        env={**cli.env, "TERM": term})
    terminal.started()
    return process


def run(cli, columns, *args, code=0, term="xterm"):
    terminal = Terminal(columns)
    process = start(cli, terminal, *args, term=term)
    process.wait(300)
    rows = terminal.rows()
    assert process.returncode == code, rows
    return rows


def assert_unmixed(rows, columns):
    """Nothing is left of what was redrawn: the summary follows the line of
    the last epoch or step, each from the first column on."""
    text = "".join(rows)
    assert "\x1b" not in text and "\r" not in text
    [summary] = [i for i, row in enumerate(rows) if FINAL.match(row)]
    assert re.match(r"epoch |\d+/\d+|\d+$", rows[summary - 1]), rows
    for row in rows[:summary]:
        assert len(row) <= columns, row
        assert "[" not in row or row is rows[summary - 1], rows
    assert not any(re.match("  w(orker )?[01]", row) for row in rows), rows


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("job", JOBS, ids=["alone", "job"])
def test_progress_does_not_mix_with_the_summary(cli, columns, job):
    rows = run(cli, columns, *LONG, *job, "--epochs", "5")
    assert_unmixed(rows, columns)
    epochs = [row for row in rows if EPOCH.match(row)]
    assert [row.split()[1] for row in epochs] == \
        [f"{n}/5" for n in range(1, 6)], rows
    assert all("%" in row for row in epochs)


@pytest.mark.parametrize("job", JOBS, ids=["alone", "job"])
def test_an_interrupted_training_leaves_whole_lines(cli, job):
    terminal = Terminal(80)
    process = start(cli, terminal, *LONG, *job, "--steps", "900000000")
    terminal.wait_for(r"loss \d.*ETA")
    terminal.resize(120)
    process.send_signal(signal.SIGINT)
    process.wait(300)
    rows = terminal.rows()
    assert process.returncode == 130, rows
    assert_unmixed(rows, 120)
    assert rows[-1].startswith("paceline: interrupted at step ")
    [again] = [row for row in rows if row.lstrip().startswith("continue ")]
    assert again.endswith("train softmax --run r --resume")
    # It continues with the same end in sight.
    terminal = Terminal(80)
    process = start(cli, terminal, "train", "softmax", "--run", "r",
                    "--resume")
    terminal.wait_for(r"/900000000.*ETA")
    process.send_signal(signal.SIGINT)
    process.wait(300)
    assert_unmixed(terminal.rows(), 80)


def test_a_warning_stands_above_the_bar(cli):
    terminal = Terminal(80)
    process = start(cli, terminal, *LONG, *JOBS[1], "--steps", "900000000")
    terminal.wait_for(r"loss \d.*ETA")
    task(process, "worker", 1).kill()
    terminal.wait_for("^warning: worker 1 was killed")
    process.send_signal(signal.SIGINT)
    process.wait(300)
    rows = terminal.rows()
    assert process.returncode == 130, rows
    # With the end of its log, which is not one of the rows of workers.
    [log] = [row for row in rows if re.match("  worker 1 of 2 reads ", row)]
    assert_unmixed([row for row in rows if row is not log], 80)
    assert ("warning: worker 1 was killed by signal 9 (Killed); started again "
            "(1 of 5), its log: r/log/worker-1.log") in "".join(rows), rows


def test_the_bottleneck_wraps_with_an_indent(cli):
    rows = run(cli, 60, *LONG, *JOBS[1], "--epochs", "2")
    [first] = [i for i, row in enumerate(rows) if row.startswith("bottlenec")]
    text = rows[first][15:]
    for row in rows[first + 1:]:
        if not row.startswith(15 * " "):
            break
        assert len(row) < 60
        text += " " + row[15:]
    summary = json.loads((cli.folder / "r/summary.json").read_text())
    assert text == summary["bottleneck"]["text"]


def test_the_table_of_workers_fits_80_columns(cli):
    rows = run(cli, 80, *LONG, "--workers", "3", "--ps", "1", "--epochs", "2")
    [head] = [i for i, row in enumerate(rows) if row.startswith("worker ")]
    assert [row.split()[0] for row in rows[head + 1:]] == \
        ["0", "1", "2", "next", "continue", "compare"]
    assert all(len(row) < 80 for row in rows[head:])


@pytest.mark.parametrize("flags,term", [([], "dumb"), (["--progress", "lines"],
                                                       "xterm")])
def test_lines_are_never_redrawn(cli, flags, term):
    rows = run(cli, 80, *LONG, "--epochs", "3", *flags, term=term)
    assert [row.split()[1] for row in rows if EPOCH.match(row)] == \
        ["1/3", "2/3", "3/3"], rows
    assert_unmixed(rows, 80)


def test_nothing_is_shown_where_progress_is_off(cli):
    rows = run(cli, 80, *LONG, "--epochs", "3", "--progress", "none")
    assert not any(EPOCH.match(row) for row in rows)
    assert rows[0].startswith("softmax on synthetic")
    result = cli.run(*LONG[:-1], "q", "--epochs", "3", "--quiet")
    assert result.code == 0 and result.err == "", result


def test_only_verbose_names_the_place_in_the_source(cli):
    (cli.folder / "file").write_text("")
    args = ["train", "softmax", "--steps", "5", "--cache", "file", "--quiet"]
    plain = cli.run(*args)
    assert "warning: " in plain.err and "[src/" not in plain.err, plain
    full = cli.run(*args, "--verbose")
    assert "[src/" in full.err, full


def test_a_pipe_gets_plain_lines(cli):
    result = subprocess.run(["sh", "-c", '"$0" "$@" 2>&1 | cat', program(),
                             *LONG, "--epochs", "3"], cwd=cli.folder,
                            env=cli.env, capture_output=True, text=True,
                            timeout=300)
    assert "\r" not in result.stdout and "\x1b" not in result.stdout
    assert len(EPOCH.findall(result.stdout)) == 3, result
