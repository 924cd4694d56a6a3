#!/usr/bin/env python3
"""Tiny random encoders and the embeddings that come out of them, for tests/engine/session/test_embed.c.

    encoders.py FIXTURES OUT     (numpy, gguf)

OUT/NAME holds one model twice: as a Hugging Face folder, with the settings of sentence-transformers, and as model.gguf. Matrices
are BF16, vectors float32; there is no vocabulary. texts.txt: a line of ids a text. mean.npy, cls.npy, last.npy: float32
[texts, width], the float64 forward pass below on the weights as stored. That pass is checked against transformers' hidden states
of FIXTURES first, all but Jina's, whose model code is not a part of transformers.
"""
import json
import math
import sys
from pathlib import Path

import gguf
import numpy as np

VOCAB, WIDTH, HEADS, FFN, CONTEXT = 48, 32, 2, 48, 96
LENGTHS = [3, 1, 20, 90, 33, 2, 65]
COMMON = {"vocab_size": VOCAB, "hidden_size": WIDTH, "num_attention_heads": HEADS, "intermediate_size": FFN, "num_hidden_layers": 2,
          "max_position_embeddings": CONTEXT, "layer_norm_eps": 1e-12, "type_vocab_size": 2, "torch_dtype": "bfloat16"}
CONFIGS = {
    "bert": COMMON | {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"},
    "xlm-roberta": COMMON | {"model_type": "xlm-roberta", "hidden_act": "gelu", "type_vocab_size": 1, "pad_token_id": 1,
                             "max_position_embeddings": CONTEXT + 2},
    "nomic-bert": COMMON | {"model_type": "nomic_bert", "activation_function": "swiglu", "rotary_emb_base": 1000.0, "prenorm": False},
    "modernbert": COMMON | {"model_type": "modernbert", "hidden_activation": "gelu", "num_hidden_layers": 4, "local_attention": 12,
                            "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0,
                            "norm_eps": 1e-5, "layer_norm_eps": 1e-5, "pad_token_id": 0},
    "jina-bert-v2": COMMON | {"model_type": "bert", "position_embedding_type": "alibi", "num_attention_heads": 4,
                              "feed_forward_type": "geglu"},
}
GGUF_ARCH = {"xlm-roberta": "bert", "modernbert": "modern-bert"}
erf = np.vectorize(math.erf, otypes=[np.float64])


# ---- Shapes, by Hugging Face's names ---------------------------------------------

def shapes(config):
    w, f, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    out = {}
    norm = lambda name, bias=True: out.update({f"{name}.weight": (w,)} | ({f"{name}.bias": (w,)} if bias else {}))
    linear = lambda name, rows, cols, bias=True: out.update({f"{name}.weight": (rows, cols)} | ({f"{name}.bias": (rows,)} if bias else {}))
    kind = config["model_type"]
    if kind == "modernbert":
        out["embeddings.tok_embeddings.weight"] = (config["vocab_size"], w)
        norm("embeddings.norm", False)
        norm("final_norm", False)
        for i in range(layers):
            if i > 0:
                norm(f"layers.{i}.attn_norm", False)
            linear(f"layers.{i}.attn.Wqkv", 3 * w, w, False)
            linear(f"layers.{i}.attn.Wo", w, w, False)
            norm(f"layers.{i}.mlp_norm", False)
            linear(f"layers.{i}.mlp.Wi", 2 * f, w, False)
            linear(f"layers.{i}.mlp.Wo", w, f, False)
        return out
    out["embeddings.word_embeddings.weight"] = (config["vocab_size"], w)
    out["embeddings.token_type_embeddings.weight"] = (config["type_vocab_size"], w)
    if kind == "nomic_bert":
        norm("emb_ln")
        for i in range(layers):
            p = f"encoder.layers.{i}."
            linear(p + "attn.Wqkv", 3 * w, w, False)
            linear(p + "attn.out_proj", w, w, False)
            for name, rows, cols in (("fc11", f, w), ("fc12", f, w), ("fc2", w, f)):
                linear(p + "mlp." + name, rows, cols, False)
            norm(p + "norm1")
            norm(p + "norm2")
        return out
    alibi = config.get("position_embedding_type") == "alibi"
    norm("embeddings.LayerNorm")
    if not alibi:
        out["embeddings.position_embeddings.weight"] = (config["max_position_embeddings"], w)
    for i in range(layers):
        p = f"encoder.layer.{i}."
        for name in ("query", "key", "value"):
            linear(p + "attention.self." + name, w, w)
        linear(p + "attention.output.dense", w, w)
        norm(p + "attention.output.LayerNorm")
        if alibi:
            linear(p + "mlp.gated_layers", 2 * f, w, False)
            linear(p + "mlp.wo", w, f)
            norm(p + "mlp.layernorm")
        else:
            linear(p + "intermediate.dense", f, w)
            linear(p + "output.dense", w, f)
            norm(p + "output.LayerNorm")
    return out


# ---- The forward pass ------------------------------------------------------------

def norm(x, t, name, eps):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * t[name + ".weight"] + t.get(name + ".bias", 0.0)


def linear(x, t, name):
    return x @ t[name + ".weight"].T + t.get(name + ".bias", 0.0)


def gelu(x):
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def rotate(x, theta):
    half = x.shape[-1] // 2
    angle = np.arange(len(x))[:, None] * theta ** (-np.arange(half) / half)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def slopes(heads):
    """Press et al.: a geometric series; heads that are no power of two take every second one of the next."""
    power = 2 ** math.floor(math.log2(heads))
    series = lambda n: [2 ** (-8 * (i + 1) / n) for i in range(n)]
    return np.array(series(power) + series(2 * power)[0::2][:heads - power])


def attend(q, k, v, heads, theta=None, window=0, alibi=False):
    n, width = q.shape
    q, k, v = (x.reshape(n, heads, -1) for x in (q, k, v))
    if theta:
        q, k = rotate(q, theta), rotate(k, theta)
    distance = np.abs(np.arange(n)[:, None] - np.arange(n)[None])
    s = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(width // heads)
    if alibi:
        s = s - slopes(heads)[:, None, None] * distance
    if window:
        s = np.where(distance <= window // 2, s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return np.einsum("hqk,khd->qhd", p, v).reshape(n, width)


def forward(config, t, ids):
    """The last hidden states [tokens, width]."""
    kind, heads, eps, layers = config["model_type"], config["num_attention_heads"], config["layer_norm_eps"], config["num_hidden_layers"]
    if kind == "modernbert":
        x = norm(t["embeddings.tok_embeddings.weight"][ids], t, "embeddings.norm", eps)
        for i in range(layers):
            p = f"layers.{i}."
            full = i % config["global_attn_every_n_layers"] == 0
            h = x if i == 0 else norm(x, t, p + "attn_norm", eps)
            qkv = np.split(linear(h, t, p + "attn.Wqkv"), 3, -1)
            theta = config["global_rope_theta" if full else "local_rope_theta"]
            x = x + linear(attend(*qkv, heads, theta, 0 if full else config["local_attention"]), t, p + "attn.Wo")
            a, b = np.split(linear(norm(x, t, p + "mlp_norm", eps), t, p + "mlp.Wi"), 2, -1)
            x = x + linear(gelu(a) * b, t, p + "mlp.Wo")
        return norm(x, t, "final_norm", eps)
    x = t["embeddings.word_embeddings.weight"][ids] + t["embeddings.token_type_embeddings.weight"][0]
    if kind == "nomic_bert":
        x = norm(x, t, "emb_ln", eps)
        for i in range(layers):
            p = f"encoder.layers.{i}."
            qkv = np.split(linear(x, t, p + "attn.Wqkv"), 3, -1)
            x = norm(x + linear(attend(*qkv, heads, config["rotary_emb_base"]), t, p + "attn.out_proj"), t, p + "norm1", eps)
            gate = linear(x, t, p + "mlp.fc12")
            h = linear(x, t, p + "mlp.fc11") * gate / (1 + np.exp(-gate))
            x = norm(x + linear(h, t, p + "mlp.fc2"), t, p + "norm2", eps)
        return x
    alibi = config.get("position_embedding_type") == "alibi"
    first = config["pad_token_id"] + 1 if kind == "xlm-roberta" else 0
    if not alibi:
        x = x + t["embeddings.position_embeddings.weight"][first:first + len(ids)]
    x = norm(x, t, "embeddings.LayerNorm", eps)
    for i in range(layers):
        p = f"encoder.layer.{i}."
        qkv = [linear(x, t, p + "attention.self." + name) for name in ("query", "key", "value")]
        x = norm(x + linear(attend(*qkv, heads, alibi=alibi), t, p + "attention.output.dense"), t, p + "attention.output.LayerNorm", eps)
        if alibi:
            a, b = np.split(linear(x, t, p + "mlp.gated_layers"), 2, -1)
            x = norm(x + linear(gelu(a) * b, t, p + "mlp.wo"), t, p + "mlp.layernorm", eps)
        else:
            h = gelu(linear(x, t, p + "intermediate.dense"))
            x = norm(x + linear(h, t, p + "output.dense"), t, p + "output.LayerNorm", eps)
    return x


# ---- Files -----------------------------------------------------------------------

def bf16(x):
    """Float32 values that BF16 holds, and their bits."""
    bits = x.astype("<f4").view("<u4")
    bits = ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return (bits.astype("<u4") << 16).view("<f4"), bits


def read_safetensors(path):
    data = path.read_bytes()
    n = int.from_bytes(data[:8], "little")
    out = {}
    for name, entry in json.loads(data[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            raw = data[8 + n + begin:8 + n + end]
            wide = np.frombuffer(raw, "<f4") if entry["dtype"] == "F32" else (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
            out[name] = wide.reshape(entry["shape"]).astype(np.float64)
    return out


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, x in tensors.items():
        raw = x.astype("<f4").tobytes() if x.ndim == 1 else bf16(x)[1].tobytes()
        header[name] = {"dtype": "F32" if x.ndim == 1 else "BF16", "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_gguf(path, name, config, tensors):
    arch = GGUF_ARCH.get(name, name)
    writer = gguf.GGUFWriter(path, arch)
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch), config["num_hidden_layers"])
    numbers = {"block_count": config["num_hidden_layers"], "context_length": CONTEXT, "embedding_length": WIDTH, "feed_forward_length": FFN,
               "attention.head_count": config["num_attention_heads"], "attention.layer_norm_epsilon": config["layer_norm_eps"],
               "pooling_type": 2, "attention.causal": False, "vocab_size": VOCAB}
    if name == "nomic-bert":
        numbers["rope.freq_base"] = config["rotary_emb_base"]
    if name == "modernbert":
        numbers |= {"rope.freq_base": config["global_rope_theta"], "rope.freq_base_swa": config["local_rope_theta"],
                    "attention.sliding_window": config["local_attention"], "rope.scaling.type": "none",
                    "attention.sliding_window_pattern": config["global_attn_every_n_layers"], "hidden_activation": "gelu"}
    for key, value in numbers.items():
        add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32, bool: writer.add_bool}[type(value)]
        add(f"{arch}.{key}", value)
    writer.add_token_type_count(config["type_vocab_size"])
    for key, x in tensors.items():
        if key == "embeddings.position_embeddings.weight":
            x = x[-CONTEXT:]
        own = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert own, key
        if x.ndim == 1 or own == "token_types.weight" or own == "position_embd.weight":
            writer.add_tensor(own, np.ascontiguousarray(x, np.float32))
        else:
            writer.add_tensor(own, gguf.quants.quantize(np.ascontiguousarray(x, np.float32), gguf.GGMLQuantizationType.BF16),
                              raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_settings(folder, config):
    text = lambda x: json.dumps(x, indent=1) + "\n"
    (folder / "config.json").write_text(text(config))
    modules = ["Transformer", "Pooling", "Normalize"]
    (folder / "modules.json").write_text(text([
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "", "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(modules)]))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(text({
        "word_embedding_dimension": WIDTH, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}))


def make(name, config):
    random = np.random.default_rng(sum(name.encode()))
    out = {}
    for key, shape in shapes(config).items():
        x = random.standard_normal(shape)
        if len(shape) == 1:
            x = 0.3 * x + (1.0 if key.endswith("weight") else 0.0)
            out[key] = x.astype(np.float32)
        else:
            out[key] = bf16((0.7 if "embeddings" in key else 1.6 / math.sqrt(shape[1])) * x)[0]
    return out


def check(fixtures):
    for name in CONFIGS:
        if not (fixtures / name).exists():
            continue
        config = json.loads((fixtures / name / "hf" / "config.json").read_text())
        tensors = read_safetensors(fixtures / name / "hf" / "model.safetensors")
        for i, text in enumerate(json.loads((fixtures / name / "golden" / "texts.json").read_text())[:2]):
            want = np.load(fixtures / name / "golden" / f"hidden{i}.npy").astype(np.float64)
            error = ((forward(config, tensors, text["ids"]) - want) ** 2).sum() / (want ** 2).sum()
            assert error < 1e-11, (name, i, error)


def main():
    fixtures, out = Path(sys.argv[1]), Path(sys.argv[2])
    check(fixtures)
    for name, config in CONFIGS.items():
        folder = out / name
        folder.mkdir(exist_ok=True)
        tensors = make(name, config)
        write_settings(folder, config)
        write_safetensors(folder / "model.safetensors", tensors)
        write_gguf(folder / "model.gguf", name, config, tensors)
        random = np.random.default_rng(7)
        texts = [random.integers(0, VOCAB, n).tolist() for n in LENGTHS]
        wide = {key: x.astype(np.float64) for key, x in tensors.items()}
        hidden = [forward(config, wide, ids) for ids in texts]
        (folder / "texts.txt").write_text("".join(" ".join(map(str, ids)) + "\n" for ids in texts))
        for kind, pool in (("mean", lambda h: h.mean(0)), ("cls", lambda h: h[0]), ("last", lambda h: h[-1])):
            np.save(folder / f"{kind}.npy", np.array([pool(h) for h in hidden]).astype("<f4"))


main()
