/* A conversation in the terminal. */
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
    struct akunu_generation generation; /* but for the seed */
    struct cli_output out;
    struct cli_line_editor *editor;
    struct akunu_template *template;
    struct akunu_grammar *grammar; /* of every answer; NULL: none */
    json_t *messages;              /* a list, as apply-template takes it */
    bool quit;

    /* The tokens that the KV cache holds: the prompt of the last turn and the answer. */
    akunu_token *context_ids;
    size_t n_context_ids;

    int64_t seed;                                        /* of the next answer */
    uint64_t n_answers, n_prompt, n_reused, n_generated; /* over all turns, for /stats */
    double prompt_seconds, generate_seconds;
};

/* chat_turn.c: answers the last message, and adds the answer. Where there is none, the
 * user's message goes too, so that roles still alternate. Gives an exit code after a message;
 * Ctrl-C ends the answer alone and is CLI_EXIT_OK. */
int cli_chat_answer(struct cli_chat *chat);

/* Forgets the KV cache, for a conversation that begins anew. */
void cli_chat_forget(struct cli_chat *chat);

/* chat_messages.c: what was said. Each gives an exit code after a message. */
int cli_chat_add(struct cli_chat *chat, const char *role, const char *text, size_t n);
const json_t *cli_chat_system(const struct cli_chat *chat);       /* its content; NULL: none */
int cli_chat_set_system(struct cli_chat *chat, const char *text); /* NULL takes it away */
bool cli_chat_is_last(const struct cli_chat *chat, const char *role);
void cli_chat_drop_last(struct cli_chat *chat);
int cli_chat_save(const struct cli_chat *chat, const char *path);
int cli_chat_load(struct cli_chat *chat, const char *path);

/* chat_commands.c: obeys a line that is a command; false: it is a message. *code is what
 * cli_chat_answer gave where the command asked for an answer. */
bool cli_chat_run_command(struct cli_chat *chat, const char *line, int *code);

/* chat_template.c: the template that -m and the flags say; NULL after a message, *code is
 * the exit code. */
struct akunu_template *cli_chat_template(const struct cli_options *options,
                                         const struct cli_model_session *loaded, int *code);

#endif
