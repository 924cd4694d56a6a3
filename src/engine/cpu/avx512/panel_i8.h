/* Int8 panels of up to AK_PANEL_I8_TILES_MAX tile rows: sizes of their parts, and the scaling of
 * sums. Unpacking writes panels, GEMM reads them.
 *
 * Blocks of 32, for T tile rows: 8 words × T lines | T lines of f32 scales | T lines of f32
 * minimums, for types that have them.
 *
 * K-types: 8 parts of 32 k, each 8 words × T lines and its integer scales, 0, 1 or 2 (one per 16) ×
 * T lines | T lines of f32 d | with minimums: T lines of f32 dmin, 4 or 8 × T lines of pairs of
 * minimums. */
#ifndef AK_ENGINE_CPU_AVX512_PANEL_I8_H
#define AK_ENGINE_CPU_AVX512_PANEL_I8_H

#include "engine/cpu/avx512/interleaved.h"

enum { PARTS = AK_TILE_K / AK_BLOCK_K };

AK_KERNEL size_t panel_block_bytes(bool minimum, size_t n_tiles)
{
    return n_tiles * (size_t)(BLOCK_WORDS + (minimum ? 2 : 1)) * AK_LINE_BYTES;
}

/* Scaling of a K-type: k per integer scale in the panel, then minimums or the quants' offset. */
enum ak_avx512_scaling {
    SCALES_32_MINIMUMS,    /* Q4_K, Q5_K */
    SCALES_32_OFFSET_128,  /* IQ4_XS, V4 */
    SCALES_16_OFFSET_32,   /* Q6_K */
    SCALES_16_OFFSET_128,  /* V3 */
    NO_SCALES_MINIMUMS_16, /* Q2_K */
    NO_SCALES_OFFSET_124   /* Q3_K */
};

AK_KERNEL enum ak_avx512_scaling scaling_of(enum ak_quant_type type)
{
    switch (type) {
    case AK_QUANT_Q2_K: return NO_SCALES_MINIMUMS_16;
    case AK_QUANT_Q3_K: return NO_SCALES_OFFSET_124;
    case AK_QUANT_Q4_K:
    case AK_QUANT_Q5_K: return SCALES_32_MINIMUMS;
    case AK_QUANT_Q6_K: return SCALES_16_OFFSET_32;
    case AK_QUANT_V3: return SCALES_16_OFFSET_128;
    default: return SCALES_32_OFFSET_128;
    }
}

/* Scales per 32 k. */
AK_KERNEL size_t scales_of_part(enum ak_avx512_scaling scaling)
{
    return scaling == SCALES_16_OFFSET_32 || scaling == SCALES_16_OFFSET_128 ? 2 :
           scaling == SCALES_32_MINIMUMS || scaling == SCALES_32_OFFSET_128  ? 1 :
                                                                               0;
}

AK_KERNEL size_t minimum_pairs(enum ak_avx512_scaling scaling)
{
    return scaling == SCALES_32_MINIMUMS ? 4 : scaling == NO_SCALES_MINIMUMS_16 ? 8 : 0;
}

AK_KERNEL size_t part_bytes(enum ak_avx512_scaling scaling, size_t n_tiles)
{
    return n_tiles * (BLOCK_WORDS + scales_of_part(scaling)) * AK_LINE_BYTES;
}

AK_KERNEL size_t super_block_bytes(enum ak_avx512_scaling scaling, size_t n_tiles)
{
    size_t factors = minimum_pairs(scaling) ? 2 + minimum_pairs(scaling) : 1;
    return PARTS * part_bytes(scaling, n_tiles) + n_tiles * factors * AK_LINE_BYTES;
}

AK_KERNEL const struct ak_cpu_act256 *act_of(const uint8_t *activations, size_t act_bytes, size_t t)
{
    return (const struct ak_cpu_act256 *)(const void *)(activations + t * act_bytes);
}

/* Initial value of the sums of scale `scale` (of a part, or of a super-block). */
AK_KERNEL __m512i start_of(enum ak_avx512_scaling scaling, const struct ak_cpu_act256 *act,
                           size_t scale)
{
    switch (scaling) {
    case SCALES_16_OFFSET_32: return _mm512_set1_epi32(act->minus32_sum16[scale]);
    case SCALES_16_OFFSET_128: return _mm512_set1_epi32(4 * act->minus32_sum16[scale]);
    case SCALES_32_OFFSET_128:
        return _mm512_set1_epi32(
            4 * (act->minus32_sum16[2 * scale] + act->minus32_sum16[2 * scale + 1]));
    case NO_SCALES_OFFSET_124: return _mm512_set1_epi32(-124 * act->sum);
    default: return _mm512_setzero_si512();
    }
}

/* Factors at the end of a super-block of one tile row, for all tokens. */
struct ak_avx512_super_block_factors {
    __m512 d, dmin;
    __m512i minimums[8];
};

/* `rest` is what follows the tile row's parts. */
AK_KERNEL struct ak_avx512_super_block_factors load_factors(enum ak_avx512_scaling scaling,
                                                            size_t n_tiles, const uint8_t *rest)
{
    struct ak_avx512_super_block_factors f = { .d = _mm512_loadu_ps(rest) };
    if (minimum_pairs(scaling))
        f.dmin = _mm512_loadu_ps(rest + n_tiles * AK_LINE_BYTES);
    AK_UNROLLED_FOR (size_t i = 0; i < minimum_pairs(scaling); i++)
        f.minimums[i] = load_line(rest + (2 + i) * n_tiles * AK_LINE_BYTES);
    return f;
}

/* acc + d·scale·scaled − dmin·scale·minimums */
AK_KERNEL __m512 add_super_block(enum ak_avx512_scaling scaling,
                                 const struct ak_avx512_super_block_factors *f, __m512i scaled,
                                 const struct ak_cpu_act256 *act, __m512 acc)
{
    __m512 scale = _mm512_set1_ps(act->scale);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(f->d, scale), _mm512_cvtepi32_ps(scaled), acc);
    if (minimum_pairs(scaling)) {
        const int16_t *pairs = scaling == NO_SCALES_MINIMUMS_16 ? act->pair_sum16 : act->pair_sum32;
        __m512i minimum = _mm512_setzero_si512();
        AK_UNROLLED_FOR (size_t i = 0; i < minimum_pairs(scaling); i++)
            minimum = _mm512_dpwssd_epi32(minimum, f->minimums[i], broadcast_word(pairs + 2 * i));
        acc = _mm512_fnmadd_ps(_mm512_mul_ps(f->dmin, scale), _mm512_cvtepi32_ps(minimum), acc);
    }
    return acc;
}

#endif
