/* Names, roles and shapes of Whisper's tensors, as OpenAI's checkpoints name them. */
#include "files/weights/whisper/whisper.h"

#define V(dim)                                                                                     \
    {                                                                                              \
        AK_WHISPER_##dim, AK_WHISPER_NONE, AK_WHISPER_NONE                                         \
    }
#define M(rows, cols)                                                                              \
    {                                                                                              \
        AK_WHISPER_##rows, AK_WHISPER_##cols, AK_WHISPER_NONE                                      \
    }
#define C(rows, cols)                                                                              \
    {                                                                                              \
        AK_WHISPER_##rows, AK_WHISPER_##cols, AK_WHISPER_KERNEL                                    \
    }

const struct ak_whisper_rule ak_whisper_rules[] = {
    { "encoder.conv1.weight", AK_ROLE_ENCODER_CONV1, C(AUDIO_STATE, MELS) },
    { "encoder.conv1.bias", AK_ROLE_ENCODER_CONV1_BIAS, V(AUDIO_STATE) },
    { "encoder.conv2.weight", AK_ROLE_ENCODER_CONV2, C(AUDIO_STATE, AUDIO_STATE) },
    { "encoder.conv2.bias", AK_ROLE_ENCODER_CONV2_BIAS, V(AUDIO_STATE) },
    { "encoder.positional_embedding", AK_ROLE_ENCODER_POSITION_EMBEDDING,
      M(AUDIO_CTX, AUDIO_STATE) },
    { "encoder.ln_post.weight", AK_ROLE_ENCODER_OUTPUT_NORM, V(AUDIO_STATE) },
    { "encoder.ln_post.bias", AK_ROLE_ENCODER_OUTPUT_NORM_BIAS, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.attn_ln.weight", AK_ROLE_ENCODER_ATTENTION_NORM, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.attn_ln.bias", AK_ROLE_ENCODER_ATTENTION_NORM_BIAS, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.attn.query.weight", AK_ROLE_ENCODER_ATTENTION_Q,
      M(AUDIO_STATE, AUDIO_STATE) },
    { "encoder.blocks.{n}.attn.query.bias", AK_ROLE_ENCODER_ATTENTION_Q_BIAS, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.attn.key.weight", AK_ROLE_ENCODER_ATTENTION_K,
      M(AUDIO_STATE, AUDIO_STATE) },
    { "encoder.blocks.{n}.attn.value.weight", AK_ROLE_ENCODER_ATTENTION_V,
      M(AUDIO_STATE, AUDIO_STATE) },
    { "encoder.blocks.{n}.attn.value.bias", AK_ROLE_ENCODER_ATTENTION_V_BIAS, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.attn.out.weight", AK_ROLE_ENCODER_ATTENTION_OUTPUT,
      M(AUDIO_STATE, AUDIO_STATE) },
    { "encoder.blocks.{n}.attn.out.bias", AK_ROLE_ENCODER_ATTENTION_OUTPUT_BIAS, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.mlp_ln.weight", AK_ROLE_ENCODER_FFN_NORM, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.mlp_ln.bias", AK_ROLE_ENCODER_FFN_NORM_BIAS, V(AUDIO_STATE) },
    { "encoder.blocks.{n}.mlp.0.weight", AK_ROLE_ENCODER_FFN_UP, M(FFN, AUDIO_STATE) },
    { "encoder.blocks.{n}.mlp.0.bias", AK_ROLE_ENCODER_FFN_UP_BIAS, V(FFN) },
    { "encoder.blocks.{n}.mlp.2.weight", AK_ROLE_ENCODER_FFN_DOWN, M(AUDIO_STATE, FFN) },
    { "encoder.blocks.{n}.mlp.2.bias", AK_ROLE_ENCODER_FFN_DOWN_BIAS, V(AUDIO_STATE) },
    { "decoder.token_embedding.weight", AK_ROLE_TOKEN_EMBEDDING, M(VOCAB, TEXT_STATE) },
    { "decoder.positional_embedding", AK_ROLE_POSITION_EMBEDDING, M(TEXT_CTX, TEXT_STATE) },
    { "decoder.ln.weight", AK_ROLE_OUTPUT_NORM, V(TEXT_STATE) },
    { "decoder.ln.bias", AK_ROLE_OUTPUT_NORM_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.attn_ln.weight", AK_ROLE_ATTENTION_NORM, V(TEXT_STATE) },
    { "decoder.blocks.{n}.attn_ln.bias", AK_ROLE_ATTENTION_NORM_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.attn.query.weight", AK_ROLE_ATTENTION_Q, M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.attn.query.bias", AK_ROLE_ATTENTION_Q_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.attn.key.weight", AK_ROLE_ATTENTION_K, M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.attn.value.weight", AK_ROLE_ATTENTION_V, M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.attn.value.bias", AK_ROLE_ATTENTION_V_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.attn.out.weight", AK_ROLE_ATTENTION_OUTPUT, M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.attn.out.bias", AK_ROLE_ATTENTION_OUTPUT_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn_ln.weight", AK_ROLE_CROSS_ATTENTION_NORM, V(TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn_ln.bias", AK_ROLE_CROSS_ATTENTION_NORM_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn.query.weight", AK_ROLE_CROSS_ATTENTION_Q,
      M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn.query.bias", AK_ROLE_CROSS_ATTENTION_Q_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn.key.weight", AK_ROLE_CROSS_ATTENTION_K,
      M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn.value.weight", AK_ROLE_CROSS_ATTENTION_V,
      M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn.value.bias", AK_ROLE_CROSS_ATTENTION_V_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn.out.weight", AK_ROLE_CROSS_ATTENTION_OUTPUT,
      M(TEXT_STATE, TEXT_STATE) },
    { "decoder.blocks.{n}.cross_attn.out.bias", AK_ROLE_CROSS_ATTENTION_OUTPUT_BIAS,
      V(TEXT_STATE) },
    { "decoder.blocks.{n}.mlp_ln.weight", AK_ROLE_FFN_NORM, V(TEXT_STATE) },
    { "decoder.blocks.{n}.mlp_ln.bias", AK_ROLE_FFN_NORM_BIAS, V(TEXT_STATE) },
    { "decoder.blocks.{n}.mlp.0.weight", AK_ROLE_FFN_UP, M(FFN, TEXT_STATE) },
    { "decoder.blocks.{n}.mlp.0.bias", AK_ROLE_FFN_UP_BIAS, V(FFN) },
    { "decoder.blocks.{n}.mlp.2.weight", AK_ROLE_FFN_DOWN, M(TEXT_STATE, FFN) },
    { "decoder.blocks.{n}.mlp.2.bias", AK_ROLE_FFN_DOWN_BIAS, V(TEXT_STATE) },
};
const size_t ak_whisper_n_rules = sizeof ak_whisper_rules / sizeof *ak_whisper_rules;

const struct ak_whisper_rule *ak_whisper_find_rule_by_name(const char *name, int *layer)
{
    for (size_t i = 0; i < ak_whisper_n_rules; i++)
        if (ak_role_match(ak_whisper_rules[i].name, name, layer))
            return &ak_whisper_rules[i];
    return NULL;
}

const struct ak_whisper_rule *ak_whisper_find_rule_by_role(enum ak_role role)
{
    for (size_t i = 0; i < ak_whisper_n_rules; i++)
        if (ak_whisper_rules[i].role == role)
            return &ak_whisper_rules[i];
    return NULL;
}
