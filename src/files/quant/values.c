/* Reference dequantization of V2, V3 and V4, in memory only; the types of one to three bits are
 * recoded to them (recode.h). V3 and V4 are indices of a table of small numbers that the block has
 * with it. */
#include "files/quant/block.h"

/* ---- V2 ----------------------------------------------------------------- */
static void dequantize_v2(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct ak_quant_block_v2 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++) {
        float d = ak_quant_get_f16(b->d);
        for (size_t j = 0; j < 32; j++)
            *out++ = d * (float)ak_quant_get_v2(b->q, j);
    }
}

const struct ak_quant_info ak_quant_v2 = { "V2", 32, sizeof(struct ak_quant_block_v2),
                                           dequantize_v2, NULL };

static struct ak_quant_table get_table(const uint8_t *bytes)
{
    struct ak_quant_table table;
    memcpy(&table, bytes, sizeof table);
    return table;
}

/* ---- V3 ----------------------------------------------------------------- */
static void dequantize_v3(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct ak_quant_block_v3 *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        struct ak_quant_table table = get_table(b->table);
        float d = ak_quant_get_f16(b->d) * table.factor;
        for (size_t j = 0; j < AK_QUANT_SUPER_BLOCK; j++) {
            float scale = d * (float)(2 * ak_quant_nibble_scale(b->scales, j / 16) + 1);
            unsigned low = b->low[j / 128 * 32 + j % 32] >> j / 32 % 4 * 2 & 3u,
                     high = b->high[j % 32] >> j / 32 & 1u;
            *out++ = scale * (float)table.values[low | high << 2];
        }
    }
}

const struct ak_quant_info ak_quant_v3 = { "V3", AK_QUANT_SUPER_BLOCK,
                                           sizeof(struct ak_quant_block_v3), dequantize_v3, NULL };

/* ---- V4 ----------------------------------------------------------------- */
static void dequantize_v4(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct ak_quant_block_v4 *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        struct ak_quant_table table = get_table(b->table);
        float d = ak_quant_get_f16(b->d) * table.factor;
        for (size_t s = 0; s < 8; s++, out += 32) {
            float scale = d * (float)(2 * ak_quant_nibble_scale(b->scales, s) + 1);
            for (size_t j = 0; j < 16; j++) {
                out[j] = scale * (float)table.values[b->q[s * 16 + j] & 15];
                out[j + 16] = scale * (float)table.values[b->q[s * 16 + j] >> 4];
            }
        }
    }
}

const struct ak_quant_info ak_quant_v4 = { "V4", AK_QUANT_SUPER_BLOCK,
                                           sizeof(struct ak_quant_block_v4), dequantize_v4, NULL };
