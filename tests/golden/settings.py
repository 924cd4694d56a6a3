#!/usr/bin/env python3
"""Writes tests/data/settings.txt: what transformers computes with the small models of ../data/models if a setting is changed.

    settings.py > ../data/settings.txt

Needs torch, transformers and gguf. A line is MODEL KEY=TYPE:VALUE (an override of the GGUF file) and the first logits after IDS."""
from pathlib import Path

import numpy as np
import torch
import transformers
from gguf import GGUFReader, dequantize

IDS = [1, 5, 9, 2, 7, 3, 11, 4]
MODELS = Path(__file__).resolve().parent.parent / "data" / "models"
GPT2 = {"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "attn_norm": "ln_1", "attn_qkv": "attn.c_attn",
        "attn_output": "attn.c_proj", "ffn_norm": "ln_2", "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"}
QWEN2 = {"token_embd": "embed_tokens", "output_norm": "norm", "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def weights(name, names, layers, transposed):
    out = {}
    for tensor in GGUFReader(MODELS / f"{name}.gguf").tensors:
        parts = tensor.name.split(".")
        value = torch.tensor(np.array(dequantize(tensor.data, tensor.tensor_type), np.float32))
        if parts[0] == "output":
            out["lm_head.weight"] = value
            continue
        if parts[0] == "blk":
            inner = f"{layers}.{parts[1]}.{names[parts[2]]}"
            value = value.T if transposed and value.ndim == 2 else value
        else:
            inner = names[parts[0]]
        out[f"{'transformer' if transposed else 'model'}.{inner}.{parts[-1]}"] = value
    return out


def field(name, key):
    return GGUFReader(MODELS / f"{name}.gguf").fields[f"{name}.{key}"].contents()


def gpt2(**changes):
    get = lambda key: field("gpt2", key)
    config = transformers.GPT2Config(n_layer=get("block_count"), n_embd=get("embedding_length"), n_positions=get("context_length"),
                                     n_head=get("attention.head_count"), vocab_size=get("vocab_size"), **changes)
    return transformers.GPT2LMHeadModel(config), weights("gpt2", GPT2, "h", True)


def qwen2(**changes):
    get, values = lambda key: field("qwen2", key), weights("qwen2", QWEN2, "layers", False)
    config = transformers.Qwen2Config(
        num_hidden_layers=get("block_count"), hidden_size=get("embedding_length"), intermediate_size=get("feed_forward_length"),
        num_attention_heads=get("attention.head_count"), num_key_value_heads=get("attention.head_count_kv"),
        vocab_size=len(values["model.embed_tokens.weight"]), max_position_embeddings=get("context_length"), rope_theta=get("rope.freq_base"),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon"), **changes)
    return transformers.Qwen2ForCausalLM(config), values


def main():
    print(f"# transformers {transformers.__version__}; tokens {' '.join(map(str, IDS))}")
    rows = [(qwen2, "hidden_act", "str", value) for value in ("relu", "gelu", "gelu_new", "silu")]
    rows += [(gpt2, "activation_function", "str", value) for value in ("relu", "silu", "gelu", "gelu_new")]
    rows += [(gpt2, "scale_attn_weights", "bool", False), (gpt2, "scale_attn_by_inverse_layer_idx", "bool", True)]
    for make, key, kind, value in rows:
        model, values = make(**{key: value})
        missing = model.load_state_dict(values, strict=False)
        assert not missing.unexpected_keys and set(missing.missing_keys) <= {"lm_head.weight"}, missing
        if "lm_head.weight" in missing.missing_keys:
            model.lm_head.weight = model.get_input_embeddings().weight
        with torch.no_grad():
            logits = model.eval()(torch.tensor([IDS])).logits[0, -1]
        text = str(value).lower() if kind == "bool" else value
        print(f"{make.__name__} {make.__name__}.{key}={kind}:{text}", *(f"{float(x):.6f}" for x in logits[:6]))


main()
