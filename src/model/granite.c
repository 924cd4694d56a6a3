/* Granite 3: Llama's block with multipliers for the embedding, the additions to the residual, the
 * scores and the logits. */
#include "model/model.h"

static const char *const names[] = { "granite", NULL };

static const struct ak_family_rule weights[] = {
#include "model/llama_block.def"
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    AK_TRY(ak_spec_read_positive(p, config, "embedding_scale", 1.0f, &out->embedding_scale, error));
    AK_TRY(ak_spec_read_positive(p, config, "residual_scale", 1.0f, &out->residual_scale, error));
    AK_TRY(ak_spec_read_positive(p, config, "attention.scale", out->attention_scale,
                                 &out->attention_scale, error));
    AK_TRY(ak_spec_read_positive(p, config, "logit_scale", 1.0f, &out->logit_divisor, error));
    return AKUNU_OK;
}

const struct ak_family ak_family_granite = {
    .names = names,
    .description = "Granite 3",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .gguf_interleaved = true,
    .emit = ak_build_decoder,
};
