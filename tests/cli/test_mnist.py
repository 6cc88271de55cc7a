"""Accuracy on MNIST, where its files are: PACELINE_MNIST names the folder."""

import os
import pathlib

import pytest

from conftest import ROOT

FOLDER = pathlib.Path(os.environ.get("PACELINE_MNIST",
                                     ROOT.parent / "shared/data/mnist"))
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason=f"no {FOLDER}; PACELINE_MNIST can name the folder")
DATA = ["--data", f"mnist:{FOLDER}"]


# Softmax regression after 10 epochs of plain SGD at 0.01, in percent.
@pytest.mark.parametrize("batch,accuracy", [
    (10, 92.2), (50, 91.2), (100, 90.3), (200, 89.3), (500, 87.5)])
def test_ten_epochs(cli, batch, accuracy):
    summary = cli.train(*DATA, "--lr", "0.01", "--epochs", "10", "--batch",
                        batch, "--eval-every", "never")
    assert summary["steps"] == 10 * (60000 // batch)
    score = cli.ok("eval", summary["run"], "--json").json
    assert 100 * score["test_accuracy"] == pytest.approx(accuracy, abs=0.5)


def test_one_epoch_of_large_steps(cli):
    summary = cli.train(*DATA, "--lr", "0.5", "--batch", "100", "--epochs",
                        "1")
    assert 100 * summary["test_accuracy"] == pytest.approx(91.4, abs=0.8)


# Steps to a test loss of 0.35, tested every 100, with the 55,000 examples that
# TensorFlow's loader trained on.
PART = [*DATA, "--train-examples", "55000", "--lr", "0.01", "--steps", "30000",
        "--eval-every", "100", "--stop-loss", "0.35"]


@pytest.mark.parametrize("batch,steps", [
    (1, 10700), (5, 7300), (20, 7200), (100, 7100)])
def test_stop_loss(cli, batch, steps):
    summary = cli.train(*PART, "--batch", batch)
    assert summary["stopped_by"] == "stop_loss"
    assert summary["steps"] == pytest.approx(steps, abs=100)
    assert summary["target_step"] == summary["steps"]
    assert summary["test_loss"] <= 0.35
    assert 100 * summary["test_accuracy"] == pytest.approx(90.6, abs=0.7)


# In sync each worker makes as many steps as one alone, in async all together.
@pytest.mark.parametrize("mode,within", [("sync", 100), ("async", 500)])
def test_stop_loss_of_three_workers(cli, mode, within):
    summary = cli.train(*PART, "--batch", "20", "--workers", "3", "--ps", "1",
                        "--mode", mode)
    assert summary["stopped_by"] == "stop_loss"
    assert summary["steps"] == pytest.approx(7150, abs=within)
    assert summary["target_step"] == summary["steps"]
    assert summary["test_loss"] <= 0.35
    assert 100 * summary["test_accuracy"] == pytest.approx(90.6, abs=0.5)
    # The mean over the last steps of all workers, not of a few of one.
    assert summary["train_loss"] == pytest.approx(0.38, abs=0.05)
