#!/usr/bin/env python3
"""Prompts of faster-whisper with hot words.

usage: hotwords.py FOLDER TOKENIZER      makes hotwords.txt in tests/data/speech

Needs PyPI's faster-whisper 1.2.1, whose own get_prompt() runs, and the tokenizer.json of
openai/whisper-tiny.en. Each line is whether there are times, and four lists of tokens, each after
its length: hot words, text before, prefix, prompt."""
import pathlib
import sys
import types

import tokenizers
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer

tokenizer = Tokenizer(tokenizers.Tokenizer.from_file(sys.argv[2]), False)
model = types.SimpleNamespace(max_length=448)
TEXT = "And so, my fellow Americans, ask not what your country can do for you."
NAMES = " akunu, Marianne Dashwood; Barton Park "
CASES = [
    (None, "", None, False),
    (NAMES, "", None, False),
    (NAMES, TEXT, None, False),
    (NAMES, TEXT, None, True),
    (NAMES, TEXT * 20, None, False),
    (NAMES * 20, "", None, False),
    (NAMES * 9, TEXT, None, True),
    (NAMES, TEXT, "Ask", True),
    (NAMES, "", "Ask", True),
    (None, TEXT, "Ask", True),
]


def encode(text):
    return tokenizer.encode(" " + text.strip()) if text else []


def row(hotwords, before, prefix, no_times):
    prompt = WhisperModel.get_prompt(model, tokenizer, encode(before), no_times, prefix, hotwords)
    lists = [encode(hotwords), encode(before), encode(prefix), prompt]
    return " ".join(str(x) for x in [int(not no_times)] + [y for tokens in lists for y in [len(tokens), *tokens]])


(pathlib.Path(sys.argv[1]) / "hotwords.txt").write_text("\n".join(row(*case) for case in CASES) + "\n")
