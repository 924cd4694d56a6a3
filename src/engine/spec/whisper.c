/* Whisper: an encoder of log-mel frames, and a decoder that attends to its output. Both have
 * LayerNorm, biases except on keys, learned or sinusoidal positions from the file, and GELU without
 * a gate (Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022).
 *
 * A position of the encoder is two frames, 20 ms of audio:
 *
 *     frames → conv1, GELU → conv2 (stride 2), GELU → + position → layers → norm
 *
 * and at the end K and V of the decoder's cross-attention, for each of its layers. engine/pack/
 * turns the convolutions into products with whole positions (bind_convolution.c). */
#include "engine/spec/arch.h"

static const char *const names[] = { "whisper", NULL };

static const struct ak_arch_keys keys[] = {
    { .types = "whisper",
      .reads = "pad_token_id?=50256 vocab_size=51865 num_mel_bins=80 encoder_layers=4 "
               "encoder_attention_heads=6 decoder_layers=4 decoder_attention_heads=6 "
               "decoder_ffn_dim=1536 encoder_ffn_dim=1536 d_model=384 "
               "max_source_positions=1500 max_target_positions=448 "
               "activation_function=gelu tie_word_embeddings=true ",
      .fixed = "is_encoder_decoder=true scale_embedding=false ",
      .unused = "alignment_heads num_hidden_layers use_weighted_layer_sum "
                "classifier_proj_size apply_spec_augment median_filter_width "
                "feature_layer* " },
    { .reads = "encoder.block_count encoder.embedding_length encoder.feed_forward_length "
               "encoder.context_length encoder.attention.head_count encoder.mels_count "
               "decoder.block_count decoder.embedding_length decoder.feed_forward_length "
               "decoder.context_length decoder.attention.head_count "
               "decoder.attention.head_count_kv decoder.attention.key_length "
               "decoder.attention.value_length decoder.vocab_size "
               "decoder.activation_function activation_function vocab_size ",
      .unused = "encoder.mel_filters alignment_heads " },
};

static const struct ak_arch_rule weights[] = {
    { AK_ROLE_TOKEN_EMBEDDING, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.embed_tokens.weight" },
    { AK_ROLE_POSITION_EMBEDDING, AK_SPEC_DIM_CONTEXT, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.embed_positions.weight" },
    { AK_ROLE_OUTPUT, AK_SPEC_DIM_VOCAB, AK_SPEC_DIM_WIDTH, AK_ARCH_OUTPUT_OR_TIED,
      "proj_out.weight" },
    { AK_ROLE_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layer_norm.weight" },
    { AK_ROLE_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layer_norm.bias" },
    { AK_ROLE_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn_layer_norm.weight" },
    { AK_ROLE_ATTENTION_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn_layer_norm.bias" },
    { AK_ROLE_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn.q_proj.weight" },
    { AK_ROLE_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn.k_proj.weight" },
    { AK_ROLE_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn.v_proj.weight" },
    { AK_ROLE_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn.v_proj.bias" },
    { AK_ROLE_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn.out_proj.weight" },
    { AK_ROLE_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.self_attn.out_proj.bias" },
    { AK_ROLE_CROSS_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn_layer_norm.weight" },
    { AK_ROLE_CROSS_ATTENTION_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn_layer_norm.bias" },
    { AK_ROLE_CROSS_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn.q_proj.weight" },
    { AK_ROLE_CROSS_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn.q_proj.bias" },
    { AK_ROLE_CROSS_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn.k_proj.weight" },
    { AK_ROLE_CROSS_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn.v_proj.weight" },
    { AK_ROLE_CROSS_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn.v_proj.bias" },
    { AK_ROLE_CROSS_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn.out_proj.weight" },
    { AK_ROLE_CROSS_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.encoder_attn.out_proj.bias" },
    { AK_ROLE_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.final_layer_norm.weight" },
    { AK_ROLE_FFN_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.final_layer_norm.bias" },
    { AK_ROLE_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.fc1.weight" },
    { AK_ROLE_FFN_UP_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.fc1.bias" },
    { AK_ROLE_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.fc2.weight" },
    { AK_ROLE_FFN_DOWN_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.decoder.layers.{n}.fc2.bias" },
    { AK_ROLE_ENCODER_CONV1, AK_SPEC_DIM_FRAME_PAIR, AK_SPEC_DIM_FRAMES, AK_ARCH_REQUIRED,
      "model.encoder.conv1.weight" },
    { AK_ROLE_ENCODER_CONV1_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FRAME_PAIR, AK_ARCH_REQUIRED,
      "model.encoder.conv1.bias" },
    { AK_ROLE_ENCODER_CONV2, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_CONV_IN, AK_ARCH_REQUIRED,
      "model.encoder.conv2.weight" },
    { AK_ROLE_ENCODER_CONV2_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.conv2.bias" },
    { AK_ROLE_ENCODER_POSITION_EMBEDDING, AK_SPEC_DIM_ENCODER_CONTEXT, AK_SPEC_DIM_WIDTH,
      AK_ARCH_REQUIRED, "model.encoder.embed_positions.weight" },
    { AK_ROLE_ENCODER_OUTPUT_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layer_norm.weight" },
    { AK_ROLE_ENCODER_OUTPUT_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layer_norm.bias" },
    { AK_ROLE_ENCODER_ATTENTION_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn_layer_norm.weight" },
    { AK_ROLE_ENCODER_ATTENTION_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn_layer_norm.bias" },
    { AK_ROLE_ENCODER_ATTENTION_Q, AK_SPEC_DIM_Q, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn.q_proj.weight" },
    { AK_ROLE_ENCODER_ATTENTION_Q_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn.q_proj.bias" },
    { AK_ROLE_ENCODER_ATTENTION_K, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn.k_proj.weight" },
    { AK_ROLE_ENCODER_ATTENTION_V, AK_SPEC_DIM_KV, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn.v_proj.weight" },
    { AK_ROLE_ENCODER_ATTENTION_V_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_KV, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn.v_proj.bias" },
    { AK_ROLE_ENCODER_ATTENTION_OUTPUT, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_Q, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn.out_proj.weight" },
    { AK_ROLE_ENCODER_ATTENTION_OUTPUT_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.self_attn.out_proj.bias" },
    { AK_ROLE_ENCODER_FFN_NORM, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.final_layer_norm.weight" },
    { AK_ROLE_ENCODER_FFN_NORM_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.final_layer_norm.bias" },
    { AK_ROLE_ENCODER_FFN_UP, AK_SPEC_DIM_FFN, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.fc1.weight" },
    { AK_ROLE_ENCODER_FFN_UP_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.fc1.bias" },
    { AK_ROLE_ENCODER_FFN_DOWN, AK_SPEC_DIM_WIDTH, AK_SPEC_DIM_FFN, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.fc2.weight" },
    { AK_ROLE_ENCODER_FFN_DOWN_BIAS, AK_SPEC_DIM_ONE, AK_SPEC_DIM_WIDTH, AK_ARCH_REQUIRED,
      "model.encoder.layers.{n}.fc2.bias" },
};

enum { MELS_MAX = 1024, CONTEXT_MAX = 1 << 20 };

static ak_status read_size(const struct ak_provider *p, const struct ak_spec_config *encoder,
                           const char *key, uint32_t max, uint32_t *out, struct ak_error *error)
{
    char found[AK_SPEC_KEY_BYTES];
    struct ak_meta meta;
    (void)ak_spec_find(p, encoder, key, found, &meta);
    AK_TRY(ak_spec_read_u32(p, encoder, key, 0, out, error));
    if (*out >= 1 && *out <= max)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s is %u; expected 1 to %u", found, *out, max);
}

/* A size of the encoder that the decoder has too. */
static ak_status check_same(const struct ak_provider *p, const struct ak_spec_config *encoder,
                            const struct ak_spec_config *decoder, const char *key,
                            uint32_t expected, struct ak_error *error)
{
    uint32_t value;
    AK_TRY(ak_spec_read_u32(p, encoder, key, expected, &value, error));
    if (value == expected)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s is %u and %s %u; equal ones are supported",
                   ak_spec_key_name(encoder, key), value, ak_spec_key_name(decoder, key), expected);
}

static ak_status whisper_configure(const struct ak_provider *p, struct ak_spec_config *config,
                                   struct ak_error *error)
{
    struct ak_spec_config encoder = *config;
    struct ak_view embedding;
    encoder.keys = (struct ak_text){ "whisper.encoder", 15 };
    AK_TRY(read_size(p, &encoder, "block_count", AK_SPEC_LAYERS_MAX, &config->n_encoder_layers,
                     error));
    AK_TRY(read_size(p, &encoder, "context_length", CONTEXT_MAX, &config->encoder_context, error));
    AK_TRY(read_size(p, &encoder, "mels_count", MELS_MAX, &config->n_mels, error));
    AK_TRY(check_same(p, &encoder, config, "embedding_length", config->width, error));
    AK_TRY(check_same(p, &encoder, config, "attention.head_count", config->n_heads, error));
    AK_TRY(check_same(p, &encoder, config, "feed_forward_length", config->ffn_width, error));
    /* the file's vocabulary has no special tokens */
    if (ak_provider_find(p, AK_ROLE_TOKEN_EMBEDDING, AK_ROLE_NO_LAYER, weights[0].hf, &embedding)) {
        if (config->naming == AK_PROVIDER_NAMING_HF && config->vocab_size != embedding.rows)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "vocab_size is %u, and the embedding has %u "
                           "rows",
                           config->vocab_size, embedding.rows);
        config->vocab_size = embedding.rows;
    }
    config->norm_eps = 1e-5f;
    return ak_spec_read_alignment(p, config, error);
}

static ak_status whisper_describe(const struct ak_provider *p, const struct ak_spec_config *config,
                                  struct ak_spec_descriptor *out, struct ak_error *error)
{
    AK_TRY(ak_spec_describe_decoder(p, config, out, error));
    out->activation = AK_OP_ACTIVATION_GELU_ERF;
    out->ungated = true;
    out->layer_norm = true;
    out->local.rotation = AK_SPEC_ROTATE_NONE;
    return AKUNU_OK;
}

static ak_build_value build_norm(struct ak_builder *b, const struct ak_spec *spec, ak_build_value x,
                                 enum ak_role weight, enum ak_role bias, int layer)
{
    return ak_build_layer_norm(b, x, weight, bias, layer, spec->config.norm_eps);
}

static ak_build_value build_convolutions(struct ak_builder *b, const struct ak_spec *spec)
{
    const struct ak_spec_config *c = &spec->config;
    enum ak_op_activation gelu = AK_OP_ACTIVATION_GELU_ERF; /* whatever the layers have */
    ak_build_value frames = ak_build_frames(b, 2 * c->n_mels, 4 * c->n_mels);
    ak_build_value x = ak_build_linear(b, frames, AK_OP_LINEAR_ENCODER_CONV1, AK_ROLE_NO_LAYER);
    ak_build_activate(b, x, AK_ROLE_NO_LAYER, gelu, 2 * c->width);
    x = ak_build_previous(b, x, 2 * c->width);
    x = ak_build_linear(b, x, AK_OP_LINEAR_ENCODER_CONV2, AK_ROLE_NO_LAYER);
    ak_build_activate(b, x, AK_ROLE_NO_LAYER, gelu, c->width);
    ak_build_add_position(b, x);
    return x;
}

static ak_build_value build_attention(struct ak_builder *b, const struct ak_spec *spec,
                                      ak_build_value x, int layer)
{
    const struct ak_spec_config *c = &spec->config;
    ak_build_value h = build_norm(b, spec, x, AK_ROLE_ENCODER_ATTENTION_NORM,
                                  AK_ROLE_ENCODER_ATTENTION_NORM_BIAS, layer);
    ak_build_value qkv = ak_build_linear(b, h, AK_OP_LINEAR_ENCODER_QKV, layer);
    ak_build_qkv(b, qkv, AK_OP_LINEAR_ENCODER_QKV, layer, false,
                 (struct ak_op_qkv_params){
                     .n_heads = c->n_heads, .n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim });
    ak_build_value a = ak_build_attention(
        b, qkv, AK_OP_LINEAR_ENCODER_QKV, layer,
        (struct ak_op_attention_params){ .n_heads = c->n_heads,
                                         .n_kv_heads = c->n_kv_heads,
                                         .head_dim = c->head_dim,
                                         .bidirectional = true,
                                         .scale = spec->descriptor.attention_scale });
    return ak_build_linear(b, a, AK_OP_LINEAR_ENCODER_ATTENTION_OUTPUT, layer);
}

static ak_build_value build_feed_forward(struct ak_builder *b, const struct ak_spec *spec,
                                         ak_build_value x, int layer)
{
    ak_build_value h =
        build_norm(b, spec, x, AK_ROLE_ENCODER_FFN_NORM, AK_ROLE_ENCODER_FFN_NORM_BIAS, layer);
    ak_build_value up = ak_build_linear(b, h, AK_OP_LINEAR_ENCODER_FFN_UP, layer);
    ak_build_activate(b, up, layer, spec->descriptor.activation, spec->config.ffn_width);
    return ak_build_linear(b, up, AK_OP_LINEAR_ENCODER_FFN_DOWN, layer);
}

static void build_encoder(struct ak_builder *b, const struct ak_spec *spec)
{
    const struct ak_spec_config *c = &spec->config;
    ak_build_value x = build_convolutions(b, spec);
    for (int layer = 0; layer < (int)c->n_encoder_layers; layer++) {
        ak_build_add(b, x, build_attention(b, spec, x, layer), 1.0f);
        ak_build_add(b, x, build_feed_forward(b, spec, x, layer), 1.0f);
    }
    x = build_norm(b, spec, x, AK_ROLE_ENCODER_OUTPUT_NORM, AK_ROLE_ENCODER_OUTPUT_NORM_BIAS,
                   AK_ROLE_NO_LAYER);
    for (int layer = 0; layer < (int)c->n_layers; layer++)
        ak_build_qkv(
            b, ak_build_linear(b, x, AK_OP_LINEAR_CROSS_KV, layer), AK_OP_LINEAR_CROSS_KV, layer,
            false,
            (struct ak_op_qkv_params){ .n_kv_heads = c->n_kv_heads, .head_dim = c->head_dim });
    ak_build_hidden(b, ak_build_select(b, x));
}

const struct ak_arch ak_arch_whisper = {
    .names = names,
    .description = "Whisper, for speech",
    .activation_key = "activation_function",
    .key_prefix = "whisper.decoder",
    .has_openai_names = true,
    .configure = whisper_configure,
    .describe = whisper_describe,
    .weights = weights,
    .n_weights = sizeof weights / sizeof *weights,
    .head = AK_ARCH_HEAD_NONE,
    .keys = keys,
    .n_keys = sizeof keys / sizeof *keys,
    .emit = ak_build_decoder,
    .emit_encoder = build_encoder,
};
