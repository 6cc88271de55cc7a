"""AlexNet by the same command line: size, bits, resume, dropout, classes."""

import pytest

from conftest import checkpoints

SMALL = ["--classes", "10", "--examples", "64", "--batch", "8", "--threads",
         "2", "--eval-every", "never"]


def alexnet(cli, *flags):
    return cli.ok("train", "alexnet", *SMALL, "--json", *flags).json


def test_models_prints_the_published_size(cli):
    out = cli.ok("models", "alexnet").out
    total = [line for line in out.splitlines() if line.startswith("total")]
    assert total[0].split()[1] == "61100840"
    assert "57044810" in cli.ok("models", "alexnet", "--classes", "10").out


def test_resumed_run_ends_in_the_same_bits(cli):
    whole = alexnet(cli, "--steps", "2", "--run", "whole")
    alexnet(cli, "--steps", "1", "--run", "parts")
    assert len(checkpoints(cli.folder / "parts")) == 1
    resumed = cli.ok("train", "alexnet", "--run", "parts", "--resume",
                     "--steps", "2", "--threads", "1", "--json").json
    assert resumed["resumed_step"] == 1
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]


def test_dropout_follows_seed_and_rate(cli):
    half = alexnet(cli, "--steps", "1")
    none = alexnet(cli, "--steps", "1", "--dropout", "0")
    assert half["train_loss"] != none["train_loss"]
    assert half["parameters_sha256"] != none["parameters_sha256"]


@pytest.mark.parametrize("flags,part", [
    (["--dropout", "1"], "--dropout"),
    (["--classes", "0"], "--classes"),
    (["--data", "digits", "--classes", "9"], "--classes 9"),
])
def test_wrong_flag_is_refused(cli, flags, part):
    cli.refused(2, "train", "alexnet", *flags, says=part)


def test_small_images_are_refused(cli):
    cli.refused(1, "train", "alexnet", "--data", "digits",
                says=["model alexnet", "max_pool"])
