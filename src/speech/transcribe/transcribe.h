/* Transcribes audio with a session of a speech model: runs encoder and decoder for the windows and
 * texts of speech/search/. */
#ifndef AK_SPEECH_TRANSCRIBE_TRANSCRIBE_H
#define AK_SPEECH_TRANSCRIBE_TRANSCRIBE_H

#include "akunu/speech.h"
#include "speech/audio/clip.h"
#include "engine/session/session.h"
#include "speech/search/transcribe.h"
#include "speech/vad/silero.h"

/* What a clip reports to, in the thread of the call. */
struct ak_transcribe_sink {
    akunu_segment_fn *on_segment;
    akunu_fraction_fn *on_progress; /* NULL: none */
    void *user;
    /* Once the clip has ended: why it failed, and the index of its language. NULL: none. */
    void (*on_end)(const struct ak_error *error, int32_t language, void *user);
};

/* Voice activity detection: what has no speech is not transcribed. */
struct ak_transcribe_vad {
    const struct ak_silero *silero; /* NULL: everything is */
    struct akunu_vad_params params;
};

struct ak_transcribe_clip {
    struct ak_audio *audio;
    const struct akunu_transcription_params *asked; /* until the clip was handed over */
    struct ak_transcribe_vad vad;                   /* for the members of `asked` of that name */
    struct ak_transcribe_sink sink;
    uint64_t origin; /* first frame in the recording that it is a part of */
};

/* The next clip; false: there is none for now. */
typedef bool ak_transcribe_next_fn(struct ak_transcribe_clip *out, void *user);

/* As akunu_session_transcribe_clips. */
ak_status ak_transcribe_clips(struct ak_session *s, ak_transcribe_next_fn *next, void *user,
                              struct ak_error *error);
/* Transcribes one clip, whose sink has no on_end; *language: the index of its language. */
ak_status ak_transcribe(struct ak_session *s, const struct ak_transcribe_clip *clip,
                        int32_t *language, struct ak_error *error);

/* As akunu_session_languages, with `vad` for the members of that name. */
ak_status ak_transcribe_languages(struct ak_session *s, struct ak_audio *audio,
                                  const struct akunu_transcription_params *asked,
                                  const struct ak_transcribe_vad *vad, float *out, size_t n,
                                  struct ak_error *error);

/* A callback wanted no more: AKUNU_ERROR_CANCELLED. */
ak_status ak_transcribe_fail_cancelled(struct ak_error *error);

/* Filters and transform for the model; the caller frees *out. AKUNU_ERROR_UNSUPPORTED: no speech
 * model. */
ak_status ak_transcribe_mel(const struct ak_model *m, struct ak_mel **out, struct ak_error *error);

#endif
