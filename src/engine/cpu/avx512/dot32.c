/* Skinny GEMM over tiles of types with blocks of 32 elements: one sequential stream, sums of 16
 * rows × up to 8 tokens in registers. */
#include "engine/cpu/slices.h"
#include "engine/cpu/setter.h"
#include "engine/cpu/avx512/interleaved.h"

enum { TOKENS_MAX = 8 }; /* tokens per pass */

AK_KERNEL const struct ak_cpu_act32 *act_at(const uint8_t *activations, size_t act_bytes, size_t t)
{
    return (const struct ak_cpu_act32 *)(const void *)(activations + t * act_bytes);
}

AK_KERNEL __m512 add_block(enum ak_quant_type type, __m512 acc, __m512i sum, __m512 scale,
                           __m512 minimum, const struct ak_cpu_act32 *act)
{
    acc = _mm512_fmadd_ps(_mm512_mul_ps(scale, _mm512_set1_ps(act->scale)), _mm512_cvtepi32_ps(sum),
                          acc);
    return has_minimum(type) ? _mm512_fmadd_ps(minimum, _mm512_set1_ps(act->scaled_sum), acc) : acc;
}

/* A Q8_0 matrix in slices (slices.h), a type of this file alone: its blocks are those of Q5_0 with
 * a block of the low slice. */
#define SLICES ((enum ak_quant_type)AK_QUANT_COUNT)

AK_KERNEL enum ak_quant_type stored_type(enum ak_quant_type type)
{
    return type == SLICES ? AK_QUANT_Q5_0 : type;
}

/* The low bits of word i, added to its number in the high slice. */
AK_KERNEL __m512i join_word(const struct ak_avx512_block *high, const uint8_t *low, size_t i)
{
    __m512i word = _mm512_slli_epi32(block_word(AK_QUANT_Q5_0, high, i), 3),
            pairs = _mm512_srli_epi32(load_line(low + i / 4 * AK_LINE_BYTES), i % 4 * 2),
            third = load_line(low + 2 * AK_LINE_BYTES);
    third = i < 2 ? _mm512_slli_epi32(third, (unsigned)(2 - i)) :
                    _mm512_srli_epi32(third, (unsigned)(i - 2));
    return or_masked(or_masked(word, pairs, 3), third, 4);
}

/* Sums of one packed block. With one or two tokens high nibbles are not shifted: their sums are
 * kept separately and shifted once. With more tokens one shift per word is cheaper. */
AK_KERNEL void block_sums(enum ak_quant_type type, const struct ak_avx512_block *at,
                          const uint8_t *low, const uint8_t *activations, size_t act_bytes,
                          size_t n, __m512i sums[TOKENS_MAX])
{
    const __m512i upper = _mm512_set1_epi8((char)0xf0);
    bool apart = n <= 2 && (type == AK_QUANT_Q4_0 || type == AK_QUANT_Q4_1 || type == AK_QUANT_A4);
    __m512i times16[TOKENS_MAX];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        sums[t] = block_offset(type == SLICES ? OFFSET_128 : offset_of(type),
                               act_at(activations, act_bytes, t));
        times16[t] = _mm512_setzero_si512();
    }
    AK_UNROLLED_FOR (size_t step = 0; step < BLOCK_WORDS; step++) {
        /* both nibbles of a line while it is loaded */
        size_t i = has_bytes(type) ? step : step % 2 * 4 + step / 2;
        bool shifted = apart && i >= 4;
        __m512i w = shifted ?
                        _mm512_and_si512(load_line(at->lines + i % 4 * AK_LINE_BYTES), upper) :
                    type == SLICES ? join_word(at, low, i) :
                                     block_word(type, at, i);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m512i *sum = shifted ? &times16[t] : &sums[t];
            *sum =
                _mm512_dpbusd_epi32(*sum, w, broadcast_word(activations + t * act_bytes + i * 4));
        }
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        if (apart)
            sums[t] = _mm512_add_epi32(sums[t], _mm512_srai_epi32(times16[t], 4));
}

/* A tile row. Its lines are prefetched `distance` bytes ahead. With distance 0 a tile's scales are
 * loaded before its quants, in address order: any other order gets a third of the memory
 * bandwidth. */
struct tile_row {
    const uint8_t *at;
    size_t distance;
    const uint8_t *low; /* SLICES: the low slice */
    size_t low_distance;
};

/* A tile row times n ≤ TOKENS_MAX tokens, n a constant. Returns the next tile row. */
AK_KERNEL const uint8_t *dot_tile_row(enum ak_quant_type type, struct tile_row w, size_t k,
                                      const uint8_t *activations, size_t act_bytes, size_t n,
                                      float *y, size_t y_stride)
{
    __m512 acc[TOKENS_MAX];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        acc[t] = _mm512_setzero_ps();
    for (size_t left = k / AK_BLOCK_K, blocks; left > 0; left -= blocks) {
        blocks = ak_min_size(left, AK_TILE_BLOCKS);
        struct ak_avx512_block at = first_block(stored_type(type), w.at, blocks);
        if (w.distance)
            ak_cpu_prefetch(w.at, (size_t)(at.lines - w.at), w.distance);
        else
            ak_cpu_load_lines(w.at, (size_t)(at.lines - w.at));
        for (size_t b = 0; b < blocks;
             b++, activations += sizeof(struct ak_cpu_act32), next_block(type, &at)) {
            __m512i sums[TOKENS_MAX];
            if (w.distance)
                ak_cpu_prefetch(at.lines, block_bytes(type), w.distance);
            if (type == SLICES)
                ak_cpu_prefetch(w.low, AK_SLICES_LOW_BLOCK_BYTES, w.low_distance);
            block_sums(type, &at, w.low, activations, act_bytes, n, sums);
            if (type == SLICES)
                w.low += AK_SLICES_LOW_BLOCK_BYTES;
            __m512 scale = block_scale(type, &at),
                   minimum = has_minimum(type) ? block_minimum(type, &at) : scale;
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                acc[t] = add_block(type, acc[t], sums[t], scale, minimum,
                                   act_at(activations, act_bytes, t));
        }
        w.at = at.lines;
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        _mm512_storeu_ps(y + t * y_stride, acc[t]);
    return w.at;
}

AK_KERNEL const uint8_t *dot_skinny(enum ak_quant_type type, struct tile_row w, size_t k,
                                    const uint8_t *activations, size_t act_bytes, size_t n,
                                    float *y, size_t y_stride)
{
    switch (n) {
    case 1: return dot_tile_row(type, w, k, activations, act_bytes, 1, y, y_stride);
    case 2: return dot_tile_row(type, w, k, activations, act_bytes, 2, y, y_stride);
    case 3: return dot_tile_row(type, w, k, activations, act_bytes, 3, y, y_stride);
    case 4: return dot_tile_row(type, w, k, activations, act_bytes, 4, y, y_stride);
    case 5: return dot_tile_row(type, w, k, activations, act_bytes, 5, y, y_stride);
    case 6: return dot_tile_row(type, w, k, activations, act_bytes, 6, y, y_stride);
    case 7: return dot_tile_row(type, w, k, activations, act_bytes, 7, y, y_stride);
    default: return dot_tile_row(type, w, k, activations, act_bytes, 8, y, y_stride);
    }
}

AK_KERNEL void dot_tiles(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                         const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                         size_t y_stride, size_t distance)
{
    /* More tokens take two passes per tile row: the second finds it in the cache and prefetches the
     * next tile row. */
    size_t pass = n <= TOKENS_MAX ? n : (n + 1) / 2;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        const uint8_t *next = tiles;
        for (size_t t = 0; t < n; t += pass) {
            struct tile_row w = { .at = tiles };
            w.distance = pass == n ? distance : (size_t)(next - tiles);
            next = dot_skinny(type, w, k, activations + t * act_bytes, act_bytes,
                              ak_min_size(n - t, pass), y + t * y_stride, y_stride);
        }
        tiles = next;
    }
}

static void dot_slices(const struct ak_cpu_slices *slices, const struct ak_cpu_slices *next,
                       size_t k, const uint8_t *restrict activations, size_t act_bytes, size_t n,
                       float *restrict y, size_t y_stride)
{
    struct tile_row w = { slices->high, (size_t)(next->high - slices->high), slices->low,
                          (size_t)(next->low - slices->low) };
    for (size_t i = 0, count; i < n; i += count) {
        count = ak_min_size(n - i, TOKENS_MAX);
        dot_skinny(SLICES, w, k, activations + i * act_bytes, act_bytes, count, y + i * y_stride,
                   y_stride);
        w.distance = w.low_distance = 0;
    }
}

static void join_slices(const uint8_t *restrict high, const uint8_t *restrict low, size_t blocks,
                        uint8_t *restrict tile)
{
    struct ak_avx512_block from = first_block(AK_QUANT_Q5_0, high, blocks),
                           to = first_block(AK_QUANT_Q8_0, tile, blocks);
    uint8_t *line = tile + (to.lines - tile);
    memcpy(tile, high, (size_t)(to.lines - tile));
    for (size_t b = 0; b < blocks; b++) {
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++, line += AK_LINE_BYTES)
            store_line(line, join_word(&from, low, i));
        next_block(AK_QUANT_Q5_0, &from);
        low += AK_SLICES_LOW_BLOCK_BYTES;
    }
}

#define TILE32(name, NAME) static AK_DOT_TILES(dot_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

AK_SETTER(dot32)
{
    k->dot_slices = dot_slices;
    k->join_slices = join_slices;
#define TILE32(name, NAME) k->tile[AK_QUANT_##NAME].dot_tiles = dot_##name;
#include "engine/cpu/types.def"
}
