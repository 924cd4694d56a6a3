/* GGML's type numbers. `is_supported` marks types that akunu runs. The others are refused by name;
 * a number without a name means a damaged file. */
#include "weights/formats.h"

struct stored_type {
    const char *name;
    bool is_supported;
    enum ak_quant_type type;
};

static const struct stored_type stored_types[] = {
    [0] = { "F32", true, AK_QUANT_F32 },
    [1] = { "F16", true, AK_QUANT_F16 },
    [2] = { "Q4_0", true, AK_QUANT_Q4_0 },
    [3] = { "Q4_1", true, AK_QUANT_Q4_1 },
    [6] = { "Q5_0", true, AK_QUANT_Q5_0 },
    [7] = { "Q5_1", true, AK_QUANT_Q5_1 },
    [8] = { "Q8_0", true, AK_QUANT_Q8_0 },
    [9] = { .name = "Q8_1" },
    [10] = { "Q2_K", true, AK_QUANT_Q2_K },
    [11] = { "Q3_K", true, AK_QUANT_Q3_K },
    [12] = { "Q4_K", true, AK_QUANT_Q4_K },
    [13] = { "Q5_K", true, AK_QUANT_Q5_K },
    [14] = { "Q6_K", true, AK_QUANT_Q6_K },
    [15] = { .name = "Q8_K" },
    [16] = { .name = "IQ2_XXS" },
    [17] = { .name = "IQ2_XS" },
    [18] = { .name = "IQ3_XXS" },
    [19] = { .name = "IQ1_S" },
    [20] = { "IQ4_NL", true, AK_QUANT_IQ4_NL },
    [21] = { .name = "IQ3_S" },
    [22] = { .name = "IQ2_S" },
    [23] = { "IQ4_XS", true, AK_QUANT_IQ4_XS },
    [24] = { .name = "I8" },
    [25] = { .name = "I16" },
    [26] = { .name = "I32" },
    [27] = { .name = "I64" },
    [28] = { .name = "F64" },
    [29] = { .name = "IQ1_M" },
    [30] = { "BF16", true, AK_QUANT_BF16 },
    [34] = { .name = "TQ1_0" },
    [35] = { .name = "TQ2_0" },
    [39] = { "MXFP4", true, AK_QUANT_MXFP4 },
    [40] = { .name = "NVFP4" },
    [41] = { .name = "Q1_0" },
};

enum { N_STORED = sizeof stored_types / sizeof *stored_types };

ak_status ak_ggml_type_find(uint32_t number, const char *tensor, enum ak_quant_type *out,
                            struct ak_error *error)
{
    const struct stored_type *t = number < N_STORED ? &stored_types[number] : NULL;
    if (!t || !t->name)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "tensor %s has type %u, which GGML does not have",
                       tensor, number);
    if (!t->is_supported)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "tensor %s has type %s, which is not supported yet", tensor, t->name);
    *out = t->type;
    return AKUNU_OK;
}

bool ak_ggml_type_number(enum ak_quant_type type, uint32_t *out)
{
    for (uint32_t i = 0; i < N_STORED; i++)
        if (stored_types[i].is_supported && stored_types[i].type == type) {
            *out = i;
            return true;
        }
    return false;
}
