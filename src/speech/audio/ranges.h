/* Ranges of a clip, as if they were a clip of their own: one after another, with silence between.
 * speech/audio/audio.c reads them for ak_audio_open_ranges; speech/vad/ finds them, and
 * speech/transcribe/ maps times back. */
#ifndef AK_SPEECH_AUDIO_RANGES_H
#define AK_SPEECH_AUDIO_RANGES_H

#include "speech/audio/audio.h"

struct ak_ranges;

/* As ak_audio_open_ranges. */
ak_status ak_ranges_open(struct ak_audio *of, const struct ak_audio_range *ranges, size_t n,
                         uint32_t silence, struct ak_ranges **out, struct ak_error *error);
void ak_ranges_free(struct ak_ranges *r); /* accepts NULL */

/* Samples of all ranges and silences. */
uint64_t ak_ranges_samples(const struct ak_ranges *r);

/* As ak_audio_read and ak_audio_rewind. */
ak_status ak_ranges_read(struct ak_ranges *r, float *out, size_t max, size_t *n,
                         struct ak_error *error);
ak_status ak_ranges_rewind(struct ak_ranges *r, struct ak_error *error);

/* Seconds of the clip that are `seconds` of the ranges. In a silence: the end of the range before,
 * if `is_end`, else the beginning of the next. After the last range: its end. n is at least 1. */
double ak_ranges_time(const struct ak_audio_range *ranges, size_t n, uint32_t silence,
                      double seconds, bool is_end);

#endif
