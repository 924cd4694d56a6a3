#include "sample/dry.h"

#include <float.h>

#include "base/math.h"
#include "base/mem.h"

bool ak_dry_wanted(const struct akunu_sampling *s)
{
    return s->dry_multiplier != 0.0f && s->dry_penalty_last_n > 0;
}

ak_status ak_dry_init(struct ak_dry *d, const struct akunu_sampling *sampling,
                      const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                      struct ak_error *error)
{
    *d = (struct ak_dry){
        .multiplier = sampling->dry_multiplier,
        .base = (double)sampling->dry_base,
        .allowed = (uint32_t)sampling->dry_allowed_length,
        .window = (uint32_t)sampling->dry_penalty_last_n,
    };
    if (sampling->dry_base > 1.000001f)
        d->longest_exponent = (int32_t)(88.7228391 / ak_ln(d->base)); /* ln of the largest float */
    d->recent = ak_alloc(d->window, sizeof *d->recent);
    d->repeats = ak_alloc(d->window, sizeof *d->repeats);
    d->longest = ak_alloc(n_vocab, sizeof *d->longest);
    if (!d->recent || !d->repeats || !d->longest)
        return ak_fail_memory(error, "DRY", 0);
    return ak_dry_breakers_init(&d->breakers, sampling->dry_sequence_breakers, tokenizer, n_vocab,
                                error);
}

void ak_dry_release(struct ak_dry *d)
{
    ak_free(d->recent);
    ak_free(d->repeats);
    ak_free(d->longest);
    ak_dry_breakers_release(&d->breakers);
}

/* The Z-algorithm: z[i] is the length of the longest common beginning of x and of x from i
 * on, in one walk, since within the match [left, right) that reaches furthest x is as at its
 * beginning. */
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

static float penalty(const struct ak_dry *d, uint32_t repeated)
{
    int64_t exponent = (int64_t)repeated - d->allowed;
    if (d->longest_exponent > 0 && exponent > d->longest_exponent)
        exponent = d->longest_exponent;
    double p = (double)d->multiplier * ak_pow(d->base, (double)exponent);
    return p < (double)FLT_MAX ? (float)p : FLT_MAX;
}

void ak_dry_apply(struct ak_dry *d, const struct ak_history *history, float *logits)
{
    uint32_t n = history->n < d->window ? history->n : d->window;
    if (n <= d->allowed)
        return;
    for (uint32_t i = 0; i < n; i++)
        d->recent[i] = ak_history_back(history, i);
    uint32_t most = ak_dry_unbroken(&d->breakers, d->recent, n);
    if (most < d->allowed)
        return;

    /* the token after what is repeated from place i on is at place i − 1 */
    find_repeats(d->recent, n, d->repeats);
    for (uint32_t i = 1; i < n; i++) {
        uint32_t repeated = d->repeats[i] < most ? d->repeats[i] : most;
        uint32_t *longest = &d->longest[d->recent[i - 1]];
        if (repeated >= d->allowed && repeated + 1 > *longest)
            *longest = repeated + 1;
    }
    for (uint32_t i = 0; i + 1 < n; i++) {
        uint32_t *longest = &d->longest[d->recent[i]];
        if (*longest > 0 && !ak_dry_is_breaker(&d->breakers, d->recent[i]))
            logits[d->recent[i]] -= penalty(d, *longest - 1);
        *longest = 0;
    }
}
