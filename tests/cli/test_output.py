"""Closed, full and limited outputs: a training continues, and reports it."""

import contextlib
import json
import os
import resource
import subprocess

import pytest

from conftest import SMALL, checkpoints

ARGS = ["train", "softmax", *SMALL, "--run", "r"]


def summary_of(cli):
    return json.loads((cli.folder / "r/summary.json").read_text())


@contextlib.contextmanager
def broken_pipe():
    """The writing end of a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_reader_that_left_does_not_end_the_training(cli, name, json_flag):
    with broken_pipe() as pipe:
        cli.ok(*ARGS, *json_flag, **{name: pipe})
    assert summary_of(cli)["steps"] == 50


@contextlib.contextmanager
def full_pipe():
    """The writing end of a full pipe that is not read."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize("job", [
    [], ["--workers", "2", "--ps", "1"],
    ["--workers", "2", "--engine", "ring"],
    ["--workers", "2", "--ps", "1", "--chaos", "1", "--steps", "2000"],
])
def test_a_full_standard_error_does_not_block_the_training(cli, job):
    """Progress and logs are dropped; the result is not."""
    with full_pipe() as pipe:
        result = cli.run(*ARGS, "--json", *job, stderr=pipe)
    assert result.code == 0, result
    assert result.json == summary_of(cli)


def test_a_full_standard_error_does_not_block_a_failure(cli):
    with full_pipe() as pipe:
        result = cli.run(*ARGS, "--lr", "1000000", "--weight-decay",
                         "1000000",
                         stderr=pipe)
    assert result.code == 1, result


def test_head_does_not_end_the_training(cli):
    train = cli.start(*ARGS)
    head = subprocess.Popen(["head", "-1"], stdin=train.stdout,
                            stdout=subprocess.PIPE)
    train.stdout.close()
    out, _ = head.communicate(timeout=300)
    _, err = train.communicate(timeout=300)
    assert train.returncode == 0, err
    assert out.startswith(b"softmax: 50 steps")
    assert summary_of(cli)["steps"] == 50


@pytest.mark.parametrize("numbers", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_files_stay_out_of_ours(cli, numbers):
    """A file opened in their place would get our messages."""
    def close():
        for number in numbers:
            os.close(number)
    cli.ok(*ARGS, "--profile", "--checkpoint-every", "10", preexec_fn=close)
    assert summary_of(cli)["steps"] == 50
    json.loads((cli.folder / "r/trace/worker-0.json").read_text())
    assert cli.ok("eval", "r", "--json").err == ""


def test_full_standard_output_is_reported(cli):
    with open("/dev/full", "w") as full:
        result = cli.run(*ARGS, "--quiet", stdout=full)
        assert result.code == 1 and "standard output" in result.err, result
        assert summary_of(cli)["steps"] == 50
        for args in (["docs", "man"], ["models"], ["--help"]):
            assert cli.run(*args, stdout=full).code == 1, args


@contextlib.contextmanager
def small_disk(folder):
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k",
                              "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("cannot mount a small disk: " +
                    mounted.stderr.decode().strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk_keeps_the_older_checkpoint(cli):
    with small_disk(cli.folder / "disk"):
        args = ["--run", "disk/r", "--checkpoint-every", "10"]
        cli.train(*SMALL, *args)
        first = checkpoints(cli.folder / "disk/r")[-1].name
        used = os.statvfs(cli.folder / "disk")
        (cli.folder / "disk/rest").write_bytes(
            bytes(max(0, used.f_bavail - 2) * used.f_bsize))
        result = cli.run("train", "softmax", *args, "--resume", "--steps",
                         "3000", "--json")
        assert result.code == 1, result
        lines = result.err.splitlines()
        assert "No space left" in lines[-1] and "disk/r" in lines[-1]
        assert any(line.startswith("warning: ") for line in lines[:-1])
        # The numbers are not lost, and the older state counts.
        assert result.json["steps"] == 3000
        assert cli.ok("eval", "disk/r", "--json").json["step"] == int(
            first.split("-")[1])
        # With space again it continues.
        (cli.folder / "disk/rest").unlink()
        assert cli.train("--run", "disk/r", "--resume")["steps"] == 3000


def test_a_limit_on_file_size_is_reported_as_an_error(cli):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 10, 16 << 10))
    cli.train(*SMALL, "--run", "r")
    result = cli.run("train", "softmax", "--run", "r", "--resume", "--steps",
                     "5000", "--checkpoint-every", "10", "--json",
                     preexec_fn=limit)
    assert result.code == 1, result
    assert "File too large" in result.err.splitlines()[-1], result
    assert "warning: " in result.err
    assert result.json["steps"] == 5000
    assert cli.ok("eval", "r", "--json").json["step"] == 50


def test_lost_cache_is_only_a_warning(cli):
    (cli.folder / "file").write_text("")
    result = cli.ok("train", "softmax", "--steps", "5", "--cache", "file",
                    "--json")
    warnings = [line for line in result.err.splitlines()
                if line.startswith("warning: ")]
    assert len(warnings) == 1 and "file" in warnings[0], result
    plain = cli.train("--steps", "5")
    assert result.json["parameters_sha256"] == plain["parameters_sha256"]


def test_damaged_cache_is_generated_again(cli):
    flags = ["--steps", "5", "--cache", "cache"]
    first = cli.train(*flags)
    for path in (cli.folder / "cache").iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 255
        path.write_bytes(data)
    assert cli.train(*flags)["parameters_sha256"] == \
        first["parameters_sha256"]


def test_without_a_terminal_nothing_is_redrawn(cli):
    result = cli.ok(*ARGS, "--steps", "20000")
    assert "\r" not in result.err and "\x1b" not in result.err
