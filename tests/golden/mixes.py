#!/usr/bin/env python3
"""Writes tests/data/mixes.txt: the types that llama-quantize chooses for small models.

    mixes.py LLAMA_QUANTIZE OUT  (needs gguf and numpy from PyPI; LLAMA_QUANTIZE: llama.cpp's program)

Each line: a model of MODELS, a mix, the part of a name, and the types in its layers: Q6_K*2 Q4_K*15.
A mix with + is chosen with an importance matrix. tests/conversion/convert/test_quantize.c makes the same models.
"""
import re
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path

import gguf
import numpy as np

# architecture, layers, heads, KV heads, experts, width, an output matrix of its own
MODELS = [
    ("llama", 17, 8, 8, 0, 256, False),
    ("llama", 17, 8, 2, 0, 256, True),
    ("llama", 17, 8, 1, 8, 512, True),
    ("llama", 5, 8, 4, 4, 96, False),
    ("falcon", 17, 8, 8, 0, 256, True),
]
MIXES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S",
         "Q5_K_M", "Q6_K", "IQ4_NL", "IQ4_XS", "Q2_K_S", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M",
         "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "TQ1_0", "TQ2_0", "Q2_0", "MXFP4_MOE", "Q4_0+", "Q5_0+", "IQ4_NL+",
         "IQ4_XS+", "IQ3_XXS+", "IQ2_XS+"]


def write_model(path, architecture, layers, heads, kv_heads, experts, width, has_output):
    w = gguf.GGUFWriter(path, architecture)
    w.add_block_count(layers)
    w.add_context_length(64)
    w.add_embedding_length(width)
    w.add_feed_forward_length(width)
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_layer_norm_eps(1e-5)
    w.add_rope_dimension_count(width // heads)
    w.add_vocab_size(4)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(2)
    w.add_tokenizer_model("no_vocab")

    def add(name, *shape):
        w.add_tensor(name, np.zeros(shape, np.float16 if len(shape) > 1 else np.float32))

    add("token_embd.weight", 4, width)
    add("output_norm.weight", width)
    if has_output:
        add("output.weight", 4, width)
    for i in range(layers):
        add(f"blk.{i}.attn_norm.weight", width)
        names = ["attn_qkv"] if architecture == "falcon" else ["attn_q", "attn_k", "attn_v"]
        for name in names + ["attn_output"]:
            add(f"blk.{i}.{name}.weight", 2, width)
        for name in ["ffn_up", "ffn_down"] if architecture == "falcon" else ["ffn_gate", "ffn_up", "ffn_down"]:
            if experts:
                add(f"blk.{i}.{name}_exps.weight", experts, 2, width)
            else:
                add(f"blk.{i}.{name}.weight", 2, width)
        if experts:
            add(f"blk.{i}.ffn_gate_inp.weight", experts, width)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_importance(path, width):
    w = gguf.GGUFWriter(path, "")
    w.add_type("imatrix")
    w.add_array("imatrix.datasets", ["text"])
    w.add_uint32("imatrix.chunk_count", 1)
    w.add_uint32("imatrix.chunk_size", 512)
    w.add_tensor("blk.0.attn_q.weight.in_sum2", np.ones((1, width), np.float32))
    w.add_tensor("blk.0.attn_q.weight.counts", np.ones((1, 1), np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def choose(program, path, importance, mix):
    given = ["--imatrix", str(importance)] if mix.endswith("+") else []
    ran = subprocess.run([program, *given, "--dry-run", str(path), mix.rstrip("+")], capture_output=True, text=True)
    types = {}
    for line in (ran.stdout + ran.stderr).splitlines():
        if m := re.match(r"\[\s*\d+/\s*\d+\]\s+(\S+)\s+-\s+\[.*?\], type =\s+(\w+),(.*)", line):
            to = re.search(r"\((\w+)\)", m.group(3))
            types[m.group(1)] = (to.group(1) if to else m.group(2)).upper()
    assert types, ran.stderr
    return types


def main():
    lines = []
    for number, model in enumerate(MODELS):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            importance = Path(folder) / "importance.gguf"
            write_model(path, *model)
            write_importance(importance, model[5])
            for mix in MIXES:
                parts = {}
                for name, kind in choose(sys.argv[1], path, importance, mix).items():
                    layer, part = m.groups() if (m := re.match(r"blk\.(\d+)\.(.*)", name)) else ("0", name)
                    parts.setdefault(part, {})[int(layer)] = kind
                for part in sorted(parts):
                    if not part.endswith("_norm.weight"):
                        kinds = groupby(parts[part][i] for i in sorted(parts[part]))
                        lines.append(f"{number} {mix} {part} " + " ".join(f"{k}*{len(list(n))}" for k, n in kinds))
    Path(sys.argv[2]).write_text("\n".join(lines) + "\n")


main()
