/* Clips, divided among lanes: whole ones, whose windows follow one another, and those of which the
 * speech alone is transcribed, chunk by chunk. A lane takes the next chunk, or opens the next clip.
 * Segments of a clip are reported in the order of its chunks. */
#ifndef AK_SPEECH_TRANSCRIBE_WORK_H
#define AK_SPEECH_TRANSCRIBE_WORK_H

#include "speech/transcribe/lane.h"
#include "speech/transcribe/transcribe.h"

/* What the clips of a call share. */
struct ak_transcribe_setup {
    struct ak_session *s;
    struct ak_speech_tokens tokens;
    struct ak_mel *mel;
    struct ak_meeting *meeting;
    struct ak_lane *lanes; /* [n_lanes], which meet there */
    size_t n_lanes;
    uint32_t max_texts; /* of a lane */
};

/* Texts that a window needs at once. */
uint32_t ak_transcribe_count_texts(const struct akunu_transcription_params *asked);

/* As ak_transcribe_clips. */
ak_status ak_transcribe_work(const struct ak_transcribe_setup *setup, ak_transcribe_next_fn *next,
                             void *user, struct ak_error *error);

#endif
