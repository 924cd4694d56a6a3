/* POST /v1/rerank: scores of documents for a query, as Jina, Cohere and llama-server have it; also
 * in the form of text-embeddings-inference (TEI), which has `texts` and answers with a list. The
 * first form has the scores of the model's head, TEI's has them between 0 and 1 unless `raw_scores`
 * is set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/common/json_text.h"
#include "apps/common/output.h"
#include "apps/server/embedder.h"

/* What the request asks for. */
struct reranking {
    size_t n_top;
    bool is_tei, is_logistic; /* is_logistic: scores are mapped to 0 … 1 */
    bool truncates, from_left;
    json_t *texts; /* to be returned; NULL: they are not */
};

/* ---- Answers ------------------------------------------------------------ */
struct scored {
    float score;
    size_t index;
};

/* The best first; equal ones in their order. */
static int compare_scores(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static json_t *result_of(const struct reranking *own, const struct scored *r)
{
    json_t *text = json_array_get(own->texts, r->index);
    double score = (double)r->score;
    if (own->is_logistic)
        score = 1.0 / (1.0 + exp(-score));
    if (own->is_tei)
        return json_pack("{s:I, s:f, s:O*}", "index", (json_int_t)r->index, "score", score, "text",
                         text);
    json_t *result =
        json_pack("{s:I, s:f}", "index", (json_int_t)r->index, "relevance_score", (double)r->score);
    if (text)
        json_object_set_new(result, "document", json_pack("{s:O}", "text", text));
    return result;
}

static void rerank_answer(struct server_encoding *e)
{
    struct reranking *own = e->own;
    struct scored *order = calloc(e->n + 1, sizeof *order);
    json_t *results = json_array();
    for (size_t i = 0; order && i < e->n; i++)
        order[i] = (struct scored){ e->rows[i * e->width], i };
    if (order)
        qsort(order, e->n, sizeof *order, compare_scores);
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

static void rerank_release(void *self)
{
    struct reranking *own = self;
    json_decref(own->texts);
}

/* ---- The request -------------------------------------------------------- */
/* The text of a document: "…" or {"text": "…"}; NULL: it is neither. */
static const json_t *document_text(const json_t *document)
{
    const json_t *text =
        app_json_is_object(document) ? json_object_get(document, "text") : document;
    return json_is_string(text) ? text : NULL;
}

/* Tokens of a pair. */
struct pair {
    akunu_token *ids;
    size_t n, second;
};

/* Keeps n of the tokens at [at, at + n_all). */
static void cut(struct pair *p, size_t at, size_t n_all, size_t n, bool from_left)
{
    size_t n_cut = n_all - n, gap = from_left ? at : at + n;
    memmove(p->ids + gap, p->ids + gap + n_cut, (p->n - gap - n_cut) * sizeof *p->ids);
    p->n -= n_cut;
    if (at < p->second)
        p->second -= n_cut;
}

/* Cuts the longer text of a pair to `max` tokens, then both: LongestFirst of Hugging Face's
 * tokenizers, as TEI has it. `empty`: the pair of two empty texts, all of whose tokens are added.
 */
static void truncate_pair(struct pair *p, const struct pair *empty, size_t max, bool from_left)
{
    size_t n_query = p->second - empty->second,
           n_document = (p->n - p->second) - (empty->n - empty->second),
           room = max > empty->n ? max - empty->n : 0;
    size_t n_short = n_query < n_document ? n_query : n_document,
           n_long = room > n_short && room - n_short > n_short ? room - n_short : n_short;
    if (n_query + n_document <= room)
        return;
    if (n_short + n_long > room) {
        n_short = room / 2;
        n_long = room - n_short;
    }
    cut(p, p->second, n_document, n_query <= n_document ? n_long : n_short, from_left);
    cut(p, empty->second > 0, n_query, n_query <= n_document ? n_short : n_long, from_left);
}

/* Encodes a pair. False: out of memory, or the library has the message. */
static bool encode_pair(const struct akunu_model *model, const json_t *query,
                        const json_t *document, struct pair *out, bool *has_memory)
{
    struct akunu_pair_text text;
    akunu_pair_text_default(&text, sizeof text);
    text.query = query ? json_string_value(query) : "";
    text.document = document ? json_string_value(document) : "";
    text.n_query_bytes = json_string_length(query);
    text.n_document_bytes = json_string_length(document);
    /* enough for nearly all, else asked again */
    size_t capacity = (text.n_query_bytes + text.n_document_bytes) / 2 + 256;
    int64_t n;
    *out = (struct pair){ .ids = NULL };
    for (;;) {
        akunu_token *larger = realloc(out->ids, capacity * sizeof *larger);
        *has_memory = larger != NULL;
        out->ids = larger ? larger : out->ids;
        n = larger ? akunu_model_encode_pair(model, &text, larger, capacity) : -1;
        if (n < 0 || (size_t)n <= capacity)
            break;
        capacity = (size_t)n;
    }
    out->n = n > 0 ? (size_t)n : 0;
    out->second = text.second;
    return n >= 0;
}

/* Adds a pair's tokens. False: it has answered. */
static bool add_pair(struct server_encoding *e, const json_t *query, const json_t *document)
{
    const struct reranking *own = e->own;
    const struct akunu_model *model = e->model->loaded.model;
    struct pair pair, empty = { .ids = NULL };
    size_t max = server_embedder_max_tokens(e->model);
    bool has_memory;
    bool good = encode_pair(model, query, document, &pair, &has_memory);
    if (good && own->truncates && pair.n > max) {
        good = encode_pair(model, NULL, NULL, &empty, &has_memory);
        if (good)
            truncate_pair(&pair, &empty, max, own->from_left);
        free(empty.ids);
    }
    if (good) {
        server_encoding_add(e, pair.ids, pair.n, pair.second);
        return true;
    }
    free(pair.ids);
    if (has_memory)
        server_fail_library(e->x, own->is_tei ? "texts" : "documents");
    else
        server_fail_memory(e->x);
    return false;
}

/* What TEI's form has besides. False: it has answered. */
static bool read_tei(struct server_model *m, struct http_exchange *x, const json_t *body,
                     struct reranking *own)
{
    const struct akunu_model_info *info = &m->loaded.info;
    const json_t *direction = json_object_get(body, "truncation_direction");
    const char *name = json_is_string(direction) ? json_string_value(direction) : "";
    /* of GGUF's language models the head gives the probabilities of "yes" and "no" */
    bool is_probability =
        !info->encoder && info->n_scores == 2 && strcmp(info->format, "gguf") == 0;
    bool raw = false;
    if (!server_get_bool(x, body, "raw_scores", &raw) ||
        !server_get_bool(x, body, "truncate", &own->truncates))
        return false;
    own->from_left = strcasecmp(name, "left") == 0;
    if (direction && !json_is_null(direction) && !own->from_left && strcasecmp(name, "right") != 0)
        server_fail_member(x, "truncation_direction", direction, "left or right");
    else if (info->n_scores > 1 && !is_probability)
        server_fail(x, 400, "model", NULL,
                    "the head of %s has %u labels; expected one, which is the score", m->id,
                    (unsigned)info->n_scores);
    else if (is_probability && raw)
        server_fail(x, 400, "raw_scores", NULL,
                    "raw_scores: the head of %s gives probabilities; leave raw_scores out", m->id);
    else if (own->truncates && !info->encoder)
        server_fail(
            x, 400, "truncate", NULL,
            "truncate: %s reads a pair as a prompt, which cannot be cut; leave truncate out, "
            "and shorten the texts",
            m->id);
    own->is_logistic = !raw && !is_probability;
    return http_code(x) == 0;
}

static bool read_reranking(struct http_exchange *x, const json_t *body, const json_t *documents,
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
        json_array_append(own->texts,
                          (json_t *)(uintptr_t)document_text(json_array_get(documents, i)));
    return true;
}

/* Checks the documents; false: it has answered. */
static bool check_documents(struct server_model *m, struct http_exchange *x, const json_t *query,
                            const char *name, const json_t *documents)
{
    enum { DOCUMENTS_MAX = 2048 };
    size_t n = json_array_size(documents);
    const json_t *wrong = n == 0 || n > DOCUMENTS_MAX ? documents : NULL;
    for (size_t i = 0; !wrong && i < n; i++)
        wrong = document_text(json_array_get(documents, i)) ? NULL : json_array_get(documents, i);
    if (m->loaded.info.n_scores == 0)
        server_fail(x, 400, "model", NULL,
                    "%s is no reranker: it has no head for scores of a query and a document",
                    m->id);
    else if (!json_is_string(query))
        server_fail_member(x, "query", query, "a text");
    else if (wrong || n == 0)
        server_fail_member(x, name, wrong, "a list of 1 to 2048 texts");
    return http_code(x) == 0;
}

struct server_commit server_rerank(struct server_model *m, struct http_exchange *x,
                                   const json_t *body)
{
    const json_t *query = json_object_get(body, "query"), *texts = json_object_get(body, "texts"),
                 *documents = json_object_get(body, "documents");
    bool is_tei = texts && !documents;
    if (texts && documents) {
        server_fail(x, 400, "texts", NULL, "documents and texts: only one of them can be given");
        return server_answered;
    }
    if (!check_documents(m, x, query, is_tei ? "texts" : "documents", is_tei ? texts : documents))
        return server_answered;
    documents = is_tei ? texts : documents;
    struct reranking *own = calloc(1, sizeof *own);
    struct server_encoding *e =
        own ? server_encoding_new(m, x, json_array_size(documents), m->loaded.info.n_scores, own) :
              NULL;
    if (!own)
        server_fail_memory(x);
    if (!e)
        return server_answered;
    own->is_tei = is_tei;
    e->scores = e->is_list = true;
    e->name = is_tei ? "texts" : "documents";
    e->answer = rerank_answer;
    e->release = rerank_release;
    bool good = read_reranking(x, body, documents, own) && (!is_tei || read_tei(m, x, body, own));
    for (size_t i = 0; good && i < json_array_size(documents); i++)
        good = add_pair(e, query, document_text(json_array_get(documents, i)));
    if (good)
        return server_encoding_commit(e);
    server_encoding_free(e);
    return server_answered;
}
