"""Models as layers: lists, graphs, and the network built from them."""

import math
import pickle

import numpy as np
import pytest

import paceline
from paceline import (GELU, Add, BatchNorm, BinaryCrossEntropy, Concat, Conv2D,
                      CrossEntropy, Dense, Dropout, Embedding, Flatten,
                      GlobalAvgPool, Huber, Input, LayerNorm, LeakyReLU, MaxPool,
                      Mean, Multiply, Network, ReLU, Reshape, Scale, Sequential,
                      Softmax, SquaredError, Tanh)

FAST = {"monitor_every": 0, "progress": False, "threads": 1}


def test_list_is_a_chain():
    net = Sequential([Conv2D(6, 5), ReLU(), MaxPool(2), Flatten(), Dense(10)])
    layers = net.to_dict()["layers"]
    assert [layer["kind"] for layer in layers] == [
        "Conv2D", "ReLU", "MaxPool", "Flatten", "Dense"]
    assert [layer["sources"] for layer in layers] == [[-1], [1], [2], [3], [4]]


def test_branches_come_before_what_takes_them():
    x = Input()
    trunk = ReLU()(Dense(16)(x))
    out = Dense()(Add()(trunk, Tanh()(Dense(16)(trunk))))
    layers = Network(out).to_dict()["layers"]
    assert [layer["kind"] for layer in layers] == [
        "Dense", "ReLU", "Dense", "Tanh", "Add", "Dense"]
    assert layers[4]["sources"] == [2, 4]


def test_network_survives_pickling_and_json():
    x = Input()
    y = Dense(3, name="out")(Dropout(0.5)(Reshape((2, 4))(x)))
    net = Network(y, Scale(2.0)(Mean()(CrossEntropy()(y))), name="mine")
    again = pickle.loads(pickle.dumps(net))
    assert again.to_dict() == net.to_dict()
    assert again.loss is not None and again.name == "mine"


@pytest.mark.parametrize("make, error, sentence", [
    (lambda: Sequential([]), ValueError, "at least one layer"),
    (lambda: Sequential([Dense(3), ReLU]), TypeError, "layer 2"),
    (lambda: Sequential([Dense("a")])._make(), TypeError, "Dense: 'a' for units"),
    (lambda: Sequential([Dense(2.5)])._make(), TypeError, "Dense: 2.5 for units"),
    (lambda: Add()(Input()), TypeError, "takes 2 results, got 1"),
    (lambda: Dense(3)(7), TypeError, "result of a layer"),
    (lambda: Network(Input()), TypeError, "ends in the result"),
    (lambda: Network.from_dict({"layers": [{"kind": "Moon", "sources": [-1]}]}),
     ValueError, "not a network"),
    (lambda: Sequential([Conv2D(0, 5)])._make(), paceline.UsageError, "units"),
    (lambda: Sequential([Dense(2, name="a"), Dense(2, name="a")])._make(),
     paceline.UsageError, "called a"),
    (lambda: Sequential([Dense(2)], name="lenet")._make(),
     paceline.UsageError, "built-in"),
])
def test_mistakes_are_refused_with_a_sentence(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_deep_graph_is_built_without_recursion():
    node = Input()
    for _ in range(3000):
        node = ReLU()(node)
    assert len(Network(Dense()(node)).to_dict()["layers"]) == 3001


def quarters(count=240):
    """Pictures that are bright in one quarter, which is the class."""
    random = np.random.default_rng(4)
    y = np.arange(count) % 4
    x = random.integers(0, 90, (count, 8, 8)).astype(np.uint8)
    for i, quarter in enumerate(y):
        top, left = 4 * (quarter // 2), 4 * (quarter % 2)
        x[i, top:top + 4, left:left + 4] += 150
    return x, y


def test_modern_network_learns_and_predicts_as_it_tests():
    x = Input()
    trunk = GELU()(BatchNorm()(Conv2D(6, 3, pad=1)(x)))
    branch = LeakyReLU(0.1)(BatchNorm(name="second")(Conv2D(6, 3, pad=1)(trunk)))
    both = Concat()(Add()(trunk, branch), Multiply()(trunk, branch))
    seen = Concat()(GlobalAvgPool()(both), Flatten()(MaxPool(4)(both)))
    net = Network(Dense()(LayerNorm()(seen)), name="today")
    data = quarters()
    run = paceline.train(net, data, epochs=12, batch=20, lr=0.05, **FAST)
    assert {"batch_norm1/mean", "second/variance", "layer_norm1/scale"} <= \
        set(run.weights)
    right = (run.predict(data[0]) == data[1]).mean()
    assert right > 0.95 and run.evaluate(data)["accuracy"] == right


def one_hot(y):
    return np.eye(y.max() + 1)[y]


def smooth(logits, y, part=0.2):
    log = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    target = (1 - part) * one_hot(y) + part / logits.shape[1]
    return -(target * log).sum(1)


def huber(p, y, delta=0.3):
    off = abs(p - one_hot(y))
    return np.where(off < delta, off ** 2 / 2, delta * (off - delta / 2)).mean(1)


@pytest.mark.parametrize("loss, expected", [
    (CrossEntropy(smoothing=0.2), smooth),
    (SquaredError(), lambda p, y: ((p - one_hot(y)) ** 2).mean(1)),
    (Huber(0.3), huber),
    (BinaryCrossEntropy(),
     lambda p, y: (np.log1p(np.exp(p)) - p * one_hot(y)).mean(1)),
], ids=lambda value: type(value).__name__)
def test_losses_are_those_of_the_definition(loss, expected):
    data = quarters()
    out = Dense()(Flatten()(Input()))
    net = Network(out, Mean()(loss(out)), name="lossy")
    run = paceline.train(net, data, epochs=10, batch=20, lr=0.05, **FAST)
    logits = run.logits(data[0]).astype(np.float64)
    found = run.evaluate(data)
    assert found["loss"] == pytest.approx(expected(logits, data[1]).mean(),
                                          rel=1e-5)
    assert found["accuracy"] > 0.9


def test_embedding_and_numbers():
    """A table of one number for each word is learned as it is."""
    random = np.random.default_rng(2)
    words = random.integers(0, 12, (600, 3)).astype(np.float32)
    worth = random.normal(size=12)
    y = worth[words.astype(int)].sum(1)
    net = Sequential([Embedding(12, 4), Flatten(), Dense()], name="words")
    run = paceline.train(net, (words, y), loss="squared-error", epochs=60,
                         batch=20, lr=0.05, **FAST)
    assert run.weights["embedding1/table"].shape == (12, 4)
    assert run.evaluate((words, y))["r2"] > 0.98
    assert math.isclose(np.mean((run.predict(words) - y) ** 2),
                        run.evaluate((words, y))["loss"], rel_tol=1e-4)


def test_softmax_is_a_layer():
    x = np.eye(3, dtype=np.float32)
    net = Sequential([Dense(3), Softmax()], name="probable")
    run = paceline.train(net, (x, np.arange(3)), steps=1, batch=3, **FAST)
    assert run.logits(x).sum(1) == pytest.approx(np.ones(3))
