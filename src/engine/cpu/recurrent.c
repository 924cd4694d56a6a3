/* Convolutions with recurrent state, for layers that have no keys and values. A thread processes
 * the same channels of every token, one token after another. So results do not depend on how a text
 * is split into passes. */
#include <string.h>

#include "base/mem.h"
#include "engine/cpu/cpu.h"

/* Channels [*begin, *end) of n for this thread: whole cache lines. */
static void split_channels(const struct ak_cpu_prepared *p, size_t n, unsigned thread,
                           size_t *begin, size_t *end)
{
    enum { LINE = AK_CACHE_LINE / sizeof(float) };
    ak_chunk_range((n + LINE - 1) / LINE, p->n_threads, thread, begin, end);
    *begin *= LINE;
    *end = ak_min_size(*end * LINE, n);
}

/* Convolution state for this thread's channels [begin, end) of n; zeroed at position 0. */
static float *conv_state(const struct ak_cpu_prepared *p, size_t t, uint64_t at, size_t n,
                         uint32_t taps, size_t begin, size_t end)
{
    float *state = ak_cpu_state(p, t, at) + begin;
    for (uint32_t k = 0; p->pass.batch->positions[t] == 0 && k + 1 < taps; k++)
        memset(state + k * n, 0, (end - begin) * sizeof *state);
    return state;
}

static void step_short_conv(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_short_conv_params *s = &c->params.short_conv;
    const float *kernel = p->weights->vectors[c->vector].data;
    size_t begin, end;
    split_channels(p, s->n, thread, &begin, &end);
    for (size_t t = 0; t < p->pass.batch->n && begin < end; t++) {
        const float *in = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + begin;
        float *state = conv_state(p, t, s->state_at, s->n, s->taps, begin, end);
        p->cpu->kernels.short_conv(
            in, in + s->n, in + 2 * (size_t)s->n, kernel + begin * s->taps, s->taps, state, s->n,
            ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out) + begin, end - begin);
    }
}

/* Convolves this thread's channels of one token; [first, first + n) is the range of one group. */
static void convolve(const struct ak_cpu_prepared *p, const struct ak_op_conv_params *s,
                     const float *in, const float *kernel, float *state, size_t begin, size_t end,
                     float *out)
{
    size_t first = 0;
    for (const struct ak_op_conv_part *part = s->parts; part < s->parts + AK_OP_CONV_PARTS; part++)
        for (size_t g = 0; g < s->n_groups; g++, first += part->n) {
            size_t from = ak_max_size(first, begin), to = ak_min_size(first + part->n, end);
            if (from < to)
                p->cpu->kernels.conv(in + part->offset + g * part->step + (from - first),
                                     kernel + from * s->taps, s->taps, state + (from - begin), s->n,
                                     out + from, to - from);
        }
}

static void step_conv(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_conv_params *s = &c->params.conv;
    size_t begin, end;
    split_channels(p, s->n, thread, &begin, &end);
    for (size_t t = 0; t < p->pass.batch->n && begin < end; t++) {
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        convolve(p, s, ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in),
                 p->weights->vectors[c->vector].data,
                 conv_state(p, t, s->state_at, s->n, s->taps, begin, end), begin, end, out);
        p->cpu->kernels.silu(out + begin, end - begin);
    }
}

const struct ak_cpu_op ak_cpu_op_short_conv = { .steps = { step_short_conv } };
const struct ak_cpu_op ak_cpu_op_conv = { .steps = { step_conv } };
