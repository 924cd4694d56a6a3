/* Activation-aware scaling (Lin et al., "AWQ: Activation-aware Weight Quantization", 2023,
 * arXiv:2306.00978). Columns of a matrix that meet large inputs are multiplied by s > 1 before
 * quantization, and the norm that computes these inputs is divided by s, so that the model is the
 * same and the error of these columns is smaller:
 *
 *     s_j = x_j^a / sqrt(max x^a · min x^a),   x_j = sqrt(mean of the squared inputs of column j)
 *
 * All matrices behind a norm share s. The exponent a in 0, 1/20, … 19/20 is the one with the least
 * Σ x_j² (w_ij − quantized(w_ij · s_j) / s_j)², over a sample of rows. It is the expected squared
 * error of the outputs if inputs are independent. The paper has the mean of |x| where this has the
 * root of the mean square, which importance matrices have. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "conversion/compress/compress.h"
#include "conversion/quantize/quantize.h"

enum { STEPS = 20, SAMPLE_ROWS = 192 };
static const float min_ratio = 1e-4f; /* of the least input to the largest */

/* A norm and the matrices that read it. */
struct group {
    struct ak_compress_tensor *norm;     /* in the plan */
    struct ak_compress_tensor **readers; /* room for all tensors of the plan */
    size_t n;
    const float *inputs; /* mean squares, [cols] */
    uint64_t cols;
};

/* ---- Which tensors ------------------------------------------------------ */
static bool reads_attention_norm(enum ak_role role)
{
    return role == AK_ROLE_ATTENTION_Q || role == AK_ROLE_ATTENTION_K ||
           role == AK_ROLE_ATTENTION_V || role == AK_ROLE_ATTENTION_QKV;
}

static bool reads_ffn_norm(enum ak_role role)
{
    return role == AK_ROLE_FFN_GATE || role == AK_ROLE_FFN_UP || role == AK_ROLE_FFN_ROUTER ||
           role == AK_ROLE_FFN_GATE_EXPERTS || role == AK_ROLE_FFN_UP_EXPERTS ||
           role == AK_ROLE_FFN_SHARED_GATE || role == AK_ROLE_FFN_SHARED_UP ||
           role == AK_ROLE_FFN_SHARED_ROUTER;
}

/* The layer's tensor of this role, and what reads it. */
static void fill_group(struct ak_compress_job *j, int layer, enum ak_role norm,
                       bool (*reads)(enum ak_role role), struct group *g)
{
    g->norm = NULL;
    g->n = 0;
    for (size_t i = 0; i < j->n; i++) {
        struct ak_compress_tensor *t = &j->tensors[i];
        if (!t->has_role || t->layer != layer)
            continue;
        if (t->role == norm)
            g->norm = t;
        else if (reads(t->role))
            g->readers[g->n++] = t;
    }
}

/* The inputs of a reader that has one row of them: all have the same. Else the mean of experts'. */
static const float *find_inputs(const struct group *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->readers[i]->inputs && g->readers[i]->n_inputs == g->norm->cols)
            return g->readers[i]->inputs;
    return NULL;
}

static bool is_complete(struct group *g)
{
    bool quantizes = false;
    if (!g->norm)
        return false;
    g->cols = g->norm->cols;
    g->inputs = find_inputs(g);
    for (size_t i = 0; i < g->n; i++) {
        quantizes = quantizes || g->readers[i]->quantizes;
        if (g->readers[i]->cols != g->cols)
            return false;
    }
    return quantizes && g->inputs;
}

/* ---- Factors ------------------------------------------------------------ */
static void make_factors(const struct group *g, int step, float *out)
{
    double exponent = 0.5 * step / STEPS; /* of the mean squares */
    float largest = 0.0f, least = INFINITY, top = 0.0f;
    for (uint64_t i = 0; i < g->cols; i++)
        top = g->inputs[i] > top ? g->inputs[i] : top;
    for (uint64_t i = 0; i < g->cols; i++) {
        float input =
            g->inputs[i] > top * min_ratio * min_ratio ? g->inputs[i] : top * min_ratio * min_ratio;
        out[i] = input > 0.0f ? (float)ak_pow((double)input, exponent) : 1.0f;
        largest = out[i] > largest ? out[i] : largest;
        least = out[i] < least ? out[i] : least;
    }
    float middle = sqrtf(largest) * sqrtf(least);
    for (uint64_t i = 0; i < g->cols; i++)
        out[i] /= middle;
}

/* ---- Errors ------------------------------------------------------------- */
/* Errors of a matrix's rows, each with all exponents. */
struct trial {
    const struct ak_compress_job *j;
    const struct ak_compress_tensor *t;
    const float *factors; /* [STEPS][cols] */
    uint64_t step;        /* every step-th row */
    double *errors;       /* [rows of the sample][STEPS] */
    float *buffers;       /* [threads][BUFFERS][cols] */
};
enum { BUFFERS = 6 };

static double get_error(const float *x, const float *weights, const float *factors, unsigned bits,
                        uint32_t group, const uint8_t *numbers, const float *scales, uint64_t n)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        float y = scales[i / group] * (float)ak_compress_get_number(bits, numbers, i) / factors[i];
        sum += (double)weights[i] * (double)(x[i] - y) * (double)(x[i] - y);
    }
    return sum;
}

static void try_row(const struct trial *r, uint64_t sample, float *buffers)
{
    uint64_t cols = r->t->cols, row = sample * r->step;
    unsigned bits = ak_compress_encodings[r->j->options->encoding].bits;
    float *values = buffers + cols, *weights = values + cols, *scaled = weights + cols,
          *scales = scaled + cols;
    uint8_t *numbers = (uint8_t *)(scales + cols);
    ak_compress_read_unscaled(r->j, r->t, row, buffers, values);
    for (int step = 0; step < STEPS; step++) {
        const float *factors = r->factors + (uint64_t)step * cols;
        for (uint64_t i = 0; i < cols; i++)
            scaled[i] = values[i] * factors[i];
        ak_compress_get_weights(r->t, row, factors, weights);
        ak_quantize_groups(bits, r->t->group, scaled, r->t->importance ? weights : NULL, numbers,
                           scales, (size_t)cols);
        ak_compress_get_weights(r->t, row, NULL, weights);
        r->errors[sample * STEPS + (uint64_t)step] =
            get_error(values, weights, factors, bits, r->t->group, numbers, scales, cols);
    }
}

static void try_rows(void *user, unsigned thread)
{
    const struct trial *r = user;
    unsigned n_threads = ak_pool_threads(r->j->pool);
    for (uint64_t i = thread; i * r->step < r->t->rows; i += n_threads)
        try_row(r, i, r->buffers + thread * BUFFERS * r->t->cols);
}

/* Adds a matrix's errors to those of the group. */
static ak_status try_matrix(struct ak_compress_job *j, const struct ak_compress_tensor *t,
                            const float *factors, double sums[STEPS])
{
    struct trial r = { .j = j, .t = t, .factors = factors, .step = t->rows / SAMPLE_ROWS + 1 };
    uint64_t n = (t->rows + r.step - 1) / r.step;
    r.errors = ak_alloc((size_t)n, STEPS * sizeof *r.errors);
    r.buffers =
        ak_alloc((size_t)ak_pool_threads(j->pool) * BUFFERS, (size_t)t->cols * sizeof *r.buffers);
    ak_status status = AKUNU_OK;
    if (r.errors && r.buffers)
        ak_pool_run(j->pool, try_rows, &r);
    else
        status = ak_fail_memory(j->error, t->name, n * STEPS * sizeof *r.errors);
    for (uint64_t i = 0; status == AKUNU_OK && i < n * STEPS; i++)
        sums[i % STEPS] += r.errors[i] * (double)r.step;
    ak_free(r.errors);
    ak_free(r.buffers);
    return status;
}

/* ---- Groups ------------------------------------------------------------- */
static void set_factors(const struct group *g, const float *factors)
{
    g->norm->factors = factors;
    for (size_t i = 0; i < g->n; i++) {
        g->readers[i]->multiplies = true;
        g->readers[i]->factors = factors;
    }
}

static ak_status search(struct ak_compress_job *j, const struct group *g, float *factors,
                        float *out)
{
    double sums[STEPS] = { 0.0 };
    int best = 0;
    for (int step = 0; step < STEPS; step++)
        make_factors(g, step, factors + (uint64_t)step * g->cols);
    for (size_t i = 0; i < g->n; i++)
        if (g->readers[i]->quantizes)
            AK_TRY(try_matrix(j, g->readers[i], factors, sums));
    for (int step = 1; step < STEPS; step++)
        best = sums[step] < sums[best] ? step : best;
    json_object_set_new(j->exponents, g->norm->name, json_real((double)best / STEPS));
    if (best == 0)
        return AKUNU_OK;
    memcpy(out, factors + (uint64_t)best * g->cols, g->cols * sizeof *out);
    set_factors(g, out);
    return AKUNU_OK;
}

/* The group of a layer's norm, if it has inputs. `out`: [width]. */
static ak_status scale_group(struct ak_compress_job *j, struct group *g, float *factors, float *out)
{
    return is_complete(g) ? search(j, g, factors, out) : AKUNU_OK;
}

static ak_status scale_layers(struct ak_compress_job *j, struct group *g, float *factors)
{
    const struct ak_spec_config *c = &j->spec.config;
    for (uint32_t layer = 0; layer < c->n_layers; layer++) {
        float *out = j->factors + (size_t)layer * 2 * c->width;
        if (!ak_spec_is_recurrent(c, (int)layer)) {
            fill_group(j, (int)layer, AK_ROLE_ATTENTION_NORM, reads_attention_norm, g);
            AK_TRY(scale_group(j, g, factors, out));
        }
        fill_group(j, (int)layer, j->spec.descriptor.ffn_norm, reads_ffn_norm, g);
        AK_TRY(scale_group(j, g, factors, out + c->width));
        AK_TRY(ak_compress_advance(j, j->all / c->n_layers));
    }
    return AKUNU_OK;
}

ak_status ak_compress_find_factors(struct ak_compress_job *j)
{
    const struct ak_spec_config *c = &j->spec.config;
    const struct ak_spec_descriptor *d = &j->spec.descriptor;
    if (d->no_pre_norms || d->sum_norms || d->encoder)
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                       "AWQ scales matrices that read a norm, and %s models have none",
                       j->spec.arch->names[0]);
    struct group g = { .readers = ak_alloc(j->n, sizeof *g.readers) };
    float *factors = ak_alloc((size_t)STEPS * c->width, sizeof *factors);
    j->factors = ak_alloc((size_t)c->n_layers * 2 * c->width, sizeof *j->factors);
    j->exponents = json_object();
    ak_status status = AKUNU_OK;
    if (!g.readers || !factors || !j->factors)
        status = ak_fail_memory(j->error, "factors of columns",
                                (uint64_t)c->n_layers * 2 * c->width * sizeof *factors);
    if (status == AKUNU_OK)
        status = scale_layers(j, &g, factors);
    ak_free(g.readers);
    ak_free(factors);
    if (status == AKUNU_OK && json_object_size(j->exponents) == 0)
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT, "%s has no inputs of this model's matrices",
                       j->options->awq);
    return status;
}
