/* Interactive chat of the run command: the state of a conversation in the terminal, and the
 * functions of chat*.c. Functions that return int give an exit code, after a message unless it is
 * APP_EXIT_OK. */
#ifndef AK_APPS_CLI_CHAT_CHAT_H
#define AK_APPS_CLI_CHAT_CHAT_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "apps/common/input.h"
#include "apps/cli/chat/line_edit.h"
#include "apps/common/load.h"
#include "apps/common/options.h"
#include "apps/common/output.h"
#include "apps/common/prompt.h"
#include "apps/common/sampling.h"

struct cli_chat {
    struct app_options *options;        /* /set and /model change them */
    struct app_model_session models[2]; /* the one in use, and one that /model loads */
    struct app_model_session *loaded;   /* the one in use */
    struct app_model_session draft;
    struct app_sampling sampling;
    struct akunu_generation_params generation; /* each answer sets its seed */
    struct app_output out;
    struct cli_line_editor *editor;
    char *history; /* file of what was typed; NULL: none is kept */
    struct akunu_template *template;
    struct app_reasoning reasoning;
    struct akunu_grammar *grammar; /* for every answer; NULL: none */
    json_t *messages;              /* JSON list of messages, as apply-template takes it */
    struct app_text attached;      /* what /read read, for the next message */
    bool quit;

    /* Tokens in the KV cache: the prompt of the last turn and the answer. */
    akunu_token *context_ids;
    size_t n_context_ids;

    int64_t seed;                                      /* seed of the next answer */
    uint64_t n_answers;                                /* since the start */
    uint64_t n_turns, n_prompt, n_reused, n_generated; /* with this model, for /stats */
    double prompt_seconds, generate_seconds;
};

/* chat_turn.c: answers the last message and adds the answer. If there is no answer, the user's
 * message is removed too, so that roles still alternate. Ctrl-C ends only the answer and gives
 * APP_EXIT_OK. */
int cli_chat_answer(struct cli_chat *chat);

/* chat_model.c: loads the model of `options` with its template. In any case free *template and call
 * app_unload(loaded), which must not move. */
int cli_chat_open_model(const struct cli_chat *chat, const struct app_options *options,
                        struct app_model_session *loaded, struct akunu_template **template);

/* The model's file without its folder. */
const char *cli_chat_model_name(const struct cli_chat *chat);

/* /model: goes on with another model. If it cannot be used, the old one stays. */
int cli_chat_change_model(struct cli_chat *chat, const char *name);

/* chat_messages.c: the list of messages. */
int cli_chat_add(struct cli_chat *chat, const char *role, const char *text, size_t n);
const json_t *
cli_chat_system(const struct cli_chat *chat); /* content of the system message; NULL: none */
int cli_chat_set_system(struct cli_chat *chat, const char *text); /* NULL removes it */
bool cli_chat_is_last(const struct cli_chat *chat, const char *role);
void cli_chat_drop_last(struct cli_chat *chat);

/* Adds a user's message, with what /read read before it. */
int cli_chat_add_user(struct cli_chat *chat, const char *text, size_t n);

/* chat_files.c: what /save, /load and /read do. A path may begin with ~/. */
int cli_chat_save(struct cli_chat *chat, const char *path);
int cli_chat_load(struct cli_chat *chat, const char *path);
int cli_chat_read(struct cli_chat *chat, const char *path);

/* `path` with the home folder for ~ and without spaces at its end, to be freed; NULL if out of
 * memory. */
char *cli_chat_path(const char *path);

/* chat_settings.c: /set KEY VALUE for flags of sampling. */
int cli_chat_set(struct cli_chat *chat, const char *argument);
bool cli_chat_can_set(const struct app_flag *flag);

/* "0.2": the value of a flag that can be set, for people. */
const char *cli_chat_value(const struct app_flag *flag, const struct app_options *options,
                           char out[APP_SHOWN_BYTES]);

/* chat_show.c: /show and /stats. */
int cli_chat_show(struct cli_chat *chat, const char *argument);
int cli_chat_stats(struct cli_chat *chat, const char *argument);

/* ---- Commands ----------------------------------------------------------- */
/* chat_commands.c: lines that begin with a slash; chat_complete.c: Tab. */

enum cli_chat_argument {
    CLI_CHAT_NOTHING,
    CLI_CHAT_TEXT,
    CLI_CHAT_FILE,
    CLI_CHAT_MODEL,
    CLI_CHAT_KEY, /* a flag of sampling, and its value */
    CLI_CHAT_WHAT /* "template" */
};

struct cli_chat_command {
    const char *name, *argument, *help;
    enum cli_chat_argument kind; /* of the argument */
    int (*run)(struct cli_chat *chat, const char *argument);
};

extern const struct cli_chat_command cli_chat_commands[];
extern const size_t cli_n_chat_commands;

/* Runs a line that is a command; false: it is a message. *code: the exit code of the command. */
bool cli_chat_run_command(struct cli_chat *chat, const char *line, int *code);

/* What Tab offers; `user` is not used. */
void cli_chat_complete(const char *line, size_t n, struct cli_candidates *out, void *user);

#endif
