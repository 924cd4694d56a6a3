#!/usr/bin/env python3
"""Small models and what comes out of them, for tests/api/test_model.c.

    models.py FIXTURES LLAMA_QUANTIZE OUT     (numpy, gguf)

llama-f32, qwen2 and qwen3 are fixtures of those names; their logits and greedy continuations are transformers' in float32.
mixed is one layer of the fixture llama-256 with another type in every matrix, quantized by llama.cpp. Its logits are those of the
float64 forward pass below on the weights that gguf-py dequantizes; the pass is checked on llama-f32 first.

NAME.txt: "prompt N" and N ids, "greedy N" and N ids (temperature 0 after the prompt), "leads" and N leads of the best logit over
the second. NAME.npy: float32 logits of every position of the prompt.
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np

TYPES = {"attn_q": "q4_1", "attn_k": "q5_0", "attn_v": "q8_0", "attn_output": "q4_0", "ffn_gate": "q4_k", "ffn_up": "q6_k",
         "ffn_down": "q5_1", "output.weight": "q5_k", "token_embd": "q3_k"}


def forward(path, ids, change=None):
    """Logits [T, vocab] of a GGUF of the architecture llama (rotation of neighbors); `change` edits its weights first."""
    reader = gguf.GGUFReader(path)
    weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64).reshape(t.shape[::-1]) for t in reader.tensors}
    if change:
        change(weights)
    meta = {k.removeprefix("llama."): f.contents() for k, f in reader.fields.items() if k.startswith("llama.")}
    heads, kv_heads, eps = meta["attention.head_count"], meta["attention.head_count_kv"], meta["attention.layer_norm_rms_epsilon"]
    dim, n = meta["attention.key_length"], len(ids)

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weights[name]

    angle = np.arange(n)[:, None] * meta["rope.freq_base"] ** (-np.arange(0, dim, 2) / dim)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]

    def rotate(x):
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return out

    x = weights["token_embd.weight"][ids]
    mask = np.triu(np.full((n, n), -np.inf), 1)
    for layer in range(meta["block_count"]):
        w = lambda name: weights[f"blk.{layer}.{name}.weight"]
        h = norm(x, f"blk.{layer}.attn_norm.weight")
        q = rotate((h @ w("attn_q").T).reshape(n, heads, dim))
        k = rotate((h @ w("attn_k").T).reshape(n, kv_heads, dim)).repeat(heads // kv_heads, 1)
        v = (h @ w("attn_v").T).reshape(n, kv_heads, dim).repeat(heads // kv_heads, 1)
        s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(dim) + mask
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", p, v).reshape(n, -1) @ w("attn_output").T
        h = norm(x, f"blk.{layer}.ffn_norm.weight")
        gate = h @ w("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    return norm(x, "output_norm.weight") @ weights["output.weight"].T


def greedy(path, ids, n):
    ids, out, leads = list(ids), [], []
    for _ in range(n):
        last = forward(path, ids)[-1]
        second, first = np.sort(last)[-2:]
        out.append(int(last.argmax()))
        leads.append(float(first - second))
        ids.append(out[-1])
    return out, leads


def write(folder, name, logits, prompt, continuation, leads):
    np.save(folder / f"{name}.npy", logits.astype("<f4"))
    with open(folder / f"{name}.txt", "w", encoding="ascii") as f:
        print("prompt", len(prompt), *prompt, file=f)
        print("greedy", len(continuation), *continuation, file=f)
        print("leads", *[f"{lead:.6f}" for lead in leads], file=f)


def main():
    fixtures, quantize, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    for name, kind in (("llama-f32", "f32"), ("qwen2", "bf16"), ("qwen3", "bf16")):
        source = fixtures / name / "gguf" / f"{name}-{kind}.gguf"
        shutil.copyfile(source, out / f"{name}.gguf")
        golden = fixtures / name / "golden"
        facts = json.loads((golden / "greedy.json").read_text())
        logits, ids = np.load(golden / "logits.npy"), np.load(golden / "ids.npy").tolist()
        assert facts["prompt_ids"] == ids
        write(out, name, logits, ids, facts["ids"], facts["margins"])
        if name == "llama-f32":
            own = forward(source, ids)
            assert ((own - logits) ** 2).sum() / (logits.astype(np.float64) ** 2).sum() < 1e-11

    mixed = out / "mixed.gguf"
    mixed.unlink(missing_ok=True)
    flags = [part for name, kind in TYPES.items() for part in ("--tensor-type", f"{name}={kind}")]
    subprocess.run([quantize, *flags, fixtures / "llama-256" / "gguf" / "llama-256-f16.gguf", mixed, "q8_0"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {t.name: t.tensor_type.name for t in gguf.GGUFReader(mixed).tensors}
    for name, kind in TYPES.items():
        assert all(v == kind.upper() for k, v in found.items() if k.removeprefix("blk.0.").startswith(name)), (name, found)
    ids = np.load(fixtures / "llama-256" / "golden" / "ids.npy").tolist()
    write(out, "mixed", forward(mixed, ids), ids, *greedy(mixed, ids, 24))


if __name__ == "__main__":
    main()
