/* Where a clip has speech: its ranges, and chunks of them for an encoder's window. The clip is read
 * once, a piece at a time. */
#ifndef AK_SPEECH_VAD_DETECT_H
#define AK_SPEECH_VAD_DETECT_H

#include "speech/vad/segments.h"
#include "speech/vad/silero.h"

/* Samples of silence between ranges that are read as one clip, as in whisper.cpp. */
enum { AK_VAD_SILENCE = 1600 };

struct ak_vad_ranges {
    struct ak_audio_range *ranges; /* ascending and apart; each begins at a whole 10 ms */
    size_t n;
    uint64_t n_samples; /* of the clip */
};
void ak_vad_ranges_free(struct ak_vad_ranges *r); /* accepts zeros */

/* Reads the clip from its beginning. on_probability, which may be NULL, sees the probability of
 * each AK_SILERO_WINDOW samples; false stops with AKUNU_ERROR_CANCELLED. keep_cuts: as
 * ak_vad_segmenter_begin. The caller frees *out. */
ak_status ak_vad_detect(const struct ak_silero *silero, struct ak_audio *audio,
                        const struct akunu_vad_params *params, bool keep_cuts,
                        akunu_vad_probability_fn *on_probability, void *user,
                        struct ak_vad_ranges *out, struct ak_error *error);

/* Drops what is outside of the samples [first, end). */
void ak_vad_ranges_clip(struct ak_vad_ranges *r, uint64_t first, uint64_t end);

/* Lets each range but the last go on for so many samples, at most to the next one. */
void ak_vad_ranges_extend(struct ak_vad_ranges *r, uint64_t overlap);

/* Ranges that fit one window of an encoder together, with AK_VAD_SILENCE samples between them. */
struct ak_vad_chunk {
    size_t first, n;     /* ranges */
    uint64_t begin, end; /* frames of 10 ms of the ranges read as one clip */
};

/* Groups ranges into chunks of at most max_frames of 10 ms, each as long as possible. A range that
 * is longer is divided in `r` itself; those of keep_cuts with such a max_speech_s are not. The
 * caller frees *out with ak_free. */
ak_status ak_vad_chunks(struct ak_vad_ranges *r, uint64_t max_frames, struct ak_vad_chunk **out,
                        size_t *n, struct ak_error *error);

#endif
