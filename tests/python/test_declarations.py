"""The structs and functions that the package declares are those of the headers."""

import ctypes
import os
import pathlib
import subprocess

from paceline import _errors, _library

ROOT = pathlib.Path(__file__).resolve().parents[2]

STRUCTS = {
    "pl_shape": _library.Shape,
    "pl_data_dense": _library.DataDense,
    "pl_data_csr": _library.DataCsr,
    "pl_data_callback": _library.DataCallback,
    "pl_data_info": _library.DataInfo,
    "pl_layer": _library.Layer,
    "pl_train_progress": _library.Progress,
    "pl_train_opts": _library.TrainOpts,
    "pl_train_result": _library.TrainResult,
    "pl_predict_opts": _library.PredictOpts,
    "pl_predict_info": _library.PredictInfo,
    "pl_evaluation": _library.Evaluation,
    "pl_predict_tensor": _library.PredictTensor,
    "pl_run_series": _library.RunSeries,
    "pl_run_incident": _library.RunIncident,
}

CONSTANTS = {
    "PL_MAX_RANK": _library.MAX_RANK,
    "PL_FLOAT32": _library.FLOAT32,
    "PL_UINT8": _library.UINT8,
    "PL_TRAIN_RUNNING": _library.STATE_RUNNING,
    "PL_TRAIN_ENDED": _library.STATE_ENDED,
    "PL_PREDICT_PROBABILITIES": _library.PROBABILITIES,
    "PL_PREDICT_LOGITS": _library.LOGITS,
    "PL_LAYER_INPUT": _library.LAYER_INPUT,
    "PL_LAYER_KINDS": len(_library.LAYER_KINDS),
    "PL_LOG_INFO": _library._LEVEL_INFO,
}


def assertions():
    """A C file that compiles if everything declared lies where C has it."""
    yield "#include <paceline.h>"
    yield "#include <stddef.h>"
    for name, struct in STRUCTS.items():
        yield f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "{name}");'
        for field, kind in struct._fields_:
            place = getattr(struct, field)
            yield (f"_Static_assert(offsetof({name}, {field}) == {place.offset} && "
                   f"sizeof((({name} *)0)->{field}) == {place.size}, "
                   f'"{name}.{field}");')
    values = dict(CONSTANTS)
    for kind, name in enumerate(_library.LAYER_KINDS):
        values[f"PL_LAYER_{name.upper()}"] = kind
    for name, value in values.items():
        yield f'_Static_assert((int){name} == {value}, "{name}");'


def test_declared_structs_lie_as_in_the_headers(tmp_path):
    source = tmp_path / "declared.c"
    source.write_text("\n".join(assertions()) + "\n")
    done = subprocess.run(
        [os.environ.get("CC", "cc"), "-std=c11", "-fsyntax-only",
         "-I", ROOT / "include", source],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_status_codes_are_those_of_the_library():
    lib = _library.library()
    for text, code in _errors.STATUS.items():
        assert lib.pl_status_text(code).decode() == text


def test_versions_are_equal():
    assert _library.library().pl_version().decode() == _library.__version__
