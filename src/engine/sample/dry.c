/* The DRY penalty. One pass of the Z-algorithm over the reversed window finds every earlier
 * occurrence of the context's end, so the cost is linear in the window. */
#include "engine/sample/sampler_state.h"

#include <float.h>

#include "base/math.h"
#include "base/mem.h"

bool ak_sample_dry_enabled(const struct akunu_sampling_params *s)
{
    return s->dry_multiplier != 0.0f && s->dry_penalty_last_n != 0;
}

ak_status ak_sample_dry_init(struct ak_sample_dry *d, const struct akunu_sampling_params *sampling,
                             const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                             struct ak_error *error)
{
    enum { WINDOW_MAX = 1 << 20 }; /* more than contexts have; each token takes 12 bytes */
    int32_t last_n = sampling->dry_penalty_last_n;
    *d = (struct ak_sample_dry){
        .multiplier = sampling->dry_multiplier,
        .base = (double)sampling->dry_base,
        .allowed_length = (uint32_t)sampling->dry_allowed_length,
        .window = last_n < 0 || last_n > WINDOW_MAX ? WINDOW_MAX : (uint32_t)last_n,
    };
    if (sampling->dry_base > 1.000001f)
        d->longest_exponent = (int32_t)(88.7228391 / ak_ln(d->base)); /* ln(FLT_MAX) */
    d->recent_tokens = ak_alloc(d->window, sizeof *d->recent_tokens);
    d->repeats = ak_alloc(d->window, sizeof *d->repeats);
    d->longest_repeats = ak_alloc(n_vocab, sizeof *d->longest_repeats);
    if (!d->recent_tokens || !d->repeats || !d->longest_repeats)
        return ak_fail_memory(error, "DRY", 0);
    return ak_sample_dry_breakers_init(&d->breakers, sampling->dry_sequence_breakers, tokenizer,
                                       n_vocab, error);
}

void ak_sample_dry_release(struct ak_sample_dry *d)
{
    ak_free(d->recent_tokens);
    ak_free(d->repeats);
    ak_free(d->longest_repeats);
    ak_sample_dry_breakers_release(&d->breakers);
}

/* Z-algorithm: z[i] is the length of the longest common prefix of x and x + i. It runs in linear
 * time, because inside the match [left, right) that reaches furthest x equals its own beginning. */
static void find_repeats(const int32_t *x, uint32_t n, uint32_t *z)
{
    uint32_t left = 0, right = 0;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t length = 0;
        if (i < right)
            length = z[i - left] < right - i ? z[i - left] : right - i;
        while (i + length < n && x[length] == x[i + length])
            length++;
        z[i] = length;
        if (i + length > right) {
            left = i;
            right = i + length;
        }
    }
}

static float compute_penalty(const struct ak_sample_dry *d, uint32_t repeated)
{
    int64_t exponent = (int64_t)repeated - d->allowed_length;
    if (d->longest_exponent > 0 && exponent > d->longest_exponent)
        exponent = d->longest_exponent;
    double p = (double)d->multiplier * ak_pow(d->base, (double)exponent);
    return p < (double)FLT_MAX ? (float)p : FLT_MAX;
}

void ak_sample_dry_apply(struct ak_sample_dry *d, const struct ak_sample_history *history,
                         float *logits)
{
    uint32_t n = history->n < d->window ? history->n : d->window;
    if (n <= d->allowed_length)
        return;
    for (uint32_t i = 0; i < n; i++)
        d->recent_tokens[i] = ak_sample_history_back(history, i);
    uint32_t n_unbroken = ak_sample_dry_count_unbroken(&d->breakers, d->recent_tokens, n);
    if (n_unbroken < d->allowed_length)
        return;

    /* in the reversed window, the token after a repetition that starts at i is at i − 1 */
    find_repeats(d->recent_tokens, n, d->repeats);
    for (uint32_t i = 1; i < n; i++) {
        uint32_t repeated = d->repeats[i] < n_unbroken ? d->repeats[i] : n_unbroken;
        uint32_t *longest = &d->longest_repeats[d->recent_tokens[i - 1]];
        if (repeated >= d->allowed_length && repeated + 1 > *longest)
            *longest = repeated + 1;
    }
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t *longest = &d->longest_repeats[d->recent_tokens[i]];
        if (*longest > 0 && !ak_sample_dry_is_breaker(&d->breakers, d->recent_tokens[i]))
            logits[d->recent_tokens[i]] -= compute_penalty(d, *longest - 1);
        *longest = 0;
    }
}
