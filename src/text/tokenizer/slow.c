/* Reads a folder without tokenizer.json: finds the tokenizer class and its files, then builds what
 * tokenizer.json would have. */
#include "text/tokenizer/slow.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer/json_parts.h"

static const char spm_name[] = "tokenizer.model", config_name[] = "tokenizer_config.json";

ak_status ak_tok_slow_fail_memory(const struct ak_tok_slow *s)
{
    return ak_fail_memory(s->error, "the tokenizer", sizeof *s);
}

static bool has_file(const struct ak_tok_slow *s, const char *name)
{
    struct ak_text text;
    return ak_provider_file(s->p, name, &text);
}

static bool is_spm(const struct ak_tok_slow_class *c)
{
    return c->kind == AK_TOK_SLOW_SPM_BPE || c->kind == AK_TOK_SLOW_SPM_UNIGRAM;
}

/* ---- The class ---------------------------------------------------------- */
static bool find_text(const struct ak_tok_slow *s, const char *key, struct ak_text *out)
{
    struct ak_meta meta;

    if (!ak_provider_find_meta(s->p, key, &meta) || meta.kind != AK_META_STRING || meta.n == 0 ||
        meta.n > INT32_MAX)
        return false;
    *out = (struct ak_text){ meta.as.string, (uint32_t)meta.n };
    return true;
}

static ak_status fail_class(const struct ak_tok_slow *s, const char *key, struct ak_text found)
{
    char shown[AK_SHOW_BYTES], list[512];
    int n = 0;

    for (size_t i = 0; ak_tok_slow_class_at(i); i++)
        n += snprintf(list + n, sizeof list - (size_t)n, "%s%s", i ? ", " : "",
                      ak_tok_slow_class_at(i)->name);
    return ak_fail(s->error, AKUNU_ERROR_UNSUPPORTED,
                   "tokenizer.json is missing, and without it tokenizers of the %s %s are not "
                   "supported; those of the classes %s are",
                   key, ak_show(found.bytes, found.n, shown), list);
}

/* These classes have tokenizer.json, or a SentencePiece model. */
static bool is_generic(const char *name)
{
    static const char *const names[] = { "PreTrainedTokenizerFast", "PreTrainedTokenizer",
                                         "TokenizersBackend", "PythonBackend",
                                         "MistralCommonBackend" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* tokenizer_config.json names the class, else config.json; else it is that of the model type. A
 * generic class can read a SentencePiece model, by its own settings, and nothing else. */
static ak_status find_class(struct ak_tok_slow *s)
{
    struct ak_text type = { "", 0 }, name = { NULL, 0 };
    bool always;

    find_text(s, "general.architecture", &type);
    const char *of_model = ak_tok_slow_class_of_model(type, &always);
    bool named = find_text(s, "tokenizer_config.tokenizer_class", &name) ||
                 find_text(s, "tokenizer_class", &name);
    s->is_generic = named ? is_generic(name.bytes) : !of_model;
    if (always || !named)
        s->class = of_model ? ak_tok_slow_find_class(of_model) : NULL;
    else if (!s->is_generic)
        s->class = ak_tok_slow_find_class(name.bytes);
    else if (of_model && is_spm(ak_tok_slow_find_class(of_model)))
        s->class = ak_tok_slow_find_class(of_model);
    if (!s->class && s->is_generic && has_file(s, spm_name))
        s->class = ak_tok_slow_find_class("LlamaTokenizer");
    if (s->class)
        return AKUNU_OK;
    return named ? fail_class(s, "class", name) : fail_class(s, "model type", type);
}

/* ---- Its files ---------------------------------------------------------- */
static ak_status find_files(struct ak_tok_slow *s)
{
    const char *const *files = s->class->files;

    s->vocab_file = files[0];
    if (is_spm(s->class) && !has_file(s, files[0]) && has_file(s, spm_name))
        s->vocab_file = spm_name;
    for (size_t i = 0; i < 2 && files[i]; i++)
        if (!has_file(s, i == 0 ? s->vocab_file : files[i]))
            return ak_fail(s->error, AKUNU_ERROR_FORMAT,
                           "%s is missing: %s needs %s%s%s, or tokenizer.json", files[i],
                           s->class->name, files[0], files[1] ? " and " : "",
                           files[1] ? files[1] : "");
    return AKUNU_OK;
}

static ak_status check_spm(const struct ak_tok_slow *s)
{
    bool wants_bpe = s->class->kind == AK_TOK_SLOW_SPM_BPE;

    if ((s->spm.type == AK_TOK_SPM_BPE) == wants_bpe)
        return AKUNU_OK;
    return ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s is a %s model, where %s needs %s",
                   s->vocab_file, wants_bpe ? "Unigram" : "BPE", s->class->name,
                   wants_bpe ? "BPE" : "Unigram");
}

/* ---- Options ------------------------------------------------------------ */
static ak_status put_options(struct ak_tok_slow *s, const char *file)
{
    json_t *values;

    AK_TRY(ak_provider_json(s->p, file, &values, s->error));
    ak_status status = AKUNU_OK;
    if (values && !json_is_object(values))
        status = ak_fail(s->error, AKUNU_ERROR_FORMAT, "%s is %s, where an object is expected",
                         file, ak_json_kind(values));
    else if (values && json_object_update(s->options, values) != 0)
        status = ak_tok_slow_fail_memory(s);
    json_decref(values);
    return status;
}

/* Puts the default in place of null, unless it is a token: null then means that there is none. */
static ak_status restore_defaults(struct ak_tok_slow *s, json_t *defaults)
{
    const char *key;
    json_t *value;

    json_object_foreach (defaults, key, value)
        if (!json_is_string(value) && json_is_null(json_object_get(s->options, key)) &&
            json_object_set(s->options, key, value) != 0)
            return ak_tok_slow_fail_memory(s);
    return AKUNU_OK;
}

/* special_tokens_map.json counts only if tokenizer_config.json has no added_tokens_decoder. */
static ak_status read_slow_options(struct ak_tok_slow *s)
{
    json_t *defaults = json_loads(s->class->options, 0, NULL);

    s->options = json_deep_copy(defaults);
    ak_status status = s->options ? put_options(s, config_name) : ak_tok_slow_fail_memory(s);
    if (status == AKUNU_OK && !json_object_get(s->options, "added_tokens_decoder"))
        status = put_options(s, "special_tokens_map.json");
    if (status == AKUNU_OK)
        status = restore_defaults(s, defaults);
    json_decref(defaults);
    return status;
}

/* ---- The whole ---------------------------------------------------------- */
static ak_status add_vocab(struct ak_tok_slow *s)
{
    if (is_spm(s->class))
        return ak_tok_slow_add_pieces(s);
    return s->class->kind == AK_TOK_SLOW_BPE ? ak_tok_slow_read_bpe(s) :
                                               ak_tok_slow_read_wordpiece(s);
}

static ak_status build(struct ak_tok_slow *s, struct ak_tokenizer **out)
{
    struct ak_text bytes;
    json_t *generation;

    AK_TRY(find_class(s));
    AK_TRY(find_files(s));
    if (is_spm(s->class)) {
        ak_provider_file(s->p, s->vocab_file, &bytes); /* find_files has found it */
        AK_TRY(ak_tok_spm_read(bytes, s->vocab_file, &s->spm, s->error));
        if (s->is_generic && s->spm.type == AK_TOK_SPM_UNIGRAM)
            return ak_tok_from_sentencepiece(bytes, out, s->error);
        AK_TRY(check_spm(s));
    }
    AK_TRY(read_slow_options(s));
    AK_TRY(s->class->build(s));
    AK_TRY(add_vocab(s));
    AK_TRY(ak_tok_slow_add_tokens(s));
    AK_TRY(ak_tok_slow_add_affixes(s));
    AK_TRY(ak_provider_json(s->p, "generation_config.json", &generation, s->error));
    const struct ak_tok_json_source source = { .root = s->root,
                                               .config = s->options,
                                               .generation = generation,
                                               .where_vocab = s->vocab_file,
                                               .where_added = s->added_file };
    ak_status status = ak_tok_json_create(&source, out, s->error);
    json_decref(generation);
    return status;
}

ak_status ak_tok_slow_open(const struct ak_provider *p, struct ak_tokenizer **out,
                           struct ak_error *error)
{
    struct ak_tok_slow s = { .p = p, .error = error };

    *out = NULL;
    if (!ak_provider_has_vocab_file(p))
        return AKUNU_OK;
    ak_status status = build(&s, out);
    json_decref(s.options);
    json_decref(s.root);
    json_decref(s.added);
    json_decref(s.ids);
    ak_tok_spm_free(&s.spm);
    return status;
}
