/* The steps of a compression, and the checks that refuse one: the folder is not touched until the
 * source is known to fit. */
#include "conversion/compress/compress.h"

#include "base/mem.h"
#include "engine/pack/pack.h"
#include "conversion/quantize/quantize.h"
#include "engine/spec/stages.h"

/* Share of the time that phases take, about. */
static const double of_awq = 0.4, of_text = 0.2;

ak_status ak_compress_advance(struct ak_compress_job *j, double elements)
{
    j->done += elements;
    double fraction = j->base + j->span * (j->all > 0.0 ? j->done / j->all : 1.0);
    if (j->options->progress &&
        !j->options->progress(fraction < 1.0 ? fraction : 1.0, j->options->user))
        return ak_fail(j->error, AKUNU_ERROR_CANCELLED, "compressing was cancelled");
    return AKUNU_OK;
}

static void begin_phase(struct ak_compress_job *j, double span)
{
    j->base += j->span;
    j->span = span;
    j->done = 0.0;
}

/* ---- Checks ------------------------------------------------------------- */
static ak_status check_options(const struct ak_compress_job *j)
{
    const struct ak_compress_options *o = j->options;
    if (o->group % 32 != 0 || o->group > AK_QUANTIZE_GROUP_MAX)
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                       "groups of %u columns; expected 32, 64, 96 or 128", o->group);
    if (o->encoding == AK_COMPRESS_INT8 && o->awq)
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                       "AWQ is for 4 and 3 bits: 8 bits lose too little to gain from it");
    if (o->encoding == AK_COMPRESS_INT3 && !o->text)
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                       "3 bits lose much, so the result is compared with the source on a text, and "
                       "none is given");
    if (o->max_divergence != o->max_divergence || o->min_agreement > 1.0)
        return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                       "limits %g and %g; expected a KL divergence and a share of at most 1",
                       o->max_divergence, o->min_agreement);
    return AKUNU_OK;
}

/* What the folder's format, or the way back from GGUF, cannot have. */
static ak_status check_source(const struct ak_compress_job *j)
{
    const struct ak_arch *arch = j->spec.arch;
    const struct ak_spec_config *c = &j->spec.config;
    const char *name = arch->names[0];
    if (arch->emit_encoder)
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                       "speech models (%s) are not compressed: quantize makes them smaller", name);
    if (arch->hf_transposed || arch->hf_experts_transposed)
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                       "%s checkpoints have transposed matrices, whose rows cannot be quantized in "
                       "groups: quantize makes these models smaller",
                       name);
    if (!j->is_gguf)
        return AKUNU_OK;
    if (arch->has_recurrent_layers || arch->hf_experts_concatenated || arch->hf_padded_positions ||
        j->spec.head.n_labels > 0)
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                       "tensors of a GGUF file of architecture %s do not become those of a "
                       "checkpoint again; expected its Hugging Face folder",
                       name);
    if (arch->gguf_interleaved && c->rope_dims != c->head_dim)
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                       "%u of a head's %u dimensions turn; expected all, as GGUF permutes them",
                       c->rope_dims, c->head_dim);
    return AKUNU_OK;
}

/* ---- Steps -------------------------------------------------------------- */
static ak_status open_source(struct ak_compress_job *j)
{
    struct ak_binding bound;
    AK_TRY(ak_provider_open(j->from, &j->source, j->error));
    AK_TRY(ak_provider_check_weights(j->source, j->error));
    j->is_gguf = ak_provider_naming(j->source) == AK_PROVIDER_NAMING_GGUF;
    AK_TRY(ak_spec_read(j->source, &j->spec, j->error));
    AK_TRY(ak_spec_read_pooling(j->source, &j->spec, &j->spec.pooling, j->error));
    AK_TRY(ak_spec_read_head(j->source, &j->spec, &j->spec.head, j->error));
    AK_TRY(ak_spec_check_weights(j->source, &j->spec, j->error));
    AK_TRY(check_source(j));
    AK_TRY(ak_spec_init_rope(j->source, &j->spec, j->error));
    AK_TRY(ak_bind(j->source, &j->spec, AK_BIND_SHAPES, NULL, &bound, j->error));
    ak_binding_clear(&bound);
    return AKUNU_OK;
}

static ak_status read_importance(const char *path, struct ak_importance *out,
                                 struct ak_error *error)
{
    if (!path)
        return AKUNU_OK;
    AK_TRY(ak_importance_read(path, out, error));
    return ak_importance_average(out, error);
}

static ak_status encode_all(struct ak_compress_job *j, bool quantized)
{
    for (size_t i = 0; i < j->n; i++)
        if (j->tensors[i].quantizes == quantized)
            AK_TRY(ak_compress_encode(j, &j->tensors[i]));
    return AKUNU_OK;
}

/* Reads back what is there so far. */
static ak_status check_draft(struct ak_compress_job *j, bool complete)
{
    struct ak_provider *draft = NULL;
    struct ak_binding bound = { .n_views = 0 };
    AK_TRY(ak_compress_folder_draft(j));
    ak_status status = ak_compress_open_draft(j, &draft);
    if (status == AKUNU_OK && complete) {
        struct ak_spec spec;
        status = ak_spec_read(draft, &spec, j->error);
        if (status == AKUNU_OK)
            status = ak_bind(draft, &spec, AK_BIND_SHAPES, NULL, &bound, j->error);
        if (status == AKUNU_OK)
            ak_binding_clear(&bound);
        ak_spec_clear(&spec);
    }
    ak_provider_close(draft);
    return status;
}

/* The floats come first: with them the configuration can be checked before the long work. */
static ak_status write_arrays(struct ak_compress_job *j)
{
    AK_TRY(ak_compress_write_config(j));
    AK_TRY(encode_all(j, false));
    AK_TRY(check_draft(j, false));
    AK_TRY(encode_all(j, true));
    return check_draft(j, true);
}

static ak_status run_job(struct ak_compress_job *j)
{
    const struct ak_compress_options *o = j->options;
    double text = o->text ? of_text : 0.0, awq = o->awq ? of_awq : 0.0;
    AK_TRY(check_options(j));
    AK_TRY(open_source(j));
    AK_TRY(read_importance(o->importance, &j->importance, j->error));
    AK_TRY(read_importance(o->awq, &j->inputs, j->error));
    AK_TRY(ak_compress_plan(j));
    AK_TRY(ak_pool_create(o->n_threads ? o->n_threads : ak_physical_cores(), &j->pool, j->error));
    AK_TRY(ak_compress_folder_open(j));
    for (size_t i = 0; i < j->n; i++)
        j->all += (double)ak_compress_count_elems(&j->tensors[i]);
    begin_phase(j, awq);
    if (o->awq)
        AK_TRY(ak_compress_find_factors(j));
    begin_phase(j, 1.0 - awq - text);
    AK_TRY(write_arrays(j));
    begin_phase(j, text);
    if (o->text)
        AK_TRY(ak_compress_measure(j));
    AK_TRY(ak_compress_folder_publish(j->folder));
    ak_compress_folder_sum(j->folder, j->result->bytes);
    return AKUNU_OK;
}

ak_status ak_compress(const char *from, const char *to, const struct ak_compress_options *options,
                      struct ak_compress_result *result, struct ak_error *error)
{
    struct ak_compress_job j = {
        .options = options, .from = from, .to = to, .result = result, .error = error
    };
    *result = (struct ak_compress_result){ .n_matrices = 0 };
    ak_status status = run_job(&j);
    ak_compress_folder_close(j.folder);
    ak_pool_free(j.pool);
    ak_compress_free_plan(&j);
    ak_importance_free(&j.importance);
    ak_importance_free(&j.inputs);
    ak_free(j.factors);
    json_decref(j.exponents);
    ak_spec_clear(&j.spec);
    ak_provider_close(j.source);
    return status;
}
