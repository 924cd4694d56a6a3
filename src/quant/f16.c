#include "quant/block.h"

static void dequantize_f16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_quant_get_f16(half[i]);
}

static void quantize_f16(const float *restrict in, void *restrict blocks, size_t n)
{
    uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        ak_quant_put_f16(half[i], in[i]);
}

const struct ak_quant_info ak_quant_f16 = { "F16", 1, 2, dequantize_f16, quantize_f16 };
