/* Mixture of experts: selects the experts of each token, and adds up their weighted outputs. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "engine/cpu/cpu.h"

/* Writes the indices of the n_used largest logits to ids, in descending order; the first of equals
 * wins. A NaN is selected only if nothing else is left. */
static void select_experts(const float *logits, uint32_t n, uint32_t n_used, float *ids)
{
    for (uint32_t i = 0, taken = 0; i < n; i++) {
        uint32_t at = taken;
        while (at > 0 &&
               (logits[i] > logits[(uint32_t)ids[at - 1]] || isnan(logits[(uint32_t)ids[at - 1]])))
            at--;
        if (at == n_used)
            continue;
        taken += taken < n_used;
        for (uint32_t j = taken - 1; j > at; j--)
            ids[j] = ids[j - 1];
        ids[at] = (float)i;
    }
}

/* Σ exp(logit − max_logit) over all logits, or over the selected ones, in their order. */
static float sum_exp(const struct ak_op_route_params *r, const float *logits, const float *ids,
                     float max_logit)
{
    float sum = 0.0f;
    for (uint32_t i = 0; i < (r->normalized ? r->n_used : r->n_experts); i++)
        sum += ak_expf(logits[r->normalized ? (uint32_t)ids[i] : i] - max_logit);
    return sum;
}

static void step_route(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_route_params *r = &c->params.route;
    size_t begin, end;
    ak_chunk_range(p->pass.batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        const float *logits = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in);
        float *ids = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out),
              *weights = ids + r->n_used;
        select_experts(logits, r->n_experts, r->n_used, ids);
        float max_logit = logits[(uint32_t)ids[0]], sum = sum_exp(r, logits, ids, max_logit);
        for (uint32_t i = 0; i < r->n_used; i++)
            weights[i] = ak_expf(logits[(uint32_t)ids[i]] - max_logit) / sum;
    }
}

/* Sorts the tokens' selected experts by expert: a counting sort. */
static void step_route_end(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_route_params *r = &c->params.route;
    const float *ids = ak_cpu_slot(p, c->out);
    size_t stride = ak_cpu_stride(p, c->out);
    uint32_t *begin = p->pass.routes.begin;
    if (thread != 0)
        return;
    memset(begin, 0, (r->n_experts + 1u) * sizeof *begin);
    for (uint32_t t = 0; t < p->pass.batch->n; t++)
        for (uint32_t i = 0; i < r->n_used; i++)
            begin[(uint32_t)ids[t * stride + i] + 1]++;
    for (uint32_t e = 0; e < r->n_experts; e++)
        begin[e + 1] += begin[e];
    for (uint32_t t = 0; t < p->pass.batch->n; t++)
        for (uint32_t i = 0; i < r->n_used; i++) {
            uint32_t row = begin[(uint32_t)ids[t * stride + i]]++;
            p->pass.routes.row_of[t * r->n_used + i] = row;
            p->pass.routes.token_of[row] = t;
        }
    /* each entry now holds the next expert's first row */
    memmove(begin + 1, begin, r->n_experts * sizeof *begin);
    begin[0] = 0;
}

/* Adds the experts' outputs in the order of the token's selection, one fma each. */
static void step_combine(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t begin, end, n_used = p->spec->config.n_experts_used;
    ak_cpu_chunk_rows(p, c->params.combine.n, thread, &begin, &end);
    for (size_t t = 0; t < p->pass.batch->n; t++) {
        const float *weights = ak_cpu_slot(p, c->params.combine.routes) +
                               t * ak_cpu_stride(p, c->params.combine.routes) + n_used;
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        for (uint32_t i = 0; i < n_used; i++) {
            const float *in = ak_cpu_slot(p, c->in) +
                              p->pass.routes.row_of[t * n_used + i] * ak_cpu_stride(p, c->in);
            if (begin < end)
                p->cpu->kernels.add_scaled(out + begin, in + begin, weights[i], end - begin);
        }
    }
}

/* sigmoid(vector · row) per token; the product is computed by dot_rows with one row. */
static void step_gate(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t gate = c->params.add_gated.gate, n = c->params.add_gated.n;
    size_t begin, end;
    ak_chunk_range(p->pass.batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float product;
        p->cpu->kernels.dot_rows(p->weights->vectors[c->vector].data, n, 1,
                                 ak_cpu_slot(p, gate) + t * ak_cpu_stride(p, gate), n, 1, n,
                                 &product, 1);
        p->pass.routes.gates[t] = 1.0f / (1.0f + ak_expf(-product));
    }
}

static void step_add_gated(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t begin, end;
    ak_cpu_chunk_rows(p, c->params.add_gated.n, thread, &begin, &end);
    for (size_t t = 0; t < p->pass.batch->n && begin < end; t++)
        p->cpu->kernels.add_scaled(ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out) + begin,
                                   ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + begin,
                                   p->pass.routes.gates[t], end - begin);
}

const struct ak_cpu_op ak_cpu_op_route = { .steps = { step_route, step_route_end } };
const struct ak_cpu_op ak_cpu_op_combine = { .steps = { step_combine },
                                             .is_chunked = true,
                                             .has_rows_of_input = true };
const struct ak_cpu_op ak_cpu_op_add_gated = { .steps = { step_gate, step_add_gated },
                                               .is_chunked = true };
