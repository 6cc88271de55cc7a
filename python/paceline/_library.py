"""The shared library: where it is found, its structs and its functions.

The declarations follow include/paceline/*.h.  Every struct may be zeroed
first; a field that is 0 has its default.
"""

from __future__ import annotations

import atexit
import ctypes
import ctypes.util
import logging
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_uint32,
    c_void_p,
)
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterator, Sequence

from ._errors import fail
from ._version import __version__

MAX_RANK = 6
FLOAT32, UINT8 = 0, 1
STATE_RUNNING, STATE_ENDED = 1, 2
PROBABILITIES, LOGITS = 0, 1
LAYER_INPUT = -1

# The kinds of pl_layer_kind, in their order.
LAYER_KINDS = (
    "dense",
    "conv2d",
    "relu",
    "tanh",
    "sigmoid",
    "max_pool",
    "avg_pool",
    "flatten",
    "reshape",
    "dropout",
    "add",
    "scale",
    "cross_entropy",
    "mean",
    "sum",
    "multiply",
    "concat",
    "leaky_relu",
    "gelu",
    "softmax",
    "batch_norm",
    "layer_norm",
    "global_avg_pool",
    "embedding",
    "squared_error",
    "huber",
    "binary_cross_entropy",
)


class Shape(Structure):
    _fields_ = [("rank", c_int), ("dim", c_int64 * MAX_RANK)]

    @classmethod
    def of(cls, dims: Sequence[int]) -> "Shape":
        if len(dims) > MAX_RANK - 1:
            raise ValueError(
                f"a shape of {len(dims)} dimensions: {tuple(dims)}; "
                f"expected at most {MAX_RANK - 1}"
            )
        return cls(len(dims), (c_int64 * MAX_RANK)(*dims))

    def tuple(self) -> "tuple[int, ...]":
        return tuple(self.dim[: self.rank])


class DataDense(Structure):
    _fields_ = [
        ("features", c_void_p),
        ("dtype", c_int32),
        ("rows", c_int64),
        ("example", Shape),
        ("stride", c_int64),
        ("scale", c_float),
        ("labels", c_void_p),
        ("classes", c_int32),
        ("targets", c_void_p),
        ("target_count", c_int32),
        ("weights", c_void_p),
        ("name", c_char_p),
        ("copy", c_bool),
    ]


class DataCsr(Structure):
    _fields_ = [
        ("rows", c_int64),
        ("columns", c_int64),
        ("index_bits", c_int32),
        ("indptr", c_void_p),
        ("indices", c_void_p),
        ("values", c_void_p),
        ("labels", c_void_p),
        ("weights", c_void_p),
        ("name", c_char_p),
        ("copy", c_bool),
    ]


DataMake = CFUNCTYPE(
    c_int, c_void_p, POINTER(c_uint32), c_int64, POINTER(c_float), POINTER(c_int32)
)


class DataCallback(Structure):
    _fields_ = [
        ("make", DataMake),
        ("context", c_void_p),
        ("rows", c_int64),
        ("example", Shape),
        ("classes", c_int32),
        ("name", c_char_p),
    ]


class DataInfo(Structure):
    _fields_ = [
        ("rows", c_int64),
        ("columns", c_int64),
        ("example", Shape),
        ("classes", c_int32),
        ("sparse", c_bool),
        ("labelled", c_bool),
        ("numeric", c_bool),
    ]


class Layer(Structure):
    _fields_ = [
        ("kind", c_int32),
        ("src", c_int32),
        ("other", c_int32),
        ("name", c_char_p),
        ("units", c_int64),
        ("kernel", c_int64),
        ("stride", c_int64),
        ("pad", c_int64),
        ("width", c_int64),
        ("rate", c_double),
        ("shape", Shape),
    ]


class Progress(Structure):
    _fields_ = [
        ("state", c_int32),
        ("step", c_int64),
        ("end_step", c_int64),
        ("epoch_steps", c_int64),
        ("examples", c_int64),
        ("seconds", c_double),
        ("loss", c_double),
        ("test_loss", c_double),
        ("test_accuracy", c_double),
    ]


class PredictTensor(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("shape", Shape),
        ("values", POINTER(c_float)),
        ("count", c_int64),
    ]


class TrainOpts(Structure):
    _fields_ = [
        ("model", c_char_p),
        ("own", c_void_p),
        ("net", c_void_p),
        ("train", c_void_p),
        ("test", c_void_p),
        ("flags", c_char_p),
        ("settings", POINTER(c_char_p)),
        ("progress", c_void_p),
        ("context", c_void_p),
        ("initial", POINTER(PredictTensor)),
        ("initial_count", c_int32),
    ]


class TrainResult(Structure):
    _fields_ = [
        ("steps", c_int64),
        ("examples", c_int64),
        ("epochs", c_double),
        ("seconds", c_double),
        ("examples_per_s", c_double),
        ("train_loss", c_double),
        ("test_loss", c_double),
        ("test_accuracy", c_double),
        ("test_auc", c_double),
        ("deterministic", c_bool),
        ("stopped_by", c_char_p),
        ("parameters_sha256", c_char_p),
        ("run", c_char_p),
        ("summary", c_char_p),
    ]


class PredictOpts(Structure):
    _fields_ = [
        ("run", c_char_p),
        ("best", c_bool),
        ("threads", c_int32),
        ("own", c_void_p),
        ("net", c_void_p),
    ]


class PredictInfo(Structure):
    _fields_ = [
        ("model", c_char_p),
        ("sparse", c_bool),
        ("example", Shape),
        ("columns", c_int64),
        ("classes", c_int32),
        ("outputs", c_int32),
        ("numeric", c_bool),
        ("step", c_int64),
        ("tensors", c_int32),
        ("elements", c_int64),
    ]


class Evaluation(Structure):
    _fields_ = [
        ("examples", c_int64),
        ("loss", c_double),
        ("accuracy", c_double),
        ("auc", c_double),
        ("precision", c_double),
        ("recall", c_double),
        ("calibration", c_double),
        ("top5_accuracy", c_double),
        ("rmse", c_double),
        ("mae", c_double),
        ("r2", c_double),
    ]


class RunSeries(Structure):
    _fields_ = [
        ("task", c_char_p),
        ("name", c_char_p),
        ("host", c_bool),
        ("count", c_int64),
        ("step", POINTER(c_double)),
        ("time", POINTER(c_double)),
        ("value", POINTER(c_double)),
    ]


class RunIncident(Structure):
    _fields_ = [
        ("time", c_double),
        ("kind", c_char_p),
        ("task", c_char_p),
        ("step", c_int64),
        ("test_loss", c_double),
        ("test_accuracy", c_double),
        ("text", c_char_p),
    ]


LogCallback = CFUNCTYPE(None, c_void_p, c_int, c_char_p)

_OUT = POINTER(c_void_p)

# Functions that return pl_status; fail() is raised when it is not PL_OK.
_CHECKED = {
    "pl_data_from_dense": [_OUT, POINTER(DataDense)],
    "pl_data_from_csr": [_OUT, POINTER(DataCsr)],
    "pl_data_from_callback": [_OUT, POINTER(DataCallback)],
    "pl_net_new": [_OUT, c_char_p],
    "pl_net_status": [c_void_p],
    "pl_net_set_logits": [c_void_p, c_int32],
    "pl_net_set_loss": [c_void_p, c_int32],
    "pl_train_start": [_OUT, POINTER(TrainOpts)],
    "pl_train_wait": [c_void_p, POINTER(TrainResult)],
    "pl_predict_open": [_OUT, POINTER(PredictOpts)],
    "pl_predict_run": [c_void_p, c_void_p, c_int32, c_void_p, c_int64],
    "pl_predict_evaluate": [c_void_p, c_void_p, c_char_p, POINTER(Evaluation)],
    "pl_predict_get": [c_void_p, c_int32, POINTER(PredictTensor)],
    "pl_predict_export": [c_void_p, c_char_p],
    "pl_run_open": [_OUT, c_char_p],
    "pl_run_series_get": [c_void_p, c_int32, POINTER(RunSeries)],
    "pl_run_incident_get": [c_void_p, c_int32, POINTER(RunIncident)],
}

_OTHERS = {
    "pl_version": (c_char_p, []),
    "pl_status_text": (c_char_p, [c_int]),
    "pl_error_sentence": (c_char_p, []),
    "pl_log_to": (None, [LogCallback, c_void_p, c_int]),
    "pl_data_describe": (None, [c_void_p, POINTER(DataInfo)]),
    "pl_data_free": (None, [c_void_p]),
    "pl_net_add": (c_int32, [c_void_p, POINTER(Layer)]),
    "pl_net_free": (None, [c_void_p]),
    "pl_train_poll": (None, [c_void_p, c_int32, POINTER(Progress)]),
    "pl_train_interrupt": (None, [c_void_p]),
    "pl_train_free": (None, [c_void_p]),
    "pl_predict_describe": (None, [c_void_p, POINTER(PredictInfo)]),
    "pl_predict_free": (None, [c_void_p]),
    "pl_run_settings": (c_char_p, [c_void_p]),
    "pl_run_summary": (c_char_p, [c_void_p]),
    "pl_run_series_count": (c_int32, [c_void_p]),
    "pl_run_incident_count": (c_int32, [c_void_p]),
    "pl_run_free": (None, [c_void_p]),
}

# Levels of pl_log_level, as logging has them.
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, 5)
_LEVEL_INFO = 2

_log = logging.getLogger("paceline")


def _log_line(_context: Any, level: int, line: bytes) -> None:
    _log.log(_LEVELS[level], "%s", line.decode("utf-8", "replace"))


_write_log = LogCallback(_log_line)


def _candidates() -> "Iterator[str]":
    """PACELINE_LIBRARY alone, or the wheel's library, then an installed one."""
    named = os.environ.get("PACELINE_LIBRARY")
    if named:
        yield named
        return
    for path in sorted(Path(__file__).parent.glob("_lib/libpaceline.so*")):
        yield str(path)
    yield "libpaceline.so.0"
    found = ctypes.util.find_library("paceline")
    if found:
        yield found


def _open() -> ctypes.CDLL:
    tried = []
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            tried.append(str(error))
    raise ImportError(
        "the shared library of paceline was not found: "
        + "; ".join(tried)
        + "; install it (make install) or name it in PACELINE_LIBRARY"
    )


def _check_version(library: ctypes.CDLL) -> None:
    version = library.pl_version().decode()
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(
            f"the library is paceline {version}, this package is for "
            f"{__version__}: install both from one version"
        )


def _checked(status: int, _function: Any, _arguments: Any) -> int:
    if status != 0:
        fail(status, text(library().pl_error_sentence()))
    return status


@lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The loaded library; failing calls raise."""
    loaded = _open()
    for name, (result, arguments) in _OTHERS.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    _check_version(loaded)
    for name, arguments in _CHECKED.items():
        function = getattr(loaded, name)
        function.restype = c_int
        function.argtypes = arguments
        function.errcheck = _checked
    loaded.pl_log_to(_write_log, None, _LEVEL_INFO)
    # No thread of the library may enter an interpreter that is going away.
    atexit.register(loaded.pl_log_to, LogCallback(), None, 0)
    return loaded


def text(value: "bytes | None") -> str:
    """A text of the library."""
    return "" if value is None else value.decode("utf-8", "replace")


class Handle:
    """An object of the library, freed once: by close() or by the collector."""

    def __init__(self, pointer: c_void_p, free: str) -> None:
        self._as_parameter_ = pointer
        self._free = getattr(library(), free)

    def close(self) -> None:
        """Free it; a later use is a TypeError of ctypes."""
        pointer = self.__dict__.pop("_as_parameter_", None)
        if pointer is not None:
            self._free(pointer)

    def __del__(self) -> None:
        self.close()


def make(function: str, free: str, *arguments: Any) -> Handle:
    """Call a function whose first argument is where the new object goes."""
    pointer = c_void_p()
    getattr(library(), function)(ctypes.byref(pointer), *arguments)
    return Handle(pointer, free)
