/* LFM2: gated short convolutions in most layers, attention with normed heads in the others. GGUF
 * marks convolution layers by zero key-value heads, and stores the final norm under the name of an
 * embedding norm. */
#include "engine/spec/arch.h"

enum { TAPS_MAX = 16 };

static const char *const names[] = { "lfm2", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "lfm2",
      .reads =
          "vocab_size=65536 hidden_size=2560 intermediate_size=12288 "
          "num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 "
          "head_dim max_position_embeddings=128000 norm_eps=1e-5 "
          "tie_word_embeddings=true tie_embedding rope_theta=1000000 conv_L_cache=3 "
          "block_multiple_of=256 block_ffn_dim_multiplier=1 "
          "block_auto_adjust_ff_dim=true block_ff_dim full_attn_idxs layer_types " AK_KEYS_ROPE,
      .fixed = AK_KEYS_WHOLE_HEADS "conv_bias=false ",
      .unused = "block_dim block_norm_eps block_use_swiglu block_use_xavier_init conv_dim "
                "conv_dim_out conv_use_xavier_init num_heads use_pos_enc theta "
                "block_mlp_init_scale block_out_init_scale conv_L_cache_* " },
    { .reads = AK_KEYS_GGUF_DECODER "shortconv.l_cache " },
};

static const struct ak_arch_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.embed_tokens.weight" },
    { AK_ROLE_EMBEDDING_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.embedding_norm.weight" },
    { AK_ROLE_OUTPUT, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_OUTPUT_OR_TIED,
      "lm_head.weight" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.operator_norm.weight" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_ATTENTION_ONLY,
      "model.layers.{n}.self_attn.q_proj.weight" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_ATTENTION_ONLY,
      "model.layers.{n}.self_attn.k_proj.weight" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_ATTENTION_ONLY,
      "model.layers.{n}.self_attn.v_proj.weight" },
    { AK_ROLE_ATTENTION_Q_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_ATTENTION_ONLY,
      "model.layers.{n}.self_attn.q_layernorm.weight" },
    { AK_ROLE_ATTENTION_K_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_HEAD, AK_ARCH_ATTENTION_ONLY,
      "model.layers.{n}.self_attn.k_layernorm.weight" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_ATTENTION_ONLY,
      "model.layers.{n}.self_attn.out_proj.weight" },
    { AK_ROLE_CONV_IN, AK_SPEC_DIM_CONV_IN, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.conv.in_proj.weight" },
    { AK_ROLE_CONV_KERNEL, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_TAPS, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.conv.conv.weight" },
    { AK_ROLE_CONV_OUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_WIDTH, AK_ARCH_RECURRENT_ONLY,
      "model.layers.{n}.conv.out_proj.weight" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.ffn_norm.weight" },
    { AK_ROLE_FFN_GATE, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.feed_forward.w1.weight" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.layers.{n}.feed_forward.w3.weight" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.layers.{n}.feed_forward.w2.weight" },
};

static ak_status read_layer_types(const struct ak_provider *p, const struct ak_meta *list,
                                  struct ak_spec_config *config, struct ak_error *error)
{
    struct ak_meta type;
    for (uint32_t i = 0; i < config->n_layers; i++) {
        bool found = ak_provider_element(p, list, i, &type),
             conv = found && ak_meta_equals(&type, "conv");
        if (!conv && !(found && ak_meta_equals(&type, "full_attention")))
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "layer_types: no \"conv\" or \"full_attention\" for layer %u", i);
        if (conv)
            ak_spec_set_recurrent(config, i);
    }
    return AKUNU_OK;
}

/* Older files: a list of the layers with attention. */
static void read_attention_layers(const struct ak_provider *p, const struct ak_meta *list,
                                  struct ak_spec_config *config)
{
    struct ak_meta layer;
    for (uint32_t i = 0; i < config->n_layers; i++) {
        bool listed = false;
        for (uint64_t j = 0; !listed && ak_provider_element(p, list, j, &layer); j++)
            listed = layer.kind == AK_META_INT && layer.as.integer == (int64_t)i;
        if (!listed)
            ak_spec_set_recurrent(config, i);
    }
}

static bool find_list(const struct ak_provider *p, const struct ak_spec_config *config,
                      const char *name, struct ak_meta *out)
{
    char key[AK_SPEC_KEY_BYTES];
    return ak_spec_find(p, config, name, key, out) && out->kind == AK_META_ARRAY;
}

static ak_status read_layers(const struct ak_provider *p, struct ak_spec_config *config,
                             struct ak_error *error)
{
    struct ak_meta list;
    if (config->n_layers > AK_SPEC_LAYERS_MAX)
        return AKUNU_OK; /* refused by ak_spec_validate_config() */
    if (find_list(p, config, "layer_types", &list))
        return read_layer_types(p, &list, config, error);
    if (find_list(p, config, "full_attn_idxs", &list))
        read_attention_layers(p, &list, config);
    return AKUNU_OK; /* without any list all layers have attention */
}

/* Checkpoints give the width of a feed-forward without a gate. The real width is two thirds of it
 * times block_ffn_dim_multiplier, rounded up to a multiple of block_multiple_of. */
static ak_status adjust_ffn(const struct ak_provider *p, struct ak_spec_config *config,
                            struct ak_error *error)
{
    bool adjusted;
    float times;
    uint32_t multiple;
    AK_TRY(ak_spec_read_bool(p, config, "block_auto_adjust_ff_dim", true, &adjusted, error));
    AK_TRY(ak_spec_read_positive(p, config, "block_ffn_dim_multiplier", 1.0f, &times, error));
    AK_TRY(ak_spec_read_u32(p, config, "block_multiple_of", 256, &multiple, error));
    AK_TRY(
        ak_spec_read_u32(p, config, "block_ff_dim", config->ffn_width, &config->ffn_width, error));
    if (!adjusted)
        return AKUNU_OK;
    double width = (double)times * (double)((uint64_t)config->ffn_width * 2 / 3);
    if (multiple == 0 || !(width < (double)(UINT32_MAX / 2)) || multiple > UINT32_MAX / 2)
        return ak_fail(
            error, AKUNU_ERROR_FORMAT,
            "block_multiple_of is %u and the feed-forward %g wide; expected numbers of 1 to %u",
            multiple, width, UINT32_MAX / 2);
    config->ffn_width = ((uint32_t)width + multiple - 1) / multiple * multiple;
    return AKUNU_OK;
}

static ak_status lfm2_configure(const struct ak_provider *p, struct ak_spec_config *config,
                                struct ak_error *error)
{
    AK_TRY(ak_spec_read_u32(p, config, "shortconv.l_cache", 0, &config->conv_taps, error));
    if (config->naming == AK_PROVIDER_NAMING_HF) {
        AK_TRY(read_layers(p, config, error));
        AK_TRY(adjust_ffn(p, config, error));
        AK_TRY(ak_spec_read_bool(p, config, "tie_embedding", config->tied, &config->tied, error));
    }
    return AKUNU_OK;
}

static ak_status lfm2_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                               struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    if (config->conv_taps < 2 || config->conv_taps > TAPS_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u; expected 2 to %d",
                       ak_spec_key_name(config, "shortconv.l_cache"), config->conv_taps,
                       (int)TAPS_MAX);
    out->output_norm = AK_ROLE_EMBEDDING_NORM;
    out->state_elems = (uint64_t)(config->conv_taps - 1) * config->width;
    return AKUNU_OK;
}

const struct ak_arch ak_arch_lfm2 = {
    .names = names,
    .description = "LFM2, with short convolutions",
    .configure = lfm2_configure,
    .has_recurrent_layers = true,
    .describe = lfm2_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .emit = ak_build_decoder,
};
