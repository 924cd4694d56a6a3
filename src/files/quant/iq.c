/* Reference conversions of the types with a codebook: 4 bits select one of 16 values, which the
 * scale of the block multiplies. */
#include "files/quant/block.h"

/* ---- IQ4_NL ------------------------------------------------------------- */
/* x = d · value[q], with q laid out as in Q4_0. */
struct block_iq4_nl {
    uint8_t d[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_iq4_nl) == 18, "IQ4_NL is 18 bytes for 32 elements");

const int8_t ak_quant_iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113 };

static void dequantize_iq4_nl(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq4_nl *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)ak_quant_iq4_values[b->q[j] & 15];
            out[j + 16] = d * (float)ak_quant_iq4_values[b->q[j] >> 4];
        }
    }
}

/* Index of the value next to x; the higher one of two at the same distance. NaN gives 0. */
static int find_iq4_value(float x)
{
    int i = 0;
    while (i < 15 && x * 2.0f >= (float)(ak_quant_iq4_values[i] + ak_quant_iq4_values[i + 1]))
        i++;
    return i;
}

/* The element of largest magnitude becomes -127 and the others the next value. The stored scale
 * then minimizes the squared error, weighted by the squares of the elements. */
static void quantize_iq4_nl(const float *restrict in, void *restrict blocks, size_t n)
{
    struct block_iq4_nl *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, in += 32) {
        float inverse = ak_quant_inverse(ak_quant_find_extreme(in, 32) / -127.0f), xv = 0.0f,
              vv = 0.0f;
        *b = (struct block_iq4_nl){ 0 };
        for (int j = 0; j < 32 && inverse != 0.0f; j++) {
            int q = find_iq4_value(in[j] * inverse);
            float v = (float)ak_quant_iq4_values[q], weight = in[j] * in[j];
            xv += weight * v * in[j];
            vv += weight * v * v;
            b->q[j % 16] |= (uint8_t)(q << (j < 16 ? 0 : 4));
        }
        float d = vv > 0.0f ? xv / vv : 0.0f;
        ak_quant_put_f16(b->d, d);
        if (d != d) /* the squares overflow; processors differ in the sign of NaN */
            b->d[1] |= 0x80;
    }
}

const struct ak_quant_info ak_quant_iq4_nl = { "IQ4_NL", 32, sizeof(struct block_iq4_nl),
                                               dequantize_iq4_nl, quantize_iq4_nl };

/* ---- IQ4_XS ------------------------------------------------------------- */
/* x = (d · (scale − 32)) · value[q], with a 6-bit scale per 32 elements: its low four bits are
 * a nibble of scales_low, its upper two are in the 16-bit word scales_high. The q of each 32
 * elements are laid out as in Q4_0. */
struct block_iq4_xs {
    uint8_t d[2];
    uint8_t scales_high[2];
    uint8_t scales_low[4];
    uint8_t q[128];
};
_Static_assert(sizeof(struct block_iq4_xs) == 136, "IQ4_XS is 136 bytes for 256 elements");

static int get_scale_iq4_xs(const struct block_iq4_xs *b, int s)
{
    int low = b->scales_low[s / 2] >> s % 2 * 4 & 15;
    int high = b->scales_high[s / 4] >> s % 4 * 2 & 3;
    return (low | high << 4) - 32;
}

static void dequantize_iq4_xs(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_iq4_xs *b = blocks;
    for (size_t i = 0; i < n; i += AK_QUANT_SUPER_BLOCK, b++) {
        float d = ak_quant_get_f16(b->d);
        for (int s = 0; s < 8; s++, out += 32) {
            float scale = d * (float)get_scale_iq4_xs(b, s);
            const uint8_t *q = b->q + s * 16;
            for (int j = 0; j < 16; j++) {
                out[j] = scale * (float)ak_quant_iq4_values[q[j] & 15];
                out[j + 16] = scale * (float)ak_quant_iq4_values[q[j] >> 4];
            }
        }
    }
}

const struct ak_quant_info ak_quant_iq4_xs = { "IQ4_XS", AK_QUANT_SUPER_BLOCK,
                                               sizeof(struct block_iq4_xs), dequantize_iq4_xs,
                                               NULL };

/* ---- MXFP4 -------------------------------------------------------------- */
/* x = 2^(e − 128) · value[q], with q laid out as in Q4_0. The values are the E2M1 numbers of OCP
 * Microscaling Formats 1.0, doubled, so the scale is half of the standard's 2^(e − 127). Unlike
 * there, e = 255 is not a NaN but an exponent like any other. */
struct block_mxfp4 {
    uint8_t e;
    uint8_t q[16];
};
_Static_assert(sizeof(struct block_mxfp4) == 17, "MXFP4 is 17 bytes for 32 elements");

const int8_t ak_quant_mxfp4_values[16] = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
};

static void dequantize_mxfp4(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_mxfp4 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float scale = ak_e8m0_half(b->e);
        for (int j = 0; j < 16; j++) {
            out[j] = scale * (float)ak_quant_mxfp4_values[b->q[j] & 15];
            out[j + 16] = scale * (float)ak_quant_mxfp4_values[b->q[j] >> 4];
        }
    }
}

const struct ak_quant_info ak_quant_mxfp4 = { "MXFP4", 32, sizeof(struct block_mxfp4),
                                              dequantize_mxfp4, NULL };

/* ---- NVFP4 -------------------------------------------------------------- */
/* x = s · value[q] with the values of MXFP4 and per 16 elements an E4M3 scale, whose sign does not
 * count and whose NaN is 0; s is half of it, as the values are doubled. The q of each 16 elements
 * are eight bytes, laid out as in Q4_0. */
struct block_nvfp4 {
    uint8_t scales[4];
    uint8_t q[32];
};
_Static_assert(sizeof(struct block_nvfp4) == 36, "NVFP4 is 36 bytes for 64 elements");

static float get_scale_nvfp4(uint8_t bits)
{
    return bits == 0x7f ? 0.0f :
                          128.0f * ak_f16_to_float(ak_quant_e4m3_to_f16((uint8_t)(bits & 0x7f)));
}

static void dequantize_nvfp4(const void *restrict blocks, float *restrict out, size_t n)
{
    const struct block_nvfp4 *b = blocks;
    for (size_t i = 0; i < n; i += 64, b++)
        for (int s = 0; s < 4; s++, out += 16) {
            float scale = get_scale_nvfp4(b->scales[s]);
            const uint8_t *q = b->q + s * 8;
            for (int j = 0; j < 8; j++) {
                out[j] = (float)ak_quant_mxfp4_values[q[j] & 15] * scale;
                out[j + 8] = (float)ak_quant_mxfp4_values[q[j] >> 4] * scale;
            }
        }
}

const struct ak_quant_info ak_quant_nvfp4 = { "NVFP4", 64, sizeof(struct block_nvfp4),
                                              dequantize_nvfp4, NULL };
