/* Products of the types whose blocks have 32 elements.
 *
 * One function, dot_blocks, makes them all: 16 rows (two vectors) times up to
 * GROUP tokens over some blocks, from a tile as it is packed (few tokens) or from
 * an open slab (many). A slab is, tile row after tile row and block after block:
 * 8 lines with a byte a quant, a line of f32 scales, one of f32 minimums (Q4_1). */
#include "base/mem.h"
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/words.h"

enum {
    SLAB_GROUP = 4, /* tokens: their sums, 16-bit and float, fill the registers */
    CHUNK_BLOCKS = 16, /* of an open slab, for all tokens before the next ones: stays in the nearest cache */
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
            prefetch(w + b * packed_block_bytes(type), packed_block_bytes(type), 8192, true);
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

/* dot_blocks for any n, `group` tokens at a time. */
AK_KERNEL void dot_tokens(enum ak_type type, bool open, size_t group, const uint8_t *w, size_t n_blocks, const uint8_t *acts,
                          size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    for (; n >= group; n -= group, acts += group * act_bytes, y += group * y_stride)
        dot_blocks(type, open, w, n_blocks, acts, act_bytes, group, y, y_stride);
    if (open) {
        for (; n > 0; n--, acts += act_bytes, y += y_stride)
            dot_blocks(type, open, w, n_blocks, acts, act_bytes, 1, y, y_stride);
        return;
    }
    switch (n) {
    case 3: dot_blocks(type, open, w, n_blocks, acts, act_bytes, 3, y, y_stride); break;
    case 2: dot_blocks(type, open, w, n_blocks, acts, act_bytes, 2, y, y_stride); break;
    case 1: dot_blocks(type, open, w, n_blocks, acts, act_bytes, 1, y, y_stride); break;
    default: break;
    }
}

AK_KERNEL void zero_rows(float *y, size_t y_stride, size_t n)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, AK_TILE_ROWS * sizeof *y);
}

AK_KERNEL void dot_tiles(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                         float *y, size_t y_stride)
{
    size_t whole = ak_tile_bytes(type, AK_TILE_BLOCKS), n_blocks = k / AK_BLOCK_K;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        zero_rows(y, y_stride, n);
        for (size_t b = 0; b < n_blocks; b += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
            dot_tokens(type, false, GROUP, tiles, blocks, acts + b * sizeof(struct ak_act32), act_bytes, n, y, y_stride);
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
#pragma GCC unroll 8
                    for (size_t word = 0; word < BLOCK_WORDS; word++)
                        store_bytes(slab + word * AK_LINE_BYTES + half * HALF_LINE, block_word(type, false, at.lines, at.high, word % 4, word / 4, half));
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
            dot_tokens(type, true, SLAB_GROUP, slab + i * tile_bytes + b * open_block_bytes(type), blocks,
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
