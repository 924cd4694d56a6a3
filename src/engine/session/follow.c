/* What a rank other than 0 does all the time: it waits for messages, and does as they say. */
#include "engine/session/follow.h"

#include "base/mem.h"
#include "engine/session/load_ranks.h"
#include "engine/session/session.h"

struct followed {
    struct followed *next;
    uint64_t id;
    struct ak_model *model;
    struct ak_pool *pool;
    struct ak_ranks_follower *follower;
};

struct follow {
    struct ak_comm *comm;
    ak_model_open_fn *open_quantized;
    const struct ak_log *log;
    struct followed *models;
};

/* ---- Loading ------------------------------------------------------------ */
static void put_texts(struct ak_message *m, const char *const *texts)
{
    uint64_t n = 0;
    while (texts && texts[n])
        n++;
    ak_message_put_u64(m, n);
    for (uint64_t i = 0; i < n; i++)
        ak_message_put_text(m, texts[i]);
}

void ak_follow_put_load(struct ak_message *m, uint64_t id, const char *path,
                        const struct akunu_load_params *params)
{
    ak_message_put_u64(m, AK_MESSAGE_LOAD);
    ak_message_put_u64(m, id);
    ak_message_put_text(m, path);
    ak_message_put_text(m, params->cpu);
    ak_message_put_text(m, params->cache_dir);
    ak_message_put_text(m, params->profile);
    ak_message_put_text(m, params->backend);
    ak_message_put_text(m, params->quantize);
    ak_message_put_text(m, params->importance);
    ak_message_put(m, &params->n_threads, sizeof params->n_threads);
    ak_message_put(m, &params->no_cache, sizeof params->no_cache);
    ak_message_put(m, &params->relaxed, sizeof params->relaxed);
    ak_message_put(m, &params->prefill, sizeof params->prefill);
    ak_message_put(m, &params->split, sizeof params->split);
    ak_message_put(m, &params->cache_limit, sizeof params->cache_limit);
    ak_message_put(m, &params->rope, sizeof params->rope);
    put_texts(m, params->override_kv);
    put_texts(m, params->ignore_keys);
    ak_message_put_u64(m, params->n_adapters);
    for (size_t i = 0; params->adapters && i < params->n_adapters; i++) {
        ak_message_put_text(m, params->adapters[i].path);
        ak_message_put(m, &params->adapters[i].scale, sizeof params->adapters[i].scale);
    }
}

/* The lists of a load, which point into the message. */
struct lists {
    const char **override_kv, **ignore_keys;
    struct akunu_adapter *adapters;
};

static ak_status read_texts(struct ak_message_reader *message, const char ***out,
                            struct ak_error *error)
{
    uint64_t n = ak_message_get_u64(message);
    *out = n <= message->left ? ak_alloc((size_t)n + 1, sizeof(char *)) : NULL;
    if (!*out)
        return ak_fail_memory(error, "a model", n);
    for (uint64_t i = 0; i < n; i++)
        (*out)[i] = ak_message_get_text(message);
    return AKUNU_OK;
}

static ak_status read_lists(struct ak_message_reader *message, struct akunu_load_params *params,
                            struct lists *lists, struct ak_error *error)
{
    AK_TRY(read_texts(message, &lists->override_kv, error));
    AK_TRY(read_texts(message, &lists->ignore_keys, error));
    uint64_t n = ak_message_get_u64(message);
    lists->adapters = n <= message->left ? ak_alloc((size_t)n + 1, sizeof *lists->adapters) : NULL;
    if (!lists->adapters)
        return ak_fail_memory(error, "a model", n);
    for (uint64_t i = 0; i < n; i++) {
        lists->adapters[i].path = ak_message_get_text(message);
        ak_message_copy(message, &lists->adapters[i].scale, sizeof lists->adapters[i].scale);
    }
    params->override_kv = lists->override_kv;
    params->ignore_keys = lists->ignore_keys;
    params->adapters = lists->adapters;
    params->n_adapters = (size_t)n;
    return AKUNU_OK;
}

static void read_load_params(struct ak_message_reader *message, struct akunu_load_params *params)
{
    params->cpu = ak_message_get_text(message);
    params->cache_dir = ak_message_get_text(message);
    params->profile = ak_message_get_text(message);
    params->backend = ak_message_get_text(message);
    params->quantize = ak_message_get_text(message);
    params->importance = ak_message_get_text(message);
    ak_message_copy(message, &params->n_threads, sizeof params->n_threads);
    ak_message_copy(message, &params->no_cache, sizeof params->no_cache);
    ak_message_copy(message, &params->relaxed, sizeof params->relaxed);
    ak_message_copy(message, &params->prefill, sizeof params->prefill);
    ak_message_copy(message, &params->split, sizeof params->split);
    ak_message_copy(message, &params->cache_limit, sizeof params->cache_limit);
    ak_message_copy(message, &params->rope, sizeof params->rope);
}

static void free_model(struct followed *f)
{
    ak_ranks_follower_free(f->follower);
    ak_pool_free(f->pool);
    ak_model_free(f->model);
    ak_free(f);
}

static ak_status create_follower(struct follow *f, struct followed *model, unsigned n_threads,
                                 struct ak_error *error)
{
    struct ak_ranks_model shared =
        ak_load_ranks_model(model->model, model->id, model->model->backend);
    AK_TRY(ak_session_create_pool(n_threads, NULL, &model->model->profile, &model->pool, error));
    return ak_ranks_follower_create(f->comm, &shared, model->pool, &model->follower, error);
}

/* A model that cannot be loaded is rank 0's to report; this rank goes on. */
static ak_status follow_load(struct follow *f, struct ak_message_reader *message,
                             struct ak_error *error)
{
    struct akunu_load_params params = { .n_gpu_layers = -1,
                                        .log = f->log ? f->log->fn : NULL,
                                        .user = f->log ? f->log->user : NULL };
    struct ak_model_source source = { .params = &params,
                                      .open_quantized = f->open_quantized,
                                      .comm = f->comm };
    struct lists lists = { 0 };
    struct followed *model = ak_alloc(1, sizeof *model);
    if (!model)
        return ak_fail_memory(error, "a model", sizeof *model);
    model->id = ak_message_get_u64(message);
    source.path = ak_message_get_text(message);
    read_load_params(message, &params);
    ak_status status = read_lists(message, &params, &lists, error);
    if (status == AKUNU_OK)
        status = ak_model_load(&source, &model->model, error);
    ak_free(lists.override_kv);
    ak_free(lists.ignore_keys);
    ak_free(lists.adapters);
    if (status != AKUNU_OK) {
        free_model(model);
        return f->comm->failure.status;
    }
    status = create_follower(f, model, params.n_threads, error);
    if (status != AKUNU_OK) {
        free_model(model);
        return status;
    }
    model->next = f->models;
    f->models = model;
    return AKUNU_OK;
}

/* ---- Following ---------------------------------------------------------- */
static struct followed **find_model(struct follow *f, uint64_t id)
{
    struct followed **m = &f->models;
    while (*m && (*m)->id != id)
        m = &(*m)->next;
    return m;
}

static void follow_free(struct follow *f, uint64_t id)
{
    struct followed **at = find_model(f, id), *model = *at;
    if (!model)
        return; /* it could not be loaded */
    *at = model->next;
    free_model(model);
}

/* Does what a message asks for. *ends: rank 0 leaves. */
static ak_status follow_message(struct follow *f, struct ak_message_reader *message, bool *ends,
                                struct ak_error *error)
{
    enum ak_message_kind kind = (enum ak_message_kind)ak_message_get_u64(message);
    if (kind == AK_MESSAGE_LOAD)
        return follow_load(f, message, error);
    *ends = kind == AK_MESSAGE_END;
    if (*ends)
        return AKUNU_OK;
    uint64_t id = ak_message_get_u64(message);
    if (kind == AK_MESSAGE_FREE_MODEL) {
        follow_free(f, id);
        return AKUNU_OK;
    }
    struct followed *model = *find_model(f, id);
    if (!model)
        return ak_fail(error, AKUNU_ERROR_IO, "rank 0 sent a message about an unknown model");
    return ak_ranks_follow(model->follower, kind, message, error);
}

/* Receives a message into *buffer, which grows. */
static ak_status receive(struct follow *f, uint8_t **buffer, size_t *capacity, size_t *bytes,
                         struct ak_error *error)
{
    AK_TRY(ak_comm_await(f->comm, bytes, error));
    if (*bytes > *capacity) {
        ak_free(*buffer);
        *capacity = 2 * *bytes;
        *buffer = ak_alloc(*capacity, 1);
    }
    if (!*buffer)
        return ak_fail_memory(error, "a message", *bytes);
    return ak_comm_broadcast(f->comm, *buffer, *bytes, error);
}

ak_status ak_follow(struct ak_comm *comm, ak_model_open_fn *open_quantized,
                    const struct ak_log *log, struct ak_error *error)
{
    struct follow f = { .comm = comm, .open_quantized = open_quantized, .log = log };
    uint8_t *buffer = NULL;
    size_t capacity = 0, bytes;
    bool ends = false;
    ak_status status = AKUNU_OK;
    while (!ends && status == AKUNU_OK) {
        struct ak_error own = { 0 }; /* of a call that rank 0 reports as failed, or why this ends */
        status = receive(&f, &buffer, &capacity, &bytes, &own);
        struct ak_message_reader message = { .next = buffer, .left = bytes };
        if (status == AKUNU_OK)
            status = follow_message(&f, &message, &ends, &own);
        if (status != AKUNU_OK && error)
            *error = own;
    }
    if (status != AKUNU_OK && comm->failure.status == AKUNU_OK && error)
        comm->failure = *error; /* the others hear of it as this rank leaves */
    while (f.models)
        follow_free(&f, f.models->id);
    ak_free(buffer);
    return status;
}
