#!/usr/bin/env python3
"""A vocabulary of BPE over characters, and what llama.cpp makes of texts with it, for tests/text/tokenizer/test_tokenizer.c.

    raw_bpe.py LIBLLAMA.so OUT     (numpy, gguf)

raw.gguf and whitespace.gguf are synthetic. The lines of the tables: the pre-tokenizer's name, the text (bytes as in the other tables), the ids with control
tokens parsed and all added that the model wants.
"""
import ctypes
import sys
import tempfile
from pathlib import Path

import gguf

NAMES = ("gemma4", "sarvam-moe", "whitespace")
TEXTS = [
    "Hello, world", "  two  blanks ", "the hello the", "\n", "\n\n", "\n\n\n", "a\n\n\n\nb\n", " \n the\r\n", "\t the", "h\xe9llo", "日本 hello",
    "<s>the<e> the", "▁the ▁▁", "llll", "lo wor ld", "x\u00a0y", "\x01", "hello" * 20,
]


def vocabulary():
    """(tokens, their types, merges)"""
    characters = [chr(c) for c in range(33, 127)] + ["▁", "é", "\n", "日"]
    merges = [("▁", "t"), ("h", "e"), ("l", "l"), ("▁t", "he"), ("he", "ll"), ("hell", "o"), ("▁", "▁"), ("\n", "\n"), ("o", "r"), ("w", "or"),
              ("wor", "l"), ("worl", "d"), ("▁", "world"), ("t", "he"), ("▁", "hello")]
    tokens = ["<u>", "<s>", "<e>"] + [f"<0x{b:02X}>" for b in range(256)]
    types = [2, 3, 3] + [6] * 256
    for token in characters + [a + b for a, b in merges] + ["\n\n\n\n"]:
        if token not in tokens:
            tokens.append(token)
            types.append(1)
    return tokens, types, merges


def save(path, pre):
    tokens, types, merges = vocabulary()
    out = gguf.GGUFWriter(path, "llama")
    out.add_tokenizer_model("whitespace" if pre == "whitespace" else "gpt2")
    out.add_tokenizer_pre(pre)
    out.add_token_list(tokens)
    out.add_token_types(types)
    out.add_token_merges([f"{a} {b}" for a, b in merges])
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.close()


def by_llama_cpp(path, file):
    class Params(ctypes.Structure):
        _fields_ = [("before", ctypes.c_uint8 * 64), ("vocab_only", ctypes.c_bool), ("after", ctypes.c_uint8 * 7)]

    lib = ctypes.CDLL(path)
    lib.llama_model_default_params.restype = Params
    lib.llama_model_load_from_file.restype, lib.llama_model_load_from_file.argtypes = ctypes.c_void_p, [ctypes.c_char_p, Params]
    lib.llama_model_get_vocab.restype, lib.llama_model_get_vocab.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    lib.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool,
                                   ctypes.c_bool]
    params = lib.llama_model_default_params()
    params.vocab_only = True
    vocab = lib.llama_model_get_vocab(lib.llama_model_load_from_file(str(file).encode(), params))
    for text in TEXTS:
        ids = (ctypes.c_int32 * 1000)()
        n = lib.llama_tokenize(vocab, text.encode(), len(text.encode()), ids, 1000, True, True)
        assert n >= 0
        yield text, list(ids[:n])


def escape(data):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in data)


def main(library, out):
    for name in NAMES:
        file, lines = "raw" if name != "whitespace" else name, []
        save(Path(out) / f"{file}.gguf", name)
        with tempfile.NamedTemporaryFile(suffix=".gguf") as copy:
            save(copy.name, name)
            for text, ids in by_llama_cpp(library, copy.name):
                lines.append("\t".join((name, escape(text.encode()), " ".join(map(str, ids)))) + "\n")
        with open(Path(out) / f"{file}.tsv", "w" if name in ("gemma4", "whitespace") else "a") as table:
            table.writelines(lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
