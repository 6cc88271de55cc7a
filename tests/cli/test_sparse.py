"""The sparse model: train, resume, test, and what it refuses."""

import json
import math

import pytest

DATA = ["--examples", "6000", "--features", "100000"]


def train(cli, *flags):
    return cli.ok("train", "sparse", *DATA, "--json", "--quiet", *flags).json


def test_learns_and_reports_its_own_metrics(cli):
    summary = train(cli, "--epochs", "3", "--optimizer", "adagrad", "--lr",
                    "0.1", "--run", "r")
    assert summary["test_auc"] > 0.68
    assert 0.5 < summary["test_accuracy"] < 1
    assert 0 < summary["test_precision"] <= 1
    assert 0 < summary["test_recall"] <= 1
    assert 0.8 < summary["test_calibration"] < 1.25
    assert summary["deterministic"]
    tested = cli.ok("eval", "r", "--json").json
    for key in ("test_loss", "test_auc", "test_recall", "parameters_sha256"):
        assert tested[key] == summary[key]
    text = cli.ok("eval", "r").out
    assert "AUC 0." in text and "calibration" in text


@pytest.mark.parametrize("flags", [
    ["--optimizer", "sgd", "--l1", "1e-5", "--l2", "1e-5"],
    ["--optimizer", "adagrad"],
    ["--optimizer", "ftrl", "--l1", "0.001", "--l2", "0.1"],
    ["--optimizer", "adam", "--lr", "0.01"],
], ids=lambda flags: flags[1])
def test_any_threads_and_a_resume_give_the_same_bits(cli, flags):
    batch = ["--batch", "1000", *flags]
    whole = train(cli, *batch, "--epochs", "4", "--threads", "1")
    # 12 steps: with 5 threads some batches were read before their turn.
    train(cli, *batch, "--epochs", "2", "--threads", "5", "--run", "r")
    again = train(cli, "--epochs", "4", "--threads", "2", "--run", "r",
                  "--resume")
    assert again["resumed_step"] == 12
    assert again["parameters_sha256"] == whole["parameters_sha256"]
    assert again["test_loss"] == whole["test_loss"]


def test_learning_rate_is_that_of_the_optimizer(cli):
    rates = {"sgd": 0.2, "momentum": 0.02, "adagrad": 0.2, "ftrl": 1,
             "adam": 0.003, "rmsprop": 0.003}
    for name, rate in rates.items():
        summary = train(cli, "--optimizer", name, "--run", name)
        run = json.loads((cli.folder / name / "run.json").read_text())
        assert float(run["args"]["lr"]) == rate
        assert summary["test_auc"] > 0.6, name


def test_hogwild(cli):
    flags = ["--hogwild", "--batch", "2000", "--epochs", "3"]
    one = train(cli, *flags, "--threads", "1")
    two = train(cli, *flags, "--threads", "2")
    assert one["deterministic"] and not two["deterministic"]
    assert two["test_loss"] < 1.02 * one["test_loss"]
    assert two["examples"] == 18000


def test_hogwild_leaves_out_nothing(cli):
    result = cli.ok("train", "sparse", "--hogwild", "--data",
                    "synthetic-sparse", "--examples", "39999", "--features",
                    "1000", "--epochs", "2", "--json")
    assert "2 steps of up to 20000 an epoch, " in result.err, result
    assert result.json["steps"] == 4 and result.json["epochs"] == 2
    assert result.json["examples"] == 2 * 39999
    assert result.json["per_worker"][0]["examples"] == 2 * 39999
    assert result.json["examples_left_out"] == 0
    cli.ok("data", "convert", "synthetic-sparse", "libsvm:a.svm", "--features",
           "1000", "--examples", "3001")
    summary = cli.ok("train", "sparse", "--hogwild", "--data", "libsvm:a.svm",
                     "--holdout", "0.2", "--shuffle-buffer", "500", "--batch",
                     "1000", "--features", "1000", "--epochs", "3",
                     "--json").json
    assert summary["examples"] % 3 == 0 and summary["steps"] == 9
    assert 2000 < summary["examples"] // 3 < 3000


def test_holdout_is_not_trained_on(cli):
    summary = train(cli, "--holdout", "0.1", "--batch", "100")
    assert summary["steps"] == 54
    assert summary["test_auc"] > 0.5


def test_models_shows_the_table(cli):
    text = cli.ok("models", "sparse", "--optimizer", "ftrl").out
    assert "sparse/weights" in text and "33762579" in text
    assert "checkpoints 101 MB" in " ".join(text.split())


REFUSED = {
    "workers": (["--workers", "2"], "use parameter servers"),
    "momentum_l1": (["--optimizer", "adam", "--l1", "1"],
                    "--l1 needs --optimizer sgd, adagrad or ftrl"),
    "hogwild_ftrl": (["--hogwild", "--optimizer", "ftrl"],
                     "--hogwild needs --optimizer sgd"),
    "hogwild_micro": (["--hogwild", "--micro-batches", "2"],
                      "--micro-batches has no effect with --hogwild"),
    "hogwild_sum": (["--hogwild", "--batch-reduction", "sum"],
                    "--batch-reduction has no effect with --hogwild"),
    "dense_data": (["--data", "digits"], "needs sparse data"),
    "clip": (["--clip", "1"], "--clip is for dense models"),
    "few_features": (["--features", "100"], "100 features, expected 256"),
    "both": (["--holdout", "0.1", "--test-data", "synthetic-sparse"],
             "give one of them, not both"),
}


def test_ids_that_are_too_large_get_advice_that_helps(cli):
    """Neither a smaller --eval-batch nor fewer --features would."""
    for name, largest in ("big", 900000000000), ("huge", 9 * 10**18):
        (cli.folder / name).write_text(f"1 1:1\n0 {largest}:1\n")
        data = f"libsvm:{name}"
        small = ["--batch", "1", "--steps", "1"]
        result = cli.refused(2, "train", "sparse", "--data", data, *small,
                             says=f"renumber the ids: data convert {data} "
                                  f"cache:FILE --renumber MAP")
        assert "--eval-batch" not in result.err
        cli.ok("data", "convert", data, f"cache:{name}.cache", "--renumber",
               f"{name}.map")
        cli.ok("train", "sparse", "--data", f"cache:{name}.cache", *small)
    (cli.folder / "small").write_text("1 1:1\n0 5:1\n")
    (cli.folder / "larger").write_text("1 7:1\n")
    args = ["train", "sparse", "--data", "libsvm:small", *small, "--test-data"]
    cli.refused(2, *args, "libsvm:huge",
                says=["test data (libsvm:huge)", "renumber the ids"])
    cli.refused(2, *args, "libsvm:larger",
                says=["test data (libsvm:larger)", "train with --features 8"])
    cli.ok(*args, "libsvm:larger", "--features", "8")


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_in_one_sentence(cli, name):
    flags, part = REFUSED[name]
    result = cli.run("train", "sparse", *flags)
    assert result.code == 2, result
    assert part in result.err, result


def test_dense_models_refuse_sparse_data_and_flags(cli):
    for flags in (["--l2", "1"], ["--hogwild"], ["--features", "9"]):
        result = cli.run("train", "softmax", *flags)
        assert result.code == 2 and "is for sparse models" in result.err, result
    result = cli.run("train", "softmax", "--data", "synthetic-sparse")
    assert result.code == 2 and "needs dense data" in result.err, result


def test_predict_gives_the_loss_of_eval(cli):
    """Number and probability of every example, whatever the format."""
    train(cli, "--run", "r")
    cli.ok("data", "convert", "synthetic-sparse", "libsvm:a.svm", "--features",
           "100000", "--examples", "500")
    labels = [int(line.split()[0])
              for line in (cli.folder / "a.svm").read_text().splitlines()]
    text = cli.ok("predict", "r", "libsvm:a.svm").out
    numbers, probabilities = zip(*(line.split() for line in text.splitlines()))
    assert list(map(int, numbers)) == list(range(500))
    loss = -sum(math.log(float(p) if label else 1 - float(p))
                for label, p in zip(labels, probabilities)) / 500
    tested = cli.ok("eval", "r", "--data", "libsvm:a.svm", "--json").json
    assert tested["test_loss"] == pytest.approx(loss, rel=1e-5)
    cli.ok("data", "convert", "libsvm:a.svm", "cache:a.cache")
    assert cli.ok("predict", "r", "cache:a.cache").out == text
    first = cli.ok("predict", "r", "cache:a.cache", "--json").out.splitlines()
    first = json.loads(first[0])
    assert first["index"] == 0 and first["file"] == "cache:a.cache"
    assert first["probability"] == pytest.approx(float(probabilities[0]))
    assert first["class"] == (first["probability"] >= 0.5)


def test_predict_refuses_data_that_does_not_fit(cli):
    train(cli, "--run", "r")
    (cli.folder / "wide.svm").write_text("1 100000:1\n")
    cli.refused(1, "predict", "r", "libsvm:wide.svm",
                says=["wide.svm:1:3", "--features 100000"])
    for words, message in [(["digits"], "the model is sparse"),
                           (["x"], "unknown data source 'x'"),
                           (["libsvm:a", "--top", "2"], "--top 2")]:
        cli.refused(2, "predict", "r", *words, says=message)
