/* Matrix products. */
#include <string.h>

#include "base/mem.h"
#include "engine/cpu/cpu.h"

/* Stored rows or cached panel to prefetch. */
struct prefetch_range {
    const uint8_t *data;
    size_t bytes;
};

/* Operands of one part's product, for the rows of one thread. */
struct product {
    const struct ak_cpu_kernels *kernels;
    const struct ak_backend_profile *profile;
    const struct ak_pack_weight *packed;
    const uint8_t *activations;
    size_t act_bytes, n; /* tokens */
    float *y;            /* output of the part's first row */
    size_t y_stride;
    struct ak_cpu_scratch *scratch;
    const struct ak_cpu_residuals *residuals; /* NULL: none */
    enum ak_cpu_act_format format;
    bool uses_skinny;                  /* selects kernels only; all give the same bits */
    struct prefetch_range next_rows;   /* to prefetch after these rows */
    struct ak_panel_cache panel_cache; /* cache of this part */
    size_t panel_rows;
};

/* Joins the slices of one tile row into Q8_0 tiles. */
static void join_tile_row(const struct ak_cpu_kernels *kernels, struct ak_cpu_slices slices,
                          size_t k, uint8_t *tiles)
{
    for (size_t left = k / AK_BLOCK_K, blocks; left > 0; left -= blocks) {
        blocks = ak_min_size(left, AK_TILE_BLOCKS);
        kernels->join_slices(slices.high, slices.low, blocks, tiles);
        slices.high += ak_cpu_tile_bytes(AK_QUANT_Q5_0, blocks);
        slices.low += blocks * AK_SLICES_LOW_BLOCK_BYTES;
        tiles += ak_cpu_tile_bytes(AK_QUANT_Q8_0, blocks);
    }
}

/* Returns n tile rows of a part; sliced ones are joined in scratch. */
static const uint8_t *get_tiles(const struct product *m, const struct ak_pack_part *part,
                                size_t tile, size_t n)
{
    size_t k = m->packed->cols, bytes = ak_cpu_tile_row_bytes(m->packed->type, k);
    if (m->packed->layout != AK_CPU_LAYOUT_SLICES_1)
        return part->data + tile * bytes;
    for (size_t i = 0; i < n; i++)
        join_tile_row(m->kernels, ak_cpu_get_slices(part->data, k, tile + i), k,
                      m->scratch->joined + i * bytes);
    return m->scratch->joined;
}

/* Skinny GEMM of n tile rows and any number of tokens, AK_SKINNY_MAX at a time. */
static void dot_tiles(const struct product *m, const uint8_t *tiles, size_t n_tiles, size_t n,
                      float *y, size_t y_stride)
{
    for (size_t t = 0, count; t < n; t += count) {
        count = ak_min_size(n - t, AK_SKINNY_MAX);
        m->kernels->tile[m->packed->type].dot_tiles(
            tiles, n_tiles, m->packed->cols, m->activations + t * m->act_bytes, m->act_bytes, count,
            y + t * y_stride, y_stride,
            ak_backend_profile_prefetch(m->profile, m->packed->type, count));
    }
}

static void multiply_tiles(const struct product *m, const struct ak_pack_part *part, uint32_t begin,
                           uint32_t end)
{
    const struct ak_cpu_tile_kernels *kernels = &m->kernels->tile[m->packed->type];
    size_t bytes = ak_cpu_tile_row_bytes(m->packed->type, m->packed->cols), k = m->packed->cols;
    size_t last = (end + AK_TILE_ROWS - 1) / AK_TILE_ROWS, max = AK_PANEL_I8_TILES_MAX;
    if (m->uses_skinny) /* more tokens and residual blocks find the tile rows in the cache */
        max = m->residuals || m->n > AK_SKINNY_MAX ? AK_SKINNY_CACHE_BYTES / bytes + 1 : SIZE_MAX;
    for (size_t tile = begin / AK_TILE_ROWS, n; tile < last; tile += n) {
        const uint8_t *tiles = part->data + tile * bytes;
        float *y = m->y + tile * AK_TILE_ROWS;
        n = ak_min_size(last - tile, max);
        if (m->uses_skinny) {
            dot_tiles(m, tiles, n, m->n, y, m->y_stride);
        } else {
            kernels->unpack_panel_i8(tiles, n, k, m->scratch->panel_i8);
            kernels->dot_panel_i8(m->scratch->panel_i8, n, k, m->activations, m->act_bytes, m->n, y,
                                  m->y_stride);
        }
        if (m->residuals)
            ak_cpu_add_residuals(m->kernels, m->packed, tiles, n, m->residuals, m->n, m->scratch, y,
                                 m->y_stride);
    }
}

void ak_cpu_add_terms(const float *terms, size_t n, size_t width, float *y, size_t y_stride)
{
    for (size_t t = 0; t < n; t++, terms += 2 * width, y += y_stride)
        for (size_t i = 0; i < width; i++)
            y[i] = terms[i] + terms[width + i];
}

/* Multiplies n sliced tile rows by all terms. */
static void multiply_slices(const struct product *m, const struct ak_pack_part *part, size_t tile,
                            size_t n, size_t n_terms)
{
    size_t k = m->packed->cols;
    struct ak_cpu_slices slices = ak_cpu_get_slices(part->data, k, tile), next;
    for (size_t i = 0; i < n; i++, slices = next) {
        next = ak_cpu_get_slices(part->data, k, tile + i + 1);
        m->kernels->dot_slices(&slices, &next, k, m->activations, m->act_bytes, n_terms,
                               m->scratch->terms + i * AK_TILE_ROWS, n * AK_TILE_ROWS);
    }
}

static void multiply_term_tiles(const struct product *m, const struct ak_pack_part *part,
                                uint32_t begin, uint32_t end)
{
    const struct ak_cpu_tile_kernels *kernels = &m->kernels->tile[m->packed->type];
    size_t last = (end + AK_TILE_ROWS - 1) / AK_TILE_ROWS, n_terms = m->n * AK_TERMS_MAX,
           k = m->packed->cols;
    bool has_slices = m->packed->layout == AK_CPU_LAYOUT_SLICES_1,
         uses_skinny = m->uses_skinny && (!has_slices || ak_cpu_is_skinny((uint32_t)n_terms));
    size_t max = AK_TERM_TILES_MAX * AK_SKINNY_MAX / ak_max_size(n_terms, AK_SKINNY_MAX);
    for (size_t tile = begin / AK_TILE_ROWS, n; tile < last; tile += n) {
        n = ak_min_size(last - tile, uses_skinny ? max : AK_PANEL_I8_TILES_MAX);
        if (uses_skinny && has_slices) {
            multiply_slices(m, part, tile, n, n_terms);
        } else if (uses_skinny) {
            dot_tiles(m, get_tiles(m, part, tile, n), n, n_terms, m->scratch->terms,
                      n * AK_TILE_ROWS);
        } else {
            kernels->unpack_panel_i8(get_tiles(m, part, tile, n), n, k, m->scratch->panel_i8);
            kernels->dot_panel_i8(m->scratch->panel_i8, n, k, m->activations, m->act_bytes, n_terms,
                                  m->scratch->terms, n * AK_TILE_ROWS);
        }
        ak_cpu_add_terms(m->scratch->terms, m->n, n * AK_TILE_ROWS, m->y + tile * AK_TILE_ROWS,
                         m->y_stride);
    }
}

/* Dequantizes one stored row to k floats; k is a multiple of AK_LANES. */
static void dequantize_row(const struct product *m, const uint8_t *stored, size_t k, float *to)
{
    size_t cols = m->packed->cols;
    m->kernels->dequantize[m->packed->type](stored, to, cols);
    memset(to + cols, 0, (k - cols) * sizeof *to);
}

static size_t get_row_bytes(const struct ak_pack_weight *packed)
{
    uint64_t bytes = 0;
    if (ak_cpu_is_tiled(packed->type))
        return ak_cpu_tile_row_bytes(packed->type, packed->cols) / AK_TILE_ROWS;
    (void)ak_quant_row_bytes(packed->type, packed->cols, &bytes);
    return (size_t)bytes;
}

/* Rows [begin, end) of a part in stored layout. */
struct stored_rows {
    const uint8_t *data;
    size_t row_bytes, begin, end;
};

/* Returns n rows from `row` on as an f32 panel, from the cache or unpacked into scratch. */
static const float *get_panel(const struct product *m, const struct stored_rows *rows, size_t row,
                              size_t n, size_t k)
{
    const struct ak_panel_cache *panel_cache = &m->panel_cache;
    float *panel = panel_cache->panels ? panel_cache->panels + row * k : m->scratch->weight_rows;
    if (panel_cache->panels && panel_cache->is_unpacked[row / AK_TILE_ROWS])
        return panel;
    m->kernels->unpack_panel_f32[m->packed->type](rows->data + row * rows->row_bytes,
                                                  rows->row_bytes, n, m->packed->cols, panel);
    if (panel_cache->panels)
        panel_cache->is_unpacked[row / AK_TILE_ROWS] = true;
    return panel;
}

/* Returns the bytes from which n rows starting at `row` will be read: cached panel or stored
 * rows. */
static struct prefetch_range locate_rows(const struct ak_pack_weight *packed,
                                         const struct ak_pack_part *part,
                                         struct ak_panel_cache panel_cache, size_t row, size_t n)
{
    size_t k = ak_round_up(packed->cols, AK_LANES), bytes = get_row_bytes(packed);
    if (panel_cache.panels)
        return (struct prefetch_range){ (const uint8_t *)(panel_cache.panels + row * k),
                                        n * k * sizeof *panel_cache.panels };
    return (struct prefetch_range){ part->data + row * bytes, n * bytes };
}

/* GEMM over f32 panels. */
static void multiply_panels(const struct product *m, const struct ak_pack_part *part,
                            const struct stored_rows *rows, size_t k)
{
    const float *tokens = (const float *)(const void *)m->activations;
    for (size_t row = rows->begin, n; row < rows->end; row += n) {
        n = ak_min_size(rows->end - row, m->panel_rows);
        size_t left = rows->end - row - n;
        struct prefetch_range next = left ? locate_rows(m->packed, part, m->panel_cache, row + n,
                                                        ak_min_size(left, m->panel_rows)) :
                                            m->next_rows;
        m->kernels->dot_panel_f32(get_panel(m, rows, row, n, k), n, tokens, m->n, k, m->y + row,
                                  m->y_stride, next.data, next.bytes);
    }
}

/* GEMM over BF16 panels. */
static void multiply_bf16(const struct product *m, const struct stored_rows *rows, size_t k)
{
    size_t max = ak_cpu_panel_bf16_rows(m->kernels, k);
    const uint16_t *tokens = (const uint16_t *)(const void *)m->activations;
    uint16_t *panel = (uint16_t *)(void *)m->scratch->weight_rows;
    for (size_t row = rows->begin, n; row < rows->end; row += n) {
        n = ak_min_size(rows->end - row, max);
        m->kernels->unpack_panel_bf16[m->packed->type](rows->data + row * rows->row_bytes,
                                                       rows->row_bytes, n, k, panel);
        m->kernels->dot_panel_bf16(panel, n, tokens, m->n, k, m->y + row, m->y_stride);
    }
}

static void multiply_dequantized(const struct product *m, const struct stored_rows *rows, size_t k)
{
    size_t max = m->uses_skinny ? AK_DEQUANTIZE_ROWS_SKINNY : AK_DEQUANTIZE_ROWS_GEMM;
    const float *x = (const float *)(const void *)m->activations;
    for (size_t row = rows->begin, n; row < rows->end; row += n) {
        n = ak_min_size(rows->end - row, max);
        for (size_t i = 0; i < n; i++)
            dequantize_row(m, rows->data + (row + i) * rows->row_bytes, k,
                           m->scratch->weight_rows + i * k);
        m->kernels->dot_rows(m->scratch->weight_rows, k, n, x, k, m->n, k, m->y + row, m->y_stride);
    }
}

static void multiply_rows(const struct product *m, const struct ak_pack_part *part, uint32_t begin,
                          uint32_t end)
{
    ak_dot_stored_fn *dot_stored = m->kernels->dot_stored[m->packed->type];
    size_t cols = m->packed->cols, k = ak_round_up(cols, AK_LANES);
    uint64_t bytes = 0;
    (void)ak_quant_row_bytes(m->packed->type, cols, &bytes);
    struct stored_rows rows = {
        .data = part->data, .row_bytes = (size_t)bytes, .begin = begin, .end = end
    };
    if (m->format == AK_CPU_ACT_PANEL_F32)
        multiply_panels(m, part, &rows, k);
    else if (m->format == AK_CPU_ACT_PANEL_BF16)
        multiply_bf16(m, &rows, k);
    else if (m->uses_skinny && dot_stored)
        dot_stored(part->data + begin * bytes, (size_t)bytes, end - begin, cols,
                   (const float *)(const void *)m->activations, k, m->n, m->y + begin, m->y_stride,
                   ak_backend_profile_prefetch(m->profile, m->packed->type, m->n));
    else
        multiply_dequantized(m, &rows, k);
}

/* ---- BLAS --------------------------------------------------------------- */
/* Dequantizes rows of a part. */
static void dequantize_rows(const struct product *m, const struct ak_pack_part *part, size_t row,
                            size_t n, float *to)
{
    const struct ak_pack_weight *packed = m->packed;
    uint64_t row_bytes = 0;
    (void)ak_quant_row_bytes(packed->type, packed->cols, &row_bytes);
    for (size_t end = row + n; row < end; row++, to += packed->cols) {
        if (ak_cpu_type_act_format(packed->type) == AK_CPU_ACT_F32)
            m->kernels->dequantize[packed->type](part->data + row * row_bytes, to, packed->cols);
        else
            ak_cpu_dequantize_row(packed->type, get_tiles(m, part, row / AK_TILE_ROWS, 1),
                                  packed->cols, row % AK_TILE_ROWS, to);
    }
}

/* All threads dequantize rows; the first thread calls BLAS. */
static void multiply_blas(const struct product *m, const struct ak_cpu_prepared *p,
                          const struct ak_pack_part *part, unsigned thread)
{
    size_t k = m->packed->cols, max = ak_cpu_blas_rows(k);
    size_t x_stride = m->act_bytes / sizeof(float);
    const float *x = (const float *)(const void *)m->activations;
    float *rows = p->memory.scratch[0].blas;
    for (size_t row = 0, n; row < part->rows; row += n) {
        size_t begin, end;
        n = ak_min_size(part->rows - row, max);
        ak_chunk_range(n, p->n_threads, thread, &begin, &end);
        dequantize_rows(m, part, row + begin, end - begin, rows + begin * k);
        ak_pool_barrier(p->pool, thread);
        if (thread == 0)
            ak_cpu_blas_dot_rows(&p->cpu->blas, rows, k, n, x, x_stride, m->n, k, m->y + row,
                                 m->y_stride);
        ak_pool_barrier(p->pool, thread);
    }
}

static void add_bias(const struct product *m, const float *bias, uint32_t begin, uint32_t end)
{
    for (size_t t = 0; t < m->n && end > begin; t++)
        m->kernels->add(m->y + t * m->y_stride + begin, bias + begin, end - begin);
}

static void multiply_part(const struct product *m, const struct ak_pack_part *part, uint32_t begin,
                          uint32_t end)
{
    if (ak_cpu_type_act_format(m->packed->type) == AK_CPU_ACT_F32)
        multiply_rows(m, part, begin, end);
    else if (ak_cpu_n_terms(m->packed) > 1)
        multiply_term_tiles(m, part, begin, end);
    else
        multiply_tiles(m, part, begin, end);
}

static void count_product(struct ak_backend_counts *counts, const struct product *m)
{
    if (m->n == 1)
        counts->gemv++;
    else if (m->uses_skinny)
        counts->skinny++;
    else
        counts->gemm++;
}

/* Panel cache of part i. */
static struct ak_panel_cache get_panel_cache(const struct ak_cpu_prepared *p,
                                             const struct ak_pack_weight *packed, uint32_t i)
{
    if (!p->memory.panel_cache)
        return (struct ak_panel_cache){ NULL, NULL };
    struct ak_panel_cache panel_cache = p->memory.panel_cache[packed - p->weights->packed];
    size_t rows = ak_cpu_panel_cache_rows(packed, i);
    return (struct ak_panel_cache){ panel_cache.panels + rows * ak_round_up(packed->cols, AK_LANES),
                                    panel_cache.is_unpacked + rows / AK_TILE_ROWS };
}

/* Finds the rows to prefetch: those after `end` in this thread's chunks; if none are left, the
 * thread's first rows of part i of the next linear command. Empty if that weight has no part i or
 * is stored in tiles. */
static struct prefetch_range find_next_rows(const struct ak_cpu_step *step,
                                            const struct ak_cpu_prepared *p, uint32_t i,
                                            uint32_t end, unsigned thread)
{
    const struct ak_pack_weight *packed = &p->weights->packed[step->command->weight];
    uint32_t last =
        ak_cpu_chunk_first_row(p, packed->parts[i].rows, (thread + 1) * AK_CHUNKS_PER_THREAD);
    while (end >= last) {
        do
            step++;
        while (step < p->steps + p->n_steps && step->run != ak_cpu_step_linear);
        if (step == p->steps + p->n_steps ||
            i >= (packed = &p->weights->packed[step->command->weight])->n_parts)
            return (struct prefetch_range){ NULL, 0 };
        end = ak_cpu_chunk_first_row(p, packed->parts[i].rows, thread * AK_CHUNKS_PER_THREAD);
        last =
            ak_cpu_chunk_first_row(p, packed->parts[i].rows, (thread + 1) * AK_CHUNKS_PER_THREAD);
    }
    if (ak_cpu_type_act_format(packed->type) != AK_CPU_ACT_F32)
        return (struct prefetch_range){ NULL, 0 };
    return locate_rows(packed, &packed->parts[i], get_panel_cache(p, packed, i), end,
                       ak_min_size(last - end, AK_PANEL_ROWS_MAX));
}

void ak_cpu_step_linear(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_pack_weight *packed = &p->weights->packed[c->weight];
    struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    size_t n = ak_cpu_rows(p, step->row_set);
    enum ak_cpu_act_format format = ak_cpu_get_act_format(p, packed, n);
    struct product m = { .kernels = &p->cpu->kernels,
                         .profile = &p->cpu->profile,
                         .packed = packed,
                         .n = n,
                         .y_stride = ak_cpu_stride(p, c->out),
                         .scratch = scratch,
                         .activations = ak_cpu_is_skinny((uint32_t)n) ?
                                            scratch->activations[format] :
                                            p->memory.activations[format],
                         .act_bytes = ak_cpu_act_bytes(format, packed->cols),
                         .residuals = !ak_cpu_wants_residual(packed) ? NULL :
                                      ak_cpu_is_skinny((uint32_t)n)  ? &scratch->residuals[format] :
                                                                       &p->memory.residuals[format],
                         .format = format,
                         .uses_skinny =
                             !p->memory.panel_cache && ak_cpu_uses_skinny(p->cpu, packed, n) };
    bool uses_blas = ak_cpu_uses_blas(p->cpu, packed, n);
    if (ak_cpu_interleaves_in_place(step, format, n))
        m.activations = (const uint8_t *)(const void *)ak_cpu_slot(p, c->in);
    if (scratch->chunk % AK_CHUNKS_PER_THREAD == 0)
        count_product(&scratch->counts, &m);
    for (uint32_t i = 0; i < packed->n_parts; i++) {
        const struct ak_pack_part *part = &packed->parts[i];
        uint32_t begin, end;
        ak_cpu_chunk_rows(p, part->rows, thread, &begin, &end);
        m.y = ak_cpu_slot(p, c->out) + part->output_offset;
        if (uses_blas)
            multiply_blas(&m, p, part, thread);
        if (begin >= end)
            continue;
        m.next_rows = format == AK_CPU_ACT_PANEL_F32 ? find_next_rows(step, p, i, end, thread) :
                                                       (struct prefetch_range){ NULL, 0 };
        m.panel_cache = get_panel_cache(p, packed, i);
        m.panel_rows = m.panel_cache.panels ? p->unit : AK_PANEL_ROWS_MAX;
        if (ak_cpu_wants_best(p, step))
            ak_cpu_output_estimate(step, p, thread, begin, end);
        else if (!uses_blas)
            multiply_part(&m, part, begin, end);
        if (c->vector != AK_OP_NONE)
            add_bias(&m, p->weights->vectors[c->vector].data + part->output_offset, begin, end);
    }
}

/* Multiplies each expert's rows by its own matrix; a thread processes its chunk of every matrix. */
void ak_cpu_step_experts(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_pack_weight *packed = &p->weights->packed[c->weight];
    struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    enum ak_cpu_act_format format = ak_cpu_type_act_format(packed->type);
    uint32_t n_rows = ak_cpu_rows(p, step->row_set);
    const uint8_t *activations =
        ak_cpu_is_skinny(n_rows) ? scratch->activations[format] : p->memory.activations[format];
    uint32_t width = ak_pack_linear_width(p->weights, packed->linear, packed->layer);
    struct product m = { .kernels = &p->cpu->kernels,
                         .profile = &p->cpu->profile,
                         .packed = packed,
                         .y_stride = ak_cpu_stride(p, c->out),
                         .scratch = scratch,
                         .act_bytes = ak_cpu_act_bytes(format, packed->cols),
                         .format = format };
    for (uint32_t e = 0; e < packed->n_experts; e++) {
        uint32_t first = p->pass.routes.begin[e];
        m.n = p->pass.routes.begin[e + 1] - first;
        if (m.n == 0)
            continue;
        m.uses_skinny = ak_cpu_uses_skinny(p->cpu, packed, m.n);
        m.activations = activations + first * m.act_bytes;
        if (scratch->chunk % AK_CHUNKS_PER_THREAD == 0)
            count_product(&scratch->counts, &m);
        for (uint32_t i = 0; i < packed->n_parts; i++) {
            struct ak_pack_part part = packed->parts[i];
            uint32_t begin, end;
            part.rows /= packed->n_experts;
            part.data = ak_pack_matrix(packed, &part, e, part.rows * get_row_bytes(packed));
            ak_cpu_chunk_rows(p, part.rows, thread, &begin, &end);
            m.y = ak_cpu_slot(p, c->out) + first * m.y_stride + part.output_offset;
            if (begin >= end)
                continue;
            multiply_part(&m, &part, begin, end);
            if (c->vector != AK_OP_NONE)
                add_bias(&m,
                         p->weights->vectors[c->vector].data + (size_t)e * width +
                             part.output_offset,
                         begin, end);
        }
    }
}

const struct ak_cpu_op ak_cpu_op_linear = { .steps = { ak_cpu_step_linear } };
