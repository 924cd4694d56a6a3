#include "quant/block.h"

/* x = d · (q − 8); elements 0 … 15 in the low nibbles, 16 … 31 in the high ones. */
struct block {
    uint8_t d[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block) == 18, "Q4_0 is 18 bytes for 32 elements");

static void dequantise(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_block_f16(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)((b->q[j] & 15) - 8);
            out[j + 16] = d * (float)((b->q[j] >> 4) - 8);
        }
    }
}

static void quantise(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float d = ak_block_extreme(in, 32) / -8.0f;
        float inverse = ak_block_inverse(d);
        ak_block_put_f16(b->d, d);
        for (int j = 0; j < 16; j++) {
            int low = ak_block_clamp(in[j] * inverse + 8.5f, 0, 15);
            int high = ak_block_clamp(in[j + 16] * inverse + 8.5f, 0, 15);
            b->q[j] = (uint8_t)(low | high << 4);
        }
    }
}

const struct ak_type_info ak_type_q4_0 = {"Q4_0", 32, sizeof(struct block), dequantise, quantise};
