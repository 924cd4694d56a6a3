/* Registry of the types: finds the entry of a type, which its family's file defines. */
#include "files/quant/type.h"

#include <assert.h>

static const struct ak_quant_info *const types[AK_QUANT_COUNT] = {
    [AK_QUANT_F32] = &ak_quant_f32,         [AK_QUANT_F16] = &ak_quant_f16,
    [AK_QUANT_BF16] = &ak_quant_bf16,       [AK_QUANT_Q4_0] = &ak_quant_q4_0,
    [AK_QUANT_Q4_1] = &ak_quant_q4_1,       [AK_QUANT_Q5_0] = &ak_quant_q5_0,
    [AK_QUANT_Q5_1] = &ak_quant_q5_1,       [AK_QUANT_Q8_0] = &ak_quant_q8_0,
    [AK_QUANT_Q2_K] = &ak_quant_q2_k,       [AK_QUANT_Q3_K] = &ak_quant_q3_k,
    [AK_QUANT_Q4_K] = &ak_quant_q4_k,       [AK_QUANT_Q5_K] = &ak_quant_q5_k,
    [AK_QUANT_Q6_K] = &ak_quant_q6_k,       [AK_QUANT_IQ4_NL] = &ak_quant_iq4_nl,
    [AK_QUANT_IQ4_XS] = &ak_quant_iq4_xs,   [AK_QUANT_MXFP4] = &ak_quant_mxfp4,
    [AK_QUANT_A4] = &ak_quant_a4,           [AK_QUANT_A5] = &ak_quant_a5,
    [AK_QUANT_A8] = &ak_quant_a8,           [AK_QUANT_F8] = &ak_quant_f8,
    [AK_QUANT_IQ1_S] = &ak_quant_iq1_s,     [AK_QUANT_IQ1_M] = &ak_quant_iq1_m,
    [AK_QUANT_IQ2_XXS] = &ak_quant_iq2_xxs, [AK_QUANT_IQ2_XS] = &ak_quant_iq2_xs,
    [AK_QUANT_IQ2_S] = &ak_quant_iq2_s,     [AK_QUANT_IQ3_XXS] = &ak_quant_iq3_xxs,
    [AK_QUANT_IQ3_S] = &ak_quant_iq3_s,     [AK_QUANT_TQ1_0] = &ak_quant_tq1_0,
    [AK_QUANT_TQ2_0] = &ak_quant_tq2_0,     [AK_QUANT_NVFP4] = &ak_quant_nvfp4,
    [AK_QUANT_Q1_0] = &ak_quant_q1_0,       [AK_QUANT_Q2_0] = &ak_quant_q2_0,
    [AK_QUANT_Q8_K] = &ak_quant_q8_k,       [AK_QUANT_V2] = &ak_quant_v2,
    [AK_QUANT_V3] = &ak_quant_v3,           [AK_QUANT_V4] = &ak_quant_v4,
};

const struct ak_quant_info *ak_quant_info(enum ak_quant_type type)
{
    assert((unsigned)type < AK_QUANT_COUNT ||
           (type >= AK_QUANT_STORED_FIRST && type < AK_QUANT_STORED_END));
    return type < AK_QUANT_COUNT ? types[type] :
                                   &ak_quant_stored_types[type - AK_QUANT_STORED_FIRST];
}

bool ak_quant_row_bytes(enum ak_quant_type type, uint64_t cols, uint64_t *bytes)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    if (cols % info->block_elems != 0)
        return false;
    return !__builtin_mul_overflow(cols / info->block_elems, (uint64_t)info->block_bytes, bytes);
}
