"""--chaos: faults that the supervisor makes itself."""

import json

import pytest

from jobs import write_cluster

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never"]
JOB = ["--workers", "2", "--ps", "1", "--checkpoint-every", "100"]


def test_a_job_under_chaos_ends_in_the_same_bits(cli):
    """Some seed of the first few hits it; all faults are said, counted and
    repaired, though no restart is left for anything else."""
    faults = 0
    for seed in range(1, 6):
        flags = [*DATA, "--seed", seed, "--steps", "4000"]
        result = cli.ok("train", "softmax", "--json", *flags, *JOB, "--chaos",
                        "2", "--restarts", "0", "--heartbeat-timeout", "1",
                        "--run", f"a{seed}")
        summary = result.json
        assert summary["faults"] == result.err.count("chaos: fault")
        assert summary["deterministic"] is True
        alone = cli.train(*flags, "--micro-batches", "2", "--run", f"b{seed}")
        assert alone["faults"] == 0
        assert summary["parameters_sha256"] == alone["parameters_sha256"]
        record = json.loads((cli.folder / f"a{seed}" / "run.json").read_text())
        assert "chaos" not in json.dumps(record)
        faults += summary["faults"]
        if faults > 3:
            break
    assert faults > 0


@pytest.mark.parametrize("flags,says", [
    (["--chaos", "1"], "--chaos needs a job of several processes"),
    (["--chaos", "-1", "--ps", "1"], "--chaos"),
    (["--chaos", "1", "--ps", "1", "--on-worker-loss", "abort"],
     "the first fault would end the job"),
    (["--chaos", "1", "--cluster", "c.json", "--role", "ps"],
     "--chaos is for jobs that --workers and --ps start"),
])
def test_where_nobody_could_repair_it_chaos_is_refused(cli, flags, says):
    write_cluster(cli, 2, 1)
    cli.refused(2, "train", "softmax", *flags, says=says)


def test_the_summary_tells_of_chaos(cli):
    result = cli.ok("train", "softmax", *DATA, *JOB, "--steps", "6000",
                    "--chaos", "20", "--heartbeat-timeout", "1", "--seed", "2")
    assert "made by --chaos" in result.out, result
