/* The OpenCL backend's vtable, and the programs it builds at first use. */
#include "opencl/backend.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "opencl/opencl.h"
#include "engine/pack/pack.h"

static struct ak_ocl *as_ocl(const struct ak_backend *b)
{
    return (struct ak_ocl *)(uintptr_t)b;
}

static bool is_available(void)
{
    struct ak_ocl_device device;
    return ak_ocl_find_device(NULL, &device, NULL) == AKUNU_OK;
}

static ak_status device_info(size_t i, struct akunu_device_info *out, struct ak_error *error)
{
    struct ak_ocl_device *all = ak_alloc(AK_OCL_DEVICES_MAX, sizeof *all), *d = all + i;
    uint32_t n = 0;
    if (!all)
        return ak_fail_memory(error, "a list of OpenCL devices", 0);
    ak_status status = ak_ocl_list_devices(all, &n, error);
    if (status == AKUNU_OK && i >= n)
        status = ak_fail(error, AKUNU_ERROR_ARGUMENT,
                         "there is no OpenCL device of number %zu: there are %u", i, (unsigned)n);
    if (status == AKUNU_OK) {
        *out = (struct akunu_device_info){ .memory = d->memory,
                                           .max_allocation = d->max_allocation,
                                           .units = d->units,
                                           .mhz = d->mhz,
                                           .usable = d->usable };
        memcpy(out->name, d->name, sizeof out->name);
        memcpy(out->vendor, d->vendor, sizeof out->vendor);
        memcpy(out->version, d->version, sizeof out->version);
        memcpy(out->driver, d->driver, sizeof out->driver);
        snprintf(out->features, sizeof out->features, "%s%s%s%s%s",
                 d->gpu ? "gpu" :
                 d->cpu ? "cpu" :
                          "accelerator",
                 d->unified ? ", unified memory" : "", d->half_floats ? ", fp16" : "",
                 d->integer_dot ? ", integer dot product" : "",
                 d->command_buffers ? ", command buffers" : "");
    }
    ak_free(all);
    return status;
}

/* ---- Programs ----------------------------------------------------------- */
static void base_options(const struct ak_ocl *o, char *out, size_t capacity)
{
    snprintf(out, capacity,
             "-cl-std=CL1.2 -DGROUP=%d -DPAGE=%d -DHEAD_MAX=%d -DDELTA_DIM_MAX=%d "
             "-DDELTA_COLUMNS=%d -DDELTA_SLICES=%d"
             " -DCOLUMNS=%u -DLANE_ROWS=%u -DLANE_TOKENS=%u -DSLICES=%u -DLANES=%u",
             AK_OCL_GROUP, AK_KV_PAGE_TOKENS, AK_OCL_HEAD_MAX, AK_OCL_DELTA_DIM_MAX,
             AK_OCL_DELTA_COLUMNS, AK_OCL_DELTA_SLICES, 16 * (unsigned)o->tile, (unsigned)o->tile,
             (unsigned)o->tile, (unsigned)o->slices, (unsigned)o->lanes);
}

/* Builds a program at its first use; `defines` follow the common options. */
static ak_status build_once(struct ak_ocl *o, const char *const *sources, uint32_t n,
                            const char *defines, cl_program *program, cl_program *out,
                            struct ak_error *error)
{
    char options[512];
    ak_status status = AKUNU_OK;
    pthread_mutex_lock(&o->lock);
    if (!*program) {
        base_options(o, options, sizeof options);
        size_t used = strlen(options);
        snprintf(options + used, sizeof options - used, "%s", defines);
        status = ak_ocl_build_program(&o->builder, sources, n, options, program, error);
    }
    *out = *program;
    pthread_mutex_unlock(&o->lock);
    return status;
}

ak_status ak_ocl_build_products(struct ak_ocl *o, enum ak_quant_type type, bool experts,
                                cl_program *out, struct ak_error *error)
{
    static const char tokens1[] = "#define TOKENS 1\n",
                      tokens2[] = "#undef TOKENS\n#define TOKENS 2\n",
                      tokens4[] = "#undef TOKENS\n#define TOKENS 4\n",
                      tokens8[] = "#undef TOKENS\n#define TOKENS 8\n";
    const char *sources[] = { ak_ocl_source_shared,
                              ak_ocl_source_types,
                              tokens1,
                              ak_ocl_source_gemv,
                              tokens2,
                              ak_ocl_source_gemv,
                              tokens4,
                              ak_ocl_source_gemv,
                              tokens8,
                              ak_ocl_source_gemv,
                              ak_ocl_source_gemm };
    char defines[64];
    snprintf(defines, sizeof defines, " -DTYPE_%s%s", ak_quant_info(type)->name,
             experts ? " -DEXPERTS" : "");
    return build_once(o, sources, sizeof sources / sizeof *sources, defines,
                      &o->products[type][experts], out, error);
}

ak_status ak_ocl_build_rows(struct ak_ocl *o, cl_program *out, struct ak_error *error)
{
    const char *sources[] = { ak_ocl_source_shared, ak_ocl_source_group, ak_ocl_source_rows,
                              ak_ocl_source_recurrent };
    return build_once(o, sources, sizeof sources / sizeof *sources, "", &o->rows, out, error);
}

ak_status ak_ocl_build_attention(struct ak_ocl *o, enum akunu_kv_type k_type,
                                 enum akunu_kv_type v_type, cl_program *out, struct ak_error *error)
{
    static const char one[] = "#define QUERIES 1\n", many[] = "#undef QUERIES\n#define QUERIES 8\n";
    const char *sources[] = { ak_ocl_source_shared,
                              ak_ocl_source_group,
                              ak_ocl_source_kv,
                              ak_ocl_source_attention,
                              one,
                              ak_ocl_source_online_softmax,
                              many,
                              ak_ocl_source_online_softmax,
                              ak_ocl_source_scores };
    char defines[64];
    _Static_assert(AK_OCL_QUERIES == 8, "as written above");
    snprintf(defines, sizeof defines, " -DK_%s -DV_%s",
             ak_quant_info(ak_kv_stored_type(k_type))->name,
             ak_quant_info(ak_kv_stored_type(v_type))->name);
    return build_once(o, sources, sizeof sources / sizeof *sources, defines,
                      &o->attention[k_type][v_type], out, error);
}

ak_status ak_ocl_build_probe(struct ak_ocl *o, cl_program *out, struct ak_error *error)
{
    const char *sources[] = { ak_ocl_source_probe };
    return ak_ocl_build_program(&o->builder, sources, 1, "-cl-std=CL1.2", out, error);
}

/* ---- Opening ------------------------------------------------------------ */
static void release_program(const struct ak_ocl *o, cl_program program)
{
    if (program)
        o->cl->clReleaseProgram(program);
}

static void close_backend(struct ak_backend *b)
{
    struct ak_ocl *o = as_ocl(b);
    if (!o)
        return;
    if (o->weights)
        ak_ocl_release_weights(o);
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        for (int experts = 0; experts < 2; experts++)
            release_program(o, o->products[type][experts]);
    for (int k_type = 0; k_type < AK_KV_TYPE_COUNT; k_type++)
        for (int v_type = 0; v_type < AK_KV_TYPE_COUNT; v_type++)
            release_program(o, o->attention[k_type][v_type]);
    release_program(o, o->rows);
    if (o->queue)
        o->cl->clReleaseCommandQueue(o->queue);
    if (o->context)
        o->cl->clReleaseContext(o->context);
    pthread_mutex_destroy(&o->lock);
    ak_free(o->recorder);
    ak_free(o->cache_dir);
    ak_free(o->description);
    ak_free(o);
}

static ak_status open_device(struct ak_ocl *o, const struct ak_backend_options *options,
                             struct ak_error *error)
{
    cl_int code;
    cl_context_properties properties[] = { CL_CONTEXT_PLATFORM, 0, 0 };
    size_t n;
    AK_TRY(ak_ocl_find_device(options->device, &o->device, error));
    properties[1] = (cl_context_properties)o->device.platform;
    o->context = o->cl->clCreateContext(properties, 1, &o->device.id, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s cannot be opened: %s", o->device.name,
                       ak_ocl_error_name(code));
    o->queue = o->cl->clCreateCommandQueue(o->context, o->device.id, 0, &code);
    if (code != CL_SUCCESS)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s gives no queue: %s", o->device.name,
                       ak_ocl_error_name(code));
    const char *dir = options->no_cache ? "" : options->cache_dir;
    if (dir && !(o->cache_dir = ak_strndup(dir, strlen(dir))))
        return ak_fail_memory(error, "the OpenCL backend", 0);
    n = strlen(o->device.name) + sizeof "opencl: ";
    if (!(o->description = ak_alloc(n, 1)))
        return ak_fail_memory(error, "the OpenCL backend", 0);
    snprintf(o->description, n, "opencl: %s", o->device.name);
    o->tile = 4;
    /* a CPU runs a group's lanes one after another: fewer lanes, more work each */
    o->slices = o->device.cpu ? 4 : 16;
    o->lanes = o->device.cpu ? 4 : 32;
    if (options->log)
        o->log = *options->log;
    o->builder = (struct ak_ocl_builder){ .cl = o->cl,
                                          .device = &o->device,
                                          .context = o->context,
                                          .cache_dir = o->cache_dir,
                                          .log = &o->log };
    ak_ocl_find_recorder(o);
    return AKUNU_OK;
}

static ak_status open_backend(const struct ak_backend_options *options, struct ak_backend **out,
                              struct ak_error *error)
{
    const struct ak_ocl_api *cl = ak_ocl_load(error);
    if (!cl)
        return AKUNU_ERROR_UNSUPPORTED;
    struct ak_ocl *o = ak_alloc(1, sizeof *o);
    if (!o)
        return ak_fail_memory(error, "the OpenCL backend", sizeof *o);
    o->base.ops = &ak_ocl_backend;
    o->cl = cl;
    pthread_mutex_init(&o->lock, NULL);
    ak_status status = open_device(o, options, error);
    if (status != AKUNU_OK) {
        close_backend(&o->base);
        return status;
    }
    *out = &o->base;
    return AKUNU_OK;
}

static const char *ocl_describe(const struct ak_backend *b)
{
    return as_ocl(b)->description;
}

static bool supports(const struct ak_backend *b, enum ak_op op, enum ak_quant_type type)
{
    (void)b;
    switch (type) {
    case AK_QUANT_F32:
    case AK_QUANT_F16:
    case AK_QUANT_BF16: return op < AK_OP_COUNT;
    default:
        return op < AK_OP_COUNT && type < AK_QUANT_COUNT &&
               (op != AK_OP_LINEAR || ak_ocl_is_tiled(type));
    }
}

/* ---- Packing ------------------------------------------------------------ */
static uint32_t layout(const struct ak_backend *b, enum ak_op_linear linear,
                       const struct ak_view *view)
{
    (void)b, (void)linear;
    return ak_ocl_is_tiled(view->type) ? AK_OCL_TILES_1 : AK_OCL_ROWS_1;
}

static size_t tiles_bytes(enum ak_quant_type type, size_t k)
{
    return k / AK_OCL_TILE_K * ak_ocl_tile_bytes(type, AK_OCL_TILE_BLOCKS) +
           ak_ocl_tile_bytes(type, k % AK_OCL_TILE_K / AK_OCL_BLOCK_K);
}

static void pack_tiles(enum ak_quant_type type, const void *const rows[AK_OCL_TILE_ROWS], size_t k,
                       uint8_t *to)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    for (size_t at = 0, n; at < k; at += n) {
        const uint8_t *stored[AK_OCL_TILE_ROWS];
        n = k - at < AK_OCL_TILE_K ? k - at : AK_OCL_TILE_K;
        for (size_t r = 0; r < AK_OCL_TILE_ROWS; r++)
            stored[r] = rows[r] ?
                            (const uint8_t *)rows[r] + at / info->block_elems * info->block_bytes :
                            NULL;
        ak_ocl_pack_tile(type, stored, n, to);
        to += ak_ocl_tile_bytes(type, n / AK_OCL_BLOCK_K);
    }
}

static const struct ak_pack_tile_format tiles = { .pack = pack_tiles,
                                                  .bytes = tiles_bytes,
                                                  .is_tiled = ak_ocl_is_tiled };
_Static_assert((int)AK_PACK_ROWS == (int)AK_OCL_TILE_ROWS && (int)AK_PACK_K == (int)AK_OCL_TILE_K,
               "packing and kernels agree on the tile");

static uint64_t packed_bytes(const struct ak_backend *b, uint32_t layout_id,
                             enum ak_quant_type type, uint32_t rows, uint32_t cols)
{
    (void)b, (void)layout_id;
    return ak_pack_tile_bytes(&tiles, type, rows, cols);
}

static uint32_t group_rows(const struct ak_backend *b, uint32_t layout_id)
{
    (void)b, (void)layout_id;
    return AK_PACK_ROWS;
}

static void pack(const struct ak_backend *b, uint32_t layout_id, const struct ak_view *view,
                 uint32_t first, uint32_t n, void *packed)
{
    (void)b, (void)layout_id;
    ak_pack_tile_rows(&tiles, view, first, n, packed);
}

/* ---- The KV cache ------------------------------------------------------- */
/* kv.cl has floats and the types of one scale and whole bytes or nibbles. */
static ak_status check_kv_type(const struct ak_backend *b, const char *what,
                               enum akunu_kv_type type, struct ak_error *error)
{
    if (type <= AKUNU_KV_Q4_0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s of the KV cache in %s are not supported on %s: expected F16, F32, BF16, "
                   "Q8_0 or Q4_0",
                   what, ak_quant_info(ak_kv_stored_type(type))->name, b->ops->describe(b));
}

static ak_status alloc_kv(struct ak_backend *b, const struct ak_kv_shape *shape, void **out,
                          struct ak_error *error)
{
    *out = NULL;
    AK_TRY(check_kv_type(b, "keys", shape->k_type, error));
    AK_TRY(check_kv_type(b, "values", shape->v_type, error));
    struct ak_ocl_kv *kv = ak_alloc(1, sizeof *kv);
    if (!kv)
        return ak_fail_memory(error, "the KV cache", sizeof *kv);
    ak_status status = ak_ocl_create_buffer(as_ocl(b), ak_kv_pool_bytes(shape), "the KV cache",
                                            &kv->memory, error);
    if (status != AKUNU_OK)
        ak_free(kv);
    else
        *out = kv;
    return status;
}

static void free_kv(struct ak_backend *b, void *memory, const struct ak_kv_shape *shape)
{
    struct ak_ocl_kv *kv = memory;
    (void)shape;
    as_ocl(b)->cl->clReleaseMemObject(kv->memory);
    ak_free(kv);
}

static void copy_bytes(struct ak_ocl *o, struct ak_ocl_kv *kv, uint64_t to, uint64_t from,
                       uint64_t bytes)
{
    cl_int code = o->cl->clEnqueueCopyBuffer(o->queue, kv->memory, kv->memory, (size_t)from,
                                             (size_t)to, (size_t)bytes, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = o->cl->clFinish(o->queue);
    kv->failed = kv->failed ? kv->failed : code;
}

static void ocl_copy_page(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape,
                          uint32_t to, uint32_t from)
{
    uint64_t bytes = ak_kv_page_bytes(shape);
    copy_bytes(as_ocl(b), kv, to * bytes, from * bytes, bytes);
}

static void ocl_copy_state(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape,
                           uint32_t to, uint32_t from)
{
    copy_bytes(as_ocl(b), kv, ak_kv_state_offset(shape, to), ak_kv_state_offset(shape, from),
               shape->state_elems * sizeof(float));
}

/* ---- Results ------------------------------------------------------------ */
static const float *logits(const struct ak_backend_table *prepared, uint32_t i)
{
    const struct ak_ocl_table *p = (const struct ak_ocl_table *)prepared;
    return p->logits + (size_t)i * p->table->slots[p->table->logits].width;
}

static const int32_t *sampled(const struct ak_backend_table *prepared)
{
    return ((const struct ak_ocl_table *)prepared)->sampled;
}

static uint64_t memory_bytes(const struct ak_backend_table *prepared)
{
    return ((const struct ak_ocl_table *)prepared)->memory_bytes;
}

static void counts(const struct ak_backend_table *prepared, struct ak_backend_counts *out)
{
    *out = ((const struct ak_ocl_table *)prepared)->counts;
}

const struct ak_backend_ops ak_ocl_backend = {
    .name = "opencl",
    .is_available = is_available,
    .device_info = device_info,
    .open = open_backend,
    .close = close_backend,
    .describe = ocl_describe,
    .supports = supports,
    .kv_bytes_max = ak_ocl_kv_bytes_max,
    .check_memory = ak_ocl_check_memory,
    .layout = layout,
    .packed_bytes = packed_bytes,
    .group_rows = group_rows,
    .pack = pack,
    .alloc_kv = alloc_kv,
    .free_kv = free_kv,
    .copy_page = ocl_copy_page,
    .copy_state = ocl_copy_state,
    .prepare = ak_ocl_prepare,
    .release = ak_ocl_release,
    .run = ak_ocl_run,
    .sync = ak_ocl_sync,
    .logits = logits,
    .sampled = sampled,
    .memory_bytes = memory_bytes,
    .counts = counts,
    .measure_bandwidth = ak_ocl_measure_bandwidth,
};
