/* Panels as the tile unit takes them. An interleaved line (16 rows × 4 k) is a row of its
 * second operand, so 16 of them are a register; its first has a token in each row.
 *
 * Tile after tile of 256 k, tile rows side by side within them:
 *
 *   blocks of 32   a block after the other: 8 lines of signed quants | a line of f32
 *                  scales | of f32 minimums, for the types that have them
 *   K-types        64 lines of low bytes | 64 lines of high bytes, where the integer
 *                  scales are multiplied in | what ends AVX-512's panel: f32 d, dmin, pairs
 *                  of minimums
 *
 * Scale times quant of a K-type has 13 bits: 256 · (signed high byte) + low byte. So a
 * super-block is two sums over all of its k, without scales between. */
#ifndef AK_CPU_AMX_PANEL_I8_H
#define AK_CPU_AMX_PANEL_I8_H

#include "cpu/avx512/panel_i8.h"

enum {
    GROUP = 16, /* rows of a register: tokens, or interleaved lines */
    TILE_WORDS = AK_TILE_K / 4,
    PLANE_BYTES = TILE_WORDS * AK_LINE_BYTES,
    UNIT_K = 64 /* k that one instruction takes */
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
