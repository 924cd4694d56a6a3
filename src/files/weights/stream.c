/* Streams tensors as floats in pieces, so that inspection, hashing and conversion of a model need
 * little memory. */
#include "base/mem.h"
#include "files/weights/composed.h"

enum { PIECE_ELEMS = (1 << 20) / sizeof(float) };

/* Elements of a piece: whole rows, or whole blocks of a row that is larger. */
static uint64_t piece_elems(const struct ak_tensor *tensor)
{
    uint64_t row = tensor->shape[tensor->n_dims - 1];
    if (row <= PIECE_ELEMS)
        return PIECE_ELEMS / row * row;
    uint64_t block = ak_quant_info(tensor->type)->block_elems;
    return PIECE_ELEMS / block * block;
}

static uint64_t n_elems(const struct ak_tensor *tensor)
{
    uint64_t n = 1; /* the provider has checked for overflow */
    for (unsigned d = 0; d < tensor->n_dims; d++)
        n *= tensor->shape[d];
    return n;
}

const char *ak_tensor_type_name(const struct ak_tensor *tensor)
{
    return tensor->composed_tensor ? tensor->composed_tensor->name :
           tensor->type_name       ? tensor->type_name :
                                     ak_quant_info(tensor->type)->name;
}

ak_status ak_tensor_check_type(const struct ak_tensor *tensor, struct ak_error *error)
{
    if (tensor->composed_tensor || !tensor->type_name)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s has the type %s, which akunu does not read",
                   tensor->name, ak_tensor_type_name(tensor));
}

void ak_tensor_dequantize(const struct ak_tensor *tensor, uint64_t first, uint64_t n, float *out)
{
    const struct ak_quant_info *info = ak_quant_info(tensor->type);
    if (!tensor->composed_tensor) {
        info->dequantize((const uint8_t *)tensor->data +
                             first / info->block_elems * info->block_bytes,
                         out, (size_t)n);
        return;
    }
    const uint64_t cols = tensor->composed_tensor->cols;
    for (uint64_t end = first + n, part; first < end; first += part, out += part) {
        part = cols - first % cols < end - first ? cols - first % cols : end - first;
        ak_composed_dequantize(tensor->composed_tensor, first / cols, (uint32_t)(first % cols),
                               (uint32_t)part, out);
    }
}

static ak_status stream(const struct ak_tensor *tensor, float *values, ak_tensor_stream_fn *fn,
                        void *user)
{
    uint64_t piece = piece_elems(tensor), all = n_elems(tensor);
    for (uint64_t first = 0; first < all; first += piece) {
        uint64_t n = all - first < piece ? all - first : piece;
        ak_tensor_dequantize(tensor, first, n, values);
        AK_TRY(fn(tensor, first, n, values, user));
    }
    return AKUNU_OK;
}

ak_status ak_tensor_stream(const struct ak_tensor *tensor, ak_tensor_stream_fn *fn, void *user,
                           struct ak_error *error)
{
    AK_TRY(ak_tensor_check_type(tensor, error));
    if (n_elems(tensor) == 0)
        return AKUNU_OK;
    size_t n = (size_t)(n_elems(tensor) < PIECE_ELEMS ? n_elems(tensor) : PIECE_ELEMS);
    float *values = ak_alloc(n, sizeof *values);
    if (!values)
        return ak_fail_memory(error, "a piece of a tensor", n * sizeof *values);
    ak_status status = stream(tensor, values, fn, user);
    ak_free(values);
    return status;
}

ak_status ak_provider_stream(const struct ak_provider *p, ak_tensor_stream_fn *fn, void *user,
                             struct ak_error *error)
{
    struct ak_tensor tensor;
    for (size_t i = 0; ak_provider_tensor(p, i, &tensor); i++)
        AK_TRY(ak_tensor_stream(&tensor, fn, user, error));
    return AKUNU_OK;
}
