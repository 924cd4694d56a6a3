"""Sessions: one text in a KV cache, embeddings, logits."""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _abi
from ._call import Call
from ._errors import BusyError, Status
from ._handle import Closing, Handle
from ._library import check, check_count, check_pointer, choose, default, lib
from ._model import POOLING, LogFunction, LogSink, Model, c_tokens
from ._reply import Generation, Reply, ReplyWork, Work
from ._sampling import Grammar, SamplingOptions, make_generation, make_grammar, make_sampling
from ._tools import make_reply_tools

if TYPE_CHECKING:
    import numpy  # type: ignore[import-not-found,unused-ignore]
    import numpy.typing  # type: ignore[import-not-found,unused-ignore]
    from typing_extensions import Unpack

    FloatArray = numpy.typing.NDArray[numpy.float32]

KV_TYPES = ("f16", "f32", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
KV_CHOICES = ("important", "recent")
NORMALIZE = ("model", "none", "l2")

Prompt = Union[str, Sequence[int]]
Text = Union[str, Sequence[int]]


class Session(Closing):
    """A KV cache that holds one text, and the memory to continue it.

    The parameters are those of struct akunu_session_params (akunu/core.h); 0 leaves the choice to
    the library. log is as in Model.

    generate(), chat() and logits() take the whole text each time and run only what differs from the
    text that the session holds: of a conversation, that is the last message.

    A session runs one call at a time: another, from a second thread or while a generation is not
    read to its end, raises BusyError. Close it, or use it in a `with` statement. A child process of
    fork() cannot use its parent's sessions.
    """

    def __init__(
        self,
        model: Model,
        *,
        context: int = 0,
        batch: int = 0,
        max_sequences: int = 0,
        threads: int = 0,
        k_type: str = "f16",
        v_type: str = "f16",
        kv_keep: int = 0,
        kv_choice: str = "important",
        cpus: Optional[str] = None,
        log: Optional[LogFunction] = None,
    ) -> None:
        self._handle: Optional[Handle] = None
        self.model = model
        self._log = LogSink(log)
        self._holder: Dict[str, Call[Any]] = {}  # the call that runs, as "call"
        self._sequence = -1
        self._ids: List[int] = []  # the text that the sequence holds
        params = default(
            _abi.akunu_session_params,
            context=context,
            batch=batch,
            max_sequences=max_sequences,
            n_threads=threads,
            kv_keep=kv_keep,
            cpus=cpus,
        )
        params.kv_choice = choose(KV_CHOICES, kv_choice, "kv_choice")
        params.k_type = choose(KV_TYPES, k_type, "k_type")
        params.v_type = choose(KV_TYPES, v_type, "v_type")
        params.log = self._log.callback
        self._shares = max_sequences > 1  # embed() finds a free sequence beside the text's
        pointer = model._pointer

        def create(call: Call[Handle]) -> Handle:
            new = check_pointer(lib.akunu_session_new(pointer, ctypes.byref(params)))
            return Handle(new, lib.akunu_session_free, "session")

        self._handle = self._run(create)

    @property
    def _pointer(self) -> int:
        if self._handle is None:
            raise ValueError("the session is closed")
        return self._handle.pointer

    def close(self) -> None:
        """Ends a generation that is not read to its end, and frees the session; arrays of logits()
        stay valid. It may be called again, and by another thread."""
        call = self._holder.get("call")
        if call is not None:
            call.close()
        self._handle = None

    def __repr__(self) -> str:
        return f"<akunu.Session of {self.model!r}{' closed' if self._handle is None else ''}>"

    @property
    def context(self) -> int:
        """Capacity in tokens."""
        return int(lib.akunu_session_context(self._pointer))

    @property
    def batch(self) -> int:
        """The largest pass in tokens."""
        return int(lib.akunu_session_batch(self._pointer))

    @property
    def threads(self) -> int:
        return int(lib.akunu_session_threads(self._pointer))

    @property
    def tokens(self) -> List[int]:
        """The text that the KV cache holds."""
        return list(self._ids)

    # ---- One call at a time --------------------------------------------------------------------
    def _begin(self, call: Call[Any]) -> None:
        # One operation, so that neither a thread nor Ctrl-C comes in between.
        if self._holder.setdefault("call", call) is not call:
            raise BusyError(
                "the session is in use by another call: read a generation to its end or close() "
                "it, and let other threads wait",
                Status.BUSY,
            )
        self._log.call = call

    def _end(self, call: Call[Any]) -> None:
        """Frees the session, unless it is another call's."""
        if self._holder.get("call") is call:
            self._log.call = None
            del self._holder["call"]

    def _run(self, body: Callable[[Call[Any]], Any]) -> Any:
        """Runs a call that has no items but log lines, and returns its result."""
        call: Call[Any] = Call(body)
        try:
            self._begin(call)
            return call.run(self._log.take)
        finally:
            self._end(call)

    def _rewind(self, n: int) -> None:
        """Truncates the text to n tokens, in a call."""
        if self._sequence < 0:
            self._sequence = check_count(lib.akunu_sequence_new(self._pointer))
        if n < len(self._ids):
            check(lib.akunu_sequence_rewind(self._pointer, self._sequence, n))
            del self._ids[n:]

    def _keep_prefix(self, ids: List[int]) -> int:
        """Truncates the text to what it shares with `ids`, less the last token, in a call."""
        limit = min(len(self._ids), len(ids) - 1)
        n = next((i for i in range(limit) if self._ids[i] != ids[i]), max(limit, 0))
        if self._sequence >= 0:  # tokens may have been dropped
            n = int(lib.akunu_sequence_rewindable(self._pointer, self._sequence, n))
        self._rewind(n)
        return n

    def _follow(self, ids: List[int]) -> None:
        """Sets the text, of which the sequence holds a prefix, in a call."""
        n = int(lib.akunu_sequence_length(self._pointer, self._sequence))
        self._ids = ids[:n]

    def _ids_of(self, prompt: Prompt) -> List[int]:
        if isinstance(prompt, (str, bytes)):
            return self.model.tokenize(prompt)
        return list(c_tokens(prompt))

    # ---- Generating ----------------------------------------------------------------------------
    def generate(
        self,
        prompt: Prompt,
        *,
        max_tokens: Optional[int] = None,
        stop: Union[str, Sequence[str]] = (),
        grammar: Union[str, Grammar, None] = None,
        json_schema: Union[str, bool, Mapping[str, Any], None] = None,
        special: bool = False,
        speculation: str = "auto",
        **sampling: Unpack[SamplingOptions],
    ) -> Generation:
        """Continues a text; the result is an iterator of its pieces.

        prompt: a text, or the ids of one. max_tokens None: until the text ends or the context is
        full. stop: texts before which it ends. grammar: GBNF; json_schema: a schema as JSON text or
        Python objects. special: control tokens appear in the text. speculation: "none" is slower
        and gives the same text. For all else see SamplingOptions.
        """
        rules = make_grammar(grammar, json_schema)
        chosen = make_sampling(sampling, rules)
        params = make_generation(chosen, max_tokens, stop, special, speculation)
        return Generation(Work(self, self._ids_of(prompt), params, rules), chosen.seed)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        tool_choice: Union[str, Mapping[str, Any]] = "auto",
        parallel_tool_calls: bool = True,
        documents: Optional[Sequence[Mapping[str, Any]]] = None,
        template: Optional[str] = None,
        template_kwargs: Optional[Mapping[str, Any]] = None,
        max_tokens: Optional[int] = None,
        stop: Union[str, Sequence[str]] = (),
        grammar: Union[str, Grammar, None] = None,
        json_schema: Union[str, bool, Mapping[str, Any], None] = None,
        speculation: str = "auto",
        **sampling: Unpack[SamplingOptions],
    ) -> Reply:
        """Answers a conversation; the result is an iterator of the answer's pieces.

        messages, tools and tool_choice are OpenAI's. The model's chat template makes the prompt;
        documents, template and template_kwargs are as in Model.render(). Append the result's
        `message` to the messages, then the next one of the user, and call this again: the KV cache
        still holds the conversation.

        tools: calls are held to the tools' schemas, unless a grammar or a json_schema is given. For
        the other parameters see generate().
        """
        prompt = self.model.render(
            messages,
            tools=tools,
            documents=documents,
            template=template,
            template_kwargs=template_kwargs,
        )
        rules = make_grammar(grammar, json_schema)
        parsing = make_reply_tools(self.model, prompt, tools, template)
        if tools and rules is None:
            rules = parsing.make_grammar(tool_choice, parallel_tool_calls)
        chosen = make_sampling(sampling, rules)
        parsing.params.seed = chosen.seed
        params = make_generation(chosen, max_tokens, stop, True, speculation)
        ids = self.model.tokenize_chat(prompt)
        return Reply(ReplyWork(self, ids, params, rules, parsing), chosen.seed)

    # ---- Embeddings ----------------------------------------------------------------------------
    def embed(
        self,
        texts: Union[str, Sequence[Text]],
        *,
        pooling: str = "model",
        normalize: str = "model",
    ) -> FloatArray:
        """The embedding of a text, [width], or of a list of texts, [n, width].

        The result is a NumPy array of float32; without NumPy a list, or a list of lists. A text may
        be the ids of one. pooling: "mean", "cls", "last"; normalize: "none", "l2"; "model": as the
        model's files say. Both encoders and language models make embeddings. With
        max_sequences=1, the default for language models, the session forgets the text that
        generate() and chat() left.
        """
        params = default(_abi.akunu_embedding_params)
        params.pooling = choose(POOLING, pooling, "pooling")
        params.normalize = choose(NORMALIZE, normalize, "normalize")
        items = [texts] if isinstance(texts, str) else list(texts)
        arrays = [c_tokens(self._ids_of(text)) for text in items]
        rows = (_abi.akunu_ids * len(arrays))()
        for row, ids in zip(rows, arrays):
            row.ids = ctypes.cast(ids, ctypes.POINTER(ctypes.c_int32))
            row.n = len(ids)
        shape = (len(arrays), self.model.info.width)
        numpy = find_numpy()
        result: Any
        if numpy:
            result = numpy.empty(shape, dtype=numpy.float32)
            out = result.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        else:
            result = (ctypes.c_float * shape[1] * shape[0])()
            out = ctypes.cast(result, ctypes.POINTER(ctypes.c_float))

        def body(call: Call[None]) -> None:
            if self._sequence >= 0 and not self._shares:
                lib.akunu_sequence_free(self._pointer, self._sequence)
                self._sequence, self._ids = -1, []
            params.cancel = _abi.akunu_cancel_fn(call.guard(lambda user: call.cancelled, True))
            check(
                lib.akunu_session_embed(
                    self._pointer, rows, len(arrays), ctypes.byref(params), out
                )
            )

        self._run(body)
        if not numpy:
            result = [list(row) for row in result]
        chosen: FloatArray = result[0] if isinstance(texts, str) else result
        return chosen

    # ---- Logits --------------------------------------------------------------------------------
    def logits(self, prompt: Prompt, *, every: bool = False) -> FloatArray:
        """The logits that follow a text, as a NumPy array of float32. Needs NumPy.

        every=False: those after its last token, [vocab_size]. The array is a read-only view of
        the session's memory: it keeps that memory alive, and the session's next pass (any call of
        generate(), chat(), embed() or logits()) overwrites it. Use .copy() to keep it.

        every=True: those of each token, [n, vocab_size], as a new array.
        """
        numpy = find_numpy()
        if numpy is None:
            raise ImportError("logits() needs NumPy: pip install numpy")
        ids = self._ids_of(prompt)
        if not ids:
            raise ValueError("the prompt has no tokens")
        result: FloatArray
        if every:
            result = self._run(lambda call: self._every_logits(call, ids, numpy))
            return result
        address = self._run(lambda call: self._last_logits(call, ids))
        view: Any = (ctypes.c_float * self.model.info.vocab_size).from_address(address)
        view._keep = self._handle  # the session's memory lives as long as the array
        result = numpy.frombuffer(view, dtype=numpy.float32)
        result.flags.writeable = False
        return result

    def _last_logits(self, call: Call[Any], ids: List[int]) -> int:
        n = self._keep_prefix(ids)
        rest = c_tokens(ids[n:])
        prompt = _abi.akunu_ids(rest, len(rest))
        last = ctypes.c_size_t()
        cancel = _abi.akunu_cancel_fn(call.guard(lambda user: call.cancelled, True))
        try:
            check(
                lib.akunu_session_prefill(
                    self._pointer,
                    self._sequence,
                    ctypes.byref(prompt),
                    cancel,
                    None,
                    ctypes.byref(last),
                )
            )
        finally:
            self._follow(ids)
        row = lib.akunu_session_logits(self._pointer, last.value)
        return ctypes.addressof(row.contents)

    def _every_logits(self, call: Call[Any], ids: List[int], numpy: Any) -> Any:
        self._rewind(0)
        vocab_size = self.model.info.vocab_size
        out = numpy.empty((len(ids), vocab_size), dtype=numpy.float32)
        size = min(self.batch, 64)  # a pass has the logits of all its tokens in memory
        try:
            for first in range(0, len(ids), size):
                if call.cancelled:
                    break
                part = ids[first : first + size]
                items = [_abi.akunu_batch_token(token, self._sequence, True) for token in part]
                tokens = (_abi.akunu_batch_token * len(part))(*items)
                check(lib.akunu_session_decode(self._pointer, tokens, len(part)))
                for i in range(len(part)):
                    row = lib.akunu_session_logits(self._pointer, i)
                    out[first + i] = numpy.ctypeslib.as_array(row, shape=(vocab_size,))
        finally:
            self._follow(ids)
        return out


def find_numpy() -> Any:
    """NumPy; None: it is not installed.

    A thread imports it: Ctrl-C reaches the main thread alone, and NumPy may swallow it while it is
    imported, or take it for a reason that it cannot be.
    """
    found: List[Any] = [None]

    def find() -> None:
        try:
            import numpy
        except ImportError:
            return
        found[0] = numpy

    if "numpy" in sys.modules:
        find()
    else:
        thread = threading.Thread(target=find, name="akunu", daemon=True)
        thread.start()
        thread.join()
    return found[0]
