/* A conversation on standard input, a message a line:
 * chat MODEL.gguf [SYSTEM-MESSAGE [TOKENS-OF-AN-ANSWER]]
 *
 * Each turn gives the library the whole conversation. The sequence keeps the tokens of earlier
 * turns, so only new ones are run. Ctrl-C stops an answer. */
#define _POSIX_C_SOURCE 200809L
#include <akunu/akunu.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* Called before every pass. */
static bool is_cancelled(void *user)
{
    (void)user;
    return is_interrupted != 0;
}

/* ---- Text that grows ---------------------------------------------------- */
struct text {
    char *bytes; /* ends with NUL; NULL: empty */
    size_t n;
};

static bool append(struct text *text, const char *bytes, size_t n)
{
    char *larger = realloc(text->bytes, text->n + n + 1);
    if (!larger)
        return false;
    memcpy(larger + text->n, bytes, n);
    text->bytes = larger;
    text->n += n;
    text->bytes[text->n] = '\0';
    return true;
}

/* Appends a message to a JSON list of messages, without the bracket that ends the list. */
static bool append_message(struct text *messages, const char *role, const char *content, size_t n)
{
    char head[64], escaped[8];
    snprintf(head, sizeof head, "%s{\"role\": \"%s\", \"content\": \"", messages->n ? ", " : "[",
             role);
    bool good = append(messages, head, strlen(head));
    for (size_t i = 0; good && i < n; i++) {
        unsigned char c = (unsigned char)content[i];
        bool special = c < ' ' || c == '"' || c == '\\';
        snprintf(escaped, sizeof escaped, special ? "\\u%04x" : "%c", c);
        good = append(messages, escaped, strlen(escaped));
    }
    return good && append(messages, "\"}", 2);
}

/* ---- Turns -------------------------------------------------------------- */
struct chat {
    struct akunu_session *session;
    akunu_sequence sequence;
    int64_t max_tokens; /* of an answer */
    struct text messages, answer;
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct chat *chat = user;
    (void)index, (void)token;
    fwrite(text, 1, n_bytes, stdout);
    fflush(stdout);
    return append(&chat->answer, text, n_bytes);
}

static enum akunu_status answer(struct chat *chat, struct akunu_result *result)
{
    struct akunu_chat input;
    struct akunu_generation_params generation;
    struct akunu_completion_params completion;
    struct text whole = { NULL, 0 };
    enum akunu_status status = AKUNU_ERROR_MEMORY;
    akunu_chat_default(&input, sizeof input);
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_completion_params_default(&completion, sizeof completion);
    generation.max_tokens = chat->max_tokens;
    generation.on_piece = on_piece;
    generation.cancel = is_cancelled;
    generation.user = chat;
    completion.generation = &generation;
    completion.chat = &input;
    if (append(&whole, chat->messages.bytes, chat->messages.n) && append(&whole, "]", 1)) {
        input.messages = whole.bytes;
        status =
            akunu_session_complete(chat->session, chat->sequence, NULL, 0, &completion, result);
    }
    free(whole.bytes);
    return status;
}

/* One message and its answer; false: the conversation cannot go on. */
static bool take_turn(struct chat *chat, const char *line, size_t n)
{
    struct akunu_result result;
    akunu_result_default(&result, sizeof result);
    if (!append_message(&chat->messages, "user", line, n))
        return false;
    is_interrupted = 0;
    chat->answer.n = 0;
    enum akunu_status status = answer(chat, &result);
    printf("\n");
    if (status != AKUNU_OK && status != AKUNU_ERROR_CANCELLED) {
        fprintf(stderr, "chat: %s\n", akunu_last_error());
        return false;
    }
    fprintf(stderr, "[%llu tokens of the conversation kept, %llu run, %llu generated]\n",
            (unsigned long long)result.n_kept, (unsigned long long)result.n_prompt,
            (unsigned long long)result.n_generated);
    return append_message(&chat->messages, "assistant", chat->answer.bytes, chat->answer.n);
}

static bool run_chat(struct chat *chat, const char *system)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    bool good = !*system || append_message(&chat->messages, "system", system, strlen(system));
    while (good && (n = getline(&line, &capacity, stdin)) > 0)
        good = take_turn(chat, line, (size_t)n - (line[n - 1] == '\n'));
    free(line);
    return good;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: chat MODEL.gguf [SYSTEM-MESSAGE [TOKENS-OF-AN-ANSWER]]\n");
        return 2;
    }
    struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESTART };
    sigaction(SIGINT, &action, NULL);

    struct chat chat = { .sequence = -1, .max_tokens = argc == 4 ? atoi(argv[3]) : 512 };
    struct akunu_model *model = akunu_model_load(argv[1], NULL);
    chat.session = model ? akunu_session_new(model, NULL) : NULL;
    chat.sequence = chat.session ? akunu_sequence_new(chat.session) : -1;
    bool good = chat.sequence >= 0;
    if (!good)
        fprintf(stderr, "chat: %s\n", akunu_last_error());
    good = good && run_chat(&chat, argc >= 3 ? argv[2] : "");
    free(chat.messages.bytes);
    free(chat.answer.bytes);
    akunu_session_free(chat.session); /* and its sequences */
    akunu_model_free(model);
    return good ? 0 : 1;
}
