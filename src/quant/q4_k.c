#include "quant/block.h"

/* x = (d · scale) · q − dmin · min, scale and min of 6 bits for every 32. Of 64
 * elements the first 32 are the low nibbles of 32 bytes, the others the high ones. */
struct block_q4_k {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t scales[12];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block_q4_k) == 144, "Q4_K is 144 bytes for 256 elements");

static void dequantize_q4_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q4_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d), dmin = ak_quant_get_f16(b->dmin);
        for (int s = 0; s < 8; s++, out += 32) {
            int scale, min;
            ak_quant_get_scale_min(b->scales, s, &scale, &min);
            float ds = d * (float)scale, dm = dmin * (float)min;
            const uint8_t *q = b->q + s / 2 * 32;
            for (int j = 0; j < 32; j++)
                out[j] = ds * (float)(q[j] >> s % 2 * 4 & 15) - dm;
        }
    }
}

const struct ak_quant_info ak_quant_q4_k = { "Q4_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q4_k), dequantize_q4_k, NULL };
