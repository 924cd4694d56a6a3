/* Reference conversions of GGML's first types: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0. A block is 32
 * elements with one FP16 scale d and, if the name ends in 1, an FP16 minimum m. */
#include "files/quant/block.h"

/* ---- Q4_0 --------------------------------------------------------------- */
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

/* ---- Q4_1 --------------------------------------------------------------- */
/* x = d · q + m. Elements 0 … 15 are the low nibbles, 16 … 31 the high ones. */
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

/* Difference between the largest and the least of 32 elements. */
static float find_range(const float *x, float *min)
{
    float max = x[0];
    *min = x[0];
    for (int j = 1; j < 32; j++) {
        *min = x[j] < *min ? x[j] : *min;
        max = x[j] > max ? x[j] : max;
    }
    return max - *min;
}

static void quantize_q4_1(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block_q4_1 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float min, d = find_range(in, &min) / 15.0f;
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

/* ---- Q5_0 --------------------------------------------------------------- */
/* x = d · (q − 16). The low four bits of q are laid out as in Q4_0; the fifth bit of element i
 * is bit i of the 32-bit word `high`. */
struct block_q5_0 {
    uint8_t d[2];
    uint8_t high[4];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_q5_0) == 22, "Q5_0 is 22 bytes for 32 elements");

static void dequantize_q5_0(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q5_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)(((b->q[j] & 15) | ak_quant_fifth_bit(b->high, j)) - 16);
            out[j + 16] = d * (float)(((b->q[j] >> 4) | ak_quant_fifth_bit(b->high, j + 16)) - 16);
        }
    }
}

static void quantize_q5_0(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block_q5_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float d = ak_quant_find_extreme(in, 32) / -16.0f;
        float inverse = ak_quant_inverse(d);
        *b = (struct block_q5_0){ 0 };
        ak_quant_put_f16(b->d, d);
        for (int j = 0; j < 32; j++) {
            int q = ak_quant_clamp(in[j] * inverse + 16.5f, 0, 31);
            b->q[j % 16] |= (uint8_t)((q & 15) << (j < 16 ? 0 : 4));
            b->high[j / 8] |= (uint8_t)(q >> 4 << j % 8);
        }
    }
}

const struct ak_quant_info ak_quant_q5_0 = { "Q5_0", 32, sizeof(struct block_q5_0), dequantize_q5_0,
                                             quantize_q5_0 };

/* ---- Q5_1 --------------------------------------------------------------- */
/* x = d · q + m, with q laid out as in Q5_0. */
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

static void quantize_q5_1(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block_q5_1 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float min, d = find_range(in, &min) / 31.0f;
        float inverse = ak_quant_inverse(d);
        *b = (struct block_q5_1){ 0 };
        ak_quant_put_f16(b->d, d);
        ak_quant_put_f16(b->m, min);
        for (int j = 0; j < 32; j++) {
            int q = ak_quant_clamp((in[j] - min) * inverse + 0.5f, 0, 31);
            b->q[j % 16] |= (uint8_t)((q & 15) << (j < 16 ? 0 : 4));
            b->high[j / 8] |= (uint8_t)(q >> 4 << j % 8);
        }
    }
}

const struct ak_quant_info ak_quant_q5_1 = { "Q5_1", 32, sizeof(struct block_q5_1), dequantize_q5_1,
                                             quantize_q5_1 };

/* ---- Q8_0 --------------------------------------------------------------- */
/* Ties round away from zero. */
static void quantize_q8_0(const float *restrict in, void *restrict blocks, size_t n)
{
    struct ak_quant_block_q8_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float d = fabsf(ak_quant_find_extreme(in, 32)) / 127.0f;
        float inverse = ak_quant_inverse(d);
        ak_quant_put_f16(b->d, d);
        for (int j = 0; j < 32; j++)
            b->q[j] = (int8_t)ak_quant_clamp(roundf(in[j] * inverse), -127, 127);
    }
}

const struct ak_quant_info ak_quant_q8_0 = { "Q8_0", 32, sizeof(struct ak_quant_block_q8_0),
                                             ak_quant_dequantize_q8_0, quantize_q8_0 };
