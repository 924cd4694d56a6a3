/* What this machine can do, with 1 … N threads: every other figure is quoted
 * against these.
 *
 * usage: bench/roofline [BUNDLE] */
#include "measure.h"

enum { ROWS = 16, TOKENS = 16, K = 256, ROUNDS = 2000 };

/* Float products out of the nearest cache. */
struct floats {
    const struct ak_kernels *kernels;
    float *w, *x, *y; /* y: one block a thread */
};

static void float_task(void *context, unsigned thread)
{
    const struct floats *f = context;
    for (int i = 0; i < ROUNDS; i++)
        f->kernels->dot_rows(f->w, K, ROWS, f->x, K, TOKENS, K, f->y + thread * ROWS * TOKENS, ROWS);
}

int main(int argc, char **argv)
{
    enum ak_isa isa = ak_isa_best();
    if (argc > 1 && !ak_isa_parse(argv[1], &isa)) {
        fprintf(stderr, "no kernels called \"%s\" here\n", argv[1]);
        return 2;
    }
    unsigned cores = ak_physical_cores();
    struct ak_kernels kernels;
    ak_kernels_fill(isa, &kernels);
    struct floats f = { .kernels = &kernels, .w = new_pages(ROWS * K * sizeof(float)), .x = new_pages(TOKENS * K * sizeof(float)),
                        .y = new_pages(cores * ROWS * TOKENS * sizeof(float)) };
    fill_floats(f.w, ROWS * K);
    fill_floats(f.x, TOKENS * K);
    printf("%s\nthreads  read GB/s  int8 dot GOPS  f32 dot GFLOPS\n", kernels.name);
    for (unsigned n = 1; n <= cores; n++) {
        struct ak_error error = { 0 };
        struct ak_roofline roof;
        if (ak_roofline_measure(isa, n, &roof, &error) != AKUNU_OK) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        struct ak_pool *pool = start_threads(n);
        double seconds = best_seconds(pool, float_task, &f, 7);
        ak_pool_free(pool);
        printf("%7u %10.1f %14.0f %15.1f\n", n, roof.read_bytes_per_second * 1e-9, roof.int8_ops_per_second * 1e-9,
               2e-9 * ROUNDS * ROWS * TOKENS * K * n / seconds);
        fflush(stdout);
    }
    ak_pages_free(f.w, ROWS * K * sizeof(float));
    ak_pages_free(f.x, TOKENS * K * sizeof(float));
    ak_pages_free(f.y, cores * ROWS * TOKENS * sizeof(float));
    return 0;
}
