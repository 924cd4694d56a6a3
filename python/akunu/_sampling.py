"""Sampling parameters, grammars, and what a generation takes, as structs of the C API."""

from __future__ import annotations

import ctypes
import json
import secrets
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _abi
from ._handle import Handle
from ._library import c_string, check, check_pointer, choose, default, lib, set_member

SPECULATION = ("auto", "none", "ngram")


class SamplingOptions(_abi.SamplingNumbers, total=False):
    """How the next token is sampled: keyword arguments of generate() and chat().

    Each is struct akunu_sampling_params's member of the same name, with the same default, which is
    llama.cpp's (akunu/sample.h); the numbers are listed in akunu/sampling.def. `seed` None: a
    random one, which the result tells.
    """

    seed: Optional[int]
    ignore_end: bool
    samplers: Union[str, Sequence[str]]
    dry_sequence_breakers: Sequence[str]
    logit_bias: Mapping[int, float]


class Grammar:
    """The texts that a model may write.

    Grammar(text) parses GBNF, llama.cpp's grammars; Grammar.from_schema() takes a JSON Schema.
    Immutable; any number of threads and sessions may use it at once.
    """

    def __init__(self, text: str) -> None:
        data = text.encode()
        self._handle = _own(lib.akunu_grammar_parse(data, len(data)))

    @classmethod
    def from_schema(
        cls, schema: Union[str, bool, Mapping[str, Any]], *, lax: bool = False
    ) -> Grammar:
        """A grammar of the JSON texts that a schema (draft 2020-12) allows, which is a JSON text or
        what json.loads() makes of one. lax: unsupported keywords are ignored, else an error."""
        data = (schema if isinstance(schema, str) else json.dumps(schema)).encode()
        params = default(_abi.akunu_schema_params, lax=lax)
        return cls._of(lib.akunu_grammar_from_schema(data, len(data), ctypes.byref(params)))

    @classmethod
    def _of(cls, pointer: int) -> Grammar:
        grammar = cls.__new__(cls)
        grammar._handle = _own(pointer)
        return grammar

    @property
    def _pointer(self) -> int:
        return self._handle.pointer

    def allows(self, text: str) -> bool:
        """Whether the whole text is allowed."""
        data, allowed = text.encode(), ctypes.c_bool()
        check(
            lib.akunu_grammar_check(
                self._pointer, None, data, len(data), ctypes.byref(allowed), None
            )
        )
        return allowed.value


def _own(pointer: int) -> Handle:
    return Handle(check_pointer(pointer), lib.akunu_grammar_free, "grammar")


def make_grammar(
    grammar: Union[str, Grammar, None], json_schema: Union[str, bool, Mapping[str, Any], None]
) -> Optional[Grammar]:
    """The grammar that the arguments of generate() and chat() ask for."""
    if grammar is not None and json_schema is not None:
        raise ValueError("grammar and json_schema are both given; one is expected")
    if json_schema is not None:
        return Grammar.from_schema(json_schema)
    return Grammar(grammar) if isinstance(grammar, str) else grammar


def c_strings(texts: Sequence[str], what: str, end: bool) -> Any:
    """An array of NUL-terminated texts; end: with NULL at its end."""
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{what} is one text; a list of them is expected")
    items: List[Optional[bytes]] = [c_string(text, what) for text in texts]
    if end:
        items.append(None)
    return (ctypes.c_char_p * len(items))(*items)


def make_sampling(
    options: Mapping[str, Any], grammar: Optional[Grammar]
) -> _abi.akunu_sampling_params:
    """The struct, checked; it refers to the grammar, which the caller keeps alive."""
    sampling = default(_abi.akunu_sampling_params)
    values: Dict[str, Any] = dict(options)
    for name in values:
        if name not in SamplingOptions.__annotations__:
            raise TypeError(f"there is no sampling parameter {name!r}")
    seed = values.pop("seed", None)
    sampling.seed = 0
    set_member(sampling, "seed", secrets.randbits(63) if seed is None else seed)
    samplers = values.get("samplers")
    if samplers is not None and not isinstance(samplers, str):
        values["samplers"] = ";".join(samplers)
    breakers = values.pop("dry_sequence_breakers", None)
    if breakers is not None:
        array = c_strings(breakers, "dry_sequence_breakers", end=True)
        sampling.dry_sequence_breakers = array
    bias = values.pop("logit_bias", None)
    if bias:
        pairs = [_abi.akunu_logit_bias(token, value) for token, value in bias.items()]
        biases = (_abi.akunu_logit_bias * len(pairs))(*pairs)
        sampling.logit_bias = biases
        sampling.n_logit_bias = len(bias)
    for name, value in values.items():
        if value is not None:
            set_member(sampling, name, value)
    if grammar is not None:
        sampling.grammar = grammar._pointer
    check(lib.akunu_sampling_check(ctypes.byref(sampling)))
    return sampling


def make_generation(
    sampling: _abi.akunu_sampling_params,
    max_tokens: Optional[int],
    stop: Union[str, Sequence[str]],
    special: bool,
    speculation: str,
) -> _abi.akunu_generation_params:
    """What akunu_session_generate takes. The struct keeps all it refers to, except the grammar."""
    generation = default(_abi.akunu_generation_params, special=special, max_tokens=max_tokens)
    generation.speculation = choose(SPECULATION, speculation, "speculation")
    generation.sampling = ctypes.pointer(sampling)
    stops: Tuple[str, ...] = (stop,) if isinstance(stop, str) else tuple(stop)
    if stops:
        generation.stops = c_strings(stops, "stop", end=False)
        generation.n_stops = len(stops)
    return generation
