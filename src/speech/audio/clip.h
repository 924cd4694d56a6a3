/* The log-mel frames of one clip, window by window, as openai/whisper makes them of the whole: the
 * clip's end is followed by zeros, and one maximum normalizes all frames. Two passes over the
 * audio, the first for that maximum, so that an hour needs no more memory than a minute. */
#ifndef AK_SPEECH_AUDIO_CLIP_H
#define AK_SPEECH_AUDIO_CLIP_H

#include <stdbool.h>

#include "speech/audio/audio.h"
#include "speech/audio/mel.h"

struct ak_clip;

/* Sees each sample of the clip once, from first to last: false stops with
 * AKUNU_ERROR_CANCELLED. */
typedef bool ak_clip_piece_fn(void *user, const float *samples, size_t n);

/* Reads the clip once, from its beginning. `piece` may be NULL. `audio` and `mel` stay the caller's
 * and are used until ak_clip_free. AKUNU_ERROR_FORMAT: the clip cannot be decoded to its end, or
 * has no sample. */
ak_status ak_clip_new(struct ak_audio *audio, const struct ak_mel *mel, ak_clip_piece_fn *piece,
                      void *user, struct ak_clip **out, struct ak_error *error);
void ak_clip_free(struct ak_clip *clip); /* accepts NULL */

uint64_t ak_clip_samples(const struct ak_clip *clip);

/* Frames [first, first + n), normalized: out is [n][n_mels]. Frames after the clip are those of
 * zeros. Windows in ascending order read the audio once; an earlier one reads it again from the
 * beginning. n is at most AK_CLIP_FRAMES. */
enum { AK_CLIP_FRAMES = 3000 };
ak_status ak_clip_window(struct ak_clip *clip, uint64_t first, size_t n, float *out,
                         struct ak_error *error);

#endif
