/* What a chat is made of: source.c reads it, render.c uses it. */
#ifndef AK_TEMPLATE_PARTS_H
#define AK_TEMPLATE_PARTS_H

#include <jansson.h>

#include "template/template.h"
#include "template/jinja/jinja.h"

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
