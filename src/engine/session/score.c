/* Scores of pairs of texts: the head of engine/spec/head.c over pooled hidden states. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "engine/session/session.h"

/* ---- Weights ------------------------------------------------------------ */
static ak_status take_piece(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                            const float *values, void *user)
{
    (void)tensor;
    memcpy((float *)user + first, values, (size_t)n * sizeof *values);
    return AKUNU_OK;
}

/* The tensor's n elements as floats; *out stays NULL if there is none. */
static ak_status read_floats(const struct ak_provider *p, int64_t index, size_t n, float **out,
                             struct ak_error *error)
{
    struct ak_tensor tensor;
    if (index < 0)
        return AKUNU_OK;
    *out = ak_alloc(n, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "the head of the model", n * sizeof **out);
    ak_provider_tensor(p, (size_t)index, &tensor);
    return ak_tensor_stream(&tensor, take_piece, *out, error);
}

ak_status ak_session_head_read(const struct ak_provider *p, const struct ak_spec *spec,
                               struct ak_session_head *out, struct ak_error *error)
{
    const struct ak_spec_head *h = &spec->head;
    size_t width = spec->config.width, n = h->dense >= 0 ? h->n_dense : width;
    *out = (struct ak_session_head){ .dense = NULL };
    if (h->n_labels == 0)
        return AKUNU_OK;
    AK_TRY(read_floats(p, h->dense, h->n_dense * width, &out->dense, error));
    AK_TRY(read_floats(p, h->dense_bias, h->n_dense, &out->dense_bias, error));
    AK_TRY(read_floats(p, h->out, h->n_labels * n, &out->out, error));
    return read_floats(p, h->out_bias, h->n_labels, &out->out_bias, error);
}

void ak_session_head_clear(struct ak_session_head *head)
{
    ak_free(head->dense);
    ak_free(head->dense_bias);
    ak_free(head->out);
    ak_free(head->out_bias);
    *head = (struct ak_session_head){ .dense = NULL };
}

/* ---- Scores ------------------------------------------------------------- */
/* y = matrix [n, k] · x + bias, the sums in order and in doubles. */
static void multiply(const float *matrix, const float *bias, uint32_t n, uint32_t k, const float *x,
                     float *y)
{
    for (uint32_t i = 0; i < n; i++) {
        double sum = bias ? (double)bias[i] : 0.0;
        for (uint32_t j = 0; j < k; j++)
            sum += (double)matrix[(size_t)i * k + j] * (double)x[j];
        y[i] = (float)sum;
    }
}

static void apply_softmax(float *x, uint32_t n)
{
    float max = x[0];
    double sum = 0.0;
    for (uint32_t i = 1; i < n; i++)
        if (x[i] > max)
            max = x[i];
    for (uint32_t i = 0; i < n; i++)
        sum += ak_exp((double)x[i] - (double)max);
    for (uint32_t i = 0; i < n; i++)
        x[i] = (float)(ak_exp((double)x[i] - (double)max) / sum);
}

/* (e^2x − 1) / (e^2x + 1) */
static float hyperbolic_tangent(float x)
{
    double e = ak_exp(2.0 * fmin(fmax((double)x, -20.0), 20.0));
    return (float)((e - 1.0) / (e + 1.0));
}

/* `hidden` is [width], `middle` [n_dense]. */
static void score(const struct ak_model *m, const float *hidden, float *middle, float *out)
{
    const struct ak_spec_head *h = &m->spec.head;
    const struct ak_session_head *w = &m->head;
    uint32_t width = m->spec.config.width, n = width;
    const float *x = hidden;
    if (w->dense) {
        n = h->n_dense;
        multiply(w->dense, w->dense_bias, n, width, x, middle);
        for (uint32_t i = 0; i < n; i++)
            middle[i] = hyperbolic_tangent(middle[i]);
        x = middle;
    }
    if (w->out)
        multiply(w->out, w->out_bias, h->n_labels, n, x, out);
    else
        memcpy(out, x, h->n_labels * sizeof *out);
    if (h->is_softmax)
        apply_softmax(out, h->n_labels);
}

ak_status ak_session_score(struct ak_session *s, const struct akunu_pair *pairs, size_t n,
                           akunu_cancel_fn *cancel, void *user, float *out, struct ak_error *error)
{
    const struct ak_model *m = s->model;
    const struct akunu_embedding_params embedding = {
        .pooling = m->spec.descriptor.encoder ? AKUNU_POOLING_CLS : AKUNU_POOLING_LAST,
        .normalize = AKUNU_NORMALIZE_NONE,
        .width = m->spec.config.width,
        .cancel = cancel,
        .user = user,
    };
    size_t width = m->spec.config.width, n_labels = m->spec.head.n_labels;
    if (n_labels == 0)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "the model is no reranker: it has no head for scores of pairs (a reranker's "
            "config.json names a class ...ForSequenceClassification in \"architectures\")");
    struct akunu_ids *texts = ak_alloc(n + 1, sizeof *texts);
    uint32_t *seconds = ak_alloc(n + 1, sizeof *seconds);
    float *hidden = ak_alloc(n * width + m->spec.head.n_dense + 1, sizeof *hidden);
    ak_status status = texts && seconds && hidden ?
                           AKUNU_OK :
                           ak_fail_memory(error, "hidden states", n * width * sizeof *hidden);
    for (size_t i = 0; status == AKUNU_OK && i < n; i++) {
        texts[i] = (struct akunu_ids){ .ids = pairs[i].ids, .n = pairs[i].n };
        seconds[i] = pairs[i].second < UINT32_MAX ? (uint32_t)pairs[i].second : UINT32_MAX;
    }
    if (status == AKUNU_OK)
        status = ak_session_embed(s, texts, seconds, n, &embedding, hidden, error);
    for (size_t i = 0; status == AKUNU_OK && i < n; i++)
        score(m, hidden + i * width, hidden + n * width, out + i * n_labels);
    ak_free(texts);
    ak_free(seconds);
    ak_free(hidden);
    return status;
}
