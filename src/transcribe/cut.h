/* The speech of a clip as a clip of its own, which is what --vad transcribes, and its times as
 * those of the whole clip. Used by transcribe/transcribe.c. */
#ifndef AK_TRANSCRIBE_CUT_H
#define AK_TRANSCRIBE_CUT_H

#include "transcribe/transcribe.h"
#include "audio/ranges.h"
#include "vad/detect.h"

struct ak_transcribe_cut {
    struct ak_vad_ranges speech;
    struct ak_audio *audio;   /* NULL: there is no speech */
    struct akunu_word *words; /* of the last segment that was mapped */
    size_t capacity;
};

/* Finds the speech of the frames [first, end), 10 ms each. The sink's on_progress hears of 0 now
 * and then, so that it can cancel. `audio` stays the caller's and is read through out->audio. */
ak_status ak_transcribe_cut_open(struct ak_audio *audio, const struct ak_transcribe_vad *vad,
                                 uint64_t first, uint64_t end,
                                 const struct ak_transcribe_sink *sink,
                                 struct ak_transcribe_cut *out, struct ak_error *error);
void ak_transcribe_cut_close(struct ak_transcribe_cut *cut); /* accepts zeros */

/* Lets a segment's window and times, and those of its words, be those of the whole clip. The words
 * are valid until the next call. False: out of memory. */
bool ak_transcribe_cut_map(struct ak_transcribe_cut *cut, struct akunu_segment *segment);

#endif
