/* Reads how an embedding is pooled from a text's hidden states.
 *
 * sentence-transformers lists the stages in modules.json and stores the settings in
 * 1_Pooling/config.json: a switch per kind, or the kind's name. GGUF stores a number, counted as
 * llama.cpp does, and nothing about unit length: there embeddings are always normalized. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "model/model.h"

static const struct {
    const char *name, *hf_switch;
    uint32_t gguf;
    enum akunu_pooling kind; /* AKUNU_POOLING_MODEL: not supported */
} kinds[] = {
    { "mean", "pooling_mode_mean_tokens", 1, AKUNU_POOLING_MEAN },
    { "cls", "pooling_mode_cls_token", 2, AKUNU_POOLING_CLS },
    { "lasttoken", "pooling_mode_lasttoken", 3, AKUNU_POOLING_LAST },
    { "max", "pooling_mode_max_tokens", UINT32_MAX, AKUNU_POOLING_MODEL },
    { "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", UINT32_MAX,
      AKUNU_POOLING_MODEL },
    { "weightedmean", "pooling_mode_weightedmean_tokens", UINT32_MAX, AKUNU_POOLING_MODEL },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void note_unsupported(struct ak_spec_pooling *out, const char *what, const char *name)
{
    char shown[AK_SHOW_BYTES];
    if (!out->unsupported[0])
        snprintf(out->unsupported, sizeof out->unsupported, "%s %.128s", what,
                 ak_show(name, strlen(name), shown));
}

/* Several kinds at once would concatenate embeddings, which is not supported. */
static void add_kind(struct ak_spec_pooling *out, size_t i, size_t n_before)
{
    if (kinds[i].kind == AKUNU_POOLING_MODEL || n_before > 0) {
        note_unsupported(out, "pooling by", kinds[i].name);
        return;
    }
    out->kind = kinds[i].kind;
    out->is_stated = true;
}

static void read_switches(const json_t *config, struct ak_spec_pooling *out)
{
    size_t n = 0;
    const char *name = json_string_value(json_object_get(config, "pooling_mode"));
    for (size_t i = 0; i < N_KINDS; i++)
        if (name ? strcmp(name, kinds[i].name) == 0 :
                   json_is_true(json_object_get(config, kinds[i].hf_switch)))
            add_kind(out, i, n++);
    if (n == 0 && name)
        note_unsupported(out, "pooling by", name);
}

static ak_status read_pooling(const struct ak_provider *p, const char *folder,
                              struct ak_spec_pooling *out, struct ak_error *error)
{
    json_t *config = NULL;
    char path[64];
    if (snprintf(path, sizeof path, "%s/config.json", folder) < (int)sizeof path)
        AK_TRY(ak_provider_json(p, path, &config, error));
    if (config)
        read_switches(config, out);
    else
        note_unsupported(out, "the missing settings", path);
    json_decref(config);
    return AKUNU_OK;
}

/* "sentence_transformers.models.Pooling": the last component. */
static const char *class_name(const json_t *module)
{
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    return dot ? dot + 1 : type ? type : "";
}

static ak_status read_modules(const struct ak_provider *p, const json_t *modules,
                              struct ak_spec_pooling *out, struct ak_error *error)
{
    size_t i;
    json_t *module;
    json_array_foreach (modules, i, module) {
        const char *type = class_name(module),
                   *path = json_string_value(json_object_get(module, "path"));
        if (strcmp(type, "Pooling") == 0)
            AK_TRY(read_pooling(p, path ? path : "", out, error));
        else if (strcmp(type, "Normalize") == 0)
            out->is_normalized = true;
        else if (strcmp(type, "Transformer") != 0)
            note_unsupported(out, "the module", type);
    }
    return AKUNU_OK;
}

static ak_status read_gguf(const struct ak_provider *p, const struct ak_spec_config *config,
                           struct ak_spec_pooling *out, struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES], shown[16];
    uint32_t number;
    out->is_normalized = true;
    if (!ak_spec_find_key(p, config->architecture, "pooling_type", key))
        return AKUNU_OK;
    AK_TRY(ak_meta_u32(p, key, 0, &number, error));
    snprintf(shown, sizeof shown, "%u", number);
    for (size_t i = 0; i < N_KINDS; i++)
        if (kinds[i].gguf == number) {
            add_kind(out, i, 0);
            return AKUNU_OK;
        }
    if (number > 0) /* 0: the user decides */
        note_unsupported(out, "pooling_type", shown);
    return AKUNU_OK;
}

ak_status ak_spec_read_pooling(const struct ak_provider *p, const struct ak_spec *spec,
                               struct ak_spec_pooling *out, struct ak_error *error)
{
    json_t *modules;
    *out = (struct ak_spec_pooling){ .kind = spec->descriptor.encoder ? AKUNU_POOLING_MEAN :
                                                                        AKUNU_POOLING_LAST };
    if (ak_provider_naming(p) == AK_PROVIDER_NAMING_GGUF)
        return read_gguf(p, &spec->config, out, error);
    AK_TRY(ak_provider_json(p, "modules.json", &modules, error));
    ak_status status = modules ? read_modules(p, modules, out, error) : AKUNU_OK;
    json_decref(modules);
    return status;
}

uint32_t ak_spec_gguf_pooling(enum akunu_pooling kind)
{
    size_t i = 0;
    while (kinds[i].kind != kind)
        i++;
    return kinds[i].gguf;
}
