/* The text of Whisper's tokens as UTF-8. A token may be a part of a character, so that a window
 * that is cut off, or a model that makes a mistake, leaves bytes that are no characters. As in
 * openai/whisper, whose tokens are decoded with errors="replace", U+FFFD stands for them in
 * everything that a host sees. */
#ifndef AK_SPEECH_SEARCH_TEXT_H
#define AK_SPEECH_SEARCH_TEXT_H

#include <stddef.h>

#include "base/buffer.h"
#include "speech/search/transcribe.h"

/* The text of those tokens that are below `limit`, as the tokens have it; valid until the next call
 * of clip->text. */
ak_status ak_speech_spell(const struct ak_speech_clip *clip, const int32_t *tokens, size_t n,
                          int32_t limit, const char **out, size_t *n_bytes, struct ak_error *error);

/* Appends n bytes, with U+FFFD for each longest sequence that could begin a character and does not
 * become one, as Python has it. */
ak_status ak_speech_add_utf8(struct ak_buffer *out, const char *bytes, size_t n,
                             struct ak_error *error);

/* The end of the character, or of what is left of one, that begins before byte `at` of n and goes
 * on there; `at` if none does. */
size_t ak_speech_character_end(const char *text, size_t n, size_t at);

/* Drops the whitespace at both ends of a text. */
void ak_speech_strip(const char **text, size_t *n);

#endif
