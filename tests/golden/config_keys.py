#!/usr/bin/env python3
"""Checks that no key of a config.json is guessed or ignored: every key of every model folder is deleted, and set to other legal
values, and the result is compared with transformers.

    config_keys.py [--cli BUILD/akunu-cli] [--only NAME,…] [--variant TEXT] [--cache FOLDER] [--fresh] [FIXTURES …]

Needs torch and transformers 5.24 where an outcome of transformers is not in the cache (/tmp/config_keys) yet; akunu runs as the
shared library next to the command. A variant is "-key" (deleted), "key=value" (set) or "+key=value" (a key of the class that the
file does not have); keys of nested objects have dots.

A row is good if akunu's logits (hidden states, scores) are transformers', or if akunu refuses the folder with a message that has
the key's name:
    same      both compute the same
    error     akunu refuses and names the key
    WRONG     akunu computes something else, computes where transformers cannot (weights that it would have to invent), or refuses
              without the key's name what transformers computes
    unnamed   neither computes, and akunu's message lacks the key's name (a weight that is missing, say)
    illegal   transformers refuses the config itself: such a value says nothing
    twice     the deleted value is stated once more (STATED_TWICE), where transformers does not look: akunu computes as before
    refused   akunu refuses the model as it is, so its variants say nothing; the reason is printed
"""
import argparse
import ctypes
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
LIMIT = 1e-6
GONE = object()
STATES = ("same", "error", "illegal", "twice", "refused", "unnamed", "WRONG")
# Deleted key: what still states its value. transformers' class takes its own default and finds other shapes.
STATED_TWICE = {"hidden_size": "n_embd", "intermediate_size": "n_inner", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
                "text_config.vocab_size": "the embedding's rows"}

# ---- Models ----------------------------------------------------------------------
ARCHITECTURES = {
    "BertForSequenceClassification", "BertModel", "Gemma2ForCausalLM", "Gemma3ForCausalLM", "Gemma3ForConditionalGeneration",
    "Gemma3TextModel", "GemmaForCausalLM",
    "GPT2LMHeadModel", "GptOssForCausalLM", "GraniteForCausalLM", "Lfm2ForCausalLM", "LlamaForCausalLM", "MistralForCausalLM",
    "ModernBertModel", "NomicBertModel", "Olmo3ForCausalLM", "Phi3ForCausalLM",
    "Qwen2ForCausalLM", "Qwen3_5ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "SmolLM3ForCausalLM",
    "WhisperForConditionalGeneration", "XLMRobertaModel", "XLMRobertaForSequenceClassification",
}


def kind_of(architecture):
    if architecture.startswith("Whisper"):
        return "speech"
    if architecture.endswith("ForSequenceClassification"):
        return "score"
    return "hidden" if architecture.endswith("Model") and "LMHead" not in architecture else "logits"


class Fixture:
    def __init__(self, name, folder):
        self.name, self.folder, self.golden = name, folder, folder.parent / "golden"
        self.config = json.loads((folder / "config.json").read_text())
        self.architecture = self.config["architectures"][0]
        self.kind = kind_of(self.architecture)
        self.generation = json.loads((folder / "generation_config.json").read_text()) if (folder / "generation_config.json").exists() else {}

    def inputs(self):
        """What the model runs: lists of ids, with the position where the second text begins for scores."""
        if self.kind == "logits":
            return [{"ids": np.load(self.golden / "ids.npy").reshape(-1).tolist()}]
        if self.kind == "speech":
            return [{"ids": np.load(self.golden / "ids.npy").reshape(-1).tolist(), "mels": self.config["num_mel_bins"]}]
        file = self.golden / ("pairs.json" if self.kind == "score" else "texts.json")
        out = []
        for text in json.loads(file.read_text())[:4]:
            ids = text["ids"][:96]
            types = text.get("token_type_ids") if self.kind == "score" else None
            out.append({"ids": ids, "types": types[:96] if types else None, "second": types.index(1) if types and 1 in types else len(ids)})
        return out


def frames(mels):
    """Log-mel frames of a window, [3000, mels]: noise of a fixed seed."""
    return np.random.default_rng(7).uniform(-0.6, 1.4, (3000, mels)).astype(np.float32)


def nest(source, to):
    """A folder as models of several parts have it: the keys in text_config, the tensors under language_model."""
    config = json.loads((source / "config.json").read_text())
    text = {k: v for k, v in config.items() if k not in ("architectures", "torch_dtype", "transformers_version")}
    whole = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": text, "torch_dtype": "bfloat16",
             "tie_word_embeddings": True, "transformers_version": "4.51.0", "mm_tokens_per_image": 4, "vision_config": {
                 "model_type": "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28,
                 "patch_size": 14, "intermediate_size": 32}}
    to.mkdir(parents=True, exist_ok=True)
    (to / "config.json").write_text(json.dumps(whole, indent=1))
    data = (source / "model.safetensors").read_bytes()
    n = int.from_bytes(data[:8], "little")
    header = {(k if k == "__metadata__" else "language_model." + k): v for k, v in json.loads(data[8:8 + n]).items()}
    text = json.dumps(header).encode()
    (to / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[8 + n:])
    for path in source.iterdir():
        if path.name not in ("config.json", "model.safetensors") and not (to / path.name).exists():
            (to / path.name).symlink_to(path)
    golden = to.parent / "golden"
    if not golden.exists():
        golden.symlink_to(source.parent / "golden")


def fixtures(folders, only):
    for root in folders:
        for folder in sorted(root.glob("*/hf")):
            name = folder.parent.name
            if only and name not in only:
                continue
            if not (folder / "config.json").exists() or not (folder.parent / "golden").exists():
                continue
            fixture = Fixture(name, folder)
            if fixture.architecture in ARCHITECTURES and (fixture.kind != "logits" or (fixture.golden / "ids.npy").exists()):
                yield fixture


# ---- Variants --------------------------------------------------------------------
ACTIVATIONS = ["silu", "swish", "gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "quick_gelu", "relu", "relu2", "relu6",
               "tanh", "sigmoid", "mish", "linear", "gelu_10", "leaky_relu"]
# Values that a key may have; each that differs from the file's is a variant.
VALUES = {
    "sliding_window": [None, 4, 8, 4096], "local_attention": [4, 32, 128], "global_attn_every_n_layers": [1, 2, 4],
    "sliding_window_pattern": [1, 2, 3, 6], "_sliding_window_pattern": [2, 3, 6], "max_window_layers": [0, 1, 28],
    "attn_logit_softcapping": [None, 2.0, 50.0], "final_logit_softcapping": [None, 2.0, 30.0], "query_pre_attn_scalar": [64, 256],
    "use_bidirectional_attention": [True, False], "partial_rotary_factor": [0.5, 1.0], "rotary_emb_fraction": [0.5],
    "num_experts_per_tok": [1, 2, 3, 4], "max_position_embeddings": [512, 4096], "original_max_position_embeddings": [16, 64, 8192],
    "num_attention_heads": [1, 2, 8], "num_key_value_heads": [None], "head_dim": [None], "pad_token_id": [None, 0, 1, 5],
    "bos_token_id": [None, 3], "eos_token_id": [None, 3, [3, 4]], "position_embedding_type": ["absolute", "relative_key", "rotary", "alibi"],
    "classifier_pooling": ["cls", "mean"], "no_rope_layer_interval": [1, 2, 3], "no_rope_layers": [[1, 0, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1]],
    "mlp_only_layers": [[0], [1]], "decoder_sparse_step": [2], "n_inner": [256, 128], "rotary_emb_scale_base": [512], "clip_qkv": [0.1],
    "rotary_scaling_factor": [2.0], "full_attention_interval": [2, 4], "full_attn_idxs": [[0, 1], [1]], "num_hidden_layers": [1, 99],
    "n_layer": [1, 99], "encoder_layers": [1, 99], "decoder_layers": [1, 99], "n_head": [1, 2, 8], "encoder_attention_heads": [1, 4],
    "decoder_attention_heads": [1, 4], "norm_type": ["layernorm"], "conv_L_cache": [2, 4], "chunk_size_feed_forward": [2],
    "torch_dtype": ["float32", "float16", "bfloat16", None], "dtype": ["float32", "float16", "bfloat16", None], "n_ctx": [32], "prenorm": [True],
    "block_auto_adjust_ff_dim": [True, False], "block_multiple_of": [64], "num_labels": [1, 4], "factor": [2.0, 8.0], "beta_fast": [8.0, 64.0],
    "beta_slow": [0.5, 4.0], "truncate": [True, False], "mscale": [0.7], "mscale_all_dim": [0.7], "attention_factor": [0.8],
    "low_freq_factor": [0.5, 2.0], "high_freq_factor": [2.0, 8.0], "mrope_section": [[1, 2, 1]], "mrope_interleaved": [False],
    "norm_topk_prob": [True, False], "reorder_and_upcast_attn": [True, False], "hidden_size_per_layer_input": [8],
}
# Keys whose numbers are sizes of weights: deleting them is a variant, changing them is not.
SIZES = {"hidden_size", "intermediate_size", "vocab_size", "n_embd", "n_positions", "d_model", "encoder_ffn_dim", "decoder_ffn_dim", "num_mel_bins",
         "max_source_positions", "max_target_positions", "type_vocab_size", "num_experts", "num_local_experts", "moe_intermediate_size",
         "max_length", "linear_conv_kernel_dim", "linear_key_head_dim", "linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim",
         "classifier_proj_size", "head_dim", "num_key_value_heads", "mtp_num_hidden_layers", "block_ff_dim"}
LISTS_OF_FACTORS = {"long_factor", "short_factor"}
# Rotations, each of which is put into both places.
ROPES = [
    {"rope_type": "default"},
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "attention_factor": 0.8},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32, "mscale": 0.707, "mscale_all_dim": 0.707},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32, "mscale": 1.0, "mscale_all_dim": 0.5},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 16, "beta_slow": 2, "truncate": False},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
]


def encode(value):
    return "absent" if value is GONE else json.dumps(value, separators=(",", ":"))


def set_path(config, path, value):
    """A copy of config with another value at the path of names, or without it (GONE)."""
    out = json.loads(json.dumps(config))
    inner = out
    for part in path[:-1]:
        inner = inner.setdefault(part, {})
    if value is GONE:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return out


def patterns(types):
    """Other orders of the kinds of layers."""
    kinds, n = sorted(set(types)), len(types)
    if kinds in (["full_attention"], ["sliding_attention"], ["full_attention", "sliding_attention"]):
        other = [["full_attention"] * n, ["sliding_attention"] * n, ["sliding_attention", "full_attention"] * n,
                 ["full_attention", "sliding_attention", "sliding_attention"] * n]
        return [p[:n] for p in other]
    return [types[::-1], types[1:] + types[:1]]


def values_of(key, old):
    """Other legal values of a key."""
    if key in ("hidden_act", "hidden_activation", "activation_function", "classifier_activation"):
        return ACTIVATIONS + (["swiglu", "geglu"] if key == "activation_function" and old == "swiglu" else [])
    if key == "layer_types" and isinstance(old, list):
        return patterns(old)
    if key in VALUES:
        return VALUES[key]
    if isinstance(old, bool):
        return [not old]
    if key in LISTS_OF_FACTORS:
        return [[1.5 * f for f in old]]
    if isinstance(old, float) or key.endswith(("_theta", "_base", "_freq", "_eps", "_epsilon")) and isinstance(old, int):
        return [0.05, 1e-3] if key.endswith(("eps", "epsilon")) else [2.0 * old if old else 0.25, 1.0, 0.5 * old if old else 0.75]
    if isinstance(old, int) and key not in SIZES:
        return [old + 1]
    return []


def rope_variants(fixture, defaults):
    """Rotations in both places, by both names of their type."""
    config, out = fixture.config, []
    if "text_config" in config:
        return out
    theta = config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta") or 10000.0
    if fixture.kind == "speech" or fixture.architecture.startswith(("GPT2", "Bert", "XLMRoberta")):
        return out
    for rope in ROPES:
        out.append((f"rope_scaling={encode(rope)}", ["rope_scaling", "rope_theta", *rope.keys(), rope["rope_type"]],
                    {k: v for k, v in config.items() if k != "rope_parameters"} | {"rope_theta": theta, "rope_scaling": rope}))
        parameters = {"rope_theta": theta} | rope
        out.append((f"rope_parameters={encode(parameters)}", ["rope_parameters", *rope.keys(), rope["rope_type"]],
                    {k: v for k, v in config.items() if k not in ("rope_theta", "rope_scaling")} | {"rope_parameters": parameters}))
        old_name = {("type" if k == "rope_type" else k): v for k, v in rope.items()}
        out.append((f"rope_scaling={encode(old_name)}", ["rope_scaling", "rope_theta", "type", *rope.keys(), rope["rope_type"]],
                    {k: v for k, v in config.items() if k != "rope_parameters"} | {"rope_theta": theta, "rope_scaling": old_name}))
    # the two places at once, with different bases
    both = {"rope_theta": 3.0 * theta, "rope_type": "default"}
    out.append((f"rope_theta={encode(theta)}&rope_parameters={encode(both)}", ["rope_theta", "rope_parameters"],
                {k: v for k, v in config.items() if k != "rope_scaling"} | {"rope_theta": theta, "rope_parameters": both}))
    out.append(("rope_theta=&rope_parameters.partial", ["rope_theta", "rope_parameters", "partial_rotary_factor"],
                {k: v for k, v in config.items() if k not in ("rope_scaling", "rope_theta", "partial_rotary_factor")} |
                {"rope_parameters": {"rope_theta": theta, "rope_type": "default", "partial_rotary_factor": 0.5}}))
    return out


def combined_variants(fixture):
    config, out = fixture.config, []
    combine = lambda **new: out.append(("&".join(f"{k}={encode(v)}" for k, v in new.items()), [*new, "layer_types"], config | new))
    n = config.get("num_hidden_layers", 0)
    if "use_sliding_window" in config:
        for window_layers in (0, 1, 28):
            combine(use_sliding_window=True, sliding_window=8, max_window_layers=window_layers)
        combine(use_sliding_window=False, sliding_window=8)
        if "layer_types" in config:
            combine(use_sliding_window=True, sliding_window=8, layer_types=(["sliding_attention", "full_attention"] * n)[:n])
            out.append(("use_sliding_window&-layer_types", ["use_sliding_window", "sliding_window", "max_window_layers", "layer_types"],
                        {k: v for k, v in config.items() if k != "layer_types"} |
                        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}))
    if fixture.architecture.startswith(("Gemma2", "Gemma3", "GptOss", "Olmo3")):
        for pattern in patterns(["sliding_attention", "full_attention"] * n):
            combine(layer_types=pattern[:n])
    return out


def walk(config, path=()):
    """All keys, those of nested objects too."""
    for key, value in config.items():
        yield (*path, key), value
        if isinstance(value, dict) and key not in ("id2label", "label2id", "vision_config"):
            yield from walk(value, (*path, key))


def variants(fixture, defaults):
    """(name, names of which a message needs one, config) of every variant; the first is the file as it is."""
    config, out = fixture.config, [("as it is", [], fixture.config)]
    for path, old in walk(config):
        name = ".".join(path)
        if name == "vision_config":  # without it, transformers makes a large tower of random weights
            continue
        out.append((f"-{name}", [path[-1]], set_path(config, path, GONE)))
        if path[-1] in ("model_type", "architectures", "id2label", "label2id", "transformers_version"):
            continue
        for value in values_of(path[-1], old):
            if value != old or type(value) is not type(old):
                out.append((f"{name}={encode(value)}", [path[-1]], set_path(config, path, value)))
    for key, old in sorted(defaults.items()):
        if key not in config and key not in ("text_config", "vision_config"):
            for value in values_of(key, old):
                if value != old:
                    out.append((f"+{key}={encode(value)}", [key], config | {key: value}))
    out += rope_variants(fixture, defaults) + combined_variants(fixture)
    seen = set()
    for name, names, changed in out:
        text = json.dumps(changed, sort_keys=True)
        if text not in seen:
            seen.add(text)
            yield name, names, changed


# ---- transformers ----------------------------------------------------------------
class Oracle:
    """What transformers computes; torch is imported when the first outcome is not in the cache."""

    def __init__(self, cache, fresh):
        self.cache, self.fresh, self.modules = cache, fresh, None

    def load(self):
        if not self.modules:
            os.environ.setdefault("OMP_NUM_THREADS", "1")
            import torch
            import transformers
            torch.set_num_threads(1)
            transformers.logging.set_verbosity_error()
            transformers.logging.disable_progress_bar()
            if not transformers.__version__.startswith("5.24."):
                sys.exit(f"config_keys.py: transformers {transformers.__version__}; 5.24 is the oracle")
            self.modules = torch, transformers
        return self.modules

    def defaults(self, fixture):
        """The keys of the model's class that are not those of every model, and their defaults."""
        path = self.cache / fixture.name / "defaults.json"
        if not path.exists():
            _, transformers = self.load()
            common = set(transformers.PreTrainedConfig().to_dict())
            kind = type(transformers.AutoConfig.from_pretrained(fixture.folder))
            has_parts = "text_config" in fixture.config  # its defaults are those of another object
            all_keys = {k: v for k, v in kind().to_dict().items() if k not in common or k == "tie_word_embeddings"} if not has_parts else {}
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(all_keys, default=str))
        return json.loads(path.read_text())

    def outcome(self, fixture, folder, config):
        """(array, None) or (None, why there is none) for the folder, which has this config."""
        key = hashlib.sha256(json.dumps([config, fixture.inputs()], sort_keys=True).encode()).hexdigest()[:20]
        array, text = (self.cache / fixture.name / f"{key}.{end}" for end in ("npy", "txt"))
        if not self.fresh and array.exists():
            return np.load(array), None
        if not self.fresh and text.exists():
            return None, text.read_text()
        self.load()
        try:
            result = self.run(fixture, folder)
        except Exception as error:  # whatever transformers says of such a config
            text.write_text(f"{type(error).__name__}: {str(error)[:300]}")
            return None, text.read_text()
        np.save(array, result)
        return result, None

    def run(self, fixture, folder):
        torch, transformers = self.modules
        kind = getattr(transformers, fixture.architecture)
        model, info = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
        unused = ["vision_tower", "multi_modal_projector"] + (["pooler."] if fixture.kind == "hidden" else [])
        invented = [k for k in info["missing_keys"] if not any(u in k for u in unused)]
        if invented or info["mismatched_keys"]:
            raise ValueError(f"weights that are not in the file: {sorted(invented)[:3] or list(info['mismatched_keys'])[:2]}")
        model.eval()
        with torch.no_grad():
            rows = [self.run_one(model, fixture, one) for one in fixture.inputs()]
        result = np.concatenate([r.float().numpy().reshape(-1, r.shape[-1]) for r in rows])
        if not np.isfinite(result).all():
            raise ValueError("results that are not finite")
        return result

    def run_one(self, model, fixture, one):
        torch, _ = self.modules
        ids = torch.tensor([one["ids"]])
        if fixture.kind == "speech":
            return model(input_features=torch.tensor(frames(one["mels"]).T[None]), decoder_input_ids=ids).logits[0]
        if fixture.kind == "logits":
            return model(ids, use_cache=False).logits[0]
        mask = torch.ones_like(ids)
        if fixture.kind == "hidden":
            return model(ids, attention_mask=mask).last_hidden_state[0].mean(0, keepdim=True)
        more = {"token_type_ids": torch.tensor([one["types"]])} if one["types"] else {}
        return model(ids, attention_mask=mask, **more).logits


# ---- akunu -----------------------------------------------------------------------
def find_library(cli):
    for folder in (cli.parent / ".libs", cli.parent.parent / "lib", cli.parent):
        if (folder / "libakunu.so").exists():
            return folder / "libakunu.so"
    sys.exit(f"config_keys.py: no libakunu.so next to {cli}")


class Akunu:
    """A child process that runs folders with the library; it starts again if one of them kills it."""

    def __init__(self, library):
        self.library, self.child = library, None

    def outcome(self, fixture, folder, out):
        """(array, None) or (None, message)."""
        if not self.child:
            environment = os.environ | {"AKUNU_LIBRARY": str(self.library), "PYTHONPATH": str(ROOT / "python")}
            self.child = subprocess.Popen([sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.DEVNULL, text=True, env=environment)
        job = {"folder": str(folder), "kind": fixture.kind, "inputs": fixture.inputs(), "out": str(out)}
        try:
            self.child.stdin.write(json.dumps(job) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code, self.child = self.child.wait(), None
            return None, f"akunu ended with {code}"
        message = json.loads(line)
        return (np.load(out), None) if message is None else (None, message)


def worker():
    for line in sys.stdin:
        job = json.loads(line)
        try:
            np.save(job["out"], compute(job))
            message = None
        except Exception as error:
            message = str(error) or type(error).__name__
        print(json.dumps(message), flush=True)


def compute(job):
    from akunu import _abi
    from akunu._library import check_pointer, default, fetch, lib
    params = default(_abi.akunu_load_params, no_cache=True, n_threads=1)
    model = check_pointer(lib.akunu_model_load(job["folder"].encode(), ctypes.byref(params)))
    session = None
    try:
        info = fetch(_abi.akunu_model_info, lib.akunu_model_get_info, model)
        f32 = _abi.AKUNU_KV_F32
        # LongRoPE's divisors follow the context; transformers' class looks at the length of the text
        longest = max(len(one["ids"]) for one in job["inputs"]) if job["kind"] == "logits" else 0
        settings = default(_abi.akunu_session_params, n_threads=1, k_type=f32, v_type=f32, context=longest)
        session = check_pointer(lib.akunu_session_new(model, ctypes.byref(settings)))
        return np.concatenate([compute_one(job["kind"], one, info, session) for one in job["inputs"]])
    finally:
        if session:
            lib.akunu_session_free(session)
        lib.akunu_model_free(model)


def compute_one(kind, one, info, session):
    from akunu import _abi as abi
    from akunu._library import check, check_count, default, lib
    ids = (ctypes.c_int32 * len(one["ids"]))(*one["ids"])
    floats = lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    no_cancel = ctypes.cast(None, abi.akunu_cancel_fn)
    if kind == "hidden":
        out = np.zeros((1, info.width), np.float32)
        how = default(abi.akunu_embedding_params, pooling=1, normalize=1)  # the mean, at its own length
        check(lib.akunu_session_embed(session, (abi.akunu_ids * 1)(abi.akunu_ids(ids, len(ids))), 1, ctypes.byref(how), floats(out)))
        return out
    if kind == "score":
        out = np.zeros((1, max(info.n_scores, 1)), np.float32)
        check(lib.akunu_session_score(session, (abi.akunu_pair * 1)(abi.akunu_pair(ids, len(ids), one["second"])), 1, no_cancel, None, floats(out)))
        return out
    sequence = check_count(lib.akunu_sequence_new(session))
    if kind == "speech":
        if info.n_mels != one["mels"] or info.encoder_context != 1500:
            raise ValueError(f"the model wants {2 * info.encoder_context} frames of {info.n_mels} mels")
        mel, window = frames(one["mels"]), check_count(lib.akunu_sequence_new(session))
        check(lib.akunu_session_encode(session, window, floats(mel), 0, None))
        check(lib.akunu_sequence_attend(session, sequence, window))
    out = np.zeros((len(ids), info.vocab_size), np.float32)
    for first in range(0, len(ids), 64):
        part = one["ids"][first:first + 64]
        tokens = (abi.akunu_batch_token * len(part))(*[abi.akunu_batch_token(t, sequence, True) for t in part])
        check(lib.akunu_session_decode(session, tokens, len(part)))
        for i in range(len(part)):
            out[first + i] = np.ctypeslib.as_array(lib.akunu_session_logits(session, i), shape=(info.vocab_size,))
    lib.akunu_sequence_free(session, sequence)
    return out


# ---- Comparison ------------------------------------------------------------------
# What transformers says of values that its configuration classes do not take.
ILLEGAL = ("TypeError: Field '", "StrictDataclass", "must be equal to the number of `layer_types`", "type field must be one of",
           "Padding_idx must be within", "ZeroDivisionError")


def nmse(ours, theirs):
    if ours.shape != theirs.shape:
        return float("inf")
    wide = theirs.astype(np.float64)
    return float(((ours - wide) ** 2).sum() / max((wide ** 2).sum(), 1e-30))


def judge(names, theirs, why, ours, message):
    """(state, detail) of one variant."""
    if ours is not None and theirs is not None:
        error = nmse(ours, theirs)
        return ("same" if error <= LIMIT else "WRONG"), f"nmse {error:.1e}"
    why = " ".join(why.split())[:160] if why else why
    if theirs is None and any(text in why for text in ILLEGAL):
        return "illegal", why
    if ours is not None:
        return "WRONG", f"computes; transformers: {why}"
    if message.startswith("akunu ended"):
        return "WRONG", message
    if any(name and name in message for name in names):
        return "error", message
    return ("unnamed" if theirs is None else "WRONG"), f"refuses: {message}" + (f" (transformers: {why})" if why else "")


def copy_folder(fixture, to):
    """The weights and tokenizer by links; no files of sentence-transformers, for the hidden states of the model alone count."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for path in fixture.folder.iterdir():
        if path.is_file() and path.name not in ("config.json", "modules.json"):
            (to / path.name).symlink_to(path)


def check_fixture(fixture, oracle, akunu, pattern, folder):
    """(variant, state, detail) of each."""
    copy_folder(fixture, folder)
    result = folder.with_suffix(".npy")
    base, _ = oracle.outcome(fixture, folder, fixture.config)
    refused = False
    for name, names, config in variants(fixture, oracle.defaults(fixture)):
        if pattern and pattern not in name:
            continue
        (folder / "config.json").write_text(json.dumps(config, indent=1))
        theirs, why = oracle.outcome(fixture, folder, config)
        ours, message = akunu.outcome(fixture, folder, result) if akunu else (None, "")
        if not akunu:
            continue
        state, detail = judge(names, theirs, why, ours, message)
        if state == "WRONG" and theirs is None and ours is not None and base is not None and nmse(ours, base) <= LIMIT:
            other = STATED_TWICE.get(name.removeprefix("-"))
            if other and (other in fixture.config or " " in other):
                state, detail = "twice", f"as before, by {other}"
        refused = refused or (config is fixture.config and base is not None and ours is None)
        if refused and ours is None:
            state = "refused"
        yield name, state, detail
    # what follows the logits must not keep a model from loading
    (folder / "config.json").write_text(json.dumps(fixture.config, indent=1))
    for key in fixture.generation if akunu and not pattern else ():
        path = folder / "generation_config.json"
        path.unlink()
        path.write_text(json.dumps(set_path(fixture.generation, (key,), GONE)))
        ours, message = akunu.outcome(fixture, folder, result)
        yield f"generation_config: -{key}", *(("refused", message) if refused else judge([key], base, None, ours, message))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fixtures", nargs="*", type=Path, default=[SHARED / "fixtures", SHARED / "fixtures2"])
    parser.add_argument("--cli", type=Path, help="BUILD/akunu-cli; without it, only transformers runs")
    parser.add_argument("--only", help="names of fixtures, with commas")
    parser.add_argument("--variant", help="only variants whose name has this text")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/config_keys"))
    parser.add_argument("--fresh", action="store_true", help="run transformers even where its outcome is in the cache")
    parser.add_argument("--all", action="store_true", help="print every row, not only those that are not good")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.worker:
        return worker()
    oracle = Oracle(o.cache, o.fresh)
    akunu = Akunu(find_library(o.cli.resolve())) if o.cli else None
    wrong = []
    total = dict.fromkeys(STATES, 0)
    nested = o.cache / "nested"
    if (SHARED / "fixtures" / "gemma3" / "hf").exists():
        nest(SHARED / "fixtures" / "gemma3" / "hf", nested / "gemma3-nested" / "hf")
        o.fixtures.append(nested)
    for fixture in fixtures(o.fixtures, o.only.split(",") if o.only else None):
        folder = o.cache / "folders" / f"{os.getpid()}-{fixture.name}"
        counts = dict.fromkeys(STATES, 0)
        for name, state, detail in check_fixture(fixture, oracle, akunu, o.variant, folder):
            counts[state] += 1
            if state in ("WRONG", "unnamed") or (state == "refused" and name == "as it is"):
                wrong.append((state, fixture.name, name, detail))
            if o.all:
                print(f"{state:8} {fixture.name}: {name}: {detail}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".npy").unlink(missing_ok=True)
        total = {s: total[s] + counts[s] for s in STATES}
        print(f"{fixture.name:24}" + "".join(f"{counts[s]:5} {s}" for s in STATES), flush=True)
    print(f"{'all':24}" + "".join(f"{total[s]:5} {s}" for s in STATES))
    for state, group in itertools.groupby(sorted(wrong), key=lambda row: row[0]):
        print(f"\n{state}")
        for _, model, name, detail in group:
            print(f"  {model}: {name}: {detail}")
    return 1 if total["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
