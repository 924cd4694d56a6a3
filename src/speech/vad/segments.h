/* Ranges of speech from the probabilities of 32 ms each, as whisper.cpp finds them: speech begins
 * at a threshold and ends with a pause; ranges that are near each other become one, short ones are
 * dropped, the others are padded. */
#ifndef AK_SPEECH_VAD_SEGMENTS_H
#define AK_SPEECH_VAD_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "akunu/speech.h"
#include "speech/audio/audio.h"

struct ak_vad_segmenter {
    float threshold, end_threshold;                   /* speech ends below the second */
    int64_t min_speech, min_silence, max_speech, pad; /* samples */
    bool keep_cuts;                                   /* what max_speech divides stays divided */

    int64_t now; /* first sample of the next probability */
    bool in_speech;
    int64_t start;     /* of the speech, if in_speech */
    int64_t pause;     /* where its pause began; 0: there is none */
    int64_t cut, next; /* last pause that a long range can end in, speech after it; 0: none */

    struct ak_audio_range *ranges; /* finished */
    size_t n, capacity;
};

/* AKUNU_ERROR_ARGUMENT: a parameter out of range. keep_cuts: whisper.cpp joins again what
 * max_speech_s has divided, unless the pause was long; true: no range is longer than that. */
ak_status ak_vad_segmenter_begin(struct ak_vad_segmenter *s, const struct akunu_vad_params *params,
                                 bool keep_cuts, struct ak_error *error);

/* The next probability. */
ak_status ak_vad_segmenter_add(struct ak_vad_segmenter *s, float probability,
                               struct ak_error *error);

/* After the last one: s->ranges are final, ascending, apart, and begin and end at whole 10 ms. The
 * last may end after the clip. */
ak_status ak_vad_segmenter_end(struct ak_vad_segmenter *s, struct ak_error *error);

void ak_vad_segmenter_free(struct ak_vad_segmenter *s); /* accepts zeros */

#endif
