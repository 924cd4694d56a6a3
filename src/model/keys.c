/* Names in Hugging Face's config.json for the keys of GGUF's metadata. */
#include <stdio.h>
#include <string.h>

#include "model/model.h"

enum { NAMES_MAX = 5 };

/* The first name is used in messages. Published checkpoints' names come before those of later
 * versions of transformers; GPT-2 has its own. */
static const struct {
    const char *key, *hf[NAMES_MAX];
} keys[] = {
    { "block_count", { "num_hidden_layers", "n_layer", "num_layers" } },
    { "embedding_length", { "hidden_size", "n_embd" } },
    { "feed_forward_length", { "intermediate_size", "n_inner", "block_ff_dim" } },
    { "context_length", { "max_position_embeddings", "n_positions", "n_ctx" } },
    { "vocab_size", { "vocab_size" } },
    { "encoder.block_count", { "encoder_layers" } },
    { "encoder.embedding_length", { "d_model" } },
    { "encoder.feed_forward_length", { "encoder_ffn_dim" } },
    { "encoder.context_length", { "max_source_positions" } },
    { "encoder.attention.head_count", { "encoder_attention_heads" } },
    { "encoder.mels_count", { "num_mel_bins" } },
    { "decoder.block_count", { "decoder_layers" } },
    { "decoder.embedding_length", { "d_model" } },
    { "decoder.feed_forward_length", { "decoder_ffn_dim" } },
    { "decoder.context_length", { "max_target_positions" } },
    { "decoder.attention.head_count", { "decoder_attention_heads" } },
    { "attention.head_count", { "num_attention_heads", "n_head" } },
    { "attention.head_count_kv", { "num_key_value_heads" } },
    { "attention.key_length", { "head_dim" } },
    { "attention.value_length", { "head_dim" } },
    { "attention.layer_norm_rms_epsilon", { "rms_norm_eps", "norm_eps" } },
    { "attention.layer_norm_epsilon", { "layer_norm_eps", "layer_norm_epsilon", "norm_eps" } },
    { "attention.sliding_window", { "sliding_window", "local_attention" } },
    { "attention.sliding_window_pattern",
      { "layer_types", "sliding_window_pattern", "_sliding_window_pattern",
        "global_attn_every_n_layers" } },
    { "tokenizer.ggml.token_type_count", { "type_vocab_size" } },
    { "hidden_act", { "hidden_act" } },
    { "hidden_activation", { "hidden_activation" } },
    { "glu_activation", { "activation_function" } },
    { "attention.scale", { "attention_multiplier" } },
    { "query_pre_attn_scalar", { "query_pre_attn_scalar" } },
    { "attn_logit_softcapping", { "attn_logit_softcapping" } },
    { "final_logit_softcapping", { "final_logit_softcapping" } },
    { "embedding_scale", { "embedding_multiplier" } },
    { "residual_scale", { "residual_multiplier" } },
    { "logit_scale", { "logits_scaling" } },
    { "shortconv.l_cache", { "conv_L_cache" } },
    { "attention.recurrent_layers", { "layer_types" } },
    { "ssm.conv_kernel", { "linear_conv_kernel_dim" } },
    { "ssm.state_size", { "linear_key_head_dim" } },
    { "ssm.group_count", { "linear_num_key_heads" } },
    { "ssm.time_step_rank", { "linear_num_value_heads" } },
    { "ssm.inner_size", { "linear_value_head_dim" } },
    { "expert_count", { "num_experts", "num_local_experts", "n_routed_experts" } },
    { "expert_used_count", { "num_experts_per_tok" } },
    { "expert_feed_forward_length", { "moe_intermediate_size" } },
    { "expert_shared_feed_forward_length", { "shared_expert_intermediate_size" } },
    { "expert_weights_norm", { "norm_topk_prob" } },
    { "no_rope_layer_interval", { "no_rope_layer_interval" } },
    { "rope.freq_base",
      { "rope_theta", "rope_parameters.rope_theta", "rope_parameters.full_attention.rope_theta",
        "rotary_emb_base", "global_rope_theta" } },
    { "rope.freq_base_swa",
      { "rope_local_base_freq", "rope_parameters.sliding_attention.rope_theta",
        "local_rope_theta" } },
    { "rope.partial_factor",
      { "partial_rotary_factor", "rope_parameters.partial_rotary_factor", "rotary_emb_fraction" } },
    { "rope.scaling.type",
      { "rope_scaling.rope_type", "rope_scaling.type", "rope_parameters.rope_type",
        "rope_parameters.full_attention.rope_type" } },
    { "rope.scaling.factor",
      { "rope_scaling.factor", "rope_parameters.factor",
        "rope_parameters.full_attention.factor" } },
    { "rope.scaling.low_freq_factor",
      { "rope_scaling.low_freq_factor", "rope_parameters.low_freq_factor" } },
    { "rope.scaling.high_freq_factor",
      { "rope_scaling.high_freq_factor", "rope_parameters.high_freq_factor" } },
    { "rope.scaling.original_context_length",
      { "rope_scaling.original_max_position_embeddings",
        "rope_parameters.original_max_position_embeddings", "original_max_position_embeddings" } },
    { "rope.scaling.long_factor", { "rope_scaling.long_factor", "rope_parameters.long_factor" } },
    { "rope.scaling.short_factor",
      { "rope_scaling.short_factor", "rope_parameters.short_factor" } },
    { "rope.scaling.attention_factor",
      { "rope_scaling.attention_factor", "rope_parameters.attention_factor" } },
    { "rope.scaling.yarn_beta_fast", { "rope_scaling.beta_fast", "rope_parameters.beta_fast" } },
    { "rope.scaling.truncate", { "rope_scaling.truncate", "rope_parameters.truncate" } },
    { "rope.scaling.yarn_beta_slow", { "rope_scaling.beta_slow", "rope_parameters.beta_slow" } },
};

static const char *const *names_of(const char *key)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].key, key) == 0)
            return keys[i].hf;
    return NULL;
}

const char *ak_spec_renamed_key(size_t i)
{
    return i < sizeof keys / sizeof *keys ? keys[i].key : NULL;
}

const char *ak_spec_key_name(enum ak_provider_naming naming, const char *key)
{
    const char *const *names = naming == AK_PROVIDER_NAMING_HF ? names_of(key) : NULL;
    return names ? names[0] : key;
}

/* Keys without a line above have the same name. Models of several parts keep the language model's
 * entries in "text_config". */
static bool find_hf(const struct ak_provider *p, const char *const names[NAMES_MAX],
                    char out[AK_SPEC_KEY_BYTES])
{
    struct ak_meta meta;
    for (int i = 0; i < NAMES_MAX && names[i]; i++) {
        snprintf(out, AK_SPEC_KEY_BYTES, "text_config.%s", names[i]);
        if (ak_provider_find_meta(p, out, &meta))
            return true;
        snprintf(out, AK_SPEC_KEY_BYTES, "%s", names[i]);
        if (ak_provider_find_meta(p, out, &meta))
            return true;
    }
    snprintf(out, AK_SPEC_KEY_BYTES, "%s", names[0]);
    return false;
}

/* The key with the prefix, else the bare key. */
static bool find_gguf(const struct ak_provider *p, struct ak_text prefix, const char *key,
                      char out[AK_SPEC_KEY_BYTES])
{
    struct ak_meta meta;
    snprintf(out, AK_SPEC_KEY_BYTES, "%.*s.%s", (int)(prefix.n < 64 ? prefix.n : 64), prefix.bytes,
             key);
    if (ak_provider_find_meta(p, out, &meta))
        return true;
    if (!ak_provider_find_meta(p, key, &meta))
        return false;
    snprintf(out, AK_SPEC_KEY_BYTES, "%s", key);
    return true;
}

/* The names of a key of a part, "encoder" of "whisper.encoder"; NULL: it has none of its own. */
static const char *const *names_of_part(struct ak_text prefix, const char *key)
{
    char whole[AK_SPEC_KEY_BYTES];
    const char *dot = prefix.n ? memchr(prefix.bytes, '.', prefix.n) : NULL;
    if (!dot)
        return NULL;
    snprintf(whole, sizeof whole, "%.*s.%s", (int)(prefix.bytes + prefix.n - dot - 1), dot + 1,
             key);
    return names_of(whole);
}

bool ak_spec_find_key(const struct ak_provider *p, struct ak_text prefix, const char *key,
                      char out[AK_SPEC_KEY_BYTES])
{
    const char *const same_name[NAMES_MAX] = { key }, *const *names = names_of_part(prefix, key);
    names = names ? names : names_of(key);
    if (ak_provider_naming(p) == AK_PROVIDER_NAMING_HF)
        return find_hf(p, names ? names : same_name, out);
    return find_gguf(p, prefix, key, out);
}
