/* Tokens that a transcription does not write, as openai/whisper chooses them: special ones, and
 * those of symbols that nobody says, such as ♪ and brackets. */
#ifndef AK_SPEECH_TRANSCRIBE_SUPPRESS_H
#define AK_SPEECH_TRANSCRIBE_SUPPRESS_H

#include "speech/search/rules.h"
#include "text/tokenizer/tokenizer.h"

/* The caller frees *out. `symbols`: those of symbols too. */
ak_status ak_transcribe_suppressed(const struct ak_tokenizer *tokenizer,
                                   const struct ak_speech_tokens *tokens, bool symbols,
                                   int32_t **out, size_t *n, struct ak_error *error);

/* The token of a space, which no text begins with. */
ak_status ak_transcribe_blank(const struct ak_tokenizer *tokenizer, int32_t *out,
                              struct ak_error *error);

#endif
