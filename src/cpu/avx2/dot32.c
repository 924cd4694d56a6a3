/* Products of the types whose blocks have 32 elements.
 *
 * One function, dot_blocks, makes them all: 16 rows (two vectors) times up to
 * GROUP tokens over some blocks, from a tile as it is packed (few tokens) or from
 * an open slab (many). A slab is, tile row after tile row and block after block:
 * 8 lines with a byte a quant, a line of f32 scales, one of f32 minimums (Q4_1).
 *
 * vpmaddubsw adds two products in 16 bits with saturation, and sums of its
 * results wrap, so each type widens to 32 bits before 32767 can be reached.
 * Activations are within ±127:
 *
 *   4 bits   8 × 2·15·127 = 30480    a whole block
 *   5 bits   4 × 2·31·127 = 31496    half a block
 *   8 bits       2·128·127 = 32512   every word, on magnitudes: |w| · sign(a, w) */
#include "base/mem.h"
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/tiles.h"

enum {
    CHUNK_BLOCKS = 16, /* of an open slab, for all tokens before the next ones: stays in the nearest cache */
    PREFETCH_AHEAD = 8192,
    OPEN_QUANTS = BLOCK_WORDS * AK_LINE_BYTES
};

AK_KERNEL size_t open_block_bytes(enum ak_type type)
{
    return OPEN_QUANTS + (type == AK_Q4_1 ? 2 : 1) * AK_LINE_BYTES;
}

/* What a block takes in a whole tile. */
AK_KERNEL size_t packed_block_bytes(enum ak_type type)
{
    return type == AK_Q4_0 ? 288 : type == AK_Q4_1 ? 320 : type == AK_Q5_0 ? 352 : 544;
}

/* Where the parts of one block are. */
struct block {
    const uint8_t *scales, *minimums, *high, *lines;
};

AK_KERNEL struct block find_block(enum ak_type type, bool open, const uint8_t *w, size_t n_blocks, size_t b)
{
    if (open) {
        const uint8_t *lines = w + b * open_block_bytes(type);
        return (struct block){ lines + OPEN_QUANTS, lines + OPEN_QUANTS + AK_LINE_BYTES, NULL, lines };
    }
    const uint8_t *quants = w + (type == AK_Q4_1 ? n_blocks * 64 : (n_blocks + 1) / 2 * 64);
    const uint8_t *high = quants + b * 64;
    if (type == AK_Q5_0)
        quants += n_blocks * 64;
    return (struct block){ w + b * 32, w + n_blocks * 32 + b * 32, high, quants + b * (type == AK_Q8_0 ? 512 : 256) };
}

AK_KERNEL __m256 load_factor(bool open, const uint8_t *factors, size_t half)
{
    return open ? _mm256_loadu_ps((const float *)(const void *)factors + half * 8) : load_f16(factors + half * 16);
}

/* 16 in each byte whose bit is set in the 32 bits at `bits`. */
AK_KERNEL __m256i fifth_bits(const uint8_t *bits)
{
    const __m256i byte_of = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i own = _mm256_and_si256(_mm256_shuffle_epi8(spread_word(bits), byte_of), bit_of);
    return _mm256_and_si256(_mm256_cmpeq_epi8(own, bit_of), _mm256_set1_epi8(16));
}

/* Rows 8·half … 8·half + 7 of word line + 4·nibble of a block, which is what lies
 * in that nibble of that line of a 4-bit type. */
AK_KERNEL __m256i block_word(enum ak_type type, bool open, const uint8_t *lines, const uint8_t *high, size_t line, size_t nibble,
                             size_t half)
{
    size_t i = line + 4 * nibble;
    lines += half * HALF_LINE;
    if (open)
        return load_bytes(lines + i * AK_LINE_BYTES);
    if (type == AK_Q8_0)
        return _mm256_xor_si256(load_bytes(lines + i * AK_LINE_BYTES), _mm256_set1_epi8(-128));
    __m256i v = load_bytes(lines + line * AK_LINE_BYTES);
    v = _mm256_and_si256(nibble == 0 ? v : _mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
    return type == AK_Q5_0 ? _mm256_or_si256(v, fifth_bits(high + i * 8 + half * 4)) : v;
}

/* sums[t][half] = Σ w·a over the block for n ≤ GROUP tokens; unsigned w where the
 * type has an offset or a minimum. */
AK_KERNEL void block_sums(enum ak_type type, bool open, const uint8_t *lines, const uint8_t *high, const uint8_t *act, size_t act_bytes,
                          size_t n, __m256i sums[GROUP][2])
{
    const __m256i ones = _mm256_set1_epi16(1);
    const size_t together = type == AK_Q5_0 ? 2 : 1; /* lines: half a block, what 16 bits have room for */
    __m256i narrow[GROUP][2];
#pragma GCC unroll 4
    for (size_t t = 0; t < GROUP; t++)
        sums[t][0] = sums[t][1] = narrow[t][0] = narrow[t][1] = _mm256_setzero_si256();
    for (size_t line = 0; line < BLOCK_WORDS / 2; line += together) {
#pragma GCC unroll 4
        for (size_t step = 0; step < 2 * together; step++) {
            size_t nibble = step % 2, i = line + step / 2 + nibble * 4; /* both nibbles of a line while it is there */
            __m256i w[2] = { block_word(type, open, lines, high, line + step / 2, nibble, 0),
                             block_word(type, open, lines, high, line + step / 2, nibble, 1) };
            __m256i magnitude[2] = { _mm256_abs_epi8(w[0]), _mm256_abs_epi8(w[1]) };
#pragma GCC unroll 4
            for (size_t t = 0; t < GROUP; t++) {
                if (t >= n)
                    continue;
                __m256i a = spread_word(act + t * act_bytes + i * 4);
#pragma GCC unroll 2
                for (size_t half = 0; half < 2; half++) {
                    if (type == AK_Q8_0) {
                        __m256i pairs = _mm256_maddubs_epi16(magnitude[half], _mm256_sign_epi8(a, w[half]));
                        sums[t][half] = in_order(_mm256_add_epi32(sums[t][half], _mm256_madd_epi16(pairs, ones)));
                    } else {
                        __m256i pairs = _mm256_maddubs_epi16(w[half], a);
                        bool starts = type == AK_Q5_0 && step == 0;
                        narrow[t][half] = in_order(starts ? pairs : _mm256_add_epi16(narrow[t][half], pairs));
                        if (type == AK_Q5_0 && step == 2 * together - 1)
                            sums[t][half] = in_order(_mm256_add_epi32(sums[t][half], _mm256_madd_epi16(narrow[t][half], ones)));
                    }
                }
            }
        }
    }
    if (type == AK_Q4_0 || type == AK_Q4_1)
#pragma GCC unroll 4
        for (size_t t = 0; t < GROUP; t++)
#pragma GCC unroll 2
            for (size_t half = 0; half < 2; half++)
                sums[t][half] = _mm256_madd_epi16(narrow[t][half], ones);
}

/* Adds blocks 0 … n_blocks − 1 of w to y, for n ≤ GROUP tokens. */
AK_KERNEL void dot_blocks(enum ak_type type, bool open, const uint8_t *w, size_t n_blocks, const uint8_t *acts, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    __m256 acc[GROUP][2];
#pragma GCC unroll 4
    for (size_t t = 0; t < GROUP; t++) {
        if (t >= n)
            continue;
        acc[t][0] = _mm256_loadu_ps(y + t * y_stride);
        acc[t][1] = _mm256_loadu_ps(y + t * y_stride + 8);
    }
    for (size_t b = 0; b < n_blocks; b++, acts += sizeof(struct ak_act32)) {
        struct block at = find_block(type, open, w, n_blocks, b);
        if (!open)
            prefetch(w + b * packed_block_bytes(type), packed_block_bytes(type), PREFETCH_AHEAD, true);
        __m256i sums[GROUP][2];
        block_sums(type, open, at.lines, at.high, acts, act_bytes, n, sums);
        __m256 scales[2] = { load_factor(open, at.scales, 0), load_factor(open, at.scales, 1) };
#pragma GCC unroll 4
        for (size_t t = 0; t < GROUP; t++) {
            if (t >= n)
                continue;
            const struct ak_act32 *act = (const struct ak_act32 *)(const void *)(acts + t * act_bytes);
            __m256 act_scale = _mm256_set1_ps(act->scale);
#pragma GCC unroll 2
            for (size_t half = 0; half < 2; half++) {
                __m256i sum = sums[t][half];
                if (type == AK_Q4_0)
                    sum = _mm256_add_epi32(sum, _mm256_set1_epi32(act->minus8_sum));
                if (type == AK_Q5_0)
                    sum = _mm256_add_epi32(sum, _mm256_set1_epi32(act->minus8_sum * 2));
                acc[t][half] = _mm256_fmadd_ps(_mm256_mul_ps(scales[half], act_scale), _mm256_cvtepi32_ps(sum), acc[t][half]);
                if (type == AK_Q4_1)
                    acc[t][half] = _mm256_fmadd_ps(load_factor(open, at.minimums, half), _mm256_set1_ps(act->scaled_sum), acc[t][half]);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < GROUP; t++) {
        if (t >= n)
            continue;
        _mm256_storeu_ps(y + t * y_stride, acc[t][0]);
        _mm256_storeu_ps(y + t * y_stride + 8, acc[t][1]);
    }
}

/* dot_blocks for any n, GROUP tokens at a time. */
AK_KERNEL void dot_tokens(enum ak_type type, bool open, const uint8_t *w, size_t n_blocks, const uint8_t *acts, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    for (; n >= GROUP; n -= GROUP, acts += GROUP * act_bytes, y += GROUP * y_stride)
        dot_blocks(type, open, w, n_blocks, acts, act_bytes, GROUP, y, y_stride);
    for (; open && n > 0; n--, acts += act_bytes, y += y_stride)
        dot_blocks(type, true, w, n_blocks, acts, act_bytes, 1, y, y_stride);
    if (open)
        return;
    switch (n) {
    case 3: dot_blocks(type, false, w, n_blocks, acts, act_bytes, 3, y, y_stride); break;
    case 2: dot_blocks(type, false, w, n_blocks, acts, act_bytes, 2, y, y_stride); break;
    case 1: dot_blocks(type, false, w, n_blocks, acts, act_bytes, 1, y, y_stride); break;
    default: break;
    }
}

AK_KERNEL void dot_tiles(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                         float *y, size_t y_stride)
{
    size_t whole = ak_tile_bytes(type, AK_TILE_BLOCKS), n_blocks = k / AK_BLOCK_K;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        zero_rows(y, y_stride, n);
        for (size_t b = 0; b < n_blocks; b += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
            dot_tokens(type, false, tiles, blocks, acts + b * sizeof(struct ak_act32), act_bytes, n, y, y_stride);
            tiles += blocks == AK_TILE_BLOCKS ? whole : ak_tile_bytes(type, blocks);
        }
    }
}

AK_KERNEL void open_slab(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, uint8_t *slab)
{
    size_t n_blocks = k / AK_BLOCK_K;
    for (size_t i = 0; i < n_tiles; i++) {
        for (size_t first = 0; first < n_blocks; first += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(n_blocks - first, AK_TILE_BLOCKS);
            for (size_t b = 0; b < blocks; b++, slab += open_block_bytes(type)) {
                struct block at = find_block(type, false, tiles, blocks, b);
                float *scales = (float *)(void *)(slab + OPEN_QUANTS);
#pragma GCC unroll 2
                for (size_t half = 0; half < 2; half++) {
                    uint8_t *to = slab + half * HALF_LINE;
                    for (size_t line = 0; line < BLOCK_WORDS / 2; line++, to += AK_LINE_BYTES) {
                        store_bytes(to, block_word(type, false, at.lines, at.high, line, 0, half));
                        store_bytes(to + 4 * AK_LINE_BYTES, block_word(type, false, at.lines, at.high, line, 1, half));
                    }
                    _mm256_storeu_ps(scales + half * 8, load_factor(false, at.scales, half));
                    if (type == AK_Q4_1)
                        _mm256_storeu_ps(scales + AK_TILE_ROWS + half * 8, load_factor(false, at.minimums, half));
                }
            }
            tiles += ak_tile_bytes(type, blocks);
        }
    }
}

AK_KERNEL void dot_slab(enum ak_type type, const uint8_t *slab, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                        float *y, size_t y_stride)
{
    size_t n_blocks = k / AK_BLOCK_K, tile_bytes = n_blocks * open_block_bytes(type);
    for (size_t i = 0; i < n_tiles; i++)
        zero_rows(y + i * AK_TILE_ROWS, y_stride, n);
    for (size_t b = 0; b < n_blocks; b += CHUNK_BLOCKS) {
        size_t blocks = ak_min_size(n_blocks - b, CHUNK_BLOCKS);
        for (size_t i = 0; i < n_tiles; i++)
            dot_tokens(type, true, slab + i * tile_bytes + b * open_block_bytes(type), blocks,
                       acts + b * sizeof(struct ak_act32), act_bytes, n, y + i * AK_TILE_ROWS, y_stride);
    }
}

void ak_avx2_dot_q4_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_0, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_q4_1(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_1, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_q5_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q5_0, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_q8_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q8_0, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_open_q4_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_0, tiles, n_tiles, k, slab);
}

void ak_avx2_open_q4_1(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_1, tiles, n_tiles, k, slab);
}

void ak_avx2_open_q5_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q5_0, tiles, n_tiles, k, slab);
}

void ak_avx2_open_q8_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q8_0, tiles, n_tiles, k, slab);
}

void ak_avx2_dot_slab_q4_0(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q4_0, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_slab_q4_1(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q4_1, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_slab_q5_0(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q5_0, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx2_dot_slab_q8_0(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q8_0, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}
