/* Every kernel over fixed inputs gives fixed bits, one hash a slot, whatever the
 * ISA, the compiler and the machine. The numbers came from
 * the scalar kernels on x86-64 and arm64 alike. */
#include "tests/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "engine/cpu/kernels.h"
#include "tests/engine/cpu/evex.h"

/* ---- Inputs and hashes, in integers ------------------------------------- */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Multiples of 2^-20 in [−1, 1). */
static float next_float(uint64_t *state)
{
    return (float)((int32_t)(next(state) >> 20 & 0x1fffff) - 0x100000) * 0x1p-20f;
}

static void *alloc(size_t bytes)
{
    void *p = ak_alloc_aligned(bytes);
    ck_assert_ptr_nonnull(p);
    return p;
}

static float *floats(size_t n, float range, uint64_t seed)
{
    float *x = alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = next_float(&seed) * range;
    return x;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

/* The bits of a NaN differ between machines: none may be here. */
static uint64_t hash_floats(uint64_t hash, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert(!isnan(x[i]));
    return hash_bytes(hash, x, n * sizeof *x);
}

static const uint64_t START = 0xcbf29ce484222325u;

/* ---- Packed products ---------------------------------------------------- */
/* Any quants, and scales as models have them. */
static void fill_rows(enum ak_quant_type type, uint8_t *rows, size_t bytes, uint64_t seed)
{
    size_t block = ak_quant_info(type)->block_bytes;
    size_t at = type == AK_QUANT_Q6_K  ? 208 :
                type == AK_QUANT_Q3_K  ? 108 :
                type == AK_QUANT_Q2_K  ? 80 :
                type == AK_QUANT_TQ2_0 ? 64 :
                                         0;
    bool minimum = type == AK_QUANT_Q4_1 || type == AK_QUANT_Q5_1 || type == AK_QUANT_Q2_K ||
                   type == AK_QUANT_Q4_K || type == AK_QUANT_Q5_K;
    bool affine = type == AK_QUANT_A4 || type == AK_QUANT_A5 || type == AK_QUANT_A8;
    size_t n_halves = type == AK_QUANT_MXFP4 || affine ? 0 : minimum ? 2 : 1;
    for (size_t i = 0; i < bytes; i++)
        rows[i] = (uint8_t)(next(&seed) >> 24);
    for (size_t b = 0; b < bytes; b += block) {
        for (size_t i = 0; i < n_halves; i++) {
            uint16_t half = ak_float_to_f16(next_float(&seed) * 0.1f);
            memcpy(rows + b + at + 2 * i, &half, sizeof half);
        }
        for (size_t i = 0; i < 2 && affine; i++) {
            float factor = next_float(&seed) * 0.1f;
            uint16_t upper = ak_float_to_bf16(factor);
            if (type == AK_QUANT_A8)
                memcpy(rows + b + 4 * i, &factor, sizeof factor);
            else
                memcpy(rows + b + 2 * i, &upper, sizeof upper);
        }
        if (type == AK_QUANT_MXFP4)
            rows[b] = (uint8_t)(120 + rows[b] % 8);
    }
}

struct product {
    enum ak_cpu_act_format format;
    size_t n_tiles, k, n, act_bytes;
    uint8_t *tiles, *activations;
    float *y;
};

static struct product product_of(const struct ak_cpu_kernels *kernels, enum ak_quant_type type,
                                 size_t n_tiles, size_t k, size_t n)
{
    struct product p = {
        .format = ak_cpu_type_act_format(type), .n_tiles = n_tiles, .k = k, .n = n
    };
    uint64_t row_bytes;
    ck_assert(ak_quant_row_bytes(type, k, &row_bytes));
    p.act_bytes = ak_cpu_act_bytes(p.format, k);
    p.tiles = alloc(n_tiles * ak_cpu_tile_row_bytes(type, k));
    p.activations = alloc(n * p.act_bytes);
    p.y = alloc(n * n_tiles * AK_TILE_ROWS * sizeof *p.y);
    uint8_t *rows = alloc(AK_TILE_ROWS * row_bytes);
    for (size_t i = 0; i < n_tiles; i++) {
        const void *row[AK_TILE_ROWS];
        fill_rows(type, rows, AK_TILE_ROWS * row_bytes, 17 + i);
        for (size_t r = 0; r < AK_TILE_ROWS; r++)
            row[r] = rows + r * row_bytes;
        ak_cpu_pack_tiles(type, row, k, p.tiles + i * ak_cpu_tile_row_bytes(type, k));
    }
    for (size_t t = 0; t < n; t++) {
        float *x = floats(k, 3.0f, 91 + t);
        if (p.format == AK_CPU_ACT_Q8_256)
            kernels->quantize256(x, k,
                                 (struct ak_cpu_act256 *)(void *)(p.activations + t * p.act_bytes));
        else
            kernels->quantize32(x, k,
                                (struct ak_cpu_act32 *)(void *)(p.activations + t * p.act_bytes));
        ak_free(x);
    }
    ak_free(rows);
    return p;
}

static uint64_t end_product(struct product *p, uint64_t hash)
{
    hash = hash_floats(hash, p->y, p->n * p->n_tiles * AK_TILE_ROWS);
    ak_free(p->tiles);
    ak_free(p->activations);
    ak_free(p->y);
    return hash;
}

/* A length with a tail, where the type has any. */
static size_t length_of(enum ak_quant_type type, size_t tiles)
{
    size_t block = ak_quant_info(type)->block_elems;
    if (ak_cpu_type_act_format(type) == AK_CPU_ACT_Q8_32)
        return tiles * AK_TILE_K + (block > AK_BLOCK_K ? block : 3 * AK_BLOCK_K);
    return tiles * AK_TILE_K;
}

static uint64_t run_tiles(const struct ak_cpu_kernels *kernels, enum ak_quant_type type)
{
    uint64_t hash = START;
    for (size_t n = 1; n <= AK_SKINNY_MAX; n++) {
        struct product p = product_of(kernels, type, 3, length_of(type, 1 + n % 3), n);
        kernels->tile[type].dot_tiles(p.tiles, p.n_tiles, p.k, p.activations, p.act_bytes, n, p.y,
                                      p.n_tiles * AK_TILE_ROWS, 0);
        hash = end_product(&p, hash);
    }
    return hash;
}

static uint64_t run_panel_i8(const struct ak_cpu_kernels *kernels, enum ak_quant_type type)
{
    uint64_t hash = START;
    for (size_t n_tiles = 1; n_tiles <= AK_PANEL_I8_TILES_MAX; n_tiles++) {
        struct product p = product_of(kernels, type, n_tiles, length_of(type, 3), 21 + 2 * n_tiles);
        uint8_t *panel = alloc(n_tiles * (p.k / AK_BLOCK_K) * AK_PANEL_I8_BLOCK_BYTES_MAX);
        kernels->tile[type].unpack_panel_i8(p.tiles, n_tiles, p.k, panel);
        kernels->tile[type].dot_panel_i8(panel, n_tiles, p.k, p.activations, p.act_bytes, p.n, p.y,
                                         n_tiles * AK_TILE_ROWS);
        ak_free(panel);
        hash = end_product(&p, hash);
    }
    return hash;
}

/* ---- The others --------------------------------------------------------- */
static uint64_t run_dequantize(const struct ak_cpu_kernels *kernels, enum ak_quant_type type)
{
    enum { N = 30001 }; /* halves from zero up, and a tail */
    uint16_t *halves = alloc(N * sizeof *halves);
    float *x = alloc(N * sizeof *x);
    for (size_t i = 0; i < N; i++)
        halves[i] = (uint16_t)i;
    kernels->dequantize[type](halves, x, N);
    uint64_t hash = hash_floats(START, x, N);
    ak_free(halves);
    ak_free(x);
    return hash;
}

static uint64_t run_dot_rows(const struct ak_cpu_kernels *kernels, enum ak_quant_type type)
{
    (void)type;
    enum { ROWS = 7, TOKENS = 11, K = 1120 };
    float *w = floats(ROWS * K, 1.0f, 5), *x = floats(TOKENS * K, 2.0f, 6),
          *y = alloc(ROWS * TOKENS * sizeof *y);
    uint64_t hash = START;
    for (size_t n = 1; n <= TOKENS; n++) {
        kernels->dot_rows(w, K, ROWS, x, K, n, K, y, ROWS);
        hash = hash_floats(hash, y, n * ROWS);
    }
    ak_free(w);
    ak_free(x);
    ak_free(y);
    return hash;
}

/* Magnitudes from 2^-110 to 1, some of them exact ties. */
static float *graded(size_t n)
{
    float *x = floats(n, 1.0f, 7);
    for (size_t i = 0; i < n; i++)
        x[i] = i / 256 % 3 == 0 ? x[i] :
               i / 256 % 3 == 1 ? (float)(i % 255) * 0.5f :
                                  x[i] * ak_bits_float((uint32_t)(17 + i / 8 % 110) << 23);
    return x;
}

static uint64_t run_quantize32(const struct ak_cpu_kernels *kernels, enum ak_quant_type type)
{
    (void)type;
    enum { N = 256 * 37 };
    float *x = graded(N);
    struct ak_cpu_act32 *activations = alloc(N / 32 * sizeof *activations);
    kernels->quantize32(x, N, activations);
    uint64_t hash = hash_bytes(START, activations, N / 32 * sizeof *activations);
    ak_free(x);
    ak_free(activations);
    return hash;
}

static uint64_t run_quantize256(const struct ak_cpu_kernels *kernels, enum ak_quant_type type)
{
    (void)type;
    enum { N = 256 * 37 };
    float *x = graded(N);
    struct ak_cpu_act256 *activations = alloc(N / 256 * sizeof *activations);
    kernels->quantize256(x, N, activations);
    uint64_t hash = hash_bytes(START, activations, N / 256 * sizeof *activations);
    ak_free(x);
    ak_free(activations);
    return hash;
}

/* The kernels over a row, for all lengths up to 100, each in its own way. */
typedef void row_fn(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out, size_t n);

static uint64_t run_row(const struct ak_cpu_kernels *kernels, row_fn *run, float range)
{
    uint64_t hash = START;
    for (size_t n = 2; n <= 100; n += 2) {
        float *x = floats(n, range, n), *y = floats(n, 1.0f, 2 * n), *out = floats(n, 1.0f, 3 * n);
        run(kernels, x, y, out, n);
        hash = hash_floats(hash, out, n);
        ak_free(x);
        ak_free(y);
        ak_free(out);
    }
    return hash;
}

static void row_rms_norm(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                         size_t n)
{
    kernels->rms_norm(x, y, n, 1e-5f, out);
}

static void row_add(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out, size_t n)
{
    (void)y;
    kernels->add(out, x, n);
}

static void row_silu_mul(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                         size_t n)
{
    kernels->silu_mul(x, y, out, n);
}

static void row_layer_norm(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                           size_t n)
{
    kernels->layer_norm(x, y, y, n, 1e-5f, out);
}

static void row_add_scaled(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                           size_t n)
{
    (void)y;
    kernels->add_scaled(out, x, 0.22f, n);
}

static void row_softcap(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                        size_t n)
{
    memcpy(out, x, n * sizeof *out);
    (void)y;
    kernels->softcap(out, 50.0f, n);
}

static void row_gelu_tanh(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                          size_t n)
{
    (void)y;
    kernels->gelu_tanh(x, out, n);
}

static void row_gelu_tanh_mul(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                              size_t n)
{
    kernels->gelu_tanh_mul(x, y, out, n);
}

static void row_gelu_erf(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                         size_t n)
{
    (void)y;
    kernels->gelu_erf(x, out, n);
}

static void row_gelu_erf_mul(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                             size_t n)
{
    kernels->gelu_erf_mul(x, y, out, n);
}

static void row_swiglu_clamped(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                               size_t n)
{
    kernels->swiglu_clamped(x, y, out, n);
}

static void row_rope(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out, size_t n)
{
    kernels->rope(out, x, y, n, n / 2 % 2 == 0);
}

static void row_divide(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                       size_t n)
{
    (void)y;
    kernels->divide(out, x[0], n);
}

static void row_f32_to_f16(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                           size_t n)
{
    uint16_t halves[100];
    for (size_t i = 0; i < n; i++) /* from below the least half to beyond the largest */
        x[i] *= ak_bits_float((uint32_t)(100 + (i + n) % 48) << 23);
    (void)y;
    kernels->f32_to_f16(x, halves, n);
    for (size_t i = 0; i < n; i++)
        out[i] = (float)halves[i];
}

static void row_attn_merge(const struct ak_cpu_kernels *kernels, float *x, float *y, float *out,
                           size_t n)
{
    float max = n % 6 == 0 ? -INFINITY : x[0], sum = n % 6 == 0 ? 0.0f : 2.5f;
    if (n % 6 == 0)
        memset(out, 0, n * sizeof *out);
    kernels->attn_merge(&max, &sum, out, x[1], 3.5f, y, n);
    out[0] += max + sum;
}

static uint64_t run_rms_norm(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_rms_norm, 4.0f);
}
static uint64_t run_add(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_add, 4.0f);
}
static uint64_t run_silu_mul(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_silu_mul, 100.0f);
}
static uint64_t run_layer_norm(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_layer_norm, 4.0f);
}
static uint64_t run_add_scaled(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_add_scaled, 4.0f);
}
static uint64_t run_softcap(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_softcap, 100.0f);
}
static uint64_t run_gelu_tanh(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_gelu_tanh, 8.0f);
}
static uint64_t run_gelu_tanh_mul(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_gelu_tanh_mul, 8.0f);
}
static uint64_t run_gelu_erf(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_gelu_erf, 8.0f);
}
static uint64_t run_gelu_erf_mul(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_gelu_erf_mul, 8.0f);
}
static uint64_t run_swiglu_clamped(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_swiglu_clamped, 16.0f);
}
static uint64_t run_rope(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_rope, 1.0f);
}
static uint64_t run_f32_to_f16(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_f32_to_f16, 1.0f);
}
static uint64_t run_merge(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_attn_merge, 8.0f);
}
static uint64_t run_divide(const struct ak_cpu_kernels *k, enum ak_quant_type type)
{
    (void)type;
    return run_row(k, row_divide, 8.0f);
}

/* type: that of K and V. Rows see ranges of their own. */
static uint64_t run_attention(const struct ak_cpu_kernels *kernels, enum ak_quant_type type)
{
    static const size_t head_dims[] = { 64, 128, 80, 36 };
    enum { ROWS = 19, HEAD_DIM_MAX = 128 };
    ak_attn_qk_fn *scores = type == AK_QUANT_F16 ? kernels->attn_qk_f16 : kernels->attn_qk_f32;
    ak_attn_pv_fn *values = type == AK_QUANT_F16 ? kernels->attn_pv_f16 : kernels->attn_pv_f32;
    float *q = floats(ROWS * HEAD_DIM_MAX, 1.0f, 8),
          *kv = floats(2 * AK_KV_PAGE_TOKENS * HEAD_DIM_MAX, 1.5f, 9);
    float *weights = alloc(ROWS * AK_KV_PAGE_TOKENS * sizeof *weights),
          *out = alloc(ROWS * HEAD_DIM_MAX * sizeof *out);
    uint16_t *halves = alloc(2 * AK_KV_PAGE_TOKENS * HEAD_DIM_MAX * sizeof *halves);
    for (size_t i = 0; i < 2 * AK_KV_PAGE_TOKENS * HEAD_DIM_MAX; i++)
        halves[i] = ak_float_to_f16(kv[i]);
    uint64_t hash = START;
    for (size_t i = 0; i < 4 * ROWS; i++) {
        size_t head_dim = head_dims[i % 4], n = 1 + i / 4, v_at = AK_KV_PAGE_TOKENS * head_dim;
        const void *k = type == AK_QUANT_F16 ? (const void *)halves : kv;
        const void *v = type == AK_QUANT_F16 ? (const void *)(halves + v_at) : kv + v_at;
        uint16_t first[ROWS], end[ROWS];
        float max[ROWS], sum[ROWS];
        for (size_t r = 0; r < n; r++) { /* all alike, causal, a window */
            first[r] = (uint16_t)(i % 3 == 2 ? r : 0);
            end[r] = (uint16_t)(i % 3 == 0 ? 1 + i % 64 : 20 + r);
        }
        scores(q, head_dim, n, head_dim, k, 0, AK_KV_PAGE_TOKENS, weights);
        values(weights, n, head_dim, v, first, end, max, sum, out, head_dim);
        hash = hash_floats(hash_floats(hash_floats(hash, max, n), sum, n), out, n * head_dim);
    }
    ak_free(q);
    ak_free(kv);
    ak_free(weights);
    ak_free(out);
    ak_free(halves);
    return hash;
}

/* ---- The slots ---------------------------------------------------------- */
static const struct slot {
    const char *name;
    uint64_t (*run)(const struct ak_cpu_kernels *kernels, enum ak_quant_type type);
    enum ak_quant_type type;
    uint64_t hash;
} slots[] = {
    { "dot_tiles Q4_0", run_tiles, AK_QUANT_Q4_0, 0x843c23d11607eb1e },
    { "dot_tiles Q4_1", run_tiles, AK_QUANT_Q4_1, 0xa90eefb8a53613a9 },
    { "dot_tiles Q5_0", run_tiles, AK_QUANT_Q5_0, 0xa1204cdd17c72b0b },
    { "dot_tiles Q8_0", run_tiles, AK_QUANT_Q8_0, 0x6f5cb9bd751f43b9 },
    { "dot_tiles Q4_K", run_tiles, AK_QUANT_Q4_K, 0x87c832701f21b835 },
    { "dot_tiles Q6_K", run_tiles, AK_QUANT_Q6_K, 0xce7ca2ccdfe38090 },
    { "dot_tiles Q5_1", run_tiles, AK_QUANT_Q5_1, 0x86a8f6faa74fda6f },
    { "dot_tiles Q2_K", run_tiles, AK_QUANT_Q2_K, 0x845f8748a2789022 },
    { "dot_tiles Q3_K", run_tiles, AK_QUANT_Q3_K, 0x5baad70e05181664 },
    { "dot_tiles Q5_K", run_tiles, AK_QUANT_Q5_K, 0x68845f8f9a09fe40 },
    { "dot_tiles IQ4_NL", run_tiles, AK_QUANT_IQ4_NL, 0xc1d673b058a68b14 },
    { "dot_tiles IQ4_XS", run_tiles, AK_QUANT_IQ4_XS, 0x4cf5b9f544fa2b4a },
    { "dot_tiles MXFP4", run_tiles, AK_QUANT_MXFP4, 0x9c7990246849e81d },
    { "dot_tiles A4", run_tiles, AK_QUANT_A4, 0xe90400504a9b26ae },
    { "dot_tiles A5", run_tiles, AK_QUANT_A5, 0xe15efc9b815b67f3 },
    { "dot_tiles A8", run_tiles, AK_QUANT_A8, 0xc23a6b1bdd7aecaf },
    { "dot_tiles IQ1_S", run_tiles, AK_QUANT_IQ1_S, 0x1f894f692f26c038 },
    { "dot_tiles IQ2_XXS", run_tiles, AK_QUANT_IQ2_XXS, 0x73aacbff55948110 },
    { "dot_tiles IQ2_S", run_tiles, AK_QUANT_IQ2_S, 0xd59ac5d1b054830f },
    { "dot_tiles IQ3_XXS", run_tiles, AK_QUANT_IQ3_XXS, 0xea6f73ebeefffafa },
    { "dot_tiles IQ3_S", run_tiles, AK_QUANT_IQ3_S, 0x702915bf03fbeb4e },
    { "dot_tiles TQ2_0", run_tiles, AK_QUANT_TQ2_0, 0x4ca34bb62ccd8fa2 },
    { "dot_tiles Q1_0", run_tiles, AK_QUANT_Q1_0, 0x0baed6ff7bb25c26 },
    { "dot_tiles Q2_0", run_tiles, AK_QUANT_Q2_0, 0x262c4fecda5e47e9 },
    { "dot_panel_i8 Q4_0", run_panel_i8, AK_QUANT_Q4_0, 0x8e0cbb845fc78df5 },
    { "dot_panel_i8 Q4_1", run_panel_i8, AK_QUANT_Q4_1, 0x95a58bfd68b03b8e },
    { "dot_panel_i8 Q5_0", run_panel_i8, AK_QUANT_Q5_0, 0xdb43f732b46d064f },
    { "dot_panel_i8 Q8_0", run_panel_i8, AK_QUANT_Q8_0, 0x28c406050bafcf03 },
    { "dot_panel_i8 Q4_K", run_panel_i8, AK_QUANT_Q4_K, 0x43e10c80160c3b0d },
    { "dot_panel_i8 Q6_K", run_panel_i8, AK_QUANT_Q6_K, 0xa7c480e6ef53bab2 },
    { "dot_panel_i8 Q5_1", run_panel_i8, AK_QUANT_Q5_1, 0x3f5d47de2de57c8c },
    { "dot_panel_i8 Q2_K", run_panel_i8, AK_QUANT_Q2_K, 0xea906a28d5dae9dc },
    { "dot_panel_i8 Q3_K", run_panel_i8, AK_QUANT_Q3_K, 0x47b8b8af99b4a1f7 },
    { "dot_panel_i8 Q5_K", run_panel_i8, AK_QUANT_Q5_K, 0xa2ed22f49670441c },
    { "dot_panel_i8 IQ4_NL", run_panel_i8, AK_QUANT_IQ4_NL, 0x6c09a67dbf41c7ea },
    { "dot_panel_i8 IQ4_XS", run_panel_i8, AK_QUANT_IQ4_XS, 0x3fed67e174b2e0ab },
    { "dot_panel_i8 MXFP4", run_panel_i8, AK_QUANT_MXFP4, 0x2583eadfe285f961 },
    { "dot_panel_i8 A4", run_panel_i8, AK_QUANT_A4, 0x49798c93bc8865aa },
    { "dot_panel_i8 A5", run_panel_i8, AK_QUANT_A5, 0x3b7591403919882b },
    { "dot_panel_i8 A8", run_panel_i8, AK_QUANT_A8, 0xc80a24f12e487316 },
    { "dot_panel_i8 IQ1_S", run_panel_i8, AK_QUANT_IQ1_S, 0x533a5d43bf2e474e },
    { "dot_panel_i8 IQ2_XXS", run_panel_i8, AK_QUANT_IQ2_XXS, 0x32e532d1a0a75892 },
    { "dot_panel_i8 IQ2_S", run_panel_i8, AK_QUANT_IQ2_S, 0x4cd25c6bbcf9ea97 },
    { "dot_panel_i8 IQ3_XXS", run_panel_i8, AK_QUANT_IQ3_XXS, 0xafc4e86652753e80 },
    { "dot_panel_i8 IQ3_S", run_panel_i8, AK_QUANT_IQ3_S, 0xac38cbbb925ed165 },
    { "dot_panel_i8 TQ2_0", run_panel_i8, AK_QUANT_TQ2_0, 0x0ec49379443d675e },
    { "dot_panel_i8 Q1_0", run_panel_i8, AK_QUANT_Q1_0, 0x18f7e79758d63c8f },
    { "dot_panel_i8 Q2_0", run_panel_i8, AK_QUANT_Q2_0, 0x2bd27cc93f79bd1c },
    { "dequantize F16", run_dequantize, AK_QUANT_F16, 0x5b9625782f5f9e28 },
    { "dequantize BF16", run_dequantize, AK_QUANT_BF16, 0x265e138d78c7e8e6 },
    { "dot_rows", run_dot_rows, AK_QUANT_F32, 0x0e9d296f7e4e90dd },
    { "quantize32", run_quantize32, AK_QUANT_F32, 0x1b9ef83d8e10300c },
    { "quantize256", run_quantize256, AK_QUANT_F32, 0x6f6f8bbfe7b535b2 },
    { "rms_norm", run_rms_norm, AK_QUANT_F32, 0x62350780ddb047a4 },
    { "add", run_add, AK_QUANT_F32, 0x0321b5367b481dee },
    { "silu_mul", run_silu_mul, AK_QUANT_F32, 0x2fa4cb56b22348c5 },
    { "layer_norm", run_layer_norm, AK_QUANT_F32, 0xf6661db1d29dafc7 },
    { "add_scaled", run_add_scaled, AK_QUANT_F32, 0x1b12a24b4cc87e30 },
    { "softcap", run_softcap, AK_QUANT_F32, 0x65af8a7b90eedeae },
    { "gelu_tanh", run_gelu_tanh, AK_QUANT_F32, 0x28321fcbdfc1c27f },
    { "gelu_tanh_mul", run_gelu_tanh_mul, AK_QUANT_F32, 0x64d4dae1ec9fb29a },
    { "gelu_erf", run_gelu_erf, AK_QUANT_F32, 0xc158a19b1b49d90f },
    { "gelu_erf_mul", run_gelu_erf_mul, AK_QUANT_F32, 0x0842517d3e2f42cf },
    { "swiglu_clamped", run_swiglu_clamped, AK_QUANT_F32, 0x48b17b95a0196017 },
    { "rope", run_rope, AK_QUANT_F32, 0x62b7d8b9046c4732 },
    { "f32_to_f16", run_f32_to_f16, AK_QUANT_F32, 0x9ed736449d4a1a08 },
    { "attention F16", run_attention, AK_QUANT_F16, 0xeb6fbab65b8290a3 },
    { "attention F32", run_attention, AK_QUANT_F32, 0x5e9b406179b06399 },
    { "attn_merge", run_merge, AK_QUANT_F32, 0x332f3671486fabbc },
    { "divide", run_divide, AK_QUANT_F32, 0x9a4edd5a3a772402 },
};

START_TEST(hashes)
{
    struct ak_cpu_kernels kernels;
    if (!fill_isa(_i, &kernels))
        return;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        uint64_t hash = slots[i].run(&kernels, slots[i].type);
        ck_assert_msg(hash == slots[i].hash, "%s of %s: 0x%016llx", slots[i].name, kernels.name,
                      (unsigned long long)hash);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels_hash");
    TCase *tests = tcase_create("hashes");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, hashes, 0, N_ISAS);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
