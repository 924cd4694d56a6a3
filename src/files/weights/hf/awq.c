/* AWQ: matrices in the layout of its GEMM kernels. MODULE has
 *
 *     qweight  i32 [in, out / 8]      eight outputs per word
 *     qzeros   i32 [groups, out / 8]  the same
 *     scales   [groups, out]
 *
 *     x = scale · (q − zero)
 *
 * The nibbles of a word, from the lowest, belong to outputs 0, 2, 4, 6, 1, 3, 5, 7.
 * https://github.com/casper-hansen/AutoAWQ */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "files/weights/hf/quant.h"

enum { PER_WORD = 8 };

static uint32_t number(const struct ak_plane *plane, const struct ak_composed_tensor *a,
                       uint64_t line, uint32_t row)
{
    uint32_t word = ak_composed_word(plane, line * (a->rows / PER_WORD) + row / PER_WORD);
    uint32_t output = row % PER_WORD, place = output % 2 * 4 + output / 2;
    return word >> (4 * place) & 15;
}

static void quants(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)number(&a->plane[0], a, first + i, (uint32_t)row);
}

static void awq_factors(const struct ak_composed_tensor *a, uint64_t row, uint32_t k, float *scale,
                        float *minimum)
{
    uint64_t group = k / a->group;
    *scale = ak_composed_factor(a->factor_type, &a->plane[1], group * a->rows + row);
    *minimum = -(*scale * (float)number(&a->plane[2], a, group, (uint32_t)row));
}

static const struct ak_composed_scheme scheme = { .quants = quants, .factors = awq_factors };

static ak_status awq_read_config(struct ak_hf_quant *q, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    int64_t bits;
    const char *version = ak_hf_quant_text(q->config, "version");
    AK_TRY(ak_hf_quant_integer(q, q->config, "bits", 4, &bits, error));
    AK_TRY(ak_hf_read_group_size(q, q->config, 128, &q->group, error));
    if (bits != 4)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: awq of %lld bits; expected 4", q->where,
                       (long long)bits);
    if (version && strcasecmp(version, "gemm") != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: version %s is not supported; supported is gemm", q->where,
                       ak_show(version, strlen(version), shown));
    q->bits = 4;
    return AKUNU_OK;
}

/* Without zero points of their own, which the layout cannot leave out, all are in the middle. */
static ak_status check_zeros(const struct ak_hf_quant *q, const char *module,
                             const struct ak_composed_tensor *a, struct ak_error *error)
{
    uint64_t n = (uint64_t)(a->cols / a->group) * (a->rows / PER_WORD);
    if (!json_is_false(json_object_get(q->config, "zero_point")))
        return AKUNU_OK;
    for (uint64_t i = 0; i < n; i++)
        if (ak_composed_word(&a->plane[2], i) != 0x88888888)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "config.json: %s: zero_point is false, so that all zero points are 8, "
                           "but %.200s.qzeros has others",
                           q->where, module);
    return AKUNU_OK;
}

static ak_status awq_compose(const struct ak_hf_quant *q, const char *module,
                             const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                             bool *plain, struct ak_error *error)
{
    *plain = false;
    AK_TRY(ak_hf_read_linear(q, module, weight, weight->shape[1] * PER_WORD, weight->shape[0], out,
                             error));
    AK_TRY(check_zeros(q, module, out, error));
    out->scheme = &scheme;
    snprintf(out->name, sizeof out->name, "AWQ4_G%u", out->group);
    return AKUNU_OK;
}

const struct ak_hf_scheme ak_hf_awq = {
    .quants_suffix = ".qweight",
    .plane_suffixes = { ".qzeros", ".scales" },
    .types = 1u << (AK_QUANT_I32 - AK_QUANT_STORED_FIRST),
    .weight_suffix = ".weight",
    .read = awq_read_config,
    .compose = awq_compose,
};
