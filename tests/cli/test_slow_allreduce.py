"""LeNet learns the same whatever the number of workers, at equal global
batch."""

import shutil

import pytest

from conftest import Cli
from test_mpi import no_leak_check  # noqa: F401

# 60,000 digits, three epochs, 97.7 to 97.9 % of 10,000 right; the order of
# the examples differs with the number of workers.
JOB = ["--data", "digits", "--global-batch", "96", "--threads", "1",
       "--epochs", "3", "--lr", "0.05", "--eval-every", "10ep",
       "--checkpoint-every", "never"]
TOLERANCE = 0.005


def accuracy(cli, *flags):
    summary = cli.ok("train", "lenet", *JOB, *flags, "--quiet", "--json").json
    assert summary["steps"] == 1875
    return summary["test_accuracy"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("alone"), home)
    return accuracy(cli, "--strategy", "single")


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("engine", ["ring", "mpi"])
def test_accuracy_is_that_of_one_worker(cli, alone, engine, workers):
    if engine == "mpi" and shutil.which("mpirun") is None:
        pytest.skip("no mpirun here")
    found = accuracy(cli, "--engine", engine, "--workers", str(workers))
    assert alone >= 0.97
    assert abs(found - alone) <= TOLERANCE
