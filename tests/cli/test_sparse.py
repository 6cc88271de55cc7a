"""The sparse model: train, resume, test, and what it refuses."""

import pytest

DATA = ["--examples", "6000", "--features", "100000"]


def train(cli, *flags):
    return cli.ok("train", "sparse", *DATA, "--json", "--quiet", *flags).json


def test_learns_and_tells_its_own_metrics(cli):
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
    train(cli, *batch, "--epochs", "2", "--threads", "3", "--run", "r")
    again = train(cli, "--epochs", "4", "--threads", "2", "--run", "r",
                  "--resume")
    assert again["resumed_step"] == 12
    assert again["parameters_sha256"] == whole["parameters_sha256"]
    assert again["test_loss"] == whole["test_loss"]


def test_hogwild(cli):
    flags = ["--hogwild", "--batch", "2000", "--epochs", "3"]
    one = train(cli, *flags, "--threads", "1")
    two = train(cli, *flags, "--threads", "2")
    assert one["deterministic"] and not two["deterministic"]
    assert two["test_loss"] < 1.02 * one["test_loss"]
    assert two["examples"] == 18000


def test_holdout_is_not_trained_on(cli):
    summary = train(cli, "--holdout", "0.1", "--batch", "100")
    assert summary["steps"] == 54
    assert summary["test_auc"] > 0.5


def test_models_shows_the_table(cli):
    text = cli.ok("models", "sparse", "--optimizer", "ftrl").out
    assert "sparse/weights" in text and "33762579" in text
    assert "405 MB" in text.replace("  ", " ")


REFUSED = {
    "workers": (["--workers", "2", "--ps", "1"], "trains alone"),
    "momentum_l1": (["--optimizer", "adam", "--l1", "1"],
                    "--l1 needs --optimizer sgd, adagrad or ftrl"),
    "hogwild_ftrl": (["--hogwild", "--optimizer", "ftrl"],
                     "--hogwild needs --optimizer sgd"),
    "dense_data": (["--data", "digits"], "needs sparse data"),
    "clip": (["--clip", "1"], "--clip: not with the model sparse"),
    "few_features": (["--features", "100"], "100 features, expected 256"),
    "both": (["--holdout", "0.1", "--test-data", "synthetic-sparse"],
             "give one of them, not both"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses_in_one_sentence(cli, name):
    flags, part = REFUSED[name]
    result = cli.run("train", "sparse", *flags)
    assert result.code == 2, result
    assert part in result.err, result


def test_dense_models_refuse_what_is_sparse(cli):
    for flags in (["--l2", "1"], ["--hogwild"], ["--features", "9"]):
        result = cli.run("train", "softmax", *flags)
        assert result.code == 2 and "not sparse" in result.err, result
    result = cli.run("train", "softmax", "--data", "synthetic-sparse")
    assert result.code == 2 and "needs dense data" in result.err, result
    train(cli, "--run", "r")
    result = cli.run("predict", "r", "x")
    assert result.code == 2 and "holds a sparse model" in result.err, result
