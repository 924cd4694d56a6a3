#!/usr/bin/env python3
"""Vocabularies without tensors and what tokenizing with them gives, for tests/text/tokenizer/test_tokenizer.c.

    tokenizer.py FIXTURES LLAMA_TOKENIZE SMOLLM2.gguf OUT     (gguf, tokenizers)

llama.gguf is the SentencePiece vocabulary of the fixture of that name. cuts.gguf is trained here, on the texts of the tables
and across the ends of words, so that its merges show where a pre-tokenizer cuts; the tables are named after the pre-tokenizers.
The answers are those of `tokenizers`; for "default", which only GGUF has, those of llama.cpp.

A line of a table has five columns, parted by tabs; bytes that are not printable ASCII, and the backslash, are \\xNN:
    text, ids with control tokens parsed, ids without, the text of the former, that without control tokens
An id column "=" is the one before it; a text column "=" is the text column before it, "-" was not asked.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

LEFT_OUT = ("tokenizer.chat_template", "tokenizer.ggml.padding_token_id", "tokenizer.ggml.add_sep_token")

# GGUF's types: 1 normal, 3 control, 4 added by hand, 5 unused. Two of the added ones overlap.
UNMERGED = [" unmerged"]
LAST = [("<|endoftext|>", 3), ("<|im_start|>", 3), ("<|im_end|>", 3), ("<tool", 4), ("<tool_call>", 4), ("[UNUSED0]", 5)]

MORE = [
    "'S 'sS I'LL I'ſt don't they've'd", "a᠎b\u200b c\u205f\u205fd", "  \r\n\r\n  x\n \n", "٣٤٥ Ⅻ ½ 𝟘𝟙𝟚𝟛 x²", "a\t \tb \u3000\u3000c",
    "۰1٢३४ 00001 12345678", "＄＋＜＞ ~^| $+<=> `", "Ω≈ç√∫˜µ≤≥÷", "𐐀𐐨 ᏣᎳᎩ ⴰⵣⵓⵍ", "e\u0301e\u0301\u0301 o\u0308", "\x01\x02\x7f\u0080\u009f",
    "!!!\n\n\n???\r\n", " \u00a0 \u2003 .", "it's 5'10\" & 6'2", "𔄖𔄖's 𮹌'll",
    "x unmerged 123 123", "(a)[b] {c};d-e_f", "\x85a\u2028 b\x0b\x0cc",
]
TOOLS = [
    "<tool_call>", "<tool_cal", "<tool", "a<tool b<tool_call>c", "<tool<tool_call>>", "<|im_start|>x<|im_end|>",
    "[UNUSED0]", "<|im_start<|im_start|>",
]

WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
CUTS = {
    "gpt-2": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
    "qwen2": [pre_tokenizers.Split(Regex(WORDS % r"\p{N}"), "isolated"), BYTES],
    "llama-bpe": [pre_tokenizers.Split(Regex(WORDS % r"\p{N}{1,3}"), "isolated"), BYTES],
}


def escape(data):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in data)


def copy_vocabulary(source, target):
    """Copies the tokenizer of one GGUF file into another one."""
    writer = gguf.GGUFWriter(target, "llama")
    for key, field in gguf.GGUFReader(source).fields.items():
        if not key.startswith("tokenizer.") or key in LEFT_OUT:
            continue
        value = field.contents()
        if key == "tokenizer.ggml.tokens":
            value = [bytes(field.parts[i]) for i in field.data]
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, value)
        else:
            writer.add_key_value(key, value, field.types[0])
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def train(texts):
    """(tokens in order, merges) of byte-level BPE that merges across anything."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = BYTES
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=256 + 640, min_frequency=1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, max_token_length=12))
    model = json.loads(tokenizer.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].get) + [t.replace(" ", "Ġ") for t in UNMERGED], [tuple(m) for m in model["merges"]]


def write_vocabulary(target, tokens, merges, pre):
    writer = gguf.GGUFWriter(target, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens + [t for t, _ in LAST])
    writer.add_token_types([1] * len(tokens) + [kind for _, kind in LAST])
    writer.add_token_merges([" ".join(m) for m in merges])
    writer.add_bos_token_id(len(tokens))
    writer.add_eos_token_id(len(tokens) + 2)
    finish(writer)


def peer(tokens, merges, pre):
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens + [t for t, _ in LAST])}, merges, ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(CUTS[pre])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([t for t, kind in LAST if kind == 3])
    tokenizer.add_tokens([AddedToken(t, normalized=False) for t, kind in LAST if kind == 4])
    return tokenizer


def by_tokenizers(tokenizer, texts):
    for text in texts:
        tokenizer.encode_special_tokens = False
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        yield text, ids, plain, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids, skip_special_tokens=True)


def by_llama_cpp(program, model, texts):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "text")
        for text in texts:
            file.write_bytes(text.encode())
            command = [program, "-m", model, "-f", file, "--ids", "--no-bos", "--no-escape", "--log-disable"]
            ask = lambda *more: json.loads(subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout)
            yield text, ask(), ask("--no-parse-special"), text, None


def table(path, rows):
    lines = []
    for text, ids, plain, decoded, skipped in rows:
        lines.append("\t".join((
            escape(text.encode()), " ".join(map(str, ids)), "=" if plain == ids else " ".join(map(str, plain)),
            "=" if decoded == text else escape(decoded.encode()),
            "-" if skipped is None else "=" if skipped == decoded else escape(skipped.encode()))) + "\n")
    Path(path).write_text("".join(lines))


def main(fixtures, llama_tokenize, smollm2, out):
    fixtures, out = Path(fixtures), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    texts = lambda name: [r["text"] for r in json.loads((fixtures / name / "golden/tokenize.json").read_text()) if len(r["text"]) <= 120]

    copy_vocabulary(fixtures / "llama/gguf/llama-bf16.gguf", out / "llama.gguf")
    table(out / "llama.tsv", by_tokenizers(Tokenizer.from_file(str(fixtures / "llama/hf/tokenizer.json")), texts("llama") + MORE + TOOLS))

    few = texts("qwen2")[5:76:3] + MORE + TOOLS
    tokens, merges = train([t for t in texts("qwen2") + MORE if "<|" not in t])
    write_vocabulary(out / "cuts.gguf", tokens, merges, "gpt-2")
    for pre in CUTS:
        table(out / f"{pre}.tsv", by_tokenizers(peer(tokens, merges, pre), few))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "default.gguf")
        write_vocabulary(model, tokens, merges, "default")
        table(out / "default.tsv", by_llama_cpp(llama_tokenize, model, [t for t in few if "\0" not in t and t]))

    fields = gguf.GGUFReader(smollm2).fields
    tokens, types = fields["tokenizer.ggml.tokens"].contents(), fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    real = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    real.pre_tokenizer = pre_tokenizers.Sequence(CUTS["smollm"])
    real.decoder = decoders.ByteLevel()
    real.add_special_tokens([t for t, kind in zip(tokens, types) if kind == 3])
    table(out / "smollm2.tsv", by_tokenizers(real, texts("qwen2")[15:76:3]))


if __name__ == "__main__":
    main(*sys.argv[1:])
