"""--chaos: faults that the supervisor makes itself."""

import json

import pytest

from jobs import write_cluster

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1", "--eval-every", "never"]
JOB = ["--workers", "2", "--ps", "1", "--checkpoint-every", "100"]


# The seed decides which task the first fault hits, and how; it comes as soon
# as the supervisor knows of a step, and the second one long after.
FIRST = {
    16587: "kill worker 1",
    4154: "kill worker 0",
    33465: "kill ps 0",
    319484: "freeze worker 1 for 3.3 s",
}


def under_chaos(cli, seed, *flags):
    """A job that was hit, however fast it is, and its steps."""
    steps = 10000
    while True:
        result = cli.ok("train", "softmax", *DATA, *JOB, "--seed", seed,
                        "--steps", steps, "--chaos", "0.2",
                        "--heartbeat-timeout", "2", "--run", f"a{steps}",
                        *flags)
        if "chaos: fault" in result.err:
            return result, steps
        steps *= 4


@pytest.mark.parametrize("seed", FIRST)
def test_a_job_under_chaos_ends_in_the_same_bits(cli, seed):
    """Faults are reported, counted and repaired, and their restarts do not
    count as others."""
    result, steps = under_chaos(cli, seed, "--json")
    assert f"chaos: fault 1, {FIRST[seed]}\n" in result.err, result
    how, role, index = FIRST[seed].split()[:3]
    ended = "was killed by signal 9 (Killed)" if how == "kill" else \
        "was declared lost and killed"
    again = result.err.count("; started again\n")
    # A frozen task may wake before it is missed.
    if how == "kill" or (again and result.json["faults"] == 1):
        assert f"{role} {index} {ended}; started again\n" in result.err, result
    summary = result.json
    # Whatever chaos made necessary is said without counting as one of
    # --restarts.
    assert result.err.count("; started again") == again, result
    assert again >= result.err.count(", kill "), result
    assert summary["restarts"] <= again, result
    assert summary["faults"] == result.err.count("chaos: fault")
    assert summary["deterministic"] is True
    alone = cli.train(*DATA, "--seed", seed, "--steps", steps,
                      "--micro-batches", "2", "--run", "b")
    assert alone["faults"] == 0
    assert summary["parameters_sha256"] == alone["parameters_sha256"]
    record = json.loads((cli.folder / f"a{steps}" / "run.json").read_text())
    assert "chaos" not in json.dumps(record)


@pytest.mark.parametrize("flags,says", [
    (["--chaos", "1"], "--chaos needs a job of several processes"),
    (["--chaos", "-1", "--ps", "1"], "--chaos"),
    (["--chaos", "1", "--ps", "1", "--on-worker-loss", "abort"],
     "the first fault would end the job"),
    (["--chaos", "1", "--cluster", "c.json", "--role", "ps"],
     "--chaos is for jobs that --workers and --ps start"),
])
def test_chaos_without_repair_is_refused(cli, flags, says):
    write_cluster(cli, 2, 1)
    cli.refused(2, "train", "softmax", *flags, says=says)


def test_the_summary_reports_chaos(cli):
    result, _ = under_chaos(cli, 16587)
    assert "injected by --chaos" in result.out, result
