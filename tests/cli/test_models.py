"""mlp and resnet18 by the same command line: bits, strategies, statistics of
batch normalization, and their numbers against NumPy and PyTorch."""

import json
import struct

import numpy
import pytest

from conftest import checkpoints, leaks_allowed
from test_input import folder_of

MLP = ["train", "mlp", "--data", "synthetic", "--examples", "1000",
       "--normalize", "batch", "--batch", "20", "--steps", "12", "--lr",
       "0.05", "--progress", "none", "--json"]
RESNET = ["train", "resnet18", "--width", "4", "--examples", "64", "--batch",
          "8", "--steps", "3", "--lr", "0.05", "--progress", "none", "--json"]


def test_page_on_models_runs_as_it_stands(cli):
    cli.env = dict(cli.env, ASAN_OPTIONS=leaks_allowed())  # MPI's
    out = cli.page("docs/models.md")
    for part in "stage4/block2", "runs/resnet at step 20", "runs/mlp at step":
        assert part in out, (part, out)
    answers = (cli.folder / "answers.csv").read_text().splitlines()
    assert len(answers) == 1 + 10_000


def sha(cli, args, *flags):
    env = dict(cli.env, ASAN_OPTIONS=leaks_allowed())  # MPI's
    return cli.ok(*args, *flags, env=env).json["parameters_sha256"]


def tensors_of(run):
    """The parameters of the newest checkpoint, as arrays by name."""
    data = (checkpoints(run)[-1] / "shard-00000-of-00001.safetensors"
            ).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    head = json.loads(data[8:8 + size])
    head.pop("__metadata__", None)
    arrays = {}
    for name, tensor in head.items():
        first, last = (8 + size + n for n in tensor["data_offsets"])
        arrays[name] = numpy.frombuffer(data[first:last], "<f4").reshape(
            tensor["shape"])
    return arrays


@pytest.mark.parametrize("args", [MLP, RESNET], ids=["mlp", "resnet18"])
def test_workers_are_micro_batches_bit_for_bit(cli, args):
    """The hash is of the running statistics, too."""
    one = sha(cli, args, "--threads", "1", "--micro-batches", "2")
    for flags in ["--ps 1", "--ps 2", "--engine ring", "--engine mpi"]:
        many = sha(cli, args, "--threads", "1", "--workers", "2",
                   *flags.split())
        assert many == one, flags
    assert sha(cli, args, "--threads", "1") != one


@pytest.mark.parametrize("flags", [
    "--optimizer adam --lr 0.01 --weight-decay 0.1", "--clip 0.01",
    "--aggregate sum --lr 0.01"])
def test_statistics_follow_no_optimizer(cli, flags):
    """One server of two has nothing but statistics and a few parameters."""
    flags = [*flags.split(), "--hidden", "16", "--threads", "1"]
    one = sha(cli, MLP, "--micro-batches", "3", *flags, "--run", "one")
    many = sha(cli, MLP, "--workers", "3", "--ps", "2", *flags)
    assert many == one
    variance = tensors_of(cli.folder / "one")["norm1/variance"]
    assert (variance > 0).all() and (variance < 10).all()


@pytest.mark.parametrize("args", [MLP, RESNET], ids=["mlp", "resnet18"])
def test_bits_do_not_depend_on_threads(cli, args):
    assert len({sha(cli, args, "--threads", n) for n in (1, 2, 3)}) == 1


def test_a_resumed_run_keeps_its_statistics(cli):
    whole = cli.ok(*MLP, "--run", "whole").json
    cli.ok(*MLP, "--run", "part", "--steps", "5")
    rest = cli.ok(*MLP, "--run", "part", "--resume").json
    assert rest["resumed_step"] == 5
    assert rest["parameters_sha256"] == whole["parameters_sha256"]
    tested = cli.ok("eval", "part", "--json").json
    assert tested["test_loss"] == pytest.approx(whole["test_loss"], rel=1e-6)


def test_tests_do_not_depend_on_their_batch(cli):
    """In tests an example is normalized by running statistics alone."""
    losses = [cli.ok(*MLP, "--eval-batch", n).json["test_loss"]
              for n in (1, 7, 100)]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-6)


def test_async_keeps_variances_above_zero(cli):
    cli.ok(*MLP, "--workers", "3", "--ps", "1", "--mode", "async", "--run",
           "r")
    variance = tensors_of(cli.folder / "r")["norm1/variance"]
    assert (variance > 0).all()


@pytest.mark.parametrize("hidden", ["", "12,", ",12", "0", "a", "1.5",
                                    "999999", "12;3"])
def test_invalid_widths_are_refused(cli, hidden):
    cli.refused(2, "train", "mlp", "--hidden", hidden, says="--hidden")


class Mlp:
    """The model in double precision, by the book."""

    def __init__(self, tensors):
        self.p = {name: value.astype("f8")
                  for name, value in tensors.items()
                  if not name.startswith("optimizer.")}

    def step(self, x, labels, lr):
        p, n = self.p, len(x)
        z = x @ p["dense1/weights"].T + p["dense1/bias"]
        mean, variance = z.mean(0), z.var(0)
        inverse = 1 / numpy.sqrt(variance + 1e-5)
        normal = (z - mean) * inverse
        y = normal * p["norm1/scale"] + p["norm1/shift"]
        h = numpy.maximum(y, 0)
        logits = h @ p["dense2/weights"].T + p["dense2/bias"]
        e = numpy.exp(logits - logits.max(1, keepdims=True))
        probs = e / e.sum(1, keepdims=True)
        loss = -numpy.log(probs[range(n), labels]).mean()
        d = probs.copy()
        d[range(n), labels] -= 1
        d /= n
        grads = {"dense2/weights": d.T @ h, "dense2/bias": d.sum(0)}
        d = (d @ p["dense2/weights"]) * (y > 0)
        grads["norm1/scale"] = (d * normal).sum(0)
        grads["norm1/shift"] = d.sum(0)
        g = d * p["norm1/scale"]
        d = inverse * (g - g.mean(0) - normal * (g * normal).mean(0))
        grads["dense1/weights"] = d.T @ x
        grads["dense1/bias"] = d.sum(0)
        for name, grad in grads.items():
            p[name] = p[name] - lr * grad
        for name, now in (("norm1/mean", mean),
                          ("norm1/variance", variance * n / (n - 1))):
            p[name] = p[name] + 0.1 * (now - p[name])
        return loss


def test_batch_normalization_follows_its_formulas(cli):
    """Each step takes all examples, so that their order is no matter."""
    labels = [i * 7 % 10 for i in range(30)]
    folder_of(cli.folder / "idx", count=30, labels=bytes(labels), side=5)
    args = ["train", "mlp", "--data", "idx:idx", "--hidden", "8",
            "--normalize", "batch", "--batch", "30", "--lr", "0.5",
            "--eval-every", "never", "--progress", "none", "--json"]
    # A step of (nearly) nothing gives the first parameters.
    cli.ok(*args, "--lr", "1e-12", "--steps", "1", "--run", "first")
    first = tensors_of(cli.folder / "first")
    first["norm1/mean"] = numpy.zeros(8)
    first["norm1/variance"] = numpy.ones(8)
    model = Mlp(first)
    x = numpy.array([i * 7 % 256 for i in range(30 * 25)]) / 255
    for steps in range(1, 9):
        loss = model.step(x.reshape(30, 25), labels, 0.5)
    got = cli.ok(*args, "--steps", "8", "--run", "r")
    last = tensors_of(cli.folder / "r")
    for name, expected in model.p.items():
        assert last[name] == pytest.approx(expected, abs=2e-4), name
    assert loss < 2.2 and got.json["train_loss"] > loss


def test_resnet18_has_the_losses_of_pytorch(cli):
    """Those of PyTorch 2.15 in float64: the same layers from the same first
    parameters, F.cross_entropy, SGD; in evaluation mode after the last."""
    labels = bytes(i * 7 % 10 for i in range(16))
    folder_of(cli.folder / "idx", count=16, labels=labels, side=16)
    args = ["train", "resnet18", "--width", "4", "--data", "idx:idx",
            "--batch", "16", "--lr", "0.05", "--progress", "none", "--json"]
    one = cli.ok(*args, "--steps", "1").json
    assert one["train_loss"] == pytest.approx(2.8425401, abs=2e-5)
    assert one["test_loss"] == pytest.approx(3.0755560, abs=2e-4)
    three = cli.ok(*args, "--steps", "3").json
    assert three["train_loss"] == pytest.approx(2.6740824, abs=2e-4)
