/* Types of stored weights: name, block size, and reference conversions that define their values. */
#ifndef AK_QUANT_TYPE_H
#define AK_QUANT_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are akunu's own; a file format maps its numbers onto them. They
 * are part of the packed cache: append, never renumber. */
enum ak_quant_type {
    AK_QUANT_F32 = 0,
    AK_QUANT_F16 = 1,
    AK_QUANT_BF16 = 2,
    AK_QUANT_Q4_0 = 3,
    AK_QUANT_Q4_1 = 4,
    AK_QUANT_Q5_0 = 5,
    AK_QUANT_Q5_1 = 6,
    AK_QUANT_Q8_0 = 7,
    AK_QUANT_Q2_K = 8,
    AK_QUANT_Q3_K = 9,
    AK_QUANT_Q4_K = 10,
    AK_QUANT_Q5_K = 11,
    AK_QUANT_Q6_K = 12,
    AK_QUANT_IQ4_NL = 13,
    AK_QUANT_IQ4_XS = 14,
    AK_QUANT_MXFP4 = 15,
    /* in memory only: composed tensors (files/weights/composed.h) */
    AK_QUANT_A4 = 16,
    AK_QUANT_A5 = 17,
    AK_QUANT_A8 = 18,
    AK_QUANT_F8 = 19,
    /* of GGUF files again */
    AK_QUANT_IQ1_S = 20,
    AK_QUANT_IQ1_M = 21,
    AK_QUANT_IQ2_XXS = 22,
    AK_QUANT_IQ2_XS = 23,
    AK_QUANT_IQ2_S = 24,
    AK_QUANT_IQ3_XXS = 25,
    AK_QUANT_IQ3_S = 26,
    AK_QUANT_TQ1_0 = 27,
    AK_QUANT_TQ2_0 = 28,
    AK_QUANT_NVFP4 = 29,
    AK_QUANT_Q1_0 = 30,
    AK_QUANT_Q2_0 = 31,
    AK_QUANT_Q8_K = 32,
    /* in memory only: what types of one to three bits are recoded to (files/quant/recode.h) */
    AK_QUANT_V2 = 33,
    AK_QUANT_V3 = 34,
    AK_QUANT_V4 = 35,
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
extern const struct ak_quant_info ak_quant_f32, ak_quant_f16, ak_quant_bf16, ak_quant_q4_0,
    ak_quant_q4_1, ak_quant_q5_0, ak_quant_q5_1, ak_quant_q8_0, ak_quant_q2_k, ak_quant_q3_k,
    ak_quant_q4_k, ak_quant_q5_k, ak_quant_q6_k, ak_quant_iq4_nl, ak_quant_iq4_xs, ak_quant_mxfp4,
    ak_quant_a4, ak_quant_a5, ak_quant_a8, ak_quant_f8, ak_quant_iq1_s, ak_quant_iq1_m,
    ak_quant_iq2_xxs, ak_quant_iq2_xs, ak_quant_iq2_s, ak_quant_iq3_xxs, ak_quant_iq3_s,
    ak_quant_tq1_0, ak_quant_tq2_0, ak_quant_nvfp4, ak_quant_q1_0, ak_quant_q2_0, ak_quant_q8_k,
    ak_quant_v2, ak_quant_v3, ak_quant_v4;

extern const struct ak_quant_info
    ak_quant_stored_types[AK_QUANT_STORED_END - AK_QUANT_STORED_FIRST];

/* Stored 8-bit floats, in fp8.c; registered in ak_quant_stored_types. */
ak_quant_dequantize_fn ak_quant_dequantize_e4m3, ak_quant_dequantize_e5m2, ak_quant_dequantize_e8m0;

/* Codebooks by 4-bit index: of IQ4_NL and IQ4_XS; of MXFP4 and NVFP4, with all values doubled. */
extern const int8_t ak_quant_iq4_values[16], ak_quant_mxfp4_values[16];

#endif
