"""Models as layers: lists, graphs, and the network that comes of them."""

import pickle

import pytest

import paceline
from paceline import (Add, Conv2D, CrossEntropy, Dense, Dropout, Flatten, Input,
                      MaxPool, Mean, Network, ReLU, Reshape, Scale, Sequential,
                      Tanh)


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


def test_deep_graph_is_no_recursion():
    node = Input()
    for _ in range(3000):
        node = ReLU()(node)
    assert len(Network(Dense()(node)).to_dict()["layers"]) == 3001
