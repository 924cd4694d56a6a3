/* Int8 panels for the AMX tile unit: layout and sizes. unpack.c makes them; panel_i8_32.c and
 * panel_i8_256.c run GEMM over them. An interleaved line (16 rows × 4 k) is one row of the unit's
 * second operand, so 16 lines fill a register. The first operand has one token per row.
 *
 * The panel has tile after tile of 256 k, tile rows side by side within them:
 *
 *   blocks of 32   per block: 8 lines of signed quants | a line of f32 scales |
 *                  a line of f32 minimums, for types that have them
 *   K-types        64 lines of low bytes | 64 lines of high bytes, if integer scales are
 *                  folded in | the end of AVX-512's panel: f32 d, dmin, pairs of
 *                  minimums
 *
 * Folded, scale times quant has up to 13 bits and a sign: 256 · (signed high byte) + low byte. A
 * super-block is then two sums over all of its k, without scales in between. */
#ifndef AK_ENGINE_CPU_AMX_PANEL_I8_H
#define AK_ENGINE_CPU_AMX_PANEL_I8_H

#include "engine/cpu/avx512/panel_i8.h"

enum {
    GROUP = 16, /* rows per register: tokens, or interleaved lines */
    TILE_WORDS = AK_TILE_K / 4,
    PLANE_BYTES = TILE_WORDS * AK_LINE_BYTES,
    UNIT_K = 64 /* k per instruction */
};

typedef int32_t ak_amx_tile_sums[GROUP][AK_TILE_ROWS];

AK_KERNEL size_t block32_bytes(bool minimum)
{
    return panel_block_bytes(minimum, 1);
}

AK_KERNEL bool is_folded(enum ak_avx512_scaling scaling)
{
    return scales_of_part(scaling) != 0;
}

AK_KERNEL size_t rest_bytes(enum ak_avx512_scaling scaling)
{
    return super_block_bytes(scaling, 1) - PARTS * part_bytes(scaling, 1);
}

AK_KERNEL size_t folded_bytes(enum ak_avx512_scaling scaling)
{
    return (is_folded(scaling) ? 2 : 1) * (size_t)PLANE_BYTES + rest_bytes(scaling);
}

#endif
