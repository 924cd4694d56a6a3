#!/usr/bin/env python3
"""Small folders of slow tokenizers, without tokenizer.json, and what transformers' AutoTokenizer makes of texts with them, for
tests/text/tokenizer/test_tokenizer_json.c.

    slow_tokenizers.py OUT     (transformers 5.24, sentencepiece)

OUT is tests/data/tokenizer/slow.tsv. A line "@NAME" begins a folder, "+FILE<tab>BYTES" is a file of it; the lines after them have
five columns: text, ids with control tokens parsed, ids with them and what is added, the text of the former ids, that without control
tokens. Bytes as in the other tables.
"""
import io
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as model_pb2
from tokenizer import escape
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

CORPUS = ["the cat sat on the mat, the end. hello world's token a b c 12 345", "The Cat's hat isn't that; He said: 'the other one'"] * 3
TEXTS = [
    "", "Hello, world's end.", "  the the  cat ", "e\u0301\xe9 \xc9 \ufb01x", "12 345 a1b2", "a\n\n b\tc",
    "<s>a </s> b <mask> c<mask>", "[X]a [X] b [NEW]c new token", "a <|im_end|> b<|endoftext|>c", "don't THE The I'D", "日本 the", "▁a ▁▁b", " <s> the</s>[X] [NEW] a\n\n\nb",
]
LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
UNIGRAM, BPE = "unigram", "bpe"


def byte_level(specials=()):
    """vocab.json and merges.txt over the bytes of the texts."""
    alphabet = sorted({c for t in TEXTS + CORPUS for piece, _ in LEVEL.pre_tokenize_str(t) for c in piece})
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = LEVEL
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=len(alphabet) + 40, show_progress=False, initial_alphabet=alphabet, special_tokens=list(specials)))
    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab.json": json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":")),
            "merges.txt": "".join(f"{a} {b}\n" for a, b in model["merges"])}


def wordpiece(specials, lower):
    tokenizer = Tokenizer(models.WordPiece(unk_token=specials[1]))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    corpus = [t.lower() for t in CORPUS] if lower else CORPUS
    tokenizer.train_from_iterator(corpus + ["e é"], trainers.WordPieceTrainer(vocab_size=80, show_progress=False, special_tokens=specials))
    vocab = tokenizer.get_vocab()
    return sorted(vocab, key=vocab.get)


def sentencepiece(kind, **options):
    out = io.BytesIO()
    settings = {"vocab_size": 60, "hard_vocab_limit": False, "normalization_rule_name": "identity", "minloglevel": 2, **options}
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=out, model_type=kind, num_threads=1, **settings)
    model = model_pb2.ModelProto.FromString(out.getvalue())
    for field in ("input", "model_prefix"):
        model.trainer_spec.ClearField(field)
    model.ClearField("denormalizer_spec")
    return model.SerializeToString()


def added(content, special=False, **flags):
    return {"content": content, "special": special, "normalized": not special, "lstrip": False, "rstrip": False, "single_word": False, **flags}


def folders():
    """(name, model type, files); an object becomes JSON."""
    bert = wordpiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], True)
    # the second "the" counts; "cat" has whitespace behind it
    text = "\r\n".join("cat \u3000" if t == "cat" else t for t in bert) + "\r\nthe\r\n"
    yield "bert: vocab.txt with CRLF, a line twice and whitespace", "bert", {"vocab.txt": text}
    cased = wordpiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], False)
    yield "bert, cased", "bert", {
        "vocab.txt": "\n".join(cased), "added_tokens.json": {"[NEW]": len(cased), "the": 300, "[X]": len(cased) + 1},
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer", "do_lower_case": False, "tokenize_chinese_chars": False, "strip_accents": True,
                                  "additional_special_tokens": ["[X]"]},
        "special_tokens_map.json": {"mask_token": added("[MASK]", True)}}
    yield "mpnet, without tokenizer_config.json", "mpnet", {"vocab.txt": "\n".join(wordpiece(["<s>", "[UNK]", "<pad>", "</s>", "<mask>"], True)) + "\n"}
    files = byte_level(["<|endoftext|>"])
    yield "gpt2, merges without a version", "gpt2", dict(files)
    yield "gpt2 that adds tokens", "gpt2", {**files, "tokenizer_config.json": {
        "tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": True, "add_bos_token": True, "add_eos_token": True,
        "eos_token": {"__type": "AddedToken", **added("<|im_end|>", True, lstrip=True)}}}
    ends = {"added_tokens_decoder": {"0": added("<|endoftext|>", True)}, "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    for counts in ("does not count", "counts"):
        yield "gpt2, whose special_tokens_map.json " + counts, "gpt2", {**files, "tokenizer_config.json": {
            "tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "add_eos_token": True, **ends}, "special_tokens_map.json": {"bos_token": "a", "eos_token": "b"}}
        ends.pop("added_tokens_decoder", None)
    files["merges.txt"] = "#version: 0.2\r\n" + files["merges.txt"].replace("\n", "\r\n")
    top = max(json.loads(files["vocab.json"]).values())
    yield "qwen2, by its model type", "qwen2", {**files, "tokenizer_config.json": {
        "tokenizer_class": "LlamaTokenizerFast", "eos_token": "<|im_end|>", "add_bos_token": False, "image_token": "[X]",
        "added_tokens_decoder": {"0": added("<|endoftext|>", True), str(top + 1): added("<|im_end|>", True),
                                 str(top + 2): added("token", single_word=True), str(top + 3): added("[NEW]", True, rstrip=True)}}, "added_tokens.json": {"[NEW]": 400}}
    yield "qwen3_5", "qwen3_5_text", {**files, "tokenizer_config.json": {"tokenizer_class": "Qwen3_5Tokenizer"}}
    whisper = ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>", "<|0.00|>"]
    yield "whisper", "whisper", {
        **files, "added_tokens.json": {t: top + 1 + i for i, t in enumerate(whisper)},
        "tokenizer_config.json": {"tokenizer_class": "WhisperTokenizer", "language": "en", "task": "transcribe"}}
    yield "roberta", "roberta", {**byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]), "special_tokens_map.json": {
        "mask_token": added("<mask>", False, lstrip=True), "sep_token": "</s>"}}
    plain = sentencepiece(BPE, remove_extra_whitespaces=False, user_defined_symbols=["[X]", "▁▁"], control_symbols=["[NEW]"], split_by_whitespace=True)
    yield "llama", "llama", {"tokenizer.model": plain, "tokenizer_config.json": {
        "tokenizer_class": "LlamaTokenizer", "legacy": False, "add_bos_token": True, "add_eos_token": True}}
    yield "llama without a space before the text", "llama", {"tokenizer.model": plain, "tokenizer_config.json": {
        "tokenizer_class": "LlamaTokenizer", "legacy": False, "add_bos_token": False, "add_prefix_space": False}}
    plain = sentencepiece(BPE, remove_extra_whitespaces=False)
    size = len(model_pb2.ModelProto.FromString(plain).pieces)
    yield "mistral, legacy", "mistral", {"tokenizer.model": plain, "tokenizer_config.json": {
        "tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "added_tokens_decoder": {
            "0": added("<unk>", True), "1": added("<s>", True), "2": added("</s>", True, rstrip=True), str(size): added("[NEW]", True, rstrip=True)}}}
    yield "mistral with added_tokens.json", "mistral", {
        "tokenizer.model": plain, "added_tokens.json": {"[NEW]": size, "</s>": 2}, "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True}}
    yield "gemma", "gemma2", {"tokenizer_config.json": {"tokenizer_class": "GemmaTokenizer", "add_bos_token": True}, "tokenizer.model": sentencepiece(
        BPE, remove_extra_whitespaces=False, add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", bos_piece="<bos>",
        eos_piece="<eos>", user_defined_symbols=["<mask>", "\n\n"])}
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:  # ﬁ becomes fi
        rules.write("FB01\t66 69\nC9\t65\n")
        rules.flush()
        mapped = sentencepiece(UNIGRAM, vocab_size=50, normalization_rule_tsv=rules.name)
    yield "xlm-roberta", "xlm-roberta", {"sentencepiece.bpe.model": mapped, "special_tokens_map.json": {"mask_token": added("<mask>", True, lstrip=True)}}
    yield "camembert", "camembert", {"sentencepiece.bpe.model": sentencepiece(
        UNIGRAM, vocab_size=50, unk_id=0, bos_id=1, eos_id=2), "tokenizer_config.json": {"tokenizer_class": "CamembertTokenizer"}}
    yield "t5", "bert", {"spiece.model": sentencepiece(UNIGRAM, vocab_size=50, pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
                         "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "extra_ids": 2}}


def main():
    with open(sys.argv[1], "w") as out:
        for name, model_type, files in folders():
            files = {"config.json": {"model_type": model_type}, **files}
            with tempfile.TemporaryDirectory() as folder:
                out.write(f"@{name}\n")
                for file, content in files.items():
                    content = json.dumps(content, ensure_ascii=False) if isinstance(content, dict) else content
                    content = content if isinstance(content, bytes) else content.encode()
                    Path(folder, file).write_bytes(content)
                    out.write(f"+{file}\t{escape(content)}\n")
                # this class finds no files by itself, and would have an empty vocabulary
                given = {key: f"{folder}/{file}" for key, file in (("vocab", "vocab.json"), ("merges", "merges.txt")) if name == "qwen3_5"}
                t = AutoTokenizer.from_pretrained(folder, **given)
                # these have no pieces of bytes, without which unknown characters are lost in some classes
                known = set("".join(CORPUS)) | set(" ▁[]X" + "\n" * (model_type == "gemma2")) if "tokenizer.model" in files else None
                for text in TEXTS:
                    if known and not set(text.replace("[NEW]", "").replace("</s>", "").replace("<s>", "")) <= known:
                        continue
                    ids = t.encode(text, add_special_tokens=False)
                    decoded = [t._tokenizer.decode(ids, skip_special_tokens=skip) for skip in (False, True)]
                    out.write("\t".join([escape(text.encode()), " ".join(map(str, ids)), " ".join(map(str, t.encode(text))), *(escape(d.encode()) for d in decoded)]) + "\n")


if __name__ == "__main__":
    main()
