/* Per-module settings of GPTQModel, matched by PCRE2. */
#include "files/weights/hf/quant.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Patterns are untrusted: limits on their number and on the matching steps. */
enum { MAX_PATTERNS = 1024, MAX_STEPS = 100000 };

struct pattern {
    const char *text;
    pcre2_code *code;
    const json_t *settings; /* NULL: not quantized */
};

struct ak_hf_gptq_dynamic {
    struct pattern *patterns;
    size_t n;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

static ak_status add_pattern(struct ak_hf_gptq_dynamic *d, const char *where, const char *key,
                             const json_t *settings, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    PCRE2_UCHAR why[128];
    bool skips = strncmp(key, "-:", 2) == 0;
    const char *text = skips || strncmp(key, "+:", 2) == 0 ? key + 2 : key;
    int code;
    PCRE2_SIZE at;
    if (!json_is_object(settings) && !skips)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: dynamic: %s is %s; expected an object",
                       where, ak_show(key, strlen(key), shown), ak_json_kind(settings));
    struct pattern *pattern = &d->patterns[d->n];
    *pattern = (struct pattern){ .text = key, .settings = skips ? NULL : settings };
    pattern->code = pcre2_compile((PCRE2_SPTR)text, strlen(text), 0, &code, &at, NULL);
    if (!pattern->code) {
        pcre2_get_error_message(code, why, sizeof why);
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: dynamic: %s is not a regular expression: %s",
                       where, ak_show(key, strlen(key), shown), (const char *)why);
    }
    d->n++;
    return AKUNU_OK;
}

static ak_status read_patterns(struct ak_hf_gptq_dynamic *d, const char *where, json_t *dynamic,
                               struct ak_error *error)
{
    const char *key;
    json_t *settings;
    d->patterns = ak_alloc(json_object_size(dynamic), sizeof *d->patterns);
    d->match = pcre2_match_data_create(1, NULL);
    d->limits = pcre2_match_context_create(NULL);
    if (!d->patterns || !d->match || !d->limits)
        return ak_fail_memory(error, "the patterns of modules",
                              json_object_size(dynamic) * sizeof *d->patterns);
    pcre2_set_match_limit(d->limits, MAX_STEPS);
    json_object_foreach (dynamic, key, settings)
        AK_TRY(add_pattern(d, where, key, settings, error));
    return AKUNU_OK;
}

ak_status ak_hf_gptq_dynamic_read(const struct ak_hf_quant *q, struct ak_hf_gptq_dynamic **out,
                                  struct ak_error *error)
{
    json_t *dynamic = json_object_get(q->config, "dynamic");
    *out = NULL;
    if (!dynamic || json_is_null(dynamic))
        return AKUNU_OK;
    if (!json_is_object(dynamic) || json_object_size(dynamic) > MAX_PATTERNS)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: dynamic is %s of %zu; expected an object of at most %d patterns",
                       q->where, ak_json_kind(dynamic), json_object_size(dynamic), MAX_PATTERNS);
    struct ak_hf_gptq_dynamic *d = ak_alloc(1, sizeof *d);
    if (!d)
        return ak_fail_memory(error, "the patterns of modules", sizeof *d);
    ak_status status = read_patterns(d, q->where, dynamic, error);
    if (status != AKUNU_OK) {
        ak_hf_gptq_dynamic_free(d);
        return status;
    }
    *out = d;
    return AKUNU_OK;
}

ak_status ak_hf_gptq_dynamic_find(const struct ak_hf_gptq_dynamic *d, const char *where,
                                  const char *module, const json_t **settings,
                                  struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    *settings = NULL;
    for (size_t i = 0; d && i < d->n; i++) {
        const struct pattern *pattern = &d->patterns[i];
        int found = pcre2_match(pattern->code, (PCRE2_SPTR)module, strlen(module), 0,
                                PCRE2_ANCHORED, d->match, d->limits);
        if (found == PCRE2_ERROR_NOMATCH)
            continue;
        if (found < 0)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                           "%s: dynamic: %s takes too long to be matched", where,
                           ak_show(pattern->text, strlen(pattern->text), shown));
        *settings = pattern->settings;
        return AKUNU_OK;
    }
    return AKUNU_OK;
}

void ak_hf_gptq_dynamic_free(struct ak_hf_gptq_dynamic *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++)
        pcre2_code_free(d->patterns[i].code);
    pcre2_match_data_free(d->match);
    pcre2_match_context_free(d->limits);
    ak_free(d->patterns);
    ak_free(d);
}
