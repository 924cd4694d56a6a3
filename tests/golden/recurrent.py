#!/usr/bin/env python3
"""A small model with layers with recurrent state, and what comes out of it, for tests/api/test_model.c.

    recurrent.py LIBLLAMA.so OUT     (numpy, gguf)

lfm2: short convolutions and attention. As experts.py otherwise.
"""
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

from experts import BASE, DIM, EPS, GREEDY, HEADS, KV_HEADS, PROMPT, VOCAB, WIDTH, libllama, round_bf16
from models import write

FFN, TAPS, ATTENTION = 96, 3, (False, True, False, False, True)


def random_weights(rng):
    matrix = lambda *shape: round_bf16(rng.normal(0, shape[-1] ** -0.5, shape))
    vector = lambda n: rng.normal(1, 0.1, n).astype("<f4")
    w = {"token_embd.weight": round_bf16(rng.normal(0, 1, (VOCAB, WIDTH))), "token_embd_norm.weight": vector(WIDTH)}
    for i, attention in enumerate(ATTENTION):
        b = f"blk.{i}."
        w |= {b + "attn_norm.weight": vector(WIDTH), b + "ffn_norm.weight": vector(WIDTH), b + "ffn_gate.weight": matrix(FFN, WIDTH) * 2,
              b + "ffn_up.weight": matrix(FFN, WIDTH) * 2, b + "ffn_down.weight": matrix(WIDTH, FFN)}
        if attention:
            w |= {b + "attn_q.weight": matrix(HEADS * DIM, WIDTH) * 2, b + "attn_k.weight": matrix(KV_HEADS * DIM, WIDTH) * 2,
                  b + "attn_v.weight": matrix(KV_HEADS * DIM, WIDTH), b + "attn_output.weight": matrix(WIDTH, HEADS * DIM),
                  b + "attn_q_norm.weight": vector(DIM), b + "attn_k_norm.weight": vector(DIM)}
        else:
            w |= {b + "shortconv.in_proj.weight": matrix(3 * WIDTH, WIDTH) * 2, b + "shortconv.out_proj.weight": matrix(WIDTH, WIDTH),
                  b + "shortconv.conv.weight": rng.normal(0, 1, (WIDTH, TAPS)).astype("<f4")}
    return w


def save(path, weights, as_f32):
    out = gguf.GGUFWriter(path, "lfm2")
    out.add_block_count(len(ATTENTION))
    out.add_context_length(256)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(FFN)
    out.add_head_count(HEADS)
    out.add_head_count_kv([KV_HEADS if attention else 0 for attention in ATTENTION])
    out.add_rope_freq_base(BASE)
    out.add_layer_norm_rms_eps(EPS)
    out.add_shortconv_l_cache(TAPS)
    out.add_vocab_size(VOCAB)
    out.add_tokenizer_model("none")
    for name, w in weights.items():
        if as_f32 or w.ndim == 1 or "shortconv.conv" in name:
            out.add_tensor(name, np.ascontiguousarray(w, "<f4"))
        else:
            bits = (np.ascontiguousarray(w).view("<u4") >> 16).astype("<u2")
            out.add_tensor(name, bits.view(np.uint8).reshape(*w.shape[:-1], -1), raw_dtype=gguf.GGMLQuantizationType.BF16)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def forward(weights, ids):
    """Logits [T, vocab]."""
    weights = {name: w.astype(np.float64) for name, w in weights.items()}
    n, group, half = len(ids), HEADS // KV_HEADS, DIM // 2
    norm = lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w
    angle = np.arange(n)[:, None] * BASE ** (-np.arange(0, DIM, 2) / DIM)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    rotate = lambda x: np.concatenate([x[..., :half] * cos - x[..., half:] * sin, x[..., :half] * sin + x[..., half:] * cos], -1)
    mask = np.triu(np.full((n, n), -np.inf), 1)
    x = weights["token_embd.weight"][ids]
    for layer, attention in enumerate(ATTENTION):
        w = lambda name: weights[f"blk.{layer}.{name}.weight"]
        h = norm(x, w("attn_norm"))
        if attention:
            q, k, v = ((h @ w(f"attn_{p}").T).reshape(n, -1, DIM) for p in "qkv")
            q, k = rotate(norm(q, w("attn_q_norm"))), rotate(norm(k, w("attn_k_norm"))).repeat(group, 1)
            s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(DIM) + mask
            p = np.exp(s - s.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            x = x + np.einsum("hqk,khd->qhd", p, v.repeat(group, 1)).reshape(n, -1) @ w("attn_output").T
        else:
            b, c, y = np.split(h @ w("shortconv.in_proj").T, 3, -1)
            by = np.concatenate([np.zeros((TAPS - 1, WIDTH)), b * y])
            conv = sum(by[i:i + n] * w("shortconv.conv")[:, i] for i in range(TAPS))
            x = x + (c * conv) @ w("shortconv.out_proj").T
        h = norm(x, w("ffn_norm"))
        gate = h @ w("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    return norm(x, weights["token_embd_norm.weight"]) @ weights["token_embd.weight"].T


def main():
    rng, folder = np.random.default_rng(20261122), Path(sys.argv[2])
    weights = random_weights(rng)
    save(folder / "lfm2.gguf", weights, False)
    prompt = [int(i) for i in rng.integers(0, VOCAB, PROMPT)]
    logits = forward(weights, prompt)
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        save(file.name, weights, True)
        theirs = libllama(sys.argv[1], file.name, prompt)
    nmse = ((logits - theirs) ** 2).sum() / (theirs ** 2).sum()
    print("lfm2 NMSE against libllama", nmse)
    assert nmse < 1e-5
    ids, out, leads = list(prompt), [], []
    for _ in range(GREEDY):
        last = forward(weights, ids)[-1]
        second, best = np.sort(last)[-2:]
        out.append(int(last.argmax()))
        leads.append(float(best - second))
        ids.append(out[-1])
    write(folder, "lfm2", logits, prompt, out, leads)


if __name__ == "__main__":
    main()
