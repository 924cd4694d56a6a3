/* Questions with choices: reading them, the log-likelihood of each choice, results. Prompts and
 * scores are those of lm-evaluation-harness, so accuracies compare. */
#ifndef AK_APPS_CLI_QUALITY_EVAL_H
#define AK_APPS_CLI_QUALITY_EVAL_H

#include <stddef.h>
#include <stdint.h>

#include "akunu/akunu.h"
#include "apps/cli/quality/divergence.h"
#include "apps/common/load.h"
#include "apps/common/options.h"

/* A choice is a context and what continues it; contexts differ in WinoGrande alone. */
struct cli_choice {
    char *context, *text; /* the text begins with its space */
    uint32_t n_chars;     /* characters of the choice itself, which its score is divided by */
    akunu_token *ids;     /* of context and text: cli_questions_score sets them */
    size_t n, n_context;
    double logprob; /* of the text's tokens, given the context */
};

enum { CLI_CHOICES_MAX = 64 };
struct cli_question {
    const char *form; /* "ARC" */
    size_t line;      /* in the file, from 1 */
    struct cli_choice *choices;
    size_t n_choices, answer;
};

struct cli_questions {
    const char *path;
    struct cli_question *list;
    size_t n;
};

/* ---- Reading: eval_forms.c ---------------------------------------------- */
/* Reads a file with a JSON object per line; limit 0: all lines. Returns an exit code, after a
 * message unless it is APP_EXIT_OK. Call cli_questions_free in any case. */
int cli_questions_read(const char *path, size_t limit, struct cli_questions *out);
void cli_questions_free(struct cli_questions *questions);

/* ---- Scoring: eval_score.c ---------------------------------------------- */
/* Loads the model of -m and sets the log-likelihood of every choice. */
int cli_questions_score(const struct app_options *options, struct cli_questions *questions);

/* ---- Results: eval_results.c -------------------------------------------- */
/* What was chosen in a question, by log-likelihood, and by it per character. */
struct cli_outcome {
    bool right, right_normalized;
};

/* [questions->n], to be freed; NULL after a message if out of memory. */
struct cli_outcome *cli_outcomes_of(const struct cli_questions *questions);

/* Writes the questions with their log-likelihoods to the file of --save. */
int cli_results_write(const char *path, const struct cli_questions *questions);

/* Whether a file has such results. */
bool cli_results_is(const char *path);

/* Reads the outcomes of the same questions from such a file; free *out. */
int cli_results_read(const char *path, const struct cli_questions *questions,
                     struct cli_outcome **out);

/* Prints accuracies, and the difference to `base` unless it is NULL. */
void cli_results_print(const struct app_options *options, const struct cli_questions *questions,
                       const struct cli_outcome *outcomes, const struct cli_outcome *base,
                       struct app_output *out);

#endif
