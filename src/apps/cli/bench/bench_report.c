/* Prints bench's rows as Markdown, CSV or JSON. */
#include "apps/cli/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/output.h"
#include "apps/common/load.h"

void cli_bench_name(const struct cli_bench_test *t, char *out)
{
    char depth[32] = "", sequences[32] = "";
    if (t->depth > 0)
        snprintf(depth, sizeof depth, "@d%lld", (long long)t->depth);
    if (t->n_sequences > 1)
        snprintf(sequences, sizeof sequences, "@np%lld", (long long)t->n_sequences);
    snprintf(out, CLI_BENCH_NAME_BYTES, "%s%lld%s%s", t->n_prompt > 0 ? "pp" : "tg",
             (long long)(t->n_prompt + t->n_generate), depth, sequences);
}

/* ---- Statistics --------------------------------------------------------- */
static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cli_bench_median(const double *samples, size_t n)
{
    double *sorted = malloc(n * sizeof *sorted), median;
    if (!sorted)
        return NAN;
    memcpy(sorted, samples, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_doubles);
    median = 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]);
    free(sorted);
    return median;
}

static double mean(const struct cli_bench_result *r)
{
    double sum = 0.0;
    for (size_t i = 0; i < r->n_samples; i++)
        sum += r->samples[i];
    return sum / (double)r->n_samples;
}

/* Sample standard deviation (n - 1); 0 for a single run. */
static double deviation(const struct cli_bench_result *r)
{
    double middle = mean(r), sum = 0.0;
    for (size_t i = 0; i < r->n_samples; i++)
        sum += (r->samples[i] - middle) * (r->samples[i] - middle);
    return r->n_samples > 1 ? sqrt(sum / (double)(r->n_samples - 1)) : 0.0;
}

/* ---- Fields of every row ------------------------------------------------ */
static uint64_t file_bytes(const struct cli_bench_context *c)
{
    struct akunu_file_info info;
    return akunu_file_get_info(akunu_model_file(c->loaded->model), &info, sizeof info) == AKUNU_OK ?
               info.bytes :
               0;
}

/* A percentage, or `unknown`. */
static const char *percent(double value, const char *unknown, char *text, size_t capacity)
{
    if (isnan(value))
        return unknown;
    snprintf(text, capacity, "%.1f", value);
    return text;
}

/* Prints a CSV field in quotes; its own quotes are doubled. */
static void csv_text(struct app_output *out, const char *text)
{
    app_output_text(out, "\"");
    for (; *text; text++)
        app_output_bytes(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    app_output_text(out, "\"");
}

/* Prints a Markdown cell; a bar would end it. */
static void md_text(struct app_output *out, const char *text)
{
    for (; *text; text++)
        app_output_bytes(out, *text == '|' ? "\\|" : text, *text == '|' ? 2 : 1);
}

/* ---- JSON --------------------------------------------------------------- */
static json_t *json_samples(const double *samples, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        if (json_array_append_new(array, json_real(samples[i])) != 0) {
            json_decref(array);
            return NULL; /* json_pack then fails, which is reported */
        }
    return array;
}

static json_t *json_common(const struct cli_bench_context *c)
{
    const struct akunu_model_info *info = &c->loaded->info;
    struct akunu_chip chip;
    if (akunu_get_chip(&chip, sizeof chip) != AKUNU_OK)
        chip.name[0] = '\0';
    return json_pack("{s:o, s:s, s:s, s:I, s:I, s:s, s:s, s:i, s:i, s:s, s:s, s:s}", "model",
                     app_json_text(c->loaded->path, strlen(c->loaded->path)), "architecture",
                     info->architecture, "weight_type", info->weight_type, "model_bytes",
                     (json_int_t)file_bytes(c), "n_parameters", (json_int_t)info->n_parameters,
                     "cpu", info->cpu, "chip", chip.name, "n_threads",
                     (int)akunu_session_threads(c->loaded->session), "n_batch",
                     (int)akunu_session_batch(c->loaded->session), "type_k",
                     app_kv_type_name(c->options->session.k_type), "type_v",
                     app_kv_type_name(c->options->session.v_type), "version", akunu_version());
}

/* Adds the model's fields to `row`, prints it and releases it. */
static void json_print(struct cli_bench_context *c, json_t *row)
{
    json_t *common = json_common(c);
    if (row && (!common || json_object_update(row, common) != 0)) {
        json_decref(row);
        row = NULL;
    }
    json_decref(common);
    bool lines = c->options->output.form == APP_FORM_JSONL;
    app_output_text(&c->out, c->n_rows && !lines ? ",\n " : "");
    app_json_print(&c->out, row);
    app_output_text(&c->out, lines ? "\n" : "");
}

static void json_row(struct cli_bench_context *c, const struct cli_bench_result *r,
                     const char *name)
{
    json_t *row =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o}", "test", name, "n_prompt",
                  (json_int_t)r->test.n_prompt, "n_gen", (json_int_t)r->test.n_generate, "n_depth",
                  (json_int_t)r->test.depth, "n_parallel", (json_int_t)r->test.n_sequences,
                  "avg_ts", mean(r), "stddev_ts", deviation(r), "median_ts",
                  app_json_real(cli_bench_median(r->samples, r->n_samples)), "samples_ts",
                  json_samples(r->samples, r->n_samples), "roofline_percent",
                  app_json_real(r->roofline_percent));
    if (row && r->breakdown &&
        json_object_set_new(row, "breakdown", cli_bench_breakdown_json(r->breakdown)) != 0) {
        json_decref(row);
        row = NULL;
    }
    json_print(c, row);
}

static void json_load_row(struct cli_bench_context *c, const struct cli_bench_load *r,
                          const char *name)
{
    json_print(
        c, json_pack("{s:s, s:i, s:i, s:i, s:i, s:n, s:n, s:n, s:[], s:n, s:f, s:f, s:o, s:o, s:o}",
                     "test", name, "n_prompt", 0, "n_gen", 0, "n_depth", 0, "n_parallel", 1,
                     "avg_ts", "stddev_ts", "median_ts", "samples_ts", "roofline_percent",
                     "ready_seconds", cli_bench_median(r->ready, r->n_samples),
                     "first_token_seconds", cli_bench_median(r->first, r->n_samples),
                     "samples_ready", json_samples(r->ready, r->n_samples), "samples_first_token",
                     json_samples(r->first, r->n_samples), "page_cache_kept",
                     r->cold ? json_real(r->kept) : json_null()));
}

/* ---- Rows --------------------------------------------------------------- */
void cli_bench_begin(struct cli_bench_context *c)
{
    if (c->json) {
        app_output_text(&c->out, c->options->output.form == APP_FORM_JSONL ? "" : "[");
    } else if (c->options->output.form == APP_FORM_CSV) {
        app_output_text(&c->out, "test,n_prompt,n_gen,n_depth,avg_ts,stddev_ts,roofline_percent,"
                                 "weight_type,cpu,n_threads,median_ts,"
                                 "n_parallel,n_batch,ready_seconds,first_token_seconds,model\n");
    } else {
        app_print_machine(&c->out);
        app_output_text(&c->out, "\n\n| model | size | parameters | cpu | threads | batch | test | "
                                 "tok/s | of the limit |\n"
                                 "|---|---:|---:|---|---:|---:|---|---:|---:|\n");
    }
}

/* The columns before the test. */
static void md_model(struct cli_bench_context *c)
{
    const struct akunu_model_info *info = &c->loaded->info;
    app_output_text(&c->out, "| ");
    md_text(&c->out, app_base_name(c->loaded->path));
    app_output_format(&c->out, " | %.1f MB | %.1f M | %s | %u | %u | ", (double)file_bytes(c) / 1e6,
                      (double)info->n_parameters / 1e6, info->cpu,
                      akunu_session_threads(c->loaded->session),
                      (unsigned)akunu_session_batch(c->loaded->session));
}

void cli_bench_row(struct cli_bench_context *c, const struct cli_bench_result *r)
{
    const struct akunu_model_info *info = &c->loaded->info;
    double median = cli_bench_median(r->samples, r->n_samples);
    char name[CLI_BENCH_NAME_BYTES], limit[32];
    cli_bench_name(&r->test, name);
    if (c->json) {
        json_row(c, r, name);
    } else if (c->options->output.form == APP_FORM_CSV) {
        app_output_format(
            &c->out, "%s,%lld,%lld,%lld,%.6g,%.6g,%s,%s,%s,%u,%.6g,%lld,%u,,,", name,
            (long long)r->test.n_prompt, (long long)r->test.n_generate, (long long)r->test.depth,
            mean(r), deviation(r), percent(r->roofline_percent, "", limit, sizeof limit),
            info->weight_type, info->cpu, akunu_session_threads(c->loaded->session), median,
            (long long)r->test.n_sequences, (unsigned)akunu_session_batch(c->loaded->session));
        csv_text(&c->out, c->loaded->path);
        app_output_text(&c->out, "\n");
    } else {
        md_model(c);
        app_output_format(&c->out, "%s | %.2f ± %.2f | %s%s |\n", name, median, deviation(r),
                          percent(r->roofline_percent, "-", limit, sizeof limit),
                          isnan(r->roofline_percent) ? "" : " %");
        if (r->breakdown)
            cli_bench_breakdown_table(&c->tables, name, r->breakdown);
    }
    c->n_rows++;
}

void cli_bench_load_row(struct cli_bench_context *c, const struct cli_bench_load *r)
{
    const struct akunu_model_info *info = &c->loaded->info;
    const char *name = r->cold ? "load-cold" : "load-warm";
    double ready = cli_bench_median(r->ready, r->n_samples),
           first = cli_bench_median(r->first, r->n_samples);
    if (c->json) {
        json_load_row(c, r, name);
    } else if (c->options->output.form == APP_FORM_CSV) {
        app_output_format(&c->out, "%s,0,0,0,,,,%s,%s,%u,,1,%u,%.6g,%.6g,", name, info->weight_type,
                          info->cpu, akunu_session_threads(c->loaded->session),
                          (unsigned)akunu_session_batch(c->loaded->session), ready, first);
        csv_text(&c->out, c->loaded->path);
        app_output_text(&c->out, "\n");
    } else {
        md_model(c);
        app_output_format(&c->out, "%s | %.3f s, first token %.3f s | - |\n", name, ready, first);
    }
    c->n_rows++;
}

void cli_bench_end(struct cli_bench_context *c)
{
    if (c->json && c->options->output.form != APP_FORM_JSONL)
        app_output_text(&c->out, "]\n");
}
