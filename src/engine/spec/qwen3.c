/* Qwen3: norms on the heads of q and k, a head size independent of the width. */
#include "engine/spec/arch.h"

static const char *const names[] = { "qwen3", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "qwen3",
      .reads = "vocab_size=151936 hidden_size=4096 intermediate_size=22016 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 "
               "head_dim=128 hidden_act=silu max_position_embeddings=32768 "
               "rms_norm_eps=1e-6 tie_word_embeddings=false rope_theta=10000 "
               "use_sliding_window=false sliding_window?=4096 max_window_layers=28 "
               "layer_types " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS "attention_bias=false " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/dense_block.def"
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
};

const struct ak_arch ak_arch_qwen3 = {
    .names = names,
    .description = "Qwen3",
    .activation_key = "hidden_act",
    .configure = ak_spec_read_late_windows,
    .describe = ak_spec_describe_windows,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .emit = ak_build_decoder,
};
