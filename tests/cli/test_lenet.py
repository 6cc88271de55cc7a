"""LeNet by the same command line: bits, resume, options, learning."""

import signal

import pytest

from conftest import checkpoints, wait_for
from test_input import folder_of

DATA = ["--data", "synthetic", "--examples", "600"]
FORMS = {
    "default": [],
    "other": ["--pad", "0", "--pool", "avg", "--activation", "tanh"],
    "odd": ["--kernel", "3,4", "--pad", "1", "--batch", "21"],
    "adam": ["--optimizer", "adam", "--micro-batches", "2", "--clip", "1"],
}


def lenet(cli, *flags):
    return cli.ok("train", "lenet", *DATA, "--steps", "12", "--json",
                  *flags).json


@pytest.mark.parametrize("side", [3, 4, 6, 8, 11])
def test_small_images_get_flags_that_train(cli, side):
    folder_of(cli.folder / "idx", side=side)
    args = ["train", "lenet", "--data", "idx:idx", "--steps", "2"]
    result = cli.refused(2, *args, says=f"images of {side} x {side}")
    if side < 4:
        assert "expected 4 x 4 or more" in result.err
        return
    assert "too small for --kernel 5,5 --pad 2; give " in result.err
    hint = result.err.split("; give ")[1].split()
    if side == 8:
        assert hint == ["--kernel", "3,3", "--pad", "1"]
    cli.ok(*args, *hint)


@pytest.mark.parametrize("form", FORMS)
def test_bits_do_not_depend_on_threads(cli, form):
    results = [lenet(cli, *FORMS[form], "--threads", n) for n in (1, 2, 3)]
    hashes = {r["parameters_sha256"] for r in results}
    assert len(hashes) == 1


def test_resumed_run_ends_in_the_same_bits(cli):
    args = ["train", "lenet", *DATA, "--run", "r", "--steps", "100000",
            "--checkpoint-every", "5", "--eval-every", "never"]
    process = cli.start(*args)
    assert wait_for(lambda: checkpoints(cli.folder / "r"), "a checkpoint",
                    process)
    process.send_signal(signal.SIGKILL)
    cli.end(process, *args)
    steps = int(checkpoints(cli.folder / "r")[-1].name[5:]) + 10
    resumed = cli.ok("train", "lenet", "--run", "r", "--resume", "--steps",
                     steps, "--json").json
    whole = cli.ok("train", "lenet", *DATA, "--steps", steps, "--eval-every",
                   "never", "--json").json
    assert resumed["resumed_step"] > 0
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]


def test_kernels_agree(cli):
    losses = [lenet(cli, "--kernels", name, "--batch", "16",
                    "--steps", "3")["train_loss"]
              for name in ("reference", "portable", "auto")]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[2] == pytest.approx(losses[0], rel=1e-4)


def test_loss_falls(cli):
    summary = lenet(cli, "--steps", "120", "--optimizer", "adam", "--lr",
                    "0.003")
    assert summary["train_loss"] < 0.5


@pytest.mark.parametrize("flags,part", [
    (["--kernel", "5"], "--kernel: expected two sizes like 5,5"),
    (["--kernel", "5,5,5"], "--kernel: expected two sizes like 5,5"),
    (["--kernel", "29,5", "--pad", "0"], "too small for --kernel 29,5"),
    (["--pad", "5"], "padding below the kernel's size"),
    (["--pool", "median"], "max or avg"),
])
def test_wrong_form_is_refused(cli, flags, part):
    result = cli.run("train", "lenet", *DATA, *flags)
    assert result.code in (1, 2)
    assert part in result.err
