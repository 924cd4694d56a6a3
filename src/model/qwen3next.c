/* Qwen3-Next: the gated delta rule in most layers, gated attention in the others, experts and a
 * shared expert. One matrix makes q, k, v and z of each key head side by side, and another the
 * betas and alphas. GGUF may store the first as two, role after role. */
#include "model/model.h"

static const char *const names[] = { "qwen3next", "qwen3_next", NULL };

static const struct ak_family_rule weights[] = {
#include "model/delta_block.def"
    { AK_ROLE_DELTA_QKVZ, AK_SPEC_DIM_DELTA_QKVZ, AK_SPEC_DIM_WIDTH, AK_FAMILY_RECURRENT_MERGED,
      "model.layers.{n}.linear_attn.in_proj_qkvz.weight" },
    { AK_ROLE_ATTENTION_QKV, AK_SPEC_DIM_DELTA_QKV, AK_SPEC_DIM_WIDTH, AK_FAMILY_RECURRENT_PART,
      NULL },
    { AK_ROLE_ATTENTION_GATE, AK_SPEC_DIM_DELTA_V, AK_SPEC_DIM_WIDTH, AK_FAMILY_RECURRENT_PART,
      NULL },
    { AK_ROLE_DELTA_GATES, AK_SPEC_DIM_DELTA_GATES, AK_SPEC_DIM_WIDTH, AK_FAMILY_RECURRENT_ONLY,
      "model.layers.{n}.linear_attn.in_proj_ba.weight" },
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
    AK_TRY(ak_spec_describe_delta(p, config, out, error));
    return ak_spec_read_bool(p, config, "expert_weights_norm", true, &out->normalized_experts,
                             error);
}

const struct ak_family ak_family_qwen3next = {
    .names = names,
    .description = "Qwen3-Next",
    .configure = ak_spec_read_delta,
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .aliases = aliases,
    .n_aliases = sizeof aliases / sizeof *aliases,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};
