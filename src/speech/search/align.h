/* When the tokens of a window are said: the decoder's cross-attention follows the audio, and
 * dynamic time warping turns its weights into a time for each token. As find_alignment() of
 * openai/whisper's timing.py. speech/transcribe/ has the scores, words.c makes words of the times.
 */
#ifndef AK_SPEECH_SEARCH_ALIGN_H
#define AK_SPEECH_SEARCH_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Scores of queries with keys, before the softmax: [n_heads][n_tokens][n_positions]. */
struct ak_speech_scores {
    float *data; /* is overwritten */
    size_t n_heads, n_tokens, n_positions;
};

/* Writes the position at which token i of [first, end) begins to at[i - first]. Positions from
 * `used` on, which are silence after the clip, are not looked at. AKUNU_ERROR_MEMORY. */
ak_status ak_speech_align(const struct ak_speech_scores *scores, size_t used, size_t first,
                          size_t end, uint32_t *at, struct ak_error *error);

#endif
