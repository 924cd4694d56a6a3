/* Text that Whisper makes up where nothing is said: segments of improbable, very short or very long
 * words with silence around them, as hallucination_silence_threshold of openai/whisper's
 * transcribe() finds them. */
#ifndef AK_SPEECH_SEARCH_HALLUCINATION_H
#define AK_SPEECH_SEARCH_HALLUCINATION_H

#include "speech/search/transcribe.h"

/* A window whose segments have words. */
struct ak_speech_silence {
    double threshold;          /* seconds of silence */
    uint64_t window, n_frames; /* first frame of the window, end of the clip */
    uint64_t used;             /* frames of the window that are the clip's */
    double last_end;           /* seconds at which the text before it ends */
    bool ends_in_time;         /* nothing is said after the last segment */
};

/* Returns the number of segments that stay, the first ones of n > 0. *frames: where the next window
 * begins, from this one on. *skipped: silence before the first segment is skipped, and the rest of
 * the window read again. */
size_t ak_speech_skip_silence(const struct ak_speech_silence *silence,
                              const struct ak_speech_segment *segments, size_t n, uint64_t *frames,
                              bool *skipped);

#endif
