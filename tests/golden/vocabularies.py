#!/usr/bin/env python3
"""Small tokenizers of encoders and what llama.cpp's converter makes of them, for tests/conversion/convert/test_convert.c.

    vocabularies.py LLAMA_CPP OUT     (gguf, protobuf, sentencepiece, tokenizers, torch, transformers)

OUT/NAME has tokenizer.json and tokenizer_config.json; OUT/NAME.gguf is the vocabulary alone, as convert_hf_to_gguf.py writes it.
It knows a tokenizer by a hash of what it does: here it is told the name. texts.tsv: NAME, a text (bytes as in the other tables)
and its ids by `tokenizers`, with what is added.
"""
import base64
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece as spm
from sentencepiece import sentencepiece_model_pb2 as model_pb2
from tokenizer import escape
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = ["the cat sat on the mat; the end of the tale", "a hat is not a cat, and that is it", "Caf\xe9 NA\xcfVE: the Cat's hat isn't that"] * 4
TEXTS = ["the cat  sat", " That's it; the end. ", "caf\xe9 CAF\xc9 na\xefve", "x\ufb01y \u2460 zz", "a[MASK]b a<mask>b", "", "the\tend\n"]
NUMBERS = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 18,
           "layer_norm_eps": 1e-12, "type_vocab_size": 2}
PRE = {"bert-uncased": "default", "bert-accents": "default", "roberta": "gpt-2", "modernbert": "gpt-2"}

CONVERT = """
import sys
sys.path.insert(0, sys.argv.pop(1))
pre = sys.argv.pop(1)
import convert_hf_to_gguf
from conversion.base import TextModel
TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
convert_hf_to_gguf.main()
"""


def template(first, last, between, ids):
    special = lambda t: {"SpecialToken": {"id": t, "type_id": 0}}
    a, b = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}
    return {"type": "TemplateProcessing", "single": [special(first), a, special(last)],
            "pair": [special(first), a] + [special(last)] * between + [b, special(last)],
            "special_tokens": {t: {"id": t, "ids": [ids[t]], "tokens": [t]} for t in (first, last)}}


def wordpiece(lowercase, strip_accents):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=90, show_progress=False, special_tokens=specials))
    parts = json.loads(tokenizer.to_str())
    parts["post_processor"] = template("[CLS]", "[SEP]", 1, parts["model"]["vocab"])
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    return parts, names | {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase, "strip_accents": strip_accents}, None


def byte_level(modern):
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"] if modern else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=300, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=specials))
    parts = json.loads(tokenizer.to_str())
    vocab = parts["model"]["vocab"]
    if modern:
        parts["normalizer"] = {"type": "NFC"}
        parts["post_processor"] = template("[CLS]", "[SEP]", 1, vocab)
        names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}
        return parts, names | {"tokenizer_class": "PreTrainedTokenizerFast"}, None
    parts["post_processor"] = {"type": "RobertaProcessing", "sep": ["</s>", vocab["</s>"]], "cls": ["<s>", vocab["<s>"]],
                               "trim_offsets": True, "add_prefix_space": False}
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>",
             "mask_token": "<mask>"}
    return parts, names | {"tokenizer_class": "RobertaTokenizer"}, None


def unigram():
    """As XLM-R has it: SentencePiece's pieces behind four tokens of its own, and one more at the end."""
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder, "rules.tsv")
        rules.write_text("FB01\t66 69\n2460\t31\n9\t20\nA\t20\n")
        out = io.BytesIO()
        spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=out, model_type="unigram", vocab_size=50,
                                       normalization_rule_tsv=str(rules), hard_vocab_limit=False, minloglevel=2)
    model = model_pb2.ModelProto.FromString(out.getvalue())
    vocab = [["<s>", 0.0], ["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]] + [[p.piece, p.score] for p in model.pieces[3:]] + [["<mask>", 0.0]]
    ids = {piece: i for i, (piece, _) in enumerate(vocab)}
    meta = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    added = [{"id": ids[t], "content": t, "single_word": False, "lstrip": t == "<mask>", "rstrip": False, "normalized": False, "special": True}
             for t in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    parts = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
             "normalizer": {"type": "Sequence", "normalizers": [
                 {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()},
                 {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
             "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, meta]},
             "post_processor": template("<s>", "</s>", 2, ids), "decoder": meta,
             "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab, "byte_fallback": False}}
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "cls_token": "<s>", "pad_token": "<pad>",
             "mask_token": "<mask>"}
    return parts, names | {"tokenizer_class": "XLMRobertaTokenizer"}, out.getvalue()


KINDS = {
    "bert-uncased": ("BertModel", "bert", lambda: wordpiece(True, None)),
    "bert-accents": ("BertModel", "bert", lambda: wordpiece(True, False)),
    "roberta": ("RobertaModel", "roberta", lambda: byte_level(False)),
    "modernbert": ("ModernBertModel", "modernbert", lambda: byte_level(True)),
    "xlm-roberta": ("XLMRobertaModel", "xlm-roberta", unigram),
}


def convert(llama_cpp, name, parts, config, names, spiece, out):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tokenizer.json").write_text(json.dumps(parts))
        (folder / "tokenizer_config.json").write_text(json.dumps(names))
        if spiece:
            (folder / "sentencepiece.bpe.model").write_bytes(spiece)
        (folder / "convert.py").write_text(CONVERT)
        subprocess.run([sys.executable, folder / "convert.py", llama_cpp, PRE.get(name, "default"), "--vocab-only", "--outfile", out,
                        folder], check=True)


def main():
    llama_cpp, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(exist_ok=True)
    lines = []
    for name, (architecture, model_type, make) in KINDS.items():
        parts, names, spiece = make()
        size = len(parts["model"]["vocab"])
        config = NUMBERS | {"architectures": [architecture], "model_type": model_type, "vocab_size": size + 2, "pad_token_id": 1}
        if name == "modernbert":
            config |= {"local_attention": 4, "global_attn_every_n_layers": 3, "global_rope_theta": 1e5, "local_rope_theta": 1e4}
        if name == "xlm-roberta":
            config["vocab_size"] = size
        (out / name).mkdir(exist_ok=True)
        (out / name / "tokenizer.json").write_text(json.dumps(parts, ensure_ascii=False, separators=(",", ":")) + "\n")
        (out / name / "tokenizer_config.json").write_text(json.dumps(names) + "\n")
        convert(llama_cpp, name, parts, config, names, spiece, out / f"{name}.gguf")
        tokenizer = Tokenizer.from_str(json.dumps(parts))
        for text in TEXTS:
            lines.append("\t".join((name, escape(text.encode()), " ".join(map(str, tokenizer.encode(text).ids)))) + "\n")
    (out / "texts.tsv").write_text("".join(lines))


main()
