#!/usr/bin/env python3
"""Write onnx/*.onnx: models as PyTorch and Keras export them.

    pip install torch onnxscript keras onnx
    golden/make_onnx.py

Small, so that the files are: what matters is the form that the exporters give
to layers.  Keras runs on its torch backend.
"""
import os
import pathlib

os.environ["KERAS_BACKEND"] = "torch"

import torch  # noqa: E402
from torch import nn  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "onnx"


class Block(nn.Module):
    def __init__(self, ins, outs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outs)
        self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outs)
        self.down = None
        if stride != 1:
            self.down = nn.Sequential(
                nn.Conv2d(ins, outs, 1, stride, bias=False),
                nn.BatchNorm2d(outs))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.down is None else self.down(x)))


def resnet():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
        Block(4, 4, 1), Block(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 10))


class LeNet(nn.Module):
    """With x.view(x.size(0), -1), as many write it."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 3, 5, padding=2)
        self.conv2 = nn.Conv2d(3, 4, 5)
        self.fc1 = nn.Linear(100, 12)
        self.fc2 = nn.Linear(12, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.tanh(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return self.fc2(torch.tanh(self.fc1(x)))


class Norms(nn.Module):
    """Layer norm, GELU and dropout."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 8)
        self.norm = nn.LayerNorm(8)
        self.act = nn.GELU()
        self.drop = nn.Dropout(0.1)
        self.leaky = nn.LeakyReLU(0.1)
        self.fc2 = nn.Linear(8, 10)

    def forward(self, x):
        x = self.act(self.norm(self.fc1(torch.flatten(x, 1))))
        return self.fc2(self.leaky(self.drop(x)))


def export(name, module, new, training=False, opset=18):
    module.train(training)
    path = HERE / f"{name}.onnx"
    x = torch.zeros(2, 1, 28, 28)
    mode = torch.onnx.TrainingMode
    more = {"dynamo": True, "external_data": False} if new else {
        "dynamo": False,
        "training": mode.TRAINING if training else mode.EVAL,
        "do_constant_folding": not training,
        "dynamic_axes": {"input": {0: "batch"}, "output": {0: "batch"}}}
    if new:
        more["dynamic_shapes"] = ({0: torch.export.Dim("batch")},)
    torch.onnx.export(module, (x,), path, input_names=["input"],
                      output_names=["output"], opset_version=opset, **more)
    strip(path)


def strip(path):
    """Without what the exporter writes for its own use: half of the file."""
    import onnx
    model = onnx.load(path)
    for thing in [model, *model.graph.node, model.graph]:
        del thing.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
    del model.graph.value_info[:]
    del model.functions[:]
    onnx.save(model, path)


def main():
    HERE.mkdir(exist_ok=True)
    torch.manual_seed(1)
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(784, 8), nn.ReLU(),
                        nn.Linear(8, 10))
    export("torch_mlp", mlp, new=True)
    export("torch_lenet", LeNet(), new=True)
    export("torch_lenet_13", LeNet(), new=False, opset=13)
    net = resnet()
    export("torch_resnet_train", net, new=False, training=True)
    export("torch_resnet_eval", net, new=True)
    export("torch_norms", Norms(), new=True)
    import keras
    keras.utils.set_random_seed(1)
    dense = keras.Sequential([
        keras.layers.Input((28, 28)), keras.layers.Flatten(),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(10, activation="softmax")])
    path = HERE / "keras_mlp.onnx"
    dense(torch.zeros(2, 28, 28))
    dense.export(path, format="onnx", verbose=False)
    strip(path)


if __name__ == "__main__":
    main()
