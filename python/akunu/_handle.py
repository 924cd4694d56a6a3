"""Handles of the library: what frees them, and when."""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import Any, Optional, Type, TypeVar

from ._errors import AkunuError

_C = TypeVar("_C", bound="Closing")


class Closing:
    """What `with` closes at its end."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: _C) -> _C:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class Handle:
    """A handle that is freed with the last reference to it.

    Threads of the library do not survive fork(), so in a child process a handle of its parent is
    neither used nor freed.
    """

    def __init__(self, pointer: int, free: Any, what: str) -> None:
        self._pointer = pointer
        self._what = what
        self._process = os.getpid()
        finalizer = weakref.finalize(self, _free, pointer, free, self._process)
        finalizer.atexit = False  # the system takes all back; calls may still run

    @property
    def pointer(self) -> int:
        if os.getpid() != self._process:
            raise AkunuError(
                f"the {self._what} was made before fork(), by process {self._process}: "
                f"make one in the child process, {os.getpid()}"
            )
        return self._pointer


def _free(pointer: int, free: Any, process: int) -> None:
    if os.getpid() == process:
        free(pointer)
