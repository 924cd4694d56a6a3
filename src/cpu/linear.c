/* Activations into the form that weights take, and matrix products. */
#include <string.h>

#include "base/mem.h"
#include "cpu/cpu.h"

static void quantize(const struct ak_kernels *k, enum ak_act_form form, const float *x, size_t n,
                     uint8_t *out)
{
    if (form == AK_ACT_32)
        k->quantize32(x, n, (struct ak_act32 *)(void *)out);
    else
        k->quantize256(x, n, (struct ak_act256 *)(void *)out);
}

/* What quantizing rounded away, in place. */
static void subtract_quantized(enum ak_act_form form, float *x, size_t n, const uint8_t *acts)
{
    size_t block = form == AK_ACT_32 ? 32 : 256;
    for (size_t b = 0; b < n / block; b++) {
        const struct ak_act32 *a32 = (const struct ak_act32 *)(const void *)acts + b;
        const struct ak_act256 *a256 = (const struct ak_act256 *)(const void *)acts + b;
        const int8_t *q = form == AK_ACT_32 ? a32->q : a256->q;
        float scale = form == AK_ACT_32 ? a32->scale : a256->scale;
        for (size_t i = 0; i < block; i++)
            x[b * block + i] -= scale * (float)q[i];
    }
}

void ak_quantise_planes(const struct ak_kernels *k, enum ak_act_form form, float *x, size_t n,
                        uint32_t planes, uint8_t *out)
{
    size_t bytes = ak_act_bytes(form, n);
    quantize(k, form, x, n, out);
    for (uint32_t i = 1; i < planes; i++) {
        subtract_quantized(form, x, n, out + (i - 1) * bytes);
        quantize(k, form, x, n, out + i * bytes);
    }
}

/* Row t of n floats, padded with zeros to whole vectors of AK_LANES, into its place
 * in one form, `planes` records a row; x is used up where there are two. */
static void convert(const struct ak_kernels *k, enum ak_act_form form, float *x, size_t n, size_t t,
                    uint32_t planes, uint8_t *out)
{
    size_t bytes = ak_act_bytes(form, n), padded = ak_round_up(n, AK_LANES);
    uint8_t *record = out + t * planes * bytes;
    switch (form) {
    case AK_ACT_OPEN: k->open_token(x, padded, t, (float *)(void *)out); return;
    case AK_ACT_OPEN_BF16: k->open_rounded(x, padded, t, (uint16_t *)(void *)out); return;
    case AK_ACT_F32: memcpy(record, x, bytes); return;
    default: break;
    }
    ak_quantise_planes(k, form, x, n, planes, record);
}

enum ak_act_form ak_cpu_act_form(const struct ak_cpu *cpu, const struct ak_packed *packed, size_t n)
{
    enum ak_act_form form = ak_type_act_form(packed->type);
    if (ak_cpu_takes_blas(cpu, packed, n))
        return AK_ACT_F32;
    if (form != AK_ACT_F32 || ak_cpu_takes_few(cpu, packed, n) || packed->n_experts)
        return form; /* experts' rows begin anywhere, open ones lie in blocks */
    if (ak_cpu_takes_bf16(cpu, packed))
        return AK_ACT_OPEN_BF16;
    return cpu->kernels.open_panel[packed->type] ? AK_ACT_OPEN : AK_ACT_F32;
}

static enum ak_act_form form_of(const struct ak_cpu_prepared *p, const struct ak_packed *packed,
                                size_t n)
{
    return p->kept ? AK_ACT_OPEN : ak_cpu_act_form(p->cpu, packed, n);
}

/* Records a token in each form that the commands after a PREPARE want; 0: none does.
 * Those that want the same form agree, since all of an operator are of one scheme or
 * floats. Gives the most. */
static uint32_t count_planes(const struct ak_cpu_step *step, const struct ak_cpu_prepared *p,
                             size_t rows, uint32_t planes[AK_ACT_ALL_COUNT])
{
    uint32_t most = 1;
    memset(planes, 0, AK_ACT_ALL_COUNT * sizeof *planes);
    for (uint32_t i = 0; i < step->n_linears; i++) {
        const struct ak_packed *packed = &p->weights->packed[step->linears[i].weight];
        enum ak_act_form form = form_of(p, packed, rows);
        planes[form] = form == AK_ACT_32 || form == AK_ACT_256 ? ak_cpu_planes(packed) : 1;
        most = planes[form] > most ? planes[form] : most;
    }
    return most;
}

static float *put_in_order(const struct ak_packed *packed, const float *restrict x,
                           float *restrict out)
{
    for (uint32_t i = 0; i < packed->cols; i++)
        out[i] = x[packed->order[i]];
    return out;
}

void ak_step_prepare(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_kernels *k = &p->cpu->kernels;
    const struct ak_packed *packed = &p->weights->packed[step->linears->weight];
    struct ak_thread_scratch *own = &p->scratch[thread];
    size_t rows = ak_cpu_rows(p, step->row_set), begin = 0, end = rows,
           padding = ak_round_up(packed->cols, AK_LANES) - packed->cols;
    uint32_t planes[AK_ACT_ALL_COUNT], most = count_planes(step, p, rows, planes);
    bool few = ak_cpu_is_few((uint32_t)rows);
    if (!few)
        ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++) {
        size_t row = c->op == AK_OP_GATHER ? p->routes.token_of[t] : t;
        float *x = ak_cpu_slot(p, c->in) + row * ak_cpu_stride(p, c->in);
        if (c->op == AK_OP_NORM) {
            ak_cpu_norm(p, c, x, own->row);
            x = own->row;
        } else if (!packed->order && (most > 1 || padding > 0)) {
            x = memcpy(own->row, x, packed->cols * sizeof *x);
        }
        memset(own->row + packed->cols, 0, padding * sizeof *x);
        if (packed->order) /* whole blocks of 32: no padding */
            x = put_in_order(packed, x, own->ordered);
        for (uint32_t n = 1; n <= most; n++) /* more than one use x up */
            for (unsigned form = 0; form < AK_ACT_ALL_COUNT; form++)
                if (planes[form] == n)
                    convert(k, (enum ak_act_form)form, x, packed->cols, t, n,
                            few ? own->acts[form] : p->acts[form]);
    }
}

/* Stored rows that a thread will want soon. */
struct ahead {
    const uint8_t *data;
    size_t bytes;
};

/* The operands of one part's product, for the rows of one thread. */
struct product {
    const struct ak_kernels *kernels;
    const struct ak_packed *packed;
    const uint8_t *acts;
    size_t act_bytes, n; /* tokens */
    float *y;            /* first element of the part */
    size_t y_stride;
    struct ak_thread_scratch *own;
    enum ak_act_form form;
    bool few;            /* in the kernels of few tokens; others give the same bits */
    struct ahead ahead;  /* after these rows */
    struct ak_kept kept; /* of the part */
    size_t panel_rows;
};

static void product_tiles(const struct product *m, const struct ak_packed_part *part,
                          uint32_t begin, uint32_t end)
{
    const struct ak_tile_kernels *kernels = &m->kernels->tile[m->packed->type];
    size_t bytes = ak_tile_row_bytes(m->packed->type, m->packed->cols), k = m->packed->cols;
    size_t first = begin / AK_TILE_ROWS, last = (end + AK_TILE_ROWS - 1) / AK_TILE_ROWS;
    if (m->few) {
        kernels->dot_tiles(part->data + first * bytes, last - first, k, m->acts, m->act_bytes, m->n,
                           m->y + begin, m->y_stride);
        return;
    }
    for (size_t tile = first, n; tile < last; tile += n) {
        n = ak_min_size(last - tile, AK_SLAB_TILES);
        kernels->open_slab(part->data + tile * bytes, n, k, m->own->slab);
        kernels->dot_slab(m->own->slab, n, k, m->acts, m->act_bytes, m->n,
                          m->y + tile * AK_TILE_ROWS, m->y_stride);
    }
}

void ak_add_planes(const float *planes, size_t n, size_t width, float *y, size_t y_stride)
{
    for (size_t t = 0; t < n; t++, planes += 2 * width, y += y_stride)
        for (size_t i = 0; i < width; i++)
            y[i] = planes[i] + planes[width + i];
}

static void product_wide_tiles(const struct product *m, const struct ak_packed_part *part,
                               uint32_t begin, uint32_t end)
{
    const struct ak_tile_kernels *kernels = &m->kernels->tile[m->packed->type];
    size_t bytes = ak_tile_row_bytes(m->packed->type, m->packed->cols), k = m->packed->cols;
    size_t last = (end + AK_TILE_ROWS - 1) / AK_TILE_ROWS, records = m->n * AK_PLANES_MAX;
    bool few = m->few && ak_cpu_is_few((uint32_t)records);
    for (size_t tile = begin / AK_TILE_ROWS, n; tile < last; tile += n) {
        n = ak_min_size(last - tile, few ? AK_WIDE_TILES : AK_SLAB_TILES);
        if (few) {
            kernels->dot_tiles(part->data + tile * bytes, n, k, m->acts, m->act_bytes, records,
                               m->own->planes, n * AK_TILE_ROWS);
        } else {
            kernels->open_slab(part->data + tile * bytes, n, k, m->own->slab);
            kernels->dot_slab(m->own->slab, n, k, m->acts, m->act_bytes, records, m->own->planes,
                              n * AK_TILE_ROWS);
        }
        ak_add_planes(m->own->planes, m->n, n * AK_TILE_ROWS, m->y + tile * AK_TILE_ROWS,
                      m->y_stride);
    }
}

/* One stored row as k floats, k a multiple of AK_LANES. */
static void widen_row(const struct product *m, const uint8_t *stored, size_t k, float *to)
{
    size_t cols = m->packed->cols;
    m->kernels->widen[m->packed->type](stored, to, cols);
    memset(to + cols, 0, (k - cols) * sizeof *to);
}

static size_t row_bytes_of(const struct ak_packed *packed)
{
    uint64_t bytes = 0;
    if (ak_type_is_tiled(packed->type))
        return ak_tile_row_bytes(packed->type, packed->cols) / AK_TILE_ROWS;
    (void)ak_quant_row_bytes(packed->type, packed->cols, &bytes);
    return (size_t)bytes;
}

/* Rows [begin, end) of a part that is stored as it was. */
struct stored_rows {
    const uint8_t *data;
    size_t row_bytes, begin, end;
};

/* n rows from `row` on as a panel. */
static const float *panel_of(const struct product *m, const struct stored_rows *rows, size_t row,
                             size_t n, size_t k)
{
    const struct ak_kept *kept = &m->kept;
    float *panel = kept->panels ? kept->panels + row * k : m->own->widened;
    if (kept->panels && kept->is_open[row / AK_TILE_ROWS])
        return panel;
    m->kernels->open_panel[m->packed->type](rows->data + row * rows->row_bytes, rows->row_bytes, n,
                                            m->packed->cols, panel);
    if (kept->panels)
        kept->is_open[row / AK_TILE_ROWS] = true;
    return panel;
}

/* Where n rows from `row` on are read. */
static struct ahead rows_at(const struct ak_packed *packed, const struct ak_packed_part *part,
                            struct ak_kept kept, size_t row, size_t n)
{
    size_t k = ak_round_up(packed->cols, AK_LANES), bytes = row_bytes_of(packed);
    if (kept.panels)
        return (struct ahead){ (const uint8_t *)(kept.panels + row * k),
                               n * k * sizeof *kept.panels };
    return (struct ahead){ part->data + row * bytes, n * bytes };
}

/* Many tokens. */
static void product_panels(const struct product *m, const struct ak_packed_part *part,
                           const struct stored_rows *rows, size_t k)
{
    const float *tokens = (const float *)(const void *)m->acts;
    for (size_t row = rows->begin, n; row < rows->end; row += n) {
        n = ak_min_size(rows->end - row, m->panel_rows);
        size_t left = rows->end - row - n;
        struct ahead next =
            left ? rows_at(m->packed, part, m->kept, row + n, ak_min_size(left, m->panel_rows)) :
                   m->ahead;
        m->kernels->dot_panel(panel_of(m, rows, row, n, k), n, tokens, m->n, k, m->y + row,
                              m->y_stride, next.data, next.bytes);
    }
}

/* The same with tokens rounded to BF16. */
static void product_bf16(const struct product *m, const struct stored_rows *rows, size_t k)
{
    size_t most = ak_bf16_rows(m->kernels, k);
    const uint16_t *tokens = (const uint16_t *)(const void *)m->acts;
    uint16_t *panel = (uint16_t *)(void *)m->own->widened;
    for (size_t row = rows->begin, n; row < rows->end; row += n) {
        n = ak_min_size(rows->end - row, most);
        m->kernels->open_bf16[m->packed->type](rows->data + row * rows->row_bytes, rows->row_bytes,
                                               n, k, panel);
        m->kernels->dot_bf16(panel, n, tokens, m->n, k, m->y + row, m->y_stride);
    }
}

static void product_widened(const struct product *m, const struct stored_rows *rows, size_t k)
{
    size_t most = m->few ? AK_WIDEN_ROWS_FEW : AK_WIDEN_ROWS_MANY;
    const float *x = (const float *)(const void *)m->acts;
    for (size_t row = rows->begin, n; row < rows->end; row += n) {
        n = ak_min_size(rows->end - row, most);
        for (size_t i = 0; i < n; i++)
            widen_row(m, rows->data + (row + i) * rows->row_bytes, k, m->own->widened + i * k);
        m->kernels->dot_rows(m->own->widened, k, n, x, k, m->n, k, m->y + row, m->y_stride);
    }
}

static void product_rows(const struct product *m, const struct ak_packed_part *part, uint32_t begin,
                         uint32_t end)
{
    ak_dot_stored_fn *dot_stored = m->kernels->dot_stored[m->packed->type];
    size_t cols = m->packed->cols, k = ak_round_up(cols, AK_LANES);
    uint64_t bytes = 0;
    (void)ak_quant_row_bytes(m->packed->type, cols, &bytes);
    struct stored_rows rows = {
        .data = part->data, .row_bytes = (size_t)bytes, .begin = begin, .end = end
    };
    if (m->form == AK_ACT_OPEN)
        product_panels(m, part, &rows, k);
    else if (m->form == AK_ACT_OPEN_BF16)
        product_bf16(m, &rows, k);
    else if (m->few && dot_stored)
        dot_stored(part->data + begin * bytes, (size_t)bytes, end - begin, cols,
                   (const float *)(const void *)m->acts, k, m->n, m->y + begin, m->y_stride);
    else
        product_widened(m, &rows, k);
}

/* ---- BLAS --------------------------------------------------------------- */
/* Rows of a part as floats. */
static void widen_rows(const struct ak_packed *packed, const struct ak_kernels *kernels,
                       const struct ak_packed_part *part, size_t row, size_t n, float *to)
{
    uint64_t row_bytes = 0;
    (void)ak_quant_row_bytes(packed->type, packed->cols, &row_bytes);
    for (size_t end = row + n; row < end; row++, to += packed->cols) {
        if (ak_type_act_form(packed->type) == AK_ACT_F32)
            kernels->widen[packed->type](part->data + row * row_bytes, to, packed->cols);
        else
            ak_unpack_row(packed->type,
                          part->data +
                              row / AK_TILE_ROWS * ak_tile_row_bytes(packed->type, packed->cols),
                          packed->cols, row % AK_TILE_ROWS, to);
    }
}

/* All threads widen a slab, the first one calls. */
static void product_blas(const struct product *m, const struct ak_cpu_prepared *p,
                         const struct ak_packed_part *part, unsigned thread)
{
    size_t k = m->packed->cols, most = ak_blas_rows(k);
    size_t x_stride = m->act_bytes / sizeof(float);
    const float *x = (const float *)(const void *)m->acts;
    float *slab = p->scratch[0].blas;
    for (size_t row = 0, n; row < part->rows; row += n) {
        size_t begin, end;
        n = ak_min_size(part->rows - row, most);
        ak_chunk_range(n, p->n_threads, thread, &begin, &end);
        widen_rows(m->packed, m->kernels, part, row + begin, end - begin, slab + begin * k);
        ak_pool_barrier(p->pool, thread);
        if (thread == 0)
            ak_blas_dot_rows(&p->cpu->blas, slab, k, n, x, x_stride, m->n, k, m->y + row,
                             m->y_stride);
        ak_pool_barrier(p->pool, thread);
    }
}

static void add_bias(const struct product *m, const float *bias, uint32_t begin, uint32_t end)
{
    for (size_t t = 0; t < m->n && end > begin; t++)
        m->kernels->add(m->y + t * m->y_stride + begin, bias + begin, end - begin);
}

static void product_part(const struct product *m, const struct ak_packed_part *part, uint32_t begin,
                         uint32_t end)
{
    if (ak_type_act_form(m->packed->type) == AK_ACT_F32)
        product_rows(m, part, begin, end);
    else if (ak_cpu_planes(m->packed) > 1)
        product_wide_tiles(m, part, begin, end);
    else
        product_tiles(m, part, begin, end);
}

static void count(struct ak_counts *counts, const struct product *m)
{
    if (m->n == 1)
        counts->gemv++;
    else if (m->few)
        counts->small_n++;
    else
        counts->gemm++;
}

/* The panels of part i that stay open. */
static struct ak_kept kept_of(const struct ak_cpu_prepared *p, const struct ak_packed *packed,
                              uint32_t i)
{
    if (!p->kept)
        return (struct ak_kept){ NULL, NULL };
    struct ak_kept kept = p->kept[packed - p->weights->packed];
    size_t rows = ak_cpu_kept_rows(packed, i);
    return (struct ak_kept){ kept.panels + rows * ak_round_up(packed->cols, AK_LANES),
                             kept.is_open + rows / AK_TILE_ROWS };
}

/* The rows of the share after `end`, where that is the thread's own, else of its first
 * one of the same part, if there is one, of the next weight. */
static struct ahead rows_ahead(const struct ak_cpu_step *step, const struct ak_cpu_prepared *p,
                               uint32_t i, uint32_t end, unsigned thread)
{
    const struct ak_packed *packed = &p->weights->packed[step->command->weight];
    uint32_t last = ak_cpu_first_row(p, packed->parts[i].rows, (thread + 1) * AK_SHARES);
    while (end >= last) {
        do
            step++;
        while (step < p->steps + p->n_steps && step->run != ak_step_linear);
        if (step == p->steps + p->n_steps ||
            i >= (packed = &p->weights->packed[step->command->weight])->n_parts)
            return (struct ahead){ NULL, 0 };
        end = ak_cpu_first_row(p, packed->parts[i].rows, thread * AK_SHARES);
        last = ak_cpu_first_row(p, packed->parts[i].rows, (thread + 1) * AK_SHARES);
    }
    if (ak_type_act_form(packed->type) != AK_ACT_F32)
        return (struct ahead){ NULL, 0 };
    return rows_at(packed, &packed->parts[i], kept_of(p, packed, i), end,
                   ak_min_size(last - end, AK_PANEL_ROWS));
}

void ak_step_linear(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_packed *packed = &p->weights->packed[c->weight];
    struct ak_thread_scratch *own = &p->scratch[thread];
    size_t n = ak_cpu_rows(p, step->row_set);
    enum ak_act_form form = form_of(p, packed, n);
    struct product m = { .kernels = &p->cpu->kernels,
                         .packed = packed,
                         .n = n,
                         .y_stride = ak_cpu_stride(p, c->out),
                         .own = own,
                         .acts = ak_cpu_is_few((uint32_t)n) ? own->acts[form] : p->acts[form],
                         .act_bytes = ak_act_bytes(form, packed->cols),
                         .form = form,
                         .few = !p->kept && ak_cpu_takes_few(p->cpu, packed, n) };
    bool blas = ak_cpu_takes_blas(p->cpu, packed, n);
    if (own->share % AK_SHARES == 0)
        count(&own->counts, &m);
    for (uint32_t i = 0; i < packed->n_parts; i++) {
        const struct ak_packed_part *part = &packed->parts[i];
        uint32_t begin, end;
        ak_cpu_own_rows(p, part->rows, thread, &begin, &end);
        m.y = ak_cpu_slot(p, c->out) + part->at;
        if (blas)
            product_blas(&m, p, part, thread);
        if (begin >= end)
            continue;
        m.ahead =
            form == AK_ACT_OPEN ? rows_ahead(step, p, i, end, thread) : (struct ahead){ NULL, 0 };
        m.kept = kept_of(p, packed, i);
        m.panel_rows = m.kept.panels ? p->unit : AK_PANEL_ROWS;
        if (!blas)
            product_part(&m, part, begin, end);
        if (c->vector != AK_OP_NONE)
            add_bias(&m, p->weights->vectors[c->vector].data + part->at, begin, end);
    }
}

/* Each expert's rows by its own matrix; a thread has its share of all of them. */
void ak_step_experts(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_packed *packed = &p->weights->packed[c->weight];
    struct ak_thread_scratch *own = &p->scratch[thread];
    enum ak_act_form form = ak_type_act_form(packed->type);
    uint32_t n_rows = ak_cpu_rows(p, step->row_set);
    const uint8_t *acts = ak_cpu_is_few(n_rows) ? own->acts[form] : p->acts[form];
    uint32_t width = ak_weights_width(p->weights, packed->linear, packed->layer);
    struct product m = { .kernels = &p->cpu->kernels,
                         .packed = packed,
                         .y_stride = ak_cpu_stride(p, c->out),
                         .own = own,
                         .act_bytes = ak_act_bytes(form, packed->cols),
                         .form = form };
    for (uint32_t e = 0; e < packed->n_experts; e++) {
        uint32_t first = p->routes.begin[e];
        m.n = p->routes.begin[e + 1] - first;
        if (m.n == 0)
            continue;
        m.few = ak_cpu_takes_few(p->cpu, packed, m.n);
        m.acts = acts + first * m.act_bytes;
        if (own->share % AK_SHARES == 0)
            count(&own->counts, &m);
        for (uint32_t i = 0; i < packed->n_parts; i++) {
            struct ak_packed_part part = packed->parts[i];
            uint32_t begin, end;
            part.rows /= packed->n_experts;
            part.data = ak_packed_matrix(packed, &part, e, part.rows * row_bytes_of(packed));
            ak_cpu_own_rows(p, part.rows, thread, &begin, &end);
            m.y = ak_cpu_slot(p, c->out) + first * m.y_stride + part.at;
            if (begin >= end)
                continue;
            product_part(&m, &part, begin, end);
            if (c->vector != AK_OP_NONE)
                add_bias(&m, p->weights->vectors[c->vector].data + (size_t)e * width + part.at,
                         begin, end);
        }
    }
}
