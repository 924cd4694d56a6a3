/* libsndfile on one part of an audio file: float frames, channels interleaved. */
#ifndef AK_SPEECH_AUDIO_DECODER_H
#define AK_SPEECH_AUDIO_DECODER_H

#include "speech/audio/parts.h"

/* The message of a library without libsndfile. */
#define AK_DECODER_ABSENT "akunu was built without libsndfile and libsamplerate"

struct ak_decoder;

/* `fd` has the part's bytes and stays the caller's, as the part does, until the decoder is closed.
 * AKUNU_ERROR_FORMAT: nothing that libsndfile decodes; AKUNU_ERROR_UNSUPPORTED: built without it.
 */
ak_status ak_decoder_open(const struct ak_audio_part *part, int fd, const char *name,
                          struct ak_decoder **out, struct ak_error *error);
void ak_decoder_close(struct ak_decoder *d); /* accepts NULL */

/* Samples of a channel, as header or decoder count them: 0: none, UINT64_MAX: unknown. */
uint64_t ak_decoder_samples(const struct ak_decoder *d);
unsigned ak_decoder_rate(const struct ak_decoder *d);
unsigned ak_decoder_channels(const struct ak_decoder *d);
/* The share of each channel in a mono sample, [channels], as ffmpeg mixes down. They sum to 1. */
void ak_decoder_weights(const struct ak_decoder *d, float *weights);

/* Up to `max` frames; fewer at the end, or where damage begins. */
size_t ak_decoder_read(struct ak_decoder *d, float *out, size_t max);

#endif
