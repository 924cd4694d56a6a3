/* POST /v1/rerank: scores of documents for a query, as Jina, Cohere and llama-server have it; also
 * in the form of text-embeddings-inference, which has `texts` and answers with a list. */
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "server/embedder.h"

/* What the request asks for. */
struct reranking {
    size_t n_top;
    bool is_tei;
    json_t *texts; /* to be returned; NULL: they are not */
};

/* ---- Answers ------------------------------------------------------------ */
struct ranked {
    float score;
    size_t index;
};

/* The best first; equal ones in their order. */
static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static json_t *result_of(const struct reranking *own, const struct ranked *r)
{
    json_t *text = json_array_get(own->texts, r->index);
    if (own->is_tei)
        return json_pack("{s:I, s:f, s:O*}", "index", (json_int_t)r->index, "score",
                         (double)r->score, "text", text);
    json_t *result =
        json_pack("{s:I, s:f}", "index", (json_int_t)r->index, "relevance_score", (double)r->score);
    if (text)
        json_object_set_new(result, "document", json_pack("{s:O}", "text", text));
    return result;
}

static void answer(struct server_encoding *e)
{
    struct reranking *own = e->own;
    struct ranked *order = calloc(e->n + 1, sizeof *order);
    json_t *results = json_array();
    for (size_t i = 0; order && i < e->n; i++)
        order[i] = (struct ranked){ e->rows[i * e->width], i };
    if (order)
        qsort(order, e->n, sizeof *order, compare);
    for (size_t i = 0; order && i < own->n_top; i++)
        json_array_append_new(results, result_of(own, &order[i]));
    free(order);
    if (json_array_size(results) != own->n_top) {
        json_decref(results);
        server_fail_memory(e->x);
    } else if (own->is_tei) {
        server_answer(e->x, 200, results);
    } else {
        server_answer(e->x, 200,
                      json_pack("{s:s, s:s, s:{s:I, s:I}, s:o}", "model", e->model->id, "object",
                                "list", "usage", "prompt_tokens", (json_int_t)e->n_tokens,
                                "total_tokens", (json_int_t)e->n_tokens, "results", results));
    }
}

static void release(void *self)
{
    struct reranking *own = self;
    json_decref(own->texts);
}

/* ---- The request -------------------------------------------------------- */
/* The text of a document: "…" or {"text": "…"}; NULL: it is neither. */
static const json_t *text_of(const json_t *document)
{
    const json_t *text = json_is_object(document) ? json_object_get(document, "text") : document;
    return json_is_string(text) ? text : NULL;
}

/* Adds a pair's tokens. False: it has answered. */
static bool add_pair(struct server_encoding *e, const json_t *query, const json_t *document)
{
    const struct akunu_model *model = e->model->loaded.model;
    const char *q = json_string_value(query), *d = json_string_value(document);
    size_t n_q = json_string_length(query), n_d = json_string_length(document), second = 0;
    size_t capacity = (n_q + n_d) / 2 + 256; /* enough for nearly all, else asked again */
    akunu_token *ids = NULL, *larger;
    int64_t n;
    server_unlock(e->model->server);
    for (;;) {
        larger = realloc(ids, capacity * sizeof *ids);
        n = larger ? akunu_model_encode_pair(model, q, n_q, d, n_d, larger, capacity, &second) : -1;
        ids = larger ? larger : ids;
        if (n < 0 || (size_t)n <= capacity)
            break;
        capacity = (size_t)n;
    }
    server_lock(e->model->server);
    if (n >= 0) {
        server_encoding_add(e, ids, (size_t)n, second);
        return true;
    }
    free(ids);
    if (larger)
        server_fail_library(e->x, "documents");
    else
        server_fail_memory(e->x);
    return false;
}

static bool read_options(struct http_exchange *x, const json_t *body, const json_t *documents,
                         struct reranking *own)
{
    int64_t n = (int64_t)json_array_size(documents), n_top = n;
    bool returns = false;
    if (!server_get_integer(x, body, "top_n", 1, INT32_MAX, &n_top) ||
        !server_get_bool(x, body, "return_documents", &returns) ||
        !server_get_bool(x, body, "return_text", &returns))
        return false;
    own->n_top = (size_t)(n_top < n ? n_top : n);
    own->texts = returns ? json_array() : NULL;
    for (size_t i = 0; returns && i < (size_t)n; i++)
        json_array_append(own->texts, (json_t *)(uintptr_t)text_of(json_array_get(documents, i)));
    return true;
}

/* Checks the documents; false: it has answered. */
static bool check(struct server_model *m, struct http_exchange *x, const json_t *query,
                  const char *name, const json_t *documents)
{
    enum { DOCUMENTS_MAX = 2048 };
    size_t n = json_array_size(documents);
    const json_t *wrong = n == 0 || n > DOCUMENTS_MAX ? documents : NULL;
    for (size_t i = 0; !wrong && i < n; i++)
        wrong = text_of(json_array_get(documents, i)) ? NULL : json_array_get(documents, i);
    if (m->loaded.info.ranks == 0)
        server_fail(x, 400, "model", NULL,
                    "%s is no reranker: it has no head for scores of a query and a document",
                    m->id);
    else if (!json_is_string(query))
        server_fail_member(x, "query", query, "a text");
    else if (wrong || n == 0)
        server_fail_member(x, name, wrong, "a list of 1 to 2048 texts");
    return http_code(x) == 0;
}

void server_rerank(struct server_model *m, struct http_exchange *x, const json_t *body)
{
    const json_t *query = json_object_get(body, "query"), *texts = json_object_get(body, "texts"),
                 *documents = json_object_get(body, "documents");
    bool is_tei = texts && !documents;
    if (texts && documents) {
        server_fail(x, 400, "texts", NULL, "documents and texts: only one of them can be given");
        return;
    }
    if (!check(m, x, query, is_tei ? "texts" : "documents", is_tei ? texts : documents))
        return;
    documents = is_tei ? texts : documents;
    struct reranking *own = calloc(1, sizeof *own);
    struct server_encoding *e =
        own ? server_encoding_new(m, x, json_array_size(documents), m->loaded.info.ranks, own) :
              NULL;
    if (!own)
        server_fail_memory(x);
    if (!e)
        return;
    own->is_tei = is_tei;
    e->ranks = e->is_list = true;
    e->name = is_tei ? "texts" : "documents";
    e->answer = answer;
    e->release = release;
    bool good = read_options(x, body, documents, own);
    for (size_t i = 0; good && i < json_array_size(documents); i++)
        good = add_pair(e, query, text_of(json_array_get(documents, i)));
    if (good)
        server_encoding_submit(e);
    else
        server_encoding_free(e);
}
