/* What a chat is made of: chat_source.c reads it, chat_render.c uses it. */
#ifndef AK_TEXT_CHAT_PARTS_H
#define AK_TEXT_CHAT_PARTS_H

#include <jansson.h>

#include "template/chat.h"
#include "template/jinja/jinja.h"

enum { AK_CHAT_MOST_TEMPLATES = 64 };

struct ak_chat_template {
    char *name, *text; /* terminated; the text may hold NUL too */
    uint32_t n_bytes;
    struct ak_jinja *parsed;
};

struct ak_chat {
    struct ak_chat_template templates[AK_CHAT_MOST_TEMPLATES];
    size_t n;
    json_t *tokens; /* "bos_token" and so on: the variables that special tokens are */
    bool fallback;
};

/* Copies and parses; the message begins with the template's name where it is not the only one. */
ak_status ak_chat_add(struct ak_chat *chat, struct ak_text name, struct ak_text text,
                      struct ak_error *error);
/* NULL: none */
const struct ak_chat_template *ak_chat_find(const struct ak_chat *chat, const char *name);
/* name NULL: "tool_use" where there are tools and it exists, else "default". */
ak_status ak_chat_choose(const struct ak_chat *chat, const char *name, bool tools,
                         const struct ak_chat_template **out, struct ak_error *error);

/* Templates and special tokens of a model; none of them is no error. */
ak_status ak_chat_read(struct ak_chat *chat, const struct ak_provider *p, struct ak_error *error);

#endif
