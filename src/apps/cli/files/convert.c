/* convert and quantize: any model as a GGUF file. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/options.h"
#include "apps/common/output.h"

struct work {
    struct app_work base;
    /* of a dry run */
    struct app_output out;
    double bytes, elements, divergence;
};

static struct work begin_work(const struct app_options *o, const char *doing)
{
    return (struct work){ .base = { app_progress_begin(), doing, o->output.verbose } };
}

static int end(struct work *work, const char *path, enum akunu_status status)
{
    struct stat st;
    app_progress_end(&work->base.progress);
    if (status != AKUNU_OK)
        return app_fail_library();
    if (stat(path, &st) == 0)
        app_aside("%s: %.1f MB in %.1f s", path, (double)st.st_size / 1e6,
                  app_seconds() - work->base.progress.started);
    return APP_EXIT_OK;
}

/* ---- convert ------------------------------------------------------------ */
static int convert(const struct app_options *o, const char *path)
{
    struct work work = begin_work(o, "converting");
    struct akunu_convert_params params = o->convert;
    params.type = app_out_type_name(o->quantize.out_type);
    params.override_kv = o->model.override_kv.values;
    params.ignore_keys = o->model.ignore_keys.values;
    params.progress = app_work_progress;
    params.log = app_work_log;
    params.user = &work;
    return end(&work, o->output.path, akunu_convert(path, o->output.path, &params));
}

int cli_convert(const struct app_options *o)
{
    char *path;
    if (!o->output.path)
        return app_fail_usage("no file to write is given: --outfile FILE");
    int code = app_model_path(o, o->model.name, &path);
    if (code != APP_EXIT_OK)
        return code;
    code = convert(o, path);
    free(path);
    return code;
}

/* ---- quantize ----------------------------------------------------------- */
/* A line of a dry run, "blk.0.attn_q.weight  [576, 576]  BF16 -> Q4_0, 0.2 MB", and what the type
 * is expected to cost if types were searched. */
static void on_tensor(const struct akunu_quantized_tensor *t, void *user)
{
    struct work *work = user;
    double elements = 1.0;
    for (unsigned i = 0; i < t->n_dims; i++)
        elements *= (double)t->shape[i];
    work->bytes += (double)t->bytes;
    work->elements += elements;
    app_output_format(&work->out, "%-32s [", t->name);
    for (unsigned i = 0; i < t->n_dims; i++)
        app_output_format(&work->out, "%s%llu", i > 0 ? ", " : "", (unsigned long long)t->shape[i]);
    app_output_format(&work->out, "] %s -> %s, %.2f MB", t->stored, t->type,
                      (double)t->bytes / 1e6);
    if (t->divergence != 0.0)
        app_output_format(&work->out, ", KL %.6f", t->divergence);
    app_output_text(&work->out, "\n");
    work->divergence += t->divergence;
}

static int dry_run(const struct app_options *o, const char *path,
                   struct akunu_quantize_params *params)
{
    struct work *work = params->user;
    work->out = app_output_stdout();
    params->report = on_tensor;
    enum akunu_status status = akunu_quantize(path, NULL, params);
    app_progress_end(&work->base.progress);
    if (status != AKUNU_OK)
        return app_fail_library();
    app_output_format(&work->out, "%.1f MB of tensors, %.2f bits per weight", work->bytes / 1e6,
                      work->elements > 0.0 ? 8.0 * work->bytes / work->elements : 0.0);
    if (o->prompt.file)
        app_output_format(&work->out, ", expected KL divergence %.4f", work->divergence);
    app_output_text(&work->out, "\n");
    return app_output_end(&work->out, APP_EXIT_OK);
}

/* The size that is asked for, and the text for it; free text->bytes. */
static int read_target(const struct app_options *o, struct akunu_quantize_params *params,
                       struct app_text *text)
{
    *text = (struct app_text){ NULL, 0 };
    params->target_bits = (double)o->quantize.target_bits;
    if (o->quantize.target_size && !app_parse_size(o->quantize.target_size, &params->target_bytes))
        return app_fail_usage("--target-size %s: expected a size as 3.5G, 350M or 350000000",
                              o->quantize.target_size);
    bool has_target = o->quantize.target_size || o->quantize.target_bits > 0.0f;
    if (has_target != (o->prompt.file != NULL))
        return app_fail_usage(has_target ?
                                  "--target-size and --target-bpw need a text: -f FILE" :
                                  "-f is the text for --target-size or --target-bpw, and there is "
                                  "neither");
    if (!has_target)
        return APP_EXIT_OK;
    int code = app_read_file("-f", o->prompt.file, text);
    params->text = text->bytes;
    params->n_text = text->n;
    return code;
}

static int quantize(const struct app_options *o, const char *path)
{
    struct work work = begin_work(o, "quantizing");
    struct akunu_quantize_params params;
    akunu_quantize_params_default(&params, sizeof params);
    if (o->quantize.type)
        params.type = o->quantize.type;
    params.tensor_types = o->quantize.tensor_types.values;
    params.output_type = o->quantize.output_type;
    params.embedding_type = o->quantize.embedding_type;
    params.importance = o->quantize.importance;
    params.pure = o->quantize.pure;
    params.requantize = o->quantize.requantize;
    params.overwrite = o->convert.overwrite;
    params.no_vocab = o->convert.no_vocab;
    params.override_kv = o->model.override_kv.values;
    params.ignore_keys = o->model.ignore_keys.values;
    params.n_threads = o->session.n_threads;
    params.progress = app_work_progress;
    params.log = app_work_log;
    params.user = &work;
    struct app_text text;
    int code = read_target(o, &params, &text);
    if (code == APP_EXIT_OK && o->quantize.dry_run)
        code = dry_run(o, path, &params);
    else if (code == APP_EXIT_OK)
        code = end(&work, o->output.path, akunu_quantize(path, o->output.path, &params));
    free(text.bytes);
    return code;
}

int cli_quantize(const struct app_options *o)
{
    char *path;
    if (!o->output.path && !o->quantize.dry_run)
        return app_fail_usage("no file to write is given: --outfile FILE, or --dry-run");
    int code = app_model_path(o, o->model.name, &path);
    if (code != APP_EXIT_OK)
        return code;
    code = quantize(o, path);
    free(path);
    return code;
}
