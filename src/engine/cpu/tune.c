/* Tuning of chip profiles: finds, per activation format, the number of tokens at which GEMM
 * overtakes skinny GEMM, and whether OpenBLAS is faster for prompts. */
#include "engine/cpu/backend.h"

#include <math.h>

#include "base/mem.h"
#include "base/system.h"
#include "base/thread.h"
#include "engine/cpu/cpu.h"

static const size_t weight_bytes = (size_t)64 << 20; /* bytes; exceeds caches, as a model does */
static const size_t counts[] = { 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16 };
enum { K = 2048, N_COUNTS = sizeof counts / sizeof *counts };
enum { PROMPT = 512, PROMPT_ROWS = 512 }; /* tokens and rows of the OpenBLAS comparison */

static const struct ak_backend_profile defaults;

/* Minimum gain over all counts for a value to enter the profile. */
static const double gain_min = 0.02;

struct tuner {
    struct ak_cpu_kernels kernels;
    struct ak_cpu_blas blas; /* empty if BLAS is not installed */
    struct ak_pool *pool;
    uint8_t *weights, *activations, *panels;
    float *x, *y;
    size_t panel_bytes, y_floats;
    unsigned n_runs;                        /* per kind of kernel; the fastest counts */
    enum ak_quant_type type;                /* type being measured */
    size_t n, n_rows, row_bytes, act_bytes; /* row_bytes: of a row, or of a tile row */
    bool is_skinny;
};

/* ---- One product, as linear.c does it ----------------------------------- */
static void tiles_task(void *context, unsigned thread)
{
    const struct tuner *t = context;
    const struct ak_cpu_tile_kernels *kernels = &t->kernels.tile[t->type];
    uint8_t *panel = t->panels + thread * t->panel_bytes;
    size_t begin, end;
    ak_chunk_range(t->n_rows, ak_pool_threads(t->pool), thread, &begin, &end);
    if (t->is_skinny) {
        kernels->dot_tiles(t->weights + begin * t->row_bytes, end - begin, K, t->activations,
                           t->act_bytes, t->n, t->y + begin * AK_TILE_ROWS,
                           t->n_rows * AK_TILE_ROWS,
                           ak_backend_profile_prefetch(&defaults, t->type, t->n));
        return;
    }
    for (size_t i = begin, n; i < end; i += n) {
        n = ak_min_size(end - i, AK_PANEL_I8_TILES_MAX);
        kernels->unpack_panel_i8(t->weights + i * t->row_bytes, n, K, panel);
        kernels->dot_panel_i8(panel, n, K, t->activations, t->act_bytes, t->n,
                              t->y + i * AK_TILE_ROWS, t->n_rows * AK_TILE_ROWS);
    }
}

static void rows_task(void *context, unsigned thread)
{
    const struct tuner *t = context;
    const struct ak_cpu_kernels *kernels = &t->kernels;
    float *panel = (float *)(void *)(t->panels + thread * t->panel_bytes);
    bool has_panels = !t->is_skinny && kernels->unpack_panel_f32[t->type];
    size_t max_rows = has_panels   ? AK_PANEL_ROWS_MAX :
                      t->is_skinny ? AK_DEQUANTIZE_ROWS_SKINNY :
                                     AK_DEQUANTIZE_ROWS_GEMM,
           begin, end;
    ak_chunk_range(t->n_rows, ak_pool_threads(t->pool), thread, &begin, &end);
    if (t->is_skinny && kernels->dot_stored[t->type]) {
        kernels->dot_stored[t->type](t->weights + begin * t->row_bytes, t->row_bytes, end - begin,
                                     K, t->x, K, t->n, t->y + begin, t->n_rows,
                                     ak_backend_profile_prefetch(&defaults, t->type, t->n));
        return;
    }
    for (size_t i = begin, n; i < end; i += n) {
        const uint8_t *rows = t->weights + i * t->row_bytes;
        n = ak_min_size(end - i, max_rows);
        if (has_panels) {
            kernels->unpack_panel_f32[t->type](rows, t->row_bytes, n, K, panel);
            kernels->dot_panel_f32(panel, n, (const float *)(const void *)t->activations, t->n, K,
                                   t->y + i, t->n_rows, rows + n * t->row_bytes,
                                   ak_min_size(t->n_rows - i - n, n) * t->row_bytes);
            continue;
        }
        for (size_t j = 0; j < n; j++)
            kernels->dequantize[t->type](rows + j * t->row_bytes, panel + j * K, K);
        kernels->dot_rows(panel, K, n, t->x, K, t->n, K, t->y + i, t->n_rows);
    }
}

static void dequantize_row(const struct tuner *t, size_t row, float *to)
{
    if (t->kernels.tile[t->type].dot_tiles)
        ak_cpu_dequantize_row(t->type, t->weights + row / AK_TILE_ROWS * t->row_bytes, K,
                              row % AK_TILE_ROWS, to);
    else
        t->kernels.dequantize[t->type](t->weights + row * t->row_bytes, to, K);
}

static void blas_task(void *context, unsigned thread)
{
    const struct tuner *t = context;
    float *panel = (float *)(void *)t->panels;
    size_t begin, end, max_rows = ak_cpu_blas_rows(K);
    for (size_t row = 0, n; row < PROMPT_ROWS; row += n) {
        n = ak_min_size(PROMPT_ROWS - row, max_rows);
        ak_chunk_range(n, ak_pool_threads(t->pool), thread, &begin, &end);
        for (size_t i = begin; i < end; i++)
            dequantize_row(t, row + i, panel + i * K);
        ak_pool_barrier(t->pool, thread);
        if (thread == 0)
            ak_cpu_blas_dot_rows(&t->blas, panel, K, n, t->x, K, PROMPT, K, t->y + row,
                                 PROMPT_ROWS);
        ak_pool_barrier(t->pool, thread);
    }
}

/* Seconds of one run. */
static double time_of(struct tuner *t, ak_task *task)
{
    double start = ak_seconds();
    ak_pool_run(t->pool, task, t);
    return ak_seconds() - start;
}

/* Fastest of n_runs alternating runs with skinny GEMM and with GEMM kernels. */
static void measure_task(struct tuner *t, ak_task *task, double *skinny, double *gemm)
{
    *skinny = *gemm = 1e9;
    for (unsigned i = 0; i < t->n_runs; i++) {
        for (int kind = 0; kind < 2; kind++) {
            double *best = kind ? skinny : gemm;
            t->is_skinny = kind;
            double seconds = time_of(t, task);
            *best = seconds < *best ? seconds : *best;
        }
    }
}

/* Prepares the tokens in a format: quantized, or interleaved for f32 panels. */
static void prepare_tokens(struct tuner *t, enum ak_cpu_act_format format)
{
    for (size_t i = 0; i < PROMPT; i++) {
        uint8_t *to = t->activations + i * t->act_bytes;
        if (format == AK_CPU_ACT_Q8_32)
            t->kernels.quantize32(t->x + i * K, K, (struct ak_cpu_act32 *)(void *)to);
        else if (format == AK_CPU_ACT_Q8_256)
            t->kernels.quantize256(t->x + i * K, K, (struct ak_cpu_act256 *)(void *)to);
        else if (t->kernels.interleave_token_f32)
            t->kernels.interleave_token_f32(t->x + i * K, K, i, (float *)(void *)t->activations);
    }
}

/* ---- Choosing ----------------------------------------------------------- */
/* Task that measures `type`; NULL: not tuned. Packed types are measured with their own kernels,
 * stored types only if they are cheap to dequantize. */
static ak_task *task_of(const struct tuner *t, enum ak_quant_type type)
{
    if (t->kernels.tile[type].dot_tiles)
        return tiles_task;
    return type == AK_QUANT_F32 || type == AK_QUANT_F16 || type == AK_QUANT_BF16 ? rows_task : NULL;
}

/* Limits the longest run to about 20 ms on slow machines, less if n_runs < 5. */
static void limit_rows(struct tuner *t, ak_task *task)
{
    size_t all = t->n_rows,
           some = ak_min_size(all, (size_t)AK_PANEL_I8_TILES_MAX * 4 * ak_pool_threads(t->pool));
    t->n = AK_SKINNY_MAX;
    t->is_skinny = true;
    t->n_rows = some;
    double fit = 0.004 * fmin(t->n_runs, 5.0) / (time_of(t, task) / (double)some + 1e-12);
    t->n_rows = fit > (double)all ? all : ak_max_size((size_t)fit, some);
}

/* Prepares weights and tokens for `type`. */
static void set_type(struct tuner *t, enum ak_quant_type type)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(type);
    uint64_t stored = 0;
    (void)ak_quant_row_bytes(type, K, &stored);
    t->type = type;
    t->act_bytes = ak_cpu_act_bytes(format, K);
    t->row_bytes = task_of(t, type) == tiles_task ? ak_cpu_tile_row_bytes(type, K) : (size_t)stored;
    prepare_tokens(t, format);
}

/* Adds the times of skinny GEMM and of GEMM, each relative to their sum, to those of the type's
 * activation format. */
static void measure_type(struct tuner *t, enum ak_quant_type type, double skinny[N_COUNTS],
                         double gemm[N_COUNTS])
{
    ak_task *task = task_of(t, type);
    set_type(t, type);
    t->n_rows = ak_min_size(weight_bytes / t->row_bytes,
                            t->y_floats / AK_SKINNY_MAX / (task == tiles_task ? AK_TILE_ROWS : 1));
    limit_rows(t, task);
    for (size_t i = 0; i < N_COUNTS; i++) {
        double a, b;
        t->n = counts[i];
        measure_task(t, task, &a, &b);
        skinny[i] += a / (a + b);
        gemm[i] += b / (a + b);
    }
}

/* Limit of skinny GEMM that costs least over all counts; 0 if the default is as good. */
static uint32_t select_skinny_max(const double skinny[N_COUNTS], const double gemm[N_COUNTS])
{
    double best = 0.0, all_skinny = 0.0;
    uint32_t chosen = 0;
    for (size_t i = 0; i < N_COUNTS; i++)
        all_skinny += skinny[i];
    for (size_t last = 0; last < N_COUNTS; last++) { /* counts below counts[last] use skinny GEMM */
        double cost = 0.0;
        for (size_t i = 0; i < N_COUNTS; i++)
            cost += i < last ? skinny[i] : gemm[i];
        if ((chosen == 0 && cost < all_skinny * (1.0 - gain_min)) || (chosen != 0 && cost < best)) {
            best = cost;
            chosen = last ? (uint32_t)counts[last - 1] : 1;
        }
    }
    return chosen;
}

/* Whether OpenBLAS multiplies a prompt with `type` faster than the own kernels. */
static bool is_blas_faster(struct tuner *t, enum ak_quant_type type)
{
    double native = 1e9, blas = 1e9, spent = 0.0;
    ak_task *task = task_of(t, type);
    set_type(t, type);
    t->is_skinny = false;
    t->n = PROMPT;
    t->n_rows = task == tiles_task ? PROMPT_ROWS / AK_TILE_ROWS : PROMPT_ROWS;
    for (unsigned i = 0; i < t->n_runs && spent < 1.0; i++) {
        double seconds = time_of(t, task);
        native = seconds < native ? seconds : native;
        spent += seconds;
        seconds = time_of(t, blas_task);
        blas = seconds < blas ? seconds : blas;
        spent += seconds;
    }
    return blas < native * (1.0 - gain_min);
}

static ak_status tune_classes(struct tuner *t, ak_backend_progress_fn *progress, void *user,
                              struct ak_backend_profile *out, struct ak_error *error)
{
    double skinny[AK_CPU_ACT_TYPE_COUNT][N_COUNTS] = { { 0 } },
           gemm[AK_CPU_ACT_TYPE_COUNT][N_COUNTS] = { { 0 } };
    for (int type = 0; type < AK_QUANT_COUNT; type++) {
        enum ak_cpu_act_format format = ak_cpu_type_act_format((enum ak_quant_type)type);
        if (progress && !progress((double)type / AK_QUANT_COUNT, user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "tuning was cancelled");
        if (task_of(t, (enum ak_quant_type)type))
            measure_type(t, (enum ak_quant_type)type, skinny[format], gemm[format]);
    }
    for (int format = 0; format < AK_CPU_ACT_TYPE_COUNT; format++)
        out->skinny_max[format] = select_skinny_max(skinny[format], gemm[format]);
    if (t->blas.sgemm) {
        out->blas[AK_CPU_ACT_Q8_32] = is_blas_faster(t, AK_QUANT_Q4_0);
        out->blas[AK_CPU_ACT_Q8_256] = is_blas_faster(t, AK_QUANT_Q4_K);
        out->blas[AK_CPU_ACT_F32] = is_blas_faster(t, AK_QUANT_F16);
    }
    return AKUNU_OK;
}

/* Fills the weights with random bytes without the exponents of NaN and infinity. */
static void fill_weights(struct tuner *t)
{
    uint64_t state = 88172645463325252u, *words = (uint64_t *)(void *)t->weights;
    for (size_t i = 0; i < weight_bytes / sizeof *words; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state & 0xbfffbfffbfffbfffu;
    }
    for (size_t i = 0; i < (size_t)PROMPT * K; i++)
        t->x[i] = (float)((i * 2654435761u >> 8) % 2001) * 0.001f - 1.0f;
}

ak_status ak_cpu_tune(enum ak_cpu_isa isa, unsigned n_threads, unsigned n_runs,
                      ak_backend_progress_fn *progress, void *user, struct ak_backend_profile *out,
                      struct ak_error *error)
{
    struct tuner *t = ak_alloc(1, sizeof *t);
    if (!t)
        return ak_fail_memory(error, "tuning", sizeof *t);
    t->n_runs = n_runs;
    size_t act_bytes = 0, x_bytes = (size_t)PROMPT * K * sizeof(float);
    for (int format = 0; format < AK_CPU_ACT_TYPE_COUNT; format++)
        act_bytes = ak_max_size(act_bytes, ak_round_up(PROMPT, AK_PANEL_TOKEN_STEP) *
                                               ak_cpu_act_bytes((enum ak_cpu_act_format)format, K));
    t->panel_bytes =
        ak_max_size((size_t)AK_PANEL_I8_TILES_MAX * (K / 32) * AK_PANEL_I8_BLOCK_BYTES_MAX,
                    (size_t)AK_PANEL_ROWS_MAX * K * sizeof(float));
    t->panel_bytes = ak_max_size(t->panel_bytes, ak_cpu_blas_rows(K) * K * sizeof(float));
    /* results for all rows of a 2-bit type */
    t->y_floats = weight_bytes / K * 4 * AK_SKINNY_MAX;
    ak_cpu_fill_kernels(isa, &t->kernels);
    /* if it cannot be loaded, the own kernels remain selected */
    (void)ak_cpu_blas_load(ak_env("AKUNU_BLAS"), &t->blas, NULL);
    t->weights = ak_pages_alloc(weight_bytes);
    t->activations = ak_pages_alloc(act_bytes);
    t->panels = ak_pages_alloc(t->panel_bytes * n_threads);
    t->x = ak_pages_alloc(x_bytes);
    t->y = ak_pages_alloc(t->y_floats * sizeof *t->y);
    ak_status status = ak_pool_create(n_threads, &t->pool, error);
    if (status == AKUNU_OK && !(t->weights && t->activations && t->panels && t->x && t->y))
        status = ak_fail_memory(error, "tuning", weight_bytes);
    if (status == AKUNU_OK) {
        fill_weights(t);
        status = tune_classes(t, progress, user, out, error);
    }
    ak_pool_free(t->pool);
    if (t->weights)
        ak_pages_free(t->weights, weight_bytes);
    if (t->activations)
        ak_pages_free(t->activations, act_bytes);
    if (t->panels)
        ak_pages_free(t->panels, t->panel_bytes * n_threads);
    if (t->x)
        ak_pages_free(t->x, x_bytes);
    if (t->y)
        ak_pages_free(t->y, t->y_floats * sizeof *t->y);
    ak_free(t);
    return status;
}
