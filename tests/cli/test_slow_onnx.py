"""ONNX Runtime computes what we do, on files that we write: those of the
built-in models and of what PyTorch and Keras export (tools/setup.sh long)."""

import os
import subprocess

import pytest

from conftest import ROOT

PYTHON = os.environ.get("PL_ONNXRUNTIME", ROOT / "build/venv-long/bin/python")
RUN = """
import sys
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1])
(given,) = session.get_inputs()
pixels = np.fromfile("idx/t10k-images-idx3-ubyte", np.uint8)[16:] / 255
labels = np.fromfile("idx/t10k-labels-idx1-ubyte", np.uint8)[8:]
(out,) = session.run(None, {given.name: pixels.astype(np.float32).reshape(
    -1, *given.shape[1:])})
out = out.astype(np.float64)
if sys.argv[2] == "logits":
    out = np.exp(out - out.max(1, keepdims=True))
    out /= out.sum(1, keepdims=True)
print(-np.log(out[np.arange(len(labels)), labels]).mean())
"""
FILES = sorted((ROOT / "tests/golden/onnx").glob("*.onnx"))


@pytest.mark.parametrize("model", ["softmax", "lenet", "mlp", *FILES],
                         ids=lambda model: getattr(model, "stem", model))
def test_onnx_runtime_agrees(cli, model):
    cli.ok("data", "digits", "--out", "idx")
    done = cli.ok("train", model, "--data", "mnist:idx", "--steps", "100",
                  "--lr", "0.05", "--batch", "50", "--workers", "2", "--ps",
                  "1", "--quiet", "--json", "--run", "run").json
    cli.ok("export", "run", "-o", "out.onnx")
    kind = "probabilities" if "keras" in str(model) else "logits"
    loss = float(subprocess.run([PYTHON, "-c", RUN, "out.onnx", kind],
                                cwd=cli.folder, check=True,
                                capture_output=True).stdout)
    assert done["test_loss"] == pytest.approx(loss, rel=1e-5)
