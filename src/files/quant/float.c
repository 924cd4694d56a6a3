/* Reference conversions of F32, F16 and BF16, and of the integers and doubles that files
 * store beside weights. */
#include "files/quant/block.h"

/* ---- F32 ---------------------------------------------------------------- */
static void dequantize_f32(const void *restrict blocks, float *restrict out, size_t n)
{
    memcpy(out, blocks, n * sizeof *out);
}

static void quantize_f32(const float *restrict in, void *restrict blocks, size_t n)
{
    memcpy(blocks, in, n * sizeof *in);
}

const struct ak_quant_info ak_quant_f32 = { "F32", 1, 4, dequantize_f32, quantize_f32 };

/* ---- F16 ---------------------------------------------------------------- */
static void dequantize_f16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_quant_get_f16(half[i]);
}

static void quantize_f16(const float *restrict in, void *restrict blocks, size_t n)
{
    uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        ak_quant_put_f16(half[i], in[i]);
}

const struct ak_quant_info ak_quant_f16 = { "F16", 1, 2, dequantize_f16, quantize_f16 };

/* ---- BF16 --------------------------------------------------------------- */
static void dequantize_bf16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_bf16_to_float((uint16_t)(half[i][0] | half[i][1] << 8));
}

static void quantize_bf16(const float *restrict in, void *restrict blocks, size_t n)
{
    uint8_t(*half)[2] = blocks;
    for (size_t i = 0; i < n; i++) {
        uint16_t bits = ak_float_to_bf16(in[i]);
        half[i][0] = (uint8_t)bits;
        half[i][1] = (uint8_t)(bits >> 8);
    }
}

const struct ak_quant_info ak_quant_bf16 = { "BF16", 1, 2, dequantize_bf16, quantize_bf16 };

/* ---- Listed and dequantized only, never multiplied ---------------------- */
/* Defines `name`, which converts little-endian numbers at any address to the nearest float32. */
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

#define STORED(type) [AK_QUANT_##type - AK_QUANT_STORED_FIRST]
const struct ak_quant_info ak_quant_stored_types[AK_QUANT_STORED_END - AK_QUANT_STORED_FIRST] = {
    STORED(BOOL) = { "BOOL", 1, 1, dequantize_u8, NULL },
    STORED(I8) = { "I8", 1, 1, dequantize_i8, NULL },
    STORED(U8) = { "U8", 1, 1, dequantize_u8, NULL },
    STORED(I16) = { "I16", 1, 2, dequantize_i16, NULL },
    STORED(U16) = { "U16", 1, 2, dequantize_u16, NULL },
    STORED(I32) = { "I32", 1, 4, dequantize_i32, NULL },
    STORED(U32) = { "U32", 1, 4, dequantize_u32, NULL },
    STORED(I64) = { "I64", 1, 8, dequantize_i64, NULL },
    STORED(U64) = { "U64", 1, 8, dequantize_u64, NULL },
    STORED(F64) = { "F64", 1, 8, dequantize_f64, NULL },
    STORED(F8_E4M3) = { "F8_E4M3", 1, 1, ak_quant_dequantize_e4m3, NULL },
    STORED(F8_E5M2) = { "F8_E5M2", 1, 1, ak_quant_dequantize_e5m2, NULL },
    STORED(F8_E8M0) = { "F8_E8M0", 1, 1, ak_quant_dequantize_e8m0, NULL },
};
