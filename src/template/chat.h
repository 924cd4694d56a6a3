/* The chat templates of a model, and conversations rendered by them.
 *
 *   provider, or a template's text
 *     → ak_chat        templates by name, special tokens
 *     → ak_chat_render JSON of the messages, tools … → jinja/ → the prompt
 */
#ifndef AK_TEXT_CHAT_H
#define AK_TEXT_CHAT_H

#include "weights/provider.h"

struct ak_chat;

/* The templates of a model; ChatML where it has none. The caller frees *out. */
ak_status ak_chat_open(const struct ak_provider *p, struct ak_chat **out, struct ak_error *error);
/* One template, with the special tokens of `tokens` (NULL: none). */
ak_status ak_chat_from_text(struct ak_text text, const struct ak_chat *tokens, struct ak_chat **out,
                            struct ak_error *error);
void ak_chat_free(struct ak_chat *chat); /* NULL allowed */

bool ak_chat_is_fallback(const struct ak_chat *chat);
/* The i-th template's name, terminated; NULL past the end. */
const char *ak_chat_name(const struct ak_chat *chat, size_t i);
/* bytes NULL where there is no such template. name NULL: as transformers chooses. */
struct ak_text ak_chat_text(const struct ak_chat *chat, const char *name, bool tools);

/* *out is terminated and the caller's to free (ak_free). */
ak_status ak_chat_render(const struct ak_chat *chat, const struct akunu_chat *input, char **out,
                         size_t *n_bytes, struct ak_error *error);

#endif
