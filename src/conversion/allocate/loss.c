/* What a type makes of a tensor: its values afterwards, and their squared error. */
#include <string.h>

#include "conversion/allocate/allocate.h"
#include "base/mem.h"

enum { SAMPLE_ROWS = 192 }; /* rows whose error is measured */

/* Work of the threads on the rows of a tensor: every `step`-th one. */
struct rows {
    const struct ak_convert_plan *plan;
    const struct ak_convert_tensor *t;
    enum ak_quant_type type;
    const float *values;
    float *out;     /* what they become; NULL: only errors are wanted */
    double *errors; /* by row of the sample; NULL: not wanted */
    uint64_t n, cols, step;
    uint8_t *blocks; /* a row for each thread */
    float *after;
    uint64_t row_bytes;
};

float *ak_allocate_read(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t)
{
    struct ak_tensor tensor;
    uint64_t n = ak_convert_count_rows(t) * t->shape[t->n_dims - 1];
    float *values = ak_alloc((size_t)n, sizeof *values);
    if (values && ak_provider_tensor(plan->source, t->index, &tensor))
        ak_tensor_dequantize(&tensor, 0, n, values);
    return values;
}

/* importance NULL: all elements count alike. */
static double weigh(const float *before, const float *after, const float *importance, uint64_t n)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        double difference = (double)before[i] - (double)after[i];
        sum += (importance ? (double)importance[i] : 1.0) * difference * difference;
    }
    return sum;
}

static void quantize_rows(void *user, unsigned thread)
{
    const struct rows *r = user;
    const struct ak_quant_info *info = ak_quant_info(r->type);
    uint8_t *blocks = r->blocks + thread * r->row_bytes;
    float *after = r->after + thread * r->cols;
    for (uint64_t i = thread; i * r->step < r->n; i += ak_pool_threads(r->plan->pool)) {
        uint64_t at = i * r->step * r->cols;
        const float *row = r->values + at;
        const float *importance = ak_convert_row_importance(r->t, i * r->step);
        ak_quantize(&r->plan->tables, r->type, row, importance, blocks, (size_t)r->cols);
        info->dequantize(blocks, r->out ? r->out + at : after, (size_t)r->cols);
        if (r->errors)
            r->errors[i] = weigh(row, after, importance, r->cols);
    }
}

static ak_status run_rows(struct rows *r, struct ak_error *error)
{
    unsigned n_threads = ak_pool_threads(r->plan->pool);
    const struct ak_quant_info *info = ak_quant_info(r->type);
    r->n = ak_convert_count_rows(r->t);
    r->cols = r->t->shape[r->t->n_dims - 1];
    r->row_bytes = r->cols / info->block_elems * info->block_bytes;
    r->blocks = ak_alloc(n_threads, (size_t)r->row_bytes);
    r->after = ak_alloc(n_threads, (size_t)r->cols * sizeof *r->after);
    ak_status status = AKUNU_OK;
    if (r->blocks && r->after)
        ak_pool_run(r->plan->pool, quantize_rows, r);
    else
        status = ak_fail_memory(error, r->t->name, n_threads * (r->row_bytes + 4 * r->cols));
    ak_free(r->blocks);
    ak_free(r->after);
    return status;
}

ak_status ak_allocate_quantize(const struct ak_convert_plan *plan,
                               const struct ak_convert_tensor *t, enum ak_quant_type type,
                               float *values, struct ak_error *error)
{
    struct rows r = {
        .plan = plan, .t = t, .type = type, .values = values, .out = values, .step = 1
    };
    return run_rows(&r, error);
}

ak_status ak_allocate_error(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                            enum ak_quant_type type, const float *values, double *out,
                            struct ak_error *error)
{
    uint64_t n = ak_convert_count_rows(t), step = n / SAMPLE_ROWS + 1,
             sampled = (n + step - 1) / step;
    struct rows r = { .plan = plan, .t = t, .type = type, .values = values, .step = step };
    r.errors = ak_alloc((size_t)sampled, sizeof *r.errors);
    if (!r.errors)
        return ak_fail_memory(error, t->name, sampled * sizeof *r.errors);
    ak_status status = run_rows(&r, error);
    *out = 0.0;
    for (uint64_t i = 0; i < sampled; i++)
        *out += r.errors[i];
    ak_free(r.errors);
    return status;
}
