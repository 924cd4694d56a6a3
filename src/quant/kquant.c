#include "quant/block.h"

/* x = (d · scale) · q − dmin · min, scale and min of 4 bits for every 16. The two
 * bits of element 128·h + 32·s + i are at 2·s of byte 32·h + i. */
struct block_q2_k {
    uint8_t scales[16]; /* scale low, min high */
    uint8_t q[64];
    uint8_t d[2];
    uint8_t dmin[2];
};
_Static_assert(sizeof(struct block_q2_k) == 84, "Q2_K is 84 bytes for 256 elements");

static void dequantize_q2_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q2_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d), dmin = ak_quant_get_f16(b->dmin);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)(b->scales[g] & 15), min = dmin * (float)(b->scales[g] >> 4);
            const uint8_t *q = b->q + g / 8 * 32 + g % 2 * 16;
            int shift = g / 2 % 4 * 2;
            for (int j = 0; j < 16; j++)
                out[j] = scale * (float)(q[j] >> shift & 3) - min;
        }
    }
}

const struct ak_quant_info ak_quant_q2_k = { "Q2_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q2_k), dequantize_q2_k, NULL };
