#!/usr/bin/env python3
"""A tiny Llama whose folder stores an output matrix of its own, and its logits, for tests/engine/pack/test_bind.c.

    bindings.py OUT     (torch, transformers)

OUT/config.json says that the embedding is the output matrix, and OUT/model.safetensors has another one: transformers uses the
stored one. logits.txt: a line of ids; logits of transformers in float32, a line per id, "own" for the folder as it is and "tied"
for the folder without lm_head.weight.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

IDS = [3, 17, 0, 22, 9, 9]
SIZES = dict(vocab_size=24, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, head_dim=8)


def main():
    out = Path(sys.argv[1])
    torch.manual_seed(3)
    model = LlamaForCausalLM(LlamaConfig(tie_word_embeddings=False, **SIZES))
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_((torch.randn(p.shape) * 0.4 + (1.0 if name.endswith("norm.weight") else 0.0)).bfloat16().float())
    model.bfloat16().save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((out / "config.json").read_text())
    for key in ("transformers_version", "_name_or_path"):
        config.pop(key, None)
    config["tie_word_embeddings"] = True
    (out / "config.json").write_text(json.dumps(config) + "\n")
    with open(out / "logits.txt", "w", encoding="ascii") as f:
        print("ids", *IDS, file=f)
        for name in ("own", "tied"):
            weights = load_file(out / "model.safetensors")
            folder = out
            if name == "tied":
                del weights["lm_head.weight"]
                folder = out / "tied"
                folder.mkdir()
                save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
                (folder / "config.json").write_text((out / "config.json").read_text())
            loaded = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
            with torch.no_grad():
                for row in loaded(torch.tensor([IDS])).logits[0].tolist():
                    print(name, *(f"{x:.9g}" for x in row), file=f)
            if folder != out:
                for path in folder.iterdir():
                    path.unlink()
                folder.rmdir()


if __name__ == "__main__":
    main()
