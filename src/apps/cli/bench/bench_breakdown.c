/* bench --breakdown: where the time of a pass goes, by kind of operation. */
#include <math.h>
#include <stdlib.h>

#include "apps/cli/bench/bench.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

static double all_seconds(const struct akunu_time *t)
{
    return t->seconds + t->wait_seconds;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = all_seconds(a), y = all_seconds(b);
    return (x < y) - (x > y);
}

int cli_bench_break_down(struct akunu_session *session, struct cli_bench_breakdown *out)
{
    out->n = 0;
    out->sum = (struct akunu_time){ .name = "all" };
    for (size_t i = 0; out->n < CLI_BENCH_TIMES_MAX; i++) {
        struct akunu_time *row = &out->rows[out->n];
        enum akunu_status status = akunu_session_get_time(session, i, row, sizeof *row);
        if (status == AKUNU_ERROR_ARGUMENT)
            break;
        if (status != AKUNU_OK)
            return app_fail_library();
        if (row->calls == 0)
            continue;
        out->sum.calls += row->calls;
        out->sum.seconds += row->seconds;
        out->sum.wait_seconds += row->wait_seconds;
        out->sum.bytes += row->bytes;
        out->sum.ops += row->ops;
        out->n++;
    }
    qsort(out->rows, out->n, sizeof *out->rows, compare_seconds);
    return APP_EXIT_OK;
}

/* Percentage of the roofline: of the bound that takes longer. */
static double percent(const struct cli_bench_breakdown *b, const struct akunu_time *t)
{
    double read = t->bytes / b->roof.read_bytes_per_second,
           products = t->ops / b->roof.int8_ops_per_second;
    double bound = fmax(isfinite(read) ? read : 0.0, isfinite(products) ? products : 0.0);
    return bound > 0.0 && t->seconds > 0.0 ? 100.0 * bound / t->seconds : NAN;
}

/* ---- Tables ------------------------------------------------------------- */
static void print_row(struct app_output *out, const struct cli_bench_breakdown *b,
                      const struct akunu_time *t)
{
    double limit = percent(b, t);
    app_output_format(out, "| %-23s | %8.3f | %5.1f | %8.3f | %8.2f | %8.2f |", t->name,
                      1e3 * t->seconds / b->passes, 100.0 * t->seconds / all_seconds(&b->sum),
                      1e3 * t->wait_seconds / b->passes, 1e-6 * t->bytes / b->passes,
                      1e-6 * t->ops / b->passes);
    if (isnan(limit))
        app_output_text(out, "            |\n");
    else
        app_output_format(out, " %10.1f |\n", limit);
}

void cli_bench_breakdown_table(struct app_output *out, const char *name,
                               const struct cli_bench_breakdown *b)
{
    app_output_format(out, "\n%s, per pass: %.3f ms\n\n", name,
                      1e3 * all_seconds(&b->sum) / b->passes);
    app_output_text(out, "| operation               |       ms |     % |  wait ms |       MB |     "
                         "MOPs | % of limit |\n|---|---:|---:|---:|---:|---:|---:|\n");
    for (size_t i = 0; i < b->n; i++)
        print_row(out, b, &b->rows[i]);
    print_row(out, b, &b->sum);
}

/* ---- JSON --------------------------------------------------------------- */
json_t *cli_bench_breakdown_json(const struct cli_bench_breakdown *b)
{
    json_t *array = json_array();
    for (size_t i = 0; i < b->n; i++) {
        const struct akunu_time *t = &b->rows[i];
        json_t *row = json_pack("{s:s, s:f, s:f, s:f, s:f, s:o}", "operation", t->name, "seconds",
                                t->seconds / b->passes, "wait_seconds", t->wait_seconds / b->passes,
                                "bytes", t->bytes / b->passes, "ops", t->ops / b->passes,
                                "roofline_percent", app_json_real(percent(b, t)));
        if (json_array_append_new(array, row) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}
