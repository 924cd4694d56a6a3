/* Transcribes speech while it is spoken. The last seconds are transcribed again whenever half a
 * second is new; words that two transcriptions in a row begin with are final (local agreement:
 * Macháček, Dabre and Bojar, "Turning Whisper into Real-Time Transcription System", 2023). */
#ifndef AK_SPEECH_TRANSCRIBE_STREAM_H
#define AK_SPEECH_TRANSCRIBE_STREAM_H

#include "speech/transcribe/transcribe.h"

struct ak_stream;

/* The texts of `asked` stay the caller's. AKUNU_ERROR_ARGUMENT: the rate. */
ak_status ak_stream_new(struct ak_session *s, unsigned rate,
                        const struct akunu_transcription_params *asked,
                        const struct ak_transcribe_vad *vad, akunu_words_fn *on_words, void *user,
                        struct ak_stream **out, struct ak_error *error);
/* Adds samples, and transcribes if enough are new. */
ak_status ak_stream_push(struct ak_stream *t, const float *samples, size_t n,
                         struct ak_error *error);
/* Transcribes what is left; all words are final then. */
ak_status ak_stream_finish(struct ak_stream *t, struct ak_error *error);
void ak_stream_free(struct ak_stream *t); /* NULL allowed */

#endif
