"""Texts while they are generated: iterators over the pieces."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, Generator, Iterator, List, Optional, Union

from . import _abi
from ._call import Call
from ._errors import CancelledError
from ._library import check, default, lib
from ._model import c_tokens
from ._sampling import Grammar
from ._tools import Event, ReplyParser, ReplyTools

if TYPE_CHECKING:
    from ._session import Session

STOPS = ("", "end", "length", "context", "cancelled", "stop")


class Work:
    """A generation, for its thread and for its reader.

    The thread refers to this and not to what the user holds, so that what the user drops is closed.
    """

    def __init__(
        self,
        session: Session,
        ids: List[int],
        params: _abi.akunu_generation_params,
        grammar: Optional[Grammar],
    ) -> None:
        self._session = session
        self._prompt = ids
        self._params = params
        self._grammar = grammar  # params refers to it
        self.result = default(_abi.akunu_result)
        self.ended = False
        self.texts: List[str] = []
        self.token_ids: List[int] = []
        self.n_reused = 0
        self.call: Call[None] = Call(self.generate)
        self.pieces = self._read()

    # ---- In the thread of the call -------------------------------------------------------------
    def generate(self, call: Call[None]) -> None:
        session = self._session

        def on_piece(
            index: int, token: int, text: Optional[int], n: int, user: Optional[int]
        ) -> bool:
            if token >= 0:
                self.token_ids.append(token)
            return self.push(ctypes.string_at(text, n)) if text and n else not call.cancelled

        self.n_reused = session._keep_prefix(self._prompt)
        ids = c_tokens(self._prompt[self.n_reused :])
        # A copy, which dies with the call and its callbacks.
        params = _abi.akunu_generation_params.from_buffer_copy(self._params)
        params.on_piece = _abi.akunu_piece_fn(call.guard(on_piece, False))
        params.cancel = _abi.akunu_cancel_fn(call.guard(lambda user: call.cancelled, True))
        try:
            check(
                lib.akunu_session_generate(
                    session._pointer,
                    session._sequence,
                    ctypes.byref(_abi.akunu_ids(ids, len(ids))),
                    ctypes.byref(params),
                    ctypes.byref(self.result),
                )
            )
        except CancelledError:
            pass  # its reader asked for it
        finally:
            session._follow(self._prompt + self.token_ids)

    def push(self, text: bytes) -> bool:
        return self.call.ask(text.decode("utf-8", "replace"))

    # ---- In the reader's thread ----------------------------------------------------------------
    def _read(self) -> Generator[Any, None, None]:
        session = self._session
        try:
            session._begin(self.call)
            for item in self.call.items():
                if not session._log.take(item):
                    self.note(item)
                    yield item
        finally:
            self.ended = True
            session._end(self.call)

    def note(self, item: Any) -> None:
        self.texts.append(item)

    def close(self) -> None:
        self.call.cancel()
        self.pieces.close()
        self.call.forget()


class ReplyWork(Work):
    """The same for the answer of a conversation; its items are events."""

    def __init__(
        self,
        session: Session,
        ids: List[int],
        params: _abi.akunu_generation_params,
        grammar: Optional[Grammar],
        tools: ReplyTools,
    ) -> None:
        super().__init__(session, ids, params, grammar)
        self._tools = tools
        self._parser: Optional[ReplyParser] = None
        self.message: Dict[str, Any] = {"role": "assistant", "content": None}
        self.notes = ""

    def generate(self, call: Call[None]) -> None:
        parser = self._parser = ReplyParser(self._tools, call)
        try:
            super().generate(call)
        finally:
            self._parser = None
            rest = parser.end()
            self.message = parser.message()
            self.notes = parser.notes()
        for event in rest:
            call.tell(event)

    def push(self, text: bytes) -> bool:
        assert self._parser
        return all(self.call.ask(event) for event in self._parser.push(text))

    def note(self, item: Event) -> None:
        if item.kind == "content":
            self.texts.append(item.text)


class Generation(Iterator[str]):
    """A text that is generated: an iterator of pieces, which make whole characters.

    The model computes while the next piece is waited for, so the session is busy from the first
    piece until the last, or until close(). Ctrl-C, and an exception in a callback, end it. Used by
    one thread; cancel() may be called by any.
    """

    def __init__(self, work: Work, seed: int) -> None:
        self._work = work
        self.seed = seed

    def __del__(self) -> None:
        self._work.close()

    def __repr__(self) -> str:
        more = "" if self._work.ended else ", read() makes the rest"
        return f"<akunu.{type(self).__name__} {self.text!r}{more}>"

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return str(next(self._work.pieces))

    def read(self) -> str:
        """Generates the rest, and returns all of the text."""
        for _ in self._work.pieces:
            pass
        return self.text

    def close(self) -> None:
        """Ends the text here, and waits until the session is free."""
        self._work.close()

    def cancel(self) -> None:
        """Ends the text soon; its reader sees the end. Any thread may call this."""
        self._work.call.cancel()

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- The result ----------------------------------------------------------------------------
    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._work.texts)

    @property
    def token_ids(self) -> List[int]:
        """The tokens so far."""
        return list(self._work.token_ids)

    @property
    def stop_reason(self) -> Optional[str]:
        """Why the text ended: "end" (the model ended it, or the grammar allows nothing more),
        "length" (max_tokens), "context" (the context is full), "stop" (a stop text) or "cancelled".
        None: it goes on."""
        if not self._work.ended:
            return None
        return STOPS[self._work.result.stop] or "cancelled"

    @property
    def usage(self) -> Dict[str, Union[int, float]]:
        """Counts of tokens and seconds as in struct akunu_result (akunu/core.h), complete after the
        end. n_reused: tokens of the prompt that the KV cache held, which n_prompt leaves out."""
        others = ("size", "stop", "stop_index")
        names = [name for name, *_ in _abi.akunu_result._fields_ if name not in others]
        counts = {name: getattr(self._work.result, name) for name in names}
        return {"n_reused": self._work.n_reused, **counts}


class Reply(Generation):
    """An answer of a conversation: an iterator of the pieces of its content.

    events() yields reasoning and tool calls too; message is the whole. All else is as in
    Generation; text is the content.
    """

    _work: ReplyWork

    def __next__(self) -> str:
        while True:
            event = next(self._work.pieces)
            if event.kind == "content":
                return str(event.text)

    def events(self) -> Iterator[Event]:
        """What the model writes, as it comes. Iterate over this or over the reply itself."""
        for event in self._work.pieces:  # noqa: UP028; `yield from` would close the pieces
            yield event

    @property
    def message(self) -> Dict[str, Any]:
        """The answer as an OpenAI message: role, content, and reasoning_content and tool_calls if
        there are any. Generates the rest first."""
        self.read()
        return dict(self._work.message)

    @property
    def notes(self) -> str:
        """Why text that began like a tool call became content; "": there is none."""
        return self._work.notes
