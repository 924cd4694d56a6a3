#include "quant/block.h"

/* x = (d · (scale − 32)) · value[q], scale of 6 bits for every 32: low four bits in
 * the nibbles of scales_low, upper two in the 16-bit word scales_high. The numbers
 * of each 32 as in Q4_0. */
struct block_iq4_xs {
    uint8_t d[2];
    uint8_t scales_high[2];
    uint8_t scales_low[4];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block_iq4_xs) == 136, "IQ4_XS is 136 bytes for 256 elements");

static int get_scale_iq4_xs(const struct block_iq4_xs *b, int s)
{
    int low = b->scales_low[s / 2] >> s % 2 * 4 & 15;
    int high = b->scales_high[s / 4] >> s % 4 * 2 & 3;
    return (low | high << 4) - 32;
}

static void dequantize_iq4_xs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq4_xs *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d);
        for (int s = 0; s < 8; s++, out += 32) {
            float scale = d * (float)get_scale_iq4_xs(b, s);
            const uint8_t *q = b->q + s * 16;
            for (int j = 0; j < 16; j++) {
                out[j] = scale * (float)ak_quant_iq4_values[q[j] & 15];
                out[j + 16] = scale * (float)ak_quant_iq4_values[q[j] >> 4];
            }
        }
    }
}

const struct ak_quant_info ak_quant_iq4_xs = { "IQ4_XS", AK_QUANT_SUPER_BLOCK,
                                               sizeof(struct block_iq4_xs), dequantize_iq4_xs,
                                               NULL };
