/* Special tokens and logit filters of Whisper. */
#include "speech/search/rules.h"

#include <math.h>

#include "base/math.h"

enum {
    ENGLISH_END =
        50256, /* GPT-2's vocabulary has so many tokens; the multilingual one has one more */
    MULTILINGUAL_END = 50257,
    AFTER_LANGUAGES = 6 + AK_SPEECH_TIMES /* ids after those of the languages */
};

ak_status ak_speech_tokens_find(uint32_t n_vocab, struct ak_speech_tokens *out,
                                struct ak_error *error)
{
    if (n_vocab < 51864 || n_vocab > 51866)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a vocabulary of %u tokens; Whisper's have 51864 (English alone), 51865 or "
                       "51866",
                       n_vocab);
    bool multilingual = n_vocab > 51864;
    int32_t end = multilingual ? MULTILINGUAL_END : ENGLISH_END;
    int32_t first_language = end + 2;
    int32_t after = (int32_t)n_vocab - AFTER_LANGUAGES;
    *out = (struct ak_speech_tokens){
        .n = (int32_t)n_vocab,
        .end = end,
        .start = end + 1,
        .first_language = first_language,
        .n_languages = after - first_language,
        .translate = after,
        .transcribe = after + 1,
        .language_model = after + 2,
        .previous = after + 3,
        .no_speech = after + 4,
        .no_timestamps = after + 5,
        .first_time = after + 6,
        .multilingual = multilingual,
    };
    return AKUNU_OK;
}

static void forbid(float *logits, int32_t first, int32_t end)
{
    for (int32_t i = first; i < end; i++)
        logits[i] = -INFINITY;
}

static void reject(float *logits, int32_t first, int32_t end, float penalty)
{
    for (int32_t i = first; i < end; i++)
        logits[i] -= penalty;
}

/* Times come in pairs, the end of a segment and the begin of the next, except before the end of the
 * text; and they grow. */
static void order_times(const struct ak_speech_tokens *t, const int32_t *written, size_t n,
                        float *logits)
{
    bool after_time = n >= 1 && written[n - 1] >= t->first_time;
    bool after_pair = after_time && (n < 2 || written[n - 2] >= t->first_time);
    if (after_pair)
        forbid(logits, t->first_time, t->n);
    else if (after_time)
        forbid(logits, 0, t->end);
    size_t last = n;
    while (last > 0 && written[last - 1] < t->first_time)
        last--;
    if (last > 0) /* a segment lasts at least one step */
        forbid(logits, t->first_time, written[last - 1] + (after_time && !after_pair ? 0 : 1));
}

/* True if the times together are more probable than any single text token. */
static bool is_time_likely(const struct ak_speech_tokens *t, const float *logits)
{
    float text = -INFINITY, time = -INFINITY;
    for (int32_t i = 0; i < t->first_time; i++)
        text = logits[i] > text ? logits[i] : text;
    for (int32_t i = t->first_time; i < t->n; i++)
        time = logits[i] > time ? logits[i] : time;
    if (time == -INFINITY)
        return false;
    return (double)time +
               ak_log_sum_exp(&logits[t->first_time], (size_t)(t->n - t->first_time), time) >
           (double)text;
}

/* A text that a grammar has brought to its end gets one more time, which is its end. A second one
 * would begin another segment. */
static bool is_over(const struct ak_speech_tokens *t, const struct ak_speech_allowed *allowed,
                    const int32_t *written, size_t n)
{
    return allowed && allowed->end && !allowed->more && n > 1 && written[n - 1] >= t->first_time &&
           written[n - 2] < t->first_time;
}

/* Tokens of text, and the end. */
static void constrain(const struct ak_speech_rules *rules, const struct ak_speech_allowed *allowed,
                      float *logits)
{
    const struct ak_speech_tokens *t = rules->tokens;
    forbid(logits, t->end + 1, rules->timestamps ? t->first_time : t->n);
    for (int32_t i = 0; allowed->tokens && i < t->end; i++)
        if (!(allowed->tokens[i / 32] >> (i % 32) & 1))
            logits[i] -= allowed->penalty;
    if (!allowed->end)
        logits[t->end] -= allowed->penalty;
}

void ak_speech_rules_apply(const struct ak_speech_rules *rules,
                           const struct ak_speech_allowed *allowed, const int32_t *written,
                           size_t n, float *logits)
{
    const struct ak_speech_tokens *t = rules->tokens;
    for (size_t i = 0; i < rules->n_suppressed; i++)
        logits[rules->suppressed[i]] = -INFINITY;
    if (n == 0 && rules->blank >= 0)
        logits[rules->blank] = logits[t->end] = -INFINITY;
    if (rules->timestamps) {
        logits[t->no_timestamps] = -INFINITY;
        order_times(t, written, n, logits);
        if (n == 0) {
            forbid(logits, 0, t->first_time);
            if (rules->latest_start >= 0 && rules->latest_start < AK_SPEECH_TIMES)
                forbid(logits, t->first_time + rules->latest_start + 1, t->n);
        }
        if (is_over(t, allowed, written, n))
            forbid(logits, t->first_time, t->n);
        if (allowed && !allowed->end && n > 0 && written[n - 1] < t->first_time)
            reject(logits, t->first_time, t->n, allowed->penalty);
        if (is_time_likely(t, logits))
            forbid(logits, 0, t->first_time);
    }
    if (allowed)
        constrain(rules, allowed, logits);
}
