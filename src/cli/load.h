/* A model and a session, made as the flags say. */
#ifndef AK_CLI_LOAD_H
#define AK_CLI_LOAD_H

#include "akunu/akunu.h"
#include "cli/message.h"
#include "cli/options.h"

struct cli_model_session {
    char *path;
    struct akunu_model *model;
    struct akunu_model_info info;
    const struct akunu_tokenizer *tokenizer; /* NULL where the model has none */
    struct akunu_session *session;
    akunu_sequence sequence;
    uint32_t max_sequences;       /* of the next session; 0: one */
    double load_seconds;          /* the model and the session */
    struct cli_progress progress; /* of the load */
    bool verbose;
};

/* Loads the model of -m, with progress on a terminal; Ctrl-C stops it. Gives an
 * exit code, after a message unless it is CLI_EXIT_OK or CLI_EXIT_INTERRUPTED.
 * Whatever it gives, cli_unload(out) is to be called.
 * The library's callbacks point to *out: it must not move. */
int cli_load_model(const struct cli_options *options, struct cli_model_session *out);

/* A session with one sequence. `context`, `batch`: 0 leaves them to the library. */
int cli_open_session(const struct cli_options *options, struct cli_model_session *loaded,
                     uint32_t context, uint32_t batch);

/* CLI_EXIT_OK, or CLI_EXIT_MODEL after a message that `command` needs a vocabulary. */
int cli_need_tokenizer(const struct cli_model_session *loaded, const char *command);

/* Frees the session, so that another can be opened. */
void cli_close_session(struct cli_model_session *loaded);
void cli_unload(struct cli_model_session *loaded);

/* Opens only the vocabulary of -m; *out is to be freed where CLI_EXIT_OK is given. */
int cli_load_tokenizer(const struct cli_options *options, struct akunu_tokenizer **out);

/* ---- Model paths: model_path.c ------------------------------------------ */
/* Which file -m means. */

/* The path of the model that `name` means; NULL: none was named. A name with a
 * folder in it, or of something that is here, is taken as it is; else it is
 * looked for in the models folder, with and without ".gguf". Without a name it
 * is the model that quickstart fetches, else the only one in that folder.
 * On success *path is to be freed; else an exit code after a message:
 * CLI_EXIT_MODEL for a name that is nowhere, CLI_EXIT_USAGE where none was
 * named and there is none to choose. */
int cli_model_path(const char *name, char **path);

/* Calls `each` with the name of every model in the models folder. Gives CLI_EXIT_OK, or
 * CLI_EXIT_MEMORY after a message; a folder that is not there is empty. */
int cli_visit_models(void (*each)(const char *name, void *user), void *user);

/* ---- Draft model -------------------------------------------------------- */
/* Speculation, as the flags say. */

/* Fills in what `generation` says of it, and loads the draft model of -md into *draft, with a
 * session of as many tokens as `session` has. Gives an exit code, after a message unless it is
 * CLI_EXIT_OK. Whatever it gives, cli_unload(draft) is to be called after the last use of
 * `generation`. *draft must not move. */
int cli_read_speculation(const struct cli_options *options, const struct akunu_session *session,
                         struct cli_model_session *draft, struct akunu_generation *generation);

#endif
