/* Rows of the source as floats, in the layout of Hugging Face, and the weights of their errors. */
#include <string.h>

#include "conversion/compress/compress.h"
#include "engine/spec/arch.h"

/* The tensor of the source that has row *row; *row becomes the row in it. */
static void find_part(const struct ak_compress_job *j, const struct ak_compress_tensor *t,
                      uint64_t *row, struct ak_tensor *tensor)
{
    for (uint32_t i = 0; i < t->n_parts; i++) {
        uint64_t rows = 1;
        ak_provider_tensor(j->source, t->parts[i], tensor);
        for (unsigned d = 0; d + 1 < tensor->n_dims; d++)
            rows *= tensor->shape[d];
        if (*row < rows)
            return;
        *row -= rows;
    }
}

/* Elements of a vector whose parts are vectors follow each other. */
static void read_vector(const struct ak_compress_job *j, const struct ak_compress_tensor *t,
                        float *out)
{
    struct ak_tensor tensor;
    for (uint32_t i = 0; i < t->n_parts; i++) {
        ak_provider_tensor(j->source, t->parts[i], &tensor);
        uint64_t n = tensor.shape[tensor.n_dims - 1];
        ak_tensor_dequantize(&tensor, 0, n, out);
        out += n;
    }
}

static void read_matrix_row(const struct ak_compress_job *j, const struct ak_compress_tensor *t,
                            uint64_t row, float *out)
{
    struct ak_tensor tensor;
    uint64_t at = ak_convert_map_index(&t->order, row);
    find_part(j, t, &at, &tensor);
    ak_tensor_dequantize(&tensor, at * t->cols, t->cols, out);
}

void ak_compress_read_unscaled(const struct ak_compress_job *j, const struct ak_compress_tensor *t,
                               uint64_t row, float *buffer, float *out)
{
    bool reorders = t->n_dims == 1 && t->order.size > 0;
    if (t->n_dims == 1)
        read_vector(j, t, reorders ? buffer : out);
    else
        read_matrix_row(j, t, row, out);
    for (uint64_t i = 0; reorders && i < t->cols; i++)
        out[i] = buffer[ak_convert_map_index(&t->order, i)];
    for (uint64_t i = 0; t->offset != 0.0f && i < t->cols; i++)
        out[i] += t->offset;
}

/* A norm that is stored minus something is divided with it. */
void ak_compress_read_row(const struct ak_compress_job *j, const struct ak_compress_tensor *t,
                          uint64_t row, float *buffer, float *out)
{
    ak_compress_read_unscaled(j, t, row, buffer, out);
    if (!t->factors)
        return;
    float shift = t->has_role ? ak_arch_norm_offset(j->spec.arch, t->role) : 0.0f;
    for (uint64_t i = 0; i < t->cols; i++)
        out[i] = t->multiplies ? out[i] * t->factors[i] : (out[i] + shift) / t->factors[i] - shift;
}

void ak_compress_get_weights(const struct ak_compress_tensor *t, uint64_t row, const float *factors,
                             float *out)
{
    const float *importance = t->importance;
    if (importance && t->n_importance > t->cols) /* a matrix of its own for each expert */
        importance += row / (t->rows / (t->n_importance / t->cols)) * t->cols;
    for (uint64_t i = 0; i < t->cols; i++) {
        out[i] = importance ? importance[i] : 1.0f;
        if (factors)
            out[i] /= factors[i] * factors[i];
    }
}
