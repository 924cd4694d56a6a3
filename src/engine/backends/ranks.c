/* Rank 0's composite backend: each call goes to the other ranks as a message, then to its own CPU
 * backend. The other side of the messages is in follow.c. */
#include "engine/backends/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/dispatch/table.h"

/* ---- The ranks of a process --------------------------------------------- */
struct ak_ranks {
    struct ak_comm *comm;
    pthread_mutex_t lock;
    uint64_t n_ids;
};

ak_status ak_ranks_create(struct ak_comm *comm, struct ak_ranks **out, struct ak_error *error)
{
    struct ak_ranks *r = ak_alloc(1, sizeof *r);
    if (!r)
        return ak_fail_memory(error, "ranks", sizeof *r);
    pthread_mutexattr_t recursive; /* a model that is loaded runs a pass */
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&r->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    r->comm = comm;
    *out = r;
    return AKUNU_OK;
}

void ak_ranks_free(struct ak_ranks *r)
{
    if (!r)
        return;
    ak_comm_close(r->comm);
    pthread_mutex_destroy(&r->lock);
    ak_free(r);
}

struct ak_comm *ak_ranks_comm(const struct ak_ranks *r)
{
    return r->comm;
}

void ak_ranks_lock(struct ak_ranks *r)
{
    pthread_mutex_lock(&r->lock);
}

void ak_ranks_unlock(struct ak_ranks *r)
{
    pthread_mutex_unlock(&r->lock);
}

uint64_t ak_ranks_next_id(struct ak_ranks *r)
{
    return ++r->n_ids;
}

ak_status ak_ranks_send(struct ak_ranks *r, struct ak_message *m, struct ak_error *error)
{
    ak_status status = m->status;
    if (status != AKUNU_OK)
        ak_fail_memory(error, "a message to the other ranks", m->bytes.n);
    else
        status = ak_comm_broadcast(r->comm, m->bytes.bytes, m->bytes.n, error);
    ak_buffer_free(&m->bytes);
    return status;
}

/* How a call went on one rank. */
struct verdict {
    uint64_t status;
    char message[AK_ERROR_MESSAGE_BYTES];
};

static void name_rank(const struct ak_comm *comm, uint32_t rank, struct ak_error *error)
{
    char name[AK_COMM_HOST_BYTES + 32];
    snprintf(name, sizeof name, "rank %u (%s)", (unsigned)rank, ak_comm_host(comm, rank));
    ak_error_prefix(error, name);
}

ak_status ak_ranks_agree(struct ak_comm *comm, ak_status status, struct ak_error *error)
{
    struct verdict *all = ak_alloc(comm->n_ranks, sizeof *all);
    if (!all)
        return ak_fail_memory(error, "the ranks' answers", comm->n_ranks * sizeof *all);
    all[comm->rank].status = (uint64_t)status;
    if (status != AKUNU_OK)
        snprintf(all[comm->rank].message, sizeof all->message, "%s", error ? error->message : "");
    ak_status exchanged = ak_comm_all_gather_items(comm, all, sizeof *all, error);
    uint32_t i = 0;
    while (exchanged == AKUNU_OK && i < comm->n_ranks && all[i].status == AKUNU_OK)
        i++;
    if (exchanged == AKUNU_OK && i < comm->n_ranks) {
        all[i].message[sizeof all[i].message - 1] = '\0';
        exchanged = ak_fail(error, (ak_status)all[i].status, "%s", all[i].message);
        if (i > 0)
            name_rank(comm, i, error);
    }
    ak_free(all);
    return exchanged;
}

/* ---- Rank 0 ------------------------------------------------------------- */
struct ranks_backend {
    struct ak_backend base;
    struct ak_ranks *ranks;
    struct ak_ranks_model model;
    char *description;
};

/* A pool on rank 0, with its number. */
struct ranks_kv {
    uint64_t id;
    void *own;
};

struct ranks_table {
    const struct ranks_backend *backend;
    uint64_t id;
    const struct ak_table *table;
    struct ak_backend_table *own;
    bool sums_inputs;
    ak_status status; /* of the current pass, before it reached this rank's backend */
    struct ak_error error;
};

static struct ranks_backend *as_ranks(const struct ak_backend *b)
{
    return (struct ranks_backend *)(uintptr_t)b;
}

static const struct ak_backend_ops *own_ops(const struct ranks_backend *b)
{
    return b->model.backend->ops;
}

static struct ak_message message_of(const struct ranks_backend *b, enum ak_message_kind kind,
                                    uint64_t id)
{
    struct ak_message m = { 0 };
    ak_message_put_u64(&m, kind);
    ak_message_put_u64(&m, b->model.id);
    ak_message_put_u64(&m, id);
    return m;
}

/* A failure stays in the communicator, where the next pass finds it. */
static void tell(const struct ranks_backend *b, struct ak_message *m)
{
    ak_ranks_lock(b->ranks);
    (void)ak_ranks_send(b->ranks, m, NULL);
    ak_ranks_unlock(b->ranks);
}

static void close_backend(struct ak_backend *backend)
{
    struct ranks_backend *b = as_ranks(backend);
    struct ak_message m = message_of(b, AK_MESSAGE_FREE_MODEL, 0);
    tell(b, &m);
    own_ops(b)->close(b->model.backend);
    ak_free(b->description);
    ak_free(b);
}

static const char *ranks_describe(const struct ak_backend *b)
{
    return as_ranks(b)->description;
}

static struct ak_backend *layer_backend(struct ak_backend *b, int layer)
{
    (void)layer;
    return as_ranks(b)->model.backend;
}

static bool is_batch_invariant(const struct ak_backend *b)
{
    const struct ranks_backend *r = as_ranks(b);
    return own_ops(r)->is_batch_invariant(r->model.backend);
}

static ak_status calibrate(struct ak_backend *b, const struct ak_weights *weights,
                           struct ak_pool *pool, const struct ak_backend_profile *user,
                           struct ak_backend_profile *measured, struct ak_error *error)
{
    const struct ranks_backend *r = as_ranks(b);
    return own_ops(r)->calibrate(r->model.backend, weights, pool, user, measured, error);
}

/* ---- KV pools ----------------------------------------------------------- */
static ak_status alloc_kv(struct ak_backend *backend, const struct ak_kv_shape *shape, void **out,
                          struct ak_error *error)
{
    const struct ranks_backend *b = as_ranks(backend);
    struct ranks_kv *kv = ak_alloc(1, sizeof *kv);
    if (!kv)
        return ak_fail_memory(error, "the KV cache", sizeof *kv);
    ak_ranks_lock(b->ranks);
    kv->id = ak_ranks_next_id(b->ranks);
    struct ak_message m = message_of(b, AK_MESSAGE_ALLOC_KV, kv->id);
    ak_message_put(&m, shape, sizeof *shape);
    ak_status status = ak_ranks_send(b->ranks, &m, error);
    if (status == AKUNU_OK) {
        status = own_ops(b)->alloc_kv(b->model.backend, shape, &kv->own, error);
        status = ak_ranks_agree(ak_ranks_comm(b->ranks), status, error);
    }
    ak_ranks_unlock(b->ranks);
    if (status != AKUNU_OK && kv->own)
        own_ops(b)->free_kv(b->model.backend, kv->own, shape);
    if (status != AKUNU_OK)
        ak_free(kv);
    *out = status == AKUNU_OK ? kv : NULL;
    return status;
}

static void free_kv(struct ak_backend *backend, void *memory, const struct ak_kv_shape *shape)
{
    const struct ranks_backend *b = as_ranks(backend);
    struct ranks_kv *kv = memory;
    struct ak_message m = message_of(b, AK_MESSAGE_FREE_KV, kv->id);
    tell(b, &m);
    own_ops(b)->free_kv(b->model.backend, kv->own, shape);
    ak_free(kv);
}

static void tell_copy(const struct ranks_backend *b, enum ak_message_kind kind,
                      const struct ranks_kv *kv, uint32_t to, uint32_t from)
{
    struct ak_message m = message_of(b, kind, kv->id);
    ak_message_put_u64(&m, to);
    ak_message_put_u64(&m, from);
    tell(b, &m);
}

static void ranks_copy_page(struct ak_backend *backend, void *kv, const struct ak_kv_shape *shape,
                            uint32_t to, uint32_t from)
{
    const struct ranks_backend *b = as_ranks(backend);
    tell_copy(b, AK_MESSAGE_COPY_PAGE, kv, to, from);
    own_ops(b)->copy_page(b->model.backend, ((struct ranks_kv *)kv)->own, shape, to, from);
}

static void ranks_copy_state(struct ak_backend *backend, void *kv, const struct ak_kv_shape *shape,
                             uint32_t to, uint32_t from)
{
    const struct ranks_backend *b = as_ranks(backend);
    tell_copy(b, AK_MESSAGE_COPY_STATE, kv, to, from);
    own_ops(b)->copy_state(b->model.backend, ((struct ranks_kv *)kv)->own, shape, to, from);
}

/* ---- Tables ------------------------------------------------------------- */
static void ranks_release(struct ak_backend_table *prepared)
{
    struct ranks_table *t = (struct ranks_table *)prepared;
    struct ak_message m = message_of(t->backend, AK_MESSAGE_RELEASE, t->id);
    tell(t->backend, &m);
    own_ops(t->backend)->release(t->own);
    ak_free(t);
}

static uint64_t table_index(const struct ranks_backend *b, const struct ak_table *table)
{
    uint64_t i = 0;
    while (i < AK_RANKS_TABLES && b->model.tables[i] != table)
        i++;
    return i;
}

static ak_status prepare_all(const struct ranks_backend *b, struct ranks_table *t,
                             const struct ak_backend_table_options *options, struct ranks_kv *kv,
                             struct ak_error *error)
{
    struct ak_backend_table_options own = *options;
    const struct ranks_table *lender = (const struct ranks_table *)options->lender;
    struct ak_message m = message_of(b, AK_MESSAGE_PREPARE, t->id);
    ak_message_put_u64(&m, table_index(b, t->table));
    ak_message_put_u64(&m, kv->id);
    ak_message_put_u64(&m, lender ? lender->id : 0);
    ak_message_put_u64(&m, options->context);
    ak_message_put_u64(&m, options->max_tokens);
    ak_message_put_u64(&m, options->max_logits);
    AK_TRY(ak_ranks_send(b->ranks, &m, error));
    own.lender = lender ? lender->own : NULL;
    own.comm = ak_ranks_comm(b->ranks);
    ak_status status = own_ops(b)->prepare(b->model.backend, t->table, b->model.weights,
                                           b->model.spec, &own, kv->own, &t->own, error);
    return ak_ranks_agree(own.comm, status, error);
}

static ak_status ranks_prepare(struct ak_backend *backend, const struct ak_table *table,
                               const struct ak_weights *weights, const struct ak_spec *spec,
                               const struct ak_backend_table_options *options, void *kv,
                               struct ak_backend_table **out, struct ak_error *error)
{
    const struct ranks_backend *b = as_ranks(backend);
    struct ranks_table *t = ak_alloc(1, sizeof *t);
    (void)weights, (void)spec; /* those of the model */
    if (!t)
        return ak_fail_memory(error, "a session", sizeof *t);
    ak_ranks_lock(b->ranks);
    *t = (struct ranks_table){ .backend = b, .id = ak_ranks_next_id(b->ranks), .table = table };
    ak_status status = prepare_all(b, t, options, kv, error);
    ak_ranks_unlock(b->ranks);
    if (status != AKUNU_OK) {
        own_ops(b)->release(t->own);
        ak_free(t);
        return status;
    }
    *out = (struct ak_backend_table *)t;
    return AKUNU_OK;
}

/* ---- Passes ------------------------------------------------------------- */
/* The frames that a pass of the encoder reads of a sequence; 0: the table reads none. */
static uint64_t count_frames(const struct ak_table *table, uint32_t last_position)
{
    for (uint32_t i = 0; i < table->n_commands; i++)
        if (table->commands[i].op == AK_OP_FRAMES)
            return (uint64_t)last_position * table->commands[i].params.frames.step +
                   table->commands[i].params.frames.n;
    return 0;
}

/* The tokens of the sequence at [first, end), its pages, and what else the pass knows of it. */
static void put_sequence(struct ak_message *m, const struct ak_table *table,
                         const struct ak_batch *batch, uint32_t first, uint32_t end)
{
    uint32_t s = batch->sequences[first], last = batch->positions[end - 1],
             cross = batch->cross_sequences ? batch->cross_sequences[s] : AK_OP_NONE;
    uint64_t n_frames = batch->frames ? count_frames(table, last) : 0;
    ak_message_put_u64(m, s);
    ak_message_put_u64(m, end - first);
    ak_message_put(m, batch->tokens + first, (end - first) * sizeof *batch->tokens);
    ak_message_put(m, batch->positions + first, (end - first) * sizeof *batch->positions);
    ak_message_put_u64(m, batch->type_starts ? batch->type_starts[s] : UINT32_MAX);
    ak_message_put(m, batch->pages[s], (last / AK_KV_PAGE_TOKENS + 1) * sizeof **batch->pages);
    ak_message_put_u64(m, n_frames);
    if (n_frames > 0)
        ak_message_put(m, batch->frames[s], n_frames * sizeof **batch->frames);
    ak_message_put_u64(m, cross);
    if (cross == AK_OP_NONE)
        return;
    uint32_t n = batch->cross_lengths[s];
    ak_message_put_u64(m, n);
    ak_message_put(m, batch->pages[cross],
                   (n + AK_KV_PAGE_TOKENS - 1) / AK_KV_PAGE_TOKENS * sizeof **batch->pages);
}

/* One more than the largest sequence that the batch names. */
static uint64_t count_sequences(const struct ak_batch *batch)
{
    uint32_t max = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        uint32_t s = batch->sequences[i],
                 cross = batch->cross_sequences ? batch->cross_sequences[s] : 0;
        max = s > max ? s : max;
        max = cross > max && cross != AK_OP_NONE ? cross : max;
    }
    return (uint64_t)max + 1;
}

static void put_batch(struct ak_message *m, const struct ak_table *table,
                      const struct ak_batch *batch)
{
    ak_message_put_u64(m, batch->n);
    ak_message_put_u64(m, batch->n_logits);
    ak_message_put(m, batch->logit_rows, batch->n_logits * sizeof *batch->logit_rows);
    ak_message_put_u64(m, batch->n_best);
    ak_message_put_u64(m, (batch->scores ? AK_RANKS_SCORES : 0) |
                              (batch->importance ? AK_RANKS_IMPORTANCE : 0) |
                              (batch->wants_inputs ? AK_RANKS_INPUTS : 0) |
                              (batch->cross_sequences ? AK_RANKS_CROSS : 0));
    ak_message_put_u64(m, count_sequences(batch));
    for (uint32_t first = 0, end; first < batch->n; first = end) {
        for (end = first + 1; end < batch->n && batch->sequences[end] == batch->sequences[first];)
            end++;
        put_sequence(m, table, batch, first, end);
    }
}

static void ranks_run(struct ak_backend_table *prepared, const struct ak_batch *given)
{
    struct ranks_table *t = (struct ranks_table *)prepared;
    const struct ranks_backend *b = t->backend;
    struct ak_batch batch = *given;
    batch.wants_inputs = t->sums_inputs;
    ak_ranks_lock(b->ranks);
    struct ak_message m = message_of(b, AK_MESSAGE_RUN, t->id);
    put_batch(&m, t->table, &batch);
    ak_ranks_put_parts(&m, &b->model, &batch);
    t->status = ak_ranks_send(b->ranks, &m, &t->error);
    if (t->status == AKUNU_OK) {
        own_ops(b)->run(t->own, &batch);
        t->status = ak_ranks_collect_parts(ak_ranks_comm(b->ranks), &b->model, &batch, &t->error);
    }
    if (t->status == AKUNU_OK && ak_ranks_comm(b->ranks)->failure.status != AKUNU_OK) {
        t->error = ak_ranks_comm(b->ranks)->failure;
        t->status = t->error.status;
    }
    ak_ranks_unlock(b->ranks);
}

static ak_status sync(struct ak_backend_table *prepared, struct ak_error *error)
{
    const struct ranks_table *t = (const struct ranks_table *)prepared;
    if (t->status == AKUNU_OK)
        return own_ops(t->backend)->sync(t->own, error);
    if (error)
        *error = t->error;
    return t->status;
}

static const float *logits(const struct ak_backend_table *prepared, uint32_t i)
{
    const struct ranks_table *t = (const struct ranks_table *)prepared;
    return own_ops(t->backend)->logits(t->own, i);
}

static const int32_t *sampled(const struct ak_backend_table *prepared)
{
    const struct ranks_table *t = (const struct ranks_table *)prepared;
    return own_ops(t->backend)->sampled(t->own);
}

static uint64_t memory_bytes(const struct ak_backend_table *prepared)
{
    const struct ranks_table *t = (const struct ranks_table *)prepared;
    return own_ops(t->backend)->memory_bytes(t->own);
}

static void counts(const struct ak_backend_table *prepared, struct ak_backend_counts *out)
{
    const struct ranks_table *t = (const struct ranks_table *)prepared;
    own_ops(t->backend)->counts(t->own, out);
}

static bool enable_times(struct ak_backend_table *prepared, bool on)
{
    const struct ranks_table *t = (const struct ranks_table *)prepared;
    return own_ops(t->backend)->enable_times(t->own, on);
}

static bool get_time(const struct ak_backend_table *prepared, size_t i, struct ak_backend_time *out)
{
    const struct ranks_table *t = (const struct ranks_table *)prepared;
    return own_ops(t->backend)->get_time(t->own, i, out);
}

/* Every rank gets the whole input of each product, so this one's sums are those of all. */
static void sum_inputs(struct ak_backend_table *prepared, struct ak_backend_input_sums *sums)
{
    struct ranks_table *t = (struct ranks_table *)prepared;
    t->sums_inputs = sums != NULL;
    own_ops(t->backend)->sum_inputs(t->own, sums);
}

static ak_status measure_bandwidth(struct ak_backend *b, const struct ak_weights *weights,
                                   unsigned n_threads, double *out, struct ak_error *error)
{
    const struct ranks_backend *r = as_ranks(b);
    return own_ops(r)->measure_bandwidth(r->model.backend, weights, n_threads, out, error);
}

static const struct ak_backend_ops ranks_ops = {
    .name = "ranks",
    .close = close_backend,
    .describe = ranks_describe,
    .skips_pages = true,
    .is_batch_invariant = is_batch_invariant,
    .layer_backend = layer_backend,
    .calibrate = calibrate,
    .alloc_kv = alloc_kv,
    .free_kv = free_kv,
    .copy_page = ranks_copy_page,
    .copy_state = ranks_copy_state,
    .prepare = ranks_prepare,
    .release = ranks_release,
    .run = ranks_run,
    .sync = sync,
    .logits = logits,
    .sampled = sampled,
    .memory_bytes = memory_bytes,
    .counts = counts,
    .enable_times = enable_times,
    .get_time = get_time,
    .sum_inputs = sum_inputs,
    .measure_bandwidth = measure_bandwidth,
};

ak_status ak_backend_open_ranks(struct ak_ranks *r, const struct ak_ranks_model *model,
                                enum akunu_split split, struct ak_backend **out,
                                struct ak_error *error)
{
    const char *own = model->backend->ops->describe(model->backend);
    size_t capacity = strlen(own) + 32;
    struct ranks_backend *b = ak_alloc(1, sizeof *b);
    if (!b || !(b->description = ak_alloc(capacity, 1))) {
        ak_free(b);
        return ak_fail_memory(error, "a backend", capacity);
    }
    *b = (struct ranks_backend){
        .base = { &ranks_ops }, .ranks = r, .model = *model, .description = b->description
    };
    snprintf(b->description, capacity, "%s, %u ranks%s", own, (unsigned)r->comm->n_ranks,
             split == AKUNU_SPLIT_LAYERS ? " by layers" : "");
    *out = &b->base;
    return AKUNU_OK;
}
