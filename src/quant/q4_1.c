#include "quant/block.h"

/* x = d · q + m; elements 0 … 15 in the low nibbles, 16 … 31 in the high ones. */
struct block_q4_1 {
    uint8_t d[2];
    uint8_t m[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_q4_1) == 20, "Q4_1 is 20 bytes for 32 elements");

static void dequantize_q4_1(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q4_1 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d), m = ak_quant_get_f16(b->m);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)(b->q[j] & 15) + m;
            out[j + 16] = d * (float)(b->q[j] >> 4) + m;
        }
    }
}

static void quantize_q4_1(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block_q4_1 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float min = in[0], max = in[0];
        for (int j = 1; j < 32; j++) {
            min = in[j] < min ? in[j] : min;
            max = in[j] > max ? in[j] : max;
        }
        float d = (max - min) / 15.0f;
        float inverse = ak_quant_inverse(d);
        ak_quant_put_f16(b->d, d);
        ak_quant_put_f16(b->m, min);
        for (int j = 0; j < 16; j++) {
            int low = ak_quant_clamp((in[j] - min) * inverse + 0.5f, 0, 15);
            int high = ak_quant_clamp((in[j + 16] - min) * inverse + 0.5f, 0, 15);
            b->q[j] = (uint8_t)(low | high << 4);
        }
    }
}

const struct ak_quant_info ak_quant_q4_1 = { "Q4_1", 32, sizeof(struct block_q4_1), dequantize_q4_1,
                                             quantize_q4_1 };
