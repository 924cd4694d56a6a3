/* Numbers that no product reads, dequantized to the nearest float32.
 *
 *   F8_E4M3  no infinities; 0x7f and 0xff are no numbers   OCP 8-bit floating point, revision 1.0
 *   F8_E5M2  the upper half of an F16                      the same
 *   F8_E8M0  2^(x − 127); 0xff is no number                OCP microscaling formats, revision 1.0
 *
 * The others are little-endian, at any address. */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "quant/type.h"

/* A function that dequantizes numbers of one C type. */
#define DEQUANTIZE(name, type)                                                                     \
    static void name(const void *restrict blocks, float *restrict out, size_t n)                   \
    {                                                                                              \
        const uint8_t *bytes = blocks;                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x;                                                                                \
            memcpy(&x, bytes + i * sizeof x, sizeof x);                                            \
            out[i] = (float)x;                                                                     \
        }                                                                                          \
    }

DEQUANTIZE(dequantize_i8, int8_t)
DEQUANTIZE(dequantize_u8, uint8_t)
DEQUANTIZE(dequantize_i16, int16_t)
DEQUANTIZE(dequantize_u16, uint16_t)
DEQUANTIZE(dequantize_i32, int32_t)
DEQUANTIZE(dequantize_u32, uint32_t)
DEQUANTIZE(dequantize_i64, int64_t)
DEQUANTIZE(dequantize_u64, uint64_t)
DEQUANTIZE(dequantize_f64, double)

static void dequantize_e4m3(const void *restrict blocks, float *restrict out, size_t n)
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

static void dequantize_e5m2(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_f16_to_float((uint16_t)(bytes[i] << 8));
}

static void dequantize_e8m0(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = bytes[i] == 0xff ? NAN : ldexpf(1.0f, bytes[i] - 127);
}

const struct ak_quant_info ak_quant_stored_types[AK_QUANT_STORED_END - AK_QUANT_STORED_FIRST] = {
    [AK_QUANT_BOOL - AK_QUANT_STORED_FIRST] = { .name = "BOOL",
                                                .block_elems = 1,
                                                .block_bytes = 1,
                                                .dequantize = dequantize_u8 },
    [AK_QUANT_I8 - AK_QUANT_STORED_FIRST] = { .name = "I8",
                                              .block_elems = 1,
                                              .block_bytes = 1,
                                              .dequantize = dequantize_i8 },
    [AK_QUANT_U8 - AK_QUANT_STORED_FIRST] = { .name = "U8",
                                              .block_elems = 1,
                                              .block_bytes = 1,
                                              .dequantize = dequantize_u8 },
    [AK_QUANT_I16 - AK_QUANT_STORED_FIRST] = { .name = "I16",
                                               .block_elems = 1,
                                               .block_bytes = 2,
                                               .dequantize = dequantize_i16 },
    [AK_QUANT_U16 - AK_QUANT_STORED_FIRST] = { .name = "U16",
                                               .block_elems = 1,
                                               .block_bytes = 2,
                                               .dequantize = dequantize_u16 },
    [AK_QUANT_I32 - AK_QUANT_STORED_FIRST] = { .name = "I32",
                                               .block_elems = 1,
                                               .block_bytes = 4,
                                               .dequantize = dequantize_i32 },
    [AK_QUANT_U32 - AK_QUANT_STORED_FIRST] = { .name = "U32",
                                               .block_elems = 1,
                                               .block_bytes = 4,
                                               .dequantize = dequantize_u32 },
    [AK_QUANT_I64 - AK_QUANT_STORED_FIRST] = { .name = "I64",
                                               .block_elems = 1,
                                               .block_bytes = 8,
                                               .dequantize = dequantize_i64 },
    [AK_QUANT_U64 - AK_QUANT_STORED_FIRST] = { .name = "U64",
                                               .block_elems = 1,
                                               .block_bytes = 8,
                                               .dequantize = dequantize_u64 },
    [AK_QUANT_F64 - AK_QUANT_STORED_FIRST] = { .name = "F64",
                                               .block_elems = 1,
                                               .block_bytes = 8,
                                               .dequantize = dequantize_f64 },
    [AK_QUANT_F8_E4M3 - AK_QUANT_STORED_FIRST] = { .name = "F8_E4M3",
                                                   .block_elems = 1,
                                                   .block_bytes = 1,
                                                   .dequantize = dequantize_e4m3 },
    [AK_QUANT_F8_E5M2 - AK_QUANT_STORED_FIRST] = { .name = "F8_E5M2",
                                                   .block_elems = 1,
                                                   .block_bytes = 1,
                                                   .dequantize = dequantize_e5m2 },
    [AK_QUANT_F8_E8M0 - AK_QUANT_STORED_FIRST] = { .name = "F8_E8M0",
                                                   .block_elems = 1,
                                                   .block_bytes = 1,
                                                   .dequantize = dequantize_e8m0 },
};
