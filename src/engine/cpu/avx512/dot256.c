/* Skinny GEMM over tiles of K-types. */
#include "engine/cpu/setter.h"
#include "engine/cpu/avx512/interleaved.h"

enum { TOKENS_MAX = 4 }; /* tokens per pass */

AK_KERNEL const struct ak_cpu_act256 *act_of(const uint8_t *activations, size_t act_bytes, size_t t)
{
    return (const struct ak_cpu_act256 *)(const void *)(activations + t * act_bytes);
}

/* acc[t] += one tile of Q4_K or Q5_K. */
AK_KERNEL void q45_k_tile(enum ak_quant_type type, size_t n, const uint8_t *tile, size_t distance,
                          const uint8_t *activations, size_t act_bytes, __m512 acc[TOKENS_MAX])
{
    const uint8_t *quants = tile + (type == AK_QUANT_Q5_K ? AK_Q5_K_QUANTS_AT : AK_Q4_K_QUANTS_AT);
    __m512i scales[2], minimums[2], scaled[TOKENS_MAX], minimum[TOKENS_MAX], fifth[BLOCK_WORDS];
    __m512i both = load_line_now(tile);
    q4_k_scales(tile + AK_K_SCALES_AT, scales, minimums);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        const int16_t *pairs = act_of(activations, act_bytes, t)->pair_sum32;
        scaled[t] = minimum[t] = _mm512_setzero_si512();
        AK_UNROLLED_FOR (size_t i = 0; i < 4; i++)
            minimum[t] = _mm512_dpwssd_epi32(minimum[t], minimum_pair(minimums, i),
                                             broadcast_word(pairs + 2 * i));
    }
    AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++)
        if (type == AK_QUANT_Q5_K)
            fifth[i] = load_line_now(tile + AK_Q5_K_HIGH_AT + i * AK_LINE_BYTES);
    AK_UNROLLED_FOR (size_t c = 0; c < 4; c++) {
        if (distance)
            ak_cpu_prefetch(tile + c * (ak_cpu_tile256_bytes(type) / 4),
                            ak_cpu_tile256_bytes(type) / 4, distance);
        __m512i low[TOKENS_MAX], high[TOKENS_MAX];
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            low[t] = high[t] = _mm512_setzero_si512();
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++) {
            __m512i line = load_line(quants + (c * BLOCK_WORDS + i) * AK_LINE_BYTES);
            __m512i w[2] = { low_nibbles(line), high_nibbles(line) };
            if (type == AK_QUANT_Q5_K) {
                w[0] = q5_k_word(w[0], fifth[i], 2 * c);
                w[1] = q5_k_word(w[1], fifth[i], 2 * c + 1);
            }
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                const int8_t *a = act_of(activations, act_bytes, t)->q + c * 64 + i * 4;
                low[t] = _mm512_dpbusd_epi32(low[t], w[0], broadcast_word(a));
                high[t] = _mm512_dpbusd_epi32(high[t], w[1], broadcast_word(a + 32));
            }
        }
        __m512i s0 = byte_of_lane(scales[c / 2], c % 2 * 2),
                s1 = byte_of_lane(scales[c / 2], c % 2 * 2 + 1);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            scaled[t] =
                _mm512_add_epi32(scaled[t], _mm512_add_epi32(_mm512_mullo_epi32(low[t], s0),
                                                             _mm512_mullo_epi32(high[t], s1)));
    }
    __m512 d = lower_halves(both), dmin = upper_halves(both);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        __m512 scale = _mm512_set1_ps(act_of(activations, act_bytes, t)->scale);
        acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_cvtepi32_ps(scaled[t]), acc[t]);
        acc[t] =
            _mm512_fnmadd_ps(_mm512_mul_ps(dmin, scale), _mm512_cvtepi32_ps(minimum[t]), acc[t]);
    }
}

/* acc[t] += one tile of Q6_K. Reads its lines in address order; any other order gets a third of the
 * memory bandwidth. */
AK_KERNEL void q6_k_tile(size_t n, const uint8_t *tile, size_t distance, const uint8_t *activations,
                         size_t act_bytes, __m512 acc[TOKENS_MAX])
{
    __m512i scaled[TOKENS_MAX];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        scaled[t] = _mm512_setzero_si512();
    ak_cpu_prefetch(tile, AK_Q6_K_HALVES_AT, distance);
    for (size_t half = 0; half < 2; half++) {
        const uint8_t *lines = tile + AK_Q6_K_HALVES_AT + half * AK_Q6_K_HALF_BYTES;
        __m512i high[BLOCK_WORDS];
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++)
            high[i] = load_line_now(lines + i * AK_LINE_BYTES);
        AK_UNROLLED_FOR (size_t part = 0; part < 4; part++) {
            /* 16 k of each of two quarters, which share lines of low bits */
            if (distance)
                ak_cpu_prefetch(lines + part * 6 * AK_LINE_BYTES, 6 * AK_LINE_BYTES,
                                distance); /* of the half's 24 lines */
            const size_t quarters[2] = { part / 2, part / 2 + 2 }, first = part % 2 * 4;
            __m512i sums[2][TOKENS_MAX];
            AK_UNROLLED_FOR (size_t j = 0; j < 2; j++)
                AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                    sums[j][t] = _mm512_set1_epi32(
                        act_of(activations, act_bytes, t)
                            ->minus32_sum16[half * 8 + quarters[j] * 2 + part % 2]);
            AK_UNROLLED_FOR (size_t i = first; i < first + 4; i++) {
                __m512i low = load_line(lines + AK_Q6_K_LOW_AT +
                                        (part / 2 * BLOCK_WORDS + i) * AK_LINE_BYTES);
                AK_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
                    __m512i w = q6_k_word(low, high[i], quarters[j]);
                    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                        const int8_t *a = act_of(activations, act_bytes, t)->q + half * 128 +
                                          quarters[j] * 32 + i * 4;
                        sums[j][t] = _mm512_dpbusd_epi32(sums[j][t], w, broadcast_word(a));
                    }
                }
            }
            AK_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
                __m512i scales = load_line(tile + AK_K_SCALES_AT + (half * 2 + j) * AK_LINE_BYTES);
                __m512i scale = signed_byte_of_lane(scales, part);
                AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                    scaled[t] = _mm512_add_epi32(scaled[t], _mm512_mullo_epi32(sums[j][t], scale));
            }
        }
    }
    __m512 d = load_halves(tile);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        __m512 scale = _mm512_set1_ps(act_of(activations, act_bytes, t)->scale);
        acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_cvtepi32_ps(scaled[t]), acc[t]);
    }
}

/* Two sums that fit 16 bits, as a pair: first >> first_shift, second >> second_shift. */
AK_KERNEL __m512i pair_of(__m512i first, unsigned first_shift, __m512i second,
                          unsigned second_shift)
{
    if (first_shift)
        first = _mm512_srli_epi32(first, first_shift);
    return _mm512_mask_blend_epi16(0xaaaaaaaau, first,
                                   _mm512_slli_epi32(second, 16 - second_shift));
}

/* acc[t] += one tile of Q2_K. Numbers stay at their position in the bytes, so a sum is 4^quarter
 * times too large until it is paired. Sums of 16 are within 3 · 127 · 16, so pairs of them are
 * multiplied with pairs of scales. */
AK_KERNEL void q2_k_tile(size_t n, const uint8_t *tile, size_t distance, const uint8_t *activations,
                         size_t act_bytes, __m512 acc[TOKENS_MAX])
{
    __m512i scaled[TOKENS_MAX], minimum[TOKENS_MAX];
    __m512i both = load_line_now(tile);
    __m512i scales[4];
    AK_UNROLLED_FOR (size_t i = 0; i < 4; i++)
        scales[i] = load_line_now(tile + AK_K_SCALES_AT + i * AK_LINE_BYTES);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        const int16_t *pairs = act_of(activations, act_bytes, t)->pair_sum16;
        scaled[t] = minimum[t] = _mm512_setzero_si512();
        AK_UNROLLED_FOR (size_t i = 0; i < 8; i++)
            minimum[t] = _mm512_dpwssd_epi32(minimum[t], q2_k_minimum_pairs(scales[i / 2], i % 2),
                                             broadcast_word(pairs + 2 * i));
    }
    AK_UNROLLED_FOR (size_t part = 0; part < 4; part++) {
        const uint8_t *lines = tile + AK_Q2_K_QUANTS_AT + part * 4 * AK_LINE_BYTES;
        if (distance) /* five lines each, and the remaining one */
            ak_cpu_prefetch(tile + part * 5 * AK_LINE_BYTES, (part == 3 ? 6 : 5) * AK_LINE_BYTES,
                            distance);
        __m512i sums[4][TOKENS_MAX];
        AK_UNROLLED_FOR (size_t s = 0; s < 4; s++)
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                sums[s][t] = _mm512_setzero_si512();
        AK_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
            __m512i line = load_line(lines + i * AK_LINE_BYTES);
            AK_UNROLLED_FOR (size_t s = 0; s < 4; s++) {
                __m512i w = _mm512_and_si512(line, _mm512_set1_epi8((char)(3 << 2 * s)));
                AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                    const int8_t *a = act_of(activations, act_bytes, t)->q + part / 2 * 128 +
                                      s * 32 + part % 2 * 16 + i * 4;
                    sums[s][t] = _mm512_dpbusd_epi32(sums[s][t], w, broadcast_word(a));
                }
            }
        }
        AK_UNROLLED_FOR (size_t s = 0; s < 4; s += 2) {
            __m512i pairs = q2_k_scale_pairs(scales[part / 2 * 2 + s / 2], part % 2);
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                __m512i sum =
                    pair_of(sums[s][t], (unsigned)(2 * s), sums[s + 1][t], (unsigned)(2 * s + 2));
                scaled[t] = _mm512_dpwssd_epi32(scaled[t], sum, pairs);
            }
        }
    }
    __m512 d = lower_halves(both), dmin = upper_halves(both);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        __m512 scale = _mm512_set1_ps(act_of(activations, act_bytes, t)->scale);
        acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_cvtepi32_ps(scaled[t]), acc[t]);
        acc[t] =
            _mm512_fnmadd_ps(_mm512_mul_ps(dmin, scale), _mm512_cvtepi32_ps(minimum[t]), acc[t]);
    }
}

/* acc[t] += one tile of Q3_K, as Q2_K: sums of 16 unsigned numbers are within 7 · 127 · 16. The
 * offset of 4 is subtracted once, with the scales. */
AK_KERNEL void q3_k_tile(size_t n, const uint8_t *tile, size_t distance, const uint8_t *activations,
                         size_t act_bytes, __m512 acc[TOKENS_MAX])
{
    const __m512i half_range = _mm512_set1_epi16(32);
    __m512i scales[4], scaled[TOKENS_MAX], offset[TOKENS_MAX];
    __m512 d = load_halves(tile);
    q3_k_scales(tile + AK_K_SCALES_AT, scales);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        scaled[t] = offset[t] = _mm512_setzero_si512();
    AK_UNROLLED_FOR (size_t part = 0; part < 2;
                     part++) { /* first 16 k of each sub-block, then the others */
        __m512i lines[4][3];
        AK_UNROLLED_FOR (size_t i = 0; i < 12; i++)
            lines[i / 3][i % 3] =
                load_line_now(tile + AK_Q3_K_QUANTS_AT + (part * 12 + i) * AK_LINE_BYTES);
        AK_UNROLLED_FOR (size_t s = 0; s < 8; s += 2) {
            __m512i sums[2][TOKENS_MAX];
            const size_t step = part * 4 + s / 2;
            if (distance && step < 7) /* four lines each, of 28 */
                ak_cpu_prefetch(tile + step * 4 * AK_LINE_BYTES, 4 * AK_LINE_BYTES, distance);
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                sums[0][t] = sums[1][t] = _mm512_setzero_si512();
            AK_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
                __m512i first = q3_k_word(lines[i], s), second = q3_k_word(lines[i], s + 1);
                AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                    const int8_t *a =
                        act_of(activations, act_bytes, t)->q + s * 32 + part * 16 + i * 4;
                    sums[0][t] = _mm512_dpbusd_epi32(sums[0][t], first, broadcast_word(a));
                    sums[1][t] = _mm512_dpbusd_epi32(sums[1][t], second, broadcast_word(a + 32));
                }
            }
            __m512i pairs = _mm512_sub_epi16(byte_pairs(scales[s / 2], part), half_range);
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                __m512i sum = pair_of(sums[0][t], q3_k_shift(s), sums[1][t], q3_k_shift(s + 1));
                scaled[t] = _mm512_dpwssd_epi32(scaled[t], sum, pairs);
                offset[t] = _mm512_dpwssd_epi32(
                    offset[t], pairs,
                    broadcast_word(act_of(activations, act_bytes, t)->pair_sum16 + 2 * (s + part)));
            }
        }
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        __m512 scale = _mm512_set1_ps(act_of(activations, act_bytes, t)->scale);
        __m512i sum = _mm512_sub_epi32(scaled[t], _mm512_slli_epi32(offset[t], 2));
        acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_cvtepi32_ps(sum), acc[t]);
    }
}

/* acc[t] += one tile of V3. Sums of 16 do not fit 16 bits, so each is multiplied by its scale in
 * 32. */
AK_KERNEL void v3_tile(size_t n, const uint8_t *tile, size_t distance, const uint8_t *activations,
                       size_t act_bytes, __m512 acc[TOKENS_MAX])
{
    const __m512i table = tile_values(tile);
    __m512i scales[2], scaled[TOKENS_MAX];
    AK_UNROLLED_FOR (size_t i = 0; i < 2; i++)
        scales[i] = load_line_now(tile + AK_K_SCALES_AT + i * AK_LINE_BYTES);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        scaled[t] = _mm512_setzero_si512();
    AK_UNROLLED_FOR (size_t part = 0; part < 2;
                     part++) { /* first 16 k of each sub-block, then the others */
        __m512i lines[4][3];
        AK_UNROLLED_FOR (size_t i = 0; i < 12; i++)
            lines[i / 3][i % 3] =
                load_line_now(tile + AK_V3_QUANTS_AT + (part * 12 + i) * AK_LINE_BYTES);
        AK_UNROLLED_FOR (size_t s = 0; s < 8; s++) {
            const size_t step = part * 8 + s, j = 2 * s + part;
            if (distance && step % 2 == 0) /* four lines each, and the remaining three */
                ak_cpu_prefetch(tile + step * 2 * AK_LINE_BYTES,
                                (step < 12  ? 4 :
                                 step == 12 ? 3 :
                                              0) *
                                    AK_LINE_BYTES,
                                distance);
            __m512i sums[TOKENS_MAX];
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                sums[t] =
                    _mm512_set1_epi32(4 * act_of(activations, act_bytes, t)->minus32_sum16[j]);
            AK_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
                __m512i w = _mm512_shuffle_epi8(table, v3_word(lines[i], s));
                AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                    const int8_t *a = act_of(activations, act_bytes, t)->q + j * 16 + i * 4;
                    sums[t] = _mm512_dpbusd_epi32(sums[t], w, broadcast_word(a));
                }
            }
            __m512i scale = nibble_scale(scales[j / 8], j);
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                scaled[t] = _mm512_add_epi32(scaled[t], _mm512_mullo_epi32(sums[t], scale));
        }
    }
    __m512 d = table_scales(tile);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        __m512 scale = _mm512_set1_ps(act_of(activations, act_bytes, t)->scale);
        acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_cvtepi32_ps(scaled[t]), acc[t]);
    }
}

/* acc[t] += one tile of IQ4_XS or V4. */
AK_KERNEL void values_tile(enum ak_quant_type type, size_t n, const uint8_t *tile, size_t distance,
                           const uint8_t *activations, size_t act_bytes, __m512 acc[TOKENS_MAX])
{
    const __m512i table = type == AK_QUANT_V4 ? tile_values(tile) : value_table(AK_QUANT_IQ4_XS);
    __m512i first = load_line_now(tile), low = load_line_now(tile + AK_K_SCALES_AT),
            scaled[TOKENS_MAX];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        scaled[t] = _mm512_setzero_si512();
    AK_UNROLLED_FOR (size_t j = 0; j < AK_TILE_BLOCKS; j++) {
        const uint8_t *lines = tile + AK_IQ4_XS_QUANTS_AT + j * 4 * AK_LINE_BYTES;
        if (distance) /* four lines each, and the remaining two */
            ak_cpu_prefetch(tile + j * 4 * AK_LINE_BYTES, (j == 7 ? 6 : 4) * AK_LINE_BYTES,
                            distance);
        __m512i sums[TOKENS_MAX];
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            sums[t] = iq4_xs_offset(act_of(activations, act_bytes, t), j);
        AK_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
            __m512i line = load_line(lines + i * AK_LINE_BYTES);
            __m512i w[2] = { _mm512_shuffle_epi8(table, low_nibbles(line)),
                             _mm512_shuffle_epi8(table, high_nibbles(line)) };
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                const int8_t *a = act_of(activations, act_bytes, t)->q + j * 32 + i * 4;
                sums[t] = _mm512_dpbusd_epi32(sums[t], w[0], broadcast_word(a));
                sums[t] = _mm512_dpbusd_epi32(sums[t], w[1], broadcast_word(a + 16));
            }
        }
        __m512i scale = value_scale(type, first, low, j);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            scaled[t] = _mm512_add_epi32(scaled[t], _mm512_mullo_epi32(sums[t], scale));
    }
    __m512 d = type == AK_QUANT_V4 ? table_scales(tile) : lower_halves(first);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        __m512 scale = _mm512_set1_ps(act_of(activations, act_bytes, t)->scale);
        acc[t] = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_cvtepi32_ps(scaled[t]), acc[t]);
    }
}

AK_KERNEL void k_tile(enum ak_quant_type type, size_t n, const uint8_t *tile, size_t distance,
                      const uint8_t *activations, size_t act_bytes, __m512 acc[TOKENS_MAX])
{
    switch (type) {
    case AK_QUANT_Q2_K: q2_k_tile(n, tile, distance, activations, act_bytes, acc); break;
    case AK_QUANT_Q3_K: q3_k_tile(n, tile, distance, activations, act_bytes, acc); break;
    case AK_QUANT_Q4_K:
    case AK_QUANT_Q5_K: q45_k_tile(type, n, tile, distance, activations, act_bytes, acc); break;
    case AK_QUANT_Q6_K: q6_k_tile(n, tile, distance, activations, act_bytes, acc); break;
    case AK_QUANT_V3: v3_tile(n, tile, distance, activations, act_bytes, acc); break;
    default: values_tile(type, n, tile, distance, activations, act_bytes, acc); break;
    }
}

/* Pass over n_tiles tile rows. `distance`: prefetch distance in bytes; 0: no prefetch. */
AK_KERNEL void dot_tile_rows(enum ak_quant_type type, size_t n, const uint8_t *tiles,
                             size_t n_tiles, size_t k, size_t distance, const uint8_t *activations,
                             size_t act_bytes, float *y, size_t y_stride)
{
    const size_t bytes = ak_cpu_tile256_bytes(type);
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        __m512 acc[TOKENS_MAX];
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            acc[t] = _mm512_setzero_ps();
        for (size_t s = 0; s < k / AK_TILE_K; s++, tiles += bytes)
            k_tile(type, n, tiles, distance, activations + s * sizeof(struct ak_cpu_act256),
                   act_bytes, acc);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            _mm512_storeu_ps(y + t * y_stride, acc[t]);
    }
}

AK_KERNEL void dot_tokens(enum ak_quant_type type, size_t n, const uint8_t *tiles, size_t n_tiles,
                          size_t k, size_t distance, const uint8_t *activations, size_t act_bytes,
                          float *y, size_t y_stride)
{
    AK_CONSTANT(
        n, 4, N,
        dot_tile_rows(type, N, tiles, n_tiles, k, distance, activations, act_bytes, y, y_stride));
}

/* If one pass has too few registers for all tokens: tile row by tile row, so that later passes find
 * it in the cache. The last pass prefetches the next tile row. */
AK_KERNEL void dot_tiles(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                         const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                         size_t y_stride, size_t distance)
{
    if (n <= TOKENS_MAX) {
        dot_tokens(type, n, tiles, n_tiles, k, distance, activations, act_bytes, y, y_stride);
        return;
    }
    size_t bytes = ak_cpu_tile_row_bytes(type, k);
    for (size_t i = 0; i < n_tiles; i++, tiles += bytes, y += AK_TILE_ROWS) {
        for (size_t t = 0; t < n; t += TOKENS_MAX) {
            size_t ahead = t + TOKENS_MAX < n ? 0 : bytes;
            dot_tokens(type, ak_min_size(n - t, TOKENS_MAX), tiles, 1, k, ahead,
                       activations + t * act_bytes, act_bytes, y + t * y_stride, y_stride);
        }
    }
}

#define TILE256(name, NAME) static AK_DOT_TILES(dot_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

AK_SETTER(dot256)
{
#define TILE256(name, NAME) k->tile[AK_QUANT_##NAME].dot_tiles = dot_##name;
#include "engine/cpu/types.def"
}
