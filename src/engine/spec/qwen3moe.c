/* Qwen3 with experts. The weights of a token's experts sum to 1 unless the configuration says
 * otherwise. */
#include "engine/spec/arch.h"

static const char *const names[] = { "qwen3moe", "qwen3_moe", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "qwen3_moe",
      .reads = "vocab_size=151936 hidden_size=2048 intermediate_size=6144 "
               "num_hidden_layers=24 num_attention_heads=32 num_key_value_heads=4 "
               "head_dim hidden_act=silu max_position_embeddings=32768 rms_norm_eps=1e-6 "
               "tie_word_embeddings=false rope_theta=10000 use_sliding_window=false "
               "sliding_window?=4096 moe_intermediate_size=768 num_experts_per_tok=8 "
               "num_experts=128 num_local_experts norm_topk_prob=false " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS AK_KEYS_EXPERTS_FIXED "attention_bias=false ",
      .unused = "max_window_layers " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW AK_KEYS_GGUF_EXPERTS },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/decoder_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
#include "engine/spec/experts.def"
};

static const struct ak_arch_alias aliases[] = {
#include "engine/spec/expert_aliases.def"
};

static ak_status qwen3moe_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_experts(p, config, out, error));
    out->local.window = config->window;
    return ak_spec_read_bool(p, config, "expert_weights_norm", true, &out->normalized_experts,
                             error);
}

const struct ak_arch ak_arch_qwen3moe = {
    .names = names,
    .description = "Qwen3 with experts",
    .activation_key = "hidden_act",
    .describe = qwen3moe_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .emit = ak_build_decoder,
};
