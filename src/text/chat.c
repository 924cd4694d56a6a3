#include "text/chat.h"

#include "base/mem.h"
#include "text/buffer.h"

/* A conversation in ChatML, which is all that is rendered so far. */
struct ak_chat {
    struct ak_text text;
};

static const char chatml[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

ak_status ak_chat_open(const struct ak_provider *p, struct ak_chat **out, struct ak_error *error)
{
    (void)p;
    return ak_chat_from_text((struct ak_text){ chatml, sizeof chatml - 1 }, NULL, out, error);
}

ak_status ak_chat_from_text(struct ak_text text, const struct ak_chat *tokens, struct ak_chat **out, struct ak_error *error)
{
    (void)tokens;
    *out = ak_alloc(1, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "a chat template", sizeof **out);
    (*out)->text = (struct ak_text){ ak_strndup(text.bytes, text.n), text.n };
    if ((*out)->text.bytes)
        return AKUNU_OK;
    ak_chat_free(*out);
    *out = NULL;
    return ak_fail_memory(error, "a chat template", text.n);
}

void ak_chat_free(struct ak_chat *chat)
{
    if (!chat)
        return;
    ak_free((void *)(uintptr_t)chat->text.bytes);
    ak_free(chat);
}

bool ak_chat_is_fallback(const struct ak_chat *chat)
{
    return chat->text.bytes != NULL;
}

const char *ak_chat_name(const struct ak_chat *chat, size_t i)
{
    (void)chat;
    return i == 0 ? "default" : NULL;
}

struct ak_text ak_chat_text(const struct ak_chat *chat, const char *name, bool tools)
{
    (void)name, (void)tools;
    return chat->text;
}

ak_status ak_chat_render(const struct ak_chat *chat, const struct akunu_chat *input, char **out, size_t *n_bytes, struct ak_error *error)
{
    (void)chat, (void)input, (void)out, (void)n_bytes;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "chat templates cannot be rendered yet");
}
