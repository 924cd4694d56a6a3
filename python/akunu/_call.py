"""Long calls of the library, which a thread of their own runs.

The caller waits for what the callbacks hand over. So a generation can be an iterator; code of the
user (what consumes the iterator, progress and log functions) runs in the caller's thread and may
raise; and Ctrl-C reaches the caller, who waits in Python, and cancels the call. Only this module's
code runs inside a callback, and no exception passes through C.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from queue import SimpleQueue
from typing import Any, Callable, Generic, Iterator, Optional, Tuple, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

_END = object()
_running: "weakref.WeakSet[Call[Any]]" = weakref.WeakSet()


class Call(Generic[T]):
    """One long call. Used once, by one thread; only cancel() may be called by any thread."""

    def __init__(self, body: Callable[[Call[T]], T]) -> None:
        self._body: Optional[Callable[[Call[T]], T]] = body
        self._items: SimpleQueue[Tuple[object, bool]] = SimpleQueue()
        self._answers: SimpleQueue[None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="akunu", daemon=True)
        self._process = os.getpid()
        self._error: Optional[BaseException] = None
        self._result: Optional[T] = None
        self.cancelled = False

    # ---- In the thread of the call -------------------------------------------------------------
    def _work(self) -> None:
        try:
            if self._body and not self.cancelled:
                self._result = self._body(self)
        except BaseException as error:
            self.fail(error)
        finally:
            self.forget()
            self._items.put((_END, False))

    def fail(self, error: BaseException) -> None:
        """Cancels the call; the first error is raised when it has ended."""
        if self._error is None:
            self._error = error
        self.cancelled = True

    def tell(self, item: object) -> None:
        """Hands an item to the caller."""
        self._items.put((item, False))

    def ask(self, item: object) -> bool:
        """Hands an item to the caller and waits until the next one is wanted. False: stop."""
        if not self.cancelled:
            self._items.put((item, True))
            self._answers.get()
        return not self.cancelled

    def guard(self, function: F, after_error: object = None) -> Callable[..., Any]:
        """The function as a callback: its exception is kept, and the call cancelled."""

        def callback(*arguments: object) -> object:
            try:
                return function(*arguments)
            except BaseException as error:
                self.fail(error)
                return after_error

        return callback

    # ---- In the caller's thread ----------------------------------------------------------------
    def cancel(self) -> None:
        """Ends the call at its next callback, and does not wait for that."""
        self.cancelled = True
        self._answers.put(None)

    def close(self) -> None:
        """Cancels the call, unless it has ended, and waits for its end."""
        interrupt: Optional[KeyboardInterrupt] = None
        self.cancel()
        while self._process == os.getpid() and self._thread.is_alive():
            try:
                self._thread.join()
            except KeyboardInterrupt as again:  # the call ends before its next pass
                interrupt = again
        _running.discard(self)
        if interrupt:
            raise interrupt

    def forget(self) -> None:
        """Lets go of what the call refers to, once it has ended or if it never begins."""
        self._body = None

    def items(self) -> Iterator[Any]:
        """Starts the call; yields what it hands over; raises what it failed with."""
        _running.add(self)
        try:
            self._thread.start()
            while True:
                item, is_question = self._items.get()
                if item is _END:
                    break
                yield item
                if is_question:
                    self._answers.put(None)
        finally:
            self.close()
        if self._error is not None:
            raise self._error

    def run(self, on_item: Callable[[Any], object] = lambda item: None) -> T:
        """Runs the call to its end, and returns its result."""
        for item in self.items():
            on_item(item)
        return self._result  # type: ignore[return-value]


@atexit.register
def _close_all() -> None:
    for call in list(_running):
        call.close()
