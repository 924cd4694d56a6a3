/* Chat templates behind handles: the model's templates or a given one, rendered to prompts. */
#include "api/handles.h"
#include "base/mem.h"
#include "text/template/template.h"

/* The handle is the inner object under its public name. */
static struct ak_tmpl_set *inner(struct akunu_template *chat)
{
    return (struct ak_tmpl_set *)chat;
}

static const struct ak_tmpl_set *inner_of(const struct akunu_template *chat)
{
    return (const struct ak_tmpl_set *)chat;
}

static struct akunu_template *wrap(struct ak_tmpl_set *chat, ak_status status,
                                   const struct ak_error *error)
{
    if (status == AKUNU_OK)
        return (struct akunu_template *)chat;
    ak_api_finish(error);
    return NULL;
}

static ak_status load_templates(const char *path, const char *const *override_kv,
                                struct ak_tmpl_set **out, struct ak_error *error)
{
    struct ak_provider *provider;
    if (!path)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_provider_open(path, &provider, error));
    ak_status status = AKUNU_OK;
    for (; override_kv && *override_kv && status == AKUNU_OK; override_kv++)
        status = ak_provider_override(provider, *override_kv, error);
    if (status == AKUNU_OK)
        status = ak_tmpl_open(provider, out, error);
    ak_provider_close(provider);
    return status;
}

struct akunu_template *akunu_template_load(const char *path, const char *const *override_kv)
{
    struct ak_error error = { 0 };
    struct ak_tmpl_set *chat = NULL;
    ak_status status = load_templates(path, override_kv, &chat, &error);
    return wrap(chat, status, &error);
}

struct akunu_template *akunu_model_template(const struct akunu_model *model)
{
    struct ak_error error = { 0 };
    struct ak_tmpl_set *chat = NULL;
    ak_status status = model ? ak_tmpl_open(model->inner->provider, &chat, &error) :
                               ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the model is NULL");
    return wrap(chat, status, &error);
}

struct akunu_template *akunu_template_parse(const char *text, size_t n_bytes,
                                            const struct akunu_template *tokens)
{
    struct ak_error error = { 0 };
    struct ak_tmpl_set *chat = NULL;
    ak_status status;
    if (!text && n_bytes > 0)
        status = ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the template's text is NULL");
    else if (n_bytes > UINT32_MAX)
        status =
            ak_fail(&error, AKUNU_ERROR_UNSUPPORTED,
                    "a template of %zu bytes, where at most %u are possible", n_bytes, UINT32_MAX);
    else
        status = ak_tmpl_from_text((struct ak_text){ text ? text : "", (uint32_t)n_bytes },
                                   inner_of(tokens), &chat, &error);
    return wrap(chat, status, &error);
}

void akunu_template_free(struct akunu_template *chat)
{
    ak_tmpl_free(inner(chat));
}

bool akunu_template_is_fallback(const struct akunu_template *chat)
{
    return chat && ak_tmpl_is_fallback(inner_of(chat));
}

const char *akunu_template_name(const struct akunu_template *chat, size_t i)
{
    return chat ? ak_tmpl_name(inner_of(chat), i) : NULL;
}

const char *akunu_template_text(const struct akunu_template *chat, const char *name, bool tools,
                                size_t *n_bytes)
{
    struct ak_text text = { NULL, 0 };
    if (chat)
        text = ak_tmpl_text(inner_of(chat), name, tools);
    if (n_bytes)
        *n_bytes = text.n;
    return text.bytes;
}

void akunu_chat_default(struct akunu_chat *chat, size_t size)
{
    static const struct akunu_chat full = { .add_generation_prompt = true };
    ak_api_give_default(chat, size, &full, sizeof full);
}

static ak_status render_chat(const struct akunu_template *chat, const struct akunu_chat *given,
                             char **out, size_t *n_bytes, struct ak_error *error)
{
    struct akunu_chat input;
    akunu_chat_default(&input, sizeof input);
    if (!chat)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the template is NULL");
    AK_TRY(ak_api_copy_in(&input, sizeof input, given, "akunu_chat", error));
    if (!input.messages)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no messages are given");
    return ak_tmpl_render(inner_of(chat), &input, out, n_bytes, error);
}

char *akunu_template_render(const struct akunu_template *chat, const struct akunu_chat *input,
                            size_t *n_bytes)
{
    struct ak_error error = { 0 };
    char *text = NULL;
    size_t n = 0;
    if (render_chat(chat, input, &text, &n, &error) != AKUNU_OK)
        ak_api_finish(&error);
    if (n_bytes)
        *n_bytes = n;
    return text;
}

void akunu_text_free(char *text)
{
    ak_free(text);
}
