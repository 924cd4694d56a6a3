/* Kullback-Leibler divergence from a base, position by position, and its statistics. */
#include "apps/cli/quality/divergence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/quality/logits_file.h"
#include "apps/common/message.h"

/* ---- One position ------------------------------------------------------- */
double cli_log_sum(const float *logits, size_t n_vocab, float *largest)
{
    struct akunu_logprob top = { .token = -1 };
    float first;
    *largest = NAN;
    if (akunu_logprobs_compute(logits, n_vocab, 0, &first, &top, 1) != AKUNU_OK || top.token < 0)
        return NAN;
    *largest = logits[top.token];
    return (double)*largest - (double)top.logprob;
}

/* e^(least + scale · v) for all v of 16 bits as a product of two numbers. */
struct powers {
    double high[256], low[256];
};

static void fill_powers(double scale, double least, struct powers *out)
{
    for (int i = 0; i < 256; i++) {
        out->high[i] = exp(least + scale * 256.0 * i);
        out->low[i] = exp(scale * i);
    }
}

/* Base probabilities below e^-16 do not count: a record keeps no order among the smallest. */
static double kl_of(const float *logits, size_t n_vocab, double log_sum, double scale, double least,
                    const uint16_t *values)
{
    enum { SUMS = 4 };
    struct powers powers;
    double sums[SUMS] = { 0.0 };
    fill_powers(scale, least, &powers);
    for (size_t i = 0; i < n_vocab; i++) {
        unsigned v = values[i];
        double log_base = least + scale * v;
        double term =
            powers.high[v >> 8] * powers.low[v & 255] * (log_base - (double)logits[i] + log_sum);
        sums[i % SUMS] += log_base > -16.0 ? term : 0.0;
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

static size_t largest_value(const uint16_t *values, size_t n)
{
    uint16_t largest = 0;
    size_t i = 0;
    for (size_t k = 0; k < n; k++)
        largest = values[k] > largest ? values[k] : largest;
    while (i < n && values[i] != largest)
        i++;
    return i;
}

void cli_divergence_score(const float *logits, size_t n_vocab, akunu_token next,
                          const uint16_t *record, struct cli_scored *out)
{
    float scale, least, largest;
    uint32_t rank = 0;
    memcpy(&scale, record, sizeof scale);
    memcpy(&least, record + 2, sizeof least);
    const uint16_t *values = record + CLI_RECORD_HEAD;
    double log_sum = cli_log_sum(logits, n_vocab, &largest);
    float of_best = logits[largest_value(values, n_vocab)];
    for (size_t i = 0; i < n_vocab; i++)
        rank += logits[i] > of_best;
    *out = (struct cli_scored){
        .nll = log_sum - (double)logits[next],
        .base_nll = -((double)least + (double)scale * values[next]),
        .kl = kl_of(logits, n_vocab, log_sum, (double)scale, (double)least, values),
        .rank = rank,
    };
}

/* ---- Statistics --------------------------------------------------------- */
static double value_at(const double *values, size_t i, size_t stride)
{
    return *(const double *)(const void *)((const char *)values + i * stride);
}

struct cli_estimate cli_mean(const double *values, size_t n, size_t stride)
{
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += value_at(values, i, stride);
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        double difference = value_at(values, i, stride) - mean;
        squares += difference * difference;
    }
    return (struct cli_estimate){ .value = mean,
                                  .error =
                                      n > 1 ? sqrt(squares / (double)n / (double)(n - 1)) : 0.0 };
}

/* The error is carried through exp. */
static struct cli_estimate exp_of(struct cli_estimate log)
{
    double value = exp(log.value);
    return (struct cli_estimate){ .value = value, .error = value * log.error };
}

struct cli_estimate cli_perplexity_of(const double *nll, size_t n, size_t stride)
{
    return exp_of(cli_mean(nll, n, stride));
}

/* Share of positions at which the base's most likely token is among the model's `count` ones. */
static struct cli_estimate share_of(const struct cli_scored *scored, size_t n, uint32_t count)
{
    size_t n_among = 0;
    for (size_t i = 0; i < n; i++)
        n_among += scored[i].rank < count;
    double p = (double)n_among / (double)n;
    return (struct cli_estimate){ .value = p,
                                  .error = n > 1 ? sqrt(p * (1.0 - p) / (double)(n - 1)) : 0.0 };
}

static int compare_floats(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Linear between the two nearest of n sorted values. */
static double quantile_of(const double *sorted, size_t n, double fraction)
{
    double at = fraction * (double)(n - 1);
    size_t i = (size_t)at, next = i + 1 < n ? i + 1 : i;
    double part = at - (double)i;
    return part > 0.0 ? (1.0 - part) * sorted[i] + part * sorted[next] : sorted[i];
}

int cli_divergence_summarize(const struct cli_scored *scored, size_t n, struct cli_divergence *out)
{
    enum { STRIDE = sizeof *scored };
    double *values = malloc(n * sizeof *values);
    if (!values)
        return app_fail_memory();
    *out = (struct cli_divergence){
        .n = n,
        .perplexity = cli_perplexity_of(&scored->nll, n, STRIDE),
        .base_perplexity = cli_perplexity_of(&scored->base_nll, n, STRIDE),
        .kl = cli_mean(&scored->kl, n, STRIDE),
        .top_1 = share_of(scored, n, 1),
        .top_5 = share_of(scored, n, 5),
    };
    for (size_t i = 0; i < n; i++)
        values[i] = scored[i].nll - scored[i].base_nll;
    out->ratio = exp_of(cli_mean(values, n, sizeof *values));
    for (size_t i = 0; i < n; i++)
        values[i] = scored[i].kl;
    qsort(values, n, sizeof *values, compare_floats);
    out->kl_median = quantile_of(values, n, 0.5);
    out->kl_90 = quantile_of(values, n, 0.9);
    out->kl_99 = quantile_of(values, n, 0.99);
    out->kl_999 = quantile_of(values, n, 0.999);
    out->kl_max = values[n - 1];
    free(values);
    return APP_EXIT_OK;
}

/* ---- Printing ----------------------------------------------------------- */
void cli_divergence_print(const struct cli_divergence *d, struct app_output *out)
{
    app_output_format(out, "perplexity of the base: %.4f ± %.4f\n", d->base_perplexity.value,
                      d->base_perplexity.error);
    app_output_format(out, "change of perplexity: %+.3f ± %.3f %%\n",
                      100.0 * (d->ratio.value - 1.0), 100.0 * d->ratio.error);
    app_output_format(out, "KL median %.6f, 90 %% %.6f, 99 %% %.6f, 99.9 %% %.6f, maximum %.6f\n",
                      d->kl_median, d->kl_90, d->kl_99, d->kl_999, d->kl_max);
    app_output_format(out, "top-1: %.3f ± %.3f %%\n", 100.0 * d->top_1.value,
                      100.0 * d->top_1.error);
    app_output_format(out, "top-5: %.3f ± %.3f %%\n", 100.0 * d->top_5.value,
                      100.0 * d->top_5.error);
    app_output_format(out, "KL: %.6f ± %.6f, top-1 %.3f %%\n", d->kl.value, d->kl.error,
                      100.0 * d->top_1.value);
}

static json_t *estimate(const char *name, struct cli_estimate e)
{
    return json_pack("{s:o, s:o}", name, app_json_real(e.value), "error", app_json_real(e.error));
}

void cli_divergence_json(const struct cli_divergence *d, json_t *object)
{
    json_t *kl = estimate("mean", d->kl);
    json_object_set_new(kl, "median", app_json_real(d->kl_median));
    json_object_set_new(kl, "p90", app_json_real(d->kl_90));
    json_object_set_new(kl, "p99", app_json_real(d->kl_99));
    json_object_set_new(kl, "p999", app_json_real(d->kl_999));
    json_object_set_new(kl, "max", app_json_real(d->kl_max));
    json_object_set_new(object, "base", estimate("perplexity", d->base_perplexity));
    json_object_set_new(object, "ratio", estimate("perplexity", d->ratio));
    json_object_set_new(object, "kl", kl);
    json_object_set_new(object, "top_1", estimate("share", d->top_1));
    json_object_set_new(object, "top_5", estimate("share", d->top_5));
}
