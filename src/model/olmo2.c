/* OLMo 2: norms after attention and feed-forward instead of before them; q and k are normed as
 * whole rows. */
#include "model/model.h"

static const char *const names[] = { "olmo2", NULL };

static const struct ak_family_rule weights[] = {
#include "model/decoder_weights.def"
#include "model/ffn_weights.def"
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.q_norm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_FAMILY_REQUIRED,
      "model.layers.{n}.self_attn.k_norm.weight" },
    { AK_ROLE_POST_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_attention_layernorm.weight" },
    { AK_ROLE_POST_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_FAMILY_REQUIRED,
      "model.layers.{n}.post_feedforward_layernorm.weight" },
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->no_pre_norms = true;
    out->post_norms = true;
    out->qk_norm_rows = true;
    return AKUNU_OK;
}

const struct ak_family ak_family_olmo2 = {
    .names = names,
    .description = "OLMo 2",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .emit = ak_build_decoder,
};
