"""Accuracy on MNIST, where its files are: PACELINE_MNIST names the folder."""

import json
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


# What softmax regression reaches in the experiments, in percent, with the
# 55,000 examples that TensorFlow's loader trained on.  One process or async
# make as many steps as there are batches; sync averages, and makes fewer.
REACHED = {
    "a1-batch": {"batch-10": 92.2, "batch-50": 91.15, "batch-100": 90.28,
                 "batch-200": 89.2, "batch-500": 87.28},
    "a5-workers": {"mode-async_workers-1": 90.28, "mode-async_workers-2": 90.4,
                   "mode-async_workers-3": 90.4, "mode-sync_workers-1": 90.28,
                   "mode-sync_workers-2": 89.17, "mode-sync_workers-3": 88.36},
    "a2-epochs": {"epochs-6": 89.45, "epochs-10": 90.28, "epochs-50": 91.9,
                  "epochs-100": 92.2, "epochs-200": 92.4},
    "a7-batch-by-mode": {
        "mode-async_workers-3_batch-10": 92.2,
        "mode-async_workers-3_batch-50": 91.15,
        "mode-async_workers-3_batch-100": 90.3,
        "mode-async_workers-3_batch-200": 89.2,
        "mode-async_workers-3_batch-500": 87.3,
        "mode-sync_workers-3_batch-10": 91.6,
        "mode-sync_workers-3_batch-50": 89.75,
        "mode-sync_workers-3_batch-100": 88.36,
        "mode-sync_workers-3_batch-200": 86.9,
        "mode-sync_workers-3_batch-500": 83.98},
}


def check_experiments(cli, *names):
    """Run them as they are shipped; each cell reaches what it should."""
    cli.ok("sweep", *(ROOT / f"examples/sweeps/{name}.sweep"
                      for name in names), *DATA, "--out", "s")
    for name in names:
        folder = f"s/{name}" if len(names) > 1 else "s"
        rows = json.loads(cli.ok("compare", folder, "--json").out)
        found = {row["run"]: 100 * row["test_accuracy"] for row in rows}
        assert found == pytest.approx(REACHED[name], abs=0.3)


def test_experiments(cli):
    check_experiments(cli, "a1-batch", "a5-workers")


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
