/* Writes the data of one tensor: copied if type and order stay, else read as floats row by row,
 * reordered and quantized. Threads make the rows of a piece, which alone is in memory. */
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "conversion/convert/convert.h"
#include "engine/pack/pack.h"
#include "engine/spec/stages.h"
#include "files/weights/composed.h"

enum { PIECE_BYTES = 1 << 20 };

/* ---- Rows ---------------------------------------------------------------- */
uint64_t ak_convert_map_index(const struct ak_convert_order *o, uint64_t at)
{
    if (o->size == 0 || at < o->first)
        return at;
    uint64_t block = (at - o->first) / o->size, group = block / ((uint64_t)o->a * o->b),
             rest = block % ((uint64_t)o->a * o->b);
    return o->first + ((group * o->a + rest % o->a) * o->b + rest / o->a) * o->size +
           (at - o->first) % o->size;
}

ak_status ak_convert_prepare(struct ak_convert_plan *plan, enum ak_quant_type type,
                             struct ak_error *error)
{
    return ak_quantize_prepare(&plan->tables, type) ?
               AKUNU_OK :
               ak_fail_memory(error, "lists of nearest points",
                              6561 * sizeof(uint16_t[AK_NEAR_POINTS + 1]));
}

/* The weight being written. */
struct rows {
    const struct ak_convert_plan *plan;
    const struct ak_convert_tensor *t;
    const struct ak_convert_part *part;
    const struct ak_view *view;
    bool as_stored;                         /* its rows are blocks of the new type already */
    uint64_t row_bytes, out_bytes;          /* of a row in the source; in the new file */
    struct ak_convert_row_buffers *buffers; /* of each thread */
    uint8_t *blocks;                        /* of `most` rows */
    uint64_t most, first, n;                /* rows that are being made: n from `first` on */
};

/* The matrix that contains row *row of an expert stack; *row becomes the row in it. */
static const struct ak_view *find_matrix(const struct ak_view *view, uint64_t *row)
{
    if (!view->expert_views)
        return view;
    const struct ak_view *matrix = &view->expert_views[*row / view->expert_views->rows];
    *row %= view->expert_views->rows;
    return matrix;
}

/* Its elements in the file's order; they last until the next row. */
static const float *read_row(const struct rows *r, uint64_t row,
                             const struct ak_convert_row_buffers *b)
{
    const struct ak_convert_order *order = r->t->n_dims == 1 ? &r->t->rows : &r->t->cols;
    const struct ak_view *view = find_matrix(r->view, &row);
    if (view->composed_tensor)
        ak_composed_dequantize(view->composed_tensor, ak_composed_row(view, row), 0, view->cols,
                               b->values);
    else if (r->t->has_role && ak_role_is_vector(r->t->role))
        ak_pack_read_vector(view, row, b->values);
    else
        ak_quant_info(view->type)
            ->dequantize((const uint8_t *)view->plane[0].data + row * r->row_bytes, b->values,
                         view->cols);
    for (uint32_t i = 0; r->t->offset != 0.0f && i < r->view->cols; i++)
        b->values[i] += r->t->offset;
    for (uint32_t i = 0; r->t->decay && i < r->view->cols; i++)
        b->values[i] = (float)-ak_exp((double)b->values[i]);
    if (order->size == 0)
        return b->values;
    for (uint32_t i = 0; i < r->view->cols; i++)
        b->ordered[i] = b->values[ak_convert_map_index(order, i)];
    return b->ordered;
}

/* Row `row` of the new tensor, in the source. */
static uint64_t find_row(const struct rows *r, uint64_t row)
{
    const struct ak_convert_part *part = r->part;
    return part && part->step > 0 ? row / part->n * part->step + part->first + row % part->n :
                                    ak_convert_map_index(&r->t->rows, row);
}

static bool has_no_number(const float *x, size_t n)
{
    float sum = 0.0f; /* NaN if one is, or is infinite */
    for (size_t i = 0; i < n; i++)
        sum += x[i] - x[i];
    return sum != 0.0f;
}

static void make_row(const struct rows *r, uint64_t row, struct ak_convert_row_buffers *b,
                     uint8_t *out)
{
    uint64_t at = find_row(r, row), cols = r->view->cols;
    if (r->as_stored) {
        const struct ak_view *view = find_matrix(r->view, &at);
        if (view->composed_tensor)
            ak_composed_make_blocks(view->composed_tensor, ak_composed_row(view, at), 0, view->cols,
                                    out);
        else
            memcpy(out, (const uint8_t *)view->plane[0].data + at * r->row_bytes, r->row_bytes);
        return;
    }
    const float *values = read_row(r, at, b);
    if (!r->t->searches) {
        ak_quant_info(r->t->type)->quantize(values, out, cols);
        return;
    }
    b->has_no_number = b->has_no_number || has_no_number(values, cols);
    ak_quantize(&r->plan->tables, r->t->type, values, ak_convert_row_importance(r->t, row), out,
                cols);
}

static void make_rows(void *user, unsigned thread)
{
    const struct rows *r = user;
    for (uint64_t i = thread; i < r->n; i += ak_pool_threads(r->plan->pool))
        make_row(r, r->first + i, &r->buffers[thread], r->blocks + i * r->out_bytes);
}

/* Rows of blocks that the source has. */
static void copy_rows(const struct rows *r, uint64_t end, struct ak_gguf_writer *w)
{
    for (uint64_t row = r->first; row < end && w->status == AKUNU_OK; row++) {
        uint64_t at = find_row(r, row);
        const struct ak_view *view = find_matrix(r->view, &at);
        ak_gguf_writer_write(w, (const uint8_t *)view->plane[0].data + at * r->row_bytes,
                             (size_t)r->row_bytes);
    }
}

/* The row after the last one; the first one is t->first_row. */
static uint64_t find_end(const struct rows *r)
{
    const struct ak_convert_part *part = r->part;
    return part && part->step > 0 ? r->view->rows / part->step * part->n : r->view->rows;
}

static ak_status fail_no_number(const struct ak_convert_tensor *t, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "%s has elements that are no finite numbers, which no block can hold", t->name);
}

static ak_status write_rows(struct rows *r, struct ak_gguf_writer *w, struct ak_error *error)
{
    uint64_t end = find_end(r);
    r->first = r->t->first_row;
    if (r->as_stored && !r->view->composed_tensor &&
        !(r->view->expert_views && r->view->expert_views->composed_tensor)) {
        copy_rows(r, end, w);
        return w->status;
    }
    for (; r->first < end && w->status == AKUNU_OK; r->first += r->n) {
        r->n = end - r->first < r->most ? end - r->first : r->most;
        ak_pool_run(r->plan->pool, make_rows, r);
        ak_gguf_writer_write(w, r->blocks, (size_t)(r->n * r->out_bytes));
        for (unsigned i = 0; i < ak_pool_threads(r->plan->pool); i++)
            if (r->buffers[i].has_no_number)
                return fail_no_number(r->t, error);
    }
    return w->status;
}

/* `part`: NULL if the rows are those of the source. */
static ak_status describe_rows(const struct ak_convert_plan *plan,
                               const struct ak_convert_tensor *t,
                               const struct ak_convert_part *part, const struct ak_view *view,
                               struct rows *r, struct ak_error *error)
{
    *r = (struct rows){ .plan = plan, .t = t, .part = part, .view = view };
    r->as_stored = view->type == t->type && t->offset == 0.0f && t->cols.size == 0 &&
                   t->n_dims > 1 && !(t->has_role && ak_role_is_vector(t->role));
    if (!ak_quant_row_bytes(r->view->type, r->view->cols, &r->row_bytes) ||
        !ak_quant_row_bytes(r->t->type, r->view->cols, &r->out_bytes))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has rows of %u elements", r->view->name,
                       r->view->cols);
    return AKUNU_OK;
}

ak_status ak_convert_row_buffers_alloc(struct ak_convert_row_buffers *out, uint32_t cols,
                                       struct ak_error *error)
{
    *out = (struct ak_convert_row_buffers){ .values = ak_alloc(cols, sizeof(float)),
                                            .ordered = ak_alloc(cols, sizeof(float)) };
    return out->values && out->ordered ? AKUNU_OK :
                                         ak_fail_memory(error, "a row", cols * sizeof(float));
}

void ak_convert_row_buffers_free(struct ak_convert_row_buffers *b)
{
    ak_free(b->values);
    ak_free(b->ordered);
}

static ak_status open_rows(struct rows *r, struct ak_error *error)
{
    unsigned n_threads = ak_pool_threads(r->plan->pool);
    r->most = PIECE_BYTES / r->out_bytes;
    r->most = r->most < n_threads ? n_threads : r->most;
    r->blocks = ak_alloc((size_t)r->most, (size_t)r->out_bytes);
    r->buffers = ak_alloc(n_threads, sizeof *r->buffers);
    if (!r->blocks || !r->buffers)
        return ak_fail_memory(error, r->view->name, r->most * r->out_bytes);
    for (unsigned i = 0; i < n_threads; i++)
        AK_TRY(ak_convert_row_buffers_alloc(&r->buffers[i], r->view->cols, error));
    return AKUNU_OK;
}

static void close_rows(struct rows *r)
{
    for (unsigned i = 0; r->buffers && i < ak_pool_threads(r->plan->pool); i++)
        ak_convert_row_buffers_free(&r->buffers[i]);
    ak_free(r->buffers);
    ak_free(r->blocks);
}

static ak_status write_view(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                            const struct ak_convert_part *part, const struct ak_view *view,
                            struct ak_gguf_writer *w, struct ak_error *error)
{
    struct rows r;
    AK_TRY(describe_rows(plan, t, part, view, &r, error));
    ak_status status = open_rows(&r, error);
    if (status == AKUNU_OK && t->n_dims == 1 && part)
        ak_gguf_writer_write(w, read_row(&r, 0, &r.buffers[0]), view->cols * sizeof(float));
    else if (status == AKUNU_OK)
        status = write_rows(&r, w, error);
    close_rows(&r);
    return status == AKUNU_OK ? w->status : status;
}

/* ---- From GGUF ---------------------------------------------------------- */
static struct ak_view get_stored(const struct ak_convert_plan *plan,
                                 const struct ak_convert_tensor *t)
{
    struct ak_tensor tensor;
    ak_provider_tensor(plan->source, t->index, &tensor);
    struct ak_view view = { .type = tensor.type,
                            .rows = 1,
                            .cols = (uint32_t)tensor.shape[tensor.n_dims - 1],
                            .plane = { { tensor.data, tensor.bytes } },
                            .name = tensor.name,
                            .n_dims = tensor.n_dims,
                            .composed_tensor = tensor.composed_tensor };
    for (unsigned d = 0; d + 1 < tensor.n_dims; d++)
        view.rows *= (uint32_t)tensor.shape[d];
    return view;
}

static ak_status write_stored(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                              struct ak_gguf_writer *w, struct ak_error *error)
{
    struct ak_view view = get_stored(plan, t);
    if (view.type == t->type && !view.composed_tensor)
        ak_gguf_writer_write(w, view.plane[0].data, (size_t)view.plane[0].bytes);
    else
        AK_TRY(write_view(plan, t, NULL, &view, w, error));
    ak_provider_advise(plan->source, view.plane[0].data, view.plane[0].bytes, AK_FILE_DONTNEED);
    return w->status;
}

/* ---- From parts --------------------------------------------------------- */
static ak_status write_part(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                            uint32_t part, struct ak_binding *binding, struct ak_gguf_writer *w,
                            struct ak_error *error)
{
    struct ak_view view;
    AK_TRY(ak_bind_weight(plan->source, t->parts[part].rule, t->layer, binding, &view, error));
    AK_TRY(write_view(plan, t, &t->parts[part], &view, w, error));
    ak_provider_advise(plan->source, view.plane[0].data, view.plane[0].bytes, AK_FILE_DONTNEED);
    return AKUNU_OK;
}

/* The parts share one binding, and with it the buffers that it owns. */
static ak_status write_parts(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                             struct ak_gguf_writer *w, struct ak_error *error)
{
    struct ak_binding binding = { .spec = plan->spec };
    ak_status status = AKUNU_OK;
    for (uint32_t i = 0; i < t->n_parts && status == AKUNU_OK; i++)
        status = write_part(plan, t, i, &binding, w, error);
    ak_binding_clear(&binding);
    return status;
}

static ak_status write_divisors(const struct ak_convert_plan *plan,
                                const struct ak_convert_tensor *t, struct ak_gguf_writer *w,
                                struct ak_error *error)
{
    float *values = ak_alloc((size_t)t->shape[0], sizeof *values);
    if (!values)
        return ak_fail_memory(error, t->name, t->shape[0] * sizeof *values);
    ak_status status = ak_spec_get_rope_divisors(plan->source, plan->spec, t->role, values, error);
    if (status == AKUNU_OK)
        ak_gguf_writer_write(w, values, (size_t)t->bytes);
    ak_free(values);
    return status == AKUNU_OK ? w->status : status;
}

ak_status ak_convert_write_tensor(const struct ak_convert_plan *plan,
                                  const struct ak_convert_tensor *t, struct ak_gguf_writer *w,
                                  struct ak_error *error)
{
    if (t->is_stored)
        AK_TRY(write_stored(plan, t, w, error));
    else if (t->n_parts == 0)
        AK_TRY(write_divisors(plan, t, w, error));
    else
        AK_TRY(write_parts(plan, t, w, error));
    ak_gguf_writer_end_tensor(w);
    return w->status;
}

/* ---- One by one --------------------------------------------------------- */
struct ak_convert_rows {
    const struct ak_convert_tensor *t;
    uint32_t n_parts;
    struct rows parts[AK_CONVERT_PARTS_MAX];
    struct ak_view views[AK_CONVERT_PARTS_MAX];
    struct ak_binding binding; /* with the buffers that the views point to */
};

static ak_status open_part(const struct ak_convert_plan *plan, uint32_t i,
                           struct ak_convert_rows *r, struct ak_error *error)
{
    const struct ak_convert_part *part = r->t->is_stored ? NULL : &r->t->parts[i];
    if (part)
        AK_TRY(ak_bind_weight(plan->source, part->rule, r->t->layer, &r->binding, &r->views[i],
                              error));
    else
        r->views[i] = get_stored(plan, r->t);
    return describe_rows(plan, r->t, part, &r->views[i], &r->parts[i], error);
}

ak_status ak_convert_rows_open(const struct ak_convert_plan *plan,
                               const struct ak_convert_tensor *t, struct ak_convert_rows **out,
                               struct ak_error *error)
{
    struct ak_convert_rows *r = ak_alloc(1, sizeof *r);
    ak_status status = AKUNU_OK;
    *out = r;
    if (!r)
        return ak_fail_memory(error, t->name, sizeof *r);
    *r = (struct ak_convert_rows){ .t = t,
                                   .n_parts = t->is_stored ? 1 : t->n_parts,
                                   .binding = { .spec = plan->spec } };
    for (uint32_t i = 0; i < r->n_parts && status == AKUNU_OK; i++)
        status = open_part(plan, i, r, error);
    return status;
}

void ak_convert_rows_close(struct ak_convert_rows *r)
{
    if (r)
        ak_binding_clear(&r->binding);
    ak_free(r);
}

const struct ak_view *ak_convert_rows_view(const struct ak_convert_rows *r, uint32_t part)
{
    return part < r->n_parts ? &r->views[part] : NULL;
}

void ak_convert_rows_make(const struct ak_convert_rows *r, uint64_t row,
                          struct ak_convert_row_buffers *b, uint8_t *out)
{
    for (uint32_t i = 0; i < r->n_parts; i++) {
        uint64_t n = find_end(&r->parts[i]);
        if (row < n) {
            make_row(&r->parts[i], row, b, out);
            return;
        }
        row -= n;
    }
}

ak_status ak_convert_check_numbers(const struct ak_convert_tensor *t,
                                   const struct ak_convert_row_buffers *b, struct ak_error *error)
{
    return b->has_no_number ? fail_no_number(t, error) : AKUNU_OK;
}
