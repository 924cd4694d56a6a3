#!/usr/bin/env python3
"""Tiny random models with the gated delta rule and what comes out of them, for tests/api/test_model.c and tests/files/weights/test_hf.c.

    delta.py LLAMA_CPP OUT     (torch, transformers, numpy; the sources of llama.cpp with build/bin/libllama.so)

OUT/folders/NAME has config.json and model.safetensors as transformers saves them, in BF16, of qwen35moe with experts in two tensors as published; OUT/models/NAME.gguf is what llama.cpp's
converter makes of that, without a vocabulary. Logits and the greedy continuation are transformers' in float32; libllama, which keeps K
and V as halves, has to agree to 1e-5 (NMSE) on the same weights as F32. The prompt is longer than transformers' chunks of the rule.
Files as those of models.py.
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

LLAMA = Path(sys.argv[1]).resolve()
sys.path[:0] = [str(LLAMA), str(LLAMA / "gguf-py")]

import gguf
import numpy as np
import torch
import transformers
from conversion import get_model_class
from safetensors.torch import load_file, save_file

from experts import VOCAB, libllama
from models import write

PROMPT, GREEDY, INTERVAL = 80, 12, 2
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}
COMMON = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, head_dim=32,
              max_position_embeddings=256, rms_norm_eps=1e-6, bos_token_id=1, eos_token_id=2, pad_token_id=0, rope_parameters=ROPE,
              layer_types=["linear_attention", "full_attention", "linear_attention"], linear_conv_kernel_dim=4, attn_implementation="eager")
EXPERTS = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=24)


def heads(keys, values, dim):
    return dict(linear_num_key_heads=keys, linear_num_value_heads=values, linear_key_head_dim=dim, linear_value_head_dim=dim)


# value heads of one key head, neighbors here and apart in GGUF; a state of more columns than are taken at once
MODELS = {
    "qwen3next": (transformers.Qwen3NextForCausalLM, COMMON | EXPERTS | heads(2, 4, 32) | dict(intermediate_size=48, tie_word_embeddings=False)),
    "qwen35": (transformers.Qwen3_5ForCausalLM, COMMON | heads(2, 6, 32) | dict(intermediate_size=48, tie_word_embeddings=True)),
    "qwen35moe": (transformers.Qwen3_5MoeForCausalLM, COMMON | EXPERTS | heads(1, 2, 96) | dict(tie_word_embeddings=False)),
}


def make(name):
    kind, settings = MODELS[name]
    torch.manual_seed(sum(name.encode()))
    model = kind(kind.config_class(**settings)).eval()
    for key, tensor in model.named_parameters():
        if key.endswith("A_log"):
            value = torch.empty_like(tensor).uniform_(0.02, 2.0).log()  # the slowest forgets little in a whole prompt
        elif key.endswith("dt_bias"):
            value = torch.randn_like(tensor) - 2.0
        elif tensor.dim() == 1:
            value = (1.0 if "linear_attn.norm" in key else 0.0) + 0.2 * torch.randn_like(tensor)
        elif "embed" in key:
            value = torch.randn_like(tensor)
        else:
            value = 1.5 * torch.randn_like(tensor) / tensor.shape[-1] ** 0.5
        tensor.data = value.bfloat16().float()
    model.tie_weights()
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].double().numpy()


def stack_experts(path, n_layers, n_experts):
    tensors = load_file(path)
    for layer in range(n_layers):
        prefix = f"model.layers.{layer}.mlp.experts."
        take = lambda name: torch.stack([tensors.pop(f"{prefix}{e}.{name}.weight") for e in range(n_experts)])
        tensors |= {prefix + "gate_up_proj": torch.cat([take("gate_proj"), take("up_proj")], 1), prefix + "down_proj": take("down_proj")}
    save_file(tensors, path, {"format": "pt"})


def save(name, model, folder):
    shutil.rmtree(folder, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(folder)  # which rounds its rotation's table too
    (folder / "generation_config.json").unlink(missing_ok=True)
    if name == "qwen35moe":
        stack_experts(folder / "model.safetensors", model.config.num_hidden_layers, model.config.num_experts)
    (folder / "model.safetensors").chmod(0o644)
    config = json.loads((folder / "config.json").read_text())
    config["full_attention_interval"] = INTERVAL  # which llama.cpp's converter goes by
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def convert(folder, path, kind):
    config = json.loads((folder / "config.json").read_text())
    converter = get_model_class(config["architectures"][0])

    class WithoutVocabulary(converter):
        model_arch, no_mtp = converter.model_arch, True

        def set_vocab(self):
            self.gguf_writer.add_tokenizer_model("none")
            self.gguf_writer.add_vocab_size(VOCAB)

    with torch.inference_mode():
        WithoutVocabulary(folder, kind, Path(path), eager=True, model_name="tiny").write()


def main():
    folder = Path(sys.argv[2])
    (folder / "folders").mkdir(exist_ok=True)
    for name in MODELS:
        save(name, make(name), folder / "folders" / name)
        model = MODELS[name][0].from_pretrained(folder / "folders" / name, dtype=torch.float32, attn_implementation="eager").eval()
        convert(folder / "folders" / name, folder / "models" / f"{name}.gguf", gguf.LlamaFileType.MOSTLY_BF16)
        prompt = [int(i) for i in np.random.default_rng(len(name)).integers(3, VOCAB, PROMPT)]
        logits = logits_of(model, prompt)
        with tempfile.TemporaryDirectory() as temporary:
            convert(folder / "folders" / name, Path(temporary) / "f32.gguf", gguf.LlamaFileType.ALL_F32)
            theirs = libllama(str(LLAMA / "build/bin/libllama.so"), Path(temporary) / "f32.gguf", prompt)
        nmse = ((logits - theirs) ** 2).sum() / (theirs ** 2).sum()
        print(name, "NMSE of libllama", nmse)
        assert nmse < 1e-5
        ids, leads = list(prompt), []
        for _ in range(GREEDY):
            last = logits_of(model, ids)[-1]
            second, best = np.sort(last)[-2:]
            leads.append(float(best - second))
            ids.append(int(last.argmax()))
        write(folder / "models", name, logits, prompt, ids[PROMPT:], leads)


if __name__ == "__main__":
    main()
