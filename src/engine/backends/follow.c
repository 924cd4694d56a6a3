/* A rank that follows: pools and tables by rank 0's numbers, and passes from its messages. */
#include "engine/backends/ranks.h"
#include "base/mem.h"

enum { SEQUENCES_MAX = 1 << 24 };

struct pool {
    struct pool *next;
    uint64_t id;
    struct ak_kv_shape shape;
    void *memory;
};

struct prepared {
    struct prepared *next;
    uint64_t id;
    struct ak_backend_table *table;
};

/* The arrays of a pass, by sequence where its struct ak_batch has them so. */
struct arrays {
    int32_t *tokens;
    uint32_t *positions, *sequences, *type_starts, *cross_sequences, *cross_lengths;
    const uint32_t **pages;
    const float **frames;
};

struct ak_ranks_follower {
    struct ak_comm *comm;
    struct ak_ranks_model model;
    struct ak_pool *threads;
    struct pool *pools;
    struct prepared *tables;
};

static const struct ak_backend_ops *ops_of(const struct ak_ranks_follower *f)
{
    return f->model.backend->ops;
}

ak_status ak_ranks_follower_create(struct ak_comm *comm, const struct ak_ranks_model *model,
                                   struct ak_pool *pool, struct ak_ranks_follower **out,
                                   struct ak_error *error)
{
    struct ak_ranks_follower *f = ak_alloc(1, sizeof *f);
    if (!f)
        return ak_fail_memory(error, "a model", sizeof *f);
    *f = (struct ak_ranks_follower){ .comm = comm, .model = *model, .threads = pool };
    *out = f;
    return AKUNU_OK;
}

static struct pool **find_pool(struct ak_ranks_follower *f, uint64_t id)
{
    struct pool **p = &f->pools;
    while (*p && (*p)->id != id)
        p = &(*p)->next;
    return p;
}

static struct prepared **find_table(struct ak_ranks_follower *f, uint64_t id)
{
    struct prepared **p = &f->tables;
    while (*p && (*p)->id != id)
        p = &(*p)->next;
    return p;
}

static void free_pool(struct ak_ranks_follower *f, struct pool **at)
{
    struct pool *p = *at;
    *at = p->next;
    ops_of(f)->free_kv(f->model.backend, p->memory, &p->shape);
    ak_free(p);
}

static void free_table(struct ak_ranks_follower *f, struct prepared **at)
{
    struct prepared *p = *at;
    *at = p->next;
    ops_of(f)->release(p->table);
    ak_free(p);
}

void ak_ranks_follower_free(struct ak_ranks_follower *f)
{
    if (!f)
        return;
    while (f->tables)
        free_table(f, &f->tables);
    while (f->pools)
        free_pool(f, &f->pools);
    ak_free(f);
}

/* Rank 0 and this rank are of the same version, so this means a fault in one of them. */
static ak_status fail_message(struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_IO, "rank 0 sent a message that is not understood");
}

/* ---- Pools -------------------------------------------------------------- */
static ak_status alloc_pool(struct ak_ranks_follower *f, uint64_t id,
                            struct ak_message_reader *message, struct ak_error *error)
{
    struct pool *p = ak_alloc(1, sizeof *p);
    if (!p)
        return ak_fail_memory(error, "the KV cache", sizeof *p);
    p->id = id;
    ak_message_copy(message, &p->shape, sizeof p->shape);
    p->shape.n_layers = ak_spec_kv_layers(f->model.spec);
    p->shape.n_kv_heads = f->model.spec->config.n_kv_heads;
    p->shape.state_elems = ak_spec_state_elems(f->model.spec);
    ak_status status = ops_of(f)->alloc_kv(f->model.backend, &p->shape, &p->memory, error);
    if (status != AKUNU_OK) {
        ak_free(p);
        return status;
    }
    p->next = f->pools;
    f->pools = p;
    return AKUNU_OK;
}

/* The pool is in `f` before all ranks agree: if one of them has none, rank 0 frees its own. */
static ak_status follow_alloc(struct ak_ranks_follower *f, uint64_t id,
                              struct ak_message_reader *message, struct ak_error *error)
{
    ak_status own = alloc_pool(f, id, message, error), all = ak_ranks_agree(f->comm, own, error);
    if (own == AKUNU_OK && all != AKUNU_OK)
        free_pool(f, find_pool(f, id));
    return f->comm->failure.status;
}

static ak_status follow_copy(struct ak_ranks_follower *f, enum ak_message_kind kind, uint64_t id,
                             struct ak_message_reader *message, struct ak_error *error)
{
    struct pool *p = *find_pool(f, id);
    uint32_t to = ak_message_get_u32(message), from = ak_message_get_u32(message);
    uint32_t n = !p ? 0 : kind == AK_MESSAGE_COPY_PAGE ? p->shape.n_pages : p->shape.n_states;
    if (to >= n || from >= n)
        return fail_message(error);
    if (kind == AK_MESSAGE_COPY_PAGE)
        ops_of(f)->copy_page(f->model.backend, p->memory, &p->shape, to, from);
    else
        ops_of(f)->copy_state(f->model.backend, p->memory, &p->shape, to, from);
    return AKUNU_OK;
}

/* ---- Tables ------------------------------------------------------------- */
static ak_status prepare_table(struct ak_ranks_follower *f, uint64_t id,
                               struct ak_message_reader *message, struct ak_error *error)
{
    uint64_t index = ak_message_get_u64(message);
    const struct pool *pool = *find_pool(f, ak_message_get_u64(message));
    const struct prepared *lender = *find_table(f, ak_message_get_u64(message));
    struct ak_backend_table_options options = { .n_threads = ak_pool_threads(f->threads),
                                                .pool = f->threads,
                                                .context = ak_message_get_u32(message),
                                                .max_tokens = ak_message_get_u32(message),
                                                .max_logits = ak_message_get_u32(message),
                                                .lender = lender ? lender->table : NULL,
                                                .comm = f->comm };
    if (index >= AK_RANKS_TABLES || !pool || message->is_short)
        return fail_message(error);
    options.kv = pool->shape;
    struct prepared *p = ak_alloc(1, sizeof *p);
    if (!p)
        return ak_fail_memory(error, "a session", sizeof *p);
    p->id = id;
    ak_status status =
        ops_of(f)->prepare(f->model.backend, f->model.tables[index], f->model.weights,
                           f->model.spec, &options, pool->memory, &p->table, error);
    if (status != AKUNU_OK) {
        ak_free(p);
        return status;
    }
    p->next = f->tables;
    f->tables = p;
    return AKUNU_OK;
}

static ak_status follow_prepare(struct ak_ranks_follower *f, uint64_t id,
                                struct ak_message_reader *message, struct ak_error *error)
{
    ak_status own = prepare_table(f, id, message, error), all = ak_ranks_agree(f->comm, own, error);
    if (own == AKUNU_OK && all != AKUNU_OK)
        free_table(f, find_table(f, id));
    return f->comm->failure.status;
}

/* ---- Passes ------------------------------------------------------------- */
static void free_arrays(struct arrays *a)
{
    ak_free(a->tokens);
    ak_free(a->positions);
    ak_free(a->sequences);
    ak_free(a->type_starts);
    ak_free(a->cross_sequences);
    ak_free(a->cross_lengths);
    ak_free(a->pages);
    ak_free(a->frames);
}

static ak_status allocate_arrays(struct arrays *a, size_t n, size_t n_sequences,
                                 struct ak_error *error)
{
    *a = (struct arrays){ .tokens = ak_alloc(n, sizeof *a->tokens),
                          .positions = ak_alloc(n, sizeof *a->positions),
                          .sequences = ak_alloc(n, sizeof *a->sequences),
                          .type_starts = ak_alloc(n_sequences, sizeof *a->type_starts),
                          .cross_sequences = ak_alloc(n_sequences, sizeof *a->cross_sequences),
                          .cross_lengths = ak_alloc(n_sequences, sizeof *a->cross_lengths),
                          .pages = ak_alloc(n_sequences, sizeof *a->pages),
                          .frames = ak_alloc(n_sequences, sizeof *a->frames) };
    if (a->tokens && a->positions && a->sequences && a->type_starts && a->cross_sequences &&
        a->cross_lengths && a->pages && a->frames)
        return AKUNU_OK;
    free_arrays(a);
    return ak_fail_memory(error, "a pass", (n + n_sequences) * sizeof(uint64_t));
}

/* Pages that n tokens fill or begin; they stay in the message. */
static const uint32_t *take_pages(struct ak_message_reader *message, uint32_t n)
{
    return ak_message_take(message, ((size_t)n + AK_KV_PAGE_TOKENS - 1) / AK_KV_PAGE_TOKENS *
                                        sizeof(uint32_t));
}

/* Reads the tokens of a sequence, at most n, and what belongs to it; returns their number. */
static size_t read_sequence(struct ak_message_reader *message, struct arrays *a, size_t at,
                            size_t n, size_t n_sequences)
{
    uint64_t s = ak_message_get_u64(message), n_tokens = ak_message_get_u64(message);
    if (s >= n_sequences || n_tokens == 0 || n_tokens > n) {
        message->is_short = true;
        return 0;
    }
    ak_message_copy(message, a->tokens + at, n_tokens * sizeof *a->tokens);
    ak_message_copy(message, a->positions + at, n_tokens * sizeof *a->positions);
    for (size_t i = at; i < at + n_tokens; i++)
        a->sequences[i] = (uint32_t)s;
    a->type_starts[s] = ak_message_get_u32(message);
    a->pages[s] = take_pages(message, a->positions[at + n_tokens - 1] + 1);
    uint64_t n_frames = ak_message_get_u64(message), cross;
    a->frames[s] =
        n_frames <= message->left ? ak_message_take(message, n_frames * sizeof **a->frames) : NULL;
    cross = ak_message_get_u64(message);
    if (cross == AK_OP_NONE)
        return n_tokens;
    if (cross >= n_sequences) {
        message->is_short = true;
        return 0;
    }
    a->cross_sequences[s] = (uint32_t)cross;
    a->cross_lengths[s] = ak_message_get_u32(message);
    a->pages[cross] = take_pages(message, a->cross_lengths[s]);
    return n_tokens;
}

static void read_batch_tokens(struct ak_message_reader *message, struct arrays *a, size_t n,
                              size_t n_sequences)
{
    for (size_t at = 0, more; at < n && !message->is_short; at += more)
        more = read_sequence(message, a, at, n - at, n_sequences);
}

static ak_status follow_run(struct ak_ranks_follower *f, uint64_t id,
                            struct ak_message_reader *message, struct ak_error *error)
{
    const struct prepared *p = *find_table(f, id);
    uint64_t n = ak_message_get_u64(message), n_logits = ak_message_get_u64(message);
    const uint32_t *rows =
        n_logits <= message->left ? ak_message_take(message, n_logits * sizeof *rows) : NULL;
    struct ak_batch batch = { .n = (uint32_t)n,
                              .n_logits = (uint32_t)n_logits,
                              .logit_rows = rows,
                              .n_best = ak_message_get_u32(message) };
    uint64_t flags = ak_message_get_u64(message), n_sequences = ak_message_get_u64(message);
    struct arrays a;
    struct ak_ranks_parts parts = { .matrices = NULL };
    if (!p || !rows || n == 0 || n > message->left || n_sequences > SEQUENCES_MAX)
        return fail_message(error);
    AK_TRY(allocate_arrays(&a, (size_t)n, (size_t)n_sequences, error));
    read_batch_tokens(message, &a, n, n_sequences);
    batch.tokens = a.tokens;
    batch.positions = a.positions;
    batch.sequences = a.sequences;
    batch.pages = a.pages;
    batch.type_starts = a.type_starts;
    batch.frames = a.frames;
    batch.cross_sequences = flags & AK_RANKS_CROSS ? a.cross_sequences : NULL;
    batch.cross_lengths = flags & AK_RANKS_CROSS ? a.cross_lengths : NULL;
    batch.wants_inputs = flags & AK_RANKS_INPUTS;
    ak_status status = AKUNU_OK;
    if (!message->is_short)
        status = ak_ranks_read_parts(message, flags, &f->model, &batch, &parts, error);
    if (status == AKUNU_OK && message->is_short)
        status = fail_message(error);
    if (status == AKUNU_OK) {
        ops_of(f)->run(p->table, &batch);
        status = ops_of(f)->sync(p->table, error);
    }
    if (status == AKUNU_OK)
        status = ak_ranks_send_parts(f->comm, &f->model, &batch, error);
    ak_ranks_free_parts(&parts);
    free_arrays(&a);
    return status;
}

ak_status ak_ranks_follow(struct ak_ranks_follower *f, enum ak_message_kind kind,
                          struct ak_message_reader *message, struct ak_error *error)
{
    uint64_t id = ak_message_get_u64(message);
    switch (kind) {
    case AK_MESSAGE_ALLOC_KV: return follow_alloc(f, id, message, error);
    case AK_MESSAGE_PREPARE: return follow_prepare(f, id, message, error);
    case AK_MESSAGE_COPY_PAGE:
    case AK_MESSAGE_COPY_STATE: return follow_copy(f, kind, id, message, error);
    case AK_MESSAGE_RUN: return follow_run(f, id, message, error);
    case AK_MESSAGE_FREE_KV:
        if (*find_pool(f, id))
            free_pool(f, find_pool(f, id));
        return AKUNU_OK;
    case AK_MESSAGE_RELEASE:
        if (*find_table(f, id))
            free_table(f, find_table(f, id));
        return AKUNU_OK;
    default: return fail_message(error);
    }
}
