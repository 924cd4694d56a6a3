/* A window of speech in a session, and the texts that are decoded over it: encoder and decoder
 * behind the functions that speech/search/ calls. The window is a sequence with K and V for
 * cross-attention, the texts are sequences that fork. */
#ifndef AK_SPEECH_TRANSCRIBE_LANE_H
#define AK_SPEECH_TRANSCRIBE_LANE_H

#include "speech/audio/clip.h"
#include "base/buffer.h"
#include "speech/search/transcribe.h"
#include "speech/transcribe/meeting.h"

struct ak_lane {
    struct ak_meeting *meeting;
    struct ak_session *s;
    const struct ak_speech_tokens *tokens;
    float *frames;  /* [AK_SPEECH_WINDOW][n_mels] */
    int32_t window; /* the sequence that holds it; -1: none yet */
    int32_t texts[AK_SPEECH_TEXTS_MAX];
    size_t n_texts;
    struct akunu_batch_token *batch; /* [session's batch] */
    const float **rows;              /* [session's batch]: logits of the last pass */
    struct ak_buffer text;

    /* What the lane transcribes: set between two clips, while it has not joined. */
    struct ak_clip *clip;
    uint32_t audio_context; /* positions of the encoder that are used; 0: all */
    /* Runs before each pass, in the thread of the call. `first`: frame of the window. Not
     * AKUNU_OK: the lane stops with that status. */
    ak_status (*on_pass)(void *user, uint64_t first, struct ak_error *error);
    void *user;
    uint64_t first;
};

/* Close *lane in any case. */
ak_status ak_lane_open(struct ak_lane *lane, struct ak_meeting *meeting, struct ak_session *s,
                       const struct ak_speech_tokens *tokens, struct ak_error *error);
/* In the thread of the call, when no lane runs. */
void ak_lane_close(struct ak_lane *lane); /* accepts zeros */

/* lane->clip for ak_speech_transcribe. */
struct ak_speech_clip ak_lane_clip(struct ak_lane *lane);

/* Probabilities of the languages of a multilingual model by the clip's first window. */
ak_status ak_lane_languages(struct ak_lane *lane, float *out, struct ak_error *error);

#endif
