/* Last two steps of the sampled table. Sampling from softmax(logits / temperature) is the argmax of
 * logits / temperature + Gumbel noise (Gumbel, 1954); at temperature 0 it is the argmax of the
 * logits. */
#include <math.h>

#include "base/gumbel.h"
#include "engine/cpu/cpu.h"

static void step_gumbel(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t begin, end;
    ak_chunk_range(c->params.gumbel.n, p->n_threads, thread, &begin, &end);
    for (uint32_t t = 0;
         p->pass.batch->gumbel.temperature > 0.0f && t < ak_cpu_rows(p, step->row_set); t++) {
        float *x = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        uint32_t position = p->pass.batch->positions[p->pass.batch->logit_rows[t]];
        for (size_t i = begin; i < end; i++)
            x[i] = ak_gumbel_score(x[i], p->pass.batch->gumbel.temperature,
                                   p->pass.batch->gumbel.seed, position, (uint32_t)i);
    }
}

/* Each thread finds the maximum of its part, then one thread that of all parts. The lowest index
 * wins a tie. A NaN never wins; −1 if there is nothing else. */
static void step_argmax(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t begin, end;
    ak_chunk_range(c->params.argmax.n, p->n_threads, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->row_set); t++) {
        const float *x = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in);
        float best = -INFINITY;
        int32_t index = -1;
        for (size_t i = begin; i < end; i++) {
            if (x[i] > best) {
                best = x[i];
                index = (int32_t)i;
            }
        }
        p->pass.candidates[t * p->n_threads + thread] = index;
        p->pass.candidate_values[t * p->n_threads + thread] = best;
    }
}

static void step_argmax_end(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread)
{
    if (thread != 0)
        return;
    for (size_t t = 0; t < ak_cpu_rows(p, step->row_set); t++) {
        const float *values = p->pass.candidate_values + t * p->n_threads;
        unsigned best = 0;
        for (unsigned i = 1; i < p->n_threads; i++)
            if (values[i] > values[best])
                best = i;
        p->pass.sampled[t] = p->pass.candidates[t * p->n_threads + best];
    }
}

const struct ak_cpu_op ak_cpu_op_gumbel = { .steps = { step_gumbel } };
const struct ak_cpu_op ak_cpu_op_argmax = { .steps = { step_argmax, step_argmax_end } };
