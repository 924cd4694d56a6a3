#include "quant/block.h"

static void quantise(const float *restrict in, void *restrict blocks, size_t n)
{
    struct ak_block_q4_0 *b = blocks;
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

const struct ak_type_info ak_type_q4_0 = { "Q4_0", 32, sizeof(struct ak_block_q4_0),
                                           ak_block_widen_q4_0, quantise };
