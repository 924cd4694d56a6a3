/* Products of the K-types: blocks of 256 whose sub-blocks have scales, applied in
 * integers by the very vpmaddwd that widens 16-bit sums.
 *
 * One function, dot_supers, makes them all: 16 rows (two vectors) times up to
 * GROUP tokens over some super-blocks, from a tile as it is packed (few tokens) or
 * from an open slab (many). A slab is, super-block after super-block of a tile row,
 * 64 lines with a byte a quant and then the factors:
 *
 *   Q4_K  8 lines of scales, each twice as int16 | 4 lines of pairs of minimums
 *         one line of f32 scales, one of f32 scales of the minimums
 *   Q6_K  16 lines of scales, each twice as int16 | one line of f32 scales
 *
 * A tile's factors are brought into the same form first.
 *
 * Bounds of the 16-bit sums: 8 × 2·15·127 = 30480 (Q4_K, a sub-block of 32),
 * 2 × 2·63·127 = 32004 (Q6_K, half a sub-block of 16). */
#include "base/mem.h"
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/tiles.h"

enum {
    CHUNK_SUPERS = 2, /* of an open slab, for all tokens before the next ones: stays in the nearest cache */
    PREFETCH_AHEAD = 16384,
    OPEN_QUANTS = AK_TILE_K / 4 * AK_LINE_BYTES,
    MIN_PAIRS = 4,
    FACTOR_LINES = 17, /* at most */
    Q4_K_SCALES_AT = 64,
    Q4_K_QUANTS_AT = 256,
    Q6_K_SCALES_AT = 64,
    Q6_K_HALVES_AT = 320,
    Q6_K_HALF_BYTES = 1536,
    Q6_K_LOW_AT = 512
};

AK_KERNEL size_t tile_bytes(enum ak_type type)
{
    return type == AK_Q4_K ? 2304 : 3392;
}

AK_KERNEL size_t sub_blocks(enum ak_type type)
{
    return type == AK_Q4_K ? 8 : 16;
}

AK_KERNEL size_t open_super_bytes(enum ak_type type)
{
    return OPEN_QUANTS + (type == AK_Q4_K ? 8 + MIN_PAIRS + 2 : 16 + 1) * AK_LINE_BYTES;
}

/* Byte j (0 … 3) of each 32-bit lane, zero-extended or sign-extended, in both its
 * 16-bit halves. */
AK_KERNEL __m256i double_unsigned(__m256i bytes, size_t j)
{
    __m256i pick = _mm256_set_epi32(0x0c000c, 0x080008, 0x040004, 0x000000, 0x0c000c, 0x080008, 0x040004, 0x000000);
    pick = _mm256_or_si256(pick, _mm256_set1_epi32((int)(0x80008000u + j * 0x10001u)));
    return _mm256_shuffle_epi8(bytes, pick);
}

AK_KERNEL __m256i double_signed(__m256i bytes, size_t j)
{
    return _mm256_srai_epi16(_mm256_slli_epi16(double_unsigned(bytes, j), 8), 8);
}

AK_KERNEL void q4_k_factors(const uint8_t *tile, uint8_t *factors)
{
    const __m256i six = _mm256_set1_epi8(63), four = _mm256_set1_epi8(15), top = _mm256_set1_epi8(48);
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; half++, tile += HALF_LINE, factors += HALF_LINE) {
        const uint8_t *lines = tile + Q4_K_SCALES_AT;
        __m256i a = load_bytes(lines), b = load_bytes(lines + AK_LINE_BYTES), c = load_bytes(lines + 2 * AK_LINE_BYTES);
        __m256i scales[2] = { _mm256_and_si256(a, six),
                              _mm256_or_si256(_mm256_and_si256(c, four), _mm256_and_si256(_mm256_srli_epi16(a, 2), top)) };
        __m256i minimums[2] = { _mm256_and_si256(b, six), _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(c, 4), four),
                                                                          _mm256_and_si256(_mm256_srli_epi16(b, 2), top)) };
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j++)
            store_bytes(factors + j * AK_LINE_BYTES, double_unsigned(scales[j / 4], j % 4));
        uint8_t *rest = factors + 8 * AK_LINE_BYTES;
#pragma GCC unroll 2
        for (size_t j = 0; j < 2; j++, rest += 2 * AK_LINE_BYTES) {
            store_bytes(rest, _mm256_and_si256(minimums[j], _mm256_set1_epi16(0xff)));
            store_bytes(rest + AK_LINE_BYTES, _mm256_srli_epi16(minimums[j], 8));
        }
        /* a lane has the row's scale in its lower half, that of its minimums in the upper */
        __m256i both = load_bytes(tile);
        both = _mm256_packus_epi32(_mm256_and_si256(both, _mm256_set1_epi32(0xffff)), _mm256_srli_epi32(both, 16));
        both = _mm256_permute4x64_epi64(both, 0xd8);
        _mm256_storeu_ps((float *)(void *)rest, _mm256_cvtph_ps(_mm256_castsi256_si128(both)));
        _mm256_storeu_ps((float *)(void *)(rest + AK_LINE_BYTES), _mm256_cvtph_ps(_mm256_extracti128_si256(both, 1)));
    }
}

AK_KERNEL void q6_k_factors(const uint8_t *tile, uint8_t *factors)
{
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; half++, factors += HALF_LINE) {
#pragma GCC unroll 16
        for (size_t j = 0; j < 16; j++) {
            __m256i scales = load_bytes(tile + Q6_K_SCALES_AT + j / 4 * AK_LINE_BYTES + half * HALF_LINE);
            store_bytes(factors + j * AK_LINE_BYTES, double_signed(scales, j % 4));
        }
        _mm256_storeu_ps((float *)(void *)(factors + 16 * AK_LINE_BYTES), load_f16(tile + half * 16));
    }
}

AK_KERNEL void tile_factors(enum ak_type type, const uint8_t *tile, uint8_t *factors)
{
    if (type == AK_Q4_K)
        q4_k_factors(tile, factors);
    else
        q6_k_factors(tile, factors);
}

/* A super-block falls into parts of 32 k that share lines: Q4_K 4 × 2 (nibbles of
 * 8 lines), Q6_K 2 × 4 (quarters of a half). An open one has nothing to share. */
AK_KERNEL size_t parts_of_lines(enum ak_type type, bool open)
{
    return open ? 1 : type == AK_Q4_K ? 2 : 4;
}

/* Rows 8·half … 8·half + 7 of word i of a part of group `group`. */
AK_KERNEL __m256i super_word(enum ak_type type, bool open, const uint8_t *w, size_t group, size_t part, size_t i, size_t half)
{
    const __m256i four = _mm256_set1_epi8(15), fifth_sixth = _mm256_set1_epi8(48);
    w += i * AK_LINE_BYTES + half * HALF_LINE;
    if (open)
        return load_bytes(w + group * BLOCK_WORDS * AK_LINE_BYTES);
    if (type == AK_Q4_K) {
        __m256i v = load_bytes(w + Q4_K_QUANTS_AT + group * BLOCK_WORDS * AK_LINE_BYTES);
        return _mm256_and_si256(part == 0 ? v : _mm256_srli_epi16(v, 4), four);
    }
    w += Q6_K_HALVES_AT + group * Q6_K_HALF_BYTES;
    __m256i low = load_bytes(w + Q6_K_LOW_AT + part % 2 * BLOCK_WORDS * AK_LINE_BYTES), high = load_bytes(w);
    low = _mm256_and_si256(part < 2 ? low : _mm256_srli_epi16(low, 4), four);
    if (part < 2)
        high = _mm256_slli_epi16(high, part == 0 ? 4 : 2);
    else if (part == 3)
        high = _mm256_srli_epi16(high, 2);
    return _mm256_or_si256(low, _mm256_and_si256(high, fifth_sixth));
}

/* sums[t][half] += narrow[t][half] · the sub-block's scale. */
AK_KERNEL void add_scaled(__m256i sums[GROUP][2], __m256i narrow[GROUP][2], const uint8_t *scale, size_t n)
{
#pragma GCC unroll 4
    for (size_t t = 0; t < GROUP; t++) {
        if (t >= n)
            continue;
#pragma GCC unroll 2
        for (size_t half = 0; half < 2; half++) {
            __m256i scaled = _mm256_madd_epi16(narrow[t][half], load_bytes(scale + half * HALF_LINE));
            sums[t][half] = in_order(_mm256_add_epi32(sums[t][half], scaled));
        }
    }
}

/* sums[t][half] = Σ_j scale_j · Σ w·a over a super-block, w without its offset. */
AK_KERNEL void super_sums(enum ak_type type, bool open, const uint8_t *w, const uint8_t *factors, const uint8_t *act, size_t act_bytes,
                          size_t n, __m256i sums[GROUP][2])
{
    size_t parts = parts_of_lines(type, open);
#pragma GCC unroll 4
    for (size_t t = 0; t < GROUP; t++)
        sums[t][0] = sums[t][1] = _mm256_setzero_si256();
    for (size_t group = 0; group < 8 / parts; group++) {
#pragma GCC unroll 4
        for (size_t part = 0; part < parts; part++, act += AK_BLOCK_K) {
            if (!open)
                prefetch(w + (group * parts + part) * (tile_bytes(type) / 8), tile_bytes(type) / 8, PREFETCH_AHEAD, false);
            __m256i narrow[GROUP][2];
#pragma GCC unroll 4
            for (size_t t = 0; t < GROUP; t++)
                narrow[t][0] = narrow[t][1] = _mm256_setzero_si256();
            for (size_t first = 0; first < BLOCK_WORDS; first += 2) {
#pragma GCC unroll 2
                for (size_t i = first; i < first + 2; i++) {
                    __m256i word[2] = { super_word(type, open, w, group, part, i, 0), super_word(type, open, w, group, part, i, 1) };
#pragma GCC unroll 4
                    for (size_t t = 0; t < GROUP; t++) {
                        if (t >= n)
                            continue;
                        __m256i a = spread_word(act + t * act_bytes + i * 4);
#pragma GCC unroll 2
                        for (size_t half = 0; half < 2; half++) {
                            __m256i pairs = _mm256_maddubs_epi16(word[half], a);
                            bool starts = type == AK_Q6_K && i == first;
                            narrow[t][half] = in_order(starts ? pairs : _mm256_add_epi16(narrow[t][half], pairs));
                        }
                    }
                }
                if (type == AK_Q6_K)
                    add_scaled(sums, narrow, factors + first / 4 * AK_LINE_BYTES, n);
            }
            if (type == AK_Q4_K)
                add_scaled(sums, narrow, factors, n);
            factors += sub_blocks(type) / 8 * AK_LINE_BYTES;
        }
    }
}

/* −Σq of each 16 in pairs of int16, to be multiplied with pairs of scales. */
AK_KERNEL void pair_sums16(const struct ak_act256 *act, int32_t pairs[8])
{
    __m256i low = _mm256_srai_epi32(load_bytes(act->minus32_sum16), 5), high = _mm256_srai_epi32(load_bytes(act->minus32_sum16 + 8), 5);
    store_bytes(pairs, _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8));
}

/* −32 · Σ_j scale_j · Σ_j q: what the offset of Q6_K adds. */
AK_KERNEL __m256i q6_k_offset(const uint8_t *scales, const int32_t pairs[8])
{
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        const uint8_t *two = scales + 2 * i * AK_LINE_BYTES;
        __m256i both = _mm256_blend_epi16(load_bytes(two), load_bytes(two + AK_LINE_BYTES), 0xaa);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(both, _mm256_set1_epi32(pairs[i])));
    }
    return _mm256_slli_epi32(sum, 5);
}

/* Σ_j min_j · Σ_j q of Q4_K. */
AK_KERNEL __m256i q4_k_minimum(const uint8_t *minimums, const struct ak_act256 *act)
{
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (size_t i = 0; i < MIN_PAIRS; i++)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load_bytes(minimums + i * AK_LINE_BYTES), spread_word(act->pair_sum32 + 2 * i)));
    return sum;
}

/* Adds n_supers super-blocks of w to y, for n ≤ GROUP tokens. */
AK_KERNEL void dot_supers(enum ak_type type, bool open, const uint8_t *w, size_t n_supers, const uint8_t *acts, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    uint8_t own[FACTOR_LINES * AK_LINE_BYTES] __attribute__((aligned(AK_LINE_BYTES)));
    for (size_t s = 0; s < n_supers; s++, acts += sizeof(struct ak_act256), w += open ? open_super_bytes(type) : tile_bytes(type)) {
        const uint8_t *factors = open ? w + OPEN_QUANTS : own;
        if (!open)
            tile_factors(type, w, own);
        __m256i sums[GROUP][2];
        super_sums(type, open, w, factors, acts, act_bytes, n, sums);
        const uint8_t *rest = factors + sub_blocks(type) * AK_LINE_BYTES;
#pragma GCC unroll 4
        for (size_t t = 0; t < GROUP; t++) {
            if (t >= n)
                continue;
            const struct ak_act256 *act = (const struct ak_act256 *)(const void *)(acts + t * act_bytes);
            __m256 act_scale = _mm256_set1_ps(act->scale);
            int32_t pairs[8];
            if (type == AK_Q6_K)
                pair_sums16(act, pairs);
#pragma GCC unroll 2
            for (size_t half = 0; half < 2; half++) {
                float *out = y + t * y_stride + half * 8;
                __m256 acc = _mm256_loadu_ps(out);
                const float *scales = (const float *)(const void *)(rest + half * HALF_LINE);
                if (type == AK_Q4_K) {
                    __m256i minimum = q4_k_minimum(rest + half * HALF_LINE, act);
                    scales += MIN_PAIRS * AK_TILE_ROWS;
                    acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(scales), act_scale), _mm256_cvtepi32_ps(sums[t][half]), acc);
                    __m256 min_scale = _mm256_mul_ps(_mm256_loadu_ps(scales + AK_TILE_ROWS), act_scale);
                    acc = _mm256_fnmadd_ps(min_scale, _mm256_cvtepi32_ps(minimum), acc);
                } else {
                    __m256i sum = _mm256_add_epi32(sums[t][half], q6_k_offset(factors + half * HALF_LINE, pairs));
                    acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(scales), act_scale), _mm256_cvtepi32_ps(sum), acc);
                }
                _mm256_storeu_ps(out, acc);
            }
        }
    }
}

/* dot_supers for any n, GROUP tokens at a time. */
AK_KERNEL void dot_tokens(enum ak_type type, bool open, const uint8_t *w, size_t n_supers, const uint8_t *acts, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    for (; n >= GROUP; n -= GROUP, acts += GROUP * act_bytes, y += GROUP * y_stride)
        dot_supers(type, open, w, n_supers, acts, act_bytes, GROUP, y, y_stride);
    for (; open && n > 0; n--, acts += act_bytes, y += y_stride)
        dot_supers(type, true, w, n_supers, acts, act_bytes, 1, y, y_stride);
    if (open)
        return;
    switch (n) {
    case 3: dot_supers(type, false, w, n_supers, acts, act_bytes, 3, y, y_stride); break;
    case 2: dot_supers(type, false, w, n_supers, acts, act_bytes, 2, y, y_stride); break;
    case 1: dot_supers(type, false, w, n_supers, acts, act_bytes, 1, y, y_stride); break;
    default: break;
    }
}

AK_KERNEL void dot_tiles(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                         float *y, size_t y_stride)
{
    size_t n_supers = k / AK_TILE_K;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        zero_rows(y, y_stride, n);
        for (size_t s = 0; s < n_supers; s++, tiles += tile_bytes(type))
            dot_tokens(type, false, tiles, 1, acts + s * sizeof(struct ak_act256), act_bytes, n, y, y_stride);
    }
}

AK_KERNEL void open_slab(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, uint8_t *slab)
{
    size_t parts = parts_of_lines(type, false);
    for (size_t s = 0; s < n_tiles * (k / AK_TILE_K); s++, tiles += tile_bytes(type)) {
        for (size_t group = 0; group < 8 / parts; group++)
#pragma GCC unroll 4
            for (size_t part = 0; part < parts; part++)
                for (size_t i = 0; i < BLOCK_WORDS; i++, slab += AK_LINE_BYTES) {
                    store_bytes(slab, super_word(type, false, tiles, group, part, i, 0));
                    store_bytes(slab + HALF_LINE, super_word(type, false, tiles, group, part, i, 1));
                }
        tile_factors(type, tiles, slab);
        slab += open_super_bytes(type) - OPEN_QUANTS;
    }
}

AK_KERNEL void dot_slab(enum ak_type type, const uint8_t *slab, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                        float *y, size_t y_stride)
{
    size_t n_supers = k / AK_TILE_K;
    for (size_t i = 0; i < n_tiles; i++)
        zero_rows(y + i * AK_TILE_ROWS, y_stride, n);
    for (size_t s = 0; s < n_supers; s += CHUNK_SUPERS) {
        size_t supers = ak_min_size(n_supers - s, CHUNK_SUPERS);
        for (size_t i = 0; i < n_tiles; i++)
            dot_tokens(type, true, slab + (i * n_supers + s) * open_super_bytes(type), supers,
                       acts + s * sizeof(struct ak_act256), act_bytes, n, y + i * AK_TILE_ROWS, y_stride);
    }
}

void ak_avx2_dot_q4_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_K, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_q6_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q6_K, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_open_q4_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_K, tiles, n_tiles, k, slab);
}

void ak_avx2_open_q6_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q6_K, tiles, n_tiles, k, slab);
}

void ak_avx2_dot_slab_q4_k(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q4_K, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_slab_q6_k(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q6_K, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}
