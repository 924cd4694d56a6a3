/* Words of a window's segments with their times, as add_word_timestamps() of openai/whisper's
 * timing.py makes them: tokens become words, punctuation joins the word beside it, and words too
 * long to be true are shortened. */
#ifndef AK_SPEECH_SEARCH_WORDS_H
#define AK_SPEECH_SEARCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "akunu/speech.h"
#include "base/error.h"

/* The text tokens of a window's segments. */
struct ak_speech_spoken {
    const char *text;   /* of all of them */
    const size_t *ends; /* [n]: byte of the text at which token i ends */
    const uint32_t *at; /* [n + 1]: position at which token i begins; the last is the text's end */
    const float *probabilities; /* [n] */
    size_t n;
    bool spaced; /* words of the language have spaces between them */
};

/* A segment, whose times follow its words. */
struct ak_speech_span {
    double start, end;
    size_t n_tokens; /* of the text */
    const struct akunu_word *words;
    size_t n_words;
};

/* Is the text in `set`, a C string, at any place? */
bool ak_speech_is_part_of(const char *text, size_t n, const char *set);

/* Fills `words`, which has room for `spoken->n`, and those members of the spans. `offset`: seconds
 * of the clip at which the window begins; `last_end`: at which the text before it ends. */
ak_status ak_speech_find_words(const struct ak_speech_spoken *spoken, double offset,
                               double last_end, struct akunu_word *words,
                               struct ak_speech_span *spans, size_t n_spans,
                               struct ak_error *error);

#endif
