#include "quant/block.h"

/* x = d · q + m; the five bits as in Q5_0. */
struct block_q5_1 {
    uint8_t d[2];
    uint8_t m[2];
    uint8_t high[4];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_q5_1) == 24, "Q5_1 is 24 bytes for 32 elements");

static void dequantize_q5_1(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q5_1 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d), m = ak_quant_get_f16(b->m);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)((b->q[j] & 15) | ak_quant_fifth_bit(b->high, j)) + m;
            out[j + 16] = d * (float)((b->q[j] >> 4) | ak_quant_fifth_bit(b->high, j + 16)) + m;
        }
    }
}

const struct ak_quant_info ak_quant_q5_1 = { "Q5_1", 32, sizeof(struct block_q5_1), dequantize_q5_1,
                                             NULL };
