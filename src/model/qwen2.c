/* Qwen2 and Qwen2.5: biases on q, k and v. */
#include "model/model.h"

static const char *const names[] = { "qwen2", NULL };

static const struct ak_family_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.embed_tokens.weight" },
    { AK_ROLE_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.norm.weight" },
    { AK_ROLE_OUTPUT, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_FAMILY_OUTPUT_OR_TIED,
      "lm_head.weight" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.weight" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.bias" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.o_proj.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.gate_proj.weight" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.up_proj.weight" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_FAMILY_REQUIRED,
      "model.layers.{n}.mlp.down_proj.weight" },
};

const struct ak_family ak_family_qwen2 = {
    .names = names,
    .description = "Qwen2 and Qwen2.5",
    .describe = ak_spec_describe_decoder,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .emit = ak_build_decoder,
};
