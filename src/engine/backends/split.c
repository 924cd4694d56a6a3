/* The composite backend: two backends that share a model's layers. The first part hands its hidden
 * states before `split_layer` to the second, which gives the results. Weights, KV pages and states
 * belong to the part that owns the layer; page numbers are the same in both pools. */
#include "engine/backends/list.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/dispatch/table.h"

enum { FIRST, SECOND, PARTS };

struct split_backend {
    struct ak_backend base;
    struct ak_backend *parts[PARTS];
    const struct ak_spec *spec;
    uint32_t split_layer;
    char *description;
};

struct split_kv {
    void *pools[PARTS];
};

struct split_table {
    const struct split_backend *backend;
    struct ak_table tables[PARTS];
    struct ak_backend_table *parts[PARTS];
    ak_status status; /* of the first part, in the current pass */
    struct ak_error error;
};

static struct split_backend *as_split(const struct ak_backend *b)
{
    return (struct split_backend *)(uintptr_t)b;
}

static const struct ak_backend_ops *part_ops(const struct split_backend *s, int part)
{
    return s->parts[part]->ops;
}

/* ---- What it is --------------------------------------------------------- */
static void close_backend(struct ak_backend *b)
{
    struct split_backend *s = as_split(b);
    for (int i = 0; i < PARTS; i++)
        part_ops(s, i)->close(s->parts[i]);
    ak_free(s->description);
    ak_free(s);
}

static const char *split_describe(const struct ak_backend *b)
{
    return as_split(b)->description;
}

static struct ak_backend *layer_backend(struct ak_backend *b, int layer)
{
    struct split_backend *s = as_split(b);
    return s->parts[layer != AK_ROLE_NO_LAYER && layer < (int)s->split_layer ? FIRST : SECOND];
}

/* ---- Capacity ----------------------------------------------------------- */
static struct ak_kv_shape part_shape(const struct split_backend *s, const struct ak_kv_shape *whole,
                                     int part);

/* Page counts are equal on both parts: the smaller capacity decides. */
static uint64_t kv_bytes_max(const struct ak_backend *b, const struct ak_weights *weights)
{
    const struct split_backend *s = as_split(b);
    uint32_t n = s->spec->config.n_layers, layers[PARTS] = { s->split_layer, n - s->split_layer };
    uint64_t bytes = UINT64_MAX;
    for (int i = 0; i < PARTS; i++)
        if (part_ops(s, i)->kv_bytes_max) {
            uint64_t part_bytes = part_ops(s, i)->kv_bytes_max(s->parts[i], weights) / layers[i];
            bytes = part_bytes < bytes / n ? part_bytes * n : bytes;
        }
    return bytes;
}

static ak_status check_memory(const struct ak_backend *b, const struct ak_backend_tables *tables,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options,
                              struct ak_error *error)
{
    const struct split_backend *s = as_split(b);
    for (int i = 0; i < PARTS; i++) {
        struct ak_backend_table_options part_options = *options;
        part_options.kv = part_shape(s, &options->kv, i);
        if (part_ops(s, i)->check_memory)
            AK_TRY(part_ops(s, i)->check_memory(s->parts[i], tables, weights, spec, &part_options,
                                                error));
    }
    return AKUNU_OK;
}

/* ---- The KV cache ------------------------------------------------------- */
/* A part's share of the shape. An encoder has one KV layer, which all layers use. */
static struct ak_kv_shape part_shape(const struct split_backend *s, const struct ak_kv_shape *whole,
                                     int part)
{
    struct ak_kv_shape shape = *whole;
    uint32_t layers = ak_spec_kv_layer(s->spec, (int)s->split_layer);
    uint64_t elems = ak_spec_state_offset(s->spec, (int)s->split_layer);
    if (!s->spec->descriptor.encoder)
        shape.n_layers = part == FIRST ? layers : whole->n_layers - layers;
    shape.state_elems = part == FIRST ? elems : whole->state_elems - elems;
    return shape;
}

static void free_kv(struct ak_backend *b, void *memory, const struct ak_kv_shape *whole)
{
    const struct split_backend *s = as_split(b);
    struct split_kv *kv = memory;
    for (int i = 0; i < PARTS; i++) {
        struct ak_kv_shape shape = part_shape(s, whole, i);
        if (kv->pools[i])
            part_ops(s, i)->free_kv(s->parts[i], kv->pools[i], &shape);
    }
    ak_free(kv);
}

static ak_status alloc_kv(struct ak_backend *b, const struct ak_kv_shape *whole, void **out,
                          struct ak_error *error)
{
    const struct split_backend *s = as_split(b);
    struct split_kv *kv = ak_alloc(1, sizeof *kv);
    ak_status status = kv ? AKUNU_OK : ak_fail_memory(error, "the KV cache", sizeof *kv);
    for (int i = 0; i < PARTS && status == AKUNU_OK; i++) {
        struct ak_kv_shape shape = part_shape(s, whole, i);
        status = part_ops(s, i)->alloc_kv(s->parts[i], &shape, &kv->pools[i], error);
    }
    if (status != AKUNU_OK && kv)
        free_kv(b, kv, whole);
    *out = status == AKUNU_OK ? kv : NULL;
    return status;
}

static void split_copy_page(struct ak_backend *b, void *kv, const struct ak_kv_shape *whole,
                            uint32_t to, uint32_t from)
{
    const struct split_backend *s = as_split(b);
    for (int i = 0; i < PARTS; i++) {
        struct ak_kv_shape shape = part_shape(s, whole, i);
        if (shape.n_layers > 0)
            part_ops(s, i)->copy_page(s->parts[i], ((struct split_kv *)kv)->pools[i], &shape, to,
                                      from);
    }
}

static void split_copy_state(struct ak_backend *b, void *kv, const struct ak_kv_shape *whole,
                             uint32_t to, uint32_t from)
{
    const struct split_backend *s = as_split(b);
    for (int i = 0; i < PARTS; i++) {
        struct ak_kv_shape shape = part_shape(s, whole, i);
        if (shape.state_elems > 0)
            part_ops(s, i)->copy_state(s->parts[i], ((struct split_kv *)kv)->pools[i], &shape, to,
                                       from);
    }
}

/* ---- Passes ------------------------------------------------------------- */
static void split_release(struct ak_backend_table *prepared)
{
    struct split_table *p = (struct split_table *)prepared;
    for (int i = 0; i < PARTS; i++) {
        if (p->parts[i])
            part_ops(p->backend, i)->release(p->parts[i]);
        ak_table_clear(&p->tables[i]);
    }
    ak_free(p);
}

static ak_status split_prepare(struct ak_backend *b, const struct ak_table *table,
                               const struct ak_weights *weights, const struct ak_spec *spec,
                               const struct ak_backend_table_options *options, void *kv,
                               struct ak_backend_table **out, struct ak_error *error)
{
    const struct split_backend *s = as_split(b);
    struct split_table *p = ak_alloc(1, sizeof *p);
    if (!p)
        return ak_fail_memory(error, "a session", sizeof *p);
    p->backend = s;
    ak_status status =
        ak_table_split(table, spec, s->split_layer, &p->tables[FIRST], &p->tables[SECOND], error);
    /* the device first: it is the one that may lack memory */
    for (int i = PARTS - 1; i >= 0 && status == AKUNU_OK; i--) {
        struct ak_backend_table_options part_options = *options;
        part_options.kv = part_shape(s, &options->kv, i);
        if (options->lender)
            part_options.lender = ((const struct split_table *)options->lender)->parts[i];
        part_options.max_logits = i == FIRST ? 1 : options->max_logits;
        status = part_ops(s, i)->prepare(s->parts[i], &p->tables[i], weights, spec, &part_options,
                                         ((struct split_kv *)kv)->pools[i], &p->parts[i], error);
    }
    if (status != AKUNU_OK) {
        split_release((struct ak_backend_table *)p);
        return status;
    }
    *out = (struct ak_backend_table *)p;
    return AKUNU_OK;
}

static void split_run(struct ak_backend_table *prepared, const struct ak_batch *batch)
{
    struct split_table *p = (struct split_table *)prepared;
    const struct ak_backend_ops *first = part_ops(p->backend, FIRST);
    struct ak_batch part = *batch;
    part.n_logits = 0;
    first->run(p->parts[FIRST], &part);
    p->status = first->sync(p->parts[FIRST], &p->error);
    if (p->status != AKUNU_OK)
        return;
    part = *batch;
    part.hidden = first->logits(p->parts[FIRST], 0);
    part.hidden_stride = p->tables[FIRST].slots[p->tables[FIRST].logits].width;
    part_ops(p->backend, SECOND)->run(p->parts[SECOND], &part);
}

static ak_status sync(struct ak_backend_table *prepared, struct ak_error *error)
{
    struct split_table *p = (struct split_table *)prepared;
    if (p->status == AKUNU_OK)
        return part_ops(p->backend, SECOND)->sync(p->parts[SECOND], error);
    if (error)
        *error = p->error;
    return p->status;
}

static const float *logits(const struct ak_backend_table *prepared, uint32_t i)
{
    const struct split_table *p = (const struct split_table *)prepared;
    return part_ops(p->backend, SECOND)->logits(p->parts[SECOND], i);
}

static const int32_t *sampled(const struct ak_backend_table *prepared)
{
    const struct split_table *p = (const struct split_table *)prepared;
    return part_ops(p->backend, SECOND)->sampled(p->parts[SECOND]);
}

static uint64_t memory_bytes(const struct ak_backend_table *prepared)
{
    const struct split_table *p = (const struct split_table *)prepared;
    uint64_t sum = 0;
    for (int i = 0; i < PARTS; i++)
        sum += part_ops(p->backend, i)->memory_bytes(p->parts[i]);
    return sum;
}

static void counts(const struct ak_backend_table *prepared, struct ak_backend_counts *out)
{
    const struct split_table *p = (const struct split_table *)prepared;
    *out = (struct ak_backend_counts){ 0 };
    for (int i = 0; i < PARTS; i++) {
        struct ak_backend_counts one;
        part_ops(p->backend, i)->counts(p->parts[i], &one);
        out->gemv += one.gemv;
        out->skinny += one.skinny;
        out->gemm += one.gemm;
    }
}

/* The parts read their weights one after the other. */
static ak_status measure_bandwidth(struct ak_backend *b, const struct ak_weights *weights,
                                   unsigned n_threads, double *out, struct ak_error *error)
{
    const struct split_backend *s = as_split(b);
    double seconds = 0.0, all = 0.0;
    for (int i = 0; i < PARTS; i++) {
        double bytes = 0.0, rate;
        for (uint32_t j = 0; j < weights->n_packed; j++)
            bytes += weights->packed[j].backend == s->parts[i] ?
                         (double)ak_pack_read_bytes(&weights->packed[j]) :
                         0.0;
        AK_TRY(part_ops(s, i)->measure_bandwidth(s->parts[i], weights, n_threads, &rate, error));
        seconds += bytes / rate;
        all += bytes;
    }
    *out = all / seconds;
    return AKUNU_OK;
}

static const struct ak_backend_ops split_ops = {
    .name = "split",
    .close = close_backend,
    .describe = split_describe,
    .layer_backend = layer_backend,
    .kv_bytes_max = kv_bytes_max,
    .check_memory = check_memory,
    .alloc_kv = alloc_kv,
    .free_kv = free_kv,
    .copy_page = split_copy_page,
    .copy_state = split_copy_state,
    .prepare = split_prepare,
    .release = split_release,
    .run = split_run,
    .sync = sync,
    .logits = logits,
    .sampled = sampled,
    .memory_bytes = memory_bytes,
    .counts = counts,
    .measure_bandwidth = measure_bandwidth,
};

ak_status ak_backend_open_split(struct ak_backend *first, struct ak_backend *second,
                                const struct ak_spec *spec, uint32_t split_layer,
                                struct ak_backend **out, struct ak_error *error)
{
    const char *names[PARTS] = { first->ops->describe(first), second->ops->describe(second) };
    size_t capacity = strlen(names[FIRST]) + strlen(names[SECOND]) + 64;
    struct split_backend *s = ak_alloc(1, sizeof *s);
    if (!s || !(s->description = ak_alloc(capacity, 1))) {
        ak_free(s);
        return ak_fail_memory(error, "a backend", capacity);
    }
    *s = (struct split_backend){ .base = { &split_ops },
                                 .parts = { first, second },
                                 .spec = spec,
                                 .split_layer = split_layer,
                                 .description = s->description };
    snprintf(s->description, capacity, "%s (%u layers), %s (%u layers)", names[FIRST],
             (unsigned)split_layer, names[SECOND], (unsigned)(spec->config.n_layers - split_layer));
    *out = &s->base;
    return AKUNU_OK;
}
