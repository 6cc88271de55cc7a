"""train: what it prints, what it writes, when it ends."""

import json
import re

import pytest

from conftest import SMALL, checkpoints

FIELDS = {
    "model": str, "strategy": str, "workers": int, "ps": int, "batch": int,
    "micro_batches": int, "steps": int, "epochs": float, "examples": int,
    "examples_left_out": int,
    "seconds": float, "examples_per_s": float, "steps_per_s": float,
    "train_loss": float, "test_loss": float, "test_accuracy": float,
    "stopped_by": str, "resumed_step": int, "restarts": int,
    "faults": int, "deterministic": bool, "dropped_gradients": int,
    "rolled_back": int,
    "bytes_sent": int, "bytes_received": int, "peak_rss_mb": int,
    "parameters_sha256": str, "run": str, "per_worker": list,
}
WORKER_FIELDS = {
    "index": int, "host": str, "steps": int, "examples": int,
    "seconds": float, "waiting_share": float, "dropped": int,
    "test_loss": float, "test_accuracy": float,
}


def check_types(found, fields):
    for name, kind in fields.items():
        assert name in found, name
        assert type(found[name]) is kind, (name, found[name])


def test_examples_left_out_of_an_epoch_are_reported(cli):
    data = ["--data", "synthetic", "--examples", "1030", "--batch", "50",
            "--micro-batches", "2", "--epochs", "2"]
    for job, left_out in ([], 30), (["--workers", "3", "--ps", "1"], 130):
        run = f"r{len(job)}"
        result = cli.ok("train", "softmax", *data, *job, "--run", run)
        steps = (1030 - left_out) // (100 * (3 if job else 1))
        line = f"{steps} steps of {1030 // steps // 100 * 100} an epoch"
        log = result.err
        if job:
            log += (cli.folder / run / "log/worker-0.log").read_text()
        assert f"{line} ({left_out} left out), " in log, result
        assert f"left out       {left_out} examples per epoch" in result.out
        summary = json.loads((cli.folder / run / "summary.json").read_text())
        assert summary["examples_left_out"] == left_out
        assert summary["examples"] == 2 * (1030 - left_out)
    result = cli.ok("train", "softmax", *data, "--examples", "1000", "--json")
    assert "left out" not in result.err
    assert result.json["examples_left_out"] == 0


def test_accuracies_are_exact_fractions(cli):
    """Also of a test in several batches, each a float32 share."""
    for steps in 2, 5, 9:
        summary = cli.train("--data", "synthetic", "--examples", "3000",
                            "--steps", steps, "--batch", "10",
                            "--eval-batch", "77")
        found = summary["test_accuracy"]
        assert found in {right / 300 for right in range(301)}, found


def test_summary_has_every_field(cli):
    result = cli.ok("train", "softmax", *SMALL, "--run", "r", "--json")
    summary = result.json
    check_types(summary, FIELDS)
    assert summary["mode"] is None
    check_types(summary["per_worker"][0], WORKER_FIELDS)
    assert len(summary["per_worker"]) == 1
    assert summary["model"] == "softmax"
    assert summary["strategy"] == "single"
    assert summary["workers"] == 1 and summary["ps"] == 0
    assert summary["batch"] == 100 and summary["micro_batches"] == 1
    assert summary["steps"] == 50 and summary["examples"] == 5000
    assert summary["epochs"] == 2.5
    assert summary["stopped_by"] == "steps"
    assert summary["deterministic"] is True
    assert summary["resumed_step"] == 0
    assert summary["run"] == "r"
    assert 0 < summary["test_accuracy"] <= 1
    assert summary["seconds"] > 0 and summary["peak_rss_mb"] > 0
    assert summary["examples_per_s"] == pytest.approx(
        summary["examples"] / summary["seconds"], rel=1e-6)
    assert len(summary["parameters_sha256"]) == 64
    int(summary["parameters_sha256"], 16)


def test_json_is_the_only_line_of_stdout(cli):
    result = cli.ok("train", "softmax", *SMALL, "--run", "r", "--json")
    assert len(result.out.splitlines()) == 1
    assert "softmax on synthetic" in result.err


def test_text_summary_is_on_stdout_and_log_on_stderr(cli):
    result = cli.ok("train", "softmax", *SMALL, "--run", "r")
    assert "test accuracy" in result.out and "run folder     r" in result.out
    assert "softmax on synthetic" in result.err
    assert "softmax on synthetic" not in result.out


def test_quiet_says_nothing_on_stderr(cli):
    assert cli.ok("train", "softmax", *SMALL, "--quiet").err == ""


def test_run_folder_holds_settings_and_summary(cli):
    result = cli.ok("train", "softmax", *SMALL, "--run", "r", "--json",
                    "--lr", "0.25", "--seed", "7")
    folder = cli.folder / "r"
    assert json.loads((folder / "summary.json").read_text()) == result.json
    run = json.loads((folder / "run.json").read_text())
    assert run["model"] == "softmax"
    assert run["paceline"] in cli.ok("--version").out
    assert run["machine"]["cores"] >= 1 and run["machine"]["host"]
    for name, value in {"data": "synthetic", "examples": "2000",
                        "steps": "50", "lr": "0.25", "seed": "7",
                        "batch": "100", "optimizer": "sgd"}.items():
        assert run["args"][name] == value
    assert [c.name for c in checkpoints(folder)] == ["step-0000000050"]


def test_default_run_folder_is_named_by_time_and_model(cli):
    first = cli.train(*SMALL)["run"]
    second = cli.train(*SMALL)["run"]
    assert first != second
    for run in first, second:
        assert run.startswith("runs/") and "-softmax" in run
        assert (cli.folder / run / "summary.json").is_file()


def test_profile_writes_a_trace_of_the_operators(cli):
    cli.train(*SMALL, "--run", "r", "--profile", "--threads", "2")
    trace = json.loads((cli.folder / "r/trace/worker-0.json").read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert events
    for event in events:
        assert event["ts"] >= 0 and event["dur"] >= 0
        assert {"pid", "tid", "name"} <= event.keys()
    names = {e["name"] for e in events}
    assert any("softmax" in name for name in names), names
    assert {e["args"]["step"] for e in events} == set(range(1, 51))


def test_steps_and_epochs_count_as_they_say(cli):
    summary = cli.train("--data", "synthetic", "--examples", "2050",
                        "--epochs", "2")
    # 50 examples are left over in each epoch.
    assert summary["steps"] == 40 and summary["examples"] == 4000
    assert summary["epochs"] == 2 and summary["stopped_by"] == "epochs"


@pytest.mark.parametrize("more", [
    [], ["--micro-batches", "2"], ["--workers", "2", "--ps", "1"]],
    ids=["single", "micro", "ps"])
def test_a_sum_over_the_batch_is_its_mean_times_its_size(cli, more):
    """Plain SGD: the sum at a hundredth of the learning rate is the mean."""
    flags = ["--data", "synthetic", "--batch", "100", "--steps", "50", *more]
    mean = cli.train(*flags, "--lr", "0.1")
    added = cli.train(*flags, "--lr", "0.001", "--batch-reduction", "sum")
    assert added["test_loss"] == pytest.approx(mean["test_loss"], rel=1e-5)
    assert added["train_loss"] == pytest.approx(mean["train_loss"], rel=1e-5)


def test_fewer_training_examples_leave_the_test_whole(cli):
    flags = ["--data", "synthetic", "--examples", "1000", "--batch", "100",
             "--epochs", "2"]
    assert cli.train(*flags)["steps"] == 20
    summary = cli.train(*flags, "--train-examples", "550")
    assert summary["steps"] == 10 and summary["examples_left_out"] == 50
    cli.refused(2, "train", "softmax", *flags, "--train-examples", "1001",
                says="has 1000 examples to train on")


def test_steps_and_epochs_together_are_refused(cli):
    cli.refused(2, "train", "softmax", "--steps", "5", "--epochs", "1",
                says=["--steps", "--epochs"])


def test_stop_loss_ends_the_training(cli):
    flags = ["--data", "synthetic", "--examples", "2000", "--steps", "5000",
             "--eval-every", "10"]
    summary = cli.train(*flags, "--stop-loss", "1.5", "--run", "r")
    assert summary["stopped_by"] == "stop_loss"
    assert summary["test_loss"] <= 1.5
    assert summary["steps"] % 10 == 0 and summary["steps"] < 5000
    # One test earlier it was not there yet.
    before = cli.train("--data", "synthetic", "--examples", "2000",
                       "--steps", summary["steps"] - 10)
    assert before["test_loss"] > 1.5


def test_a_target_may_be_an_accuracy(cli):
    flags = ["--data", "synthetic", "--examples", "2000", "--steps", "500",
             "--eval-every", "10"]
    summary = cli.train(*flags, "--stop-accuracy", "0.5")
    assert summary["stopped_by"] == "stop_accuracy"
    assert summary["test_accuracy"] >= 0.5
    assert summary["target_step"] == summary["steps"] < 500
    assert 0 < summary["target_seconds"] == summary["seconds"]
    text = cli.ok("train", "softmax", *flags, "--stop-accuracy", "0.5",
                  "--run", "r").out
    assert re.search(rf"^target met +step {summary['steps']}, [\d.]+ s$", text,
                     re.MULTILINE)
    row, = json.loads(cli.ok("compare", "r", "--json").out)
    assert row["target_step"] == row["steps"]
    assert row["target_seconds"] == row["seconds"]
    missed = cli.train(*flags[:4], "--steps", "2", "--eval-every", "1",
                       "--stop-accuracy", "1")
    assert missed["stopped_by"] == "steps"
    assert missed["target_step"] is None
    assert missed["target_seconds"] is None
    cli.refused(2, "train", "softmax", *flags, "--stop-accuracy", "90",
                says=["--stop-accuracy", "from"])


BEST = ["--data", "synthetic", "--examples", "2000", "--lr", "8", "--batch",
        "20", "--threads", "1", "--eval-every", "5", "--keep", "1"]


def losses(folder):
    """Test loss by step, as recorded."""
    lines = (folder / "timeline.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return {e["step"]: e["test_loss"] for e in found if e["event"] == "test"}


@pytest.mark.parametrize("how", [
    [], ["--workers", "2", "--ps", "2", "--mode", "async"],
    ["--workers", "2", "--ps", "1", "--mode", "sync"],
    ["--workers", "2", "--engine", "ring"]])
def test_the_best_checkpoint_is_kept(cli, how):
    """A learning rate with which the loss goes up and down."""
    cli.train(*BEST, *how, "--steps", "60", "--keep-best", "--run", "a")
    for steps in "60", "90":  # resumed, another one or the same is the best
        cli.train("--steps", steps, "--run", "a", "--resume")
        tests = losses(cli.folder / "a")
        best = json.loads((cli.folder / "a/checkpoints/best.json").read_text())
        assert best["test_loss"] == min(tests.values())
        assert tests[best["step"]] == best["test_loss"]
        score = cli.ok("eval", "a", "--best", "--json").json
        assert score["step"] == best["step"]
        assert score["test_loss"] == pytest.approx(best["test_loss"], rel=1e-4)
        assert cli.ok("eval", "a", "--json").json["step"] == max(tests)
        assert len(list((cli.folder / "a/checkpoints").glob("step-*"))) <= 2


def test_without_keep_best_there_is_no_best(cli):
    cli.train(*SMALL, "--run", "a")
    cli.refused(1, "eval", "a", "--best", says="--keep-best")


def test_patience_counts_across_runs(cli):
    """Tests before and after the end of a process: as of one that
    continued."""
    whole = cli.train(*BEST, "--steps", "5000", "--patience", "3", "--run",
                      "a")
    every = sorted(losses(cli.folder / "a"))
    part = every[-3]  # one test after the best
    cli.train(*BEST, "--steps", str(part), "--patience", "3", "--run", "b")
    rest = cli.train("--steps", "5000", "--patience", "3", "--run", "b",
                     "--resume")
    assert rest["stopped_by"] == "patience"
    assert rest["steps"] == whole["steps"]


def test_patience_ends_a_training(cli):
    summary = cli.train(*BEST, "--steps", "5000", "--patience", "3", "--run",
                        "a")
    assert summary["stopped_by"] == "patience" and summary["steps"] < 5000
    found = list(losses(cli.folder / "a").values())
    assert min(found[:-3]) <= min(found[-3:])
    assert all(min(found[:i + 1]) > min(found[i + 1:i + 4])
               for i in range(len(found) - 4))


@pytest.mark.parametrize("how", [[], ["--batch", "1"]])
def test_a_loss_that_explodes_is_reported_once(cli, how):
    flags = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
             "--steps", "100", "--quiet", *how]
    made = cli.ok(*flags, "--lr", "50")
    said = [line for line in made.err.splitlines() if "diverges" in line]
    assert len(said) == 1, made.err
    assert "step 20:" in said[0] and "--lr or --clip" in said[0]
    assert "diverges" not in cli.ok(*flags, "--lr", "0.01").err


def test_a_job_logs_a_loss_that_explodes(cli):
    made = cli.ok("train", "softmax", "--data", "synthetic", "--examples",
                  "2000", "--steps", "100", "--lr", "50", "--workers", "2",
                  "--ps", "1", "--quiet", "--run", "a")
    assert made.err.count("diverges") == 1, made.err
    timeline = (cli.folder / "a/timeline.jsonl").read_text()
    assert timeline.count('"event":"warning"') == 1, timeline
    logs = [(cli.folder / f"a/log/worker-{i}.log").read_text() for i in (0, 1)]
    assert [log.count("diverges") for log in logs] == [1, 0]


@pytest.mark.parametrize("how", [
    ["--strategy", "allreduce"], ["--engine", "ring"]])
def test_one_worker_has_nothing_to_sum(cli, how):
    alone = cli.train(*SMALL)
    summary = cli.train(*SMALL, *how, "--run", "a")
    assert summary["strategy"] == "allreduce" and summary["workers"] == 1
    assert summary["parameters_sha256"] == alone["parameters_sha256"]
    more = cli.train("--run", "a", "--resume", "--steps", "60")
    assert more["steps"] == 60 and more["strategy"] == "allreduce"


def test_mpi_with_one_worker_is_refused(cli):
    cli.refused(2, "train", "softmax", *SMALL, "--workers", "1", "--strategy",
                "allreduce", "--engine", "mpi",
                says=["--engine mpi", "--workers N"])


def test_more_steps_than_checkpoints_can_count_are_refused(cli):
    cli.refused(2, "train", "softmax", "--data", "synthetic", "--examples",
                "100", "--epochs", "1000000000", "--steps-per-epoch",
                "9000000000", says=["9999999999", "--steps-per-epoch"])
    job = cli.run("train", "softmax", "--data", "synthetic", "--examples",
                  "1000", "--epochs", "1000000000", "--steps-per-epoch",
                  "9000000000", "--workers", "2", "--ps", "1", "--mode",
                  "async")
    assert job.code == 2 and "9999999999" in job.err, job


def test_stop_loss_without_tests_is_refused(cli):
    cli.refused(2, "train", "softmax", *SMALL, "--stop-loss", "1",
                "--eval-every", "never", says=["--stop-loss", "--eval-every"])


def test_without_tests_there_is_no_score(cli):
    summary = cli.train(*SMALL, "--eval-every", "never")
    assert summary["test_loss"] is None and summary["test_accuracy"] is None
    assert summary["eval_seconds"] == 0
    text = cli.ok("train", "softmax", *SMALL, "--eval-every", "never").out
    assert "test loss" not in text


BLOW_UP = ["--data", "synthetic", "--examples", "2000", "--lr", "1e6",
           "--init", "normal:1e20", "--momentum", "1", "--optimizer",
           "momentum", "--weight-decay", "1e6"]


def test_nan_names_the_step_and_fails(cli):
    result = cli.run("train", "softmax", *BLOW_UP, "--steps", "5000",
                     "--run", "r", "--json")
    assert result.code == 1, result
    last = result.err.splitlines()[-1]
    assert last.startswith("paceline: ") and " step " in last
    assert "--lr" in last
    assert result.json["stopped_by"] == "nan"
    summary = json.loads((cli.folder / "r/summary.json").read_text())
    assert summary["stopped_by"] == "nan"


# Each step multiplies the weights by about -3.
GROW = ["--data", "synthetic", "--examples", "2000", "--lr", "0.1",
        "--weight-decay", "40"]


def test_nan_leaves_the_last_good_checkpoint(cli):
    result = cli.run("train", "softmax", *GROW, "--steps", "5000", "--run",
                     "r", "--checkpoint-every", "10", "--json")
    assert result.code == 1, result
    last = result.json["steps"]
    assert f"step {last + 1}:" in result.err
    assert result.json["test_loss"] is None
    score = cli.ok("eval", "r", "--json").json
    assert 0 < score["step"] <= last
    assert score["test_loss"] is not None
    # It can resume from there.
    resumed = cli.train("--run", "r", "--resume", "--lr", "0.001",
                        "--steps", score["step"] + 300)
    assert resumed["resumed_step"] == score["step"]


def test_last_update_that_overflows_is_not_a_finished_run(cli):
    ended = cli.run("train", "softmax", *GROW, "--steps", "5000", "--json")
    assert ended.code == 1, ended
    steps = ended.json["steps"]
    results = [cli.run("train", "softmax", *GROW, "--steps", steps - back,
                       "--run", f"r{back}", "--json") for back in range(3)]
    assert {r.code for r in results} <= {0, 1}
    for back, result in enumerate(results):
        failed = result.code == 1
        assert failed == (result.json["stopped_by"] == "nan"), result
        assert failed != bool(checkpoints(cli.folder / f"r{back}")), result
