/* Reference dequantization of GGML's K types. A super-block is 256 elements with one FP16
 * scale d, which multiplies the small integer scales of its sub-blocks; Q2_K, Q4_K and Q5_K
 * have minimums in the same way. */
#include "files/quant/block.h"

/* ---- Q2_K --------------------------------------------------------------- */
/* x = (d · scale) · q − dmin · min, with a 4-bit scale and min per 16 elements. The two bits of
 * element 128·h + 32·s + i start at bit 2·s of byte 32·h + i. */
struct block_q2_k {
    uint8_t scales[16]; /* low nibble: scale; high nibble: min */
    uint8_t q[64];
    uint8_t d[2];
    uint8_t dmin[2];
};
_Static_assert(sizeof(struct block_q2_k) == 84, "Q2_K is 84 bytes for 256 elements");

static void dequantize_q2_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q2_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d), dmin = ak_quant_get_f16(b->dmin);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)(b->scales[g] & 15), min = dmin * (float)(b->scales[g] >> 4);
            const uint8_t *q = b->q + g / 8 * 32 + g % 2 * 16;
            int shift = g / 2 % 4 * 2;
            for (int j = 0; j < 16; j++)
                out[j] = scale * (float)(q[j] >> shift & 3) - min;
        }
    }
}

const struct ak_quant_info ak_quant_q2_k = { "Q2_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q2_k), dequantize_q2_k, NULL };

/* ---- Q3_K --------------------------------------------------------------- */
/* x = (d · (scale − 32)) · (q − 4), with a 6-bit scale per 16 elements. The low two bits of q
 * are laid out as in Q2_K; the third bit of element 32·s + i is bit s of high[i]. */
struct block_q3_k {
    uint8_t high[32];
    uint8_t q[64];
    uint8_t scales[12];
    uint8_t d[2];
};
_Static_assert(sizeof(struct block_q3_k) == 110, "Q3_K is 110 bytes for 256 elements");

/* The low four bits of scale i are a nibble of byte i % 8: the low one for i < 8, else the high
 * one. The upper two bits are in bytes 8 … 11. */
static int get_scale_q3_k(const struct block_q3_k *b, int i)
{
    int low = b->scales[i % 8] >> (i < 8 ? 0 : 4) & 15;
    int high = b->scales[8 + i % 4] >> i / 4 * 2 & 3;
    return (low | high << 4) - 32;
}

static void dequantize_q3_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q3_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)get_scale_q3_k(b, g);
            const uint8_t *low = b->q + g / 8 * 32 + g % 2 * 16;
            const uint8_t *high = b->high + g % 2 * 16;
            int shift = g / 2 % 4 * 2, bit = g / 2;
            for (int j = 0; j < 16; j++)
                out[j] = scale * (float)(((low[j] >> shift & 3) | (high[j] >> bit & 1) << 2) - 4);
        }
    }
}

const struct ak_quant_info ak_quant_q3_k = { "Q3_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q3_k), dequantize_q3_k, NULL };

/* ---- Q4_K --------------------------------------------------------------- */
/* x = (d · scale) · q − dmin · min, with a 6-bit scale and min per 32 elements. Each run of 64
 * elements takes 32 bytes: the first 32 are the low nibbles, the others the high ones. */
struct block_q4_k {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t scales[12];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block_q4_k) == 144, "Q4_K is 144 bytes for 256 elements");

static void dequantize_q4_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q4_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d), dmin = ak_quant_get_f16(b->dmin);
        for (int s = 0; s < 8; s++, out += 32) {
            int scale, min;
            ak_quant_get_scale_min(b->scales, s, &scale, &min);
            float ds = d * (float)scale, dm = dmin * (float)min;
            const uint8_t *q = b->q + s / 2 * 32;
            for (int j = 0; j < 32; j++)
                out[j] = ds * (float)(q[j] >> s % 2 * 4 & 15) - dm;
        }
    }
}

const struct ak_quant_info ak_quant_q4_k = { "Q4_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q4_k), dequantize_q4_k, NULL };

/* ---- Q5_K --------------------------------------------------------------- */
/* As Q4_K; the fifth bit of element 32·s + i is bit s of high[i]. */
struct block_q5_k {
    uint8_t d[2];
    uint8_t dmin[2];
    uint8_t scales[12];
    uint8_t high[32];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block_q5_k) == 176, "Q5_K is 176 bytes for 256 elements");

static void dequantize_q5_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q5_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d), dmin = ak_quant_get_f16(b->dmin);
        for (int s = 0; s < 8; s++, out += 32) {
            int scale, min;
            ak_quant_get_scale_min(b->scales, s, &scale, &min);
            float ds = d * (float)scale, dm = dmin * (float)min;
            const uint8_t *low = b->q + s / 2 * 32;
            for (int j = 0; j < 32; j++) {
                int q = (low[j] >> s % 2 * 4 & 15) | (b->high[j] >> s & 1) << 4;
                out[j] = ds * (float)q - dm;
            }
        }
    }
}

const struct ak_quant_info ak_quant_q5_k = { "Q5_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q5_k), dequantize_q5_k, NULL };

/* ---- Q6_K --------------------------------------------------------------- */
/* x = (d · scale) · (q − 32), with an int8 scale per 16 elements. Each half of 128 elements has
 * 64 bytes of `low` and 32 of `high`. Element 32·s + i has its low four bits in low byte
 * 32·(s % 2) + i, in the low nibble if s < 2, and its upper two at bit 2·s of high byte i. */
struct block_q6_k {
    uint8_t low[128];
    uint8_t high[64];
    int8_t scales[16];
    uint8_t d[2];
};
_Static_assert(sizeof(struct block_q6_k) == 210, "Q6_K is 210 bytes for 256 elements");

static void dequantize_q6_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q6_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d);
        for (int g = 0; g < 16; g++, out += 16) {
            float scale = d * (float)b->scales[g];
            int half = g / 8, s = g / 2 % 4, k = g % 2 * 16;
            const uint8_t *low = b->low + half * 64 + s % 2 * 32 + k;
            const uint8_t *high = b->high + half * 32 + k;
            for (int j = 0; j < 16; j++)
                out[j] = scale *
                         (float)(((low[j] >> s / 2 * 4 & 15) | (high[j] >> s * 2 & 3) << 4) - 32);
        }
    }
}

const struct ak_quant_info ak_quant_q6_k = { "Q6_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q6_k), dequantize_q6_k, NULL };

/* ---- Q8_K --------------------------------------------------------------- */
/* x = d · q with d in float32. The sums of each 16 elements are for products, and not read. */
struct block_q8_k {
    uint8_t d[4];
    int8_t q[256];
    uint8_t sums[16][2];
};
_Static_assert(sizeof(struct block_q8_k) == 292, "Q8_K is 292 bytes for 256 elements");

static void dequantize_q8_k(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q8_k *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d;
        memcpy(&d, b->d, sizeof d);
        for (int j = 0; j < AK_QUANT_SUPER_BLOCK; j++)
            *out++ = d * (float)b->q[j];
    }
}

const struct ak_quant_info ak_quant_q8_k = { "Q8_K", AK_QUANT_SUPER_BLOCK,
                                             sizeof(struct block_q8_k), dequantize_q8_k, NULL };
