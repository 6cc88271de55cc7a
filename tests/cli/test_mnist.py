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


def test_stop_loss(cli):
    summary = cli.train(*DATA, "--lr", "0.01", "--batch", "100", "--epochs",
                        "100", "--eval-every", "100", "--stop-loss", "0.35")
    assert summary["stopped_by"] == "stop_loss"
    assert 6000 <= summary["steps"] <= 8000
    assert summary["test_loss"] <= 0.35
    assert 100 * summary["test_accuracy"] == pytest.approx(90.6, abs=0.5)
