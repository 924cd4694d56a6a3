/* Compares the draft with the source on a text: both run its chunks side by side, and after each
 * the predictions of its second half are compared. Keys and values are floats, so that nothing but
 * the weights makes a difference. */
#include <stdio.h>
#include <string.h>

#include "conversion/allocate/allocate.h"
#include "base/mem.h"
#include "conversion/compress/compress.h"
#include "engine/session/session.h"

enum { CHUNK = 512, MAX_CHUNKS = 8, MIN_TOKENS = 64 };

/* Limits of an encoding unless the caller has others; below 0: none. bench/notes/quantizers.md,
 * "Quantizers", has the measurement. */
static const struct {
    double divergence, agreement;
} limits[] = {
    [AK_COMPRESS_INT8] = { -1.0, -1.0 },
    [AK_COMPRESS_INT4] = { -1.0, -1.0 },
    [AK_COMPRESS_INT3] = { 0.25, 0.75 },
};

/* One of the two models. */
struct runner {
    struct ak_model *model;
    int32_t sequence; /* of the last chunk; −1: none */
    struct ak_session *session;
    struct ak_provider *provider; /* NULL: the model has it */
};

struct comparison {
    struct ak_compress_job *j;
    struct runner source, draft;
    int32_t *ids;
    size_t n_ids;
    uint32_t chunk, n_vocab;
    struct akunu_batch_token tokens[CHUNK];
    uint32_t n, first; /* tokens of the chunk, the first one that is compared */
    double divergences[CHUNK];
    bool agree[CHUNK];
};

/* ---- Running ------------------------------------------------------------ */
/* Takes the provider, on failure too. */
static ak_status open_runner(const struct comparison *c, struct runner *r)
{
    const struct akunu_load_params load = { .size = sizeof load,
                                            .n_threads = c->j->options->n_threads,
                                            .no_cache = true };
    const struct akunu_session_params params = { .size = sizeof params,
                                                 .max_sequences = 1,
                                                 .n_threads = c->j->options->n_threads,
                                                 .context = c->chunk,
                                                 .batch = c->chunk,
                                                 .k_type = AKUNU_KV_F32,
                                                 .v_type = AKUNU_KV_F32 };
    const struct ak_model_source source = { .provider = r->provider, .params = &load };
    r->provider = NULL;
    r->sequence = -1;
    AK_TRY(ak_model_load(&source, &r->model, c->j->error));
    AK_TRY(ak_session_create(r->model, &params, &r->session, c->j->error));
    return ak_session_needs_logits(r->session, c->j->error);
}

static void close_runner(struct runner *r)
{
    ak_session_free(r->session);
    ak_model_free(r->model);
    ak_provider_close(r->provider);
}

static ak_status run_chunk(struct comparison *c, struct runner *r, const int32_t *ids)
{
    if (r->sequence >= 0)
        ak_session_kv_sequence_free(&r->session->kv, r->sequence);
    AK_TRY(ak_session_sequence_new(r->session, &r->sequence, c->j->error));
    for (uint32_t i = 0; i < c->n; i++)
        c->tokens[i] = (struct akunu_batch_token){ .token = ids[i],
                                                   .sequence = r->sequence,
                                                   .logits = i >= c->first };
    return ak_session_decode(r->session, c->tokens, c->n, c->j->error);
}

static uint32_t find_best(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static void compare_rows(void *user, unsigned thread)
{
    struct comparison *c = user;
    for (uint32_t i = c->first + thread; i < c->n; i += ak_pool_threads(c->j->pool)) {
        const float *x = ak_session_logits(c->source.session, i),
                    *y = ak_session_logits(c->draft.session, i);
        c->divergences[i] = ak_allocate_diverge(x, y, c->n_vocab);
        c->agree[i] = find_best(x, c->n_vocab) == find_best(y, c->n_vocab);
    }
}

/* ---- The text ----------------------------------------------------------- */
static ak_status tokenize(struct comparison *c)
{
    const struct ak_compress_options *o = c->j->options;
    const struct ak_model *model = c->source.model;
    if (!model->tokenizer)
        return ak_provider_fail_vocab(c->j->source, c->j->error);
    c->ids = ak_alloc(o->n_text + 2, sizeof *c->ids);
    if (!c->ids)
        return ak_fail_memory(c->j->error, "the text", o->n_text * sizeof *c->ids);
    AK_TRY(ak_tok_encode(model->tokenizer, o->text, o->n_text, AKUNU_ADD_SPECIAL, c->ids,
                         o->n_text + 2, &c->n_ids, c->j->error));
    if (c->n_ids < MIN_TOKENS)
        return ak_fail(c->j->error, AKUNU_ERROR_ARGUMENT,
                       "the text has %zu tokens; expected %d or more, best of all %d", c->n_ids,
                       MIN_TOKENS, CHUNK * MAX_CHUNKS);
    c->n_vocab = model->spec.config.vocab_size;
    return AKUNU_OK;
}

/* A chunk that begins anew, as those of perplexity do. */
static ak_status compare_chunk(struct comparison *c, const int32_t *ids, size_t n)
{
    struct ak_compress_result *result = c->j->result;
    c->n = n < c->chunk ? (uint32_t)n : c->chunk;
    c->first = c->n / 2;
    AK_TRY(run_chunk(c, &c->source, ids));
    AK_TRY(run_chunk(c, &c->draft, ids));
    ak_pool_run(c->j->pool, compare_rows, c);
    for (uint32_t i = c->first; i < c->n; i++) {
        result->divergence += c->divergences[i];
        result->agreement += c->agree[i];
        result->n_positions++;
    }
    return AKUNU_OK;
}

static ak_status compare_text(struct comparison *c)
{
    size_t n_chunks = c->n_ids / c->chunk;
    n_chunks = n_chunks < 1 ? 1 : n_chunks > MAX_CHUNKS ? MAX_CHUNKS : n_chunks;
    for (size_t i = 0; i < n_chunks; i++) {
        AK_TRY(compare_chunk(c, c->ids + i * c->chunk, c->n_ids - i * c->chunk));
        AK_TRY(ak_compress_advance(c->j, c->j->all / (double)n_chunks));
    }
    c->j->result->divergence /= (double)c->j->result->n_positions;
    c->j->result->agreement /= (double)c->j->result->n_positions;
    c->j->result->is_measured = true;
    return AKUNU_OK;
}

static ak_status check_limits(const struct ak_compress_job *j)
{
    const struct ak_compress_options *o = j->options;
    const struct ak_compress_result *r = j->result;
    double divergence =
               o->max_divergence >= 0.0 ? o->max_divergence : limits[o->encoding].divergence,
           agreement = o->min_agreement >= 0.0 ? o->min_agreement : limits[o->encoding].agreement;
    if ((divergence < 0.0 || r->divergence <= divergence) && r->agreement >= agreement)
        return AKUNU_OK;
    char most[32] = "no limit", least[32] = "no limit";
    if (divergence >= 0.0)
        snprintf(most, sizeof most, "at most %.4g", divergence);
    if (agreement >= 0.0)
        snprintf(least, sizeof least, "at least %.4g %%", 100.0 * agreement);
    return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                   "%s loses too much: KL divergence %.4f (%s), equal best tokens %.1f %% (%s); "
                   "without a manifest the folder is no model",
                   ak_compress_encodings[o->encoding].name, r->divergence, most,
                   100.0 * r->agreement, least);
}

static ak_status measure_divergence(struct comparison *c)
{
    AK_TRY(ak_provider_replace(c->j->source, NULL, NULL, &c->source.provider, c->j->error));
    AK_TRY(open_runner(c, &c->source));
    AK_TRY(tokenize(c));
    AK_TRY(ak_compress_open_draft(c->j, &c->draft.provider));
    AK_TRY(open_runner(c, &c->draft));
    return compare_text(c);
}

ak_status ak_compress_measure(struct ak_compress_job *j)
{
    struct comparison *c = ak_alloc(1, sizeof *c);
    if (!c)
        return ak_fail_memory(j->error, "a comparison", sizeof *c);
    c->j = j;
    c->chunk = j->spec.config.context < CHUNK ? j->spec.config.context : CHUNK;
    ak_status status = measure_divergence(c);
    close_runner(&c->source);
    close_runner(&c->draft);
    ak_free(c->ids);
    ak_free(c);
    return status == AKUNU_OK ? check_limits(j) : status;
}
