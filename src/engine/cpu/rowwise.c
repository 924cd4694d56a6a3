/* Steps that work on whole rows, or on one thread's columns of every row. */
#include <string.h>

#include "engine/cpu/cpu.h"

/* Computes the rotation angles of the tokens, which all layers share. */
void ak_cpu_step_angles(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    size_t begin, end;
    (void)step;
    ak_chunk_range(p->pass.batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        for (uint32_t table = 0; table < p->spec->n_rotations; table++)
            ak_table_rope_angles(p->spec, p->memory.frequencies, table, p->pass.batch->positions[t],
                                 ak_cpu_angles(p, p->pass.cos, table, t),
                                 ak_cpu_angles(p, p->pass.sin, table, t));
}

static void step_embed(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t begin, end;
    ak_chunk_range(p->pass.batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        if (p->pass.batch->hidden)
            memcpy(out, p->pass.batch->hidden + t * p->pass.batch->hidden_stride,
                   p->spec->config.width * sizeof *out);
        else
            ak_table_embed_token(p->weights, &c->params.embed, p->cpu->kernels.dequantize,
                                 p->pass.batch->tokens[t], p->pass.batch->positions[t],
                                 ak_batch_token_type(p->pass.batch, (uint32_t)t),
                                 p->memory.scratch[thread].row, out);
    }
    ak_cpu_step_angles(step, p, thread);
}

static void step_frames(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_frames_params *f = &c->params.frames;
    size_t begin, end;
    ak_chunk_range(p->pass.batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        memcpy(ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out),
               p->pass.batch->frames[p->pass.batch->sequences[t]] +
                   (size_t)p->pass.batch->positions[t] * f->step,
               f->n * sizeof(float));
}

static void step_add_position(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                              unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t begin, end;
    ak_chunk_range(p->pass.batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        ak_table_add_position(p->weights, p->cpu->kernels.dequantize, p->pass.batch->positions[t],
                              p->memory.scratch[thread].row,
                              ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out));
}

static void step_previous(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                          unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t n = c->params.previous.n, begin, end;
    ak_chunk_range(p->pass.batch->n, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        const float *in = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in);
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        if (p->pass.batch->positions[t] > 0)
            memcpy(out, in - ak_cpu_stride(p, c->in) + n / 2, n / 2 * sizeof *out);
        else
            memset(out, 0, n / 2 * sizeof *out);
        memcpy(out + n / 2, in, n * sizeof *out);
    }
}

void ak_cpu_norm(const struct ak_cpu_prepared *p, const struct ak_command *c,
                 const float *restrict x, float *restrict out)
{
    const struct ak_op_norm_params *norm = &c->params.norm;
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    const float *weight = p->weights->vectors[c->vector].data;
    if (norm->layer_norm)
        k->layer_norm(x + norm->offset, weight,
                      c->vector2 == AK_OP_NONE ? p->memory.zeros :
                                                 p->weights->vectors[c->vector2].data,
                      norm->n, norm->eps, out);
    else
        k->rms_norm(x + norm->offset, weight, norm->n, norm->eps, out);
}

void ak_cpu_step_norm(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_norm_params *norm = &c->params.norm;
    float *row = p->memory.scratch[thread].row;
    size_t begin, end;
    ak_chunk_range(ak_cpu_rows(p, step->row_set), p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        float *out = ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out);
        ak_cpu_norm(p, c, ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in),
                    c->in == c->out ? row : out);
        if (c->in == c->out)
            memcpy(out + norm->offset, row, norm->n * sizeof *out);
    }
}

/* This thread's elements of row t of a slot, from `begin` on. */
static float *thread_part(const struct ak_cpu_prepared *p, uint32_t slot, size_t t, uint32_t begin)
{
    return ak_cpu_slot(p, slot) + t * ak_cpu_stride(p, slot) + begin;
}

enum { PREFETCH_ROWS = 8 };

/* Prefetches for writing: another thread has read these lines since this one wrote them. */
static void prefetch_part(const struct ak_cpu_prepared *p, uint32_t slot, size_t t, size_t n_rows,
                          uint32_t begin, uint32_t end)
{
    if (t + PREFETCH_ROWS >= n_rows)
        return;
    const float *part = thread_part(p, slot, t + PREFETCH_ROWS, begin);
    for (size_t i = 0; i < end - begin; i += AK_LINE_BYTES / sizeof *part)
        __builtin_prefetch(part + i, 1);
}

static void step_add(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    float scale = c->params.add.scale;
    uint32_t begin, end, n_rows = ak_cpu_rows(p, step->row_set), at = c->params.add.at;
    ak_cpu_chunk_rows(p, c->params.add.n, thread, &begin, &end);
    for (size_t t = 0; t < n_rows && end > begin; t++) {
        const float *in = thread_part(p, c->in, t, begin);
        float *out = thread_part(p, c->out, t, at + begin);
        prefetch_part(p, c->out, t, n_rows, at + begin, at + end);
        if (scale == 1.0f)
            k->add(out, in, end - begin);
        else
            k->add_scaled(out, in, scale, end - begin);
    }
}

/* Rectified linear units are two instructions per element, for which compilers need no help. */
static void relu(const float *in, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] > 0.0f ? in[i] : 0.0f;
}

static void relu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (gate[i] > 0.0f ? gate[i] : 0.0f) * up[i];
}

static void step_gated(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_gated_params *g = &c->params.gated;
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    uint32_t begin, end, n_rows = ak_cpu_rows(p, step->row_set);
    ak_cpu_chunk_rows(p, g->n, thread, &begin, &end);
    for (size_t t = 0; t < n_rows && end > begin; t++) {
        const float *in = thread_part(p, c->in, t, begin);
        float *out = thread_part(p, c->out, t, begin);
        prefetch_part(p, c->out, t, n_rows, begin, end);
        switch (g->activation) {
        case AK_OP_ACTIVATION_SILU:
            k->silu_mul(in + g->gate_at, in + g->up_at, out, end - begin);
            break;
        case AK_OP_ACTIVATION_GELU_TANH:
            k->gelu_tanh_mul(in + g->gate_at, in + g->up_at, out, end - begin);
            break;
        case AK_OP_ACTIVATION_GELU_ERF:
            k->gelu_erf_mul(in + g->gate_at, in + g->up_at, out, end - begin);
            break;
        case AK_OP_ACTIVATION_SWIGLU_CLAMPED:
            k->swiglu_clamped(in + g->gate_at, in + g->up_at, out, end - begin);
            break;
        case AK_OP_ACTIVATION_RELU:
            relu_mul(in + g->gate_at, in + g->up_at, out, end - begin);
            break;
        }
    }
}

static void step_activate(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                          unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    uint32_t begin, end;
    ak_cpu_chunk_rows(p, c->params.activate.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->row_set) && end > begin; t++) {
        const float *in = thread_part(p, c->in, t, begin);
        float *out = thread_part(p, c->out, t, begin);
        size_t n = end - begin;
        switch (c->params.activate.activation) {
        case AK_OP_ACTIVATION_GELU_ERF: k->gelu_erf(in, out, n); break;
        case AK_OP_ACTIVATION_SILU:
            if (in != out)
                memcpy(out, in, n * sizeof *out);
            k->silu(out, n);
            break;
        case AK_OP_ACTIVATION_RELU: relu(in, out, n); break;
        default: k->gelu_tanh(in, out, n); break;
        }
    }
}

static void step_divide(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t begin, end;
    ak_cpu_chunk_rows(p, c->params.divide.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->row_set) && end > begin; t++)
        p->cpu->kernels.divide(thread_part(p, c->out, t, begin), c->params.divide.value,
                               end - begin);
}

static void step_cap(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    uint32_t begin, end;
    ak_cpu_chunk_rows(p, c->params.cap.n, thread, &begin, &end);
    for (size_t t = 0; t < ak_cpu_rows(p, step->row_set) && end > begin; t++)
        p->cpu->kernels.softcap(thread_part(p, c->out, t, begin), c->params.cap.value, end - begin);
}

static void step_select(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    size_t begin, end;
    ak_chunk_range(ak_cpu_rows(p, AK_OP_ROWS_LOGITS), p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        memcpy(ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out),
               ak_cpu_slot(p, c->in) + p->pass.batch->logit_rows[t] * ak_cpu_stride(p, c->in),
               c->params.select.n * sizeof(float));
}

const struct ak_cpu_op ak_cpu_op_norm = { .steps = { ak_cpu_step_norm } };
const struct ak_cpu_op ak_cpu_op_embed = { .steps = { step_embed } };
const struct ak_cpu_op ak_cpu_op_frames = { .steps = { step_frames } };
const struct ak_cpu_op ak_cpu_op_add_position = { .steps = { step_add_position } };
const struct ak_cpu_op ak_cpu_op_previous = { .steps = { step_previous } };
const struct ak_cpu_op ak_cpu_op_add = { .steps = { step_add }, .is_chunked = true };
const struct ak_cpu_op ak_cpu_op_gated = { .steps = { step_gated }, .is_chunked = true };
const struct ak_cpu_op ak_cpu_op_activate = { .steps = { step_activate }, .is_chunked = true };
const struct ak_cpu_op ak_cpu_op_divide = { .steps = { step_divide }, .is_chunked = true };
const struct ak_cpu_op ak_cpu_op_cap = { .steps = { step_cap }, .is_chunked = true };
const struct ak_cpu_op ak_cpu_op_select = { .steps = { step_select } };
