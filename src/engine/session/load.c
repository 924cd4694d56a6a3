/* Loads a model. The steps stand in the order in which they run, that of enum akunu_load_stage; the
 * functions at the end call them. What several ranks exchange meanwhile is in load_ranks.c. */
#include "engine/session/model.h"

#include <math.h>
#include <string.h>

#include "base/available.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/utf8.h"
#include "engine/backends/list.h"
#include "engine/pack/cache.h"
#include "engine/session/calibration.h"
#include "engine/session/constraint.h"
#include "engine/session/load_ranks.h"
#include "engine/session/session.h"
#include "engine/spec/stages.h"

struct load {
    const struct ak_model_source *source;
    const struct akunu_load_params *params; /* the source's */
    struct ak_log log;
    struct ak_model *model;
    struct ak_pool *pool; /* NULL until the weights are packed */
    struct ak_load_ranks ranks;
    struct ak_error *error;
};

/* Reports to the host how much of a stage is done. */
static ak_status report_stage(const struct load *l, enum akunu_load_stage stage, double fraction)
{
    if (l->params->progress && !l->params->progress(stage, fraction, l->params->user))
        return ak_fail(l->error, AKUNU_ERROR_CANCELLED, "loading was cancelled");
    return AKUNU_OK;
}

static struct ak_backend_options get_backend_options(const struct load *l)
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

/* ---- The backend -------------------------------------------------------- */
/* Opens the requested backend; if n_gpu_layers is 0, the CPU's. */
static ak_status open_backend(struct load *l)
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
    AK_TRY(ak_load_ranks_share_backend(&l->ranks, l->params->split, l->model, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_BACKEND, 1.0));
    return report_stage(l, AKUNU_STAGE_KERNELS, 1.0);
}

/* ---- The file ----------------------------------------------------------- */
/* Opens what the source names, unless it is open. */
static ak_status open_file(struct load *l)
{
    const struct ak_model_source *source = l->source;
    struct ak_provider **provider = &l->model->provider;
    if (!*provider && source->open_quantized)
        AK_TRY(source->open_quantized(source->path, l->params, provider, l->error));
    if (!*provider)
        AK_TRY(source->path ? ak_provider_open(source->path, provider, l->error) :
                              ak_provider_open_fd(source->fd, provider, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_FORMAT, 1.0));
    AK_TRY(ak_provider_adjust(*provider, l->params->override_kv, l->params->ignore_keys, l->error));
    return report_stage(l, AKUNU_STAGE_OPEN, 1.0);
}

/* Sizes that contradict each other, or the weights, are stated in config.json or are defaults. */
static ak_status explain(struct load *l, ak_status status)
{
    if (status == AKUNU_ERROR_FORMAT)
        ak_spec_explain_sizes(l->model->provider, &l->model->spec, l->error);
    return status;
}

static ak_status read_spec(struct load *l)
{
    struct ak_model *m = l->model;
    struct ak_spec *spec = &m->spec;
    AK_TRY(ak_arch_find(m->provider, &spec->arch, l->error));
    AK_TRY(ak_spec_read_config(m->provider, spec->arch, &spec->config, &spec->rope, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_CONFIG, 1.0));
    AK_TRY(explain(l, ak_spec_validate_config(&spec->config, &spec->rope, l->error)));
    AK_TRY(ak_spec_describe(m->provider, spec, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_ARCHITECTURE, 1.0));
    AK_TRY(report_stage(l, AKUNU_STAGE_PROFILE, 1.0)); /* the backend was opened with it */
    AK_TRY(ak_spec_override_rope(spec, &l->params->rope, l->error));
    m->rope = l->params->rope;
    AK_TRY(ak_spec_read_pooling(m->provider, spec, &spec->pooling, l->error));
    AK_TRY(explain(l, ak_spec_read_head(m->provider, spec, &spec->head, l->error)));
    AK_TRY(explain(l, ak_spec_check_weights(m->provider, spec, l->error)));
    return report_stage(l, AKUNU_STAGE_QUIRKS, 1.0);
}

/* Puts the first layers on the CPU if not all go to the device. */
static ak_status split_layers(struct load *l)
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

static ak_status bind_weights(struct load *l)
{
    struct ak_model *m = l->model;
    ak_spec_warn_alignment(&m->spec.config, &l->log);
    AK_TRY(explain(l, ak_bind(m->provider, &m->spec, l->params->strict ? AK_BIND_STRICT : 0,
                              &l->log, &m->binding, l->error)));
    AK_TRY(ak_spec_init_rope(m->provider, &m->spec, l->error));
    AK_TRY(report_stage(l, AKUNU_STAGE_ROPE, 1.0));
    AK_TRY(ak_load_ranks_take_shard(&l->ranks, l->params->split, m, l->error));
    AK_TRY(ak_pack_plan(&m->binding, m->backend, &m->weights, l->error));
    m->weights.source = m->provider;
    AK_TRY(ak_session_head_read(m->provider, &m->spec, &m->head, l->error));
    return report_stage(l, AKUNU_STAGE_VALIDATE, 1.0);
}

static ak_status make_tokenizer(struct load *l)
{
    AK_TRY(ak_tok_open(l->model->provider, &l->model->tokenizer, l->error));
    AK_TRY(ak_model_trie_create(&l->model->token_trie, l->error));
    return report_stage(l, AKUNU_STAGE_TOKENIZER, 1.0);
}

/* Checks that one page of the KV cache is addressable. Real sizes are chosen per session. */
static ak_status check_sizes(struct load *l)
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

/* ---- Adapters ----------------------------------------------------------- */
/* Checks an adapter and, unless its scale is 0, adds it to the planned weights. */
static ak_status add_adapter(struct load *l, const struct akunu_adapter *asked)
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

static ak_status add_adapters(struct load *l)
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

/* ---- Tables ------------------------------------------------------------- */
static ak_status build_tables(struct load *l)
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

/* ---- Weights ------------------------------------------------------------ */
static bool on_packed(double fraction, void *user)
{
    return report_stage(user, AKUNU_STAGE_WEIGHTS, fraction) == AKUNU_OK;
}

/* Whether the packed weights are kept; a descriptor's file without a name is not opened again. */
static bool uses_cache(const struct load *l)
{
    bool has_name =
        l->source->path || l->source->provider || ak_provider_part(l->model->provider, 0)->has_name;
    return !l->params->no_cache && has_name;
}

static struct ak_pack_cache_options get_cache_options(const struct load *l)
{
    return (struct ak_pack_cache_options){ .dir = l->params->cache_dir,
                                           .available_memory = ak_available_memory(),
                                           .limit = l->params->cache_limit,
                                           .log = &l->log };
}

static struct ak_pack_job get_pack_job(struct load *l)
{
    return (struct ak_pack_job){ .weights = &l->model->weights,
                                 .backend = l->model->backend,
                                 .source = l->model->provider,
                                 .pool = l->pool,
                                 .progress = on_packed,
                                 .user = l };
}

/* Unmaps what loading has read. Little of it is read again: rows of the embedding, tokens. */
static void forget_source(const struct ak_provider *source)
{
    const struct ak_file *file;
    for (size_t i = 0; (file = ak_provider_part(source, i)) != NULL; i++)
        ak_file_advise(file, 0, file->bytes, AK_FILE_DONTNEED);
}

/* Tells what pack_weights() would take from the cache and leave in it. */
static ak_status plan_weights(struct load *l)
{
    struct ak_pack_cache_options options = get_cache_options(l);
    struct ak_pack_job job = get_pack_job(l);
    struct ak_pack_cache_plan *plan = l->source->cache_plan;
    if (plan && uses_cache(l))
        return ak_pack_cache_plan(&job, &options, plan, l->error);
    if (plan)
        ak_pack_cache_plan_without(&job, plan);
    return AKUNU_OK;
}

static ak_status pack_weights(struct load *l)
{
    struct ak_model *m = l->model;
    struct ak_pack_cache_options options = get_cache_options(l);
    unsigned threads;
    AK_TRY(ak_session_choose_threads(l->params->n_threads, &m->profile, &threads, l->error));
    AK_TRY(ak_pool_create(threads, &l->pool, l->error));
    ak_pool_pin_numa(l->pool);
    struct ak_pack_job job = get_pack_job(l);
    AK_TRY(uses_cache(l) ? ak_pack_cache_weights(&job, &options, l->error) :
                           ak_pack_weights(&job, l->error));
    ak_model_calibrate(m->backend, &m->weights, l->pool, l->params, &l->log, &m->profile);
    AK_TRY(ak_backend_profile_print(&m->profile, &m->profile_text, l->error));
    forget_source(m->provider);
    return report_stage(l, AKUNU_STAGE_WEIGHTS, 1.0);
}

/* Runs one pass of one token over a cache of one page. */
static ak_status warm_up(struct load *l)
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

/* ---- All of it ---------------------------------------------------------- */
/* The file's keys, and the shapes of its tensors. */
static ak_status read_file(struct load *l)
{
    AK_TRY(read_spec(l));
    AK_TRY(split_layers(l));
    AK_TRY(bind_weights(l));
    if (!l->source->sizes_only)
        AK_TRY(make_tokenizer(l));
    return check_sizes(l);
}

static const char *get_file_name(const struct load *l)
{
    const char *path = l->source->path;
    if (!path) {
        struct ak_provider_fingerprint fingerprint;
        ak_provider_fingerprint(l->model->provider, &fingerprint);
        path = fingerprint.path;
    }
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* What each rank does by itself. Messages about what is in the file begin with its name. */
static ak_status load_own(struct load *l)
{
    AK_TRY(open_backend(l));
    AK_TRY(open_file(l));
    ak_status status = read_file(l);
    if (status != AKUNU_OK) {
        ak_error_prefix(l->error, get_file_name(l));
        return status;
    }
    AK_TRY(add_adapters(l));
    AK_TRY(build_tables(l));
    return l->source->sizes_only ? plan_weights(l) : pack_weights(l);
}

static ak_status load_stages(struct load *l)
{
    AK_TRY(ak_load_ranks_begin(l->source, &l->ranks, l->error));
    ak_status status = load_own(l);
    AK_TRY(ak_load_ranks_agree(&l->ranks, l->source, l->model, status, l->error));
    if (l->source->sizes_only)
        return AKUNU_OK;
    if (l->params->warm_up)
        AK_TRY(warm_up(l));
    AK_TRY(report_stage(l, AKUNU_STAGE_WARMUP, 1.0));
    return report_stage(l, AKUNU_STAGE_READY, 1.0);
}

ak_status ak_model_load(const struct ak_model_source *source, struct ak_model **out,
                        struct ak_error *error)
{
    const struct akunu_load_params *params = source->params;
    struct load l = { .source = source,
                      .params = params,
                      .log = { params->log, params->user },
                      .model = ak_alloc(1, sizeof *l.model),
                      .error = error };
    if (!l.model) {
        ak_provider_close(source->provider);
        return ak_fail_memory(error, "a model", sizeof *l.model);
    }
    l.model->provider = source->provider;
    l.model->prefill = params->prefill;
    ak_status status = load_stages(&l);
    ak_pool_free(l.pool);
    if (status == AKUNU_OK)
        *out = l.model;
    else
        ak_model_free(l.model);
    ak_load_ranks_end(&l.ranks);
    return status;
}
