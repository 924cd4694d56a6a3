/* bench: how fast prompts are read and tokens are generated.
 *
 * Token ids are arbitrary but always the same: speed does not depend on them.
 * Each test runs once untimed before its timed repetitions. Behind a depth the
 * context is filled once and rewound to it before every run. */
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/progress.h"

struct bench {
    struct cli_loaded *loaded;
    struct akunu_roofline roofline; /* zeros where it could not be measured */
    akunu_token *ids;               /* enough for the longest test */
};

static bool on_cancel(void *user)
{
    (void)user;
    return cli_interrupted();
}

static int prefill(struct bench *b, const akunu_token *ids, int64_t n)
{
    size_t last;
    if (n > 0 && akunu_prefill(b->loaded->session, b->loaded->sequence, ids, (size_t)n, on_cancel, NULL, &last) != AKUNU_OK)
        return cli_library_failure();
    return CLI_EXIT_OK;
}

static int decode(struct bench *b, const akunu_token *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        struct akunu_batch_token token = { .token = ids[i], .sequence = b->loaded->sequence, .logits = true };
        if (akunu_decode(b->loaded->session, &token, 1) != AKUNU_OK)
            return cli_library_failure();
        if (cli_interrupted())
            return CLI_EXIT_INTERRUPTED;
    }
    return CLI_EXIT_OK;
}

/* One run of at most `limit` generated tokens from the test's depth; *seconds is what it took. */
static int run_once(struct bench *b, const struct cli_bench_test *test, int64_t limit, double *seconds)
{
    if (akunu_sequence_rewind(b->loaded->session, b->loaded->sequence, (uint32_t)test->depth) != AKUNU_OK)
        return cli_library_failure();
    const akunu_token *ids = b->ids + test->depth;
    int64_t n_generate = test->n_generate < limit ? test->n_generate : limit;
    double started = cli_seconds();
    int code = test->n_prompt > 0 ? prefill(b, ids, test->n_prompt) : decode(b, ids, n_generate);
    *seconds = cli_seconds() - started;
    return code;
}

static bool is_float_type(const char *type)
{
    return type[0] == 'F' || type[0] == 'B'; /* F32, F16, BF16 */
}

/* Bytes of keys and values that one token of attention reads at the mean
 * position of a generating test. */
static double kv_bytes(const struct cli_options *o, const struct akunu_model_info *info, const struct cli_bench_test *test)
{
    double position = (double)test->depth + ((double)test->n_generate + 1.0) / 2.0;
    double k = o->k_type == AKUNU_KV_F32 ? 4.0 : 2.0, v = o->v_type == AKUNU_KV_F32 ? 4.0 : 2.0;
    return position * (double)info->n_layers * (double)info->n_kv_heads * (double)info->head_dim * (k + v);
}

/* How near `ts` tokens a second come to what the machine allows: in decode the
 * bytes that a token needs against the bandwidth of reading, in prefill two
 * operations a parameter against the rate of int8 products. */
static double roofline_percent(const struct bench *b, const struct cli_options *o, const struct cli_bench_test *test, double ts)
{
    const struct akunu_model_info *info = &b->loaded->info;
    double limit = NAN;
    if (test->n_prompt > 0 && info->matrix_parameters > 0 && !is_float_type(info->weight_type))
        limit = b->roofline.int8_ops_per_second / (2.0 * (double)info->matrix_parameters);
    else if (test->n_prompt == 0 && info->token_weight_bytes > 0)
        limit = b->roofline.read_bytes_per_second / ((double)info->token_weight_bytes + kv_bytes(o, info, test));
    return limit > 0.0 ? 100.0 * ts / limit : NAN;
}

static int run_test(struct bench *b, const struct cli_bench_test *test, struct cli_bench_context *report)
{
    enum { WARM_UP_TOKENS = 4 };
    const struct cli_options *o = report->options;
    char name[CLI_BENCH_NAME_BYTES];
    double *samples = malloc((size_t)o->repetitions * sizeof *samples);
    double seconds;
    if (!samples)
        return cli_no_memory();
    struct cli_progress progress = cli_progress_begin();
    cli_bench_name(test, name);

    int code = akunu_sequence_rewind(b->loaded->session, b->loaded->sequence, 0) == AKUNU_OK ? CLI_EXIT_OK : cli_library_failure();
    if (code == CLI_EXIT_OK)
        code = prefill(b, b->ids, test->depth);
    if (code == CLI_EXIT_OK)
        code = run_once(b, test, WARM_UP_TOKENS, &seconds);
    for (int64_t i = 0; code == CLI_EXIT_OK && i < o->repetitions; i++) {
        cli_progress_show(&progress, name, (double)i / (double)o->repetitions);
        code = run_once(b, test, INT64_MAX, &seconds);
        samples[i] = (double)(test->n_prompt + test->n_generate) / fmax(seconds, 1e-9);
    }
    cli_progress_end(&progress);
    if (code == CLI_EXIT_OK) {
        struct cli_bench_result result = { .test = *test, .samples = samples, .n_samples = (size_t)o->repetitions };
        result.roofline_percent = roofline_percent(b, o, test, cli_bench_mean(&result));
        cli_bench_row(report, &result);
        if (!cli_output_flush(&report->out))
            code = CLI_EXIT_FAILURE;
    }
    free(samples);
    return code;
}

/* Calls `test` for every depth with every prompt length, then every number of
 * generated tokens, leaving out zeros. */
static int each_test(const struct cli_options *o, int (*visit)(const struct cli_bench_test *test, void *user), void *user)
{
    for (size_t d = 0; d < o->depth.n; d++) {
        for (size_t i = 0; i < o->n_prompt.n + o->n_generate.n; i++) {
            bool is_prompt = i < o->n_prompt.n;
            struct cli_bench_test test = { .depth = o->depth.values[d] };
            if (is_prompt)
                test.n_prompt = o->n_prompt.values[i];
            else
                test.n_generate = o->n_generate.values[i - o->n_prompt.n];
            int code = test.n_prompt + test.n_generate > 0 ? visit(&test, user) : CLI_EXIT_OK;
            if (code != CLI_EXIT_OK)
                return code;
        }
    }
    return CLI_EXIT_OK;
}

static int longest(const struct cli_bench_test *test, void *user)
{
    int64_t *n = user, length = test->depth + test->n_prompt + test->n_generate;
    *n = length > *n ? length : *n;
    return CLI_EXIT_OK;
}

/* A fixed sequence of ids (Knuth's MMIX generator, its upper bits). */
static int fill_ids(struct bench *b, int64_t n)
{
    uint64_t state = 1;
    b->ids = malloc((size_t)n * sizeof *b->ids);
    if (!b->ids)
        return cli_no_memory();
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        b->ids[i] = (akunu_token)((state >> 33) % b->loaded->info.vocab_size);
    }
    return CLI_EXIT_OK;
}

struct visit {
    struct bench *bench;
    struct cli_bench_context *report;
};

static int visit_test(const struct cli_bench_test *test, void *user)
{
    struct visit *visit = user;
    return run_test(visit->bench, test, visit->report);
}

static int all_tests(struct bench *b, struct cli_bench_context *report)
{
    struct visit visit = { .bench = b, .report = report };
    b->roofline = (struct akunu_roofline){ .size = sizeof b->roofline };
    if (akunu_measure_roofline(akunu_session_threads(b->loaded->session), &b->roofline) != AKUNU_OK) {
        cli_warn("the machine's limits could not be measured: %s", akunu_last_error());
        b->roofline = (struct akunu_roofline){ .size = sizeof b->roofline };
    }
    cli_bench_begin(report);
    int code = each_test(report->options, visit_test, &visit);
    if (code == CLI_EXIT_OK)
        cli_bench_end(report);
    return code;
}

int cli_bench(const struct cli_options *o)
{
    struct cli_loaded loaded = { .sequence = -1 };
    struct bench b = { .loaded = &loaded };
    struct cli_bench_context report = { .options = o, .loaded = &loaded, .out = cli_output_stdout() };
    int64_t n = 0;
    report.json = o->json || o->form == CLI_FORM_JSON;
    each_test(o, longest, &n);
    if (n == 0)
        return cli_usage("nothing to measure: -p and -n are both 0");
    int code = cli_load_model(o, &loaded);
    if (code == CLI_EXIT_OK && o->context > 0 && n > o->context)
        code = cli_failure("the longest test has %lld tokens and the context holds %lld (-c)", (long long)n, (long long)o->context);
    if (code == CLI_EXIT_OK)
        code = cli_open_session(o, &loaded, (uint32_t)(o->context ? o->context : n), (uint32_t)o->batch);
    if (code == CLI_EXIT_OK)
        code = fill_ids(&b, n);
    if (code == CLI_EXIT_OK)
        code = all_tests(&b, &report);
    free(b.ids);
    cli_unload(&loaded);
    return cli_output_end(&report.out, code);
}
