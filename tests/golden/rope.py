#!/usr/bin/env python3
"""Logits of llama-f32 with other rotations than its own, for tests/api/test_rope.c.

    rope.py LLAMA_F32_FOLDER OUT     (numpy, torch, transformers)

rope.npy: float32 [cases, 4 tokens, vocab], the last four of 200 tokens: those of llama-f32.txt, over and over. The cases are in the
order of CASES below. transformers computes the first three from its own configuration. It does not know a share of extrapolation, nor
a scaling on top of Llama 3's: there its frequencies are replaced by those of llama.cpp's formula, in float64.
"""
import math
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

BASE, DIMS, TOKENS, ROWS = 500000.0, 16, 200, 4


def yarn(base, factor, original, fast, slow, share):
    """llama.cpp's rope_yarn: frequencies of the pairs."""
    pair = np.arange(DIMS // 2)
    frequency = base ** (-2.0 * pair / DIMS)
    find = lambda turns: DIMS * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))
    low, high = max(0, math.floor(find(fast))), min(DIMS - 1, math.ceil(find(slow)))
    mix = (1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)) * share
    return frequency / factor * (1 - mix) + frequency * mix


def llama3(base, factor, low, high, original):
    """Frequencies of the pairs by Llama 3.1's model card."""
    frequency = base ** (-2.0 * np.arange(DIMS // 2) / DIMS)
    length = 2 * math.pi / frequency
    smooth = np.clip((original / length - low) / (high - low), 0, 1)
    return (1 - smooth) * frequency / factor + smooth * frequency


CASES = [
    ({"rope_type": "linear", "factor": 4.0, "rope_theta": BASE}, None, None),
    ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": BASE}, None, None),
    ({"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 200, "beta_fast": 4.0, "beta_slow": 0.5,
      "attention_factor": (0.1 * math.log(8) + 1) * 1.25, "rope_theta": 10000.0}, None, None),
    (None, yarn(BASE, 4.0, 64, 32.0, 1.0, 0.5), 0.1 * math.log(4) + 1),
    (None, llama3(BASE, 8.0, 1.0, 4.0, 128) / 2.0, 1.0),
]


def main():
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    words = (Path(__file__).parents[1] / "data" / "models" / "llama-f32.txt").read_text().split()
    prompt = [int(w) for w in words[2:2 + int(words[1])]]
    ids = torch.tensor([[prompt[i % len(prompt)] for i in range(TOKENS)]])
    logits = []
    for parameters, frequencies, magnitude in CASES:
        config = LlamaConfig.from_pretrained(folder)
        if parameters:
            config.rope_parameters = parameters
            # some versions take the factor from these two
            config.max_position_embeddings = int(parameters["factor"] * parameters.get("original_max_position_embeddings", 64))
        model = LlamaForCausalLM.from_pretrained(folder, config=config, dtype=torch.float32).eval()
        if frequencies is not None:
            rotation = model.model.rotary_emb
            rotation.inv_freq = torch.tensor(frequencies, dtype=torch.float32)
            rotation.attention_scaling = magnitude
        with torch.no_grad():
            logits.append(model(ids).logits[0, -ROWS:].numpy())
    np.save(out / "rope.npy", np.stack(logits).astype("<f4"))


if __name__ == "__main__":
    main()
