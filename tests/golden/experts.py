#!/usr/bin/env python3
"""Small mixtures of experts and what comes out of them, for tests/api/test_model.c.

    experts.py LIBLLAMA.so OUT     (numpy, gguf)

Random weights, stored as BF16, gpt-oss-mxfp4's experts as MXFP4. The logits are those of the float64 forward pass below; libllama,
which keeps K and V as halves, has to agree to 1e-5 (NMSE) on the same weights as F32: next to BF16 it rounds activations. Files as
those of models.py.
"""
import ctypes
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

from models import write

LAYERS, WIDTH, HEADS, KV_HEADS, DIM, EXPERTS, USED, FFN, SHARED, VOCAB, EPS, BASE = 2, 64, 4, 2, 16, 6, 2, 32, 48, 96, 1e-5, 10000.0
PROMPT, GREEDY = 40, 24
WINDOW, FACTOR, ORIGINAL = 8, 4.0, 16  # gpt-oss'
NAMES = {"mixtral": "llama", "qwen2moe": "qwen2moe", "gpt-oss": "gpt-oss", "gpt-oss-mxfp4": "gpt-oss"}  # GGUF's architecture
MXFP4 = gguf.GGMLQuantizationType.MXFP4


def round_bf16(x):
    bits = x.astype("<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("<u4").view("<f4")


def random_weights(kind, rng):
    matrix = lambda *shape: round_bf16(rng.normal(0, shape[-1] ** -0.5, shape))
    vector = lambda n, mean: rng.normal(mean, 0.1, n).astype("<f4")
    w = {"token_embd.weight": round_bf16(rng.normal(0, 1, (VOCAB, WIDTH))), "output.weight": matrix(VOCAB, WIDTH) * 4,
         "output_norm.weight": vector(WIDTH, 1)}
    for i in range(LAYERS):
        b = f"blk.{i}."
        w |= {b + "attn_norm.weight": vector(WIDTH, 1), b + "ffn_norm.weight": vector(WIDTH, 1),
              b + "attn_q.weight": matrix(HEADS * DIM, WIDTH) * 2, b + "attn_k.weight": matrix(KV_HEADS * DIM, WIDTH) * 2,
              b + "attn_v.weight": matrix(KV_HEADS * DIM, WIDTH), b + "attn_output.weight": matrix(WIDTH, HEADS * DIM),
              b + "ffn_gate_inp.weight": matrix(EXPERTS, WIDTH).astype("<f4"), b + "ffn_gate_exps.weight": matrix(EXPERTS, FFN, WIDTH) * 2,
              b + "ffn_up_exps.weight": matrix(EXPERTS, FFN, WIDTH) * 2, b + "ffn_down_exps.weight": matrix(EXPERTS, WIDTH, FFN)}
        if kind == "qwen2moe":
            w |= {b + f"attn_{x}.bias": vector(n * DIM, 0) for x, n in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS))}
            w |= {b + "ffn_gate_inp_shexp.weight": vector(WIDTH, 0), b + "ffn_gate_shexp.weight": matrix(SHARED, WIDTH) * 2,
                  b + "ffn_up_shexp.weight": matrix(SHARED, WIDTH) * 2, b + "ffn_down_shexp.weight": matrix(WIDTH, SHARED)}
        if NAMES[kind] == "gpt-oss":
            w[b + "post_attention_norm.weight"] = w.pop(b + "ffn_norm.weight")
            w |= {b + f"attn_{x}.bias": vector(n, 0) for x, n in
                  (("q", HEADS * DIM), ("k", KV_HEADS * DIM), ("v", KV_HEADS * DIM), ("output", WIDTH))}
            w |= {b + "attn_sinks.weight": rng.normal(1, 1, HEADS).astype("<f4"), b + "ffn_gate_inp.bias": vector(EXPERTS, 0)}
            w |= {b + f"ffn_{x}_exps.bias": rng.normal(0, 0.5, (EXPERTS, n)).astype("<f4") for x, n in
                  (("gate", FFN), ("up", FFN), ("down", WIDTH))}
        if kind == "gpt-oss":
            w[b + "ffn_gate_exps.weight"] *= 4  # beyond the clamps
            w[b + "ffn_up_exps.weight"] *= 4
        if kind == "gpt-oss-mxfp4":
            w[b + "ffn_gate_inp.bias"] *= 40  # activations in 8 bits shall not choose other experts
            for name in (b + "ffn_gate_exps.weight", b + "ffn_up_exps.weight", b + "ffn_down_exps.weight"):
                w[name] = gguf.quants.dequantize(gguf.quants.quantize(w[name], MXFP4), MXFP4).reshape(w[name].shape)
    return w


def save(path, kind, weights, as_f32):
    arch = NAMES[kind]
    out = gguf.GGUFWriter(path, arch)
    out.add_block_count(LAYERS)
    out.add_context_length(256)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(FFN)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV_HEADS)
    out.add_key_length(DIM)
    out.add_value_length(DIM)
    out.add_rope_dimension_count(DIM)
    out.add_rope_freq_base(BASE)
    out.add_layer_norm_rms_eps(EPS)
    out.add_expert_count(EXPERTS)
    out.add_expert_used_count(USED)
    if kind != "mixtral":
        out.add_expert_feed_forward_length(FFN)
    if kind == "qwen2moe":
        out.add_expert_shared_feed_forward_length(SHARED)
    if arch == "gpt-oss":
        out.add_sliding_window(WINDOW)
        out.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        out.add_rope_scaling_factor(FACTOR)
        out.add_rope_scaling_orig_ctx_len(ORIGINAL)
    out.add_vocab_size(VOCAB)
    out.add_tokenizer_model("none")
    for name, w in weights.items():
        if kind == "gpt-oss-mxfp4" and name.endswith("_exps.weight") and not as_f32:
            out.add_tensor(name, gguf.quants.quantize(w, MXFP4), raw_dtype=MXFP4)
        elif as_f32 or w.ndim == 1 or "ffn_gate_inp" in name or name.endswith("bias"):
            out.add_tensor(name, np.ascontiguousarray(w, "<f4"))
        else:
            bits = (np.ascontiguousarray(w).view("<u4") >> 16).astype("<u2")
            out.add_tensor(name, bits.view(np.uint8).reshape(*w.shape[:-1], -1), raw_dtype=gguf.GGMLQuantizationType.BF16)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def yarn():
    """Angles a position and the factor of cosine and sine."""
    plain = BASE ** (-np.arange(0, DIM, 2) / DIM)
    pair = lambda turns: DIM * np.log(ORIGINAL / (turns * 2 * np.pi)) / (2 * np.log(BASE))
    low, high = max(np.floor(pair(32)), 0), min(np.ceil(pair(1)), DIM - 1)
    ramp = np.clip((np.arange(DIM // 2) - low) / max(high - low, 0.001), 0, 1)
    return plain * (1 - ramp) + plain / FACTOR * ramp, 0.1 * np.log(FACTOR) + 1


def forward(kind, weights, ids):
    """Logits [T, vocab]."""
    arch = NAMES[kind]
    weights = {name: w.astype(np.float64) for name, w in weights.items()}
    n, group = len(ids), HEADS // KV_HEADS
    silu = lambda x: x / (1 + np.exp(-x))
    softmax = lambda x: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
    norm = lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w
    frequencies, magnitude = yarn() if arch == "gpt-oss" else (BASE ** (-np.arange(0, DIM, 2) / DIM), 1)
    angle = np.arange(n)[:, None] * frequencies
    cos, sin = np.cos(angle)[:, None] * magnitude, np.sin(angle)[:, None] * magnitude
    first, second = (slice(0, None, 2), slice(1, None, 2)) if kind == "mixtral" else (slice(0, DIM // 2), slice(DIM // 2, None))

    def rotate(x):
        out = np.empty_like(x)
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., first] * sin + x[..., second] * cos
        return out

    x = weights["token_embd.weight"][ids]
    mask = np.triu(np.full((n, n), -np.inf), 1)
    for layer in range(LAYERS):
        w = lambda name: weights[f"blk.{layer}.{name}"]
        has = lambda name: f"blk.{layer}.{name}" in weights
        h = norm(x, w("attn_norm.weight"))
        bias = lambda name: w(name + ".bias") if has(name + ".bias") else 0
        q, k, v = ((h @ w(f"attn_{p}.weight").T + bias(f"attn_{p}")).reshape(n, -1, DIM) for p in "qkv")
        q, k, v = rotate(q), rotate(k).repeat(group, 1), v.repeat(group, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(DIM) + mask
        if arch == "gpt-oss":
            if layer % 2 == 0:
                scores = scores + np.tril(np.full((n, n), -np.inf), -WINDOW)
            scores = np.concatenate([scores, np.broadcast_to(w("attn_sinks.weight")[:, None, None], (HEADS, n, 1))], -1)
        p = softmax(scores)[..., :n]
        x = x + np.einsum("hqk,khd->qhd", p, v).reshape(n, -1) @ w("attn_output.weight").T + bias("attn_output")
        h = norm(x, w("ffn_norm.weight" if has("ffn_norm.weight") else "post_attention_norm.weight"))
        router = h @ w("ffn_gate_inp.weight").T + bias("ffn_gate_inp")
        chosen = np.argsort(-router, axis=-1, kind="stable")[:, :USED]
        probabilities = np.take_along_axis(softmax(router), chosen, -1)
        if kind != "qwen2moe":
            probabilities = probabilities / probabilities.sum(-1, keepdims=True)
        for t in range(n):
            for e, probability in zip(chosen[t], probabilities[t]):
                of = lambda name, x: w(name + ".weight")[e] @ x + (w(name + ".bias")[e] if has(name + ".bias") else 0)
                gate, up = of("ffn_gate_exps", h[t]), of("ffn_up_exps", h[t])
                if arch == "gpt-oss":
                    gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
                    f = gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
                else:
                    f = silu(gate) * up
                x[t] += probability * of("ffn_down_exps", f)
        if kind == "qwen2moe":
            gate = 1 / (1 + np.exp(-(h @ w("ffn_gate_inp_shexp.weight"))))
            f = silu(h @ w("ffn_gate_shexp.weight").T) * (h @ w("ffn_up_shexp.weight").T)
            x = x + gate[:, None] * (f @ w("ffn_down_shexp.weight").T)
    return norm(x, weights["output_norm.weight"]) @ weights["output.weight"].T


def libllama(path, file, ids):
    """The same by llama.cpp, whose default parameters do. Its structures are given more room than they take."""
    class Params(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint8 * 512)]

    class Batch(ctypes.Structure):
        _fields_ = [("n", ctypes.c_int32), ("token", ctypes.c_void_p), ("embd", ctypes.c_void_p), ("pos", ctypes.c_void_p),
                    ("n_seq_id", ctypes.c_void_p), ("seq_id", ctypes.c_void_p), ("logits", ctypes.c_void_p)]

    lib = ctypes.CDLL(path)
    lib.llama_model_default_params.restype = lib.llama_context_default_params.restype = Params
    lib.llama_model_load_from_file.restype = lib.llama_init_from_model.restype = ctypes.c_void_p
    lib.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
    lib.llama_init_from_model.argtypes = [ctypes.c_void_p, Params]
    lib.llama_decode.argtypes = [ctypes.c_void_p, Batch]
    lib.llama_get_logits.argtypes, lib.llama_get_logits.restype = [ctypes.c_void_p], ctypes.POINTER(ctypes.c_float)
    model = lib.llama_model_load_from_file(str(file).encode(), lib.llama_model_default_params())
    context = lib.llama_init_from_model(model, lib.llama_context_default_params())
    tokens, wanted = np.array(ids, "<i4"), np.ones(len(ids), np.int8)
    batch = Batch(len(ids), tokens.ctypes.data, None, None, None, None, wanted.ctypes.data)
    assert lib.llama_decode(context, batch) == 0
    return np.ctypeslib.as_array(lib.llama_get_logits(context), (len(ids), VOCAB)).astype(np.float64)


def main():
    rng, folder = np.random.default_rng(20261121), Path(sys.argv[2])
    for kind in NAMES:
        weights = random_weights(kind, rng)
        save(folder / f"{kind}.gguf", kind, weights, False)
        prompt = [int(i) for i in rng.integers(0, VOCAB, PROMPT)]
        logits = forward(kind, weights, prompt)
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            save(file.name, kind, weights, True)
            theirs = libllama(sys.argv[1], file.name, prompt)
        nmse = ((logits - theirs) ** 2).sum() / (theirs ** 2).sum()
        print(kind, "NMSE against libllama", nmse)
        assert nmse < 1e-5
        ids, out, leads = list(prompt), [], []
        for _ in range(GREEDY):
            last = forward(kind, weights, ids)[-1]
            second, best = np.sort(last)[-2:]
            out.append(int(last.argmax()))
            leads.append(float(best - second))
            ids.append(out[-1])
        write(folder, kind, logits, prompt, out, leads)


if __name__ == "__main__":
    main()
