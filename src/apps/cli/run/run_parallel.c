/* run -np N: several completions of a prompt at once. */
#include "apps/cli/run/run.h"

#include <stdlib.h>

#include "apps/common/message.h"

struct parallel {
    struct cli_run *run;
    size_t n;
    struct app_text *texts;
    struct akunu_result *results;
    akunu_sequence *sequences;
};

static bool collect_piece(size_t completion, akunu_token token, const char *text, size_t n,
                          void *user)
{
    struct parallel *c = user;
    (void)token;
    app_progress_end(&c->run->progress);
    return cli_run_keep(c->run, &c->texts[completion], text, n);
}

static bool texts_are_cancelled(void *user)
{
    return cli_run_cancelled(((struct parallel *)user)->run);
}

/* Prints each text under a line with its seed, which reproduces it alone. */
static void print_texts(const struct parallel *c)
{
    struct app_output *out = &c->run->out;
    for (size_t i = 0; i < c->n; i++) {
        json_t *reasoning = NULL, *content = NULL;
        const char *bytes = c->texts[i].bytes;
        size_t n = c->texts[i].n;
        if (c->run->template) {
            content = cli_run_text(c->run, &c->texts[i], &reasoning);
            bytes = json_string_value(content);
            n = json_string_length(content);
        }
        app_output_format(out, "--- %zu, seed %lld ---\n", i + 1,
                          (long long)(c->run->seed + (int64_t)i));
        app_output_bytes(out, bytes, n);
        if (n == 0 || bytes[n - 1] != '\n')
            app_output_text(out, "\n");
        json_decref(reasoning);
        json_decref(content);
    }
}

static void print_texts_json(const struct parallel *c)
{
    json_t *array = json_array();
    for (size_t i = 0; i < c->n; i++)
        json_array_append_new(
            array, cli_run_json(c->run, &c->texts[i], &c->results[i], c->run->seed + (int64_t)i));
    if (app_json_print(&c->run->out, array))
        app_output_text(&c->run->out, "\n");
}

static void print_speed(const struct parallel *c)
{
    double longest = 0.0;
    uint64_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        n += c->results[i].n_generated;
        longest =
            c->results[i].generate_seconds > longest ? c->results[i].generate_seconds : longest;
    }
    fputc('\n', stderr);
    app_aside("prompt %llu tokens; generated %llu in %zu texts, %.1f tok/s together; load %.2f s",
              (unsigned long long)c->results[0].n_prompt, (unsigned long long)n, c->n,
              longest > 0.0 ? (double)(n - c->n) / longest : 0.0, c->run->loaded.load_seconds);
}

static int generate_all(struct parallel *c)
{
    struct cli_run *run = c->run;
    const struct akunu_ids prompt = cli_run_ids(run);
    run->generation.on_piece = collect_piece;
    run->generation.cancel = texts_are_cancelled;
    run->generation.user = c;
    run->progress = app_progress_begin();
    enum akunu_status status = akunu_session_generate_parallel(
        run->loaded.session, c->sequences, c->n, &prompt, &run->generation, c->results);
    app_progress_end(&run->progress);
    int code = cli_run_code(run, status);
    if (code != APP_EXIT_OK)
        return code;
    if (run->options->output.json)
        print_texts_json(c);
    else
        print_texts(c);
    app_output_flush(&run->out);
    if (run->out.error == 0)
        print_speed(c);
    return code;
}

int cli_run_parallel(struct cli_run *run)
{
    size_t n = (size_t)run->options->text.n_completions;
    struct parallel c = { .run = run,
                          .n = n,
                          .texts = calloc(n, sizeof *c.texts),
                          .results = calloc(n, sizeof *c.results),
                          .sequences = calloc(n, sizeof *c.sequences) };
    int code = APP_EXIT_OK;
    if (!c.texts || !c.results || !c.sequences)
        code = app_fail_memory();
    for (size_t i = 0; code == APP_EXIT_OK && i < n; i++)
        c.results[i].size = sizeof *c.results;
    if (code == APP_EXIT_OK) {
        c.sequences[0] = run->loaded.sequence;
        code = generate_all(&c);
        for (size_t i = 1; i < n; i++)
            akunu_sequence_free(run->loaded.session, c.sequences[i]);
    }
    for (size_t i = 0; c.texts && i < n; i++)
        free(c.texts[i].bytes);
    free(c.texts);
    free(c.results);
    free(c.sequences);
    return code;
}
