"""ONNX files without the package: write one, read one, and run it in NumPy.

The messages are those of src/proto/onnx.proto; `run` has the operators that
`paceline export` writes, computed by their definitions, Flatten, and those of
which GELU and layer normalization are composed.
"""

import math
import struct

import numpy as np

FLOAT, INT32, INT64 = 1, 6, 7
KINDS = {FLOAT: np.float32, INT32: np.int32, INT64: np.int64}


# --- Protocol Buffers ------------------------------------------------------

def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def take(data, at):
    """A varint, and where it ends."""
    result = shift = 0
    while True:
        result |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return result - (1 << 64) if result >> 63 else result, at


def fields(data):
    """(number, value or bytes) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = take(data, at)
        if key & 7 == 0:
            result, at = take(data, at)
            yield key >> 3, result
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if size is None:
            size, at = take(data, at)
        at += size
        yield key >> 3, data[at - size:at]


# --- writing ---------------------------------------------------------------

def tensor(name, array, outside=None):
    """`outside`: (file, offset) where its bytes are."""
    array = np.asarray(array)
    kind = {"f": FLOAT, "i": INT64}[array.dtype.kind]
    array = array.astype(KINDS[kind])
    out = b"".join(number(1, size) for size in array.shape)
    out += number(2, kind) + block(8, name)
    if outside is None:
        return out + block(9, array.tobytes())
    for key, value in (("location", outside[0]), ("offset", outside[1]),
                       ("length", array.nbytes)):
        out += block(13, block(1, key) + block(2, str(value)))
    return out + number(14, 1)


def attribute(name, value):
    if isinstance(value, float):
        body = varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    elif isinstance(value, int):
        body = number(3, value) + number(20, 2)
    elif isinstance(value, str):
        body = block(4, value) + number(20, 3)
    elif isinstance(value, np.ndarray):
        body = block(5, tensor("", value)) + number(20, 4)
    else:
        body = block(8, b"".join(varint(v) for v in value)) + number(20, 7)
    return block(1, name) + body


def node(op, inputs, output, name="", domain="", **attributes):
    inputs = inputs.split() if isinstance(inputs, str) else inputs
    out = b"".join(block(1, i) for i in inputs) + block(2, output)
    out += block(3, name) + block(4, op)
    for key, value in attributes.items():
        out += block(5, attribute(key, value))
    return out + (block(7, domain) if domain else b"")


def value(name, shape, kind=FLOAT):
    dims = b"".join(block(1, block(2, "N") if size is None else number(1, size))
                    for size in shape)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, dims)))


def model(nodes, weights, inputs, outputs, opset=17, more=b""):
    """`weights`: {name: array}, or encoded tensors; `inputs` and `outputs`:
    {name: shape}, None for the batch."""
    graph = b"".join(block(1, n) for n in nodes) + block(2, "test")
    for name, array in weights.items():
        graph += block(5, array if isinstance(array, bytes)
                       else tensor(name, array))
    graph += b"".join(block(11, value(*item)) for item in inputs.items())
    graph += b"".join(block(12, value(*item)) for item in outputs.items())
    return (number(1, 8) + block(2, "onnx_file.py") + block(7, graph)
            + block(8, number(2, opset)) + more)


# --- reading ---------------------------------------------------------------

def integers(body):
    """Of a repeated field, packed or not."""
    if isinstance(body, int):
        return [body]
    out, at = [], 0
    while at < len(body):
        one, at = take(body, at)
        out.append(one)
    return out


def read_tensor(data):
    dims, kind, name, raw = [], FLOAT, "", b""
    for field, body in fields(data):
        if field == 1:
            dims += integers(body)
        elif field == 2:
            kind = body
        elif field == 8:
            name = body.decode()
        elif field == 9:
            raw = body
    return name, np.frombuffer(raw, KINDS[kind]).reshape(dims)


def read_attribute(data):
    name, kind, found = "", 0, {}
    for field, body in fields(data):
        if field == 1:
            name = body.decode()
        elif field == 20:
            kind = body
        else:
            found[field] = body
    if kind == 1:
        return name, struct.unpack("<f", found[2])[0]
    if kind == 7:
        return name, integers(found[8])
    return name, found.get(3, 0) if kind == 2 else found.get(4, b"").decode()


class Read:
    """The nodes [(op, inputs, outputs, attributes)], weights, inputs and
    outputs of a file."""

    def __init__(self, data):
        self.nodes, self.weights = [], {}
        self.inputs, self.outputs = [], []
        top = dict(fields(data))
        for field, body in fields(top[7]):
            if field == 1:
                self.nodes.append(self.node(body))
            elif field == 5:
                name, array = read_tensor(body)
                self.weights[name] = array
            elif field in (11, 12):
                name = dict(fields(body))[1].decode()
                (self.inputs if field == 11 else self.outputs).append(name)

    @staticmethod
    def node(data):
        op, inputs, outputs, attributes = "", [], [], {}
        for field, body in fields(data):
            if field == 1:
                inputs.append(body.decode())
            elif field == 2:
                outputs.append(body.decode())
            elif field == 4:
                op = body.decode()
            elif field == 5:
                key, value_ = read_attribute(body)
                attributes[key] = value_
        return op, inputs, outputs, attributes


# --- running ---------------------------------------------------------------

def windows(x, height, width, stride):
    """[n, c, h, w] -> [n, c, out h, out w, height, width]"""
    view = np.lib.stride_tricks.sliding_window_view(x, (height, width), (2, 3))
    return view[:, :, ::stride, ::stride]


def frame(x, pads, outside=0.0):
    return np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])),
                  constant_values=outside)


def conv(x, w, b=None, strides=(1, 1), pads=(0, 0, 0, 0), **_):
    x = frame(x, pads)
    out = np.einsum("nchwij,ocij->nohw",
                    windows(x, w.shape[2], w.shape[3], strides[0]), w)
    return out if b is None else out + b.reshape(1, -1, 1, 1)


def pool(reduce, outside):
    return lambda x, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0), **_: \
        reduce(windows(frame(x, pads, outside), *kernel_shape, strides[0]),
               axis=(4, 5))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def batch_norm(x, scale, shift, mean, variance, epsilon):
    shape = [1, -1] + [1] * (x.ndim - 2)
    scale = scale / np.sqrt(variance + epsilon)
    return x * scale.reshape(shape) + (shift - mean * scale).reshape(shape)


def layer_norm(x, scale, shift, axis, epsilon):
    x = x - x.mean(axis, keepdims=True)
    return x / np.sqrt((x ** 2).mean(axis, keepdims=True) + epsilon) \
        * scale + shift


OPS = {
    "Add": np.add,
    "AveragePool": pool(np.mean, 0.0),
    "BatchNormalization": batch_norm,
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "Conv": conv,
    "Div": np.divide,
    "Dropout": lambda x, ratio: x,
    "Erf": np.vectorize(math.erf),
    "Expand": lambda x, shape: np.broadcast_to(
        x, np.broadcast_shapes(x.shape, tuple(shape))),
    "Flatten": lambda x, axis: x.reshape(len(x), -1),
    "Gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2 ** 0.5)) / 2,
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
    "LayerNormalization": layer_norm,
    "LeakyRelu": lambda x, alpha: np.where(x < 0, alpha * x, x),
    "Gemm": lambda a, b, c=0, transB=0: a @ (b.T if transB else b) + c,
    "MatMul": np.matmul,
    "MaxPool": pool(np.max, -np.inf),
    "Mul": np.multiply,
    "Pad": lambda x, pads: np.pad(x, list(zip(pads[:4], pads[4:]))),
    "Pow": np.power,
    "ReduceMean": lambda x, axes, keepdims=1: x.mean(
        tuple(axes), keepdims=bool(keepdims)),
    "Relu": lambda x: np.maximum(x, 0),
    "Reshape": lambda x, shape: x.reshape(shape),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softmax": softmax,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Tanh": np.tanh,
}


def run(data, examples):
    """The output of the model for the examples, in double precision."""
    read = Read(data)
    values = {name: array.astype(np.float64) if array.dtype == np.float32
              else array for name, array in read.weights.items()}
    values[read.inputs[0]] = np.asarray(examples, np.float64)
    for op, inputs, outputs, attributes in read.nodes:
        values[outputs[0]] = OPS[op](*(values[i] for i in inputs),
                                     **attributes)
    return values[read.outputs[0]]


# --- data ------------------------------------------------------------------

def colours(folder):
    """A few pictures of the least size for alexnet."""
    random = np.random.default_rng(3)
    path = folder / "colours.npz"
    np.savez(path, **{
        f"{kind}_{part}": values for part in ("train", "test")
        for kind, values in (("x", random.integers(0, 256, (16, 3, 63, 63),
                                                   dtype=np.uint8)),
                             ("y", np.arange(16) % 10))})
    return f"npz:{path}"
