"""Training on other machines: `paceline launch`, a program of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from ._errors import Error, Interrupted, UsageError
from ._run import Run, make_folder

_INTERRUPTED = 130
_LAST_LINES = 3
_FLAGS = ("copy", "program", "ssh")  # of launch; the others are of train


def program() -> str:
    """The `paceline` program: of PACELINE, of the wheel, or of the PATH."""
    named = os.environ.get("PACELINE")
    if named:
        return named
    packed = Path(__file__).parent / "_lib" / "paceline"
    if packed.is_file():
        return str(packed)
    found = shutil.which("paceline")
    if found is None:
        raise Error(
            "the program paceline was not found: install it (make install) or "
            "name it in PACELINE"
        )
    return found


def _words(words: Sequence[str]) -> List[str]:
    """Names and values in turn as words of a command line."""
    line: List[str] = []
    for name, value in zip(words[::2], words[1::2]):
        if value == "true":
            line.append(f"--{name}")
        elif value != "false":
            line += [f"--{name}", value]
    return line


def train(
    model: Any,
    data: Any,
    test_data: Any,
    run: Union[str, Path, None],
    hosts: Sequence[str],
    settings_of: Callable[[Dict[str, Any]], List[str]],
    flags: Dict[str, Any],
) -> Run:
    """Train a model that has a name on several hosts."""
    if not isinstance(model, str):
        raise UsageError(
            "hosts: the other hosts know built-in models and ONNX files only; give "
            "the name of one"
        )
    for name, value in (("data", data), ("test_data", test_data)):
        if value is not None and not isinstance(value, (str, Path)):
            raise UsageError(
                f"hosts: {name} is a {type(value).__name__}, expected a source "
                "that the hosts can open, such as 'mnist:/data/mnist'"
            )
    options = dict(flags, data=data, test_data=test_data)
    launch = {name: options.pop(name) for name in _FLAGS if name in options}
    folder, owner = make_folder(run)
    command = [program(), "launch", "--hosts", ",".join(hosts)]
    command += _words(settings_of(launch)) + ["--", "train", model]
    command += _words(settings_of(options)) + ["--quiet", "--run", str(folder)]
    status, errors = _call(command)
    if status == _INTERRUPTED:
        raise Interrupted("training interrupted", _run_of(folder, owner))
    if status != 0:
        last = "; ".join(errors.strip().splitlines()[-_LAST_LINES:])
        raise Error(f"paceline launch ended with status {status}: {last}")
    return Run(folder, _owner=owner)


def _call(command: List[str]) -> "tuple[int, str]":
    """Status and standard error; Ctrl-C reaches the program, which ends."""
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        while True:
            try:
                errors = process.communicate()[1]
                return process.returncode, errors
            except KeyboardInterrupt:
                continue


def _run_of(folder: Path, owner: Any) -> Optional[Run]:
    try:
        return Run(folder, _owner=owner)
    except Error:
        return None
