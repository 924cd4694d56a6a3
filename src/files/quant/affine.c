/* Reference dequantization of A4, A5 and A8: x = d * q + m, in memory only. Composed tensors
 * (files/weights/composed.h) become one of these if a block with FP16 scales would round. */
#include "files/quant/block.h"

/* ---- A4 ----------------------------------------------------------------- */
static void dequantize_a4(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct ak_quant_block_a4 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_bf16(b->d), m = ak_quant_get_bf16(b->m);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)(b->q[j] & 15) + m;
            out[j + 16] = d * (float)(b->q[j] >> 4) + m;
        }
    }
}

const struct ak_quant_info ak_quant_a4 = { "A4", 32, sizeof(struct ak_quant_block_a4),
                                           dequantize_a4, NULL };

/* ---- A5 ----------------------------------------------------------------- */
static void dequantize_a5(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct ak_quant_block_a5 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_bf16(b->d), m = ak_quant_get_bf16(b->m);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)((b->q[j] & 15) | ak_quant_fifth_bit(b->high, j)) + m;
            out[j + 16] = d * (float)((b->q[j] >> 4) | ak_quant_fifth_bit(b->high, j + 16)) + m;
        }
    }
}

const struct ak_quant_info ak_quant_a5 = { "A5", 32, sizeof(struct ak_quant_block_a5),
                                           dequantize_a5, NULL };

/* ---- A8 ----------------------------------------------------------------- */
static void dequantize_a8(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *at = blocks;
    for (size_t i = 0; i < n; i += 32, at += sizeof(struct ak_quant_block_a8), out += 32) {
        struct ak_quant_block_a8 b;
        memcpy(&b, at, sizeof b);
        for (int j = 0; j < 32; j++)
            out[j] = b.d * (float)b.q[j] + b.m;
    }
}

const struct ak_quant_info ak_quant_a8 = { "A8", 32, sizeof(struct ak_quant_block_a8),
                                           dequantize_a8, NULL };
