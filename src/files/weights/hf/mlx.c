/* MLX: MODULE.weight has the numbers of a row bit-packed, lowest bits of 32-bit words first. A
 * group of numbers shares an element of MODULE.scales and, in affine mode, one of MODULE.biases:
 *
 *     affine  x = scale · q + bias; 2, 3, 4, 5, 6 or 8 bits, groups of 32, 64 or 128
 *     mxfp4   MXFP4 in groups of 32; the scale is the exponent byte
 *
 * An expert stack has one more dimension. Settings of a single module are an object under its name;
 * a module without scales is not quantized.
 * https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantize.html */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "files/weights/hf/quant.h"

/* ---- Rows --------------------------------------------------------------- */
static uint64_t group_at(const struct ak_composed_tensor *a, uint64_t row, uint32_t k)
{
    return row * (a->cols / a->group) + k / a->group;
}

static void mlx_factors(const struct ak_composed_tensor *a, uint64_t row, uint32_t k, float *scale,
                        float *minimum)
{
    uint64_t i = group_at(a, row, k);
    *scale = ak_composed_factor(a->factor_type, &a->plane[1], i);
    *minimum = ak_composed_factor(a->factor_type, &a->plane[2], i);
}

static const struct ak_composed_scheme affine = { .quants = ak_composed_read_bits,
                                                  .factors = mlx_factors,
                                                  .is_row_major = true };

/* ---- From the folder ---------------------------------------------------- */
static ak_status read_settings(const struct ak_hf_quant *q, const json_t *object, int64_t bits,
                               int64_t group, struct ak_composed_tensor *out,
                               struct ak_error *error)
{
    AK_TRY(ak_hf_quant_integer(q, object, "bits", bits, &bits, error));
    AK_TRY(ak_hf_quant_integer(q, object, "group_size", group, &group, error));
    if (bits < 2 || bits > 8 || bits == 7)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: %lld bits; expected 2, 3, 4, 5, 6 or 8",
                       q->where, (long long)bits);
    if (group != 32 && group != 64 && group != 128)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: group_size %lld; expected 32, 64 or 128", q->where, (long long)group);
    out->bits = (uint32_t)bits;
    out->group = (uint32_t)group;
    return AKUNU_OK;
}

static ak_status read_mode(const struct ak_hf_quant *q, const json_t *object, bool *is_mxfp4,
                           struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const char *mode = ak_hf_quant_text(object, "mode");
    if (!mode)
        return AKUNU_OK; /* keeps the default */
    *is_mxfp4 = strcmp(mode, "mxfp4") == 0;
    if (!*is_mxfp4 && strcmp(mode, "affine") != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: mode %s is not supported; supported are affine and mxfp4", q->where,
                       ak_show(mode, strlen(mode), shown));
    return AKUNU_OK;
}

static ak_status mlx_read_config(struct ak_hf_quant *q, struct ak_error *error)
{
    struct ak_composed_tensor all = { 0 };
    AK_TRY(read_mode(q, q->config, &q->scheme_flag, error));
    AK_TRY(read_settings(q, q->config, 4, 64, &all, error));
    q->bits = all.bits;
    q->group = all.group;
    return AKUNU_OK;
}

/* The number of columns follows from the words and must agree with the groups. */
static ak_status set_shape(const struct ak_hf_tensor *weight, const struct ak_hf_tensor *scales,
                           struct ak_composed_tensor *out, struct ak_error *error)
{
    unsigned last = weight->n_dims - 1;
    /* a dimension fits 32 bits */
    uint64_t cols = weight->shape[last] * 32 / out->bits, shape[AK_TENSOR_DIMS_MAX], rows = 1;
    if (weight->n_dims < 2)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has one dimension; expected a matrix",
                       weight->name);
    if (cols % out->group != 0 ||
        cols > UINT32_MAX) /* whole groups of 32 or more are whole words, too */
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s has %llu words a row, which are no groups of %u numbers of %u bits",
                       weight->name, (unsigned long long)weight->shape[last], out->group,
                       out->bits);
    memcpy(shape, weight->shape, sizeof shape);
    shape[last] = cols / out->group;
    AK_TRY(ak_hf_expect_shape(scales, shape, weight->n_dims, error));
    for (unsigned d = 0; d < last; d++)
        rows *= weight->shape[d];
    shape[last] = cols;
    memcpy(out->shape, shape, sizeof shape);
    out->n_dims = weight->n_dims;
    out->rows = (uint32_t)rows;
    out->cols = (uint32_t)cols;
    return AKUNU_OK;
}

static ak_status compose_affine(const struct ak_hf_quant *q, const char *module,
                                const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                                struct ak_error *error)
{
    const struct ak_hf_tensor *scales, *biases;
    AK_TRY(ak_hf_find_factors(q, module, ".scales", &scales, &out->plane[1], error));
    AK_TRY(ak_hf_find_factors(q, module, ".biases", &biases, &out->plane[2], error));
    AK_TRY(set_shape(weight, scales, out, error));
    AK_TRY(ak_hf_expect_shape(biases, scales->shape, scales->n_dims, error));
    if (biases->type != scales->type)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %s; expected %s as the scales",
                       biases->name, ak_quant_info(biases->type)->name,
                       ak_quant_info(scales->type)->name);
    out->scheme = &affine;
    out->factor_type = scales->type;
    out->type = ak_composed_affine_type(out->bits, scales->type);
    snprintf(out->name, sizeof out->name, "MLX%u_G%u", out->bits, out->group);
    return AKUNU_OK;
}

static ak_status compose_mxfp4(const struct ak_hf_quant *q, const char *module,
                               const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                               struct ak_error *error)
{
    const struct ak_hf_tensor *scales = ak_hf_find_plane(q, module, ".scales", &out->plane[1]);
    if (out->bits != 4 || out->group != 32)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: mode mxfp4 with %u bits in groups of %u; expected 4 in groups of 32",
                       q->where, out->bits, out->group);
    if (scales->type != AK_QUANT_U8)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %s; expected U8", scales->name,
                       ak_quant_info(scales->type)->name);
    AK_TRY(set_shape(weight, scales, out, error));
    out->scheme = &ak_composed_mxfp4;
    out->factor_type = AK_QUANT_U8;
    out->type = AK_QUANT_MXFP4;
    snprintf(out->name, sizeof out->name, "MLX_MXFP4");
    return AKUNU_OK;
}

static ak_status mlx_compose(const struct ak_hf_quant *q, const char *module,
                             const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                             bool *plain, struct ak_error *error)
{
    const json_t *settings = json_object_get(q->config, module);
    bool is_mxfp4 = q->scheme_flag;
    *plain = !ak_hf_find_plane(q, module, ".scales", &out->plane[1]);
    if (*plain)
        return AKUNU_OK;
    AK_TRY(read_mode(q, settings, &is_mxfp4, error));
    AK_TRY(read_settings(q, settings, q->bits, q->group, out, error));
    out->plane[0] = ak_hf_tensor_plane(q->h, weight);
    return is_mxfp4 ? compose_mxfp4(q, module, weight, out, error) :
                      compose_affine(q, module, weight, out, error);
}

const struct ak_hf_scheme ak_hf_mlx = {
    .quants_suffix = ".weight",
    .plane_suffixes = { ".scales", ".biases" },
    .types = 1u << (AK_QUANT_U32 - AK_QUANT_STORED_FIRST),
    .weight_suffix = ".weight",
    .read = mlx_read_config,
    .compose = mlx_compose,
};
