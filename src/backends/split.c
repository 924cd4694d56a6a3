/* What goes over from one to the other is a pass's hidden states before layer `cut`, a row a
 * token; results come from the second, of which a table's end is. Whatever belongs to a
 * layer (weights, pages of the KV cache, states) lies with the backend that has the layer:
 * each has a pool of its own layers, with the same page numbers. */
#include "backends/split.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "dispatch/table.h"

enum { FIRST, SECOND, PARTS };

struct ak_split {
    struct ak_backend base;
    struct ak_backend *parts[PARTS];
    const struct ak_spec *spec;
    uint32_t cut;
    char *description;
};

struct split_kv {
    void *pools[PARTS];
};

struct split_prepared {
    const struct ak_split *split;
    struct ak_table tables[PARTS];
    struct ak_prepared *parts[PARTS];
    ak_status status; /* of the first part, in the pass that runs */
    struct ak_error error;
};

static struct ak_split *split_of(const struct ak_backend *b)
{
    return (struct ak_split *)(uintptr_t)b;
}

static const struct ak_backend_ops *ops_of(const struct ak_split *s, int part)
{
    return s->parts[part]->ops;
}

/* ---- What it is --------------------------------------------------------- */
static void close_backend(struct ak_backend *b)
{
    struct ak_split *s = split_of(b);
    for (int i = 0; i < PARTS; i++)
        ops_of(s, i)->close(s->parts[i]);
    ak_free(s->description);
    ak_free(s);
}

static const char *describe(const struct ak_backend *b)
{
    return split_of(b)->description;
}

static struct ak_backend *of(struct ak_backend *b, int layer)
{
    struct ak_split *s = split_of(b);
    return s->parts[layer != AK_ROLE_NO_LAYER && layer < (int)s->cut ? FIRST : SECOND];
}

/* ---- Room --------------------------------------------------------------- */
static struct ak_kv_shape shape_of(const struct ak_split *s, const struct ak_kv_shape *whole,
                                   int part);

/* Pages are as many on both, so the part that has room for fewer says how many. */
static uint64_t room(const struct ak_backend *b, const struct ak_weights *weights)
{
    const struct ak_split *s = split_of(b);
    uint32_t n = s->spec->config.n_layers, layers[PARTS] = { s->cut, n - s->cut };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < PARTS; i++)
        if (ops_of(s, i)->room) {
            uint64_t own = ops_of(s, i)->room(s->parts[i], weights) / layers[i];
            least = own < least / n ? own * n : least;
        }
    return least;
}

static ak_status fits(const struct ak_backend *b, const struct ak_table *table,
                      const struct ak_weights *weights, const struct ak_spec *spec,
                      const struct ak_prepare_options *options, struct ak_error *error)
{
    const struct ak_split *s = split_of(b);
    for (int i = 0; i < PARTS; i++) {
        struct ak_prepare_options own = *options;
        own.kv = shape_of(s, &options->kv, i);
        if (ops_of(s, i)->fits)
            AK_TRY(ops_of(s, i)->fits(s->parts[i], table, weights, spec, &own, error));
    }
    return AKUNU_OK;
}

/* ---- The KV cache ------------------------------------------------------- */
/* What one part has of it. An encoder has one layer's pages, which all layers use. */
static struct ak_kv_shape shape_of(const struct ak_split *s, const struct ak_kv_shape *whole,
                                   int part)
{
    struct ak_kv_shape shape = *whole;
    uint32_t layers = ak_spec_kv_layer(s->spec, (int)s->cut);
    uint64_t elems = ak_spec_state_at(s->spec, (int)s->cut);
    if (!s->spec->descriptor.encoder)
        shape.n_layers = part == FIRST ? layers : whole->n_layers - layers;
    shape.state_elems = part == FIRST ? elems : whole->state_elems - elems;
    return shape;
}

static void free_kv(struct ak_backend *b, void *memory, const struct ak_kv_shape *whole)
{
    const struct ak_split *s = split_of(b);
    struct split_kv *kv = memory;
    for (int i = 0; i < PARTS; i++) {
        struct ak_kv_shape shape = shape_of(s, whole, i);
        if (kv->pools[i])
            ops_of(s, i)->free(s->parts[i], kv->pools[i], &shape);
    }
    ak_free(kv);
}

static ak_status alloc_kv(struct ak_backend *b, const struct ak_kv_shape *whole, void **out,
                          struct ak_error *error)
{
    const struct ak_split *s = split_of(b);
    struct split_kv *kv = ak_alloc(1, sizeof *kv);
    ak_status status = kv ? AKUNU_OK : ak_fail_memory(error, "the KV cache", sizeof *kv);
    for (int i = 0; i < PARTS && status == AKUNU_OK; i++) {
        struct ak_kv_shape shape = shape_of(s, whole, i);
        status = ops_of(s, i)->alloc(s->parts[i], &shape, &kv->pools[i], error);
    }
    if (status != AKUNU_OK && kv)
        free_kv(b, kv, whole);
    *out = status == AKUNU_OK ? kv : NULL;
    return status;
}

static void copy_page(struct ak_backend *b, void *kv, const struct ak_kv_shape *whole, uint32_t to,
                      uint32_t from)
{
    const struct ak_split *s = split_of(b);
    for (int i = 0; i < PARTS; i++) {
        struct ak_kv_shape shape = shape_of(s, whole, i);
        if (shape.n_layers > 0)
            ops_of(s, i)->copy_page(s->parts[i], ((struct split_kv *)kv)->pools[i], &shape, to,
                                    from);
    }
}

static void copy_state(struct ak_backend *b, void *kv, const struct ak_kv_shape *whole, uint32_t to,
                       uint32_t from)
{
    const struct ak_split *s = split_of(b);
    for (int i = 0; i < PARTS; i++) {
        struct ak_kv_shape shape = shape_of(s, whole, i);
        if (shape.state_elems > 0)
            ops_of(s, i)->copy_state(s->parts[i], ((struct split_kv *)kv)->pools[i], &shape, to,
                                     from);
    }
}

/* ---- Passes ------------------------------------------------------------- */
static void release(struct ak_prepared *prepared)
{
    struct split_prepared *p = (struct split_prepared *)prepared;
    for (int i = 0; i < PARTS; i++) {
        if (p->parts[i])
            ops_of(p->split, i)->release(p->parts[i]);
        ak_table_clear(&p->tables[i]);
    }
    ak_free(p);
}

static ak_status prepare(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_prepare_options *options, void *kv,
                         struct ak_prepared **out, struct ak_error *error)
{
    const struct ak_split *s = split_of(b);
    struct split_prepared *p = ak_alloc(1, sizeof *p);
    if (!p)
        return ak_fail_memory(error, "a session", sizeof *p);
    p->split = s;
    ak_status status =
        ak_table_cut(table, spec, s->cut, &p->tables[FIRST], &p->tables[SECOND], error);
    /* the device first: it is what may have too little room */
    for (int i = PARTS - 1; i >= 0 && status == AKUNU_OK; i--) {
        struct ak_prepare_options own = *options;
        own.kv = shape_of(s, &options->kv, i);
        own.max_logits = i == FIRST ? 1 : options->max_logits;
        status = ops_of(s, i)->prepare(s->parts[i], &p->tables[i], weights, spec, &own,
                                       ((struct split_kv *)kv)->pools[i], &p->parts[i], error);
    }
    if (status != AKUNU_OK) {
        release((struct ak_prepared *)p);
        return status;
    }
    *out = (struct ak_prepared *)p;
    return AKUNU_OK;
}

static void run(struct ak_prepared *prepared, const struct ak_batch *batch)
{
    struct split_prepared *p = (struct split_prepared *)prepared;
    const struct ak_backend_ops *first = ops_of(p->split, FIRST);
    struct ak_batch part = *batch;
    part.n_logits = 0;
    first->run(p->parts[FIRST], &part);
    p->status = first->sync(p->parts[FIRST], &p->error);
    if (p->status != AKUNU_OK)
        return;
    part = *batch;
    part.hidden = first->logits(p->parts[FIRST], 0);
    part.hidden_stride = p->tables[FIRST].slots[p->tables[FIRST].logits].width;
    ops_of(p->split, SECOND)->run(p->parts[SECOND], &part);
}

static ak_status sync(struct ak_prepared *prepared, struct ak_error *error)
{
    struct split_prepared *p = (struct split_prepared *)prepared;
    if (p->status == AKUNU_OK)
        return ops_of(p->split, SECOND)->sync(p->parts[SECOND], error);
    if (error)
        *error = p->error;
    return p->status;
}

static const float *logits(const struct ak_prepared *prepared, uint32_t i)
{
    const struct split_prepared *p = (const struct split_prepared *)prepared;
    return ops_of(p->split, SECOND)->logits(p->parts[SECOND], i);
}

static const int32_t *chosen(const struct ak_prepared *prepared)
{
    const struct split_prepared *p = (const struct split_prepared *)prepared;
    return ops_of(p->split, SECOND)->chosen(p->parts[SECOND]);
}

static uint64_t bytes(const struct ak_prepared *prepared)
{
    const struct split_prepared *p = (const struct split_prepared *)prepared;
    uint64_t sum = 0;
    for (int i = 0; i < PARTS; i++)
        sum += ops_of(p->split, i)->bytes(p->parts[i]);
    return sum;
}

static void counts(const struct ak_prepared *prepared, struct ak_counts *out)
{
    const struct split_prepared *p = (const struct split_prepared *)prepared;
    *out = (struct ak_counts){ 0 };
    for (int i = 0; i < PARTS; i++) {
        struct ak_counts one;
        ops_of(p->split, i)->counts(p->parts[i], &one);
        out->gemv += one.gemv;
        out->small_n += one.small_n;
        out->gemm += one.gemm;
    }
}

/* One part's weights are read after the other's. */
static ak_status bandwidth(struct ak_backend *b, const struct ak_weights *weights,
                           unsigned n_threads, double *out, struct ak_error *error)
{
    const struct ak_split *s = split_of(b);
    double seconds = 0.0, all = 0.0;
    for (int i = 0; i < PARTS; i++) {
        double bytes = 0.0, rate;
        for (uint32_t j = 0; j < weights->n_packed; j++)
            bytes += weights->packed[j].backend == s->parts[i] ?
                         (double)ak_packed_read_bytes(&weights->packed[j]) :
                         0.0;
        AK_TRY(ops_of(s, i)->bandwidth(s->parts[i], weights, n_threads, &rate, error));
        seconds += bytes / rate;
        all += bytes;
    }
    *out = all / seconds;
    return AKUNU_OK;
}

static const struct ak_backend_ops split_ops = {
    .name = "split",
    .close = close_backend,
    .describe = describe,
    .of = of,
    .room = room,
    .fits = fits,
    .alloc = alloc_kv,
    .free = free_kv,
    .copy_page = copy_page,
    .copy_state = copy_state,
    .prepare = prepare,
    .release = release,
    .run = run,
    .sync = sync,
    .logits = logits,
    .chosen = chosen,
    .bytes = bytes,
    .counts = counts,
    .bandwidth = bandwidth,
};

ak_status ak_split_open(struct ak_backend *first, struct ak_backend *second,
                        const struct ak_spec *spec, uint32_t cut, struct ak_backend **out,
                        struct ak_error *error)
{
    const char *names[PARTS] = { first->ops->describe(first), second->ops->describe(second) };
    size_t room = strlen(names[FIRST]) + strlen(names[SECOND]) + 64;
    struct ak_split *s = ak_alloc(1, sizeof *s);
    if (!s || !(s->description = ak_alloc(room, 1))) {
        ak_free(s);
        return ak_fail_memory(error, "a backend", room);
    }
    *s = (struct ak_split){ .base = { &split_ops },
                            .parts = { first, second },
                            .spec = spec,
                            .cut = cut,
                            .description = s->description };
    snprintf(s->description, room, "%s (%u layers), %s (%u layers)", names[FIRST], (unsigned)cut,
             names[SECOND], (unsigned)(spec->config.n_layers - cut));
    *out = &s->base;
    return AKUNU_OK;
}
