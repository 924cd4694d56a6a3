/* The vocabulary of a GGUF file as arrays. Filled on first use, because models are also opened
 * without a tokenizer and the arrays have a million entries. */
#include "files/weights/gguf/gguf.h"

#include <string.h>

#include "base/mem.h"

struct ak_gguf_vocab {
    pthread_mutex_t lock;
    bool is_loaded;
    struct ak_vocab arrays;
    /* owned; `arrays` points to them */
    struct ak_text *tokens, *merges;
    float *scores;
    int32_t *types;
    char *charsmap;
    int64_t fim[AK_VOCAB_FIM_COUNT];
};

static void clear(struct ak_gguf_vocab *v)
{
    ak_free(v->tokens);
    ak_free(v->merges);
    ak_free(v->scores);
    ak_free(v->types);
    ak_free(v->charsmap);
    v->tokens = v->merges = NULL;
    v->scores = NULL;
    v->types = NULL;
    v->charsmap = NULL;
    v->arrays = ak_vocab_none;
}

ak_status ak_gguf_vocab_create(struct ak_gguf_vocab **out, struct ak_error *error)
{
    *out = ak_alloc(1, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "a vocabulary", sizeof **out);
    pthread_mutex_init(&(*out)->lock, NULL);
    clear(*out);
    return AKUNU_OK;
}

void ak_gguf_vocab_free(struct ak_gguf_vocab *v)
{
    if (!v)
        return;
    clear(v);
    pthread_mutex_destroy(&v->lock);
    ak_free(v);
}

static const char *kind_name(enum ak_meta_kind kind)
{
    static const char *const names[] = { "nothing", "bool",   "integer", "unsigned integer",
                                         "float",   "string", "array" };
    return names[kind];
}

/* Finds an array of elements of one of two kinds. n = 0: the key is absent. */
static ak_status find_array(const struct ak_provider *p, const char *key, enum ak_meta_kind kind,
                            enum ak_meta_kind or_kind, struct ak_meta *out, struct ak_error *error)
{
    if (!ak_provider_find_meta(p, key, out)) {
        *out = (struct ak_meta){ .kind = AK_META_NONE };
        return AKUNU_OK;
    }
    if (out->kind != AK_META_ARRAY)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "metadata %s is a value of type %s, where an array of %s is expected", key,
                       kind_name(out->kind), kind_name(kind));
    if (out->element_kind != kind && out->element_kind != or_kind)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "metadata %s is an array of %s, where an array of %s is expected", key,
                       kind_name(out->element_kind), kind_name(kind));
    if (out->n > INT32_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "metadata %s has %llu elements, more than 2^31 - 1", key,
                       (unsigned long long)out->n);
    return AKUNU_OK;
}

static ak_status read_texts(const struct ak_provider *p, const char *key, struct ak_text **texts,
                            uint32_t *n, struct ak_error *error)
{
    struct ak_meta array;
    AK_TRY(find_array(p, key, AK_META_STRING, AK_META_STRING, &array, error));
    if (array.kind == AK_META_NONE)
        return AKUNU_OK;
    *texts = ak_alloc(array.n, sizeof **texts);
    if (!*texts)
        return ak_fail_memory(error, key, array.n * sizeof **texts);
    if (!ak_gguf_texts(&array, *texts))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "metadata %s has a string of 2^32 bytes or more", key);
    *n = (uint32_t)array.n;
    return AKUNU_OK;
}

static ak_status check_length(const char *key, uint64_t n, uint32_t n_tokens,
                              struct ak_error *error)
{
    if (n == n_tokens)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "metadata %s has %llu elements for %u tokens", key,
                   (unsigned long long)n, n_tokens);
}

static ak_status read_scores(const struct ak_provider *p, struct ak_gguf_vocab *v,
                             struct ak_error *error)
{
    static const char key[] = "tokenizer.ggml.scores";
    struct ak_meta array, element;
    AK_TRY(find_array(p, key, AK_META_FLOAT, AK_META_FLOAT, &array, error));
    if (array.kind == AK_META_NONE)
        return AKUNU_OK;
    AK_TRY(check_length(key, array.n, v->arrays.n_tokens, error));
    v->scores = ak_alloc(array.n, sizeof *v->scores);
    if (!v->scores)
        return ak_fail_memory(error, key, array.n * sizeof *v->scores);
    for (uint64_t i = 0; i < array.n && ak_provider_element(p, &array, i, &element); i++)
        v->scores[i] = (float)element.as.number;
    return AKUNU_OK;
}

static ak_status read_types(const struct ak_provider *p, struct ak_gguf_vocab *v,
                            struct ak_error *error)
{
    static const char key[] = "tokenizer.ggml.token_type";
    struct ak_meta array, element;
    AK_TRY(find_array(p, key, AK_META_INT, AK_META_UINT, &array, error));
    if (array.kind == AK_META_NONE)
        return AKUNU_OK;
    AK_TRY(check_length(key, array.n, v->arrays.n_tokens, error));
    v->types = ak_alloc(array.n, sizeof *v->types);
    if (!v->types)
        return ak_fail_memory(error, key, array.n * sizeof *v->types);
    for (uint64_t i = 0; i < array.n && ak_provider_element(p, &array, i, &element); i++) {
        uint64_t value = element.kind == AK_META_INT ? (uint64_t)element.as.integer :
                                                       element.as.unsigned_integer;
        if (value > INT32_MAX)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "metadata %s: %lld is not a token type", key,
                           (long long)value);
        v->types[i] = (int32_t)value;
    }
    return AKUNU_OK;
}

/* Bytes, which the file has as an array of integers. */
static ak_status read_charsmap(const struct ak_provider *p, struct ak_gguf_vocab *v,
                               struct ak_error *error)
{
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    struct ak_meta array, element;
    AK_TRY(find_array(p, key, AK_META_UINT, AK_META_INT, &array, error));
    if (array.kind == AK_META_NONE)
        return AKUNU_OK;
    v->charsmap = ak_alloc(array.n, 1);
    if (!v->charsmap)
        return ak_fail_memory(error, key, array.n);
    for (uint64_t i = 0; i < array.n && ak_provider_element(p, &array, i, &element); i++)
        v->charsmap[i] = (char)(element.kind == AK_META_INT ? (uint64_t)element.as.integer :
                                                              element.as.unsigned_integer);
    v->arrays.charsmap = (struct ak_text){ v->charsmap, (uint32_t)array.n };
    return AKUNU_OK;
}

/* An id beyond the vocabulary counts as absent: published files have such ids. */
static ak_status read_id(const struct ak_provider *p, const char *key, uint32_t n_tokens,
                         int64_t *out, struct ak_error *error)
{
    struct ak_meta meta;
    *out = -1;
    if (!ak_provider_find_meta(p, key, &meta))
        return AKUNU_OK;
    if (meta.kind != AK_META_UINT && meta.kind != AK_META_INT)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "metadata %s is a value of type %s, where a token's id is expected", key,
                       kind_name(meta.kind));
    uint64_t id = meta.kind == AK_META_INT ? (uint64_t)meta.as.integer : meta.as.unsigned_integer;
    if (id < n_tokens)
        *out = (int64_t)id;
    return AKUNU_OK;
}

static ak_status read_ids(const struct ak_provider *p, struct ak_vocab *v, struct ak_error *error)
{
    const struct {
        const char *key;
        int64_t *id;
    } ids[] = {
        { "tokenizer.ggml.bos_token_id", &v->bos },
        { "tokenizer.ggml.eos_token_id", &v->eos },
        { "tokenizer.ggml.eot_token_id", &v->eot },
        { "tokenizer.ggml.unknown_token_id", &v->unknown },
        { "tokenizer.ggml.padding_token_id", &v->padding },
        { "tokenizer.ggml.cls_token_id", &v->cls },
        { "tokenizer.ggml.mask_token_id", &v->mask },
        /* GGUF's spelling */
        { "tokenizer.ggml.seperator_token_id", &v->separator },
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        AK_TRY(read_id(p, ids[i].key, v->n_tokens, ids[i].id, error));
    return AKUNU_OK;
}

/* The ids of fill-in-the-middle, the first three also under the names of older files. */
static ak_status read_fim(const struct ak_provider *p, struct ak_gguf_vocab *v,
                          struct ak_error *error)
{
    static const char *const keys[AK_VOCAB_FIM_COUNT][2] = {
        { "tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id" },
        { "tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id" },
        { "tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id" },
        { "tokenizer.ggml.fim_pad_token_id" },
        { "tokenizer.ggml.fim_rep_token_id" },
        { "tokenizer.ggml.fim_sep_token_id" },
    };
    for (size_t i = 0; i < AK_VOCAB_FIM_COUNT; i++) {
        AK_TRY(read_id(p, keys[i][0], v->arrays.n_tokens, &v->fim[i], error));
        if (v->fim[i] < 0 && keys[i][1])
            AK_TRY(read_id(p, keys[i][1], v->arrays.n_tokens, &v->fim[i], error));
    }
    v->arrays.fim = v->fim;
    return AKUNU_OK;
}

static ak_status read_flag(const struct ak_provider *p, const char *key, int *out,
                           struct ak_error *error)
{
    struct ak_meta meta;
    bool value;
    *out = -1;
    if (!ak_provider_find_meta(p, key, &meta))
        return AKUNU_OK;
    AK_TRY(ak_meta_bool(p, key, false, &value, error));
    *out = value;
    return AKUNU_OK;
}

static ak_status read_flags(const struct ak_provider *p, struct ak_vocab *v, struct ak_error *error)
{
    AK_TRY(read_flag(p, "tokenizer.ggml.add_bos_token", &v->add_bos, error));
    AK_TRY(read_flag(p, "tokenizer.ggml.add_eos_token", &v->add_eos, error));
    AK_TRY(read_flag(p, "tokenizer.ggml.add_space_prefix", &v->add_space_prefix, error));
    AK_TRY(read_flag(p, "tokenizer.ggml.remove_extra_whitespaces", &v->remove_extra_whitespaces,
                     error));
    AK_TRY(read_flag(p, "tokenizer.ggml.normalizer.lowercase", &v->lowercase, error));
    return read_flag(p, "tokenizer.ggml.normalizer.strip_accents", &v->strip_accents, error);
}

/* Checks that the embedding, if the file has it, has a row per token. */
static ak_status check_rows(const struct ak_provider *p, uint32_t n_tokens, struct ak_error *error)
{
    struct ak_view view;
    if (!ak_provider_find(p, AK_ROLE_TOKEN_EMBEDDING, AK_ROLE_NO_LAYER, NULL, &view) ||
        view.rows == n_tokens)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "metadata tokenizer.ggml.tokens has %u elements, but tensor %s has %u rows",
                   n_tokens, view.name, view.rows);
}

/* Values of tokenizer.ggml.model in files without a vocabulary. */
static bool is_none(struct ak_text model)
{
    static const char *const words[] = { "none", "no_vocab" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == model.n && memcmp(words[i], model.bytes, model.n) == 0)
            return true;
    return false;
}

static ak_status load_vocab(const struct ak_provider *p, struct ak_gguf_vocab *v,
                            struct ak_error *error)
{
    struct ak_vocab *a = &v->arrays;
    AK_TRY(ak_meta_text(p, "tokenizer.ggml.model", &a->model, error));
    if (is_none(a->model))
        a->model.n = 0;
    if (a->model.n == 0)
        return AKUNU_OK;
    AK_TRY(ak_meta_text(p, "tokenizer.ggml.pre", &a->pre, error));
    struct ak_meta name;
    if (ak_provider_find_meta(p, "general.name", &name) && name.kind == AK_META_STRING &&
        name.n <= UINT32_MAX)
        a->name = (struct ak_text){ name.as.string, (uint32_t)name.n };
    AK_TRY(read_texts(p, "tokenizer.ggml.tokens", &v->tokens, &a->n_tokens, error));
    if (!v->tokens)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "metadata tokenizer.ggml.tokens is missing, though tokenizer.ggml.model is there");
    AK_TRY(check_rows(p, a->n_tokens, error));
    AK_TRY(read_texts(p, "tokenizer.ggml.merges", &v->merges, &a->n_merges, error));
    AK_TRY(read_scores(p, v, error));
    AK_TRY(read_types(p, v, error));
    AK_TRY(read_charsmap(p, v, error));
    AK_TRY(read_ids(p, a, error));
    AK_TRY(read_fim(p, v, error));
    AK_TRY(read_flags(p, a, error));
    a->tokens = v->tokens;
    a->merges = v->merges;
    a->scores = v->scores;
    a->types = v->types;
    return AKUNU_OK;
}

ak_status ak_gguf_vocab_get(struct ak_gguf_vocab *v, const struct ak_provider *p,
                            struct ak_vocab *out, struct ak_error *error)
{
    ak_status status = AKUNU_OK;
    pthread_mutex_lock(&v->lock);
    if (!v->is_loaded) {
        status = load_vocab(p, v, error);
        v->is_loaded = status == AKUNU_OK;
        if (!v->is_loaded)
            clear(v);
    }
    *out = v->arrays;
    pthread_mutex_unlock(&v->lock);
    return status;
}
