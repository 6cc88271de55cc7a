"""Run: what a training left in its folder, and the model it trained."""

from __future__ import annotations

import ctypes
import io
import json
import shutil
import tarfile
import tempfile
import weakref
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _library, _show
from ._data import as_data
from ._errors import UsageError
from .layers import Network

__all__ = ["Run", "Series"]

_MODEL_FILE = "network.json"
# What a run needs to predict; records of the training stay behind.
_KEPT = ("run.json", "summary.json", _MODEL_FILE, "checkpoints")


class Series(NamedTuple):
    """A value over time: of each point its step, its time and its value.

    ``step`` counts seconds where the value is that of a host.  ``time`` is in
    seconds since 1970.
    """

    step: np.ndarray
    time: np.ndarray
    value: np.ndarray


class _Folder:
    """A temporary run folder, which goes with its last user."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._end = weakref.finalize(self, shutil.rmtree, path, True)


def make_folder(run: Union[str, Path, None]) -> Tuple[Path, Optional[_Folder]]:
    """The folder of a run; without a name a temporary one and its owner."""
    if run is not None:
        return Path(run), None
    owner = _Folder(Path(tempfile.mkdtemp(prefix="paceline-")))
    return owner.path / "run", owner


def _array(pointer: Any, count: int) -> np.ndarray:
    if count == 0:
        return np.empty(0)
    return np.ctypeslib.as_array(pointer, (count,)).copy()


class Run:
    """A run folder: its settings and records, and the model it holds.

    ``Run("runs/a")`` opens any run, of Python or of the command line.  For a
    run of a C program's own model ``weights`` and ``predict`` cannot work;
    ``network`` gives the layers of a network that another program made.
    """

    def __init__(
        self,
        folder: Union[str, Path],
        *,
        network: Optional[Network] = None,
        best: bool = False,
        _owner: Optional[_Folder] = None,
    ) -> None:
        self.folder = Path(folder)
        self.network = network
        self._best = best
        self._owner = _owner
        self._predictor: Optional[_Predictor] = None
        self._series: Dict[Tuple[str, str], Series] = {}
        self._hosts: Dict[Tuple[str, str], Series] = {}
        self._read()
        kept = self.folder / _MODEL_FILE
        if network is None and kept.is_file():
            self.network = Network.from_dict(json.loads(kept.read_text()))

    def _read(self) -> None:
        lib = _library.library()
        run = _library.make("pl_run_open", "pl_run_free", str(self.folder).encode())
        summary = lib.pl_run_summary(run)
        #: What the run was started with: run.json.
        self.settings: Dict[str, Any] = json.loads(lib.pl_run_settings(run))
        #: What came of it, as `train --json` prints it; {} before the end.
        self.summary: Dict[str, Any] = json.loads(summary) if summary else {}
        for i in range(lib.pl_run_series_count(run)):
            raw = _library.RunSeries()
            lib.pl_run_series_get(run, i, ctypes.byref(raw))
            key = (_library.text(raw.task), _library.text(raw.name))
            columns = (_array(a, raw.count) for a in (raw.step, raw.time, raw.value))
            (self._hosts if raw.host else self._series)[key] = Series(*columns)
        #: What happened, a dict each: starts, tests, checkpoints, losses ...
        self.events: List[Dict[str, Any]] = [
            _event(lib, run, i) for i in range(lib.pl_run_incident_count(run))
        ]
        run.close()

    @property
    def scalars(self) -> Mapping[Tuple[str, str], Series]:
        """Recorded values by (task, name): ("worker-0", "loss"), ..."""
        return self._series

    @property
    def resources(self) -> Mapping[Tuple[str, str], Series]:
        """What hosts and the job used, by (host, name)."""
        return self._hosts

    def scalar(self, name: str, task: Optional[str] = None) -> Series:
        """One recorded value, of ``task`` or of the first task that has it."""
        for (owner, found), series in self._series.items():
            if found == name and task in (None, owner):
                return series
        names = sorted({found for _, found in self._series})
        raise KeyError(f"no scalar {name!r}; there are {', '.join(names)}")

    def to_frame(self, resources: bool = False) -> Any:
        """Scalars (or resources) as a pandas DataFrame, a row a point."""
        import pandas

        source = self._hosts if resources else self._series
        columns: Dict[str, List[Any]] = {
            key: [] for key in ("task", "name", "step", "time", "value")
        }
        for (task, name), series in source.items():
            count = len(series.value)
            rows: List[Any] = [[task] * count, [name] * count, *series]
            for column, values in zip(columns.values(), rows):
                column.extend(values)
        frame = pandas.DataFrame(columns)
        return frame.rename(columns={"task": "host"}) if resources else frame

    # --- the model ------------------------------------------------------

    @property
    def _model(self) -> "_Predictor":
        if self._predictor is None:
            self._predictor = _Predictor(self.folder, self.network, self._best)
        return self._predictor

    @property
    def weights(self) -> Dict[str, np.ndarray]:
        """The parameters by name, copied: "dense1/weights", ..."""
        return self._model.weights()

    @property
    def classes(self) -> int:
        """How many classes the model tells apart."""
        return self._model.classes

    def logits(self, data: Any) -> np.ndarray:
        """The outputs of a dense model: [rows, classes]."""
        return self._model.run(data, _library.LOGITS)

    def predict_proba(self, data: Any) -> np.ndarray:
        """The probability of each class: [rows, classes].

        Of a sparse model that of label 1: [rows].
        """
        return self._model.run(data, _library.PROBABILITIES)

    def predict(self, data: Any) -> np.ndarray:
        """The most probable class of each example: [rows].

        Of a model of numbers these: [rows], or [rows, numbers].
        """
        if self._model.numeric:
            numbers = self.logits(data)
            return numbers[:, 0] if numbers.shape[1] == 1 else numbers
        values = self.predict_proba(data)
        if values.ndim == 1:
            return (values > 0.5).astype(np.int32)
        return values.argmax(axis=1).astype(np.int32)

    def evaluate(
        self, data: Any = None, *, label: Optional[str] = None
    ) -> Dict[str, float]:
        """Test the model, by default on the run's own test data.

        ``data`` and ``label`` are what train takes.  The result has examples, loss and
        accuracy; of sparse models also auc, precision, recall, calibration;
        of models of numbers rmse, mae and r2 instead.
        """
        return self._model.evaluate(data, label)

    def export(self, path: Union[str, Path]) -> None:
        """Write the model to a file.

        As ONNX where the name ends in ``.onnx``; else all parameters, as
        safetensors.
        """
        self._model.export(path)

    def save(self, folder: Union[str, Path]) -> "Run":
        """Copy the run to a folder that does not exist yet; open it there."""
        shutil.copytree(self.folder, folder, ignore=_no_sockets)
        return Run(folder, network=self.network, best=self._best)

    @staticmethod
    def _keep_model(folder: Path, network: Optional[Network]) -> None:
        """The layers, from which others rebuild the model."""
        if network is not None:
            text = json.dumps(network.to_dict(), indent=2)
            (folder / _MODEL_FILE).write_text(text)

    @staticmethod
    def _check_model(folder: Path, network: Network) -> None:
        """A run that goes on keeps its layers."""
        kept = folder / _MODEL_FILE
        text = json.dumps(network.to_dict())
        if kept.is_file() and json.loads(kept.read_text()) != json.loads(text):
            raise UsageError(
                f"{folder} holds a run of a network with other layers; choose "
                "another run"
            )

    # --- pickling: what a run needs to predict --------------------------

    def __getstate__(self) -> Dict[str, Any]:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name in _KEPT:
                if (self.folder / name).exists():
                    tar.add(self.folder / name, name)
        return {"files": buffer.getvalue(), "best": self._best}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        folder, owner = make_folder(None)
        with tarfile.open(fileobj=io.BytesIO(state["files"])) as tar:
            _unpack(tar, folder)
        self.__init__(folder, best=state["best"], _owner=owner)  # type: ignore[misc]

    # --- looking at it --------------------------------------------------

    def plot(self, name: str = "loss", ax: Any = None) -> Any:
        """Draw a scalar of every task that has it; needs matplotlib."""
        curves = {task: s for (task, n), s in self._series.items() if n == name}
        if not curves:
            self.scalar(name)
        return _show.plot(curves, name, ax)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}: {_show.one_line(self.settings, self.summary)})"

    def _repr_html_(self) -> str:
        return _show.html(self.settings, self.summary, self._series)


def _event(lib: Any, run: Any, index: int) -> Dict[str, Any]:
    raw = _library.RunIncident()
    lib.pl_run_incident_get(run, index, ctypes.byref(raw))
    event: Dict[str, Any] = {
        "time": raw.time,
        "event": _library.text(raw.kind),
        "task": _library.text(raw.task),
        "text": _library.text(raw.text),
    }
    if raw.step >= 0:
        event["step"] = raw.step
    for name in ("test_loss", "test_accuracy"):
        if not np.isnan(getattr(raw, name)):
            event[name] = getattr(raw, name)
    return event


def _no_sockets(folder: str, names: List[str]) -> List[str]:
    return [name for name in names if (Path(folder) / name).is_socket()]


def _unpack(tar: tarfile.TarFile, folder: Path) -> None:
    """Plain files below the folder; anything else is refused."""
    for member in tar.getmembers():
        target = (folder / member.name).resolve()
        if folder.resolve() not in target.parents:
            raise ValueError(f"{member.name!r} lies outside of the run")
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        content = tar.extractfile(member) if member.isfile() else None
        if content is None:
            raise ValueError(f"{member.name!r} is not a plain file")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.read())


class _Predictor:
    """A pl_predict and the net it borrows."""

    def __init__(self, folder: Path, network: Optional[Network], best: bool) -> None:
        self._net = network._make() if network is not None else None
        opts = _library.PredictOpts(run=str(folder).encode(), best=best)
        if self._net is not None:
            opts.net = self._net._as_parameter_
        self._handle = _library.make(
            "pl_predict_open", "pl_predict_free", ctypes.byref(opts)
        )
        self._info = _library.PredictInfo()
        _library.library().pl_predict_describe(self._handle, ctypes.byref(self._info))
        self.classes: int = self._info.classes
        self.numeric: bool = self._info.numeric

    def weights(self) -> Dict[str, np.ndarray]:
        found = {}
        for i in range(self._info.tensors):
            raw = _library.PredictTensor()
            _library.library().pl_predict_get(self._handle, i, ctypes.byref(raw))
            values = _array(raw.values, raw.count).astype(np.float32, copy=False)
            found[_library.text(raw.name)] = values.reshape(raw.shape.tuple())
        return found

    def run(self, data: Any, kind: int) -> np.ndarray:
        examples = as_data(data)
        outputs = self._info.outputs
        values = np.empty((examples.rows, outputs), np.float32)
        _library.library().pl_predict_run(
            self._handle, examples._handle, kind, values.ctypes.data, values.size
        )
        return values[:, 0] if self._info.sparse else values

    def evaluate(self, data: Any, label: Optional[str]) -> Dict[str, float]:
        raw = _library.Evaluation()
        if isinstance(data, Path):
            data = str(data)
        given = data is not None and not isinstance(data, str)
        examples = as_data(data, label, self.numeric) if given else None
        _library.library().pl_predict_evaluate(
            self._handle,
            examples._handle if examples is not None else None,
            data.encode() if isinstance(data, str) else None,
            ctypes.byref(raw),
        )
        values = {field[0]: getattr(raw, field[0]) for field in raw._fields_}
        return {name: v for name, v in values.items() if not np.isnan(v)}

    def export(self, path: Union[str, Path]) -> None:
        _library.library().pl_predict_export(self._handle, str(path).encode())
