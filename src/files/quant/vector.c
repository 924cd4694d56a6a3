/* GGML's types with a codebook of vectors: readers, and reference dequantization. A super-block is
 * 256 elements with one FP16 scale d; each 32 or 16 elements have a small scale, from which a
 * factor follows. The sign of element i of a vector is bit i of a byte; where a file has but seven
 * bits, the eighth makes the number of negative elements even. */
#include "files/quant/codebook.h"
#include "files/quant/indices.h"

static uint32_t get_u16(const uint8_t b[2])
{
    return (uint32_t)(b[0] | b[1] << 8);
}

static uint32_t get_u32(const uint8_t b[4])
{
    return get_u16(b) | get_u16(b + 2) << 16;
}

/* ---- Tables ------------------------------------------------------------- */
/* An index is that of a number in the codebook, and above it a bit that stands for its sign. All
 * products of a table's numbers, scales and d are exact, in any order. */

/* v ± 1/8, in eighths; the sign is that of the eighth. */
const struct ak_quant_table ak_quant_iq1_table = {
    { -7, 1, 9, 0, -9, -1, 7, 0, -7, 1, 9, 0, -9, -1, 7, 0 }, 0.125f
};

/* The factor (scale + 1/2) / 4 is (2 · scale + 1) / 8. */
const struct ak_quant_table ak_quant_iq2_table = {
    { 8, 25, 43, 0, -8, -25, -43, 0, 8, 25, 43, 0, -8, -25, -43, 0 }, 0.125f
};

/* Half of 4 … 62, and the factor (scale + 1/2) / 2. */
const struct ak_quant_table ak_quant_iq3_xxs_table = {
    { 2, 6, 10, 14, 18, 22, 26, 31, -2, -6, -10, -14, -18, -22, -26, -31 }, 0.5f
};

const struct ak_quant_table ak_quant_iq3_s_table = {
    { 1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15 }, 1.0f
};

static void put_values(const struct ak_quant_indices *in, const struct ak_quant_table *table,
                       float *out)
{
    float d = ak_quant_get_f16(in->d) * table->factor;
    for (int i = 0; i < AK_QUANT_SUPER_BLOCK; i++)
        out[i] = d * (float)(2 * in->scales[i / 16] + 1) * (float)table->values[in->q[i]];
}

/* ---- Vectors ------------------------------------------------------------ */
static unsigned add_eighth_sign(uint32_t seven)
{
    seven &= 127;
    return seven | (unsigned)__builtin_parity(seven) << 7;
}

/* q[i]: two bits of `code`, and bit i of `signs` above them. */
static void put_eight(uint16_t code, unsigned signs, uint8_t *q)
{
    for (int i = 0; i < 8; i++)
        q[i] = (uint8_t)((code >> 2 * i & 3) | (signs >> i & 1) << 2);
}

/* q[i]: three bits of `code`, and bit i of `signs` above them. */
static void put_four(uint16_t code, unsigned signs, uint8_t *q)
{
    for (int i = 0; i < 4; i++)
        q[i] = (uint8_t)((code >> 3 * i & 7) | (signs >> i & 1) << 3);
}

/* The scale of 32 elements. */
static void put_scale(uint32_t scale, int s, struct ak_quant_indices *out)
{
    out->scales[2 * s] = out->scales[2 * s + 1] = (uint8_t)scale;
}

/* ---- IQ1_S -------------------------------------------------------------- */
/* x = d · (2 · scale + 1) · (v ± 1/8) with, of each 32 elements, a word of their own: the upper
 * three bits of four indices, a 3-bit scale, and as its top bit the sign of the eighth. */
struct block_iq1_s {
    uint8_t d[2];
    uint8_t q[32];
    uint8_t high[8][2];
};
_Static_assert(sizeof(struct block_iq1_s) == 50, "IQ1_S is 50 bytes for 256 elements");

void ak_quant_read_iq1_s(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_iq1_s *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int s = 0; s < 8; s++) {
        uint32_t high = get_u16(b->high[s]), down = high >> 15 ? 255 : 0;
        put_scale(high >> 12 & 7, s, out);
        for (int v = 0; v < 4; v++)
            put_eight(ak_quant_iq1_codes[b->q[s * 4 + v] | (high >> 3 * v & 7) << 8], down,
                      out->q + s * 32 + v * 8);
    }
}

static void dequantize_iq1_s(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq1_s *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_iq1_s(b, &indices);
        put_values(&indices, &ak_quant_iq1_table, out + i);
    }
}

const struct ak_quant_info ak_quant_iq1_s = { "IQ1_S", AK_QUANT_SUPER_BLOCK,
                                              sizeof(struct block_iq1_s), dequantize_iq1_s, NULL };

/* ---- IQ1_M -------------------------------------------------------------- */
/* As IQ1_S, with a nibble per vector, the upper bits of its index and the sign of its eighth, and a
 * 3-bit scale per 16 elements. Four words hold four scales each; their top four bits are d. */
struct block_iq1_m {
    uint8_t q[32];
    uint8_t high[16];
    uint8_t scales[4][2];
};
_Static_assert(sizeof(struct block_iq1_m) == 56, "IQ1_M is 56 bytes for 256 elements");

void ak_quant_read_iq1_m(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_iq1_m *b = block;
    uint32_t d = 0;
    for (int w = 0; w < 4; w++)
        d |= get_u16(b->scales[w]) >> 12 << 4 * w;
    out->d[0] = (uint8_t)d;
    out->d[1] = (uint8_t)(d >> 8);
    for (int v = 0; v < 32; v++) {
        uint32_t high = b->high[v / 2] >> v % 2 * 4 & 15;
        out->scales[v / 2] = get_u16(b->scales[v / 8]) >> v / 2 % 4 * 3 & 7;
        put_eight(ak_quant_iq1_codes[b->q[v] | (high & 7) << 8], high >> 3 ? 255 : 0,
                  out->q + v * 8);
    }
}

static void dequantize_iq1_m(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq1_m *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_iq1_m(b, &indices);
        put_values(&indices, &ak_quant_iq1_table, out + i);
    }
}

const struct ak_quant_info ak_quant_iq1_m = { "IQ1_M", AK_QUANT_SUPER_BLOCK,
                                              sizeof(struct block_iq1_m), dequantize_iq1_m, NULL };

/* ---- IQ2_XXS ------------------------------------------------------------ */
/* x = d · (scale + 1/2) / 4 · ±v. Of each 32 elements four indices, then a word with four times
 * seven signs and a 4-bit scale. */
struct block_iq2_xxs {
    uint8_t d[2];
    struct {
        uint8_t q[4];
        uint8_t signs_scale[4];
    } of[8];
};
_Static_assert(sizeof(struct block_iq2_xxs) == 66, "IQ2_XXS is 66 bytes for 256 elements");

void ak_quant_read_iq2_xxs(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_iq2_xxs *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int s = 0; s < 8; s++) {
        uint32_t word = get_u32(b->of[s].signs_scale);
        put_scale(word >> 28, s, out);
        for (int v = 0; v < 4; v++)
            put_eight(ak_quant_iq2_xxs_codes[b->of[s].q[v]], add_eighth_sign(word >> 7 * v),
                      out->q + s * 32 + v * 8);
    }
}

static void dequantize_iq2_xxs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq2_xxs *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_iq2_xxs(b, &indices);
        put_values(&indices, &ak_quant_iq2_table, out + i);
    }
}

const struct ak_quant_info ak_quant_iq2_xxs = { "IQ2_XXS", AK_QUANT_SUPER_BLOCK,
                                                sizeof(struct block_iq2_xxs), dequantize_iq2_xxs,
                                                NULL };

/* ---- IQ2_XS ------------------------------------------------------------- */
/* As IQ2_XXS, with a word of index (9 bits) and signs (7) per vector, and a 4-bit scale per 16
 * elements. */
struct block_iq2_xs {
    uint8_t d[2];
    uint8_t q[32][2];
    uint8_t scales[8];
};
_Static_assert(sizeof(struct block_iq2_xs) == 74, "IQ2_XS is 74 bytes for 256 elements");

void ak_quant_read_iq2_xs(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_iq2_xs *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int v = 0; v < 32; v++) {
        uint32_t word = get_u16(b->q[v]);
        out->scales[v / 2] = b->scales[v / 4] >> v / 2 % 2 * 4 & 15;
        put_eight(ak_quant_iq2_xs_codes[word & 511], add_eighth_sign(word >> 9), out->q + v * 8);
    }
}

static void dequantize_iq2_xs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq2_xs *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_iq2_xs(b, &indices);
        put_values(&indices, &ak_quant_iq2_table, out + i);
    }
}

const struct ak_quant_info ak_quant_iq2_xs = { "IQ2_XS", AK_QUANT_SUPER_BLOCK,
                                               sizeof(struct block_iq2_xs), dequantize_iq2_xs,
                                               NULL };

/* ---- IQ2_S -------------------------------------------------------------- */
/* As IQ2_XS, with 10-bit indices and all eight signs. */
struct block_iq2_s {
    uint8_t d[2];
    uint8_t q[32];
    uint8_t signs[32];
    uint8_t high[8]; /* bits 8 and 9 of four indices */
    uint8_t scales[8];
};
_Static_assert(sizeof(struct block_iq2_s) == 82, "IQ2_S is 82 bytes for 256 elements");

void ak_quant_read_iq2_s(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_iq2_s *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int v = 0; v < 32; v++) {
        uint32_t high = b->high[v / 4] >> v % 4 * 2 & 3;
        out->scales[v / 2] = b->scales[v / 4] >> v / 2 % 2 * 4 & 15;
        put_eight(ak_quant_iq2_s_codes[b->q[v] | high << 8], b->signs[v], out->q + v * 8);
    }
}

static void dequantize_iq2_s(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq2_s *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_iq2_s(b, &indices);
        put_values(&indices, &ak_quant_iq2_table, out + i);
    }
}

const struct ak_quant_info ak_quant_iq2_s = { "IQ2_S", AK_QUANT_SUPER_BLOCK,
                                              sizeof(struct block_iq2_s), dequantize_iq2_s, NULL };

/* ---- IQ3_XXS ------------------------------------------------------------ */
/* x = d · (scale + 1/2) / 2 · ±v. The words of signs and scales of IQ2_XXS follow all indices. */
struct block_iq3_xxs {
    uint8_t d[2];
    uint8_t q[64];
    uint8_t signs_scales[8][4];
};
_Static_assert(sizeof(struct block_iq3_xxs) == 98, "IQ3_XXS is 98 bytes for 256 elements");

void ak_quant_read_iq3_xxs(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_iq3_xxs *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int s = 0; s < 8; s++) {
        uint32_t word = get_u32(b->signs_scales[s]);
        put_scale(word >> 28, s, out);
        for (int v = 0; v < 8; v++)
            put_four(ak_quant_iq3_xxs_codes[b->q[s * 8 + v]],
                     add_eighth_sign(word >> v / 2 * 7) >> v % 2 * 4, out->q + s * 32 + v * 4);
    }
}

static void dequantize_iq3_xxs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq3_xxs *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_iq3_xxs(b, &indices);
        put_values(&indices, &ak_quant_iq3_xxs_table, out + i);
    }
}

const struct ak_quant_info ak_quant_iq3_xxs = { "IQ3_XXS", AK_QUANT_SUPER_BLOCK,
                                                sizeof(struct block_iq3_xxs), dequantize_iq3_xxs,
                                                NULL };

/* ---- IQ3_S -------------------------------------------------------------- */
/* x = d · (2 · scale + 1) · ±v with a 4-bit scale per 32 elements, 9-bit indices and all signs. */
struct block_iq3_s {
    uint8_t d[2];
    uint8_t q[64];
    uint8_t high[8]; /* bit 8 of eight indices */
    uint8_t signs[32];
    uint8_t scales[4];
};
_Static_assert(sizeof(struct block_iq3_s) == 110, "IQ3_S is 110 bytes for 256 elements");

void ak_quant_read_iq3_s(const void *restrict block, struct ak_quant_indices *restrict out)
{
    const struct block_iq3_s *b = block;
    memcpy(out->d, b->d, sizeof out->d);
    for (int v = 0; v < 64; v++) {
        uint32_t high = b->high[v / 8] >> v % 8 & 1;
        put_scale(b->scales[v / 16] >> v / 8 % 2 * 4 & 15, v / 8, out);
        put_four(ak_quant_iq3_s_codes[b->q[v] | high << 8], b->signs[v / 2] >> v % 2 * 4,
                 out->q + v * 4);
    }
}

static void dequantize_iq3_s(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq3_s *b = blocks;
    struct ak_quant_indices indices;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        ak_quant_read_iq3_s(b, &indices);
        put_values(&indices, &ak_quant_iq3_s_table, out + i);
    }
}

const struct ak_quant_info ak_quant_iq3_s = { "IQ3_S", AK_QUANT_SUPER_BLOCK,
                                              sizeof(struct block_iq3_s), dequantize_iq3_s, NULL };
