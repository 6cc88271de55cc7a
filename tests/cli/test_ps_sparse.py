"""The sparse model with parameter servers: its bits, its modes, loss and
recovery, and the small memory of a worker."""

import random
import re

import pytest

from conftest import Cli, skip_when_sanitized, wait_for
from jobs import (gone, interrupted, task, tasks, wait_for_checkpoint,
                  wait_for_text)

DATA = ["--features", "100000", "--examples", "6000", "--batch", "50",
        "--threads", "1"]
QUIET = ["--eval-every", "never"]


def train(cli, *flags, run, data=DATA):
    return cli.ok("train", "sparse", *data, "--json", "--quiet", *flags,
                  "--run", run).json


def test_servers_and_transports_change_no_bit(cli):
    one = train(cli, "--micro-batches", "3", run="one")
    for number, flags in enumerate([
            "--ps 1 --transport shm", "--ps 1 --transport tcp",
            "--ps 2 --transport shm", "--ps 3 --transport tcp"]):
        job = train(cli, "--workers", "3", *flags.split(), run=f"job{number}")
        assert job["parameters_sha256"] == one["parameters_sha256"], flags
        assert job["deterministic"] is True and job["steps"] == one["steps"]
        assert job["examples"] == one["examples"]
        assert job["test_loss"] == pytest.approx(one["test_loss"], 1e-6)
        assert job["test_accuracy"] == one["test_accuracy"]


@pytest.mark.parametrize("flags", [
    "--optimizer adagrad --lr 0.1 --init normal:0.1",
    "--optimizer ftrl --l1 0.001 --l2 0.01",
    "--optimizer adam --lr 0.01 --init uniform:0.05",
    "--optimizer sgd --l1 0.0001 --l2 0.001 --aggregate sum --lr 0.3",
])
def test_every_optimizer_is_the_same_on_the_server(cli, flags):
    flags = [*flags.split(), *QUIET]
    one = train(cli, "--micro-batches", "2", *flags, run="one")
    two = train(cli, "--workers", "2", "--ps", "2", *flags, run="two")
    assert two["parameters_sha256"] == one["parameters_sha256"]


def test_learns_from_late_gradients_without_a_learning_rate(cli):
    for mode in ("async", "ssp"):
        job = train(cli, "--workers", "4", "--ps", "1", "--mode", mode,
                    "--epochs", "4", run=mode)
        assert job["test_loss"] < 0.45, mode


def test_values_of_features_travel_too(cli):
    draw = random.Random(1)
    with (cli.folder / "x.libsvm").open("w") as file:
        for _ in range(2000):
            ids = sorted(draw.sample(range(1, 5000), 20))
            row = " ".join(f"{i}:{draw.uniform(-2, 2):.3f}" for i in ids)
            file.write(f"{draw.randint(0, 1)} {row}\n")
    data = ["--data", "libsvm:x.libsvm", "--holdout", "0.1", "--batch", "30",
            "--lr", "0.01"]
    one = train(cli, "--micro-batches", "2", run="one", data=data)
    two = train(cli, "--workers", "2", "--ps", "2", run="two", data=data)
    assert two["parameters_sha256"] == one["parameters_sha256"]


@pytest.mark.parametrize("mode", [
    "--mode async --steps 70", "--mode ssp --staleness 2 --steps 70",
    "--mode async", "--replicas-to-aggregate 2",
])
def test_modes_count_each_gradient(cli, mode):
    job = train(cli, "--workers", "3", "--ps", "2", "--lr", "0.1",
                *mode.split(), "--eval-every", "1500ex", "--eval-batch", "70",
                run="job")
    rows = [row["steps"] for row in job["per_worker"]]
    if "replicas" in mode:
        assert job["steps"] == 40 and sum(rows) == 80
    else:
        assert job["steps"] == (70 if "--steps" in mode else 120)
        assert sum(rows) == job["steps"]
        assert job["examples"] == 50 * job["steps"]
    assert 0.3 < job["test_loss"] < 0.7


def test_stop_loss_ends_a_job_with_an_evaluator(cli):
    job = cli.ok("train", "sparse", *DATA, "--json", "--workers", "2", "--ps",
                 "1", "--evaluator", "--epochs", "50", "--stop-loss", "0.55",
                 "--lr", "0.1", "--run", "job").json
    assert job["stopped_by"] == "stop_loss" and job["test_loss"] <= 0.55
    log = (cli.folder / "job" / "log" / "evaluator-0.log").read_text()
    assert "test loss" in log and "accuracy" in log


SHAPE = ["--features", "100000", "--examples", "6000", "--batch", "20",
         "--threads", "1", "--optimizer", "ftrl"]
LONG = [*SHAPE, "--steps", "4000", *QUIET]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, home):
    cli = Cli(tmp_path_factory.mktemp("undisturbed"), home)
    one = train(cli, "--micro-batches", "2", run="one", data=LONG)
    return one["parameters_sha256"]


@pytest.mark.parametrize("role,index", [("worker", 1), ("ps", 1), ("ps", 0)])
def test_a_killed_task_changes_no_bit(cli, undisturbed, role, index):
    job = cli.start("train", "sparse", "--json", "--run", "a", *LONG,
                    "--workers", "2", "--ps", "2", "--checkpoint-every", "100",
                    "--heartbeat-timeout", "1")
    wait_for_checkpoint(cli, job)
    pids = [t.pid for t in tasks(job)]
    task(job, role, index).kill()
    result = cli.end(job)
    gone(pids)
    assert result.code == 0, result
    assert f"{role} {index} was killed by signal 9" in result.err
    assert result.json["parameters_sha256"] == undisturbed
    assert result.json["steps"] == 4000


def test_the_share_of_a_lost_worker_is_dealt_to_the_others(cli):
    """When the epoch ends: it has 100 steps."""
    job = cli.start("train", "sparse", "--json", "--run", "a", *SHAPE, *QUIET,
                    "--steps", "10000000", "--workers", "3", "--ps", "2",
                    "--checkpoint-every", "100", "--heartbeat-timeout", "1",
                    "--on-worker-loss", "continue", "--restarts", "0")
    wait_for_checkpoint(cli, job)
    task(job, "worker", 1).kill()
    dealt = []
    for worker in (0, 2):
        log = cli.folder / "a" / "log" / f"worker-{worker}.log"
        wait_for_text(log, "workers share the examples; this one reads share",
                      job)
        dealt += re.findall(r"from step (\d+) on (\d) workers share the "
                            r"examples; this one reads share (\d)",
                            log.read_text())
    interrupted(cli, job)
    step = dealt[0][0]
    assert dealt == [(step, "2", "0"), (step, "2", "1")]
    assert int(step) % 100 == 0


def killed_before_a_checkpoint(cli, role, index, *flags, steps=4000):
    """A job that saves at its end only, of which a task is killed in
    mid-training, as the evaluator shows; its summary, and the last step
    reported before."""
    job = cli.start("train", "sparse", "--json", "--run", "a", *SHAPE,
                    "--steps", steps, "--evaluator", "--eval-every", "100",
                    "--checkpoint-every", "never", "--heartbeat-timeout", "1",
                    *flags)
    log = cli.folder / "a" / "log" / "evaluator-0.log"

    def steps_told():
        text = log.read_text(errors="replace") if log.exists() else ""
        return max(map(int, re.findall(r"step (\d+): test", text)), default=0)
    assert wait_for(lambda: steps_told() > 0, "a test", job)
    before = steps_told()
    task(job, role, index).kill()
    result = cli.end(job)
    assert result.code == 0, result
    assert f"{role} {index} was killed by signal 9" in result.err
    return result.json, before


@pytest.mark.parametrize("index", [0, 1])
def test_a_server_lost_before_a_checkpoint_changes_no_bit(cli, undisturbed,
                                                          index):
    """Back to the first parameters, which follow from the seed."""
    job, before = killed_before_a_checkpoint(
        cli, "ps", index, "--workers", "2", "--ps", "2")
    assert job["parameters_sha256"] == undisturbed
    assert job["steps"] == 4000 and job["rolled_back"] >= before > 0


def test_async_reports_updates_lost_before_a_checkpoint(cli):
    job, before = killed_before_a_checkpoint(
        cli, "ps", 0, "--workers", "2", "--ps", "1", "--mode", "async",
        steps=40000)
    assert job["steps"] == 40000 and job["rolled_back"] >= before > 0
    assert sum(row["steps"] for row in job["per_worker"]) == 40000


def test_async_continues_counting_when_a_worker_is_killed(cli):
    job = cli.start("train", "sparse", "--json", "--run", "a", *LONG,
                    "--workers", "3", "--ps", "2", "--mode", "async",
                    "--checkpoint-every", "100", "--heartbeat-timeout", "1")
    wait_for_checkpoint(cli, job)
    task(job, "worker", 2).kill()
    result = cli.end(job)
    assert result.code == 0, result
    rows = [row["steps"] for row in result.json["per_worker"]]
    assert result.json["steps"] == 4000 == sum(rows)


def test_resume_with_other_servers_ends_in_the_same_bits(cli):
    flags = ["--optimizer", "adagrad", "--lr", "0.1", "--init", "normal:0.1",
             *QUIET]
    whole = train(cli, "--micro-batches", "2", *flags, "--epochs", "3",
                  run="whole")
    train(cli, "--workers", "2", "--ps", "1", *flags, "--epochs", "1",
          run="job")
    train(cli, "--workers", "2", "--ps", "3", "--epochs", "2", "--resume",
          data=[], run="job")
    last = train(cli, "--workers", "2", "--ps", "2", "--epochs", "3",
                 "--resume", data=[], run="job")
    assert last["resumed_step"] == 120 and last["steps"] == 180
    assert last["parameters_sha256"] == whole["parameters_sha256"]
    tested = cli.ok("eval", "job", "--json").json
    assert tested["parameters_sha256"] == whole["parameters_sha256"]


@pytest.mark.parametrize("every,share", [("never", 1), ("25", 1.25)])
def test_no_worker_holds_the_table(cli, every, share):
    """135 MB of weights, and as much beside them for adagrad, on the server,
    a quarter more while they are saved; far less in all other tasks."""
    skip_when_sanitized()
    data = ["--examples", "20000", "--batch", "500", "--threads", "1"]
    job = cli.start("train", "sparse", *data, "--json", "--workers", "2",
                    "--ps", "1", "--optimizer", "adagrad", "--lr", "0.1",
                    "--mode", "async", "--checkpoint-every", every, "--keep",
                    "1", "--steps", "300", "--run", "job", *QUIET)
    server, table, most = task(job, "ps", 0), 4 * 33762578 / 2**20, [0]

    def ended():
        most[0] = max(most[0], server.peak_mb())
        return job.poll() is not None
    assert wait_for(ended, "the end")
    assert 1.9 * table < most[0] < 2 * table * share + 40
    summary = cli.end(job).json
    rows = summary["per_worker"]
    assert all(row["peak_rss_mb"] < 60 for row in rows), rows
    assert summary["peak_rss_mb"] == summary["per_server"][0]["peak_rss_mb"]
    assert most[0] <= summary["peak_rss_mb"] + 1


def test_the_memory_of_every_server_is_reported(cli):
    """A job of a few steps, over before the servers' second heartbeat."""
    skip_when_sanitized()
    summary = train(cli, "--workers", "1", "--ps", "3", "--optimizer",
                    "adagrad", "--lr", "0.1", "--steps", "3",
                    data=["--examples", "500", "--batch", "50"], run="job")
    peaks = [row["peak_rss_mb"] for row in summary["per_server"]]
    assert len(peaks) == 3 and min(peaks) > 4 * 33762578 / 3 / 2**20
    assert summary["peak_rss_mb"] == max(peaks)
    assert summary["per_worker"][0]["peak_rss_mb"] < 60


def test_wrong_flags(cli):
    def refused(*flags, says):
        cli.refused(2, "train", "sparse", *DATA, *flags, says=[says])
    refused("--workers", "2", "--ps", "1", "--hogwild", says="--hogwild")
    refused("--workers", "2", "--ps", "1", "--micro-batches", "2",
            says="give a larger --batch")
    refused("--workers", "2", "--strategy", "allreduce",
            says="use parameter servers")
    refused("--workers", "2", says="--ps")
    refused("--workers", "2", "--ps", "1", "--clip", "1", says="--clip")


def test_dense_traffic_changes_what_travels_and_no_bit(cli):
    flags = ["--features", "5000", "--examples", "2000", "--batch", "50",
             "--threads", "1", "--optimizer", "sgd", "--workers", "2",
             "--ps", "2", "--transport", "tcp"]
    runs = {traffic: train(cli, "--traffic", traffic, data=flags, run=traffic)
            for traffic in ("sparse", "dense")}
    sparse, dense = runs["sparse"], runs["dense"]
    assert sparse["parameters_sha256"] == dense["parameters_sha256"]
    assert sparse["test_loss"] == pytest.approx(dense["test_loss"], 1e-6)
    gradients = 2 * dense["steps"]
    whole = 4 * 5001
    for way in "bytes_sent", "bytes_received":
        assert dense[way] >= gradients * whole > 2 * sparse[way]
    # The cost of dense traffic is reported where it was not sent.
    told = sparse["dense_traffic"]
    assert told["bytes_per_gradient"] == 2 * whole
    # The chief reads all parameters once, at the end: for their checksum.
    assert told["moved_per_gradient"] == (
        sparse["bytes_sent"] + sparse["bytes_received"] - whole) // gradients
    assert told["link"] == "loopback" and told["seconds_per_gradient"] > 0
    assert "dense_traffic" not in dense
    for row in sparse["per_server"]:
        assert row["bytes_sent"] > 0 and row["bytes_received"] > 0


def test_traffic_is_of_sparse_models_on_servers(cli):
    cli.refused(2, "train", "sparse", "--traffic", "dense",
                says=["--traffic", "--ps N"])
    cli.refused(2, "train", "softmax", "--traffic", "dense", "--ps", "1",
                says=["--traffic", "sparse models"])


def test_the_terminal_shows_the_cost_of_dense_traffic(cli):
    result = cli.ok("train", "sparse", *DATA, *QUIET, "--steps", "20",
                    "--workers", "2", "--ps", "1", "--quiet", "--run", "a")
    assert re.search(r"^traffic        dense traffic would have moved \S+ kB "
                     r"per gradient, this run moved \S+ kB; that takes "
                     r"\S+ s over shared memory \(\S+ .B/s\)$",
                     result.out, re.M), result
