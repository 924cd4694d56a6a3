#include "quant/block.h"

/* Halves round away from zero. */
static void quantize_q8_0(const float *restrict in, void *restrict blocks, size_t n)
{
    struct ak_quant_block_q8_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float d = fabsf(ak_quant_find_extreme(in, 32)) / 127.0f;
        float inverse = ak_quant_inverse(d);
        ak_quant_put_f16(b->d, d);
        for (int j = 0; j < 32; j++)
            b->q[j] = (int8_t)ak_quant_clamp(roundf(in[j] * inverse), -127, 127);
    }
}

const struct ak_quant_info ak_quant_q8_0 = { "Q8_0", 32, sizeof(struct ak_quant_block_q8_0),
                                             ak_quant_dequantize_q8_0, quantize_q8_0 };
