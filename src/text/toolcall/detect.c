/* Detects the format of a model's calls and whether a reply begins inside reasoning. A template
 * contains the markers: it renders earlier calls, or tells the model how to write one. */
#include "text/toolcall/toolcall.h"

#include <string.h>

#include "text/toolcall/scan.h"

static bool has_signature(const struct ak_tc_format *f, const char *chat_template)
{
    if (!f->signature[0])
        return false;
    for (size_t i = 0; i < AK_TC_SIGNATURE_MAX && f->signature[i]; i++)
        if (!strstr(chat_template, f->signature[i]))
            return false;
    return true;
}

/* Whether the text is a token, and not one unknown token. */
static bool has_token(const struct ak_tokenizer *tokenizer, const char *text)
{
    int32_t id;
    char decoded[64];
    size_t n = strlen(text), n_ids, n_decoded;
    struct ak_error ignored;

    return ak_tok_encode(tokenizer, text, n, AKUNU_PARSE_SPECIAL, &id, 1, &n_ids, &ignored) ==
               AKUNU_OK &&
           n_ids == 1 &&
           ak_tok_decode(tokenizer, &id, 1, 0, decoded, sizeof decoded, &n_decoded, &ignored) ==
               AKUNU_OK &&
           n_decoded == n && memcmp(decoded, text, n) == 0;
}

const struct ak_tc_format *ak_tc_detect_format(const char *chat_template,
                                               const struct ak_tokenizer *tokenizer)
{
    const struct ak_tc_format *f;

    for (size_t i = 0; chat_template && (f = ak_tc_format_at(i)); i++)
        if (has_signature(f, chat_template))
            return f;
    for (size_t i = 0; tokenizer && (f = ak_tc_format_at(i)); i++)
        if (f->token && has_token(tokenizer, f->token))
            return f;
    return ak_tc_find_format("generic");
}

const struct ak_tc_reasoning *ak_tc_find_open_reasoning(const char *prompt)
{
    const struct ak_tc_reasoning *t;
    size_t n = prompt ? strlen(prompt) : 0;

    while (n && ak_tc_is_whitespace(prompt[n - 1]))
        n--;
    for (size_t i = 0; (t = ak_tc_reasoning_at(i)); i++) {
        size_t n_open = strlen(t->begin);
        if (n >= n_open && memcmp(prompt + n - n_open, t->begin, n_open) == 0)
            return t;
    }
    return NULL;
}

struct ak_tc_reasoning_use ak_tc_find_reasoning(const struct ak_tc_format *format,
                                                const char *chat_template, const char *prompt)
{
    const struct ak_tc_reasoning *open = ak_tc_find_open_reasoning(prompt), *t = open;

    if (format->harmony)
        return (struct ak_tc_reasoning_use){
            .begin = "<|channel|>analysis<|message|>",
            .end = "<|end|>",
            .closing = "<|end|><|start|>assistant<|channel|>final<|message|>",
            .begins_anywhere = true,
        };
    for (size_t i = 0; !t && chat_template && ak_tc_reasoning_at(i); i++) {
        const struct ak_tc_reasoning *one = ak_tc_reasoning_at(i);
        if (strstr(chat_template, one->begin) && strstr(chat_template, one->end))
            t = one;
    }
    if (!t)
        return (struct ak_tc_reasoning_use){ .begin = NULL };
    return (struct ak_tc_reasoning_use){ .begin = t->begin,
                                         .end = t->end,
                                         .closing = t->end,
                                         .begins_anywhere = t->begins_anywhere,
                                         .is_open = open != NULL };
}
