"""Jobs inside a real Slurm allocation, by sbatch and salloc."""

import json
import sys

import pytest

from conftest import ROOT, SMALL, program, wait_for

sys.path.insert(0, str(ROOT / "tests/support"))
import slurm  # noqa: E402


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    reason = slurm.why_not()
    if reason is not None:
        pytest.skip(reason)
    with slurm.Slurm(tmp_path_factory.mktemp("slurm")) as made:
        made.env["PACELINE"] = program()
        yield made


def submit(cluster, cli, script, *flags):
    """Run a batch script to its end; its output."""
    done = cluster.run("sbatch", "--wait", f"--output={cli.folder}/out",
                       f"--chdir={cli.folder}", "--overcommit", "--exclusive",
                       ROOT / "examples/slurm" / script, *map(str, flags))
    out = (cli.folder / "out").read_text()
    assert done.returncode == 0, (done, out)
    return out


def summary(out):
    return json.loads([line for line in out.splitlines()
                       if line.startswith("{")][-1])


def test_batch_script_trains_with_parameter_servers(cluster, cli):
    out = submit(cluster, cli, "ps.sbatch", *SMALL)
    found = summary(out)
    assert found["workers"] == 2 and found["ps"] == 1
    assert "worker 0 on n1: " in out and "worker 1 on n2: " in out
    here = cli.train("--workers", 2, "--ps", 1, *SMALL)
    assert found["parameters_sha256"] == here["parameters_sha256"]
    wait_for(lambda: cluster.run("squeue", "-h").stdout == "", "an empty queue")


def test_batch_script_trains_by_allreduce(cluster, cli):
    out = submit(cluster, cli, "allreduce.sbatch", *SMALL)
    found = summary(out)
    assert found["strategy"] == "allreduce" and found["workers"] == 2
    assert "worker 1 on n2: " in out
    here = cli.train("--workers", 2, "--engine", "ring", *SMALL)
    assert found["parameters_sha256"] == here["parameters_sha256"]


def test_sweep_inside_salloc_trains_on_its_nodes(cluster, cli):
    done = cluster.run("salloc", "--nodes=2", "--quiet", f"--chdir={cli.folder}",
                       program(), "sweep", "--grid", "workers=2 batch=20,40",
                       "--out", "s", "--", "softmax", "--data", "synthetic",
                       "--examples", "400", "--steps", "20")
    assert done.returncode == 0, done
    for batch in 20, 40:
        run = cli.folder / f"s/workers-2_batch-{batch}"
        found = json.loads((run / "summary.json").read_text())
        assert found["workers"] == 2 and found["batch"] == batch
        assert (run / "log/worker-1.log").exists()
    wait_for(lambda: cluster.run("squeue", "-h").stdout == "", "an empty queue")


def test_launch_inside_salloc_names_what_fails(cluster, cli):
    done = cluster.run("salloc", "--nodes=2", "--quiet", f"--chdir={cli.folder}",
                       program(), "launch", "--", "train", "softmax", "--ps",
                       "1", "--data", "idx:nowhere")
    assert done.returncode == 1
    assert "n1: " in done.stderr and "n2: " in done.stderr, done
    assert "nowhere" in done.stderr
