/* What sentence-transformers' files say about texts: how long they may be, the prompts that go
 * before them, and how many elements of an embedding count. GGUF has no keys for these. A converted
 * file keeps them under one key of its own, an object with sentence-transformers' names; llama.cpp
 * ignores it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "engine/spec/stages.h"

/* ---- Length ------------------------------------------------------------- */
/* A positive number that fits; 0: there is none, or it is so large that it does not count. */
static uint32_t positive_count(const json_t *value)
{
    double number = json_number_value(value);
    return number >= 1.0 && number <= (double)INT32_MAX ? (uint32_t)number : 0;
}

/* The settings of a Transformer module, which old versions named after the architecture. */
static ak_status read_transformer(const struct ak_provider *p, json_t **out, struct ak_error *error)
{
    static const char *const names[] = {
        "sentence_bert_config.json",       "sentence_roberta_config.json",
        "sentence_distilbert_config.json", "sentence_camembert_config.json",
        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json"
    };
    *out = NULL;
    for (size_t i = 0; !*out && i < sizeof names / sizeof *names; i++)
        AK_TRY(ak_provider_json(p, names[i], out, error));
    return AKUNU_OK;
}

/* Settings that the tokenizer is opened with go before max_seq_length. */
static const json_t *find_length(const json_t *transformer)
{
    static const char *const settings[] = { "processor_kwargs", "tokenizer_args" };
    const json_t *length = NULL;
    for (size_t i = 0; !length && i < 2; i++)
        length = json_object_get(json_object_get(transformer, settings[i]), "model_max_length");
    return length ? length : json_object_get(transformer, "max_seq_length");
}

/* The length is the module's, else the tokenizer's, which the model's positions limit. */
static void read_length(const json_t *transformer, const json_t *tokenizer, uint32_t context,
                        struct ak_spec_pooling *out)
{
    const char *task = json_string_value(json_object_get(transformer, "transformer_task")),
               *side = json_string_value(json_object_get(tokenizer, "truncation_side"));
    if (task && strcmp(task, "feature-extraction") != 0)
        ak_spec_note_unsupported(out, "the task", task);
    out->cuts_left = side && strcmp(side, "left") == 0;
    out->max_tokens = positive_count(find_length(transformer));
    if (out->max_tokens > 0)
        return;
    uint32_t own = positive_count(json_object_get(tokenizer, "model_max_length"));
    out->max_tokens = own > 0 && own < context ? own : context;
}

ak_status ak_spec_read_sentence(const struct ak_provider *p, const struct ak_spec *spec,
                                struct ak_spec_pooling *out, struct ak_error *error)
{
    json_t *transformer, *tokenizer = NULL;
    AK_TRY(read_transformer(p, &transformer, error));
    ak_status status = ak_provider_json(p, "tokenizer_config.json", &tokenizer, error);
    if (status == AKUNU_OK)
        read_length(transformer, tokenizer, spec->config.context, out);
    json_decref(transformer);
    json_decref(tokenizer);
    return status;
}

/* ---- Prompts ------------------------------------------------------------ */
/* Keeps what an object says of prompts and of the number of elements. */
static void keep_prompts(const json_t *config, struct ak_spec_pooling *out)
{
    json_t *prompts = json_object_get(config, "prompts"),
           *name = json_object_get(config, "default_prompt_name");
    if (json_object_size(prompts) > 0)
        out->prompts = json_incref(prompts);
    if (json_is_string(name))
        out->default_prompt = json_incref(name);
    out->n_elements = positive_count(json_object_get(config, "truncate_dim"));
}

ak_status ak_spec_read_prompts(const struct ak_provider *p, struct ak_spec_pooling *out,
                               struct ak_error *error)
{
    json_t *config;
    AK_TRY(ak_provider_json(p, "config_sentence_transformers.json", &config, error));
    keep_prompts(config, out);
    json_decref(config);
    return AKUNU_OK;
}

/* ": query, passage" */
static void list_prompts(const struct ak_spec_pooling *pooling, char *out, size_t capacity)
{
    const char *key;
    json_t *value;
    size_t n = 0;
    *out = '\0';
    json_object_foreach (pooling->prompts, key, value) {
        char shown[AK_SHOW_BYTES];
        int more = snprintf(out + n, capacity - n, "%s%.64s", n ? ", " : ": ",
                            ak_show(key, strlen(key), shown));
        if (more < 0 || n + (size_t)more >= capacity)
            return;
        n += (size_t)more;
    }
}

ak_status ak_spec_find_prompt(const struct ak_spec_pooling *pooling, const char *name,
                              struct ak_text *out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES], list[512];
    const char *wanted = name ? name : json_string_value(pooling->default_prompt);
    const json_t *prompt = wanted ? json_object_get(pooling->prompts, wanted) : NULL;
    *out = (struct ak_text){ NULL, 0 };
    if (json_is_string(prompt))
        *out = (struct ak_text){ json_string_value(prompt), (uint32_t)json_string_length(prompt) };
    if (json_is_string(prompt) || json_is_null(prompt) || !wanted || !*wanted)
        return AKUNU_OK;
    list_prompts(pooling, list, sizeof list);
    return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%sprompt \"%.64s\": the model has %s%s",
                   name ? "" : "the model's default ", ak_show(wanted, strlen(wanted), shown),
                   *list ? "the prompts" : "no prompts", list);
}

/* ---- The key of GGUF ---------------------------------------------------- */
static void take_sentence(const json_t *config, struct ak_spec_pooling *out)
{
    const char *side = json_string_value(json_object_get(config, "truncation_side"));
    if (json_object_get(config, "pooling_mode"))
        ak_spec_read_modes(config, out);
    out->is_normalized = !json_is_false(json_object_get(config, "normalize"));
    out->max_tokens = positive_count(json_object_get(config, "max_seq_length"));
    out->cuts_left = side && strcmp(side, "left") == 0;
    keep_prompts(config, out);
}

ak_status ak_spec_read_sentence_key(const struct ak_provider *p, struct ak_spec_pooling *out,
                                    struct ak_error *error)
{
    struct ak_text text;
    json_t *config;
    AK_TRY(ak_meta_text(p, AK_SPEC_SENTENCE_KEY, &text, error));
    if (text.n == 0)
        return AKUNU_OK;
    ak_status status = ak_json_parse(text.bytes, text.n, &config, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, AK_SPEC_SENTENCE_KEY);
        return status;
    }
    take_sentence(config, out);
    json_decref(config);
    return AKUNU_OK;
}

static json_t *list_kinds(const struct ak_spec_pooling *pooling)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < pooling->n_kinds; i++)
        json_array_append_new(list, json_string(ak_spec_pooling_name(pooling->kinds[i])));
    return list;
}

char *ak_spec_write_sentence_key(const struct ak_spec_pooling *pooling, struct ak_error *error)
{
    /* members without a value are left out */
    json_t *config =
        json_pack("{s:o, s:b, s:b, s:I, s:s, s:O*, s:O*, s:o*}", "pooling_mode",
                  list_kinds(pooling), "include_prompt", !pooling->leaves_prompt_out, "normalize",
                  pooling->is_normalized, "max_seq_length", (json_int_t)pooling->max_tokens,
                  "truncation_side", pooling->cuts_left ? "left" : "right", "prompts",
                  pooling->prompts, "default_prompt_name", pooling->default_prompt, "truncate_dim",
                  pooling->n_elements > 0 ? json_integer(pooling->n_elements) : NULL);
    char *text = config ? json_dumps(config, JSON_COMPACT) : NULL;
    json_decref(config);
    if (!text)
        ak_fail_memory(error, "the settings of embeddings", 0);
    return text;
}
