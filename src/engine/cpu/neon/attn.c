/* Attention of up to 8 rows that share a page. Scores and values are the same small product, rows ×
 * steps times steps × columns: for scores a step is an element of the head and a column a token,
 * for values the reverse. */
#include <arm_neon.h>
#include <string.h>

#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/neon/floats.h"

/* maximum rows and registers of columns; at most 16 registers of sums */
enum { ROWS = 8, REGS = 4 };

AK_KERNEL float32x4_t load4(bool half, const void *base, size_t i)
{
    if (half)
        return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)base + i)));
    return vld1q_f32((const float *)base + i);
}

AK_KERNEL const void *element(bool half, const void *base, size_t i)
{
    return (const uint8_t *)base + i * (half ? sizeof(uint16_t) : sizeof(float));
}

/* acc[r] += a[r][lane] · b[step] for 4·regs columns. */
AK_KERNEL void add_step(bool half, size_t rows, size_t regs, const float32x4_t a[ROWS], int lane,
                        const void *b, float32x4_t acc[ROWS][REGS])
{
    float32x4_t columns[REGS];
#pragma GCC unroll 4
    for (size_t j = 0; j < REGS && j < regs; j++)
        columns[j] = load4(half, b, 4 * j);
#pragma GCC unroll 8
    for (size_t r = 0; r < ROWS && r < rows; r++) {
#pragma GCC unroll 4
        for (size_t j = 0; j < REGS && j < regs; j++) {
            switch (lane) {
            case 0: acc[r][j] = vfmaq_laneq_f32(acc[r][j], columns[j], a[r], 0); break;
            case 1: acc[r][j] = vfmaq_laneq_f32(acc[r][j], columns[j], a[r], 1); break;
            case 2: acc[r][j] = vfmaq_laneq_f32(acc[r][j], columns[j], a[r], 2); break;
            default: acc[r][j] = vfmaq_laneq_f32(acc[r][j], columns[j], a[r], 3); break;
            }
        }
    }
}

/* c[r][…] += Σ_i a[r][i] · b[i][…], i ascending, for 4·regs columns. half, rows and regs are
 * constants after inlining. */
AK_KERNEL void add_product(bool half, size_t rows, size_t regs, const float *a, size_t a_stride,
                           const void *b, size_t b_stride, size_t n_steps, float *c,
                           size_t c_stride)
{
    float32x4_t acc[ROWS][REGS], steps[ROWS];
#pragma GCC unroll 8
    for (size_t r = 0; r < ROWS && r < rows; r++)
#pragma GCC unroll 4
        for (size_t j = 0; j < REGS && j < regs; j++)
            acc[r][j] = vld1q_f32(c + r * c_stride + 4 * j);
    size_t i = 0;
    for (; i + 4 <= n_steps; i += 4) {
#pragma GCC unroll 8
        for (size_t r = 0; r < ROWS && r < rows; r++)
            steps[r] = vld1q_f32(a + r * a_stride + i);
        add_step(half, rows, regs, steps, 0, element(half, b, i * b_stride), acc);
        add_step(half, rows, regs, steps, 1, element(half, b, (i + 1) * b_stride), acc);
        add_step(half, rows, regs, steps, 2, element(half, b, (i + 2) * b_stride), acc);
        add_step(half, rows, regs, steps, 3, element(half, b, (i + 3) * b_stride), acc);
    }
    for (; i < n_steps; i++) {
#pragma GCC unroll 8
        for (size_t r = 0; r < ROWS && r < rows; r++)
            steps[r] = vdupq_n_f32(a[r * a_stride + i]);
        add_step(half, rows, regs, steps, 0, element(half, b, i * b_stride), acc);
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < ROWS && r < rows; r++)
#pragma GCC unroll 4
        for (size_t j = 0; j < REGS && j < regs; j++)
            vst1q_f32(c + r * c_stride + 4 * j, acc[r][j]);
}

/* One row and the columns that add_products leaves over, fewer than 16. */
AK_KERNEL void add_last_columns(bool half, const float *a, const void *b, size_t b_stride,
                                size_t n_steps, float *c, size_t n_columns)
{
    size_t j = 0;
    for (; j + 4 <= n_columns; j += 4)
        add_product(half, 1, 1, a, 0, element(half, b, j), b_stride, n_steps, c + j, 0);
    for (; j < n_columns; j++) {
        for (size_t i = 0; i < n_steps; i++) {
            const void *x = element(half, b, i * b_stride + j);
            c[j] =
                fmaf(a[i], half ? ak_f16_to_float(*(const uint16_t *)x) : *(const float *)x, c[j]);
        }
    }
}

static void add_last_columns_f16(const float *a, const void *b, size_t b_stride, size_t n_steps,
                                 float *c, size_t n_columns)
{
    add_last_columns(true, a, b, b_stride, n_steps, c, n_columns);
}

static void add_last_columns_f32(const float *a, const void *b, size_t b_stride, size_t n_steps,
                                 float *c, size_t n_columns)
{
    add_last_columns(false, a, b, b_stride, n_steps, c, n_columns);
}

/* As add_product for all of n_columns. */
AK_KERNEL void add_products(bool half, size_t rows, const float *a, size_t a_stride, const void *b,
                            size_t b_stride, size_t n_steps, float *c, size_t c_stride,
                            size_t n_columns)
{
    const size_t regs = rows > 4 ? 2 : 4;
    size_t j = 0;
    for (; j + 4 * regs <= n_columns; j += 4 * regs)
        add_product(half, rows, regs, a, a_stride, element(half, b, j), b_stride, n_steps, c + j,
                    c_stride);
    for (size_t r = 0; r < rows && j < n_columns; r++)
        (half ? add_last_columns_f16 : add_last_columns_f32)(a + r * a_stride, element(half, b, j),
                                                             b_stride, n_steps,
                                                             c + r * c_stride + j, n_columns - j);
}

/* All ones for those of tokens t … t+3 that are in [first, end). */
AK_KERNEL uint32x4_t mask_range(size_t t, size_t first, size_t end)
{
    static const uint32_t iota[4] = { 0, 1, 2, 3 };
    uint32x4_t token = vaddq_u32(vld1q_u32(iota), vdupq_n_u32((uint32_t)t));
    return vandq_u32(vcgeq_u32(token, vdupq_n_u32((uint32_t)first)),
                     vcltq_u32(token, vdupq_n_u32((uint32_t)end)));
}

static float find_largest_score(const float *scores, size_t first, size_t end)
{
    float32x4_t largest = vdupq_n_f32(-INFINITY);
    for (size_t t = first / 4 * 4; t < end; t += 4) /* NaNs never win, as with > */
        largest = vmaxnmq_f32(largest, vbslq_f32(mask_range(t, first, end), vld1q_f32(scores + t),
                                                 vdupq_n_f32(-INFINITY)));
    float max = vmaxnmvq_f32(largest);
    /* among zeros of both signs, the first one's sign is kept */
    for (size_t t = first; max == 0.0f && t < end; t++)
        if (scores[t] == 0.0f)
            return scores[t];
    return max;
}

/* Replaces scores by weights, e^(score − largest); weights outside [first, end) become zero. */
static void apply_softmax(float *weights, size_t first, size_t end, float *max, float *sum)
{
    const float32x4_t largest = vdupq_n_f32(*max = find_largest_score(weights, first, end));
    float32x4_t partial[4] = { vdupq_n_f32(0.0f), vdupq_n_f32(0.0f), vdupq_n_f32(0.0f),
                               vdupq_n_f32(0.0f) };
    for (size_t t = first / AK_KV_GROUP_TOKENS * AK_KV_GROUP_TOKENS; t < end;
         t += AK_KV_GROUP_TOKENS) {
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            float32x4_t p = ak_neon_expf(vsubq_f32(vld1q_f32(weights + t + 4 * j), largest));
            p = vreinterpretq_f32_u32(
                vandq_u32(vreinterpretq_u32_f32(p), mask_range(t + 4 * j, first, end)));
            vst1q_f32(weights + t + 4 * j, p);
            partial[j] = vaddq_f32(partial[j], p);
        }
    }
    *sum = ak_neon_horizontal_sum4(
        vaddq_f32(vaddq_f32(partial[0], partial[2]), vaddq_f32(partial[1], partial[3])));
}

/* One row's sum of values over tokens [first, end). */
static void add_values_f16(const float *weights, const void *v, size_t first, size_t end,
                           size_t head_dim, float *out)
{
    if (first < end)
        add_products(true, 1, weights + first, 0, element(true, v, first * head_dim), head_dim,
                     end - first, out, 0, head_dim);
}

static void add_values_f32(const float *weights, const void *v, size_t first, size_t end,
                           size_t head_dim, float *out)
{
    if (first < end)
        add_products(false, 1, weights + first, 0, element(false, v, first * head_dim), head_dim,
                     end - first, out, 0, head_dim);
}

/* half and rows are compile-time constants after inlining. */
AK_KERNEL void compute_row_scores(bool half, size_t rows, const float *q, size_t q_stride,
                                  size_t head_dim, const void *k, size_t first, size_t end,
                                  float *weights)
{
    for (size_t t = first / AK_KV_GROUP_TOKENS * AK_KV_GROUP_TOKENS; t < end;
         t += AK_KV_GROUP_TOKENS) {
        for (size_t r = 0; r < rows; r++)
            memset(weights + r * AK_KV_PAGE_TOKENS + t, 0, AK_KV_GROUP_TOKENS * sizeof *weights);
        add_products(half, rows, q, q_stride, element(half, k, t * head_dim), AK_KV_GROUP_TOKENS,
                     head_dim, weights + t, AK_KV_PAGE_TOKENS, AK_KV_GROUP_TOKENS);
    }
}

AK_KERNEL void add_row_values(bool half, size_t rows, float *weights, size_t head_dim,
                              const void *v, const uint16_t *first, const uint16_t *end, float *max,
                              float *sum, float *out, size_t out_stride)
{
    size_t common = 0, common_end = AK_KV_PAGE_TOKENS; /* the tokens that all rows see */
    for (size_t r = 0; r < rows; r++) {
        common = ak_max_size(common, first[r]);
        common_end = ak_min_size(common_end, end[r]);
    }
    if (common > common_end)
        common = common_end = 0; /* none: each row by itself */
    for (size_t r = 0; r < rows; r++) {
        apply_softmax(weights + r * AK_KV_PAGE_TOKENS, first[r], end[r], max + r, sum + r);
        memset(out + r * out_stride, 0, head_dim * sizeof *out);
        (half ? add_values_f16 : add_values_f32)(weights + r * AK_KV_PAGE_TOKENS, v, first[r],
                                                 ak_min_size(common, end[r]), head_dim,
                                                 out + r * out_stride);
    }
    add_products(half, rows, weights + common, AK_KV_PAGE_TOKENS,
                 element(half, v, common * head_dim), head_dim, common_end - common, out,
                 out_stride, head_dim);
    for (size_t r = 0; r < rows; r++)
        (half ? add_values_f16 : add_values_f32)(weights + r * AK_KV_PAGE_TOKENS, v,
                                                 ak_max_size(common_end, first[r]), end[r],
                                                 head_dim, out + r * out_stride);
}

AK_KERNEL void attn_qk(bool half, const float *q, size_t q_stride, size_t n_rows, size_t head_dim,
                       const void *k, size_t first, size_t end, float *weights)
{
    for (size_t n; n_rows > 0; n_rows -= n, q += n * q_stride, weights += n * AK_KV_PAGE_TOKENS) {
        n = ak_min_size(n_rows, ROWS);
        AK_CONSTANT(n, 8, N,
                    compute_row_scores(half, N, q, q_stride, head_dim, k, first, end, weights));
    }
}

AK_KERNEL void attn_pv(bool half, float *weights, size_t n_rows, size_t head_dim, const void *v,
                       const uint16_t *first, const uint16_t *end, float *max, float *sum,
                       float *out, size_t out_stride)
{
    for (size_t n; n_rows > 0; n_rows -= n) {
        n = ak_min_size(n_rows, ROWS);
        AK_CONSTANT(
            n, 8, N,
            add_row_values(half, N, weights, head_dim, v, first, end, max, sum, out, out_stride));
        weights += n * AK_KV_PAGE_TOKENS, out += n * out_stride;
        first += n, end += n, max += n, sum += n;
    }
}

static AK_ATTN_QK(attn_qk_f16, true);
static AK_ATTN_QK(attn_qk_f32, false);
static AK_ATTN_PV(attn_pv_f16, true);
static AK_ATTN_PV(attn_pv_f32, false);

AK_SETTER(attn)
{
    k->attn_qk_f16 = attn_qk_f16;
    k->attn_qk_f32 = attn_qk_f32;
    k->attn_pv_f16 = attn_pv_f16;
    k->attn_pv_f32 = attn_pv_f32;
}
