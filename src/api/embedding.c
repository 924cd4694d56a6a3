/* Texts as the tokens whose embedding is wanted: with a prompt, and cut as the model's files say.
 */
#include <string.h>

#include "akunu/akunu.h"
#include "api/handles.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "engine/spec/stages.h"

void akunu_embedding_text_default(struct akunu_embedding_text *text, size_t size)
{
    static const struct akunu_embedding_text full = { .size = 0 };
    ak_api_give_default(text, size, &full, sizeof full);
}

struct ids {
    int32_t *values; /* from ak_alloc */
    size_t n;
};

static ak_status encode_ids(const struct ak_tokenizer *t, struct ak_text text, unsigned flags,
                            struct ids *out, struct ak_error *error)
{
    flags |= AKUNU_ADD_SPECIAL;
    AK_TRY(ak_tok_encode(t, text.bytes, text.n, flags, NULL, 0, &out->n, error));
    out->values = ak_alloc(out->n + 1, sizeof *out->values);
    if (!out->values)
        return ak_fail_memory(error, "token ids", out->n * sizeof *out->values);
    return ak_tok_encode(t, text.bytes, text.n, flags, out->values, out->n, &out->n, error);
}

/* Cuts to `max` tokens. Those that the tokenizer adds stay. */
static void cut(const struct ak_tokenizer *t, bool left, size_t max, struct ids *ids)
{
    size_t before, after;
    if (ids->n <= max)
        return;
    ak_tok_count_added(t, &before, &after);
    size_t whole = ids->n - before - after, kept = max > before + after ? max - before - after : 0;
    int32_t *text = ids->values + before;
    if (left)
        memmove(text, text + (whole - kept), kept * sizeof *text);
    memmove(text + kept, text + whole, after * sizeof *text);
    ids->n = before + kept + after;
}

/* Counts the prompt's tokens as sentence-transformers does: on its own, without a token that ends
 * it. */
static ak_status count_prompt(const struct ak_tokenizer *t, struct ak_text prompt, unsigned flags,
                              size_t max, size_t *out, struct ak_error *error)
{
    struct ids ids = { 0 };
    ak_status status = encode_ids(t, prompt, flags, &ids, error);
    if (status == AKUNU_OK) {
        cut(t, false, max, &ids);
        *out = ids.n - (ids.n > 0 && ak_tok_is_control(t, ids.values[ids.n - 1]));
    }
    ak_free(ids.values);
    return status;
}

static ak_status join_texts(struct ak_text prompt, struct ak_text text, struct ak_buffer *out,
                            struct ak_error *error)
{
    AK_TRY(ak_buffer_add(out, prompt.bytes, prompt.n, error));
    return ak_buffer_add(out, text.bytes, text.n, error);
}

static ak_status encode_text(const struct ak_model *m, struct ak_text text,
                             struct akunu_embedding_text *how, struct ids *out,
                             struct ak_error *error)
{
    const struct ak_spec_pooling *pooling = &m->spec.pooling;
    size_t own = pooling->max_tokens > 0 ? pooling->max_tokens : SIZE_MAX,
           max = how->max_tokens > 0 ? how->max_tokens : own;
    struct ak_text prompt;
    struct ak_buffer whole = { 0 };
    AK_TRY(ak_spec_find_prompt(pooling, how->prompt_name, &prompt, error));
    ak_status status = join_texts(prompt, text, &whole, error);
    if (status == AKUNU_OK)
        status = encode_ids(m->tokenizer,
                            (struct ak_text){ (const char *)whole.bytes, (uint32_t)whole.n },
                            how->flags, out, error);
    ak_buffer_free(&whole);
    AK_TRY(status);
    how->n_whole = out->n;
    how->n_prompt = 0;
    cut(m->tokenizer, pooling->cuts_left, max, out);
    return prompt.n > 0 && pooling->leaves_prompt_out ?
               count_prompt(m->tokenizer, prompt, how->flags, max, &how->n_prompt, error) :
               AKUNU_OK;
}

static ak_status encode_embedding(const struct akunu_model *model, const char *text, size_t n_bytes,
                                  struct akunu_embedding_text *given, struct ids *out,
                                  struct ak_error *error)
{
    struct akunu_embedding_text how = { .size = 0 };
    const struct ak_model *m = model ? model->inner : NULL;
    AK_TRY(ak_api_copy_in(&how, sizeof how, given, "akunu_embedding_text", error));
    if (!m || (!text && n_bytes > 0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the model, or the text, is NULL");
    if (how.flags & ~(unsigned)AKUNU_PARSE_SPECIAL)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "flags are %u; expected AKUNU_PARSE_SPECIAL",
                       how.flags);
    if (n_bytes > INT32_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "a text has more than %d bytes", INT32_MAX);
    if (!m->tokenizer)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the model has no vocabulary");
    AK_TRY(encode_text(m, (struct ak_text){ text, (uint32_t)n_bytes }, &how, out, error));
    if (!given)
        return AKUNU_OK;
    how.size = given->size;
    return ak_api_copy_out(given, given->size, &how, sizeof how, "akunu_embedding_text", error);
}

int64_t akunu_model_encode_embedding(const struct akunu_model *model, const char *text,
                                     size_t n_bytes, struct akunu_embedding_text *how,
                                     akunu_token *ids, size_t capacity)
{
    struct ak_error error = { 0 };
    struct ids found = { 0 };
    encode_embedding(model, text, n_bytes, how, &found, &error);
    if (error.status == AKUNU_OK && found.values && ids)
        memcpy(ids, found.values, (found.n < capacity ? found.n : capacity) * sizeof *ids);
    ak_free(found.values);
    return ak_api_finish(&error) == AKUNU_OK ? (int64_t)found.n : -1;
}

uint32_t akunu_model_embedding_width(const struct akunu_model *model, enum akunu_pooling pooling)
{
    return model ? ak_spec_embedding_width(&model->inner->spec, pooling) : 0;
}
