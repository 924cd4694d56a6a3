#include "quant/block.h"

static void dequantize_a8(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *at = blocks;
    for (size_t i = 0; i < n; i += 32, at += sizeof(struct ak_quant_block_a8), out += 32) {
        struct ak_quant_block_a8 b;
        memcpy(&b, at, sizeof b);
        for (int j = 0; j < 32; j++)
            out[j] = b.d * (float)b.q[j] + b.m;
    }
}

const struct ak_quant_info ak_quant_a8 = { "A8", 32, sizeof(struct ak_quant_block_a8),
                                           dequantize_a8, NULL };
