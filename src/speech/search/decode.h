/* One window of speech as tokens: greedy, sampled or by beam search, as openai/whisper's
 * decoding.py does it. A model is seen through a few functions, so that the search is tested
 * without one. */
#ifndef AK_SPEECH_SEARCH_DECODE_H
#define AK_SPEECH_SEARCH_DECODE_H

#include "speech/search/rules.h"

/* Runs a decoder over the window that it was given. Texts are numbered from 0; all have the
 * prompt. */
struct ak_speech_model {
    void *user;
    /* Runs the prompt, which all texts then begin with. *last: logits after its last token; *at:
     * after token `start`; both are valid until the next call. */
    ak_status (*begin)(void *user, const int32_t *prompt, size_t n, size_t start,
                       const float **last, const float **at, struct ak_error *error);
    /* Text i becomes text from[i] as it was, and tokens[i] after it. logits: [n] rows of the
     * vocabulary, valid until the next call. */
    ak_status (*step)(void *user, size_t n, const uint32_t *from, const int32_t *tokens,
                      const float *const **logits, struct ak_error *error);
};

/* A grammar that a window's text matches. */
struct ak_speech_constraint {
    void *user;
    /* What may follow n tokens, of which times are no part of the text. out->tokens is valid until
     * the next call. */
    ak_status (*find)(void *user, const int32_t *written, size_t n, struct ak_speech_allowed *out,
                      struct ak_error *error);
};

struct ak_speech_search {
    const int32_t *prompt;
    size_t n_prompt, start; /* index of the start token in it */
    const struct ak_speech_rules *rules;
    const struct ak_speech_constraint *constraint; /* NULL: any text */
    uint32_t n_texts; /* beams, if the temperature is 0; else texts of which the best is taken */
    bool beams;       /* false: greedy, or sampled */
    float patience;   /* beam search ends after n_texts · patience complete texts */
    /* a text's log-probability is divided by ((5 + length) / 6) ^ penalty; below 0: by its length
     */
    float length_penalty;
    float temperature;
    uint64_t seed;       /* each text draws from a stream of its own */
    uint32_t max_tokens; /* of a text */
};

/* Probability of a token among the first n, of which it is one. */
double ak_speech_probability(const float *logits, int32_t n, int32_t token);

/* The best text. */
struct ak_speech_text {
    int32_t *tokens;      /* without the end token */
    float *probabilities; /* [n]: of each among the tokens that the rules allow there */
    size_t n;
    double sum;           /* of the log-probabilities, with the end token's */
    double mean_log_prob; /* sum / (n + 1) */
    double no_speech;     /* probability that the window has none */
};

/* Accepts zeros, which it leaves. */
void ak_speech_text_free(struct ak_speech_text *text);

/* The caller frees *out, which is empty after a failure. AKUNU_ERROR_ARGUMENT: values out of range.
 */
enum { AK_SPEECH_TEXTS_MAX = 64 };
ak_status ak_speech_decode(const struct ak_speech_model *model,
                           const struct ak_speech_search *search, struct ak_speech_text *out,
                           struct ak_error *error);

#endif
