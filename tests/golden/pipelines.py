#!/usr/bin/env python3
"""Vocabularies of WordPiece and Unigram, and what llama.cpp makes of texts with them, for tests/text/tokenizer/test_tokenizer.c.

    pipelines.py FIXTURES LLAMA_TOKENIZE OUT     (gguf)

wordpiece.gguf and unigram.gguf are the vocabularies of the fixtures bert and xlm-roberta, without the latter's large character
map. The lines of pipelines.tsv: the file's name, the text (bytes as in the other tables), the ids with control tokens parsed
and all added that the model wants.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import tokenizer
from tokenizer import copy_vocabulary, escape

TEXTS = [
    "Hello, world", "  two  blanks ", "The King's men don't run.", "unbelievable running", "e\u0301 \xe9 \xc9 \xdf \u0130", "日本の漢字 カタカナ", "한국어 글",
    "a\u2028b\x85c\u00a0d", "x\u200by\ufeffz\x01w", "$+<=>^`| «»…", "[MASK] a [SEP]b[CLS]", "<s> a</s><mask> b", "▁a ▁▁b", "🙂🏳️", "z" * 150, "1234 ½ Ⅻ",
]


def main(fixtures, llama_tokenize, out):
    fixtures, out = Path(fixtures), Path(out)
    tokenizer.LEFT_OUT += ("tokenizer.ggml.precompiled_charsmap",)
    lines = []
    for name, source in (("wordpiece", "bert/gguf/bert-f32.gguf"), ("unigram", "xlm-roberta/gguf/xlm-roberta-bf16.gguf")):
        copy_vocabulary(fixtures / source, out / f"{name}.gguf")
        for text, ids in by_llama_cpp(llama_tokenize, out / f"{name}.gguf"):
            lines.append("\t".join((name, escape(text.encode()), " ".join(map(str, ids)))) + "\n")
    (out / "pipelines.tsv").write_text("".join(lines))


def by_llama_cpp(program, model):
    """As in tokenizer.py, with what the model adds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "text")
        for text in TEXTS:
            file.write_bytes(text.encode())
            command = [program, "-m", model, "-f", file, "--ids", "--no-escape", "--log-disable"]
            yield text, json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
