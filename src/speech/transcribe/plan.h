/* What is asked for of a clip, as speech/search/ takes it. */
#ifndef AK_SPEECH_TRANSCRIBE_PLAN_H
#define AK_SPEECH_TRANSCRIBE_PLAN_H

#include "text/grammar/grammar.h"
#include "engine/session/model.h"
#include "speech/search/transcribe.h"

enum { AK_TRANSCRIBE_TEMPERATURES_MAX = 64 };

struct ak_transcribe_plan {
    struct ak_speech_task task; /* first and end: of the whole clip */
    uint32_t audio_context;     /* positions of the encoder that are used; 0: all */
    bool detects_language;
    float temperatures[AK_TRANSCRIBE_TEMPERATURES_MAX]; /* what `task` points to, as the others */
    int32_t *prompt, *prefix, *hotwords, *suppressed;
    struct ak_grammar *grammar; /* a reference; NULL: any text */
    float grammar_penalty;
};

/* The plan stays where it is, and the texts of `asked` are no longer needed. Free it in any case.
 * AKUNU_ERROR_ARGUMENT: a language that the model does not know, a prompt that is too long, or more
 * positions than the encoder has. */
ak_status ak_transcribe_plan_make(const struct ak_model *m, const struct ak_speech_tokens *tokens,
                                  const struct akunu_transcription_params *asked,
                                  struct ak_transcribe_plan *plan, struct ak_error *error);
void ak_transcribe_plan_free(struct ak_transcribe_plan *plan); /* accepts zeros */

#endif
