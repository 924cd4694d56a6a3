/* The steps of a conversion, and the checks that refuse one: nothing is written until the source
 * is known to fit GGUF and the destination may be written. */
#include "conversion/convert/convert.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/spec/arch.h"
#include "text/tokenizer/tokenizer.h"

struct ak_convert_job {
    const struct ak_convert_options *options;
    const char *from, *to;
    struct ak_provider *source;
    struct ak_spec spec;
    struct ak_convert_plan plan;
    struct ak_tokenizer *tokenizer; /* NULL: none, or the source is GGUF */
    struct ak_error *error;
};

static ak_status parse_type(struct ak_convert_job *j)
{
    static const enum ak_quant_type types[] = { AK_QUANT_F32, AK_QUANT_F16, AK_QUANT_BF16,
                                                AK_QUANT_Q8_0 };
    const char *name = j->options->type;
    char shown[AK_SHOW_BYTES];
    if (!name)
        return AKUNU_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcasecmp(name, ak_quant_info(types[i])->name) == 0) {
            j->plan.has_type = true;
            j->plan.type = types[i];
            return AKUNU_OK;
        }
    return ak_fail(j->error, AKUNU_ERROR_ARGUMENT,
                   "unknown type '%s'; expected F32, F16, BF16 or Q8_0", ak_show_path(name, shown));
}

static ak_status check_destination(const struct ak_convert_job *j)
{
    struct stat st;
    char shown[AK_SHOW_BYTES];
    const struct ak_file *file;
    if (!j->to || stat(j->to, &st) != 0)
        return AKUNU_OK;
    AK_TRY(ak_gguf_writer_check_path(j->to, j->options->overwrite, j->error));
    ak_show_path(j->to, shown);
    for (size_t i = 0; j->source && (file = ak_provider_part(j->source, i)); i++)
        if (file->device == st.st_dev && file->inode == st.st_ino)
            return ak_fail(j->error, AKUNU_ERROR_ARGUMENT, "%s: is a file of the model to convert",
                           shown);
    return AKUNU_OK;
}

/* Refuses what GGUF cannot express or no reader of GGUF can run. */
static ak_status check_source(const struct ak_convert_job *j)
{
    if (j->spec.descriptor.global_first && !j->spec.descriptor.encoder &&
        j->spec.descriptor.local.window > 0)
        return ak_fail(
            j->error, AKUNU_ERROR_UNSUPPORTED,
            "GGUF cannot express attention windows that start after a first layer without one");
    if (j->spec.config.has_global_layers &&
        j->spec.descriptor.global.rotation == AK_SPEC_ROTATE_NONE)
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                       "the layers without rotation are not every n-th layer, the only pattern "
                       "that GGUF has");
    if (j->spec.config.delta_k_heads > 0 && ak_spec_attention_interval(&j->spec.config) == 0)
        return ak_fail(
            j->error, AKUNU_ERROR_UNSUPPORTED,
            "the attention layers are not every n-th layer, the only pattern that GGUF has");
    if (j->spec.pooling.unsupported[0])
        return ak_fail(j->error, AKUNU_ERROR_UNSUPPORTED,
                       "the model's embeddings need %s, which GGUF cannot store",
                       j->spec.pooling.unsupported);
    return AKUNU_OK;
}

/* A file without a vocabulary is of little use, so it needs the user's consent. Without a
 * destination the header only serves to count or to run. A source whose vocabulary can be put
 * beside it must have it: speech models need theirs. */
static ak_status open_tokenizer(struct ak_convert_job *j)
{
    struct ak_vocab vocab;
    AK_TRY(ak_tok_open(j->source, &j->tokenizer, j->error));
    AK_TRY(ak_provider_vocab(j->source, &vocab, j->error));
    bool needed = vocab.advice || (j->to && !j->options->no_vocab);
    return j->tokenizer || !needed ? AKUNU_OK : ak_provider_fail_vocab(j->source, j->error);
}

static ak_status open_source(struct ak_convert_job *j)
{
    AK_TRY(ak_provider_open(j->from, &j->source, j->error));
    AK_TRY(
        ak_provider_adjust(j->source, j->options->override_kv, j->options->ignore_keys, j->error));
    j->plan.source = j->source;
    if (strcmp(j->source->format->name, "gguf") == 0)
        return AKUNU_OK;
    AK_TRY(ak_spec_read(j->source, &j->spec, j->error));
    ak_spec_warn_alignment(&j->spec.config, j->options->log);
    AK_TRY(ak_spec_read_pooling(j->source, &j->spec, &j->spec.pooling, j->error));
    AK_TRY(ak_spec_read_head(j->source, &j->spec, &j->spec.head, j->error));
    AK_TRY(ak_spec_check_weights(j->source, &j->spec, j->error));
    AK_TRY(check_source(j));
    AK_TRY(ak_spec_init_rope(j->source, &j->spec, j->error));
    AK_TRY(open_tokenizer(j));
    j->plan.spec = &j->spec;
    return AKUNU_OK;
}

/* Last component of the path, used as the model's name. */
static void get_base_name(const char *path, char out[AK_SHOW_BYTES])
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && path[at - 1] != '/')
        at--;
    ak_show(path + at, n - at, out);
}

/* Everything but the data. */
static ak_status put_header(struct ak_convert_job *j, struct ak_gguf_writer *w)
{
    char name[AK_SHOW_BYTES];
    get_base_name(j->from, name);
    if (j->plan.spec) {
        ak_convert_put_metadata(w, &j->plan, name,
                                j->tokenizer && ak_tok_has_rstrip_control(j->tokenizer));
        AK_TRY(ak_convert_put_sentence(w, &j->plan, j->error));
        if (j->plan.spec->arch->emit_encoder)
            AK_TRY(ak_convert_put_speech(w, &j->plan, j->error));
        AK_TRY(ak_convert_put_vocab(w, &j->plan, j->tokenizer, j->options->pre, j->options->log,
                                    j->error));
    } else {
        ak_convert_copy_metadata(w, &j->plan);
    }
    for (size_t i = 0; i < j->plan.n; i++) {
        const struct ak_convert_tensor *t = &j->plan.tensors[i];
        ak_gguf_writer_put_tensor(w, t->name, t->type, t->n_dims, t->shape);
    }
    return w->status;
}

static ak_status prepare_job(struct ak_convert_job *j)
{
    for (size_t i = 0; i < j->plan.n; i++)
        if (j->plan.tensors[i].searches)
            AK_TRY(ak_convert_prepare(&j->plan, j->plan.tensors[i].type, j->error));
    return AKUNU_OK;
}

static ak_status write_file(struct ak_convert_job *j, struct ak_gguf_writer *w)
{
    AK_TRY(put_header(j, w));
    AK_TRY(check_destination(j));
    ak_gguf_writer_open(w, j->to);
    AK_TRY(w->status);
    AK_TRY(prepare_job(j));
    for (size_t i = 0; i < j->plan.n; i++)
        AK_TRY(ak_convert_write_tensor(&j->plan, &j->plan.tensors[i], w, j->error));
    return AKUNU_OK;
}

static void report_fraction(const struct ak_convert_job *j)
{
    for (size_t i = 0; i < j->plan.n; i++) {
        const struct ak_convert_tensor *t = &j->plan.tensors[i];
        const struct akunu_quantized_tensor of = { .name = t->name,
                                                   .stored = ak_quant_info(t->stored)->name,
                                                   .type = ak_quant_info(t->type)->name,
                                                   .n_dims = t->n_dims,
                                                   .shape = t->shape,
                                                   .bytes = t->bytes,
                                                   .divergence = t->divergence };
        j->options->quantize->report(&of, j->options->user);
    }
}

static ak_status begin_file(struct ak_convert_job *j)
{
    AK_TRY(parse_type(j));
    AK_TRY(check_destination(j));
    AK_TRY(open_source(j));
    AK_TRY(ak_convert_plan_tensors(&j->plan, j->options->log, j->error));
    if (j->options->quantize)
        AK_TRY(ak_convert_choose_types(&j->plan, j->options->quantize, j->options->log, j->error));
    unsigned n_threads = j->options->n_threads ? j->options->n_threads : ak_physical_cores();
    return ak_pool_create(n_threads, &j->plan.pool, j->error);
}

ak_status ak_convert_begin(const char *from, const char *to,
                           const struct ak_convert_options *options, struct ak_convert_job **out,
                           struct ak_error *error)
{
    struct ak_convert_job *j = ak_alloc(1, sizeof *j);
    *out = NULL;
    if (!j)
        return ak_fail_memory(error, "a conversion", sizeof *j);
    *j = (struct ak_convert_job){ .options = options, .from = from, .to = to, .error = error };
    ak_status status = begin_file(j);
    if (status == AKUNU_OK)
        *out = j;
    else
        ak_convert_end(j);
    return status;
}

struct ak_convert_plan *ak_convert_get_plan(struct ak_convert_job *j)
{
    return &j->plan;
}

ak_status ak_convert_header_bytes(struct ak_convert_job *j, uint64_t *out)
{
    struct ak_gguf_writer w = ak_gguf_writer_begin(j->error);
    w.status = put_header(j, &w);
    *out = ak_gguf_writer_header_bytes(&w);
    return ak_gguf_writer_finish(&w);
}

ak_status ak_convert_write(struct ak_convert_job *j)
{
    if (j->options->quantize && j->options->quantize->report)
        report_fraction(j);
    ak_convert_report_fits(&j->plan, j->options->log);
    if (!j->to)
        return AKUNU_OK;
    AK_TRY(ak_convert_check_importance(&j->plan, j->error));
    struct ak_gguf_writer w = ak_gguf_writer_begin(j->error);
    w.progress = j->options->progress;
    w.user = j->options->user;
    ak_status status = write_file(j, &w);
    if (w.status == AKUNU_OK)
        w.status = status; /* after any failure, no file remains */
    return ak_gguf_writer_finish(&w);
}

/* Vectors may be divisors, which 0 is not. */
static void write_ones(struct ak_gguf_writer *w, uint64_t bytes)
{
    const float one = 1.0f;
    for (uint64_t i = 0; i < bytes / sizeof one; i++)
        ak_gguf_writer_write(w, &one, sizeof one);
    ak_gguf_writer_end_tensor(w);
}

ak_status ak_convert_write_hollow(struct ak_convert_job *j, int *fd)
{
    struct ak_gguf_writer w = ak_gguf_writer_begin(j->error);
    ak_status status = put_header(j, &w);
    if (status == AKUNU_OK)
        ak_gguf_writer_open_memory(&w);
    for (size_t i = 0; status == AKUNU_OK && i < j->plan.n; i++) {
        const struct ak_convert_tensor *t = &j->plan.tensors[i];
        if (t->n_dims == 1 && t->type == AK_QUANT_F32)
            write_ones(&w, t->bytes);
        else
            ak_gguf_writer_skip_tensor(&w, t->bytes);
    }
    if (w.status == AKUNU_OK)
        w.status = status;
    return ak_gguf_writer_finish_memory(&w, fd);
}

ak_status ak_convert_write_partly(struct ak_convert_job *j,
                                  bool (*is_left_out)(const struct ak_convert_plan *plan,
                                                      const struct ak_convert_tensor *t),
                                  int *fd)
{
    struct ak_gguf_writer w = ak_gguf_writer_begin(j->error);
    ak_status status = put_header(j, &w);
    if (status == AKUNU_OK)
        status = prepare_job(j);
    if (status == AKUNU_OK)
        ak_gguf_writer_open_memory(&w);
    for (size_t i = 0; status == AKUNU_OK && i < j->plan.n; i++) {
        const struct ak_convert_tensor *t = &j->plan.tensors[i];
        if (is_left_out(&j->plan, t))
            ak_gguf_writer_skip_tensor(&w, t->bytes);
        else
            status = ak_convert_write_tensor(&j->plan, t, &w, j->error);
    }
    if (w.status == AKUNU_OK)
        w.status = status;
    return ak_gguf_writer_finish_memory(&w, fd);
}

void ak_convert_end(struct ak_convert_job *j)
{
    if (!j)
        return;
    ak_free(j->plan.tensors);
    ak_importance_free(&j->plan.importance);
    ak_pool_free(j->plan.pool);
    ak_quantize_clear(&j->plan.tables);
    ak_tok_free(j->tokenizer);
    ak_spec_clear(&j->spec);
    ak_provider_close(j->source);
    ak_free(j);
}

ak_status ak_convert(const char *from, const char *to, const struct ak_convert_options *options,
                     struct ak_error *error)
{
    struct ak_convert_job *j;
    AK_TRY(ak_convert_begin(from, to, options, &j, error));
    ak_status status = ak_convert_write(j);
    ak_convert_end(j);
    return status;
}
