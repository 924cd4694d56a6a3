/* A model and a session, made as the flags say. */
#ifndef AK_CLI_LOAD_H
#define AK_CLI_LOAD_H

#include "akunu/akunu.h"
#include "cli/options.h"
#include "cli/progress.h"

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

#endif
