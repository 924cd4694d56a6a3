/* The post-processor of a slow tokenizer: the special tokens before and after a text, and between
 * two. */
#include <stdio.h>
#include <string.h>

#include "text/tokenizer/slow.h"

enum { AFFIXES_MAX = 4 };

struct affixes {
    const char *before[AFFIXES_MAX], *after[AFFIXES_MAX];
    size_t n_before, n_after;
};

static json_t *pack_sequence(const struct affixes *a, int n_texts)
{
    json_t *list = json_array();
    bool good = list != NULL;

    for (size_t i = 0; i < a->n_before && good; i++)
        good = json_array_append_new(
                   list, json_pack("{s:{s:s}}", "SpecialToken", "id", a->before[i])) == 0;
    for (int text = 0; text < n_texts && good; text++) {
        good = json_array_append_new(list, json_pack("{s:{}}", "Sequence")) == 0;
        for (size_t i = 0; i < a->n_after && good; i++)
            good = json_array_append_new(
                       list, json_pack("{s:{s:s}}", "SpecialToken", "id", a->after[i])) == 0;
    }
    if (good)
        return list;
    json_decref(list);
    return NULL;
}

static ak_status put_template(struct ak_tok_slow *s, const struct affixes *a)
{
    json_t *ids = json_object();
    bool good = ids != NULL;

    for (size_t i = 0; i < a->n_before + a->n_after && good; i++) {
        const char *name = i < a->n_before ? a->before[i] : a->after[i - a->n_before];
        good = json_object_set_new(
                   ids, name,
                   json_pack("{s:[I]}", "ids", (json_int_t)ak_tok_slow_find_id(s, name))) == 0;
    }
    json_t *part =
        good ? json_pack("{s:s,s:o,s:o,s:O}", "type", "TemplateProcessing", "single",
                         pack_sequence(a, 1), "pair", pack_sequence(a, 2), "special_tokens", ids) :
               NULL;
    json_decref(ids);
    return json_object_set_new(s->root, "post_processor", part) == 0 ? AKUNU_OK :
                                                                       ak_tok_slow_fail_memory(s);
}

/* Adds the token to a list of affixes, if there is one of that name. */
static void take_affix(const struct ak_tok_slow *s, const char *name, const char **list, size_t *n)
{
    if (name && ak_tok_slow_find_id(s, name) >= 0)
        list[(*n)++] = name;
}

/* `cls` before each text and `sep` after it; type says how many separate two texts. */
static ak_status put_pair(struct ak_tok_slow *s, const char *type, const char *cls_key,
                          const char *sep_key)
{
    const char *cls = ak_tok_slow_name(s, cls_key), *sep = ak_tok_slow_name(s, sep_key);

    if (!cls || !sep)
        return ak_fail(s->error, AKUNU_ERROR_FORMAT,
                       "tokenizer_config.json: %s is not set, which %s needs",
                       cls ? sep_key : cls_key, s->class->name);
    json_t *part = json_pack("{s:s,s:[s,I],s:[s,I]}", "type", type, "cls", cls,
                             (json_int_t)ak_tok_slow_find_id(s, cls), "sep", sep,
                             (json_int_t)ak_tok_slow_find_id(s, sep));
    return json_object_set_new(s->root, "post_processor", part) == 0 ? AKUNU_OK :
                                                                       ak_tok_slow_fail_memory(s);
}

static ak_status put_flagged(struct ak_tok_slow *s)
{
    struct affixes a = { .n_before = 0 };
    bool bos, eos;

    AK_TRY(ak_tok_slow_flag(s, "add_bos_token", false, &bos));
    AK_TRY(ak_tok_slow_flag(s, "add_eos_token", false, &eos));
    if (bos)
        take_affix(s, ak_tok_slow_name(s, "bos_token"), a.before, &a.n_before);
    if (eos)
        take_affix(s, ak_tok_slow_name(s, "eos_token"), a.after, &a.n_after);
    return put_template(s, &a);
}

/* Language and task, if the options state them, as a fine-tune's may. Languages count by code. */
static ak_status put_whisper(struct ak_tok_slow *s)
{
    struct affixes a = { .n_before = 0 };
    const char *language = json_string_value(json_object_get(s->options, "language")),
               *task = json_string_value(json_object_get(s->options, "task"));
    char language_token[32], task_token[32];
    bool timestamps;

    AK_TRY(ak_tok_slow_flag(s, "predict_timestamps", false, &timestamps));
    snprintf(language_token, sizeof language_token, "<|%s|>", language ? language : "");
    snprintf(task_token, sizeof task_token, "<|%s|>", task ? task : "");
    take_affix(s, "<|startoftranscript|>", a.before, &a.n_before);
    take_affix(s, language_token, a.before, &a.n_before);
    take_affix(s, task_token, a.before, &a.n_before);
    if (!timestamps)
        take_affix(s, "<|notimestamps|>", a.before, &a.n_before);
    take_affix(s, ak_tok_slow_name(s, "eos_token"), a.after, &a.n_after);
    AK_TRY(put_template(s, &a));
    json_object_del(json_object_get(s->root, "post_processor"), "pair"); /* it has no separator */
    return AKUNU_OK;
}

static ak_status put_eos(struct ak_tok_slow *s)
{
    struct affixes a = { .n_before = 0 };

    take_affix(s, ak_tok_slow_name(s, "eos_token"), a.after, &a.n_after);
    return put_template(s, &a);
}

ak_status ak_tok_slow_add_affixes(struct ak_tok_slow *s)
{
    switch (s->class->affix) {
    case AK_TOK_SLOW_CLS_SEP: return put_pair(s, "BertProcessing", "cls_token", "sep_token");
    case AK_TOK_SLOW_CLS_SEP_SEP: return put_pair(s, "RobertaProcessing", "cls_token", "sep_token");
    case AK_TOK_SLOW_BOS_EOS_EOS: return put_pair(s, "RobertaProcessing", "bos_token", "eos_token");
    case AK_TOK_SLOW_EOS: return put_eos(s);
    case AK_TOK_SLOW_WHISPER: return put_whisper(s);
    default: return put_flagged(s);
    }
}
