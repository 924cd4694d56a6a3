"""akunu: runs language models and text encoders on the CPU.

    import akunu

    with akunu.Model("model.gguf") as model, model.session() as session:
        for piece in session.generate("Once upon a time", max_tokens=64, seed=1):
            print(piece, end="", flush=True)

Model is shared by any number of threads. Session is one text in a KV cache, used by one thread at
a time: generate() continues a text, chat() answers a conversation, embed() makes embeddings,
logits() is for those who sample themselves. Failures of the library are exceptions: AkunuError.
"""

from ._errors import (
    AkunuError,
    ArgumentError,
    BusyError,
    CancelledError,
    ContextError,
    FileError,
    FormatError,
    NumericError,
    OutOfMemoryError,
    Status,
    SystemFailure,
    UnsupportedError,
)
from ._library import build_info, version
from ._model import Model, ModelInfo
from ._reply import Generation, Reply
from ._sampling import Grammar, SamplingOptions
from ._session import Session
from ._tools import Event

__all__ = [
    "AkunuError",
    "ArgumentError",
    "BusyError",
    "CancelledError",
    "ContextError",
    "Event",
    "FileError",
    "FormatError",
    "Generation",
    "Grammar",
    "Model",
    "ModelInfo",
    "NumericError",
    "OutOfMemoryError",
    "Reply",
    "SamplingOptions",
    "Session",
    "Status",
    "SystemFailure",
    "UnsupportedError",
    "build_info",
    "version",
]
