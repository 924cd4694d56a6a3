/* What the files of the bench command share: its tests, as the flags name them, and their results.
 * bench.c and bench_load.c measure, bench_breakdown.c divides a pass's time among operations,
 * bench_report.c prints, bench_tune.c writes chip profiles. Private to these files. */
#ifndef AK_APPS_CLI_BENCH_BENCH_H
#define AK_APPS_CLI_BENCH_BENCH_H

#include "akunu/akunu.h"
#include "apps/common/load.h"
#include "apps/common/options.h"
#include "apps/common/output.h"

/* One test: a prompt, or tokens generated one by one for each of several sequences, after `depth`
 * tokens. */
struct cli_bench_test {
    int64_t n_prompt, n_generate; /* tokens; one of them is 0 */
    int64_t depth;
    int64_t n_sequences; /* 1 for a prompt */
};

/* Times of passes by kind of operation, the longest first. */
enum { CLI_BENCH_TIMES_MAX = 64 };
struct cli_bench_breakdown {
    struct akunu_time rows[CLI_BENCH_TIMES_MAX], sum; /* over all passes */
    size_t n;
    double passes;
    struct akunu_roofline roof;
};

struct cli_bench_result {
    struct cli_bench_test test;
    const double *samples; /* [n_samples]: tokens per second of all sequences, one per repetition */
    size_t n_samples;
    double roofline_percent;                     /* of the roofline; NaN: unknown */
    const struct cli_bench_breakdown *breakdown; /* NULL: not asked for */
};

/* Times from the start of loading; n_samples each. */
struct cli_bench_load {
    bool cold;           /* the files were not in the page cache */
    const double *ready; /* seconds until the session is ready */
    const double *first; /* seconds until the first token */
    size_t n_samples;
    double kept; /* cold: share of the files that stayed in the page cache, 0 … 1 */
};

/* The test's name: "pp512", "tg16@d4096", "tg16@d4096@np8". `out` holds CLI_BENCH_NAME_BYTES. */
enum { CLI_BENCH_NAME_BYTES = 112 };
void cli_bench_name(const struct cli_bench_test *test, char *out);

double cli_bench_median(const double *samples, size_t n);

/* What rows show besides the result. */
struct cli_bench_context {
    const struct app_options *options;
    const struct app_model_session *loaded; /* may have no session for a row of loading */
    struct app_output out;
    bool json;
    size_t n_rows;
    struct app_output tables; /* of the rows' breakdowns, printed after the rows */
};

/* Call begin, then row per result, then end. Errors are kept in context->out. */
void cli_bench_begin(struct cli_bench_context *context);
void cli_bench_row(struct cli_bench_context *context, const struct cli_bench_result *result);
void cli_bench_load_row(struct cli_bench_context *context, const struct cli_bench_load *result);
void cli_bench_end(struct cli_bench_context *context);

/* bench_load.c: times loading options->model.name, cold and warm, and reports both. */
int cli_bench_loading(const struct app_options *options, struct cli_bench_context *report);

/* bench_breakdown.c: reads a session's times into rows, n and sum, and shows them: as a table, or
 * as an array (NULL: out of memory). */
int cli_bench_break_down(struct akunu_session *session, struct cli_bench_breakdown *out);
void cli_bench_breakdown_table(struct app_output *out, const char *name,
                               const struct cli_bench_breakdown *b);
json_t *cli_bench_breakdown_json(const struct cli_bench_breakdown *b);

/* bench_tune.c: --tune. */
int cli_bench_tune(const struct app_options *options);

#endif
