#!/usr/bin/env python3
"""Small tokenizer.json files of every part, and what `tokenizers` makes of texts with them, for tests/text/tokenizer/test_tokenizer_json.c.

    tokenizer_json.py OUT     (tokenizers)

OUT is tests/data/tokenizer/json.tsv. A line that begins with "@" is a tokenizer.json, for the lines after it, of five columns:
text, ids with control tokens parsed, ids without them and with what is added, the text of the former ids, that without control
tokens. Bytes as in the other tables.
"""
import json
import sys
from pathlib import Path

from tokenizer import escape
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

TEXTS = [
    "", "Hello, world's end.", "  the the  cat ", "e\u0301\xe9\u212b\ufb01\u2460 \xc9\u0130", "日本 カタカナ\uff76\uff9e 한국어", "12 345\xbd a1b2", "a\r\n\n b\tc\u00a0d\u2028e",
    "x\u200by\x01z\x85w", "[X]a [X] b [Y] [Y]c tok token tok", "▁a ▁▁b", "🙂!?-_", "don't THE The", "q" * 101,
]
CORPUS = ["the cat sat on the mat, the end. hello world's token a b c 12 345", "The Cat's hat isn't that; He said: 'the other one'"] * 3
ADDED = [
    {"content": "[X]", "special": True, "lstrip": True}, {"content": "[Y]", "special": True, "rstrip": True},
    {"content": "tok", "single_word": True}, {"content": "THE", "normalized": True},
]


def trained(kind):
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "bytes" else []
    if kind in ("bytes", "bpe"):
        tokenizer, trainer = Tokenizer(models.BPE()), trainers.BpeTrainer(
            vocab_size=len(alphabet) + 70, show_progress=False, initial_alphabet=alphabet, special_tokens=[] if kind == "bytes" else ["<unk>"])
    elif kind == "unigram":
        tokenizer, trainer = Tokenizer(models.Unigram()), trainers.UnigramTrainer(
            vocab_size=60, show_progress=False, special_tokens=["<unk>"], unk_token="<unk>")
    else:
        tokenizer, trainer = Tokenizer(models.WordPiece(unk_token="[UNK]")), trainers.WordPieceTrainer(
            vocab_size=90, show_progress=False, special_tokens=["[UNK]"])
    tokenizer.pre_tokenizer = {
        "bytes": pre_tokenizers.ByteLevel(add_prefix_space=False), "wordpiece": pre_tokenizers.BertPreTokenizer(),
    }.get(kind, pre_tokenizers.Metaspace())
    tokenizer.train_from_iterator(CORPUS, trainer)
    return json.loads(tokenizer.to_str())


def variants():
    """(base, changes) of each file."""
    seq = lambda name, *parts: {"type": "Sequence", name: list(parts)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    words = dict(level, use_regex=True, add_prefix_space=True)
    split = lambda behavior, invert=False, pattern={"Regex": "[0-9 ]|the"}: {
        "type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    meta = lambda scheme, cut: {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": cut}
    template = lambda first, last: {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": first, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                                 {"SpecialToken": {"id": last, "type_id": 0}}],
        "pair": [], "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for t, i in ((first, 1), (last, 2))}}

    for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"):
        yield "bpe", {"normalizer": {"type": form}}
    yield "bytes", {"normalizer": seq("normalizers", {"type": "NFC"}, {"type": "Strip", "strip_left": True, "strip_right": False})}
    yield "bytes", {"pre_tokenizer": words, "post_processor": {"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1],
                                                               "trim_offsets": True, "add_prefix_space": True}}
    yield "bpe", {"normalizer": seq("normalizers", {"type": "Prepend", "prepend": "▁"},
                                    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}), "pre_tokenizer": None,
                  "decoder": seq("decoders", {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                                 {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0})}
    yield "bytes", {"normalizer": {"type": "Replace", "pattern": {"Regex": "\\s{2,}"}, "content": "_"}}
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        yield "bpe", {"pre_tokenizer": split(behavior)}
        yield "bpe", {"pre_tokenizer": split(behavior, True)}
    yield "bpe", {"pre_tokenizer": seq("pretokenizers", split("Removed", False, {"String": " "}), {"type": "Digits", "individual_digits": True},
                                       {"type": "Punctuation", "behavior": "Contiguous"})}
    yield "bpe", {"pre_tokenizer": {"type": "Whitespace"}}
    yield "bpe", {"pre_tokenizer": seq("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": False})}
    for scheme in ("always", "first", "never"):
        for cut in (True, False):
            yield "bpe", {"pre_tokenizer": meta(scheme, cut), "decoder": meta(scheme, cut)}
    yield "unigram", {"pre_tokenizer": meta("always", True), "decoder": meta("always", True), "post_processor": template("<a>", "<b>")}
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    for normalizer in (bert, dict(bert, lowercase=False), dict(bert, clean_text=False, handle_chinese_chars=False)):
        yield "wordpiece", {"normalizer": normalizer, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
                            "post_processor": {"type": "BertProcessing", "sep": ["b", 2], "cls": ["a", 1]}}
    for base in ("bpe", "unigram"):
        yield base, {"added": True}


def row(tokenizer, text):
    tokenizer.encode_special_tokens = False
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = True
    added = tokenizer.encode(text, add_special_tokens=True).ids
    texts = [tokenizer.decode(ids, skip_special_tokens=skip) for skip in (False, True)]
    return "\t".join([escape(text.encode()), " ".join(map(str, ids)), " ".join(map(str, added))] + [escape(t.encode()) for t in texts])


def main(out):
    bases, lines = {}, []
    for base, changes in variants():
        bases[base] = bases.get(base) or trained(base)
        file = json.loads(json.dumps(bases[base]))
        if changes.pop("added", False):
            n = max(t["id"] for t in file["added_tokens"]) if base == "none" else len(file["model"]["vocab"])
            defaults = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
            file["added_tokens"] += [dict(defaults, id=n + i, **t) for i, t in enumerate(ADDED)]
        file.update(changes)
        if file["decoder"] is None:
            file["decoder"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True} \
                if base == "bytes" else {"type": "Fuse"}
        text = json.dumps(file, ensure_ascii=False)
        tokenizer = Tokenizer.from_str(text)
        lines += ["@" + text] + [row(tokenizer, t) for t in TEXTS]
    Path(out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
