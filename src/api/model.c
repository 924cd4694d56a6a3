/* akunu_model_load, akunu_model_load_fd, akunu_model_free and what a model is: architecture, sizes,
 * types and bytes. */
#include "api/handles.h"

#include "engine/backends/list.h"
#include "base/mem.h"
#include "conversion/convert/online.h"
#include "files/weights/composed.h"

const char *akunu_load_stage_name(enum akunu_load_stage stage)
{
    static const char *const names[] = {
        [AKUNU_STAGE_BACKEND] = "backend",
        [AKUNU_STAGE_KERNELS] = "kernels",
        [AKUNU_STAGE_FORMAT] = "format",
        [AKUNU_STAGE_OPEN] = "open",
        [AKUNU_STAGE_CONFIG] = "config",
        [AKUNU_STAGE_ARCHITECTURE] = "architecture",
        [AKUNU_STAGE_PROFILE] = "profile",
        [AKUNU_STAGE_QUIRKS] = "quirks",
        [AKUNU_STAGE_ROPE] = "rope",
        [AKUNU_STAGE_VALIDATE] = "validate",
        [AKUNU_STAGE_TOKENIZER] = "tokenizer",
        [AKUNU_STAGE_KV] = "kv",
        [AKUNU_STAGE_SCRATCH] = "scratch",
        [AKUNU_STAGE_TABLE] = "table",
        [AKUNU_STAGE_SAMPLED_TABLE] = "sampled table",
        [AKUNU_STAGE_WEIGHTS] = "weights",
        [AKUNU_STAGE_WARMUP] = "warm-up",
        [AKUNU_STAGE_READY] = "ready",
    };
    size_t i = (size_t)stage;
    return i > 0 && i < sizeof names / sizeof *names ? names[i] : "unknown";
}

void akunu_load_params_default(struct akunu_load_params *params, size_t size)
{
    static const struct akunu_load_params full = { .n_gpu_layers = -1 };
    ak_api_give_default(params, size, &full, sizeof full);
}

ak_status ak_api_open_quantized(const char *path, const struct akunu_load_params *params,
                                struct ak_provider **out, struct ak_error *error)
{
    const struct ak_log log = { params->log, params->user };
    *out = NULL;
    if (!params->quantize && params->importance)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "importance is given, and no type to quantize to");
    if (!params->quantize)
        return AKUNU_OK;
    if (!path)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a model that is quantized at load needs a path, not a descriptor");
    return ak_convert_open_online(path, params->quantize, params->importance, params->ignore_keys,
                                  params->n_threads, &log, out, error);
}

/* Loads a source that lacks only the parameters. */
static ak_status load_model(struct ak_model_source *source, const struct akunu_load_params *given,
                            struct akunu_model *model, struct ak_error *error)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_load_params", error));
    source->params = &params;
    source->open_quantized = ak_api_open_quantized;
    AK_TRY(ak_model_load(source, &model->inner, error));

    const struct ak_spec_config *config = &model->inner->spec.config;
    model->tokenizer.inner = model->inner->tokenizer;
    model->file = ak_api_lend_file(model->inner->provider);
    model->name = ak_strndup(config->name.bytes, config->name.n);
    model->architecture = ak_strndup(config->architecture.bytes, config->architecture.n);
    if (!model->file || !model->name || !model->architecture)
        return ak_fail_memory(error, "a model", 0);
    return AKUNU_OK;
}

static struct akunu_model *load_handle(struct ak_model_source *source,
                                       const struct akunu_load_params *params)
{
    struct ak_error error = { 0 };
    struct akunu_model *model = ak_alloc(1, sizeof *model);
    if (!model)
        ak_fail_memory(&error, "a model", sizeof *model);
    else
        load_model(source, params, model, &error);
    if (error.status == AKUNU_OK)
        return model;
    ak_api_finish(&error);
    akunu_model_free(model);
    return NULL;
}

struct akunu_model *akunu_model_load(const char *path, const struct akunu_load_params *params)
{
    struct ak_error error = { 0 };
    if (path)
        return load_handle(&(struct ak_model_source){ .path = path }, params);
    ak_fail(&error, AKUNU_ERROR_ARGUMENT, "no path is given");
    ak_api_finish(&error);
    return NULL;
}

struct akunu_model *akunu_model_load_fd(int fd, const struct akunu_load_params *params)
{
    return load_handle(&(struct ak_model_source){ .fd = fd }, params);
}

void akunu_model_free(struct akunu_model *model)
{
    if (!model)
        return;
    akunu_file_free(model->file);
    ak_model_free(model->inner);
    ak_free(model->name);
    ak_free(model->architecture);
    ak_free(model);
}

/* ---- Model info --------------------------------------------------------- */
/* Sums over the weights. Bytes are those that a pass reads. */
struct totals {
    uint64_t by_type[AK_QUANT_COUNT];
    const char *names[AK_QUANT_COUNT]; /* name of the type as the file stores it */
    uint64_t token_bytes, matrix_parameters, float_parameters, parameters;
};

static uint64_t view_bytes(const struct ak_view *view)
{
    uint64_t bytes = 0;
    for (int i = 0; i < AK_VIEW_PLANES_MAX; i++)
        bytes += view->plane[i].bytes;
    return bytes;
}

static const char *stored_name(const struct ak_view *view)
{
    return view->composed_tensor ? view->composed_tensor->name : ak_quant_info(view->type)->name;
}

static void add_linear(const struct ak_model *m, const struct ak_pack_weight *packed,
                       struct totals *totals)
{
    uint64_t rows = 0, stored = 0;
    for (uint32_t i = 0; i < packed->n_parts; i++) {
        rows += packed->parts[i].rows;
        stored += view_bytes(packed->parts[i].view);
    }
    totals->token_bytes += ak_pack_token_bytes(packed, m->spec.config.n_experts_used);
    if (packed->linear == AK_OP_LINEAR_ADAPTER)
        return;
    totals->by_type[packed->type] += stored;
    totals->names[packed->type] = stored_name(packed->parts[0].view);
    struct ak_backend_type_info cpu;
    ak_backend_list()[0]->type_info(packed->type, &cpu);
    if (packed->layer != AK_ROLE_NO_LAYER) {
        totals->matrix_parameters += rows * packed->cols;
        totals->float_parameters += cpu.integers ? 0 : rows * packed->cols;
    }
    totals->parameters += rows * packed->cols;
}

static struct totals sum_weights(const struct ak_model *m)
{
    struct totals totals = { 0 };
    const struct ak_view *embedding = m->weights.embedding;
    for (uint32_t i = 0; i < m->weights.n_packed; i++)
        add_linear(m, &m->weights.packed[i], &totals);
    for (uint32_t i = 0; i < m->weights.n_vectors; i++)
        totals.parameters += m->weights.vectors[i].n;
    if (!m->binding.tied) {
        totals.by_type[embedding->type] += view_bytes(embedding);
        if (!totals.names[embedding->type])
            totals.names[embedding->type] = stored_name(embedding);
        totals.parameters += (uint64_t)embedding->rows * embedding->cols;
    }
    totals.token_bytes += view_bytes(embedding) / embedding->rows;
    return totals;
}

uint64_t ak_api_all_token_bytes(const struct ak_model *m)
{
    return sum_weights(m).token_bytes;
}

static const char *find_heaviest_type(const struct totals *totals)
{
    int heaviest = 0;
    for (int i = 1; i < AK_QUANT_COUNT; i++)
        if (totals->by_type[i] > totals->by_type[heaviest])
            heaviest = i;
    return totals->names[heaviest] ? totals->names[heaviest] :
                                     ak_quant_info((enum ak_quant_type)heaviest)->name;
}

enum akunu_status akunu_model_get_info(const struct akunu_model *model,
                                       struct akunu_model_info *info, size_t size)
{
    struct ak_error error = { 0 };
    if (!model) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the model is NULL");
        return ak_api_finish(&error);
    }
    const struct ak_model *m = model->inner;
    const struct ak_spec_config *config = &m->spec.config;
    struct totals totals = sum_weights(m);
    struct akunu_model_info full = {
        .name = model->name,
        .architecture = model->architecture,
        .format = m->provider->format->name,
        .weight_type = find_heaviest_type(&totals),
        .cpu = m->backend->ops->describe(m->backend),
        .n_layers = config->n_layers,
        .width = config->width,
        .n_heads = config->n_heads,
        .n_kv_heads = config->n_kv_heads,
        .head_dim = config->head_dim,
        .ffn_width = config->ffn_width,
        .vocab_size = config->vocab_size,
        .context = config->context,
        .n_parameters = totals.parameters,
        .token_weight_bytes = totals.token_bytes,
        .matrix_parameters = totals.matrix_parameters,
        .float_parameters = totals.float_parameters,
        .encoder = m->spec.descriptor.encoder,
        .n_scores = m->spec.head.n_labels,
        .n_mels = config->n_mels,
        .encoder_context = config->encoder_context,
        .n_encoder_layers = config->n_encoder_layers,
        .pooling = m->spec.pooling.n_kinds == 1 ? m->spec.pooling.kinds[0] : AKUNU_POOLING_MODEL,
        .normalized = m->spec.pooling.is_normalized,
    };
    ak_api_copy_out(info, size, &full, sizeof full, "akunu_model_info", &error);
    return ak_api_finish(&error);
}

const struct akunu_tokenizer *akunu_model_tokenizer(const struct akunu_model *model)
{
    return model && model->tokenizer.inner ? &model->tokenizer : NULL;
}

const struct akunu_file *akunu_model_file(const struct akunu_model *model)
{
    return model ? model->file : NULL;
}

const char *akunu_model_profile(const struct akunu_model *model)
{
    return model ? model->inner->profile_text : NULL;
}

const char *akunu_model_dump(const struct akunu_model *model, bool sampled)
{
    if (!model)
        return NULL;
    if (sampled && model->inner->spec.descriptor.encoder)
        return NULL;
    return sampled ? model->inner->sampled_table.dump : model->inner->table.dump;
}

enum akunu_status akunu_model_get_memory(const struct akunu_model *model,
                                         struct akunu_session *session, struct akunu_memory *out,
                                         size_t size)
{
    struct ak_error error = { 0 };
    if (!model) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the model is NULL");
        return ak_api_finish(&error);
    }
    const struct ak_model *m = model->inner;
    const struct ak_session *s = session ? ak_api_begin(session, &error) : NULL;
    if (error.status != AKUNU_OK)
        return ak_api_finish(&error);
    struct akunu_memory full = {
        .mapped = ak_provider_bytes(m->provider),
        .packed = m->weights.block_bytes + m->weights.vector_bytes + m->weights.adapter_bytes,
        .kv = s ? s->kv.pool_bytes : 0,
        .scratch = s ? ak_session_scratch_bytes(s) : 0,
        .tokenizer = m->tokenizer ? ak_tok_memory_bytes(m->tokenizer) : 0,
        .table = ak_table_bytes(&m->table) + ak_table_bytes(&m->sampled_table) +
                 ak_table_bytes(&m->hidden_table) + ak_table_bytes(&m->encoder_table),
        .cached = m->weights.block_mapped ? m->weights.block_bytes : 0,
    };
    ak_api_copy_out(out, size, &full, sizeof full, "akunu_memory", &error);
    return ak_api_end(session, s, &error);
}
