#include "quant/block.h"

/* x = (d · (scale − 32)) · (q − 4), scale of 6 bits for every 16. Low two bits of q
 * as in Q2_K; the third of element 32·s + i is bit s of high[i]. */
struct block_q3_k {
    uint8_t high[32];
    uint8_t q[64];
    uint8_t scales[12];
    uint8_t d[2];
};
_Static_assert(sizeof(struct block_q3_k) == 110, "Q3_K is 110 bytes for 256 elements");

/* Low four bits of scale i in the nibbles of bytes 0 … 7 (first all low ones),
 * upper two in bytes 8 … 11. */
static int get_scale_q3_k(const struct block_q3_k *b, int i)
{
    int low = b->scales[i % 8] >> (i < 8 ? 0 : 4) & 15;
    int high = b->scales[8 + i % 4] >> i / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

static void dequantize_q3_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q3_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)get_scale_q3_k(b, g);
            const uint8_t *low = b->q + g / 8 * 32 + g % 2 * 16;
            const uint8_t *high = b->high + g % 2 * 16;
            int shift = g / 2 % 4 * 2, bit = g / 2;
            for (int j = 0; j < 16; j++)
                out[j] = scale * (float)(((low[j] >> shift & 3) | (high[j] >> bit & 1) << 2) - 4);
        }
    }
}

const struct ak_quant_info ak_quant_q3_k = { "Q3_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q3_k), dequantize_q3_k, NULL };
