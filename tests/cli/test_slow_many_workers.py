"""Jobs of more workers than there are cores: no task is taken for lost, with
the default heartbeat timeout."""

import pytest

DATA = ["--data", "synthetic", "--examples", "20000", "--batch", "20",
        "--threads", "1", "--eval-every", "never", "--steps", "20"]


def train_many(cli, workers, *flags):
    summary = cli.train(*DATA, "--workers", str(workers), *flags)
    assert summary["restarts"] == 0
    assert summary["rolled_back"] == 0
    assert len(summary["per_worker"]) == workers
    return summary


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_128_workers_and_a_server(cli, mode):
    summary = train_many(cli, 128, "--ps", "1", "--mode", mode, "--run", "many")
    assert summary["steps"] == 20
    assert summary["dropped_gradients"] == 0 or mode == "async"


def test_a_ring_of_32_workers(cli):
    summary = train_many(cli, 32, "--strategy", "allreduce", "--engine", "ring",
                         "--run", "many")
    assert [row["steps"] for row in summary["per_worker"]] == [20] * 32
