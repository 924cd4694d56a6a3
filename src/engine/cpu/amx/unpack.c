/* Unpacks panels for the tile unit from AVX-512's: folds offsets and integer scales into the quants
 * once, because the unit cannot apply them between two products. */
#include "engine/cpu/setter.h"
#include "engine/cpu/amx/panel_i8.h"
#include "engine/cpu/avx512/avx512.h"

/* ---- Blocks of 32 ------------------------------------------------------- */
AK_KERNEL void unpack_tile32(ak_unpack_panel_i8_fn *unpack, char offset, bool minimum,
                             const uint8_t *tile, size_t k, uint8_t *to)
{
    unpack(tile, 1, k, to);
    if (offset == 0)
        return;
    const __m512i taken = _mm512_set1_epi8(offset);
    for (size_t b = 0; b < k / AK_BLOCK_K; b++, to += block32_bytes(minimum))
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++)
            store_line(to + i * AK_LINE_BYTES,
                       _mm512_sub_epi8(load_line(to + i * AK_LINE_BYTES), taken));
}

/* ---- K-types ------------------------------------------------------------ */
/* scale · 128 or · 32: subtracted from a word times its scale here, where AVX-512 subtracts it from
 * the sum. */
AK_KERNEL __m512i scaled_offset(enum ak_avx512_scaling scaling, __m512i scale)
{
    switch (scaling) {
    case SCALES_16_OFFSET_128:
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
        AK_UNROLLED_FOR (size_t i = 0; i < words; i++, low += AK_LINE_BYTES) {
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
/* What the panel's words of a type exceed its quants by. */
AK_KERNEL uint8_t offset32(enum ak_quant_type type)
{
    switch (offset_of(type)) {
    case OFFSET_8: return 8;
    case OFFSET_16: return 16;
    case OFFSET_128:
    case OFFSET_128_MINIMUM: return 128;
    default: return 0;
    }
}

/* The tiles of a tile row are consecutive in memory; a panel has the tiles of all its tile rows
 * side by side. */
AK_KERNEL void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles,
                               size_t k, uint8_t *panel)
{
    static ak_unpack_panel_i8_fn *const avx512[AK_QUANT_COUNT] = {
#define TILE32(name, NAME) [AK_QUANT_##NAME] = ak_avx512_unpack_##name,
#define TILE256(name, NAME) [AK_QUANT_##NAME] = ak_avx512_unpack_##name,
#include "engine/cpu/types.def"
    };
    const bool is_32 = ak_cpu_type_act_format(type) == AK_CPU_ACT_Q8_32,
               minimum = has_minimum(type);
    for (size_t r = 0; r < n_tiles; r++) {
        uint8_t *to = panel;
        for (size_t left = k, part, bytes; left > 0; left -= part, to += n_tiles * bytes) {
            part = ak_min_size(left, AK_TILE_K);
            bytes =
                is_32 ? part / AK_BLOCK_K * block32_bytes(minimum) : folded_bytes(scaling_of(type));
            if (is_32)
                unpack_tile32(avx512[type], (char)offset32(type), minimum, tiles, part,
                              to + r * bytes);
            else
                unpack_tile256(avx512[type], scaling_of(type), tiles, to + r * bytes);
            tiles += ak_cpu_tile_row_bytes(type, part);
        }
    }
}

#define TILE32(name, NAME) static AK_UNPACK_PANEL_I8(unpack_##name, AK_QUANT_##NAME);
#define TILE256(name, NAME) static AK_UNPACK_PANEL_I8(unpack_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

AK_SETTER(unpack)
{
#define TILE32(name, NAME) k->tile[AK_QUANT_##NAME].unpack_panel_i8 = unpack_##name;
#define TILE256(name, NAME) k->tile[AK_QUANT_##NAME].unpack_panel_i8 = unpack_##name;
#include "engine/cpu/types.def"
}
