/* Reads hyper-parameters from a provider's metadata. keys.c translates the names. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/math.h"
#include "engine/spec/arch.h"

static ak_status fail_missing(const char *key, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is missing", key);
}

/* Reads a per-layer array as one value; fails if layers differ. */
static ak_status read_uniform(const struct ak_provider *p, const char *key,
                              const struct ak_meta *array, uint32_t *out, struct ak_error *error)
{
    for (uint64_t i = 0; i < array->n; i++) {
        struct ak_meta element;
        if (!ak_provider_element(p, array, i, &element) ||
            (element.kind != AK_META_UINT && element.kind != AK_META_INT))
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: an array of other things than integers",
                           key);
        uint64_t value = element.kind == AK_META_UINT ? element.as.unsigned_integer :
                                                        (uint64_t)element.as.integer;
        if (value > UINT32_MAX)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: a value out of range at layer %llu", key,
                           (unsigned long long)i);
        if (i > 0 && value != *out)
            return ak_fail(
                error, AKUNU_ERROR_UNSUPPORTED,
                "%s: differs between layers (%u, then %llu at layer %llu); one value for all is "
                "supported",
                key, *out, (unsigned long long)value, (unsigned long long)i);
        *out = (uint32_t)value;
    }
    if (array->n == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: an empty array", key);
    return AKUNU_OK;
}

static ak_status read_u32(const struct ak_provider *p, const struct ak_spec_config *config,
                          const char *suffix, bool required, uint32_t fallback, uint32_t *out,
                          struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    *out = fallback;
    if (!ak_spec_find(p, config, suffix, key, &meta))
        return required ? fail_missing(key, error) : AKUNU_OK;
    return meta.kind == AK_META_ARRAY ? read_uniform(p, key, &meta, out, error) :
                                        ak_meta_to_u32(&meta, out, error);
}

static ak_status read_float(const struct ak_provider *p, const struct ak_spec_config *config,
                            const char *suffix, float fallback, float *out, struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    *out = fallback;
    return ak_spec_find(p, config, suffix, key, &meta) ? ak_meta_to_float(&meta, out, error) :
                                                         AKUNU_OK;
}

ak_status ak_spec_read_positive(const struct ak_provider *p, const struct ak_spec_config *config,
                                const char *suffix, float fallback, float *out,
                                struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    *out = fallback;
    if (!ak_spec_find(p, config, suffix, key, &meta))
        return AKUNU_OK;
    AK_TRY(ak_meta_to_float(&meta, out, error));
    if (!isfinite(*out) || *out <= 0.0f)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %g; expected a positive number", key,
                       (double)*out);
    return AKUNU_OK;
}

ak_status ak_spec_read_u32(const struct ak_provider *p, const struct ak_spec_config *config,
                           const char *suffix, uint32_t fallback, uint32_t *out,
                           struct ak_error *error)
{
    return read_u32(p, config, suffix, false, fallback, out, error);
}

ak_status ak_spec_read_bool(const struct ak_provider *p, const struct ak_spec_config *config,
                            const char *suffix, bool fallback, bool *out, struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    *out = fallback;
    return ak_spec_find(p, config, suffix, key, &meta) ? ak_meta_to_bool(&meta, out, error) :
                                                         AKUNU_OK;
}

/* Hugging Face stores the rotated fraction of a head, GGUF the number of dimensions. */
static ak_status read_rope_dims(const struct ak_provider *p, struct ak_spec_config *config,
                                struct ak_error *error)
{
    float fraction;
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    AK_TRY(read_float(p, config, "rope.partial_factor", 1.0f, &fraction, error));
    if (!(fraction > 0.0f && fraction <= 1.0f)) {
        ak_spec_find(p, config, "rope.partial_factor", key, &meta);
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %g; expected more than 0 and at most 1",
                       key, (double)fraction);
    }
    uint32_t dims = (uint32_t)((float)config->head_dim * fraction);
    return read_u32(p, config, "rope.dimension_count", false, dims, &config->rope_dims, error);
}

/* YaRN's factor of cosine and sine as transformers computes it: with two numbers more, the quotient
 * of what they make of the scaling. */
static ak_status read_mscales(const struct ak_provider *p, const struct ak_spec_config *config,
                              const struct ak_spec_rope *rope, float *out, struct ak_error *error)
{
    float mscale, of_all;
    AK_TRY(read_float(p, config, "rope.scaling.mscale", 0.0f, &mscale, error));
    AK_TRY(read_float(p, config, "rope.scaling.mscale_all_dim", 0.0f, &of_all, error));
    if (mscale != 0.0f && of_all != 0.0f && rope->factor > 1.0f) {
        double ln = ak_ln((double)rope->factor);
        *out = (float)((0.1 * (double)mscale * ln + 1.0) / (0.1 * (double)of_all * ln + 1.0));
    } else {
        *out = ak_spec_yarn_magnitude(rope->factor);
    }
    return AKUNU_OK;
}

/* Hugging Face's factor is the total; GGUF's comes on top of YaRN's own. */
static ak_status read_yarn_magnitude(const struct ak_provider *p,
                                     const struct ak_spec_config *config, struct ak_spec_rope *rope,
                                     struct ak_error *error)
{
    float factor;
    if (config->naming != AK_PROVIDER_NAMING_HF)
        return AKUNU_OK;
    AK_TRY(read_mscales(p, config, rope, &factor, error));
    AK_TRY(
        ak_spec_read_positive(p, config, "rope.scaling.attention_factor", factor, &factor, error));
    rope->magnitude = factor / ak_spec_yarn_magnitude(rope->factor);
    return AKUNU_OK;
}

/* GGUF stores the computed value. */
static ak_status read_long_magnitude(const struct ak_provider *p,
                                     const struct ak_spec_config *config, struct ak_spec_rope *rope,
                                     struct ak_error *error)
{
    if (config->naming != AK_PROVIDER_NAMING_HF || rope->original_context < 2)
        return AKUNU_OK;
    double factor = rope->factor > 0.0f ? (double)rope->factor :
                                          (double)config->context / (double)rope->original_context;
    float fallback = factor > 1.0 ?
                         (float)sqrt(1.0 + ak_ln(factor) / ak_ln((double)rope->original_context)) :
                         1.0f;
    return ak_spec_read_positive(p, config, "rope.scaling.attention_factor", fallback,
                                 &rope->magnitude, error);
}

static ak_status read_rope(const struct ak_provider *p, struct ak_spec_config *config,
                           struct ak_spec_rope *rope, struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_text type = { NULL, 0 };
    struct ak_meta meta;
    AK_TRY(read_float(p, config, "rope.freq_base", 10000.0f, &config->rope_base, error));
    AK_TRY(read_rope_dims(p, config, error));
    AK_TRY(read_float(p, config, "rope.scaling.factor", 0.0f, &rope->factor, error));
    AK_TRY(
        read_float(p, config, "rope.scaling.low_freq_factor", 0.0f, &rope->low_freq_factor, error));
    AK_TRY(read_float(p, config, "rope.scaling.high_freq_factor", 0.0f, &rope->high_freq_factor,
                      error));
    AK_TRY(read_u32(p, config, "rope.scaling.original_context_length", false, 0,
                    &rope->original_context, error));
    AK_TRY(read_float(p, config, "rope.scaling.yarn_beta_fast", 32.0f, &rope->beta_fast, error));
    AK_TRY(read_float(p, config, "rope.scaling.yarn_beta_slow", 1.0f, &rope->beta_slow, error));
    AK_TRY(read_float(p, config, "rope.scaling.attn_factor", 1.0f, &rope->magnitude, error));
    rope->extrapolation = 1.0f;
    if (rope->original_context == 0 && config->naming == AK_PROVIDER_NAMING_HF)
        rope->original_context = config->context;
    if (ak_spec_find(p, config, "rope.scaling.type", key, &meta))
        AK_TRY(ak_meta_to_text(&meta, &type, error));
    if (type.n == 0 || ak_text_equals(type, "none") || ak_text_equals(type, "default")) {
        rope->scaling = AK_SPEC_ROPE_PLAIN;
        float linear; /* key of older files */
        AK_TRY(read_float(p, config, "rope.scale_linear", 1.0f, &linear, error));
        if (linear != 1.0f) {
            rope->scaling = AK_SPEC_ROPE_LINEAR;
            rope->factor = linear;
        }
    } else if (ak_text_equals(type, "linear")) {
        rope->scaling = AK_SPEC_ROPE_LINEAR;
    } else if (ak_text_equals(type, "llama3")) {
        rope->scaling = AK_SPEC_ROPE_LLAMA3;
    } else if (ak_text_equals(type, "yarn")) {
        rope->scaling = AK_SPEC_ROPE_YARN;
        bool rounded;
        AK_TRY(ak_spec_read_bool(p, config, "rope.scaling.truncate", true, &rounded, error));
        rope->unrounded = !rounded;
        AK_TRY(read_yarn_magnitude(p, config, rope, error));
    } else if (ak_text_equals(type, "longrope") || ak_text_equals(type, "su")) {
        rope->scaling = AK_SPEC_ROPE_LONGROPE;
        AK_TRY(read_long_magnitude(p, config, rope, error));
    } else {
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s is \"%.*s\"; supported: default, none, linear, llama3, yarn, longrope",
                       key, (int)(type.n < 64 ? type.n : 64), type.bytes);
    }
    return AKUNU_OK;
}

/* Whether element i of a list says that the layer has no window: a type's name, or false. */
static bool read_is_global(const struct ak_provider *p, const struct ak_meta *list, uint64_t i,
                           bool *out)
{
    struct ak_meta element;
    if (!ak_provider_element(p, list, i, &element))
        return false;
    *out = element.kind == AK_META_BOOL ? !element.as.boolean :
                                          ak_meta_equals(&element, "full_attention");
    return *out || element.kind == AK_META_BOOL || ak_meta_equals(&element, "sliding_attention");
}

/* Every n-th layer if there is such an n, else the layers themselves. */
static ak_status read_layers(const struct ak_provider *p, const char *key,
                             const struct ak_meta *list, struct ak_spec_config *config,
                             struct ak_error *error)
{
    uint32_t every = UINT32_MAX, n = config->n_layers; /* every: none yet */
    bool global, first = false;
    bool is_hf = config->naming == AK_PROVIDER_NAMING_HF;
    if (list->n < n || (is_hf && list->n > n))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %llu elements; expected as many as %s, %u", key,
                       (unsigned long long)list->n, ak_spec_key_name(config, "block_count"), n);
    for (uint32_t i = 0; i < n && i < AK_SPEC_LAYERS_MAX; i++) {
        if (!read_is_global(p, list, i, &global))
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s: layer %u is neither \"full_attention\" nor \"sliding_attention\"",
                           key, i);
        if (is_hf && !global && config->window == 0)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s: layer %u has a window, of which %s gives no size", key, i,
                           ak_spec_key_name(config, "attention.sliding_window"));
        if (global && i == 0)
            first = true;
        else if (global && every == UINT32_MAX)
            every = i + !first;
        if (global != ((i + !first) % every == 0))
            config->has_global_layers = true;
        if (global)
            config->global_layers[i / 64] |= (uint64_t)1 << (i % 64);
    }
    config->global_every = first && n == 1 ? 1 : every;
    config->global_first = first && config->global_every > 1;
    return AKUNU_OK;
}

static bool reads_layer_types(const struct ak_arch *arch)
{
    return arch->has_recurrent_layers || arch->configure == ak_spec_read_delta;
}

/* Which layers have no window: a number n for every n-th, or a boolean or type name per layer.
 * Other types of layers are read by their architecture. */
static ak_status read_pattern(const struct ak_provider *p, const struct ak_arch *arch,
                              struct ak_spec_config *config, struct ak_error *error)
{
    static const char suffix[] = "attention.sliding_window_pattern";
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta value;
    if (reads_layer_types(arch))
        return AKUNU_OK;
    if (!ak_spec_find(p, config, suffix, key, &value) || value.kind != AK_META_ARRAY)
        return read_u32(p, config, suffix, false, 0, &config->global_every, error);
    if (value.element_kind != AK_META_STRING && value.element_kind != AK_META_BOOL)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: an array of other things than types of layers", key);
    return read_layers(p, key, &value, config, error);
}

/* A per-layer list has zeros for layers without attention. */
static ak_status read_kv_heads(const struct ak_provider *p, const struct ak_arch *arch,
                               struct ak_spec_config *config, struct ak_error *error)
{
    static const char suffix[] = "attention.head_count_kv";
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta array, element;
    if (!arch->has_recurrent_layers || !ak_spec_find(p, config, suffix, key, &array) ||
        array.kind != AK_META_ARRAY)
        return read_u32(p, config, suffix, false, config->n_heads, &config->n_kv_heads, error);
    for (uint64_t i = 0; i < array.n && i < AK_SPEC_LAYERS_MAX; i++) {
        uint64_t heads = 0;
        if (ak_provider_element(p, &array, i, &element) &&
            (element.kind == AK_META_UINT || element.kind == AK_META_INT))
            heads = element.kind == AK_META_UINT ? element.as.unsigned_integer :
                                                   (uint64_t)element.as.integer;
        if (heads == 0)
            ak_spec_set_recurrent(config, (uint32_t)i);
        else if (heads > UINT32_MAX || (config->n_kv_heads > 0 && heads != config->n_kv_heads))
            return ak_fail(
                error, AKUNU_ERROR_UNSUPPORTED,
                "%s: differs between layers (%u, then %llu at layer %llu); one value for all that "
                "have attention is supported",
                key, config->n_kv_heads, (unsigned long long)heads, (unsigned long long)i);
        else
            config->n_kv_heads = (uint32_t)heads;
    }
    return AKUNU_OK;
}

/* Heads split the width evenly unless the file gives their size. */
static ak_status read_head_size(const struct ak_provider *p, struct ak_spec_config *config,
                                struct ak_error *error)
{
    uint32_t value_size;
    AK_TRY(read_u32(p, config, "attention.key_length", false, 0, &config->head_dim, error));
    if (config->head_dim == 0 && config->n_heads > 0) {
        if (config->width % config->n_heads != 0)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u, which does not divide %s %u",
                           ak_spec_key_name(config, "attention.head_count"), config->n_heads,
                           ak_spec_key_name(config, "embedding_length"), config->width);
        config->head_dim = config->width / config->n_heads;
    }
    AK_TRY(
        read_u32(p, config, "attention.value_length", false, config->head_dim, &value_size, error));
    if (value_size != config->head_dim)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "attention.value_length is %u and attention.key_length %u; equal sizes are supported",
            value_size, config->head_dim);
    return AKUNU_OK;
}

ak_status ak_spec_read_expert_count(const struct ak_provider *p, struct ak_text architecture,
                                    uint32_t *out, struct ak_error *error)
{
    struct ak_spec_config config = { .keys = architecture, .architecture = architecture };
    ak_spec_read_naming(p, NULL, &config);
    return read_u32(p, &config, "expert_count", false, 0, out, error);
}

/* Models with experts may give only the experts' width, and GPT-2's n_inner is null if it is the
 * usual four times the width. */
static ak_status read_ffn_width(const struct ak_provider *p, struct ak_spec_config *config,
                                struct ak_error *error)
{
    struct ak_word word;
    bool gpt2 = config->known && config->naming == AK_PROVIDER_NAMING_HF &&
                ak_words_find(config->known->reads, "n_embd", &word) &&
                config->width <= UINT32_MAX / 4;
    AK_TRY(read_u32(p, config, "expert_feed_forward_length", false, gpt2 ? 4 * config->width : 0,
                    &config->ffn_width, error));
    return read_u32(p, config, "feed_forward_length", config->ffn_width == 0, config->ffn_width,
                    &config->ffn_width, error);
}

/* Qwen's configurations give a window and may say that it is not used. */
static ak_status read_window(const struct ak_provider *p, struct ak_spec_config *config,
                             struct ak_error *error)
{
    bool used;
    AK_TRY(ak_spec_read_bool(p, config, "use_sliding_window", true, &used, error));
    AK_TRY(read_u32(p, config, "attention.sliding_window", false, 0, &config->window, error));
    if (!used)
        config->window = 0;
    return AKUNU_OK;
}

/* Position rows up to the padding token's id belong to no token. */
static ak_status read_first_position(const struct ak_provider *p, struct ak_spec_config *config,
                                     struct ak_error *error)
{
    uint32_t padding;
    AK_TRY(read_u32(p, config, "pad_token_id", true, 0, &padding, error));
    /* transformers gives padding tokens no position, whichever text has them */
    if (padding != 1)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "pad_token_id is %u; supported: 1", padding);
    if (padding >= config->context || config->context - padding < 2)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "max_position_embeddings is %u; expected more than pad_token_id %u and one",
                       config->context, padding);
    config->first_position = padding + 1;
    config->context -= padding + 1;
    return AKUNU_OK;
}

ak_status ak_spec_read_config(const struct ak_provider *p, const struct ak_arch *arch,
                              struct ak_spec_config *out, struct ak_spec_rope *rope,
                              struct ak_error *error)
{
    struct ak_spec_config config = { 0 };
    struct ak_spec_rope scaling = { 0 };
    struct ak_vocab vocab;
    struct ak_view embedding;

    AK_TRY(ak_provider_check_weights(p, error));
    AK_TRY(ak_meta_text(p, "general.architecture", &config.architecture, error));
    ak_spec_read_naming(p, arch, &config);
    config.keys = config.architecture;
    if (arch->key_prefix)
        config.keys = (struct ak_text){ arch->key_prefix, (uint32_t)strlen(arch->key_prefix) };
    AK_TRY(ak_meta_text(p, "general.name", &config.name, error));
    AK_TRY(read_u32(p, &config, "block_count", true, 0, &config.n_layers, error));
    AK_TRY(read_u32(p, &config, "embedding_length", true, 0, &config.width, error));
    AK_TRY(read_ffn_width(p, &config, error));
    AK_TRY(read_u32(p, &config, "context_length", true, 0, &config.context, error));
    AK_TRY(read_u32(p, &config, "attention.head_count", true, 0, &config.n_heads, error));
    AK_TRY(read_kv_heads(p, arch, &config, error));
    AK_TRY(read_head_size(p, &config, error));
    AK_TRY(read_float(p, &config, "attention.layer_norm_epsilon", 1e-5f, &config.norm_eps, error));
    AK_TRY(read_float(p, &config, "attention.layer_norm_rms_epsilon", config.norm_eps,
                      &config.norm_eps, error));
    AK_TRY(read_window(p, &config, error));
    AK_TRY(ak_spec_read_bool(p, &config, "tie_word_embeddings", false, &config.tied, error));
    AK_TRY(read_pattern(p, arch, &config, error));
    AK_TRY(read_u32(p, &config, "expert_count", false, 0, &config.n_experts, error));
    AK_TRY(read_u32(p, &config, "expert_used_count", false, 0, &config.n_experts_used, error));
    AK_TRY(read_u32(p, &config, "expert_feed_forward_length", false, config.ffn_width,
                    &config.expert_width, error));
    AK_TRY(read_u32(p, &config, "expert_shared_feed_forward_length", false, 0, &config.shared_width,
                    error));
    AK_TRY(read_rope(p, &config, &scaling, error));

    if (config.naming == AK_PROVIDER_NAMING_HF && arch->hf_padded_positions)
        AK_TRY(read_first_position(p, &config, error));
    bool has_types =
        ak_arch_find_weight(arch, p, AK_ROLE_TOKEN_TYPE_EMBEDDING, AK_ROLE_NO_LAYER, &embedding);
    AK_TRY(read_u32(p, &config, "tokenizer.ggml.token_type_count", false,
                    has_types ? embedding.rows : 0, &config.n_types, error));

    /* The vocabulary decides; without one the file's number, else the rows of the embedding. */
    AK_TRY(ak_provider_vocab(p, &vocab, error));
    uint32_t rows =
        ak_arch_find_weight(arch, p, AK_ROLE_TOKEN_EMBEDDING, AK_ROLE_NO_LAYER, &embedding) ?
            embedding.rows :
            0;
    AK_TRY(read_u32(p, &config, "vocab_size", false, rows, &config.vocab_size, error));
    /* models of several parts are published with little more than what differs from the class:
     * their embedding says how many tokens there are */
    struct ak_meta stated;
    if (config.is_nested && rows > 0 &&
        !ak_provider_find_meta(p, "text_config.vocab_size", &stated))
        config.vocab_size = rows;
    if (vocab.n_tokens > 0)
        config.vocab_size = vocab.n_tokens;
    if (arch->configure)
        AK_TRY(arch->configure(p, &config, error));
    *out = config;
    *rope = scaling;
    return AKUNU_OK;
}
