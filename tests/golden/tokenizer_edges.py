#!/usr/bin/env python3
"""Small tokenizer.json files, each for one part and its edges, and what `tokenizers` makes of texts with them.

    tokenizer_edges.py DATA     (tokenizers; DATA is tests/data)

Writes DATA/tokenizer/edges.tsv, which has the form of json.tsv, but "$BYTES" stands for a vocabulary of all bytes. In BYTES each
byte of a normalized text is a token, so that no change of it is missed; in SPANS a word begins with a token of its own, so that
each cut is seen.
"""
import json
import sys
from pathlib import Path

from tokenizer_json import row
from tokenizers import Tokenizer

FUSE = {"type": "Fuse"}
BYTES = {"decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, FUSE]}, "model": {
    "type": "BPE", "vocab": {f"<0x{b:02X}>": b for b in range(256)}, "merges": [], "byte_fallback": True, "unk_token": None}}
ALL_BYTES = json.dumps(BYTES["model"]["vocab"], separators=(",", ":"))
LETTERS = "abcxyz012,.!-_ \u2581\u00e9\u4e00\n"
SPANS = {"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False}, "model": {
    "type": "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    "vocab": {t: i for i, t in enumerate(["[U]"] + [p + c for p in ("", "##") for c in LETTERS])}}}

FORMS = ["e\u0301", "\u00e9", "a\u0301\u0323b", "\u0301", "x\u0301\u0301", "\u212b", "\ufb01\u2460", "\uac00\u1100\u1161\u11a8", "a\u0301 b\u0301c", "\u00e9\u00e9e", "\u1e9b\u0323", "\u0344", "\u0958", "abc", "a\u00a0b"]
BERT = ["A\u00c9\u0301b", "\x00a\ufffdb\x01", "a\tb\nc\rd", "\x7f\x80\u200b\u00ad", "a\u00a0b\u2003c\u3000d\u2028e\x85f\x0bg", "\u4e00\u9fff\ua000\u33ff\u3400\u4dbf\u4dc0\u4dff", "\uf8ff\uf900\ufaff\ufb00",
        "\U0001ffff\U00020000\U0002a6df\U0002a6e0\U0002a6ff\U0002a700\U0002b73f\U0002b740\U0002b81f\U0002b820\U0002ceaf\U0002ceb0\U0002f7ff\U0002f800\U0002fa1f\U0002fa20", "\u3042\uac00", "\u0130\u03a3\u00df\u1e9e",
        "\u0903\u0301\u20dd\u093c"]
SPACES = ["", " ", "   ", "a", " a", "a ", " a ", "  a  b  ", "\u00a0a\u2003", "\na\t", "\u200ba\u200b"]
CUTS = ["", "a", "ab", "xab", "abx", "xabx", "abab", "xababx", "ab ab", "a,b", ",a", "a,", ",,", "a,,b.", "a1b22", "1", "12a", "a b", " a", "a ", "  ", " a  b ", "\u00e9,\u4e001", "a_b-c", "_", "a\nb", "\u2581a",
        "a\u2581\u2581b ", "a\u2581 b", "\u2581", "!", "a!1 "]


def seq(name, *parts):
    return {"type": "Sequence", name: list(parts)}


def normalizers(data):
    for form in ("NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase"):
        yield {"type": form}, FORMS + ["\u0130\u03a3A\u03a3", "A\u00df"]
    for left in (True, False):
        for right in (True, False):
            yield {"type": "Strip", "strip_left": left, "strip_right": right}, SPACES
    for pattern, content in [({"String": "ab"}, "x"), ({"String": "ab"}, ""), ({"String": "x"}, "abab"), ({"Regex": "b+"}, "<>"), ({"Regex": "b*"}, "-"), ({"Regex": "^a|b$"}, "\u00e9"), ({"Regex": " {2,}"}, " "),
                             ({"Regex": "[^\\S\\n]+"}, "_"), ({"Regex": "(?<=a)b"}, ""), ({"Regex": "\\p{Lu}"}, "u")]:
        yield {"type": "Replace", "pattern": pattern, "content": content}, ["", "a", "ab", "abab", "xabx", "bb", "abbb", "a  b   c", "\u00e9ab\u00e9", "aAB\u00c9", "b a\n b"]
    yield {"type": "Prepend", "prepend": "\u2581"}, ["", "a", "\u2581a"]
    for clean in (True, False):
        for chinese in (True, False):
            for lower in (True, False):
                for strip in (None, True, False):
                    if clean == chinese or strip is None and lower:
                        yield {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese, "lowercase": lower, "strip_accents": strip}, BERT if strip is None else BERT[:1] + BERT[-2:]
    charsmap = json.loads((data / "vocabularies/xlm-roberta/tokenizer.json").read_text())["normalizer"]["normalizers"][0]
    yield charsmap, ["x\ufb01y", "\u2460", "\u2460\u2461", "\ufb01\u0301", "\ufb01\u0301\u0301", "A", "aAb", "A\u0301", "A\u0301\u0301", "A\u0301\u0301\u0301", "A\u200d\u0301", "\u0301A", "\t\t", "a\tb\t", "\ufb00", "\ufb02\ufb01\ufb01", "\r\n", "\u4e00\ufb01", "",
                     "\U0001f468\u200d\U0001f469A", "\uac00\ufb01\u11a8", "x\u2460\u20dd"]
    yield seq("normalizers", {"type": "Lowercase"}, {"type": "Replace", "pattern": {"String": "b"}, "content": "B"}, {"type": "Prepend", "prepend": "B"}, {"type": "NFD"}), ["", "AB", "\u00c9b"]


def pretokenizers():
    yield {"type": "Whitespace"}
    yield {"type": "WhitespaceSplit"}
    yield {"type": "BertPreTokenizer"}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield {"type": "Punctuation", "behavior": behavior}
        for pattern in ({"String": "ab"}, {"Regex": "[ab]"}, {"Regex": "b*"}, {"Regex": "\\s+(?!\\S)|\\s+"}):
            if pattern != {"Regex": "b*"} or behavior == "Isolated":
                yield {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}
        yield {"type": "Split", "pattern": {"String": "ab"}, "behavior": behavior, "invert": True}
    for alone in (True, False):
        yield {"type": "Digits", "individual_digits": alone}
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
    yield seq("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True})
    yield seq("pretokenizers", {"type": "Split", "pattern": {"String": "a"}, "behavior": "Isolated", "invert": False}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True})


def bpe(tokens, merges, **settings):
    return {"decoder": FUSE, "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges, **settings}}


def models():
    texts = ["", "a", "ab", "x", "xx", "xay", "xxay", "axxb", "\u00e9\u00e9a\u00e9", "abxab", "xabxxab", "aab", "abb", "\U0001f600a"]
    plain = ["<u>", "a", "b", "ab", "abb"]
    for fuse in (True, False):
        yield bpe(plain, ["a b"], unk_token="<u>", fuse_unk=fuse), texts
        yield bpe(plain + [f"<0x{b:02X}>" for b in b"x\xc3\xa9"], ["a b"], unk_token="<u>", fuse_unk=fuse, byte_fallback=True), texts
    yield bpe(plain, ["a b"]), texts
    for ignore in (True, False):
        yield bpe(plain, ["a b"], unk_token="<u>", ignore_merges=ignore), texts
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        yield dict(bpe(["a", "b", "ab", "\u0120", "\u0120a", "\u0120ab", "\u010a", "\u00c3", "\u00a9", "\u00c3\u00a9", "abb"], ["a b", "\u0120 a", "\u00c3 \u00a9"], ignore_merges=ignore), pre_tokenizer=level, decoder=level), texts + [
            " a", " ab", "a ab", "\na", "abb abb", " \u00e9\u00e9"]
    for limit in (1, 2, 3):
        yield {"decoder": FUSE, "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {
            "type": "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##", "max_input_chars_per_word": limit,
            "vocab": {t: i for i, t in enumerate(["[U]", "a", "##a", "ab", "##b", "\u00e9", "##\u00e9", "aba"])}}}, ["", "a", "aa", "aaa", "aaaa", "ab", "aba", "\u00e9\u00e9", "\u00e9\u00e9\u00e9", "b", "ax", "xa", "a x a", "ba ab"]


def decoders():
    vocab = ["a", " a", "\u2581a", "\u2581", "##b", "  c ", "<0x41>", "<0xC3>", "<0xA9>", "<0xa9>", "<0xG1>", "<0x4>", ".", " .", "do", " n't", "ab", "a.b", "\u2581\u2581b", "'", " ' ", "n't", "'s", " 's", "'ve", " '", "##", "#"]
    texts = ["|".join(p) for p in [
        vocab[:4], ["\u2581a", "a"], ["\u2581", "\u2581a"], ["a", "##b", "\u2581a"], ["  c ", "a"], ["<0x41>"], ["<0xC3>", "<0xA9>"], ["<0xC3>", "<0xa9>", "a"], ["a", "."], ["a", " ."], ["do", "n't"], ["a", "'", "a"], ["a", "'s"],
        ["a", "'ve", "##b"], ["##b", "a"], ["##", "#"], ["\u2581\u2581b", "a"], ["<0xG1>", "<0x4>"], [" ' ", "'"], ["do", " n't", " 's"], ["a", "'ve", "do"], ["ab", "a.b", " '", "a"]]]
    strip = lambda start, stop: {"type": "Strip", "content": " ", "start": start, "stop": stop}
    for decoder in [FUSE, seq("decoders", {"type": "ByteFallback"}, FUSE), seq("decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, FUSE), {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
                    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": True}, seq("decoders", {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, FUSE, strip(1, 0)),
                    {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "WordPiece", "prefix": "##", "cleanup": False}]:
        yield {"decoder": decoder, "pre_tokenizer": {"type": "Split", "pattern": {"String": "|"}, "behavior": "Removed", "invert": False}, "model": {
            "type": "BPE", "vocab": {t: i for i, t in enumerate(vocab)}, "merges": [], "ignore_merges": True}}, [
                text for text in texts if decoder["type"] in ("Fuse", "Sequence") or not any(t in text for t in ("##b", "  c ", " ' ", "\u2581\u2581b"))]


def added():
    of = lambda i, content, **more: dict(dict(id=256 + i, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False), **more)
    texts = ["", "[X]", "a[X]b", " [X] ", "a  [X]  b", "\u00a0[X]\u2003", "\n[X]\n", "[X][X]", "[X] [X]", "[[X]]", "[X", "a[Xb", "tok", "atok", "toka", "tok.", ".tok", "tok1", "_tok", "tok_", "\u00e9tok", "tok\u00e9", "tok tok", "toktok", "tok\u0301", "abc", "abcd",
             "ababc", "abcab", "bc", "AB", "ab", "\u00e9", "e\u0301", "a AB b", "xABx"]
    for flags in [{}, {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}, {"special": True}, {"special": True, "lstrip": True}]:
        yield dict(BYTES, added_tokens=[of(0, "[X]", **flags)]), texts[:12]
    yield dict(BYTES, added_tokens=[of(0, "tok", single_word=True)]), [t for t in texts if "tok" in t]
    yield dict(BYTES, added_tokens=[of(0, "ab"), of(1, "abc"), of(2, "bc"), of(3, "abcde"), of(4, "c", special=True)]), [t for t in texts if "ab" in t or "bc" in t]
    yield dict(BYTES, added_tokens=[of(0, "AB", normalized=True), of(1, "\u00e9", normalized=True), of(2, "XY")], normalizer=seq("normalizers", {"type": "NFD"}, {"type": "Lowercase"})), texts[-12:] + ["xyXY", "ABXYab"]
    yield dict(BYTES, added_tokens=[of(0, "tok", single_word=True, normalized=True, lstrip=True)], normalizer={"type": "Lowercase"}), ["TOK a", "a tok", "aTok", " tok tok", "tok1", "tok"]


def processors():
    ids = {"[A]": [256], "[B]": [257], "[C]": [258, 259]}
    tokens = [dict(id=256 + i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True) for i, c in enumerate(["[A]", "[B]", "[C]", "[D]"])]
    special = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
    text, other = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    template = lambda *single: {"type": "TemplateProcessing", "single": [text if s == "$" else special(s) for s in single], "pair": [text, other],
                                "special_tokens": {t: {"id": t, "ids": i, "tokens": [t] * len(i)} for t, i in ids.items()}}
    for processor in [template("$"), template("[A]", "$"), template("$", "[B]"), template("[A]", "[B]", "$", "[C]"), template("[C]", "$", "[A]", "[B]"), {"type": "BertProcessing", "cls": ["[A]", 256], "sep": ["[B]", 257]},
                      seq("processors", {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}, template("[A]", "$", "[B]")), {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]:
        yield dict(BYTES, added_tokens=tokens, post_processor=processor), ["", "a", "[A]a", "a[D]b"]


def files(data):
    for normalizer, texts in normalizers(data):
        yield dict(BYTES, normalizer=normalizer), texts
    for pretokenizer in pretokenizers():
        yield dict(SPANS, pre_tokenizer=pretokenizer), CUTS
    for more in (models(), decoders(), added(), processors()):
        yield from more


def main(data):
    lines = []
    for file, texts in files(Path(data)):
        text = json.dumps(file, ensure_ascii=False, separators=(",", ":"))
        tokenizer = Tokenizer.from_str(text)
        text = text.replace(ALL_BYTES, '"$BYTES"')
        normalized = any(t["normalized"] for t in file.get("added_tokens", []))  # as what these decode differs by version
        lines += ["@" + text] + ["\t".join(row(tokenizer, t).split("\t")[:2 if normalized else 5]) for t in texts]
    Path(data, "tokenizer/edges.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
