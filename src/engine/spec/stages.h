/* How a model file becomes a spec: the stages of ak_spec_read(), and what some of them share. */
#ifndef AK_ENGINE_SPEC_STAGES_H
#define AK_ENGINE_SPEC_STAGES_H

#include "engine/spec/model.h"

/* Stages of ak_spec_read(), in this order. The architecture comes first, since the keys of another
 * architecture would be reported as missing. */
ak_status ak_arch_find(const struct ak_provider *p, const struct ak_arch **out,
                       struct ak_error *error);
/* Number of experts by the architecture's metadata; 0: none. */
ak_status ak_spec_read_expert_count(const struct ak_provider *p, struct ak_text architecture,
                                    uint32_t *out, struct ak_error *error);
ak_status ak_spec_read_config(const struct ak_provider *p, const struct ak_arch *arch,
                              struct ak_spec_config *out, struct ak_spec_rope *rope,
                              struct ak_error *error);
/* Reads a positive number of the architecture's key `suffix`, with or without the prefix;
 * `fallback` if it is absent. */
ak_status ak_spec_read_positive(const struct ak_provider *p, const struct ak_spec_config *config,
                                const char *suffix, float fallback, float *out,
                                struct ak_error *error);
ak_status ak_spec_read_u32(const struct ak_provider *p, const struct ak_spec_config *config,
                           const char *suffix, uint32_t fallback, uint32_t *out,
                           struct ak_error *error);
ak_status ak_spec_read_bool(const struct ak_provider *p, const struct ak_spec_config *config,
                            const char *suffix, bool fallback, bool *out, struct ak_error *error);
/* Finds the heads that follow the audio: those of the file's list that the decoder has, or else
 * heads by the model's sizes, or else all of the last half of the layers. AKUNU_ERROR_FORMAT: the
 * file's list does not have the form of one. */
ak_status ak_spec_read_alignment(const struct ak_provider *p, struct ak_spec_config *config,
                                 struct ak_error *error);
/* Tells how many heads of the file's list the decoder does not have, if there are such. */
void ak_spec_warn_alignment(const struct ak_spec_config *config, const struct ak_log *log);

/* ---- Keys: keys.c, known_keys.c ----------------------------------------- */
/* Finds what GGUF calls PREFIX.`key`, with the prefix config->keys: the architecture, or the
 * architecture, a dot and a part of it. In config.json a key that is absent has the default of its
 * class. out->key is `name`, the file's key. False if there is no value; `name` is then the
 * expected key, for messages. */
enum { AK_SPEC_KEY_BYTES = 160 };
bool ak_spec_find(const struct ak_provider *p, const struct ak_spec_config *config, const char *key,
                  char name[AK_SPEC_KEY_BYTES], struct ak_meta *out);
/* Sets naming, known and the bits of config.json's objects. arch NULL: any key is known. */
void ak_spec_read_naming(const struct ak_provider *p, const struct ak_arch *arch,
                         struct ak_spec_config *config);
/* The i-th key that Hugging Face names differently, NULL past the last one; its j-th name, NULL
 * past the last one. */
const char *ak_spec_renamed_key(size_t i);
const char *ak_spec_renamed_name(size_t i, size_t j);
/* The name of `key` in the file, for messages. */
const char *ak_spec_key_name(const struct ak_spec_config *config, const char *key);
/* A name of `key` in config.json that is among these keys. */
const char *ak_spec_hf_name(const struct ak_arch_keys *known, const char *key);
/* The key of a name in config.json, which may be in its "text_config". */
void ak_spec_full_name(const struct ak_spec_config *config, const char *name,
                       char out[AK_SPEC_KEY_BYTES]);
/* Whether config.json has entries in an object of this name. */
bool ak_spec_has_object(const struct ak_provider *p, const char *name);
/* What the architecture knows of a model_type; of GGUF: NULL. NULL: nothing. */
const struct ak_arch_keys *ak_arch_keys(const struct ak_arch *arch,
                                        const struct ak_text *model_type);
/* Refuses keys that the architecture does not know, values that it does not support and overrides
 * that nobody reads. */
ak_status ak_spec_check_keys(const struct ak_provider *p, const struct ak_spec *spec,
                             struct ak_error *error);
/* Adds to the message of a weight of another shape, or a missing one, the sizes that config.json
 * has, and those that it leaves to their defaults. */
void ak_spec_explain_sizes(const struct ak_provider *p, const struct ak_spec *spec,
                           struct ak_error *error);
/* Whether the biases that config.json announces are there, and no others, and the head has the
 * labels that it lists. */
ak_status ak_spec_check_weights(const struct ak_provider *p, const struct ak_spec *spec,
                                struct ak_error *error);
/* Checks the range of each field. The message names the file's key. */
ak_status ak_spec_validate_config(const struct ak_spec_config *config,
                                  const struct ak_spec_rope *rope, struct ak_error *error);
ak_status ak_spec_validate_experts(const struct ak_spec_config *config, struct ak_error *error);
/* Fills in the descriptor of a spec that has its architecture and a valid configuration. */
ak_status ak_spec_describe(const struct ak_provider *p, struct ak_spec *spec,
                           struct ak_error *error);
/* Runs all of these stages. The caller passes *out to ak_spec_clear(), after a failure too. */
ak_status ak_spec_read(const struct ak_provider *p, struct ak_spec *out, struct ak_error *error);
/* Replaces values of the rotation by those that the user asks for, before ak_spec_init_rope(). */
ak_status ak_spec_override_rope(struct ak_spec *spec, const struct akunu_rope *asked,
                                struct ak_error *error);
/* Allocates inverse_frequencies and, for LongRoPE, short_frequencies; applies the file's
 * divisors. */
ak_status ak_spec_init_rope(const struct ak_provider *p, struct ak_spec *spec,
                            struct ak_error *error);

/* Reads pooling from sentence-transformers' files, or GGUF's pooling_type and the settings that
 * convert adds. Default: the mean of an encoder's tokens, else the last token. *out belongs to a
 * spec that is cleared. */
ak_status ak_spec_read_pooling(const struct ak_provider *p, const struct ak_spec *spec,
                               struct ak_spec_pooling *out, struct ak_error *error);
void ak_spec_pooling_clear(struct ak_spec_pooling *pooling);
/* Elements of an embedding by `kind`. */
uint32_t ak_spec_embedding_width(const struct ak_spec *spec, enum akunu_pooling kind);
/* The kind's name in sentence-transformers. */
const char *ak_spec_pooling_name(enum akunu_pooling kind);
/* Notes what the files ask for, unless something has been noted before. */
void ak_spec_note_unsupported(struct ak_spec_pooling *out, const char *what, const char *name);
/* Reads "pooling_mode" and its neighbors from the settings of a Pooling module. */
void ak_spec_read_modes(const struct json_t *config, struct ak_spec_pooling *out);

/* ---- Settings of texts: sentence.c -------------------------------------- */
/* Reads what a Transformer module says of its texts: their length. */
ak_status ak_spec_read_sentence(const struct ak_provider *p, const struct ak_spec *spec,
                                struct ak_spec_pooling *out, struct ak_error *error);
/* Reads prompts and the size of embeddings. */
ak_status ak_spec_read_prompts(const struct ak_provider *p, struct ak_spec_pooling *out,
                               struct ak_error *error);
/* What GGUF has no key for, as a JSON object under AK_SPEC_SENTENCE_KEY. Free with free(). NULL:
 * out of memory. */
#define AK_SPEC_SENTENCE_KEY "sentence_transformers.config"
ak_status ak_spec_read_sentence_key(const struct ak_provider *p, struct ak_spec_pooling *out,
                                    struct ak_error *error);
char *ak_spec_write_sentence_key(const struct ak_spec_pooling *pooling, struct ak_error *error);
/* Finds a prompt by its name; NULL: the default one; "": none unless there is one of that name.
 * AKUNU_ERROR_ARGUMENT: there is none; the message lists them. */
ak_status ak_spec_find_prompt(const struct ak_spec_pooling *pooling, const char *name,
                              struct ak_text *out, struct ak_error *error);
/* ---- Classes: class.c --------------------------------------------------- */
/* The class of transformers that a folder names; { NULL, 0 }: none. */
struct ak_text ak_spec_class(const struct ak_provider *p);
/* Whether the class scores whole texts. GGUF files name no class. */
bool ak_spec_is_classifier(const struct ak_provider *p);
/* Whether the class makes logits: false if it, or sentence-transformers, makes embeddings alone. */
bool ak_spec_has_output_matrix(const struct ak_provider *p);

/* ---- Heads: head.c ------------------------------------------------------ */
/* Finds the head of the model's class and checks its shapes. */
ak_status ak_spec_read_head(const struct ak_provider *p, const struct ak_spec *spec,
                            struct ak_spec_head *out, struct ak_error *error);
/* Whether a tensor of this name belongs to a head, or would. */
bool ak_spec_is_head(const char *name);

/* The pooling's number in GGUF; of one that GGUF lacks 0, "none". */
uint32_t ak_spec_gguf_pooling(const struct ak_spec_pooling *pooling);

/* Rotary divisors, which GGUF stores as tensors and Hugging Face as numbers in config.json: whether
 * the model has those of `role`, and its rope_dims/2 values. After ak_spec_init_rope(). */
bool ak_spec_has_rope_divisors(const struct ak_spec *spec, enum ak_role role);
ak_status ak_spec_get_rope_divisors(const struct ak_provider *p, const struct ak_spec *spec,
                                    enum ak_role role, float *out, struct ak_error *error);

/* YaRN's own factor of cosine and sine. */
float ak_spec_yarn_magnitude(float factor);

#endif
