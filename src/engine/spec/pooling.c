/* Reads how an embedding is pooled from a text's hidden states.
 *
 * sentence-transformers lists the stages in modules.json and stores the settings in
 * 1_Pooling/config.json: a switch per kind, or the kind's name. GGUF stores a number, counted as
 * llama.cpp does, and nothing about unit length: there embeddings are always normalized. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "engine/spec/stages.h"

/* In the order in which sentence-transformers joins several. */
static const struct {
    const char *name, *hf_switch;
    uint32_t gguf; /* 0: GGUF has no number for it */
    enum akunu_pooling kind;
} kinds[] = {
    { "cls", "pooling_mode_cls_token", 2, AKUNU_POOLING_CLS },
    { "max", "pooling_mode_max_tokens", 0, AKUNU_POOLING_MAX },
    { "mean", "pooling_mode_mean_tokens", 1, AKUNU_POOLING_MEAN },
    { "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", 0, AKUNU_POOLING_MEAN_SQRT },
    { "weightedmean", "pooling_mode_weightedmean_tokens", 0, AKUNU_POOLING_WEIGHTED_MEAN },
    { "lasttoken", "pooling_mode_lasttoken", 3, AKUNU_POOLING_LAST },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

void ak_spec_note_unsupported(struct ak_spec_pooling *out, const char *what, const char *name)
{
    char shown[AK_SHOW_BYTES];
    if (!out->unsupported[0])
        snprintf(out->unsupported, sizeof out->unsupported, "%s%s%.128s", what, *name ? " " : "",
                 ak_show(name, strlen(name), shown));
}

static void add_kind(struct ak_spec_pooling *out, enum akunu_pooling kind)
{
    if (out->n_kinds < AK_POOLINGS_MAX)
        out->kinds[out->n_kinds++] = kind;
    else
        ak_spec_note_unsupported(out, "more than six kinds of pooling", "");
}

static void add_named(struct ak_spec_pooling *out, const json_t *value)
{
    const char *name = json_string_value(value);
    size_t i = 0;
    while (i < N_KINDS && name && strcmp(name, kinds[i].name) != 0)
        i++;
    if (name && i < N_KINDS)
        add_kind(out, kinds[i].kind);
    else
        ak_spec_note_unsupported(out, "pooling by", name ? name : ak_json_kind(value));
}

static bool is_on(const json_t *value)
{
    return json_is_true(value) || json_integer_value(value) != 0;
}

void ak_spec_read_modes(const json_t *config, struct ak_spec_pooling *out)
{
    const json_t *modes = json_object_get(config, "pooling_mode"), *mode;
    enum akunu_pooling fallback = out->kinds[0];
    size_t i;
    out->n_kinds = 0;
    if (json_array_size(modes) > 0)
        json_array_foreach (modes, i, mode)
            add_named(out, mode);
    else if (modes)
        add_named(out, modes);
    for (i = 0; !modes && i < N_KINDS; i++)
        if (is_on(json_object_get(config, kinds[i].hf_switch)))
            add_kind(out, kinds[i].kind);
    if (!modes && out->n_kinds == 0)
        add_kind(out, AKUNU_POOLING_MEAN);
    out->is_stated = out->n_kinds > 0;
    if (out->n_kinds == 0)
        add_kind(out, fallback);
    out->leaves_prompt_out = json_is_false(json_object_get(config, "include_prompt"));
}

static ak_status read_pooling(const struct ak_provider *p, const char *folder,
                              struct ak_spec_pooling *out, struct ak_error *error)
{
    json_t *config = NULL;
    char path[64];
    if (snprintf(path, sizeof path, "%s/config.json", folder) < (int)sizeof path)
        AK_TRY(ak_provider_json(p, path, &config, error));
    if (config)
        ak_spec_read_modes(config, out);
    else
        ak_spec_note_unsupported(out, "the missing settings", path);
    json_decref(config);
    return AKUNU_OK;
}

/* "sentence_transformers.models.Pooling": the last component. Classes of other packages are whole
 * names, which are not supported: their code is elsewhere. */
static const char *class_name(const json_t *module)
{
    static const char package[] = "sentence_transformers.";
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    bool is_own = dot && strncmp(type, package, sizeof package - 1) == 0;
    return is_own ? dot + 1 : type ? type : "";
}

/* The modules run in the order of the list. */
static ak_status read_modules(const struct ak_provider *p, const json_t *modules,
                              struct ak_spec_pooling *out, struct ak_error *error)
{
    size_t i, n_poolings = 0;
    json_t *module;
    json_array_foreach (modules, i, module) {
        const char *type = class_name(module),
                   *path = json_string_value(json_object_get(module, "path"));
        bool transforms = strcmp(type, "Transformer") == 0, pools = strcmp(type, "Pooling") == 0,
             normalizes = strcmp(type, "Normalize") == 0;
        if (transforms != (i == 0) || (pools && n_poolings > 0) || (normalizes && n_poolings == 0))
            ak_spec_note_unsupported(
                out, transforms || pools || normalizes ? "in this place the module" : "the module",
                type);
        else if (pools)
            AK_TRY(read_pooling(p, path ? path : "", out, error));
        else if (normalizes)
            out->is_normalized = true;
        else if (!transforms && strcmp(type, "Dropout") != 0)
            ak_spec_note_unsupported(out, "the module", type);
        n_poolings += pools;
    }
    if (n_poolings == 0)
        ak_spec_note_unsupported(out, "modules without a Pooling", "");
    return AKUNU_OK;
}

static ak_status read_gguf(const struct ak_provider *p, const struct ak_spec_config *config,
                           struct ak_spec_pooling *out, struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES], shown[16];
    uint32_t number = 0;
    size_t i = 0;
    struct ak_meta meta;
    out->is_normalized = true;
    if (ak_spec_find(p, config, "pooling_type", key, &meta))
        AK_TRY(ak_meta_to_u32(&meta, &number, error));
    snprintf(shown, sizeof shown, "%u", number);
    while (i < N_KINDS && kinds[i].gguf != number)
        i++;
    if (number > 0 && i < N_KINDS) {
        out->kinds[0] = kinds[i].kind;
        out->is_stated = true;
    } else if (number > 0) { /* 0: the user decides */
        ak_spec_note_unsupported(out, "pooling_type", shown);
    }
    return ak_spec_read_sentence_key(p, out, error);
}

ak_status ak_spec_read_pooling(const struct ak_provider *p, const struct ak_spec *spec,
                               struct ak_spec_pooling *out, struct ak_error *error)
{
    json_t *modules;
    *out = (struct ak_spec_pooling){ .n_kinds = 1,
                                     .kinds = { spec->descriptor.encoder ? AKUNU_POOLING_MEAN :
                                                                           AKUNU_POOLING_LAST } };
    if (ak_provider_naming(p) == AK_PROVIDER_NAMING_GGUF)
        return read_gguf(p, &spec->config, out, error);
    AK_TRY(ak_provider_json(p, "modules.json", &modules, error));
    if (!modules)
        return AKUNU_OK;
    ak_status status = read_modules(p, modules, out, error);
    json_decref(modules);
    AK_TRY(status);
    AK_TRY(ak_spec_read_sentence(p, spec, out, error));
    return ak_spec_read_prompts(p, out, error);
}

void ak_spec_pooling_clear(struct ak_spec_pooling *pooling)
{
    json_decref(pooling->prompts);
    json_decref(pooling->default_prompt);
    pooling->prompts = pooling->default_prompt = NULL;
}

uint32_t ak_spec_gguf_pooling(const struct ak_spec_pooling *pooling)
{
    for (size_t i = 0; pooling->n_kinds == 1 && i < N_KINDS; i++)
        if (kinds[i].kind == pooling->kinds[0])
            return kinds[i].gguf;
    return 0;
}

const char *ak_spec_pooling_name(enum akunu_pooling kind)
{
    size_t i = 0;
    while (kinds[i].kind != kind)
        i++;
    return kinds[i].name;
}

uint32_t ak_spec_embedding_width(const struct ak_spec *spec, enum akunu_pooling kind)
{
    const struct ak_spec_pooling *pooling = &spec->pooling;
    uint32_t width = spec->config.width * (kind == AKUNU_POOLING_MODEL ? pooling->n_kinds : 1);
    return pooling->n_elements > 0 && pooling->n_elements < width ? pooling->n_elements : width;
}
