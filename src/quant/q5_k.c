#include "quant/block.h"

/* As Q4_K, with the fifth bit of element 32·s + i in bit s of high[i]. */
struct block_q5_k {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t scales[12];
    uint8_t high[32];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block_q5_k) == 176, "Q5_K is 176 bytes for 256 elements");

static void dequantize_q5_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q5_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d), dmin = ak_quant_get_f16(b->dmin);
        for (int s = 0; s < 8; s++, out += 32) {
            int scale, min;
            ak_quant_get_scale_min(b->scales, s, &scale, &min);
            float ds = d * (float)scale, dm = dmin * (float)min;
            const uint8_t *low = b->q + s / 2 * 32;
            for (int j = 0; j < 32; j++) {
                int q = (low[j] >> s % 2 * 4 & 15) | (b->high[j] >> s & 1) << 4;
                out[j] = ds * (float)q - dm;
            }
        }
    }
}

const struct ak_quant_info ak_quant_q5_k = { "Q5_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q5_k), dequantize_q5_k, NULL };
