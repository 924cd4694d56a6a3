/* Word times of a window's segments: the decoder runs over its text once more, and cross-attention
 * tells when each token is said. */
#ifndef AK_SPEECH_SEARCH_TIMING_H
#define AK_SPEECH_SEARCH_TIMING_H

#include "speech/search/transcribe.h"

/* Words of the segments that were timed last, and the text that they point into. */
struct ak_speech_timing {
    double last_end;                   /* seconds at which the text so far ends */
    struct ak_buffer text, words_text; /* as the tokens have it; as the words do, in UTF-8 */
    struct akunu_word *words;
};

/* Gives n segments of the window that was encoded last their words, and times that agree with them.
 * `used`: frames of the window that are the clip's. */
ak_status ak_speech_time_words(struct ak_speech_timing *t, const struct ak_speech_clip *clip,
                               const struct ak_speech_task *task, uint64_t used,
                               struct ak_speech_segment *segments, size_t n,
                               struct ak_error *error);

void ak_speech_timing_free(struct ak_speech_timing *t);

#endif
