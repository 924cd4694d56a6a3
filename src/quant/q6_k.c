#include "quant/block.h"

/* x = (d · scale) · (q − 32), scale an int8 for every 16. Of each half of 128
 * elements, number 32·s + i has its low four bits in byte 32·(s % 2) + i of 64,
 * low nibbles for s < 2, and its upper two at 2·s of byte i of 32. */
struct block_q6_k {
    uint8_t low[128];
    uint8_t high[64];
    int8_t scales[16];
    uint8_t d[2];
};
_Static_assert(sizeof(struct block_q6_k) == 210, "Q6_K is 210 bytes for 256 elements");

static void dequantize_q6_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q6_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)b->scales[g];
            int half = g / 8, s = g / 2 % 4, k = g % 2 * 16;
            const uint8_t *low = b->low + half * 64 + s % 2 * 32 + k;
            const uint8_t *high = b->high + half * 32 + k;
            for (int j = 0; j < 16; j++)
                out[j] = scale *
                         (float)(((low[j] >> s / 2 * 4 & 15) | (high[j] >> s * 2 & 3) << 4) - 32);
        }
    }
}

const struct ak_quant_info ak_quant_q6_k = { "Q6_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q6_k), dequantize_q6_k, NULL };
