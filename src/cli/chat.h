/* Interactive chat of the run command: the state of a conversation in the terminal, and the
 * functions of chat*.c. Used by chat*.c only; run.c starts a chat with cli_chat (options.h). */
#ifndef AK_CLI_CHAT_H
#define AK_CLI_CHAT_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "cli/line_edit.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/sampling.h"

struct cli_chat {
    const struct cli_options *options;
    struct cli_model_session loaded, draft;
    struct cli_sampling sampling;
    struct akunu_generation generation; /* each answer sets its seed */
    struct cli_output out;
    struct cli_line_editor *editor;
    char *history; /* file of what was typed; NULL: none is kept */
    struct akunu_template *template;
    struct akunu_grammar *grammar; /* for every answer; NULL: none */
    json_t *messages;              /* JSON list of messages, as apply-template takes it */
    bool quit;

    /* Tokens in the KV cache: the prompt of the last turn and the answer. */
    akunu_token *context_ids;
    size_t n_context_ids;

    int64_t seed;                                        /* seed of the next answer */
    uint64_t n_answers, n_prompt, n_reused, n_generated; /* over all turns, for /stats */
    double prompt_seconds, generate_seconds;
};

/* chat_turn.c: answers the last message and adds the answer. If there is no answer, the user's
 * message is removed too, so that roles still alternate. Returns an exit code after a message.
 * Ctrl-C ends only the answer and gives CLI_EXIT_OK. */
int cli_chat_answer(struct cli_chat *chat);

/* Empties the KV cache for a new conversation. */
void cli_chat_forget(struct cli_chat *chat);

/* chat_messages.c: the list of messages. Functions that return int give an exit code after a
 * message. */
int cli_chat_add(struct cli_chat *chat, const char *role, const char *text, size_t n);
const json_t *
cli_chat_system(const struct cli_chat *chat); /* content of the system message; NULL: none */
int cli_chat_set_system(struct cli_chat *chat, const char *text); /* NULL removes it */
bool cli_chat_is_last(const struct cli_chat *chat, const char *role);
void cli_chat_drop_last(struct cli_chat *chat);
int cli_chat_save(const struct cli_chat *chat, const char *path);
int cli_chat_load(struct cli_chat *chat, const char *path);

/* chat_commands.c: runs a line that is a command; false: it is a message. *code: the result of
 * cli_chat_answer if the command asked for an answer. */
bool cli_chat_run_command(struct cli_chat *chat, const char *line, int *code);

#endif
