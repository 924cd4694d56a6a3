#!/usr/bin/env python3
"""Folders of quantized checkpoints and what comes out of them, for tests/files/weights/test_hf_quant.c.

    quantized.py OUT             (needs numpy from PyPI)

OUT/NAME/ has config.json and model.safetensors, or a manifest.json and arrays
(docs/npy-directory.md), of a small model of random weights, which are packed here as the
scheme's own description says. OUT/NAME.txt has the SHA-256 of each
weight's float32 values, as the scheme defines them, and OUT/NAME.npy the logits of a
float64 forward pass over these for the ids (7 i i + 3) mod 64, i = 0 … 23.
"""
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

HEADS, KV_HEADS, DIM, VOCAB, TOKENS = 2, 1, 32, 80, 24


def set_size(width, ffn):
    global WIDTH, FFN, MATRICES, CONFIG
    WIDTH, FFN = width, ffn
    MATRICES = {"self_attn.q_proj": (HEADS * DIM, WIDTH), "self_attn.k_proj": (KV_HEADS * DIM, WIDTH), "self_attn.v_proj": (KV_HEADS * DIM, WIDTH),
                "self_attn.o_proj": (WIDTH, HEADS * DIM), "mlp.gate_proj": (FFN, WIDTH), "mlp.up_proj": (FFN, WIDTH), "mlp.down_proj": (WIDTH, FFN)}
    CONFIG = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": WIDTH, "intermediate_size": FFN, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": DIM, "vocab_size": VOCAB, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "tie_word_embeddings": False}


def to_bf16(x):
    """Rounded to nearest even, as uint16."""
    u = np.asarray(x, np.float32).view(np.uint32)
    return ((u + 0x7FFF + (u >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(u):
    return (u.astype(np.uint32) << 16).view(np.float32)


# ---- The file ----------------------------------------------------------------------


def write_safetensors(folder, tensors):
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_npy_dir(use):
    """`use`: what the manifest says of it."""
    def save(folder, tensors):
        entries = {}
        (folder / "tensors").mkdir(exist_ok=True)
        for name, (entry, arrays) in tensors.items():
            if isinstance(entry, str):  # of no scheme
                entry, arrays = {"shape": list(arrays.shape), "plain": {"bytes": arrays.nbytes}}, {"__pt": arrays}
            entries[name] = entry
            for ending, array in (arrays | {"__shape": np.array(entry["shape"])}).items():
                np.save(folder / "tensors" / f"{name.replace('.', '__')}{ending}.npy", np.ascontiguousarray(array))
        manifest = {"format": "akunu-npy", "version": 1, "names": "huggingface"} | ({"use": use} if use else {}) | {"tensors": entries}
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return save


# ---- The schemes: (tensors, values) of a matrix ---------------------------------------


def bit_stream(q, bits):
    """Rows of numbers after each other, the lowest bits first, as 32-bit words."""
    stream = (q[..., None] >> np.arange(bits) & 1).astype(np.uint8).reshape(q.shape[0], -1)
    return np.packbits(stream, axis=1, bitorder="little").view(np.uint32)


def groups_of(w, group):
    return w.reshape(w.shape[0], -1, group)


def mlx(bits, group, factors="BF16"):
    def pack(name, w, rng):
        g = groups_of(w, group)
        low, high = g.min(-1), g.max(-1)
        narrow = {"BF16": to_bf16, "F16": np.float16, "F32": np.float32}[factors]
        to_f32 = from_bf16 if factors == "BF16" else np.float32
        scale, bias = narrow((high - low) / (2**bits - 1)), narrow(low)
        s, b = to_f32(scale)[..., None], to_f32(bias)[..., None]
        q = np.clip(np.round((g - b) / s), 0, 2**bits - 1).astype(np.uint32)
        values = s * q.astype(np.float32) + b
        return ({f"{name}.weight": ("U32", bit_stream(q.reshape(w.shape), bits)), f"{name}.scales": (factors, scale), f"{name}.biases": (factors, bias)},
                values.reshape(w.shape))
    return pack


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def mxfp4(name, w, rng):
    g = groups_of(w, 32)
    exponent = np.floor(np.log2(np.abs(g).max(-1))).astype(int) - 2
    scale = np.exp2(exponent).astype(np.float32)[..., None]
    q = np.abs((g / scale)[..., None] - FP4).argmin(-1).astype(np.uint32)
    return ({f"{name}.weight": ("U32", bit_stream(q.reshape(w.shape), 4)), f"{name}.scales": ("U8", (exponent + 127).astype(np.uint8))},
            (scale * FP4[q]).reshape(w.shape))


def zero_points(w, bits, group, symmetric):
    """(scale F16 [rows, groups], zero [rows, groups], q); the last group may be short"""
    g, q_max = groups_of(np.pad(w, ((0, 0), (0, -w.shape[1] % group))), group), 2**bits - 1
    low, high = np.minimum(g.min(-1), 0), np.maximum(g.max(-1), 0)
    if symmetric:
        high = np.maximum(-low, high)
        low = -high
    scale = ((high - low) / q_max).astype(np.float16)
    s = scale.astype(np.float32)
    zero = np.full(s.shape, 2 ** (bits - 1)) if symmetric else np.clip(np.round(-low / s), 0, q_max).astype(int)
    q = np.clip(np.round(g / s[..., None]) + zero[..., None], 0, q_max).astype(int)
    return scale, zero, q.reshape(w.shape[0], -1)[:, : w.shape[1]]


def words(numbers, bits, axis):
    """Along an axis, 32 / bits neighbors a word."""
    numbers = np.moveaxis(numbers, axis, -1).astype(np.uint32)
    parts = numbers.reshape(*numbers.shape[:-1], -1, 32 // bits) << (np.arange(32 // bits, dtype=np.uint32) * bits)
    return np.moveaxis(np.bitwise_or.reduce(parts, axis=-1), -1, axis).view(np.int32)


def input_order(act_order, n, rng):
    """"shared": the same for all modules of as many inputs."""
    rng = np.random.default_rng(n) if act_order == "shared" else rng
    return rng.permutation(n) if act_order else np.arange(n)


def gptq(bits, group, act_order=False, symmetric=False, v2=False):
    def pack(name, w, rng):
        order = input_order(act_order, w.shape[1], rng)
        scale, zero, sorted_q = zero_points(w[:, order], bits, group, symmetric)
        index, q = np.empty(w.shape[1], np.int32), np.empty_like(sorted_q)
        index[order] = np.arange(w.shape[1]) // group
        q[:, order] = sorted_q
        values = scale.astype(np.float32)[:, index] * (q - zero[:, index]).astype(np.float32)
        stored = zero if v2 else zero - 1 & 2**bits - 1
        tensors = {f"{name}.qweight": ("I32", words(q.T, bits, 0)), f"{name}.qzeros": ("I32", words(stored.T, bits, 1)),
                   f"{name}.scales": ("F16", scale.T), f"{name}.g_idx": ("I32", index)}
        return tensors, values
    return pack


def awq(name, w, rng):
    scale, zero, q = zero_points(w, 4, 32, False)
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def interleaved(x):
        return words(x.reshape(x.shape[0], -1, 8)[..., order].reshape(x.shape), 4, 1)

    values = scale.astype(np.float32).repeat(32, 1) * (q - zero.repeat(32, 1)).astype(np.float32)
    return {f"{name}.qweight": ("I32", interleaved(q.T)), f"{name}.qzeros": ("I32", interleaved(zero.T)), f"{name}.scales": ("F16", scale.T)}, values


def compressed(bits, group=None, factors="BF16", symmetric=True, act_order=False, zeros="I32"):
    """pack-quantized; without a group, a scale a row."""
    def pack(name, w, rng):
        n, half = group or w.shape[1], 2 ** (bits - 1)
        order = input_order(act_order, w.shape[1], rng)
        scale, zero, sorted_q = zero_points(w[:, order], bits, n, symmetric)
        index, q = np.empty(w.shape[1], np.int32), np.empty_like(sorted_q)
        index[order] = np.arange(w.shape[1]) // n
        q[:, order] = sorted_q
        narrow = to_bf16(scale) if factors == "BF16" else scale
        scale = from_bf16(narrow) if factors == "BF16" else scale.astype(np.float32)
        values = scale[:, index] * (q - zero[:, index]).astype(np.float32)
        tensors = {f"{name}.weight_packed": ("I32", words(q, bits, 1)), f"{name}.weight_scale": (factors, narrow),
                   f"{name}.weight_shape": ("I64", np.array(w.shape))}
        if not symmetric:
            packed = words(np.pad(zero, ((0, -len(zero) % (32 // bits)), (0, 0))), bits, 0)
            tensors[f"{name}.weight_zero_point"] = ("I32", packed) if zeros == "I32" else ("I8", (zero - half).astype(np.int8))
        tensors[f"{name}.weight_g_idx"] = ("I32", index if act_order else np.full_like(index, -1))
        return tensors, values
    return pack


def int8(factors="BF16", symmetric=True, one=False):
    """int-quantized: a scale a row, or one for all."""
    def pack(name, w, rng):
        rows = w.reshape(1, -1) if one else w
        scale, zero, q = zero_points(rows, 8, rows.shape[1], symmetric)
        narrow = to_bf16(scale) if factors == "BF16" else scale.astype(np.float32)
        scale = from_bf16(narrow) if factors == "BF16" else narrow
        q = (q - 128).reshape(w.shape)
        values = scale * (q - (zero - 128)).astype(np.float32)
        tensors = {f"{name}.weight": ("I8", q.astype(np.int8)), f"{name}.weight_scale": (factors, narrow.reshape(1) if one else narrow),
                   f"{name}.input_scale": ("F32", np.ones(1, np.float32))}
        if not symmetric:
            tensors[f"{name}.weight_zero_point"] = ("I8", (zero - 128).astype(np.int8))
        return tensors, values
    return pack


def npy(bits, group=None, halves=False, beside=None):
    """`halves`: scales that F16 has; `beside`: another encoding, which is not used."""
    def pack(name, w, rng):
        q_max = 2 ** (bits - 1) - 1
        g = groups_of(w, group or w.shape[1])
        scale = np.abs(g).max(-1) / np.float32(q_max)
        if halves:  # rounded up, so that nothing is clipped
            near = scale.astype(np.float16)
            scale = np.where(near.astype(np.float32) < scale, np.nextafter(near, np.float16(np.inf)), near).astype(np.float32)
        q = np.clip(np.round(g / scale[..., None]), -q_max - 1, q_max).astype(int)
        values = (scale[..., None] * q.astype(np.float32)).reshape(w.shape)
        q = q.reshape(w.shape)
        if bits == 8:
            a, b = w.astype(np.float64).ravel(), values.astype(np.float64).ravel()
            assert a @ b / np.sqrt((a @ a) * (b @ b)) >= 0.99995
        numbers = q.astype(np.int8) if bits == 8 else bit_stream(q + q_max + 1, bits).view(np.uint8)
        settings = {"bytes": numbers.nbytes + scale.nbytes} | ({"group": group} if group else {}) | ({"scales": "f16"} if halves else {})
        ending = "" if bits == 8 else str(bits)
        entry, arrays = {"shape": list(w.shape), f"int{bits}": settings}, {f"__q{ending}": numbers, f"__s{ending}": scale}
        if beside:
            ((other, more),) = beside(name, w, rng)[0].values()
            entry, arrays = other | entry, more | arrays
        return {f"{name}.weight": (entry, arrays)}, values
    return pack


def e4m3_values():
    """The 256 numbers; 0x7f and 0xff are none."""
    code = np.arange(256)
    exponent, mantissa = code >> 3 & 15, code & 7
    x = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10))
    x[code & 127 == 127] = np.inf
    return np.where(code & 128, -x, x).astype(np.float32)


def fp8(block, ending, factors="F32"):
    def pack(name, w, rng):
        rows, cols = (min(b, n) for b, n in zip(block, w.shape))
        grid = -(-w.shape[0] // rows), -(-w.shape[1] // cols)
        scale = np.empty(grid, np.float32)
        for i in range(grid[0]):
            for j in range(grid[1]):
                scale[i, j] = np.abs(w[i * rows : (i + 1) * rows, j * cols : (j + 1) * cols]).max() / 448
        narrow = to_bf16(scale) if factors == "BF16" else scale
        scale = from_bf16(narrow) if factors == "BF16" else scale
        wide = scale.repeat(rows, 0)[: w.shape[0]].repeat(cols, 1)[:, : w.shape[1]]
        table = e4m3_values()
        code = np.abs((w / wide)[..., None] - table).argmin(-1).astype(np.uint8)
        stored = narrow.reshape(1) if grid == (1, 1) else narrow
        return {f"{name}.weight": ("F8_E4M3", code), f"{name}.{ending}": (factors, stored), f"{name}.input_scale": ("F32", np.ones(1, np.float32))}, wide * table[code]
    return pack


# ---- The model ------------------------------------------------------------------------


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + CONFIG["rms_norm_eps"]) * weight


def forward(weights, ids):
    w = {name: values.astype(np.float64) for name, values in weights.items()}
    layer = lambda name: w[f"model.layers.0.{name}.weight"]
    angle = np.arange(len(ids))[:, None] * CONFIG["rope_theta"] ** (-np.arange(0, DIM, 2) / DIM)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]

    def rotate(x):
        a, b = x[..., : DIM // 2], x[..., DIM // 2 :]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    x = w["model.embed_tokens.weight"][ids]
    h = norm(x, layer("input_layernorm"))
    q = rotate((h @ layer("self_attn.q_proj").T).reshape(-1, HEADS, DIM))
    k = rotate((h @ layer("self_attn.k_proj").T).reshape(-1, KV_HEADS, DIM)).repeat(HEADS // KV_HEADS, 1)
    v = (h @ layer("self_attn.v_proj").T).reshape(-1, KV_HEADS, DIM).repeat(HEADS // KV_HEADS, 1)
    s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(DIM) + np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    x = x + np.einsum("hqk,khd->qhd", p, v).reshape(len(ids), -1) @ layer("self_attn.o_proj").T
    h = norm(x, layer("post_attention_layernorm"))
    gate = h @ layer("mlp.gate_proj").T
    x = x + (gate / (1 + np.exp(-gate)) * (h @ layer("mlp.up_proj").T)) @ layer("mlp.down_proj").T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


def plain(name, w, rng):
    half = w.astype(np.float16)
    return {f"{name}.weight": ("F16", half)}, half.astype(np.float32)


def write(out, name, config, scheme, own=None, ends=plain, save=write_safetensors):
    """`own`: schemes of modules by the end of their names; `ends`: of the embedding and the output."""
    rng = np.random.default_rng(20250103)
    tensors, values = {}, {}

    def add(module, shape, spread, pack):
        w = (rng.standard_normal(shape) * spread).astype(np.float32)
        parts, values[f"{module}.weight"] = pack(module, w, rng)
        tensors.update(parts)

    for module in ("model.embed_tokens", "lm_head"):
        add(module, (VOCAB, WIDTH), 1.0, ends)
    for module in ("model.norm", "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm"):
        weight = (1 + 0.1 * rng.standard_normal(WIDTH)).astype(np.float32)
        tensors[f"{module}.weight"], values[f"{module}.weight"] = ("F32", weight), weight
    for module, shape in MATRICES.items():
        pack = next((pack for end, pack in (own or {}).items() if module.endswith(end)), scheme)
        add(f"model.layers.0.{module}", shape, 0.12, pack)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    save(folder, tensors)
    (out / f"{name}.txt").write_text("".join(f"{n} {hashlib.sha256(v.astype('<f4').tobytes()).hexdigest()}\n" for n, v in values.items()))
    ids = [(7 * i * i + 3) % 64 for i in range(TOKENS)]
    np.save(out / f"{name}.npy", forward(values, ids).astype("<f4"))


def quantized(**config):
    return {"quantization_config": config}


def main():
    out = Path(sys.argv[1])
    set_size(64, 96)
    layer = "model.layers.0."
    settings = {"group_size": 32, "bits": 4, layer + "self_attn.q_proj": {"group_size": 64, "bits": 3}, layer + "self_attn.k_proj": False,
                layer + "self_attn.v_proj": {"group_size": 32, "bits": 8}, layer + "mlp.gate_proj": {"group_size": 32, "bits": 2},
                layer + "mlp.down_proj": {"group_size": 32, "bits": 5}, "lm_head": {"group_size": 64, "bits": 6}, "model.embed_tokens": {"group_size": 64, "bits": 6}}
    own = {"q_proj": mlx(3, 64), "k_proj": plain, "v_proj": mlx(8, 32), "gate_proj": mlx(2, 32), "down_proj": mlx(5, 32)}
    write(out, "mlx", {"quantization": settings, "quantization_config": settings}, mlx(4, 32), own, mlx(6, 64))
    f16 = {"group_size": 32, "bits": 4, layer + "mlp.down_proj": {"group_size": 32, "bits": 5}}
    write(out, "mlx-f16", {"quantization": f16}, mlx(4, 32, "F16"), {"down_proj": mlx(5, 32, "F16"), "o_proj": mlx(4, 32, "F32")})
    write(out, "mlx-mxfp4", {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4", layer + "mlp.up_proj": {"group_size": 32, "bits": 4, "mode": "affine"}}},
          mxfp4, {"up_proj": mlx(4, 32)})
    write(out, "gptq", quantized(quant_method="gptq", bits=4, group_size=32, desc_act=False, sym=False), gptq(4, 32))
    write(out, "gptq-act", quantized(quant_method="gptq", bits=4, group_size=32, desc_act=True, sym=True), gptq(4, 32, act_order=True, symmetric=True))
    write(out, "gptq-v2", quantized(quant_method="gptq", bits=8, group_size=-1, checkpoint_format="gptq_v2"), gptq(8, WIDTH, v2=True),
          {"down_proj": gptq(8, FFN, v2=True)})
    write(out, "awq", quantized(quant_method="awq", bits=4, group_size=32, version="gemm", zero_point=True), awq)
    write(out, "fp8", quantized(quant_method="fp8", weight_block_size=[64, 32], activation_scheme="dynamic"), fp8((64, 32), "weight_scale_inv"))
    write(out, "fp8-mixed", quantized(quant_method="fp8", weight_block_size=[32, 32]), fp8((32, 32), "weight_scale_inv"), {"k_proj": plain, "up_proj": plain})
    write(out, "fp8-rows", quantized(quant_method="compressed-tensors", format="float-quantized"), fp8((1, 1 << 20), "weight_scale", "BF16"),
          {"up_proj": fp8((1 << 20, 1 << 20), "weight_scale")})
    dynamic = {"-:.*o_proj": {}, r"+:model\.layers\.\d+\.mlp\.up": {"bits": 8}, ".*down_proj": {"group_size": 64}, ".*": {}}
    write(out, "gptq-dynamic", quantized(quant_method="gptq", bits=4, group_size=32, desc_act=True, sym=False, dynamic=dynamic),
          gptq(4, 32, act_order="shared"), {"o_proj": plain, "up_proj": gptq(8, 32, act_order="shared"), "down_proj": gptq(4, 64, act_order="shared")})
    group = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}}
    rows = {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}}
    own = {"q_proj": compressed(4, 32, act_order=True), "k_proj": compressed(4, 32, symmetric=False), "v_proj": compressed(8, factors="F16"),
           "o_proj": compressed(4, 32, symmetric=False, zeros="I8"), "gate_proj": compressed(4, 32, factors="F16"), "up_proj": compressed(8, 32),
           "down_proj": compressed(4, 32, "F16", symmetric=False, act_order=True)}
    write(out, "ct-packed", quantized(quant_method="compressed-tensors", format="pack-quantized", config_groups=group, ignore=["lm_head"]), compressed(4, 32), own)
    write(out, "ct-int8", quantized(quant_method="compressed-tensors", format="int-quantized", config_groups=rows), int8(),
          {"q_proj": int8(symmetric=False), "k_proj": plain, "up_proj": int8("F32", one=True)})
    write(out, "npy-int8", {}, npy(8), {"q_proj": npy(8, 64, halves=True), "k_proj": plain, "down_proj": npy(8, 32)}, save=write_npy_dir(None))
    write(out, "npy-int4", {}, npy(4, 32), {"q_proj": npy(4, 64, halves=True, beside=npy(8)), "gate_proj": npy(3, 32, halves=True),
                                          "up_proj": npy(3, 64), "v_proj": npy(8)}, save=write_npy_dir("int4"))
    set_size(128, 256)
    write(out, "fp8-wide", quantized(quant_method="fp8", weight_block_size=[128, 128]), fp8((128, 128), "weight_scale_inv"),
          {"q_proj": fp8((1, 1 << 20), "weight_scale", "BF16"), "up_proj": fp8((1 << 20, 1 << 20), "weight_scale")})


main()
