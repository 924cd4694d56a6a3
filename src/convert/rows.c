/* Writes the data of one tensor: copied if type and order stay, else read as floats row by row,
 * reordered and quantized. Only a row or a piece is in memory at a time. */
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "convert/convert.h"
#include "pack/pack.h"
#include "weights/composed.h"

/* ---- From GGUF ---------------------------------------------------------- */
struct requantizer {
    const struct ak_convert_tensor *t;
    struct ak_gguf_writer *w;
    struct ak_buffer blocks;
};

/* A piece is whole rows, or whole blocks of the source type; either is a multiple of the blocks of
 * the new type, which has at most 32 elements. */
static ak_status on_piece(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                          const float *values, void *user)
{
    (void)tensor, (void)first;
    struct requantizer *r = user;
    const struct ak_quant_info *info = ak_quant_info(r->t->type);
    size_t bytes = (size_t)(n / info->block_elems * info->block_bytes);
    AK_TRY(ak_buffer_reserve(&r->blocks, bytes, r->w->error));
    info->quantize(values, r->blocks.bytes, (size_t)n);
    ak_gguf_writer_write(r->w, r->blocks.bytes, bytes);
    return r->w->status;
}

static ak_status write_stored(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                              struct ak_gguf_writer *w, struct ak_error *error)
{
    struct ak_tensor tensor;
    ak_provider_tensor(plan->source, t->index, &tensor);
    if (tensor.type == t->type && !tensor.composed_tensor) {
        ak_gguf_writer_write(w, tensor.data, (size_t)tensor.bytes);
    } else {
        struct requantizer r = { .t = t, .w = w };
        ak_status status = ak_tensor_stream(&tensor, on_piece, &r, error);
        ak_free(r.blocks.bytes);
        AK_TRY(status);
    }
    ak_provider_advise(plan->source, tensor.data, tensor.bytes, AK_FILE_DONTNEED);
    return w->status;
}

/* ---- From Hugging Face's names ------------------------------------------ */
/* The index in the source of what the new file has at index `at`. */
static uint64_t map_index(const struct ak_convert_order *o, uint64_t at)
{
    if (o->size == 0 || at < o->first)
        return at;
    uint64_t block = (at - o->first) / o->size, group = block / ((uint64_t)o->a * o->b),
             rest = block % ((uint64_t)o->a * o->b);
    return o->first + ((group * o->a + rest % o->a) * o->b + rest / o->a) * o->size +
           (at - o->first) % o->size;
}

static bool is_vector(const struct ak_convert_tensor *t)
{
    return ak_role_kind(t->role) == AK_ROLE_KIND_VECTOR ||
           ak_role_kind(t->role) == AK_ROLE_KIND_EXPERT_VECTORS;
}

/* The weight being written, with buffers for one row. */
struct rows {
    const struct ak_convert_tensor *t;
    const struct ak_convert_part *part;
    const struct ak_view *view;
    float *values, *ordered;       /* one row in the order of the source; in the new order */
    uint8_t *blocks;               /* the row as blocks of the new type */
    uint64_t row_bytes, out_bytes; /* of a row in the source; in the new file */
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
static const float *read_row(const struct rows *r, uint64_t row)
{
    const struct ak_convert_order *order = r->t->n_dims == 1 ? &r->t->rows : &r->t->cols;
    const struct ak_view *view = find_matrix(r->view, &row);
    if (view->composed_tensor)
        ak_composed_dequantize(view->composed_tensor, ak_composed_row(view, row), 0, view->cols,
                               r->values);
    else if (is_vector(r->t))
        ak_pack_read_vector(view, row, r->values);
    else
        ak_quant_info(view->type)
            ->dequantize((const uint8_t *)view->plane[0].data + row * r->row_bytes, r->values,
                         view->cols);
    for (uint32_t i = 0; r->t->offset != 0.0f && i < r->view->cols; i++)
        r->values[i] += r->t->offset;
    for (uint32_t i = 0; r->t->decay && i < r->view->cols; i++)
        r->values[i] = (float)-ak_exp((double)r->values[i]);
    if (order->size == 0)
        return r->values;
    for (uint32_t i = 0; i < r->view->cols; i++)
        r->ordered[i] = r->values[map_index(order, i)];
    return r->ordered;
}

static void write_vector(const struct rows *r, struct ak_gguf_writer *w)
{
    ak_gguf_writer_write(w, read_row(r, 0), r->view->cols * sizeof(float));
}

static void write_row(const struct rows *r, uint64_t row, bool as_stored, struct ak_gguf_writer *w)
{
    uint64_t at = row;
    const struct ak_view *view = find_matrix(r->view, &at);
    if (as_stored && !view->composed_tensor) {
        ak_gguf_writer_write(w, (const uint8_t *)view->plane[0].data + at * r->row_bytes,
                             (size_t)r->row_bytes);
        return;
    }
    if (as_stored) {
        ak_composed_make_blocks(view->composed_tensor, ak_composed_row(view, at), 0, view->cols,
                                r->blocks);
    } else {
        ak_quant_info(r->t->type)->quantize(read_row(r, row), r->blocks, view->cols);
    }
    ak_gguf_writer_write(w, r->blocks, (size_t)r->out_bytes);
}

static void write_matrix(const struct rows *r, struct ak_gguf_writer *w)
{
    const struct ak_convert_part *part = r->part;
    bool as_stored = r->view->type == r->t->type && r->t->offset == 0.0f && r->t->cols.size == 0 &&
                     !is_vector(r->t);
    uint64_t rows = part->step > 0 ? r->view->rows / part->step * part->n : r->view->rows;
    for (uint64_t row = r->t->first_row; row < rows && w->status == AKUNU_OK; row++)
        write_row(r,
                  part->step > 0 ? row / part->n * part->step + part->first + row % part->n :
                                   map_index(&r->t->rows, row),
                  as_stored, w);
}

static ak_status write_view(const struct ak_convert_tensor *t, const struct ak_convert_part *part,
                            const struct ak_view *view, struct ak_gguf_writer *w,
                            struct ak_error *error)
{
    struct rows r = { .t = t, .part = part, .view = view };
    if (!ak_quant_row_bytes(view->type, view->cols, &r.row_bytes) ||
        !ak_quant_row_bytes(t->type, view->cols, &r.out_bytes))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has rows of %u elements", view->name,
                       view->cols);
    r.values = ak_alloc(view->cols, sizeof *r.values);
    r.ordered = ak_alloc(view->cols, sizeof *r.ordered);
    r.blocks = ak_alloc((size_t)r.out_bytes, 1);
    ak_status status = r.values && r.ordered && r.blocks ?
                           AKUNU_OK :
                           ak_fail_memory(error, view->name, view->cols * sizeof *r.values);
    if (status == AKUNU_OK && t->n_dims == 1)
        write_vector(&r, w);
    else if (status == AKUNU_OK)
        write_matrix(&r, w);
    ak_free(r.values);
    ak_free(r.ordered);
    ak_free(r.blocks);
    return status == AKUNU_OK ? w->status : status;
}

static ak_status write_part(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t,
                            uint32_t part, struct ak_binding *binding, struct ak_gguf_writer *w,
                            struct ak_error *error)
{
    struct ak_view view;
    AK_TRY(ak_bind_weight(plan->source, t->parts[part].rule, t->layer, binding, &view, error));
    AK_TRY(write_view(t, &t->parts[part], &view, w, error));
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
