/* The gated delta rule. Each value head has a state [k_dim][v_dim]. A token decays the state,
 * corrects its prediction for the token's key, and reads it with the token's query.
 *
 * A thread processes the same state columns for all tokens, one token after another, so the columns
 * stay in its cache. Columns are independent, and results do not depend on how a text is split into
 * passes. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "engine/cpu/cpu.h"

static float *row_of(const struct ak_cpu_prepared *p, uint32_t slot, size_t t)
{
    return ak_cpu_slot(p, slot) + t * ak_cpu_stride(p, slot);
}

/* Gates of a value head: beta at beta_at, alpha at alpha_at. */
static float *gates_of(const struct ak_cpu_prepared *p, const struct ak_op_delta_params *d,
                       size_t t, uint32_t head)
{
    uint32_t per_group = d->n_v_heads / d->n_k_heads;
    return row_of(p, d->gates, t) + head / per_group * d->gate_step + head % per_group;
}

/* Σx² by dot_rows, which takes multiples of AK_LANES: the rest is filled up with zeros. */
static float sum_squares(const struct ak_cpu_kernels *k, const float *x, uint32_t n)
{
    float sum = 0.0f, rest[AK_LANES] = { 0 }, rest_sum;
    uint32_t whole = n / AK_LANES * AK_LANES;
    if (whole > 0)
        k->dot_rows(x, n, 1, x, n, 1, whole, &sum, 1);
    if (whole == n)
        return sum;
    memcpy(rest, x + whole, (n - whole) * sizeof *x);
    k->dot_rows(rest, AK_LANES, 1, rest, AK_LANES, 1, AK_LANES, &rest_sum, 1);
    return sum + rest_sum;
}

/* x / sqrt(Σx² + 1e-6) · scale in place. */
static void scale_to(const struct ak_cpu_kernels *k, float *x, uint32_t n, float scale)
{
    scale /= sqrtf(sum_squares(k, x, n) + 1e-6f);
    for (uint32_t i = 0; i < n; i++)
        x[i] *= scale;
}

/* exp(decay · ln(1 + exp(alpha))), decay < 0: factor by which the state decays. */
static float compute_decay(float decay, float alpha)
{
    double soft = alpha > 20.0f ? (double)alpha : ak_ln(1.0 + ak_exp((double)alpha));
    return (float)ak_exp((double)decay * soft);
}

/* Normalizes keys to length 1 and queries to length 1/sqrt(k_dim), and replaces the gate inputs by
 * the gates. */
static void step_delta_gates(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                             unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_delta_params *d = &c->params.delta;
    const float *decay = p->weights->vectors[c->vector].data,
                *bias = p->weights->vectors[c->vector2].data;
    size_t begin, end;
    ak_chunk_range((size_t)p->pass.batch->n * d->n_v_heads, p->n_threads, thread, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        size_t t = i / d->n_v_heads;
        uint32_t head = (uint32_t)(i % d->n_v_heads);
        float *gates = gates_of(p, d, t, head), *q = row_of(p, c->in, t) + head * d->k_dim;
        gates[d->beta_at] = 1.0f / (1.0f + ak_expf(-gates[d->beta_at]));
        gates[d->alpha_at] = compute_decay(decay[head], gates[d->alpha_at] + bias[head]);
        if (head >= d->n_k_heads)
            continue;
        scale_to(&p->cpu->kernels, q, d->k_dim, 1.0f / sqrtf((float)d->k_dim));
        scale_to(&p->cpu->kernels, q + d->n_k_heads * d->k_dim, d->k_dim, 1.0f);
    }
}

/* Processes columns [first, first + n) of a head for all tokens. */
static void run_columns(const struct ak_cpu_prepared *p, const struct ak_command *c, uint32_t head,
                        uint32_t first, uint32_t n)
{
    const struct ak_op_delta_params *d = &c->params.delta;
    uint32_t key_head = d->tiled ? head % d->n_k_heads : head / (d->n_v_heads / d->n_k_heads);
    uint32_t keys = d->n_k_heads * d->k_dim, column = head * d->v_dim + first;
    for (size_t t = 0; t < p->pass.batch->n; t++) {
        const float *q = row_of(p, c->in, t) + key_head * d->k_dim,
                    *v = row_of(p, c->in, t) + 2 * keys + column;
        const float *gates = gates_of(p, d, t, head);
        float *state = ak_cpu_state(p, t, d->state_at) + (size_t)head * d->k_dim * d->v_dim + first;
        for (uint32_t i = 0; p->pass.batch->positions[t] == 0 && i < d->k_dim; i++)
            memset(state + (size_t)i * d->v_dim, 0, n * sizeof *state);
        p->cpu->kernels.delta_rule(q, q + keys, d->k_dim, v, gates[d->alpha_at], gates[d->beta_at],
                                   state, d->v_dim, row_of(p, c->out, t) + column, n);
    }
}

static void step_delta(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_delta_params *d = &c->params.delta;
    uint32_t pieces = (d->v_dim + AK_DELTA_COLUMNS_MAX - 1) / AK_DELTA_COLUMNS_MAX;
    size_t begin, end;
    ak_chunk_range((size_t)d->n_v_heads * pieces, p->n_threads, thread, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        uint32_t first = (uint32_t)(i % pieces) * AK_DELTA_COLUMNS_MAX;
        run_columns(p, c, (uint32_t)(i / pieces), first,
                    (uint32_t)ak_min_size(AK_DELTA_COLUMNS_MAX, d->v_dim - first));
    }
}

static void step_norm_gated(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_norm_gated_params *g = &c->params.norm_gated;
    float *normed = p->memory.scratch[thread].row;
    size_t begin, end;
    ak_chunk_range((size_t)p->pass.batch->n * g->n_heads, p->n_threads, thread, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        size_t t = i / g->n_heads;
        uint32_t head = (uint32_t)(i % g->n_heads);
        const float *gate = row_of(p, g->gate, t) + g->gate_at +
                            head / g->per_group * g->gate_step + head % g->per_group * g->n;
        p->cpu->kernels.rms_norm(row_of(p, c->in, t) + head * g->n,
                                 p->weights->vectors[c->vector].data, g->n, g->eps, normed);
        p->cpu->kernels.silu_mul(gate, normed, row_of(p, c->out, t) + head * g->n, g->n);
    }
}

const struct ak_cpu_op ak_cpu_op_delta = { .steps = { step_delta_gates, step_delta } };
const struct ak_cpu_op ak_cpu_op_norm_gated = { .steps = { step_norm_gated } };
