"""How jobs end, what they print and leave, and how they resume."""

import json
import re
import signal

import pytest

from conftest import checkpoints, listing, wait_for
from jobs import gone, log_of, started, tasks, wait_for_checkpoint

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1"]
JOB = ["--workers", "3", "--ps", "2"]
MODES = [["--mode", "sync"], ["--mode", "async"],
         ["--mode", "ssp", "--staleness", "2"]]
NAMES = [mode[1] for mode in MODES]

# The object of --json: what each field must be.
FIELDS = {
    "model": str, "strategy": str, "mode": str, "workers": int, "ps": int,
    "batch": int, "micro_batches": int, "steps": int, "epochs": float,
    "examples": int, "seconds": float, "examples_per_s": float,
    "steps_per_s": float, "train_loss": float, "test_loss": float,
    "test_accuracy": float, "stopped_by": str, "resumed_step": int,
    "restarts": int, "deterministic": bool, "dropped_gradients": int,
    "rolled_back": int, "faults": int, "bytes_sent": int,
    "bytes_received": int,
    "peak_rss_mb": int, "parameters_sha256": str, "run": str,
    "per_worker": list,
}
ROW = {"index": int, "host": str, "steps": int, "examples": int,
       "seconds": float, "waiting_share": float, "dropped": int}


@pytest.mark.parametrize("mode", MODES, ids=NAMES)
def test_the_json_object_is_complete(cli, mode):
    summary = cli.train(*DATA, *JOB, *mode, "--steps", "301", "--run", "a")
    for key, kind in FIELDS.items():
        assert isinstance(summary[key], kind), (key, summary[key])
    for index, row in enumerate(summary["per_worker"]):
        for key, kind in ROW.items():
            assert isinstance(row[key], kind), (key, row)
        assert row["index"] == index
        assert (row["test_accuracy"] is not None) == (index == 0)
    sync = mode[1] == "sync"
    steps = [row["steps"] for row in summary["per_worker"]]
    assert summary["steps"] == 301
    assert summary["stopped_by"] == "steps"
    assert steps == [301] * 3 if sync else sum(steps) == 301
    assert summary["examples"] == 301 * 20 * (3 if sync else 1)
    assert summary["deterministic"] is sync
    assert summary["mode"] == mode[1]
    rows = summary["per_worker"]
    for key in ("bytes_sent", "bytes_received"):
        assert summary[key] == sum(row[key] for row in rows) > 0
    servers = summary["per_server"]
    assert [row["index"] for row in servers] == [0, 1]
    peaks = [row["peak_rss_mb"] for row in rows + servers]
    assert min(peaks) > 0 and summary["peak_rss_mb"] >= max(peaks)
    assert json.loads((cli.folder / "a" / "summary.json").read_text()) == \
        summary
    for kind, count in (("worker", 3), ("ps", 2)):
        for index in range(count):
            assert f"log/{kind}-{index}.log" in listing(cli.folder / "a")


def test_every_task_reports_its_usage(cli):
    """However short the job: the counters are each task's own.  (Server 0
    waits for the evaluator's for half of the heartbeat timeout.)"""
    summary = cli.train(*DATA, *JOB, "--steps", "20", "--evaluator",
                        "--heartbeat-timeout", "60", "--monitor-every", "0",
                        "--run", "a")
    workers, servers = summary["per_worker"], summary["per_server"]
    rows = workers + servers + [summary["evaluator"]]
    for row in rows:
        assert row["host"] == workers[0]["host"], row
        assert 0 < row["user_seconds"] + row["system_seconds"], row
        assert row["alive_seconds"] > 0, row
        assert row["disk_read_bytes"] >= 0, row
        assert row["peak_rss_mb"] > 0, row
    # Little that a worker sent is missing from what its server received:
    # acknowledgements, perhaps, that it had not read.
    for server in servers:
        sent = sum(peer["bytes_sent"] for row in workers
                   for peer in row["peers"]
                   if peer["peer"] == f"ps {server['index']}")
        assert server["bytes_received"] + 4096 >= sent > 4096, server
    assert summary["evaluator"]["bytes_received"] > 0
    for key in "user_seconds", "system_seconds":
        total = sum(row[key] for row in rows)
        assert summary[key] == pytest.approx(total), key
    assert summary["total_rss_mb"] == sum(row["peak_rss_mb"] for row in rows)
    # Checkpoints are written to the disk, by the servers.
    assert summary["disk_written_bytes"] == \
        sum(row["disk_written_bytes"] for row in rows)
    # Both ends of each connection count the same messages.
    for index, server in enumerate(servers):
        links = [worker["peers"][index] for worker in workers]
        assert {link["peer"] for link in links} == {f"ps {index}"}
        sent = sum(link["messages_sent"] for link in links)
        assert server["messages_received"] >= 0.5 * sent > 0
        assert server["bytes_sent"] > 0
    for worker in workers:
        for key in ("bytes_sent", "bytes_received", "messages_sent",
                    "messages_received"):
            assert worker[key] == sum(p[key] for p in worker["peers"]) > 0


@pytest.mark.parametrize("mode", MODES, ids=NAMES)
def test_epochs(cli, mode):
    """sync: passes of all together; else each worker its own."""
    summary = cli.train(*DATA, *JOB, *mode, "--epochs", "4", "--run", "a")
    per_epoch = 2000 // (20 * 3)
    each = [row["steps"] for row in summary["per_worker"]]
    assert each == [4 * per_epoch] * 3
    assert summary["steps"] == 4 * per_epoch * (1 if mode[1] == "sync" else 3)
    assert summary["epochs"] == 4.0
    assert summary["stopped_by"] == "epochs"


@pytest.mark.parametrize("mode", MODES, ids=NAMES)
def test_stop_loss(cli, mode):
    summary = cli.train(*DATA, *JOB, *mode, "--steps", "1000000",
                        "--eval-every", "50", "--stop-loss", "1.0", "--lr",
                        "0.01", "--run", "a")
    assert summary["stopped_by"] == "stop_loss"
    assert summary["steps"] < 1000000
    # No worker continues while the chief tests: what it tested is the end.
    assert summary["test_loss"] <= 1.0
    assert summary["target_step"] == summary["steps"]
    assert summary["target_seconds"] == summary["seconds"]
    if mode[1] == "sync":
        assert summary["steps"] % 50 == 0
    score = cli.ok("eval", "a", "--json").json
    assert score["test_loss"] == pytest.approx(summary["test_loss"], abs=1e-6)


def test_workers_can_test(cli):
    for mode in MODES:
        summary = cli.train(*DATA, *JOB, *mode, "--epochs", "3", "--eval-on",
                            "workers", "--run", mode[1])
        for row in summary["per_worker"]:
            assert 0 < row["test_accuracy"] <= 1, summary
            assert row["test_loss"] > 0


def test_no_test_that_decides_is_left_out_in_async(cli):
    """Though every step is far shorter than a test: no worker passes its
    step."""
    cli.train(*DATA, *JOB, "--mode", "async", "--batch", "1", "--steps", "200",
              "--eval-every", "20", "--patience", "1000", "--run", "a")
    events = [json.loads(line) for line in
              (cli.folder / "a" / "timeline.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events if event["event"] == "test"] == \
        list(range(20, 201, 20))


def test_an_evaluator_only_tests(cli):
    summary = cli.train(*DATA, *JOB, "--steps", "200", "--run", "a")
    with_one = cli.ok("train", "softmax", "--json", *DATA, *JOB, "--steps",
                      "200", "--evaluator", "--eval-every", "50",
                      "--stop-loss", "1e-12", "--run", "b").json
    assert with_one["parameters_sha256"] == summary["parameters_sha256"]
    tests = re.findall(r"step (\d+): test loss ([\d.]+), accuracy",
                       log_of(cli, "evaluator-0", "b"))
    assert int(tests[-1][0]) == 200
    assert float(tests[-1][1]) == pytest.approx(with_one["test_loss"],
                                                abs=1e-4)


def test_the_memory_of_an_evaluator_counts(cli):
    job = started(cli, *DATA, "--workers", "1", "--ps", "1", "--evaluator",
                  "--eval-every", "100", "--steps", "1000000")
    log = cli.folder / "a" / "log" / "evaluator-0.log"
    assert wait_for(lambda: log.exists() and
                    log.read_text().count("test loss") > 2, "tests", job)
    job.send_signal(signal.SIGINT)
    summary = cli.end(job).json
    peak = summary["evaluator"]["peak_rss_mb"]
    assert 0 < peak <= summary["peak_rss_mb"]


def test_streams_of_a_job(cli):
    """The table of workers on standard output, all else on standard error;
    --quiet leaves the table alone."""
    loud = cli.ok("train", "softmax", *DATA, *JOB, "--steps", "50", "--run",
                  "a")
    quiet = cli.ok("train", "softmax", *DATA, *JOB, "--steps", "50", "--quiet",
                   "--run", "b")
    assert "3 workers and 2 parameter servers on this machine, sync" in \
        loud.err
    assert quiet.err == ""
    for result in (loud, quiet):
        lines = result.out.splitlines()
        assert lines[0].startswith("softmax: 50 steps")
        most, *kinds = map(int, re.search(
            r"^peak memory +(\d+) MB \(worker (\d+) MB, ps (\d+) MB\), "
            r"all tasks \d+ MB$",
            result.out, re.M).groups())
        assert most >= max(kinds) and min(kinds) > 0
        table = [line.split() for line in lines[-4:]]
        assert table[0][:3] == ["worker", "steps", "examples"]
        assert [row[:2] for row in table[1:]] == [[str(k), "50"]
                                                  for k in range(3)]


def test_closed_standard_output_does_not_end_the_job(cli):
    job = started(cli, *DATA, *JOB, "--steps", "3000", "--checkpoint-every",
                  "100")
    job.stdout.close()
    job.stdout = None
    result = cli.end(job)
    assert result.code in (0, 1), result
    summary = json.loads((cli.folder / "a" / "summary.json").read_text())
    assert summary["steps"] == 3000


def test_a_run_of_a_job_can_be_used(cli, digits):
    """eval and predict do not depend on how a run was trained."""
    summary = cli.train("--data", f"idx:{digits}", *JOB, "--steps", "100",
                        "--run", "a")
    score = cli.ok("eval", "a", "--json").json
    assert score["test_accuracy"] == pytest.approx(summary["test_accuracy"],
                                                   abs=1e-9)
    lines = cli.ok("predict", "a", digits / "t10k-images-idx3-ubyte")
    assert len(lines.out.splitlines()) >= 10000


ENDLESS = [*DATA, "--steps", "1000000", "--checkpoint-every", "100",
           "--eval-every", "never"]


def interrupted(cli, *flags):
    """A job that got Ctrl-C in mid-training; the step it was saved at."""
    job = started(cli, *ENDLESS, *JOB, *flags)
    wait_for_checkpoint(cli, job)
    saved = int(checkpoints(cli.folder / "a")[-1].name[5:])
    pids = [task.pid for task in tasks(job)]
    job.send_signal(signal.SIGINT)
    result = cli.end(job)
    gone(pids)
    assert result.code == 130, result
    summary = result.json
    assert summary["stopped_by"] == "interrupt"
    assert saved <= summary["steps"] < 1000000
    assert f"interrupted at step {summary['steps']}; to continue: paceline " \
        "train softmax --run a --resume" in result.err
    return summary["steps"]


def resumed(cli, steps, *flags):
    return cli.train("--run", "a", "--resume", "--steps", steps, *flags)


def whole(cli, steps, *flags):
    """The same without an interrupt."""
    return cli.train(*ENDLESS, *JOB, *flags, "--steps", steps, "--run",
                     "whole")


@pytest.mark.parametrize("flags", [
    [], ["--optimizer", "momentum", "--micro-batches", "2"]])
def test_sync_resumes_in_the_same_bits(cli, flags):
    step = interrupted(cli, *flags)
    summary = resumed(cli, step + 500)
    assert summary["resumed_step"] == step
    assert summary["steps"] == step + 500
    assert summary["stopped_by"] == "steps"
    assert summary["parameters_sha256"] == \
        whole(cli, step + 500, *flags)["parameters_sha256"]
    assert summary["deterministic"] is True
    assert cli.train("--run", "a", "--resume") == summary


@pytest.mark.parametrize("flags", [
    ["--workers", "2", "--ps", "2"], ["--strategy", "single"],
    ["--workers", "3", "--ps", "2", "--mode", "async"]])
def test_a_job_resumes_as_another(cli, flags):
    step = interrupted(cli)
    summary = resumed(cli, step + 500, *flags)
    assert summary["resumed_step"] == step
    assert summary["steps"] == step + 500
    assert summary["deterministic"] is False


def test_other_servers_change_no_bit(cli):
    steps = interrupted(cli) + 500
    summary = resumed(cli, steps, "--workers", "3", "--ps", "1")
    assert summary["parameters_sha256"] == \
        whole(cli, steps)["parameters_sha256"]


def test_async_resumes(cli):
    """Each worker resumes its own count, too."""
    step = interrupted(cli, "--mode", "async")
    summary = resumed(cli, step + 500)
    assert summary["resumed_step"] == step
    assert summary["steps"] == step + 500
    assert sum(row["steps"] for row in summary["per_worker"]) == step + 500
