"""Odd folders, odd names, odd sizes: what a new user may try."""

import json
import os
import shlex
import signal

import pytest

from conftest import SMALL, checkpoints, wait_for

PLAIN = SMALL[:-2]  # without --steps


@pytest.mark.parametrize("name", [
    "with space", "ünïcödé-日本", "deep/er/still", "slash/", "two//slashes",
    "./dot", "quo'te", "-dash", "new\nline", "x" * 250,
    "/".join(["y" * 200] * 4),
])
def test_run_folder_may_have_any_name(cli, name):
    summary = cli.train(*SMALL, f"--run={name}")
    assert summary["run"] == name
    folder = cli.folder / name
    assert json.loads((folder / "summary.json").read_text()) == summary
    score = cli.ok("eval", "--json", "--", name).json
    assert score["parameters_sha256"] == summary["parameters_sha256"]
    again = cli.train(f"--run={name}", "--resume", "--steps", "60")
    assert again["resumed_step"] == 50


def test_run_folder_may_be_absolute_or_above(cli):
    cli.train(*SMALL, "--run", cli.folder / "absolute")
    cli.train(*SMALL, "--run", "../above")
    assert (cli.folder / "absolute/run.json").is_file()
    assert (cli.folder.parent / "above/run.json").is_file()


def test_long_name_of_data_is_recorded_whole(cli, digits):
    folder = cli.folder / "/".join(["d" * 200] * 4)
    folder.parent.mkdir(parents=True)
    os.symlink(digits, folder)
    name = os.path.relpath(folder, cli.folder)
    cli.train("--data", f"idx:{name}", "--steps", "5", "--run", "r")
    record = json.loads((cli.folder / "r/run.json").read_text())
    assert record["args"]["data"] == f"idx:{name}"
    cli.ok("eval", "r")
    assert cli.train("--run", "r", "--resume", "--steps", "9")["steps"] == 9


def test_too_long_a_name_is_reported(cli):
    cli.refused(1, "train", "softmax", *SMALL, "--quiet", "--run", "x" * 300,
                says="File name too long")


def test_message_of_an_interrupt_can_be_pasted(cli):
    args = ["train", "softmax", *PLAIN, "--steps", "100000000", "--run",
            "it's here", "--checkpoint-every", "20"]
    process = cli.start(*args)
    assert wait_for(lambda: checkpoints(cli.folder / "it's here"),
                    "a checkpoint", process)
    process.send_signal(signal.SIGINT)
    result = cli.end(process, *args)
    assert result.code == 130, result
    words = shlex.split(result.err.splitlines()[-1].split("to continue: ")[1])
    assert words == ["paceline", "train", "softmax", "--run", "it's here",
                     "--resume"]


def test_relative_run_and_data_follow_the_working_folder(cli, digits):
    (cli.folder / "a").mkdir()
    os.symlink(digits, cli.folder / "a/set")
    cli.train("--data", "idx:set", "--steps", "5", "--run", "r",
              cwd=cli.folder / "a")
    assert (cli.folder / "a/r/run.json").is_file()


@pytest.mark.parametrize("home", [None, "", "relative", "/dev/null",
                                  "/proc/none"])
def test_home_may_be_missing_or_wrong(cli, home):
    env = {k: v for k, v in cli.env.items() if k != "HOME"}
    if home is not None:
        env["HOME"] = home
    summary = cli.train("--steps", "5", env=env)
    assert summary["steps"] == 5
    assert [p.name for p in cli.folder.iterdir()] == ["runs"]


def test_unwritable_working_folder_is_reported(cli):
    cli.refused(1, "train", "softmax", *SMALL, "--quiet", cwd="/proc",
                says="runs")
    cli.train(*SMALL, "--run", cli.folder / "r", cwd="/proc")


def test_empty_environment(cli):
    assert cli.train(*SMALL, env={})["steps"] == 50


@pytest.mark.parametrize("flags", [
    ["--threads", "64"], ["--batch", "1"], ["--eval-batch", "1"],
    ["--eval-batch", "99999"], ["--batch", "1999"], ["--batch", "2000"],
    ["--steps", "1"], ["--eval-every", "1s"], ["--eval-every", "1ep"],
    ["--eval-every", "7ex"], ["--eval-every", "1"],
    ["--checkpoint-every", "never"], ["--checkpoint-every", "1"],
    ["--keep", "1"], ["--warmup", "1000000"], ["--clip", "1e-9"],
    ["--seed", "9000000000000000"], ["--examples", "1", "--batch", "1"],
    ["--lr", "1e-12"], ["--lr=.5"],
], ids=" ".join)
def test_unusual_but_valid_flags_train(cli, flags):
    summary = cli.train(*SMALL, *flags, "--run", "r")
    steps = 1 if flags[0] == "--steps" else 50
    assert summary["steps"] == steps and summary["stopped_by"] == "steps"
    score = cli.ok("eval", "r", "--json").json
    assert score["test_loss"] == summary["test_loss"]


@pytest.mark.parametrize("batch,steps", [(1, 2000), (7, 285), (999, 2),
                                         (1001, 1), (2000, 1)])
def test_an_epoch_drops_what_is_left_over(cli, batch, steps):
    summary = cli.train(*PLAIN, "--epochs", "1", "--batch", batch)
    assert summary["steps"] == steps and summary["epochs"] == 1
    assert summary["examples"] == steps * batch


def test_the_last_of_two_flags_counts(cli):
    assert cli.train(*SMALL, "--batch", "7", "--batch=9")["batch"] == 9
