/* Benchmark of each kernel alone: ISA × kernel × type × number of tokens. Prints bytes and
 * operations per second, and their share of this machine's limits; these are measured in between,
 * and the best so far counts. Weights and KV pages come from memory, not from a cache. `panel_i8`
 * times the products over one int8 panel alone, `gemm` unpacking and products.
 *
 *   tiles       dot_tiles          bytes of packed weights, int8 operations
 *   unpack      unpack_panel_i8    bytes of packed weights
 *   panel_i8    dot_panel_i8       int8 operations
 *   gemm        unpack_panel_i8, dot_panel_i8 as linear.c calls them
 *   rows        dot_rows           bytes of float weights, f32 operations
 *   stored      dot_stored         bytes of stored weights, f32 operations
 *   panel       unpack_panel_f32, dot_panel_f32 as linear.c calls them
 *   bf16        unpack_panel_bf16, dot_panel_bf16, for --relaxed; bf16 operations
 *   dequantize  dequantize         bytes of stored weights
 *   quantize32, quantize256        bytes of floats, from the cache: no share
 *   attn        scores and values  bytes of K and V, f32 operations; n query rows */
#include "engine/cpu/cpu.h"
#include "files/quant/block.h"
#include "measure.h"

static const char usage[] =
    "bench/kernels [--isa LIST] [--kernel LIST] [--type LIST] [--n LIST] [--threads N] [--k N]\n"
    "       [--time SECONDS] [--prefetch BYTES|best] [-o text|json]\n"
    "       (the best ISA, all, all, all of 1, 2, 4, 8, 16, 1 and the physical cores, 1536, 0.1 "
    "a "
    "figure,\n"
    "       the default distance, text; best: the best of several distances per figure)";

static const size_t skinny_counts[] = { 1, 2, 4, 8, 16 };
static const size_t prefetch_distances[] = { 0, 1024, 2048, 4096, 8192, 16384 };
enum {
    GEMM_TOKENS = 512,
    GEMM_TILES = 96, /* tile rows of a GEMM: 1536 rows */
    SKINNY_ROWS = 4, /* rows at a time in `rows` and `dequantize`, as in linear.c */
    HEAD_DIM = 128,
    QUERIES_MAX = 32
};
static const size_t panel_counts[] = { 8, 16, 27, GEMM_TOKENS };
static const size_t weight_bytes = (size_t)192 << 20, float_bytes = (size_t)64 << 20;

struct bench {
    struct ak_cpu_kernels kernels;
    enum ak_cpu_isa isa;
    struct akunu_roofline roof;
    struct ak_pool *pool;
    unsigned threads;
    size_t k;
    double budget;
    bool json;
    const char *prefetch; /* bytes, "best", or NULL: the default */
    size_t *n_rows;       /* printed so far */
    const char *kernel_list, *type_list, *n_list;
    uint8_t *weights;     /* random, weight_bytes */
    float *floats;        /* float_bytes */
    uint16_t *halves;     /* the same numbers in half the bytes */
    uint8_t *eights;      /* rows of F8 */
    float *x;             /* GEMM_TOKENS tokens of k */
    uint8_t *activations; /* the same in the current type's activation format */
    uint8_t *panels;      /* panel_bytes per thread */
    float *y, *scratch;   /* results; scratch_floats per thread */
    size_t panel_bytes, act_bytes, activations_bytes, y_bytes, scratch_floats;
};

struct figure;
typedef void run_fn(const struct figure *f);

/* One line of output: a kernel run on `count` items (tile rows, rows, pages), split over
 * threads. */
struct figure {
    const struct bench *bench;
    enum ak_quant_type type;
    size_t n, count, item_bytes;
    size_t distance; /* of prefetch, in bytes */
    ak_attn_qk_fn *scores;
    ak_attn_pv_fn *values;
    run_fn *run;       /* called by every thread with its own copy of the figure */
    unsigned thread;   /* the thread's number */
    size_t begin, end; /* the thread's items */
};

static uint8_t *thread_panel(const struct bench *b, unsigned thread)
{
    return b->panels + thread * b->panel_bytes;
}

static void run_share(void *context, unsigned thread)
{
    struct figure figure = *(const struct figure *)context;
    figure.thread = thread;
    ak_chunk_range(figure.count, figure.bench->threads, thread, &figure.begin, &figure.end);
    figure.run(&figure);
}

/* ---- Kernels ------------------------------------------------------------ */
static void run_tiles(const struct figure *f)
{
    const struct bench *b = f->bench;
    b->kernels.tile[f->type].dot_tiles(
        b->weights + f->begin * f->item_bytes, f->end - f->begin, b->k, b->activations,
        b->act_bytes, f->n, b->y + f->begin * AK_TILE_ROWS, f->count * AK_TILE_ROWS, f->distance);
}

static void unpack_tiles(const struct figure *f, size_t i, size_t n)
{
    const struct bench *b = f->bench;
    b->kernels.tile[f->type].unpack_panel_i8(b->weights + i * f->item_bytes, n, b->k,
                                             thread_panel(b, f->thread));
}

static void multiply_panel(const struct figure *f, size_t i, size_t n)
{
    const struct bench *b = f->bench;
    b->kernels.tile[f->type].dot_panel_i8(thread_panel(b, f->thread), n, b->k, b->activations,
                                          b->act_bytes, f->n, b->y + i * AK_TILE_ROWS,
                                          f->count * AK_TILE_ROWS);
}

static void run_unpack(const struct figure *f)
{
    for (size_t i = f->begin; i < f->end; i += AK_PANEL_I8_TILES_MAX)
        unpack_tiles(f, i, ak_min_size(f->end - i, AK_PANEL_I8_TILES_MAX));
}

/* All products use the thread's one panel; the time does not depend on its contents. */
static void run_panel_i8(const struct figure *f)
{
    for (size_t i = f->begin; i < f->end; i += AK_PANEL_I8_TILES_MAX)
        multiply_panel(f, i, ak_min_size(f->end - i, AK_PANEL_I8_TILES_MAX));
}

static void run_gemm(const struct figure *f)
{
    for (size_t i = f->begin; i < f->end; i += AK_PANEL_I8_TILES_MAX) {
        unpack_tiles(f, i, ak_min_size(f->end - i, AK_PANEL_I8_TILES_MAX));
        multiply_panel(f, i, ak_min_size(f->end - i, AK_PANEL_I8_TILES_MAX));
    }
}

static void run_rows(const struct figure *f)
{
    const struct bench *b = f->bench;
    for (size_t i = f->begin; i < f->end; i += SKINNY_ROWS)
        b->kernels.dot_rows(b->floats + i * b->k, b->k, ak_min_size(f->end - i, SKINNY_ROWS), b->x,
                            b->k, f->n, b->k, b->y + i, f->count);
}

/* Rows of a type without a tile layout. */
static const uint8_t *stored_rows(const struct figure *f)
{
    const struct bench *b = f->bench;
    if (f->type == AK_QUANT_F8)
        return b->eights;
    return (const uint8_t *)(f->type == AK_QUANT_F32 ? (const void *)b->floats :
                                                       (const void *)b->halves);
}

static void run_stored(const struct figure *f)
{
    const struct bench *b = f->bench;
    b->kernels.dot_stored[f->type](stored_rows(f) + f->begin * f->item_bytes, f->item_bytes,
                                   f->end - f->begin, b->k, b->x, b->k, f->n, b->y + f->begin,
                                   f->count, f->distance);
}

static void run_panel(const struct figure *f)
{
    const struct bench *b = f->bench;
    float *panel = b->scratch + f->thread * b->scratch_floats;
    for (size_t i = f->begin, n; i < f->end; i += n) {
        n = ak_min_size(f->end - i, AK_PANEL_ROWS_MAX);
        b->kernels.unpack_panel_f32[f->type](stored_rows(f) + i * f->item_bytes, f->item_bytes, n,
                                             b->k, panel);
        b->kernels.dot_panel_f32(panel, n, (const float *)(const void *)b->activations, f->n, b->k,
                                 b->y + i, f->count, stored_rows(f) + (i + n) * f->item_bytes,
                                 ak_min_size(f->count - i - n, n) * f->item_bytes);
    }
}

static void run_bf16(const struct figure *f)
{
    const struct bench *b = f->bench;
    uint16_t *panel = (uint16_t *)(void *)(b->scratch + f->thread * b->scratch_floats);
    for (size_t i = f->begin, n; i < f->end; i += n) {
        n = ak_min_size(f->end - i, ak_cpu_panel_bf16_rows(&b->kernels, b->k));
        b->kernels.unpack_panel_bf16[f->type](stored_rows(f) + i * f->item_bytes, f->item_bytes, n,
                                              b->k, panel);
        b->kernels.dot_panel_bf16(panel, n, (const uint16_t *)(const void *)b->activations, f->n,
                                  b->k, b->y + i, f->count);
    }
}

static void run_dequantize(const struct figure *f)
{
    const struct bench *b = f->bench;
    const uint8_t *rows =
        f->type == AK_QUANT_F32 || f->type == AK_QUANT_F8 ? stored_rows(f) : b->weights;
    for (size_t i = f->begin; i < f->end; i++)
        b->kernels.dequantize[f->type](
            rows + i * f->item_bytes,
            b->scratch + f->thread * b->scratch_floats + i % SKINNY_ROWS * b->k, b->k);
}

static void run_quantize32(const struct figure *f)
{
    const struct bench *b = f->bench;
    for (size_t i = f->begin; i < f->end; i++)
        b->kernels.quantize32(b->x, b->k,
                              (struct ak_cpu_act32 *)(void *)thread_panel(b, f->thread));
}

static void run_quantize256(const struct figure *f)
{
    const struct bench *b = f->bench;
    for (size_t i = f->begin; i < f->end; i++)
        b->kernels.quantize256(b->x, b->k / 256 * 256,
                               (struct ak_cpu_act256 *)(void *)thread_panel(b, f->thread));
}

static void run_attention(const struct figure *f)
{
    const struct bench *b = f->bench;
    const uint8_t *pages = f->type == AK_QUANT_F16 ? (const uint8_t *)(const void *)b->halves :
                                                     (const uint8_t *)(const void *)b->floats;
    uint16_t first[QUERIES_MAX] = { 0 }, last[QUERIES_MAX];
    float max[QUERIES_MAX], sum[QUERIES_MAX];
    float *weights = b->scratch + f->thread * b->scratch_floats,
          *out = weights + QUERIES_MAX * AK_KV_PAGE_TOKENS;
    for (size_t i = 0; i < QUERIES_MAX; i++)
        last[i] = AK_KV_PAGE_TOKENS;
    for (size_t i = f->begin; i < f->end; i++) {
        f->scores(b->x, HEAD_DIM, f->n, HEAD_DIM, pages + i * f->item_bytes, 0, AK_KV_PAGE_TOKENS,
                  weights);
        f->values(weights, f->n, HEAD_DIM, pages + i * f->item_bytes + f->item_bytes / 2, first,
                  last, max, sum, out, HEAD_DIM);
    }
}

/* ---- Figures ------------------------------------------------------------ */
static void print_row(const struct figure *f, const char *kernel, const char *type, double bytes,
                      double bytes_percent, double ops, double ops_percent)
{
    const struct bench *b = f->bench;
    if (b->json) {
        printf("%s{\"isa\": \"%s\", \"threads\": %u, \"kernel\": \"%s\", \"type\": \"%s\", \"n\": "
               "%zu, \"k\": %zu",
               *b->n_rows ? ",\n " : "[", ak_cpu_isa_name(b->isa), b->threads, kernel, type, f->n,
               b->k);
        printf(", \"bytes_per_second\": ");
        print_cell("%.6g", 0, bytes, true);
        printf(", \"read_percent\": ");
        print_cell("%.4g", 0, bytes_percent, true);
        printf(", \"ops_per_second\": ");
        print_cell("%.6g", 0, ops, true);
        printf(", \"ops_percent\": ");
        print_cell("%.4g", 0, ops_percent, true);
        printf("}");
    } else {
        printf("%-8s %7u %-11s %-8s %4zu", ak_cpu_isa_name(b->isa), b->threads, kernel, type, f->n);
        print_cell(" %9.1f", 10, bytes * 1e-9, false);
        print_cell(" %5.0f %%", 8, bytes_percent, false);
        print_cell(" %9.1f", 10, ops * 1e-9, false);
        print_cell(" %5.0f %%", 8, ops_percent, false);
        printf("\n");
    }
    ++*b->n_rows;
    fflush(stdout);
}

static double time_figure(struct figure *f)
{
    static const struct ak_backend_profile defaults;
    const struct bench *b = f->bench;
    double best = INFINITY;
    bool streams = f->run == run_tiles || f->run == run_stored;
    bool all = b->prefetch && streams && strcmp(b->prefetch, "best") == 0;
    if (!b->prefetch)
        f->distance = ak_backend_profile_prefetch(&defaults, f->type, f->n);
    else if (!all)
        f->distance = strtoul(b->prefetch, NULL, 10);
    for (size_t i = 0; i < (all ? sizeof prefetch_distances / sizeof *prefetch_distances : 1);
         i++) {
        f->distance = all ? prefetch_distances[i] : f->distance;
        best = fmin(best, best_seconds(b->pool, run_share, f, b->budget));
    }
    return best;
}

/* Times `run`, which reads `bytes` bytes and does `ops` operations (0: not reported), and prints
 * both rates and their shares of the ceilings (0: no share). */
static void report(const struct figure *f, const char *kernel, const char *type, run_fn *run,
                   double bytes, double read_ceiling, double ops, double ops_ceiling)
{
    struct figure figure = *f;
    figure.run = run;
    double seconds = time_figure(&figure);
    double byte_rate = bytes > 0.0 ? bytes / seconds : NAN,
           op_rate = ops > 0.0 ? ops / seconds : NAN;
    print_row(f, kernel, type, byte_rate,
              read_ceiling > 0.0 ? 100.0 * byte_rate / read_ceiling : NAN, op_rate,
              ops_ceiling > 0.0 ? 100.0 * op_rate / ops_ceiling : NAN);
}

/* Measures the limits again and keeps the larger figures: other programs can only lower them. */
static void measure_again(struct bench *b)
{
    struct akunu_roofline now =
        measure_roofline(b->isa, b->threads, AKUNU_MEASURE_ALL & ~(unsigned)AKUNU_MEASURE_CLOCK);
    b->roof.read_bytes_per_second = fmax(b->roof.read_bytes_per_second, now.read_bytes_per_second);
    b->roof.int8_ops_per_second = fmax(b->roof.int8_ops_per_second, now.int8_ops_per_second);
    b->roof.f32_ops_per_second = fmax(b->roof.f32_ops_per_second, now.f32_ops_per_second);
    b->roof.bf16_ops_per_second = fmax(b->roof.bf16_ops_per_second, now.bf16_ops_per_second);
}

static bool wants(const struct bench *b, const char *kernel)
{
    return is_listed(b->kernel_list, kernel);
}

static bool wants_n(const struct bench *b, size_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", n);
    return is_listed(b->n_list, text);
}

static void make_activations(struct bench *b, enum ak_quant_type type)
{
    enum ak_cpu_act_format format = ak_cpu_type_act_format(type);
    b->act_bytes = ak_cpu_act_bytes(format, b->k);
    for (size_t t = 0; t < GEMM_TOKENS; t++) {
        uint8_t *to = b->activations + t * b->act_bytes;
        const float *x = b->x + t * b->k;
        if (format == AK_CPU_ACT_Q8_32)
            b->kernels.quantize32(x, b->k, (struct ak_cpu_act32 *)(void *)to);
        else if (format == AK_CPU_ACT_Q8_256)
            b->kernels.quantize256(x, b->k, (struct ak_cpu_act256 *)(void *)to);
        else
            memcpy(to, x, b->k * sizeof *x);
    }
}

static void bench_tiled(struct bench *b, enum ak_quant_type type)
{
    measure_again(b);
    const char *name = ak_quant_info(type)->name;
    bool slow = b->isa == AK_CPU_ISA_SCALAR;
    struct figure f = { .bench = b, .type = type, .item_bytes = ak_cpu_tile_row_bytes(type, b->k) };
    double ceiling = ak_cpu_type_act_format(type) == AK_CPU_ACT_F32 ? b->roof.f32_ops_per_second :
                                                                      b->roof.int8_ops_per_second;
    double tile_ops = 2.0 * AK_TILE_ROWS * (double)b->k, read = b->roof.read_bytes_per_second;
    make_activations(b, type);
    for (size_t i = 0; i < sizeof skinny_counts / sizeof *skinny_counts && wants(b, "tiles"); i++) {
        if (!wants_n(b, f.n = skinny_counts[i]))
            continue;
        f.count = slow ? 64 : weight_bytes / f.item_bytes;
        report(&f, "tiles", name, run_tiles, (double)(f.count * f.item_bytes), read,
               tile_ops * (double)(f.count * f.n), ceiling);
    }
    f.n = 0;
    f.count = slow ? 64 : weight_bytes / f.item_bytes;
    if (wants(b, "unpack"))
        report(&f, "unpack", name, run_unpack, (double)(f.count * f.item_bytes), read, 0.0, 0.0);
    f.n = GEMM_TOKENS;
    f.count = slow ? AK_PANEL_I8_TILES_MAX : GEMM_TILES;
    for (unsigned i = 0; i < b->threads; i++)
        b->kernels.tile[type].unpack_panel_i8(b->weights, AK_PANEL_I8_TILES_MAX, b->k,
                                              thread_panel(b, i));
    if (wants(b, "panel_i8"))
        report(&f, "panel_i8", name, run_panel_i8, 0.0, 0.0, tile_ops * (double)(f.count * f.n),
               ceiling);
    if (wants(b, "gemm"))
        report(&f, "gemm", name, run_gemm, (double)(f.count * f.item_bytes), 0.0,
               tile_ops * (double)(f.count * f.n), ceiling);
}

/* Bytes of all stored rows; F8 gets more elements, else they would stay in the cache. */
static size_t stored_bytes(enum ak_quant_type type)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    return (type == AK_QUANT_F8 ? float_bytes : float_bytes / sizeof(float)) / info->block_elems *
           info->block_bytes;
}

/* Benchmarks of types without a tile layout. */
static void bench_stored(struct bench *b, enum ak_quant_type type)
{
    measure_again(b);
    const char *name = ak_quant_info(type)->name;
    struct figure f = { .bench = b,
                        .type = type,
                        .item_bytes = b->k / ak_quant_info(type)->block_elems *
                                      ak_quant_info(type)->block_bytes };
    double read = b->roof.read_bytes_per_second, row_ops = 2.0 * (double)b->k;
    for (size_t i = 0; i < sizeof skinny_counts / sizeof *skinny_counts &&
                       b->kernels.dot_stored[type] && wants(b, "stored");
         i++) {
        if (!wants_n(b, f.n = skinny_counts[i]))
            continue;
        f.count = stored_bytes(type) / f.item_bytes;
        report(&f, "stored", name, run_stored, (double)(f.count * f.item_bytes), read,
               row_ops * (double)(f.count * f.n), b->roof.f32_ops_per_second);
    }
    f.count = GEMM_TILES * AK_TILE_ROWS;
    for (size_t t = 0; t < GEMM_TOKENS && b->kernels.interleave_token_f32; t++)
        b->kernels.interleave_token_f32(b->x + t * b->k, b->k, t, (float *)(void *)b->activations);
    for (size_t i = 0; i < sizeof panel_counts / sizeof *panel_counts &&
                       b->kernels.unpack_panel_f32[type] && wants(b, "panel");
         i++) {
        f.n = panel_counts[i];
        report(&f, "panel", name, run_panel, (double)(f.count * f.item_bytes), 0.0,
               row_ops * (double)(f.count * f.n), b->roof.f32_ops_per_second);
    }
    f.n = GEMM_TOKENS;
    if (b->kernels.unpack_panel_bf16[type] && wants(b, "bf16")) {
        for (size_t t = 0; t < f.n; t++)
            b->kernels.interleave_token_bf16(b->x + t * b->k, b->k, t,
                                             (uint16_t *)(void *)b->activations);
        report(&f, "bf16", name, run_bf16, (double)(f.count * f.item_bytes), 0.0,
               row_ops * (double)(f.count * f.n), b->roof.bf16_ops_per_second);
    }
}

static void bench_types(struct bench *b)
{
    for (int i = 0; i < AK_QUANT_COUNT; i++) {
        enum ak_quant_type type = (enum ak_quant_type)i;
        const struct ak_quant_info *info = ak_quant_info(type);
        uint64_t row_bytes;
        if (!is_listed(b->type_list, info->name) || !ak_quant_row_bytes(type, b->k, &row_bytes))
            continue;
        if (b->kernels.tile[type].dot_tiles)
            bench_tiled(b, type);
        if (b->kernels.unpack_panel_f32[type])
            bench_stored(b, type);
        if (b->kernels.dequantize[type] && wants(b, "dequantize")) {
            struct figure f = { .bench = b, .type = type, .item_bytes = (size_t)row_bytes };
            f.count =
                (type == AK_QUANT_F32 || type == AK_QUANT_F8 ? stored_bytes(type) : weight_bytes) /
                f.item_bytes;
            report(&f, "dequantize", info->name, run_dequantize, (double)(f.count * f.item_bytes),
                   b->roof.read_bytes_per_second, 0.0, 0.0);
        }
    }
}

static void bench_rows(struct bench *b)
{
    measure_again(b);
    struct figure f = { .bench = b, .type = AK_QUANT_F32, .item_bytes = b->k * sizeof(float) };
    for (size_t i = 0; i <= sizeof skinny_counts / sizeof *skinny_counts; i++) {
        bool is_gemm = i == sizeof skinny_counts / sizeof *skinny_counts;
        f.n = is_gemm ? GEMM_TOKENS : skinny_counts[i];
        if (!is_gemm && !wants_n(b, f.n))
            continue;
        f.count = is_gemm ? GEMM_TILES * AK_TILE_ROWS / (b->isa == AK_CPU_ISA_SCALAR ? 64u : 4u) :
                            float_bytes / f.item_bytes;
        report(&f, "rows", "F32", run_rows, (double)(f.count * f.item_bytes),
               b->roof.read_bytes_per_second, 2.0 * (double)(f.count * f.n * b->k),
               b->roof.f32_ops_per_second);
    }
}

static void bench_attention(struct bench *b)
{
    static const size_t queries[] = { 1, 4, 8, QUERIES_MAX };
    measure_again(b);
    for (int half = 1; half >= 0; half--) {
        struct figure f = { .bench = b,
                            .type = half ? AK_QUANT_F16 : AK_QUANT_F32,
                            .scores = half ? b->kernels.attn_qk_f16 : b->kernels.attn_qk_f32,
                            .values = half ? b->kernels.attn_pv_f16 : b->kernels.attn_pv_f32 };
        size_t element = half ? sizeof(uint16_t) : sizeof(float);
        f.item_bytes = (size_t)2 * AK_KV_PAGE_TOKENS * HEAD_DIM * element;
        f.count = float_bytes / (half ? 2u : 1u) / f.item_bytes;
        for (size_t i = 0;
             i < sizeof queries / sizeof *queries && is_listed(b->type_list, half ? "F16" : "F32");
             i++) {
            f.n = queries[i];
            report(&f, "attn", half ? "F16" : "F32", run_attention,
                   (double)(f.count * f.item_bytes), b->roof.read_bytes_per_second,
                   4.0 * AK_KV_PAGE_TOKENS * HEAD_DIM * (double)(f.n * f.count),
                   b->roof.f32_ops_per_second);
        }
    }
}

static void bench_isa(struct bench *b)
{
    struct figure f = { .bench = b, .count = 512 };
    ak_cpu_fill_kernels(b->isa, &b->kernels);
    b->roof = (struct akunu_roofline){ 0 };
    measure_again(b);
    if (!b->json)
        printf("%s, %u threads, k = %zu: read %.1f GB/s, int8 %.0f GOPS, f32 %.1f GFLOPS\n",
               b->kernels.name, b->threads, b->k, b->roof.read_bytes_per_second * 1e-9,
               b->roof.int8_ops_per_second * 1e-9, b->roof.f32_ops_per_second * 1e-9);
    if (!b->json)
        printf(
            "isa      threads kernel      type        n      GB/s       %%      GOPS       %%\n");
    bench_types(b);
    if (wants(b, "rows") && is_listed(b->type_list, "F32"))
        bench_rows(b);
    if (wants(b, "quantize32"))
        report(&f, "quantize32", "F32", run_quantize32, (double)(f.count * b->k * sizeof(float)),
               0.0, 0.0, 0.0);
    if (wants(b, "quantize256") && b->k >= 256)
        report(&f, "quantize256", "F32", run_quantize256,
               (double)(f.count * (b->k / 256 * 256) * sizeof(float)), 0.0, 0.0, 0.0);
    if (wants(b, "attn"))
        bench_attention(b);
}

/* Random blocks of F8 with ordinary magnitudes: none is subnormal. */
static void fill_f8(uint8_t *blocks, size_t bytes)
{
    static const float scale = 0x1p-4f;
    fill_random(blocks, bytes);
    for (size_t i = 0; i < bytes; i += sizeof(struct ak_quant_block_f8)) {
        for (size_t j = 0; j < sizeof(struct ak_quant_block_f8); j++)
            blocks[i + j] = (uint8_t)((blocks[i + j] & 0xbf) | 0x08);
        memcpy(blocks + i, &scale, sizeof scale);
    }
}

static void allocate(struct bench *b, unsigned max_threads)
{
    /* results: AK_SKINNY_MAX tokens times the rows that fill weight_bytes at two bits per weight,
     * or a GEMM's */
    size_t skinny_rows = weight_bytes * 4 / b->k, act = 0;
    for (int format = 0; format < AK_CPU_ACT_TYPE_COUNT; format++)
        act = ak_max_size(act, ak_cpu_act_bytes((enum ak_cpu_act_format)format, b->k));
    b->activations_bytes = ak_round_up(GEMM_TOKENS, AK_PANEL_TOKEN_STEP) * act;
    b->y_bytes =
        ak_max_size(skinny_rows * AK_SKINNY_MAX, (size_t)GEMM_TILES * AK_TILE_ROWS * GEMM_TOKENS) *
        sizeof(float);
    b->panel_bytes =
        ak_max_size(AK_PANEL_I8_TILES_MAX * ((b->k + 31) / 32) * AK_PANEL_I8_BLOCK_BYTES_MAX, act);
    b->scratch_floats =
        ak_max_size((size_t)AK_PANEL_ROWS_MAX * b->k, QUERIES_MAX * (AK_KV_PAGE_TOKENS + HEAD_DIM));
    b->weights = new_pages(weight_bytes);
    b->floats = new_pages(float_bytes);
    b->halves = new_pages(float_bytes / 2);
    b->eights = new_pages(stored_bytes(AK_QUANT_F8));
    b->x = new_pages(ak_max_size(GEMM_TOKENS * b->k, QUERIES_MAX * HEAD_DIM) * sizeof(float));
    b->activations = new_pages(b->activations_bytes);
    b->panels = new_pages(b->panel_bytes * max_threads);
    b->y = new_pages(b->y_bytes);
    b->scratch = new_pages(b->scratch_floats * max_threads * sizeof(float));
    fill_random(b->weights, weight_bytes);
    for (size_t i = 0; i < weight_bytes; i++)
        /* no MXFP4 exponents of subnormals: models have none, and they are slow */
        b->weights[i] |= 0x10;
    fill_floats(b->floats, float_bytes / sizeof(float));
    fill_f8(b->eights, stored_bytes(AK_QUANT_F8));
    fill_floats(b->x, ak_max_size(GEMM_TOKENS * b->k, QUERIES_MAX * HEAD_DIM));
    ak_cpu_fill_kernels(ak_cpu_best_isa(), &b->kernels);
    b->kernels.f32_to_f16(b->floats, b->halves, float_bytes / sizeof(float));
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *isas = take_option(argv, "--isa", ak_cpu_isa_name(ak_cpu_best_isa()));
    struct bench b = { .kernel_list = take_option(argv, "--kernel", "all"),
                       .type_list = take_option(argv, "--type", "all"),
                       .n_list = take_option(argv, "--n", "all"),
                       .prefetch = take_option(argv, "--prefetch", NULL) };
    unsigned asked = (unsigned)number_option(argv, "--threads", 0, 0, 1024),
             cores = asked ? asked : ak_physical_cores();
    const char *format = take_option(argv, "-o", "text");
    size_t n_rows = 0;
    bool found = false;
    b.json = strcmp(format, "json") == 0;
    b.n_rows = &n_rows;
    b.k = (size_t)number_option(argv, "--k", 1536, 32, 1 << 20);
    b.budget = number_option(argv, "--time", 0.1, 0.001, 100);
    take_nothing_else(argv, usage);
    if (!b.json && strcmp(format, "text") != 0) {
        fprintf(stderr, "-o %s: expected text or json\n", format);
        return 2;
    }
    if (b.prefetch && strcmp(b.prefetch, "best") != 0 &&
        b.prefetch[strspn(b.prefetch, "0123456789")]) {
        fprintf(stderr, "--prefetch %s: expected bytes, or best\n", b.prefetch);
        return 2;
    }
    if (b.k % AK_BLOCK_K != 0) {
        fprintf(stderr, "--k %zu: expected a multiple of %d\n", b.k, AK_BLOCK_K);
        return 2;
    }
    allocate(&b, cores);
    if (!b.json)
        print_chip();
    for (int isa = 0; isa < AK_CPU_ISA_COUNT; isa++) {
        b.isa = (enum ak_cpu_isa)isa;
        if (!ak_cpu_isa_is_usable(b.isa) || !is_listed(isas, ak_cpu_isa_name(b.isa)))
            continue;
        for (b.threads = asked ? asked : 1; b.threads <= cores;
             b.threads = b.threads < cores ? cores : cores + 1) {
            b.pool = start_threads(b.threads);
            bench_isa(&b);
            ak_pool_free(b.pool);
        }
        found = true;
    }
    if (b.json)
        printf("%s]\n", n_rows ? "" : "[");
    if (!found)
        fprintf(stderr, "no kernels of \"%s\" here\n", isas);
    return found ? 0 : 2;
}
