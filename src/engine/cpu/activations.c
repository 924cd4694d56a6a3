/* Activations in the formats that weights need: PREPARE, before the matrix products that read them.
 */
#include <string.h>

#include "base/mem.h"
#include "engine/cpu/cpu.h"

static void quantize_row(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                         const float *x, size_t n, uint8_t *out)
{
    if (format == AK_CPU_ACT_Q8_32)
        kernels->quantize32(x, n, (struct ak_cpu_act32 *)(void *)out);
    else
        kernels->quantize256(x, n, (struct ak_cpu_act256 *)(void *)out);
}

void ak_cpu_subtract_quantized(enum ak_cpu_act_format format, float *x, size_t n,
                               const uint8_t *activations)
{
    size_t block = ak_cpu_act_block_elems(format);
    for (size_t b = 0; b < n / block; b++) {
        const struct ak_cpu_act32 *a32 = (const struct ak_cpu_act32 *)(const void *)activations + b;
        const struct ak_cpu_act256 *a256 =
            (const struct ak_cpu_act256 *)(const void *)activations + b;
        const int8_t *q = format == AK_CPU_ACT_Q8_32 ? a32->q : a256->q;
        float scale = format == AK_CPU_ACT_Q8_32 ? a32->scale : a256->scale;
        for (size_t i = 0; i < block; i++)
            x[b * block + i] -= scale * (float)q[i];
    }
}

void ak_cpu_quantize_terms(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                           float *x, size_t n, uint32_t terms, uint8_t *out)
{
    size_t bytes = ak_cpu_act_bytes(format, n);
    quantize_row(kernels, format, x, n, out);
    for (uint32_t i = 1; i < terms; i++) {
        ak_cpu_subtract_quantized(format, x, n, out + (i - 1) * bytes);
        quantize_row(kernels, format, x, n, out + i * bytes);
    }
}

/* Writes row t in one format with `terms` terms. The caller has padded the n floats with zeros to a
 * multiple of AK_LANES. Overwrites x if terms > 1. */
static void write_activations(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                              float *x, size_t n, size_t t, uint32_t terms, uint8_t *out)
{
    size_t bytes = ak_cpu_act_bytes(format, n), padded = ak_round_up(n, AK_LANES);
    uint8_t *term = out + t * terms * bytes;
    switch (format) {
    case AK_CPU_ACT_PANEL_F32:
        kernels->interleave_token_f32(x, padded, t, (float *)(void *)out);
        return;
    case AK_CPU_ACT_PANEL_BF16:
        kernels->interleave_token_bf16(x, padded, t, (uint16_t *)(void *)out);
        return;
    case AK_CPU_ACT_F32: memcpy(term, x, bytes); return;
    default: break;
    }
    ak_cpu_quantize_terms(kernels, format, x, n, terms, term);
}

enum ak_cpu_act_format ak_cpu_select_act_format(const struct ak_cpu *cpu,
                                                const struct ak_pack_weight *packed, size_t n)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(packed->type);
    if (ak_cpu_uses_blas(cpu, packed, n))
        return AK_CPU_ACT_F32;
    if (format != AK_CPU_ACT_F32 || ak_cpu_uses_skinny(cpu, packed, n) || packed->n_experts)
        return format; /* no panels: an expert's first row may be inside a group of tokens */
    if (ak_cpu_uses_bf16(cpu, packed))
        return AK_CPU_ACT_PANEL_BF16;
    return cpu->kernels.unpack_panel_f32[packed->type] ? AK_CPU_ACT_PANEL_F32 : AK_CPU_ACT_F32;
}

enum ak_cpu_act_format ak_cpu_get_act_format(const struct ak_cpu_prepared *p,
                                             const struct ak_pack_weight *packed, size_t n)
{
    return p->memory.panel_cache ? AK_CPU_ACT_PANEL_F32 :
                                   ak_cpu_select_act_format(p->cpu, packed, n);
}

/* Terms per token (2: with a residual term) in each format that the linear commands after PREPARE
 * read; 0: unused. Weights that share a format need the same number of terms, because all weights
 * of an operator have one quantization scheme or are floats. Returns the maximum. */
static uint32_t count_terms(const struct ak_cpu_step *step, const struct ak_cpu_prepared *p,
                            size_t rows, uint32_t terms[AK_CPU_ACT_COUNT])
{
    uint32_t max = 1;
    memset(terms, 0, AK_CPU_ACT_COUNT * sizeof *terms);
    for (uint32_t i = 0; i < step->n_linears; i++) {
        const struct ak_pack_weight *packed = &p->weights->packed[step->linears[i].weight];
        enum ak_cpu_act_format format = ak_cpu_get_act_format(p, packed, rows);
        terms[format] =
            format == AK_CPU_ACT_Q8_32 || format == AK_CPU_ACT_Q8_256 ? ak_cpu_n_terms(packed) : 1;
        max = terms[format] > max ? terms[format] : max;
    }
    return max;
}

/* Whether a linear command after PREPARE wants residual blocks of its activations. */
static bool wants_residual(const struct ak_cpu_step *step, const struct ak_cpu_prepared *p,
                           size_t rows, enum ak_cpu_act_format format)
{
    for (uint32_t i = 0; i < step->n_linears; i++) {
        const struct ak_pack_weight *packed = &p->weights->packed[step->linears[i].weight];
        if (ak_cpu_wants_residual(packed) && ak_cpu_get_act_format(p, packed, rows) == format)
            return true;
    }
    return false;
}

static float *reorder_row(const struct ak_pack_weight *packed, const float *restrict x,
                          float *restrict out)
{
    for (uint32_t i = 0; i < packed->cols; i++)
        out[i] = x[packed->order[i]];
    return out;
}

bool ak_cpu_interleaves_in_place(const struct ak_cpu_step *step, enum ak_cpu_act_format format,
                                 size_t rows)
{
    return step->consumes_input && format == AK_CPU_ACT_PANEL_F32 &&
           !ak_cpu_is_skinny((uint32_t)rows);
}

_Static_assert(AK_PANEL_TOKEN_STEP <= AK_PANEL_ROWS_MAX, "weight_rows holds a group of tokens");

/* Interleaves the slot's rows in place: whole groups of tokens, which take up as much as rows. */
static void interleave_in_place(const struct ak_cpu_step *step, const struct ak_cpu_prepared *p,
                                size_t rows, unsigned thread)
{
    size_t k = ak_cpu_stride(p, step->command->in), begin, end;
    float *tokens = ak_cpu_slot(p, step->command->in),
          *copy = p->memory.scratch[thread].weight_rows;
    ak_chunk_range((rows + AK_PANEL_TOKEN_STEP - 1) / AK_PANEL_TOKEN_STEP, p->n_threads, thread,
                   &begin, &end);
    for (size_t group = begin; group < end; group++) {
        size_t first = group * AK_PANEL_TOKEN_STEP,
               n = ak_min_size(rows - first, AK_PANEL_TOKEN_STEP);
        memcpy(copy, tokens + first * k, n * k * sizeof *copy);
        for (size_t t = 0; t < n; t++)
            p->cpu->kernels.interleave_token_f32(copy + t * k, k, first + t, tokens);
    }
}

void ak_cpu_step_prepare(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_cpu_kernels *kernels = &p->cpu->kernels;
    const struct ak_pack_weight *packed = &p->weights->packed[step->linears->weight];
    struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    size_t rows = ak_cpu_rows(p, step->row_set), begin = 0, end = rows,
           padding = ak_round_up(packed->cols, AK_LANES) - packed->cols;
    uint32_t terms[AK_CPU_ACT_COUNT], max_terms = count_terms(step, p, rows, terms);
    bool is_skinny = ak_cpu_is_skinny((uint32_t)rows);
    uint8_t *const *activations = is_skinny ? scratch->activations : p->memory.activations;
    const struct ak_cpu_residuals *residuals = is_skinny ? scratch->residuals : p->memory.residuals;
    bool has_residual[AK_CPU_ACT_COUNT] = { 0 };
    if (ak_cpu_gathers_activations(p, step)) {
        ak_cpu_prepare_shards(step, p, thread);
        return;
    }
    if (ak_cpu_interleaves_in_place(step, ak_cpu_get_act_format(p, packed, rows), rows)) {
        interleave_in_place(step, p, rows, thread);
        return;
    }
    for (unsigned format = 0; format < AK_CPU_ACT_TYPE_COUNT; format++)
        has_residual[format] = wants_residual(step, p, rows, (enum ak_cpu_act_format)format);
    if (!is_skinny)
        ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        size_t row = c->op == AK_OP_GATHER ? p->pass.routes.token_of[t] : t;
        float *x = ak_cpu_slot(p, c->in) + row * ak_cpu_stride(p, c->in);
        if (c->op == AK_OP_NORM) {
            ak_cpu_norm(p, c, x, scratch->row);
            x = scratch->row;
        } else if (!packed->order && (max_terms > 1 || padding > 0)) {
            x = memcpy(scratch->row, x, packed->cols * sizeof *x);
        }
        memset(scratch->row + packed->cols, 0, padding * sizeof *x);
        if (packed->order) /* whole blocks of 32: no padding */
            x = reorder_row(packed, x, scratch->ordered_row);
        for (uint32_t n = 1; n <= max_terms; n++) /* two terms overwrite x: they come last */
            for (enum ak_cpu_act_format format = 0; format < AK_CPU_ACT_COUNT; format++) {
                if (terms[format] != n)
                    continue;
                write_activations(kernels, format, x, packed->cols, t, n, activations[format]);
                if (has_residual[format])
                    ak_cpu_find_residual(kernels, format, x, packed->cols,
                                         activations[format] +
                                             t * ak_cpu_act_bytes(format, packed->cols),
                                         t, &residuals[format]);
            }
    }
    for (enum ak_cpu_act_format format = 0; format < AK_CPU_ACT_COUNT; format++)
        if (has_residual[format])
            ak_cpu_sort_residuals(format, packed->cols, begin, end, &residuals[format],
                                  scratch->block_counts);
}

const struct ak_cpu_op ak_cpu_op_gather = { .steps = { ak_cpu_step_prepare } };
