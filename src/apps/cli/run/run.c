/* run and infill: answers a prompt by the model's chat template, or continues it as it is, or fills
 * a gap, and streams the text. Conversations are in chat.c, several completions in run_parallel.c,
 * prompts of infill in infill.c. */
#include "apps/common/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/cli/run/run.h"
#include "apps/common/sampling.h"

bool cli_run_keep(struct cli_run *run, struct app_text *to, const char *text, size_t n)
{
    char *larger = realloc(to->bytes, to->n + n + 1);
    if (!larger) {
        run->no_memory = true;
        return false;
    }
    if (n > 0)
        memcpy(larger + to->n, text, n);
    to->bytes = larger;
    to->n += n;
    return true;
}

static bool write_piece(size_t index, akunu_token token, const char *text, size_t n, void *user)
{
    struct cli_run *run = user;
    (void)index, (void)token;
    app_progress_end(&run->progress);
    if (run->options->output.json)
        return cli_run_keep(run, &run->text, text, n);
    if (run->template) {
        run->no_memory = !cli_answer_push(&run->answer, text, n);
        return !run->no_memory && app_output_flush(&run->out);
    }
    if (n == 0)
        return true;
    run->last = text[n - 1];
    return app_output_bytes(&run->out, text, n) && app_output_flush(&run->out);
}

bool cli_run_cancelled(void *user)
{
    struct cli_run *run = user;
    uint32_t done = akunu_sequence_length(run->loaded.session, run->loaded.sequence);
    app_progress_show(&run->progress, "prompt", (double)done / (double)run->n_ids);
    return app_is_interrupted();
}

static bool is_infill(const struct cli_run *run)
{
    return run->options->command == APP_INFILL;
}

static int read_prompt(struct cli_run *run)
{
    const struct app_options *o = run->options;
    if (is_infill(run))
        return cli_infill_read(run);
    if (!app_has_input(o))
        return app_fail_usage(
            "nothing to answer or to continue: give a prompt with -p TEXT, -f FILE or through a "
            "pipe, or chat (-cnv)");
    int code = app_read_prompt(o, "a prompt", &run->prompt);
    if (code == APP_EXIT_OK && run->prompt.n == 0 && !o->prompt.text)
        return app_fail_usage(
            "the prompt is empty: %s has no text",
            o->prompt.file && strcmp(o->prompt.file, "-") != 0 ? o->prompt.file : "standard input");
    return code;
}

/* Makes a conversation of the prompt, and renders it by the template. */
static int render_prompt(struct cli_run *run, size_t *n)
{
    struct app_text system;
    json_t *messages = json_array();
    int code = messages ? app_read_system(run->options, &system) : app_fail_memory();
    if (code != APP_EXIT_OK) {
        json_decref(messages);
        return code;
    }
    bool good =
        (system.n == 0 ||
         json_array_append_new(messages, app_message("system", system.bytes, system.n)) == 0) &&
        json_array_append_new(messages, app_message("user", run->prompt.bytes, run->prompt.n)) == 0;
    if (!good)
        code = app_fail_memory();
    else if (!(run->rendered = app_render_prompt(run->options, run->template, messages, n)))
        code = APP_EXIT_FAILURE;
    free(system.bytes);
    json_decref(messages);
    return code;
}

static int tokenize_prompt(struct cli_run *run)
{
    const struct app_options *o = run->options;
    unsigned flags = (o->prompt.no_bos ? 0u : AKUNU_ADD_SPECIAL) |
                     (o->prompt.no_parse_special ? 0u : AKUNU_PARSE_SPECIAL);
    size_t n = 0;
    int code = run->template ? render_prompt(run, &n) : APP_EXIT_OK;
    if (code == APP_EXIT_OK && run->template)
        code = app_reasoning_limit(o, run->template, run->loaded.tokenizer, run->rendered,
                                   &run->reasoning, &run->generation);
    if (code == APP_EXIT_OK && run->template)
        return app_tokenize_prompt(run->loaded.tokenizer, run->rendered, n, &run->ids, &run->n_ids);
    if (code == APP_EXIT_OK)
        code =
            app_tokenize_text(run->loaded.tokenizer, &run->prompt, flags, &run->ids, &run->n_ids);
    if (code == APP_EXIT_OK && run->n_ids == 0)
        return app_fail_usage("the prompt is empty, and no token is added to it to begin with");
    return code;
}

static void on_logprobs(size_t index, akunu_token token, float logprob,
                        const struct akunu_logprob *top, size_t n_top, void *user)
{
    struct cli_run *run = user;
    (void)index;
    json_t *one = app_json_logprobs(run->loaded.tokenizer, token, logprob, top, n_top);
    if (json_array_append_new(run->logprobs, one) != 0)
        run->no_memory = true;
}

static int begin_logprobs(struct cli_run *run)
{
    const struct app_options *o = run->options;
    if (o->text.logprobs < 0)
        return APP_EXIT_OK;
    if (!o->output.json || o->text.n_completions > 1)
        return app_fail_usage("--logprobs %lld: they come with --json, and for one text (no -np)",
                              (long long)o->text.logprobs);
    run->generation.on_logprobs = on_logprobs;
    run->generation.n_top_logprobs = (uint32_t)o->text.logprobs;
    run->logprobs = json_array();
    return run->logprobs ? APP_EXIT_OK : app_fail_memory();
}

/* Prints the dimmed last line, on a line of its own. */
static void print_speed(const struct cli_run *run, const struct akunu_result *r)
{
    char seed[48] = "", drafted[64] = "", restored[64] = "", speed[48] = "";
    if (run->n_restored > 0)
        snprintf(restored, sizeof restored, " and %zu of the prompt cache", run->n_restored);
    if (r->n_drafted > 0)
        snprintf(drafted, sizeof drafted, " (%llu of %llu drafts accepted)",
                 (unsigned long long)r->n_accepted, (unsigned long long)r->n_drafted);
    if (run->options->sampling.temperature > 0.0 && run->options->text.seed < 0)
        snprintf(seed, sizeof seed, ", seed %lld", (long long)run->seed);
    if (r->n_generated > 1) /* the first token comes with the prompt */
        snprintf(speed, sizeof speed, ", %.1f tok/s",
                 app_rate((double)(r->n_generated - 1), r->generate_seconds));
    fputc('\n', stderr);
    app_aside("prompt %llu tokens%s, %.1f tok/s; generated %llu%s%s; load %.2f s%s",
              (unsigned long long)r->n_prompt, restored,
              app_rate((double)r->n_prompt, r->prompt_seconds), (unsigned long long)r->n_generated,
              speed, drafted, run->loaded.load_seconds, seed);
}

static const char *stop_name(enum akunu_stop stop)
{
    switch (stop) {
    case AKUNU_STOP_END: return "end";
    case AKUNU_STOP_LENGTH: return "length";
    case AKUNU_STOP_CONTEXT: return "context";
    case AKUNU_STOP_CALLBACK: return "interrupted";
    case AKUNU_STOP_TEXT: return "text";
    }
    return "interrupted";
}

json_t *cli_run_text(const struct cli_run *run, const struct app_text *text, json_t **reasoning)
{
    *reasoning = NULL;
    if (!run->template)
        return app_json_text(text->bytes, text->n);
    json_t *message =
        cli_answer_parse(run->template, &run->loaded, run->rendered, text->bytes, text->n);
    json_t *content = json_incref(json_object_get(message, "content"));
    *reasoning = json_incref(json_object_get(message, "reasoning_content"));
    json_decref(message);
    if (!json_is_null(content))
        return content;
    json_decref(content);
    return json_string("");
}

json_t *cli_run_json(const struct cli_run *run, const struct app_text *text,
                     const struct akunu_result *r, int64_t seed)
{
    json_t *reasoning, *content = cli_run_text(run, text, &reasoning);
    json_t *value = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I}", "text", content, "stop",
        stop_name(r->stop), "n_prompt", (json_int_t)(r->n_prompt + run->n_restored), "n_cached",
        (json_int_t)run->n_restored, "n_generated", (json_int_t)r->n_generated, "prompt_seconds",
        app_json_real(r->prompt_seconds), "generate_seconds", app_json_real(r->generate_seconds),
        "load_seconds", app_json_real(run->loaded.load_seconds), "seed", (json_int_t)seed,
        "n_drafted", (json_int_t)r->n_drafted, "n_accepted", (json_int_t)r->n_accepted);
    if (value && reasoning && !run->options->chat.hide_reasoning)
        json_object_set(value, "reasoning", reasoning);
    json_decref(reasoning);
    if (value && run->logprobs && json_object_set(value, "logprobs", run->logprobs) != 0) {
        json_decref(value);
        return NULL;
    }
    return value;
}

int cli_run_code(const struct cli_run *run, enum akunu_status status)
{
    if (run->no_memory)
        return app_fail_memory();
    if (status == AKUNU_ERROR_CANCELLED || app_is_interrupted())
        return APP_EXIT_INTERRUPTED;
    return status == AKUNU_OK ? APP_EXIT_OK : app_fail_library();
}

static int generate_text(struct cli_run *run)
{
    const struct app_options *o = run->options;
    struct akunu_result result = { .size = sizeof result };
    const struct akunu_ids prompt = cli_run_ids(run);
    int code = APP_EXIT_OK;
    if (run->template && !o->output.json)
        code =
            cli_answer_begin(&run->answer, run->template, &run->loaded, run->rendered, &run->out);
    run->answer.hide_reasoning = o->chat.hide_reasoning;
    if (code != APP_EXIT_OK)
        return code;
    run->answer.no_wrap = o->chat.no_wrap;
    if (!run->template && !o->output.json && !o->prompt.no_display && !is_infill(run)) {
        app_output_bytes(&run->out, run->prompt.bytes, run->prompt.n);
        app_output_flush(&run->out);
        run->last = run->prompt.n > 0 ? run->prompt.bytes[run->prompt.n - 1] : '\0';
    }
    run->generation.on_piece = write_piece;
    run->generation.cancel = cli_run_cancelled;
    run->generation.user = run;
    run->progress = app_progress_begin();
    enum akunu_status status = akunu_session_generate(run->loaded.session, run->loaded.sequence,
                                                      &prompt, &run->generation, &result);
    app_progress_end(&run->progress);

    if (run->answer.reply && !cli_answer_end(&run->answer))
        run->no_memory = true;
    code = cli_run_code(run, status);
    if (code == APP_EXIT_INTERRUPTED)
        result.stop = AKUNU_STOP_CALLBACK;
    if (o->output.json && (code == APP_EXIT_OK || code == APP_EXIT_INTERRUPTED)) {
        if (app_json_print(&run->out, cli_run_json(run, &run->text, &result, run->seed)))
            app_output_text(&run->out, "\n");
    } else if (!o->output.json && !run->template && run->last != '\n' && isatty(STDOUT_FILENO)) {
        app_output_text(&run->out, "\n");
    }
    app_output_flush(&run->out);
    if (status == AKUNU_OK && result.stop == AKUNU_STOP_CONTEXT)
        app_warn("stopped: the context is full (%u tokens; -c sets its size)",
                 akunu_session_context(run->loaded.session));
    if (run->out.error == 0 && result.n_prompt > 0)
        print_speed(run, &result);
    return code;
}

/* Generates, starting after the prefix of the prompt that was restored. */
static int generate_from_cache(struct cli_run *run)
{
    struct akunu_prompt_cache cache;
    bool cached = app_prompt_cache(run->options, &cache);
    if (cached && akunu_sequence_restore(run->loaded.session, run->loaded.sequence,
                                         &(struct akunu_ids){ run->ids, run->n_ids }, &cache,
                                         &run->n_restored) != AKUNU_OK)
        return app_fail_library();
    int code = run->options->text.n_completions > 1 ? cli_run_parallel(run) : generate_text(run);
    if (cached && code == APP_EXIT_OK &&
        akunu_sequence_keep(run->loaded.session, run->loaded.sequence, run->n_ids, &cache) !=
            AKUNU_OK)
        return app_fail_library();
    return code;
}

/* ---- The mode ----------------------------------------------------------- */
/* Whether to chat: on a terminal without a prompt, unless flags say otherwise. */
static bool is_chat(const struct app_options *o)
{
    return o->chat.conversation ||
           (!o->chat.no_conversation && !o->output.json && !app_has_input(o));
}

/* Takes the template, if the prompt is to be answered by one: the model has one, or a flag asks for
 * an answer. */
static int set_up_template(struct cli_run *run)
{
    const struct app_options *o = run->options;
    if (is_infill(run))
        return APP_EXIT_OK;
    bool asked = o->chat.template || o->chat.template_file || o->chat.kwargs || o->chat.reasoning ||
                 o->chat.system_prompt || o->chat.system_prompt_file || o->chat.single_turn;
    struct akunu_template *of_model;
    int code = APP_EXIT_OK;
    if (!o->chat.no_conversation && (of_model = akunu_model_template(run->loaded.model)) != NULL) {
        if (asked || !akunu_template_is_fallback(of_model))
            run->template = app_chat_template(o, &run->loaded, &code);
        akunu_template_free(of_model);
    }
    if (code == APP_EXIT_OK)
        code = app_check_mode(o, run->template ? APP_MODE_ANSWER : APP_MODE_CONTINUE);
    if (code == APP_EXIT_OK && run->template)
        app_aside("answered by the chat template; --raw continues the text as it is");
    run->generation.special = run->template || o->chat.special; /* such tokens mark reasoning */
    return code;
}

/* Reads all that needs no model. */
static int set_up(struct cli_run *run)
{
    const struct app_options *o = run->options;
    int code = o->chat.no_conversation ? app_check_mode(o, APP_MODE_CONTINUE) : APP_EXIT_OK;
    if (code == APP_EXIT_OK)
        code = app_sampling(o, &run->sampling);
    run->seed = (int64_t)run->sampling.params.seed;
    run->generation = app_generation(o, &run->sampling);
    if (code == APP_EXIT_OK)
        code = begin_logprobs(run);
    if (code == APP_EXIT_OK)
        code = read_prompt(run);
    if (code == APP_EXIT_OK)
        code = app_read_grammar(o, AKUNU_SCHEMA_WRITING, &run->grammar);
    return code;
}

static int open_model(struct cli_run *run)
{
    const struct app_options *o = run->options;
    int code = app_load_model(o, &run->loaded);
    run->loaded.max_sequences = (uint32_t)o->text.n_completions;
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&run->loaded, is_infill(run) ? "infill" : "run");
    if (code == APP_EXIT_OK)
        code = set_up_template(run);
    if (code == APP_EXIT_OK)
        code = app_check_bias(&run->sampling, run->loaded.model);
    if (code == APP_EXIT_OK && !is_infill(run))
        code = tokenize_prompt(run);
    if (code == APP_EXIT_OK && run->template &&
        o->grammar.json_schema) /* JSON comes after reasoning */
        code = cli_answer_grammar(run->template, &run->loaded, run->rendered, &run->grammar);
    run->sampling.params.grammar = run->grammar;
    if (code == APP_EXIT_OK)
        code = app_open_session(o, &run->loaded, 0);
    if (code == APP_EXIT_OK && is_infill(run))
        code = cli_infill_tokenize(run);
    if (code == APP_EXIT_OK && run->n_ids > akunu_session_context(run->loaded.session))
        code = app_fail("the prompt has %zu tokens and the context holds %u (-c sets its size)",
                        run->n_ids, akunu_session_context(run->loaded.session));
    if (code == APP_EXIT_OK)
        code = app_read_speculation(o, run->loaded.session, &run->draft, &run->generation);
    return code;
}

static int run_once(const struct app_options *o)
{
    struct cli_run run = { .options = o,
                           .loaded = { .sequence = -1 },
                           .draft = { .sequence = -1 },
                           .out = app_output_stdout() };
    int code = set_up(&run);
    if (code == APP_EXIT_OK)
        code = open_model(&run);
    if (code == APP_EXIT_OK)
        code = generate_from_cache(&run);
    app_unload(&run.draft);
    app_unload(&run.loaded);
    cli_answer_free(&run.answer);
    akunu_template_free(run.template);
    free(run.rendered);
    akunu_grammar_free(run.grammar);
    free(run.ids);
    free(run.prompt.bytes);
    free(run.suffix.bytes);
    free(run.text.bytes);
    json_decref(run.logprobs);
    return app_output_end(&run.out, code);
}

int cli_run(const struct app_options *o)
{
    int code = app_check_stops(o);
    if (code != APP_EXIT_OK || !is_chat(o))
        return code == APP_EXIT_OK ? run_once(o) : code;
    code = app_check_mode(o, APP_MODE_CHAT);
    return code == APP_EXIT_OK ? app_converse(o) : code;
}

int cli_infill(const struct app_options *o)
{
    int code = app_check_stops(o);
    return code == APP_EXIT_OK ? run_once(o) : code;
}
