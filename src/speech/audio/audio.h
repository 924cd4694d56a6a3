/* Audio files as mono samples of AK_MEL_RATE: decoded by libsndfile (WAV, FLAC, Ogg, Opus, MP3 and
 * others), mixed down as ffmpeg does, resampled by libsamplerate. Files that were joined are read
 * to the end of the last (parts.h). Read from the beginning as often as wanted, a piece at a time:
 * memory does not grow with the length.
 *
 * Built without these libraries, it opens samples alone. */
#ifndef AK_SPEECH_AUDIO_AUDIO_H
#define AK_SPEECH_AUDIO_AUDIO_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ak_audio;

/* Messages name `path`. AKUNU_ERROR_FORMAT: not there, not audio, damaged in its header, or without
 * a sample. The caller closes *out. */
ak_status ak_audio_open(const char *path, struct ak_audio **out, struct ak_error *error);

/* An audio file from a descriptor, which stays the caller's and is read to its end if it is a
 * pipe. `name` is for messages. */
ak_status ak_audio_open_fd(int fd, const char *name, struct ak_audio **out, struct ak_error *error);

/* An audio file in memory, which is copied to a temporary file without a name, in TMPDIR or /tmp.
 * AKUNU_ERROR_IO: it cannot be kept there. */
ak_status ak_audio_open_bytes(const void *bytes, size_t n, const char *name, struct ak_audio **out,
                              struct ak_error *error);

/* Mono samples, of `rate` a second; not copied. */
ak_status ak_audio_open_samples(const float *samples, size_t n, unsigned rate,
                                struct ak_audio **out, struct ak_error *error);

/* Ranges of another audio as one: in ascending order and apart, with `silence` samples of zeros
 * between. Zeros too where a range goes on after the end of `of`. Both stay the caller's, and are
 * used until it is closed: `of` is read through this one alone. AKUNU_ERROR_ARGUMENT: another
 * order. */
struct ak_audio_range {
    uint64_t first, n; /* samples of AK_MEL_RATE */
};
ak_status ak_audio_open_ranges(struct ak_audio *of, const struct ak_audio_range *ranges, size_t n,
                               uint32_t silence, struct ak_audio **out, struct ak_error *error);

/* The next samples: *n of them, fewer than `max` only at the end. AKUNU_ERROR_FORMAT: the file
 * cannot be decoded from here on, or a sample is not a number. */
ak_status ak_audio_read(struct ak_audio *audio, float *out, size_t max, size_t *n,
                        struct ak_error *error);

/* Back to the first sample. */
ak_status ak_audio_rewind(struct ak_audio *audio, struct ak_error *error);

/* Seconds: as the headers say, until it was read to its end. 0: unknown. */
double ak_audio_seconds(const struct ak_audio *audio);

/* What of the file is not read, for users: "the last 9000 bytes …". NULL: nothing to say. */
const char *ak_audio_warning(const struct ak_audio *audio);

void ak_audio_close(struct ak_audio *audio); /* accepts NULL */

#endif
