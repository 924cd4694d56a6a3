/* Reference dequantization of 8-bit floating point: the block type F8, and the three formats
 * that files store.
 *
 *   F8_E4M3  no infinities; 0x7f and 0xff are NaN   OCP 8-bit Floating Point, revision 1.0
 *   F8_E5M2  the upper half of an FP16              the same
 *   F8_E8M0  2^(x - 127); 0xff is NaN               OCP Microscaling Formats, revision 1.0 */
#include "files/quant/block.h"

void ak_quant_dequantize_e4m3(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n; i++) {
        int exponent = bytes[i] >> 3 & 15, mantissa = bytes[i] & 7;
        float x = exponent == 0 ? ldexpf((float)mantissa, -9) :
                                  ldexpf((float)(8 + mantissa), exponent - 10);
        if ((bytes[i] & 0x7f) == 0x7f)
            x = NAN;
        out[i] = bytes[i] & 0x80 ? -x : x;
    }
}

void ak_quant_dequantize_e5m2(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_f16_to_float((uint16_t)(bytes[i] << 8));
}

void ak_quant_dequantize_e8m0(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = bytes[i] == 0xff ? NAN : ldexpf(1.0f, bytes[i] - 127);
}

const struct ak_quant_info ak_quant_f8 = { "F8", 128, sizeof(struct ak_quant_block_f8),
                                           ak_quant_dequantize_f8, NULL };
