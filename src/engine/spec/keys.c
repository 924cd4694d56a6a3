/* Names in Hugging Face's config.json for the keys of GGUF's metadata. */
#include <stdio.h>
#include <string.h>

#include "engine/spec/known_keys.h"
#include "engine/spec/stages.h"

enum { NAMES_MAX = 7 };

/* A name that comes first counts before the others, as in transformers: what a dictionary of the
 * rotation has counts before what stands beside it. */
static const struct {
    const char *key, *hf[NAMES_MAX];
} keys[] = {
    { "block_count", { "num_hidden_layers", "n_layer", "num_layers" } },
    { "embedding_length", { "hidden_size", "n_embd" } },
    { "feed_forward_length", { "intermediate_size", "n_inner", "block_ff_dim" } },
    { "context_length", { "max_position_embeddings", "n_positions" } },
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
      { "layer_types", "sliding_window_pattern", "global_attn_every_n_layers" } },
    { "tokenizer.ggml.token_type_count", { "type_vocab_size" } },
    { "hidden_act", { "hidden_act" } },
    { "hidden_activation", { "hidden_activation" } },
    { "glu_activation", { "activation_function", "hidden_act" } },
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
      { "rope_scaling.rope_theta", "rope_parameters.rope_theta",
        "rope_parameters.full_attention.rope_theta", "rope_theta", "global_rope_theta",
        "rotary_emb_base" } },
    { "rope.freq_base_swa",
      { "rope_parameters.sliding_attention.rope_theta", "rope_local_base_freq",
        "local_rope_theta" } },
    { "rope.partial_factor",
      { "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor",
        "partial_rotary_factor", "rotary_emb_fraction" } },
    { "rope.scaling.type",
      { "rope_scaling.rope_type", "rope_scaling.type", "rope_parameters.rope_type",
        "rope_parameters.type", "rope_parameters.full_attention.rope_type",
        "rope_parameters.full_attention.type" } },
    { "rope.scaling.factor",
      { "rope_scaling.factor", "rope_parameters.factor",
        "rope_parameters.full_attention.factor" } },
    { "rope.scaling.low_freq_factor",
      { "rope_scaling.low_freq_factor", "rope_parameters.low_freq_factor",
        "rope_parameters.full_attention.low_freq_factor" } },
    { "rope.scaling.high_freq_factor",
      { "rope_scaling.high_freq_factor", "rope_parameters.high_freq_factor",
        "rope_parameters.full_attention.high_freq_factor" } },
    { "rope.scaling.original_context_length",
      { "original_max_position_embeddings", "rope_scaling.original_max_position_embeddings",
        "rope_parameters.original_max_position_embeddings",
        "rope_parameters.full_attention.original_max_position_embeddings" } },
    { "rope.scaling.long_factor",
      { "rope_scaling.long_factor", "rope_parameters.long_factor",
        "rope_parameters.full_attention.long_factor" } },
    { "rope.scaling.short_factor",
      { "rope_scaling.short_factor", "rope_parameters.short_factor",
        "rope_parameters.full_attention.short_factor" } },
    { "rope.scaling.attention_factor",
      { "rope_scaling.attention_factor", "rope_parameters.attention_factor",
        "rope_parameters.full_attention.attention_factor" } },
    { "rope.scaling.yarn_beta_fast",
      { "rope_scaling.beta_fast", "rope_parameters.beta_fast",
        "rope_parameters.full_attention.beta_fast" } },
    { "rope.scaling.mscale",
      { "rope_scaling.mscale", "rope_parameters.mscale",
        "rope_parameters.full_attention.mscale" } },
    { "rope.scaling.mscale_all_dim",
      { "rope_scaling.mscale_all_dim", "rope_parameters.mscale_all_dim",
        "rope_parameters.full_attention.mscale_all_dim" } },
    { "rope.scaling.truncate",
      { "rope_scaling.truncate", "rope_parameters.truncate",
        "rope_parameters.full_attention.truncate" } },
    { "rope.scaling.yarn_beta_slow",
      { "rope_scaling.beta_slow", "rope_parameters.beta_slow",
        "rope_parameters.full_attention.beta_slow" } },
};

static size_t row_of(const char *key)
{
    size_t i = 0;
    while (i < sizeof keys / sizeof *keys && strcmp(keys[i].key, key) != 0)
        i++;
    return i;
}

static const char *const *names_of(const char *key)
{
    size_t i = row_of(key);
    return i < sizeof keys / sizeof *keys ? keys[i].hf : NULL;
}

const char *ak_spec_renamed_key(size_t i)
{
    return i < sizeof keys / sizeof *keys ? keys[i].key : NULL;
}

static bool is_read(const struct ak_arch_keys *known, const char *name)
{
    struct ak_word word;
    return !known || ak_words_find(known->reads, name, &word);
}

const char *ak_spec_renamed_name(size_t i, size_t j)
{
    return i < sizeof keys / sizeof *keys && j < NAMES_MAX ? keys[i].hf[j] : NULL;
}

/* A name that the architecture reads, best one outside of dictionaries. */
static const char *best_name(const struct ak_arch_keys *known, const char *const *names,
                             const char *key)
{
    const char *best = names ? names[0] : key;
    for (int dotted = 1; names && dotted >= 0; dotted--)
        for (int i = NAMES_MAX - 1; i >= 0; i--)
            if (names[i] && (strchr(names[i], '.') != NULL) == dotted && is_read(known, names[i]))
                best = names[i];
    return best;
}

const char *ak_spec_hf_name(const struct ak_arch_keys *known, const char *key)
{
    return best_name(known, names_of(key), key);
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

const char *ak_spec_key_name(const struct ak_spec_config *config, const char *key)
{
    const char *const *names = names_of_part(config->keys, key);
    return config->naming != AK_PROVIDER_NAMING_HF ?
               key :
               best_name(config->known, names ? names : names_of(key), key);
}

bool ak_spec_has_object(const struct ak_provider *p, const char *name)
{
    struct ak_meta meta;
    size_t n = strlen(name);
    for (size_t i = 0; ak_provider_meta(p, i, &meta); i++)
        if (strncmp(meta.key, name, n) == 0 && meta.key[n] == '.')
            return true;
    return false;
}

void ak_spec_read_naming(const struct ak_provider *p, const struct ak_arch *arch,
                         struct ak_spec_config *config)
{
    config->naming = ak_provider_naming(p);
    if (config->naming != AK_PROVIDER_NAMING_HF) {
        config->known = arch ? ak_arch_keys(arch, NULL) : NULL;
        return;
    }
    config->known = arch ? ak_arch_keys(arch, &config->architecture) : NULL;
    config->is_nested = ak_spec_has_object(p, "text_config");
    config->has_rope_scaling =
        ak_spec_has_object(p, config->is_nested ? "text_config.rope_scaling" : "rope_scaling");
    config->has_rope_parameters = ak_spec_has_object(
        p, config->is_nested ? "text_config.rope_parameters" : "rope_parameters");
}

/* "rope_parameters.factor", without a kind of layers: rope_scaling takes the place of them all. */
static bool is_replaced(const struct ak_spec_config *config, const char *name)
{
    static const char outer[] = "rope_parameters.";
    return config->has_rope_scaling && strncmp(name, outer, sizeof outer - 1) == 0 &&
           !strchr(name + sizeof outer - 1, '.');
}

static bool is_null(const struct ak_provider *p, const char *name)
{
    const char *key;
    for (size_t i = 0; (key = ak_provider_null(p, i)); i++)
        if (strcmp(key, name) == 0)
            return true;
    return false;
}

void ak_spec_full_name(const struct ak_spec_config *config, const char *name,
                       char out[AK_SPEC_KEY_BYTES])
{
    bool nested = config->is_nested && strcmp(name, "tie_word_embeddings") != 0;
    snprintf(out, AK_SPEC_KEY_BYTES, "%s%s", nested ? "text_config." : "", name);
}

/* The default of a configuration class. Those of a rotation apply if there is no rotation at all.
 */
static bool find_default(const struct ak_spec_config *config, const char *const names[NAMES_MAX],
                         struct ak_meta *out)
{
    struct ak_word word;
    for (int i = 0; config->known && i < NAMES_MAX && names[i]; i++)
        if (ak_words_find(config->known->reads, names[i], &word) && ak_word_value(&word, out))
            return !strchr(names[i], '.') ||
                   (!config->has_rope_scaling && !config->has_rope_parameters);
    return false;
}

/* A member of the class is there even if the file has only a dictionary's entry. */
static bool precedes_dictionaries(const char *const names[NAMES_MAX], int i)
{
    return !strchr(names[i], '.') && i + 1 < NAMES_MAX && names[i + 1] && strchr(names[i + 1], '.');
}

static bool find_own_default(const struct ak_spec_config *config, const char *name,
                             struct ak_meta *out)
{
    struct ak_word word;
    return config->known && ak_words_find(config->known->reads, name, &word) &&
           ak_word_value(&word, out);
}

/* Models of several parts keep the language model's entries in "text_config". */
static bool find_hf(const struct ak_provider *p, const struct ak_spec_config *config,
                    const char *const names[NAMES_MAX], char out[AK_SPEC_KEY_BYTES],
                    struct ak_meta *meta)
{
    bool none = false;
    for (int i = 0; i < NAMES_MAX && names[i]; i++) {
        if (!is_read(config->known, names[i]) || is_replaced(config, names[i]))
            continue;
        ak_spec_full_name(config, names[i], out);
        if (ak_provider_find_meta(p, out, meta))
            return true;
        none |= is_null(p, out) && !ak_provider_ignores(p, out);
        if (!none && precedes_dictionaries(names, i) && find_own_default(config, names[i], meta))
            return true;
    }
    return !none && find_default(config, names, meta);
}

/* The key with the prefix, else the bare key. */
static bool find_gguf(const struct ak_provider *p, const struct ak_spec_config *config,
                      const char *key, char out[AK_SPEC_KEY_BYTES], struct ak_meta *meta)
{
    struct ak_text prefix = config->keys;
    const char *part = prefix.n ? memchr(prefix.bytes, '.', prefix.n) : NULL;
    snprintf(out, AK_SPEC_KEY_BYTES, "%.*s%s%s",
             part ? (int)(prefix.bytes + prefix.n - part - 1) : 0, part ? part + 1 : "",
             part ? "." : "", key);
    if (!is_read(config->known, out))
        return false;
    snprintf(out, AK_SPEC_KEY_BYTES, "%.*s.%s", (int)(prefix.n < 64 ? prefix.n : 64), prefix.bytes,
             key);
    if (ak_provider_find_meta(p, out, meta))
        return true;
    if (!ak_provider_find_meta(p, key, meta))
        return false;
    snprintf(out, AK_SPEC_KEY_BYTES, "%s", key);
    return true;
}

bool ak_spec_find(const struct ak_provider *p, const struct ak_spec_config *config, const char *key,
                  char name[AK_SPEC_KEY_BYTES], struct ak_meta *out)
{
    const char *const same_name[NAMES_MAX] = { key }, *const *names =
                                                          names_of_part(config->keys, key);
    bool found;
    if (ak_provider_naming(p) != AK_PROVIDER_NAMING_HF) {
        found = find_gguf(p, config, key, name, out);
    } else {
        names = names ? names : names_of(key);
        names = names ? names : same_name;
        found = find_hf(p, config, names, name, out);
        if (!found || !out->key[0])
            ak_spec_full_name(config, best_name(config->known, names, key), name);
    }
    if (found)
        out->key = name;
    return found;
}
