/* One answer: renders the conversation as a prompt, keeps the prefix that the KV cache already
 * holds, and streams the text. */
#include "apps/cli/chat/chat.h"

#include <stdlib.h>

#include "apps/cli/run/answer.h"
#include "apps/common/message.h"

/* State of one answer. */
struct turn {
    struct cli_chat *chat;
    akunu_token *ids; /* the prompt, then the generated tokens */
    size_t n_ids, capacity;
    size_t n_kept; /* tokens of the prompt already in the KV cache */
    struct cli_answer answer;
    bool out_of_memory;
    struct app_progress progress;
    size_t n_new; /* generated tokens reported so far */
};

/* ---- The prompt --------------------------------------------------------- */
static int tokenize(struct turn *turn, const char *prompt, size_t n)
{
    int code =
        app_tokenize_prompt(turn->chat->loaded->tokenizer, prompt, n, &turn->ids, &turn->n_ids);
    turn->capacity = turn->n_ids;
    return code;
}

/* Rewinds the KV cache to its common prefix with the prompt. At least the last token of the prompt
 * is run again, for its logits. */
static int keep_prefix(struct turn *turn)
{
    struct cli_chat *chat = turn->chat;
    size_t n = 0;
    while (n < chat->n_context_ids && n + 1 < turn->n_ids && chat->context_ids[n] == turn->ids[n])
        n++;
    n = akunu_sequence_rewindable(chat->loaded->session, chat->loaded->sequence, (uint32_t)n);
    turn->n_kept = n;
    if (akunu_sequence_rewind(chat->loaded->session, chat->loaded->sequence, (uint32_t)n) ==
        AKUNU_OK)
        return APP_EXIT_OK;
    return app_fail_library();
}

static int fail_context_full(const struct turn *turn)
{
    return app_fail(
        "the message was not sent: the conversation would have %zu tokens, and the "
        "context holds %u. /undo removes the last exchange, /clear starts over, -c sets "
        "the context size",
        turn->n_ids, akunu_session_context(turn->chat->loaded->session));
}

/* ---- The text ----------------------------------------------------------- */
static bool keep_token(struct turn *turn, akunu_token token)
{
    size_t n = turn->n_ids + turn->n_new;
    if (n == turn->capacity) {
        size_t capacity = 2 * turn->capacity + 64;
        akunu_token *larger = realloc(turn->ids, capacity * sizeof *larger);
        if (!larger)
            return false;
        turn->ids = larger;
        turn->capacity = capacity;
    }
    turn->ids[n] = token;
    turn->n_new++;
    return true;
}

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n, void *user)
{
    struct turn *turn = user;
    (void)index;
    app_progress_end(&turn->progress);
    if (token >= 0 && !keep_token(turn, token))
        turn->out_of_memory = true;
    else if (!cli_answer_push(&turn->answer, text, n))
        turn->out_of_memory = true;
    return !turn->out_of_memory && app_output_flush(&turn->chat->out) && !app_is_interrupted();
}

static bool turn_is_cancelled(void *user)
{
    struct turn *turn = user;
    uint32_t done =
        akunu_sequence_length(turn->chat->loaded->session, turn->chat->loaded->sequence);
    if (done < turn->n_ids)
        app_progress_show(&turn->progress, "prompt", (double)done / (double)turn->n_ids);
    return app_is_interrupted();
}

/* ---- The answer --------------------------------------------------------- */
static void print_speed(const struct turn *turn, const struct akunu_result *r)
{
    const struct cli_chat *chat = turn->chat;
    /* the prompt's pass yields the first token */
    uint64_t n_after_first = r->n_generated ? r->n_generated - 1 : 0;
    app_aside("%llu token%s, %.1f tok/s; prompt %llu (%zu kept), %.1f tok/s; context %u of %u",
              (unsigned long long)r->n_generated, r->n_generated == 1 ? "" : "s",
              app_rate((double)n_after_first, r->generate_seconds), (unsigned long long)r->n_prompt,
              turn->n_kept, app_rate((double)r->n_prompt, r->prompt_seconds),
              akunu_sequence_length(chat->loaded->session, chat->loaded->sequence),
              akunu_session_context(chat->loaded->session));
}

/* Updates the conversation and the KV cache's tokens after the answer. */
static int finish_turn(struct turn *turn, const struct akunu_result *result)
{
    struct cli_chat *chat = turn->chat;
    int code = APP_EXIT_OK;
    json_t *message = cli_answer_end(&turn->answer) ? cli_answer_message(&turn->answer) : NULL;
    if (!message)
        return app_fail_memory();
    if (json_is_null(json_object_get(message, "content")))
        json_object_set_new(message, "content", json_string(""));
    if (turn->answer.has_text) {
        if (json_array_append(chat->messages, message) != 0)
            code = app_fail_memory();
        chat->n_answers++;
        chat->n_turns++;
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
    chat->n_context_ids = akunu_sequence_length(chat->loaded->session, chat->loaded->sequence);
    turn->ids = NULL;
}

static int generate_turn(struct turn *turn)
{
    struct cli_chat *chat = turn->chat;
    struct akunu_result result = { .size = sizeof result };
    const struct akunu_ids rest = { turn->ids + turn->n_kept, turn->n_ids - turn->n_kept };
    chat->sampling.params.seed = (uint64_t)chat->seed;
    chat->generation.on_piece = on_piece;
    chat->generation.cancel = turn_is_cancelled;
    chat->generation.user = turn;

    turn->progress = app_progress_begin();
    enum akunu_status status = akunu_session_generate(chat->loaded->session, chat->loaded->sequence,
                                                      &rest, &chat->generation, &result);
    app_progress_end(&turn->progress);
    bool stopped = app_is_interrupted() || status == AKUNU_ERROR_CANCELLED;
    app_interrupt_clear();

    int code = turn->out_of_memory ? app_fail_memory() : finish_turn(turn, &result);
    app_output_flush(&chat->out);
    keep_context(turn);
    if (code == APP_EXIT_OK && status != AKUNU_OK && !stopped)
        code = app_fail_library();
    if (stopped)
        app_aside(turn->answer.has_text ? "stopped" :
                                          "stopped before the answer; the message was removed");
    else if (status == AKUNU_OK && result.stop == AKUNU_STOP_LENGTH)
        app_aside("cut off after %lld tokens (-n)",
                  (long long)chat->options->generation.max_tokens);
    else if (status == AKUNU_OK && result.stop == AKUNU_STOP_CONTEXT)
        app_warn(
            "the context is full (%u tokens), so the answer is cut off: /undo removes the last "
            "exchange, /clear starts over, -c sets the context size",
            akunu_session_context(chat->loaded->session));
    else if (code == APP_EXIT_OK && !turn->answer.has_text)
        app_aside("the model gave no answer; the message was removed");
    if (code == APP_EXIT_OK && result.n_prompt > 0)
        print_speed(turn, &result);
    return code;
}

int cli_chat_answer(struct cli_chat *chat)
{
    struct turn turn = { .chat = chat };
    size_t n = 0;
    int code = APP_EXIT_FAILURE;
    char *prompt = app_render_prompt(chat->options, chat->template, chat->messages, &n);
    if (prompt)
        code = app_reasoning_limit(chat->options, chat->template, chat->loaded->tokenizer, prompt,
                                   &chat->reasoning, &chat->generation);
    if (code == APP_EXIT_OK)
        code = tokenize(&turn, prompt, n);
    if (code == APP_EXIT_OK && turn.n_ids > akunu_session_context(chat->loaded->session))
        code = fail_context_full(&turn);
    if (code == APP_EXIT_OK)
        code = keep_prefix(&turn);
    if (code == APP_EXIT_OK)
        code = cli_answer_begin(&turn.answer, chat->template, chat->loaded, prompt, &chat->out);
    turn.answer.no_wrap = chat->options->chat.no_wrap;
    turn.answer.hide_reasoning = chat->options->chat.hide_reasoning;
    if (code == APP_EXIT_OK)
        code = generate_turn(&turn);
    if (!turn.answer.has_text && cli_chat_is_last(chat, "user"))
        cli_chat_drop_last(chat);
    cli_answer_free(&turn.answer);
    free(prompt);
    free(turn.ids);
    return code;
}
