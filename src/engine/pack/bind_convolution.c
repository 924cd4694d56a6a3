/* The two convolutions in front of an encoder of speech, as matrices over whole positions. A
 * position is two mel frames, i its index:
 *
 *     conv1   frames 2i − 1 … 2i + 2 → its output for frames 2i and 2i + 1
 *     conv2   these outputs for frames 2i − 1, 2i and 2i + 1 → position i (a stride of two)
 *
 * So conv1 has its kernel twice, one frame apart, with zeros in the fourth frame of either, and its
 * bias twice; conv2 has its kernel once. A file's kernel is [rows][inputs][3 taps], a row of the
 * matrix [taps][inputs]. */
#include <string.h>

#include "base/mem.h"
#include "engine/pack/bind.h"

enum { TAPS = 3 };

/* Where a kernel goes in the matrix: its first row, and the tap of its first column. */
struct place {
    size_t row, tap;
};

static void copy_kernel(const struct ak_view *view, size_t rows, size_t inputs, struct place place,
                        uint8_t *out, size_t cols)
{
    size_t size = ak_quant_info(view->type)->block_bytes;
    for (size_t row = 0; row < rows; row++) {
        const uint8_t *from = (const uint8_t *)view->plane[0].data + row * inputs * TAPS * size;
        uint8_t *to = out + ((place.row + row) * cols + place.tap * inputs) * size;
        struct ak_bind_strided_matrix taps = { from, inputs, TAPS, TAPS, 1, size };
        ak_bind_transpose(&taps, to);
    }
}

static ak_status bind_kernel(struct ak_binding *b, bool twice, struct ak_view *view,
                             struct ak_error *error)
{
    size_t width = b->spec->config.width, inputs = twice ? b->spec->config.n_mels : width,
           rows = twice ? 2 * width : width, cols = (twice ? TAPS + 1 : TAPS) * inputs;
    if (view->n_dims != 3 || view->cols != TAPS || view->rows != width * inputs ||
        view->composed_tensor || view->type >= AK_QUANT_COUNT ||
        ak_quant_info(view->type)->block_elems != 1)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s is no convolution of floats of the shape [%zu, %zu, %d]", view->name,
                       width, inputs, TAPS);
    if (!b->shapes_only) {
        uint64_t bytes = (uint64_t)rows * cols * ak_quant_info(view->type)->block_bytes;
        uint8_t *data = ak_alloc_aligned(bytes);
        if (!data)
            return ak_fail_memory(error, view->name, bytes);
        memset(data, 0, bytes);
        copy_kernel(view, width, inputs, (struct place){ 0, 0 }, data, cols);
        if (twice)
            copy_kernel(view, width, inputs, (struct place){ width, 1 }, data, cols);
        AK_TRY(ak_bind_own_buffer(b, NULL, data, error));
        view->plane[0] = (struct ak_plane){ data, bytes };
    }
    view->n_dims = 2;
    view->rows = (uint32_t)rows;
    view->cols = (uint32_t)cols;
    return AKUNU_OK;
}

static ak_status bind_bias_twice(struct ak_binding *b, struct ak_view *view, struct ak_error *error)
{
    const struct ak_bind_shape shape = { 1, 1, b->spec->config.width, true };
    AK_TRY(ak_bind_check_shape(view, &shape, error));
    uint64_t bytes = view->plane[0].bytes;
    if (!b->shapes_only) {
        uint8_t *data = ak_alloc_aligned(2 * bytes);
        if (!data)
            return ak_fail_memory(error, view->name, 2 * bytes);
        memcpy(data, view->plane[0].data, bytes);
        memcpy(data + bytes, view->plane[0].data, bytes);
        AK_TRY(ak_bind_own_buffer(b, NULL, data, error));
        view->plane[0] = (struct ak_plane){ data, 2 * bytes };
    }
    view->cols *= 2;
    return AKUNU_OK;
}

ak_status ak_bind_convolution(struct ak_binding *b, enum ak_role role, struct ak_view *view,
                              struct ak_error *error)
{
    switch (role) {
    case AK_ROLE_ENCODER_CONV1: return bind_kernel(b, true, view, error);
    case AK_ROLE_ENCODER_CONV2: return bind_kernel(b, false, view, error);
    case AK_ROLE_ENCODER_CONV1_BIAS: return bind_bias_twice(b, view, error);
    default: return AKUNU_OK;
    }
}
