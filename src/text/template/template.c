/* The set of templates of a model: creation, lookup by name as transformers does it, and ChatML for
 * models without a template. */
#include "text/template/template.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

/* OpenAI's ChatML, for models without a template. */
static const char chatml[] =
    "{%- for message in messages %}\n"
    "{{- '<|im_start|>' + message['role'] + '\\n' }}\n"
    "{%- if message['content'] is string %}\n"
    "{{- message['content'] }}\n"
    "{%- elif message['content'] %}\n"
    "{%- for part in message['content'] %}{{- part['text'] }}{%- endfor %}\n"
    "{%- endif %}\n"
    "{{- '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "{{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n";
static const struct ak_text default_name = { "default", 7 };

static ak_status create_set(struct ak_tmpl_set **out, struct ak_error *error)
{
    *out = ak_alloc(1, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "chat templates", sizeof **out);
    (*out)->tokens = json_object();
    return (*out)->tokens ? AKUNU_OK : ak_fail_memory(error, "chat templates", 0);
}

/* Frees *out if `status` is a failure. */
static ak_status free_on_failure(struct ak_tmpl_set **out, ak_status status)
{
    if (status == AKUNU_OK)
        return AKUNU_OK;
    ak_tmpl_free(*out);
    *out = NULL;
    return status;
}

ak_status ak_tmpl_add(struct ak_tmpl_set *chat, struct ak_text name, struct ak_text text,
                      struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct ak_tmpl_entry *t = &chat->entries[chat->n];
    if (chat->n == AK_TMPL_TEMPLATES_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the model has more than %d chat templates",
                       AK_TMPL_TEMPLATES_MAX);
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

static ak_status open_model(struct ak_tmpl_set *chat, const struct ak_provider *p,
                            struct ak_error *error)
{
    AK_TRY(ak_tmpl_read(chat, p, error));
    chat->fallback = chat->n == 0;
    return chat->fallback ? ak_tmpl_add(chat, default_name,
                                        (struct ak_text){ chatml, sizeof chatml - 1 }, error) :
                            AKUNU_OK;
}

ak_status ak_tmpl_open(const struct ak_provider *p, struct ak_tmpl_set **out,
                       struct ak_error *error)
{
    ak_status status = create_set(out, error);
    if (status == AKUNU_OK)
        status = open_model(*out, p, error);
    return free_on_failure(out, status);
}

ak_status ak_tmpl_from_text(struct ak_text text, const struct ak_tmpl_set *tokens,
                            struct ak_tmpl_set **out, struct ak_error *error)
{
    ak_status status = create_set(out, error);
    if (status == AKUNU_OK && tokens && json_object_update((*out)->tokens, tokens->tokens) != 0)
        status = ak_fail_memory(error, "special tokens", 0);
    if (status == AKUNU_OK)
        status = ak_tmpl_add(*out, default_name, text, error);
    return free_on_failure(out, status);
}

void ak_tmpl_free(struct ak_tmpl_set *chat)
{
    if (!chat)
        return;
    for (size_t i = 0; i < chat->n; i++) {
        ak_free(chat->entries[i].name);
        ak_free(chat->entries[i].text);
        ak_jinja_free(chat->entries[i].parsed);
    }
    json_decref(chat->tokens);
    ak_free(chat);
}

bool ak_tmpl_is_fallback(const struct ak_tmpl_set *chat)
{
    return chat->fallback;
}

const char *ak_tmpl_name(const struct ak_tmpl_set *chat, size_t i)
{
    return i < chat->n ? chat->entries[i].name : NULL;
}

const struct ak_tmpl_entry *ak_tmpl_find(const struct ak_tmpl_set *chat, const char *name)
{
    for (size_t i = 0; i < chat->n; i++)
        if (strcmp(chat->entries[i].name, name) == 0)
            return &chat->entries[i];
    return NULL;
}

static const struct ak_tmpl_entry *select_entry(const struct ak_tmpl_set *chat, const char *name,
                                                bool tools)
{
    if (name)
        return ak_tmpl_find(chat, name);
    const struct ak_tmpl_entry *for_tools = tools ? ak_tmpl_find(chat, "tool_use") : NULL;
    return for_tools ? for_tools : ak_tmpl_find(chat, default_name.bytes);
}

struct ak_text ak_tmpl_text(const struct ak_tmpl_set *chat, const char *name, bool tools)
{
    const struct ak_tmpl_entry *t = select_entry(chat, name, tools);
    return t ? (struct ak_text){ t->text, t->n_bytes } : (struct ak_text){ NULL, 0 };
}

ak_status ak_tmpl_select(const struct ak_tmpl_set *chat, const char *name, bool tools,
                         const struct ak_tmpl_entry **out, struct ak_error *error)
{
    char names[256] = "";
    size_t at = 0;
    *out = select_entry(chat, name, tools);
    if (*out)
        return AKUNU_OK;
    for (size_t i = 0; i < chat->n && at < sizeof names - 1; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                               chat->entries[i].name);
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "the model has no chat template named \"%s\"; it has: %s",
                   name ? name : default_name.bytes, names);
}
