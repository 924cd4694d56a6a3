/* The CPU backend's vtable. */
#include "base/mem.h"
#include "base/system.h"
#include "engine/cpu/backend.h"
#include "engine/cpu/cpu.h"
#include "engine/pack/pack.h"

#include <string.h>

static bool is_available(void)
{
    return true;
}

static const char *isa_name(size_t i)
{
    for (int isa = 0; isa < AK_CPU_ISA_COUNT; isa++)
        if (ak_cpu_isa_is_usable((enum ak_cpu_isa)isa) && i-- == 0)
            return ak_cpu_isa_name((enum ak_cpu_isa)isa);
    return NULL;
}

static void type_info(enum ak_quant_type type, struct ak_backend_type_info *out)
{
    out->integers = ak_cpu_type_act_format(type) != AK_CPU_ACT_F32;
    out->packed = ak_cpu_is_tiled(type);
}

/* NULL: the best one. */
static ak_status find_isa(const char *name, enum ak_cpu_isa *out, struct ak_error *error)
{
    *out = ak_cpu_best_isa();
    if (name && !ak_cpu_parse_isa(name, out))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "cannot use the CPU kernels \"%s\": %s; the best here are %s", name,
                       ak_cpu_isa_problem(name), ak_cpu_isa_name(*out));
    return AKUNU_OK;
}

static ak_status cpu_measure(const char *name, unsigned n_threads, unsigned what,
                             struct akunu_roofline *out, struct ak_error *error)
{
    enum ak_cpu_isa isa;
    AK_TRY(find_isa(name, &isa, error));
    return ak_cpu_measure_roofline(isa, n_threads, what, out, error);
}

static ak_status measure_types(const char *name, unsigned n_threads, double rates[AK_QUANT_COUNT],
                               double *step, struct ak_error *error)
{
    enum ak_cpu_isa isa;
    AK_TRY(find_isa(name, &isa, error));
    return ak_cpu_measure_types(isa, n_threads, rates, step, error);
}

static ak_status tune(const char *name, unsigned n_threads, unsigned n_runs,
                      ak_backend_progress_fn *progress, void *user, struct ak_backend_profile *out,
                      struct ak_error *error)
{
    enum ak_cpu_isa isa;
    AK_TRY(find_isa(name, &isa, error));
    return ak_cpu_tune(isa, n_threads, n_runs, progress, user, out, error);
}

static ak_status calibrate(struct ak_backend *b, const struct ak_weights *weights,
                           struct ak_pool *pool, const struct ak_backend_profile *user,
                           struct ak_backend_profile *measured, struct ak_error *error)
{
    struct ak_cpu *cpu = (struct ak_cpu *)b;
    ak_status status = ak_cpu_calibrate(b, weights, pool, measured, error);
    cpu->profile = *measured;
    ak_backend_profile_merge(&cpu->profile, user);
    return status;
}

/* Determines the activation formats that use BLAS and loads the library if there are any. */
static void select_blas(struct ak_cpu *cpu, const struct ak_backend_options *options)
{
    struct ak_error error = { 0 };
    bool wanted = false;
    cpu->prefers_blas = options->prefill == AKUNU_PREFILL_BLAS;
    for (int format = 0; format < AK_CPU_ACT_TYPE_COUNT; format++) {
        bool chosen =
            options->prefill == AKUNU_PREFILL_AUTO && options->relaxed && cpu->profile.blas[format];
        cpu->uses_blas[format] = cpu->prefers_blas || chosen;
        wanted = wanted || cpu->uses_blas[format];
    }
    if (!wanted || ak_cpu_blas_load(ak_env("AKUNU_BLAS"), &cpu->blas, &error) == AKUNU_OK)
        return;
    ak_log_line(options->log, AKUNU_LOG_WARN, "no BLAS: %s; using the built-in kernels",
                error.message);
    memset(cpu->uses_blas, 0, sizeof cpu->uses_blas);
}

static ak_status open_backend(const struct ak_backend_options *options, struct ak_backend **out,
                              struct ak_error *error)
{
    enum ak_cpu_isa isa;
    AK_TRY(find_isa(options->cpu, &isa, error));
    if ((unsigned)options->prefill > AKUNU_PREFILL_BLAS)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "prefill is %d: expected a value of enum akunu_prefill",
                       (int)options->prefill);
    struct ak_cpu *cpu = ak_alloc(1, sizeof *cpu);
    if (!cpu)
        return ak_fail_memory(error, "the CPU backend", sizeof *cpu);
    cpu->base.ops = &ak_cpu_backend;
    cpu->isa = isa;
    ak_cpu_fill_kernels(isa, &cpu->kernels);
    if (options->cpu_profile)
        cpu->profile = *options->cpu_profile;
    cpu->relaxed = options->relaxed;
    select_blas(cpu, options);
    *out = &cpu->base;
    return AKUNU_OK;
}

static void close_backend(struct ak_backend *b)
{
    ak_free(b);
}

static const char *cpu_describe(const struct ak_backend *b)
{
    return ak_cpu_isa_name(((const struct ak_cpu *)b)->isa);
}

static bool supports(const struct ak_backend *b, enum ak_op op, enum ak_quant_type type)
{
    (void)b;
    return op < AK_OP_COUNT && type < AK_QUANT_COUNT;
}

/* Relaxed results depend on the batch: GEMM may round activations to BF16, skinny GEMM does not. */
static bool is_batch_invariant(const struct ak_backend *b)
{
    return !((const struct ak_cpu *)b)->relaxed;
}

static uint32_t layout(const struct ak_backend *b, enum ak_op_linear linear,
                       const struct ak_view *view)
{
    (void)b;
    if (linear == AK_OP_LINEAR_OUTPUT && view->type == AK_QUANT_Q8_0 &&
        !ak_composed_is_foreign(view))
        return AK_CPU_LAYOUT_SLICES_1;
    return ak_cpu_is_tiled(view->type) ? AK_CPU_LAYOUT_TILES_1 : AK_CPU_LAYOUT_ROWS_1;
}

static const struct ak_pack_tile_format tiles = { .pack = ak_cpu_pack_tiles,
                                                  .bytes = ak_cpu_tile_row_bytes,
                                                  .is_tiled = ak_cpu_is_tiled };
_Static_assert((int)AK_PACK_ROWS == (int)AK_TILE_ROWS && (int)AK_PACK_K == (int)AK_TILE_K,
               "packing and kernels agree on the tile");

/* 0 for types without a tile layout: their stored rows are used in place (zero-copy). */
static uint64_t packed_bytes(const struct ak_backend *b, uint32_t layout_id,
                             enum ak_quant_type type, uint32_t rows, uint32_t cols)
{
    (void)b;
    return layout_id == AK_CPU_LAYOUT_SLICES_1 ? ak_cpu_slices_bytes(rows, cols) :
                                                 ak_pack_tile_bytes(&tiles, type, rows, cols);
}

static uint32_t group_rows(const struct ak_backend *b, uint32_t layout_id)
{
    (void)b;
    return layout_id == AK_CPU_LAYOUT_SLICES_1 ? AK_SLICES_ROWS : AK_PACK_ROWS;
}

static void pack(const struct ak_backend *b, uint32_t layout_id, const struct ak_view *view,
                 uint32_t first, uint32_t n, void *packed)
{
    (void)b;
    if (layout_id == AK_CPU_LAYOUT_SLICES_1)
        ak_cpu_pack_slices(view, first, n, packed);
    else
        ak_pack_tile_rows(&tiles, view, first, n, packed);
}

static ak_status alloc_kv(struct ak_backend *b, const struct ak_kv_shape *shape, void **kv,
                          struct ak_error *error)
{
    uint64_t bytes = ak_kv_pool_bytes(shape);
    (void)b;
    *kv = ak_pages_alloc((size_t)bytes);
    return *kv ? AKUNU_OK : ak_fail_memory(error, "the KV cache", bytes);
}

static void free_kv(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape)
{
    (void)b;
    ak_pages_free(kv, (size_t)ak_kv_pool_bytes(shape));
}

static void cpu_copy_page(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape,
                          uint32_t to, uint32_t from)
{
    uint64_t bytes = ak_kv_page_bytes(shape);
    (void)b;
    memcpy((uint8_t *)kv + to * bytes, (const uint8_t *)kv + from * bytes, (size_t)bytes);
}

static void cpu_copy_state(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape,
                           uint32_t to, uint32_t from)
{
    (void)b;
    memcpy((uint8_t *)kv + ak_kv_state_offset(shape, to),
           (const uint8_t *)kv + ak_kv_state_offset(shape, from),
           (size_t)shape->state_elems * sizeof(float));
}

static uint8_t *host_pages(struct ak_backend *b, void *kv)
{
    (void)b;
    return kv;
}

static ak_status sync(struct ak_backend_table *p, struct ak_error *error)
{
    (void)p, (void)error; /* run returns only when the pass is finished */
    return AKUNU_OK;
}

static const float *logits(const struct ak_backend_table *prepared, uint32_t i)
{
    const struct ak_cpu_prepared *p = (const struct ak_cpu_prepared *)prepared;
    return ak_cpu_slot(p, p->table->logits) + i * ak_cpu_stride(p, p->table->logits);
}

static const int32_t *sampled(const struct ak_backend_table *prepared)
{
    return ((const struct ak_cpu_prepared *)prepared)->pass.sampled;
}

static uint64_t memory_bytes(const struct ak_backend_table *prepared)
{
    return ((const struct ak_cpu_prepared *)prepared)->memory.bytes;
}

static void counts(const struct ak_backend_table *prepared, struct ak_backend_counts *out)
{
    const struct ak_cpu_prepared *p = (const struct ak_cpu_prepared *)prepared;
    *out = p->memory.scratch[0].counts;
    if (!p->ranks.first_half)
        return;
    const struct ak_backend_counts *first = &p->ranks.first_half->memory.scratch[0].counts;
    out->gemv += first->gemv;
    out->skinny += first->skinny;
    out->gemm += first->gemm;
}

static ak_status measure_bandwidth(struct ak_backend *b, const struct ak_weights *weights,
                                   unsigned n_threads, double *out, struct ak_error *error)
{
    struct akunu_roofline roof;
    (void)weights;
    AK_TRY(ak_cpu_measure_roofline(((const struct ak_cpu *)b)->isa, n_threads, AKUNU_MEASURE_READ,
                                   &roof, error));
    *out = roof.read_bytes_per_second;
    return AKUNU_OK;
}

const struct ak_backend_ops ak_cpu_backend = {
    .name = "cpu",
    .is_available = is_available,
    .isa_name = isa_name,
    .isa_problem = ak_cpu_isa_problem,
    .type_info = type_info,
    .measure = cpu_measure,
    .measure_types = measure_types,
    .tune = tune,
    .calibrate = calibrate,
    .open = open_backend,
    .close = close_backend,
    .describe = cpu_describe,
    .supports = supports,
    .is_batch_invariant = is_batch_invariant,
    .layout = layout,
    .packed_bytes = packed_bytes,
    .group_rows = group_rows,
    .pack = pack,
    .alloc_kv = alloc_kv,
    .free_kv = free_kv,
    .copy_page = cpu_copy_page,
    .copy_state = cpu_copy_state,
    .host_pages = host_pages,
    .skips_pages = true,
    .prepare = ak_cpu_prepare,
    .release = ak_cpu_release,
    .run = ak_cpu_run,
    .sync = sync,
    .logits = logits,
    .sampled = sampled,
    .memory_bytes = memory_bytes,
    .counts = counts,
    .enable_times = ak_cpu_enable_times,
    .get_time = ak_cpu_get_time,
    .sum_inputs = ak_cpu_sum_inputs,
    .measure_bandwidth = measure_bandwidth,
};
