#include "quant/block.h"

/* x = d · value[q]; the numbers as in Q4_0. */
struct block_iq4_nl {
    uint8_t d[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_iq4_nl) == 18, "IQ4_NL is 18 bytes for 32 elements");

const int8_t ak_quant_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113 };

static void dequantize_iq4_nl(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq4_nl *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)ak_quant_iq4_values[b->q[j] & 15];
            out[j + 16] = d * (float)ak_quant_iq4_values[b->q[j] >> 4];
        }
    }
}

const struct ak_quant_info ak_quant_iq4_nl = { "IQ4_NL", 32, sizeof(struct block_iq4_nl),
                                               dequantize_iq4_nl, NULL };
