/* Qwen3 with experts. The weights of a token's experts sum to 1 unless the configuration says
 * otherwise. */
#include "model/model.h"

static const char *const names[] = { "qwen3moe", "qwen3_moe", NULL };

static const struct ak_family_rule weights[] = {
#include "model/decoder_weights.def"
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.input_layernorm.weight" },
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
#include "model/experts.def"
};

static const struct ak_family_alias aliases[] = {
#include "model/expert_aliases.def"
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_experts(p, config, out, error));
    return ak_spec_read_bool(p, config, "expert_weights_norm", true, &out->normalized_experts,
                             error);
}

const struct ak_family ak_family_qwen3moe = {
    .names = names,
    .description = "Qwen3 with experts",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .emit = ak_build_decoder,
};
