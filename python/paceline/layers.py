"""Models as layers: a list of them, or a graph with branches.

A list::

    Sequential([Conv2D(6, 5), ReLU(), MaxPool(2), Flatten(), Dense(10)])

A graph, where a layer is called with what it takes::

    x = Input()
    h = ReLU()(Dense(64)(x))
    y = Add()(h, ReLU()(Dense(64)(h)))
    Network(Dense()(y))

Shapes are checked when the data is known: at the start of a training.
"""

from __future__ import annotations

import ctypes
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from . import _library

__all__ = [
    "Add",
    "AvgPool",
    "BatchNorm",
    "BinaryCrossEntropy",
    "Concat",
    "Conv2D",
    "CrossEntropy",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "GlobalAvgPool",
    "Huber",
    "Input",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "MaxPool",
    "Mean",
    "Multiply",
    "Network",
    "Node",
    "ReLU",
    "Reshape",
    "Scale",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "SquaredError",
    "Sum",
    "Tanh",
]


@dataclass(frozen=True, eq=False)
class Node:
    """The result of a layer in a graph, or the examples (layer None)."""

    layer: Optional["Layer"]
    sources: Tuple["Node", ...] = ()


def Input() -> Node:
    """The examples: where a graph begins."""
    return Node(None)


@dataclass(frozen=True)
class Layer:
    """What all layers have in common; use one of those below.

    ``name`` is that of its parameters, ``name/weights`` and ``name/bias``;
    by default kind and number: ``dense1``.
    """

    def __call__(self, *sources: Node) -> Node:
        """Apply the layer to the results of others."""
        if len(sources) != self._sources:
            raise TypeError(
                f"{type(self).__name__} takes {self._sources} "
                f"result{'s' * (self._sources > 1)}, got {len(sources)}"
            )
        for source in sources:
            if not isinstance(source, Node):
                raise TypeError(
                    f"{type(self).__name__} takes the result of a layer or "
                    f"Input(), got {type(source).__name__}"
                )
        return Node(self, sources)

    _kind = ""
    _sources = 1

    def _fields(self) -> Dict[str, Any]:
        """The fields of pl_layer that have the same name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Dense(Layer):
    """Every input times a weight, and a bias, for each of ``units``.

    Inputs of higher rank are flattened.  Without ``units``: as many as there
    are classes.
    """

    units: Optional[int] = None
    name: Optional[str] = None
    _kind = "dense"


@dataclass(frozen=True)
class Conv2D(Layer):
    """``filters`` filters of kernel x kernel over [channels, height, width].

    Images without channels, [height, width], have one.
    """

    filters: int
    kernel: int
    stride: int = 1
    pad: int = 0
    name: Optional[str] = None
    _kind = "conv2d"

    def _fields(self) -> Dict[str, Any]:
        values = super()._fields()
        values["units"] = values.pop("filters")
        return values


@dataclass(frozen=True)
class ReLU(Layer):
    """max(x, 0)"""

    _kind = "relu"


@dataclass(frozen=True)
class Tanh(Layer):
    """tanh(x)"""

    _kind = "tanh"


@dataclass(frozen=True)
class Sigmoid(Layer):
    """1 / (1 + exp(-x))"""

    _kind = "sigmoid"


@dataclass(frozen=True)
class GELU(Layer):
    """x times the share of a normal distribution below x, exactly."""

    _kind = "gelu"


@dataclass(frozen=True)
class LeakyReLU(Layer):
    """x, or ``slope`` times x where it is negative."""

    slope: float = 0.01
    _kind = "leaky_relu"

    def _fields(self) -> Dict[str, Any]:
        return {"rate": self.slope}


@dataclass(frozen=True)
class Softmax(Layer):
    """Probabilities over the last dimension; not needed before a loss."""

    _kind = "softmax"


@dataclass(frozen=True)
class BatchNorm(Layer):
    """Each channel normalized by the batch; in tests by running averages."""

    name: Optional[str] = None
    _kind = "batch_norm"


@dataclass(frozen=True)
class LayerNorm(Layer):
    """The last dimension of each example normalized."""

    name: Optional[str] = None
    _kind = "layer_norm"


@dataclass(frozen=True)
class Embedding(Layer):
    """Whole numbers below ``rows`` as rows of a table, ``width`` numbers each."""

    rows: int
    width: int
    name: Optional[str] = None
    _kind = "embedding"

    def _fields(self) -> Dict[str, Any]:
        return {"units": self.rows, "width": self.width, "name": self.name}


@dataclass(frozen=True)
class _Pool(Layer):
    size: int
    stride: Optional[int] = None

    def _fields(self) -> Dict[str, Any]:
        values = super()._fields()
        values["kernel"] = values.pop("size")
        return values


@dataclass(frozen=True)
class MaxPool(_Pool):
    """The largest of each size x size window, every ``stride`` pixels.

    The default stride is the size.
    """

    _kind = "max_pool"


@dataclass(frozen=True)
class AvgPool(_Pool):
    """The mean of each size x size window, every ``stride`` pixels."""

    _kind = "avg_pool"


@dataclass(frozen=True)
class GlobalAvgPool(Layer):
    """The mean of each channel of [channels, height, width]."""

    _kind = "global_avg_pool"


@dataclass(frozen=True)
class Flatten(Layer):
    """All elements of an example in one dimension."""

    _kind = "flatten"


@dataclass(frozen=True)
class Reshape(Layer):
    """The same elements in another shape, that of one example."""

    shape: Tuple[int, ...]
    _kind = "reshape"

    def _fields(self) -> Dict[str, Any]:
        return {"shape": _library.Shape.of(tuple(self.shape))}


@dataclass(frozen=True)
class Dropout(Layer):
    """In training, each element is dropped with probability ``rate``."""

    rate: float
    _kind = "dropout"


@dataclass(frozen=True)
class Add(Layer):
    """The sum of two results: ``Add()(a, b)``.

    Where one has size 1 in a dimension it is repeated.
    """

    _kind = "add"
    _sources = 2


@dataclass(frozen=True)
class Multiply(Layer):
    """The product of two results, element by element, as Add."""

    _kind = "multiply"
    _sources = 2


@dataclass(frozen=True)
class Concat(Layer):
    """Two results side by side, in their first dimension (channels)."""

    _kind = "concat"
    _sources = 2


@dataclass(frozen=True)
class Scale(Layer):
    """x times ``factor``."""

    factor: float
    _kind = "scale"

    def _fields(self) -> Dict[str, Any]:
        return {"rate": self.factor}


@dataclass(frozen=True)
class CrossEntropy(Layer):
    """The softmax cross-entropy of logits and labels, a value an example.

    ``smoothing`` spreads that share of the target over all classes.
    """

    smoothing: float = 0.0
    _kind = "cross_entropy"

    def _fields(self) -> Dict[str, Any]:
        return {"rate": self.smoothing}


@dataclass(frozen=True)
class SquaredError(Layer):
    """The mean squared error of a result and the labels, a value an example.

    Labels that are classes count as 1 at the class and 0 elsewhere.
    """

    _kind = "squared_error"


@dataclass(frozen=True)
class Huber(Layer):
    """As SquaredError, halved, but a line for errors beyond ``delta``."""

    delta: float = 1.0
    _kind = "huber"

    def _fields(self) -> Dict[str, Any]:
        return {"rate": self.delta}


@dataclass(frozen=True)
class BinaryCrossEntropy(Layer):
    """The cross-entropy of each output's sigmoid, as SquaredError counts labels."""

    _kind = "binary_cross_entropy"


@dataclass(frozen=True)
class Mean(Layer):
    """The mean of all elements: a scalar."""

    _kind = "mean"


@dataclass(frozen=True)
class Sum(Layer):
    """The sum of all elements: a scalar."""

    _kind = "sum"


_KINDS = {
    kind.__name__: kind
    for kind in globals().copy().values()
    if isinstance(kind, type) and issubclass(kind, Layer) and kind._kind
}


def _in_order(ends: Sequence[Node]) -> List[Node]:
    """The nodes with a layer that the ends need, each after its sources."""
    order: Dict[int, Node] = {}
    pending = [(end, False) for end in reversed(ends)]
    while pending:
        node, ready = pending.pop()
        if node.layer is None or id(node) in order:
            continue
        if ready:
            order[id(node)] = node
            continue
        pending.append((node, True))
        pending.extend((source, False) for source in reversed(node.sources))
    return list(order.values())


@dataclass(frozen=True, eq=False)
class Network:
    """A graph of layers as a model.

    ``logits`` is the result with a number for each class.  ``loss`` is the
    scalar to be minimized; by default the mean of the cross-entropy of the
    logits.  ``name`` stands in records; it cannot be that of a built-in model.
    """

    logits: Node
    loss: Optional[Node] = None
    name: str = "network"
    _layers: Tuple[Tuple[Layer, Tuple[int, ...]], ...] = field(
        init=False, repr=False, default=()
    )
    _ends: Tuple[int, int] = field(init=False, repr=False, default=(0, 0))

    def __post_init__(self) -> None:
        ends = [self.logits] + ([] if self.loss is None else [self.loss])
        for end in ends:
            if not isinstance(end, Node) or end.layer is None:
                raise TypeError("a network ends in the result of a layer")
        order = _in_order(ends)
        number = {id(node): i + 1 for i, node in enumerate(order)}
        rows = tuple(
            (
                node.layer,
                tuple(number.get(id(s), _library.LAYER_INPUT) for s in node.sources),
            )
            for node in order
            if node.layer is not None
        )
        loss = 0 if self.loss is None else number[id(self.loss)]
        object.__setattr__(self, "_layers", rows)
        object.__setattr__(self, "_ends", (number[id(self.logits)], loss))

    def to_dict(self) -> Dict[str, Any]:
        """The network as what JSON can hold; from_dict reads it."""
        return {
            "name": self.name,
            "layers": [
                {"kind": type(layer).__name__, "sources": list(sources)}
                | {k: v for k, v in asdict(layer).items() if v is not None}
                for layer, sources in self._layers
            ],
            "logits": self._ends[0],
            "loss": self._ends[1],
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Network":
        """A network from to_dict's result; ValueError where it is not one."""
        try:
            nodes = _nodes_of(values["layers"])
            loss = values["loss"]
            return Network(
                nodes[values["logits"]],
                nodes[loss] if loss else None,
                str(values["name"]),
            )
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"not a network: {error!r}") from error

    def __reduce__(self) -> Any:
        return Network.from_dict, (self.to_dict(),)

    def _make(self) -> "_library.Handle":
        """The network as a pl_net."""
        net = _library.make("pl_net_new", "pl_net_free", self.name.encode())
        lib = _library.library()
        for layer, sources in self._layers:
            lib.pl_net_add(net, ctypes.byref(_to_struct(layer, sources)))
        lib.pl_net_status(net)
        logits, loss = self._ends
        lib.pl_net_set_logits(net, logits)
        if loss:
            lib.pl_net_set_loss(net, loss)
        return net


def _nodes_of(rows: Iterable[Mapping[str, Any]]) -> List[Node]:
    """The nodes of to_dict's layers, from number 1; number 0 is the input."""
    nodes = [Input()]
    for row in rows:
        values = dict(row)
        layer = _KINDS[values.pop("kind")]
        sources = [0 if s == _library.LAYER_INPUT else s for s in values.pop("sources")]
        if any(not 0 <= source < len(nodes) for source in sources):
            raise IndexError(f"sources {sources} of layer {len(nodes)}")
        nodes.append(layer(**values)(*(nodes[source] for source in sources)))
    return nodes


def _to_struct(layer: Layer, sources: Sequence[int]) -> "_library.Layer":
    struct = _library.Layer(
        kind=_library.LAYER_KINDS.index(layer._kind), src=sources[0]
    )
    if len(sources) > 1:
        struct.other = sources[1]
    for name, value in layer._fields().items():
        if value is None:
            continue
        try:
            setattr(struct, name, value.encode() if name == "name" else value)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"{type(layer).__name__}: {value!r} for {name}: {error}"
            ) from None
    return struct


def Sequential(layers: Sequence[Layer], name: str = "sequential") -> Network:
    """A network whose layers take each other's results, in their order."""
    if not layers:
        raise ValueError("Sequential needs at least one layer")
    node = Input()
    for number, layer in enumerate(layers, 1):
        if not isinstance(layer, Layer):
            raise TypeError(
                f"layer {number} is {layer!r}, expected a layer, like Dense(10) or ReLU()"
            )
        node = layer(node)
    return Network(node, name=name)
