/* Converts sampling and grammar flags to the library's parameters and checks them; writes
 * log-probabilities as JSON. Implemented by sampling.c and grammar.c. */
#ifndef AK_APPS_COMMON_SAMPLING_H
#define AK_APPS_COMMON_SAMPLING_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "apps/common/options.h"

enum { APP_BREAKER_BYTES = 64 };

/* Do not copy: the parameters point into it. */
struct app_sampling {
    struct akunu_sampling_params params;
    struct akunu_logit_bias bias[APP_MAX_TEXTS];
    char breakers[APP_MAX_TEXTS][APP_BREAKER_BYTES];
    const char *breaker_list[APP_MAX_TEXTS + 1];
};

/* Fills *out. APP_EXIT_OK, or APP_EXIT_USAGE after a message. */
int app_sampling(const struct app_options *options, struct app_sampling *out);

/* Checks that the biased tokens are in the vocabulary: APP_EXIT_OK, or APP_EXIT_USAGE after a
 * message. */
int app_check_bias(const struct app_sampling *sampling, const struct akunu_model *model);

/* Checks that no stop sequence is empty. Returns as above. */
int app_check_stops(const struct app_options *options);

/* The generation that the flags ask for. It points to the options and to *sampling. */
struct akunu_generation_params app_generation(const struct app_options *options,
                                              const struct app_sampling *sampling);

/* Log-probabilities of one token as an object; NULL if out of memory. */
json_t *app_json_logprobs(const struct akunu_tokenizer *tokenizer, akunu_token token, float logprob,
                          const struct akunu_logprob *top, size_t n_top);

/* ---- Members ------------------------------------------------------------ */
/* A number of struct akunu_sampling_params, a float or an int32_t, under llama-server's name. */
struct app_sampling_member {
    const char *name;
    size_t offset;
    bool is_real;
    double low, high;
};
extern const struct app_sampling_member app_sampling_members[];
extern const size_t app_n_sampling_members;

double app_sampling_get(const struct akunu_sampling_params *p, const struct app_sampling_member *m);
void app_sampling_set(struct akunu_sampling_params *p, const struct app_sampling_member *m,
                      double value);
/* Adds all of them to an object; false: out of memory. */
bool app_sampling_list(const struct akunu_sampling_params *p, json_t *object);

/* ---- Grammar: grammar.c ------------------------------------------------- */
/* The grammar that the flags ask for. */

/* Reads --grammar, --grammar-file or -j, of which at most one is given; *out: NULL if none is
 * given; the caller frees it. Returns an exit code, after a message unless it is APP_EXIT_OK. */
int app_read_grammar(const struct app_options *options, enum akunu_schema_form form,
                     struct akunu_grammar **out);

#endif
