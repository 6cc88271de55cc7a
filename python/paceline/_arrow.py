"""Arrow tables through the C data interface: columns become rows.

The producer (pyarrow, polars, pandas, ...) hands out a stream in a PyCapsule;
no package but NumPy is needed to read it.  A table is gathered once into a
matrix, since an example's numbers must lie side by side.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ._errors import UsageError


class _Schema(Structure):
    pass


class _Array(Structure):
    pass


class _Stream(Structure):
    pass


_Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(_Schema))),
    ("dictionary", POINTER(_Schema)),
    ("release", CFUNCTYPE(None, POINTER(_Schema))),
    ("private_data", c_void_p),
]
_Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(_Array))),
    ("dictionary", POINTER(_Array)),
    ("release", CFUNCTYPE(None, POINTER(_Array))),
    ("private_data", c_void_p),
]
_Stream._fields_ = [
    ("get_schema", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Schema))),
    ("get_next", CFUNCTYPE(c_int, POINTER(_Stream), POINTER(_Array))),
    ("get_last_error", CFUNCTYPE(c_char_p, POINTER(_Stream))),
    ("release", CFUNCTYPE(None, POINTER(_Stream))),
    ("private_data", c_void_p),
]

# Primitive formats of the Arrow C data interface; bool is a bitmap.
_NUMBERS = {
    "c": np.int8,
    "C": np.uint8,
    "s": np.int16,
    "S": np.uint16,
    "i": np.int32,
    "I": np.uint32,
    "l": np.int64,
    "L": np.uint64,
    "f": np.float32,
    "g": np.float64,
}
_BOOL, _STRUCT, _FIXED_LIST = "b", "+s", "+w:"
# The beginnings of others, for messages.
_OTHERS = {"u": "text", "U": "text", "vu": "text", "z": "bytes", "Z": "bytes",
           "vz": "bytes", "td": "dates", "ts": "times", "tt": "times",
           "tD": "durations", "d:": "decimals", "+": "nested values", "n": "nulls"}


class _Column(NamedTuple):
    """What a schema says of one column."""

    name: str
    format: str  # of its numbers
    width: int  # numbers a row
    listed: bool  # a fixed-size list


def is_arrow(value: Any) -> bool:
    """Does it export the Arrow C data interface?"""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _pointer(capsule: Any, name: bytes) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = c_void_p
    get.argtypes = [ctypes.py_object, c_char_p]
    return int(get(capsule, name))


def _stream_of(capsule: Any) -> Iterator[Tuple[_Schema, _Array]]:
    """The batches of a stream; the capsule frees the stream."""
    stream = _Stream.from_address(_pointer(capsule, b"arrow_array_stream"))

    def check(code: int) -> None:
        if code != 0:
            why = stream.get_last_error(ctypes.byref(stream))
            raise UsageError(f"Arrow stream: {(why or b'error').decode()}")

    schema = _Schema()
    check(stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)))
    try:
        while True:
            array = _Array()
            check(stream.get_next(ctypes.byref(stream), ctypes.byref(array)))
            if not array.release:
                return
            try:
                yield schema, array
            finally:
                array.release(ctypes.byref(array))
    finally:
        schema.release(ctypes.byref(schema))


def _batches(value: Any) -> Iterator[Tuple[_Schema, _Array]]:
    """Schema and array of each batch; both are valid until the next one."""
    if hasattr(value, "__arrow_c_stream__"):
        yield from _stream_of(value.__arrow_c_stream__())
        return
    schema, array = value.__arrow_c_array__()  # the capsules free them
    yield (
        _Schema.from_address(_pointer(schema, b"arrow_schema")),
        _Array.from_address(_pointer(array, b"arrow_array")),
    )


def _describe(schema: _Schema) -> _Column:
    name = (schema.name or b"").decode()
    text = schema.format.decode()
    width, listed = 1, text.startswith(_FIXED_LIST)
    if listed:
        width = int(text[len(_FIXED_LIST) :])
        text = schema.children[0].contents.format.decode()
    if schema.dictionary or (text not in _NUMBERS and text != _BOOL):
        kinds = (kind for begin, kind in _OTHERS.items() if text.startswith(begin))
        what = "categories" if schema.dictionary else next(kinds, "other values")
        raise TypeError(
            f"column {name!r} has {what} (Arrow format {text!r}), expected numbers, or "
            "fixed-size lists of numbers; number or drop them first"
        )
    return _Column(name, text, width, listed)


def _bytes(address: int, size: int) -> np.ndarray:
    """Memory of the producer, borrowed."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _bits(address: int, first: int, count: int) -> np.ndarray:
    """Bits first .. first+count-1 of a bitmap."""
    size = (first + count + 7) // 8
    bits = np.unpackbits(_bytes(address, size), bitorder="little")
    return bits[first : first + count]


def _check_nulls(array: _Array, first: int, count: int, name: str) -> None:
    if array.null_count == 0 or array.n_buffers == 0 or not array.buffers[0]:
        return
    missing = count - int(_bits(array.buffers[0], first, count).sum())
    if missing:
        raise UsageError(
            f"column {name!r} has {missing} missing values; fill or drop them first"
        )


def _values(array: _Array, column: _Column, first: int, count: int) -> np.ndarray:
    """The numbers of rows first .. first+count-1: [count, width], borrowed."""
    first += array.offset
    _check_nulls(array, first, count, column.name)
    if column.listed:
        array = array.children[0].contents
        first, count = first * column.width + array.offset, count * column.width
        _check_nulls(array, first, count, column.name)
    if column.format == _BOOL:
        flat = _bits(array.buffers[1], first, count)
    else:
        dtype = np.dtype(_NUMBERS[column.format])
        size = (first + count) * dtype.itemsize
        flat = _bytes(array.buffers[1], size).view(dtype)[first:]
    return flat.reshape(-1, column.width)


def column(value: Any) -> np.ndarray:
    """An Arrow array as a NumPy array."""
    parts: List[np.ndarray] = []
    for schema, array in _batches(value):
        if array.length:
            found = _values(array, _describe(schema), 0, array.length)
            parts.append(found.copy())
    if not parts:
        return np.empty(0, np.int32)
    return np.concatenate(parts)[:, 0]


class _Gatherer:
    """Collects features and labels of a table's batches as rows."""

    def __init__(self, schema: _Schema, label: Optional[str], rows: int) -> None:
        if schema.format.decode() != _STRUCT:
            raise TypeError("examples of Arrow come as a table or record batches")
        children = [schema.children[i].contents for i in range(schema.n_children)]
        names = [(child.name or b"").decode() for child in children]
        if label is not None and label not in names:
            raise UsageError(f"no column {label!r}; there are {', '.join(names)}")
        self.columns = [_describe(child) for child in children]
        self.label = names.index(label) if label is not None else -1
        features = [c for i, c in enumerate(self.columns) if i != self.label]
        if not features:
            raise UsageError("a table without columns but the label's")
        images = len(features) == 1 and features[0].listed
        kept = images and features[0].format == "C"
        self.dtype = np.uint8 if kept else np.float32
        self.width = sum(c.width for c in features)
        self.features = np.empty((rows, self.width), self.dtype)
        self.labels: List[np.ndarray] = []
        self.filled = 0

    def _room(self, count: int) -> np.ndarray:
        need = self.filled + count
        if need > len(self.features):
            grown = np.empty((max(need, 2 * self.filled), self.width), self.dtype)
            grown[: self.filled] = self.features[: self.filled]
            self.features = grown
        return self.features[self.filled : need]

    def add(self, array: _Array) -> None:
        _check_nulls(array, array.offset, array.length, "(rows)")
        out, at = self._room(array.length), 0
        for i, column in enumerate(self.columns):
            child = array.children[i].contents
            values = _values(child, column, array.offset, array.length)
            if i == self.label:
                self.labels.append(values[:, 0].copy())
            else:
                out[:, at : at + column.width] = values
                at += column.width
        self.filled += array.length

    def result(self) -> Tuple[np.ndarray, Optional[np.ndarray]]:
        labels = np.concatenate(self.labels) if self.labels else None
        return self.features[: self.filled], labels


def examples(
    table: Any, label: Optional[str], rows: int = 0
) -> Tuple[np.ndarray, Optional[np.ndarray]]:
    """Features [rows, numbers] and labels (None without ``label``).

    ``rows`` is how many are expected, where the table does not know.
    """
    gatherer: Optional[_Gatherer] = None
    for schema, array in _batches(table):
        if gatherer is None:
            rows = len(table) if hasattr(table, "__len__") else rows
            gatherer = _Gatherer(schema, label, rows)
        if array.length:
            gatherer.add(array)
    if gatherer is None or gatherer.filled == 0:
        raise UsageError("a table without rows")
    return gatherer.result()
