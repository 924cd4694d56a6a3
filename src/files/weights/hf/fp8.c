/* FP8: matrices of F8_E4M3 with scales: x = scale · number.
 *
 *     MODULE.weight_scale_inv  one per block of rows and columns (weight_block_size)
 *     MODULE.weight_scale      the same, one per row ([rows, 1] or [rows]), or a single one
 *
 * Scales of activations (input_scale) are ignored: they are for kernels that round activations to
 * 8-bit floats.
 *
 * Makes blocks of F8 if each has a single scale, else rows of F16. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "files/quant/block.h"
#include "files/weights/hf/quant.h"

enum { F8_ELEMS = sizeof(((struct ak_quant_block_f8 *)NULL)->q) };

static void values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   float *out)
{
    ak_quant_info(AK_QUANT_F8_E4M3)
        ->dequantize((const uint8_t *)a->plane[0].data + row * a->cols + first, out, n);
    uint64_t scales = row / a->block_rows * a->scale_cols;
    for (uint32_t i = 0; i < n;) {
        float scale =
            ak_composed_factor(a->factor_type, &a->plane[1], scales + (first + i) / a->group);
        do
            out[i++] *= scale;
        while (i < n && (first + i) % a->group != 0);
    }
}

static const struct ak_composed_scheme scheme = { .values = values };

/* Makes blocks of F8. A block that contains a NaN becomes NaN as a whole, which changes no result:
 * every sum over the block is NaN either way. */
static void blocks(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out)
{
    uint64_t scales = row / a->block_rows * a->scale_cols;
    for (uint32_t end = first + n; first < end;
         first += F8_ELEMS, out += sizeof(struct ak_quant_block_f8)) {
        struct ak_quant_block_f8 block = { .d = 0x1p8f *
                                                ak_composed_factor(a->factor_type, &a->plane[1],
                                                                   scales + first / a->group) };
        memcpy(block.q, (const uint8_t *)a->plane[0].data + row * a->cols + first, F8_ELEMS);
        for (int i = 0; i < F8_ELEMS; i++)
            if ((block.q[i] & 0x7f) == 0x7f)
                block.d = NAN;
        memcpy(out, &block, sizeof block);
    }
}

static const struct ak_composed_scheme block_scheme = { .values = values, .blocks = blocks };

/* weight_block_size, if present, is [rows, columns]. */
static ak_status fp8_read_config(struct ak_hf_quant *q, struct ak_error *error)
{
    const json_t *size = json_object_get(q->config, "weight_block_size");
    q->bits = q->group = 0;
    if (!size || json_is_null(size))
        return AKUNU_OK;
    json_int_t rows = json_integer_value(json_array_get(size, 0)),
               cols = json_integer_value(json_array_get(size, 1));
    if (json_array_size(size) != 2 || rows < 1 || cols < 1 || rows > UINT32_MAX ||
        cols > UINT32_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: weight_block_size is not a list of two sizes", q->where);
    q->bits = (uint32_t)rows; /* rows of a block */
    q->group = (uint32_t)cols;
    return AKUNU_OK;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Determines which elements share a scale, from the shape of the scales. */
static ak_status set_scales(const struct ak_hf_quant *q, const struct ak_hf_tensor *scales,
                            struct ak_composed_tensor *out, struct ak_error *error)
{
    out->group = out->cols;
    out->scale_cols = 1;
    if (scales->n_dims == 1 && scales->shape[0] == 1) {
        out->block_rows = out->rows;
        return AKUNU_OK;
    }
    if (scales->n_dims == 1 ||
        (scales->n_dims == 2 && scales->shape[1] == 1 && scales->shape[0] == out->rows)) {
        out->block_rows = 1;
        return ak_hf_expect_shape(scales, (uint64_t[]){ out->rows, 1 }, scales->n_dims, error);
    }
    if (q->group == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has scales of blocks, and %s no weight_block_size", scales->name,
                       q->where);
    out->block_rows = q->bits;
    out->group = q->group;
    out->scale_cols = (uint32_t)divide_up(out->cols, out->group);
    return ak_hf_expect_shape(
        scales, (uint64_t[]){ divide_up(out->rows, out->block_rows), out->scale_cols }, 2, error);
}

static ak_status fp8_compose(const struct ak_hf_quant *q, const char *module,
                             const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                             bool *plain, struct ak_error *error)
{
    struct ak_plane plane;
    const struct ak_hf_tensor *scales;
    const char *suffix = ak_hf_find_plane(q, module, ".weight_scale_inv", &plane) ?
                             ".weight_scale_inv" :
                             ".weight_scale";
    *plain = false;
    AK_TRY(ak_hf_find_factors(q, module, suffix, &scales, &out->plane[1], error));
    if (weight->n_dims != 2 || weight->shape[0] == 0 || weight->shape[1] == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has %u dimensions; expected a matrix",
                       weight->name, weight->n_dims);
    out->plane[0] = ak_hf_tensor_plane(q->h, weight);
    out->n_dims = 2;
    out->shape[0] = out->rows = (uint32_t)weight->shape[0];
    out->shape[1] = out->cols = (uint32_t)weight->shape[1];
    AK_TRY(set_scales(q, scales, out, error));
    bool fits =
        out->cols % F8_ELEMS == 0 && (out->group % F8_ELEMS == 0 || out->group >= out->cols);
    out->scheme = fits ? &block_scheme : &scheme;
    out->factor_type = scales->type;
    out->type = fits ? AK_QUANT_F8 : AK_QUANT_F16;
    snprintf(out->name, sizeof out->name, "F8_E4M3_SCALED");
    return AKUNU_OK;
}

const struct ak_hf_scheme ak_hf_fp8 = {
    .quants_suffix = ".weight",
    .plane_suffixes = { ".weight_scale_inv", ".weight_scale", ".input_scale", ".input_scale_ub" },
    .types = 1u << (AK_QUANT_F8_E4M3 - AK_QUANT_STORED_FIRST),
    .weight_suffix = ".weight",
    .read = fp8_read_config,
    .compose = fp8_compose,
};
