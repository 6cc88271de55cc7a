"""What jobs of three workers reach on MNIST, where its files are."""

import pytest

from jobs import started, tasks, wait_for_checkpoint
from test_mnist import DATA, check_experiments
from test_mnist import pytestmark  # noqa: F401

FLAGS = [*DATA, "--lr", "0.01", "--batch", "100", "--epochs", "10",
         "--eval-every", "never", "--workers", "3", "--ps", "2"]


# One process reaches 90.3 %.  The mean of three gradients makes a third of
# its steps; their sum, or each by itself, goes as far.
@pytest.mark.parametrize("flags,accuracy,within", [
    (["--mode", "async"], 90.3, 0.5),
    (["--mode", "ssp", "--staleness", "3"], 90.3, 0.5),
    (["--aggregate", "mean"], 88.5, 0.5),
    (["--aggregate", "sum"], 90.3, 0.5),
])
def test_ten_epochs(cli, flags, accuracy, within):
    summary = cli.train(*FLAGS, *flags)
    sync = summary["mode"] == "sync"
    assert summary["steps"] == 10 * (60000 // 300) * (1 if sync else 3)
    score = cli.ok("eval", summary["run"], "--json").json
    assert 100 * score["test_accuracy"] == pytest.approx(accuracy, abs=within)


def test_experiments(cli):
    check_experiments(cli, "a2-epochs", "a7-batch-by-mode")


def test_memory(cli):
    """A server needs its parameters, a worker its data, and little more."""
    job = started(cli, *FLAGS, "--epochs", "1000", "--checkpoint-every", "500")
    wait_for_checkpoint(cli, job)
    data_mb = 70000 * 785 / 2**20
    peaks = {f"{t.role} {t.index}": t.peak_mb() for t in tasks(job)}
    job.kill()
    job.communicate()
    assert len(peaks) == 5
    for name, peak in peaks.items():
        assert peak <= 30 + (0 if name.startswith("ps") else data_mb), peaks
