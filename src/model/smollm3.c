/* SmolLM3: Llama's block, but every fourth layer is not rotated; GGUF has no key for
 * that, and permutes q and k as for Llama. */
#include "model/families.h"

static const char *const names[] = { "smollm3", NULL };

static const struct ak_weight_rule weights[] = {
#include "model/llama_block.def"
};

static ak_status describe(const struct ak_provider *p, const struct ak_config *config, struct ak_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_describe_decoder(p, config, out, error));
    out->global.rotation = AK_ROTATE_NONE;
    out->global_every = 4;
    return AKUNU_OK;
}

const struct ak_family ak_family_smollm3 = {
    .names = names,
    .about = "SmolLM3",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .gguf_interleaved = true,
    .emit = ak_emit_decoder,
};
