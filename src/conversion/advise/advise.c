/* Memory and time of a model as a type: planned from a GGUF file with holes, and from the measured
 * speed of the kernels. */
#include "conversion/advise/advise.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

ak_status ak_advisor_init(struct ak_advisor *a, const char *path, struct ak_error *error)
{
    struct ak_provider *source;
    struct ak_tokenizer *tokenizer = NULL;
    a->path = ak_strndup(path, strlen(path));
    if (!a->path)
        return ak_fail_memory(error, "a path", strlen(path));
    AK_TRY(ak_provider_open(path, &source, error));
    ak_status status = ak_provider_adjust(source, a->load.override_kv, a->load.ignore_keys, error);
    if (status == AKUNU_OK)
        status = ak_tok_open(source, &tokenizer, error);
    a->tokenizer_bytes = tokenizer ? ak_tok_memory_bytes(tokenizer) : 0;
    ak_tok_free(tokenizer);
    ak_provider_close(source);
    return status;
}

void ak_advisor_clear(struct ak_advisor *a)
{
    ak_free(a->path);
    a->path = NULL;
}

/* ---- Time --------------------------------------------------------------- */
/* Seconds of a command beside its weights and the barrier: norms, rotations, few keys and
 * values. 0 to 5 µs on Zen 4, from SmolLM2-135M to Qwen2.5-Coder-1.5B (bench/notes/advise.md,
 * "Expected speed"). */
static const double command_seconds = 4e-6;

static ak_status measure_model(struct ak_advisor *a, const struct ak_model *m,
                               struct ak_error *error)
{
    const struct ak_backend_ops *ops = m->backend->ops;
    const char *isa = ops->describe(m->backend);
    struct akunu_roofline roof;
    unsigned n_threads;
    if (a->is_measured || a->no_speed || !ops->measure_types)
        return AKUNU_OK;
    AK_TRY(ak_session_choose_threads(a->session.n_threads, &m->profile, &n_threads, error));
    AK_TRY(ops->measure(isa, n_threads, AKUNU_MEASURE_READ, &roof, error));
    AK_TRY(ops->measure_types(isa, n_threads, a->rates, &a->step_seconds, error));
    a->read_rate = roof.read_bytes_per_second;
    a->is_measured = true;
    return AKUNU_OK;
}

static void estimate_time(const struct ak_advisor *a, const struct ak_model *m,
                          struct akunu_advice *out)
{
    double seconds = (a->step_seconds + command_seconds) * m->sampled_table.n_commands;
    double kv_seconds = (double)out->kv_bytes / a->read_rate;
    for (uint32_t i = 0; i < m->weights.n_packed; i++) {
        const struct ak_pack_weight *packed = &m->weights.packed[i];
        double rate = a->rates[packed->type];
        if (!(rate > 0.0))
            return; /* no kernel reads the type: its rows are dequantized, which is slow */
        seconds += (double)ak_pack_token_bytes(packed, m->spec.config.n_experts_used) / rate;
    }
    out->tokens_per_second = 1.0 / seconds;
    out->end_tokens_per_second = 1.0 / (seconds + kv_seconds);
}

/* ---- Memory ------------------------------------------------------------- */
static const char *find_main_type(const struct ak_model *m)
{
    uint64_t bytes[AK_QUANT_COUNT] = { 0 };
    int best = 0;
    for (uint32_t i = 0; i < m->weights.n_packed; i++)
        bytes[m->weights.packed[i].type] += ak_pack_read_bytes(&m->weights.packed[i]);
    for (int type = 1; type < AK_QUANT_COUNT; type++)
        if (bytes[type] > bytes[best])
            best = type;
    return ak_quant_info((enum ak_quant_type)best)->name;
}

static ak_status describe_advice(struct ak_advisor *a, struct ak_model *m, struct akunu_advice *out,
                                 struct ak_error *error)
{
    struct ak_session_plan session;
    if (m->spec.descriptor.encoder || m->spec.config.n_encoder_layers > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "advice on types is for models that generate text; this is %s",
                       m->spec.descriptor.encoder ? "an encoder" : "a speech model");
    AK_TRY(ak_session_plan(m, &a->session, &session, error));
    out->weight_bytes = m->weights.block_bytes + m->weights.vector_bytes;
    for (uint32_t i = 0; i < m->weights.n_packed; i++) {
        const struct ak_pack_weight *packed = &m->weights.packed[i];
        out->weight_bytes += packed->bytes == 0 ? ak_pack_read_bytes(packed) : 0;
        out->token_weight_bytes += ak_pack_token_bytes(packed, m->spec.config.n_experts_used);
    }
    out->kv_bytes = session.kv_bytes;
    out->scratch_bytes = session.scratch_bytes + a->tokenizer_bytes;
    out->memory_bytes = out->weight_bytes + out->kv_bytes + out->scratch_bytes;
    out->context = session.context;
    AK_TRY(measure_model(a, m, error));
    if (a->is_measured)
        estimate_time(a, m, out);
    return AKUNU_OK;
}

/* ---- The model as a type ------------------------------------------------ */
static void describe_plan(const struct ak_convert_plan *plan, struct akunu_advice *out)
{
    for (size_t i = 0; i < plan->n; i++) {
        const struct ak_convert_tensor *t = &plan->tensors[i];
        out->needs_importance = out->needs_importance || ak_convert_lacks_importance(t);
        out->requantizes =
            out->requantizes || (t->searches && ak_quant_info(t->stored)->block_elems > 1);
    }
}

/* Plans the load of the new file, which is written without its tensors. */
static ak_status describe_job(struct ak_advisor *a, struct ak_convert_job *job,
                              struct akunu_advice *out, struct ak_error *error)
{
    struct akunu_load_params load = a->load;
    struct ak_model_source source = { .params = &load, .sizes_only = true };
    struct ak_model *model = NULL;
    struct stat st = { 0 };
    describe_plan(ak_convert_get_plan(job), out);
    AK_TRY(ak_convert_write_hollow(job, &source.fd));
    load.override_kv = load.ignore_keys = NULL; /* the new file has the values */
    ak_status status = ak_model_load(&source, &model, error);
    if (status == AKUNU_OK)
        status = describe_advice(a, model, out, error);
    if (status == AKUNU_OK && !out->type)
        out->type = find_main_type(model);
    out->file_bytes = fstat(source.fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    ak_model_free(model);
    close(source.fd);
    return status;
}

static ak_status describe_source(struct ak_advisor *a, struct akunu_advice *out,
                                 struct ak_error *error)
{
    const struct ak_model_source source = { .path = a->path,
                                            .params = &a->load,
                                            .sizes_only = true };
    struct ak_model *model;
    AK_TRY(ak_model_load(&source, &model, error));
    ak_status status = describe_advice(a, model, out, error);
    out->file_bytes = ak_provider_bytes(model->provider);
    out->type = find_main_type(model);
    ak_model_free(model);
    return status;
}

ak_status ak_advisor_get(struct ak_advisor *a, const char *type, struct akunu_advice *out,
                         struct ak_error *error)
{
    struct ak_convert_quantize quantize = { .mix = type, .requantize = true };
    struct ak_convert_options options = { .quantize = &quantize,
                                          .n_threads = 1,
                                          .override_kv = a->load.override_kv,
                                          .ignore_keys = a->load.ignore_keys };
    struct ak_convert_job *job;
    *out = (struct akunu_advice){ .divergence = 0.0 };
    if (!type)
        return describe_source(a, out, error);
    const struct ak_mix *mix = ak_mix_find(type);
    if (mix)
        out->type = mix->name;
    out->divergence = mix ? ak_advise_divergence(mix->name, false) : -1.0;
    out->importance_divergence = mix ? ak_advise_divergence(mix->name, true) : -1.0;
    AK_TRY(ak_convert_begin(a->path, NULL, &options, &job, error));
    ak_status status = describe_job(a, job, out, error);
    ak_convert_end(job);
    return status;
}
