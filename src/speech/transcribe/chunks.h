/* The speech of a clip in chunks that fit a window each, which is what --vad transcribes, and their
 * times as those of the clip. A chunk has ranges of speech with 0.1 s of silence between, as
 * whisper.cpp joins them, and ends in a pause, as in faster-whisper's batched mode. */
#ifndef AK_SPEECH_TRANSCRIBE_CHUNKS_H
#define AK_SPEECH_TRANSCRIBE_CHUNKS_H

#include "speech/transcribe/transcribe.h"
#include "speech/vad/detect.h"

struct ak_transcribe_chunks {
    struct ak_vad_ranges speech;
    struct ak_vad_chunk *list; /* [n] */
    size_t n;
    struct ak_audio *audio; /* all ranges as one; NULL: there is no speech */
    uint64_t n_read;        /* samples of it */
};

/* Finds the speech of the frames [first, end), 10 ms each. on_probability, which may be NULL, can
 * stop it. `audio` stays the caller's and is read through `out`; close that in any case. */
ak_status ak_transcribe_chunks_open(struct ak_audio *audio, const struct ak_transcribe_vad *vad,
                                    uint64_t first, uint64_t end,
                                    akunu_vad_probability_fn *on_probability, void *user,
                                    struct ak_transcribe_chunks *out, struct ak_error *error);
void ak_transcribe_chunks_close(struct ak_transcribe_chunks *c); /* accepts zeros */

/* The samples of chunk i; chunks are read in ascending order. The caller frees *out with
 * ak_free. */
ak_status ak_transcribe_chunks_read(struct ak_transcribe_chunks *c, size_t i, float **out,
                                    size_t *n, struct ak_error *error);

/* Frames of chunk i at which a silence of 2 s or more was left out, one less than its ranges at
 * most; returns their number. */
size_t ak_transcribe_chunks_breaks(const struct ak_transcribe_chunks *c, size_t i, uint64_t *out);

/* Lets the window and the times of a segment of chunk i, and those of its words, which are
 * `words`, be those of the clip. */
void ak_transcribe_chunks_map(const struct ak_transcribe_chunks *c, size_t i,
                              struct akunu_segment *segment, struct akunu_word *words);

#endif
