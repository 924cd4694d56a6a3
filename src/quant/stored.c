/* Numbers that no product reads, widened to the nearest float32.
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

/* A function that widens numbers of one C type. */
#define WIDEN(name, type)                                                                          \
    static void name(const void *restrict blocks, float *restrict out, size_t n)                   \
    {                                                                                              \
        const uint8_t *bytes = blocks;                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            type x;                                                                                \
            memcpy(&x, bytes + i * sizeof x, sizeof x);                                            \
            out[i] = (float)x;                                                                     \
        }                                                                                          \
    }

WIDEN(widen_i8, int8_t)
WIDEN(widen_u8, uint8_t)
WIDEN(widen_i16, int16_t)
WIDEN(widen_u16, uint16_t)
WIDEN(widen_i32, int32_t)
WIDEN(widen_u32, uint32_t)
WIDEN(widen_i64, int64_t)
WIDEN(widen_u64, uint64_t)
WIDEN(widen_f64, double)

static void widen_e4m3(const void *restrict blocks, float *restrict out, size_t n)
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

static void widen_e5m2(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_f16_to_float((uint16_t)(bytes[i] << 8));
}

static void widen_e8m0(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *bytes = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = bytes[i] == 0xff ? NAN : ldexpf(1.0f, bytes[i] - 127);
}

const struct ak_type_info ak_stored_types[AK_STORED_END - AK_FIRST_STORED] = {
    [AK_BOOL - AK_FIRST_STORED] = { .name = "BOOL",
                                    .block_elems = 1,
                                    .block_bytes = 1,
                                    .dequantise = widen_u8 },
    [AK_I8 - AK_FIRST_STORED] = { .name = "I8",
                                  .block_elems = 1,
                                  .block_bytes = 1,
                                  .dequantise = widen_i8 },
    [AK_U8 - AK_FIRST_STORED] = { .name = "U8",
                                  .block_elems = 1,
                                  .block_bytes = 1,
                                  .dequantise = widen_u8 },
    [AK_I16 - AK_FIRST_STORED] = { .name = "I16",
                                   .block_elems = 1,
                                   .block_bytes = 2,
                                   .dequantise = widen_i16 },
    [AK_U16 - AK_FIRST_STORED] = { .name = "U16",
                                   .block_elems = 1,
                                   .block_bytes = 2,
                                   .dequantise = widen_u16 },
    [AK_I32 - AK_FIRST_STORED] = { .name = "I32",
                                   .block_elems = 1,
                                   .block_bytes = 4,
                                   .dequantise = widen_i32 },
    [AK_U32 - AK_FIRST_STORED] = { .name = "U32",
                                   .block_elems = 1,
                                   .block_bytes = 4,
                                   .dequantise = widen_u32 },
    [AK_I64 - AK_FIRST_STORED] = { .name = "I64",
                                   .block_elems = 1,
                                   .block_bytes = 8,
                                   .dequantise = widen_i64 },
    [AK_U64 - AK_FIRST_STORED] = { .name = "U64",
                                   .block_elems = 1,
                                   .block_bytes = 8,
                                   .dequantise = widen_u64 },
    [AK_F64 - AK_FIRST_STORED] = { .name = "F64",
                                   .block_elems = 1,
                                   .block_bytes = 8,
                                   .dequantise = widen_f64 },
    [AK_F8_E4M3 - AK_FIRST_STORED] = { .name = "F8_E4M3",
                                       .block_elems = 1,
                                       .block_bytes = 1,
                                       .dequantise = widen_e4m3 },
    [AK_F8_E5M2 - AK_FIRST_STORED] = { .name = "F8_E5M2",
                                       .block_elems = 1,
                                       .block_bytes = 1,
                                       .dequantise = widen_e5m2 },
    [AK_F8_E8M0 - AK_FIRST_STORED] = { .name = "F8_E8M0",
                                       .block_elems = 1,
                                       .block_bytes = 1,
                                       .dequantise = widen_e8m0 },
};
