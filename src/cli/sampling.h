/* The flags of sampling, as the library takes them, and the log-probabilities of what came. */
#ifndef AK_CLI_SAMPLING_H
#define AK_CLI_SAMPLING_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "cli/options.h"

enum { CLI_BREAKER_BYTES = 64 };

/* Not to be copied: the parameters point into it. */
struct cli_sampling {
    struct akunu_sampling params;
    struct akunu_logit_bias bias[CLI_MAX_TEXTS];
    char breakers[CLI_MAX_TEXTS][CLI_BREAKER_BYTES];
    const char *breaker_list[CLI_MAX_TEXTS + 1];
};

/* Fills *out. CLI_EXIT_OK, or CLI_EXIT_USAGE after a message. */
int cli_sampling(const struct cli_options *options, struct cli_sampling *out);

/* Whether the biased tokens are the model's: CLI_EXIT_OK, or CLI_EXIT_USAGE after a message. */
int cli_check_bias(const struct cli_sampling *sampling, const struct akunu_model *model);

/* A seed that is short enough to be typed again. */
int64_t cli_random_seed(void);

/* One token's as an object; NULL without memory. */
json_t *cli_json_logprobs(const struct akunu_tokenizer *tokenizer, akunu_token token, float logprob,
                          const struct akunu_logprob *top, size_t n_top);

/* ---- Grammar: grammar.c ------------------------------------------------- */
/* The grammar that the flags ask for. */

/* From --grammar, --grammar-file or -j, of which there may be one; *out is NULL where there
 * is none, else to be freed. Gives an exit code, after a message unless it is CLI_EXIT_OK. */
int cli_read_grammar(const struct cli_options *options, enum akunu_schema_form form,
                     struct akunu_grammar **out);

#endif
