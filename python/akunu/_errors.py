"""Errors of the library as exceptions."""

from __future__ import annotations

from enum import IntEnum
from typing import Dict, Type


class Status(IntEnum):
    """enum akunu_status of the C API."""

    OK = 0
    ARGUMENT = 1
    FORMAT = 2
    UNSUPPORTED = 3
    MEMORY = 4
    CONTEXT = 5
    IO = 6
    CANCELLED = 7
    SYSTEM = 8
    NUMERIC = 9
    BUSY = 10


class AkunuError(Exception):
    """A call of the library failed. str() says what was found and what was expected."""

    status: Status

    def __init__(self, message: str, status: int = Status.SYSTEM) -> None:
        super().__init__(message, status)
        self.status = Status(status)

    def __str__(self) -> str:
        return str(self.args[0])


class ArgumentError(AkunuError, ValueError):
    """A value that the caller gave is out of range."""


class FormatError(AkunuError):
    """A file cannot be read, is damaged or of an unknown format."""


class UnsupportedError(AkunuError):
    """A valid file or request that akunu cannot serve."""


class OutOfMemoryError(AkunuError, MemoryError):
    """Out of memory."""


class ContextError(AkunuError):
    """The tokens do not fit the context or the pass."""


class FileError(AkunuError):
    """Reading or writing failed."""


class CancelledError(AkunuError):
    """A callback asked to stop."""


class SystemFailure(AkunuError):
    """The operating system refused something else."""


class NumericError(AkunuError):
    """The model gave no finite number where one is needed."""


class BusyError(AkunuError):
    """The session is in use by another call."""


_CLASSES: Dict[int, Type[AkunuError]] = {
    Status.ARGUMENT: ArgumentError,
    Status.FORMAT: FormatError,
    Status.UNSUPPORTED: UnsupportedError,
    Status.MEMORY: OutOfMemoryError,
    Status.CONTEXT: ContextError,
    Status.IO: FileError,
    Status.CANCELLED: CancelledError,
    Status.SYSTEM: SystemFailure,
    Status.NUMERIC: NumericError,
    Status.BUSY: BusyError,
}


def make_error(status: int, message: str) -> AkunuError:
    """The exception for a status of the library, which may be newer than this package."""
    if status not in _CLASSES:
        return AkunuError(f"{message} (status {status})", Status.SYSTEM)
    return _CLASSES[status](message, status)
