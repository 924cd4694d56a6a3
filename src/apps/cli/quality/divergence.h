/* How far a model's predictions are from those of a base: the Kullback-Leibler divergence of each
 * position, and its statistics. Formulas and errors are those of llama-perplexity --kl-divergence,
 * so figures compare. */
#ifndef AK_APPS_CLI_QUALITY_DIVERGENCE_H
#define AK_APPS_CLI_QUALITY_DIVERGENCE_H

#include <jansson.h>
#include <stdint.h>

#include "akunu/akunu.h"
#include "apps/common/output.h"

/* A position of the text. Without a base only `nll` counts. */
struct cli_scored {
    double nll;      /* -log p of the token that follows */
    double base_nll; /* the same of the base */
    double kl;       /* Σ p_base · (log p_base - log p) */
    uint32_t rank;   /* number of tokens that the model prefers to the base's most likely one */
};

/* A mean and its standard error. */
struct cli_estimate {
    double value, error;
};

struct cli_divergence {
    size_t n;
    struct cli_estimate perplexity, base_perplexity;
    struct cli_estimate ratio; /* of the two */
    struct cli_estimate kl;
    double kl_median, kl_90, kl_99, kl_999, kl_max;
    /* share of positions whose most likely token of the base is also the model's, or among its five
     * most likely ones */
    struct cli_estimate top_1, top_5;
};

/* log Σ e^x of n_vocab logits, and the largest of them; NaN if there is no number among them or no
 * memory. May be called in several threads. */
double cli_log_sum(const float *logits, size_t n_vocab, float *largest);

/* Compares n_vocab logits with a record of base logits (logits_file.h). As above. */
void cli_divergence_score(const float *logits, size_t n_vocab, akunu_token next,
                          const uint16_t *record, struct cli_scored *out);

/* Mean of n values, `stride` bytes apart. */
struct cli_estimate cli_mean(const double *values, size_t n, size_t stride);

/* Perplexity of n positions: exp of the mean of values that are `stride` bytes apart. */
struct cli_estimate cli_perplexity_of(const double *nll, size_t n, size_t stride);

/* Fills *out from n ≥ 1 positions. Returns an exit code, after a message unless it is
 * APP_EXIT_OK. */
int cli_divergence_summarize(const struct cli_scored *scored, size_t n, struct cli_divergence *out);

/* Prints the lines after that of the perplexity; and adds their members to an object. */
void cli_divergence_print(const struct cli_divergence *d, struct app_output *out);
void cli_divergence_json(const struct cli_divergence *d, json_t *object);

#endif
