/* GPTQ: for a layer with `in` inputs and `out` outputs, MODULE has
 *
 *     qweight  i32 [in · bits / 32, out]      32 / bits inputs per word, lowest bits first
 *     qzeros   i32 [groups, out · bits / 32]  the same for outputs
 *     scales   [groups, out]
 *     g_idx    i32 [in]                       the group of each input; absent: in order
 *
 *     x = scale · (q − zero)
 *
 * with zero = stored value + 1 in the first version of the format, and = stored value in
 * "gptq_v2". Writers have named the wrong version, so if all zeros are in the middle of the range,
 * as `sym` wants them, in one version, it is that one. If inputs were quantized in order of
 * importance (desc_act), neighbors in a row belong to several groups: blocks then take the inputs
 * sorted by group. Modules may have settings of their own (gptq_dynamic.c).
 * https://github.com/ModelCloud/GPTQModel */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "files/weights/hf/quant.h"

/* ---- Rows --------------------------------------------------------------- */
static uint32_t number(const struct ak_composed_tensor *a, uint32_t row, uint32_t k)
{
    uint32_t per_word = 32 / a->bits;
    uint32_t word = ak_composed_word(&a->plane[0], (uint64_t)(k / per_word) * a->rows + row);
    return word >> (k % per_word * a->bits) & ((1u << a->bits) - 1);
}

static void quants(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   uint8_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)number(a, (uint32_t)row, first + i);
}

static void group_factors(const struct ak_composed_tensor *a, uint32_t row, uint32_t group,
                          float *scale, float *minimum)
{
    uint32_t per_word = 32 / a->bits, mask = (1u << a->bits) - 1;
    uint32_t word =
        ak_composed_word(&a->plane[2], (uint64_t)group * (a->rows / per_word) + row / per_word);
    uint32_t zero = ((word >> (row % per_word * a->bits)) + a->zero_offset) & mask;
    *scale = ak_composed_factor(a->factor_type, &a->plane[1], (uint64_t)group * a->rows + row);
    *minimum = -(*scale * (float)zero);
}

static void gptq_factors(const struct ak_composed_tensor *a, uint64_t row, uint32_t k, float *scale,
                         float *minimum)
{
    group_factors(a, (uint32_t)row, k / a->group, scale, minimum);
}

static const struct ak_composed_scheme ordered_scheme = { .quants = quants,
                                                          .factors = gptq_factors };

static void sorted_quants(const struct ak_composed_tensor *a, uint64_t row, uint32_t first,
                          uint32_t n, uint8_t *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (uint8_t)number(a, (uint32_t)row, a->order[first + i]);
}

static void sorted_factors(const struct ak_composed_tensor *a, uint64_t row, uint32_t k,
                           float *scale, float *minimum)
{
    group_factors(a, (uint32_t)row, ak_composed_word(&a->plane[3], a->order[k]), scale, minimum);
}

/* Floats in stored order; neighboring inputs may be of different groups. */
static void values(const struct ak_composed_tensor *a, uint64_t row, uint32_t first, uint32_t n,
                   float *out)
{
    for (uint32_t i = 0; i < n; i++) {
        float scale, minimum;
        group_factors(a, (uint32_t)row, ak_composed_word(&a->plane[3], first + i), &scale,
                      &minimum);
        out[i] = scale * (float)number(a, (uint32_t)row, first + i) + minimum;
    }
}

static const struct ak_composed_scheme sorted_scheme = { .quants = sorted_quants,
                                                         .factors = sorted_factors,
                                                         .values = values };

/* ---- From the folder ---------------------------------------------------- */
static ak_status read_settings(struct ak_hf_quant *q, const json_t *object, int64_t bits,
                               struct ak_error *error)
{
    AK_TRY(ak_hf_quant_integer(q, object, "bits", bits, &bits, error));
    AK_TRY(ak_hf_read_group_size(q, object, q->group, &q->group, error));
    if (bits != 2 && bits != 4 && bits != 8)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: gptq of %lld bits; expected 2, 4 or 8",
                       q->where, (long long)bits);
    q->bits = (uint32_t)bits;
    return AKUNU_OK;
}

/* Whether all zero points of a module are stored as `value`. */
static bool has_zeros(const struct ak_composed_tensor *a, uint32_t value)
{
    uint32_t mask = (1u << a->bits) - 1, pattern = value * (UINT32_MAX / mask);
    uint64_t n = (uint64_t)(a->cols / a->group) * (a->rows / (32 / a->bits));
    for (uint64_t i = 0; i < n; i++)
        if (ak_composed_word(&a->plane[2], i) != pattern)
            return false;
    return true;
}

/* Finds out what is added to stored zero points. `sym` says that they are in the middle of the
 * range, which tells the version. If it is not stated, so do equal zero points in the middle. */
static ak_status find_offset(const struct ak_hf_quant *q, const char *module,
                             const json_t *settings, struct ak_composed_tensor *out,
                             struct ak_error *error)
{
    const json_t *own = json_object_get(settings, "sym"),
                 *sym = own ? own : json_object_get(q->config, "sym");
    uint32_t half = 1u << (out->bits - 1);
    out->zero_offset = q->scheme_flag ? 0 : 1;
    if (json_is_false(sym) || has_zeros(out, half - out->zero_offset))
        return AKUNU_OK;
    if (has_zeros(out, half - !out->zero_offset))
        out->zero_offset = !out->zero_offset;
    else if (json_is_true(sym))
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "config.json: %s: sym is true, so that all zero points are %u, but "
                       "%.200s.qzeros has others",
                       q->where, (unsigned)half, module);
    return AKUNU_OK;
}

static ak_status gptq_read_config(struct ak_hf_quant *q, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    const char *format = ak_hf_quant_text(q->config, "checkpoint_format");
    q->group = 128;
    AK_TRY(read_settings(q, q->config, 4, error));
    if (format && strcmp(format, "gptq") != 0 && strcmp(format, "gptq_v2") != 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: checkpoint_format %s is not supported; supported are gptq and "
                       "gptq_v2",
                       q->where, ak_show(format, strlen(format), shown));
    q->scheme_flag = format && strcmp(format, "gptq_v2") == 0;
    struct ak_hf_gptq_dynamic *dynamic;
    AK_TRY(ak_hf_gptq_dynamic_read(q, &dynamic, error));
    q->scheme_data = dynamic;
    return AKUNU_OK;
}

static void end(struct ak_hf_quant *q)
{
    ak_hf_gptq_dynamic_free(q->scheme_data);
}

static ak_status gptq_compose(const struct ak_hf_quant *q, const char *module,
                              const struct ak_hf_tensor *weight, struct ak_composed_tensor *out,
                              bool *plain, struct ak_error *error)
{
    struct ak_hf_quant module_quant = *q;
    const json_t *settings;
    bool is_ordered;
    *plain = false;
    AK_TRY(ak_hf_gptq_dynamic_find(q->scheme_data, q->where, module, &settings, error));
    if (settings)
        AK_TRY(read_settings(&module_quant, settings, q->bits, error));
    AK_TRY(ak_hf_read_linear(&module_quant, module, weight, weight->shape[1],
                             weight->shape[0] * (32 / module_quant.bits), out, error));
    AK_TRY(ak_hf_read_groups(&module_quant, module, ".g_idx", out, &is_ordered, error));
    out->scheme = is_ordered ? &ordered_scheme : &sorted_scheme;
    AK_TRY(find_offset(q, module, settings, out, error));
    snprintf(out->name, sizeof out->name, "GPTQ%u_G%u%s", out->bits, out->group,
             is_ordered ? "" : "_ACT");
    return AKUNU_OK;
}

const struct ak_hf_scheme ak_hf_gptq = {
    .quants_suffix = ".qweight",
    .plane_suffixes = { ".qzeros", ".scales", ".g_idx" },
    .types = 1u << (AK_QUANT_I32 - AK_QUANT_STORED_FIRST),
    .weight_suffix = ".weight",
    .read = gptq_read_config,
    .end = end,
    .compose = gptq_compose,
};
