#include <string.h>

#include "base/mem.h"
#include "convert/convert.h"
#include "pack/weights.h"
#include "weights/assembly.h"

/* ---- From GGUF ------------------------------------------------------------------------- */

struct requantise {
    const struct ak_out_tensor *t;
    struct ak_gguf_writer *w;
    struct ak_buffer blocks;
};

/* Pieces are whole rows, or whole blocks of the source's; 32 divides those. */
static ak_status on_piece(const struct ak_tensor *tensor, uint64_t first, uint64_t n, const float *values, void *user)
{
    (void)tensor, (void)first;
    struct requantise *r = user;
    const struct ak_type_info *info = ak_type_info(r->t->type);
    size_t bytes = (size_t)(n / info->block_elems * info->block_bytes);
    AK_TRY(ak_buffer_room(&r->blocks, bytes, r->w->error));
    info->quantise(values, r->blocks.bytes, (size_t)n);
    ak_gguf_write(r->w, r->blocks.bytes, bytes);
    return r->w->status;
}

static ak_status write_stored(const struct ak_out_plan *plan, const struct ak_out_tensor *t, struct ak_gguf_writer *w,
                              struct ak_error *error)
{
    struct ak_tensor tensor;
    ak_provider_tensor(plan->source, t->at, &tensor);
    if (tensor.type == t->type && !tensor.assembly) {
        ak_gguf_write(w, tensor.data, (size_t)tensor.bytes);
    } else {
        struct requantise r = { .t = t, .w = w };
        ak_status status = ak_tensor_stream(&tensor, on_piece, &r, error);
        ak_free(r.blocks.bytes);
        AK_TRY(status);
    }
    ak_provider_tell(plan->source, tensor.data, tensor.bytes, AK_FILE_DROP);
    return w->status;
}

/* ---- From Hugging Face's names ------------------------------------------------------------ */

/* Where GGUF has row `row`: Hugging Face has the first halves of a head's pairs before
 * the second ones, GGUF the two of a pair side by side. */
static uint64_t source_row(uint64_t row, uint64_t rows, uint32_t heads)
{
    if (heads == 0)
        return row;
    uint64_t size = rows / heads, at = row % size;
    return row - at + at % 2 * (size / 2) + at / 2;
}

static bool is_vector(const struct ak_out_tensor *t)
{
    return ak_role_kind(t->role) == AK_ROLE_KIND_VECTOR || ak_role_kind(t->role) == AK_ROLE_KIND_EXPERT_VECTORS;
}

/* A weight whose rows are written, and room for one of them. */
struct rows {
    const struct ak_out_tensor *t;
    const struct ak_view *view;
    float *values;
    uint8_t *blocks;
    uint64_t row_bytes, out_bytes;
};

/* The matrix that row *row is in, and which row of it that is. */
static const struct ak_view *matrix_of(const struct ak_view *view, uint64_t *row)
{
    if (!view->matrices)
        return view;
    const struct ak_view *matrix = &view->matrices[*row / view->matrices->rows];
    *row %= view->matrices->rows;
    return matrix;
}

static void read_row(const struct rows *r, uint64_t row)
{
    const struct ak_view *view = matrix_of(r->view, &row);
    if (view->assembly)
        ak_assembly_widen(view->assembly, ak_assembly_row(view, row), 0, view->cols, r->values);
    else if (is_vector(r->t))
        ak_view_vector(view, row, r->values);
    else
        ak_type_info(view->type)->dequantise((const uint8_t *)view->plane[0].data + row * r->row_bytes, r->values, view->cols);
    for (uint32_t i = 0; r->t->offset != 0.0f && i < r->view->cols; i++)
        r->values[i] += r->t->offset;
}

/* A vector is permuted element by element. */
static void write_vector(const struct rows *r, struct ak_gguf_writer *w)
{
    read_row(r, 0);
    for (uint32_t i = 0; i < r->view->cols; i++)
        ak_gguf_write(w, &r->values[source_row(i, r->view->cols, r->t->heads)], sizeof(float));
}

static void write_row(const struct rows *r, uint64_t row, bool as_stored, struct ak_gguf_writer *w)
{
    uint64_t at = row;
    const struct ak_view *view = matrix_of(r->view, &at);
    if (as_stored && !view->assembly) {
        ak_gguf_write(w, (const uint8_t *)view->plane[0].data + at * r->row_bytes, (size_t)r->row_bytes);
        return;
    }
    if (as_stored) {
        ak_assembly_blocks(view->assembly, ak_assembly_row(view, at), 0, view->cols, r->blocks);
    } else {
        read_row(r, row);
        ak_type_info(r->t->type)->quantise(r->values, r->blocks, view->cols);
    }
    ak_gguf_write(w, r->blocks, (size_t)r->out_bytes);
}

static void write_matrix(const struct rows *r, struct ak_gguf_writer *w)
{
    bool as_stored = r->view->type == r->t->type && r->t->offset == 0.0f && !is_vector(r->t);
    for (uint64_t row = 0; row < r->view->rows && w->status == AKUNU_OK; row++)
        write_row(r, source_row(row, r->view->rows, r->t->heads), as_stored, w);
}

static ak_status write_view(const struct ak_out_tensor *t, const struct ak_view *view, struct ak_gguf_writer *w, struct ak_error *error)
{
    struct rows r = { .t = t, .view = view };
    if (!ak_type_row_bytes(view->type, view->cols, &r.row_bytes) || !ak_type_row_bytes(t->type, view->cols, &r.out_bytes))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has rows of %u elements", view->name, view->cols);
    r.values = ak_alloc(view->cols, sizeof *r.values);
    r.blocks = ak_alloc((size_t)r.out_bytes, 1);
    ak_status status = r.values && r.blocks ? AKUNU_OK : ak_fail_memory(error, view->name, view->cols * sizeof *r.values);
    if (status == AKUNU_OK && t->n_dims == 1)
        write_vector(&r, w);
    else if (status == AKUNU_OK)
        write_matrix(&r, w);
    ak_free(r.values);
    ak_free(r.blocks);
    return status == AKUNU_OK ? w->status : status;
}

static ak_status write_parts(const struct ak_out_plan *plan, const struct ak_out_tensor *t, struct ak_gguf_writer *w,
                             struct ak_error *error)
{
    ak_status status = AKUNU_OK;
    for (uint32_t i = 0; i < t->n_parts && status == AKUNU_OK; i++) {
        struct ak_binding binding = { .spec = plan->spec };
        struct ak_view view;
        status = ak_bind_weight(plan->source, t->parts[i], t->layer, &binding, &view, error);
        if (status == AKUNU_OK)
            status = write_view(t, &view, w, error);
        if (status == AKUNU_OK)
            ak_provider_tell(plan->source, view.plane[0].data, view.plane[0].bytes, AK_FILE_DROP);
        ak_binding_clear(&binding);
    }
    return status;
}

static ak_status write_divisors(const struct ak_out_plan *plan, const struct ak_out_tensor *t, struct ak_gguf_writer *w,
                                struct ak_error *error)
{
    float *values = ak_alloc((size_t)t->shape[0], sizeof *values);
    if (!values)
        return ak_fail_memory(error, t->name, t->shape[0] * sizeof *values);
    ak_status status = ak_rope_divisors(plan->source, plan->spec, t->role, values, error);
    if (status == AKUNU_OK)
        ak_gguf_write(w, values, (size_t)t->bytes);
    ak_free(values);
    return status == AKUNU_OK ? w->status : status;
}

ak_status ak_write_tensor(const struct ak_out_plan *plan, const struct ak_out_tensor *t, struct ak_gguf_writer *w, struct ak_error *error)
{
    if (t->stored)
        AK_TRY(write_stored(plan, t, w, error));
    else if (t->n_parts == 0)
        AK_TRY(write_divisors(plan, t, w, error));
    else
        AK_TRY(write_parts(plan, t, w, error));
    ak_gguf_end_tensor(w);
    return w->status;
}
