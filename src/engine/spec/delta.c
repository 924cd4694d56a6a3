/* Hyper-parameters of the gated delta rule: which layers have it in place of attention, the number
 * of heads and their sizes. GGUF uses the key names of another kind of state (ssm), and may have
 * draft layers after the last one. */
#include "engine/spec/arch.h"

enum { USUAL_INTERVAL = 4, HEADS_MAX = 1 << 10, DIM_MAX = 1 << 9, DIM_STEP = 16, TAPS_MAX = 16 };

static ak_status read_layer(const struct ak_meta *meta, const char *key, uint32_t layer,
                            struct ak_spec_config *config, struct ak_error *error)
{
    bool recurrent = ak_meta_equals(meta, "linear_attention") ||
                     (meta->kind == AK_META_BOOL && meta->as.boolean);
    if (!recurrent && !ak_meta_equals(meta, "full_attention") && meta->kind != AK_META_BOOL)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "%s: neither \"linear_attention\" nor \"full_attention\", nor a bool, for layer %u",
            key, layer);
    if (recurrent)
        ak_spec_set_recurrent(config, layer);
    return AKUNU_OK;
}

/* A per-layer list, or attention in every n-th layer. */
static ak_status read_layers(const struct ak_provider *p, struct ak_spec_config *config,
                             struct ak_error *error)
{
    char key[AK_SPEC_KEY_BYTES];
    struct ak_meta list, layer;
    uint32_t interval;
    bool listed = ak_spec_find(p, config, "attention.recurrent_layers", key, &list);
    AK_TRY(
        ak_spec_read_u32(p, config, "full_attention_interval", USUAL_INTERVAL, &interval, error));
    if (!listed && interval == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "full_attention_interval is 0; expected 1 or more");
    for (uint32_t i = 0; i < config->n_layers && i < AK_SPEC_LAYERS_MAX; i++) {
        if (!listed && (i + 1) % interval != 0)
            ak_spec_set_recurrent(config, i);
        if (listed && !ak_provider_element(p, &list, i, &layer))
            layer = (struct ak_meta){ .kind = AK_META_NONE };
        if (listed)
            AK_TRY(read_layer(&layer, key, i, config, error));
    }
    return AKUNU_OK;
}

uint32_t ak_spec_attention_interval(const struct ak_spec_config *config)
{
    uint32_t n = 1;
    while (n < config->n_layers && ak_spec_is_recurrent(config, (int)n - 1))
        n++;
    for (uint32_t i = 0; i < config->n_layers; i++)
        if (ak_spec_is_recurrent(config, (int)i) != ((i + 1) % n != 0))
            return 0;
    return n;
}

static ak_status read_draft_layers(const struct ak_provider *p, struct ak_spec_config *config,
                                   struct ak_error *error)
{
    AK_TRY(ak_spec_read_u32(p, config, "nextn_predict_layers", 0, &config->n_draft_layers, error));
    if (config->n_draft_layers >= config->n_layers)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT, "nextn_predict_layers is %u; expected less than %s %u",
            config->n_draft_layers, ak_spec_key_name(config, "block_count"), config->n_layers);
    config->n_layers -= config->n_draft_layers;
    return AKUNU_OK;
}

/* GGUF stores the size of all value heads together. */
static ak_status read_value_size(const struct ak_provider *p, struct ak_spec_config *config,
                                 struct ak_error *error)
{
    uint32_t size;
    AK_TRY(ak_spec_read_u32(p, config, "ssm.inner_size", 0, &size, error));
    config->delta_v_dim = size;
    if (config->naming != AK_PROVIDER_NAMING_GGUF || config->delta_v_heads == 0)
        return AKUNU_OK;
    if (size % config->delta_v_heads != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "ssm.time_step_rank is %u, which does not divide ssm.inner_size %u",
                       config->delta_v_heads, size);
    config->delta_v_dim = size / config->delta_v_heads;
    return AKUNU_OK;
}

ak_status ak_spec_read_delta(const struct ak_provider *p, struct ak_spec_config *config,
                             struct ak_error *error)
{
    if (config->naming == AK_PROVIDER_NAMING_GGUF)
        AK_TRY(read_draft_layers(p, config, error));
    AK_TRY(read_layers(p, config, error));
    AK_TRY(ak_spec_read_u32(p, config, "ssm.conv_kernel", 0, &config->conv_taps, error));
    AK_TRY(ak_spec_read_u32(p, config, "ssm.state_size", 0, &config->delta_k_dim, error));
    AK_TRY(ak_spec_read_u32(p, config, "ssm.group_count", 0, &config->delta_k_heads, error));
    AK_TRY(ak_spec_read_u32(p, config, "ssm.time_step_rank", 0, &config->delta_v_heads, error));
    AK_TRY(read_value_size(p, config, error));
    return AKUNU_OK;
}

static ak_status check_range(const struct ak_spec_config *c, const char *key, uint32_t value,
                             uint32_t min, uint32_t max, struct ak_error *error)
{
    if (value >= min && value <= max)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u; expected %u to %u",
                   ak_spec_key_name(c, key), value, min, max);
}

static ak_status check_dim(const struct ak_spec_config *c, const char *key, uint32_t dim,
                           struct ak_error *error)
{
    if (dim > 0 && dim <= DIM_MAX && dim % DIM_STEP == 0)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s makes heads of %u elements; multiples of %d up to %d are supported",
                   ak_spec_key_name(c, key), dim, (int)DIM_STEP, (int)DIM_MAX);
}

static ak_status check_heads(const struct ak_spec_config *c, struct ak_error *error)
{
    AK_TRY(check_range(c, "ssm.conv_kernel", c->conv_taps, 2, TAPS_MAX, error));
    AK_TRY(check_range(c, "ssm.group_count", c->delta_k_heads, 1, HEADS_MAX, error));
    AK_TRY(check_range(c, "ssm.time_step_rank", c->delta_v_heads, 1, HEADS_MAX, error));
    if (c->delta_v_heads % c->delta_k_heads != 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u, which does not divide %s %u",
                       ak_spec_key_name(c, "ssm.group_count"), c->delta_k_heads,
                       ak_spec_key_name(c, "ssm.time_step_rank"), c->delta_v_heads);
    AK_TRY(check_dim(c, "ssm.state_size", c->delta_k_dim, error));
    return check_dim(c, "ssm.inner_size", c->delta_v_dim, error);
}

static ak_status check_layers(const struct ak_spec_config *c, struct ak_error *error)
{
    for (uint32_t i = 0; i < c->n_layers; i++)
        if (!ak_spec_is_recurrent(c, (int)i))
            return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "%s leaves no layer with attention; one at least is supported",
                   ak_spec_key_name(c, "attention.recurrent_layers"));
}

/* The convolutions before the rule apply it as well as the feed-forward part; models are published
 * with silu alone. */
static ak_status check_activation(const struct ak_provider *p, const struct ak_spec_config *config,
                                  struct ak_error *error)
{
    enum ak_op_activation activation = AK_OP_ACTIVATION_SILU;
    char key[AK_SPEC_KEY_BYTES], value[AK_META_SHOWN_BYTES];
    struct ak_meta meta;
    AK_TRY(ak_spec_read_activation(p, config, "hidden_act", &activation, error));
    if (activation == AK_OP_ACTIVATION_SILU || !ak_spec_find(p, config, "hidden_act", key, &meta))
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s is %s; supported: silu", key,
                   ak_meta_show(&meta, value));
}

ak_status ak_spec_describe_delta(const struct ak_provider *p, const struct ak_spec_config *config,
                                 struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(check_heads(config, error));
    AK_TRY(check_layers(config, error));
    AK_TRY(check_activation(p, config, error));
    uint64_t keys = (uint64_t)config->delta_k_heads * config->delta_k_dim,
             values = (uint64_t)config->delta_v_heads * config->delta_v_dim;
    out->gated_attention = true;
    out->ffn_norm = AK_ROLE_POST_ATTENTION_NORM;
    out->state_elems = (config->conv_taps - 1) * (2 * keys + values) + values * config->delta_k_dim;
    return AKUNU_OK;
}
