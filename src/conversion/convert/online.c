/* Quantizes a model while it is packed: a provider that looks like the GGUF file which ak_convert
 * would write, with the same names, types and metadata. The file is one in memory that has holes
 * where the large tensors are. Their rows are made when they are read, by what writes them in
 * rows.c, so that nothing but the packed weights stays. */
#include "conversion/convert/online.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/name_index.h"
#include "conversion/convert/convert.h"
#include "files/weights/composed.h"

/* What a thread needs to make the rows of a tile row. */
struct workspace {
    struct ak_convert_row_buffers buffers;
    uint8_t *blocks; /* AK_COMPOSED_ROWS_MAX rows */
    struct workspace *next;
};

struct online;

/* A tensor of the new file. */
struct online_tensor {
    struct ak_composed_tensor composed; /* first: the scheme's functions get its address */
    struct online *online;
    const struct ak_convert_tensor *t;
    struct ak_convert_rows *rows; /* NULL: it is in the file in memory, or in the source */
    bool in_source;               /* with the same bytes */
    uint64_t row_bytes;
};

struct online {
    struct ak_provider provider;
    struct ak_provider_format format; /* that of GGUF, with the functions below */
    struct ak_convert_quantize quantize;
    struct ak_convert_options options;
    struct ak_convert_job *job;
    const struct ak_provider *source; /* the job's */
    struct ak_provider *hollow;       /* the new file, with holes */
    struct ak_error error;            /* of the job */
    struct online_tensor *tensors;    /* in the order of the file */
    size_t n;
    struct ak_name_index index;
    uint8_t digest[AK_SHA256_BYTES]; /* of the source and of what decides the blocks */

    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t is_free;
    struct workspace *workspaces, *free;
    unsigned n_workspaces;
    const struct ak_convert_tensor *bad; /* one with elements that are no numbers; NULL: none */
};

static struct online *cast(const struct ak_provider *p)
{
    return (struct online *)(uintptr_t)p;
}

/* ---- Rows --------------------------------------------------------------- */
static struct workspace *take_workspace(struct online *o)
{
    pthread_mutex_lock(&o->mutex);
    while (!o->free)
        pthread_cond_wait(&o->is_free, &o->mutex);
    struct workspace *w = o->free;
    o->free = w->next;
    pthread_mutex_unlock(&o->mutex);
    return w;
}

static void give(struct online *o, struct workspace *w, const struct ak_convert_tensor *t)
{
    pthread_mutex_lock(&o->mutex);
    if (w->buffers.has_no_number)
        o->bad = t;
    w->buffers.has_no_number = false;
    w->next = o->free;
    o->free = w;
    pthread_cond_signal(&o->is_free);
    pthread_mutex_unlock(&o->mutex);
}

static void make_rows(const struct ak_composed_tensor *a, uint64_t first, uint32_t step, uint32_t n,
                      ak_composed_rows_fn *fn, void *user)
{
    const struct online_tensor *of = (const struct online_tensor *)a;
    const void *rows[AK_COMPOSED_ROWS_MAX] = { NULL };
    struct workspace *w = take_workspace(of->online);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *to = w->blocks + i * of->row_bytes;
        ak_convert_rows_make(of->rows, first + (uint64_t)i * step, &w->buffers, to);
        rows[i] = to;
    }
    fn(rows, user);
    give(of->online, w, of->t);
}

/* The rows of the source have the same order, and are of one tensor; or not. */
static const struct ak_composed_scheme in_order = { .rows = make_rows,
                                                    .is_gguf = true,
                                                    .is_row_major = true },
                                       reordered = { .rows = make_rows, .is_gguf = true };

/* ---- The provider ------------------------------------------------------- */
static void close_online(struct ak_provider *p)
{
    struct online *o = cast(p);
    for (size_t i = 0; i < o->n; i++)
        ak_convert_rows_close(o->tensors[i].rows);
    for (unsigned i = 0; i < o->n_workspaces; i++) {
        ak_convert_row_buffers_free(&o->workspaces[i].buffers);
        ak_free(o->workspaces[i].blocks);
    }
    ak_free(o->workspaces);
    ak_free(o->tensors);
    ak_name_index_free(&o->index);
    ak_provider_close(o->hollow);
    ak_convert_end(o->job);
    pthread_cond_destroy(&o->is_free);
    pthread_mutex_destroy(&o->mutex);
    ak_free(o);
}

/* After packing: whether the rows could be quantized. */
static ak_status check_weights(const struct ak_provider *p, struct ak_error *error)
{
    struct online *o = cast(p);
    const struct ak_convert_row_buffers buffers = { .has_no_number = true };
    pthread_mutex_lock(&o->mutex);
    const struct ak_convert_tensor *bad = o->bad;
    pthread_mutex_unlock(&o->mutex);
    return bad ? ak_convert_check_numbers(bad, &buffers, error) : AKUNU_OK;
}

static const void *source_data(const struct online_tensor *of, uint64_t *bytes)
{
    struct ak_tensor stored;
    ak_provider_tensor(of->online->source, of->t->index, &stored);
    *bytes = stored.bytes;
    return stored.data;
}

static bool online_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                        struct ak_view *out)
{
    const struct online *o = cast(p);
    uint32_t at;
    if (!ak_provider_find(o->hollow, role, layer, hf, out) ||
        !ak_name_index_find(&o->index, out->name, &at))
        return false;
    const struct online_tensor *of = &o->tensors[at];
    if (of->in_source)
        out->plane[0].data = source_data(of, &out->plane[0].bytes);
    if (of->rows) {
        out->composed_tensor = &of->composed;
        memcpy(out->plane, of->composed.plane, sizeof out->plane);
    }
    return true;
}

static size_t online_n_tensors(const struct ak_provider *p)
{
    return ak_provider_n_tensors(cast(p)->hollow);
}

static bool online_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out)
{
    const struct online *o = cast(p);
    if (!ak_provider_tensor(o->hollow, i, out))
        return false;
    if (o->tensors[i].in_source)
        out->data = source_data(&o->tensors[i], &out->bytes);
    if (o->tensors[i].rows) {
        out->composed_tensor = &o->tensors[i].composed;
        out->data = o->tensors[i].composed.plane[0].data;
    }
    return true;
}

static size_t online_n_metas(const struct ak_provider *p)
{
    return ak_provider_n_metas(cast(p)->hollow);
}

static bool online_meta(const struct ak_provider *p, size_t i, struct ak_meta *out)
{
    return ak_provider_meta(cast(p)->hollow, i, out);
}

static bool online_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out)
{
    return ak_provider_find_meta(cast(p)->hollow, key, out);
}

static bool online_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                           struct ak_meta *out)
{
    return ak_provider_element(cast(p)->hollow, array, i, out);
}

static ak_status online_vocab(const struct ak_provider *p, struct ak_vocab *out,
                              struct ak_error *error)
{
    return ak_provider_vocab(cast(p)->hollow, out, error);
}

static uint64_t online_bytes(const struct ak_provider *p)
{
    return ak_provider_bytes(cast(p)->source);
}

static const struct ak_file *online_part(const struct ak_provider *p, size_t i)
{
    return ak_provider_part(cast(p)->source, i);
}

static void online_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    ak_provider_fingerprint(cast(p)->source, out);
    memcpy(out->hash, cast(p)->digest, sizeof out->hash);
}

static void online_advise(const struct ak_provider *p, const void *data, uint64_t n,
                          enum ak_file_advice use)
{
    ak_provider_advise(cast(p)->source, data, n, use);
}

static void set_functions(struct online *o)
{
    o->format = *o->hollow->format;
    o->format.close = close_online;
    o->format.check_weights = check_weights;
    o->format.find = online_find;
    o->format.n_tensors = online_n_tensors;
    o->format.tensor = online_tensor;
    o->format.n_metas = online_n_metas;
    o->format.meta = online_meta;
    o->format.find_meta = online_find_meta;
    o->format.element = online_element;
    o->format.vocab = online_vocab;
    o->format.file = NULL;
    o->format.bytes = online_bytes;
    o->format.part = online_part;
    o->format.fingerprint = online_fingerprint;
    o->format.advise = online_advise;
}

/* ---- Opening ------------------------------------------------------------ */
static bool is_in_source(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t)
{
    struct ak_tensor stored;
    return t->is_stored && strcmp(plan->source->format->name, "gguf") == 0 &&
           ak_provider_tensor(plan->source, t->index, &stored) && stored.type == t->type &&
           !stored.composed_tensor;
}

static bool is_left_out(const struct ak_convert_plan *plan, const struct ak_convert_tensor *t)
{
    return t->searches || is_in_source(plan, t);
}

static ak_status write_hollow(struct online *o, struct ak_error *error)
{
    int fd;
    ak_convert_report_fits(ak_convert_get_plan(o->job), o->options.log);
    AK_TRY(ak_convert_write_partly(o->job, is_left_out, &fd));
    ak_status status = ak_provider_open_fd(fd, &o->hollow, error);
    close(fd);
    return status;
}

/* Planes serve advice about the pages of the source alone. */
static void set_planes(struct online_tensor *of)
{
    const struct ak_view *view;
    for (uint32_t i = 0; (view = ak_convert_rows_view(of->rows, i)) != NULL; i++)
        of->composed.plane[i] = view->plane[0];
}

static ak_status compose_online(struct online *o, size_t i, const struct ak_tensor *hollow,
                                struct ak_error *error)
{
    const struct ak_convert_plan *plan = ak_convert_get_plan(o->job);
    struct online_tensor *of = &o->tensors[i];
    struct ak_tensor stored;
    bool is_plain = of->t->is_stored && ak_provider_tensor(plan->source, of->t->index, &stored) &&
                    !stored.composed_tensor;
    of->composed = (struct ak_composed_tensor){ .scheme = is_plain ? &in_order : &reordered,
                                                .type = hollow->type,
                                                .n_dims = hollow->n_dims,
                                                .cols = (uint32_t)hollow->shape[hollow->n_dims - 1],
                                                .rows = (uint32_t)ak_convert_count_rows(of->t) };
    memcpy(of->composed.shape, hollow->shape, sizeof of->composed.shape);
    strncpy(of->composed.name, ak_quant_info(hollow->type)->name, AK_COMPOSED_NAME_BYTES - 1);
    (void)ak_quant_row_bytes(hollow->type, of->composed.cols, &of->row_bytes); /* checked */
    AK_TRY(ak_convert_rows_open(plan, of->t, &of->rows, error));
    set_planes(of);
    return AKUNU_OK;
}

static ak_status open_tensors(struct online *o, struct ak_error *error)
{
    const struct ak_convert_plan *plan = ak_convert_get_plan(o->job);
    struct ak_tensor hollow;
    o->tensors = ak_alloc(plan->n, sizeof *o->tensors);
    if (!o->tensors)
        return ak_fail_memory(error, "a list of tensors", plan->n * sizeof *o->tensors);
    o->n = plan->n;
    AK_TRY(ak_name_index_alloc(&o->index, plan->n, error));
    for (size_t i = 0; i < plan->n; i++) {
        ak_provider_tensor(o->hollow, i, &hollow);
        o->tensors[i].online = o;
        o->tensors[i].t = &plan->tensors[i];
        o->tensors[i].in_source = is_in_source(plan, &plan->tensors[i]);
        o->index.entries[i] = (struct ak_name_index_entry){ hollow.name, (uint32_t)i };
        if (plan->tensors[i].searches)
            AK_TRY(compose_online(o, i, &hollow, error));
    }
    o->index.n = (uint32_t)plan->n;
    ak_name_index_sort(&o->index);
    return AKUNU_OK;
}

static ak_status alloc_workspaces(struct online *o, unsigned n, struct ak_error *error)
{
    uint32_t cols = 1;
    uint64_t row_bytes = 1;
    for (size_t i = 0; i < o->n; i++) {
        cols = o->tensors[i].composed.cols > cols ? o->tensors[i].composed.cols : cols;
        row_bytes = o->tensors[i].row_bytes > row_bytes ? o->tensors[i].row_bytes : row_bytes;
    }
    o->workspaces = ak_alloc(n, sizeof *o->workspaces);
    if (!o->workspaces)
        return ak_fail_memory(error, "workspaces", n * sizeof *o->workspaces);
    o->n_workspaces = n;
    for (unsigned i = 0; i < n; i++) {
        struct workspace *w = &o->workspaces[i];
        AK_TRY(ak_convert_row_buffers_alloc(&w->buffers, cols, error));
        w->blocks = ak_alloc(AK_COMPOSED_ROWS_MAX, (size_t)row_bytes);
        if (!w->blocks)
            return ak_fail_memory(error, "rows", AK_COMPOSED_ROWS_MAX * row_bytes);
        w->next = o->free;
        o->free = w;
    }
    return AKUNU_OK;
}

/* The types are in the cache key by themselves; importance is not. */
static void make_digest(struct online *o)
{
    const struct ak_convert_plan *plan = ak_convert_get_plan(o->job);
    struct ak_provider_fingerprint source;
    struct ak_sha256 h;
    ak_provider_fingerprint(plan->source, &source);
    ak_sha256_begin(&h);
    ak_sha256_add(&h, source.hash, sizeof source.hash);
    ak_sha256_add(&h, plan->mix->name, strlen(plan->mix->name) + 1);
    for (size_t i = 0; i < plan->n; i++) {
        const struct ak_convert_tensor *t = &plan->tensors[i];
        ak_sha256_add(&h, t->name, strlen(t->name) + 1);
        ak_sha256_add(&h, &t->n_importance, sizeof t->n_importance);
        if (t->importance)
            ak_sha256_add(&h, t->importance, (size_t)t->n_importance * sizeof *t->importance);
    }
    ak_sha256_end(&h, o->digest);
}

static ak_status open_online(struct online *o, const char *path, unsigned n_threads,
                             struct ak_error *error)
{
    ak_status status = ak_convert_begin(path, NULL, &o->options, &o->job, &o->error);
    if (status == AKUNU_OK)
        status = ak_convert_check_importance(ak_convert_get_plan(o->job), &o->error);
    if (status == AKUNU_OK)
        status = write_hollow(o, &o->error);
    if (status != AKUNU_OK) {
        *error = o->error;
        return status;
    }
    o->source = ak_convert_get_plan(o->job)->source;
    AK_TRY(open_tensors(o, error));
    make_digest(o);
    unsigned cores = ak_physical_cores();
    return alloc_workspaces(o, n_threads > cores ? n_threads : cores, error);
}

ak_status ak_convert_open_online(const char *path, const char *type, const char *importance,
                                 const char *const *ignore_keys, unsigned n_threads,
                                 const struct ak_log *log, struct ak_provider **out,
                                 struct ak_error *error)
{
    struct online *o = ak_alloc(1, sizeof *o);
    *out = NULL;
    if (!o)
        return ak_fail_memory(error, "a provider", sizeof *o);
    pthread_mutex_init(&o->mutex, NULL);
    pthread_cond_init(&o->is_free, NULL);
    o->quantize = (struct ak_convert_quantize){ .mix = type, .importance = importance };
    o->options = (struct ak_convert_options){
        .quantize = &o->quantize, .n_threads = 1, .ignore_keys = ignore_keys, .log = log
    };
    ak_status status = open_online(o, path, n_threads, error);
    o->options.log = NULL;
    o->options.ignore_keys = NULL;
    if (status != AKUNU_OK) {
        close_online(&o->provider);
        return status;
    }
    set_functions(o);
    o->provider.format = &o->format;
    *out = &o->provider;
    return AKUNU_OK;
}
