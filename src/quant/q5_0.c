#include "quant/block.h"

/* x = d · (q − 16); low four bits as in Q4_0, the fifth of element i in bit i of
 * the 32-bit word `high`. */
struct block_q5_0 {
    uint8_t d[2];
    uint8_t high[4];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_q5_0) == 22, "Q5_0 is 22 bytes for 32 elements");

static void dequantize_q5_0(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q5_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)(((b->q[j] & 15) | ak_quant_fifth_bit(b->high, j)) - 16);
            out[j + 16] = d * (float)(((b->q[j] >> 4) | ak_quant_fifth_bit(b->high, j + 16)) - 16);
        }
    }
}

static void quantize_q5_0(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block_q5_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float d = ak_quant_find_extreme(in, 32) / -16.0f;
        float inverse = ak_quant_inverse(d);
        *b = (struct block_q5_0){ 0 };
        ak_quant_put_f16(b->d, d);
        for (int j = 0; j < 32; j++) {
            int q = ak_quant_clamp(in[j] * inverse + 16.5f, 0, 31);
            b->q[j % 16] |= (uint8_t)((q & 15) << (j < 16 ? 0 : 4));
            b->high[j / 8] |= (uint8_t)(q >> 4 << j % 8);
        }
    }
}

const struct ak_quant_info ak_quant_q5_0 = { "Q5_0", 32, sizeof(struct block_q5_0), dequantize_q5_0,
                                             quantize_q5_0 };
