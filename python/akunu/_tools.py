"""Tool calls and reasoning: the parser of a reply, and the grammar of calls."""

from __future__ import annotations

import ctypes
import json
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Union

from . import _abi
from ._call import Call
from ._handle import Handle
from ._library import c_string, check, check_pointer, default, lib
from ._model import Model
from ._sampling import Grammar

EVENT_KINDS = ("", "reasoning", "content", "call", "arguments", "call_end", "broken")


class Event(NamedTuple):
    """A part of a reply: enum akunu_reply_kind (akunu/text.h).

    kind: "reasoning" and "content", pieces of text; "call", a call begins, text is the tool's name;
    "arguments", a piece of its JSON; "call_end", text is all of it; "broken", text says why it is
    no call.
    """

    kind: str
    text: str
    call: int  # index of the call
    id: Optional[str]  # of a "call"


class ReplyTools:
    """What reads a model's replies to one prompt. Used by one thread at a time."""

    def __init__(self, params: _abi.akunu_reply_params) -> None:
        self.params = params

    def make_grammar(
        self, choice: Union[str, Mapping[str, Any]], parallel: bool
    ) -> Optional[Grammar]:
        """A grammar that holds calls to the tools' schemas; None: there is nothing to hold."""
        text = choice if isinstance(choice, str) else json.dumps(choice)
        calls = default(_abi.akunu_tool_grammar_params, choice=text, parallel=parallel)
        out = ctypes.c_void_p()
        check(
            lib.akunu_grammar_from_tools(
                ctypes.byref(self.params), ctypes.byref(calls), ctypes.byref(out)
            )
        )
        return Grammar._of(out.value) if out.value else None


class ReplyParser:
    """Splits a reply into events while it is generated, in the thread of the call."""

    def __init__(self, tools: ReplyTools, call: Call[Any]) -> None:
        self._events: List[Event] = []
        self._on_event = _abi.akunu_reply_fn(call.guard(self._add))
        pointer = lib.akunu_reply_new(ctypes.byref(tools.params), self._on_event, None)
        self._handle = Handle(check_pointer(pointer), lib.akunu_reply_free, "reply")

    def _add(self, pointer: Any, user: int) -> None:
        event = pointer.contents
        text = ctypes.string_at(event.text, event.n_bytes) if event.n_bytes else b""
        name = None if event.id is None else event.id.decode()
        self._events.append(
            Event(EVENT_KINDS[event.kind], text.decode("utf-8", "replace"), event.call, name)
        )

    def push(self, text: bytes) -> List[Event]:
        check(lib.akunu_reply_push(self._handle.pointer, text, len(text)))
        return self._take()

    def end(self) -> List[Event]:
        check(lib.akunu_reply_end(self._handle.pointer))
        return self._take()

    def _take(self) -> List[Event]:
        events, self._events = self._events, []
        return events

    def message(self) -> Any:
        text = lib.akunu_reply_message(self._handle.pointer)
        if text is None:
            raise MemoryError("the message of a reply")
        return json.loads(text)

    def notes(self) -> str:
        return str(lib.akunu_reply_notes(self._handle.pointer).decode("utf-8", "replace"))


def make_reply_tools(
    model: Model,
    prompt: str,
    tools: Optional[Sequence[Mapping[str, Any]]],
    template: Optional[str],
) -> ReplyTools:
    """What reads the replies to a rendered prompt."""
    params = default(
        _abi.akunu_reply_params,
        chat_template=model.template_text(name=template, tools=bool(tools)),
        tools=json.dumps(list(tools)) if tools else None,
        # A NUL would end the prompt; the parser needs its end.
        prompt=c_string(prompt.replace("\0", "\ufffd"), "prompt"),
        calls=bool(tools),
    )
    params.tokenizer = model._tokenizer
    return ReplyTools(params)
