/* Loads a model in the stages of enum akunu_load_stage: backend, file, config, weights, tokenizer,
 * tables, packing, warm-up. Messages about the file's content begin with its name. */
#include "engine/session/model.h"

#include <math.h>
#include <string.h>

#include "engine/backends/list.h"
#include "base/available.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/utf8.h"
#include "engine/pack/cache.h"
#include "engine/session/calibration.h"
#include "engine/session/constraint.h"
#include "engine/session/follow.h"
#include "engine/session/session.h"

/* State of one load. */
struct loader {
    const char *path; /* NULL until the file is open, unless it is given */
    int fd;           /* -1: none is given */
    const struct akunu_load_params *params;
    ak_model_open_fn *open; /* of what is quantized at load; NULL: nothing is */
    struct ak_log log;
    struct ak_model *model;
    struct ak_pool *pool;
    bool plans;             /* nothing is packed, and no tokenizer made */
    struct ak_comm *comm;   /* to the ranks that share the model; NULL: there are none */
    struct ak_ranks *ranks; /* on rank 0 */
    uint64_t id;            /* of the model among ranks */
    struct ak_error *error;
};

/* Reports a stage to the host's callback. */
static ak_status report_stage(const struct loader *l, enum akunu_load_stage stage, double fraction)
{
    if (l->params->progress && !l->params->progress(stage, fraction, l->params->user))
        return ak_fail(l->error, AKUNU_ERROR_CANCELLED, "loading was cancelled");
    return AKUNU_OK;
}

static struct ak_backend_options get_backend_options(const struct loader *l)
{
    return (struct ak_backend_options){
        .cpu = l->params->cpu ? l->params->cpu : ak_env("AKUNU_CPU"),
        .cpu_profile = &l->model->profile,
        .device = l->params->device ? l->params->device : ak_env("AKUNU_DEVICE"),
        .cache_dir = l->params->cache_dir,
        .no_cache = l->params->no_cache,
        .relaxed = l->params->relaxed,
        .prefill = l->params->prefill,
        .log = &l->log
    };
}

struct ak_ranks_model ak_model_ranks(const struct ak_model *m, uint64_t id,
                                     struct ak_backend *backend)
{
    return (struct ak_ranks_model){ .id = id,
                                    .backend = backend,
                                    .tables = { &m->table, &m->sampled_table, &m->hidden_table,
                                                &m->encoder_table },
                                    .weights = &m->weights,
                                    .spec = &m->own };
}

/* Puts rank 0's backend in front of its CPU backend. */
static ak_status share_backend(struct loader *l)
{
    struct ak_model *m = l->model;
    if (l->comm && m->backend->ops != ak_backend_list()[0])
        return ak_fail(l->error, AKUNU_ERROR_UNSUPPORTED,
                       "%u ranks are to share a model on the backend \"%s\"; they share models on "
                       "the CPU",
                       (unsigned)l->comm->n_ranks, m->backend->ops->name);
    if (!l->ranks)
        return AKUNU_OK;
    struct ak_ranks_model model = ak_model_ranks(m, l->id, m->backend);
    return ak_backend_open_ranks(l->ranks, &model, l->params->split, &m->backend, l->error);
}

/* Opens the requested backend; if n_gpu_layers is 0, the CPU's. */
static ak_status open_backend(struct loader *l)
{
    const struct ak_backend_ops *ops;
    struct ak_backend_options options = get_backend_options(l);
    const char *profile = l->params->profile ? l->params->profile : ak_env("AKUNU_PROFILE");
    AK_TRY(ak_backend_profile_find(profile, &l->log, &l->model->profile, l->error));
    AK_TRY(ak_backend_find(l->params->backend ? l->params->backend : ak_env("AKUNU_BACKEND"), &ops,
                           l->error));
    if (l->params->n_gpu_layers > 0 && !ops->device_info)
        return ak_fail(l->error, AKUNU_ERROR_ARGUMENT,
                       "n_gpu_layers is %d, but the backend \"%s\" has no device",
                       l->params->n_gpu_layers, ops->name);
    if (l->params->n_gpu_layers == 0)
        AK_TRY(ak_backend_find(NULL, &ops, l->error));
    AK_TRY(ops->open(&options, &l->model->backend, l->error));
    AK_TRY(share_backend(l));
    AK_TRY(report_stage(l, AKUNU_STAGE_BACKEND, 1.0));
    return report_stage(l, AKUNU_STAGE_KERNELS, 1.0);
}

static ak_status open_model_file(struct loader *l)
{
    struct ak_provider_fingerprint fingerprint;
    if (l->open)
        AK_TRY(l->open(l->path, l->params, &l->model->provider, l->error));
    if (!l->model->provider)
        AK_TRY(l->fd < 0 ? ak_provider_open(l->path, &l->model->provider, l->error) :
                           ak_provider_open_fd(l->fd, &l->model->provider, l->error));
    if (!l->path) {
        ak_provider_fingerprint(l->model->provider, &fingerprint);
        l->path = fingerprint.path;
    }
    AK_TRY(ak_provider_adjust(l->model->provider, l->params->override_kv, l->params->ignore_keys,
                              l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_FORMAT, 1.0));
    return report_stage(l, AKUNU_STAGE_OPEN, 1.0);
}

/* Sizes that contradict each other, or the weights, are stated in config.json or are defaults. */
static ak_status explain(struct loader *l, ak_status status)
{
    if (status == AKUNU_ERROR_FORMAT)
        ak_spec_explain_sizes(l->model->provider, &l->model->spec, l->error);
    return status;
}

static ak_status read_spec(struct loader *l)
{
    struct ak_model *m = l->model;
    AK_TRY(ak_family_find(m->provider, &m->spec.family, l->error));
    AK_TRY(
        ak_spec_read_config(m->provider, m->spec.family, &m->spec.config, &m->spec.rope, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_CONFIG, 1.0));
    AK_TRY(explain(l, ak_spec_validate_config(&m->spec.config, &m->spec.rope, l->error)));
    AK_TRY(ak_spec_describe(m->provider, &m->spec, l->error));
    AK_TRY(ak_spec_override_rope(&m->spec, &l->params->rope, l->error));
    m->rope = l->params->rope;
    AK_TRY(ak_spec_read_pooling(m->provider, &m->spec, &m->spec.pooling, l->error));
    AK_TRY(explain(l, ak_spec_read_head(m->provider, &m->spec, &m->spec.head, l->error)));
    AK_TRY(explain(l, ak_spec_check_weights(m->provider, &m->spec, l->error)));
    AK_TRY(report_stage(l, AKUNU_STAGE_ARCHITECTURE, 1.0));
    return report_stage(l, AKUNU_STAGE_PROFILE, 1.0);
}

/* ---- Ranks -------------------------------------------------------------- */
static ak_status take_shard(struct loader *l)
{
    struct ak_model *m = l->model;
    if (!l->comm)
        return AKUNU_OK;
    AK_TRY(ak_spec_take_shard(&m->spec, l->params->split, l->comm->n_ranks, l->comm->rank, &m->own,
                              l->error));
    return ak_bind_take_shard(&m->binding, &m->own, l->error);
}

static void hash_tensor(struct ak_sha256 *h, const struct ak_tensor *t)
{
    const char *type = ak_tensor_type_name(t);
    ak_sha256_add(h, t->name, strlen(t->name) + 1);
    ak_sha256_add(h, type, strlen(type) + 1);
    ak_sha256_add(h, t->shape, t->n_dims * sizeof *t->shape);
}

/* The importance that decides how weights are quantized at load. */
static ak_status add_importance(struct ak_sha256 *h, const char *path, struct ak_error *error)
{
    struct ak_file file;
    if (!path)
        return AKUNU_OK;
    AK_TRY(ak_file_open(path, &file, error));
    ak_sha256_add(h, file.data, (size_t)file.bytes);
    ak_file_close(&file);
    return AKUNU_OK;
}

/* What ranks of one model have in common: the version, names, types and shapes of tensors, the
 * values of the vectors that all of them read, and the importance of weights. */
static ak_status make_digest(const struct ak_model *m, const char *importance,
                             uint8_t digest[AK_SHA256_BYTES], struct ak_error *error)
{
    static const uint32_t version[] = { AKUNU_VERSION_MAJOR, AKUNU_VERSION_MINOR,
                                        AKUNU_VERSION_PATCH };
    struct ak_tensor t;
    struct ak_sha256 h;
    ak_sha256_begin(&h);
    ak_sha256_add(&h, version, sizeof version);
    AK_TRY(add_importance(&h, importance, error));
    for (size_t i = 0; ak_provider_tensor(m->provider, i, &t); i++)
        hash_tensor(&h, &t);
    for (uint32_t i = 0; i < m->weights.n_vectors; i++)
        if (ak_role_is_norm(m->weights.vectors[i].role))
            ak_sha256_add(&h, m->weights.vectors[i].data, m->weights.vectors[i].n * sizeof(float));
    ak_sha256_end(&h, digest);
    return AKUNU_OK;
}

/* Compares this rank's model with rank 0's. */
static ak_status compare_models(struct loader *l)
{
    uint32_t rank = l->comm->rank;
    uint8_t(*digests)[AK_SHA256_BYTES] = ak_alloc(l->comm->n_ranks, sizeof *digests);
    if (!digests)
        return ak_fail_memory(l->error, "the ranks' answers", l->comm->n_ranks * sizeof *digests);
    ak_status own = make_digest(l->model, l->params->importance, digests[rank], l->error),
              status = ak_comm_all_gather_items(l->comm, digests, sizeof *digests, l->error);
    if (status == AKUNU_OK)
        status = own;
    if (status == AKUNU_OK && memcmp(digests[0], digests[rank], sizeof *digests) != 0)
        status = ak_fail(l->error, AKUNU_ERROR_FORMAT,
                         "another file, or another version of akunu, than on rank 0");
    ak_free(digests);
    return status;
}

/* Ends a load on all ranks in the same way: `status` is this rank's so far. */
static ak_status agree(struct loader *l, ak_status status)
{
    if (!l->comm)
        return status;
    AK_TRY(ak_ranks_agree(l->comm, status, l->error));
    status = compare_models(l);
    if (status != AKUNU_OK && l->comm->failure.status == AKUNU_OK)
        ak_error_prefix(l->error, l->path);
    return ak_ranks_agree(l->comm, status, l->error);
}

/* Puts the first layers on the CPU if not all go to the device. */
static ak_status split_layers(struct loader *l)
{
    struct ak_model *m = l->model;
    const struct ak_backend_ops *ops;
    struct ak_backend_options options = get_backend_options(l);
    struct ak_backend *cpu;
    int n = l->params->n_gpu_layers;
    if (n <= 0 || (uint32_t)n >= m->spec.config.n_layers)
        return AKUNU_OK;
    if (m->spec.config.n_encoder_layers > 0)
        return ak_fail(l->error, AKUNU_ERROR_UNSUPPORTED,
                       "n_gpu_layers is %d, and a speech model is not divided: -1 runs all of it "
                       "on the device, 0 on the CPU",
                       n);
    AK_TRY(ak_backend_find(NULL, &ops, l->error));
    AK_TRY(ops->open(&options, &cpu, l->error));
    ak_status status = ak_backend_open_split(
        cpu, m->backend, &m->spec, m->spec.config.n_layers - (uint32_t)n, &m->backend, l->error);
    if (status != AKUNU_OK)
        ops->close(cpu);
    return status;
}

static ak_status bind_weights(struct loader *l)
{
    struct ak_model *m = l->model;
    ak_spec_warn_alignment(&m->spec.config, &l->log);
    AK_TRY(explain(
        l, ak_bind(m->provider, &m->spec, l->params->strict, &l->log, &m->binding, l->error)));
    AK_TRY(ak_spec_init_rope(m->provider, &m->spec, l->error));
    AK_TRY(take_shard(l));
    AK_TRY(ak_pack_plan(&m->binding, m->backend, &m->weights, l->error));
    m->weights.source = m->provider;
    AK_TRY(ak_session_head_read(m->provider, &m->spec, &m->head, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_QUIRKS, 1.0));
    AK_TRY(report_stage(l, AKUNU_STAGE_ROPE, 1.0));
    return report_stage(l, AKUNU_STAGE_VALIDATE, 1.0);
}

/* Checks an adapter and, unless its scale is 0, adds it to the planned weights. */
static ak_status add_adapter(struct loader *l, const struct akunu_adapter *asked)
{
    struct ak_model *m = l->model;
    struct ak_adapter adapter;
    char shown[AK_SHOW_BYTES];
    if (!asked->path)
        return ak_fail(l->error, AKUNU_ERROR_ARGUMENT, "an adapter has no path");
    ak_show_path(asked->path, shown);
    if (!isfinite(asked->scale))
        return ak_fail(l->error, AKUNU_ERROR_ARGUMENT,
                       "%s: the adapter's scale is %g; expected a finite number", shown,
                       (double)asked->scale);
    ak_status status = ak_adapter_open(asked->path, &adapter, l->error);
    if (status == AKUNU_OK) {
        status = ak_pack_add_adapter(&m->weights, ak_model_own_spec(m), &adapter, asked->scale,
                                     l->error);
        if (status != AKUNU_OK)
            ak_error_prefix(l->error, shown);
        if (status == AKUNU_OK && asked->scale != 0.0f)
            m->adapters[m->n_adapters++] =
                (struct ak_model_adapter){ .bytes = adapter.fingerprint.bytes,
                                           .hash = { adapter.fingerprint.hash[0],
                                                     adapter.fingerprint.hash[1] },
                                           .mtime_ns = adapter.fingerprint.mtime_ns,
                                           .scale = asked->scale };
    }
    ak_adapter_close(&adapter);
    return status;
}

static ak_status add_adapters(struct loader *l)
{
    const struct akunu_load_params *params = l->params;
    if (params->n_adapters == 0)
        return AKUNU_OK;
    if (!params->adapters)
        return ak_fail(l->error, AKUNU_ERROR_ARGUMENT, "%zu adapters, and no list of them",
                       params->n_adapters);
    l->model->adapters = ak_alloc(params->n_adapters, sizeof *l->model->adapters);
    if (!l->model->adapters)
        return ak_fail_memory(l->error, "a list of adapters",
                              params->n_adapters * sizeof *l->model->adapters);
    for (size_t i = 0; i < params->n_adapters; i++)
        AK_TRY(add_adapter(l, &params->adapters[i]));
    return AKUNU_OK;
}

static ak_status make_tokenizer(struct loader *l)
{
    AK_TRY(ak_tok_open(l->model->provider, &l->model->tokenizer, l->error));
    AK_TRY(ak_model_trie_create(&l->model->token_trie, l->error));
    return report_stage(l, AKUNU_STAGE_TOKENIZER, 1.0);
}

/* Quantized speech models have activations of 8 bits, next to which F16 loses nothing. */
static bool is_quantized_speech(const struct ak_model *m)
{
    const struct ak_view *embedding = m->weights.embedding;
    return m->spec.config.n_encoder_layers > 0 && embedding &&
           ak_quant_info(embedding->type)->block_elems > 1;
}

struct ak_kv_shape ak_model_kv_shape(const struct ak_model *m, enum akunu_kv_type k_type,
                                     enum akunu_kv_type v_type)
{
    const struct ak_spec *spec = ak_model_own_spec(m);
    if (spec->descriptor.encoder || spec->config.n_encoder_layers > 0)
        k_type = v_type = is_quantized_speech(m) ? AKUNU_KV_F16 : AKUNU_KV_F32;
    return (struct ak_kv_shape){ .n_layers = ak_spec_kv_layers(spec),
                                 .n_kv_heads = spec->config.n_kv_heads,
                                 .head_dim = spec->config.head_dim,
                                 .k_type = k_type,
                                 .v_type = v_type,
                                 .state_elems = ak_spec_state_elems(spec) };
}

/* Checks that one page of the KV cache is addressable. Real sizes are chosen per session. */
static ak_status check_sizes(struct loader *l)
{
    struct ak_kv_shape shape = ak_model_kv_shape(l->model, AKUNU_KV_F32, AKUNU_KV_F32);
    uint64_t page = ak_kv_page_bytes(&shape);
    if (page == 0 || page > SIZE_MAX / 2)
        return ak_fail(l->error, AKUNU_ERROR_UNSUPPORTED,
                       "a KV page of %u tokens exceeds this machine's address space",
                       AK_KV_PAGE_TOKENS);
    AK_TRY(report_stage(l, AKUNU_STAGE_KV, 1.0));
    return report_stage(l, AKUNU_STAGE_SCRATCH, 1.0);
}

static ak_status build_tables(struct loader *l)
{
    struct ak_model *m = l->model;
    AK_TRY(ak_table_build(ak_model_own_spec(m), &m->weights, AK_BUILD_LOGITS, &m->table, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_TABLE, 1.0));
    if (!m->spec.descriptor.encoder) {
        AK_TRY(ak_table_build(ak_model_own_spec(m), &m->weights, AK_BUILD_SAMPLED,
                              &m->sampled_table, l->error));
        AK_TRY(ak_table_build(ak_model_own_spec(m), &m->weights, AK_BUILD_HIDDEN, &m->hidden_table,
                              l->error));
    }
    if (m->spec.config.n_encoder_layers > 0)
        AK_TRY(ak_table_build(ak_model_own_spec(m), &m->weights, AK_BUILD_ENCODED,
                              &m->encoder_table, l->error));
    return report_stage(l, AKUNU_STAGE_SAMPLED_TABLE, 1.0);
}

static bool on_packed(double fraction, void *user)
{
    return report_stage(user, AKUNU_STAGE_WEIGHTS, fraction) == AKUNU_OK;
}

/* A file without a name is not opened again. */
static bool uses_cache(const struct loader *l)
{
    bool has_name = l->fd < 0 || ak_provider_part(l->model->provider, 0)->has_name;
    return !l->params->no_cache && has_name;
}

static struct ak_pack_cache_options get_cache_options(const struct loader *l)
{
    return (struct ak_pack_cache_options){ .dir = l->params->cache_dir,
                                           .available_memory = ak_available_memory(),
                                           .limit = l->params->cache_limit,
                                           .log = &l->log };
}

static ak_status pack_weights(struct loader *l)
{
    unsigned threads;
    AK_TRY(ak_session_choose_threads(l->params->n_threads, &l->model->profile, &threads, l->error));
    AK_TRY(ak_pool_create(threads, &l->pool, l->error));
    ak_pool_pin_numa(l->pool);
    struct ak_pack_job job = { .weights = &l->model->weights,
                               .backend = l->model->backend,
                               .source = l->model->provider,
                               .pool = l->pool,
                               .progress = on_packed,
                               .user = l };
    struct ak_pack_cache_options options = get_cache_options(l);
    AK_TRY(uses_cache(l) ? ak_pack_cache_weights(&job, &options, l->error) :
                           ak_pack_weights(&job, l->error));
    ak_model_calibrate(l->model->backend, &l->model->weights, l->pool, l->params, &l->log,
                       &l->model->profile);
    AK_TRY(ak_backend_profile_print(&l->model->profile, &l->model->profile_text, l->error));
    return report_stage(l, AKUNU_STAGE_WEIGHTS, 1.0);
}

/* Unmaps what loading has read. Little of it is read again: rows of the embedding, tokens. */
static void forget_source(const struct ak_provider *source)
{
    const struct ak_file *file;
    for (size_t i = 0; (file = ak_provider_part(source, i)) != NULL; i++)
        ak_file_advise(file, 0, file->bytes, AK_FILE_DONTNEED);
}

/* Runs one pass of one token over a cache of one page. */
static ak_status warm_up(struct loader *l)
{
    struct ak_model *m = l->model;
    const struct ak_backend_ops *ops = m->backend->ops;
    struct ak_backend_table_options options = { .n_threads = ak_pool_threads(l->pool),
                                                .context = 1,
                                                .max_tokens = 1,
                                                .max_logits = 1,
                                                .kv = ak_model_kv_shape(m, AKUNU_KV_F16,
                                                                        AKUNU_KV_F16) };
    options.kv.n_pages = options.kv.n_states = 1;
    struct ak_backend_table *prepared = NULL;
    void *kv;
    const struct ak_backend_tables tables = { .table = &m->table };
    if (ops->check_memory)
        AK_TRY(ops->check_memory(m->backend, &tables, &m->weights, ak_model_own_spec(m), &options,
                                 l->error));
    AK_TRY(ops->alloc_kv(m->backend, &options.kv, &kv, l->error));
    ak_status status = ops->prepare(m->backend, &m->table, &m->weights, ak_model_own_spec(m),
                                    &options, kv, &prepared, l->error);
    if (status == AKUNU_OK) {
        int32_t token = 0;
        uint32_t zero = 0;
        const uint32_t *pages = &zero;
        struct ak_batch batch = { .n = 1,
                                  .tokens = &token,
                                  .positions = &zero,
                                  .sequences = &zero,
                                  .pages = &pages,
                                  .n_logits = 1,
                                  .logit_rows = &zero };
        ops->run(prepared, &batch);
        status = ops->sync(prepared, l->error);
        ops->release(prepared);
    }
    ops->free_kv(m->backend, kv, &options.kv);
    return status;
}

/* Runs the stages that report errors in the file's keys and tensors. */
static ak_status read_model_file(struct loader *l)
{
    AK_TRY(read_spec(l));
    AK_TRY(split_layers(l));
    AK_TRY(bind_weights(l));
    if (!l->plans)
        AK_TRY(make_tokenizer(l));
    return check_sizes(l);
}

static const char *get_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The stages before packing. */
static ak_status prepare_model(struct loader *l)
{
    AK_TRY(open_backend(l));
    AK_TRY(open_model_file(l));
    ak_status status = read_model_file(l);
    if (status != AKUNU_OK) {
        ak_error_prefix(l->error, get_file_name(l->path));
        return status;
    }
    AK_TRY(add_adapters(l));
    return build_tables(l);
}

static ak_status pack(struct loader *l)
{
    AK_TRY(prepare_model(l));
    if (l->plans)
        return AKUNU_OK;
    AK_TRY(pack_weights(l));
    forget_source(l->model->provider);
    return AKUNU_OK;
}

static ak_status load_stages(struct loader *l)
{
    AK_TRY(agree(l, pack(l)));
    if (l->plans)
        return AKUNU_OK;
    if (l->params->warm_up && (!l->comm || l->comm->rank == 0))
        AK_TRY(warm_up(l));
    AK_TRY(report_stage(l, AKUNU_STAGE_WARMUP, 1.0));
    return report_stage(l, AKUNU_STAGE_READY, 1.0);
}

/* `provider` becomes the model's; NULL: the loader opens the path or the descriptor. */
static ak_status run_loader(struct loader *l, struct ak_provider *provider, struct ak_model **out)
{
    l->log = (struct ak_log){ l->params->log, l->params->user };
    l->model = ak_alloc(1, sizeof *l->model);
    if (!l->model) {
        ak_provider_close(provider);
        return ak_fail_memory(l->error, "a model", sizeof *l->model);
    }
    l->model->provider = provider;
    l->model->prefill = l->params->prefill;
    ak_status status = load_stages(l);
    ak_pool_free(l->pool);
    if (status != AKUNU_OK) {
        ak_model_free(l->model);
        return status;
    }
    *out = l->model;
    return AKUNU_OK;
}

/* Loads a model on all ranks, this one being rank 0. */
static ak_status load_on_ranks(struct loader *l, struct ak_model **out)
{
    struct ak_message m = { 0 };
    ak_ranks_lock(l->ranks);
    l->id = ak_ranks_next_id(l->ranks);
    ak_follow_put_load(&m, l->id, l->path, l->params);
    ak_status status = ak_ranks_send(l->ranks, &m, l->error);
    if (status == AKUNU_OK)
        status = run_loader(l, NULL, out);
    ak_ranks_unlock(l->ranks);
    return status;
}

ak_status ak_model_load(const char *path, const struct akunu_load_params *params,
                        struct ak_model **out, struct ak_error *error)
{
    return ak_model_load_opened(path, params, NULL, out, error);
}

ak_status ak_model_load_opened(const char *path, const struct akunu_load_params *params,
                               ak_model_open_fn *open, struct ak_model **out,
                               struct ak_error *error)
{
    struct loader l = { .path = path, .fd = -1, .params = params, .open = open, .error = error };
    struct ak_ranks *ranks = ak_ranks_from_handle(params->comm);
    if (!ranks || ak_ranks_comm(ranks)->n_ranks == 1)
        return run_loader(&l, NULL, out);
    l.ranks = ranks;
    l.comm = ak_ranks_comm(ranks);
    return load_on_ranks(&l, out);
}

ak_status ak_model_load_shard(const char *path, const struct akunu_load_params *params,
                              ak_model_open_fn *open, struct ak_comm *comm, struct ak_model **out,
                              struct ak_error *error)
{
    struct loader l = {
        .path = path, .fd = -1, .params = params, .open = open, .comm = comm, .error = error
    };
    return run_loader(&l, NULL, out);
}

ak_status ak_model_load_fd(int fd, const struct akunu_load_params *params, struct ak_model **out,
                           struct ak_error *error)
{
    struct loader l = { .fd = fd, .params = params, .error = error };
    if (fd < 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%d is not an open file descriptor", fd);
    return run_loader(&l, NULL, out);
}

ak_status ak_model_load_provider(struct ak_provider *provider,
                                 const struct akunu_load_params *params, struct ak_model **out,
                                 struct ak_error *error)
{
    struct loader l = { .fd = -1, .params = params, .error = error };
    return run_loader(&l, provider, out);
}

ak_status ak_model_plan(struct ak_provider *provider, const char *path, int fd,
                        const struct akunu_load_params *params, struct ak_pack_cache_plan *cache,
                        struct ak_model **out, struct ak_error *error)
{
    struct loader l = {
        .path = path, .fd = path ? -1 : fd, .params = params, .plans = true, .error = error
    };
    AK_TRY(run_loader(&l, provider, out));
    struct ak_pack_job job = { .weights = &(*out)->weights,
                               .backend = (*out)->backend,
                               .source = (*out)->provider };
    struct ak_pack_cache_options options = get_cache_options(&l);
    if (!cache)
        return AKUNU_OK;
    ak_status status = AKUNU_OK;
    if (uses_cache(&l))
        status = ak_pack_cache_plan(&job, &options, cache, error);
    else
        ak_pack_cache_plan_without(&job, cache);
    if (status != AKUNU_OK) {
        ak_model_free(*out);
        *out = NULL;
    }
    return status;
}

struct ak_model *ak_model_ref(struct ak_model *m)
{
    ak_refs_take(&m->refs);
    return m;
}

void ak_model_free(struct ak_model *m)
{
    if (!m || !ak_refs_drop(&m->refs))
        return;
    if (m->backend) /* it may share the weights with a device */
        m->backend->ops->close(m->backend);
    ak_table_clear(&m->table);
    ak_table_clear(&m->sampled_table);
    ak_table_clear(&m->hidden_table);
    ak_table_clear(&m->encoder_table);
    ak_pack_clear(&m->weights);
    ak_session_head_clear(&m->head);
    ak_binding_clear(&m->binding);
    ak_spec_clear(&m->spec);
    ak_model_trie_free(m->token_trie);
    ak_tok_free(m->tokenizer);
    ak_provider_close(m->provider);
    ak_free(m->adapters);
    ak_free(m->profile_text);
    ak_free(m);
}
