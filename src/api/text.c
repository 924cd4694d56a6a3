/* Tokenizers behind handles: loading, tokenize, detokenize and questions about tokens. */
#include "api/handles.h"

#include "base/mem.h"

static ak_status load_tokenizer(const char *path, const char *const *override_kv,
                                struct ak_tokenizer **out, struct ak_error *error)
{
    struct ak_provider *provider;

    AK_TRY(ak_provider_open(path, &provider, error));
    ak_status status = AKUNU_OK;
    for (; override_kv && *override_kv && status == AKUNU_OK; override_kv++)
        status = ak_provider_override(provider, *override_kv, error);
    if (status == AKUNU_OK)
        status = ak_tok_open(provider, out, error);
    if (status == AKUNU_OK && !*out)
        status = ak_provider_fail_vocab(provider, error);
    ak_provider_close(provider);
    return status;
}

struct akunu_tokenizer *akunu_tokenizer_load(const char *path)
{
    return akunu_tokenizer_load_with(path, NULL);
}

struct akunu_tokenizer *akunu_tokenizer_load_with(const char *path, const char *const *override_kv)
{
    struct ak_error error = { 0 };
    struct akunu_tokenizer *tokenizer = ak_alloc(1, sizeof *tokenizer);

    if (!path)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "no path is given");
    else if (!tokenizer)
        ak_fail_memory(&error, "a tokenizer", sizeof *tokenizer);
    else
        load_tokenizer(path, override_kv, &tokenizer->inner, &error);
    if (error.status == AKUNU_OK)
        return tokenizer;
    ak_api_finish(&error);
    akunu_tokenizer_free(tokenizer);
    return NULL;
}

void akunu_tokenizer_free(struct akunu_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    ak_tok_free(tokenizer->inner);
    ak_free(tokenizer);
}

/* Checks the arguments that all calls share. `buffers_valid`: each pair of pointer and size is
 * consistent. */
static ak_status check_arguments(const struct akunu_tokenizer *tokenizer, bool buffers_valid,
                                 unsigned flags, unsigned known, struct ak_error *error)
{
    if (!tokenizer)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the tokenizer is NULL");
    if (!buffers_valid)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "a pointer is NULL where its size is not 0");
    if (flags & ~known)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "unknown flags: 0x%x", flags & ~known);
    return AKUNU_OK;
}

int64_t akunu_tokenizer_encode(const struct akunu_tokenizer *tokenizer, const char *text,
                               size_t n_bytes, unsigned flags, akunu_token *ids, size_t capacity)
{
    struct ak_error error = { 0 };
    size_t n_ids;
    bool buffers_valid = (text || n_bytes == 0) && (ids || capacity == 0);

    if (check_arguments(tokenizer, buffers_valid, flags, AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL,
                        &error) != AKUNU_OK ||
        ak_tok_encode(tokenizer->inner, text ? text : "", n_bytes, flags, ids, capacity, &n_ids,
                      &error) != AKUNU_OK) {
        ak_api_finish(&error);
        return -1;
    }
    return (int64_t)n_ids;
}

int64_t akunu_tokenizer_decode(const struct akunu_tokenizer *tokenizer, const akunu_token *ids,
                               size_t n_ids, unsigned flags, char *text, size_t capacity)
{
    struct ak_error error = { 0 };
    size_t n_bytes;
    bool buffers_valid = (ids || n_ids == 0) && (text || capacity == 0);

    if (check_arguments(tokenizer, buffers_valid, flags, AKUNU_SKIP_SPECIAL | AKUNU_CONTINUE,
                        &error) != AKUNU_OK ||
        ak_tok_decode(tokenizer->inner, ids, n_ids, flags, text, capacity, &n_bytes, &error) !=
            AKUNU_OK) {
        ak_api_finish(&error);
        return -1;
    }
    return (int64_t)n_bytes;
}

void akunu_infill_default(struct akunu_infill *infill, size_t size)
{
    static const struct akunu_infill full = { .size = 0 };
    ak_api_give_default(infill, size, &full, sizeof full);
}

static ak_status encode_infill(const struct akunu_tokenizer *tokenizer, struct akunu_infill *infill,
                               akunu_token *ids, size_t capacity, size_t *n_ids,
                               struct ak_error *error)
{
    struct akunu_infill own = { .size = 0 };
    if (!infill)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no struct akunu_infill is given");
    AK_TRY(ak_api_copy_in(&own, sizeof own, infill, "akunu_infill", error));
    AK_TRY(check_arguments(tokenizer,
                           (own.prefix || own.n_prefix_bytes == 0) &&
                               (own.suffix || own.n_suffix_bytes == 0) && (ids || capacity == 0),
                           0, 0, error));
    if (own.n_prefix_bytes > INT32_MAX || own.n_suffix_bytes > INT32_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "texts of %zu and %zu bytes around a gap: at most %d are tokenized at once",
                       own.n_prefix_bytes, own.n_suffix_bytes, INT32_MAX);
    struct ak_tok_infill inner = { .prefix = { own.prefix, (uint32_t)own.n_prefix_bytes },
                                   .suffix = { own.suffix, (uint32_t)own.n_suffix_bytes },
                                   .suffix_first = own.suffix_first,
                                   .max_tokens = own.max_tokens };
    AK_TRY(ak_tok_encode_infill(tokenizer->inner, &inner, ids, capacity, n_ids, error));
    size_t size = infill->size;
    own.n_prefix_dropped = inner.n_prefix_dropped;
    own.n_suffix_dropped = inner.n_suffix_dropped;
    own.size = size;
    return ak_api_copy_out(infill, size, &own, sizeof own, "akunu_infill", error);
}

int64_t akunu_tokenizer_encode_infill(const struct akunu_tokenizer *tokenizer,
                                      struct akunu_infill *infill, akunu_token *ids,
                                      size_t capacity)
{
    struct ak_error error = { 0 };
    size_t n_ids;

    if (encode_infill(tokenizer, infill, ids, capacity, &n_ids, &error) == AKUNU_OK)
        return (int64_t)n_ids;
    ak_api_finish(&error);
    return -1;
}

size_t akunu_tokenizer_vocab_size(const struct akunu_tokenizer *tokenizer)
{
    return tokenizer ? ak_tok_n_tokens(tokenizer->inner) : 0;
}

bool akunu_tokenizer_is_end(const struct akunu_tokenizer *tokenizer, akunu_token token)
{
    return tokenizer && ak_tok_is_end(tokenizer->inner, token);
}

bool akunu_tokenizer_is_control(const struct akunu_tokenizer *tokenizer, akunu_token token)
{
    return tokenizer && ak_tok_is_control(tokenizer->inner, token);
}

akunu_token akunu_tokenizer_bos(const struct akunu_tokenizer *tokenizer)
{
    return tokenizer ? ak_tok_bos(tokenizer->inner) : -1;
}

akunu_token akunu_tokenizer_special(const struct akunu_tokenizer *tokenizer,
                                    enum akunu_special_token purpose)
{
    return tokenizer ? ak_tok_special(tokenizer->inner, purpose) : -1;
}

struct akunu_stream {
    struct ak_tok_stream *inner;
};

struct akunu_stream *akunu_stream_new(const struct akunu_tokenizer *tokenizer, unsigned flags)
{
    struct ak_error error = { 0 };
    struct akunu_stream *stream = ak_alloc(1, sizeof *stream);

    if (!stream)
        ak_fail_memory(&error, "a text stream", sizeof *stream);
    else if (check_arguments(tokenizer, true, flags, AKUNU_SKIP_SPECIAL | AKUNU_CONTINUE, &error) ==
             AKUNU_OK)
        ak_tok_stream_create(tokenizer->inner, flags, &stream->inner, &error);
    if (error.status == AKUNU_OK)
        return stream;
    ak_api_finish(&error);
    akunu_stream_free(stream);
    return NULL;
}

void akunu_stream_free(struct akunu_stream *stream)
{
    if (!stream)
        return;
    ak_tok_stream_free(stream->inner);
    ak_free(stream);
}

enum akunu_status akunu_stream_push(struct akunu_stream *stream, akunu_token token,
                                    const char **text, size_t *n_bytes)
{
    struct ak_error error = { 0 };

    if (!stream || !text || !n_bytes)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the stream, or where its text goes, is NULL");
    else
        ak_tok_stream_push(stream->inner, token, text, n_bytes, &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_stream_end(struct akunu_stream *stream, const char **text, size_t *n_bytes)
{
    if (!stream || !text || !n_bytes) {
        struct ak_error error = { 0 };
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the stream, or where its text goes, is NULL");
        return ak_api_finish(&error);
    }
    ak_tok_stream_end(stream->inner, text, n_bytes);
    return AKUNU_OK;
}
