/* Kernels of an ISA as one table of functions. A table is filled with the scalar kernels,
 * then the ISA's ancestors and the ISA override some (isa.def).
 *
 * Every kernel but those of BF16 (--relaxed) returns the same bits as its scalar counterpart: the
 * order of all float operations is specified here or beside the scalar kernel, and every
 * multiply-add is one fused operation. Kernels cannot fail, allocate or start threads. Pointers do
 * not alias. Strides count elements unless their name says bytes. */
#ifndef AK_ENGINE_CPU_KERNELS_H
#define AK_ENGINE_CPU_KERNELS_H

#include "engine/backend/shapes.h"
#include "engine/cpu/isa.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/slices.h"

enum {
    AK_LANES = 32,                      /* partial sums of a float dot product */
    AK_PANEL_I8_TILES_MAX = 2,          /* tile rows per int8 panel */
    AK_PANEL_I8_BLOCK_BYTES_MAX = 1088, /* bytes per tile and 32-k block of an int8 panel */
    AK_PANEL_ROWS_MAX = 48,             /* rows of an f32 panel */
    /* the capacity of interleaved tokens is a multiple of this */
    AK_PANEL_TOKEN_STEP = 24,
    AK_DELTA_COLUMNS_MAX = 64,    /* columns of one delta_rule call */
    AK_DELTA_STEP = 16,           /* their multiple */
    AK_PANEL_BF16_TOKEN_STEP = 16 /* as AK_PANEL_TOKEN_STEP, for BF16 */
};

/* GEMV and skinny GEMM: y[t·y_stride + 16·i + r] = row r of tile row i times token t, for n_tiles
 * tile rows and n = 1 … AK_SKINNY_MAX tokens. `activations` are ak_cpu_act32 or ak_cpu_act256 of k
 * elements per token; tokens are act_bytes apart. `distance`: of prefetch, in bytes; 0: none. */
typedef void ak_dot_tiles_fn(const uint8_t *restrict tiles, size_t n_tiles, size_t k,
                             const uint8_t *restrict activations, size_t act_bytes, size_t n,
                             float *restrict y, size_t y_stride, size_t distance);

/* Panel: unpacked weight rows in the order that GEMM reads them; each ISA has its own layout. This
 * unpacks n_tiles (1 … AK_PANEL_I8_TILES_MAX) tile rows into an int8 panel of at most n_tiles ·
 * ceil(k/32) · AK_PANEL_I8_BLOCK_BYTES_MAX bytes, 64-byte aligned. */
typedef void ak_unpack_panel_i8_fn(const uint8_t *restrict tiles, size_t n_tiles, size_t k,
                                   uint8_t *restrict panel);

/* As ak_dot_tiles_fn for any n ≥ 1, over an int8 panel. */
typedef void ak_dot_panel_i8_fn(const uint8_t *restrict panel, size_t n_tiles, size_t k,
                                const uint8_t *restrict activations, size_t act_bytes, size_t n,
                                float *restrict y, size_t y_stride);

struct ak_cpu_tile_kernels {
    ak_dot_tiles_fn *dot_tiles;
    ak_unpack_panel_i8_fn *unpack_panel_i8;
    ak_dot_panel_i8_fn *dot_panel_i8;
};

/* y[t·y_stride + r] = row r times token t, summed in the order of dot_rows, for n_rows stored rows
 * of `cols` elements, row_bytes apart, and n = 1 … AK_SKINNY_MAX tokens. Tokens are padded with
 * zeros to a multiple of AK_LANES elements; rows are not. */
typedef void ak_dot_stored_fn(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows,
                              size_t cols, const float *restrict x, size_t x_stride, size_t n,
                              float *restrict y, size_t y_stride, size_t distance);

/* GEMM over f32 panels. Unpacks n_rows = 1 … AK_PANEL_ROWS_MAX stored rows of `cols` elements,
 * row_bytes apart. Panel and interleaved tokens have layouts of the ISA's own choice, 64-byte
 * aligned. With k = cols rounded up to AK_LANES, the panel has ceil(n_rows/16) · 16 · k floats, the
 * tokens ceil(n/AK_PANEL_TOKEN_STEP) · AK_PANEL_TOKEN_STEP · k. */
typedef void ak_unpack_panel_f32_fn(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows,
                                    size_t cols, float *restrict panel);

/* Writes token number `token`, k floats, to its interleaved position. */
typedef void ak_interleave_token_f32_fn(const float *restrict x, size_t k, size_t token,
                                        float *restrict tokens);

/* As dot_rows, over a panel and interleaved tokens. The product leaves memory idle, so a kernel may
 * prefetch next_bytes bytes at `next`, the rows unpacked next. */
typedef void ak_dot_panel_f32_fn(const float *restrict panel, size_t n_rows,
                                 const float *restrict tokens, size_t n, size_t k,
                                 float *restrict y, size_t y_stride, const uint8_t *next,
                                 size_t next_bytes);

/* The same in BF16: stored BF16 rows, or F16 rows rounded to BF16, and tokens rounded to BF16; k is
 * a multiple of AK_LANES. The panel's capacity is n_rows rounded up to AK_PANEL_ROWS_MAX, the
 * tokens' is n rounded up to AK_PANEL_BF16_TOKEN_STEP. The order of sums is fixed per ISA but
 * unspecified. It does not depend on n, on the other rows and tokens, or on the position among
 * them. */
typedef void ak_unpack_panel_bf16_fn(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows,
                                     size_t k, uint16_t *restrict panel);
typedef void ak_interleave_token_bf16_fn(const float *restrict x, size_t k, size_t token,
                                         uint16_t *restrict tokens);
typedef void ak_dot_panel_bf16_fn(const uint16_t *restrict panel, size_t n_rows,
                                  const uint16_t *restrict tokens, size_t n, size_t k,
                                  float *restrict y, size_t y_stride);

/* Query rows against one KV page, in two halves that share `weights`: n_rows rows of
 * AK_KV_PAGE_TOKENS floats, 64-byte aligned.
 *
 * Scores: weights[i][t] = Σ_d q_i[d]·k[t][d], one fma per step, d ascending, from 0, for the tokens
 * [first, end), not empty. Other tokens of the same groups of 16 are undefined. K is stored as
 * [AK_KV_PAGE_TOKENS/16][head_dim][16]. */
typedef void ak_attn_qk_fn(const float *restrict q, size_t q_stride, size_t n_rows, size_t head_dim,
                           const void *restrict k, size_t first, size_t end,
                           float *restrict weights);

/* Values: row i sees the page's tokens [first[i], end[i]), not empty, with the scores s_t from its
 * weights. Writes the page's partial softmax:
 *   max    = the largest s_t
 *   p_t    = exp(s_t − max), left in weights
 *   sum    = Σ p_t: 16 partial sums (t mod 16), each ascending, then halves added
 *   out[d] = Σ_t p_t·v[t][d], one fma per step, t ascending, from 0
 * V is stored as [AK_KV_PAGE_TOKENS][head_dim]. */
typedef void ak_attn_pv_fn(float *restrict weights, size_t n_rows, size_t head_dim,
                           const void *restrict v, const uint16_t *restrict first,
                           const uint16_t *restrict end, float *restrict max, float *restrict sum,
                           float *restrict out, size_t out_stride);

struct ak_cpu_kernels {
    const char *name;

    struct ak_cpu_tile_kernels tile[AK_QUANT_COUNT]; /* NULL for types without a tile layout */

    /* tokens: up to here dot_tiles, for AK_SKINNY_MAX tokens at a time, is faster than unpacking a
     * panel, unless the chip profile has a lower limit than AK_SKINNY_MAX (bench/notes) */
    size_t dot_tiles_tokens_max;

    /* As ak_dot_tiles_fn over one tile row of Q8_0 in slices. Prefetches the tile row `next`. */
    void (*dot_slices)(const struct ak_cpu_slices *slices, const struct ak_cpu_slices *next,
                       size_t k, const uint8_t *restrict activations, size_t act_bytes, size_t n,
                       float *restrict y, size_t y_stride);

    /* Restores a Q8_0 tile of `blocks` blocks (1 … 8) from its tile of the high slice and its
     * blocks of the low slice. */
    void (*join_slices)(const uint8_t *restrict high, const uint8_t *restrict low, size_t blocks,
                        uint8_t *restrict tile);

    /* Dequantizes a stored row of n elements: ak_quant_info.dequantize or a faster equivalent. */
    ak_quant_dequantize_fn *dequantize[AK_QUANT_COUNT];

    /* y[t·y_stride + r] = Σ_k w[r][k]·x[t][k] for n_rows rows and n tokens; k is a multiple of
     * AK_LANES. Partial sum j adds k mod 32 = j ascending, one fma per step, from 0; then the upper
     * half is added to the lower half until one sum is left. */
    void (*dot_rows)(const float *restrict w, size_t w_stride, size_t n_rows,
                     const float *restrict x, size_t x_stride, size_t n, size_t k,
                     float *restrict y, size_t y_stride);

    /* Same results as dequantize and dot_rows, faster: skinny GEMM over stored rows, and GEMM over
     * f32 panels. NULL: not in this ISA. */
    ak_dot_stored_fn *dot_stored[AK_QUANT_COUNT];
    ak_unpack_panel_f32_fn *unpack_panel_f32[AK_QUANT_COUNT];
    ak_interleave_token_f32_fn *interleave_token_f32;
    ak_dot_panel_f32_fn *dot_panel_f32;

    /* For --relaxed only: the only kernels that round differently from the scalar ones. NULL: not
     * in this ISA, or not supported by this machine. */
    ak_unpack_panel_bf16_fn *unpack_panel_bf16[AK_QUANT_COUNT];
    ak_interleave_token_bf16_fn *interleave_token_bf16;
    ak_dot_panel_bf16_fn *dot_panel_bf16;
    /* rows of a BF16 panel: multiples of panel_bf16_step, at most panel_bf16_max, which is at most
     * 2 · AK_PANEL_ROWS_MAX */
    size_t panel_bf16_step, panel_bf16_max;

    /* n is a multiple of 32 for quantize32, of 256 for quantize256. */
    void (*quantize32)(const float *restrict x, size_t n, struct ak_cpu_act32 *restrict out);
    void (*quantize256)(const float *restrict x, size_t n, struct ak_cpu_act256 *restrict out);

    /* out[i] = (x[i] · 1/sqrt(mean(x²) + eps)) · weight[i]; Σx² with 32 partial sums as in
     * dot_rows, elements beyond n taken as zero. */
    void (*rms_norm)(const float *restrict x, const float *restrict weight, size_t n, float eps,
                     float *restrict out);

    /* out[i] = fma((x[i] − mean) · 1/sqrt(mean((x − mean)²) + eps), weight[i], bias[i]);
     * Σx and Σ(x − mean)² with 32 partial sums as in rms_norm, the first without fma. */
    void (*layer_norm)(const float *restrict x, const float *restrict weight,
                       const float *restrict bias, size_t n, float eps, float *restrict out);

    /* y[i] += x[i] */
    void (*add)(float *restrict y, const float *restrict x, size_t n);

    /* y[i] = fma(x[i], scale, y[i]) */
    void (*add_scaled)(float *restrict y, const float *restrict x, float scale, size_t n);

    /* x[i] = cap · tanh(x[i] / cap) */
    void (*softcap)(float *restrict x, float cap, size_t n);

    /* out[i] = gelu(x[i]), out[i] = gelu(gate[i]) · up[i], with the tanh approximation:
     *   x / (1 + exp(x · fma(x·x, −2·sqrt(2/π)·0.044715, −2·sqrt(2/π))))
     * Without a gate, out may be x. */
    void (*gelu_tanh)(const float *x, float *out, size_t n);
    void (*gelu_tanh_mul)(const float *restrict gate, const float *restrict up, float *restrict out,
                          size_t n);

    /* The same with the error function: fma(x/2, erf(x · sqrt(1/2)), x/2) */
    void (*gelu_erf)(const float *x, float *out, size_t n);
    void (*gelu_erf_mul)(const float *restrict gate, const float *restrict up, float *restrict out,
                         size_t n);

    /* out[i] = gate[i] / (1 + exp(−gate[i])) · up[i] */
    void (*silu_mul)(const float *restrict gate, const float *restrict up, float *restrict out,
                     size_t n);

    /* x[i] /= 1 + exp(−x[i]) */
    void (*silu)(float *restrict x, size_t n);

    /* y[i] /= 1 + exp(−gate[i]) */
    void (*sigmoid_mul)(float *restrict y, const float *restrict gate, size_t n);

    /* out[i] = g / (1 + exp(−1.702·g)) · (u + 1), g = min(gate[i], 7), u = up[i] clamped to ±7 */
    void (*swiglu_clamped)(const float *restrict gate, const float *restrict up,
                           float *restrict out, size_t n);

    /* One token of n channels: now = b·x, out = c · Σ kernel[i][k] · (state rows, oldest first,
     * then now), a chain of fma from 0. Then `now` becomes the newest of the taps − 1 rows of
     * `state`, which are `stride` elements apart. */
    void (*short_conv)(const float *restrict b, const float *restrict c, const float *restrict x,
                       const float *restrict kernel, size_t taps, float *restrict state,
                       size_t stride, float *restrict out, size_t n);

    /* One token of n channels: out = Σ kernel[i][k] · (state rows, oldest first, then x), a chain
     * of fma from 0. Then x becomes the newest of the taps − 1 rows of `state`, which are `stride`
     * elements apart. */
    void (*conv)(const float *restrict x, const float *restrict kernel, size_t taps,
                 float *restrict state, size_t stride, float *restrict out, size_t n);

    /* One token of the gated delta rule, for n columns of a state of `rows` rows, `stride` elements
     * apart; n is a multiple of AK_DELTA_STEP and at most AK_DELTA_COLUMNS_MAX:
     *   d[j]    = beta · fma(−decay, Σ_i k[i]·S[i][j], v[j])
     *   S[i][j] = fma(k[i], d[j], decay·S[i][j])
     *   out[j]  = Σ_i q[i]·S[i][j]
     * A sum is one fma per step, i ascending, from 0. */
    void (*delta_rule)(const float *restrict q, const float *restrict k, size_t rows,
                       const float *restrict v, float decay, float beta, float *restrict state,
                       size_t stride, float *restrict out, size_t n);

    /* Rotates n_dims/2 pairs of x in place. Pair i is (2i, 2i+1) if interleaved, else
     * (i, i + n_dims/2): a' = fma(a, cos, −(b·sin)), b' = fma(a, sin, b·cos). */
    void (*rope)(float *restrict x, const float *restrict cos, const float *restrict sin,
                 size_t n_dims, bool interleaved);

    /* Convert: floats to IEEE half precision, ties to even. */
    void (*f32_to_f16)(const float *restrict x, uint16_t *restrict out, size_t n);

    ak_attn_qk_fn *attn_qk_f16, *attn_qk_f32;
    ak_attn_pv_fn *attn_pv_f16, *attn_pv_f32;
    /* Values stored as rows of Q8_0; same bits as dequantizing them first. NULL: not in this
     * ISA. */
    ak_attn_pv_fn *attn_pv_q8_0;

    /* Merges a page's partial softmax into a row's (log-sum-exp):
     *   m = max(*max, page_max), a = exp(*max − m), b = exp(page_max − m)
     *   sum = fma(page_sum, b, sum·a), out[d] = fma(page_out[d], b, out[d]·a)
     * An empty row has *max = −infinity and zeros. */
    void (*attn_merge)(float *restrict max, float *restrict sum, float *restrict out,
                       float page_max, float page_sum, const float *restrict page_out,
                       size_t head_dim);

    /* x[i] /= divisor */
    void (*divide)(float *restrict x, float divisor, size_t n);

    /* Roofline probes (src/engine/cpu/roofline.c). probe_read reads `bytes` bytes at p, a multiple
     * of 256. The others compute products of one kind and return the number of operations, a
     * multiply-add counted as two. Return values and *sink keep compilers from removing the work.
     * probe_bf16 is NULL if the machine has no BF16 products. */
    uint64_t (*probe_read)(const uint8_t *restrict p, size_t bytes);
    uint64_t (*probe_int8)(size_t rounds, uint64_t *sink);
    uint64_t (*probe_f32)(size_t rounds, uint64_t *sink);
    uint64_t (*probe_bf16)(size_t rounds, uint64_t *sink);
};

/* Fills the whole table for `isa`, which must be usable. */
void ak_cpu_fill_kernels(enum ak_cpu_isa isa, struct ak_cpu_kernels *out);

/* Setters: each overrides the kernels that its ISA has. */
#define ISA(NAME, name, PARENT, detect) void ak_##name##_set_kernels(struct ak_cpu_kernels *k);
#define ISA_OPTION(NAME, name, PARENT, detect)                                                     \
    void ak_##name##_set_kernels(struct ak_cpu_kernels *k);
#include "engine/cpu/isa.def"

#endif
