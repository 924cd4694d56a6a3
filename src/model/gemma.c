/* Gemma: a GELU gate, embeddings scaled by the root of the width, a head size independent of the
 * width. */
#include <math.h>

#include "model/model.h"

static const char *const names[] = { "gemma", NULL };

static const struct ak_family_rule weights[] = {
#include "model/dense_block.def"
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->activation = AK_OP_ACTIVATION_GELU_TANH;
    out->embedding_scale = sqrtf((float)config->width);
    return AKUNU_OK;
}

const struct ak_family ak_family_gemma = {
    .names = names,
    .description = "Gemma",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .hf_norm_offset = 1.0f,
    .emit = ak_build_decoder,
};
