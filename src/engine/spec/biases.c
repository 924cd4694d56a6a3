/* Compares what config.json says of optional weights with the weights that are there: transformers
 * invents the values of announced weights that are missing, and drops those that are not announced;
 * either would go unnoticed. */
#include <string.h>

#include "engine/spec/arch.h"

enum { ROLES_MAX = 5 };

static const struct {
    const char *key;
    uint32_t n;
    enum ak_role roles[ROLES_MAX];
} biases[] = {
    { "attention_bias",
      4,
      { AK_ROLE_ATTENTION_Q_BIAS, AK_ROLE_ATTENTION_K_BIAS, AK_ROLE_ATTENTION_V_BIAS,
        AK_ROLE_ATTENTION_OUTPUT_BIAS } },
    { "mlp_bias", 3, { AK_ROLE_FFN_GATE_BIAS, AK_ROLE_FFN_UP_BIAS, AK_ROLE_FFN_DOWN_BIAS } },
    { "norm_bias",
      4,
      { AK_ROLE_EMBEDDING_NORM_BIAS, AK_ROLE_OUTPUT_NORM_BIAS, AK_ROLE_ATTENTION_NORM_BIAS,
        AK_ROLE_FFN_NORM_BIAS } },
    { "qkv_proj_bias",
      4,
      { AK_ROLE_ATTENTION_Q_BIAS, AK_ROLE_ATTENTION_K_BIAS, AK_ROLE_ATTENTION_V_BIAS,
        AK_ROLE_ATTENTION_OUTPUT_BIAS } },
    { "mlp_fc1_bias", 2, { AK_ROLE_FFN_GATE_BIAS, AK_ROLE_FFN_UP_BIAS } },
    { "mlp_fc2_bias", 1, { AK_ROLE_FFN_DOWN_BIAS } },
};

/* The norm before the first layer's attention may be absent, and its bias with it. */
static bool has_norm(const struct ak_provider *p, const struct ak_spec *spec, enum ak_role role,
                     int layer)
{
    struct ak_view norm;
    return role != AK_ROLE_ATTENTION_NORM_BIAS || layer > 0 ||
           ak_arch_find_weight(spec->arch, p, AK_ROLE_ATTENTION_NORM, layer, &norm);
}

static ak_status check_role(const struct ak_provider *p, const struct ak_spec *spec,
                            const char *key, bool announced, enum ak_role role,
                            struct ak_error *error)
{
    char name[AK_ROLE_NAME_BYTES];
    struct ak_view bias;
    const struct ak_arch_rule *rule = ak_arch_find_rule(spec->arch, role);
    if (!rule || rule->need != AK_ARCH_OPTIONAL)
        return AKUNU_OK;
    uint32_t n = ak_spec_role_layers(spec, role);
    for (uint32_t i = 0; i < n; i++) {
        int layer = ak_role_has_layer(role) ? (int)i : AK_ROLE_NO_LAYER;
        bool found = ak_arch_find_weight(spec->arch, p, role, layer, &bias);
        if (found && !announced)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%s is false, and the file has %s, which transformers would drop", key,
                           bias.name);
        if (!found && announced && has_norm(p, spec, role, layer)) {
            ak_role_name(role, layer, name);
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is true, and the file has no %s", key,
                           name);
        }
    }
    return AKUNU_OK;
}

/* transformers makes the head for the classes that have names, or for two. */
static ak_status check_labels(const struct ak_provider *p, const struct ak_spec *spec,
                              struct ak_error *error)
{
    struct ak_meta meta;
    uint32_t n = 0;
    if (spec->head.n_labels == 0)
        return AKUNU_OK;
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        n += strncmp(meta.key, "id2label.", strlen("id2label.")) == 0;
    if (n == 0)
        AK_TRY(ak_meta_u32(p, "num_labels", 2, &n, error));
    if (n == spec->head.n_labels)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "id2label and num_labels make it %u labels, and the head has %u", n,
                   spec->head.n_labels);
}

ak_status ak_spec_check_weights(const struct ak_provider *p, const struct ak_spec *spec,
                                struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    bool announced;
    if (spec->config.naming != AK_PROVIDER_NAMING_HF)
        return AKUNU_OK;
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++) {
        if (!ak_spec_find(p, &spec->config, biases[i].key, key, &meta))
            continue;
        AK_TRY(ak_meta_to_bool(&meta, &announced, error));
        for (uint32_t j = 0; j < biases[i].n; j++)
            AK_TRY(check_role(p, spec, key, announced, biases[i].roles[j], error));
    }
    return check_labels(p, spec, error);
}
