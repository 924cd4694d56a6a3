/* bench's rows as Markdown, CSV or JSON. */
#include "cli/bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"

void cli_bench_name(const struct cli_bench_test *t, char *out)
{
    char depth[32] = "";
    if (t->depth > 0)
        snprintf(depth, sizeof depth, "@d%lld", (long long)t->depth);
    snprintf(out, CLI_BENCH_NAME_BYTES, "%s%lld%s", t->n_prompt > 0 ? "pp" : "tg", (long long)(t->n_prompt + t->n_generate), depth);
}

double cli_bench_mean(const struct cli_bench_result *r)
{
    double sum = 0.0;
    for (size_t i = 0; i < r->n_samples; i++)
        sum += r->samples[i];
    return sum / (double)r->n_samples;
}

/* Of the sample: with n - 1; 0 for a single run. */
static double deviation(const struct cli_bench_result *r)
{
    double mean = cli_bench_mean(r), sum = 0.0;
    for (size_t i = 0; i < r->n_samples; i++)
        sum += (r->samples[i] - mean) * (r->samples[i] - mean);
    return r->n_samples > 1 ? sqrt(sum / (double)(r->n_samples - 1)) : 0.0;
}

static const char *kv_name(int type)
{
    return type == AKUNU_KV_F32 ? "f32" : "f16";
}

/* The file's name without its folder. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static uint64_t file_bytes(const struct cli_bench_context *c)
{
    struct akunu_file_info info = { .size = sizeof info };
    return akunu_file_get_info(akunu_model_file(c->loaded->model), &info) == AKUNU_OK ? info.bytes : 0;
}

static void json_row(struct cli_bench_context *c, const struct cli_bench_result *r, const char *name)
{
    const struct akunu_model_info *info = &c->loaded->info;
    json_t *samples = json_array();
    for (size_t i = 0; i < r->n_samples; i++)
        if (json_array_append_new(samples, json_real(r->samples[i])) != 0) {
            json_decref(samples);
            samples = NULL; /* json_pack then fails, and that is told */
            break;
        }
    json_t *row = json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:s, s:i, s:i, s:s, s:s, s:s}",
                            "test", name,
                            "n_prompt", (json_int_t)r->test.n_prompt,
                            "n_gen", (json_int_t)r->test.n_generate,
                            "n_depth", (json_int_t)r->test.depth,
                            "avg_ts", cli_bench_mean(r),
                            "stddev_ts", deviation(r),
                            "samples_ts", samples,
                            "roofline_percent", cli_json_real(r->roofline_percent),
                            "model", cli_json_text(c->loaded->path, strlen(c->loaded->path)),
                            "architecture", info->architecture,
                            "weight_type", info->weight_type,
                            "model_bytes", (json_int_t)file_bytes(c),
                            "n_parameters", (json_int_t)info->n_parameters,
                            "cpu", info->cpu,
                            "n_threads", (int)akunu_session_threads(c->loaded->session),
                            "n_batch", (int)akunu_session_batch(c->loaded->session),
                            "type_k", kv_name(c->options->k_type),
                            "type_v", kv_name(c->options->v_type),
                            "version", akunu_version());
    cli_output_text(&c->out, c->n_rows ? ",\n " : "");
    cli_json_print(&c->out, row);
}

/* A percentage, or `unknown`. */
static const char *percent(double value, const char *unknown, char *text, size_t capacity)
{
    if (isnan(value))
        return unknown;
    snprintf(text, capacity, "%.1f", value);
    return text;
}

void cli_bench_begin(struct cli_bench_context *c)
{
    if (c->json)
        cli_output_text(&c->out, "[");
    else if (c->options->form == CLI_FORM_CSV)
        cli_output_text(&c->out, "test,n_prompt,n_gen,n_depth,avg_ts,stddev_ts,roofline_percent,weight_type,cpu,n_threads\n");
    else
        cli_output_text(&c->out, "| model | size | parameters | cpu | threads | test | tok/s | of the limit |\n"
                                 "|---|---:|---:|---|---:|---|---:|---:|\n");
}

void cli_bench_row(struct cli_bench_context *c, const struct cli_bench_result *r)
{
    const struct akunu_model_info *info = &c->loaded->info;
    unsigned threads = akunu_session_threads(c->loaded->session);
    char name[CLI_BENCH_NAME_BYTES], limit[32];
    cli_bench_name(&r->test, name);
    if (c->json)
        json_row(c, r, name);
    else if (c->options->form == CLI_FORM_CSV)
        cli_output_format(&c->out, "%s,%lld,%lld,%lld,%.6g,%.6g,%s,%s,%s,%u\n", name, (long long)r->test.n_prompt,
                          (long long)r->test.n_generate, (long long)r->test.depth, cli_bench_mean(r), deviation(r),
                          percent(r->roofline_percent, "", limit, sizeof limit), info->weight_type, info->cpu, threads);
    else
        cli_output_format(&c->out, "| %s | %.1f MB | %.1f M | %s | %u | %s | %.2f ± %.2f | %s%s |\n", base_name(c->loaded->path),
                          (double)file_bytes(c) / 1e6, (double)info->n_parameters / 1e6, info->cpu, threads, name,
                          cli_bench_mean(r), deviation(r), percent(r->roofline_percent, "-", limit, sizeof limit),
                          isnan(r->roofline_percent) ? "" : " %");
    c->n_rows++;
}

void cli_bench_end(struct cli_bench_context *c)
{
    if (c->json)
        cli_output_text(&c->out, "]\n");
}
