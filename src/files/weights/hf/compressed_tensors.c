/* compressed-tensors: matrices of integers. MODULE has, in the format pack-quantized,
 *
 *     weight_packed      i32 [out, in · bits / 32]   32 / bits inputs per word, lowest bits first
 *     weight_shape       i64 [2]                     out, in
 *     weight_zero_point  i32 [out · bits / 32, groups], packed the same way along the outputs
 *     weight_g_idx       i32 [in]                    the group of each input; absent: in order
 *
 * where numbers and zero points are stored plus half of their range; in the format int-quantized,
 * 8 bits,
 *
 *     weight             i8 [out, in]
 *
 * and in both
 *
 *     weight_scale       [out, groups], or a single one
 *     weight_zero_point  i8 of the same shape; absent: 0
 *
 *     x = scale · (q − zero)
 *
 * Bits and groups follow from the shapes, since modules may differ in them. Settings for rounding
 * activations are ignored: akunu always uses 8 bits.
 * https://github.com/vllm-project/compressed-tensors */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "files/weights/hf/quant.h"

/* ---- Rows --------------------------------------------------------------- */
static uint32_t half_of(const struct ak_composed_tensor *a)
{
    return 1u << (a->bits - 1);
}

/* Number k of a row, of 4 or 8 bits, as stored. */
static uint8_t number(const struct ak_composed_tensor *a, uint64_t row, uint32_t k)
{
    uint64_t i = row * a->cols + k;
    const uint8_t *data = a->plane[0].data;
    return (uint8_t)(a->bits == 8 ? data[i] : data[i / 2] >> (i % 2 * 4) & 15);
}

static void packed_quants(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                          uint32_t n, uint8_t *out)
{
    if (!a->order)
        ak_composed_read_bits(a, row, first, n, out);
    for (uint32_t i = 0; a->order && i < n; i++)
        out[i] = number(a, row, a->order[first + i]);
}

static void int8_quants(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                        uint32_t n, uint8_t *out)
{
    packed_quants(a, row, first, n, out);
    for (uint32_t i = 0; i < n; i++)
        out[i] ^= 0x80;
}

static float scale_of(const struct ak_composed_tensor *a, uint64_t row, uint32_t group)
{
    return ak_composed_factor(a->factor_type, &a->plane[1],
                              row / a->block_rows * a->scale_cols + group);
}

/* The zero point of a group, plus half of the range, as the numbers are stored. */
static uint32_t zero_of(const struct ak_composed_tensor *a, uint64_t row, uint32_t group)
{
    uint32_t per_word = 32 / a->bits;
    if (!a->plane[2].data)
        return half_of(a);
    if (a->zero_offset)
        return (uint8_t)(((const uint8_t *)a->plane[2]
                              .data)[row / a->block_rows * a->scale_cols + group] +
                         a->zero_offset) &
               (2 * half_of(a) - 1);
    uint32_t word = ak_composed_word(&a->plane[2], row / per_word * a->scale_cols + group);
    return word >> (row % per_word * a->bits) & (2 * half_of(a) - 1);
}

static uint32_t group_of(const struct ak_composed_tensor *a, uint32_t column)
{
    return a->plane[3].data ? ak_composed_word(&a->plane[3], column) : column / a->group;
}

static void ct_factors(const struct ak_composed_tensor *a, uint64_t row, uint32_t k, float *scale,
                       float *minimum)
{
    uint32_t group = group_of(a, a->order ? a->order[k] : k);
    *scale = scale_of(a, row, group);
    *minimum = -(*scale * (float)zero_of(a, row, group));
}

/* `flip`, XORed to a byte, adds half of the range to a signed one; 0 for unsigned ones. */
static void dequantize_row(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                           uint32_t n, uint8_t flip, float *out)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t group = group_of(a, first + i);
        int q = (number(a, row, first + i) ^ flip) - (int)zero_of(a, row, group);
        out[i] = scale_of(a, row, group) * (float)q;
    }
}

static void packed_values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                          uint32_t n, float *out)
{
    dequantize_row(a, row, first, n, 0, out);
}

static void int8_values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                        uint32_t n, float *out)
{
    dequantize_row(a, row, first, n, 0x80, out);
}

static const struct ak_composed_scheme packed_scheme = {
    .quants = packed_quants, .factors = ct_factors, .values = packed_values, .is_row_major = true
};
static const struct ak_composed_scheme int8_scheme = {
    .quants = int8_quants, .factors = ct_factors, .values = int8_values, .is_row_major = true
};

/* ---- The configuration -------------------------------------------------- */
static ak_status check_group(const struct ak_hf_quant *q, const char *name, const json_t *group,
                             struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const json_t *weights = json_object_get(group, "weights");
    const char *type = ak_hf_quant_text(weights, "type");
    int64_t bits;
    AK_TRY(ak_hf_quant_integer(q, weights, "num_bits", 8, &bits, error));
    if ((type && strcmp(type, "int") != 0) || (bits != 4 && bits != 8) ||
        (bits == 4 && q->scheme == &ak_hf_int_quantized))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: %s has weights of type %s and %lld bits; expected int and %s", q->where,
                       ak_show(name, strlen(name), shown), type ? type : "int", (long long)bits,
                       q->scheme == &ak_hf_int_quantized ? "8" : "4 or 8");
    return AKUNU_OK;
}

static ak_status ct_read_config(struct ak_hf_quant *q, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const char *name,
        *sparsity = ak_hf_quant_text(json_object_get(q->config, "sparsity_config"), "format");
    json_t *group;
    if (sparsity && strcmp(sparsity, "dense") != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: sparsity_config has the format %s; expected dense", q->where,
                       ak_show(sparsity, strlen(sparsity), shown));
    if (json_object_size(
            json_object_get(json_object_get(q->config, "transform_config"), "config_groups")) > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: transform_config is not supported",
                       q->where);
    json_object_foreach (json_object_get(q->config, "config_groups"), name, group)
        AK_TRY(check_group(q, name, group, error));
    return AKUNU_OK;
}

/* ---- One module --------------------------------------------------------- */
/* Scales: [rows, groups], or a single one. */
static ak_status read_scales(const struct ak_hf_quant *q, const char *module,
                             struct ak_composed_tensor *a, struct ak_error *error)
{
    const struct ak_hf_tensor *scales;
    AK_TRY(ak_hf_find_factors(q, module, ".weight_scale", &scales, &a->plane[1], error));
    bool is_single = scales->n_dims == 1 && scales->shape[0] == 1;
    uint64_t groups = scales->n_dims == 2 ? scales->shape[1] : 1;
    if (groups == 0 || a->cols % groups != 0 || a->cols / groups % 32 != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s has %llu groups a row of %u; expected groups of a multiple of 32",
                       scales->name, (unsigned long long)groups, a->cols);
    a->block_rows = is_single ? a->rows : 1;
    a->scale_cols = (uint32_t)groups;
    a->group = a->cols / a->scale_cols;
    a->factor_type = scales->type;
    return is_single ? AKUNU_OK :
                       ak_hf_expect_shape(scales, (uint64_t[]){ a->rows, groups },
                                          scales->n_dims == 1 ? 1 : 2, error);
}

static ak_status read_zeros(const struct ak_hf_quant *q, const char *module,
                            struct ak_composed_tensor *a, struct ak_error *error)
{
    const struct ak_hf_tensor *zeros =
        ak_hf_find_plane(q, module, ".weight_zero_point", &a->plane[2]);
    uint64_t per_word = 32 / a->bits, rows = a->block_rows > 1 ? 1 : a->rows;
    if (!zeros)
        return AKUNU_OK;
    if (zeros->type == AK_QUANT_I8)
        a->zero_offset = half_of(a);
    else if (zeros->type == AK_QUANT_I32 && q->scheme == &ak_hf_pack_quantized &&
             a->block_rows == 1)
        rows = (rows + per_word - 1) / per_word;
    else
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %s; expected I8%s", zeros->name,
                       ak_quant_info(zeros->type)->name,
                       q->scheme == &ak_hf_pack_quantized ? " or I32" : "");
    return ak_hf_expect_shape(zeros, (uint64_t[]){ rows, a->scale_cols },
                              zeros->n_dims == 1 && a->scale_cols == 1 ? 1 : 2, error);
}

/* What all groups of modules say of "symmetric"; groups that differ, or do not say it, give NULL.
 */
static const json_t *find_symmetric(const struct ak_hf_quant *q)
{
    const json_t *common = NULL, *own;
    const char *name;
    json_t *group;
    json_object_foreach (json_object_get(q->config, "config_groups"), name, group) {
        own = json_object_get(json_object_get(group, "weights"), "symmetric");
        if (!own || (common && !json_equal(common, own)))
            return NULL;
        common = own;
    }
    return common;
}

static bool has_zeros(const struct ak_composed_tensor *a)
{
    bool found = false;
    for (uint64_t row = 0; a->plane[2].data && !found && row < a->rows; row += a->block_rows)
        for (uint32_t group = 0; group < a->scale_cols; group++)
            found = found || zero_of(a, row, group) != half_of(a);
    return found;
}

/* Fails if there are zero points where the configuration says that there are none, or none where it
 * says that there are some. */
static ak_status check_symmetric(const struct ak_hf_quant *q, const char *module,
                                 const struct ak_composed_tensor *a, struct ak_error *error)
{
    const json_t *symmetric = find_symmetric(q);
    if (json_is_true(symmetric) && has_zeros(a))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "config.json: %s: symmetric is true, but %.200s.weight_zero_point has "
                       "numbers other than 0",
                       q->where, module);
    if (json_is_false(symmetric) && !a->plane[2].data)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "config.json: %s: symmetric is false, but there is no "
                       "%.200s.weight_zero_point",
                       q->where, module);
    return AKUNU_OK;
}

/* The block type. Row scales without zero points become F16 if all fit; they are few, so each is
 * checked. With zero points BF16 scales become F16: scale · zero loses too much in BF16, and the
 * scales seldom leave F16's range. */
static enum ak_quant_type type_of(const struct ak_composed_tensor *a)
{
    enum ak_quant_type factors = a->factor_type;
    bool has_row_scales = a->scale_cols == 1;
    if (has_row_scales && a->plane[2].data == NULL &&
        ak_composed_fits_f16(factors, &a->plane[1], a->block_rows > 1 ? 1 : a->rows))
        factors = AK_QUANT_F16;
    if (!a->plane[2].data)
        return ak_composed_symmetric_type(a->bits, factors);
    return ak_composed_affine_type(a->bits, factors == AK_QUANT_F32 ? AK_QUANT_F32 : AK_QUANT_F16);
}

/* The part that both formats share. rows, cols and bits are known. */
static ak_status finish_module(const struct ak_hf_quant *q, const char *module,
                               const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                               struct ak_error *error)
{
    char group[12] = "ROWS";
    bool is_ordered;
    if (out->cols % 32 != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s has %u inputs; expected a multiple of 32", weight->name, out->cols);
    out->plane[0] = ak_hf_tensor_plane(q->h, weight);
    out->n_dims = 2;
    out->shape[0] = out->rows;
    out->shape[1] = out->cols;
    AK_TRY(read_scales(q, module, out, error));
    AK_TRY(read_zeros(q, module, out, error));
    AK_TRY(check_symmetric(q, module, out, error));
    out->type = type_of(out);
    AK_TRY(ak_hf_read_groups(q, module, ".weight_g_idx", out, &is_ordered, error));
    if (is_ordered)
        out->plane[3] = (struct ak_plane){ NULL, 0 };
    if (out->scale_cols > 1)
        snprintf(group, sizeof group, "G%u", out->group);
    snprintf(out->name, sizeof out->name, "CT%u_%s%s%s", out->bits & 15, group,
             out->plane[2].data ? "_Z" : "", is_ordered ? "" : "_ACT");
    return AKUNU_OK;
}

static uint64_t size_at(const struct ak_plane *plane, uint32_t i)
{
    return (uint64_t)ak_composed_word(plane, 2 * i) | (uint64_t)ak_composed_word(plane, 2 * i + 1)
                                                          << 32;
}

static ak_status compose_packed(const struct ak_hf_quant *q, const char *module,
                                const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                                bool *plain, struct ak_error *error)
{
    struct ak_plane plane;
    const struct ak_hf_tensor *shape = ak_hf_find_plane(q, module, ".weight_shape", &plane);
    *plain = false;
    if (!shape || shape->type != AK_QUANT_I64)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s.weight_shape is %s; expected I64", module,
                       shape ? ak_quant_info(shape->type)->name : "missing");
    AK_TRY(ak_hf_expect_shape(shape, (uint64_t[]){ 2 }, 1, error));
    uint64_t rows = size_at(&plane, 0), cols = size_at(&plane, 1),
             words = weight->shape[weight->n_dims - 1];
    if (rows == 0 || cols == 0 || cols > UINT32_MAX || (words * 8 != cols && words * 4 != cols))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s has %llu words a row, where %s has %llu inputs; expected 4 or 8 bits",
                       weight->name, (unsigned long long)words, shape->name,
                       (unsigned long long)cols);
    AK_TRY(ak_hf_expect_shape(weight, (uint64_t[]){ rows, words }, 2, error));
    out->rows = (uint32_t)rows; /* a dimension fits 32 bits */
    out->cols = (uint32_t)cols;
    out->bits = words * 8 == cols ? 4 : 8;
    out->scheme = &packed_scheme;
    return finish_module(q, module, weight, out, error);
}

static ak_status compose_int8(const struct ak_hf_quant *q, const char *module,
                              const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                              bool *plain, struct ak_error *error)
{
    *plain = false;
    if (weight->n_dims != 2 || weight->shape[0] == 0 || weight->shape[1] == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s has %u dimensions; expected a matrix",
                       weight->name, weight->n_dims);
    out->rows = (uint32_t)weight->shape[0];
    out->cols = (uint32_t)weight->shape[1];
    out->bits = 8;
    out->scheme = &int8_scheme;
    return finish_module(q, module, weight, out, error);
}

const struct ak_hf_scheme ak_hf_pack_quantized = {
    .quants_suffix = ".weight_packed",
    .plane_suffixes = { ".weight_scale", ".weight_shape", ".weight_zero_point", ".weight_g_idx" },
    .types = 1u << (AK_QUANT_I32 - AK_QUANT_STORED_FIRST),
    .weight_suffix = ".weight",
    .read = ct_read_config,
    .compose = compose_packed,
};

const struct ak_hf_scheme ak_hf_int_quantized = {
    .quants_suffix = ".weight",
    .plane_suffixes = { ".weight_scale", ".weight_zero_point", ".weight_g_idx", ".input_scale",
                        ".input_zero_point", ".azp_adj" },
    .types = 1u << (AK_QUANT_I8 - AK_QUANT_STORED_FIRST),
    .weight_suffix = ".weight",
    .read = ct_read_config,
    .compose = compose_int8,
};
