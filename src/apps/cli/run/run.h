/* State of the run and infill commands, which complete a text, answer a message or fill a gap. */
#ifndef AK_APPS_CLI_RUN_RUN_H
#define AK_APPS_CLI_RUN_RUN_H

#include "apps/cli/run/answer.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"
#include "apps/common/prompt.h"
#include "apps/common/sampling.h"

struct cli_run {
    const struct app_options *options;
    struct app_model_session loaded, draft;
    struct app_sampling sampling;
    struct akunu_generation_params generation;
    struct akunu_grammar *grammar;   /* NULL: any text */
    struct akunu_template *template; /* NULL: the text is continued as it is */
    char *rendered;                  /* prompt that the template made; NULL: none */
    struct app_reasoning reasoning;
    struct cli_answer answer; /* where there is a template, but no --json and no -np */
    json_t *logprobs;         /* per token; NULL: not requested */
    struct app_output out;
    struct app_text prompt; /* infill: the text before the gap */
    struct app_text suffix; /* infill: the text after the gap */
    akunu_token *ids;
    size_t n_ids, n_restored; /* tokens of the prompt; restored from the prompt cache */
    struct app_text text;     /* generated text, kept for --json */
    int64_t seed;
    bool no_memory;
    char last; /* last byte on standard output */
    struct app_progress progress;
};

/* Appends to a text; false if out of memory, which sets run->no_memory. */
bool cli_run_keep(struct cli_run *run, struct app_text *to, const char *text, size_t n);

/* The part of the prompt that still has to run. */
static inline struct akunu_ids cli_run_ids(const struct cli_run *run)
{
    return (struct akunu_ids){ run->ids + run->n_restored, run->n_ids - run->n_restored };
}

/* Shows progress of the prompt; true after Ctrl-C. `user` is the run. */
bool cli_run_cancelled(void *user);

/* Exit code of a generation, after a message if there is one. */
int cli_run_code(const struct cli_run *run, enum akunu_status status);

/* The text of a completion; of an answer by the template, its content and *reasoning, which is NULL
 * if there is none. */
json_t *cli_run_text(const struct cli_run *run, const struct app_text *text, json_t **reasoning);

/* A completion as --json prints it. */
json_t *cli_run_json(const struct cli_run *run, const struct app_text *text,
                     const struct akunu_result *result, int64_t seed);

/* infill.c. Reads the texts before and after the gap into run->prompt and run->suffix. Returns an
 * exit code. */
int cli_infill_read(struct cli_run *run);

/* Makes run->ids, the prompt, of both texts, shortened to the session's context. Returns an exit
 * code. */
int cli_infill_tokenize(struct cli_run *run);

/* -np: several completions. Returns an exit code. */
int cli_run_parallel(struct cli_run *run);

#endif
