"""Paceline: distributed model training in C, from Python.

    import paceline
    run = paceline.train("softmax", (x, y), test_data=(x2, y2), epochs=3)
    run.predict(x2)

Models, data, runs and errors are here; the estimators for scikit-learn,
SoftmaxClassifier and others, are imported when they are first used.
"""

from __future__ import annotations

from typing import Any, List

from . import layers
from ._data import Data
from ._errors import (
    Error,
    FormatError,
    InputError,
    Interrupted,
    MissingError,
    UsageError,
)
from ._run import Run, Series
from ._train import Progress, train
from ._version import __version__
from .layers import *  # noqa: F403

_ESTIMATORS = (
    "NetworkClassifier",
    "NetworkRegressor",
    "SoftmaxClassifier",
    "SparseLogisticRegression",
)

__all__ = [
    "Data",
    "Error",
    "FormatError",
    "InputError",
    "Interrupted",
    "MissingError",
    "Progress",
    "Run",
    "Series",
    "UsageError",
    "__version__",
    "train",
    *layers.__all__,
    *_ESTIMATORS,
]


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'paceline' has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted(__all__)
