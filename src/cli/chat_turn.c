/* One answer: renders the conversation as a prompt, keeps the prefix that the KV cache already
 * holds, and streams the text. */
#include "cli/chat.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/message.h"

/* State of one answer. */
struct turn {
    struct cli_chat *chat;
    akunu_token *ids; /* the prompt, then the generated tokens */
    size_t n_ids, capacity;
    size_t n_kept; /* tokens of the prompt already in the KV cache */
    struct akunu_reply *reply;
    struct cli_output reasoning_out; /* reasoning, if standard output is not a terminal */
    bool in_reasoning;               /* the last text written was reasoning */
    bool has_text;                   /* some text was written */
    char last_byte;                  /* of the current line; NUL: nothing written */
    bool out_of_memory;
    struct cli_progress progress;
    size_t n_new; /* generated tokens reported so far */
};

/* ---- The prompt --------------------------------------------------------- */
static char *render(const struct cli_chat *chat, size_t *n)
{
    struct akunu_chat input;
    char *messages = json_dumps(chat->messages, JSON_COMPACT);
    if (!messages) {
        cli_fail_memory();
        return NULL;
    }
    akunu_chat_default(&input, sizeof input);
    input.messages = messages;
    input.kwargs = chat->options->kwargs;
    input.add_generation_prompt = true;
    char *prompt = akunu_template_render(chat->template, &input, n);
    free(messages);
    if (!prompt)
        cli_fail_library();
    return prompt;
}

/* Most templates write BOS themselves; for the others the model says whether it wants one. */
static bool wants_bos(const struct akunu_tokenizer *tokenizer)
{
    akunu_token first[8];
    int64_t n = akunu_tokenizer_encode(tokenizer, "", 0, AKUNU_ADD_SPECIAL, first,
                                       sizeof first / sizeof *first);
    return n > 0 && first[0] == akunu_tokenizer_bos(tokenizer);
}

static int tokenize(struct turn *turn, const char *prompt, size_t n)
{
    const struct akunu_tokenizer *tokenizer = turn->chat->loaded.tokenizer;
    const struct cli_text text = { (char *)(uintptr_t)prompt, n };
    int code = cli_tokenize_text(tokenizer, &text, AKUNU_PARSE_SPECIAL, &turn->ids, &turn->n_ids);
    if (code != CLI_EXIT_OK)
        return code;
    akunu_token bos = akunu_tokenizer_bos(tokenizer);
    bool add = wants_bos(tokenizer) && (turn->n_ids == 0 || turn->ids[0] != bos);
    turn->capacity = turn->n_ids + 1 + 64;
    akunu_token *larger = realloc(turn->ids, turn->capacity * sizeof *larger);
    if (!larger)
        return cli_fail_memory();
    turn->ids = larger;
    if (add) {
        memmove(larger + 1, larger, turn->n_ids * sizeof *larger);
        larger[0] = bos;
        turn->n_ids++;
    }
    return turn->n_ids ? CLI_EXIT_OK :
                         cli_fail("the chat template makes an empty prompt of the conversation");
}

/* Rewinds the KV cache to its common prefix with the prompt. At least the last token of the prompt
 * is run again, for its logits. */
static int keep_prefix(struct turn *turn)
{
    struct cli_chat *chat = turn->chat;
    size_t n = 0;
    while (n < chat->n_context_ids && n + 1 < turn->n_ids && chat->context_ids[n] == turn->ids[n])
        n++;
    turn->n_kept = n;
    if (akunu_sequence_rewind(chat->loaded.session, chat->loaded.sequence, (uint32_t)n) == AKUNU_OK)
        return CLI_EXIT_OK;
    return cli_fail_library();
}

static int fail_context_full(const struct turn *turn)
{
    return cli_fail(
        "the message was not sent: the conversation would have %zu tokens, and the "
        "context holds %u. /undo removes the last exchange, /clear starts over, -c sets "
        "the context size",
        turn->n_ids, akunu_session_context(turn->chat->loaded.session));
}

/* ---- The text ----------------------------------------------------------- */
/* Reasoning is not a result: unless standard output is a terminal, it goes to standard error. */
static struct cli_output *output_of(struct turn *turn)
{
    return turn->in_reasoning && !isatty(STDOUT_FILENO) ? &turn->reasoning_out : &turn->chat->out;
}

static void end_line(struct turn *turn)
{
    if (turn->last_byte && turn->last_byte != '\n')
        cli_output_text(output_of(turn), "\n");
    turn->last_byte = '\0';
}

static void end_reasoning(struct turn *turn)
{
    struct cli_output *out = output_of(turn);
    end_line(turn);
    cli_output_text(out, cli_supports_color(out->file) ? "\033[0m\n" : "[answer]\n");
    turn->in_reasoning = false;
}

static void begin_reasoning(struct turn *turn)
{
    end_line(turn);
    turn->in_reasoning = true;
    struct cli_output *out = output_of(turn);
    cli_output_text(out, cli_supports_color(out->file) ? "\033[2m" : "[reasoning]\n");
}

/* Writes text; to a terminal without control characters. */
static void write_text(struct turn *turn, const char *text, size_t n)
{
    struct cli_output *out = output_of(turn);
    bool terminal = isatty(fileno(out->file));
    for (size_t i = 0; i < n;) {
        size_t length = cli_utf8_length(text + i, n - i);
        unsigned char c = (unsigned char)text[i];
        length = length ? length : 1;
        bool is_control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ||
                          (length == 2 && c == 0xc2 && (unsigned char)text[i + 1] < 0xa0);
        if (!terminal || !is_control)
            cli_output_bytes(out, text + i, length);
        i += length;
    }
    turn->has_text = true;
    turn->last_byte = text[n - 1];
}

static void on_event(const struct akunu_reply_event *event, void *user)
{
    struct turn *turn = user;
    if (event->n_bytes == 0 ||
        (event->kind != AKUNU_REPLY_REASONING && event->kind != AKUNU_REPLY_CONTENT))
        return;
    if (turn->in_reasoning && event->kind == AKUNU_REPLY_CONTENT)
        end_reasoning(turn);
    if (!turn->in_reasoning && event->kind == AKUNU_REPLY_REASONING)
        begin_reasoning(turn);
    write_text(turn, event->text, event->n_bytes);
}

static bool keep_token(struct turn *turn, akunu_token token)
{
    size_t n = turn->n_ids + turn->n_new;
    if (n == turn->capacity) {
        akunu_token *larger = realloc(turn->ids, 2 * turn->capacity * sizeof *larger);
        if (!larger)
            return false;
        turn->ids = larger;
        turn->capacity *= 2;
    }
    turn->ids[n] = token;
    turn->n_new++;
    return true;
}

static bool on_token(akunu_token token, const char *text, size_t n, void *user)
{
    struct turn *turn = user;
    cli_progress_end(&turn->progress);
    if (token >= 0 && !keep_token(turn, token))
        turn->out_of_memory = true;
    else if (n > 0 && akunu_reply_push(turn->reply, text, n) != AKUNU_OK)
        turn->out_of_memory = true;
    return !turn->out_of_memory && cli_output_flush(&turn->chat->out) && !cli_is_interrupted();
}

static bool on_cancel(void *user)
{
    struct turn *turn = user;
    uint32_t done = akunu_sequence_length(turn->chat->loaded.session, turn->chat->loaded.sequence);
    if (done < turn->n_ids)
        cli_progress_show(&turn->progress, "prompt", (double)done / (double)turn->n_ids);
    return cli_is_interrupted();
}

/* ---- The answer --------------------------------------------------------- */
static struct akunu_reply *new_reply(struct turn *turn, const char *prompt)
{
    struct akunu_reply_params params;
    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = akunu_template_text(turn->chat->template, NULL, false, NULL);
    params.tokenizer = turn->chat->loaded.tokenizer;
    params.prompt = prompt;
    params.calls = false;
    struct akunu_reply *reply = akunu_reply_new(&params, on_event, turn);
    if (!reply)
        cli_fail_library();
    return reply;
}

static double rate(double n, double seconds)
{
    return seconds > 0.0 ? n / seconds : 0.0;
}

static void print_speed(const struct turn *turn, const struct akunu_result *r)
{
    const struct cli_chat *chat = turn->chat;
    /* the prompt's pass yields the first token */
    uint64_t n_after_first = r->n_generated ? r->n_generated - 1 : 0;
    cli_aside("%llu token%s, %.1f tok/s; prompt %llu (%zu kept), %.1f tok/s; context %u of %u",
              (unsigned long long)r->n_generated, r->n_generated == 1 ? "" : "s",
              rate((double)n_after_first, r->generate_seconds), (unsigned long long)r->n_prompt,
              turn->n_kept, rate((double)r->n_prompt, r->prompt_seconds),
              akunu_sequence_length(chat->loaded.session, chat->loaded.sequence),
              akunu_session_context(chat->loaded.session));
}

/* Updates the conversation and the KV cache's tokens after the answer. */
static int finish_turn(struct turn *turn, const struct akunu_result *result)
{
    struct cli_chat *chat = turn->chat;
    int code = CLI_EXIT_OK;
    if (akunu_reply_end(turn->reply) != AKUNU_OK)
        return cli_fail_memory();
    const char *text = akunu_reply_message(turn->reply);
    json_t *message = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    if (!message)
        return cli_fail_memory();
    if (json_is_null(json_object_get(message, "content")))
        json_object_set_new(message, "content", json_string(""));
    if (turn->has_text) {
        if (json_array_append(chat->messages, message) != 0)
            code = cli_fail_memory();
        chat->n_answers++;
        chat->seed++;
    }
    json_decref(message);
    chat->n_prompt += result->n_prompt;
    chat->n_reused += turn->n_kept;
    chat->n_generated += result->n_generated;
    chat->prompt_seconds += result->prompt_seconds;
    chat->generate_seconds += result->generate_seconds;
    return code;
}

static void keep_context(struct turn *turn)
{
    struct cli_chat *chat = turn->chat;
    free(chat->context_ids);
    chat->context_ids = turn->ids;
    chat->n_context_ids = akunu_sequence_length(chat->loaded.session, chat->loaded.sequence);
    turn->ids = NULL;
}

static int generate(struct turn *turn)
{
    struct cli_chat *chat = turn->chat;
    struct akunu_result result = { .size = sizeof result };
    chat->sampling.params.seed = (uint64_t)chat->seed;

    turn->progress = cli_progress_begin();
    enum akunu_status status = akunu_session_generate(
        chat->loaded.session, chat->loaded.sequence, turn->ids + turn->n_kept,
        turn->n_ids - turn->n_kept, &chat->generation, on_token, on_cancel, turn, &result);
    cli_progress_end(&turn->progress);
    bool stopped = cli_is_interrupted() || status == AKUNU_ERROR_CANCELLED;
    cli_interrupt_clear();

    int code = turn->out_of_memory ? cli_fail_memory() : finish_turn(turn, &result);
    if (turn->in_reasoning)
        end_reasoning(turn);
    end_line(turn);
    cli_output_flush(&chat->out);
    keep_context(turn);
    if (code == CLI_EXIT_OK && status != AKUNU_OK && !stopped)
        code = cli_fail_library();
    if (stopped)
        cli_aside(turn->has_text ? "stopped" :
                                   "stopped before the answer; the message was removed");
    else if (status == AKUNU_OK && result.stop == AKUNU_STOP_LENGTH)
        cli_aside("cut off after %lld tokens (-n)",
                  (long long)chat->options->generation.max_tokens);
    else if (status == AKUNU_OK && result.stop == AKUNU_STOP_CONTEXT)
        cli_warn(
            "the context is full (%u tokens), so the answer is cut off: /undo removes the last "
            "exchange, /clear starts over, -c sets the context size",
            akunu_session_context(chat->loaded.session));
    else if (code == CLI_EXIT_OK && !turn->has_text)
        cli_aside("the model gave no answer; the message was removed");
    if (code == CLI_EXIT_OK && result.n_prompt > 0)
        print_speed(turn, &result);
    return code;
}

int cli_chat_answer(struct cli_chat *chat)
{
    struct turn turn = { .chat = chat, .reasoning_out = { .file = stderr } };
    size_t n = 0;
    int code = CLI_EXIT_FAILURE;
    char *prompt = render(chat, &n);
    if (prompt)
        code = tokenize(&turn, prompt, n);
    if (code == CLI_EXIT_OK && turn.n_ids > akunu_session_context(chat->loaded.session))
        code = fail_context_full(&turn);
    if (code == CLI_EXIT_OK)
        code = keep_prefix(&turn);
    if (code == CLI_EXIT_OK) {
        turn.reply = new_reply(&turn, prompt);
        code = turn.reply ? generate(&turn) : CLI_EXIT_FAILURE;
    }
    if (!turn.has_text && cli_chat_is_last(chat, "user"))
        cli_chat_drop_last(chat);
    akunu_reply_free(turn.reply);
    akunu_text_free(prompt);
    free(turn.ids);
    return code;
}

void cli_chat_forget(struct cli_chat *chat)
{
    chat->n_context_ids = 0;
}
