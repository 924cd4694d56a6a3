/* Keys of a configuration that an architecture knows. Each architecture's file has a struct
 * ak_arch_keys for every model_type and one for GGUF; what these have in common is here, as lists
 * of words:
 *
 *     NAME           a key; a * in it stands for any text
 *     NAME=VALUE     … and the value of transformers' configuration class where it is absent
 *     NAME?=VALUE    … where null is a value too: none
 *
 * A key that no list has is an error that names it (known_keys.c): it may change the result. */
#ifndef AK_ENGINE_SPEC_KNOWN_KEYS_H
#define AK_ENGINE_SPEC_KNOWN_KEYS_H

#include "files/weights/provider.h"

struct ak_arch_keys {
    const char *types;  /* words: values of model_type; NULL: the keys of GGUF, without prefix */
    const char *reads;  /* keys that are read, with their defaults */
    const char *fixed;  /* keys of which only this value is supported */
    const char *unused; /* keys that change nothing; ak_unused_keys beside them */
};

/* Keys that change nothing for any architecture, in config.json and in GGUF (unused_keys.c). */
extern const char ak_unused_keys[], ak_unused_gguf_keys[];
/* Keys of which only the value that changes nothing is supported, for any architecture. */
extern const char ak_fixed_keys[], ak_fixed_gguf_keys[];
/* GGUF's keys of the vocabulary and of the file as a whole, which are read elsewhere. */
extern const char ak_general_keys[];

/* ---- Words -------------------------------------------------------------- */
struct ak_word {
    const char *name, *value; /* without a NUL; value NULL: none */
    size_t n_name, n_value;
    bool nullable;
};
/* The word at *at, which moves past it; false at the end. */
bool ak_words_next(const char **at, struct ak_word *out);
bool ak_words_match(const struct ak_word *word, const char *key);
/* The first word that matches. `words` may be NULL. */
bool ak_words_find(const char *words, const char *key, struct ak_word *out);
/* The word's value, as the bool, number or string that it spells; its key is "". False: none. */
bool ak_word_value(const struct ak_word *word, struct ak_meta *out);
bool ak_word_equals(const struct ak_word *word, const struct ak_meta *value);

/* ---- What architectures have in common ---------------------------------- */
#define AK_KEYS_ROPE_DICT(name)                                                                    \
    " " name ".rope_theta " name ".rope_type " name ".factor " name                                \
    ".original_max_position_embeddings " name ".attention_factor " name ".beta_fast " name         \
    ".beta_slow " name ".mscale " name ".mscale_all_dim " name ".low_freq_factor " name            \
    ".high_freq_factor "
/* Rotation with one set of parameters. transformers 4 has them in rope_scaling and beside it,
 * transformers 5 in rope_parameters. */
#define AK_KEYS_ROPE                                                                               \
    AK_KEYS_ROPE_DICT("rope_scaling")                                                              \
    AK_KEYS_ROPE_DICT("rope_parameters")                                                           \
    " rope_scaling.type rope_scaling.truncate rope_parameters.type rope_parameters.truncate "      \
    "original_max_position_embeddings "
/* … with a set for layers with a window, and one for others. There transformers knows neither the
 * old name of the type nor another rounding of YaRN's ramp. */
#define AK_KEYS_ROPES                                                                              \
    AK_KEYS_ROPE_DICT("rope_scaling")                                                              \
    AK_KEYS_ROPE_DICT("rope_parameters.full_attention")                                            \
    " rope_parameters.sliding_attention.rope_theta "
#define AK_KEYS_PLAIN_LOCAL_ROPE                                                                   \
    " rope_parameters.sliding_attention.rope_type=default "                                        \
    "rope_parameters.sliding_attention.type=default "
/* The whole head is rotated. */
#define AK_KEYS_WHOLE_HEADS                                                                        \
    " partial_rotary_factor=1 rope_scaling.partial_rotary_factor=1 "                               \
    "rope_parameters.partial_rotary_factor=1 "
#define AK_KEYS_PARTIAL_HEADS                                                                      \
    " rope_scaling.partial_rotary_factor rope_parameters.partial_rotary_factor "
#define AK_KEYS_EXPERTS_FIXED " decoder_sparse_step=1 mlp_only_layers=[] "

/* GGUF: all decoders */
#define AK_KEYS_GGUF_SIZES                                                                         \
    " block_count context_length embedding_length feed_forward_length attention.head_count "       \
    "attention.head_count_kv attention.key_length attention.value_length vocab_size pooling_type "
#define AK_KEYS_GGUF_ROPE                                                                          \
    " rope.dimension_count rope.freq_base rope.scaling.type rope.scaling.factor "                  \
    "rope.scaling.original_context_length rope.scaling.attn_factor rope.scaling.yarn_beta_fast "   \
    "rope.scaling.yarn_beta_slow rope.scaling.truncate rope.scale_linear "                         \
    "rope.scaling.low_freq_factor rope.scaling.high_freq_factor "
#define AK_KEYS_GGUF_DECODER                                                                       \
    AK_KEYS_GGUF_SIZES AK_KEYS_GGUF_ROPE                                                           \
        " attention.layer_norm_rms_epsilon attention.scale hidden_act "
#define AK_KEYS_GGUF_WINDOW " attention.sliding_window attention.sliding_window_pattern "
#define AK_KEYS_GGUF_EXPERTS                                                                       \
    " expert_count expert_used_count expert_feed_forward_length expert_weights_norm "
#define AK_KEYS_GGUF_DELTA                                                                         \
    " ssm.conv_kernel ssm.state_size ssm.group_count ssm.time_step_rank ssm.inner_size "           \
    "full_attention_interval nextn_predict_layers attention.recurrent_layers "

#endif
