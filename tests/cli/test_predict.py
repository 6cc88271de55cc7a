"""predict: the answers of a trained model for images in IDX files."""

import gzip
import json
import os
import shutil
import struct
import subprocess

import numpy as np
import pytest

from conftest import SMALL, Cli
from test_checkpoint import read_idx

IMAGES = "t10k-images-idx3-ubyte"
LABELS = "t10k-labels-idx1-ubyte"


def write_idx(path, array):
    """Plain, or packed when the name ends in .gz."""
    data = (bytes([0, 0, 8, array.ndim]) +
            struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes())
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory, home, digits):
    """A folder with the run r, its data in idx, and its summary."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(digits, folder / "idx")
    summary = Cli(folder, home).train("--data", "idx:idx", "--steps", "200",
                                      "--run", "r")
    return folder, summary


@pytest.fixture
def work(cli, trained):
    """The test's own copy of it, without the training data."""
    folder, _ = trained
    shutil.copytree(folder / "r", cli.folder / "r")
    for name in IMAGES, LABELS:
        shutil.copy(folder / "idx" / name, cli.folder)
    return cli


def lines_of(result):
    """Each line's numbers."""
    return np.array([line.split() for line in result.out.splitlines()], float)


def test_predictions_give_the_accuracy_of_the_run(work, trained):
    labels = read_idx(work.folder / LABELS)
    lines = lines_of(work.ok("predict", "r", IMAGES))
    assert (lines[:, 0] == np.arange(len(labels))).all()
    # The summary's is a mean of float32: as a number of images it is exact.
    accuracy = trained[1]["test_accuracy"] * len(labels)
    assert (lines[:, 1] == labels).sum() == round(accuracy)
    assert accuracy == pytest.approx(round(accuracy), abs=1e-2)
    assert (lines[:, 2] > 0.099).all() and (lines[:, 2] <= 1).all()
    assert lines[:, 2].mean() > 0.5


def test_probabilities_are_the_softmax_numpy_computes(work):
    from safetensors.numpy import load_file
    tensors = load_file(next(work.folder.glob("r/checkpoints/*/*.safetensors")))
    weights = next(t for t in tensors.values() if t.ndim == 2)
    bias = next(t for t in tensors.values() if t.ndim == 1)
    images = read_idx(work.folder / IMAGES)
    logits = images.reshape(len(images), -1) / 255.0 @ weights.T + bias
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = odds / odds.sum(axis=1, keepdims=True)
    lines = lines_of(work.ok("predict", "r", IMAGES, "--top", "10"))
    assert lines.shape == (len(images), 21)
    found = np.empty_like(expected)
    rows = np.arange(len(images))[:, None]
    found[rows, lines[:, 1::2].astype(int)] = lines[:, 2::2]
    assert found == pytest.approx(expected, abs=1e-5)
    assert lines[:, 2::2].sum(axis=1) == pytest.approx(1, abs=1e-5)
    assert (np.diff(lines[:, 2::2]) <= 0).all()


def test_json_says_the_same(work):
    text = lines_of(work.ok("predict", "r", IMAGES, "--top", "3"))
    out = work.ok("predict", "r", IMAGES, "--top", "3", "--json").out
    for line, row in zip(map(json.loads, out.splitlines()), text, strict=True):
        assert list(line) == ["file", "index", "class", "probability", "top"]
        assert line["file"] == IMAGES and line["index"] == row[0]
        assert line["top"][0] == {"class": line["class"],
                                  "probability": line["probability"]}
        assert [t["class"] for t in line["top"]] == list(row[1::2])
        assert [t["probability"] for t in line["top"]] == pytest.approx(
            row[2::2], abs=1e-6)
    best = work.ok("predict", "r", IMAGES, "--json").json
    assert list(best) == ["file", "index", "class", "probability"]
    assert best["class"] == line["class"]


def test_threads_and_number_of_images_change_nothing(work):
    whole = work.ok("predict", "r", IMAGES, "--json").out.splitlines()
    for n in 2, 3:
        assert work.ok("predict", "r", IMAGES, "--json", "--threads",
                       n).out.splitlines() == whole
    images = read_idx(work.folder / IMAGES)
    for count in 1, 63, 65, 1025:
        write_idx(work.folder / "few", images[:count])
        lines = lines_of(work.ok("predict", "r", "few"))
        assert [json.loads(w)["class"] for w in whole[:count]] == \
            list(lines[:, 1])


def test_packed_and_several_files(work):
    images = read_idx(work.folder / IMAGES)[:100]
    write_idx(work.folder / "a", images)
    write_idx(work.folder / "b c.gz", images)
    alone = work.ok("predict", "r", "a").out
    assert work.ok("predict", "r", "b c.gz").out == alone
    both = work.ok("predict", "r", "a", "b c.gz").out.splitlines()
    assert both == [f"{name}:{line}" for name in ("a", "b c.gz")
                    for line in alone.splitlines()]
    files = [json.loads(line)["file"] for line in work.ok(
        "predict", "--json", "r", "a", "--", "b c.gz").out.splitlines()]
    assert files == ["a"] * 100 + ["b c.gz"] * 100


def test_record_says_what_the_model_takes(work):
    """So the data of the run, gone here, is not needed."""
    record = json.loads((work.folder / "r/run.json").read_text())
    assert record["example"] == [28, 28] and record["classes"] == 10
    work.refused(1, "eval", "r", says="no folder idx")
    work.ok("predict", "r", IMAGES)


def test_eval_of_fewer_classes_is_not_an_error(work):
    folder = work.folder / "two"
    folder.mkdir()
    labels = read_idx(work.folder / LABELS)
    write_idx(folder / IMAGES, read_idx(work.folder / IMAGES)[labels < 2])
    write_idx(folder / LABELS, labels[labels < 2])
    score = work.ok("eval", "r", "--data", "idx:two", "--json").json
    lines = lines_of(work.ok("predict", "r", folder / IMAGES))
    assert (lines[:, 1] == labels[labels < 2]).mean() == pytest.approx(
        score["test_accuracy"], abs=1e-6)


def test_older_run_needs_its_data(work, trained):
    path = work.folder / "r/run.json"
    record = json.loads(path.read_text())
    del record["example"], record["classes"]
    path.write_text(json.dumps(record))
    work.refused(1, "predict", "r", IMAGES, says="no folder idx")
    shutil.copytree(trained[0] / "idx", work.folder / "idx")
    assert len(lines_of(work.ok("predict", "r", IMAGES))) == \
        len(read_idx(work.folder / LABELS))


@pytest.mark.parametrize("example, classes", [
    ("28", 10), ([], 10), ([0, 28], 10), ([28, "28"], 10), ([2**62, 28], 10),
    ([1] * 6, 10), ([28, 28], 0), ([28, 28], None)])
def test_damaged_record_is_named(work, example, classes):
    path = work.folder / "r/run.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"example": example,
                                         "classes": classes}))
    work.refused(1, "predict", "r", IMAGES, says="r/run.json")


def test_record_that_does_not_fit_the_checkpoint_is_refused(work):
    path = work.folder / "r/run.json"
    record = json.loads(path.read_text())
    for change in {"example": [20, 20]}, {"classes": 9}:
        path.write_text(json.dumps(record | change))
        work.refused(1, "predict", "r", IMAGES, says="r/checkpoints")


def test_prediction_changes_nothing(work):
    before = {p: p.read_bytes() for p in work.folder.rglob("*") if p.is_file()}
    work.ok("predict", "r", IMAGES)
    assert before == {p: p.read_bytes() for p in work.folder.rglob("*")
                      if p.is_file()}


def test_wrong_usage_is_reported(work):
    for args in [], ["r"]:
        work.refused(2, "predict", *args, says="predict RUN FILE...")
    work.refused(2, "predict", "r", IMAGES, "--top", "11",
                 says=["--top 11", "10 classes"])
    work.refused(2, "predict", "r", IMAGES, "--top", "0", says="--top")
    work.refused(2, "predict", "r", IMAGES, "--tpo", "3", says="--top")


def test_wrong_files_are_named(work):
    write_idx(work.folder / "small", np.zeros((5, 20, 20), np.uint8))
    write_idx(work.folder / "flat", np.zeros((5, 784), np.uint8))
    work.refused(2, "predict", "r", "small",
                 says=["small", "[20, 20]", "[28, 28]"])
    work.refused(2, "predict", "r", "flat", says=["flat", "[784]"])
    work.refused(2, "predict", "r", LABELS,
                 says=[LABELS, "labels", "[28, 28]"])
    (work.folder / "text").write_text("no images in here")
    work.refused(1, "predict", "r", "text", says=["text", "not an IDX file"])
    (work.folder / "cut").write_bytes(
        (work.folder / IMAGES).read_bytes()[:5000])
    work.refused(1, "predict", "r", "cut", says=["cut", "truncated"])
    work.refused(1, "predict", "r", "no/such", says="no/such")


def test_wrong_runs_are_named(work):
    work.refused(1, "predict", "no/such", IMAGES,
                 says=["no/such", "not a run folder"])
    shutil.rmtree(work.folder / "r/checkpoints")
    work.refused(1, "predict", "r", IMAGES, says="r/checkpoints")


def test_good_files_before_a_wrong_one_count(work):
    result = work.run("predict", "r", IMAGES, "no/such")
    assert result.code == 1 and "no/such" in result.err
    assert len(result.out.splitlines()) == \
        len(read_idx(work.folder / LABELS))


def test_file_name_that_is_not_utf8_is_refused_in_json(work):
    name = os.fsdecode(b"a\xff")
    shutil.copy(work.folder / IMAGES, work.folder / name)
    process = work.start("predict", "r", IMAGES)
    plain = work.end(process)
    assert lines_of(plain).shape == lines_of(
        work.ok("predict", "r", name)).shape
    process = work.start("predict", "r", name, "--json")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1 and out == b"" and b"UTF-8" in err


def test_a_closed_output_is_not_an_error(work):
    predict = work.start("predict", "r", *[IMAGES] * 20)
    head = subprocess.Popen(["head", "-1"], stdin=predict.stdout,
                            stdout=subprocess.PIPE)
    predict.stdout.close()
    out, _ = head.communicate(timeout=300)
    _, err = predict.communicate(timeout=300)
    assert predict.returncode == 0 and err == b""
    assert out.startswith(f"{IMAGES}:0 ".encode())


def test_full_output_is_reported(work):
    with open("/dev/full", "w") as full:
        result = work.run("predict", "r", IMAGES, stdout=full)
    assert result.code == 1 and "standard output" in result.err, result


def test_synthetic_run_predicts_too(cli, digits):
    cli.train(*SMALL, "--run", "r")
    lines = lines_of(cli.ok("predict", "r", digits / IMAGES))
    assert len(lines) == len(read_idx(digits / LABELS))
