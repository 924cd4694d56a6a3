#!/usr/bin/env python3
"""Tiny random models of other architectures and what comes out of them, for tests/api/test_model.c and tests/engine/session/test_load.c.

    architectures.py OUT [NAME …]     (torch, transformers, gguf, numpy)

Weights are BF16, vectors float32, as llama.cpp's converter would write them; there is no vocabulary. Logits and the greedy
continuation are transformers' in float32. The files of a NAME are described in models.py; phi3-short.npy has the logits of 12 ids.
window64 and window100 have prompts of several KV pages: their .npy has the rows near page borders and window edges, which the line
"rows" of their .txt lists.
"""
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers

N_PROMPT, N_LONG, N_GREEDY, VOCAB = 24, 232, 12, 72
COMMON = dict(vocab_size=VOCAB, hidden_size=40, intermediate_size=56, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
              head_dim=16, max_position_embeddings=256, rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2, pad_token_id=0,
              attn_implementation="eager")
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
PAGE = 64                                # tokens of a KV page
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 16,
        "long_factor": [1.0 + 1.5 * i for i in range(8)], "short_factor": [1.0 + 0.05 * i for i in range(8)]}

# name: (class, its settings, architecture, metadata, how the converter changes tensors)
MODELS = {
    "mistral": (transformers.MistralForCausalLM,
                dict(sliding_window=7, tie_word_embeddings=False,
                     rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}),
                "llama", {"attention.sliding_window": 7, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
                          "rope.scaling.original_context_length": 32}, {"permute"}),
    "smollm3": (transformers.SmolLM3ForCausalLM, dict(num_hidden_layers=4, rope_parameters=ROPE, use_sliding_window=False),
                "smollm3", {}, {"permute"}),
    "granite": (transformers.GraniteForCausalLM,
                dict(embedding_multiplier=6.0, residual_multiplier=0.4, attention_multiplier=0.15, logits_scaling=3.0, rope_parameters=ROPE),
                "granite", {"embedding_scale": 6.0, "residual_scale": 0.4, "attention.scale": 0.15, "logit_scale": 3.0}, {"permute"}),
    "gemma": (transformers.GemmaForCausalLM, dict(head_dim=32, rope_parameters=ROPE), "gemma", {}, {"norms"}),
    "gemma2": (transformers.Gemma2ForCausalLM,
               dict(num_hidden_layers=3, query_pre_attn_scalar=16, sliding_window=7, attn_logit_softcapping=5.0, final_logit_softcapping=4.0,
                    rope_parameters=ROPE),
               "gemma2", {"attention.sliding_window": 7, "attention.sliding_window_pattern": [True, False, True],
                          "attn_logit_softcapping": 5.0, "final_logit_softcapping": 4.0}, {"norms"}),
    "gemma3": (transformers.Gemma3ForCausalLM,
               dict(num_hidden_layers=6, query_pre_attn_scalar=16, sliding_window=7,
                    rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0},
                                     "sliding_attention": ROPE}),
               "gemma3", {"attention.sliding_window": 7, "rope.freq_base": 1000000.0, "rope.freq_base_swa": 10000.0,
                          "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}, {"norms"}),
    "phi3": (transformers.Phi3ForCausalLM,
             dict(hidden_size=32, num_key_value_heads=2, rope_parameters=LONG, original_max_position_embeddings=16, sliding_window=11,
                  tie_word_embeddings=False),
             "phi3", {"rope.scaling.type": "longrope", "rope.scaling.original_context_length": 16,
                      "rope.scaling.attn_factor": float(np.sqrt(1 + np.log(16) / np.log(16))),
                      "attention.sliding_window": 11}, {"longrope"}),
    "gpt2": (transformers.GPT2LMHeadModel, dict(n_embd=40, n_layer=2, n_head=2, n_positions=256, n_inner=160), "gpt2", {}, {"transpose"}),
    "olmo2": (transformers.Olmo2ForCausalLM, dict(num_attention_heads=2, hidden_size=32, rope_parameters=ROPE, tie_word_embeddings=False),
              "olmo2", {}, set()),
    "window64": (transformers.MistralForCausalLM,
                 dict(hidden_size=32, intermediate_size=48, num_attention_heads=4, head_dim=32, sliding_window=64, rope_parameters=ROPE,
                      tie_word_embeddings=False),
                 "llama", {"attention.sliding_window": 64}, {"permute", "long"}),
    "window100": (transformers.Gemma2ForCausalLM,
                  dict(hidden_size=32, intermediate_size=48, num_key_value_heads=2, head_dim=32, query_pre_attn_scalar=16, sliding_window=100,
                       attn_logit_softcapping=8.0, final_logit_softcapping=4.0, rope_parameters=ROPE),
                  "gemma2", {"attention.sliding_window": 100, "attention.scale": 0.25, "attn_logit_softcapping": 8.0,
                             "final_logit_softcapping": 4.0}, {"norms", "long"}),
}


def make(name):
    kind, settings, *_ = MODELS[name]
    common = {} if name == "gpt2" else COMMON
    config = kind.config_class(**{**common, "vocab_size": VOCAB, "attn_implementation": "eager", **settings})
    torch.manual_seed(sum(name.encode()))
    model = kind(config).eval()
    for key, tensor in model.named_parameters():
        if tensor.dim() == 1:
            center = 0.0 if "norm" not in key and "ln_" not in key or "norms" in MODELS[name][4] or key.endswith("bias") else 1.0
            tensor.data = center + 0.3 * torch.randn_like(tensor)
        else:
            fan_in = tensor.shape[0] if "transpose" in MODELS[name][4] and ".h." in key else tensor.shape[1]
            scale = 0.5 if "embed" in key or "wte" in key or "wpe" in key else 1.3 / np.sqrt(fan_in)
            tensor.data = (scale * torch.randn_like(tensor)).bfloat16().float()
    model.tie_weights()
    return model


def converted(key, value, config, how):
    if "permute" in how and (".q_proj." in key or ".k_proj." in key):
        heads = config.num_attention_heads if ".q_proj." in key else config.num_key_value_heads
        return value.reshape(heads, 2, value.shape[0] // heads // 2, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)
    if "norms" in how and value.ndim == 1:
        return value + 1
    if "transpose" in how and value.ndim == 2 and ".h." in key:
        return value.T
    return value


def write_model(path, name, model):
    _, _, arch, metadata, how = MODELS[name]
    config, writer = model.config, gguf.GGUFWriter(path, arch)
    layers = config.num_hidden_layers
    names = gguf.get_tensor_name_map(next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == arch), layers)
    numbers = {"block_count": layers, "embedding_length": config.hidden_size, "context_length": config.max_position_embeddings,
               "attention.head_count": config.num_attention_heads, "vocab_size": VOCAB}
    if name == "gpt2":
        numbers |= {"feed_forward_length": config.n_inner, "attention.layer_norm_epsilon": config.layer_norm_epsilon}
    else:
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        numbers |= {"feed_forward_length": config.intermediate_size, "attention.head_count_kv": config.num_key_value_heads,
                    "attention.key_length": size, "attention.value_length": size,
                    "attention.layer_norm_rms_epsilon": config.rms_norm_eps}
    for key, value in (numbers | metadata).items():
        add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32, list: writer.add_array}[type(value)]
        add(f"{arch}.{key}", value)
    for key, tensor in model.state_dict().items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        value = converted(key, tensor.numpy(), config, how).astype(np.float32)
        own = names.get_name(key, try_suffixes=(".weight", ".bias"))
        assert own, key
        if value.ndim == 1:
            writer.add_tensor(own, value)
        else:
            writer.add_tensor(own, gguf.quants.quantize(np.ascontiguousarray(value), gguf.GGMLQuantizationType.BF16),
                              raw_dtype=gguf.GGMLQuantizationType.BF16)
    if "longrope" in how:
        for kind in ("long", "short"):
            writer.add_tensor(f"rope_factors_{kind}.weight", np.array(LONG[f"{kind}_factor"], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def list_rows(window):
    """Tokens at which a page begins, the window leaves the text's first token, or it leaves a page; and their neighbors."""
    edges = [first for page in range(0, N_LONG, PAGE) for first in (page, page + window - 1)]
    rows = {first + i for first in edges for i in range(-2, 3)} | {31, N_LONG - 1}
    return sorted(row for row in rows if 0 <= row < N_LONG)


def main():
    out = Path(sys.argv[1])
    for name in sys.argv[2:] or MODELS:
        model, long = make(name), "long" in MODELS[name][4]
        n_prompt = N_LONG if long else N_PROMPT
        prompt = np.random.default_rng(len(name)).integers(3, VOCAB, n_prompt).tolist()
        rows = list_rows(model.config.sliding_window) if long else slice(None)
        ids, leads = list(prompt), []
        for _ in range(N_GREEDY):
            last = logits_of(model, ids)[-1]
            second, first = np.sort(last)[-2:]
            leads.append(float(first - second))
            ids.append(int(last.argmax()))
        write_model(out / f"{name}.gguf", name, model)
        np.save(out / f"{name}.npy", logits_of(model, prompt)[rows].astype("<f4"))
        if "longrope" in MODELS[name][4]:        # a sequence within the original context
            np.save(out / f"{name}-short.npy", logits_of(model, prompt[:12]).astype("<f4"))
        with open(out / f"{name}.txt", "w", encoding="ascii") as f:
            print("prompt", n_prompt, *prompt, file=f)
            print("greedy", N_GREEDY, *ids[n_prompt:], file=f)
            print("leads", *[f"{lead:.6f}" for lead in leads], file=f)
            if long:
                print("rows", len(rows), *rows, file=f)


main()
