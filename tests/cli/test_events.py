"""What a training records for TensorBoard."""

import math
import random
import signal

import pytest

from conftest import SMALL, checkpoints, wait_for
from tfevents import events, fields, graph, hparams, scalars, values

DATA = ["--data", "synthetic", "--examples", "2000", "--batch", "20",
        "--threads", "1"]


def test_a_training_records_its_curves(cli):
    summary = cli.train(*SMALL, "--eval-every", "10", "--run", "a")
    found = scalars(cli.folder / "a/events/worker-0")
    assert found.keys() >= {"loss", "accuracy", "learning_rate",
                            "gradient_norm", "test_loss", "test_accuracy"}
    assert [step for step, _ in found["test_loss"]] == [10, 20, 30, 40, 50]
    assert found["test_loss"][-1][1] == pytest.approx(summary["test_loss"],
                                                      rel=1e-5)
    assert all(n > 0 for _, n in found["gradient_norm"])
    for name in "loss", "accuracy", "learning_rate", "gradient_norm":
        assert {10, 20, 30, 40, 50} <= {step for step, _ in found[name]}, name
    assert found["accuracy"][0][1] < found["accuracy"][-1][1] <= 1
    assert summary["events_dropped"] == 0


def weighted(rows):
    return (sum(r["train_loss"] * r["train_loss_examples"] for r in rows)
            / sum(r["train_loss_examples"] for r in rows))


@pytest.mark.parametrize("how", [
    [], ["--workers", "2", "--ps", "1", "--mode", "async"],
    ["--workers", "2", "--engine", "ring"]])
def test_the_training_loss_is_the_mean_of_its_curves(cli, how):
    """Of the last epoch, here 25 or 50 steps of each worker."""
    summary = cli.train("--data", "synthetic", "--examples", "2000", "--batch",
                        "40", "--epochs", "3", *how, "--record-every", "1",
                        "--threads", "1", "--run", "a")
    epoch = 50 // len(summary["per_worker"])
    for row in summary["per_worker"]:
        curve = scalars(cli.folder / f"a/events/worker-{row['index']}")["loss"]
        assert len(curve) == 3 * epoch
        last = [loss for _, loss in curve[-epoch:]]
        assert sum(last) / epoch == pytest.approx(row["train_loss"], rel=1e-5)
        assert row["train_loss_examples"] == 40 * epoch
    assert summary["train_loss"] == pytest.approx(
        weighted(summary["per_worker"]))
    assert summary["events_dropped"] == 0


def test_the_graph_and_the_settings_are_recorded(cli):
    cli.train(*SMALL, "--lr", "0.25", "--optimizer", "adam", "--beta1", "0.8",
              "--run", "a")
    folder = cli.folder / "a/events/worker-0"
    nodes = graph(folder)
    assert nodes["softmax/weights"] == ("parameter", "/job:worker/task:0")
    assert not any("grad" in op for op, _ in nodes.values())
    start, end = hparams(folder)
    assert start["lr"] == 0.25 and start["model"] == "softmax"
    assert start["optimizer"] == "adam" and start["beta1"] == 0.8
    assert start["steps"] == 50 and end == 1


def test_histograms_are_recorded_on_request(cli):
    cli.train(*SMALL, "--run", "a")
    cli.train(*SMALL, "--run", "b", "--histograms-every", "20")
    plain = {tag for _, tag, v in values(cli.folder / "a/events/worker-0")
             if 5 in v}
    assert not plain
    found = {}
    for step, tag, value in values(cli.folder / "b/events/worker-0"):
        if 5 in value:
            found.setdefault(tag, []).append(step)
    assert found == dict.fromkeys(
        ["weights/softmax/weights", "gradients/softmax/weights",
         "weights/softmax/bias", "gradients/softmax/bias",
         "predictions/probabilities"], [20, 40])


def test_recording_changes_no_bit(cli):
    a = cli.train(*SMALL, "--run", "a")
    b = cli.train(*SMALL, "--run", "b", "--histograms-every", "7")
    assert a["parameters_sha256"] == b["parameters_sha256"]


def test_every_task_of_a_job_has_a_folder_of_its_own(cli):
    # With a bound of staleness no worker can make all steps by itself.
    cli.train(*DATA, "--workers", "2", "--ps", "2", "--mode", "ssp",
              "--staleness", "5", "--steps", "300", "--eval-every", "100",
              "--evaluator", "--run", "a", "--histograms-every", "100")
    folders = cli.folder / "a/events"
    assert {f.name for f in folders.iterdir()} == {"worker-0", "worker-1",
                                                   "evaluator-0", "ps-0",
                                                   "ps-1"}
    chief, other = (scalars(folders / f"worker-{i}") for i in (0, 1))
    for found in (chief, other):
        assert found.keys() >= {"loss", "staleness"}
    assert "test_loss" in scalars(folders / "evaluator-0")
    assert "test_loss" not in other
    nodes = graph(folders / "worker-0")
    assert {d for op, d in nodes.values() if op == "parameter"} == {
        "/job:ps/task:0", "/job:ps/task:1"}
    assert graph(folders / "worker-1") is None


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_server_records_its_work(cli, mode):
    cli.train(*DATA, "--workers", "2", "--ps", "2", "--mode", mode,
              "--steps", "3000", "--run", "a")
    for ps in ("ps-0", "ps-1"):
        found = scalars(cli.folder / "a/events" / ps)
        assert found.keys() == {
            "updates_per_s", "gradients_accepted", "gradients_dropped",
            "waiting_share", "sent_bytes_per_s", "received_bytes_per_s",
            "rss_mb", "task_cpu", "bytes_sent", "bytes_received",
            *(["staleness"] if mode == "async" else [])}
        assert all(n > 0 for _, n in found["updates_per_s"])
        assert all(0 <= n <= 1 for _, n in found["waiting_share"])
        assert all(n >= 0 for _, n in found["task_cpu"])
        each = 2 if mode == "sync" else 1
        assert found["gradients_accepted"][-1] == (3000, 3000 * each)
    worker = scalars(cli.folder / "a/events/worker-0")
    assert max(n for _, n in worker["task_cpu"]) > 0


def logistic_regression(examples, steps, lr):
    """What each step of plain gradient descent answers to all examples."""
    weights, bias, answers = {}, 0.0, []
    for _ in range(steps):
        probs = [1 / (1 + math.exp(-bias - sum(weights.get(i, 0.0)
                                               for i in ids)))
                 for _, ids in examples]
        answers.append(probs)
        for p, (label, ids) in zip(probs, examples):
            step = lr * (p - label) / len(examples)
            bias -= step
            for i in ids:
                weights[i] = weights.get(i, 0.0) - step
    return answers


def test_a_sparse_model_records_its_answers(cli):
    """Batches of all examples, so that each step's answers are known."""
    draw = random.Random(37)
    examples = [(draw.randrange(2), sorted(draw.sample(range(12), 3)))
                for _ in range(60)]
    (cli.folder / "a.svm").write_text("".join(
        f"{label} " + " ".join(f"{i}:1" for i in ids) + "\n"
        for label, ids in examples))
    answers = logistic_regression(examples, 50, 1.7)
    right = [sum((p >= 0.5) == (label == 1)
                 for p, (label, _) in zip(probs, examples)) / 60
             for probs in answers]
    assert len(set(right)) > 3  # a constant would not pass
    for probs in answers[1:]:
        assert all(abs(p - 0.5) > 1e-4 for p in probs)  # nor does rounding tell
    for job in ([], ["--workers", "2", "--ps", "1", "--shard", "none"]):
        run = f"a{len(job)}"
        cli.ok("train", "sparse", "--data", "libsvm:a.svm", "--batch", "60",
               "--steps", "50", "--optimizer", "sgd", "--lr", "1.7",
               "--eval-every", "5", "--histograms-every", "20", "--quiet",
               "--run", run, *job)
        folder = cli.folder / run / "events/worker-0"
        found = scalars(folder)["accuracy"]
        assert len(found) >= 11  # the first step, and one before each test
        for step, accuracy in found:
            assert accuracy == pytest.approx(right[step - 1], abs=1e-6), step
        steps = []
        for step, tag, value in values(folder):
            if tag != "predictions/probabilities" or 5 not in value:
                continue
            steps.append(step)
            least, most, count, total = (
                fields(value[5][0])[n][0] for n in (1, 2, 3, 4))
            probs = answers[step - 1]
            assert count == 60
            assert least == pytest.approx(min(probs), rel=1e-4)
            assert most == pytest.approx(max(probs), rel=1e-4)
            assert total == pytest.approx(sum(probs), rel=1e-4)
        assert steps == [20, 40]


def test_hogwild_records_its_accuracy(cli):
    cli.ok("train", "sparse", "--hogwild", "--data", "synthetic-sparse",
           "--examples", "4000", "--features", "1000", "--batch", "2000",
           "--epochs", "20", "--threads", "2", "--quiet", "--run", "a")
    found = scalars(cli.folder / "a/events/worker-0")
    steps = [step for step, _ in found["accuracy"]]
    assert steps == [step for step, _ in found["loss"]] and steps
    assert all(0.3 < n < 1 for _, n in found["accuracy"]), found["accuracy"]


def test_a_resumed_run_records_its_first_step(cli):
    args = ["train", "softmax", "--data", "synthetic", "--examples", "2000",
            "--steps", "100000000", "--checkpoint-every", "50", "--run", "a",
            "--quiet"]
    process = cli.start(*args)
    wait_for(lambda: len(checkpoints(cli.folder / "a")) > 1, "checkpoints",
             process)
    process.send_signal(signal.SIGINT)
    assert cli.end(process).code == 130
    step = int(checkpoints(cli.folder / "a")[-1].name.split("-")[1])
    cli.ok("train", "softmax", "--run", "a", "--resume", "--steps", step + 10,
           "--quiet")
    folder = cli.folder / "a/events/worker-0"
    assert len(list(folder.iterdir())) == 2
    logs = [e for e in events(folder) if 7 in e]
    assert [e[2][0] for e in logs] == [step]


def test_an_unusable_folder_is_reported_once(cli):
    (cli.folder / "a").mkdir()
    (cli.folder / "a/events").write_text("in the way")
    result = cli.ok("train", "softmax", *SMALL, "--run", "a")
    said = [line for line in result.err.splitlines() if "events" in line]
    assert len(said) == 1 and "training continues" in said[0], result
    assert (cli.folder / "a/summary.json").exists()


def test_a_wrong_interval_is_refused(cli):
    cli.refused(2, "train", "softmax", *SMALL, "--histograms-every", "often",
                says=["--histograms-every", "often"])
