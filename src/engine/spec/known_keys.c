/* Refuses what a file says and the architecture does not know, since it may change the result: keys
 * of config.json, keys of GGUF below the architecture's name, and keys of the user's overrides. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "engine/spec/known_keys.h"
#include "engine/spec/arch.h"

const struct ak_arch_keys *ak_arch_keys(const struct ak_arch *arch,
                                        const struct ak_text *model_type)
{
    char name[64];
    struct ak_word word;
    if (model_type)
        snprintf(name, sizeof name, "%.*s", (int)(model_type->n < 63 ? model_type->n : 63),
                 model_type->bytes);
    for (uint32_t i = 0; i < arch->n_keys; i++) {
        const char *types = arch->keys[i].types;
        if (model_type ? types && ak_words_find(types, name, &word) : !types)
            return &arch->keys[i];
    }
    /* a folder with the name that GGUF has for the architecture */
    return model_type && arch->n_keys > 0 && arch->keys[0].types ? &arch->keys[0] : NULL;
}

static ak_status fail_unknown(const struct ak_meta *meta, ak_status status, struct ak_error *error)
{
    char key[AK_SHOW_BYTES], value[AK_META_SHOWN_BYTES];
    return ak_fail(error, status,
                   "%s is %s, which this architecture does not know, and which may change the "
                   "result; with --ignore-key %s the model is read as if it were absent",
                   ak_show(meta->key, strlen(meta->key), key), ak_meta_show(meta, value),
                   meta->key);
}

static ak_status fail_fixed(const struct ak_meta *meta, const struct ak_word *word,
                            struct ak_error *error)
{
    char value[AK_META_SHOWN_BYTES];
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s is %s; supported: %.*s (with --ignore-key %s the model is read as if it "
                   "were absent)",
                   meta->key, ak_meta_show(meta, value), (int)word->n_value, word->value,
                   meta->key);
}

/* `name`: the key without the object or the prefix around it. */
static ak_status check_key(const struct ak_arch_keys *known, const char *const more[2],
                           const char *name, const struct ak_meta *meta, struct ak_error *error)
{
    struct ak_word word;
    if (ak_words_find(known->reads, name, &word) || ak_words_find(known->unused, name, &word))
        return AKUNU_OK;
    if (ak_words_find(known->fixed, name, &word) || ak_words_find(more[0], name, &word))
        return ak_word_equals(&word, meta) ? AKUNU_OK : fail_fixed(meta, &word, error);
    if (ak_words_find(more[1], name, &word))
        return AKUNU_OK;
    return fail_unknown(meta, AKUNU_ERROR_UNSUPPORTED, error);
}

/* ---- config.json -------------------------------------------------------- */
static bool has_prefix(const char *key, const char *prefix)
{
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

/* Entries of other files, and those of GGUF that a folder of arrays keeps. */
static bool is_elsewhere(const char *key, const struct ak_arch *arch)
{
    static const char *const others[] = { "generation_config.", "tokenizer_config.", "general.",
                                          "tokenizer." };
    const char *gguf = ak_arch_gguf_name(arch);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (has_prefix(key, others[i]))
            return true;
    return has_prefix(key, gguf) && key[strlen(gguf)] == '.';
}

/* Beside "text_config" stands what concerns the other parts; of the language model only what ties
 * its matrices. */
static const char *inner_name(const struct ak_spec_config *config, const char *key)
{
    static const char text[] = "text_config.";
    if (!config->is_nested)
        return key;
    if (has_prefix(key, text))
        return key + sizeof text - 1;
    return NULL;
}

static ak_status check_entry(const struct ak_spec *spec, const struct ak_meta *meta,
                             struct ak_error *error)
{
    static const char *const more[2] = { ak_fixed_keys, ak_unused_keys };
    const char *name = inner_name(&spec->config, meta->key);
    if (!name || is_elsewhere(meta->key, spec->arch))
        return AKUNU_OK;
    return check_key(spec->config.known, more, name, meta, error);
}

/* null says "none" where transformers' class allows that, and is an error elsewhere. */
static ak_status check_null(const struct ak_spec *spec, const char *key, struct ak_error *error)
{
    const char *name = inner_name(&spec->config, key);
    struct ak_word word;
    if (name && ak_words_find(spec->config.known->reads, name, &word) && word.value &&
        !word.nullable)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is null; expected a value, such as %.*s", key,
                       (int)word.n_value, word.value);
    return AKUNU_OK;
}

static bool same_value(const struct ak_meta *a, const struct ak_meta *b)
{
    if (a->kind != b->kind || a->kind == AK_META_ARRAY)
        return true; /* two ways of saying something */
    return a->kind == AK_META_STRING ?
               a->n == b->n && memcmp(a->as.string, b->as.string, a->n) == 0 :
           a->kind == AK_META_BOOL  ? a->as.boolean == b->as.boolean :
           a->kind == AK_META_FLOAT ? a->as.number == b->as.number :
                                      a->as.integer == b->as.integer;
}

/* A number under two names must be one number. Names in dictionaries have an order, and so has
 * LFM2's feed-forward; the length of a context is no limit of the computation. */
static ak_status check_synonyms(const struct ak_provider *p, const struct ak_spec *spec,
                                struct ak_error *error)
{
    struct ak_meta first, other;
    char key[AK_SPEC_KEY_BYTES], first_key[AK_SPEC_KEY_BYTES], a[AK_META_SHOWN_BYTES],
        b[AK_META_SHOWN_BYTES];
    const char *name;
    struct ak_word word;
    for (size_t i = 0; ak_spec_renamed_key(i); i++) {
        first.kind = AK_META_NONE;
        for (size_t j = 0; (name = ak_spec_renamed_name(i, j)); j++) {
            ak_spec_full_name(&spec->config, name, key);
            if (strchr(name, '.') || !ak_words_find(spec->config.known->reads, name, &word) ||
                strcmp(ak_spec_renamed_key(i), "context_length") == 0 ||
                strcmp(ak_spec_renamed_key(i), "feed_forward_length") == 0 ||
                strcmp(ak_spec_renamed_key(i), "glu_activation") == 0 ||
                !ak_provider_find_meta(p, key, &other))
                continue;
            if (first.kind == AK_META_NONE) {
                first = other;
                memcpy(first_key, key, sizeof first_key);
            } else if (!same_value(&first, &other)) {
                return ak_fail(error, AKUNU_ERROR_FORMAT,
                               "%s is %s and %s %s, which mean the same; expected one value",
                               first_key, ak_meta_show(&first, a), key, ak_meta_show(&other, b));
            }
        }
    }
    return AKUNU_OK;
}

/* transformers makes no embedding whose padding token is none of its rows. */
static ak_status check_padding(const struct ak_provider *p, const struct ak_spec *spec,
                               struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta token;
    if (!ak_spec_find(p, &spec->config, "pad_token_id", key, &token) || token.kind != AK_META_INT ||
        token.as.integer < (int64_t)spec->config.vocab_size)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %lld; expected less than vocab_size %u", key,
                   (long long)token.as.integer, spec->config.vocab_size);
}

static ak_status check_config(const struct ak_provider *p, const struct ak_spec *spec,
                              struct ak_error *error)
{
    struct ak_meta meta;
    const char *key;
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        if (!ak_provider_ignores(p, meta.key))
            AK_TRY(check_entry(spec, &meta, error));
    for (size_t i = 0; (key = ak_provider_null(p, i)); i++)
        if (!ak_provider_ignores(p, key))
            AK_TRY(check_null(spec, key, error));
    AK_TRY(check_padding(p, spec, error));
    return check_synonyms(p, spec, error);
}

/* ---- Sizes in messages -------------------------------------------------- */
static const char sizes[] =
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads "
    "num_key_value_heads head_dim max_position_embeddings type_vocab_size n_embd n_inner n_layer "
    "n_head n_positions block_ff_dim d_model encoder_layers encoder_attention_heads "
    "encoder_ffn_dim decoder_layers decoder_attention_heads decoder_ffn_dim num_mel_bins "
    "max_source_positions max_target_positions num_experts num_local_experts "
    "moe_intermediate_size shared_expert_intermediate_size block_auto_adjust_ff_dim "
    "block_multiple_of block_ffn_dim_multiplier linear_* conv_L_cache layer_types full_attn_idxs "
    "full_attention_interval ";

void ak_spec_explain_sizes(const struct ak_provider *p, const struct ak_spec *spec,
                           struct ak_error *error)
{
    const struct ak_arch_keys *known = spec->config.known;
    const char *at = known ? known->reads : NULL;
    char key[AK_SPEC_KEY_BYTES], name[AK_SPEC_KEY_BYTES], value[AK_META_SHOWN_BYTES];
    struct ak_word word, size;
    struct ak_meta meta;
    bool first = true;
    if (!error || !at || spec->config.naming != AK_PROVIDER_NAMING_HF)
        return;
    while (ak_words_next(&at, &word)) {
        snprintf(name, sizeof name, "%.*s", (int)word.n_name, word.name);
        if (!ak_words_find(sizes, name, &size))
            continue;
        ak_spec_full_name(&spec->config, name, key);
        bool own = ak_provider_find_meta(p, key, &meta), some = own || ak_word_value(&word, &meta);
        size_t used = strlen(error->message);
        snprintf(error->message + used, sizeof error->message - used, "%s%s%s %s",
                 first ? "; config.json: " : ", ", key, own || !some ? "" : " by default",
                 !some                      ? "absent" :
                 meta.kind == AK_META_ARRAY ? "a list" :
                                              ak_meta_show(&meta, value));
        first = false;
    }
}

/* ---- GGUF --------------------------------------------------------------- */
static ak_status check_gguf(const struct ak_provider *p, const struct ak_spec *spec,
                            struct ak_error *error)
{
    static const char *const more[2] = { ak_fixed_gguf_keys, ak_unused_gguf_keys };
    const struct ak_text *name = &spec->config.architecture;
    struct ak_meta meta;
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        if (strncmp(meta.key, name->bytes, name->n) == 0 && meta.key[name->n] == '.' &&
            !ak_provider_ignores(p, meta.key))
            AK_TRY(check_key(spec->config.known, more, meta.key + name->n + 1, &meta, error));
    return AKUNU_OK;
}

/* ---- Overrides ---------------------------------------------------------- */
/* Keys of the vocabulary and of the file as a whole are not below the architecture's name. */
static bool is_general(const char *key)
{
    struct ak_word word;
    return ak_words_find(ak_general_keys, key, &word);
}

/* What replaces nothing and adds nothing that anyone reads was misspelled. */
static ak_status check_overrides(const struct ak_provider *p, const struct ak_spec *spec,
                                 struct ak_error *error)
{
    struct ak_meta meta, own;
    const struct ak_spec_config *c = &spec->config;
    for (size_t i = 0; ak_meta_overrides_at(p->overrides, i, &meta); i++) {
        const char *name = meta.key;
        struct ak_word word;
        char shown[AK_SHOW_BYTES];
        if (p->format->find_meta(p, meta.key, &own) || is_general(meta.key))
            continue;
        if (c->naming == AK_PROVIDER_NAMING_HF)
            name = inner_name(c, meta.key);
        else if (strncmp(name, c->architecture.bytes, c->architecture.n) == 0 &&
                 name[c->architecture.n] == '.')
            name += c->architecture.n + 1;
        if (name && (ak_words_find(c->known->reads, name, &word) ||
                     ak_words_find(c->known->fixed, name, &word)))
            continue;
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the metadata %s cannot be overridden: neither has the file such a key nor "
                       "does the architecture \"%.*s\" read it",
                       ak_show(meta.key, strlen(meta.key), shown),
                       (int)(c->architecture.n < 64 ? c->architecture.n : 64),
                       c->architecture.bytes);
    }
    return AKUNU_OK;
}

ak_status ak_spec_check_keys(const struct ak_provider *p, const struct ak_spec *spec,
                             struct ak_error *error)
{
    if (!spec->config.known)
        return AKUNU_OK;
    AK_TRY(check_overrides(p, spec, error));
    return spec->config.naming == AK_PROVIDER_NAMING_HF ? check_config(p, spec, error) :
                                                          check_gguf(p, spec, error);
}
