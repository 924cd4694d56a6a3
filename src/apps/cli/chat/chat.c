/* run as a conversation: reads messages and commands until the input ends. */
#include "apps/cli/chat/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/chat/history.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/options.h"
#include "apps/common/prompt.h"
#include "apps/common/sampling.h"

static const char prompt[] = "> ", more[] = "... ";

enum { MAX_SHOWN_LINES = 12 };

/* ---- History ------------------------------------------------------------ */
static void recall(const char *line, void *user)
{
    cli_line_remember(user, line);
}

static void open_history(struct cli_chat *chat)
{
    if (!cli_line_has_history(chat->editor) || chat->options->chat.no_history)
        return;
    chat->history = cli_history_path();
    if (chat->history)
        cli_history_read(chat->history, recall, chat->editor);
}

/* Keeps a line; after a failure no more. */
static void remember(struct cli_chat *chat, const char *line)
{
    bool created = false;
    cli_line_remember(chat->editor, line);
    if (!chat->history)
        return;
    int error = cli_history_add(chat->history, line, &created);
    if (created)
        app_aside("what you type is kept in %s (--no-history keeps nothing)", chat->history);
    if (error != 0) {
        app_warn("what you type is not kept: %s: %s", chat->history, strerror(error));
        free(chat->history);
        chat->history = NULL;
    }
}

/* ---- A message ---------------------------------------------------------- */
static int append_bytes(struct app_text *text, const char *bytes, size_t n)
{
    char *larger = realloc(text->bytes, text->n + n + 2);
    if (!larger)
        return app_fail_memory();
    memcpy(larger + text->n, bytes, n);
    text->bytes = larger;
    text->n += n;
    larger[text->n] = '\0';
    return APP_EXIT_OK;
}

static bool begins_block(const char *line)
{
    return strncmp(line, "\"\"\"", 3) == 0;
}

static bool ends_block(const char *line, size_t n)
{
    return n >= 3 && memcmp(line + n - 3, "\"\"\"", 3) == 0;
}

/* Reads a message of one or several lines: continued by \ at the end of a line, enclosed in """, or
 * pasted together. One that begins with a space is a secret: the history gets none of its lines,
 * and of others no line that does. *result: how it ended. Free text->bytes. */
static int read_message(struct cli_chat *chat, struct app_text *text, enum cli_line *result)
{
    const char *line;
    size_t n;
    bool block = false, goes_on = true, secret = false;
    int code = APP_EXIT_OK;
    for (bool first = true; goes_on && code == APP_EXIT_OK; first = false) {
        *result = cli_line_read(chat->editor, first ? prompt : more, &line, &n);
        if (*result == CLI_LINE_END && !first && text->n > 0)
            *result = CLI_LINE_TEXT; /* what was read is a message */
        else if (*result == CLI_LINE_NO_MEMORY)
            return app_fail_memory();
        else if (*result == CLI_LINE_TEXT) {
            secret = first ? line[0] == ' ' : secret;
            if (!secret && line[0] != ' ')
                remember(chat, line);
            if (first && begins_block(line)) {
                block = true;
                line += 3;
                n -= 3;
            } else if (!first) {
                code = append_bytes(text, "\n", 1);
            }
            bool closes = block && ends_block(line, n);
            bool continues = !block && n > 0 && line[n - 1] == '\\';
            if (code == APP_EXIT_OK)
                code = append_bytes(text, line, n - (closes ? 3 : continues ? 1 : 0));
            goes_on = block ? !closes :
                              continues || (line[0] != '/' && cli_line_is_waiting(chat->editor));
            continue;
        }
        return code;
    }
    return code;
}

static bool is_whitespace(const struct app_text *text)
{
    return strspn(text->bytes, " \t\r\n") == text->n;
}

static int take_message(struct cli_chat *chat, const struct app_text *text)
{
    int code;
    if (is_whitespace(text))
        return APP_EXIT_OK;
    if (cli_chat_run_command(chat, text->bytes, &code))
        return code;
    code = cli_chat_add_user(chat, text->bytes, text->n);
    return code == APP_EXIT_OK ? cli_chat_answer(chat) : code;
}

/* ---- The conversation --------------------------------------------------- */
/* Ctrl-C at the prompt drops the line; on an empty line a second one leaves the conversation. */
static bool leaves(struct cli_chat *chat, bool *warned)
{
    app_interrupt_clear();
    if (*warned || !cli_line_is_typed(chat->editor))
        return true;
    *warned = true;
    app_aside("Ctrl-C again, Ctrl-D or /exit leaves");
    return false;
}

static int converse(struct cli_chat *chat)
{
    bool warned = false;
    int code = APP_EXIT_OK;
    while (!chat->quit && !(chat->options->chat.single_turn && chat->n_answers > 0)) {
        struct app_text text = { 0 };
        enum cli_line result;
        if (cli_line_is_typed(chat->editor))
            fputc('\n', stderr);
        code = read_message(chat, &text, &result);
        if (code == APP_EXIT_OK && result == CLI_LINE_TEXT)
            code = take_message(chat, &text);
        free(text.bytes);
        if (result == CLI_LINE_DROPPED)
            app_interrupt_clear();
        if (result == CLI_LINE_INTERRUPTED) {
            if (leaves(chat, &warned))
                return APP_EXIT_INTERRUPTED;
            continue;
        }
        warned = false;
        if (result == CLI_LINE_END)
            return APP_EXIT_OK;
        if (chat->out.error != 0 || code == APP_EXIT_MEMORY)
            return code;
        if (code != APP_EXIT_OK && !cli_line_is_typed(chat->editor))
            return code; /* no one is there to correct it */
    }
    return APP_EXIT_OK;
}

static void greet(const struct cli_chat *chat)
{
    if (cli_line_is_typed(chat->editor))
        app_aside("%s, %u tokens of context. /help, Ctrl-D leaves.", cli_chat_model_name(chat),
                  akunu_session_context(chat->loaded->session));
}

static int set_up_system(struct cli_chat *chat)
{
    struct app_text text;
    int code = app_read_system(chat->options, &text);
    if (code == APP_EXIT_OK && text.n > 0)
        code = cli_chat_set_system(chat, text.bytes);
    free(text.bytes);
    return code;
}

/* Takes the first message from -p or -f; a person sees it as if it had been typed. */
static int take_first(struct cli_chat *chat)
{
    const struct app_options *o = chat->options;
    struct app_text text = { 0 };
    if (!o->prompt.text && !o->prompt.file)
        return APP_EXIT_OK;
    int code = app_read_prompt(o, "a message", &text);
    if (code == APP_EXIT_OK && cli_line_is_typed(chat->editor)) {
        fputc('\n', stderr);
        cli_line_show(prompt, more, text.bytes, text.n, MAX_SHOWN_LINES);
    }
    if (code == APP_EXIT_OK)
        code = cli_chat_add(chat, "user", text.bytes, text.n);
    free(text.bytes);
    return code == APP_EXIT_OK ? cli_chat_answer(chat) : code;
}

static int open_chat(struct cli_chat *chat)
{
    const struct app_options *o = chat->options;
    chat->messages = json_array();
    chat->editor = cli_line_editor_new();
    if (!chat->messages || !chat->editor)
        return app_fail_memory();
    cli_line_set_completer(chat->editor, cli_chat_complete, NULL);
    open_history(chat);
    int code = app_sampling(o, &chat->sampling);
    if (code == APP_EXIT_OK)
        code = set_up_system(chat);
    if (code == APP_EXIT_OK)
        code = app_read_grammar(o, AKUNU_SCHEMA_WRITING, &chat->grammar);
    if (code == APP_EXIT_OK)
        code = cli_chat_open_model(chat, o, chat->loaded, &chat->template);
    chat->generation = app_generation(o, &chat->sampling);
    chat->sampling.params.grammar = chat->grammar;
    chat->seed = (int64_t)chat->sampling.params.seed;
    chat->generation.special = true; /* such tokens mark reasoning */
    if (code == APP_EXIT_OK)
        code = app_read_speculation(o, chat->loaded->session, &chat->draft, &chat->generation);
    return code;
}

int app_converse(const struct app_options *o)
{
    struct app_options options = *o;
    struct cli_chat chat = { .options = &options,
                             .models = { { .sequence = -1 }, { .sequence = -1 } },
                             .draft = { .sequence = -1 },
                             .out = app_output_stdout() };
    chat.loaded = &chat.models[0];
    int code = open_chat(&chat);
    if (code == APP_EXIT_OK) {
        greet(&chat);
        code = take_first(&chat);
    }
    if (code == APP_EXIT_OK)
        code = converse(&chat);
    free(chat.context_ids);
    free(chat.attached.bytes);
    free(chat.history);
    json_decref(chat.messages);
    akunu_grammar_free(chat.grammar);
    akunu_template_free(chat.template);
    cli_line_editor_free(chat.editor);
    app_unload(&chat.draft);
    app_unload(chat.loaded);
    return app_output_end(&chat.out, code);
}
