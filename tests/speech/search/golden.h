/* Numbers of the golden files in tests/data/speech, and the model that tests/golden/speech.py has
 * in place of a real one: a logit is a hash of the window, the tokens before and its own token. */
#ifndef AK_TESTS_SPEECH_SEARCH_GOLDEN_H
#define AK_TESTS_SPEECH_SEARCH_GOLDEN_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "speech/search/rules.h"
#include "tests/test.h"

static inline uint64_t mix(uint64_t x, uint64_t factor)
{
    return (x ^ x >> 33) * factor;
}

/* In [0, 1). */
static inline double hash_unit(uint64_t x)
{
    x = mix(mix(x, UINT64_C(0xff51afd7ed558ccd)), UINT64_C(0xc4ceb9fe1a85ec53));
    return (double)((x ^ x >> 33) >> 40) * 0x1p-24;
}

/* The first n_logits logits after n tokens. */
static inline void fill_logits(const struct ak_speech_tokens *ids, uint64_t window,
                               const int32_t *tokens, size_t n, size_t n_prompt, int32_t n_logits,
                               float *out)
{
    uint64_t digest = UINT64_C(1469598103934665603) ^ window * UINT64_C(2654435761);
    for (size_t i = 0; i < n; i++)
        digest = (digest ^ (uint64_t)tokens[i]) * UINT64_C(1099511628211);
    for (int32_t i = 0; i < n_logits; i++) {
        double unit = hash_unit(digest ^ (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
        out[i] = (float)(unit * unit * unit * 14.0);
    }
    out[ids->end] += (float)(n - n_prompt) * 0.5f;
    for (int32_t i = ids->first_time; i < n_logits; i++)
        out[i] -= (float)(5 + digest % 5);
    if (window % 3 == 1)
        out[ids->no_speech] += 24.0f;
}

static inline FILE *open_golden(const char *name)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/speech/%s", getenv("AK_TEST_DATA"), name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    return file;
}

/* The next number of a line; false at "|" and at the line's end. */
static inline bool next_number(char **at, double *out)
{
    char *end;
    *out = strtod(*at, &end);
    bool found = end != *at;
    *at = end;
    return found;
}

static inline double number(char **at)
{
    double value;
    ck_assert(next_number(at, &value));
    return value;
}

static inline void skip_bar(char **at)
{
    *at += strspn(*at, " ");
    ck_assert_int_eq(**at, '|');
    ++*at;
}

static inline bool is_near(double a, double b)
{
    return fabs(a - b) <= 2e-5 * fmax(1.0, fabs(b));
}

#endif
