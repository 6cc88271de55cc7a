"""A checkpoint read by the safetensors library, and the model by numpy."""

import json
import struct

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from conftest import checkpoints

def read_idx(path):
    data = path.read_bytes()
    rank = data[3]
    shape = struct.unpack_from(f">{rank}I", data, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def shard(run):
    folder = checkpoints(run)[-1]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert [f["name"] for f in manifest["files"]] == \
        [p.name for p in folder.glob("*.safetensors")]
    return folder / manifest["files"][0]["name"]


SLOTS = {"sgd": set(), "momentum": {"velocity"},
         "adam": {"mean", "variance"}, "adagrad": {"sum"},
         "rmsprop": {"variance"}}


@pytest.mark.parametrize("optimizer", SLOTS)
def test_safetensors_reads_names_shapes_and_values(cli, digits, optimizer):
    cli.train("--data", f"idx:{digits}", "--steps", "50", "--run", "r",
              "--optimizer", optimizer, "--lr", "0.01")
    path = shard(cli.folder / "r")
    tensors = load_file(path)
    own = {n: t for n, t in tensors.items() if not n.startswith("optimizer.")}
    slots = {n for n in tensors if n.startswith("optimizer.")}
    assert sorted(t.size for t in own.values()) == [10, 7840]
    assert slots == {f"optimizer.{s}.{n}" for s in SLOTS[optimizer]
                     for n in own}
    for name, tensor in tensors.items():
        assert tensor.dtype == np.float32, name
        assert np.isfinite(tensor).all() and tensor.any(), name
        if name in slots:
            assert name.split(".", 2)[2] in own
            assert tensor.shape == own[name.split(".", 2)[2]].shape
    with safe_open(path, "numpy") as file:
        assert set(file.keys()) == set(tensors)


def test_numpy_computes_the_same_accuracy(cli, digits):
    summary = cli.train("--data", f"idx:{digits}", "--epochs", "1", "--run",
                        "r")
    tensors = load_file(shard(cli.folder / "r"))
    weights = next(t for t in tensors.values() if t.ndim == 2)
    bias = next(t for t in tensors.values() if t.ndim == 1)
    if weights.shape == (10, 784):
        weights = weights.T
    images = read_idx(digits / "t10k-images-idx3-ubyte")
    labels = read_idx(digits / "t10k-labels-idx1-ubyte")
    x = images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
    logits = x.astype(np.float64) @ weights + bias
    accuracy = (logits.argmax(axis=1) == labels).mean()
    assert abs(accuracy - summary["test_accuracy"]) <= 1e-6
    logits -= logits.max(axis=1, keepdims=True)
    loss = np.log(np.exp(logits).sum(axis=1)) - \
        logits[np.arange(len(labels)), labels]
    assert loss.mean() == pytest.approx(summary["test_loss"], rel=1e-5)
    assert accuracy > 0.8
