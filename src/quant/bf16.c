#include "quant/block.h"

static void dequantise(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_bf16_to_float((uint16_t)(half[i][0] | half[i][1] << 8));
}

static void quantise(const float *restrict in, void *restrict blocks, size_t n)
{
    uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++) {
        uint16_t bits = ak_float_to_bf16(in[i]);
        half[i][0] = (uint8_t)bits;
        half[i][1] = (uint8_t)(bits >> 8);
    }
}

const struct ak_type_info ak_type_bf16 = { "BF16", 1, 2, dequantise, quantise };
