#!/usr/bin/env python3
"""Write the corpus of fuzz_onnx: fuzz/make_onnx.py, with NumPy.

Small models that have each operator that is read, and what a file may get
wrong where replay.c's cuts and changes would not find it.
"""
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from onnx_file import model, node, tensor  # noqa: E402


def w(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32) \
        .reshape(shape)


X, Y = {"x": [None, 1, 6, 6]}, {"y": [None, 3]}
MODELS = {
    "dense": model(
        [node("Flatten", "x", "f", axis=1),
         node("Gemm", "f w v", "h", "fc", transB=1, alpha=1.0),
         node("Relu", "h", "r"), node("MatMul", "r u", "m"),
         node("Add", "m b", "y")],
        {"w": w(4, 36), "v": w(4), "u": w(4, 3), "b": w(3)}, X, Y),
    "images": model(
        [node("Conv", "x k c", "a", pads=[1, 1, 1, 1], strides=[1, 1]),
         node("Tanh", "a", "t"),
         node("MaxPool", "t", "p", kernel_shape=[2, 2], strides=[2, 2]),
         node("Sigmoid", "p", "s"), node("Add", "p s", "q"),
         node("AveragePool", "q", "o", kernel_shape=[3, 3], strides=[3, 3]),
         node("Shape", "o", "z"),
         node("Constant", "", "i", value=np.array(0)),
         node("Gather", "z i", "n"), node("Constant", "", "j", value_ints=[0]),
         node("Unsqueeze", "n j", "l"),
         node("Constant", "", "e", value_ints=[-1]),
         node("Concat", "l e", "g", axis=0), node("Reshape", "o g", "f"),
         node("Mul", "f two", "d"), node("Dropout", "d half", "dd"),
         node("Gemm", "dd w", "u"), node("Softmax", "u", "y", axis=-1)],
        {"k": w(2, 1, 3, 3), "c": w(2), "two": np.float32(2),
         "half": np.float32(0.5), "w": w(2, 3)}, X, Y),
    "shapes": model(
        [node("Constant", "", "s", value=np.array([0, 6, -1])),
         node("Reshape", "x s", "a"),
         node("Constant", "", "one", value=np.array([1])),
         node("Unsqueeze", "a one", "b"), node("Squeeze", "b one", "c"),
         node("Transpose", "b", "t", perm=[0, 2, 3, 1]),
         node("Identity", "c", "d"), node("Cast", "d", "e", to=1),
         node("Flatten", "e", "f"), node("Div", "f two", "g"),
         node("Gemm", "g w", "u"), node("LogSoftmax", "u", "y")],
        {"two": np.float32(2), "w": w(36, 3)}, X, Y),
    "norms": model(
        [node("Flatten", "x", "f"), node("ReduceMean", "f", "m", axes=[-1]),
         node("Sub", "f m", "d"), node("Pow", "d two", "p"),
         node("ReduceMean", "p", "v", axes=[1]), node("Add", "v e", "a"),
         node("Sqrt", "a", "r"), node("Div", "d r", "n"),
         node("Mul", "n s", "k"), node("Add", "k b", "l"),
         node("Div", "l root", "g"), node("Erf", "g", "h"),
         node("Add", "h one", "i"), node("Mul", "l i", "j"),
         node("Mul", "j half", "c"), node("Gemm", "c w", "y")],
        {"two": np.float32(2), "e": np.float32(1e-5), "s": w(36), "b": w(36),
         "root": np.float32(2 ** .5), "one": np.float32(1),
         "half": np.float32(.5), "w": w(36, 3)}, X, Y, opset=13),
    "padded": model(
        [node("Relu", "x", "r"), node("Pad", "r pads", "p"),
         node("MaxPool", "p", "q", kernel_shape=[3, 3], strides=[1, 1]),
         node("Expand", "q sizes", "e"),
         node("AveragePool", "e", "a", kernel_shape=[2, 2], strides=[2, 2],
              pads=[1, 1, 1, 1], count_include_pad=1),
         node("Sigmoid", "a", "s"),
         node("MaxPool", "s", "m", kernel_shape=[2, 2], strides=[2, 2],
              pads=[1, 1, 1, 1], ceil_mode=1),
         node("Flatten", "m", "f"), node("Gemm", "f w", "y")],
        {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
         "sizes": np.array([1, 2, 6, 6]), "w": w(18, 3)}, X, Y),
    "outside": model(
        [node("Flatten", "x", "f"), node("Gemm", "f w", "y")],
        {"w": tensor("w", w(36, 3), ("../../etc/passwd", 8))}, X, Y),
    "lacking": model([node("LSTM", "x", "y", "rnn")], {}, X, Y),
    "batch_of_2": model(
        [node("Constant", "", "s", value=np.array([2, 36])),
         node("Reshape", "x s", "f"), node("Gemm", "f w", "y")],
        {"w": w(36, 3)}, {"x": [2, 1, 6, 6]}, {"y": [2, 3]}),
    "large": model(
        [node("Flatten", "x", "f"), node("Gemm", "f w", "y")],
        {"w": tensor("w", np.zeros((0, 1 << 40), np.float32))}, X, Y),
}

if __name__ == "__main__":
    for name, data in MODELS.items():
        (HERE / "corpus/onnx" / name).write_bytes(data)
