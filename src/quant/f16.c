#include "quant/block.h"

static void dequantise(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_block_f16(half[i]);
}

static void quantise(const float *restrict in, void *restrict blocks, size_t n)
{
    uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        ak_block_put_f16(half[i], in[i]);
}

const struct ak_type_info ak_type_f16 = { "F16", 1, 2, dequantise, quantise };
