/* Layers that remember a sequence by a state instead of its keys and values. A thread has
 * the same channels of every token, and takes tokens one after another, so nothing depends
 * on how a text is cut into passes. */
#include <string.h>

#include "base/mem.h"
#include "cpu/cpu.h"

/* Channels [*begin, *end) of n: whole cache lines. */
static void own_channels(const struct ak_cpu_prepared *p, size_t n, unsigned thread, size_t *begin, size_t *end)
{
    enum { LINE = AK_CACHE_LINE / sizeof(float) };
    ak_split((n + LINE - 1) / LINE, p->n_threads, thread, begin, end);
    *begin *= LINE;
    *end = ak_min_size(*end * LINE, n);
}

static float *state_of(const struct ak_cpu_prepared *p, size_t token, uint64_t at)
{
    return (float *)(void *)(p->kv + ak_kv_state_at(&p->kv_shape, p->batch->sequences[token])) + at;
}

void ak_step_short_conv(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_short_conv_params *s = &c->params.short_conv;
    const float *kernel = p->weights->vectors[c->vector].data;
    size_t begin, end;
    own_channels(p, s->n, thread, &begin, &end);
    for (size_t t = 0; t < p->batch->n && begin < end; t++) {
        const float *in = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + begin;
        float *state = state_of(p, t, s->state_at) + begin;
        for (uint32_t k = 0; p->batch->positions[t] == 0 && k + 1 < s->taps; k++)
            memset(state + (size_t)k * s->n, 0, (end - begin) * sizeof *state);
        p->cpu->kernels.short_conv(in, in + s->n, in + 2 * (size_t)s->n, kernel + begin * s->taps, s->taps, state, s->n,
                                   ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out) + begin, end - begin);
    }
}
