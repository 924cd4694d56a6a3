#include "quant/block.h"

static void quantize_q4_0(const float *restrict in, void *restrict blocks, size_t n)
{
    struct ak_quant_block_q4_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float d = ak_quant_find_extreme(in, 32) / -8.0f;
        float inverse = ak_quant_inverse(d);
        ak_quant_put_f16(b->d, d);
        for (int j = 0; j < 16; j++) {
            int low = ak_quant_clamp(in[j] * inverse + 8.5f, 0, 15);
            int high = ak_quant_clamp(in[j + 16] * inverse + 8.5f, 0, 15);
            b->q[j] = (uint8_t)(low | high << 4);
        }
    }
}

const struct ak_quant_info ak_quant_q4_0 = { "Q4_0", 32, sizeof(struct ak_quant_block_q4_0),
                                             ak_quant_dequantize_q4_0, quantize_q4_0 };
