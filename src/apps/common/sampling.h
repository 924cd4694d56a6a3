/* Converts sampling and grammar flags to the library's parameters and checks them; writes
 * log-probabilities as JSON. Implemented by sampling.c and grammar.c. */
#ifndef AK_APPS_COMMON_SAMPLING_H
#define AK_APPS_COMMON_SAMPLING_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "apps/common/options.h"

enum { CLI_BREAKER_BYTES = 64 };

/* Do not copy: the parameters point into it. */
struct cli_sampling {
    struct akunu_sampling_params params;
    struct akunu_logit_bias bias[CLI_MAX_TEXTS];
    char breakers[CLI_MAX_TEXTS][CLI_BREAKER_BYTES];
    const char *breaker_list[CLI_MAX_TEXTS + 1];
};

/* Fills *out. CLI_EXIT_OK, or CLI_EXIT_USAGE after a message. */
int cli_sampling(const struct cli_options *options, struct cli_sampling *out);

/* Checks that the biased tokens are in the vocabulary: CLI_EXIT_OK, or CLI_EXIT_USAGE after a
 * message. */
int cli_check_bias(const struct cli_sampling *sampling, const struct akunu_model *model);

/* Checks that no stop sequence is empty. Returns as above. */
int cli_check_stops(const struct cli_options *options);

/* The generation that the flags ask for. It points to the options and to *sampling. */
struct akunu_generation_params cli_generation(const struct cli_options *options,
                                              const struct cli_sampling *sampling);

/* Log-probabilities of one token as an object; NULL if out of memory. */
json_t *cli_json_logprobs(const struct akunu_tokenizer *tokenizer, akunu_token token, float logprob,
                          const struct akunu_logprob *top, size_t n_top);

/* ---- Members ------------------------------------------------------------ */
/* A number of struct akunu_sampling_params, a float or an int32_t, under llama-server's name. */
struct cli_sampling_member {
    const char *name;
    size_t offset;
    bool is_real;
    double low, high;
};
extern const struct cli_sampling_member cli_sampling_members[];
extern const size_t cli_n_sampling_members;

double cli_sampling_get(const struct akunu_sampling_params *p, const struct cli_sampling_member *m);
void cli_sampling_set(struct akunu_sampling_params *p, const struct cli_sampling_member *m,
                      double value);
/* Adds all of them to an object; false: out of memory. */
bool cli_sampling_list(const struct akunu_sampling_params *p, json_t *object);

/* ---- Grammar: grammar.c ------------------------------------------------- */
/* The grammar that the flags ask for. */

/* Reads --grammar, --grammar-file or -j, of which at most one is given; *out: NULL if none is
 * given; the caller frees it. Returns an exit code, after a message unless it is CLI_EXIT_OK. */
int cli_read_grammar(const struct cli_options *options, enum akunu_schema_form form,
                     struct akunu_grammar **out);

#endif
