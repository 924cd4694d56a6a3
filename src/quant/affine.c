#include "quant/block.h"

static void dequantize_a4(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct ak_quant_block_a4 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_bf16(b->d), m = ak_quant_get_bf16(b->m);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)(b->q[j] & 15) + m;
            out[j + 16] = d * (float)(b->q[j] >> 4) + m;
        }
    }
}

const struct ak_quant_info ak_quant_a4 = { "A4", 32, sizeof(struct ak_quant_block_a4),
                                           dequantize_a4, NULL };
