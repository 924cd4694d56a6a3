/* Runs of a model of which one tensor is changed, and the KL divergence of its predictions from
 * those of the source. Keys, values and activations are floats, so that nothing but the tensor
 * makes a difference. */
#include <string.h>

#include "conversion/allocate/allocate.h"
#include "base/math.h"
#include "base/mem.h"
#include "engine/session/session.h"

enum {
    CONTEXT = 512, /* tokens of the text that are run */
    SCORED = 256,  /* the last ones, whose predictions are compared */
    LEAST = 64
};

struct ak_allocate_runs {
    const struct ak_convert_plan *plan;
    struct akunu_load_params load;
    struct akunu_session_params session;
    int32_t *ids;
    struct akunu_batch_token tokens[CONTEXT];
    uint32_t n, first; /* tokens, the first one that is scored */
    uint32_t n_vocab;
    float *logits; /* of the source, [n - first][n_vocab] */
    double *sums;  /* ln of the sum of e^logit */
};

/* ---- Divergence --------------------------------------------------------- */
static float find_max(const float *x, uint32_t n)
{
    float max = x[0];
    for (uint32_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    return max;
}

static double log_sum(const float *x, uint32_t n)
{
    float max = find_max(x, n);
    return ak_log_sum_exp(x, n, max) + (double)max;
}

/* Σ p (ln p − ln q), of the logits x and y. In blocks, which compilers vectorize. */
static double diverge(const float *x, double x_sum, const float *y, double y_sum, uint32_t n)
{
    enum { BLOCK = 256 };
    float weights[BLOCK];
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i += BLOCK) {
        uint32_t n_block = n - i < BLOCK ? n - i : BLOCK;
        for (uint32_t j = 0; j < n_block; j++) {
            float log_p = (float)((double)x[i + j] - x_sum);
            weights[j] = ak_expf_unfused(log_p < 0.0f ? log_p : 0.0f);
        }
        for (uint32_t j = 0; j < n_block; j++)
            sum += (double)weights[j] * ((double)x[i + j] - (double)y[i + j]);
    }
    return sum - x_sum + y_sum;
}

double ak_allocate_diverge(const float *x, const float *y, uint32_t n)
{
    return diverge(x, log_sum(x, n), y, log_sum(y, n), n);
}

struct comparison {
    const struct ak_allocate_runs *runs;
    const struct ak_session *session;
    double *divergences; /* by scored token */
};

static void compare_logits(void *user, unsigned thread)
{
    const struct comparison *c = user;
    const struct ak_allocate_runs *r = c->runs;
    for (uint32_t i = thread; i < r->n - r->first; i += ak_pool_threads(r->plan->pool)) {
        const float *x = r->logits + (size_t)i * r->n_vocab;
        const float *y = ak_session_logits(c->session, r->first + i);
        c->divergences[i] = diverge(x, r->sums[i], y, log_sum(y, r->n_vocab), r->n_vocab);
    }
}

/* ---- Runs --------------------------------------------------------------- */
/* A model in which tensor `name` has these values; NULL: the source. */
static ak_status load_probe(const struct ak_allocate_runs *r, const char *name, const float *values,
                            struct ak_model **model, struct ak_error *error)
{
    struct ak_model_source source = { .params = &r->load };
    AK_TRY(ak_provider_replace(r->plan->source, name, values, &source.provider, error));
    return ak_model_load(&source, model, error);
}

static ak_status run_text(struct ak_allocate_runs *r, struct ak_model *model,
                          struct ak_session **session, struct ak_error *error)
{
    int32_t sequence;
    AK_TRY(ak_session_create(model, &r->session, session, error));
    AK_TRY(ak_session_needs_logits(*session, error));
    AK_TRY(ak_session_sequence_new(*session, &sequence, error));
    for (uint32_t i = 0; i < r->n; i++)
        r->tokens[i] = (struct akunu_batch_token){ .token = r->ids[i],
                                                   .sequence = sequence,
                                                   .logits = i >= r->first };
    return ak_session_decode(*session, r->tokens, r->n, error);
}

ak_status ak_allocate_run(struct ak_allocate_runs *r, const char *name, const float *values,
                          double *divergence, struct ak_error *error)
{
    struct ak_model *model = NULL;
    struct ak_session *session = NULL;
    double divergences[SCORED] = { 0.0 };
    ak_status status = load_probe(r, name, values, &model, error);
    if (status == AKUNU_OK)
        status = run_text(r, model, &session, error);
    if (status == AKUNU_OK) {
        struct comparison c = { r, session, divergences };
        ak_pool_run(r->plan->pool, compare_logits, &c);
    }
    *divergence = 0.0;
    for (uint32_t i = 0; i < r->n - r->first; i++)
        *divergence += divergences[i] / (double)(r->n - r->first);
    ak_session_free(session);
    ak_model_free(model);
    return status;
}

/* ---- The source --------------------------------------------------------- */
static ak_status tokenize(struct ak_allocate_runs *r, const struct ak_model *model,
                          const struct ak_allocate_size *size, struct ak_error *error)
{
    size_t n = 0;
    if (!model->tokenizer)
        return ak_provider_fail_vocab(model->provider, error);
    r->n_vocab = model->spec.config.vocab_size;
    r->ids = ak_alloc(size->n_text + 2, sizeof *r->ids);
    if (!r->ids)
        return ak_fail_memory(error, "the calibration text", size->n_text * sizeof *r->ids);
    AK_TRY(ak_tok_encode(model->tokenizer, size->text, size->n_text, AKUNU_ADD_SPECIAL, r->ids,
                         size->n_text + 2, &n, error));
    if (n < LEAST)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the calibration text has %zu tokens; expected %d or more, best of all %d",
                       n, LEAST, CONTEXT);
    uint32_t most = model->spec.config.context < CONTEXT ? model->spec.config.context : CONTEXT;
    r->n = n < most ? (uint32_t)n : most;
    r->first = r->n - (r->n > SCORED ? SCORED : r->n / 2);
    r->session.context = r->session.batch = r->n;
    return AKUNU_OK;
}

static ak_status keep_logits(struct ak_allocate_runs *r, const struct ak_session *session,
                             struct ak_error *error)
{
    uint32_t n = r->n - r->first;
    r->logits = ak_alloc((size_t)n * r->n_vocab, sizeof *r->logits);
    r->sums = ak_alloc(n, sizeof *r->sums);
    if (!r->logits || !r->sums)
        return ak_fail_memory(error, "logits", (uint64_t)n * r->n_vocab * sizeof *r->logits);
    for (uint32_t i = 0; i < n; i++) {
        float *row = r->logits + (size_t)i * r->n_vocab;
        memcpy(row, ak_session_logits(session, r->first + i), r->n_vocab * sizeof *row);
        r->sums[i] = log_sum(row, r->n_vocab);
    }
    return AKUNU_OK;
}

static ak_status run_source(struct ak_allocate_runs *r, const struct ak_allocate_size *size,
                            struct ak_error *error)
{
    struct ak_model *model = NULL;
    struct ak_session *session = NULL;
    ak_status status = load_probe(r, NULL, NULL, &model, error);
    if (status == AKUNU_OK)
        status = tokenize(r, model, size, error);
    if (status == AKUNU_OK)
        status = run_text(r, model, &session, error);
    if (status == AKUNU_OK)
        status = keep_logits(r, session, error);
    ak_session_free(session);
    ak_model_free(model);
    return status;
}

ak_status ak_allocate_open_runs(const struct ak_convert_plan *plan,
                                const struct ak_allocate_size *size,
                                const struct ak_convert_options *options,
                                struct ak_allocate_runs **out, struct ak_error *error)
{
    struct ak_allocate_runs *r = ak_alloc(1, sizeof *r);
    *out = r;
    if (!r)
        return ak_fail_memory(error, "runs of a model", sizeof *r);
    r->plan = plan;
    r->load = (struct akunu_load_params){
        .size = sizeof r->load, .n_gpu_layers = 0, .n_threads = options->n_threads, .no_cache = true
    };
    r->session = (struct akunu_session_params){ .size = sizeof r->session,
                                                .max_sequences = 1,
                                                .n_threads = options->n_threads,
                                                .k_type = AKUNU_KV_F32,
                                                .v_type = AKUNU_KV_F32 };
    return run_source(r, size, error);
}

void ak_allocate_close_runs(struct ak_allocate_runs *r)
{
    if (!r)
        return;
    ak_free(r->ids);
    ak_free(r->logits);
    ak_free(r->sums);
    ak_free(r);
}
