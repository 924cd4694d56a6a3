/* Qwen2 with experts, and a shared expert with a gate of its own. The weights of a token's experts
 * sum to 1 only if the configuration says so. */
#include "model/model.h"

static const char *const names[] = { "qwen2moe", "qwen2_moe", NULL };

static const struct ak_family_rule weights[] = {
#include "model/decoder_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ATTENTION_K_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_proj.bias" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.v_proj.bias" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
#include "model/experts.def"
#include "model/shared_expert.def"
};

static const struct ak_family_alias aliases[] = {
#include "model/expert_aliases.def"
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_shared_expert(p, config, out, error));
    return ak_spec_read_bool(p, config, "expert_weights_norm", false, &out->normalized_experts,
                             error);
}

const struct ak_family ak_family_qwen2moe = {
    .names = names,
    .description = "Qwen2 with experts",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .emit = ak_build_decoder,
};
