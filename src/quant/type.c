#include "quant/type.h"

#include <assert.h>

static const struct ak_type_info *const types[AK_TYPE_COUNT] = {
    [AK_F32] = &ak_type_f32,     [AK_F16] = &ak_type_f16,       [AK_BF16] = &ak_type_bf16,
    [AK_Q4_0] = &ak_type_q4_0,   [AK_Q4_1] = &ak_type_q4_1,     [AK_Q5_0] = &ak_type_q5_0,
    [AK_Q5_1] = &ak_type_q5_1,   [AK_Q8_0] = &ak_type_q8_0,     [AK_Q2_K] = &ak_type_q2_k,
    [AK_Q3_K] = &ak_type_q3_k,   [AK_Q4_K] = &ak_type_q4_k,     [AK_Q5_K] = &ak_type_q5_k,
    [AK_Q6_K] = &ak_type_q6_k,   [AK_IQ4_NL] = &ak_type_iq4_nl, [AK_IQ4_XS] = &ak_type_iq4_xs,
    [AK_MXFP4] = &ak_type_mxfp4, [AK_A4] = &ak_type_a4,         [AK_A5] = &ak_type_a5,
    [AK_A8] = &ak_type_a8,       [AK_F8] = &ak_type_f8,
};

const struct ak_type_info *ak_type_info(enum ak_type type)
{
    assert((unsigned)type < AK_TYPE_COUNT || (type >= AK_FIRST_STORED && type < AK_STORED_END));
    return type < AK_TYPE_COUNT ? types[type] : &ak_stored_types[type - AK_FIRST_STORED];
}

bool ak_type_row_bytes(enum ak_type type, uint64_t cols, uint64_t *bytes)
{
    const struct ak_type_info *info = ak_type_info(type);
    if (cols % info->block_elems != 0)
        return false;
    return !__builtin_mul_overflow(cols / info->block_elems, (uint64_t)info->block_bytes, bytes);
}
