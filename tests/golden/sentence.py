#!/usr/bin/env python3
"""A tiny encoder with the settings of sentence-transformers, for tests/engine/session/test_embed.c.

    sentence.py OUT              (sentence-transformers 6.2, transformers 5.24, tokenizers)

OUT has the model (BERT of one layer, random weights in BF16) and a tokenizer that keeps capitals. cases.json lists settings: files
that go over those of the folder, the prompt's name, a text, and the embedding that sentence-transformers gives.
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["query", "text", "the", "light", "##house", ":", ".", ","]
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS + list(LETTERS) + [f"##{c}" for c in LETTERS] + list("ALQT")
LONG = "the lighthouse , the light . text of all sorts : query the lighthouse"
PATHS = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize", "Dropout": "3_Dropout"}


def make(out):
    torch.manual_seed(7)
    config = BertConfig(vocab_size=len(TOKENS), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
                        max_position_embeddings=24, pad_token_id=0)
    model = BertModel(config, add_pooling_layer=False)
    for name, p in model.named_parameters():
        torch.nn.init.normal_(p, 1.0 if "LayerNorm.weight" in name else 0.0, 0.3)
    model.to(torch.bfloat16).save_pretrained(out)
    t = Tokenizer(models.WordPiece({w: i for i, w in enumerate(TOKENS)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=False)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_special_tokens(TOKENS[:5])
    t.save(str(out / "tokenizer.json"))
    names = {f"{n}_token": f"[{n.upper()}]" for n in ("unk", "cls", "sep", "pad", "mask")}
    write(out, {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 20} | names,
                "modules.json": modules("Transformer", "Pooling", "Normalize"), "1_Pooling/config.json": {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}})


def modules(*names):
    return [{"idx": i, "name": str(i), "path": PATHS[n], "type": f"sentence_transformers.models.{n}"} for i, n in enumerate(names)]


def write(folder, files):
    for name, value in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value))


def pooling(**config):
    return {"1_Pooling/config.json": {"word_embedding_dimension": 32} | config}


def bert(**config):
    return {"sentence_bert_config.json": config}


PROMPTS = {"config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": "text, ", "none": None}, "default_prompt_name": "query",
                                                 "similarity_fn_name": "dot"}}
NO_DEFAULT = {"config_sentence_transformers.json": {"prompts": {"query": "query: "}, "default_prompt_name": None}}
APART = PROMPTS | pooling(pooling_mode="mean", include_prompt=False)
LEFT = {"tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 20, "truncation_side": "left", "unk_token": "[UNK]",
                                  "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"}}
# name: files, prompt_name, text
CASES = {
    "as it is": ({}, None, "the light"),
    "length of the tokenizer": ({}, None, LONG + " " + LONG),
    "max_seq_length": (bert(max_seq_length=9), None, LONG),
    "max_seq_length exactly": (bert(max_seq_length=6), None, "the lighthouse ."),
    "max_seq_length null": (bert(max_seq_length=None), None, LONG + " " + LONG),
    "max_seq_length beyond the tokenizer's": (bert(max_seq_length=23), None, LONG + " " + LONG),
    "name of old versions": ({"sentence_roberta_config.json": {"max_seq_length": 7}}, None, LONG),
    "cut on the left": (bert(max_seq_length=9) | LEFT, None, LONG),
    "no lower case": ({}, None, "The Light Query A"),
    "do_lower_case": (bert(do_lower_case=True), None, "The Light [MASK] Query A"),
    "no default prompt": (NO_DEFAULT, None, "the light"),
    "prompt by name": (NO_DEFAULT, "query", "the light"),
    "default prompt": (PROMPTS, None, "the light"),
    "another prompt than the default": (PROMPTS, "passage", "the light"),
    "prompt that is null": (PROMPTS, "none", "the light"),
    "prompt and length": (PROMPTS | bert(max_seq_length=8), None, LONG),
    "prompt apart": (APART, None, "the light"),
    "prompt apart, cls": (PROMPTS | pooling(pooling_mode="cls", include_prompt=False), None, "the light"),
    "prompt apart, all": (PROMPTS | pooling(pooling_mode=["weightedmean", "max", "lasttoken"], include_prompt=False), None, "the light"),
    "list": (pooling(pooling_mode=["cls", "mean"], include_prompt=True), None, "the light"),
    "list of one": (pooling(pooling_mode=["lasttoken"]), None, "the light"),
    "list in its own order": (pooling(pooling_mode=["mean", "cls"]), None, "the light"),
    "switches in the fixed order": (pooling(pooling_mode_mean_tokens=True, pooling_mode_cls_token=True, pooling_mode_max_tokens=True), None, "the light"),
    "no switch": (pooling(pooling_mode_mean_tokens=False), None, "the light"),
    "max": (pooling(pooling_mode_mean_tokens=False, pooling_mode_max_tokens=True), None, "the light"),
    "root of the length": (pooling(pooling_mode_mean_sqrt_len_tokens=True) | {"modules.json": modules("Transformer", "Pooling")}, None, "the light"),
    "weighted mean": (pooling(pooling_mode="weightedmean"), None, "the light"),
    "not normalized": ({"modules.json": modules("Transformer", "Pooling")}, None, "the light"),
    "dropout": ({"modules.json": modules("Transformer", "Pooling", "Dropout"), "3_Dropout/config.json": {"dropout": 0.5}}, None, "the light"),
    "truncate_dim": ({"config_sentence_transformers.json": {"prompts": {}, "truncate_dim": 5}}, None, "the light"),
}


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    make(out)
    cases = []
    for name, (files, prompt, text) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(out, folder, dirs_exist_ok=True)
            write(Path(folder), files)
            model = SentenceTransformer(folder, device="cpu", model_kwargs={"torch_dtype": torch.float32})
            row = model.encode(text, prompt_name=prompt)
        cases.append({"name": name, "files": files, "prompt_name": prompt, "text": text, "embedding": [float(f"{x:.6g}") for x in row.tolist()]})
    (out / "cases.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()
