/* Products of packed weights, per bundle, type, threads and number of tokens:
 * bytes of weights and operations a second, and their share of what this machine
 * can do, measured just before. Weights do not fit into any cache.
 *
 * usage: bench/kernels [BUNDLE|all [TYPE|all [K]]]      (default: best, all, 1536) */
#include <string.h>
#include <strings.h>

#include "measure.h"

static const enum ak_type tiled_types[] = { AK_Q4_0, AK_Q4_1, AK_Q5_0, AK_Q5_1,  AK_Q8_0,   AK_Q2_K,  AK_Q3_K,
                                            AK_Q4_K, AK_Q5_K, AK_Q6_K, AK_IQ4_NL, AK_IQ4_XS, AK_MXFP4 };
static const size_t token_counts[] = { 1, 2, 4, 8, 16, 512 };
enum {
    N_TYPES = sizeof tiled_types / sizeof *tiled_types,
    N_COUNTS = sizeof token_counts / sizeof *token_counts,
    MOST_TOKENS = 512,
    WEIGHT_BYTES = 192 << 20,
    MANY_TILES = 96, /* tile rows of a product with many tokens: 1536 rows */
    RUNS = 7
};

struct product {
    const struct ak_kernels *kernels;
    enum ak_type type;
    size_t k, n, n_tiles, act_bytes;
    unsigned threads;
    const uint8_t *tiles, *acts;
    uint8_t *slab; /* one a thread, slab_bytes each */
    size_t slab_bytes;
    float *y;
};

static void task(void *context, unsigned thread)
{
    const struct product *p = context;
    const struct ak_tile_kernels *kernels = &p->kernels->tile[p->type];
    size_t begin, end, row_bytes = ak_tile_row_bytes(p->type, p->k), stride = p->n_tiles * AK_TILE_ROWS;
    ak_split(p->n_tiles, p->threads, thread, &begin, &end);
    if (p->n <= AK_SMALL_N) {
        kernels->dot_tiles(p->tiles + begin * row_bytes, end - begin, p->k, p->acts, p->act_bytes, p->n, p->y + begin * AK_TILE_ROWS,
                           stride);
        return;
    }
    uint8_t *slab = p->slab + thread * p->slab_bytes;
    for (size_t i = begin, n; i < end; i += n) {
        n = ak_min_size(end - i, AK_SLAB_TILES);
        kernels->open_slab(p->tiles + i * row_bytes, n, p->k, slab);
        kernels->dot_slab(slab, n, p->k, p->acts, p->act_bytes, p->n, p->y + i * AK_TILE_ROWS, stride);
    }
}

static void make_acts(const struct ak_kernels *kernels, enum ak_type type, size_t k, uint8_t *acts, float *x)
{
    enum ak_act_form form = ak_type_act_form(type);
    size_t bytes = ak_act_bytes(form, k);
    for (size_t t = 0; t < MOST_TOKENS; t++) {
        fill_floats(x, k);
        if (form == AK_ACT_32)
            kernels->quantise32(x, k, (struct ak_act32 *)(void *)(acts + t * bytes));
        else
            kernels->quantise256(x, k, (struct ak_act256 *)(void *)(acts + t * bytes));
    }
}

static void bench_bundle(enum ak_isa isa, const char *only_type, size_t k, unsigned threads, const uint8_t *weights, uint8_t *acts,
                         float *y)
{
    struct ak_kernels kernels;
    struct ak_error error = { 0 };
    struct ak_roofline roof;
    ak_kernels_fill(isa, &kernels);
    if (ak_roofline_measure(isa, threads, &roof, &error) != AKUNU_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    printf("%s, %u threads, k = %zu: %.1f GB/s, %.0f GOPS\n", kernels.name, threads, k, roof.read_bytes_per_second * 1e-9,
           roof.int8_ops_per_second * 1e-9);
    printf("  type    n     GB/s      %%      GOPS      %%\n");
    struct ak_pool *pool = start_threads(threads);
    size_t slab_bytes = AK_SLAB_TILES * ((k + 31) / 32) * AK_SLAB_BYTES_32;
    uint8_t *slab = new_pages(slab_bytes * threads);
    float *x = new_pages(k * sizeof *x);
    for (size_t i = 0; i < N_TYPES; i++) {
        enum ak_type type = tiled_types[i];
        const struct ak_type_info *info = ak_type_info(type);
        if (k % info->block_elems != 0 || (strcmp(only_type, "all") != 0 && strcasecmp(only_type, info->name) != 0))
            continue;
        make_acts(&kernels, type, k, acts, x);
        for (size_t j = 0; j < N_COUNTS; j++) {
            size_t n = token_counts[j], row_bytes = ak_tile_row_bytes(type, k);
            struct product p = { .kernels = &kernels, .type = type, .k = k, .n = n, .threads = threads, .tiles = weights, .acts = acts,
                                 .act_bytes = ak_act_bytes(ak_type_act_form(type), k), .slab = slab, .slab_bytes = slab_bytes, .y = y };
            p.n_tiles = n > AK_SMALL_N ? MANY_TILES : WEIGHT_BYTES / row_bytes;
            if (isa == AK_ISA_SCALAR)
                p.n_tiles = n > AK_SMALL_N ? 2 : 64;
            double seconds = best_seconds(pool, task, &p, isa == AK_ISA_SCALAR ? 1 : RUNS);
            double bytes = (double)(p.n_tiles * row_bytes) / seconds, ops = 2.0 * AK_TILE_ROWS * (double)(p.n_tiles * k * n) / seconds;
            printf("  %-5s %3zu %8.1f %5.0f %% %9.0f %5.0f %%\n", info->name, n, bytes * 1e-9, 100 * bytes / roof.read_bytes_per_second,
                   ops * 1e-9, 100 * ops / roof.int8_ops_per_second);
            fflush(stdout);
        }
    }
    ak_pages_free(slab, slab_bytes * threads);
    ak_pages_free(x, k * sizeof *x);
    ak_pool_free(pool);
}

int main(int argc, char **argv)
{
    const char *bundle = argc > 1 ? argv[1] : ak_isa_name(ak_isa_best()), *type = argc > 2 ? argv[2] : "all";
    size_t k = argc > 3 ? strtoul(argv[3], NULL, 10) : 1536;
    if (k == 0 || k % AK_BLOCK_K != 0 || k > 1 << 20) {
        fprintf(stderr, "k is a multiple of 32 up to 1048576\n");
        return 2;
    }
    /* results of 16 tokens times the rows that fill WEIGHT_BYTES with 10 bytes a block of 32 (Q2_K) */
    size_t act_bytes = MOST_TOKENS * ak_max_size(ak_act_bytes(AK_ACT_32, k), ak_act_bytes(AK_ACT_256, k));
    size_t y_bytes = ak_max_size(WEIGHT_BYTES / 10 / (k / 32) * AK_SMALL_N, MANY_TILES * AK_TILE_ROWS * MOST_TOKENS) * sizeof(float);
    uint8_t *weights = new_pages(WEIGHT_BYTES), *acts = new_pages(act_bytes);
    float *y = new_pages(y_bytes);
    fill_random(weights, WEIGHT_BYTES);
    for (int isa = 0; isa < AK_ISA_COUNT; isa++) {
        if (!ak_isa_usable((enum ak_isa)isa) || (strcmp(bundle, "all") != 0 && strcmp(bundle, ak_isa_name((enum ak_isa)isa)) != 0))
            continue;
        for (unsigned threads = 1; threads <= ak_physical_cores(); threads *= 2)
            bench_bundle((enum ak_isa)isa, type, k, threads, weights, acts, y);
    }
    ak_pages_free(weights, WEIGHT_BYTES);
    ak_pages_free(acts, act_bytes);
    ak_pages_free(y, y_bytes);
    return 0;
}
