/* A grammar on the text of each window, for commands and forms: what may follow the tokens that a
 * beam or sample has written. The state of a text follows from its tokens, so the search copies
 * none; the matcher has the transitions and masks of all texts in its caches. One thread. */
#ifndef AK_SPEECH_TRANSCRIBE_GRAMMAR_H
#define AK_SPEECH_TRANSCRIBE_GRAMMAR_H

#include "engine/session/constraint.h"
#include "speech/search/decode.h"

struct ak_transcribe_grammar {
    struct ak_session_constraint inner;
    int32_t end; /* the tokens below are text */
    float penalty;
    struct ak_speech_constraint constraint; /* for ak_speech_clip */
};

/* `penalty`: subtracted from the logits of rejected tokens; infinity: none is written. If no text
 * of the grammar begins with a space, it may precede each, because Whisper's texts begin with one.
 * AKUNU_ERROR_ARGUMENT: the penalty, or a grammar that names tokens which the model lacks. Close it
 * in any case. */
ak_status ak_transcribe_grammar_open(struct ak_model *model, struct ak_grammar *grammar,
                                     float penalty, int32_t end, struct ak_transcribe_grammar *out,
                                     struct ak_error *error);
void ak_transcribe_grammar_close(struct ak_transcribe_grammar *g); /* accepts zeros */

#endif
