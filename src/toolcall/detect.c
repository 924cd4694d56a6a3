/* Which format a model's calls have, and whether its answer begins inside of reasoning. A template
 * shows earlier calls in the form in which the model is to make the next ones, or tells it of that
 * form in words. */
#include "toolcall/format.h"

#include <string.h>

#include "toolcall/scan.h"

static bool shows(const struct ak_call_format *f, const char *chat_template)
{
    if (!f->signs[0])
        return false;
    for (size_t i = 0; i < AK_MOST_SIGNS && f->signs[i]; i++)
        if (!strstr(chat_template, f->signs[i]))
            return false;
    return true;
}

static bool has_token(const struct ak_tokenizer *tokenizer, const char *text)
{
    int32_t id;
    size_t n;
    struct ak_error ignored;

    return ak_tokenize(tokenizer, text, strlen(text), AKUNU_PARSE_SPECIAL, &id, 1, &n, &ignored) ==
               AKUNU_OK &&
           n == 1;
}

const struct ak_call_format *ak_call_format_detect(const char *chat_template,
                                                   const struct ak_tokenizer *tokenizer)
{
    const struct ak_call_format *f;

    for (size_t i = 0; chat_template && (f = ak_call_format_at(i)); i++)
        if (shows(f, chat_template))
            return f;
    for (size_t i = 0; tokenizer && (f = ak_call_format_at(i)); i++)
        if (f->token && has_token(tokenizer, f->token))
            return f;
    return ak_call_format_named("generic");
}

const struct ak_thinking *ak_thinking_begun(const char *prompt)
{
    const struct ak_thinking *t;
    size_t n = prompt ? strlen(prompt) : 0;

    while (n && ak_is_blank(prompt[n - 1]))
        n--;
    for (size_t i = 0; (t = ak_thinking_at(i)); i++) {
        size_t n_open = strlen(t->open);
        if (n >= n_open && memcmp(prompt + n - n_open, t->open, n_open) == 0)
            return t;
    }
    return NULL;
}
