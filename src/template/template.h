/* The chat templates of a model, and conversations rendered by them.
 *
 *   provider, or a template's text
 *     → ak_tmpl_set        templates by name, special tokens
 *     → ak_tmpl_render JSON of the messages, tools … → jinja/ → the prompt
 */
#ifndef AK_TEMPLATE_TEMPLATE_H
#define AK_TEMPLATE_TEMPLATE_H

#include "weights/provider.h"

struct ak_tmpl_set;

/* The templates of a model; ChatML where it has none. The caller frees *out. */
ak_status ak_tmpl_open(const struct ak_provider *p, struct ak_tmpl_set **out,
                       struct ak_error *error);
/* One template, with the special tokens of `tokens` (NULL: none). */
ak_status ak_tmpl_from_text(struct ak_text text, const struct ak_tmpl_set *tokens,
                            struct ak_tmpl_set **out, struct ak_error *error);
void ak_tmpl_free(struct ak_tmpl_set *chat); /* NULL allowed */

bool ak_tmpl_is_fallback(const struct ak_tmpl_set *chat);
/* The i-th template's name, terminated; NULL past the end. */
const char *ak_tmpl_name(const struct ak_tmpl_set *chat, size_t i);
/* bytes NULL where there is no such template. name NULL: as transformers chooses. */
struct ak_text ak_tmpl_text(const struct ak_tmpl_set *chat, const char *name, bool tools);

/* *out is terminated and the caller's to free (ak_free). */
ak_status ak_tmpl_render(const struct ak_tmpl_set *chat, const struct akunu_chat *input, char **out,
                         size_t *n_bytes, struct ak_error *error);

#endif
