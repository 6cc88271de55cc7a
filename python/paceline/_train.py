"""train(): a training from arrays or a source to a run."""

from __future__ import annotations

import ctypes
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np

from . import _launch, _library
from ._data import Data, as_data
from ._errors import Error, INTERRUPTED, Interrupted, UsageError
from ._run import Run, make_folder
from .layers import Layer, Network, Sequential

__all__ = ["Progress", "train"]

_POLL_MS = 50
_NUMERIC_LOSSES = ("squared-error", "huber")  # labels are numbers to predict

Model = Union[str, Network, Sequence[Layer]]
Flag = Union[str, int, float, bool, Sequence[Any], None]


@dataclass(frozen=True)
class Progress:
    """How far a training is; numbers that are not known yet are None."""

    step: int
    end_step: Optional[int]
    epoch: Optional[float]
    examples: int
    seconds: float
    loss: Optional[float]
    test_loss: Optional[float]
    test_accuracy: Optional[float]


Callback = Callable[[Progress], Any]


def _known(value: float) -> Optional[float]:
    return None if math.isnan(value) else value


def _progress_of(raw: "_library.Progress") -> Progress:
    known_epoch = raw.epoch_steps > 0 and raw.step >= 0
    return Progress(
        step=max(raw.step, 0),
        end_step=raw.end_step if raw.end_step > 0 else None,
        epoch=raw.step / raw.epoch_steps if known_epoch else None,
        examples=max(raw.examples, 0),
        seconds=raw.seconds,
        loss=_known(raw.loss),
        test_loss=_known(raw.test_loss),
        test_accuracy=_known(raw.test_accuracy),
    )


def settings_of(flags: Dict[str, Any]) -> List[str]:
    """Flags as names and values in turn: {"eval_every": "1ep"}."""
    words: List[str] = []
    for name, value in flags.items():
        if value is not None:
            words += [name.replace("_", "-"), _word(value)]
    return words


def _word(value: Any) -> str:
    """A value as the command line has it: true, 0.1, or 128,64 for a list."""
    if isinstance(value, (list, tuple)):
        return ",".join(_word(each) for each in value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


class _Bar:
    """A progress bar by tqdm, on standard error."""

    def __init__(self, name: str) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(desc=name, unit="step", dynamic_ncols=True)

    def __call__(self, progress: Progress) -> None:
        if progress.end_step:
            self._bar.total = progress.end_step
        notes = {"loss": progress.loss, "test accuracy": progress.test_accuracy}
        shown = {k: f"{v:.4g}" for k, v in notes.items() if v is not None}
        if shown:
            self._bar.set_postfix(shown, refresh=False)
        self._bar.update(progress.step - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _bar(wanted: Optional[bool], name: str) -> Optional[_Bar]:
    """The bar, where tqdm is installed and, by default, somebody looks."""
    if wanted is None:
        wanted = sys.stderr.isatty() or "ipykernel" in sys.modules
    if not wanted:
        return None
    try:
        return _Bar(name)
    except ImportError:
        return None


def _tensors(values: Mapping[str, np.ndarray]) -> Tuple[Any, List[np.ndarray]]:
    """Parameters as an array of pl_predict_tensor, and what it points to."""
    kept = [np.ascontiguousarray(v, dtype=np.float32) for v in values.values()]
    array = (_library.PredictTensor * len(kept))()
    for struct, name, value in zip(array, values, kept):
        struct.name = name.encode()
        struct.shape = _library.Shape.of(value.shape)
        struct.values = value.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        struct.count = value.size
    return array, kept


class _Training:
    """A pl_training and everything it borrows."""

    def __init__(
        self,
        model: Union[str, Network],
        data: Optional[Data],
        test: Optional[Data],
        words: Sequence[str],
        initial: Mapping[str, np.ndarray],
    ) -> None:
        self._net = model._make() if isinstance(model, Network) else None
        self._data = (data, test)
        array = (ctypes.c_char_p * (len(words) + 1))(
            *(word.encode() for word in words), None
        )
        opts = _library.TrainOpts(settings=array)
        self._initial = _tensors(initial)  # until it has begun
        opts.initial, opts.initial_count = self._initial[0], len(initial)
        if isinstance(model, str):
            opts.model = model.encode()
        elif self._net is not None:
            opts.net = self._net._as_parameter_
        if data is not None:
            opts.train = data._handle._as_parameter_
        if test is not None:
            opts.test = test._handle._as_parameter_
        self._handle = _library.make(
            "pl_train_start", "pl_train_free", ctypes.byref(opts)
        )

    def follow(self, callbacks: Iterable[Callback], begun: Callable[[], None]) -> bool:
        """Call back until it ends; True when Ctrl-C ended it.

        ``begun`` is called once, when it has a run folder; a short one may end
        before it is seen to run.
        """
        lib, raw = _library.library(), _library.Progress()
        interrupted, known = False, False
        watchers = list(callbacks)
        while raw.state != _library.STATE_ENDED:
            try:
                lib.pl_train_poll(self._handle, _POLL_MS, ctypes.byref(raw))
                if raw.state == _library.STATE_RUNNING and not known:
                    known = True
                    begun()
                progress = _progress_of(raw)
                if any([watcher(progress) is True for watcher in watchers]):
                    self.interrupt()
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                self.interrupt()
        return interrupted

    def interrupt(self) -> None:
        _library.library().pl_train_interrupt(self._handle)

    def wait(self) -> "_library.TrainResult":
        result = _library.TrainResult()
        _library.library().pl_train_wait(self._handle, ctypes.byref(result))
        return result

    def close(self) -> None:
        """End it where it still runs, and let go of the data."""
        self._handle.close()
        self._data = (None, None)


def _split_data(
    data: Any, test_data: Any, label: Optional[str], flags: Dict[str, Any]
) -> Tuple[Optional[Data], Optional[Data]]:
    """Arrays become Data, source strings become flags."""
    found: List[Optional[Data]] = []
    numeric = str(flags.get("loss")).replace("_", "-") in _NUMERIC_LOSSES
    for name, value in (("data", data), ("test-data", test_data)):
        if value is None or isinstance(value, (str, Path)):
            found.append(None)
            if value is not None:
                flags[name] = str(value)
        else:
            found.append(as_data(value, label, numeric))
    return found[0], found[1]


def _check_hosts(**given: Any) -> None:
    """Arguments that have no effect on what other hosts do are refused."""
    reasons = {
        "initial": "first values are for one worker alone",
        "label": "it names a column of a table, and hosts open a source themselves",
        "progress": "the training is not in this process",
        "callbacks": "the training is not in this process",
    }
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"hosts and {name}: {reasons[name]}")


def train(
    model: Model,
    data: Any = None,
    *,
    test_data: Any = None,
    label: Optional[str] = None,
    run: Union[str, Path, None] = None,
    hosts: Optional[Sequence[str]] = None,
    initial: Optional[Mapping[str, np.ndarray]] = None,
    callbacks: Union[Callback, Sequence[Callback]] = (),
    progress: Optional[bool] = None,
    **flags: Flag,
) -> Run:
    """Train a model and return its run.

    ``model`` is the name of a built-in model, an ONNX file (``"net.onnx"``), a
    Network, or a list of layers.

    ``data`` and ``test_data`` are a pair (examples, labels) of arrays, of a
    ``scipy.sparse`` matrix and an array, of Arrow arrays; an Arrow table, whose
    column ``label`` holds the labels; a Data; or a source as ``--data`` has it:
    ``"mnist:data/mnist"``.  Without: the model's own data.

    With ``loss="squared-error"`` or ``"huber"`` labels are numbers to be
    predicted, one or several an example.

    ``run`` is the folder of the run.  Without it the run lives in a temporary
    folder that goes with the returned object; Run.save keeps it.

    ``hosts`` trains a built-in model or an ONNX file on other machines, by
    `paceline launch`, whose flags ``copy``, ``program`` and ``ssh`` it takes.
    The hosts open data and file themselves.  Callbacks and progress are for
    trainings in this process.

    ``initial`` are first values of parameters by name, as Run.weights has them;
    others start as ``init`` says.  For one worker alone.

    ``callbacks`` are called a few times a second with a Progress; one that
    returns True ends the training, which then counts as interrupted.
    ``progress`` shows a bar by tqdm; by default in notebooks and on terminals.

    All other arguments are the flags of `paceline train`, with ``_`` for ``-``:
    ``train("softmax", (x, y), lr=0.5, workers=3, ps=1, mode="async")``.

    Ctrl-C lets the training finish its step and save, and raises Interrupted,
    whose ``run`` holds what there is.
    """
    if isinstance(model, (list, tuple)):
        model = Sequential(model)
    if not isinstance(model, (str, Network)):
        raise TypeError(
            f"model is a {type(model).__name__}, expected the name of a built-in "
            "model, a Network or Sequential([...])"
        )
    if callable(callbacks):
        callbacks = [callbacks]
    if hosts is not None:
        _check_hosts(initial=initial, label=label, progress=progress or None,
                     callbacks=callbacks or None)
        return _launch.train(model, data, test_data, run, hosts, settings_of, flags)
    options: Dict[str, Any] = dict(flags)
    train_set, test_set = _split_data(data, test_data, label, options)
    folder, owner = make_folder(run)
    options["run"] = str(folder)
    network = model if isinstance(model, Network) else None
    if network is not None:
        Run._check_model(folder, network)
    training = _Training(model, train_set, test_set, settings_of(options), initial or {})
    bar = _bar(progress, model if isinstance(model, str) else model.name)
    try:
        interrupted = training.follow(
            [*([bar] if bar else []), *callbacks],
            lambda: Run._keep_model(folder, network),
        )
        result = _result(training, [train_set, test_set])
        if result is not None:
            Run._keep_model(folder, network)
    finally:
        training.close()
        if bar is not None:
            bar.close()
    found = Run(folder, _owner=owner) if result is not None else None
    if interrupted:
        step = "" if found is None else f" at step {found.summary['steps']}"
        raise Interrupted(f"training interrupted{step}", found)
    assert found is not None
    return found


def _result(
    training: _Training, sets: Sequence[Optional[Data]]
) -> "Optional[_library.TrainResult]":
    """What came of it; None when it was interrupted before it began."""
    try:
        return training.wait()
    except Error as error:
        for data in sets:
            if data is not None:
                data._raise_failure()
        if error.status == INTERRUPTED:
            return None
        raise
