/* Reference dequantization of GGML's types with a codebook of vectors. A super-block is 256
 * elements with one FP16 scale d; each 32 or 16 elements have a small scale, from which a factor
 * follows. The sign of element i of a vector is bit i of a byte; where a file has but seven bits,
 * the eighth makes the number of negative elements even. */
#include "quant/block.h"
#include "quant/codebook.h"

static uint32_t get_u16(const uint8_t b[2])
{
    return (uint32_t)(b[0] | b[1] << 8);
}

static uint32_t get_u32(const uint8_t b[4])
{
    return get_u16(b) | get_u16(b + 2) << 16;
}

/* ---- Vectors ------------------------------------------------------------ */
static unsigned add_eighth_sign(uint32_t seven)
{
    seven &= 127;
    return seven | (unsigned)__builtin_parity(seven) << 7;
}

static void put_signed(float factor, int value, bool is_negative, float *out)
{
    float x = factor * (float)value;
    *out = is_negative ? -x : x;
}

static void put_eight(uint16_t code, float factor, unsigned signs, float *out)
{
    for (int i = 0; i < 8; i++)
        put_signed(factor, ak_quant_iq2_values[code >> 2 * i & 3], signs >> i & 1, out + i);
}

static void put_four(uint16_t code, const int8_t values[8], float factor, unsigned signs,
                     float *out)
{
    for (int i = 0; i < 4; i++)
        put_signed(factor, values[code >> 3 * i & 7], signs >> i & 1, out + i);
}

/* ---- IQ1_S -------------------------------------------------------------- */
static const float SHIFT = 0.125f; /* of the numbers of IQ1_S and IQ1_M, up or down */

static void put_ternary(uint16_t code, float factor, bool is_down, float *out)
{
    for (int i = 0; i < 8; i++)
        out[i] =
            factor * ((float)ak_quant_iq1_values[code >> 2 * i & 3] + (is_down ? -SHIFT : SHIFT));
}

/* x = d · (2 · scale + 1) · (v ± 1/8) with, of each 32 elements, a word of their own: the upper
 * three bits of four indices, a 3-bit scale, and as its top bit the sign of the eighth. */
struct block_iq1_s {
    uint8_t d[2];
    uint8_t q[32];
    uint8_t high[8][2];
};
_Static_assert(sizeof(struct block_iq1_s) == 50, "IQ1_S is 50 bytes for 256 elements");

static void dequantize_iq1_s(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq1_s *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++)
        for (int s = 0; s < 8; s++) {
            uint32_t high = get_u16(b->high[s]);
            float factor = ak_quant_get_f16(b->d) * (float)(2 * (high >> 12 & 7) + 1);
            for (int v = 0; v < 4; v++, out += 8)
                put_ternary(ak_quant_iq1_codes[b->q[s * 4 + v] | (high >> 3 * v & 7) << 8], factor,
                            high >> 15, out);
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

static void dequantize_iq1_m(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq1_m *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        uint32_t bits = 0;
        for (int w = 0; w < 4; w++)
            bits |= get_u16(b->scales[w]) >> 12 << 4 * w;
        float d = ak_f16_to_float((uint16_t)bits);
        for (int v = 0; v < 32; v++, out += 8) {
            uint32_t scale = get_u16(b->scales[v / 8]) >> v / 2 % 4 * 3 & 7,
                     high = b->high[v / 2] >> v % 2 * 4 & 15;
            put_ternary(ak_quant_iq1_codes[b->q[v] | (high & 7) << 8], d * (float)(2 * scale + 1),
                        high >> 3, out);
        }
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

static float get_factor_iq2(float d, uint32_t scale)
{
    return d * (0.5f + (float)scale) * 0.25f;
}

static void dequantize_iq2_xxs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq2_xxs *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++)
        for (int s = 0; s < 8; s++) {
            uint32_t word = get_u32(b->of[s].signs_scale);
            float factor = get_factor_iq2(ak_quant_get_f16(b->d), word >> 28);
            for (int v = 0; v < 4; v++, out += 8)
                put_eight(ak_quant_iq2_xxs_codes[b->of[s].q[v]], factor,
                          add_eighth_sign(word >> 7 * v), out);
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

static void dequantize_iq2_xs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq2_xs *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++)
        for (int v = 0; v < 32; v++, out += 8) {
            uint32_t word = get_u16(b->q[v]), scale = b->scales[v / 4] >> v / 2 % 2 * 4 & 15;
            put_eight(ak_quant_iq2_xs_codes[word & 511],
                      get_factor_iq2(ak_quant_get_f16(b->d), scale), add_eighth_sign(word >> 9),
                      out);
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

static void dequantize_iq2_s(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq2_s *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++)
        for (int v = 0; v < 32; v++, out += 8) {
            uint32_t high = b->high[v / 4] >> v % 4 * 2 & 3,
                     scale = b->scales[v / 4] >> v / 2 % 2 * 4 & 15;
            put_eight(ak_quant_iq2_s_codes[b->q[v] | high << 8],
                      get_factor_iq2(ak_quant_get_f16(b->d), scale), b->signs[v], out);
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

static void dequantize_iq3_xxs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq3_xxs *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++)
        for (int s = 0; s < 8; s++) {
            uint32_t word = get_u32(b->signs_scales[s]);
            float factor = ak_quant_get_f16(b->d) * (0.5f + (float)(word >> 28)) * 0.5f;
            for (int v = 0; v < 8; v++, out += 4)
                put_four(ak_quant_iq3_xxs_codes[b->q[s * 8 + v]], ak_quant_iq3_xxs_values, factor,
                         add_eighth_sign(word >> v / 2 * 7) >> v % 2 * 4, out);
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

static void dequantize_iq3_s(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq3_s *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++)
        for (int v = 0; v < 64; v++, out += 4) {
            uint32_t high = b->high[v / 8] >> v % 8 & 1,
                     scale = b->scales[v / 16] >> v / 8 % 2 * 4 & 15;
            put_four(ak_quant_iq3_s_codes[b->q[v] | high << 8], ak_quant_iq3_s_values,
                     ak_quant_get_f16(b->d) * (float)(2 * scale + 1), b->signs[v / 2] >> v % 2 * 4,
                     out);
        }
}

const struct ak_quant_info ak_quant_iq3_s = { "IQ3_S", AK_QUANT_SUPER_BLOCK,
                                              sizeof(struct block_iq3_s), dequantize_iq3_s, NULL };
