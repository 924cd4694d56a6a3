#include "quant/block.h"

/* As Q4_K, with the fifth bit of element 32·s + i in bit s of high[i]. */
struct block {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t scales[12];
    uint8_t high[32];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block) == 176, "Q5_K is 176 bytes for 256 elements");

static void dequantise(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block *b = blocks;
    for (size_t i = 0; i < n; i += AK_QK_K, b++) {
        float d = ak_block_f16(b->d), dmin = ak_block_f16(b->dmin);
        for (int s = 0; s < 8; s++, out += 32) {
            int scale, min;
            ak_block_scale_min(b->scales, s, &scale, &min);
            float ds = d * (float)scale, dm = dmin * (float)min;
            const uint8_t *low = b->q + s / 2 * 32;
            for (int j = 0; j < 32; j++) {
                int q = (low[j] >> s % 2 * 4 & 15) | (b->high[j] >> s & 1) << 4;
                out[j] = ds * (float)q - dm;
            }
        }
    }
}

const struct ak_type_info ak_type_q5_k = { "Q5_K", AK_QK_K, sizeof(struct block), dequantise,
                                           NULL };
