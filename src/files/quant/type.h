/* Types of stored weights: name, block size, and reference conversions that define their values. */
#ifndef AK_FILES_QUANT_TYPE_H
#define AK_FILES_QUANT_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ak_quant_type {
#define QUANT(symbol, name, number, ...) AK_QUANT_##symbol = number,
#include "files/quant/types.def"
    AK_QUANT_COUNT,

    /* Types that files store beside weights, or into which a quantization scheme packs bits.
     * They are listed and dequantized, but never multiplied. */
    AK_QUANT_STORED_FIRST = 64,
    AK_QUANT_BOOL = AK_QUANT_STORED_FIRST,
    AK_QUANT_I8,
    AK_QUANT_U8,
    AK_QUANT_I16,
    AK_QUANT_U16,
    AK_QUANT_I32,
    AK_QUANT_U32,
    AK_QUANT_I64,
    AK_QUANT_U64,
    AK_QUANT_F64,
    AK_QUANT_F8_E4M3,
    AK_QUANT_F8_E5M2,
    AK_QUANT_F8_E8M0,
    AK_QUANT_STORED_END
};

/* `n` is a multiple of block_elems. Blocks may be at any address; floats are aligned. Source
 * and destination do not overlap. */
typedef void ak_quant_dequantize_fn(const void *restrict blocks, float *restrict out, size_t n);
typedef void ak_quant_quantize_fn(const float *restrict in, void *restrict blocks, size_t n);

struct ak_quant_info {
    const char *name; /* as users write it: "Q4_K" */
    uint16_t block_elems, block_bytes;
    ak_quant_dequantize_fn *dequantize;
    ak_quant_quantize_fn *quantize; /* NULL: not supported */
};

/* `type`: any of the enum, from AK_QUANT_STORED_FIRST on too. */
const struct ak_quant_info *ak_quant_info(enum ak_quant_type type);

/* Bytes of a row. False if `cols` is not a multiple of block_elems, or on overflow. */
bool ak_quant_row_bytes(enum ak_quant_type type, uint64_t cols, uint64_t *bytes);

/* One registry entry per type, in the file of its family. */
#define QUANT(symbol, name, ...) extern const struct ak_quant_info ak_quant_##name;
#include "files/quant/types.def"

extern const struct ak_quant_info
    ak_quant_stored_types[AK_QUANT_STORED_END - AK_QUANT_STORED_FIRST];

/* Stored 8-bit floats, in fp8.c; registered in ak_quant_stored_types. */
ak_quant_dequantize_fn ak_quant_dequantize_e4m3, ak_quant_dequantize_e5m2, ak_quant_dequantize_e8m0;

/* Codebooks by 4-bit index: of IQ4_NL and IQ4_XS; of MXFP4 and NVFP4, with all values doubled. */
extern const int8_t ak_quant_iq4_values[16], ak_quant_mxfp4_values[16];

#endif
