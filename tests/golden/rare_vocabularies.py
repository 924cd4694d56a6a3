#!/usr/bin/env python3
"""Vocabularies with ties, unknown characters, words at a limit and merges that are there twice, for tests/text/tokenizer/test_tokenizer_json.c.

    rare_vocabularies.py OUT     (tokenizers, sentencepiece, gguf)

OUT is tests/data/tokenizer/rare.tsv. A line that begins with "@" is a tokenizer.json, one with "%" a tokenizer.model, for the lines
after it. Those have the columns of json.tsv, or text and ids where `sentencepiece` gives them. Bytes as in the other tables.
"""
import json
import struct
import sys
from pathlib import Path

import sentencepiece
from tokenizers import Tokenizer

from tokenizer import escape
from tokenizer_json import row

# SentencePiece's types of pieces and of models.
NORMAL, UNKNOWN, CONTROL, UNUSED = 1, 2, 3, 5
UNIGRAM, BPE = 1, 2

# The unknown token costs 10 more than the worst piece, which is -8 here. Of "abcdef" the three pieces sum to -20.5, the two with
# an unknown f to -21; of "ghijkl" they sum to -21.5 and -21. Neither f nor l is a piece, but both are in one.
PENALTY = [["ab", -8], ["cd", -6], ["ef", -6.5], ["a", -1], ["bc", -1], ["de", -1], ["gh", -8], ["ij", -6.75], ["kl", -6.75], ["g", -1],
           ["hi", -1], ["jk", -1]]
PENALTY_TEXTS = ["abcdef", "ghijkl", "f", "ff", "afl", "abcdefghijkl", "lab", "\U0001f642a", "a\xe9\xe9g"]

# Equal sums: one piece or two, two or three, the long piece first or last.
TIES = [["a", -1], ["b", -1], ["c", -1], ["ab", -2], ["bc", -2], ["abc", -3], ["x", -1], ["y", -1], ["z", -1], ["xy", -1], ["yz", -1],
        ["p", -2], ["q", -2], ["r", -2], ["pq", -3], ["qr", -3], ["pqr", -6]]
TIES_TEXTS = ["a", "ab", "bc", "abc", "abcabc", "cab", "xyz", "xyzxyz", "zyx", "pqr", "pqrpqr", "rqp", "xyab", "aabbcc"]


def unigram(vocab, **settings):
    return {"decoder": {"type": "Fuse"}, "model": {
        "type": "Unigram", "unk_id": 0, "vocab": [["<u>", 0]] + vocab, "byte_fallback": False, **settings}}


def bpe(tokens, merges, **settings):
    return {"decoder": {"type": "Fuse"}, "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges, **settings}}


def files():
    yield unigram(PENALTY), PENALTY_TEXTS
    yield unigram([["<s>", -9]] + PENALTY), PENALTY_TEXTS  # every piece counts, also one that no text has
    # Bytes stand for an unknown character where all of them are tokens; what they cost is the same.
    yield unigram(PENALTY + [[f"<0x{b:02X}>", -1] for b in b"f\xc3\xa9\xf0\x9f"], byte_fallback=True), PENALTY_TEXTS
    yield unigram(TIES), TIES_TEXTS
    yield unigram([["ab", -2], ["a", -1], ["b", -1], ["ab", -2], ["b", -4], ["a", -1.5]]), ["ab", "a", "b", "ba"]  # pieces that are there twice
    pieces = ["a", "b", "c", "ab", "bc"]
    for merges in (["a b", "b c"], ["b c", "a b"], ["a b", "b c", "a b"], ["b c", "a b", "b c"], [["a", "b"], ["b", "c"], ["a", "b"]]):
        yield bpe(pieces, merges), ["abc", "abcabc", "cbab", "aabbcc"]
    yield bpe(["a", "aa", "aaa", "aaaa"], ["a a", "aa a", "a aa", "aa aa"]), ["a" * n for n in range(1, 10)]
    # A word of more characters, not bytes, than the limit is unknown, and so is one that ends in no piece.
    yield {"pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": {"type": "Fuse"}, "model": {
        "type": "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 5,
        "vocab": {t: i for i, t in enumerate(["[U]", "a", "##a", "##aa", "ab", "##b", "\xe9", "##\xe9", "aaa"])}}}, [
            "aaaa", "aaaaa", "aaaaaa", "\xe9\xe9\xe9\xe9\xe9", "\xe9\xe9\xe9\xe9\xe9\xe9", "aaaaa aaaaaa aaaaa", "abab", "aab", "aabx", "xaab", "a\xe9b"]


# ---- SentencePiece ----


def field(number, data):
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def sentencepiece_model(pieces, kind):
    """Pieces are (text, score, type). Texts are not normalized."""
    out = b""
    for text, score, of in pieces:
        out += field(1, field(1, text.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", score) + bytes([3 << 3, of]))
    trainer = bytes([3 << 3, kind])
    return out + field(2, trainer) + field(3, bytes([3 << 3, 0, 4 << 3, 0, 5 << 3, 1]))


def models():
    ends = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
    normal = lambda pieces: [(text, score, NORMAL) for text, score in pieces]
    yield sentencepiece_model(ends + normal(PENALTY), UNIGRAM), PENALTY_TEXTS
    yield sentencepiece_model(ends + [("<c>", -100, CONTROL)] + normal(PENALTY), UNIGRAM), PENALTY_TEXTS  # only normal pieces count
    yield sentencepiece_model(ends + normal(TIES), UNIGRAM), TIES_TEXTS
    # Of equal scores the leftmost pair merges first.
    yield sentencepiece_model(ends + normal([["a", -9], ["b", -9], ["c", -9], ["ab", -1], ["bc", -1], ["aa", -2], ["aaa", -2], ["aaaa", -1]]), BPE), [
        "abc", "abcabc", "cab", "aaa", "aaaa", "aaaaaaa", "aabc"]


def main(out):
    lines = []
    for file, texts in files():
        text = json.dumps(file, ensure_ascii=False)
        tokenizer = Tokenizer.from_str(text)
        lines += ["@" + text] + [row(tokenizer, t) for t in texts]
    for model, texts in models():
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        lines.append("%" + escape(model))
        lines += [escape(t.encode()) + "\t" + " ".join(map(str, processor.encode(t))) for t in texts]
    Path(out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
