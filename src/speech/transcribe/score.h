/* A window's text once more through the decoder, for the times of its words: probabilities of the
 * tokens, and the scores of the heads that follow the audio. */
#ifndef AK_SPEECH_TRANSCRIBE_SCORE_H
#define AK_SPEECH_TRANSCRIBE_SCORE_H

#include "engine/session/session.h"
#include "speech/search/align.h"

/* Runs n tokens in a sequence of its own that attends to `window`. probabilities[i], for
 * i < n - 1: that of tokens[i + 1] among the tokens below `end`; 0 if it is none of them. The
 * caller frees scores->data. */
ak_status ak_transcribe_score(struct ak_session *s, int32_t window, const int32_t *tokens, size_t n,
                              int32_t end, float *probabilities, struct ak_speech_scores *scores,
                              struct ak_error *error);

#endif
