/* compress: a model as a folder of NumPy arrays with matrices of 8, 4 or 3 bits. */
#include <stdio.h>
#include <stdlib.h>

#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/options.h"

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

/* ---- What came out ------------------------------------------------------ */
static void report_measurement(const struct akunu_compress_result *r)
{
    if (r->n_positions > 0)
        app_aside("KL divergence from the source %.4f, equal best tokens %.1f %% (%llu positions)",
                  r->divergence, 100.0 * r->agreement, (unsigned long long)r->n_positions);
}

static void report_sizes(const struct akunu_compress_result *r)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } all[] = { { "INT8", r->int8_bytes }, { "INT4", r->int4_bytes }, { "INT3", r->int3_bytes } };
    char line[200];
    int n = 0;
    uint64_t largest = 0, least = UINT64_MAX;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].bytes == 0)
            continue;
        n += snprintf(line + n, sizeof line - (size_t)n, "%s %.1f MB, ", all[i].name,
                      megabytes(all[i].bytes));
        largest = all[i].bytes > largest ? all[i].bytes : largest;
        least = all[i].bytes < least ? all[i].bytes : least;
    }
    if (least < largest)
        app_aside("%ssaved %.1f MB", line, megabytes(largest - least));
}

static int report_result(const struct app_options *o, const struct app_work *work,
                         const struct akunu_compress_result *r)
{
    uint64_t matrices = o->quantize.int8 ? r->int8_bytes :
                        o->quantize.int4 ? r->int4_bytes :
                                           r->int3_bytes;
    if (r->n_resumed > 0)
        app_aside("%llu of %llu matrices were there from an interrupted run",
                  (unsigned long long)r->n_resumed, (unsigned long long)r->n_matrices);
    app_aside("%s: %.1f MB of matrices and %.1f MB of floats, from %.1f MB, in %.1f s",
              o->output.path, megabytes(matrices), megabytes(r->plain_bytes),
              megabytes(r->source_bytes), app_seconds() - work->progress.started);
    if (r->min_cosine > 0.0)
        app_aside("least cosine of a matrix with the source's: %.6f", r->min_cosine);
    report_sizes(r);
    report_measurement(r);
    return APP_EXIT_OK;
}

/* Limits that are not met are no wrong use, but a result. */
static int fail_limits(const struct akunu_compress_result *r)
{
    int code = app_fail_library();
    if (code == APP_EXIT_INTERRUPTED)
        app_aside("the same command goes on from here");
    return r->n_positions > 0 && code == APP_EXIT_USAGE ? APP_EXIT_FAILURE : code;
}

/* ---- The command -------------------------------------------------------- */
static int compress(const struct app_options *o, const char *path, const struct app_text *text)
{
    struct app_work work = { app_progress_begin(), "compressing", o->output.verbose };
    struct akunu_compress_result result = { 0 };
    struct akunu_compress_params params;
    akunu_compress_params_default(&params, sizeof params);
    params.encoding = o->quantize.int8 ? "int8" : o->quantize.int4 ? "int4" : "int3";
    params.group = o->quantize.group_size;
    params.importance = o->quantize.importance;
    params.awq = o->quantize.awq;
    params.text = text->bytes;
    params.n_text = text->n;
    if (o->quantize.max_kl >= 0.0f)
        params.max_divergence = (double)o->quantize.max_kl;
    if (o->quantize.min_top1 >= 0.0f)
        params.min_agreement = (double)o->quantize.min_top1 / 100.0;
    params.requantize = o->quantize.requantize;
    params.overwrite = o->convert.overwrite;
    params.n_threads = o->session.n_threads;
    params.progress = app_work_progress;
    params.log = app_work_log;
    params.user = &work;
    enum akunu_status status =
        akunu_compress(path, o->output.path, &params, &result, sizeof result);
    app_progress_end(&work.progress);
    return status == AKUNU_OK ? report_result(o, &work, &result) : fail_limits(&result);
}

static int check_options(const struct app_options *o)
{
    if (!o->output.path)
        return app_fail_usage("no folder to write is given: --outdir DIR");
    if (!o->quantize.int8 && !o->quantize.int4 && !o->quantize.int3)
        return app_fail_usage("no encoding is given: --int8, --int4 or --int3");
    if (o->quantize.int3 && !o->prompt.file)
        return app_fail_usage("--int3 needs a text, on which the result is compared with the "
                              "source: -f FILE");
    if (!o->prompt.file && (o->quantize.max_kl >= 0.0f || o->quantize.min_top1 >= 0.0f))
        return app_fail_usage("--max-kl and --min-top1 need a text: -f FILE");
    return APP_EXIT_OK;
}

int cli_compress(const struct app_options *o)
{
    char *path;
    struct app_text text = { NULL, 0 };
    int code = check_options(o);
    if (code == APP_EXIT_OK && o->prompt.file)
        code = app_read_file("-f", o->prompt.file, &text);
    if (code == APP_EXIT_OK && (code = app_model_path(o, o->model.name, &path)) == APP_EXIT_OK) {
        code = compress(o, path, &text);
        free(path);
    }
    free(text.bytes);
    return code;
}
