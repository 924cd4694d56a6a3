#include "quant/block.h"

/* x = (d · (scale − 32)) · value[q], scale of 6 bits for every 32: low four bits in
 * the nibbles of scales_low, upper two in the 16-bit word scales_high. The numbers
 * of each 32 as in Q4_0. */
struct block {
    uint8_t d[2];
    uint8_t scales_high[2];
    uint8_t scales_low[4];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block) == 136, "IQ4_XS is 136 bytes for 256 elements");

static int scale_of(const struct block *b, int s)
{
    int low = b->scales_low[s / 2] >> s % 2 * 4 & 15;
    int high = b->scales_high[s / 4] >> s % 4 * 2 & 3;
    return (low | high << 4) - 32;
}

static void dequantise(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block *b = blocks;
    for (size_t i = 0; i < n; i += AK_QK_K, b++) {
        float d = ak_block_f16(b->d);
        for (int s = 0; s < 8; s++, out += 32) {
            float scale = d * (float)scale_of(b, s);
            const uint8_t *q = b->q + s * 16;
            for (int j = 0; j < 16; j++) {
                out[j] = scale * (float)ak_iq4_values[q[j] & 15];
                out[j + 16] = scale * (float)ak_iq4_values[q[j] >> 4];
            }
        }
    }
}

const struct ak_type_info ak_type_iq4_xs = { "IQ4_XS", AK_QK_K, sizeof(struct block), dequantise,
                                             NULL };
