"""Interrupt, kill, resume: the end is the same as without."""

import json
import shutil
import signal

import pytest

from conftest import SMALL, checkpoints, wait_for

DATA = ["--data", "synthetic", "--examples", "2000"]
OPTIMIZERS = {
    "sgd": ["--optimizer", "sgd"],
    "momentum": ["--optimizer", "momentum", "--micro-batches", "2"],
    "adam": ["--optimizer", "adam", "--lr", "0.01", "--warmup", "30"],
    "adagrad": ["--optimizer", "adagrad", "--schedule", "exponential",
                "--decay-steps", "100", "--decay", "0.9"],
    "rmsprop": ["--optimizer", "rmsprop", "--lr", "0.01", "--schedule",
                "cosine", "--warmup", "30"],
}


def stopped(cli, number, *flags):
    """Start a training in r, end it by a signal once there is a checkpoint;
    its result and length.  A machine may be too fast for a length, so a longer
    one follows."""
    for steps in (3000, 30000, 300000):
        shutil.rmtree(cli.folder / "r", ignore_errors=True)
        args = ["train", "softmax", *DATA, "--run", "r", "--steps", steps,
                "--checkpoint-every", "20", "--eval-every", "1", "--json",
                *flags]
        process = cli.start(*args)
        assert wait_for(lambda: checkpoints(cli.folder / "r"),
                        "a checkpoint", process)
        process.send_signal(number)
        result = cli.end(process, *args)
        if result.code != 0:
            return result, steps
    pytest.fail("the training always ended before the signal")


# What an optimizer keeps does not depend on the signal: each is killed, and
# the other two signals end one with slots and one without.
@pytest.mark.parametrize("number,name", [
    *((signal.SIGKILL, name) for name in OPTIMIZERS),
    *((number, name) for number in (signal.SIGINT, signal.SIGTERM)
      for name in ("sgd", "adam"))])
def test_resumed_run_ends_in_the_same_bits(cli, name, number):
    flags = OPTIMIZERS[name]
    result, steps = stopped(cli, number, *flags)
    folder = cli.folder / "r"
    if number == signal.SIGKILL:
        assert result.code == -signal.SIGKILL
        assert not (folder / "summary.json").exists()
    else:
        assert result.code == 130, result
        assert "--run r --resume" in result.err.splitlines()[-1]
        assert result.json["stopped_by"] == "interrupt"
        assert 0 < result.json["steps"] < steps
        assert checkpoints(folder)[-1].name == \
            f"step-{result.json['steps']:010d}"
    # Nothing but the folder is given again.
    resumed = cli.train("--run", "r", "--resume")
    assert resumed["resumed_step"] > 0
    assert resumed["steps"] == steps and resumed["stopped_by"] == "steps"
    whole = cli.train(*DATA, *flags, "--steps", steps, "--run", "whole",
                      "--eval-every", "never")
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]
    assert resumed["examples"] == whole["examples"]
    assert resumed["epochs"] == whole["epochs"]


def test_second_interrupt_ends_at_once_or_is_not_needed(cli):
    args = ["train", "softmax", *DATA, "--run", "r", "--steps", "100000000",
            "--checkpoint-every", "20"]
    process = cli.start(*args)
    assert wait_for(lambda: checkpoints(cli.folder / "r"), "a checkpoint",
                    process)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    assert cli.end(process, *args).code == 130
    cli.ok("eval", "r")


def test_finished_run_prints_its_summary_again(cli):
    first = cli.train(*SMALL, "--run", "r")
    written = (cli.folder / "r/summary.json").read_bytes()
    result = cli.ok("train", "softmax", "--run", "r", "--resume", "--json")
    assert result.json == first
    assert (cli.folder / "r/summary.json").read_bytes() == written
    text = cli.ok("train", "softmax", "--run", "r", "--resume").out
    assert "test accuracy" in text
    # Giving its own length again changes nothing.
    again = cli.train(*SMALL, "--run", "r", "--resume")
    assert again["parameters_sha256"] == first["parameters_sha256"]
    assert again["steps"] == 50


def test_longer_run_continues(cli):
    cli.train(*SMALL, "--run", "r")
    longer = cli.train("--run", "r", "--resume", "--steps", "80")
    assert longer["resumed_step"] == 50 and longer["steps"] == 80
    whole = cli.train(*SMALL, "--steps", "80", "--run", "whole")
    assert longer["parameters_sha256"] == whole["parameters_sha256"]
    # The record knows the new length.
    assert cli.train("--run", "r", "--resume")["steps"] == 80


def test_run_by_epochs_resumes_by_steps_and_back(cli):
    cli.train(*DATA, "--epochs", "1", "--run", "r")
    cli.train("--run", "r", "--resume", "--steps", "30")
    last = cli.train("--run", "r", "--resume", "--epochs", "3")
    whole = cli.train(*DATA, "--epochs", "3", "--run", "whole")
    assert last["steps"] == whole["steps"] == 60
    assert last["parameters_sha256"] == whole["parameters_sha256"]


def test_cosine_with_a_length_of_its_own_resumes(cli):
    flags = [*SMALL, "--schedule", "cosine", "--decay-steps", "70"]
    cli.train(*flags, "--run", "r")
    longer = cli.train("--run", "r", "--resume", "--steps", "80")
    whole = cli.train(*flags, "--steps", "80", "--run", "whole")
    assert longer["parameters_sha256"] == whole["parameters_sha256"]


def test_schedule_may_change(cli):
    """A recorded old schedule is not an error of the user."""
    cli.train(*SMALL, "--schedule", "step", "--decay-steps", "20", "--decay",
              "0.5", "--run", "r")
    for steps, name in (60, "cosine"), (70, "constant"), (80, "exponential"):
        assert cli.train("--run", "r", "--resume", "--steps", steps,
                         "--schedule", name)["steps"] == steps


def test_learning_rate_may_change(cli):
    cli.train(*SMALL, "--run", "r")
    assert cli.train("--run", "r", "--resume", "--steps", "60", "--lr",
                     "0.5")["steps"] == 60


def test_shorter_length_is_refused_or_keeps_what_is_there(cli):
    first = cli.train(*SMALL, "--run", "r")
    result = cli.run("train", "softmax", "--run", "r", "--resume", "--steps",
                     "20", "--json")
    assert result.code == 2 and "--steps" in result.err, result
    assert cli.ok("eval", "r", "--json").json["parameters_sha256"] == \
        first["parameters_sha256"]


def test_resume_needs_run(cli):
    cli.refused(2, "train", "softmax", *SMALL, "--resume",
                says=["--resume", "--run"])


    cli.refused(2, "train", "softmax", *SMALL, "--resume-or-start",
                says=["--resume-or-start", "--run"])


JOBS = pytest.mark.parametrize("job", [[], ["--workers", "2", "--ps", "1"],
                                       ["--workers", "2", "--strategy",
                                        "allreduce", "--engine", "ring"]])


@JOBS
def test_resume_of_a_missing_run_is_refused(cli, job):
    """A mistyped name must not start a training."""
    cli.train(*SMALL, "--run", "runs/first")
    command = ["train", "softmax", *SMALL, *job, "--resume", "--run"]
    cure = "leave out --resume to start"
    cli.refused(2, *command, "runs/frist",
                says=["--resume: there is no run folder runs/frist",
                      "did you mean runs/first?", cure])
    other = cli.refused(2, *command, "runs/something", says=cure)
    assert "did you mean" not in other.err
    cli.refused(2, *command, "nowhere/first", says=cure)
    (cli.folder / "empty").mkdir()
    cli.refused(2, *command, "empty",
                says=["empty is not a run folder", "run.json", cure])


@JOBS
def test_resume_or_start_does_either(cli, job):
    flags = [*SMALL, *job, "--run", "new", "--resume-or-start"]
    summary = cli.train(*flags)
    assert summary["resumed_step"] == 0 and summary["steps"] == 50
    longer = cli.train(*flags, "--steps", "80")
    assert longer["resumed_step"] == 50 and longer["steps"] == 80
    (cli.folder / "empty").mkdir()
    result = cli.ok("train", "softmax", *SMALL, *job, "--run", "empty",
                    "--resume-or-start", "--json")
    assert result.json["resumed_step"] == 0
    assert result.json["parameters_sha256"] == summary["parameters_sha256"]


def test_a_run_without_a_checkpoint_starts_at_step_0(cli):
    """Killed before it could save one; its settings are known."""
    first = cli.train(*SMALL, "--run", "r", "--lr", "0.3")
    shutil.rmtree(cli.folder / "r/checkpoints")
    (cli.folder / "r/summary.json").unlink()
    result = cli.ok("train", "softmax", "--run", "r", "--resume", "--json")
    assert result.json["resumed_step"] == 0 and "step 0" in result.err
    assert result.json["parameters_sha256"] == first["parameters_sha256"]


CHANGES = {
    "batch": ["--batch", "50"],
    "optimizer": ["--optimizer", "adam"],
    "seed": ["--seed", "2"],
    "data": ["--data", "digits"],
    "examples": ["--examples", "3000"],
    "micro-batches": ["--micro-batches", "2"],
    "init": ["--init", "glorot"],
    "weight-decay": ["--weight-decay", "0.1"],
    "clip": ["--clip", "1"],
    "rho": ["--rho", "0.5"],
    "initial-accumulator": ["--initial-accumulator", "1"],
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_setting_is_refused(cli, name):
    first = cli.train(*SMALL, "--run", "r")
    before = (cli.folder / "r/run.json").read_bytes()
    cli.refused(2, "train", "softmax", "--run", "r", "--resume", "--quiet",
                "--steps", "60", *CHANGES[name], says=name)
    # Also of a finished run whose length stays.
    cli.refused(2, "train", "softmax", "--run", "r", "--resume", "--quiet",
                *CHANGES[name], says=name)
    assert (cli.folder / "r/run.json").read_bytes() == before
    assert cli.ok("eval", "r", "--json").json["parameters_sha256"] == \
        first["parameters_sha256"]


def test_run_of_another_model_is_refused(cli):
    cli.train(*SMALL, "--run", "r")
    path = cli.folder / "r/run.json"
    run = json.loads(path.read_text())
    run["model"] = "other"
    path.write_text(json.dumps(run))
    cli.refused(2, "train", "softmax", "--run", "r", "--resume",
                says=["r", "other", "softmax"])


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_checkpoint_of_another_model_is_refused(cli):
    cli.train(*SMALL, "--run", "r")
    path = checkpoints(cli.folder / "r")[-1] / "manifest.json"
    text = path.read_bytes().replace(b'"softmax"', b'"other"', 1)
    head = text[:text.rindex(b',\n  "manifest_crc32c"')]
    path.write_bytes(head + b',\n  "manifest_crc32c": "%08x"\n}\n'
                     % crc32c(head))
    cli.refused(2, "train", "softmax", "--run", "r", "--resume", "--quiet",
                "--steps", "60", says=["step-0000000050", "other"])


def flip_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = {
    "flipped_byte": lambda c: flip_byte(next(c.glob("*.safetensors"))),
    "torn_shard": lambda c: cut(next(c.glob("*.safetensors"))),
    "no_shard": lambda c: next(c.glob("*.safetensors")).unlink(),
    "flipped_manifest": lambda c: flip_byte(c / "manifest.json"),
    "empty_manifest": lambda c: (c / "manifest.json").write_bytes(b""),
}


def older_and_newer(cli):
    """A run with checkpoints of steps 50 and 60; the summary of one that made
    70 steps."""
    cli.train(*SMALL, "--run", "r")
    cli.train("--run", "r", "--resume", "--steps", "60")
    return cli.train(*SMALL, "--run", "whole", "--steps", "70")


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_checkpoint_is_skipped(cli, name):
    whole = older_and_newer(cli)
    newest = checkpoints(cli.folder / "r")[-1]
    DAMAGES[name](newest)
    score = cli.ok("eval", "r", "--json")
    assert score.json["step"] == 50
    assert newest.name in score.err
    result = cli.ok("train", "softmax", "--run", "r", "--resume", "--json",
                    "--steps", "70")
    assert result.json["resumed_step"] == 50
    assert newest.name in result.err
    assert result.json["parameters_sha256"] == whole["parameters_sha256"]


def test_checkpoint_without_manifest_does_not_count(cli):
    whole = older_and_newer(cli)
    (checkpoints(cli.folder / "r")[-1] / "manifest.json").unlink()
    result = cli.ok("train", "softmax", "--run", "r", "--resume", "--json",
                    "--steps", "70")
    assert result.json["resumed_step"] == 50
    assert "resumed at step 50" in result.err
    assert result.json["parameters_sha256"] == whole["parameters_sha256"]


def test_damaged_record_is_named(cli):
    cli.train(*SMALL, "--run", "r")
    (cli.folder / "r/run.json").write_text("{")
    for command in (["eval", "r"], ["train", "softmax", "--run", "r",
                                    "--resume"]):
        cli.refused(1, *command, says="r/run.json")


@pytest.mark.parametrize("text", [None, "{", "{}", '{"stopped_by": 3}'])
def test_lost_summary_is_rewritten(cli, text):
    first = cli.train(*SMALL, "--run", "r")
    path = cli.folder / "r/summary.json"
    path.unlink() if text is None else path.write_text(text)
    result = cli.ok("train", "softmax", "--run", "r", "--resume", "--json")
    assert text is None or "r/summary.json" in result.err or \
        "stopped_by" in result.err
    for name in "steps", "parameters_sha256", "test_loss", "test_accuracy":
        assert result.json[name] == first[name]
    assert json.loads(path.read_text()) == result.json


def test_killed_longer_run_is_not_taken_for_finished(cli):
    """The summary of the shorter run must not hide that there is more."""
    cli.train(*SMALL, "--run", "r")
    args = ["train", "softmax", "--run", "r", "--resume", "--steps",
            "100000000", "--checkpoint-every", "20"]
    process = cli.start(*args)
    assert wait_for(lambda: checkpoints(cli.folder / "r")[-1].name >
                    "step-0000000050", "a newer checkpoint", process)
    process.kill()
    cli.end(process, *args)
    step = cli.ok("eval", "r", "--json").json["step"]
    resumed = cli.train("--run", "r", "--resume", "--steps", step + 5)
    assert resumed["resumed_step"] == step
    assert resumed["steps"] == step + 5


def test_interrupted_run_has_no_score_of_other_parameters(cli):
    args = ["train", "softmax", *DATA, "--run", "r", "--steps", "100000000",
            "--checkpoint-every", "20", "--eval-every", "never", "--json"]
    process = cli.start(*args)
    assert wait_for(lambda: checkpoints(cli.folder / "r"), "a checkpoint",
                    process)
    process.send_signal(signal.SIGINT)
    assert cli.end(process, *args).json["test_loss"] is None


def test_hangup_saves_like_an_interrupt(cli):
    result, steps = stopped(cli, signal.SIGHUP)
    assert result.code == 130 and result.json["steps"] < steps
    assert checkpoints(cli.folder / "r")[-1].name == \
        f"step-{result.json['steps']:010d}"


def test_keep_says_how_many_checkpoints_stay(cli):
    for keep in 1, 2:
        cli.train(*SMALL, "--run", f"r{keep}", "--checkpoint-every", "10",
                  "--keep", keep, "--eval-every", "1")
        found = [c.name for c in checkpoints(cli.folder / f"r{keep}")]
        assert len(found) <= keep and found[-1] == "step-0000000050"


def test_never_still_saves_the_end(cli):
    cli.train(*SMALL, "--run", "r", "--checkpoint-every", "never")
    assert [c.name for c in checkpoints(cli.folder / "r")] == \
        ["step-0000000050"]


def test_two_trainings_never_share_a_folder(cli):
    args = ["train", "softmax", *DATA, "--run", "r", "--steps", "900000000",
            "--checkpoint-every", "20", "--eval-every", "never"]
    first = cli.start(*args)
    assert wait_for(lambda: checkpoints(cli.folder / "r"), "a checkpoint",
                    first)
    second = cli.run("train", "softmax", "--run", "r", "--resume")
    first.send_signal(signal.SIGINT)
    assert cli.end(first, *args).code == 130
    assert second.code == 2
    assert "another process is training in r" in second.err


def test_threads_are_not_recalled(cli):
    result, _ = stopped(cli, signal.SIGINT, "--threads", "3")
    assert result.code == 130
    cli.train("--run", "r", "--resume", "--threads", "1")
    args = json.loads((cli.folder / "r" / "run.json").read_text())["args"]
    assert args["threads"] == "1"


def test_unreadable_checkpoint_is_not_ignored(cli):
    cli.train(*DATA, "--steps", "30", "--run", "r")
    shard = next((cli.folder / "r").glob("checkpoints/*/shard-*"))
    shard.unlink()
    shard.symlink_to(shard)  # also root cannot read a loop
    result = cli.run("train", "softmax", "--run", "r", "--resume", "--steps",
                     "60")
    assert result.code == 1
    assert shard.name in result.err


def test_other_kernels_are_reported(cli):
    cli.train(*DATA, "--steps", "30", "--run", "r", "--kernels", "portable")
    resumed = cli.ok("train", "softmax", "--run", "r", "--resume", "--steps",
                     "60", "--kernels", "reference", "--json")
    assert "kernels portable" in resumed.err
    assert resumed.json["deterministic"] is False
