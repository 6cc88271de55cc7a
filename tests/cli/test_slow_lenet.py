"""LeNet on MNIST, where its files are: PACELINE_MNIST names the folder."""

import json

import pytest

from test_mnist import DATA, pytestmark  # noqa: F401


# With AVX-512 97.7 and 98.8 %; other instruction sets round differently.
@pytest.mark.parametrize("flags,least", [
    (["--epochs", "3"], 0.96),
    (["--epochs", "10", "--optimizer", "momentum"], 0.986),
])
def test_accuracy(cli, flags, least):
    summary = cli.ok("train", "lenet", *DATA, "--lr", "0.01", "--batch", "32",
                     *flags, "--quiet", "--json").json
    assert summary["test_accuracy"] >= least


def test_experiment_converges(cli):
    """C5 with relu and 1000 steps an epoch: the accuracy of every tenth."""
    cli.ok("train", "lenet", *DATA, "--lr", "0.001", "--pool", "avg", "--pad",
           "0", "--kernel", "3,3", "--batch", "32", "--epochs", "50",
           "--steps-per-epoch", "1000", "--eval-every", "1ep", "--run", "a",
           "--quiet")
    events = map(json.loads,
                 (cli.folder / "a/timeline.jsonl").read_text().splitlines())
    tests = [100 * event["test_accuracy"] for event in events
             if event["event"] == "test"]
    assert len(tests) == 50
    assert tests[9::10] == pytest.approx([90.6, 93.4, 94.6, 95.4, 96.3],
                                         abs=0.3)
