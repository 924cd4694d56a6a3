/* Benchmark of products and attention on a device: passes of a synthetic dispatch table through a
 * backend's vtable, by weight type, number of tokens and depth of the KV cache. Prints bytes and
 * operations per second, and the bytes' share of the device's read bandwidth; that is measured in
 * between, and the best so far counts.
 *
 *   linear  products with one matrix larger than the caches: bytes of its weights
 *   attend  attention of the last n tokens of `depth`, over enough layers to exceed the
 *           caches: bytes of their keys and values
 *
 * A pass is timed as a whole: beside what is measured, the tokens' rows go to the device and one
 * short row returns. So a pass repeats the command until the device has enough work, as estimated
 * from the bandwidth; nothing is subtracted. */
#include "synthetic.h"

static const char usage[] =
    "bench/opencl [--backend opencl|cpu] [--device NAME] [--kernel LIST] [--type LIST] [--n LIST] "
    "[--depth LIST]\n"
    "       [--k N] [--mib N] [--threads N] [--time SECONDS] [-o text|json]\n"
    "       (opencl, its first device, all, all, all of 1, 2, 4, 8, 16, 64, 512, all of 512, 2048, "
    "8192, 4096,\n"
    "       64, the physical cores for cpu, 0.1 a figure)";

enum {
    REPEATS_MAX = 64, /* repetitions of a command in a pass */
    N_HEADS = 32,
    N_KV_HEADS = 8,
    HEAD_DIM = 128,
    QKV_WIDTH = (N_HEADS + 2 * N_KV_HEADS) * HEAD_DIM
};
static const uint32_t product_counts[] = { 1, 2, 4, 8, 16, 64, TOKENS_MAX },
                      attention_counts[] = { 1, 8 }, depths[] = { 512, 2048, 8192 };
static const enum akunu_kv_type kv_types[] = { AKUNU_KV_F16, AKUNU_KV_Q8_0 };
static const double pass_seconds = 0.02; /* minimum duration of a pass */

struct bench {
    struct device device;
    struct ak_pool *self; /* the calling thread, which starts passes and waits for them */
    const char *kernel_list, *type_list, *n_list, *depth_list;
    size_t k, bytes; /* elements per row; bytes of a matrix, or of keys and values */
    double budget, read;
    bool json;
    size_t n_rows; /* printed so far */
};

/* One row of the output. */
struct figure {
    const char *kernel, *type;
    uint32_t n, depth; /* depth 0: not applicable */
    double bytes, ops; /* of one pass */
};

static bool is_number_listed(const char *list, uint32_t number)
{
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)number);
    return is_listed(list, name);
}

/* ---- Backends ----------------------------------------------------------- */
/* A backend keeps the weights it was given, so each type opens a new one. */
static void open_device(struct bench *b)
{
    struct device *d = &b->device;
    struct ak_error error = { 0 };
    double now = 0.0;
    end_unless(d->ops->open(&d->options, &d->backend, &error), &error);
    end_unless(d->ops->measure_bandwidth(d->backend, NULL, d->threads, &now, &error), &error);
    b->read = fmax(b->read, now);
    if (b->n_rows > 0 || b->json)
        return;
    printf("%s, read %.1f GB/s, k = %zu, %.0f MiB\n", d->ops->describe(d->backend), b->read * 1e-9,
           b->k, (double)b->bytes / (1 << 20));
    printf("kernel  type        n  depth      GB/s       %%    GFLOPS\n");
}

/* ---- Figures ------------------------------------------------------------ */
/* Repetitions of a command that reads `bytes` bytes in a pass of n tokens. */
static uint32_t repeats(const struct bench *b, double bytes, uint32_t n)
{
    double n_max = fmin(pass_seconds * b->read / bytes, REPEATS_MAX);
    return n_max > 2.0 * n ? (uint32_t)(n_max / n) : 1;
}

static void print_figure(struct bench *b, const struct figure *f, double seconds)
{
    double bytes = f->bytes / seconds, percent = 100.0 * bytes / b->read, ops = f->ops / seconds,
           depth = f->depth ? (double)f->depth : (double)NAN;
    if (b->json) {
        printf(
            "%s{\"backend\": \"%s\", \"kernel\": \"%s\", \"type\": \"%s\", \"n\": %u, \"depth\": ",
            b->n_rows ? ",\n " : "[", b->device.ops->name, f->kernel, f->type, (unsigned)f->n);
        print_cell("%.0f", 0, depth, true);
        printf(", \"bytes_per_second\": %.6g, \"read_percent\": %.4g, \"ops_per_second\": %.6g, "
               "\"read_bytes_per_second\": %.6g}",
               bytes, percent, ops, b->read);
    } else {
        printf("%-7s %-8s %4u ", f->kernel, f->type, (unsigned)f->n);
        print_cell(" %5.0f", 6, depth, false);
        printf(" %9.2f %5.0f %% %9.1f\n", bytes * 1e-9, percent, ops * 1e-9);
    }
    b->n_rows++;
    fflush(stdout);
}

/* Times passes of f->n tokens from position `first` on. The first pass may include compilation and
 * copies, so it only counts if it is too slow to repeat. */
static void report(struct bench *b, struct synthetic *m, uint32_t first, const struct figure *f)
{
    struct pass pass;
    prepare(&b->device, m, f->n, &pass);
    set_batch(&pass, m, first, f->n);
    double start = ak_seconds();
    run_pass(&pass, 0);
    double seconds = ak_seconds() - start;
    print_figure(b, f,
                 seconds > 8.0 * b->budget ? seconds :
                                             best_seconds(b->self, run_pass, &pass, b->budget));
    b->device.ops->release(pass.prepared);
}

/* ---- Products ----------------------------------------------------------- */
/* Makes all rows equal, with numbers of ordinary magnitude if the type can be made from floats. */
static void new_matrix(const struct bench *b, struct synthetic *m, enum ak_quant_type type,
                       uint32_t rows, size_t row_bytes)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    size_t bytes = rows * row_bytes, size = (size_t)b->device.ops->packed_bytes(
                                         b->device.backend, 0, type, rows, (uint32_t)b->k);
    uint8_t *stored = new_pages(bytes), *block = size ? new_pages(size) : stored;
    if (info->quantize) {
        info->quantize((const float *)m->embedding.plane[0].data, stored, b->k);
    } else {
        fill_random(stored, row_bytes);
        for (size_t i = 0; i < row_bytes; i++)
            stored[i] |= 0x10; /* no exponents of subnormals: models have none, and they are slow */
    }
    for (uint32_t i = 1; i < rows; i++)
        memcpy(stored + i * row_bytes, stored, row_bytes);
    m->matrix = (struct ak_view){
        .type = type, .rows = rows, .cols = (uint32_t)b->k, .plane = { { stored, bytes } }
    };
    m->packed = (struct ak_pack_weight){ .backend = b->device.backend,
                                         .layer = AK_ROLE_NO_LAYER,
                                         .type = type,
                                         .cols = (uint32_t)b->k,
                                         .n_parts = 1,
                                         .bias = AK_OP_NONE,
                                         .bytes = size };
    m->packed.layout = b->device.ops->layout(b->device.backend, m->packed.linear, &m->matrix);
    m->packed.parts[0].view = &m->matrix;
    m->packed.parts[0].rows = rows;
    m->packed.parts[0].data = block;
    m->weights.n_packed = 1;
    if (size)
        b->device.ops->pack(b->device.backend, m->packed.layout, &m->matrix, 0, rows, block);
}

static void free_matrix(struct synthetic *m)
{
    const struct ak_plane *stored = &m->matrix.plane[0];
    if (m->packed.bytes)
        ak_pages_free((void *)(uintptr_t)m->packed.parts[0].data, (size_t)m->packed.bytes);
    ak_pages_free((void *)(uintptr_t)stored->data, (size_t)stored->bytes);
}

static void bench_type(struct bench *b, enum ak_quant_type type, uint64_t row_bytes)
{
    static const struct ak_kv_shape shape = { .n_layers = 1,
                                              .n_kv_heads = 1,
                                              .head_dim = 32,
                                              .n_pages = TOKENS_MAX / AK_KV_PAGE_TOKENS,
                                              .n_states = 1 };
    uint32_t rows = (uint32_t)ak_round_up(b->bytes / row_bytes, 16);
    open_device(b);
    struct synthetic *m = new_table(&b->device, (uint32_t)b->k, rows, 1, &shape);
    new_matrix(b, m, type, rows, (size_t)row_bytes);
    for (size_t i = 0; i < sizeof product_counts / sizeof *product_counts; i++) {
        struct figure f = { .kernel = "linear",
                            .type = ak_quant_info(type)->name,
                            .n = product_counts[i] };
        double bytes = (double)ak_pack_read_bytes(&m->packed);
        uint32_t times = repeats(b, bytes, f.n);
        if (!is_number_listed(b->n_list, f.n))
            continue;
        begin(m);
        for (uint32_t j = 0; j < times; j++)
            add(m, AK_OP_LINEAR, 0, 1)->weight = 0;
        end(m, 1);
        f.bytes = bytes * times;
        f.ops = 2.0 * rows * (double)b->k * f.n * times;
        report(b, m, 0, &f);
    }
    close_device(&b->device, m);
    free_matrix(m);
    free_table(m);
}

static void bench_products(struct bench *b)
{
    for (int i = 0; i < AK_QUANT_COUNT; i++) {
        enum ak_quant_type type = (enum ak_quant_type)i;
        uint64_t row_bytes;
        if (is_listed(b->type_list, ak_quant_info(type)->name) &&
            ak_quant_row_bytes(type, b->k, &row_bytes))
            bench_type(b, type, row_bytes);
    }
}

/* ---- Attention ---------------------------------------------------------- */
/* Writes keys and values of all tokens and layers as a model would. */
static void fill_cache(struct bench *b, struct synthetic *m, uint32_t depth)
{
    struct pass pass;
    begin(m);
    for (uint32_t layer = 0; layer < m->shape.n_layers; layer++)
        add(m, AK_OP_QKV, 0, 0)->params.qkv =
            (struct ak_op_qkv_params){ .q_step = HEAD_DIM,
                                       .k_at = N_HEADS * HEAD_DIM,
                                       .v_at = (N_HEADS + N_KV_HEADS) * HEAD_DIM,
                                       .n_heads = N_HEADS,
                                       .n_kv_heads = N_KV_HEADS,
                                       .head_dim = HEAD_DIM,
                                       .kv_layer = layer };
    end(m, 0);
    prepare(&b->device, m, TOKENS_MAX, &pass);
    for (uint32_t first = 0; first < depth; first += TOKENS_MAX) {
        set_batch(&pass, m, first, TOKENS_MAX);
        run_pass(&pass, 0);
    }
    b->device.ops->release(pass.prepared);
}

static void bench_depth(struct bench *b, enum akunu_kv_type type, uint32_t depth)
{
    struct ak_kv_shape shape = { .n_layers = 1,
                                 .n_kv_heads = N_KV_HEADS,
                                 .head_dim = HEAD_DIM,
                                 .k_type = type,
                                 .v_type = type,
                                 .n_pages = depth / AK_KV_PAGE_TOKENS,
                                 .n_states = 1 };
    uint64_t layer_bytes = ak_kv_pool_bytes(&shape);
    shape.n_layers = (uint32_t)((b->bytes + layer_bytes - 1) / layer_bytes);
    open_device(b);
    struct synthetic *m = new_table(&b->device, QKV_WIDTH, N_HEADS * HEAD_DIM, N_HEADS, &shape);
    fill_cache(b, m, depth);
    for (size_t i = 0; i < sizeof attention_counts / sizeof *attention_counts; i++) {
        uint32_t n = attention_counts[i],
                 times = repeats(b, (double)(layer_bytes * shape.n_layers), n);
        struct figure f = { .kernel = "attend",
                            .type = ak_quant_info(ak_kv_stored_type(type))->name,
                            .n = n,
                            .depth = depth };
        if (!is_number_listed(b->n_list, n))
            continue;
        times = times * shape.n_layers < COMMANDS_MAX ? times * shape.n_layers : COMMANDS_MAX;
        begin(m);
        for (uint32_t j = 0; j < times; j++)
            add(m, AK_OP_ATTENTION, 0, 1)->params.attention =
                (struct ak_op_attention_params){ .q_step = HEAD_DIM,
                                                 .n_heads = N_HEADS,
                                                 .n_kv_heads = N_KV_HEADS,
                                                 .head_dim = HEAD_DIM,
                                                 .kv_layer = j % shape.n_layers,
                                                 .scale = 0.088f };
        end(m, 1);
        f.bytes = (double)layer_bytes * times;
        f.ops = 4.0 * N_HEADS * HEAD_DIM * (depth * n - n * (n - 1) / 2) * times;
        report(b, m, depth - n, &f);
    }
    close_device(&b->device, m);
    free_table(m);
}

static void bench_attention(struct bench *b)
{
    for (size_t t = 0; t < sizeof kv_types / sizeof *kv_types; t++)
        for (size_t i = 0; i < sizeof depths / sizeof *depths; i++)
            if (is_listed(b->type_list, ak_quant_info(ak_kv_stored_type(kv_types[t]))->name) &&
                is_number_listed(b->depth_list, depths[i]))
                bench_depth(b, kv_types[t], depths[i]);
}

int main(int argc, char **argv)
{
    (void)argc;
    struct ak_error error = { 0 };
    struct bench b = { .kernel_list = take_option(argv, "--kernel", "all"),
                       .type_list = take_option(argv, "--type", "all"),
                       .n_list = take_option(argv, "--n", "all"),
                       .depth_list = take_option(argv, "--depth", "all") };
    const char *name = take_option(argv, "--backend", "opencl"),
               *form = take_option(argv, "-o", "text");
    b.device.options.device = take_option(argv, "--device", NULL);
    b.k = (size_t)number_option(argv, "--k", 4096, AK_BLOCK_K, 1 << 16);
    b.bytes = (size_t)number_option(argv, "--mib", 64, 1, COMMANDS_MAX) << 20;
    b.device.threads = (unsigned)number_option(argv, "--threads", ak_physical_cores(), 1, 1024);
    b.budget = number_option(argv, "--time", 0.1, 0.001, 100);
    b.json = strcmp(form, "json") == 0;
    take_nothing_else(argv, usage);
    if (!b.json && strcmp(form, "text") != 0) {
        fprintf(stderr, "-o %s: expected text or json\n", form);
        return 2;
    }
    if (b.k % AK_BLOCK_K != 0) {
        fprintf(stderr, "--k %zu: expected a multiple of %d\n", b.k, AK_BLOCK_K);
        return 2;
    }
    end_unless(ak_backend_find(name, &b.device.ops, &error), &error);
    bool found = b.device.options.device || b.device.ops->is_available();
    if (!found)
        fprintf(stderr, "%s: no device here\n",
                name); /* not an error: other types may still be measured */
    b.self = start_threads(1);
    if (found && is_listed(b.kernel_list, "linear"))
        bench_products(&b);
    if (found && is_listed(b.kernel_list, "attend"))
        bench_attention(&b);
    ak_pool_free(b.self);
    if (b.json)
        printf("%s]\n", b.n_rows ? "" : "[");
    return 0;
}
