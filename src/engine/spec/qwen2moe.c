/* Qwen2 with experts, and a shared expert with a gate of its own. The weights of a token's experts
 * sum to 1 only if the configuration says so. */
#include "engine/spec/arch.h"

static const char *const names[] = { "qwen2moe", "qwen2_moe", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "qwen2_moe",
      .reads = "vocab_size=151936 hidden_size=2048 intermediate_size=5632 "
               "num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=16 "
               "head_dim hidden_act=silu max_position_embeddings=32768 rms_norm_eps=1e-6 "
               "tie_word_embeddings=false rope_theta=10000 use_sliding_window=false "
               "sliding_window?=4096 max_window_layers=28 layer_types "
               "moe_intermediate_size=1408 shared_expert_intermediate_size=5632 "
               "num_experts_per_tok=4 num_experts=60 norm_topk_prob=false " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS AK_KEYS_EXPERTS_FIXED "qkv_bias=true " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW AK_KEYS_GGUF_EXPERTS
      "expert_shared_feed_forward_length " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/decoder_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.bias" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.bias" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
#include "engine/spec/experts.def"
#include "engine/spec/shared_expert.def"
};

static const struct ak_arch_alias aliases[] = {
#include "engine/spec/expert_aliases.def"
};

/* Windows in every other one of the first max_window_layers layers, from the first on, unless the
 * layers' types are given. */
static ak_status qwen2moe_configure(const struct ak_provider *p, struct ak_spec_config *config,
                                    struct ak_error *error)
{
    uint32_t end;
    if (config->window == 0 || config->global_every > 0)
        return AKUNU_OK;
    AK_TRY(ak_spec_read_u32(p, config, "max_window_layers", 0, &end, error));
    ak_spec_set_global_layers(config, 0);
    for (uint32_t i = 0; i < config->n_layers && i < AK_SPEC_LAYERS_MAX; i++)
        if (i % 2 == 1 || i >= end)
            ak_spec_set_global(config, i);
    return AKUNU_OK;
}

static ak_status qwen2moe_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_shared_expert(p, config, out, error));
    out->local.window = config->window;
    out->global_every = config->global_every;
    return ak_spec_read_bool(p, config, "expert_weights_norm", false, &out->normalized_experts,
                             error);
}

const struct ak_arch ak_arch_qwen2moe = {
    .names = names,
    .description = "Qwen2 with experts",
    .activation_key = "hidden_act",
    .configure = qwen2moe_configure,
    .describe = qwen2moe_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .emit = ak_build_decoder,
};
