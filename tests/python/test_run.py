"""The run object: records, model, copies, and its display."""

import json
import pathlib
import pickle
import re
import subprocess
import os

import numpy as np
import pytest

import paceline
from conftest import until_sampled
from paceline import Dense, ReLU, Run, Sequential

FAST = {"monitor_every": 0, "progress": False}


@pytest.fixture(scope="module")
def run(clouds):
    net = Sequential([Dense(8), ReLU(), Dense()], name="small")
    return paceline.train(net, clouds, test_data=clouds, epochs=5, batch=30,
                          record_every="10", **FAST)


def test_summary_is_that_of_the_folder(run):
    assert run.summary == json.loads((run.folder / "summary.json").read_text())
    assert run.settings["model"] == "small"


def test_scalars_are_series(run):
    loss = run.scalar("loss")
    assert len(loss.step) == len(loss.time) == len(loss.value) > 5
    assert np.all(np.diff(loss.step) > 0) and loss.value[-1] < loss.value[0]
    assert run.scalar("loss", task="worker-0").value.tolist() == \
        loss.value.tolist()
    with pytest.raises(KeyError, match="there are"):
        run.scalar("moon")


def test_resources_are_series_of_a_host(clouds, tmp_path):
    watched = until_sampled(tmp_path / "run", clouds)
    assert {host for host, _ in watched.resources} == {os.uname().nodename}
    memory = watched.resources[os.uname().nodename, "job_rss_mb"]
    assert len(memory.step) == len(memory.time) == len(memory.value) > 0
    assert memory.value[0] > 0


def test_events_report_tests_and_checkpoints(run):
    kinds = [event["event"] for event in run.events]
    assert "test" in kinds and "checkpoint" in kinds
    tests = [e for e in run.events if e["event"] == "test"]
    assert tests[-1]["test_loss"] == pytest.approx(run.summary["test_loss"])


def test_probabilities_are_the_softmax_of_the_weights(run, clouds):
    x = clouds[0][:50]
    w = run.weights
    hidden = np.maximum(x @ w["dense1/weights"].T + w["dense1/bias"], 0)
    logits = hidden @ w["dense2/weights"].T + w["dense2/bias"]
    assert np.allclose(run.logits(x), logits, atol=1e-4)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert np.allclose(run.predict_proba(x), odds / odds.sum(1, keepdims=True),
                       atol=1e-5)


def test_evaluation_equals_the_last_test(run, clouds):
    found = run.evaluate(clouds)
    assert found["examples"] == 900
    assert found["loss"] == pytest.approx(run.summary["test_loss"])
    assert found["accuracy"] == pytest.approx(run.summary["test_accuracy"])


def test_answers_follow_the_settings_of_the_run(clouds):
    x = clouds[0] * 50 + 300
    run = paceline.train("softmax", (x, clouds[1]), test_data=(x, clouds[1]),
                         standardize=True, epochs=5, batch=30, progress=False)
    assert run.summary["test_accuracy"] > 0.95
    assert (run.predict(x) == clouds[1]).mean() == run.summary["test_accuracy"]
    assert run.evaluate((x, clouds[1]))["accuracy"] == run.summary["test_accuracy"]


def test_wrong_examples_are_refused(run):
    with pytest.raises(paceline.UsageError):
        run.predict(np.zeros((2, 9), np.float32))


def test_temporary_run_is_removed_with_its_object(clouds):
    run = paceline.train("softmax", clouds, steps=5, batch=30, **FAST)
    folder = run.folder
    assert folder.is_dir()
    del run
    assert not folder.exists()


def test_saved_run_is_opened_by_its_folder(run, clouds, tmp_path):
    saved = run.save(tmp_path / "kept")
    again = Run(tmp_path / "kept")
    assert np.array_equal(again.logits(clouds[0]), run.logits(clouds[0]))
    assert saved.summary == again.summary


def test_pickled_run_predicts_the_same(run, clouds):
    again = pickle.loads(pickle.dumps(run))
    assert np.array_equal(again.logits(clouds[0]), run.logits(clouds[0]))
    assert again.folder != run.folder


def test_run_of_the_command_line_is_opened(tmp_path):
    subprocess.run([os.environ["PACELINE"], "train", "softmax", "--data",
                    "synthetic", "--examples", "500", "--steps", "10", "--quiet",
                    "--run", tmp_path / "run"], check=True)
    run = Run(tmp_path / "run")
    assert run.summary["steps"] == 10
    assert run.predict(np.zeros((3, 28, 28), np.uint8)).shape == (3,)


def test_missing_run_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Run(tmp_path / "none")


def test_export_is_one_safetensors_file(run, tmp_path):
    from safetensors.numpy import load_file
    run.export(tmp_path / "model.safetensors")
    found = load_file(tmp_path / "model.safetensors")
    assert sorted(found) == sorted(run.weights)
    assert np.array_equal(found["dense1/weights"], run.weights["dense1/weights"])


def test_notebooks_see_a_table_and_a_curve(run):
    html = run._repr_html_()
    assert "test accuracy" in html and "<polyline" in html
    assert re.fullmatch(r"Run\('.*': small, steps 150, .*\)", repr(run))


def test_names_are_quoted_in_html(run):
    run = pickle.loads(pickle.dumps(run))
    run.settings["model"] = "<script>"
    assert "<script>" not in run._repr_html_()


def test_unpacking_stays_below_its_folder(run):
    import io
    import tarfile
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("../outside")
        tar.addfile(member, io.BytesIO())
    broken = Run.__new__(Run)
    with pytest.raises(ValueError, match="outside"):
        broken.__setstate__({"files": buffer.getvalue(), "best": False})
