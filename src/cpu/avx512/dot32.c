/* Products of the types whose blocks have 32 elements.
 *
 * One function, dot_group, makes them all: one or two rows of tiles times a few
 * tokens over the whole of k, from tiles as they are packed (few tokens) or from
 * an open slab (many). Integer and float sums stay in registers throughout.
 *
 * A slab is, block after block: 8 lines with a byte a quant, a line of f32 scales,
 * one of f32 minimums (Q4_1); with two tile rows each line is followed by that of
 * the second one. */
#include "base/mem.h"
#include "cpu/avx512/avx512.h"
#include "cpu/avx512/lanes.h"

enum {
    BLOCK_WORDS = AK_BLOCK_K / 4,
    GROUP = 8,     /* most tokens at once: 8 integer and 8 float sums of one tile row */
    SLAB_GROUP = 6 /* 12 and 12 of two */
};

AK_KERNEL bool has_minimum(enum ak_type type)
{
    return type == AK_Q4_1;
}

AK_KERNEL size_t open_block_bytes(enum ak_type type, size_t n_tiles)
{
    size_t lines = has_minimum(type) ? BLOCK_WORDS + 2 : BLOCK_WORDS + 1;
    return n_tiles * lines * AK_LINE_BYTES;
}

/* Where the parts of a tile of packed blocks are. */
struct tile {
    const uint8_t *scales, *minimums, *high, *lines, *end;
};

AK_KERNEL struct tile find_parts(enum ak_type type, const uint8_t *w, size_t blocks)
{
    struct tile t = { .scales = w, .minimums = w + blocks * 32 };
    t.high = w + (has_minimum(type) ? blocks * 64 : (blocks + 1) / 2 * 64);
    t.lines = t.high + (type == AK_Q5_0 ? blocks * 64 : 0);
    t.end = t.lines + blocks * (type == AK_Q8_0 ? 512 : 256);
    return t;
}

/* Word i of a packed block as unsigned bytes. */
AK_KERNEL __m512i block_word(enum ak_type type, const uint8_t *lines, const uint8_t *high, size_t i)
{
    if (type == AK_Q8_0)
        return load_line(lines + i * AK_LINE_BYTES);
    __m512i v = load_line(lines + i % 4 * AK_LINE_BYTES);
    v = _mm512_and_si512(i < 4 ? v : _mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
    if (type != AK_Q5_0)
        return v;
    uint64_t fifth;
    memcpy(&fifth, high + i * 8, sizeof fifth);
    return _mm512_mask_add_epi8(v, (__mmask64)fifth, v, _mm512_set1_epi8(16));
}

/* What an integer sum starts at: the activations' sum times the type's offset. */
AK_KERNEL __m512i first_sum(enum ak_type type, const struct ak_act32 *act)
{
    switch (type) {
    case AK_Q4_0: return _mm512_set1_epi32(act->minus8_sum);
    case AK_Q5_0: return _mm512_slli_epi32(_mm512_set1_epi32(act->minus8_sum), 1);
    case AK_Q8_0: return _mm512_slli_epi32(_mm512_set1_epi32(act->minus8_sum), 4);
    default: return _mm512_setzero_si512();
    }
}

AK_KERNEL const struct ak_act32 *act_at(const uint8_t *acts, size_t act_bytes, size_t t)
{
    return (const struct ak_act32 *)(const void *)(acts + t * act_bytes);
}

AK_KERNEL __m512 add_block(enum ak_type type, __m512 acc, __m512i sum, __m512 scale, __m512 minimum, const struct ak_act32 *act)
{
    acc = _mm512_fmadd_ps(_mm512_mul_ps(scale, _mm512_set1_ps(act->scale)), _mm512_cvtepi32_ps(sum), acc);
    return has_minimum(type) ? _mm512_fmadd_ps(minimum, _mm512_set1_ps(act->scaled_sum), acc) : acc;
}

/* ---- Few tokens, packed tiles ---------------------------------------------- */

/* Sums of one packed block. With one or two tokens high nibbles are left where
 * they are, summed apart and shifted once; with more a shift a word is cheaper. */
AK_KERNEL void block_sums(enum ak_type type, const uint8_t *lines, const uint8_t *high, const uint8_t *acts, size_t act_bytes, size_t n,
                          __m512i sums[GROUP])
{
    const __m512i upper = _mm512_set1_epi8((char)0xf0);
    bool apart = n <= 2 && (type == AK_Q4_0 || type == AK_Q4_1);
    __m512i times16[GROUP];
#pragma GCC unroll 8
    for (size_t t = 0; t < n; t++) {
        sums[t] = first_sum(type, act_at(acts, act_bytes, t));
        times16[t] = _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (size_t step = 0; step < BLOCK_WORDS; step++) {
        size_t i = step % 2 * 4 + step / 2; /* both nibbles of a line while it is there */
        bool shifted = apart && i >= 4;
        __m512i w = shifted ? _mm512_and_si512(load_line(lines + i % 4 * AK_LINE_BYTES), upper) : block_word(type, lines, high, i);
#pragma GCC unroll 8
        for (size_t t = 0; t < n; t++) {
            __m512i *sum = shifted ? &times16[t] : &sums[t];
            *sum = _mm512_dpbusd_epi32(*sum, w, spread_word(acts + t * act_bytes + i * 4));
        }
    }
#pragma GCC unroll 8
    for (size_t t = 0; t < n; t++)
        if (apart)
            sums[t] = _mm512_add_epi32(sums[t], _mm512_srai_epi32(times16[t], 4));
}

/* One row of tiles times n ≤ GROUP tokens, n a constant. Gives the next row. */
AK_KERNEL const uint8_t *dot_tile_row(enum ak_type type, const uint8_t *w, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                                      float *y, size_t y_stride)
{
    __m512 acc[GROUP];
#pragma GCC unroll 8
    for (size_t t = 0; t < n; t++)
        acc[t] = _mm512_setzero_ps();
    for (size_t left = k / AK_BLOCK_K, blocks; left > 0; left -= blocks) {
        blocks = ak_min_size(left, AK_TILE_BLOCKS);
        struct tile tile = find_parts(type, w, blocks);
        for (size_t b = 0; b < blocks; b++, acts += sizeof(struct ak_act32)) {
            __m512i sums[GROUP];
            block_sums(type, tile.lines, tile.high, acts, act_bytes, n, sums);
            __m512 scale = load_f16(tile.scales), minimum = has_minimum(type) ? load_f16(tile.minimums) : scale;
#pragma GCC unroll 8
            for (size_t t = 0; t < n; t++)
                acc[t] = add_block(type, acc[t], sums[t], scale, minimum, act_at(acts, act_bytes, t));
            tile.scales += 32;
            tile.minimums += 32;
            tile.high += 64;
            tile.lines += type == AK_Q8_0 ? 512 : 256;
        }
        w = tile.end;
    }
#pragma GCC unroll 8
    for (size_t t = 0; t < n; t++)
        _mm512_storeu_ps(y + t * y_stride, acc[t]);
    return w;
}

AK_KERNEL const uint8_t *dot_few(enum ak_type type, const uint8_t *w, size_t k, const uint8_t *acts, size_t act_bytes, size_t n, float *y,
                                 size_t y_stride)
{
    switch (n) {
    case 1: return dot_tile_row(type, w, k, acts, act_bytes, 1, y, y_stride);
    case 2: return dot_tile_row(type, w, k, acts, act_bytes, 2, y, y_stride);
    case 3: return dot_tile_row(type, w, k, acts, act_bytes, 3, y, y_stride);
    case 4: return dot_tile_row(type, w, k, acts, act_bytes, 4, y, y_stride);
    case 5: return dot_tile_row(type, w, k, acts, act_bytes, 5, y, y_stride);
    case 6: return dot_tile_row(type, w, k, acts, act_bytes, 6, y, y_stride);
    case 7: return dot_tile_row(type, w, k, acts, act_bytes, 7, y, y_stride);
    default: return dot_tile_row(type, w, k, acts, act_bytes, 8, y, y_stride);
    }
}

/* Two groups of tokens walk a tile row one after the other: the second finds it
 * in the cache. */
AK_KERNEL void dot_tiles(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                         float *y, size_t y_stride)
{
    if (n == 1) {
        for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS)
            tiles = dot_tile_row(type, tiles, k, acts, act_bytes, 1, y, y_stride);
        return;
    }
    size_t first = n > GROUP ? (n + 1) / 2 : n;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        const uint8_t *next = dot_few(type, tiles, k, acts, act_bytes, first, y, y_stride);
        if (first < n)
            dot_few(type, tiles, k, acts + first * act_bytes, act_bytes, n - first, y + first * y_stride, y_stride);
        tiles = next;
    }
}

/* ---- Many tokens, an open slab --------------------------------------------- */

AK_KERNEL void open_slab(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, uint8_t *slab)
{
    size_t line = n_tiles * AK_LINE_BYTES, block = open_block_bytes(type, n_tiles);
    for (size_t i = 0; i < n_tiles; i++) {
        uint8_t *to = slab + i * AK_LINE_BYTES;
        for (size_t left = k / AK_BLOCK_K, blocks; left > 0; left -= blocks) {
            blocks = ak_min_size(left, AK_TILE_BLOCKS);
            struct tile tile = find_parts(type, tiles, blocks);
            for (size_t b = 0; b < blocks; b++, to += block) {
                const uint8_t *lines = tile.lines + b * (type == AK_Q8_0 ? 512 : 256);
#pragma GCC unroll 8
                for (size_t word = 0; word < BLOCK_WORDS; word++)
                    store_line(to + word * line, block_word(type, lines, tile.high + b * 64, word));
                _mm512_storeu_ps(to + BLOCK_WORDS * line, load_f16(tile.scales + b * 32));
                if (has_minimum(type))
                    _mm512_storeu_ps(to + (BLOCK_WORDS + 1) * line, load_f16(tile.minimums + b * 32));
            }
            tiles = tile.end;
        }
    }
}

/* A slab of `rows` tile rows times n ≤ SLAB_GROUP tokens; both constants. */
AK_KERNEL void dot_group(enum ak_type type, size_t rows, const uint8_t *slab, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                         float *y, size_t y_stride)
{
    __m512 acc[AK_SLAB_TILES][SLAB_GROUP];
#pragma GCC unroll 2
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 6
        for (size_t t = 0; t < n; t++)
            acc[r][t] = _mm512_setzero_ps();
    for (size_t b = k / AK_BLOCK_K; b > 0; b--, acts += sizeof(struct ak_act32), slab += open_block_bytes(type, rows)) {
        __m512i sums[AK_SLAB_TILES][SLAB_GROUP];
#pragma GCC unroll 6
        for (size_t t = 0; t < n; t++)
#pragma GCC unroll 2
            for (size_t r = 0; r < rows; r++)
                sums[r][t] = first_sum(type, act_at(acts, act_bytes, t));
#pragma GCC unroll 8
        for (size_t i = 0; i < BLOCK_WORDS; i++) {
            __m512i w[AK_SLAB_TILES];
#pragma GCC unroll 2
            for (size_t r = 0; r < rows; r++)
                w[r] = load_line(slab + (i * rows + r) * AK_LINE_BYTES);
#pragma GCC unroll 6
            for (size_t t = 0; t < n; t++) {
                __m512i a = spread_word(acts + t * act_bytes + i * 4);
#pragma GCC unroll 2
                for (size_t r = 0; r < rows; r++)
                    sums[r][t] = _mm512_dpbusd_epi32(sums[r][t], w[r], a);
            }
        }
#pragma GCC unroll 2
        for (size_t r = 0; r < rows; r++) {
            __m512 scale = _mm512_loadu_ps(slab + (BLOCK_WORDS * rows + r) * AK_LINE_BYTES), minimum = scale;
            if (has_minimum(type))
                minimum = _mm512_loadu_ps(slab + ((BLOCK_WORDS + 1) * rows + r) * AK_LINE_BYTES);
#pragma GCC unroll 6
            for (size_t t = 0; t < n; t++)
                acc[r][t] = add_block(type, acc[r][t], sums[r][t], scale, minimum, act_at(acts, act_bytes, t));
        }
    }
#pragma GCC unroll 2
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 6
        for (size_t t = 0; t < n; t++)
            _mm512_storeu_ps(y + t * y_stride + r * AK_TILE_ROWS, acc[r][t]);
}

AK_KERNEL void dot_rest(enum ak_type type, size_t rows, const uint8_t *slab, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                        float *y, size_t y_stride)
{
    switch (n) {
    case 1: dot_group(type, rows, slab, k, acts, act_bytes, 1, y, y_stride); break;
    case 2: dot_group(type, rows, slab, k, acts, act_bytes, 2, y, y_stride); break;
    case 3: dot_group(type, rows, slab, k, acts, act_bytes, 3, y, y_stride); break;
    case 4: dot_group(type, rows, slab, k, acts, act_bytes, 4, y, y_stride); break;
    case 5: dot_group(type, rows, slab, k, acts, act_bytes, 5, y, y_stride); break;
    default: break;
    }
}

AK_KERNEL void dot_slab(enum ak_type type, const uint8_t *slab, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                        float *y, size_t y_stride)
{
    for (; n >= SLAB_GROUP; n -= SLAB_GROUP, acts += SLAB_GROUP * act_bytes, y += SLAB_GROUP * y_stride) {
        if (n_tiles == AK_SLAB_TILES)
            dot_group(type, AK_SLAB_TILES, slab, k, acts, act_bytes, SLAB_GROUP, y, y_stride);
        else
            dot_group(type, 1, slab, k, acts, act_bytes, SLAB_GROUP, y, y_stride);
    }
    if (n_tiles == AK_SLAB_TILES)
        dot_rest(type, AK_SLAB_TILES, slab, k, acts, act_bytes, n, y, y_stride);
    else
        dot_rest(type, 1, slab, k, acts, act_bytes, n, y, y_stride);
}

/* ---- Public --------------------------------------------------------------- */

void ak_avx512_dot_q4_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_0, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_open_q4_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_0, tiles, n_tiles, k, slab);
}

void ak_avx512_dot_slab_q4_0(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q4_0, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_dot_q4_1(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_1, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_open_q4_1(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_1, tiles, n_tiles, k, slab);
}

void ak_avx512_dot_slab_q4_1(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q4_1, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_dot_q5_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q5_0, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_open_q5_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q5_0, tiles, n_tiles, k, slab);
}

void ak_avx512_dot_slab_q5_0(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q5_0, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_dot_q8_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q8_0, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_open_q8_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q8_0, tiles, n_tiles, k, slab);
}

void ak_avx512_dot_slab_q8_0(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q8_0, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}
