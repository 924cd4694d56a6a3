/* SmolLM3: Llama's block without rotation in every n-th layer, every fourth by default. llama.cpp
 * has no key for n: only akunu reads GGUF files with another n correctly. GGUF permutes q and k as
 * for Llama. */
#include "engine/spec/arch.h"

static const char *const names[] = { "smollm3", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "smollm3",
      .reads = "pad_token_id?=128004 vocab_size=128256 hidden_size=2048 intermediate_size=11008 "
               "num_hidden_layers=36 num_attention_heads=16 num_key_value_heads=4 "
               "head_dim hidden_act=silu max_position_embeddings=32768 rms_norm_eps=1e-6 "
               "tie_word_embeddings=true rope_theta=2000000 use_sliding_window=false "
               "sliding_window no_rope_layers no_rope_layer_interval=4 layer_types "
               "attention_bias=false mlp_bias=false " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS,
      .unused = "max_window_layers " },
    { .reads = AK_KEYS_GGUF_DECODER AK_KEYS_GGUF_WINDOW "no_rope_layer_interval " },
};

static const struct ak_arch_rule weights[] = {
#include "engine/spec/llama_block.def"
};

/* no_rope_layers has a number per layer: 1 if the layer is rotated, in spite of the name. It
 * overrides no_rope_layer_interval. */
static ak_status read_layers(const struct ak_provider *p, struct ak_spec_config *config,
                             const char *key, const struct ak_meta *list, struct ak_error *error)
{
    struct ak_meta element;
    if (list->kind != AK_META_ARRAY || list->n != config->n_layers)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %llu elements; expected one for each of %u layers", key,
                       (unsigned long long)list->n, config->n_layers);
    for (uint32_t i = 0; i < config->n_layers; i++) {
        if (!ak_provider_element(p, list, i, &element) || element.kind != AK_META_INT ||
            element.as.integer < 0 || element.as.integer > 1)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: element %u is neither 0 nor 1", key, i);
        if (element.as.integer == 0)
            ak_spec_set_global(config, i);
    }
    ak_spec_find_interval(config);
    return AKUNU_OK;
}

static bool is_unrotated(const struct ak_spec_config *c, uint32_t layer)
{
    return c->has_global_layers ? c->global_layers[layer / 64] >> (layer % 64) & 1 :
                                  (layer + 1) % c->global_every == 0;
}

/* The layers' types may say that no layer has a window, or what the class makes of a window by
 * itself: all layers without rotation have it. */
static ak_status read_types(const struct ak_provider *p, struct ak_spec_config *config,
                            struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta list, type;
    uint32_t n_windows = 0, n_right = 0;
    if (!ak_spec_find(p, config, "layer_types", key, &list))
        return AKUNU_OK;
    for (uint32_t i = 0; i < config->n_layers && i < AK_SPEC_LAYERS_MAX; i++) {
        bool windowed =
            ak_provider_element(p, &list, i, &type) && ak_meta_equals(&type, "sliding_attention");
        n_windows += windowed;
        n_right += windowed == is_unrotated(config, i);
    }
    if (n_windows == 0)
        config->window = 0;
    else if (n_right < config->n_layers)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: %u layers have a window; supported: none, or those without rotation",
                       key, n_windows);
    return AKUNU_OK;
}

static ak_status read_interval(const struct ak_provider *p, struct ak_spec_config *config,
                               struct ak_error *error)
{
    AK_TRY(ak_spec_read_u32(p, config, "no_rope_layer_interval", 4, &config->global_every, error));
    if (config->global_every == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "no_rope_layer_interval is 0; expected 1 or more");
    return AKUNU_OK;
}

static ak_status smollm3_configure(const struct ak_provider *p, struct ak_spec_config *config,
                                   struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta list;
    config->global_first = false;
    ak_spec_set_global_layers(config, 0);
    config->has_global_layers = false;
    if (ak_spec_find(p, config, "no_rope_layers", key, &list))
        AK_TRY(read_layers(p, config, key, &list, error));
    else
        AK_TRY(read_interval(p, config, error));
    return read_types(p, config, error);
}

static ak_status smollm3_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                  struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->global =
        (struct ak_spec_layer_kind){ .window = config->window, .rotation = AK_SPEC_ROTATE_NONE };
    out->global_every = config->global_every;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_smollm3 = {
    .names = names,
    .description = "SmolLM3",
    .activation_key = "hidden_act",
    .configure = smollm3_configure,
    .describe = smollm3_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .gguf_interleaved = true,
    .emit = ak_build_decoder,
};
