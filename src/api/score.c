/* Pairs of texts as tokens, and their scores. */
#include <string.h>

#include "akunu/akunu.h"
#include "api/handles.h"
#include "base/mem.h"

/* ---- Tokens ------------------------------------------------------------- */
/* What Qwen3's rerankers were trained with, as their model cards have it. */
static const char qwen3_form[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
    "answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n";

struct texts {
    struct ak_text query, document;
};

/* The form of a language model's pairs, with {query} and {document}: llama.cpp's key, or Qwen3's.
 */
static ak_status find_form(const struct ak_model *m, struct ak_text *out, struct ak_error *error)
{
    const struct ak_text *architecture = &m->spec.config.architecture;
    AK_TRY(ak_meta_text(m->provider, "tokenizer.chat_template.rerank", out, error));
    if (out->n > 0)
        return AKUNU_OK;
    if (architecture->n < 5 || memcmp(architecture->bytes, "qwen3", 5) != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the file does not say how a query and a document become a prompt "
                       "(tokenizer.chat_template.rerank)");
    *out = (struct ak_text){ qwen3_form, sizeof qwen3_form - 1 };
    return AKUNU_OK;
}

static bool begins_with(struct ak_text text, uint32_t at, const char *name)
{
    size_t n = strlen(name);
    return text.n - at >= n && memcmp(text.bytes + at, name, n) == 0;
}

/* Fills the form in. Free out->bytes. */
static ak_status fill_form(struct ak_text form, const struct texts *t, struct ak_buffer *out,
                           struct ak_error *error)
{
    for (uint32_t i = 0; i < form.n;) {
        bool query = begins_with(form, i, "{query}"), document = begins_with(form, i, "{document}");
        struct ak_text part = query    ? t->query :
                              document ? t->document :
                                         (struct ak_text){ form.bytes + i, 1 };
        AK_TRY(ak_buffer_add(out, part.bytes, part.n, error));
        i += (uint32_t)(query ? sizeof "{query}" - 1 : document ? sizeof "{document}" - 1 : 1);
    }
    return AKUNU_OK;
}

/* Ids that grow. */
struct ids {
    int32_t *values;
    size_t n;
};

static ak_status append_encoded(const struct ak_model *m, struct ak_text text, unsigned flags,
                                struct ids *out, struct ak_error *error)
{
    size_t n = 0;
    AK_TRY(ak_tok_encode(m->tokenizer, text.bytes, text.n, flags, NULL, 0, &n, error));
    int32_t *larger = ak_realloc(out->values, out->n + n + 1, sizeof *larger);
    if (!larger)
        return ak_fail_memory(error, "token ids", (out->n + n) * sizeof *larger);
    out->values = larger;
    AK_TRY(ak_tok_encode(m->tokenizer, text.bytes, text.n, flags, larger + out->n, n, &n, error));
    out->n += n;
    return AKUNU_OK;
}

/* BERT joins "[CLS] query [SEP]" and "document [SEP]". RoBERTa, which has one type of tokens, puts
 * another separator between them. */
static ak_status encode_joined(const struct ak_model *m, const struct texts *t, struct ids *out,
                               size_t *second, struct ak_error *error)
{
    AK_TRY(append_encoded(m, t->query, AKUNU_ADD_SPECIAL, out, error));
    if (m->spec.config.n_types == 1 && out->n > 0) {
        out->values[out->n] = out->values[out->n - 1]; /* add_text leaves room for one */
        out->n++;
    }
    size_t first = out->n;
    *second = first;
    AK_TRY(append_encoded(m, t->document, AKUNU_ADD_SPECIAL, out, error));
    if (out->n == first)
        return AKUNU_OK;
    memmove(out->values + first, out->values + first + 1,
            (out->n - first - 1) * sizeof *out->values);
    out->n--; /* the document's [CLS] */
    return AKUNU_OK;
}

static ak_status encode_form(const struct ak_model *m, const struct texts *t, struct ids *out,
                             size_t *second, struct ak_error *error)
{
    struct ak_text form;
    struct ak_buffer prompt = { 0 };
    AK_TRY(find_form(m, &form, error));
    ak_status status = fill_form(form, t, &prompt, error);
    if (status == AKUNU_OK)
        status =
            append_encoded(m, (struct ak_text){ (const char *)prompt.bytes, (uint32_t)prompt.n },
                           AKUNU_PARSE_SPECIAL, out, error);
    ak_free(prompt.bytes);
    *second = out->n;
    return status;
}

static ak_status encode_texts(const struct akunu_model *model, const struct texts *t,
                              struct ids *out, size_t *second, struct ak_error *error)
{
    const struct ak_model *m = model ? model->inner : NULL;
    if (!m || (!t->query.bytes && t->query.n) || (!t->document.bytes && t->document.n))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the model, or a text, is NULL");
    if (!m->tokenizer)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the model has no vocabulary");
    return m->spec.descriptor.encoder ? encode_joined(m, t, out, second, error) :
                                        encode_form(m, t, out, second, error);
}

void akunu_pair_text_default(struct akunu_pair_text *text, size_t size)
{
    static const struct akunu_pair_text full = { .size = 0 };
    ak_api_give_default(text, size, &full, sizeof full);
}

static ak_status encode_pair(const struct akunu_model *model, struct akunu_pair_text *given,
                             struct ids *out, struct ak_error *error)
{
    struct akunu_pair_text text = { .size = 0 };
    if (!given)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the pair is NULL");
    AK_TRY(ak_api_copy_in(&text, sizeof text, given, "akunu_pair_text", error));
    if (text.n_query_bytes > INT32_MAX / 2 || text.n_document_bytes > INT32_MAX / 2)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "a text has more than %d bytes", INT32_MAX / 2);
    const struct texts texts = { { text.query, (uint32_t)text.n_query_bytes },
                                 { text.document, (uint32_t)text.n_document_bytes } };
    AK_TRY(encode_texts(model, &texts, out, &text.second, error));
    text.size = given->size;
    return ak_api_copy_out(given, given->size, &text, sizeof text, "akunu_pair_text", error);
}

int64_t akunu_model_encode_pair(const struct akunu_model *model, struct akunu_pair_text *text,
                                akunu_token *ids, size_t capacity)
{
    struct ak_error error = { 0 };
    struct ids found = { 0 };
    encode_pair(model, text, &found, &error);
    if (error.status == AKUNU_OK && found.values && ids)
        memcpy(ids, found.values, (found.n < capacity ? found.n : capacity) * sizeof *ids);
    ak_free(found.values);
    return ak_api_finish(&error) == AKUNU_OK ? (int64_t)found.n : -1;
}

/* ---- Scores ------------------------------------------------------------- */
enum akunu_status akunu_session_score(struct akunu_session *session, const struct akunu_pair *pairs,
                                      size_t n, akunu_cancel_fn *cancel, void *user, float *out)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && n > 0 && (!pairs || !out))
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the pairs, or where the scores go, are NULL");
    else if (s)
        ak_session_score(s, pairs, n, cancel, user, out, &error);
    return ak_api_end(session, s, &error);
}
