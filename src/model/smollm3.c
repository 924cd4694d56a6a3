/* SmolLM3: Llama's block without rotation in every n-th layer, every fourth by default. llama.cpp
 * has no key for n: only akunu reads GGUF files with another n correctly. GGUF permutes q and k as
 * for Llama. */
#include "model/model.h"

static const char *const names[] = { "smollm3", NULL };

static const struct ak_family_rule weights[] = {
#include "model/llama_block.def"
};

/* no_rope_layers has a number per layer: 1 if the layer is rotated, in spite of the name. It
 * overrides no_rope_layer_interval. */
static ak_status read_layers(const struct ak_provider *p, const struct ak_spec_config *config,
                             uint32_t *every, struct ak_error *error)
{
    static const char key[] = "no_rope_layers";
    struct ak_meta list, element;
    if (!ak_provider_find_meta(p, key, &list) || list.kind != AK_META_ARRAY)
        return AKUNU_OK;
    if (list.n != config->n_layers)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %llu elements; expected one for each of %u layers", key,
                       (unsigned long long)list.n, config->n_layers);
    *every = 0;
    for (uint32_t i = 0; i < config->n_layers; i++) {
        if (!ak_provider_element(p, &list, i, &element) || element.kind != AK_META_INT ||
            element.as.integer < 0 || element.as.integer > 1)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: element %u is neither 0 nor 1", key, i);
        bool rotated = element.as.integer == 1;
        if (!rotated && *every == 0)
            *every = i + 1;
        if (rotated != (*every == 0 || (i + 1) % *every != 0))
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s: layer %u breaks the pattern of every %u layers", key, i, *every);
    }
    return AKUNU_OK;
}

static ak_status describe(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->global.rotation = AK_SPEC_ROTATE_NONE;
    float every; /* a small whole number */
    AK_TRY(ak_spec_read_positive(p, config, "no_rope_layer_interval", 4.0f, &every, error));
    out->global_every = every < (float)UINT32_MAX ? (uint32_t)every : 0;
    return read_layers(p, config, &out->global_every, error);
}

const struct ak_family ak_family_smollm3 = {
    .names = names,
    .description = "SmolLM3",
    .describe = describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .gguf_interleaved = true,
    .emit = ak_build_decoder,
};
