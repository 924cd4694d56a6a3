/* GGML's types of one or two bits an element, without a codebook: readers, and reference
 * dequantization. x is d times a small number. */
#include "files/quant/indices.h"

static float *put_numbers(const struct ak_quant_indices *in, int n, float *out)
{
    float d = ak_quant_get_f16(in->d);
    for (int i = 0; i < n; i++)
        *out++ = (float)(in->q[i] - 1) * d;
    return out;
}

/* ---- TQ1_0 -------------------------------------------------------------- */
/* x = d · t with t of −1, 0, 1. A byte is a fraction whose digits to the base 3 are five numbers
 * (t + 1), or four in the last bytes: times 3, what exceeds 255 is the first digit, and so on. Byte
 * i of 32 has the first digit of element i, the second of element 32 + i. */
struct block_tq1_0 {
    uint8_t q[48]; /* 32 bytes for the first 160 elements, 16 for the next 80 */
    uint8_t last[4];
    uint8_t d[2];
};
_Static_assert(sizeof(struct block_tq1_0) == 54, "TQ1_0 is 54 bytes for 256 elements");

static uint8_t *put_digits(const uint8_t *bytes, int n_bytes, int n_digits, uint8_t *q)
{
    static const uint8_t powers[5] = { 1, 3, 9, 27, 81 };
    for (int digit = 0; digit < n_digits; digit++)
        for (int i = 0; i < n_bytes; i++)
            *q++ = (uint8_t)((uint8_t)(bytes[i] * powers[digit]) * 3 >> 8);
    return q;
}

void ak_quant_read_tq1_0(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_tq1_0 *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    uint8_t *q = put_digits(b->q, 32, 5, out->q);
    q = put_digits(b->q + 32, 16, 5, q);
    put_digits(b->last, 4, 4, q);
}

static void dequantize_tq1_0(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_tq1_0 *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_tq1_0(b, &indices);
        out = put_numbers(&indices, AK_QUANT_SUPER_BLOCK, out);
    }
}

const struct ak_quant_info ak_quant_tq1_0 = { "TQ1_0", AK_QUANT_SUPER_BLOCK,
                                              sizeof(struct block_tq1_0), dequantize_tq1_0, NULL };

/* ---- TQ2_0 -------------------------------------------------------------- */
/* x = d · (q − 1), with q laid out as in Q2_K. */
struct block_tq2_0 {
    uint8_t q[64];
    uint8_t d[2];
};
_Static_assert(sizeof(struct block_tq2_0) == 66, "TQ2_0 is 66 bytes for 256 elements");

void ak_quant_read_tq2_0(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_tq2_0 *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int j = 0; j < AK_QUANT_SUPER_BLOCK; j++)
        out->q[j] = b->q[j / 128 * 32 + j % 32] >> j / 32 % 4 * 2 & 3;
}

static void dequantize_tq2_0(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_tq2_0 *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_tq2_0(b, &indices);
        out = put_numbers(&indices, AK_QUANT_SUPER_BLOCK, out);
    }
}

const struct ak_quant_info ak_quant_tq2_0 = { "TQ2_0", AK_QUANT_SUPER_BLOCK,
                                              sizeof(struct block_tq2_0), dequantize_tq2_0, NULL };

/* ---- Q1_0 --------------------------------------------------------------- */
/* x = d where the bit is set, else −d. Bit i % 8 of byte i / 8 is that of element i. */
struct block_q1_0 {
    uint8_t d[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_q1_0) == 18, "Q1_0 is 18 bytes for 128 elements");

void ak_quant_read_q1_0(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_q1_0 *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int j = 0; j < 128; j++)
        out->q[j] = b->q[j / 8] >> j % 8 & 1 ? 2 : 0;
}

static void dequantize_q1_0(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q1_0 *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += 128, b++) {
        ak_quant_read_q1_0(b, &indices);
        out = put_numbers(&indices, 128, out);
    }
}

const struct ak_quant_info ak_quant_q1_0 = { "Q1_0", 128, sizeof(struct block_q1_0),
                                             dequantize_q1_0, NULL };

/* ---- Q2_0 --------------------------------------------------------------- */
/* x = d · (q − 1) with q of 0 … 3. Its two bits start at bit i % 4 · 2 of byte i / 4. */
struct block_q2_0 {
    uint8_t d[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_q2_0) == 18, "Q2_0 is 18 bytes for 64 elements");

void ak_quant_read_q2_0(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_q2_0 *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int j = 0; j < 64; j++)
        out->q[j] = b->q[j / 4] >> j % 4 * 2 & 3;
}

static void dequantize_q2_0(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_q2_0 *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += 64, b++) {
        ak_quant_read_q2_0(b, &indices);
        out = put_numbers(&indices, 64, out);
    }
}

const struct ak_quant_info ak_quant_q2_0 = { "Q2_0", 64, sizeof(struct block_q2_0), dequantize_q2_0,
                                             NULL };
