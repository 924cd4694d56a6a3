/* F32 GEMM, as engine/cpu/avx512/panel_f32.c: lanes are rows, and the 32 partial sums are computed
 * in bit-reversed order (engine/cpu/panel.h). 2 vectors of rows × 12 tokens are 24 sums. Their 5
 * operands need no broadcast, since a multiply-add can select a lane of tokens. A panel is [block
 * of 8 rows][bit-reversed sum][step][row], tokens are [group of 12][bit-reversed sum][step][token].
 */
#include <arm_neon.h>
#include <string.h>

#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/neon/lanes.h"
#include "engine/cpu/panel.h"

enum { LANES = 4, VECTORS = 2, ROWS = VECTORS * LANES, BLOCKS = 2, TOKENS = 3 * LANES, GROUPS = 4 };

/* Sums of a tile at each level (engine/cpu/panel.h); the last entry is the total. */
typedef float32x4_t tile_sums[AK_PANEL_LEVELS + 1][TOKENS][VECTORS];

/* ---- Unpacking ---------------------------------------------------------- */
/* Loads 4 elements; `scale` is their scale in F8. */
AK_KERNEL float32x4_t load_stored(enum ak_quant_type type, const uint8_t *p, const uint8_t *scale)
{
    if (type == AK_QUANT_F8)
        return vmulq_f32(vcvt_f32_f16(vget_low_f16(ak_neon_e4m3(ak_neon_load_word(p)))),
                         ak_neon_broadcast_float(scale));
    if (type == AK_QUANT_F32)
        return vreinterpretq_f32_u8(vld1q_u8(p));
    if (type == AK_QUANT_F16)
        return ak_neon_load_f16(p);
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

/* Transposes: exchanges lane r of v[i] and lane i of v[r]. */
AK_KERNEL void transpose(float32x4_t v[LANES])
{
    float64x2_t even[2], odd[2];
    AK_UNROLLED_FOR (size_t i = 0; i < 2; i++) {
        even[i] = vreinterpretq_f64_f32(vtrn1q_f32(v[2 * i], v[2 * i + 1]));
        odd[i] = vreinterpretq_f64_f32(vtrn2q_f32(v[2 * i], v[2 * i + 1]));
    }
    v[0] = vreinterpretq_f32_f64(vtrn1q_f64(even[0], even[1]));
    v[1] = vreinterpretq_f32_f64(vtrn1q_f64(odd[0], odd[1]));
    v[2] = vreinterpretq_f32_f64(vtrn2q_f64(even[0], even[1]));
    v[3] = vreinterpretq_f32_f64(vtrn2q_f64(odd[0], odd[1]));
}

/* Unpacks 32 k of 8 rows, from element k on, in bit-reversed order, sums `stride` apart. */
AK_KERNEL void unpack_step(enum ak_quant_type type, const uint8_t *const rows[ROWS], size_t k,
                           float *to, size_t stride)
{
    for (size_t j = 0; j < AK_LANES; j += LANES, k += LANES) {
        float *base = to + ak_panel_reverse_bits(j) * stride;
        float32x4_t v[VECTORS][LANES];
        AK_UNROLLED_FOR (size_t r = 0; r < ROWS; r++)
            v[r / LANES][r % LANES] = load_stored(type, ak_cpu_stored_element(type, rows[r], k),
                                                  ak_cpu_stored_scale(rows[r], k));
        AK_UNROLLED_FOR (size_t i = 0; i < VECTORS; i++)
            transpose(v[i]);
        AK_UNROLLED_FOR (size_t i = 0; i < LANES; i++) {
            float *to_row = base + ak_panel_reverse_bits(i) * stride;
            __asm__("" : "+r"(to_row)); /* else gcc computes each store's address separately */
            AK_UNROLLED_FOR (size_t r = 0; r < VECTORS; r++)
                vst1q_f32(to_row + r * LANES, v[r][i]);
        }
    }
}

AK_KERNEL void unpack_panel_f32(enum ak_quant_type type, const uint8_t *rows, size_t row_bytes,
                                size_t n_rows, size_t cols, float *panel)
{
    size_t steps = (cols + AK_LANES - 1) / AK_LANES, rest = cols % AK_LANES, stride = steps * ROWS;
    for (size_t first = 0; first < n_rows; first += ROWS, panel += AK_LANES * stride) {
        const uint8_t *row[ROWS]; /* rows beyond the last repeat it; their sums are never read */
        AK_UNROLLED_FOR (size_t r = 0; r < ROWS; r++)
            row[r] = rows + ak_min_size(first + r, n_rows - 1) * row_bytes;
        for (size_t i = 0; i < cols / AK_LANES; i++)
            unpack_step(type, row, i * AK_LANES, panel + i * ROWS, stride);
        if (rest > 0 && type != AK_QUANT_F8) {
            uint8_t tail[ROWS][AK_LANES * sizeof(float)] = { { 0 } };
            for (size_t r = 0; r < ROWS; r++) {
                memcpy(tail[r], ak_cpu_stored_element(type, row[r], cols - rest),
                       rest * ak_cpu_stored_element_bytes(type));
                row[r] = tail[r];
            }
            unpack_step(type, row, 0, panel + (steps - 1) * ROWS, stride);
        }
    }
}

/* ---- Products ----------------------------------------------------------- */
AK_KERNEL float32x4_t add_product(float32x4_t sum, float32x4_t row, float32x4_t tokens, size_t lane)
{
    switch (lane) {
    case 0: return vfmaq_laneq_f32(sum, row, tokens, 0);
    case 1: return vfmaq_laneq_f32(sum, row, tokens, 1);
    case 2: return vfmaq_laneq_f32(sum, row, tokens, 2);
    default: return vfmaq_laneq_f32(sum, row, tokens, 3);
    }
}

/* Computes one partial sum of 8 rows × the first n tokens of a group, n a multiple of 4. Adds the
 * pending sums that it completes, then stores the result in `pending`. */
AK_KERNEL void compute_sum(size_t n, const float *w, const float *x, size_t steps, size_t rev,
                           float32x4_t (*pending)[TOKENS][VECTORS])
{
    float32x4_t acc[TOKENS][VECTORS];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            acc[t][v] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < steps; i++, w += ROWS, x += TOKENS) {
        float32x4_t row[VECTORS], tokens[TOKENS / LANES];
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            row[v] = vld1q_f32(w + v * LANES);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t += LANES)
            tokens[t / LANES] = vld1q_f32(x + t);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
                acc[t][v] = add_product(acc[t][v], row[v], tokens[t / LANES], t % LANES);
    }
    for (; rev & 1; rev >>= 1, pending++)
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
                acc[t][v] = vaddq_f32((*pending)[t][v], acc[t][v]);
            ak_neon_fence();
        }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            (*pending)[t][v] = acc[t][v];
}

static void compute_group_sum(size_t n, const float *w, const float *x, size_t steps, size_t rev,
                              float32x4_t (*pending)[TOKENS][VECTORS])
{
    if (n > 2 * LANES)
        compute_sum(3 * LANES, w, x, steps, rev, pending);
    else if (n > LANES)
        compute_sum(2 * LANES, w, x, steps, rev, pending);
    else
        compute_sum(LANES, w, x, steps, rev, pending);
}

/* Multiplies up to BLOCKS blocks of rows by GROUPS groups of tokens: the operands of one partial
 * sum fit the L1 cache. */
static void dot_blocks(const float *panel, size_t n_rows, const float *tokens, size_t n, size_t k,
                       float *y, size_t y_stride, struct ak_panel_prefetch *prefetch)
{
    tile_sums sums[GROUPS][BLOCKS];
    size_t steps = k / AK_LANES;
    for (size_t rev = 0; rev < AK_LANES; rev++, ak_panel_prefetch_part(prefetch))
        for (size_t t = 0; t < n; t += TOKENS)
            for (size_t r = 0; r < n_rows; r += ROWS)
                compute_group_sum(n - t, panel + r * k + rev * steps * ROWS,
                                  tokens + t * k + rev * steps * TOKENS, steps, rev,
                                  sums[t / TOKENS][r / ROWS]);
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < n_rows; r += ROWS)
            memcpy(y + t * y_stride + r, sums[t / TOKENS][r / ROWS][AK_PANEL_LEVELS][t % TOKENS],
                   ak_min_size(n_rows - r, ROWS) * sizeof *y);
}

static void dot_panel_f32(const float *restrict panel, size_t n_rows, const float *restrict tokens,
                          size_t n, size_t k, float *restrict y, size_t y_stride,
                          const uint8_t *next, size_t next_bytes)
{
    size_t blocks = (n_rows + BLOCKS * ROWS - 1) / (BLOCKS * ROWS),
           groups = (n + GROUPS * TOKENS - 1) / (GROUPS * TOKENS);
    struct ak_panel_prefetch prefetch =
        ak_panel_init_prefetch(next, next_bytes, blocks * groups * AK_LANES);
    for (size_t t = 0; t < n; t += GROUPS * TOKENS)
        for (size_t r = 0; r < n_rows; r += BLOCKS * ROWS)
            dot_blocks(panel + r * k, ak_min_size(n_rows - r, BLOCKS * ROWS), tokens + t * k,
                       ak_min_size(n - t, GROUPS * TOKENS), k, y + t * y_stride + r, y_stride,
                       &prefetch);
}

static void dequantize_f8(const void *restrict blocks, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        float32x4_t scale = ak_neon_broadcast_float(ak_cpu_stored_scale(blocks, i));
        float16x8_t h = ak_neon_e4m3(
            vreinterpret_s8_u8(vld1_u8(ak_cpu_stored_element(AK_QUANT_F8, blocks, i))));
        vst1q_f32(out + i, vmulq_f32(vcvt_f32_f16(vget_low_f16(h)), scale));
        vst1q_f32(out + i + 4, vmulq_f32(vcvt_high_f32_f16(h), scale));
    }
}

#include "engine/cpu/panel_f32.h"

AK_SETTER(panel_f32)
{
    k->dequantize[AK_QUANT_F8] = dequantize_f8;
    set_panel_f32(k);
}
