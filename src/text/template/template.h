/* Chat templates of a model, which render conversations to prompts.
 *
 *   provider, or the text of a template
 *     → ak_tmpl_set        templates by name, special tokens
 *     → ak_tmpl_render     JSON of messages, tools, … → jinja/ → the prompt
 */
#ifndef AK_TEXT_TEMPLATE_TEMPLATE_H
#define AK_TEXT_TEMPLATE_TEMPLATE_H

#include <jansson.h>

#include "text/template/jinja/jinja.h"
#include "files/weights/provider.h"

struct ak_tmpl_set;

/* The templates of a model; ChatML if it has none. The caller frees *out. */
ak_status ak_tmpl_open(const struct ak_provider *p, struct ak_tmpl_set **out,
                       struct ak_error *error);
/* A set of one template with the special tokens of `tokens`; NULL: none. */
ak_status ak_tmpl_from_text(struct ak_text text, const struct ak_tmpl_set *tokens,
                            struct ak_tmpl_set **out, struct ak_error *error);
void ak_tmpl_free(struct ak_tmpl_set *chat); /* NULL allowed */

/* Whether the template is ChatML because the model has none. */
bool ak_tmpl_is_fallback(const struct ak_tmpl_set *chat);
/* Name of the i-th template, NUL-terminated; NULL: past the end. */
const char *ak_tmpl_name(const struct ak_tmpl_set *chat, size_t i);
/* Text of a template; bytes NULL: no such template. name NULL: the one that transformers selects,
 * which depends on whether there are `tools`. */
struct ak_text ak_tmpl_text(const struct ak_tmpl_set *chat, const char *name, bool tools);

/* *out is NUL-terminated; free it with ak_free. */
ak_status ak_tmpl_render(const struct ak_tmpl_set *chat, const struct akunu_chat *input, char **out,
                         size_t *n_bytes, struct ak_error *error);

/* ---- Internals of text/template/ --------------------------------------------- */
enum { AK_TMPL_TEMPLATES_MAX = 64 };

struct ak_tmpl_entry {
    char *name, *text; /* NUL-terminated; the text may also contain NUL */
    uint32_t n_bytes;  /* of the text */
    struct ak_jinja *parsed;
};

struct ak_tmpl_set {
    struct ak_tmpl_entry entries[AK_TMPL_TEMPLATES_MAX];
    size_t n;
    json_t *tokens; /* special tokens as variables: "bos_token", … */
    bool fallback;  /* see ak_tmpl_is_fallback */
};

/* Copies and parses a template. An error message begins with its name, unless it is "default". */
ak_status ak_tmpl_add(struct ak_tmpl_set *chat, struct ak_text name, struct ak_text text,
                      struct ak_error *error);
/* NULL: no such template. */
const struct ak_tmpl_entry *ak_tmpl_find(const struct ak_tmpl_set *chat, const char *name);
/* name NULL: "tool_use" if there are tools and such a template, else "default". */
ak_status ak_tmpl_select(const struct ak_tmpl_set *chat, const char *name, bool tools,
                         const struct ak_tmpl_entry **out, struct ak_error *error);

/* source.c: reads templates and special tokens of a model; both may be absent. */
ak_status ak_tmpl_read(struct ak_tmpl_set *chat, const struct ak_provider *p,
                       struct ak_error *error);

#endif
