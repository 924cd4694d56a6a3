"""Models: loading, what they are, tokens, chat templates."""

from __future__ import annotations

import array
import ctypes
import json
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _abi
from ._call import Call
from ._handle import Closing, Handle
from ._library import (
    c_string,
    check_count,
    check_pointer,
    choose,
    default,
    fetch,
    lib,
)
from ._sampling import c_strings

if TYPE_CHECKING:
    from ._session import Session

LogFunction = Callable[[str, str], object]
ProgressFunction = Callable[[str, float], object]
Override = Union[bool, int, float, str]

PREFILL = ("auto", "own", "blas")
POOLING = ("model", "mean", "cls", "last")
LOG_LEVELS = ("debug", "info", "notice", "warn")


@dataclass(frozen=True)
class ModelInfo:
    """What a model is: struct akunu_model_info (akunu/core.h)."""

    name: str
    architecture: str
    format: str
    weight_type: str
    cpu: str
    n_layers: int
    width: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_width: int
    vocab_size: int
    context: int
    n_parameters: int
    token_weight_bytes: int
    matrix_parameters: int
    float_parameters: int
    encoder: bool
    pooling: str
    normalized: bool


class LogSink:
    """Log lines of the library, handed to the caller of the call that is running."""

    def __init__(self, function: Optional[LogFunction]) -> None:
        self.call: Optional[Call[Any]] = None
        self._function = function
        self.callback = _abi.akunu_log_fn(self._write) if function else _abi.akunu_log_fn()

    def _write(self, level: int, line: int, user: int) -> None:
        call = self.call
        if call is not None:
            try:
                text = ctypes.string_at(line).decode("utf-8", "replace")
                call.tell((LOG_LEVELS[level], text, self))
            except BaseException as error:
                call.fail(error)

    def take(self, item: Any) -> bool:
        """True if an item of a call is a log line, which is then passed on."""
        if not (isinstance(item, tuple) and item[-1] is self):
            return False
        if self._function:
            self._function(item[0], item[1])
        return True


def make_overrides(override_kv: Mapping[str, Override]) -> Any:
    """{"llama.context_length": 4096} as "llama.context_length=int:4096"."""

    def write(key: str, value: Override) -> str:
        if isinstance(value, bool):
            return f"{key}=bool:{'true' if value else 'false'}"
        kind = {int: "int", float: "float", str: "str"}.get(type(value))
        if kind is None:
            raise TypeError(f"override_kv: {key} is {value!r}; bool, int, float or str is expected")
        return f"{key}={kind}:{value}"

    return c_strings([write(k, v) for k, v in override_kv.items()], "override_kv", end=True)


class Model(Closing):
    """A loaded model: immutable, and shared by any number of threads and sessions.

    path: a GGUF file or a Hugging Face folder. The parameters are those of struct
    akunu_load_params (akunu/core.h); None and 0 leave the choice to the library. progress gets the
    name of a stage and its fraction, 0 to 1; False from it cancels the load (CancelledError). log
    gets "debug", "info", "notice" or "warn" and a line. Both run in the calling thread and may
    raise.

    Close it, or use it in a `with` statement, after its sessions. A child process of fork() cannot
    use its parent's models.
    """

    def __init__(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        cpu: Optional[str] = None,
        threads: int = 0,
        strict: bool = False,
        warm_up: bool = False,
        cache: bool = True,
        cache_dir: Union[str, "os.PathLike[str]", None] = None,
        profile: Union[str, "os.PathLike[str]", None] = None,
        relaxed: bool = False,
        prefill: str = "auto",
        override_kv: Optional[Mapping[str, Override]] = None,
        backend: Optional[str] = None,
        device: Optional[str] = None,
        gpu_layers: int = -1,
        progress: Optional[ProgressFunction] = None,
        log: Optional[LogFunction] = None,
    ) -> None:
        self._handle: Optional[Handle] = None
        self._template: Optional[Handle] = None
        self._lock = threading.Lock()  # a template is used by one thread at a time
        params = default(
            _abi.akunu_load_params,
            cpu=cpu,
            n_threads=threads,
            strict=strict,
            warm_up=warm_up,
            no_cache=not cache,
            cache_dir=cache_dir,
            profile=profile,
            relaxed=relaxed,
            backend=backend,
            device=device,
            n_gpu_layers=gpu_layers,
        )
        params.prefill = choose(PREFILL, prefill, "prefill")
        if override_kv:
            params.override_kv = make_overrides(override_kv)
        self._handle = _load(c_string(path, "path"), params, progress, log)
        self.path = os.fspath(path)
        self.info = self._read_info()

    def _read_info(self) -> ModelInfo:
        raw = fetch(_abi.akunu_model_info, lib.akunu_model_get_info, self._pointer)
        values: Dict[str, Any] = {}
        for name in ModelInfo.__dataclass_fields__:
            value = getattr(raw, name)
            values[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        values["pooling"] = POOLING[raw.pooling]
        return ModelInfo(**values)

    @property
    def _pointer(self) -> int:
        if self._handle is None:
            raise ValueError("the model is closed")
        return self._handle.pointer

    def close(self) -> None:
        """Frees the model, once its sessions are closed too. It may be called again."""
        self._handle = self._template = None

    def __repr__(self) -> str:
        return f"<akunu.Model {self.path!r}{' closed' if self._handle is None else ''}>"

    def session(self, **params: Any) -> Session:
        """Session(self, ...) with the same parameters."""
        from ._session import Session

        return Session(self, **params)

    # ---- Tokens --------------------------------------------------------------------------------
    @property
    def _tokenizer(self) -> int:
        return check_pointer(lib.akunu_model_tokenizer(self._pointer))

    def tokenize(
        self, text: Union[str, bytes], *, add_special: bool = True, parse_special: bool = True
    ) -> List[int]:
        """The token ids of a text.

        add_special: with the special tokens that the model asks for (BOS, EOS). parse_special:
        control tokens written in the text become those tokens; False for text of strangers.
        """
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
        flags = _abi.AKUNU_ADD_SPECIAL * add_special | _abi.AKUNU_PARSE_SPECIAL * parse_special
        tokenizer = self._tokenizer
        capacity = len(data) + 16
        while True:
            ids = (ctypes.c_int32 * capacity)()
            n = check_count(
                lib.akunu_tokenizer_encode(tokenizer, data, len(data), flags, ids, capacity)
            )
            if n <= capacity:
                return ids[:n]
            capacity = n

    def detokenize(
        self, ids: Sequence[int], *, skip_special: bool = False, continued: bool = False
    ) -> str:
        """The text of tokens; incomplete characters become U+FFFD.

        skip_special: without control tokens. continued: the tokens continue a text, so a leading
        space belongs to it.
        """
        tokens = c_tokens(ids)
        flags = _abi.AKUNU_SKIP_SPECIAL * skip_special | _abi.AKUNU_CONTINUE * continued
        tokenizer = self._tokenizer
        capacity = 16 * len(tokens) + 16
        while True:
            text = ctypes.create_string_buffer(capacity)
            n = check_count(
                lib.akunu_tokenizer_decode(
                    tokenizer, tokens, len(tokens), flags, text, capacity
                )
            )
            if n <= capacity:
                return text.raw[:n].decode("utf-8", "replace")
            capacity = n

    @property
    def bos(self) -> Optional[int]:
        """The beginning-of-sequence token; None: the model has none."""
        token = int(lib.akunu_tokenizer_bos(self._tokenizer))
        return None if token < 0 else token

    def is_end(self, token: int) -> bool:
        """Whether a token ends a text: end of sequence, of turn, of text."""
        return bool(lib.akunu_tokenizer_is_end(self._tokenizer, token))

    def is_control(self, token: int) -> bool:
        """Whether a token is a control token or the unknown token."""
        return bool(lib.akunu_tokenizer_is_control(self._tokenizer, token))

    # ---- Chat templates ------------------------------------------------------------------------
    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        documents: Optional[Sequence[Mapping[str, Any]]] = None,
        template: Optional[str] = None,
        template_kwargs: Optional[Mapping[str, Any]] = None,
        add_generation_prompt: bool = True,
    ) -> str:
        """The prompt that the model's chat template makes of a conversation.

        messages and tools are OpenAI's: [{"role": "user", "content": "Hi"}]. template: the name of
        one of the model's templates. template_kwargs: variables for it, such as
        {"enable_thinking": False}.
        """
        chat = default(
            _abi.akunu_chat,
            messages=json.dumps(list(messages)),
            tools=None if tools is None else json.dumps(list(tools)),
            documents=None if documents is None else json.dumps(list(documents)),
            kwargs=None if template_kwargs is None else json.dumps(dict(template_kwargs)),
            name=template,
            add_generation_prompt=add_generation_prompt,
        )
        n = ctypes.c_size_t()
        with self._lock:
            handle = self._open_template()
            text = check_pointer(
                lib.akunu_template_render(handle, ctypes.byref(chat), ctypes.byref(n))
            )
        try:
            return ctypes.string_at(text, n.value).decode("utf-8", "replace")
        finally:
            lib.akunu_text_free(text)

    def _open_template(self) -> int:
        if self._template is None:
            pointer = check_pointer(lib.akunu_model_template(self._pointer))
            self._template = Handle(pointer, lib.akunu_template_free, "model")
        return self._template.pointer

    def template_text(self, *, name: Optional[str] = None, tools: bool = False) -> Optional[str]:
        """The source of the chat template for conversations with or without tools; None: the model
        has no template of that name."""
        given = None if name is None else c_string(name, "name")
        with self._lock:
            text = lib.akunu_template_text(self._open_template(), given, tools, None)
        return None if text is None else str(text.decode("utf-8", "replace"))

    def tokenize_chat(self, prompt: str) -> List[int]:
        """The ids of a rendered prompt. Most templates write BOS themselves; for the others it is
        added if the model wants one."""
        ids = self.tokenize(prompt, add_special=False)
        first = self.tokenize("")[:1]
        return first + ids if first and first == [self.bos] != ids[:1] else ids


def _load(
    path: bytes,
    params: _abi.akunu_load_params,
    progress: Optional[ProgressFunction],
    log: Optional[LogFunction],
) -> Handle:
    sink = LogSink(log)

    def load(call: Call[Handle]) -> Handle:
        def report(stage: int, fraction: float, user: int) -> bool:
            return call.ask((stage, fraction)) if progress else not call.cancelled

        sink.call = call
        params.progress = _abi.akunu_progress_fn(call.guard(report, False))
        params.log = sink.callback
        pointer = check_pointer(lib.akunu_model_load(path, ctypes.byref(params)))
        return Handle(pointer, lib.akunu_model_free, "model")

    call = Call(load)

    def pass_on(item: Any) -> None:
        if sink.take(item) or not progress:
            return
        if progress(lib.akunu_load_stage_name(item[0]).decode(), item[1]) is False:
            call.cancel()

    return call.run(pass_on)


def c_tokens(ids: Sequence[int]) -> Any:
    """Token ids as a C array; an id that is no 32-bit integer is an error."""
    if isinstance(ids, (str, bytes, bytearray)):
        raise TypeError(f"the tokens are {type(ids).__name__}; a list of ids is expected")
    items = array.array("i", ids)
    return (ctypes.c_int32 * len(items)).from_buffer(items)
