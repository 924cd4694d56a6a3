#include "quant/block.h"

static void dequantize_bf16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_bf16_to_float((uint16_t)(half[i][0] | half[i][1] << 8));
}

static void quantize_bf16(const float *restrict in, void *restrict blocks, size_t n)
{
    uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++) {
        uint16_t bits = ak_float_to_bf16(in[i]);
        half[i][0] = (uint8_t)bits;
        half[i][1] = (uint8_t)(bits >> 8);
    }
}

const struct ak_quant_info ak_quant_bf16 = { "BF16", 1, 2, dequantize_bf16, quantize_bf16 };
