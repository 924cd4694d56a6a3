/* Steps that work on rows or on a thread's own columns of them. */
#include <string.h>

#include "base/math.h"
#include "cpu/cpu.h"
#include "weights/assembly.h"

static void rope_angles(struct ak_cpu_prepared *p, size_t t)
{
    const struct ak_spec *spec = p->spec;
    uint32_t half = spec->config.rope_dims / 2;
    float position = (float)p->batch->positions[t];
    for (uint32_t table = 0; table < spec->n_rotations; table++) {
        const float *frequencies = p->frequencies[table];
        double magnitude = (double)spec->magnitude[table];
        for (uint32_t i = 0; i < half; i++) {
            double sine, cosine;
            ak_sincos((double)(position * frequencies[i]), &sine, &cosine);
            ak_cpu_angles(p, p->sin, table, t)[i] = (float)(sine * magnitude);
            ak_cpu_angles(p, p->cos, table, t)[i] = (float)(cosine * magnitude);
        }
    }
}

/* A row of a stored matrix as floats. */
static void read_row(const struct ak_cpu_prepared *p, const struct ak_view *view, uint64_t row, float *out)
{
    uint64_t row_bytes = 0;
    if (view->assembly) {
        ak_assembly_widen(view->assembly, ak_assembly_row(view, row), 0, view->cols, out);
        return;
    }
    (void)ak_type_row_bytes(view->type, view->cols, &row_bytes);
    p->cpu->kernels.widen[view->type]((const uint8_t *)view->plane[0].data + row * row_bytes, out, view->cols);
}

/* Also makes the tokens' rotation angles, which all layers share. */
void ak_step_embed(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_embed_params *embed = &c->params.embed;
    const struct ak_view *embedding = p->weights->embedding, *positions = p->weights->positions, *types = p->weights->types;
    float scale = embed->scale, *own = p->scratch[thread].row;
    size_t begin, end;
    ak_split(p->batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        rope_angles(p, t);
        if (p->batch->hidden) {
            memcpy(out, p->batch->hidden + t * p->batch->hidden_stride, p->spec->config.width * sizeof *out);
            continue;
        }
        read_row(p, embedding, (uint64_t)p->batch->tokens[t], out);
        for (uint32_t i = 0; scale != 1.0f && i < embedding->cols; i++)
            out[i] *= scale;
        if (embed->types) {
            read_row(p, types, 0, own);
            p->cpu->kernels.add(out, own, types->cols);
        }
        if (embed->positions) {
            read_row(p, positions, (uint64_t)embed->first_position + p->batch->positions[t], own);
            p->cpu->kernels.add(out, own, positions->cols);
        }
    }
}

void ak_cpu_norm(const struct ak_cpu_prepared *p, const struct ak_command *c, const float *restrict x, float *restrict out)
{
    const struct ak_norm_params *norm = &c->params.norm;
    const struct ak_kernels *k = &p->cpu->kernels;
    const float *weight = p->weights->vectors[c->vector].data;
    if (norm->layer_norm)
        k->layer_norm(x + norm->at, weight, c->vector2 == AK_NONE ? p->zeros : p->weights->vectors[c->vector2].data, norm->n, norm->eps, out);
    else
        k->rms_norm(x + norm->at, weight, norm->n, norm->eps, out);
}

void ak_step_norm(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_norm_params *norm = &c->params.norm;
    float *own = p->scratch[thread].row;
    size_t begin, end;
    ak_split(ak_cpu_rows(p, step->domain), p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        ak_cpu_norm(p, c, ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in), c->in == c->out ? own : out);
        if (c->in == c->out)
            memcpy(out + norm->at, own, norm->n * sizeof *out);
    }
}

/* This thread's own elements of row t of a slot. */
static float *own_part(const struct ak_cpu_prepared *p, uint32_t slot, size_t t, uint32_t begin)
{
    return ak_cpu_slot(p, slot) + t * ak_cpu_stride(p, slot) + begin;
}

void ak_step_add(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_kernels *k = &p->cpu->kernels;
    float scale = c->params.add.scale;
    uint32_t begin, end;
    ak_cpu_own_rows(p, c->params.add.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->domain) && end > begin; t++) {
        if (scale == 1.0f)
            k->add(own_part(p, c->out, t, begin), own_part(p, c->in, t, begin), end - begin);
        else
            k->add_scaled(own_part(p, c->out, t, begin), own_part(p, c->in, t, begin), scale, end - begin);
    }
}

void ak_step_gated(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_gated_params *g = &c->params.gated;
    const struct ak_kernels *k = &p->cpu->kernels;
    uint32_t begin, end;
    ak_cpu_own_rows(p, g->n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->domain) && end > begin; t++) {
        const float *in = own_part(p, c->in, t, begin);
        float *out = own_part(p, c->out, t, begin);
        switch (g->activation) {
        case AK_ACTIVATION_SILU: k->silu_mul(in + g->gate_at, in + g->up_at, out, end - begin); break;
        case AK_ACTIVATION_GELU_TANH: k->gelu_tanh_mul(in + g->gate_at, in + g->up_at, out, end - begin); break;
        case AK_ACTIVATION_GELU_ERF: k->gelu_erf_mul(in + g->gate_at, in + g->up_at, out, end - begin); break;
        case AK_ACTIVATION_SWIGLU_CLAMPED: k->swiglu_clamped(in + g->gate_at, in + g->up_at, out, end - begin); break;
        }
    }
}

void ak_step_activate(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_kernels *k = &p->cpu->kernels;
    uint32_t begin, end;
    ak_cpu_own_rows(p, c->params.activate.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->domain) && end > begin; t++)
        (c->params.activate.activation == AK_ACTIVATION_GELU_ERF ? k->gelu_erf : k->gelu_tanh)(
            own_part(p, c->in, t, begin), own_part(p, c->out, t, begin), end - begin);
}

void ak_step_divide(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t begin, end;
    ak_cpu_own_rows(p, c->params.by.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->domain) && end > begin; t++)
        p->cpu->kernels.divide(own_part(p, c->out, t, begin), c->params.by.by, end - begin);
}

void ak_step_cap(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t begin, end;
    ak_cpu_own_rows(p, c->params.by.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->domain) && end > begin; t++)
        p->cpu->kernels.softcap(own_part(p, c->out, t, begin), c->params.by.by, end - begin);
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
