/* Folders of Hugging Face models without meaning, by their architecture's table of weights, and
 * their conversion. */
#ifndef AK_TESTS_CONVERSION_CONVERT_MODELS_H
#define AK_TESTS_CONVERSION_CONVERT_MODELS_H

#include "tests/test.h"
#include <stdio.h>
#include <string.h>

#include "akunu/akunu.h"
#include "engine/spec/arch.h"
#include "tests/st_files.h"

static inline const struct ak_arch *arch_of(const char *model_type)
{
    for (size_t i = 0; ak_arch_list()[i]; i++)
        for (const char *const *name = ak_arch_list()[i]->names; *name; name++)
            if (strcmp(*name, model_type) == 0)
                return ak_arch_list()[i];
    ck_abort_msg("no architecture %s", model_type);
}

static inline uint32_t rows_of(const struct ak_spec *spec, const struct ak_arch_rule *rule)
{
    const struct ak_arch_merged_tensor *whole = ak_arch_find_merged(spec->arch, rule->role);
    uint32_t rows = 0;
    for (uint32_t i = 0; whole && i < whole->n_parts; i++)
        rows += ak_spec_dim(spec, ak_arch_find_rule(spec->arch, whole->parts[i])->rows);
    return whole ? rows : ak_spec_dim(spec, rule->rows);
}

/* Optional weights are left out, but for the table of token types. */
static inline bool has_weight(const struct ak_spec *spec, const struct ak_arch_rule *rule,
                              int layer)
{
    const struct ak_arch_merged_tensor *whole = ak_arch_find_merged(spec->arch, rule->role);
    bool recurrent = layer >= 0 && ak_spec_is_recurrent(&spec->config, layer);
    if (rule->need == AK_ARCH_OPTIONAL && rule->role != AK_ROLE_TOKEN_TYPE_EMBEDDING)
        return false;
    if (rule->need == AK_ARCH_OUTPUT_OR_TIED || (whole && whole->parts[0] != rule->role))
        return false;
    return !(rule->need == AK_ARCH_ATTENTION_ONLY && recurrent) &&
           !(rule->need == AK_ARCH_RECURRENT_ONLY && !recurrent);
}

/* The stored shape, "rows, cols"; kernels of convolutions have other dimensions than the matrices
 * that binding makes of them. Returns the number of elements. */
static inline uint32_t print_shape(const struct ak_spec *spec, const struct ak_arch_rule *rule,
                                   char text[64])
{
    const struct ak_spec_config *c = &spec->config;
    uint32_t rows = rows_of(spec, rule), cols = ak_spec_dim(spec, rule->cols);
    if (rule->role == AK_ROLE_ENCODER_CONV1 || rule->role == AK_ROLE_ENCODER_CONV2) {
        cols = rule->role == AK_ROLE_ENCODER_CONV1 ? c->n_mels : c->width;
        snprintf(text, 64, "%u, %u, 3", c->width, cols);
        return c->width * cols * 3;
    }
    if (rule->role == AK_ROLE_ENCODER_CONV1_BIAS)
        cols = c->width;
    if (rule->rows == AK_SPEC_DIM_ONE)
        snprintf(text, 64, "%u", cols);
    else
        snprintf(text, 64, "%u, %u", rows, cols);
    return rows * cols;
}

/* model.safetensors: zeros of F32. */
static inline void write_weights(const struct test_folder *folder, const struct ak_spec *spec)
{
    static const float zeros[512 * 8];
    struct test_st st = { 0 };
    char name[AK_ROLE_NAME_BYTES], text[64];
    int n_layers = (int)(spec->config.n_layers + spec->config.n_encoder_layers);
    for (int layer = AK_ROLE_NO_LAYER; layer < n_layers; layer++)
        for (uint32_t i = 0; i < spec->arch->n_weights; i++) {
            const struct ak_arch_rule *rule = &spec->arch->weights[i];
            if (ak_role_has_layer(rule->role) != (layer != AK_ROLE_NO_LAYER) ||
                (layer >= 0 && (uint32_t)layer >= ak_spec_role_layers(spec, rule->role)) ||
                !has_weight(spec, rule, layer))
                continue;
            uint32_t n = print_shape(spec, rule, text);
            ck_assert_uint_le(n, sizeof zeros / sizeof *zeros);
            test_st_add(&st, ak_role_expand(rule->hf, layer, name), "F32", text, zeros,
                        n * sizeof *zeros);
        }
    test_st_write(&st, folder, "model.safetensors", 0);
}

static inline struct ak_provider *open_ok(const char *path)
{
    struct ak_provider *p;
    struct ak_error error;
    ck_assert_msg(ak_provider_open(path, &p, &error) == AKUNU_OK, "%s: %s", path, error.message);
    return p;
}

/* The library's defaults with another type; NULL: as stored. */
static inline struct akunu_convert_params params_of(const char *type)
{
    struct akunu_convert_params params;
    akunu_convert_params_default(&params, sizeof params);
    params.no_vocab = true; /* the folders have weights alone */
    params.type = type;
    return params;
}

#endif
