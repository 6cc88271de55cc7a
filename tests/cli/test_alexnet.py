"""AlexNet by the same command line: size, bits, resume, dropout, classes."""

import json
import pathlib
import re
import resource

import pytest

from conftest import checkpoints, skip_when_sanitized
from tfevents import scalars

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
    """On as many threads: large layers are divided between them."""
    whole = alexnet(cli, "--steps", "2", "--run", "whole")
    alexnet(cli, "--steps", "1", "--run", "parts")
    assert len(checkpoints(cli.folder / "parts")) == 1
    resumed = cli.ok("train", "alexnet", "--run", "parts", "--resume",
                     "--steps", "2", "--threads", "2", "--json").json
    assert resumed["resumed_step"] == 1
    assert resumed["parameters_sha256"] == whole["parameters_sha256"]


def test_dropout_follows_seed_and_rate(cli):
    half = alexnet(cli, "--steps", "1")
    none = alexnet(cli, "--steps", "1", "--dropout", "0")
    assert half["train_loss"] != none["train_loss"]
    assert half["parameters_sha256"] != none["parameters_sha256"]


def multiplies_bfloat16():
    return "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()


def test_bf16_has_the_loss_of_float32_and_repeats(cli):
    if not multiplies_bfloat16():
        pytest.skip("this processor has no AVX512_BF16")
    flags = ["--lr", "0.001", "--dropout", "0", "--steps", "4",
             "--record-every", "1"]
    alexnet(cli, *flags, "--run", "float32")
    first = alexnet(cli, *flags, "--precision", "bf16", "--run", "bf16")
    again = alexnet(cli, *flags, "--precision", "bf16")
    assert first["parameters_sha256"] == again["parameters_sha256"]
    plain, rounded = ([value for _, value in scalars(
        cli.folder / run / "events/worker-0")["loss"]]
        for run in ("float32", "bf16"))
    assert len(plain) >= 4
    assert rounded != plain
    assert rounded == pytest.approx(plain, rel=0.01)
    record = json.loads((cli.folder / "bf16" / "run.json").read_text())
    assert record["args"]["precision"] == "bf16"
    cli.refused(2, "train", "alexnet", "--run", "bf16", "--resume",
                "--precision", "float32", "--steps", "5", says="--precision")


@pytest.mark.parametrize("flags,part", [
    (["--kernels", "avx2"], ["the kernels avx2 compute in float32"]),
    (["--codec", "factors", "--workers", "2"], ["--codec factors",
                                               "--precision bf16"]),
])
def test_bf16_that_would_do_nothing_is_refused(cli, flags, part):
    if not multiplies_bfloat16():
        part = ["no instructions for it"] if "--codec" not in flags else part
    cli.refused(2, "train", "alexnet", *SMALL, "--precision", "bf16",
                "--steps", "1", *flags, says=part)


def test_bf16_of_small_layers_is_refused(cli):
    says = "no layer of lenet is large enough"
    if not multiplies_bfloat16():
        says = "no instructions for it"
    cli.refused(2, "train", "lenet", "--data", "synthetic", "--precision",
                "bf16", "--steps", "1", says=says)


@pytest.mark.parametrize("flags,part", [
    (["--dropout", "1"], "--dropout"),
    (["--classes", "0"], "--classes"),
    (["--data", "digits", "--classes", "9"], "--classes 9"),
])
def test_wrong_flag_is_refused(cli, flags, part):
    cli.refused(2, "train", "alexnet", *flags, says=part)


def test_small_images_are_refused(cli):
    cli.refused(2, "train", "alexnet", "--data", "digits",
                says=["model alexnet", "images of 28 x 28, expected 63 x 63"])


def limit_addresses(megabytes):
    """For a child: ulimit -v."""
    def limit():
        most = megabytes * 10**6
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return limit


def test_batch_that_does_not_fit_is_refused(cli):
    """With the largest one that does, and that one trains."""
    skip_when_sanitized()
    args = ["train", "alexnet", "--examples", "700", "--threads", "1",
            "--steps", "1", "--eval-every", "never", "--checkpoint-every",
            "never", "--run", "r"]
    limited = {"preexec_fn": limit_addresses(1250)}
    result = cli.refused(2, *args, "--batch", "700", says=[
        "--batch 700 needs ", "parameters 244 MB", "ulimit -v has "],
        **limited)
    found = re.search(r"the largest batch that fits is --batch (\d+)",
                      result.err)
    assert found, result
    assert 1 <= int(found[1]) < 700
    cli.ok(*args, "--batch", min(int(found[1]), 64), **limited)
    cli.refused(2, *args, "--batch", "1", "--run", "s", says=[
        "not even --batch 1 fits"], preexec_fn=limit_addresses(400))


def test_available_memory_is_not_negative(cli):
    """The stacks of the threads alone would take more than there is."""
    skip_when_sanitized()
    result = cli.refused(2, "train", "lenet", "--data", "synthetic",
                         "--batch", "1000", "--threads", "8", "--run", "r",
                         says=["thread stacks", "raise ulimit -v"],
                         preexec_fn=limit_addresses(110))
    assert re.search(r"ulimit -v has \d[\d.]* [kM]?B available", result.err)


def test_models_prints_the_memory(cli):
    def total(*flags):
        out = cli.ok("models", "alexnet", *flags).out
        assert re.search(r"available +[0-9.]+ [MG]B", out), out
        number, unit = re.search(r"total, without data +([0-9.]+) ([MG])B",
                                 out).groups()
        return float(number) * (1000 if unit == "G" else 1)
    small, large = total("--batch", "1"), total("--batch", "512")
    assert 500 < small < large
    assert total("--batch", "512", "--optimizer", "adam") > large + 550


def test_planned_memory_is_the_peak(cli):
    """Of a process; libraries and code are not planned."""
    skip_when_sanitized()
    flags = ["--batch", "32", "--eval-every", "never", "--checkpoint-every",
             "never"]
    out = cli.ok("models", "alexnet", "--classes", "10", *flags).out
    planned = float(re.search(r"data +([0-9.]+) MB", out)[1])
    peak = alexnet(cli, "--steps", "1", *flags)["peak_rss_mb"]
    data = 64 * 150528 / 1e6
    assert planned * 0.9 < peak - data < planned * 1.1 + 50
