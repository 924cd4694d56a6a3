/* CPU packed layouts and activation formats.
 *
 * Two layouts, the same for every ISA (a third is in slices.h), so that one packed cache serves any
 * CPU and a row's float terms are added in one order everywhere:
 *
 *   rows   the stored rows unchanged, one after another; kernels dequantize them.
 *          F32, F16, BF16, F8, NVFP4 and Q8_K.
 *   tiles  16 rows interleaved. A tile covers 16 rows × 256 k; a shorter one ends a row if its
 *          k is not a multiple of 256. The tiles of a tile row follow each other, then come those
 *          of the next 16 rows: one sequential stream.
 *
 * A tile consists of lines. An interleaved line is 64 bytes, of which bytes 4r … 4r+3 are row r's,
 * four consecutive k. One 32-bit dot-product instruction with a broadcast activation then computes
 * 16 (AVX-512), 8 (AVX2) or 4 (NEON) rows.
 * A 4-byte field of a stored block, with the same field of the other 15 rows, is one line too;
 * below, "columns" are the 4-byte fields of GGML's block. A4, A5 and A8 are the types of
 * files/quant/affine.c.
 * With nb = blocks of 32 k in the tile:
 *
 *   Q4_0  d f16[nb][16], padded to 64 | nb × 4 lines
 *         line i: low nibbles k = 4i …, high nibbles k = 16 + 4i …
 *   Q4_1  d f16[nb][16], m f16[nb][16] | nb × 4 lines, as Q4_0
 *   Q5_0  d f16[nb][16], padded to 64 | fifth bits u64[nb][8] | nb × 4 lines, as Q4_0
 *         bit 4r+j of word i is the fifth bit of row r, k = 4i + j
 *   Q5_1  d f16[nb][16], m f16[nb][16] | fifth bits and lines, as Q5_0
 *   Q8_0  d f16[nb][16], padded to 64 | nb × 8 lines, quants biased by 128
 *   IQ4_NL as Q4_0
 *   A4    as Q4_1, d and m in bf16; A5 the same as Q5_1
 *   A8    d f32[nb][16], m f32[nb][16] | nb × 8 lines, quants biased by 128
 *   MXFP4 e u8[nb][16], padded to 64 | nb × 4 lines, as Q4_0
 *   Q2_K  1 line of (d f16, dmin f16) | 4 lines of the 16 bytes of scales and mins |
 *         16 lines of quants; as GGML's columns
 *   Q3_K  d f16[16], padded to 64 | 3 lines of the 12 bytes of scales, as GGML's
 *         column | 8 × 3 lines of quants, unsigned (4 is still to be subtracted).
 *         Lines 3i … 3i + 2 hold, in byte j of a row, the numbers v_s of k = 32s + 4i + j:
 *         v_0 | v_1 << 3 | (v_6 >> 1) << 6,  v_2 | v_3 << 3 | (v_7 >> 1) << 6,
 *         v_4 | v_5 << 3 | (v_6 & 1) << 6 | (v_7 & 1) << 7
 *   Q4_K  1 line of (d f16, dmin f16) | 3 lines of the 12 bytes of scales and
 *         mins | 32 lines of quants; each line a column of GGML's block
 *   Q5_K  1 line of (d f16, dmin f16) | 3 lines of scales and mins | 8 lines of fifth
 *         bits | 32 lines of quants; as GGML's columns
 *   Q6_K  d f16[16], padded to 64 | 4 lines of the 16 scales | 2 halves of
 *         128 k: 8 lines of high bits, 16 lines of low bits; as GGML's columns
 *   IQ4_XS 1 line of (d f16, high bits of the scales u16) | 1 line of low bits of the
 *         scales | 8 × 4 lines of quants, as Q4_0; as GGML's columns
 *   V2    d f16[nb][16], padded to 64 | nb × 2 lines
 *         line i: bits 2s, 2s + 1 of a byte are those of k = 8s + 4i …
 *   V3    d f16[16], the table of all rows, padded to 64 | 2 lines of the 8 bytes of scales |
 *         8 × 3 lines of quants, as Q3_K
 *   V4    d f16[16], the table of all rows, padded to 64 | 1 line of the 4 bytes of scales |
 *         8 × 4 lines of quants, as Q4_0
 *
 * Tiles have the size of the stored rows, except those of Q3_K (d fills half a line: 1792 bytes for
 * 1760) and Q6_K (3392 for 3360).
 *
 * Types that are recoded (files/quant/recode.h) have the tiles and the kernels of the type that
 * they are recoded to, and no line in types.def: IQ1 and IQ2 those of V3 (3.375 bits per weight),
 * IQ3 of V4 (4.25), TQ1_0, TQ2_0, Q1_0 and Q2_0 of V2 (2.5).
 *
 * Rows beyond the weight's last row are zero. */
#ifndef AK_ENGINE_CPU_LAYOUT_H
#define AK_ENGINE_CPU_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/backend/shapes.h"
#include "files/quant/type.h"

enum {
    AK_TILE_ROWS = 16,
    AK_TILE_K = 256,
    AK_BLOCK_K = 32,
    AK_TILE_BLOCKS = AK_TILE_K / AK_BLOCK_K,
    AK_LINE_BYTES = 64 /* an interleaved line: 16 rows × 4 k */
};

/* Part of the packed cache's key. Raise a layout's number if its bytes change. */
enum ak_cpu_layout {
    AK_CPU_LAYOUT_ROWS_1 = 0x0101,
    AK_CPU_LAYOUT_TILES_1 = 0x0201,
    AK_CPU_LAYOUT_SLICES_1 = 0x0301 /* slices.h */
};

/* The type whose blocks the tiles of `type` hold, and whose kernels multiply them: `type` itself
 * unless it is recoded. */
enum ak_quant_type ak_cpu_tile_type(enum ak_quant_type type);

/* Whether `type` has a tile layout. */
bool ak_cpu_is_tiled(enum ak_quant_type type);

/* Bytes of one tile with `blocks` (1 … 8) blocks of 32 k. */
size_t ak_cpu_tile_bytes(enum ak_quant_type type, size_t blocks);

/* Bytes of all tiles of 16 rows; k is a multiple of the type's block. */
size_t ak_cpu_tile_row_bytes(enum ak_quant_type type, size_t k);

/* Packs 16 rows of k stored elements. A NULL row is packed as zeros. */
void ak_cpu_pack_tiles(enum ak_quant_type type, const void *const rows[AK_TILE_ROWS], size_t k,
                       uint8_t *restrict tiles);

/* Packs one stored row of k elements as row `row` (0 … 15) of a tile row; the other rows keep their
 * bytes. Not for types that keep bits of several rows in one byte (Q5_0), or are recoded. */
void ak_cpu_pack_row(enum ak_quant_type type, const void *restrict stored, size_t k, size_t row,
                     uint8_t *restrict tiles);

/* Restores the blocks, of ak_cpu_tile_type, of one row (0 … 15) of one tile of `blocks` blocks of
 * 32 k. */
void ak_cpu_gather_row(enum ak_quant_type type, const uint8_t *restrict tile, size_t blocks,
                       size_t row, uint8_t *restrict stored);

/* Copies block `block` of a tile of `blocks` blocks of 32 k: `out` is a tile of that block alone.
 * For types with blocks of 32. */
void ak_cpu_copy_block(enum ak_quant_type type, const uint8_t *restrict tile, size_t blocks,
                       size_t block, uint8_t *restrict out);

/* Dequantizes row `row` (0 … 15) of a tile row of k elements. Equals the type's reference
 * dequantization of the stored row bit for bit. */
void ak_cpu_dequantize_row(enum ak_quant_type type, const uint8_t *restrict tiles, size_t k,
                           size_t row, float *restrict out);

/* ---- Activations -----------------------------------------------------------
 * The token vectors that a product reads. Quantized once per use, symmetric:
 * q = round(x · 127/max|x|), ties to even, scale = max|x|/127. A block with a largest magnitude
 * below 2^-100 is zero. A block with an infinity or a NaN has q = 0 and a NaN scale. */

/* One scale per 32, for types with blocks of 32 elements. */
struct ak_cpu_act32 {
    int8_t q[32];
    float scale;
    /* −8 · Σq: the offset of Q4_0 and V2. Q5_0 and MXFP4 take it twice, Q8_0 and IQ4_NL 16
     * times. */
    int32_t minus8_sum;
    float scaled_sum; /* scale · Σq, for types with a minimum */
    uint32_t unused;
};

/* One scale per 256, for K-types and IQ4_XS. The pair sums are for products with pairs of minimums
 * (Q2_K, Q4_K, Q5_K) or scales (Q3_K). Their order makes the pairs match the even and the odd bytes
 * of a word of the weight's scales; |Σq| ≤ 32 · 127 = 4064. */
struct ak_cpu_act256 {
    int8_t q[256];
    int32_t minus32_sum16[16]; /* −32 · Σq per 16: the offset of Q6_K */
    int16_t pair_sum32[8];     /* Σq per 32, in the order 0 2 1 3 4 6 5 7 */
    /* Σq per 16, in the order 0 2 1 3 4 6 5 7 8 10 9 11 12 14 13 15 */
    int16_t pair_sum16[16];
    float scale;
    int32_t sum; /* Σq of all 256 */
    uint32_t unused[2];
};
_Static_assert(sizeof(struct ak_cpu_act32) == 48 && sizeof(struct ak_cpu_act256) == 384,
               "six lines per 256 elements");

/* The last two are the interleaved token layouts of GEMM (engine/cpu/kernels.h). */
enum ak_cpu_act_format {
    /* formats that a weight type selects */
    AK_CPU_ACT_F32 = AK_BACKEND_PROFILE_FLOAT,
    AK_CPU_ACT_Q8_32 = AK_BACKEND_PROFILE_SCALE32,
    AK_CPU_ACT_Q8_256 = AK_BACKEND_PROFILE_SCALE256,
    AK_CPU_ACT_TYPE_COUNT = AK_BACKEND_PROFILE_CLASSES,
    AK_CPU_ACT_PANEL_F32 = AK_CPU_ACT_TYPE_COUNT,
    AK_CPU_ACT_PANEL_BF16,
    AK_CPU_ACT_COUNT
};

/* Activation format of a product with weights of `type`. */
enum ak_cpu_act_format ak_cpu_type_act_format(enum ak_quant_type type);

/* Elements that share a scale in Q8_32 or Q8_256. */
static inline size_t ak_cpu_act_block_elems(enum ak_cpu_act_format format)
{
    return format == AK_CPU_ACT_Q8_32 ? AK_BLOCK_K : AK_TILE_K;
}

/* Bytes of one token's activations of k elements, a multiple of 64. Float rows are padded with
 * zeros to a multiple of 32 elements. */
size_t ak_cpu_act_bytes(enum ak_cpu_act_format format, size_t k);

#endif
