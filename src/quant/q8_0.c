#include "quant/block.h"

/* x = d · q */
struct block {
    uint8_t d[2];
    int8_t q[32];
};
_Static_assert(sizeof(struct block) == 34, "Q8_0 is 34 bytes for 32 elements");

static void dequantise(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_block_f16(b->d);
        for (int j = 0; j < 32; j++)
            out[j] = d * (float)b->q[j];
    }
}

/* Halves round away from zero. */
static void quantise(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float d = fabsf(ak_block_extreme(in, 32)) / 127.0f;
        float inverse = ak_block_inverse(d);
        ak_block_put_f16(b->d, d);
        for (int j = 0; j < 32; j++)
            b->q[j] = (int8_t)ak_block_clamp(roundf(in[j] * inverse), -127, 127);
    }
}

const struct ak_type_info ak_type_q8_0 = {"Q8_0", 32, sizeof(struct block), dequantise, quantise};
