/* Phi-3 and Phi-4: q, k, v are one merged tensor, gate and up another; the long models have
 * LongRoPE factors. */
#include "model/model.h"

static const char *const names[] = { "phi3", NULL };

static const struct ak_family_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.embed_tokens.weight" },
    { AK_ROLE_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.norm.weight" },
    { AK_ROLE_OUTPUT, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_FAMILY_OUTPUT_OR_TIED,
      "lm_head.weight" },
    { AK_ROLE_ROPE_FACTORS_LONG, AK_SPEC_DIM_ONE, AK_SPEC_DIM_ROPE_HALF, AK_FAMILY_OPTIONAL,
      "rope_factors_long.weight" },
    { AK_ROLE_ROPE_FACTORS_SHORT, AK_SPEC_DIM_ONE, AK_SPEC_DIM_ROPE_HALF, AK_FAMILY_OPTIONAL,
      "rope_factors_short.weight" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.qkv_proj.weight" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.qkv_proj.weight" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.qkv_proj.weight" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.o_proj.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.gate_up_proj.weight" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.gate_up_proj.weight" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.down_proj.weight" },
};

static const struct ak_family_merged_tensor merged_tensors[] = {
    { AK_ROLE_ATTENTION_QKV, 3, { AK_ROLE_ATTENTION_Q, AK_ROLE_ATTENTION_K, AK_ROLE_ATTENTION_V } },
    { AK_ROLE_FFN_UP, 2, { AK_ROLE_FFN_GATE, AK_ROLE_FFN_UP } },
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->local.window = config->window;
    return AKUNU_OK;
}

const struct ak_family ak_family_phi3 = {
    .names = names,
    .description = "Phi-3 and Phi-4, LongRoPE included",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .merged_tensors = merged_tensors,
    .n_merged_tensors = sizeof merged_tensors / sizeof *merged_tensors,
    .emit = ak_build_decoder,
};
