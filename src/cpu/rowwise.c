/* Steps that work on rows or on a thread's own columns of them. */
#include <string.h>

#include "base/math.h"
#include "cpu/cpu.h"

static void rope_angles(struct ak_cpu_prepared *p, size_t t)
{
    uint32_t half = p->spec->config.rope_dims / 2;
    float position = (float)p->batch->positions[t];
    for (uint32_t i = 0; i < half; i++) {
        double sine, cosine;
        ak_sincos((double)(position * p->spec->inverse_frequencies[i]), &sine, &cosine);
        p->sin[t * half + i] = (float)sine;
        p->cos[t * half + i] = (float)cosine;
    }
}

/* Also makes the tokens' rotation angles, which all layers share. */
void ak_step_embed(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_view *embedding = p->weights->embedding;
    float scale = c->params.embed.scale;
    uint64_t row_bytes = 0;
    size_t begin, end;
    (void)ak_type_row_bytes(embedding->type, embedding->cols, &row_bytes);
    ak_split(p->batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        const uint8_t *row = (const uint8_t *)embedding->plane[0].data + (uint64_t)p->batch->tokens[t] * row_bytes;
        p->cpu->kernels.widen[embedding->type](row, out, embedding->cols);
        for (uint32_t i = 0; scale != 1.0f && i < embedding->cols; i++)
            out[i] *= scale;
        rope_angles(p, t);
    }
}

void ak_step_norm(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t begin, end;
    ak_split(ak_cpu_rows(p, step->domain), p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        p->cpu->kernels.rms_norm(ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in), p->weights->vectors[c->vector].data,
                                 c->params.norm.n, c->params.norm.eps, ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out));
}

void ak_step_add(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t begin, end;
    ak_cpu_own_rows(p, c->params.add.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->domain) && end > begin; t++)
        p->cpu->kernels.add(ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out) + begin,
                            ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + begin, end - begin);
}

void ak_step_gated(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_gated_params *g = &c->params.gated;
    uint32_t begin, end;
    ak_cpu_own_rows(p, g->n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->domain) && end > begin; t++) {
        const float *in = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + begin;
        p->cpu->kernels.silu_mul(in + g->gate_at, in + g->up_at, ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out) + begin, end - begin);
    }
}

void ak_step_select(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t begin, end;
    ak_split(ak_cpu_rows(p, AK_DOMAIN_LOGITS), p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        memcpy(ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out),
               ak_cpu_slot(p, c->in) + p->batch->logit_rows[t] * ak_cpu_stride(p, c->in), c->params.select.n * sizeof(float));
}
