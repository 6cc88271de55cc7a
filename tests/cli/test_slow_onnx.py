"""ONNX Runtime computes what we do, on files that we write: those of the
built-in models and of what PyTorch and Keras export (tools/setup.sh long)."""

import csv
import io
import os
import subprocess

import numpy as np
import pytest

from conftest import ROOT
from onnx_file import colours

PYTHON = os.environ.get("PL_ONNXRUNTIME", ROOT / "build/venv-long/bin/python")
RUN = """
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession("out.onnx")
(given,) = session.get_inputs()
pixels = np.load("x.npy").astype(np.float32) / 255
(out,) = session.run(None, {given.name: pixels.reshape(-1, *given.shape[1:])})
np.save("out.npy", out)
"""
FILES = sorted((ROOT / "tests/golden/onnx").glob("*.onnx"))
MODELS = {"softmax": [], "lenet": [], "mlp": [], "alexnet": ["--classes", "10"],
          "resnet18": ["--width", "4", "--stem", "large"],
          **{path: [] for path in FILES}}


def probabilities(cli, source):
    """Of each example and class, as `predict` prints them."""
    rows = csv.DictReader(io.StringIO(
        cli.ok("predict", "run", source, "--csv", "--top", "10").out))
    rows = [(int(row["example"]), int(row["class"]), float(row["probability"]))
            for row in rows]
    found = np.full((rows[-1][0] + 1, 10), np.nan)
    for example, label, probability in rows:
        found[example, label] = probability
    return found


def outputs(cli):
    """Probabilities that ONNX Runtime has for x.npy."""
    subprocess.run([PYTHON, "-c", RUN], cwd=cli.folder, check=True)
    return np.load(cli.folder / "out.npy").astype(np.float64)


@pytest.mark.parametrize("model", MODELS,
                         ids=lambda model: getattr(model, "stem", model))
def test_onnx_runtime_agrees(cli, model):
    if model in ("alexnet", "resnet18"):
        source, steps, lr, batch = colours(cli.folder), "3", "0.001", "4"
        with np.load(source.split(":")[1]) as data:
            x, y = data["x_test"], data["y_test"]
    else:
        source, steps, lr, batch = "mnist:idx", "100", "0.05", "50"
        cli.ok("data", "digits", "--out", "idx")
        cli.ok("data", "convert", source, "npy:x.npy,y.npy", "--split", "test")
        x, y = (np.load(cli.folder / name) for name in ("x.npy", "y.npy"))
    np.save(cli.folder / "x.npy", x)
    done = cli.ok("train", model, "--data", source, "--steps", steps, "--lr",
                  lr, "--batch", batch, "--workers", "2", "--ps", "1", "--quiet",
                  "--json", "--run", "run", *MODELS[model]).json
    cli.ok("export", "run", "-o", "out.onnx")
    out = outputs(cli)
    if "keras" not in str(model):  # which ends in a Softmax
        out = np.exp(out - out.max(1, keepdims=True))
        out /= out.sum(1, keepdims=True)
    assert np.abs(probabilities(cli, source) - out).max() < 1e-5
    loss = -np.log(out[np.arange(len(y)), y]).mean()
    assert done["test_loss"] == pytest.approx(loss, rel=1e-5)
