/* Products of types with blocks of 32 elements. Shared by all ISAs of 256-bit vectors, each with
 * its own AK_STEP_H.
 *
 * One function, dot_blocks, computes them all: 16 rows (two vectors) times up to GROUP tokens over
 * some blocks, from packed tiles (GEMV, skinny GEMM) or from an int8 panel (GEMM). Per tile row and
 * block, a panel has 8 lines with one byte per number, a line of f32 scales, and a line of f32
 * minimums if the type has them. Numbers are unsigned and include their offset, unless they are
 * wide (step.h); the sums start from the offset's contribution. */
#include "engine/cpu/slices.h"
#include "engine/cpu/setter.h"

#include "engine/cpu/tmpl/tiles_v256.h"

enum {
    /* blocks of a panel used for all tokens before the next ones: stays in the L1 cache */
    CHUNK_BLOCKS = 16,
    PANEL_QUANTS_BYTES = BLOCK_WORDS * AK_LINE_BYTES
};

/* A Q8_0 matrix in slices (slices.h), a type of this file alone: the blocks are those of Q5_0 with
 * a block of the low slice. */
#define SLICES ((enum ak_quant_type)AK_QUANT_COUNT)

AK_KERNEL bool has_minimum(enum ak_quant_type type)
{
    return type == AK_QUANT_Q4_1 || type == AK_QUANT_Q5_1 || type == AK_QUANT_A4 ||
           type == AK_QUANT_A5 || type == AK_QUANT_A8;
}

AK_KERNEL bool has_fifth_bits(enum ak_quant_type type)
{
    return type == AK_QUANT_Q5_0 || type == AK_QUANT_Q5_1 || type == AK_QUANT_A5 || type == SLICES;
}

AK_KERNEL bool has_values(enum ak_quant_type type)
{
    return type == AK_QUANT_IQ4_NL || type == AK_QUANT_MXFP4;
}

/* Whether each quant is stored as one byte. */
AK_KERNEL bool has_bytes(enum ak_quant_type type)
{
    return type == AK_QUANT_Q8_0 || type == AK_QUANT_A8;
}

AK_KERNEL bool is_wide(enum ak_quant_type type)
{
    return type == AK_QUANT_Q8_0 || type == AK_QUANT_IQ4_NL || type == AK_QUANT_A8 ||
           type == SLICES;
}

/* Largest number of a type that is not wide. */
AK_KERNEL unsigned max_number(enum ak_quant_type type)
{
    return has_fifth_bits(type) || type == AK_QUANT_MXFP4 ? 31 : 15;
}

/* −offset · Σq of the activations, for numbers that are not wide. */
AK_KERNEL __m256i block_offset(enum ak_quant_type type, const struct ak_cpu_act32 *act)
{
    switch (type) {
    case AK_QUANT_Q4_0:
    case AK_QUANT_V2: return broadcast_word(&act->minus8_sum);
    case AK_QUANT_Q5_0:
    case AK_QUANT_MXFP4: return _mm256_slli_epi32(broadcast_word(&act->minus8_sum), 1);
    default: return _mm256_setzero_si256();
    }
}

AK_KERNEL size_t panel_block_bytes(enum ak_quant_type type)
{
    return PANEL_QUANTS_BYTES + (has_minimum(type) ? 2 : 1) * AK_LINE_BYTES;
}

/* Bytes of a block's scales, and of its minimums. */
AK_KERNEL size_t factor_bytes(enum ak_quant_type type)
{
    return type == AK_QUANT_MXFP4 ? 16 : type == AK_QUANT_A8 ? 64 : 32;
}

AK_KERNEL size_t line_bytes(enum ak_quant_type type)
{
    return has_bytes(type) ? 512 : type == AK_QUANT_V2 ? 128 : 256;
}

/* Bytes per block of a full tile. */
AK_KERNEL size_t packed_block_bytes(enum ak_quant_type type)
{
    return line_bytes(type) + factor_bytes(type) * (has_minimum(type) ? 2 : 1) +
           (has_fifth_bits(type) ? 64 : 0);
}

/* Addresses of the parts of one block. */
struct ak_avx2_block {
    const uint8_t *scales, *minimums, *high, *lines;
    const uint8_t *low; /* SLICES: its lines of the low slice */
};

AK_KERNEL struct ak_avx2_block find_block(enum ak_quant_type type, bool is_panel, const uint8_t *w,
                                          size_t n_blocks, size_t b)
{
    if (is_panel) {
        const uint8_t *lines = w + b * panel_block_bytes(type);
        return (struct ak_avx2_block){ lines + PANEL_QUANTS_BYTES,
                                       lines + PANEL_QUANTS_BYTES + AK_LINE_BYTES, NULL, lines,
                                       NULL };
    }
    size_t factors = n_blocks * factor_bytes(type) * (has_minimum(type) ? 2 : 1);
    const uint8_t *high = w + ak_round_up(factors, AK_LINE_BYTES);
    const uint8_t *lines = high + (has_fifth_bits(type) ? n_blocks * 64 : 0);
    return (struct ak_avx2_block){ w + b * factor_bytes(type),
                                   w + (n_blocks + b) * factor_bytes(type), high + b * 64,
                                   lines + b * line_bytes(type), NULL };
}

AK_KERNEL __m256 load_floats(const uint8_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}

/* ak_e8m0_half of 8 exponents. */
AK_KERNEL __m256 load_exponents(const uint8_t *p)
{
    __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e); /* exponents 0 and 1 */
    return _mm256_castsi256_ps(
        _mm256_blendv_epi8(normal, subnormal, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

/* Scales or minimums of rows 8·half … 8·half + 7. */
AK_KERNEL __m256 load_factors(enum ak_quant_type type, bool is_panel, const uint8_t *factors,
                              size_t half)
{
    if (is_panel)
        return load_floats(factors + half * HALF_LINE);
    switch (type) {
    case AK_QUANT_MXFP4: return load_exponents(factors + half * 8);
    case AK_QUANT_A4:
    case AK_QUANT_A5: return load_bf16(factors + half * 16);
    case AK_QUANT_A8: return load_floats(factors + half * HALF_LINE);
    default: return load_f16(factors + half * 16);
    }
}

/* 16 in each byte if its bit is set in the 32 bits at `bits`, else 0. */
AK_KERNEL __m256i fifth_bits(const uint8_t *bits)
{
    const __m256i byte_of =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i own = _mm256_and_si256(_mm256_shuffle_epi8(broadcast_word(bits), byte_of), bit_of);
    return _mm256_and_si256(_mm256_cmpeq_epi8(own, bit_of), _mm256_set1_epi8(16));
}

/* The low bits of word i, added to its number in the high slice. */
AK_KERNEL __m256i join_word(__m256i high, const uint8_t *low, size_t i, size_t half)
{
    __m256i word = _mm256_slli_epi16(high, 3),
            pairs = _mm256_srli_epi16(load_bytes(low + i / 4 * AK_LINE_BYTES + half * HALF_LINE),
                                      (int)(i % 4 * 2)),
            third = load_bytes(low + 2 * AK_LINE_BYTES + half * HALF_LINE);
    third = i < 2 ? _mm256_slli_epi16(third, (int)(2 - i)) : _mm256_srli_epi16(third, (int)(i - 2));
    return or_masked(or_masked(word, pairs, 3), third, 4);
}

/* Packed with a bias of 128. */
AK_KERNEL __m256i change_bias(__m256i word)
{
    return _mm256_xor_si256(word, _mm256_set1_epi8((char)(128 - WIDE_BIAS)));
}

/* Eight rows of word i of a block of V2, plus 8: two bits, plus 7. */
AK_KERNEL __m256i v2_word(const uint8_t *lines, size_t i)
{
    __m256i bits = _mm256_srli_epi16(load_bytes(lines + i % 2 * AK_LINE_BYTES), (int)(i / 2 * 2));
    return _mm256_add_epi8(_mm256_and_si256(bits, _mm256_set1_epi8(3)), _mm256_set1_epi8(7));
}

/* Rows 8·half … 8·half + 7 of line `line` + 4·nibble of a block; 4-bit types have it in nibble
 * `nibble` of interleaved line `line`. */
AK_KERNEL __m256i block_word(enum ak_quant_type type, bool is_panel, const struct ak_avx2_block *at,
                             size_t line, size_t nibble, size_t half)
{
    size_t i = line + 4 * nibble;
    const uint8_t *lines = at->lines + half * HALF_LINE;
    if (is_panel)
        return load_bytes(lines + i * AK_LINE_BYTES);
    if (has_bytes(type))
        return change_bias(load_bytes(lines + i * AK_LINE_BYTES));
    if (type == AK_QUANT_V2)
        return v2_word(lines, i);
    __m256i v = load_bytes(lines + line * AK_LINE_BYTES);
    v = nibble == 0 ? low_nibbles(v) : high_nibbles(v);
    if (has_values(type))
        return nibble_values(type, WIDE_BIAS, v);
    if (has_fifth_bits(type))
        v = _mm256_or_si256(v, fifth_bits(at->high + i * 8 + half * 4));
    return type == SLICES ? change_bias(join_word(v, at->low, i, half)) : v;
}

/* sums[t][half] = Σ w·a over the block for n ≤ GROUP tokens. */
AK_KERNEL void narrow_sums(enum ak_quant_type type, bool is_panel, const struct ak_avx2_block *at,
                           const uint8_t *activations, size_t act_bytes, size_t n,
                           __m256i sums[GROUP][2])
{
    const size_t together = words_together(max_number(type), BLOCK_WORDS), lines = together / 2;
    __m256i partial[GROUP][2];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        sums[t][0] = sums[t][1] = block_offset(
            type, (const struct ak_cpu_act32 *)(const void *)(activations + t * act_bytes));
    for (size_t line = 0; line < BLOCK_WORDS / 2; line += lines) {
        AK_UNROLLED_FOR (size_t step = 0; step < together;
                         step++) { /* both nibbles of a line while it is loaded */
            size_t own = line + step / 2, nibble = step % 2;
            const __m256i w[2] = { block_word(type, is_panel, at, own, nibble, 0),
                                   block_word(type, is_panel, at, own, nibble, 1) };
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                __m256i a = broadcast_word(activations + t * act_bytes + (own + 4 * nibble) * 4);
                AK_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                    partial[t][half] =
                        add_word(step == 0, sums[t][half], partial[t][half], w[half], a);
            }
        }
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            AK_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                sums[t][half] = add_partial(sums[t][half], partial[t][half]);
    }
}

/* Prepares the activations of up to CHUNK_BLOCKS blocks for wide numbers. */
AK_KERNEL void set_all_wide(const uint8_t *activations, size_t act_bytes, size_t n, size_t n_blocks,
                            wide_activations to[GROUP][CHUNK_BLOCKS])
{
    for (size_t t = 0; t < n; t++) {
        const struct ak_cpu_act32 *act =
            (const struct ak_cpu_act32 *)(const void *)(activations + t * act_bytes);
        for (size_t b = 0; b < n_blocks; b++)
            set_wide_activations(act[b].q, 16 * act[b].minus8_sum, &to[t][b]);
    }
}

AK_KERNEL void wide_sums(enum ak_quant_type type, bool is_panel, const struct ak_avx2_block *at,
                         wide_activations activations[GROUP][CHUNK_BLOCKS], size_t b, size_t n,
                         __m256i sums[GROUP][2])
{
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        sums[t][0] = sums[t][1] = broadcast_word(&activations[t][b].start);
    for (size_t line = 0; line < BLOCK_WORDS / 2; line++) {
        AK_UNROLLED_FOR (size_t nibble = 0; nibble < 2; nibble++) {
            const __m256i w[2] = { block_word(type, is_panel, at, line, nibble, 0),
                                   block_word(type, is_panel, at, line, nibble, 1) };
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                wide_word a = get_wide_word(&activations[t][b], line + 4 * nibble);
                AK_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                    sums[t][half] = add_wide_word(sums[t][half], w[half], a);
            }
        }
    }
}

/* A tile or a panel, and how far ahead a tile is prefetched, in bytes; 0: not, and its scales are
 * loaded before its quants. */
struct weights {
    const uint8_t *at;
    size_t distance;
    const uint8_t *low; /* SLICES: the low slice */
    size_t low_distance;
};

/* Adds blocks 0 … n_blocks − 1 of w to y, for n ≤ GROUP tokens. `wide`: the same activations,
 * prepared for wide numbers. */
AK_KERNEL void dot_blocks(enum ak_quant_type type, bool is_panel, struct weights w, size_t n_blocks,
                          const uint8_t *activations, size_t act_bytes,
                          wide_activations wide[GROUP][CHUNK_BLOCKS], size_t n, float *y,
                          size_t y_stride)
{
    __m256 acc[GROUP][2];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        acc[t][0] = _mm256_loadu_ps(y + t * y_stride);
        acc[t][1] = _mm256_loadu_ps(y + t * y_stride + 8);
    }
    if (!is_panel && !w.distance)
        ak_cpu_load_lines(w.at, (size_t)(find_block(type, false, w.at, n_blocks, 0).lines - w.at));
    for (size_t b = 0; b < n_blocks; b++, activations += sizeof(struct ak_cpu_act32)) {
        struct ak_avx2_block at = find_block(type, is_panel, w.at, n_blocks, b);
        if (!is_panel && w.distance)
            ak_cpu_prefetch(w.at + b * packed_block_bytes(type), packed_block_bytes(type),
                            w.distance);
        if (type == SLICES) {
            at.low = w.low + b * AK_SLICES_LOW_BLOCK_BYTES;
            if (w.low_distance)
                ak_cpu_prefetch(at.low, AK_SLICES_LOW_BLOCK_BYTES, w.low_distance);
        }
        __m256i sums[GROUP][2];
        if (is_wide(type))
            wide_sums(type, is_panel, &at, wide, b, n, sums);
        else
            narrow_sums(type, is_panel, &at, activations, act_bytes, n, sums);
        const __m256 scales[2] = { load_factors(type, is_panel, at.scales, 0),
                                   load_factors(type, is_panel, at.scales, 1) };
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            const struct ak_cpu_act32 *act =
                (const struct ak_cpu_act32 *)(const void *)(activations + t * act_bytes);
            __m256 act_scale = _mm256_set1_ps(act->scale);
            AK_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
                acc[t][half] = _mm256_fmadd_ps(_mm256_mul_ps(scales[half], act_scale),
                                               _mm256_cvtepi32_ps(sums[t][half]), acc[t][half]);
                if (has_minimum(type))
                    acc[t][half] = _mm256_fmadd_ps(load_factors(type, is_panel, at.minimums, half),
                                                   _mm256_set1_ps(act->scaled_sum), acc[t][half]);
            }
        }
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        _mm256_storeu_ps(y + t * y_stride, acc[t][0]);
        _mm256_storeu_ps(y + t * y_stride + 8, acc[t][1]);
    }
}

/* Blocks of a tile times n ≤ GROUP tokens; n is a constant. */
AK_KERNEL void dot_tile(enum ak_quant_type type, struct weights w, size_t n_blocks,
                        const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                        size_t y_stride)
{
    wide_activations wide[GROUP][CHUNK_BLOCKS];
    if (is_wide(type))
        set_all_wide(activations, act_bytes, n, n_blocks, wide);
    dot_blocks(type, false, w, n_blocks, activations, act_bytes, wide, n, y, y_stride);
}

AK_KERNEL void dot_skinny(enum ak_quant_type type, struct weights w, size_t n_blocks,
                          const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                          size_t y_stride)
{
    for (; n >= GROUP; n -= GROUP, activations += GROUP * act_bytes, y += GROUP * y_stride)
        dot_tile(type, w, n_blocks, activations, act_bytes, GROUP, y, y_stride);
    AK_CONSTANT(n, 3, N, dot_tile(type, w, n_blocks, activations, act_bytes, N, y, y_stride));
}

AK_KERNEL void dot_tiles(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                         const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                         size_t y_stride, size_t distance)
{
    size_t whole = ak_cpu_tile_bytes(type, AK_TILE_BLOCKS), n_blocks = k / AK_BLOCK_K;
    struct weights w = { .at = tiles, .distance = distance };
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        zero_rows(y, y_stride, n);
        for (size_t b = 0; b < n_blocks; b += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
            dot_skinny(type, w, blocks, activations + b * sizeof(struct ak_cpu_act32), act_bytes, n,
                       y, y_stride);
            w.at += blocks == AK_TILE_BLOCKS ? whole : ak_cpu_tile_bytes(type, blocks);
        }
    }
}

static void dot_slices(const struct ak_cpu_slices *slices, const struct ak_cpu_slices *next,
                       size_t k, const uint8_t *restrict activations, size_t act_bytes, size_t n,
                       float *restrict y, size_t y_stride)
{
    struct weights w = { slices->high, (size_t)(next->high - slices->high), slices->low,
                         (size_t)(next->low - slices->low) };
    size_t n_blocks = k / AK_BLOCK_K;
    zero_rows(y, y_stride, n);
    for (size_t b = 0, blocks; b < n_blocks; b += blocks) {
        blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
        dot_skinny(SLICES, w, blocks, activations + b * sizeof(struct ak_cpu_act32), act_bytes, n,
                   y, y_stride);
        w.at += ak_cpu_tile_bytes(AK_QUANT_Q5_0, blocks);
        w.low += blocks * AK_SLICES_LOW_BLOCK_BYTES;
    }
}

AK_KERNEL void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles,
                               size_t k, uint8_t *panel)
{
    size_t n_blocks = k / AK_BLOCK_K;
    for (size_t i = 0; i < n_tiles; i++) {
        for (size_t first = 0; first < n_blocks; first += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(n_blocks - first, AK_TILE_BLOCKS);
            for (size_t b = 0; b < blocks; b++, panel += panel_block_bytes(type)) {
                struct ak_avx2_block at = find_block(type, false, tiles, blocks, b);
                float *scales = (float *)(void *)(panel + PANEL_QUANTS_BYTES);
                AK_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
                    uint8_t *to = panel + half * HALF_LINE;
                    for (size_t line = 0; line < BLOCK_WORDS / 2; line++, to += AK_LINE_BYTES) {
                        store_bytes(to, block_word(type, false, &at, line, 0, half));
                        store_bytes(to + 4 * AK_LINE_BYTES,
                                    block_word(type, false, &at, line, 1, half));
                    }
                    _mm256_storeu_ps(scales + half * 8, load_factors(type, false, at.scales, half));
                    if (has_minimum(type))
                        _mm256_storeu_ps(scales + AK_TILE_ROWS + half * 8,
                                         load_factors(type, false, at.minimums, half));
                }
            }
            tiles += ak_cpu_tile_bytes(type, blocks);
        }
    }
}

/* Some blocks of all tile rows, row_bytes apart, times n tokens; n is a constant. */
AK_KERNEL void dot_chunk(enum ak_quant_type type, const uint8_t *panel, size_t n_tiles,
                         size_t row_bytes, size_t n_blocks, const uint8_t *activations,
                         size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    wide_activations wide[GROUP][CHUNK_BLOCKS];
    if (is_wide(type))
        set_all_wide(activations, act_bytes, n, n_blocks, wide);
    for (size_t i = 0; i < n_tiles; i++)
        dot_blocks(type, true, (struct weights){ .at = panel + i * row_bytes }, n_blocks,
                   activations, act_bytes, wide, n, y + i * AK_TILE_ROWS, y_stride);
}

AK_KERNEL void dot_panel_i8(enum ak_quant_type type, const uint8_t *panel, size_t n_tiles, size_t k,
                            const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                            size_t y_stride)
{
    const size_t n_blocks = k / AK_BLOCK_K, row_bytes = n_blocks * panel_block_bytes(type);
    for (size_t i = 0; i < n_tiles; i++)
        zero_rows(y + i * AK_TILE_ROWS, y_stride, n);
    for (size_t first = 0; first < n_blocks; first += CHUNK_BLOCKS) {
        const size_t count = ak_min_size(n_blocks - first, CHUNK_BLOCKS);
        const uint8_t *chunk = panel + first * panel_block_bytes(type),
                      *a = activations + first * sizeof(struct ak_cpu_act32);
        size_t t = 0;
        for (; t + GROUP <= n; t += GROUP)
            dot_chunk(type, chunk, n_tiles, row_bytes, count, a + t * act_bytes, act_bytes, GROUP,
                      y + t * y_stride, y_stride);
        for (; t < n; t++)
            dot_chunk(type, chunk, n_tiles, row_bytes, count, a + t * act_bytes, act_bytes, 1,
                      y + t * y_stride, y_stride);
    }
}

static void join_slices(const uint8_t *restrict high, const uint8_t *restrict low, size_t blocks,
                        uint8_t *restrict tile)
{
    size_t scale_bytes = ak_round_up(blocks * factor_bytes(AK_QUANT_Q8_0), AK_LINE_BYTES);
    uint8_t *line = tile + scale_bytes;
    memcpy(tile, high, scale_bytes);
    for (size_t b = 0; b < blocks; b++, low += AK_SLICES_LOW_BLOCK_BYTES) {
        struct ak_avx2_block from = find_block(SLICES, false, high, blocks, b);
        from.low = low;
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++, line += AK_LINE_BYTES)
            AK_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                store_bytes(line + half * HALF_LINE,
                            change_bias(block_word(SLICES, false, &from, i % 4, i / 4, half)));
    }
}

#define TILE32(name, NAME)                                                                         \
    static AK_DOT_TILES(dot_##name, AK_QUANT_##NAME);                                              \
    static AK_UNPACK_PANEL_I8(unpack_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

static AK_DOT_PANEL_I8(dot_panel_q4_0, AK_QUANT_Q4_0);
static AK_DOT_PANEL_I8(dot_panel_q4_1, AK_QUANT_Q4_1);
static AK_DOT_PANEL_I8(dot_panel_q5_0, AK_QUANT_Q5_0);
static AK_DOT_PANEL_I8(dot_panel_q5_1, AK_QUANT_Q5_1);
static AK_DOT_PANEL_I8(dot_panel_q8_0, AK_QUANT_Q8_0);
static AK_DOT_PANEL_I8(dot_panel_a8, AK_QUANT_A8);

/* Types that are alike in a panel. */
#define dot_panel_iq4_nl dot_panel_q8_0
#define dot_panel_mxfp4 dot_panel_q5_0
#define dot_panel_a4 dot_panel_q4_1
#define dot_panel_a5 dot_panel_q5_1
#define dot_panel_v2 dot_panel_q4_0

AK_SETTER(dot32)
{
    k->dot_slices = dot_slices;
    k->join_slices = join_slices;
#define TILE32(name, NAME)                                                                         \
    k->tile[AK_QUANT_##NAME] =                                                                     \
        (struct ak_cpu_tile_kernels){ dot_##name, unpack_##name, dot_panel_##name };
#include "engine/cpu/types.def"
}
