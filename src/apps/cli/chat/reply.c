/* chat: one reply to the conversation of a file, as text or as JSON. */
#include "apps/cli/chat/reply.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/input.h"
#include "apps/common/message.h"

/* ---- The text ----------------------------------------------------------- */
/* Without --json a call is a line: its name and its arguments. Between the tokens of JSON a space
 * does what a newline does. */
static void write_call(struct cli_reply *r)
{
    json_t *function = json_object_get(r->call, "function");
    char *line = NULL;
    if (asprintf(&line, "%s %s", json_string_value(json_object_get(function, "name")),
                 json_string_value(json_object_get(function, "arguments"))) < 0) {
        r->no_memory = true;
        return;
    }
    for (char *newline = line; (newline = strpbrk(newline, "\r\n"));)
        *newline = ' ';
    cli_answer_write_line(&r->answer, line, strlen(line));
    free(line);
}

static void on_event(const struct akunu_reply_event *event, void *user)
{
    struct cli_reply *r = user;
    cli_reply_follow_call(r, event);
    if (r->no_memory || (r->options->chat.hide_reasoning && event->kind == AKUNU_REPLY_REASONING))
        return;
    if (r->options->chat.stream)
        cli_reply_print_event(r, event);
    else if (!r->options->output.json && event->kind == AKUNU_REPLY_CALL_END)
        write_call(r);
    else if (!r->options->output.json)
        cli_answer_write(&r->answer, event);
}

static bool print_piece(size_t index, akunu_token token, const char *text, size_t n, void *user)
{
    struct cli_reply *r = user;
    (void)index, (void)token;
    app_progress_end(&r->progress);
    if (!cli_answer_push(&r->answer, text, n))
        r->no_memory = true;
    return !r->no_memory && app_output_flush(&r->out) && !app_is_interrupted();
}

static bool reply_is_cancelled(void *user)
{
    struct cli_reply *r = user;
    uint32_t done = akunu_sequence_length(r->loaded.session, r->loaded.sequence);
    app_progress_show(&r->progress, "prompt", (double)done / (double)r->n_ids);
    return app_is_interrupted();
}

/* ---- The parser and the grammar ----------------------------------------- */
static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)user;
    if (level >= AKUNU_LOG_NOTICE)
        app_warn("--tools: %s", line);
}

/* Makes the parser of the reply, and the grammar of its content and calls. */
static int begin_answer(struct cli_reply *r)
{
    const struct app_options *o = r->options;
    struct akunu_reply_params params;
    struct akunu_tool_grammar_params calls;
    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = akunu_template_text(r->template, NULL, r->tools != NULL, NULL);
    params.tokenizer = r->loaded.tokenizer;
    params.prompt = r->prompt;
    params.tools = r->tools;
    params.calls = r->tools != NULL;
    /* ids of calls have to differ from those in the conversation */
    params.seed = r->sampling.params.seed + json_array_size(r->messages);
    r->answer = (struct cli_answer){ .out = &r->out, .reasoning_out = { .file = stderr } };
    r->answer.reply = akunu_reply_new(&params, on_event, r);
    if (!r->answer.reply)
        return app_fail_library();

    akunu_tool_grammar_params_default(&calls, sizeof calls);
    calls.choice = o->chat.tool_choice;
    calls.lax = o->grammar.schema_lax;
    calls.log = on_log;
    calls.content = r->content;
    if (akunu_grammar_from_tools(&params, &calls, &r->grammar) == AKUNU_OK) {
        r->sampling.params.grammar = r->grammar;
        return APP_EXIT_OK;
    }
    if (akunu_last_status() == AKUNU_ERROR_MEMORY)
        return app_fail_memory();
    return app_fail_usage("--tools %s: %s", o->chat.tools ? o->chat.tools : "", akunu_last_error());
}

/* ---- Generating --------------------------------------------------------- */
/* Says which texts began like calls and became content. */
static void print_notes(const struct cli_reply *r)
{
    char shown[APP_SHOWN_BYTES];
    const char *notes = akunu_reply_notes(r->answer.reply);
    if (*notes)
        app_warn("the model's text is taken for content: %s", app_show_text(notes, shown));
}

static int finish_reply(struct cli_reply *r, enum akunu_status status, struct akunu_result *result)
{
    if (!cli_answer_end(&r->answer) || r->no_memory)
        return app_fail_memory();
    bool cancelled = status == AKUNU_ERROR_CANCELLED || app_is_interrupted();
    if (status != AKUNU_OK && !cancelled)
        return app_fail_library();
    print_notes(r);
    if (r->options->output.json)
        cli_reply_print_end(r, result, cancelled);
    app_output_flush(&r->out);
    if (!cancelled && result->stop == AKUNU_STOP_CONTEXT)
        app_warn("stopped: the context is full (%u tokens; -c sets its size)",
                 akunu_session_context(r->loaded.session));
    return cancelled ? APP_EXIT_INTERRUPTED : APP_EXIT_OK;
}

static int generate_reply(struct cli_reply *r)
{
    struct akunu_prompt_cache cache;
    struct akunu_result result = { .size = sizeof result };
    struct akunu_session *session = r->loaded.session;
    akunu_sequence sequence = r->loaded.sequence;
    bool cached = app_prompt_cache(r->options, &cache);
    if (cached && akunu_sequence_restore(session, sequence, &(struct akunu_ids){ r->ids, r->n_ids },
                                         &cache, &r->n_restored) != AKUNU_OK)
        return app_fail_library();
    const struct akunu_ids rest = { r->ids + r->n_restored, r->n_ids - r->n_restored };
    r->generation.on_piece = print_piece;
    r->generation.cancel = reply_is_cancelled;
    r->generation.user = r;
    r->progress = app_progress_begin();
    enum akunu_status status =
        akunu_session_generate(session, sequence, &rest, &r->generation, &result);
    app_progress_end(&r->progress);
    int code = finish_reply(r, status, &result);
    if (cached && code == APP_EXIT_OK &&
        akunu_sequence_keep(session, sequence, r->n_ids, &cache) != AKUNU_OK)
        return app_fail_library();
    return code;
}

/* ---- Setting up --------------------------------------------------------- */
static int check_flags(const struct app_options *o)
{
    if (!o->chat.messages)
        return app_fail_usage("the conversation is missing: give it with --messages FILE (- is "
                              "standard input); 'akunu-cli run' chats on the terminal");
    if (o->chat.stream && !o->output.json)
        return app_fail_usage("--stream needs --json; without it the text streams anyway");
    if (o->chat.tool_choice && !o->chat.tools)
        return app_fail_usage("--tool-choice %s needs --tools FILE", o->chat.tool_choice);
    if (o->chat.tools && strcmp(o->chat.tools, "-") == 0 && strcmp(o->chat.messages, "-") == 0)
        return app_fail_usage("--messages - and --tools -: only one of them can be standard input");
    return app_check_stops(o);
}

/* Reads all that needs no model. */
static int set_up(struct cli_reply *r)
{
    const struct app_options *o = r->options;
    int code = check_flags(o);
    if (code == APP_EXIT_OK)
        code = app_sampling(o, &r->sampling);
    if (code == APP_EXIT_OK)
        code = cli_reply_read_messages(r);
    if (code == APP_EXIT_OK)
        code = cli_reply_read_tools(r);
    if (code == APP_EXIT_OK)
        code = app_read_grammar(o, AKUNU_SCHEMA_WRITING, &r->content);
    r->generation = app_generation(o, &r->sampling);
    r->generation.special = true; /* such tokens mark reasoning and calls */
    return code;
}

static int open_model(struct cli_reply *r)
{
    const struct app_options *o = r->options;
    int code = app_load_model(o, &r->loaded);
    if (code == APP_EXIT_OK)
        code = app_need_tokenizer(&r->loaded, "chat");
    if (code == APP_EXIT_OK)
        r->template = app_chat_template(o, &r->loaded, &code);
    if (code == APP_EXIT_OK)
        code = app_check_bias(&r->sampling, r->loaded.model);
    if (code == APP_EXIT_OK)
        code = cli_reply_make_prompt(r);
    if (code == APP_EXIT_OK)
        code = begin_answer(r);
    if (code == APP_EXIT_OK)
        code = app_reasoning_limit(o, r->template, r->loaded.tokenizer, r->prompt, &r->reasoning,
                                   &r->generation);
    if (code == APP_EXIT_OK)
        code = app_open_session(o, &r->loaded, 0);
    if (code == APP_EXIT_OK && r->n_ids > akunu_session_context(r->loaded.session))
        code =
            app_fail("the conversation has %zu tokens and the context holds %u (-c sets its size)",
                     r->n_ids, akunu_session_context(r->loaded.session));
    if (code == APP_EXIT_OK)
        code = app_read_speculation(o, r->loaded.session, &r->draft, &r->generation);
    return code;
}

/* The JSON of a reply that Ctrl-C ended before it began. */
static void print_nothing(struct cli_reply *r)
{
    const struct akunu_result nothing = { .stop = AKUNU_STOP_CALLBACK };
    if (r->answer.reply && !cli_answer_end(&r->answer))
        return;
    cli_reply_print_end(r, &nothing, true);
}

int cli_chat(const struct app_options *o)
{
    struct cli_reply r = { .options = o,
                           .loaded = { .sequence = -1 },
                           .draft = { .sequence = -1 },
                           .out = app_output_stdout() };
    int code = set_up(&r);
    if (code == APP_EXIT_OK)
        code = open_model(&r);
    if (code == APP_EXIT_INTERRUPTED && o->output.json)
        print_nothing(&r);
    if (code == APP_EXIT_OK)
        code = generate_reply(&r);
    app_unload(&r.draft);
    app_unload(&r.loaded);
    cli_answer_free(&r.answer);
    akunu_template_free(r.template);
    free(r.prompt);
    akunu_grammar_free(r.grammar);
    akunu_grammar_free(r.content);
    json_decref(r.messages);
    json_decref(r.call);
    free(r.tools);
    free(r.ids);
    return app_output_end(&r.out, code);
}
