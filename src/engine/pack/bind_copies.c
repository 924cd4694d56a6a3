/* Copies that a binding owns, where no kernel reads what the file has: matrices that are stored as
 * [cols, rows], and doubles. */
#include <string.h>

#include "base/mem.h"
#include "engine/pack/bind.h"
#include "base/array.h"

ak_status ak_bind_own_buffer(struct ak_binding *b, const void *source, void *data,
                             struct ak_error *error)
{
    if (!ak_reserve(&b->owned, &b->owned_capacity, b->n_owned, 1)) {
        ak_free(data);
        return ak_fail_memory(error, "a list of weights", 0);
    }
    b->owned[b->n_owned++] = (struct ak_bind_buffer){ source, data };
    return AKUNU_OK;
}

/* The copy of what is at `source`; NULL: there is none yet. */
static const void *find_copy(const struct ak_binding *b, const void *source)
{
    uint32_t i = b->n_owned;
    while (i > 0 && b->owned[i - 1].source != source)
        i--;
    return i > 0 ? b->owned[i - 1].data : NULL;
}

/* ---- Matrices that the file has as [cols, rows] ------------------------- */
enum { TRANSPOSE_BLOCK = 32 };

/* Blocked transpose: the cache lines of both sides stay in the cache. */
void ak_bind_transpose(const struct ak_bind_strided_matrix *t, uint8_t *out)
{
    for (size_t r0 = 0; r0 < t->rows; r0 += TRANSPOSE_BLOCK)
        for (size_t c0 = 0; c0 < t->cols; c0 += TRANSPOSE_BLOCK)
            for (size_t r = r0; r < t->rows && r < r0 + TRANSPOSE_BLOCK; r++)
                for (size_t c = c0; c < t->cols && c < c0 + TRANSPOSE_BLOCK; c++)
                    memcpy(out + (c * t->rows + r) * t->size,
                           t->in + (r * t->stride + c * t->step) * t->size, t->size);
}

static ak_status copy_transposed(struct ak_binding *b, const struct ak_view *view,
                                 struct ak_error *error)
{
    struct ak_bind_strided_matrix matrix = {
        view->plane[0].data, view->rows, view->cols,
        view->cols,          1,          ak_quant_info(view->type)->block_bytes
    };
    uint8_t *data = ak_alloc_aligned(view->plane[0].bytes);
    if (!data)
        return ak_fail_memory(error, view->name, view->plane[0].bytes);
    ak_bind_transpose(&matrix, data);
    return ak_bind_own_buffer(b, view->plane[0].data, data, error);
}

/* The transposed copy of `view`; parts of one tensor share it. */
static ak_status find_transposed(struct ak_binding *b, struct ak_view *view, struct ak_error *error)
{
    if (!find_copy(b, view->plane[0].data))
        AK_TRY(copy_transposed(b, view, error));
    view->plane[0].data = find_copy(b, view->plane[0].data);
    return AKUNU_OK;
}

ak_status ak_bind_columns(struct ak_binding *b, struct ak_view *view, struct ak_error *error)
{
    uint32_t rows = view->rows;
    if (view->composed_tensor)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "%s is a quantized matrix, which this architecture has transposed; expected floats",
            view->name);
    if (view->n_dims != 2 || view->type >= AK_QUANT_COUNT ||
        ak_quant_info(view->type)->block_elems != 1)
        return AKUNU_OK; /* the check of shape or type fails later */
    if (!b->shapes_only)
        AK_TRY(find_transposed(b, view, error));
    view->rows = view->cols;
    view->cols = rows;
    return AKUNU_OK;
}

/* ---- Doubles ------------------------------------------------------------ */
static ak_status copy_doubles(struct ak_binding *b, const struct ak_view *view,
                              struct ak_error *error)
{
    uint64_t n = view->plane[0].bytes / sizeof(double);
    float *data = ak_alloc_aligned(n * sizeof *data);
    if (!data)
        return ak_fail_memory(error, view->name, n * sizeof *data);
    ak_quant_info(AK_QUANT_F64)->dequantize(view->plane[0].data, data, (size_t)n);
    return ak_bind_own_buffer(b, view->plane[0].data, data, error);
}

ak_status ak_bind_doubles(struct ak_binding *b, struct ak_view *view, struct ak_error *error)
{
    struct ak_plane *plane = &view->plane[0];
    if (view->type != AK_QUANT_F64 || view->composed_tensor)
        return AKUNU_OK;
    if (!b->shapes_only) {
        if (!find_copy(b, plane->data))
            AK_TRY(copy_doubles(b, view, error));
        plane->data = find_copy(b, plane->data);
    }
    plane->bytes /= sizeof(double) / sizeof(float);
    view->type = AK_QUANT_F32;
    return AKUNU_OK;
}
