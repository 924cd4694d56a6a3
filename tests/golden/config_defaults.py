#!/usr/bin/env python3
"""Writes tests/data/config_defaults.txt: the keys of transformers' configuration classes with their
defaults, for the architectures that akunu reads.

    config_defaults.py > ../data/config_defaults.txt

Needs transformers. A line is MODEL_TYPE KEY VALUE, the value as JSON without spaces; null stands for None.
Keys that all classes have and that no model reads are left out, as are the sizes of lists."""
import dataclasses
import json

import transformers
from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

TYPES = """llama mistral mixtral gemma gemma2 gemma3_text gpt2 gpt_oss granite lfm2 olmo2 olmo3 phi3 qwen2 qwen2_moe qwen3 qwen3_moe
qwen3_next qwen3_5_text qwen3_5_moe_text smollm3 bert roberta xlm-roberta camembert nomic_bert modernbert whisper""".split()
BASE = {field.name for field in dataclasses.fields(PreTrainedConfig)}


def value_of(field):
    return None if field.default is dataclasses.MISSING else field.default


def rotation(name, config):
    """The bases that an empty configuration gets, where a file of transformers 4 has them."""
    rope = config.rope_parameters if hasattr(config, "rope_parameters") else None
    if not rope:
        return
    if "full_attention" in rope:
        yield ("global_rope_theta" if name == "modernbert" else "rope_theta"), rope["full_attention"]["rope_theta"]
        if name != "olmo3":
            local = "local_rope_theta" if name == "modernbert" else "rope_local_base_freq"
            yield local, rope["sliding_attention"]["rope_theta"]
        return
    yield "rope_theta", rope["rope_theta"]
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        yield "partial_rotary_factor", rope["partial_rotary_factor"]
    for key in ("rope_type", "factor", "truncate", "original_max_position_embeddings"):
        if key in rope and rope["rope_type"] != "default":
            yield f"rope_scaling.{key}", rope[key]


def main():
    print(f"# transformers {transformers.__version__}")
    for name in TYPES:
        config_class = CONFIG_MAPPING[name]
        rows = {f.name: value_of(f) for f in dataclasses.fields(config_class)
                if f.name not in BASE and f.name != "rope_parameters"}
        if config_class.is_encoder_decoder if hasattr(config_class, "is_encoder_decoder") else False:
            rows["is_encoder_decoder"] = True
        rows |= dict(rotation(name, config_class()))
        for key, value in sorted(rows.items()):
            print(name, key, json.dumps(list(value) if isinstance(value, tuple) else value, separators=(",", ":")))


main()
