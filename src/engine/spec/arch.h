/* Architectures: their list, what they know of names and weights, and the descriptors, blocks and
 * settings that their files have in common. */
#ifndef AK_ENGINE_SPEC_ARCH_H
#define AK_ENGINE_SPEC_ARCH_H

#include "engine/spec/stages.h"

/* What Hugging Face checkpoints subtract from a norm vector of this role. */
float ak_arch_norm_offset(const struct ak_arch *arch, enum ak_role role);

/* GGUF's name of the architecture. */
const char *ak_arch_gguf_name(const struct ak_arch *arch);
/* GGUF's name of a tensor, with "{n}" for the layer; NULL: none. */
const char *ak_arch_gguf_tensor(const struct ak_arch *arch, enum ak_role role);

/* The merged tensor that holds the role; NULL: none. */
const struct ak_arch_merged_tensor *ak_arch_find_merged(const struct ak_arch *arch,
                                                        enum ak_role role);

/* The architecture's rule for a role; NULL: the architecture has no such weight. */
const struct ak_arch_rule *ak_arch_find_rule(const struct ak_arch *arch, enum ak_role role);

/* Finds the weight of a role in the file, by any of its names. Also finds weights that the
 * architecture does not declare, if the format stores roles. */
bool ak_arch_find_weight(const struct ak_arch *arch, const struct ak_provider *p, enum ak_role role,
                         int layer, struct ak_view *out);

/* Finds the role of a tensor in a Hugging Face checkpoint. False: the architecture has none. */
bool ak_arch_find_role(const struct ak_arch *arch, const char *name, enum ak_role *role,
                       int *layer);

/* All architectures (registry.c); ends in NULL. */
const struct ak_arch *const *ak_arch_list(void);

/* Settings of layers, for `configure`: a layer has recurrent state instead of attention. */
void ak_spec_set_recurrent(struct ak_spec_config *config, uint32_t layer);
/* Of layers that are not every n-th: a layer has no window; the first n layers have none. */
void ak_spec_set_global(struct ak_spec_config *config, uint32_t layer);
void ak_spec_set_global_layers(struct ak_spec_config *config, uint32_t n);
/* Sets global_every if the layers without a window are the last ones of every n. */
void ak_spec_find_interval(struct ak_spec_config *config);

/* The usual decoder block; architectures that differ only in descriptor and weights share it. Its
 * descriptor: SiLU, RMS norm, rotated pairs (i, i + n/2), no windows, scores divided by the root of
 * the head size. */
ak_status ak_spec_describe_decoder(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error);
/* … with a window in the layers that the configuration names, none by default. */
ak_status ak_spec_describe_windows(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error);
/* Qwen's windows: in the layers from max_window_layers on, unless the layers' types are given. */
ak_status ak_spec_read_late_windows(const struct ak_provider *p, struct ak_spec_config *config,
                                    struct ak_error *error);
void ak_build_decoder(struct ak_builder *b, const struct ak_spec *spec);
/* The same descriptor with experts in all layers; fails if the file has no experts. */
ak_status ak_spec_describe_experts(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error);

/* The same, and a shared expert for all tokens. */
ak_status ak_spec_describe_shared_expert(const struct ak_provider *p,
                                         const struct ak_spec_config *config,
                                         struct ak_spec_descriptor *out, struct ak_error *error);

/* Gated delta rule: reads its hyper-parameters, for `configure`, and completes the descriptor. */
ak_status ak_spec_read_delta(const struct ak_provider *p, struct ak_spec_config *config,
                             struct ak_error *error);
/* n if exactly every n-th layer has attention; 0: another pattern. */
uint32_t ak_spec_attention_interval(const struct ak_spec_config *config);
ak_status ak_spec_describe_delta(const struct ak_provider *p, const struct ak_spec_config *config,
                                 struct ak_spec_descriptor *out, struct ak_error *error);

/* The usual encoder block and its descriptor: LayerNorm after each sum, exact (erf) GELU without a
 * gate, no rotation, scores divided by the root of the head size. */
void ak_spec_describe_encoder(const struct ak_spec_config *config, struct ak_spec_descriptor *out);
void ak_build_encoder(struct ak_builder *b, const struct ak_spec *spec);
/* The encoder descriptor of BERT and RoBERTa. */
ak_status ak_spec_describe_bert(const struct ak_provider *p, const struct ak_spec_config *config,
                                struct ak_spec_descriptor *out, struct ak_error *error);
/* Reads the activation named by `key`: kinds of GELU and SiLU. *out stays if the key is absent. */
ak_status ak_spec_read_activation(const struct ak_provider *p, const struct ak_spec_config *config,
                                  const char *key, enum ak_op_activation *out,
                                  struct ak_error *error);

/* One symbol per architecture file. */
#define AK_ARCH(name) extern const struct ak_arch ak_arch_##name;
#include "engine/spec/architectures.def"
#undef AK_ARCH

#endif
