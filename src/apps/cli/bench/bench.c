/* bench: speed of prompts, of generation and of loading models.
 *
 * Token ids are arbitrary but always the same, because speed does not depend on them. Each test
 * runs once untimed before its timed repetitions. With a depth, the context is filled once and
 * rewound to it before every run; sequences that generate together have a context each. The
 * roofline is measured right before and after each test, because on many machines it changes from
 * minute to minute. */
#include "apps/cli/bench/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"
#include "apps/common/options.h"

struct bench {
    struct app_model_session *loaded;
    struct cli_bench_context *report;
    akunu_token *ids;               /* capacity: the longest test */
    akunu_sequence *sequences;      /* [max_sequences]; the first is the session's own */
    struct akunu_batch_token *step; /* [max_sequences]: one token per sequence */
    int64_t n_sequences;            /* sequences that exist now */
    double kv_token_bytes;          /* bytes of keys and values per token, all layers */
};

static bool bench_is_cancelled(void *user)
{
    (void)user;
    return app_is_interrupted();
}

static int prefill(struct bench *b, akunu_sequence sequence, const akunu_token *ids, int64_t n)
{
    size_t last;
    if (n > 0 &&
        akunu_session_prefill(b->loaded->session, sequence, &(struct akunu_ids){ ids, (size_t)n },
                              bench_is_cancelled, NULL, &last) != AKUNU_OK)
        return app_fail_library();
    return APP_EXIT_OK;
}

/* Runs n passes of one token per sequence. */
static int time_decode(struct bench *b, const akunu_token *ids, int64_t n, int64_t n_sequences)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t s = 0; s < n_sequences; s++)
            b->step[s] = (struct akunu_batch_token){ .token = ids[i],
                                                     .sequence = b->sequences[s],
                                                     .logits = true };
        if (akunu_session_decode(b->loaded->session, b->step, (size_t)n_sequences) != AKUNU_OK)
            return app_fail_library();
        if (app_is_interrupted())
            return APP_EXIT_INTERRUPTED;
    }
    return APP_EXIT_OK;
}

static int rewind_all(struct bench *b, int64_t length)
{
    for (int64_t s = 0; s < b->n_sequences; s++)
        if (akunu_sequence_rewind(b->loaded->session, b->sequences[s], (uint32_t)length) !=
            AKUNU_OK)
            return app_fail_library();
    return APP_EXIT_OK;
}

/* Opens as many sequences as the test has, and fills each to the test's depth. */
static int fill_context(struct bench *b, const struct cli_bench_test *test)
{
    while (b->n_sequences > test->n_sequences)
        akunu_sequence_free(b->loaded->session, b->sequences[--b->n_sequences]);
    int code = rewind_all(b, 0);
    while (code == APP_EXIT_OK && b->n_sequences < test->n_sequences) {
        akunu_sequence sequence = akunu_sequence_new(b->loaded->session);
        if (sequence < 0)
            return app_fail_library();
        b->sequences[b->n_sequences++] = sequence;
    }
    for (int64_t s = 0; code == APP_EXIT_OK && s < b->n_sequences; s++)
        code = prefill(b, b->sequences[s], b->ids, test->depth);
    return code;
}

/* Rewinds to the test's depth and runs its last token again, so that what some models recompute
 * after a rewind is not measured. */
static int rewind_to_depth(struct bench *b, const struct cli_bench_test *test)
{
    int64_t again = test->depth > 0;
    int code = rewind_all(b, test->depth - again);
    for (int64_t s = 0; code == APP_EXIT_OK && s < b->n_sequences; s++)
        code = prefill(b, b->sequences[s], b->ids + test->depth - again, again);
    return code;
}

/* Runs the test's passes, generating at most `limit` tokens. */
static int run_passes(struct bench *b, const struct cli_bench_test *test, int64_t limit)
{
    const akunu_token *ids = b->ids + test->depth;
    if (test->n_prompt > 0)
        return prefill(b, b->sequences[0], ids, test->n_prompt);
    return time_decode(b, ids, test->n_generate < limit ? test->n_generate : limit,
                       test->n_sequences);
}

/* Runs the test once from its depth. *seconds: the time it took. */
static int run_once(struct bench *b, const struct cli_bench_test *test, int64_t limit,
                    double *seconds)
{
    int code = rewind_to_depth(b, test);
    double started = app_seconds();
    if (code == APP_EXIT_OK)
        code = run_passes(b, test, limit);
    *seconds = app_seconds() - started;
    return code;
}

/* ---- Roofline ----------------------------------------------------------- */
/* What bounds a test: memory reads in decode, products in prefill, both with several sequences. */
static unsigned bounds_of(const struct cli_bench_test *test, const struct akunu_model_info *info)
{
    unsigned what = test->n_prompt > 0 || test->n_sequences > 1 ? AKUNU_MEASURE_INT8 : 0;
    if (what && info->float_parameters > 0)
        what |= AKUNU_MEASURE_F32;
    return test->n_prompt > 0 ? what : what | AKUNU_MEASURE_READ;
}

/* Measures the roofline and keeps the larger values in *roof. */
static bool measure_bounds(const struct bench *b, const struct cli_bench_test *test,
                           struct akunu_roofline *roof)
{
    struct akunu_roofline now;
    const struct akunu_model_info *info = &b->loaded->info;
    if (akunu_roofline_measure_model(b->loaded->model, akunu_session_threads(b->loaded->session),
                                     bounds_of(test, info), &now, sizeof now) != AKUNU_OK) {
        app_warn("the machine's limits could not be measured: %s", akunu_last_error());
        return false;
    }
    roof->read_bytes_per_second = fmax(roof->read_bytes_per_second, now.read_bytes_per_second);
    roof->int8_ops_per_second = fmax(roof->int8_ops_per_second, now.int8_ops_per_second);
    roof->f32_ops_per_second = fmax(roof->f32_ops_per_second, now.f32_ops_per_second);
    return true;
}

/* Seconds of the products of one prompt token, two operations per parameter. */
static double product_seconds(const struct akunu_model_info *info,
                              const struct akunu_roofline *roof)
{
    double floats = (double)info->float_parameters, ints = (double)info->matrix_parameters - floats;
    double seconds = ints > 0.0 ? 2.0 * ints / roof->int8_ops_per_second : 0.0;
    return floats > 0.0 ? seconds + 2.0 * floats / roof->f32_ops_per_second : seconds;
}

/* Percentage of the roofline that `ts` tokens per second reach. In decode a pass reads the weights
 * once and each sequence's keys and values at the mean position; in prefill it does the products.
 * Several sequences have both bounds. */
static double roofline_percent(const struct bench *b, const struct cli_bench_test *test,
                               const struct akunu_roofline *roof, double ts)
{
    const struct akunu_model_info *info = &b->loaded->info;
    double n = (double)test->n_sequences,
           position = (double)test->depth + ((double)test->n_generate + 1.0) / 2.0;
    double seconds = product_seconds(info, roof); /* lower bound per token */
    if (test->n_prompt == 0) {
        double read = ((double)info->token_weight_bytes + n * position * b->kv_token_bytes) /
                      roof->read_bytes_per_second / n;
        seconds = test->n_sequences > 1 ? fmax(seconds, read) : read;
    }
    return seconds > 0.0 && isfinite(seconds) ? 100.0 * ts * seconds : NAN;
}

/* ---- Tests -------------------------------------------------------------- */
static int measure_test(struct bench *b, const struct cli_bench_test *test, double *samples,
                        const char *name)
{
    enum { WARM_UP_TOKENS = 4 };
    const struct app_options *o = b->report->options;
    struct app_progress progress = app_progress_begin();
    double seconds;
    app_progress_show(&progress, name, 0.0);
    int code = fill_context(b, test);
    if (code == APP_EXIT_OK)
        code = run_once(b, test, WARM_UP_TOKENS, &seconds);
    for (int64_t i = 0; code == APP_EXIT_OK && i < o->bench.repetitions; i++) {
        app_progress_show(&progress, name, (double)i / (double)o->bench.repetitions);
        code = run_once(b, test, INT64_MAX, &seconds);
        samples[i] =
            (double)((test->n_prompt + test->n_generate) * test->n_sequences) / fmax(seconds, 1e-9);
    }
    app_progress_end(&progress);
    return code;
}

/* Runs the test once more, with times. */
static int break_down(struct bench *b, const struct cli_bench_test *test,
                      struct cli_bench_breakdown *out)
{
    struct akunu_session *session = b->loaded->session;
    struct akunu_counters before, after;
    int code = rewind_to_depth(b, test);
    /* a column is empty where a limit is unknown; decode has measured no integer rate */
    if (out->roof.int8_ops_per_second == 0.0 || out->roof.read_bytes_per_second == 0.0)
        akunu_roofline_measure_model(b->loaded->model, akunu_session_threads(session),
                                     AKUNU_MEASURE_INT8 | AKUNU_MEASURE_READ, &out->roof,
                                     sizeof out->roof);
    if (code != APP_EXIT_OK)
        return code;
    if (akunu_session_get_counters(session, &before, sizeof before) != AKUNU_OK ||
        akunu_session_set_timing(session, true) != AKUNU_OK)
        return app_fail_library();
    code = run_passes(b, test, INT64_MAX);
    if (code == APP_EXIT_OK &&
        akunu_session_get_counters(session, &after, sizeof after) != AKUNU_OK)
        code = app_fail_library();
    if (code == APP_EXIT_OK) {
        out->passes = (double)(after.passes - before.passes);
        code = cli_bench_break_down(session, out);
    }
    akunu_session_set_timing(session, false);
    return code;
}

static int run_test(const struct cli_bench_test *test, void *user)
{
    struct bench *b = user;
    const struct app_options *o = b->report->options;
    struct akunu_roofline roof = { 0 };
    char name[CLI_BENCH_NAME_BYTES];
    double *samples = malloc((size_t)o->bench.repetitions * sizeof *samples);
    if (!samples)
        return app_fail_memory();
    cli_bench_name(test, name);
    bool known = measure_bounds(b, test, &roof);
    int code = measure_test(b, test, samples, name);
    struct cli_bench_breakdown breakdown = { .roof = roof };
    if (code == APP_EXIT_OK && o->bench.breakdown)
        code = break_down(b, test, &breakdown);
    if (code == APP_EXIT_OK) {
        struct cli_bench_result result = { .test = *test,
                                           .samples = samples,
                                           .n_samples = (size_t)o->bench.repetitions,
                                           .roofline_percent = NAN,
                                           .breakdown = o->bench.breakdown ? &breakdown : NULL };
        if (known && measure_bounds(b, test, &roof))
            result.roofline_percent =
                roofline_percent(b, test, &roof, cli_bench_median(samples, result.n_samples));
        cli_bench_row(b->report, &result);
        if (!app_output_flush(&b->report->out))
            code = APP_EXIT_FAILURE;
    }
    free(samples);
    return code;
}

/* Calls `visit` for every depth: with every prompt length, then with every number of generated
 * tokens for every number of sequences. Zeros are skipped. */
static int each_test(const struct app_options *o,
                     int (*visit)(const struct cli_bench_test *test, void *user), void *user)
{
    int code = APP_EXIT_OK;
    for (size_t d = 0; d < o->bench.depth.n; d++) {
        struct cli_bench_test test = { .depth = o->bench.depth.values[d], .n_sequences = 1 };
        for (size_t i = 0; i < o->bench.n_prompt.n && code == APP_EXIT_OK; i++) {
            test.n_prompt = o->bench.n_prompt.values[i];
            code = test.n_prompt > 0 ? visit(&test, user) : APP_EXIT_OK;
        }
        test.n_prompt = 0;
        for (size_t i = 0; i < o->bench.n_generate.n * o->bench.n_parallel.n && code == APP_EXIT_OK;
             i++) {
            test.n_generate = o->bench.n_generate.values[i / o->bench.n_parallel.n];
            test.n_sequences = o->bench.n_parallel.values[i % o->bench.n_parallel.n];
            code = test.n_generate > 0 ? visit(&test, user) : APP_EXIT_OK;
        }
    }
    return code;
}

/* Maxima over all tests: tokens of a sequence, tokens of all sequences, sequences. */
struct extent {
    int64_t length, tokens, sequences;
};

static int extend(const struct cli_bench_test *test, void *user)
{
    struct extent *e = user;
    int64_t length = test->depth + test->n_prompt + test->n_generate,
            tokens = length * test->n_sequences;
    e->length = length > e->length ? length : e->length;
    e->tokens = tokens > e->tokens ? tokens : e->tokens;
    e->sequences = test->n_sequences > e->sequences ? test->n_sequences : e->sequences;
    return APP_EXIT_OK;
}

/* ---- Sessions and models ------------------------------------------------ */
/* A fixed sequence of ids (Knuth's MMIX generator, its upper bits). */
static void fill_ids(struct bench *b, int64_t n)
{
    uint64_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        b->ids[i] = (akunu_token)((state >> 33) % b->loaded->info.vocab_size);
    }
}

/* Computed from the session's pool, so it holds for every type of keys and values. */
static double kv_token_bytes(const struct app_model_session *loaded, int64_t n_sequences)
{
    enum { PAGE_TOKENS = 64 };
    struct akunu_memory memory;
    uint64_t tokens =
        akunu_session_context(loaded->session) + (uint64_t)n_sequences * (PAGE_TOKENS - 1);
    if (akunu_model_get_memory(loaded->model, loaded->session, &memory, sizeof memory) != AKUNU_OK)
        return NAN;
    return (double)memory.kv / (double)(tokens / PAGE_TOKENS * PAGE_TOKENS);
}

/* Runs all tests with the threads and the batch of `o`. */
static int run_session(struct bench *b, const struct app_options *o, const struct extent *e)
{
    struct app_model_session *loaded = b->loaded;
    loaded->max_sequences = (uint32_t)e->sequences;
    int code = app_open_session(o, loaded, (uint32_t)e->tokens);
    if (code == APP_EXIT_OK && akunu_session_batch(loaded->session) < e->sequences)
        code = app_fail("a pass of this session has at most %u tokens, and -np wants %lld",
                        (unsigned)akunu_session_batch(loaded->session), (long long)e->sequences);
    if (code == APP_EXIT_OK) {
        b->sequences[0] = loaded->sequence;
        b->n_sequences = 1;
        b->kv_token_bytes = kv_token_bytes(loaded, e->sequences);
        code = each_test(o, run_test, b);
        while (b->n_sequences > 1)
            akunu_sequence_free(loaded->session, b->sequences[--b->n_sequences]);
    }
    app_close_session(loaded);
    return code;
}

static int64_t value_or_0(const struct app_list *list, size_t i)
{
    return i < list->n ? list->values[i] : 0;
}

/* Runs all thread counts and batches with one model. */
static int run_sessions(struct bench *b, const struct app_options *o, const struct extent *e)
{
    int code = APP_EXIT_OK;
    fill_ids(b, e->length);
    for (size_t t = 0; t == 0 || t < o->bench.thread_counts.n; t++) {
        for (size_t i = 0; (i == 0 || i < o->bench.batches.n) && code == APP_EXIT_OK; i++) {
            struct app_options one = *o;
            one.session.n_threads = (unsigned)value_or_0(&o->bench.thread_counts, t);
            one.session.batch = (uint32_t)value_or_0(&o->bench.batches, i);
            if (one.session.batch > 0 && one.session.batch < e->sequences) {
                app_warn("-b %u: raised to %lld, a token of each sequence", one.session.batch,
                         (long long)e->sequences);
                one.session.batch = (uint32_t)e->sequences;
            }
            code = run_session(b, &one, e);
        }
    }
    return code;
}

/* Runs everything with o->model. */
static int run_model(const struct app_options *o, const struct extent *e,
                     struct cli_bench_context *report)
{
    struct app_model_session loaded = { .sequence = -1 };
    struct bench b = { .loaded = &loaded, .report = report };
    int code = APP_EXIT_OK;
    report->options = o;
    report->loaded = &loaded;
    if (o->bench.load)
        code = cli_bench_loading(o, report);
    report->loaded = &loaded;
    if (code == APP_EXIT_OK && e->length > 0)
        code = app_load_model(o, &loaded);
    if (code == APP_EXIT_OK && e->length > 0) {
        b.ids = malloc((size_t)e->length * sizeof *b.ids);
        b.sequences = malloc((size_t)e->sequences * sizeof *b.sequences);
        b.step = malloc((size_t)e->sequences * sizeof *b.step);
        code = b.ids && b.sequences && b.step ? run_sessions(&b, o, e) : app_fail_memory();
    }
    free(b.ids);
    free(b.sequences);
    free(b.step);
    app_unload(&loaded);
    return code;
}

static int64_t find_largest(const struct app_list *list)
{
    int64_t max = 0;
    for (size_t i = 0; i < list->n; i++)
        max = list->values[i] > max ? list->values[i] : max;
    return max;
}

static int show_profile(const struct app_options *o)
{
    struct app_model_session loaded = { .sequence = -1 };
    struct app_output out = app_output_stdout();
    struct app_options one = *o;
    one.model.name = o->model.names.n ? o->model.names.values[0] : NULL;
    int code = app_load_model(&one, &loaded);
    if (code == APP_EXIT_OK)
        app_output_text(&out, akunu_model_profile(loaded.model));
    app_unload(&loaded);
    return app_output_end(&out, code);
}

/* Opens each model's file, so that a wrong one is reported before minutes of measuring. */
static int check_models(const struct app_options *o)
{
    int code = APP_EXIT_OK;
    for (size_t i = 0; i < o->model.names.n && code == APP_EXIT_OK; i++) {
        char *path;
        code = app_model_path(o, o->model.names.values[i], &path);
        if (code != APP_EXIT_OK)
            return code;
        struct akunu_file *file = akunu_file_open(path);
        if (!file)
            code = app_fail_library();
        akunu_file_free(file);
        free(path);
    }
    return code;
}

int cli_bench(const struct app_options *o)
{
    struct cli_bench_context report = { .options = o,
                                        .out = app_output_stdout(),
                                        .json = o->output.json || o->output.form >= APP_FORM_JSON };
    struct extent e = { 0 };
    int code = app_check_mode(o, o->bench.tune ? APP_MODE_TUNE : APP_MODE_MEASURE);
    if (code == APP_EXIT_OK)
        code = check_models(o);
    if (code != APP_EXIT_OK)
        return code;
    if (o->bench.tune)
        return cli_bench_tune(o);
    if (o->bench.profile_show)
        return show_profile(o);
    each_test(o, extend, &e);
    if (e.length == 0 && !o->bench.load)
        return app_fail_usage("nothing to measure: -p and -n are both 0, and no --load");
    if (e.tokens > INT32_MAX)
        return app_fail_usage("-np and -d: the sequences have %lld tokens together",
                              (long long)e.tokens);
    if (o->session.context > 0 && e.tokens > o->session.context)
        return app_fail("the longest test has %lld tokens and the context holds %u (-c)",
                        (long long)e.tokens, o->session.context);
    if (o->bench.breakdown && o->output.form == APP_FORM_CSV)
        return app_fail_usage("--breakdown: not possible as CSV; use -o md or -o json");
    if (o->bench.breakdown && o->load.backend && strcmp(o->load.backend, "cpu") != 0)
        return app_fail_usage("--breakdown: only the cpu backend measures its operations");
    char *tables = NULL;
    size_t tables_bytes = 0;
    if (!(report.tables.file = open_memstream(&tables, &tables_bytes)))
        return app_fail_memory();
    cli_bench_begin(&report);
    for (size_t i = 0; (i == 0 || i < o->model.names.n) && code == APP_EXIT_OK; i++) {
        struct app_options one = *o;
        one.model.name = i < o->model.names.n ? o->model.names.values[i] : NULL;
        one.session.n_threads = (unsigned)find_largest(&o->bench.thread_counts); /* for --load */
        one.session.batch = (uint32_t)find_largest(&o->bench.batches);
        code = run_model(&one, &e, &report);
    }
    report.options = o; /* run_model had it point to `one` */
    if (code == APP_EXIT_OK)
        cli_bench_end(&report);
    if (fclose(report.tables.file) != 0)
        code = app_fail_memory();
    app_output_bytes(&report.out, tables, tables_bytes);
    free(tables);
    return app_output_end(&report.out, code);
}
