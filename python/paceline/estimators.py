"""Estimators for scikit-learn: they go into Pipeline, GridSearchCV and joblib.

``fit`` takes ``sample_weight``, classifiers ``class_weight`` (a dict or
"balanced"); only the ratios of weights matter.

A linear model keeps its weights, a network its run in a temporary folder;
pickling takes either along.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.extmath import safe_sparse_dot
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.class_weight import compute_class_weight
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_is_fitted,
        validate_data,
    )
except ImportError as error:
    raise ImportError(
        "the estimators need scikit-learn 1.6 or newer: "
        "pip install 'paceline[sklearn]'"
    ) from error

from ._data import Data
from ._run import Run
from ._train import train
from .layers import Dense, Network, ReLU, Sequential

__all__ = [
    "NetworkClassifier",
    "NetworkRegressor",
    "SoftmaxClassifier",
    "SparseLogisticRegression",
]

# A fit tests, saves and records nothing on its way.
_SILENT: Dict[str, Any] = {
    "eval_every": "never",
    "checkpoint_every": "never",
    "record_every": "never",
    "monitor_every": 0,
}

_SEEDS = 2**31 - 1
_WEIGHTS, _BIAS = "sparse/weights", "sparse/bias"


def _expit(values: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * values))


def _softmax(values: np.ndarray) -> np.ndarray:
    shifted = np.exp(values - values.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


class _Trained(BaseEstimator):
    """What the estimators share: flags of a fit."""

    lr: Optional[float]
    batch: int
    epochs: int
    optimizer: str
    threads: Optional[int]
    random_state: Any
    flags: Optional[Mapping[str, Any]]

    def _flags(self, rows: int) -> Dict[str, Any]:
        seed = check_random_state(self.random_state).randint(_SEEDS)
        chosen = {
            "lr": self.lr,
            "batch": min(self.batch, rows),
            "epochs": self.epochs,
            "optimizer": self.optimizer,
            "threads": self.threads,
            "seed": int(seed),
        }
        return {**_SILENT, **chosen, **(self.flags or {})}


class _Estimator(ClassifierMixin, _Trained):
    """What the classifiers share: classes."""

    def _encode(self, y: Any) -> np.ndarray:
        """Set classes_; the number of each label's class."""
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has 1 class, {self.classes_[0]}; expected at least 2"
            )
        return numbers.astype(np.int32)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return self.classes_[(scores > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        raise NotImplementedError


def _weights(
    sample_weight: Any, X: Any, classes: Any, y: Any, class_weight: Any
) -> Optional[np.ndarray]:
    """How much each row counts: its own weight times that of its class.

    Their mean is 1, so that they do not change the length of a step.
    """
    found = None
    if sample_weight is not None:
        found = _check_sample_weight(
            sample_weight, X, dtype=np.float32, ensure_non_negative=True
        )
    if class_weight is not None:
        each = compute_class_weight(class_weight, classes=classes, y=y)
        each = each[np.searchsorted(classes, y)].astype(np.float32)
        found = each if found is None else found * each
    if found is None:
        return None
    mean = found.mean()
    if mean == 0:
        raise ValueError("all weights are 0; expected one above 0")
    return found / mean


def _binary_scores(logits: np.ndarray) -> np.ndarray:
    """As scikit-learn wants it: of two classes the difference."""
    return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits


class SoftmaxClassifier(_Estimator):
    """Softmax regression on dense rows: the model ``softmax``.

    Parameters are flags of ``paceline train``; ``flags`` holds further ones.
    Attributes: ``classes_``, ``coef_`` [classes, features], ``intercept_``
    [classes].  Features are taken as they are; scale them first.
    """

    def __init__(
        self,
        *,
        lr: Optional[float] = 0.1,
        batch: int = 32,
        epochs: int = 100,
        optimizer: str = "sgd",
        weight_decay: float = 0.0,
        class_weight: Any = None,
        threads: Optional[int] = None,
        random_state: Any = None,
        flags: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.lr = lr
        self.batch = batch
        self.epochs = epochs
        self.optimizer = optimizer
        self.weight_decay = weight_decay
        self.class_weight = class_weight
        self.threads = threads
        self.random_state = random_state
        self.flags = flags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SoftmaxClassifier":
        """Train on rows X and labels y."""
        X, y = validate_data(self, X, y, dtype=np.float32, order="C")
        numbers = self._encode(y)
        weights = _weights(sample_weight, X, self.classes_, y, self.class_weight)
        flags = {"weight_decay": self.weight_decay, **self._flags(len(X))}
        data = Data.dense(X, numbers, weights=weights, classes=len(self.classes_))
        run = train("softmax", data, progress=False, **flags)
        self.coef_, self.intercept_ = _matrix_and_bias(run.weights)
        return self

    def _logits(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, reset=False)
        return X @ self.coef_.T + self.intercept_

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits [rows, classes]; of two classes their difference [rows]."""
        return _binary_scores(self._logits(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [rows, classes]."""
        return _softmax(self._logits(X))


def _matrix_and_bias(weights: Dict[str, np.ndarray]) -> Tuple[np.ndarray, np.ndarray]:
    """The two parameters of a linear model, whatever they are called."""
    matrix = next(v for k, v in weights.items() if k.endswith("weights"))
    bias = next(v for k, v in weights.items() if k.endswith("bias"))
    return matrix, bias


class SparseLogisticRegression(_Estimator):
    """Logistic regression on ``scipy.sparse`` rows: the model ``sparse``.

    CSR of float32 is read in place.  Several classes are trained one against
    the rest.  ``l1`` and ``l2`` act on the features of a batch only; ``l1``
    needs sgd, adagrad or ftrl.  Attributes: ``classes_``, ``coef_`` [1 or
    classes, features], ``intercept_``.
    """

    def __init__(
        self,
        *,
        lr: Optional[float] = None,
        batch: int = 32,
        epochs: int = 20,
        optimizer: str = "adagrad",
        l1: float = 0.0,
        l2: float = 0.0,
        class_weight: Any = None,
        threads: Optional[int] = None,
        random_state: Any = None,
        flags: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.lr = lr
        self.batch = batch
        self.epochs = epochs
        self.optimizer = optimizer
        self.l1 = l1
        self.l2 = l2
        self.class_weight = class_weight
        self.threads = threads
        self.random_state = random_state
        self.flags = flags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> "SparseLogisticRegression":
        """Train on sparse (or dense) rows X and labels y."""
        X, y = validate_data(self, X, y, dtype=np.float32, accept_sparse="csr")
        numbers = self._encode(y)
        weights = _weights(sample_weight, X, self.classes_, y, self.class_weight)
        return self._train(X, numbers, weights, self._sparse_flags(X), None)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "SparseLogisticRegression":
        """Go on with one pass over these rows.

        The first call needs all ``classes``.  The optimizer starts from its
        beginning each time, which ftrl cannot: its weights follow from its
        state.
        """
        if self.optimizer == "ftrl":
            raise ValueError(
                "partial_fit with optimizer='ftrl': its weights follow from a "
                "state that is not kept; use sgd or adagrad"
            )
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("the first partial_fit needs all classes")
        X, y = validate_data(
            self, X, y, dtype=np.float32, accept_sparse="csr", reset=first
        )
        if first:
            self._encode(classes)
        numbers = np.searchsorted(self.classes_, y)
        known = np.minimum(numbers, len(self.classes_) - 1)
        if not np.array_equal(self.classes_[known], y):
            raise ValueError(
                f"y has classes that are not among {self.classes_.tolist()}"
            )
        if self.class_weight == "balanced":
            raise ValueError(
                "partial_fit with class_weight='balanced': it knows these rows "
                "only; give a dict of weights"
            )
        weights = _weights(sample_weight, X, self.classes_, y, self.class_weight)
        flags = dict(self._sparse_flags(X), epochs=1)
        start = None if first else (self.coef_, self.intercept_)
        return self._train(X, numbers, weights, flags, start)

    def _sparse_flags(self, X: Any) -> Dict[str, Any]:
        l1 = {"l1": self.l1} if self.l1 else {}
        return {"l2": self.l2, **l1, **self._flags(X.shape[0])}

    def _train(
        self,
        X: Any,
        numbers: np.ndarray,
        weights: Optional[np.ndarray],
        flags: Mapping[str, Any],
        start: Optional[Tuple[np.ndarray, np.ndarray]],
    ) -> "SparseLogisticRegression":
        """One training for each target, from the weights of ``start``."""
        fits = []
        for i, labels in enumerate(self._targets(numbers)):
            initial = {}
            if start is not None:
                initial = {_WEIGHTS: start[0][i], _BIAS: start[1][i : i + 1]}
            fits.append(_fit_sparse(X, labels, weights, flags, initial))
        self.coef_ = np.stack([weights for weights, _ in fits])
        self.intercept_ = np.array([bias for _, bias in fits], np.float32)
        return self

    def _targets(self, numbers: np.ndarray) -> Iterator[np.ndarray]:
        """Labels 0 and 1 of each training."""
        count = len(self.classes_)
        for number in [1] if count == 2 else range(count):
            yield (numbers == number).astype(np.int32)

    def decision_function(self, X: Any) -> np.ndarray:
        """The logit of each class [rows, classes]; of two [rows]."""
        check_is_fitted(self)
        X = validate_data(
            self, X, dtype=np.float32, accept_sparse="csr", reset=False
        )
        scores = np.asarray(safe_sparse_dot(X, self.coef_.T)) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [rows, classes]; of several classes normalized."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = _expit(scores)
            return np.stack([1 - positive, positive], axis=1)
        shares = _expit(scores)
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)


def _fit_sparse(
    X: Any,
    labels: np.ndarray,
    weights: Optional[np.ndarray],
    flags: Mapping[str, Any],
    initial: Mapping[str, np.ndarray],
) -> Tuple[np.ndarray, float]:
    from scipy.sparse import csr_array

    matrix = X if hasattr(X, "indptr") else csr_array(X)
    data = Data.csr(matrix, labels, weights=weights)
    run = train("sparse", data, progress=False, initial=initial, **flags)
    coefficients, bias = _matrix_and_bias(run.weights)
    return coefficients, float(bias[0])


class NetworkClassifier(_Estimator):
    """A network of layers on dense rows.

    ``model`` is a Network, Sequential([...]), or the name of a built-in model;
    by default one hidden layer of 100.  ``shape`` is that of an example where
    the rows of X are flat: ``(28, 28)``.  Attributes: ``classes_`` and
    ``run_``, the run without its records.
    """

    def __init__(
        self,
        model: Union[Network, str, None] = None,
        *,
        shape: Optional[Tuple[int, ...]] = None,
        lr: Optional[float] = 0.001,
        batch: int = 32,
        epochs: int = 20,
        optimizer: str = "adam",
        class_weight: Any = None,
        threads: Optional[int] = None,
        random_state: Any = None,
        flags: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.model = model
        self.shape = shape
        self.lr = lr
        self.batch = batch
        self.epochs = epochs
        self.optimizer = optimizer
        self.class_weight = class_weight
        self.threads = threads
        self.random_state = random_state
        self.flags = flags

    def _shaped(self, X: np.ndarray) -> np.ndarray:
        return X if self.shape is None else X.reshape(len(X), *self.shape)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NetworkClassifier":
        """Train on rows X and labels y."""
        X, y = validate_data(self, X, y, dtype=np.float32, order="C")
        numbers = self._encode(y)
        weights = _weights(sample_weight, X, self.classes_, y, self.class_weight)
        model = self.model
        if model is None:
            model = Sequential([Dense(100), ReLU(), Dense()], name="classifier")
        data = Data.dense(
            self._shaped(X), numbers, weights=weights, classes=len(self.classes_)
        )
        self.run_ = train(model, data, progress=False, **self._flags(len(X)))
        return self

    def _answers(self, X: Any, ask: Callable[[Run, np.ndarray], np.ndarray]) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        return ask(self.run_, self._shaped(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits [rows, classes]; of two classes their difference [rows]."""
        return _binary_scores(self._answers(X, Run.logits))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities [rows, classes]."""
        return self._answers(X, Run.predict_proba)


class NetworkRegressor(RegressorMixin, _Trained):
    """A network of layers that predicts one or several numbers of a row.

    ``model`` is a Network, Sequential([...]), or the name of a built-in model;
    by default one hidden layer of 100.  Its last layer has an output for each
    number.  ``loss`` is ``"squared-error"`` or ``"huber"``.  Targets are taken
    as they are; scale large ones first (TransformedTargetRegressor).
    Attribute: ``run_``, the run without its records.
    """

    def __init__(
        self,
        model: Union[Network, str, None] = None,
        *,
        shape: Optional[Tuple[int, ...]] = None,
        loss: str = "squared-error",
        lr: Optional[float] = 0.01,
        batch: int = 32,
        epochs: int = 50,
        optimizer: str = "adam",
        threads: Optional[int] = None,
        random_state: Any = None,
        flags: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.model = model
        self.shape = shape
        self.loss = loss
        self.lr = lr
        self.batch = batch
        self.epochs = epochs
        self.optimizer = optimizer
        self.threads = threads
        self.random_state = random_state
        self.flags = flags

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _shaped(self, X: np.ndarray) -> np.ndarray:
        return X if self.shape is None else X.reshape(len(X), *self.shape)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NetworkRegressor":
        """Train on rows X and numbers y, [rows] or [rows, numbers]."""
        X, y = validate_data(
            self, X, y, dtype=np.float32, order="C", multi_output=True, y_numeric=True
        )
        model = self.model
        if model is None:
            model = Sequential([Dense(100), ReLU(), Dense()], name="regressor")
        weights = _weights(sample_weight, X, None, None, None)
        data = Data.dense(self._shaped(X), targets=y, weights=weights)
        flags = {"loss": self.loss, **self._flags(len(X))}
        self.run_ = train(model, data, progress=False, **flags)
        self._flat = y.ndim == 1
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The numbers of each row, of the shape that y had."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float32, order="C", reset=False)
        numbers = self.run_.logits(self._shaped(X)).astype(np.float64)
        return numbers[:, 0] if self._flat else numbers
