/* The chat templates of a model, and conversations rendered by them.
 *
 *   provider, or a template's text
 *     → ak_tmpl_set        templates by name, special tokens
 *     → ak_tmpl_render JSON of the messages, tools … → jinja/ → the prompt
 */
#ifndef AK_TEMPLATE_TEMPLATE_H
#define AK_TEMPLATE_TEMPLATE_H

#include <jansson.h>

#include "template/jinja/jinja.h"
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

/* ---- Internals of template/ --------------------------------------------- */

enum { AK_TMPL_TEMPLATES_MAX = 64 };

struct ak_tmpl_entry {
    char *name, *text; /* terminated; the text may hold NUL too */
    uint32_t n_bytes;
    struct ak_jinja *parsed;
};

struct ak_tmpl_set {
    struct ak_tmpl_entry entries[AK_TMPL_TEMPLATES_MAX];
    size_t n;
    json_t *tokens; /* "bos_token" and so on: the variables that special tokens are */
    bool fallback;
};

/* Copies and parses; the message begins with the template's name where it is not the only one. */
ak_status ak_tmpl_add(struct ak_tmpl_set *chat, struct ak_text name, struct ak_text text,
                      struct ak_error *error);
/* NULL: none */
const struct ak_tmpl_entry *ak_tmpl_find(const struct ak_tmpl_set *chat, const char *name);
/* name NULL: "tool_use" where there are tools and it exists, else "default". */
ak_status ak_tmpl_select(const struct ak_tmpl_set *chat, const char *name, bool tools,
                         const struct ak_tmpl_entry **out, struct ak_error *error);

/* Templates and special tokens of a model; none of them is no error. */
ak_status ak_tmpl_read(struct ak_tmpl_set *chat, const struct ak_provider *p,
                       struct ak_error *error);

#endif
