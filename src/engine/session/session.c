/* Creates sessions: chooses threads and context, checks KV types, allocates the pass and the KV
 * cache, prepares the logits table. Then sequences: new, fork, rewind, find. */
#include "engine/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/available.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/thread.h"

enum { SEQUENCES_MAX = 65536, ENCODER_SEQUENCES = 64, ENCODER_CONTEXT = 65536 };

static const double mebibyte = 1024.0 * 1024.0;

/* The physical cores, divided by the ranks on this host unless mpirun has bound each to its own. */
static unsigned count_cores(void)
{
    uint32_t index, neighbors = ak_comm_count_mpi_neighbors(&index);
    unsigned cores = ak_physical_cores();
    bool is_bound = (long)ak_hardware_threads() < sysconf(_SC_NPROCESSORS_ONLN);
    return neighbors == 1 || is_bound ? cores : cores > neighbors ? cores / neighbors : 1;
}

ak_status ak_session_choose_threads(unsigned asked, const struct ak_backend_profile *profile,
                                    unsigned *out, struct ak_error *error)
{
    const char *text = ak_env("AKUNU_THREADS");
    if (asked > 0 || !text) {
        *out = asked > 0 ? asked : profile->threads > 0 ? profile->threads : count_cores();
        return AKUNU_OK;
    }
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    /* a sign or a space may come first, which is less than '0' */
    if (errno || *end != '\0' || text[0] < '0' || value == 0 || value > UINT32_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "AKUNU_THREADS is '%s': it must be a number of threads, 1 or more", text);
    *out = (unsigned)value;
    return AKUNU_OK;
}

ak_status ak_session_create_pool(unsigned n_threads, const char *cpus,
                                 const struct ak_backend_profile *profile, struct ak_pool **out,
                                 struct ak_error *error)
{
    struct ak_cpus list;
    *out = NULL;
    if (cpus)
        AK_TRY(ak_cpus_parse(cpus, &list, error));
    AK_TRY(ak_session_choose_threads(n_threads, profile, &n_threads, error));
    AK_TRY(ak_pool_create(n_threads, out, error));
    ak_pool_share(*out);
    if (!cpus) {
        ak_pool_pin_numa(*out);
        return AKUNU_OK;
    }
    ak_status status = ak_pool_pin(*out, &list, error);
    if (status != AKUNU_OK) {
        ak_pool_free(*out);
        *out = NULL;
    }
    return status;
}

uint32_t ak_session_own_context(const struct ak_spec *spec)
{
    /* an encoder runs a text in one pass */
    bool whole = spec->descriptor.encoder && spec->config.context > ENCODER_CONTEXT;
    return whole ? ENCODER_CONTEXT : spec->config.context;
}

/* Reports the context and why it was chosen. */
static void report_context(const struct ak_session *s, bool asked, bool limited, uint32_t context,
                           const struct ak_kv_shape *shape)
{
    unsigned made_for = ak_session_own_context(&s->model->spec);
    double mebibytes = (double)shape->n_pages * (double)ak_kv_page_bytes(shape) / mebibyte;
    if (!asked && context < made_for)
        ak_log_line(&s->log, AKUNU_LOG_WARN,
                    "context: %u of the %u tokens that the model was made for; the KV cache of "
                    "%.1f MiB takes %s",
                    (unsigned)context, made_for, mebibytes,
                    limited ? "what it may" : "half of the available memory");
    else
        ak_log_line(&s->log, AKUNU_LOG_INFO, "context: %u tokens, %s; KV cache of %.1f MiB",
                    (unsigned)context, asked ? "as asked for" : "as the model was made for",
                    mebibytes);
    if (context > made_for)
        ak_log_line(&s->log, AKUNU_LOG_WARN,
                    "context: %u tokens are more than the %u that the model was made for",
                    (unsigned)context, made_for);
}

/* Memory for KV caches: the device's if pages are on one, else the machine's. */
static uint64_t available_memory(const struct ak_session *s)
{
    return s->backend->ops->kv_bytes_max ?
               s->backend->ops->kv_bytes_max(s->backend, &s->model->weights) :
               ak_available_memory();
}

/* Pages for texts of `context` tokens together, and for windows of speech. */
static uint32_t count_pages(const struct ak_session *s, uint32_t context, uint32_t n_sequences)
{
    uint32_t windows = s->max_windows, n = s->model->spec.config.encoder_context;
    if (windows == 0)
        return ak_session_kv_count_pages(context, n_sequences);
    uint64_t texts = n_sequences - windows,
             pages = windows * (uint64_t)ak_session_kv_count_pages(n, 1) +
                     texts * ak_session_kv_count_pages(context, 1);
    return pages < UINT32_MAX ? (uint32_t)pages : 0;
}

/* Takes the requested context, else the model's, reduced to what fits into bytes_max, or without a
 * limit into half of the available memory. */
static ak_status choose_context(const struct ak_session *s, uint32_t asked, uint64_t bytes_max,
                                uint32_t n_sequences, struct ak_kv_shape *shape, uint32_t *out,
                                struct ak_error *error)
{
    uint64_t page_bytes = ak_kv_page_bytes(shape);
    const struct ak_view *positions = s->model->weights.positions;
    *out = asked ? asked : ak_session_own_context(&s->model->spec);
    uint32_t n_positions = positions ? positions->rows - s->model->spec.config.first_position : 0;
    if (positions && *out > n_positions)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "a context of %u tokens: the model has learned positions for %u",
                       (unsigned)*out, (unsigned)n_positions);
    if (s->model->spec.config.context_fixed && *out > s->model->spec.config.context)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "a context of %u tokens: the model rotates texts of more than %u in another "
                       "way, which is "
                       "not supported",
                       (unsigned)*out, (unsigned)s->model->spec.config.context);
    shape->n_pages = count_pages(s, *out, n_sequences);
    if (page_bytes == 0 || shape->n_pages == 0)
        return ak_fail_memory(error, "the KV cache", 0);
    uint64_t limit = bytes_max ? bytes_max : available_memory(s) / 2,
             states = (uint64_t)n_sequences * shape->state_elems * sizeof(float);
    uint64_t affordable = limit > states ? (limit - states) / page_bytes : 0;
    if (s->backend->ops->check_memory && affordable < n_sequences)
        affordable = n_sequences; /* check_memory reports it in detail */
    if (!asked && affordable < shape->n_pages) {
        uint32_t least = s->max_windows > 0 ? shape->n_pages : n_sequences;
        if (affordable < least)
            return ak_fail(error, AKUNU_ERROR_MEMORY,
                           "the KV cache wants at least %.1f MiB, and %s is %.1f MiB",
                           ((double)least * (double)page_bytes + (double)states) / mebibyte,
                           bytes_max ? "its limit" : "half of the available memory",
                           (double)limit / mebibyte);
        /* the largest context for which ak_session_kv_count_pages needs no more */
        *out = (uint32_t)(affordable * AK_KV_PAGE_TOKENS -
                          (uint64_t)(n_sequences - 1) * (AK_KV_PAGE_TOKENS - 1));
        shape->n_pages = (uint32_t)affordable;
    }
    report_context(s, asked > 0, bytes_max > 0, *out, shape);
    return AKUNU_OK;
}

static ak_status allocate_pass(struct ak_session *s, uint32_t n_sequences, struct ak_error *error)
{
    s->tokens = ak_alloc(s->batch, sizeof *s->tokens);
    s->positions = ak_alloc(s->batch, sizeof *s->positions);
    s->sequences = ak_alloc(s->batch, sizeof *s->sequences);
    s->logit_rows = ak_alloc(s->batch, sizeof *s->logit_rows);
    s->caller_index = ak_alloc(s->batch, sizeof *s->caller_index);
    s->caller_rows = ak_alloc(s->batch, sizeof *s->caller_rows);
    s->chunk = ak_alloc(s->batch, sizeof *s->chunk);
    s->counts = ak_alloc(n_sequences, sizeof *s->counts);
    s->next_rows = ak_alloc(n_sequences, sizeof *s->next_rows);
    s->order = ak_alloc(n_sequences, sizeof *s->order);
    s->text_sequences = ak_alloc(n_sequences, sizeof *s->text_sequences);
    s->sums = ak_alloc((size_t)AK_POOLINGS_MAX * s->model->spec.config.width, sizeof *s->sums);
    if (s->max_windows > 0) {
        s->cross_sequences = ak_alloc(n_sequences, sizeof *s->cross_sequences);
        s->cross_lengths = ak_alloc(n_sequences, sizeof *s->cross_lengths);
        if (!s->cross_sequences || !s->cross_lengths)
            return ak_fail_memory(error, "the session", 0);
        for (uint32_t i = 0; i < n_sequences; i++)
            s->cross_sequences[i] = AK_OP_NONE;
    }
    if (!s->tokens || !s->positions || !s->sequences || !s->logit_rows || !s->caller_index ||
        !s->caller_rows || !s->chunk || !s->counts || !s->next_rows || !s->order ||
        !s->text_sequences || !s->sums)
        return ak_fail_memory(error, "the session", 0);
    return AKUNU_OK;
}

ak_status ak_session_check_kv_types(const struct akunu_session_params *params, uint32_t head_dim,
                                    struct ak_error *error)
{
    const enum akunu_kv_type types[] = { params->k_type, params->v_type };
    for (int i = 0; i < 2; i++) {
        if ((unsigned)types[i] >= AK_KV_TYPE_COUNT)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "%c_type is none of the types that a KV cache may have",
                           i == 0 ? 'k' : 'v');
        const struct ak_quant_info *info = ak_quant_info(ak_kv_stored_type(types[i]));
        if (head_dim % info->block_elems != 0)
            return ak_fail(
                error, AKUNU_ERROR_UNSUPPORTED,
                "a KV cache in %s needs heads of a multiple of %u elements; this model's have %u",
                info->name, (unsigned)info->block_elems, (unsigned)head_dim);
    }
    return AKUNU_OK;
}

static ak_status check_kv_keep(struct ak_session *s, const struct akunu_session_params *params,
                               struct ak_error *error)
{
    if ((unsigned)params->kv_choice > AKUNU_KV_RECENT)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "kv_choice is %d: expected a value of enum akunu_kv_choice",
                       (int)params->kv_choice);
    if (params->kv_keep == 0 && params->kv_choice != AKUNU_KV_IMPORTANT)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "kv_choice has no effect without kv_keep");
    if (params->kv_keep == 0)
        return AKUNU_OK;
    if (params->kv_keep < AKUNU_KV_KEEP_MIN)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "kv_keep is %u: expected 0, or %d and more",
                       (unsigned)params->kv_keep, AKUNU_KV_KEEP_MIN);
    s->kv_keep = params->kv_keep;
    s->kv_choice = params->kv_choice;
    return ak_session_check_evict(s, error);
}

/* Threads of the session's own, or those of a shared pool. */
static ak_status choose_threads(struct ak_session *s, const struct akunu_session_params *params,
                                struct ak_error *error)
{
    if (!params->pool) {
        if (params->cpus) {
            AK_TRY(ak_cpus_parse(params->cpus, &s->cpus, error));
            s->options.cpus = &s->cpus;
        }
        return ak_session_choose_threads(params->n_threads, &s->model->profile,
                                         &s->options.n_threads, error);
    }
    unsigned n = ak_pool_threads(ak_pool_from_handle(params->pool));
    if (params->n_threads != 0 && params->n_threads != n)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "n_threads is %u, and the pool has %u: 0 means the pool's",
                       params->n_threads, n);
    if (params->cpus)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "cpus is '%.100s', but the threads of a pool are pinned by akunu_pool_new",
                       params->cpus);
    s->options.n_threads = n;
    s->options.pool = ak_pool_ref(ak_pool_from_handle(params->pool));
    return AKUNU_OK;
}

static ak_status init_session(struct ak_session *s, const struct akunu_session_params *params,
                              struct ak_error *error)
{
    const struct ak_spec_config *config = &s->model->spec.config;
    bool encoder = s->model->spec.descriptor.encoder;
    if (config->n_encoder_layers > 0)
        s->max_windows = params->max_windows ? params->max_windows : 1;
    uint32_t n_sequences = params->max_sequences ? params->max_sequences :
                           encoder               ? ENCODER_SEQUENCES :
                                                   1,
             context;
    if (s->max_windows >= SEQUENCES_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "max_windows is %u: at most %d are possible",
                       (unsigned)s->max_windows, SEQUENCES_MAX - 1);
    n_sequences = n_sequences <= SEQUENCES_MAX ? n_sequences + s->max_windows : n_sequences;
    if (n_sequences > SEQUENCES_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "max_sequences is %u: at most %d are possible",
                       (unsigned)n_sequences, SEQUENCES_MAX);
    AK_TRY(ak_session_check_kv_types(params, config->head_dim, error));
    AK_TRY(check_kv_keep(s, params, error));
    AK_TRY(choose_threads(s, params, error));

    struct ak_kv_shape shape = ak_model_kv_shape(s->model, params->k_type, params->v_type);
    shape.n_states = n_sequences;
    AK_TRY(choose_context(s, params->context, params->kv_bytes_max, n_sequences, &shape, &context,
                          error));
    s->cost_model.token_price = ak_backend_profile_token_price(&s->model->profile);
    s->pass_target = ak_session_choose_batch(s->model, params->batch);
    s->pass_target = s->pass_target < context ? s->pass_target : context;
    /* an encoder runs each text in one pass, and a speech model the prompt of a window */
    s->batch = encoder && !params->batch ? context : s->pass_target;
    if (s->max_windows > 0 && s->batch < config->context)
        s->batch = config->context;
    AK_TRY(allocate_pass(s, n_sequences, error));

    /* every token may ask for logits; rows never written cost no memory */
    s->options.max_tokens = s->options.max_logits = s->batch;
    s->options.context = context;
    s->options.kv = shape;
    if (s->backend->ops->check_memory) {
        const struct ak_backend_tables tables = { .table = &s->model->table,
                                                  .encoder = s->max_windows > 0 ?
                                                                 &s->model->encoder_table :
                                                                 NULL,
                                                  .encoder_tokens = config->encoder_context };
        AK_TRY(s->backend->ops->check_memory(s->backend, &tables, &s->model->weights,
                                             ak_model_own_spec(s->model), &s->options, error));
    }
    context = (uint32_t)ak_max_size(context, s->max_windows ? config->encoder_context : 0);
    AK_TRY(ak_session_kv_create(s->backend, &shape, context, n_sequences, &s->kv, error));
    return s->backend->ops->prepare(s->backend, &s->model->table, &s->model->weights,
                                    ak_model_own_spec(s->model), &s->options, s->kv.pool,
                                    &s->logits, error);
}

ak_status ak_session_create(struct ak_model *model, const struct akunu_session_params *params,
                            struct ak_session **out, struct ak_error *error)
{
    *out = NULL;
    struct ak_session *s = ak_alloc(1, sizeof *s);
    if (!s)
        return ak_fail_memory(error, "the session", sizeof *s);
    s->model = ak_model_ref(model);
    s->backend = model->backend;
    s->log = (struct ak_log){ .fn = params->log, .user = params->user };
    ak_status status = init_session(s, params, error);
    if (status != AKUNU_OK) {
        ak_session_free(s);
        return status;
    }
    *out = s;
    return AKUNU_OK;
}

void ak_session_free(struct ak_session *s)
{
    if (!s)
        return;
    if (s->logits)
        s->backend->ops->release(s->logits);
    if (s->sampled)
        s->backend->ops->release(s->sampled);
    if (s->hidden)
        s->backend->ops->release(s->hidden);
    ak_session_free_encoder(s);
    ak_session_kv_clear(&s->kv);
    ak_free(s->cross_sequences);
    ak_free(s->cross_lengths);
    ak_free(s->tokens);
    ak_free(s->positions);
    ak_free(s->sequences);
    ak_free(s->logit_rows);
    ak_free(s->caller_index);
    ak_free(s->caller_rows);
    ak_free(s->chunk);
    ak_free(s->counts);
    ak_free(s->next_rows);
    ak_free(s->order);
    ak_free(s->text_sequences);
    ak_free(s->sums);
    ak_pool_free(s->options.pool);
    ak_model_free(s->model);
    ak_free(s);
}

ak_status ak_session_prepare_sampled(struct ak_session *s, struct ak_error *error)
{
    AK_TRY(ak_session_needs_text(s, error));
    if (s->sampled)
        return AKUNU_OK;
    struct ak_backend_table_options options = s->options;
    bool exact =
        s->backend->ops->is_batch_invariant && s->backend->ops->is_batch_invariant(s->backend);
    options.max_tokens = options.max_logits = !exact                   ? 1 :
                                              s->batch < AK_SKINNY_MAX ? s->batch :
                                                                         AK_SKINNY_MAX;
    return s->backend->ops->prepare(s->backend, &s->model->sampled_table, &s->model->weights,
                                    ak_model_own_spec(s->model), &options, s->kv.pool, &s->sampled,
                                    error);
}

/* ---- Sequences ---------------------------------------------------------- */
ak_status ak_session_find(const struct ak_session *s, int32_t sequence,
                          const struct ak_session_kv_sequence **out, struct ak_error *error)
{
    *out = ak_session_kv_sequence(&s->kv, sequence);
    if (!*out)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "there is no sequence %d", (int)sequence);
    return AKUNU_OK;
}

static ak_status fail_all_in_use(const struct ak_session *s, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "all %u sequences of the session are in use (max_sequences)",
                   (unsigned)s->kv.n_sequences);
}

ak_status ak_session_sequence_new(struct ak_session *s, int32_t *sequence, struct ak_error *error)
{
    *sequence = ak_session_kv_sequence_new(&s->kv);
    if (*sequence >= 0 && s->cross_sequences)
        s->cross_sequences[*sequence] = AK_OP_NONE;
    return *sequence < 0 ? fail_all_in_use(s, error) : AKUNU_OK;
}

static ak_status check_length(const struct ak_session_kv_sequence *sequence, uint32_t length,
                              struct ak_error *error)
{
    if (length > sequence->length)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the sequence has %u tokens, and %u were asked for",
                       (unsigned)sequence->length, (unsigned)length);
    if (ak_session_kv_find_rewind(sequence, length) != length)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%u tokens were asked for, but parts of the KV cache were dropped: expected "
                       "at most %u, or at least %u",
                       (unsigned)length, (unsigned)ak_session_kv_count_whole(sequence),
                       (unsigned)sequence->evicted_length);
    return AKUNU_OK;
}

ak_status ak_session_rewind(struct ak_session *s, int32_t sequence, uint32_t length,
                            struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    AK_TRY(ak_session_find(s, sequence, &found, error));
    AK_TRY(check_length(found, length, error));
    ak_session_kv_rewind(&s->kv, sequence, length);
    return AKUNU_OK;
}

ak_status ak_session_fork(struct ak_session *s, int32_t sequence, uint32_t length, int32_t *fork,
                          struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    *fork = -1;
    AK_TRY(ak_session_find(s, sequence, &found, error));
    AK_TRY(check_length(found, length, error));
    if (s->kv.n_free == 0 && length % AK_KV_PAGE_TOKENS != 0)
        return ak_fail(error, AKUNU_ERROR_CONTEXT,
                       "the context is full: no page is free for the copy of %u tokens, and the "
                       "context holds %u",
                       (unsigned)(length % AK_KV_PAGE_TOKENS), (unsigned)s->kv.context);
    *fork = ak_session_kv_fork(&s->kv, sequence, length);
    if (*fork >= 0 && s->cross_sequences) {
        s->cross_sequences[*fork] = s->cross_sequences[sequence];
        s->cross_lengths[*fork] = s->cross_lengths[sequence];
    }
    return *fork < 0 ? fail_all_in_use(s, error) : AKUNU_OK;
}

/* ---- Reports ------------------------------------------------------------ */
uint64_t ak_session_scratch_bytes(const struct ak_session *s)
{
    uint64_t bytes = s->backend->ops->memory_bytes(s->logits);
    bytes += ak_session_encoder_bytes(s);
    bytes += s->sampled ? s->backend->ops->memory_bytes(s->sampled) : 0;
    return s->hidden ? bytes + s->backend->ops->memory_bytes(s->hidden) : bytes;
}

void ak_session_counts(const struct ak_session *s, struct ak_backend_counts *out)
{
    const struct ak_backend_table *all[] = { s->logits, s->sampled, s->hidden };
    *out = (struct ak_backend_counts){ 0 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct ak_backend_counts one = { 0 };
        if (all[i])
            s->backend->ops->counts(all[i], &one);
        out->gemv += one.gemv;
        out->skinny += one.skinny;
        out->gemm += one.gemm;
    }
}

ak_status ak_session_set_timing(struct ak_session *s, bool on, struct ak_error *error)
{
    struct ak_backend_table *all[] = { s->logits, s->sampled, s->hidden };
    if (!s->backend->ops->enable_times)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the backend %s measures no times",
                       s->backend->ops->describe(s->backend));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && !s->backend->ops->enable_times(all[i], on))
            return ak_fail_memory(error, "times of a session", 0);
    return AKUNU_OK;
}

bool ak_session_get_time(const struct ak_session *s, size_t i, struct ak_backend_time *out)
{
    const struct ak_backend_table *all[] = { s->logits, s->sampled, s->hidden };
    bool found = false;
    *out = (struct ak_backend_time){ 0 };
    for (size_t j = 0; j < sizeof all / sizeof *all && s->backend->ops->get_time; j++) {
        struct ak_backend_time one;
        if (!all[j] || !s->backend->ops->get_time(all[j], i, &one))
            continue;
        found = true;
        out->name = one.name;
        out->calls += one.calls;
        out->seconds += one.seconds;
        out->wait_seconds += one.wait_seconds;
        out->bytes += one.bytes;
        out->ops += one.ops;
    }
    return found;
}
