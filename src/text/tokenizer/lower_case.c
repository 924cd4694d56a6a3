/* sentence-transformers' do_lower_case: the tokenizer also lowers what its own normalizers leave
 * as it is. */
#include "base/json.h"
#include "base/mem.h"
#include "text/tokenizer/internal.h"

static bool has_lowercase(const struct ak_tok_transforms *steps)
{
    bool found = false;
    for (uint32_t i = 0; i < steps->n; i++)
        found = found || steps->list[i].kind == AK_TOK_NORM_LOWERCASE;
    return found;
}

/* Lowers before all other normalizers. */
static ak_status add_lowercase(struct ak_tok_transforms *steps, struct ak_error *error)
{
    struct ak_tok_transform *last = ak_tok_transforms_add(steps, AK_TOK_NORM_LOWERCASE);
    if (!last)
        return ak_fail_memory(error, "the tokenizer", sizeof *last);
    struct ak_tok_transform lowercase = *last;
    memmove(steps->list + 1, steps->list, (steps->n - 1) * sizeof *steps->list);
    steps->list[0] = lowercase;
    return AKUNU_OK;
}

ak_status ak_tok_apply_lower_case(const struct ak_provider *p, struct ak_tokenizer *t,
                                  struct ak_error *error)
{
    static const char name[] = "sentence_bert_config.json";
    struct ak_text modules;
    json_t *config;
    if (!ak_provider_file(p, "modules.json", &modules))
        return AKUNU_OK; /* not a model of sentence-transformers */
    AK_TRY(ak_provider_json(p, name, &config, error));
    bool lowers = json_is_true(json_object_get(config, "do_lower_case"));
    json_decref(config);
    if (!lowers || (t->pipeline && has_lowercase(&t->pipeline->normalizers)))
        return AKUNU_OK;
    if (!t->pipeline)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "do_lower_case of %s is supported with a tokenizer.json only", name);
    return add_lowercase(&t->pipeline->normalizers, error);
}
