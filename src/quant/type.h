/* Types of stored weights: geometry, and the reference conversions that
 * everything else is compared with. */
#ifndef AK_QUANT_TYPE_H
#define AK_QUANT_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are akunu's own; a file format maps its numbers onto them. They
 * are part of the packed cache: append, never renumber. */
enum ak_type {
    AK_F32 = 0,
    AK_F16 = 1,
    AK_BF16 = 2,
    AK_Q4_0 = 3,
    AK_Q4_1 = 4,
    AK_Q5_0 = 5,
    AK_Q5_1 = 6,
    AK_Q8_0 = 7,
    AK_Q2_K = 8,
    AK_Q3_K = 9,
    AK_Q4_K = 10,
    AK_Q5_K = 11,
    AK_Q6_K = 12,
    AK_IQ4_NL = 13,
    AK_IQ4_XS = 14,
    AK_MXFP4 = 15,
    /* no file's: what weights in several tensors are put together as (weights/assembly.h) */
    AK_A4 = 16,
    AK_A5 = 17,
    AK_A8 = 18,
    AK_F8 = 19,
    AK_TYPE_COUNT,

    /* Numbers that files hold beside weights, or that some scheme packs weights
     * into. They are listed and widened; no product reads them. */
    AK_FIRST_STORED = 64,
    AK_BOOL = AK_FIRST_STORED,
    AK_I8,
    AK_U8,
    AK_I16,
    AK_U16,
    AK_I32,
    AK_U32,
    AK_I64,
    AK_U64,
    AK_F64,
    AK_F8_E4M3,
    AK_F8_E5M2,
    AK_F8_E8M0,
    AK_STORED_END
};

/* `n` elements, a multiple of block_elems; source and destination need no
 * alignment beyond a float's and do not overlap. */
typedef void ak_dequantise_fn(const void *restrict blocks, float *restrict out, size_t n);
typedef void ak_quantise_fn(const float *restrict in, void *restrict blocks, size_t n);

struct ak_type_info {
    const char *name; /* as people write it: "Q4_K" */
    uint16_t block_elems, block_bytes;
    ak_dequantise_fn *dequantise;
    ak_quantise_fn *quantise; /* NULL where nothing needs it yet */
};

/* `type` is one of the enum, the stored ones included. */
const struct ak_type_info *ak_type_info(enum ak_type type);

/* Bytes of a row; false where `cols` is no multiple of the block or the product
 * overflows. */
bool ak_type_row_bytes(enum ak_type type, uint64_t cols, uint64_t *bytes);

/* One registry entry a file: src/quant/<type>.c. */
extern const struct ak_type_info ak_type_f32, ak_type_f16, ak_type_bf16, ak_type_q4_0, ak_type_q4_1,
    ak_type_q5_0, ak_type_q5_1, ak_type_q8_0, ak_type_q2_k, ak_type_q3_k, ak_type_q4_k,
    ak_type_q5_k, ak_type_q6_k, ak_type_iq4_nl, ak_type_iq4_xs, ak_type_mxfp4, ak_type_a4,
    ak_type_a5, ak_type_a8, ak_type_f8;

extern const struct ak_type_info ak_stored_types[AK_STORED_END - AK_FIRST_STORED];

/* What a 4-bit number stands for in IQ4_NL and IQ4_XS, and, doubled, in MXFP4. */
extern const int8_t ak_iq4_values[16], ak_mxfp4_values[16];

#endif
