/* Unpacks panels for the tile unit from AVX-512's: folds offsets and integer scales into the quants
 * once, because the unit cannot apply them between two products. */
#include "cpu/amx/amx.h"
#include "cpu/amx/panel_i8.h"
#include "cpu/avx512/avx512.h"

/* ---- Blocks of 32 ------------------------------------------------------- */
AK_KERNEL void unpack_tile32(ak_unpack_panel_i8_fn *unpack, char offset, bool minimum,
                             const uint8_t *tile, size_t k, uint8_t *to)
{
    unpack(tile, 1, k, to);
    if (offset == 0)
        return;
    const __m512i taken = _mm512_set1_epi8(offset);
    for (size_t b = 0; b < k / AK_BLOCK_K; b++, to += block32_bytes(minimum))
        AK_UNROLL
    for (size_t i = 0; i < BLOCK_WORDS; i++)
        store_line(to + i * AK_LINE_BYTES,
                   _mm512_sub_epi8(load_line(to + i * AK_LINE_BYTES), taken));
}

/* ---- K-types ------------------------------------------------------------ */
/* scale · 128 or · 32: subtracted from a word times its scale here, where AVX-512 subtracts it from
 * the sum. */
AK_KERNEL __m512i scaled_offset(enum ak_avx512_scaling scaling, __m512i scale)
{
    switch (scaling) {
    case SCALES_32_OFFSET_128: return _mm512_slli_epi16(scale, 7);
    case SCALES_16_OFFSET_32: return _mm512_slli_epi16(scale, 5);
    default: return _mm512_setzero_si512();
    }
}

/* Multiplies a part's words by its scales in 16 bits; stores them as low and high bytes. */
AK_KERNEL void fold_part(enum ak_avx512_scaling scaling, const uint8_t *part, uint8_t *low)
{
    const __m512i byte = _mm512_set1_epi16(0xff);
    const size_t subs = scales_of_part(scaling), words = BLOCK_WORDS / subs;
    for (size_t sub = 0; sub < subs; sub++) {
        __m512i scale = load_line(part + (BLOCK_WORDS + sub) * AK_LINE_BYTES);
        scale = _mm512_mask_mov_epi16(_mm512_slli_epi32(scale, 16), 0x55555555u, scale);
        __m512i offset = scaled_offset(scaling, scale);
        AK_UNROLL
        for (size_t i = 0; i < words; i++, low += AK_LINE_BYTES) {
            __m512i w = load_line(part + (sub * words + i) * AK_LINE_BYTES);
            __m512i even =
                _mm512_sub_epi16(_mm512_mullo_epi16(_mm512_and_si512(w, byte), scale), offset);
            __m512i odd =
                _mm512_sub_epi16(_mm512_mullo_epi16(_mm512_srli_epi16(w, 8), scale), offset);
            store_line(low,
                       _mm512_mask_mov_epi8(_mm512_slli_epi16(odd, 8), 0x5555555555555555u, even));
            store_line(low + PLANE_BYTES,
                       _mm512_mask_mov_epi8(odd, 0x5555555555555555u, _mm512_srli_epi16(even, 8)));
        }
    }
}

AK_KERNEL void unpack_tile256(ak_unpack_panel_i8_fn *unpack, enum ak_avx512_scaling scaling,
                              const uint8_t *tile, uint8_t *to)
{
    _Alignas(64) uint8_t panel[PARTS * (BLOCK_WORDS + 2) * AK_LINE_BYTES + 10 * AK_LINE_BYTES];
    if (!is_folded(scaling)) {
        unpack(tile, 1, AK_TILE_K, to);
        return;
    }
    unpack(tile, 1, AK_TILE_K, panel);
    for (size_t i = 0; i < PARTS; i++)
        fold_part(scaling, panel + i * part_bytes(scaling, 1),
                  to + i * BLOCK_WORDS * AK_LINE_BYTES);
    memcpy(to + 2 * PLANE_BYTES, panel + PARTS * part_bytes(scaling, 1), rest_bytes(scaling));
}

/* ---- Kernels ------------------------------------------------------------ */
/* The tiles of a tile row are consecutive in memory; a panel has the tiles of all its tile rows
 * side by side. */
#define UNPACK_PANEL(name, type, tile_bytes, unpack_tile)                                          \
    void name(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict panel)    \
    {                                                                                              \
        for (size_t r = 0; r < n_tiles; r++) {                                                     \
            uint8_t *to = panel;                                                                   \
            for (size_t left = k, part; left > 0; left -= part, to += n_tiles * (tile_bytes)) {    \
                part = ak_min_size(left, AK_TILE_K);                                               \
                unpack_tile;                                                                       \
                tiles += ak_cpu_tile_row_bytes(type, part);                                        \
            }                                                                                      \
        }                                                                                          \
    }

#define UNPACK_32(name, type, unpack, offset, minimum)                                             \
    UNPACK_PANEL(name, type, part / AK_BLOCK_K * block32_bytes(minimum),                           \
                 unpack_tile32(unpack, (char)(offset), minimum, tiles, part,                       \
                               to + r * (part / AK_BLOCK_K) * block32_bytes(minimum)))

#define UNPACK_256(name, type, unpack, scaling)                                                    \
    UNPACK_PANEL(name, type, folded_bytes(scaling),                                                \
                 unpack_tile256(unpack, scaling, tiles, to + r * folded_bytes(scaling)))

UNPACK_32(ak_amx_unpack_q4_0, AK_QUANT_Q4_0, ak_avx512_unpack_q4_0, 8, false)
UNPACK_32(ak_amx_unpack_q4_1, AK_QUANT_Q4_1, ak_avx512_unpack_q4_1, 0, true)
UNPACK_32(ak_amx_unpack_q5_0, AK_QUANT_Q5_0, ak_avx512_unpack_q5_0, 16, false)
UNPACK_32(ak_amx_unpack_q5_1, AK_QUANT_Q5_1, ak_avx512_unpack_q5_1, 0, true)
UNPACK_32(ak_amx_unpack_q8_0, AK_QUANT_Q8_0, ak_avx512_unpack_q8_0, 128, false)
UNPACK_32(ak_amx_unpack_iq4_nl, AK_QUANT_IQ4_NL, ak_avx512_unpack_iq4_nl, 128, false)
UNPACK_32(ak_amx_unpack_mxfp4, AK_QUANT_MXFP4, ak_avx512_unpack_mxfp4, 16, false)
UNPACK_32(ak_amx_unpack_a4, AK_QUANT_A4, ak_avx512_unpack_a4, 0, true)
UNPACK_32(ak_amx_unpack_a5, AK_QUANT_A5, ak_avx512_unpack_a5, 0, true)
UNPACK_32(ak_amx_unpack_a8, AK_QUANT_A8, ak_avx512_unpack_a8, 128, true)
UNPACK_256(ak_amx_unpack_q2_k, AK_QUANT_Q2_K, ak_avx512_unpack_q2_k, NO_SCALES_MINIMUMS_16)
UNPACK_256(ak_amx_unpack_q3_k, AK_QUANT_Q3_K, ak_avx512_unpack_q3_k, NO_SCALES_OFFSET_124)
UNPACK_256(ak_amx_unpack_q4_k, AK_QUANT_Q4_K, ak_avx512_unpack_q4_k, SCALES_32_MINIMUMS)
UNPACK_256(ak_amx_unpack_q5_k, AK_QUANT_Q5_K, ak_avx512_unpack_q5_k, SCALES_32_MINIMUMS)
UNPACK_256(ak_amx_unpack_q6_k, AK_QUANT_Q6_K, ak_avx512_unpack_q6_k, SCALES_16_OFFSET_32)
UNPACK_256(ak_amx_unpack_iq4_xs, AK_QUANT_IQ4_XS, ak_avx512_unpack_iq4_xs, SCALES_32_OFFSET_128)
