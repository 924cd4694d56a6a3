#include "quant/block.h"

/* x = 2^(e − 128) · value[q]: numbers of 1 sign, 2 exponent and 1 mantissa bits,
 * doubled, and half of the shared scale 2^(e − 127) (OCP Microscaling Formats 1.0,
 * with 255 as any other exponent); the numbers as in Q4_0. */
struct block_mxfp4 {
    uint8_t e;
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_mxfp4) == 17, "MXFP4 is 17 bytes for 32 elements");

const int8_t ak_quant_mxfp4_values[16] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
};

static void dequantize_mxfp4(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_mxfp4 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float scale = ak_e8m0_half(b->e);
        for (int j = 0; j < 16; j++) {
            out[j] = scale * (float)ak_quant_mxfp4_values[b->q[j] & 15];
            out[j + 16] = scale * (float)ak_quant_mxfp4_values[b->q[j] >> 4];
        }
    }
}

const struct ak_quant_info ak_quant_mxfp4 = { "MXFP4", 32, sizeof(struct block_mxfp4),
                                              dequantize_mxfp4, NULL };
