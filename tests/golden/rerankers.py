#!/usr/bin/env python3
"""Tiny random rerankers and their scores of pairs of texts, for tests/engine/session/test_score.c and tests/apps/server/test_rerank.c.

    rerankers.py OUT     (torch, transformers, tokenizers)

OUT/NAME is a Hugging Face folder, its weights BF16. OUT/NAME/pairs.txt has four lines a pair: query, document, the tokens that
the model's tokenizer makes of the two, and the scores of transformers in float64.
"""
import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForSequenceClassification,
                          RobertaConfig, RobertaForSequenceClassification)

PAIRS = [("what is a panda", "The panda is a bear of China."), ("what is a panda", "Paris is the capital of France."), ("a", "b"),
         ("how tall is the tower", "It is 330 metres tall, and for 41 years it was the tallest of all that people had built."),
         ("café", "naïve"), ("x", "y")]
SIZES = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 48, "num_hidden_layers": 2}
QWEN3 = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that '
         'the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant '
         'passages that answer the query\n<Query>: {}\n<Document>: {}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n')


def bert_tokenizer():
    characters = "abcdefghijklmnopqrstuvwxyz0123456789.,"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "is", "panda", "tower", "tall"]
    words += list(characters) + ["##" + c for c in characters]
    t = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return PreTrainedTokenizerFast(tokenizer_object=t, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]",
                                   mask_token="[MASK]"), words


def byte_tokenizer(special):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {w: i for i, w in enumerate(special + alphabet)}
    merges = [("t", "h"), ("th", "e"), ("i", "s"), ("Ġ", "the"), ("p", "a")]
    for a, b in merges:
        vocab.setdefault(a + b, len(vocab))
    t = Tokenizer(models.BPE(vocab, merges))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return t, len(vocab)


def roberta_tokenizer():
    t, n = byte_tokenizer(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>", cls_token="<s>", sep_token="</s>",
                                   pad_token="<pad>", unk_token="<unk>", mask_token="<mask>"), n


def qwen3_tokenizer():
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    t, n = byte_tokenizer(special)
    t.add_special_tokens(special)
    return PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|endoftext|>"), n


def randomize(model):
    """Weights large enough for scores that differ, as BF16 holds them."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator, dtype=torch.float64) * (0.3 if p.dim() > 1 else 0.1)
            p.copy_(((1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0) + noise).to(torch.bfloat16))
    return model.double().eval()


def write(out, model, tokenizer, encode):
    model = randomize(model)
    lines = []
    for query, document in PAIRS:
        ids, types = encode(query, document)
        more = {"token_type_ids": torch.tensor([types])} if types else {}
        with torch.no_grad():
            scores = model(input_ids=torch.tensor([ids]), **more).logits[0].tolist()
        lines += [query, document, " ".join(map(str, ids)), " ".join(f"{s:.17g}" for s in scores)]
    model.to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)
    for name in ("special_tokens_map.json", "added_tokens.json", "generation_config.json", "vocab.txt"):
        (out / name).unlink(missing_ok=True)
    config = json.loads((out / "config.json").read_text())
    for key in ("transformers_version", "_name_or_path"):
        config.pop(key, None)
    (out / "config.json").write_text(json.dumps(config) + "\n")
    (out / "pairs.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    out = Path(sys.argv[1])
    joined = lambda tokenizer: lambda q, d: (lambda e: (e["input_ids"], e.get("token_type_ids")))(tokenizer(q, d, return_token_type_ids=True))

    tokenizer, words = bert_tokenizer()
    config = BertConfig(vocab_size=len(words), max_position_embeddings=160, num_labels=1, pad_token_id=0, **SIZES)
    write(out / "bert", BertForSequenceClassification(config), tokenizer, joined(tokenizer))

    tokenizer, n = roberta_tokenizer()
    config = RobertaConfig(vocab_size=n, max_position_embeddings=162, num_labels=3, type_vocab_size=1, pad_token_id=1, bos_token_id=0,
                           eos_token_id=2, **SIZES)
    write(out / "roberta", RobertaForSequenceClassification(config), tokenizer, lambda q, d: (tokenizer(q, d)["input_ids"], None))

    tokenizer, n = qwen3_tokenizer()
    config = Qwen3Config(vocab_size=n, max_position_embeddings=1024, num_labels=2, head_dim=16, num_key_value_heads=1, pad_token_id=None,
                         bos_token_id=None, eos_token_id=2, tie_word_embeddings=True, **SIZES)
    write(out / "qwen3", Qwen3ForSequenceClassification(config), tokenizer, lambda q, d: (tokenizer(QWEN3.format(q, d))["input_ids"], None))


if __name__ == "__main__":
    main()
