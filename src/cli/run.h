/* What the parts of `run` share: run.c, choices.c. */
#ifndef AK_CLI_RUN_H
#define AK_CLI_RUN_H

#include "cli/input.h"
#include "cli/load.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/sampling.h"

struct cli_run {
    const struct cli_options *options;
    struct cli_model_session loaded, draft;
    struct cli_sampling sampling;
    struct akunu_generation generation;
    struct akunu_grammar *grammar; /* NULL: any text */
    json_t *logprobs;              /* of each token, where they are asked for */
    struct cli_output out;
    struct cli_text prompt;
    akunu_token *ids;
    size_t n_ids, n_restored; /* tokens of the prompt, and those that were run before */
    struct cli_text text;     /* what was generated, kept for --json */
    int64_t seed;
    bool started; /* the first token is there */
    bool no_memory;
    char last; /* the last byte on standard output */
    struct cli_progress progress;
};

/* Adds to a text that grows; false without memory, which run->no_memory tells. */
bool cli_run_keep(struct cli_run *run, struct cli_text *to, const char *text, size_t n);

/* What is left of the prompt to run. */
static inline const akunu_token *cli_run_ids(const struct cli_run *run, size_t *n)
{
    *n = run->n_ids - run->n_restored;
    return run->ids + run->n_restored;
}

/* Progress of the prompt; true once Ctrl-C was typed. `user` is the run. */
bool cli_run_cancelled(void *user);

/* The exit code of a generation, after a message where there is one to give. */
int cli_run_code(const struct cli_run *run, enum akunu_status status);

/* A text as --json has it. */
json_t *cli_run_json(const struct cli_run *run, const struct cli_text *text,
                     const struct akunu_result *result, int64_t seed);

/* -np: several continuations (choices.c). Gives an exit code. */
int cli_run_parallel(struct cli_run *run);

#endif
