/* What bench measured, and its printing. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "akunu/akunu.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"

/* One test: a prompt, or tokens one by one, behind `depth` tokens. */
struct cli_bench_test {
    int64_t n_prompt, n_generate; /* one of them is 0 */
    int64_t depth;
};

struct cli_bench_result {
    struct cli_bench_test test;
    const double *samples; /* tokens a second, one a repetition */
    size_t n_samples;
    double roofline_percent; /* of what the machine allows; NaN where unknown */
};

/* The test's name: "pp512", "tg16@d4096". `out` holds CLI_BENCH_NAME_BYTES. */
enum { CLI_BENCH_NAME_BYTES = 80 };
void cli_bench_name(const struct cli_bench_test *test, char *out);

double cli_bench_mean(const struct cli_bench_result *result);

/* What a row says beside the result. */
struct cli_bench_context {
    const struct cli_options *options;
    const struct cli_loaded *loaded;
    struct cli_output out;
    bool json;
    size_t n_rows;
};

/* Call begin, row for each result as it comes, end. Errors stay in context->out. */
void cli_bench_begin(struct cli_bench_context *context);
void cli_bench_row(struct cli_bench_context *context, const struct cli_bench_result *result);
void cli_bench_end(struct cli_bench_context *context);

#endif
