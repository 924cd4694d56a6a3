/* Reads chat templates and special tokens of a model: GGUF has them in its metadata, a Hugging Face
 * folder in files beside the weights. */
#include <string.h>

#include "base/json.h"
#include "text/template/template.h"

static const char key[] = "tokenizer.chat_template";

static struct ak_text get_text(const json_t *string)
{
    return (struct ak_text){ json_string_value(string), (uint32_t)json_string_length(string) };
}

static struct ak_text make_text(const char *name)
{
    return (struct ak_text){ name, (uint32_t)strlen(name) };
}

/* ---- Templates ---------------------------------------------------------- */
/* GGUF: keys "tokenizer.chat_template" and "tokenizer.chat_template.NAME". */
static ak_status read_metadata(struct ak_tmpl_set *chat, const struct ak_provider *p,
                               struct ak_error *error)
{
    struct ak_meta meta;
    for (size_t i = 0; i < ak_provider_n_metas(p) && ak_provider_meta(p, i, &meta); i++) {
        if (strncmp(meta.key, key, sizeof key - 1) != 0 || meta.kind != AK_META_STRING ||
            meta.n > UINT32_MAX)
            continue;
        const char *rest = meta.key + sizeof key - 1;
        bool is_default = *rest == '\0';
        if ((is_default || (rest[0] == '.' && rest[1])) &&
            !ak_tmpl_find(chat, is_default ? "default" : rest + 1))
            AK_TRY(ak_tmpl_add(chat, make_text(is_default ? "default" : rest + 1),
                               (struct ak_text){ meta.as.string, (uint32_t)meta.n }, error));
    }
    return AKUNU_OK;
}

/* Hugging Face: chat_template.jinja, and further templates in a folder. */
static ak_status read_files(struct ak_tmpl_set *chat, const struct ak_provider *p,
                            struct ak_error *error)
{
    static const struct {
        const char *file, *name;
    } files[] = { { "chat_template.jinja", "default" },
                  { "additional_chat_templates/tool_use.jinja", "tool_use" },
                  { "additional_chat_templates/rag.jinja", "rag" } };
    struct ak_text text;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (ak_provider_file(p, files[i].file, &text))
            AK_TRY(ak_tmpl_add(chat, make_text(files[i].name), text, error));
    return AKUNU_OK;
}

/* A text, or a list of named texts, of which the last one of a name counts. */
static ak_status read_template_value(struct ak_tmpl_set *chat, const json_t *value,
                                     struct ak_error *error)
{
    if (json_is_string(value))
        return ak_tmpl_add(chat, make_text("default"), get_text(value), error);
    for (size_t i = json_array_size(value); i-- > 0;) {
        const json_t *element = json_array_get(value, i);
        const json_t *name = json_object_get(element, "name"),
                     *text = json_object_get(element, "template");
        if (!json_is_string(name) || !json_is_string(text))
            return ak_fail(
                error, AKUNU_ERROR_FORMAT,
                "chat_template: element %zu has no name and template, which must be strings", i);
        if (!ak_tmpl_find(chat, json_string_value(name)))
            AK_TRY(ak_tmpl_add(chat, get_text(name), get_text(text), error));
    }
    return AKUNU_OK;
}

static ak_status read_json(struct ak_tmpl_set *chat, const struct ak_provider *p, const char *file,
                           struct ak_error *error)
{
    json_t *root;
    AK_TRY(ak_provider_json(p, file, &root, error));
    ak_status status = read_template_value(chat, json_object_get(root, "chat_template"), error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, file);
    json_decref(root);
    return status;
}

/* ---- Special tokens ----------------------------------------------------- */
static const char *const token_names[] = { "bos_token", "eos_token", "unk_token", "sep_token",
                                           "pad_token", "cls_token", "mask_token" };
enum { N_TOKENS = sizeof token_names / sizeof *token_names };

static ak_status put_token(struct ak_tmpl_set *chat, const char *name, struct ak_text text,
                           struct ak_error *error)
{
    /* NULL if the token is not UTF-8, which is allowed: it has no variable then */
    json_t *value = json_stringn(text.bytes ? text.bytes : "", text.n);
    if (!value)
        return AKUNU_OK;
    return json_object_set_new(chat->tokens, name, value) == 0 ?
               AKUNU_OK :
               ak_fail_memory(error, "special tokens", text.n);
}

static ak_status read_vocabulary(struct ak_tmpl_set *chat, const struct ak_provider *p,
                                 struct ak_error *error)
{
    struct ak_vocab vocab;
    AK_TRY(ak_provider_vocab(p, &vocab, error));
    const int64_t ids[N_TOKENS] = { vocab.bos,     vocab.eos, vocab.unknown, vocab.separator,
                                    vocab.padding, vocab.cls, vocab.mask };
    for (size_t i = 0; vocab.tokens && i < N_TOKENS; i++)
        if (ids[i] >= 0 && ids[i] < vocab.n_tokens)
            AK_TRY(put_token(chat, token_names[i], vocab.tokens[ids[i]], error));
    return AKUNU_OK;
}

/* A token is a string, or an object with the string as its "content". */
static ak_status read_config_tokens(struct ak_tmpl_set *chat, const struct ak_provider *p,
                                    const char *file, struct ak_error *error)
{
    json_t *root;
    ak_status status = AKUNU_OK;
    AK_TRY(ak_provider_json(p, file, &root, error));
    for (size_t i = 0; i < N_TOKENS && status == AKUNU_OK; i++) {
        const json_t *value = json_object_get(root, token_names[i]);
        if (json_is_object(value))
            value = json_object_get(value, "content");
        if (json_is_string(value) && !json_object_get(chat->tokens, token_names[i]))
            status = put_token(chat, token_names[i], get_text(value), error);
    }
    json_decref(root);
    return status;
}

ak_status ak_tmpl_read(struct ak_tmpl_set *chat, const struct ak_provider *p,
                       struct ak_error *error)
{
    AK_TRY(read_metadata(chat, p, error));
    if (chat->n == 0)
        AK_TRY(read_files(chat, p, error));
    if (chat->n == 0)
        AK_TRY(read_json(chat, p, "tokenizer_config.json", error));
    if (chat->n == 0)
        AK_TRY(read_json(chat, p, "chat_template.json", error));
    AK_TRY(read_vocabulary(chat, p, error));
    AK_TRY(read_config_tokens(chat, p, "tokenizer_config.json", error));
    return read_config_tokens(chat, p, "special_tokens_map.json", error);
}
