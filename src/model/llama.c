/* Llama 2 and 3, and models with the same block: Mistral, TinyLlama, SmolLM2. GGUF stores the rows
 * of q and k permuted, so that rotated pairs are neighbors. */
#include "model/model.h"

static const char *const names[] = { "llama", "mistral", NULL };

static const struct ak_family_rule weights[] = {
#include "model/llama_block.def"
    { AK_ROLE_ROPE_FREQS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_ROPE_HALF, AK_FAMILY_OPTIONAL,
      "rope_freqs.weight" },
};

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->local.window = config->window;
    return AKUNU_OK;
}

const struct ak_family ak_family_llama = {
    .names = names,
    .description = "Llama 2 and 3, TinyLlama, SmolLM2, Mistral",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .gguf_interleaved = true,
    .emit = ak_build_decoder,
};
