"""Examples: from arrays, sparse matrices, Arrow tables and functions.

float32 and uint8 arrays and CSR matrices of float32 are read where they are.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _arrow, _library
from ._errors import UsageError

__all__ = ["Data"]

Maker = Callable[[np.ndarray], Tuple[Any, Any]]

_DTYPES = {
    np.dtype(np.float32): _library.FLOAT32,
    np.dtype(np.uint8): _library.UINT8,
}


def _address(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else array.ctypes.data


def _plain(values: Any) -> np.ndarray:
    """An array whose every element counts."""
    array = np.asarray(values)
    if np.ma.is_masked(values):
        raise UsageError("a masked array has missing values; fill them: array.filled(x)")
    return array


def _check_whole(array: np.ndarray) -> None:
    if array.dtype.kind in "iub":
        return
    if array.dtype.kind != "f":
        raise UsageError(
            f"labels are of {array.dtype}, expected whole numbers from 0; number "
            "the classes: numpy.unique(labels, return_inverse=True)[1]"
        )
    wrong = np.flatnonzero(array != np.floor(array))  # NaN is not itself, either
    if len(wrong):
        raise UsageError(
            f"row {wrong[0]} has the label {array[wrong[0]]}, expected whole numbers "
            "from 0; to predict numbers, give loss='squared-error'"
        )


def _labels(labels: Any, rows: int) -> Optional[np.ndarray]:
    """Labels as contiguous int32; they must be whole numbers."""
    if labels is None:
        return None
    array = _arrow.column(labels) if _arrow.is_arrow(labels) else _plain(labels)
    if array.shape == (rows, 1):
        array = array[:, 0]
    if array.shape != (rows,):
        one_hot = array.ndim == 2 and array.shape[0] == rows
        raise UsageError(
            f"labels have the shape {array.shape}, expected ({rows},): one for each "
            f"example{'; of one-hot labels: labels.argmax(1)' if one_hot else ''}"
        )
    _check_whole(array)
    wrong = np.flatnonzero((array < 0) | (array > np.iinfo(np.int32).max))
    if len(wrong):
        raise UsageError(
            f"row {wrong[0]} has the label {array[wrong[0]]}, expected whole numbers "
            "from 0 to 2147483647; number the classes: "
            "numpy.unique(labels, return_inverse=True)[1]"
        )
    return np.ascontiguousarray(array, dtype=np.int32)


def _targets(targets: Any, rows: int) -> Optional[np.ndarray]:
    """Numbers to be predicted as contiguous float32, [rows, numbers]."""
    if targets is None:
        return None
    array = (
        _arrow.column(targets) if _arrow.is_arrow(targets) else _plain(targets)
    )
    if array.ndim not in (1, 2) or array.shape[0] != rows or array.size == 0:
        raise UsageError(
            f"targets have the shape {array.shape}, expected ({rows},) or "
            f"({rows}, numbers)"
        )
    if array.dtype.kind not in "fiub":
        raise UsageError(f"targets are of {array.dtype}, expected numbers")
    return np.ascontiguousarray(array.reshape(rows, -1), dtype=np.float32)


def _weights(weights: Any, rows: int) -> Optional[np.ndarray]:
    """How much each example counts, as contiguous float32."""
    if weights is None:
        return None
    array = np.ascontiguousarray(weights, dtype=np.float32)
    if array.shape != (rows,):
        raise UsageError(
            f"weights have the shape {array.shape}, expected ({rows},): one for "
            "each example"
        )
    return array


def _rows_of(features: Any) -> np.ndarray:
    """An array whose rows are contiguous, of a type that is read in place."""
    array = _plain(features)
    if array.ndim < 2 or array.shape[0] == 0:
        raise UsageError(
            f"examples of the shape {array.shape}, expected [rows, ...] with "
            "at least one row"
        )
    if array.dtype.kind not in "fiub":
        raise UsageError(f"examples are of {array.dtype}, expected numbers")
    if array.dtype not in _DTYPES or not array.dtype.isnative:
        array = array.astype(np.float32)
    row_is_whole = array[0].flags.c_contiguous and array.strides[0] > 0
    if not row_is_whole or array.strides[0] % array.itemsize:
        array = np.ascontiguousarray(array)
    return array


class Data:
    """Examples with their labels, for any number of trainings and tests.

    Make one with :meth:`dense`, :meth:`csr`, :meth:`arrow`, :meth:`parquet` or
    :meth:`from_function`; wherever a Data is expected, an array, a sparse
    matrix, an Arrow table or a pair (examples, labels) is fine, too.  The
    arrays are borrowed and must not change while they are used.
    """

    def __init__(self, handle: "_library.Handle", keep: Sequence[Any]) -> None:
        self._handle = handle
        self._keep = keep
        self._failed: List[BaseException] = []
        info = _library.DataInfo()
        _library.library().pl_data_describe(handle, ctypes.byref(info))
        self.rows: int = info.rows
        self.columns: int = info.columns
        self.example: Tuple[int, ...] = info.example.tuple()
        self.classes: int = info.classes
        self.sparse: bool = info.sparse
        self.numeric: bool = info.numeric

    def __len__(self) -> int:
        return self.rows

    def __repr__(self) -> str:
        kind = f"csr, {self.columns} columns" if self.sparse else f"{self.example}"
        labels = f"{self.classes} {'targets' if self.numeric else 'classes'}"
        return f"Data({self.rows} examples, {kind}, {labels})"

    @staticmethod
    def dense(
        features: Any,
        labels: Any = None,
        *,
        targets: Any = None,
        weights: Any = None,
        scale: Optional[float] = None,
        classes: Optional[int] = None,
        name: str = "memory",
    ) -> "Data":
        """Examples of a fixed shape: an array [rows, ...].

        float32 and uint8 are read in place, other numbers are copied to
        float32.  An element x reads as ``scale * x``; the default is 1, and
        1/255 for uint8.  Labels are whole numbers from 0.  ``targets``,
        instead of labels, are numbers to be predicted: [rows] or [rows,
        numbers].  ``weights``, one of 0 or more for each row, say how many
        times a row counts in training; tests count all alike.
        """
        array = _rows_of(features)
        kept = _labels(labels, len(array))
        numbers = _targets(targets, len(array))
        counts = _weights(weights, len(array))
        struct = _library.DataDense(
            features=_address(array),
            dtype=_DTYPES[array.dtype],
            rows=len(array),
            example=_library.Shape.of(array.shape[1:]),
            stride=array.strides[0] // array.itemsize,
            scale=scale or 0,
            labels=_address(kept),
            classes=classes or 0,
            targets=_address(numbers),
            target_count=0 if numbers is None else numbers.shape[1],
            weights=_address(counts),
            name=name.encode(),
        )
        handle = _library.make(
            "pl_data_from_dense", "pl_data_free", ctypes.byref(struct)
        )
        return Data(handle, (array, kept, numbers, counts))

    @staticmethod
    def csr(
        matrix: Any, labels: Any = None, *, weights: Any = None, name: str = "memory"
    ) -> "Data":
        """Sparse examples: a ``scipy.sparse`` matrix or array.

        CSR of float32 is read in place, other formats and numbers are
        converted.  Labels are 0 and 1; ``weights`` as of dense rows.
        """
        matrix = matrix if matrix.format == "csr" else matrix.tocsr()
        rows, columns = matrix.shape
        indptr, indices = matrix.indptr, matrix.indices
        if indptr.dtype != indices.dtype or indptr.dtype.name not in ("int32", "int64"):
            indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
        indptr, indices = np.ascontiguousarray(indptr), np.ascontiguousarray(indices)
        values = np.ascontiguousarray(matrix.data, dtype=np.float32)
        kept, counts = _labels(labels, rows), _weights(weights, rows)
        struct = _library.DataCsr(
            rows=rows,
            columns=columns,
            index_bits=8 * indptr.itemsize,
            indptr=_address(indptr),
            indices=_address(indices),
            values=_address(values),
            labels=_address(kept),
            weights=_address(counts),
            name=name.encode(),
        )
        handle = _library.make("pl_data_from_csr", "pl_data_free", ctypes.byref(struct))
        return Data(handle, (indptr, indices, values, kept, counts))

    @staticmethod
    def arrow(
        table: Any,
        label: Optional[str] = None,
        *,
        numeric: bool = False,
        **options: Any,
    ) -> "Data":
        """Examples from anything that exports the Arrow C data interface.

        Of pyarrow, polars, pandas: every column but ``label`` is a feature, a
        number or a fixed-size list of numbers.  They are gathered to rows once:
        of float32, or of uint8 where the only feature is a list of bytes.
        ``numeric``: the label is a number to be predicted.
        """
        features, labels = _arrow.examples(table, label)
        return Data.dense(features, **_named(labels, numeric), **options)

    @staticmethod
    def parquet(
        path: Any,
        label: Optional[str] = None,
        *,
        numeric: bool = False,
        **options: Any,
    ) -> "Data":
        """Examples from a Parquet file, by pyarrow, a batch of rows at a time."""
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError as error:
            raise ImportError("Parquet needs pyarrow: pip install pyarrow") from error
        with parquet.ParquetFile(path) as file:
            batches = pyarrow.RecordBatchReader.from_batches(
                file.schema_arrow, file.iter_batches()
            )
            rows = file.metadata.num_rows
            features, labels = _arrow.examples(batches, label, rows)
        return Data.dense(features, **_named(labels, numeric), **options)

    @staticmethod
    def from_function(
        make: Maker,
        rows: int,
        example: Sequence[int],
        classes: int,
        *,
        name: str = "function",
    ) -> "Data":
        """Examples that ``make(numbers)`` makes when they are needed.

        ``numbers`` is an array of example numbers below ``rows``; the result
        is a pair: their features ``[len(numbers), *example]`` and labels.  The
        same number must give the same example each time.
        """
        width = int(np.prod(example))
        failed: List[BaseException] = []

        def fill(
            _context: Any, index: Any, count: int, features: Any, labels: Any
        ) -> int:
            try:
                values, classes_of = make(np.ctypeslib.as_array(index, (count,)).copy())
                out = np.ctypeslib.as_array(features, (count, width))
                out[:] = np.asarray(values).reshape(count, width)
                np.ctypeslib.as_array(labels, (count,))[:] = classes_of
            except BaseException as error:  # it cannot pass through C
                failed.append(error)
                return 1
            return 0

        callback = _library.DataMake(fill)
        struct = _library.DataCallback(
            make=callback,
            rows=rows,
            example=_library.Shape.of(tuple(example)),
            classes=classes,
            name=name.encode(),
        )
        handle = _library.make(
            "pl_data_from_callback", "pl_data_free", ctypes.byref(struct)
        )
        data = Data(handle, (callback,))
        data._failed = failed
        return data

    def _raise_failure(self) -> None:
        """Raise what a function of the caller raised, if it did."""
        if self._failed:
            raise self._failed.pop(0)


def _named(labels: Any, numeric: bool) -> Dict[str, Any]:
    """Labels as the argument of Data.dense that they are."""
    return {"targets" if numeric else "labels": labels}


def as_data(
    value: Any, label: Optional[str] = None, numeric: bool = False
) -> Data:
    """Whatever examples come as: a Data; ``numeric``: labels are numbers."""
    if isinstance(value, Data):
        return value
    labels = None
    if isinstance(value, tuple) and len(value) == 2:
        value, labels = value
    if isinstance(value, (str, Path)):
        raise TypeError(
            f"examples are the text {str(value)!r}, expected an array, a matrix or a "
            "table; sources are for train and evaluate, and for `paceline predict`"
        )
    if label is not None and not _arrow.is_arrow(value):
        raise TypeError(
            "label names a column of an Arrow table; labels of "
            f"{type(value).__name__} come as a pair: (examples, labels)"
        )
    if hasattr(value, "tocsr") and hasattr(value, "format"):
        return Data.csr(value, labels)
    if _arrow.is_arrow(value):
        features, column = _arrow.examples(value, label)
        labels = column if labels is None else labels
        return Data.dense(features, **_named(labels, numeric))
    return Data.dense(value, **_named(labels, numeric))

