/* Qwen2 and Qwen2.5: biases on q, k and v. */
#include "model/model.h"

static const char *const names[] = { "qwen2", NULL };

static const struct ak_family_rule weights[] = {
#include "model/dense_block.def"
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.bias" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.bias" },
};

const struct ak_family ak_family_qwen2 = {
    .names = names,
    .description = "Qwen2 and Qwen2.5",
    .describe = ak_spec_describe_decoder,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .emit = ak_build_decoder,
};
