/* Chat templates as GGUF keys. A checkpoint has chat_template.jinja, or a template in
 * tokenizer_config.json or chat_template.json: one text, or a list with names, of which "default"
 * is the one to use. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "conversion/convert/convert.h"

enum { TEMPLATES_MAX = 64, NAME_BYTES = 64 };

static const char key[] = "tokenizer.chat_template";

/* As in the gguf Python package, characters other than letters and digits become underscores. */
static void read_template_name(const json_t *element, char out[NAME_BYTES])
{
    const char *name = json_string_value(json_object_get(element, "name"));
    size_t n = 0;
    for (; name && *name && n + 1 < NAME_BYTES; name++) {
        bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                     (*name >= '0' && *name <= '9');
        if (((unsigned char)*name & 0xC0) != 0x80) /* one underscore per character */
            out[n++] = plain ? *name : '_';
    }
    out[n] = '\0';
}

static struct ak_text get_text(const json_t *string)
{
    return (struct ak_text){ json_string_value(string), (uint32_t)json_string_length(string) };
}

static bool is_among(const char *name, char names[][NAME_BYTES], uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* Of templates with the same name the first is kept. */
static ak_status put_list(struct ak_gguf_writer *w, const json_t *list, struct ak_error *error)
{
    char names[TEMPLATES_MAX][NAME_BYTES], full[sizeof key + 1 + NAME_BYTES];
    struct ak_text texts[TEMPLATES_MAX];
    uint32_t n = 0;
    bool has_default = false;
    if (json_array_size(list) > TEMPLATES_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "chat_template is a list of %zu templates; at most %d are supported",
                       json_array_size(list), TEMPLATES_MAX);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *element = json_array_get(list, i),
                     *text = json_object_get(element, "template");
        read_template_name(element, names[n]);
        if (!json_is_string(text) || !names[n][0] || is_among(names[n], names, n))
            continue;
        bool is_default = strcmp(names[n], "default") == 0;
        if (is_default && has_default)
            continue;
        snprintf(full, sizeof full, "%s.%s", key, names[n]);
        ak_gguf_writer_put_text(w, is_default ? key : full, get_text(text));
        has_default = has_default || is_default;
        n += !is_default;
    }
    for (uint32_t i = 0; i < n; i++)
        texts[i] = (struct ak_text){ names[i], (uint32_t)strlen(names[i]) };
    if (n > 0)
        ak_gguf_writer_put_texts(w, "tokenizer.chat_templates", texts, n);
    return w->status;
}

static ak_status put_value(struct ak_gguf_writer *w, const json_t *value, struct ak_error *error)
{
    if (json_is_string(value))
        ak_gguf_writer_put_text(w, key, get_text(value));
    return json_is_array(value) ? put_list(w, value, error) : w->status;
}

ak_status ak_convert_put_templates(struct ak_gguf_writer *w, const struct ak_provider *p,
                                   struct ak_error *error)
{
    static const char *const files[] = { "tokenizer_config.json", "chat_template.json" };
    struct ak_text text;
    if (ak_provider_file(p, "chat_template.jinja", &text)) {
        ak_gguf_writer_put_text(w, key, text);
        return w->status;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        json_t *root;
        AK_TRY(ak_provider_json(p, files[i], &root, error));
        const json_t *value = json_object_get(root, "chat_template");
        bool found = value && !json_is_null(value);
        ak_status status = found ? put_value(w, value, error) : AKUNU_OK;
        json_decref(root);
        if (found || status != AKUNU_OK)
            return status;
    }
    return AKUNU_OK;
}
