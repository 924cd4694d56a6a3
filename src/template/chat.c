#include "template/chat.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "template/chat_parts.h"

/* OpenAI's ChatML, which stands in for a template that a model does not have. */
static const char chatml[] =
    "{%- for message in messages %}\n"
    "{{- '<|im_start|>' + message['role'] + '\\n' }}\n"
    "{%- if message['content'] is string %}\n"
    "{{- message['content'] }}\n"
    "{%- else %}\n"
    "{%- for part in message['content'] %}{{- part['text'] }}{%- endfor %}\n"
    "{%- endif %}\n"
    "{{- '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "{{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n";
static const struct ak_text default_name = { "default", 7 };

static ak_status create(struct ak_chat **out, struct ak_error *error)
{
    *out = ak_alloc(1, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "chat templates", sizeof **out);
    (*out)->tokens = json_object();
    return (*out)->tokens ? AKUNU_OK : ak_fail_memory(error, "chat templates", 0);
}

/* Gives *out up where `status` is a failure. */
static ak_status finish(struct ak_chat **out, ak_status status)
{
    if (status == AKUNU_OK)
        return AKUNU_OK;
    ak_chat_free(*out);
    *out = NULL;
    return status;
}

ak_status ak_chat_add(struct ak_chat *chat, struct ak_text name, struct ak_text text,
                      struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct ak_chat_template *t = &chat->templates[chat->n];
    if (chat->n == AK_CHAT_MOST_TEMPLATES)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the model has more than %d chat templates",
                       AK_CHAT_MOST_TEMPLATES);
    t->name = ak_strndup(name.bytes, name.n);
    t->text = ak_strndup(text.bytes, text.n);
    t->n_bytes = text.n;
    chat->n++;
    if (!t->name || !t->text)
        return ak_fail_memory(error, "a chat template", text.n);
    ak_status status = ak_jinja_parse(t->text, t->n_bytes, &t->parsed, error);
    if (status != AKUNU_OK && strcmp(t->name, default_name.bytes) != 0)
        ak_error_prefix(error, ak_show(name.bytes, name.n, shown));
    if (status != AKUNU_OK)
        ak_error_prefix(error, "chat template");
    return status;
}

static ak_status open_model(struct ak_chat *chat, const struct ak_provider *p,
                            struct ak_error *error)
{
    AK_TRY(ak_chat_read(chat, p, error));
    chat->fallback = chat->n == 0;
    return chat->fallback ? ak_chat_add(chat, default_name,
                                        (struct ak_text){ chatml, sizeof chatml - 1 }, error) :
                            AKUNU_OK;
}

ak_status ak_chat_open(const struct ak_provider *p, struct ak_chat **out, struct ak_error *error)
{
    ak_status status = create(out, error);
    if (status == AKUNU_OK)
        status = open_model(*out, p, error);
    return finish(out, status);
}

ak_status ak_chat_from_text(struct ak_text text, const struct ak_chat *tokens, struct ak_chat **out,
                            struct ak_error *error)
{
    ak_status status = create(out, error);
    if (status == AKUNU_OK && tokens && json_object_update((*out)->tokens, tokens->tokens) != 0)
        status = ak_fail_memory(error, "special tokens", 0);
    if (status == AKUNU_OK)
        status = ak_chat_add(*out, default_name, text, error);
    return finish(out, status);
}

void ak_chat_free(struct ak_chat *chat)
{
    if (!chat)
        return;
    for (size_t i = 0; i < chat->n; i++) {
        ak_free(chat->templates[i].name);
        ak_free(chat->templates[i].text);
        ak_jinja_free(chat->templates[i].parsed);
    }
    json_decref(chat->tokens);
    ak_free(chat);
}

bool ak_chat_is_fallback(const struct ak_chat *chat)
{
    return chat->fallback;
}

const char *ak_chat_name(const struct ak_chat *chat, size_t i)
{
    return i < chat->n ? chat->templates[i].name : NULL;
}

const struct ak_chat_template *ak_chat_find(const struct ak_chat *chat, const char *name)
{
    for (size_t i = 0; i < chat->n; i++)
        if (strcmp(chat->templates[i].name, name) == 0)
            return &chat->templates[i];
    return NULL;
}

static const struct ak_chat_template *choose(const struct ak_chat *chat, const char *name,
                                             bool tools)
{
    if (name)
        return ak_chat_find(chat, name);
    const struct ak_chat_template *for_tools = tools ? ak_chat_find(chat, "tool_use") : NULL;
    return for_tools ? for_tools : ak_chat_find(chat, default_name.bytes);
}

struct ak_text ak_chat_text(const struct ak_chat *chat, const char *name, bool tools)
{
    const struct ak_chat_template *t = choose(chat, name, tools);
    return t ? (struct ak_text){ t->text, t->n_bytes } : (struct ak_text){ NULL, 0 };
}

ak_status ak_chat_choose(const struct ak_chat *chat, const char *name, bool tools,
                         const struct ak_chat_template **out, struct ak_error *error)
{
    char names[256] = "";
    size_t at = 0;
    *out = choose(chat, name, tools);
    if (*out)
        return AKUNU_OK;
    for (size_t i = 0; i < chat->n && at < sizeof names - 1; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                               chat->templates[i].name);
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "the model has no chat template named \"%s\"; it has: %s",
                   name ? name : default_name.bytes, names);
}
