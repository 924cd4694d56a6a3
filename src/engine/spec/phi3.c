/* Phi-3 and Phi-4: q, k, v are one merged tensor, gate and up another; the long models have
 * LongRoPE factors. */
#include "engine/spec/arch.h"

static const char *const names[] = { "phi3", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "phi3",
      .reads = "pad_token_id?=32000 vocab_size=32064 hidden_size=3072 intermediate_size=8192 "
               "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads head_dim "
               "hidden_act=silu max_position_embeddings=4096 "
               "original_max_position_embeddings=4096 rms_norm_eps=1e-5 "
               "tie_word_embeddings=false rope_theta=10000 partial_rotary_factor=1 "
               "sliding_window " AK_KEYS_ROPE AK_KEYS_PARTIAL_HEADS
               "rope_scaling.long_factor rope_scaling.short_factor "
               "rope_parameters.long_factor rope_parameters.short_factor ",
      .fixed = "attention_bias=false lm_head_bias=false mlp_bias=false full_attn_mod=1 ",
      .unused = "interpolate_factor " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW },
};

static const struct ak_arch_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.embed_tokens.weight" },
    { AK_ROLE_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.norm.weight" },
    { AK_ROLE_OUTPUT, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_OUTPUT_OR_TIED,
      "lm_head.weight" },
    { AK_ROLE_ROPE_FACTORS_LONG, AK_SPEC_DIM_ONE, AK_SPEC_DIM_ROPE_HALF, AK_ARCH_OPTIONAL,
      "rope_factors_long.weight" },
    { AK_ROLE_ROPE_FACTORS_SHORT, AK_SPEC_DIM_ONE, AK_SPEC_DIM_ROPE_HALF, AK_ARCH_OPTIONAL,
      "rope_factors_short.weight" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.qkv_proj.weight" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.qkv_proj.weight" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.qkv_proj.weight" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.layers.{n}.self_attn.o_proj.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.gate_up_proj.weight" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.gate_up_proj.weight" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.layers.{n}.mlp.down_proj.weight" },
};

static const struct ak_arch_merged_tensor merged_tensors[] = {
    { AK_ROLE_ATTENTION_QKV, 3, { AK_ROLE_ATTENTION_Q, AK_ROLE_ATTENTION_K, AK_ROLE_ATTENTION_V } },
    { AK_ROLE_FFN_UP, 2, { AK_ROLE_FFN_GATE, AK_ROLE_FFN_UP } },
};

/* transformers' class scales by LongRoPE or not at all; "yarn" was its name in early files, in
 * which it meant something else than to every other class. */
static ak_status check_scaling(const struct ak_provider *p, const struct ak_spec_config *config,
                               struct ak_error *error)
{
    static const char *const known[] = { "default", "none", "longrope", "su" };
    char key[AK_SPEC_KEY_BYTES], shown[AK_META_SHOWN_BYTES];
    struct ak_meta type;
    if (config->naming != AK_PROVIDER_NAMING_HF ||
        !ak_spec_find(p, config, "rope.scaling.type", key, &type))
        return AKUNU_OK;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ak_meta_equals(&type, known[i]))
            return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s is %s; of this architecture longrope is supported", key,
                   ak_meta_show(&type, shown));
}

static ak_status phi3_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                               struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(check_scaling(p, config, error));
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->local.window = config->window;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_phi3 = {
    .names = names,
    .description = "Phi-3 and Phi-4, LongRoPE included",
    .activation_key = "hidden_act",
    .describe = phi3_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .merged_tensors = merged_tensors,
    .n_merged_tensors = sizeof merged_tensors / sizeof *merged_tensors,
    .emit = ak_build_decoder,
};
