/* Writes an answer while it is generated, its reasoning apart from its content. */
#include "apps/cli/run/answer.h"

#include <string.h>
#include <unistd.h>

#include "apps/common/message.h"
#include "apps/cli/run/terminal.h"

/* Unless standard output is a terminal, reasoning goes to standard error. */
static struct app_output *output_of(struct cli_answer *a)
{
    return a->in_reasoning && !isatty(STDOUT_FILENO) ? &a->reasoning_out : a->out;
}

static void end_line(struct cli_answer *a)
{
    cli_wrap_end(&a->wrap);
    cli_wrap_begin(&a->wrap, a->out);
    if (a->in_line)
        app_output_text(output_of(a), "\n");
    a->in_line = false;
}

static void end_reasoning(struct cli_answer *a)
{
    struct app_output *out = output_of(a);
    end_line(a);
    app_output_text(out, app_supports_color(out->file) ? "\033[0m\n" : "[answer]\n");
    a->in_reasoning = false;
}

static void begin_reasoning(struct cli_answer *a)
{
    end_line(a);
    a->in_reasoning = true;
    struct app_output *out = output_of(a);
    app_output_text(out, app_supports_color(out->file) ? "\033[2m" : "[reasoning]\n");
}

/* Writes text; to a terminal in lines of its width, without control characters. */
static void write_text(struct cli_answer *a, const char *text, size_t n)
{
    struct app_output *out = output_of(a);
    if (isatty(fileno(out->file))) {
        a->wrap.out = out;
        a->wrap.columns = a->no_wrap ? 0 : cli_terminal_columns(out->file);
        cli_wrap_push(&a->wrap, text, n);
    } else {
        app_output_bytes(out, text, n);
    }
    a->has_text = true;
    a->in_line = text[n - 1] != '\n';
}

void cli_answer_write(struct cli_answer *a, const struct akunu_reply_event *event)
{
    if (event->n_bytes == 0 ||
        (event->kind != AKUNU_REPLY_REASONING && event->kind != AKUNU_REPLY_CONTENT))
        return;
    if (a->hide_reasoning && event->kind == AKUNU_REPLY_REASONING)
        return;
    if (a->in_reasoning && event->kind == AKUNU_REPLY_CONTENT)
        end_reasoning(a);
    if (!a->in_reasoning && event->kind == AKUNU_REPLY_REASONING)
        begin_reasoning(a);
    write_text(a, event->text, event->n_bytes);
}

void cli_answer_write_line(struct cli_answer *a, const char *text, size_t n)
{
    if (a->in_reasoning)
        end_reasoning(a);
    end_line(a);
    write_text(a, text, n);
    end_line(a);
}

static void on_event(const struct akunu_reply_event *event, void *user)
{
    cli_answer_write(user, event);
}

static struct akunu_reply_params params_of(const struct akunu_template *template,
                                           const struct app_model_session *loaded,
                                           const char *prompt)
{
    struct akunu_reply_params params;
    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = akunu_template_text(template, NULL, false, NULL);
    params.tokenizer = loaded->tokenizer;
    params.prompt = prompt;
    params.calls = false;
    return params;
}

static struct akunu_reply *new_reply(const struct akunu_template *template,
                                     const struct app_model_session *loaded, const char *prompt,
                                     akunu_reply_fn *fn, void *user)
{
    struct akunu_reply_params params = params_of(template, loaded, prompt);
    return akunu_reply_new(&params, fn, user);
}

int cli_answer_grammar(const struct akunu_template *template,
                       const struct app_model_session *loaded, const char *prompt,
                       struct akunu_grammar **grammar)
{
    struct akunu_reply_params params = params_of(template, loaded, prompt);
    struct akunu_tool_grammar_params calls;
    struct akunu_grammar *whole;
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    calls.content = *grammar;
    if (akunu_grammar_from_tools(&params, &calls, &whole) != AKUNU_OK)
        return app_fail_library();
    akunu_grammar_free(*grammar);
    *grammar = whole;
    return APP_EXIT_OK;
}

int cli_answer_begin(struct cli_answer *a, const struct akunu_template *template,
                     const struct app_model_session *loaded, const char *prompt,
                     struct app_output *out)
{
    *a = (struct cli_answer){ .out = out, .reasoning_out = { .file = stderr } };
    a->reply = new_reply(template, loaded, prompt, on_event, a);
    return a->reply ? APP_EXIT_OK : app_fail_library();
}

bool cli_answer_push(struct cli_answer *a, const char *text, size_t n)
{
    return n == 0 || akunu_reply_push(a->reply, text, n) == AKUNU_OK;
}

bool cli_answer_end(struct cli_answer *a)
{
    bool good = akunu_reply_end(a->reply) == AKUNU_OK;
    if (a->in_reasoning)
        end_reasoning(a);
    end_line(a);
    return good;
}

static json_t *message_of(struct akunu_reply *reply)
{
    const char *text = akunu_reply_message(reply);
    return text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
}

json_t *cli_answer_message(struct cli_answer *a)
{
    return message_of(a->reply);
}

json_t *cli_answer_parse(const struct akunu_template *template,
                         const struct app_model_session *loaded, const char *prompt,
                         const char *text, size_t n)
{
    struct akunu_reply *reply = new_reply(template, loaded, prompt, NULL, NULL);
    json_t *message = NULL;
    if (reply && (n == 0 || akunu_reply_push(reply, text, n) == AKUNU_OK) &&
        akunu_reply_end(reply) == AKUNU_OK)
        message = message_of(reply);
    akunu_reply_free(reply);
    return message;
}

void cli_answer_free(struct cli_answer *a)
{
    akunu_reply_free(a->reply);
    a->reply = NULL;
}
