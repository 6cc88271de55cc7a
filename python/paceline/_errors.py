"""The exceptions that a failed call of the library becomes."""

from __future__ import annotations

from typing import Any, NoReturn, Optional

__all__ = [
    "Error",
    "FormatError",
    "InputError",
    "Interrupted",
    "MissingError",
    "UsageError",
]


class Error(Exception):
    """A call of the library failed; the message is its sentence.

    ``status`` is the code of pl_status, where the library gave one.
    """

    status: int = 0


class UsageError(Error, ValueError):
    """A flag, an array or a shape is not what the call expects."""


class FormatError(Error, ValueError):
    """A file is malformed."""


class InputError(Error, OSError):
    """A file or a connection failed."""


class MissingError(Error, FileNotFoundError):
    """There is no such run, checkpoint or file."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a training.

    It finished its step and saved: ``run`` is the run up to there, or None
    where it had not begun.
    """

    def __init__(self, message: str, run: Optional[Any] = None) -> None:
        super().__init__(message)
        self.run = run


# The codes of pl_status in paceline/base.h, with the texts of pl_status_text.
STATUS = {
    "no error": 0,
    "not yet": 1,
    "timed out": 2,
    "peer broke the protocol": 3,
    "connection closed": 4,
    "rolled back": 5,
    "wrong usage": 6,
    "out of memory": 7,
    "input or output failed": 8,
    "not found": 9,
    "malformed data": 10,
    "shapes do not fit": 11,
    "number out of range": 12,
    "interrupted": 13,
    "not supported": 14,
}

INTERRUPTED = STATUS["interrupted"]

_CLASSES = {
    STATUS["wrong usage"]: UsageError,
    STATUS["shapes do not fit"]: UsageError,
    STATUS["not supported"]: UsageError,
    STATUS["malformed data"]: FormatError,
    STATUS["input or output failed"]: InputError,
    STATUS["not found"]: MissingError,
    STATUS["out of memory"]: MemoryError,
}


def fail(status: int, sentence: str) -> NoReturn:
    """Raise what a status and its sentence mean."""
    error = _CLASSES.get(status, Error)(sentence)
    if isinstance(error, Error):
        error.status = status
    raise error
