#!/usr/bin/env python3
"""LoRA adapters for the fixture llama-f32 and what comes out of it with them, for tests/api/test_adapter.c.

    adapters.py LLAMA_F32_FOLDER OUT     (numpy, gguf, safetensors, torch, transformers, peft)

OUT is tests/data/adapters. llama.gguf adapts every matrix of the layers and the output; llama-peft/ has ranks and alphas by name, a
rank-stabilized factor, and leaves one matrix alone. logits.npy: float32 [cases, 8, vocab] of the prompt's last tokens, one case for
each line of CASES. The logits are those of the float64 forward pass of models.py over merged weights: W + scale · factor · B · A. PEFT
itself, on transformers' model, confirms those of llama-peft.
"""
import json
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

from models import forward

HEADS, KV_HEADS, DIM, WIDTH, FFN, VOCAB, LAYERS, ROWS = 4, 2, 16, 64, 128, 416, 2, 8
# GGUF's name: (Hugging Face's, rows, columns)
MATRICES = {"attn_q": ("self_attn.q_proj", HEADS * DIM, WIDTH), "attn_k": ("self_attn.k_proj", KV_HEADS * DIM, WIDTH),
            "attn_v": ("self_attn.v_proj", KV_HEADS * DIM, WIDTH), "attn_output": ("self_attn.o_proj", WIDTH, HEADS * DIM),
            "ffn_gate": ("mlp.gate_proj", FFN, WIDTH), "ffn_up": ("mlp.up_proj", FFN, WIDTH), "ffn_down": ("mlp.down_proj", WIDTH, FFN)}
ALPHA = 8.0  # of llama.gguf
PEFT = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": "llama-f32", "r": 6, "lora_alpha": 9, "use_rslora": True,
        "lora_dropout": 0.05, "bias": "none", "fan_in_fan_out": False, "inference_mode": True, "init_lora_weights": True,
        "modules_to_save": None, "target_modules": [hf.split(".")[1] for hf, _, _ in MATRICES.values()],
        "exclude_modules": "model.layers.0.mlp.down_proj", "rank_pattern": {"layers.1.mlp.up_proj": 3},
        "alpha_pattern": {"^model.layers.0.self_attn.q_proj": 5}, "use_dora": False}
# scales of llama.gguf and of llama-peft
CASES = [(1.0, 0.0), (0.0, 1.0), (0.5, -1.5)]


def pair(random, rank, rows, cols, dtype):
    return ((random.standard_normal((rank, cols)) / np.sqrt(cols)).astype(dtype), (random.standard_normal((rows, rank)) * 0.3).astype(dtype))


def permute(matrix, heads):
    """Rows of q and k as GGUF has them: the two of a rotated pair side by side."""
    return matrix.reshape(heads, 2, DIM // 2, -1).swapaxes(1, 2).reshape(matrix.shape)


def write_gguf(path, random):
    """Returns {weight: what is added to it}."""
    writer, added = gguf.GGUFWriter(path, "llama"), {}
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", ALPHA)
    names = {f"blk.{n}.{g}.weight": (rows, cols) for n in range(LAYERS) for g, (_, rows, cols) in MATRICES.items()}
    for name, (rows, cols) in {**names, "output.weight": (VOCAB, WIDTH)}.items():
        a, b = pair(random, 4, rows, cols, np.float16)
        writer.add_tensor(f"{name}.lora_a", a)
        writer.add_tensor(f"{name}.lora_b", b)
        added[name] = ALPHA / 4 * (b.astype(np.float64) @ a.astype(np.float64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return added


def write_peft(folder, random):
    folder.mkdir(exist_ok=True)
    tensors, added = {}, {}
    for n in range(LAYERS):
        for name, (hf, rows, cols) in MATRICES.items():
            module = f"model.layers.{n}.{hf}"
            if module == PEFT["exclude_modules"]:
                continue
            rank = 3 if module == "model.layers.1.mlp.up_proj" else 6
            alpha = 5 if module == "model.layers.0.self_attn.q_proj" else 9
            a, b = pair(random, rank, rows, cols, np.float32)
            tensors[f"base_model.model.{module}.lora_A.weight"], tensors[f"base_model.model.{module}.lora_B.weight"] = a, b
            product = alpha / np.sqrt(rank) * (b.astype(np.float64) @ a.astype(np.float64))
            heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(name)
            added[f"blk.{n}.{name}.weight"] = permute(product, heads) if heads else product
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(PEFT, indent=1) + "\n")
    return added


def peft_logits(base, folder, ids):
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), folder).eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -ROWS:].numpy()


def main():
    base, out = Path(sys.argv[1]), Path(sys.argv[2])
    data = Path(__file__).parents[1] / "data"
    words = (data / "models" / "llama-f32.txt").read_text().split()
    ids = [int(w) for w in words[2:2 + int(words[1])]]
    out.mkdir(exist_ok=True)
    random = np.random.default_rng(22)
    adapters = (write_gguf(out / "llama.gguf", random), write_peft(out / "llama-peft", random))
    logits = []
    for scales in CASES:
        def change(weights):
            for scale, added in zip(scales, adapters):
                for name, product in added.items():
                    weights[name] = weights[name] + scale * product
        logits.append(forward(data / "models" / "llama-f32.gguf", ids, change)[-ROWS:])
    theirs = peft_logits(base, out / "llama-peft", ids)
    assert ((theirs - logits[1]) ** 2).sum() / (logits[1] ** 2).sum() < 1e-11
    np.save(out / "logits.npy", np.stack(logits).astype("<f4"))


if __name__ == "__main__":
    main()
