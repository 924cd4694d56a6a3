/* Qwen3: norms on the heads of q and k, a head size independent of the width. */
#include "model/model.h"

static const char *const names[] = { "qwen3", NULL };

static const struct ak_family_rule weights[] = {
#include "model/dense_block.def"
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
};

const struct ak_family ak_family_qwen3 = {
    .names = names,
    .description = "Qwen3",
    .describe = ak_spec_describe_decoder,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .emit = ak_build_decoder,
};
