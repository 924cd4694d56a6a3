/* What a model is: its numbers, its architecture, its position tables. */
#ifndef AK_MODEL_MODEL_H
#define AK_MODEL_MODEL_H

#include "op/builder.h"
#include "weights/provider.h"

/* Hyper-parameters, the same struct from every format (A3). */
struct ak_config {
    struct ak_text architecture, name; /* as in the file */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size, context;
    float norm_eps;
    uint32_t rope_dims;
    float rope_base;
    uint32_t window; /* 0: none */
};

enum ak_rope_scaling { AK_ROPE_PLAIN, AK_ROPE_LINEAR, AK_ROPE_LLAMA3 };

/* The parameters of a rotation scaling; unused ones are 0. */
struct ak_rope_config {
    enum ak_rope_scaling scaling;
    float factor, low_freq_factor, high_freq_factor;
    uint32_t original_context;
};

/* What distinguishes architectures, as data (B6). Nothing outside src/model looks
 * at an architecture's name. */
struct ak_descriptor {
    enum ak_activation activation;
    bool rope_interleaved; /* pairs (2i, 2i+1), else (i, i + n/2) */
    float embedding_scale;
    float attention_scale;
    uint32_t window;       /* of every layer; 0: none */
};

/* Dimensions that shapes are made of. */
enum ak_dim {
    AK_DIM_ONE, AK_DIM_WIDTH, AK_DIM_Q, AK_DIM_KV, AK_DIM_HEAD, AK_DIM_FFN, AK_DIM_VOCAB, AK_DIM_ROPE_HALF
};

enum ak_need {
    AK_REQUIRED,
    AK_OPTIONAL,
    AK_OUTPUT_OR_TIED /* where absent, the embedding serves (A12) */
};

/* One weight that an architecture declares. A vector has rows AK_DIM_ONE. `hf` is
 * its name in Hugging Face checkpoints, "{n}" for the layer. */
struct ak_weight_rule {
    enum ak_role role;
    enum ak_dim rows, cols;
    enum ak_need need;
    const char *hf;
};

struct ak_spec;

/* One architecture family: one file, one line in registry.c. */
struct ak_family {
    const char *const *names; /* of general.architecture and model_type, ends in NULL */
    /* Sets the descriptor; `config` is read and validated already. May reject what
     * this architecture cannot have. */
    ak_status (*describe)(const struct ak_provider *p, const struct ak_config *config, struct ak_descriptor *out,
                          struct ak_error *error);
    const struct ak_weight_rule *weights;
    uint32_t n_weights;
    void (*emit)(struct ak_builder *b, const struct ak_spec *spec);
};

/* Everything about a model but its weights. */
struct ak_spec {
    struct ak_config config;
    struct ak_rope_config rope;
    const struct ak_family *family;
    struct ak_descriptor descriptor;
    float *inverse_frequencies; /* rope_dims/2, radians a position */
};

/* Stages of reading, in this order. The family comes first: another architecture's
 * keys would be reported as missing. */
ak_status ak_family_find(const struct ak_provider *p, const struct ak_family **out, struct ak_error *error);
ak_status ak_config_read(const struct ak_provider *p, struct ak_config *out, struct ak_rope_config *rope, struct ak_error *error);
/* Each field in its range; the message names the field and the file's key (B10). */
ak_status ak_config_validate(const struct ak_config *config, const struct ak_rope_config *rope, struct ak_error *error);
/* Allocates inverse_frequencies (B9); uses the file's rope_freqs where it has it. */
ak_status ak_rope_tables(const struct ak_provider *p, struct ak_spec *spec, struct ak_error *error);

void ak_spec_clear(struct ak_spec *spec); /* half-built ones too */

uint32_t ak_spec_dim(const struct ak_spec *spec, enum ak_dim dim);

/* registry.c: the families, ends in NULL. */
const struct ak_family *const *ak_families(void);

/* The usual decoder block; families that differ only in their descriptor and
 * weights share it. The descriptor: SiLU, pairs in halves, no window, and q·k
 * divided by the root of the head size. */
ak_status ak_describe_decoder(const struct ak_provider *p, const struct ak_config *config, struct ak_descriptor *out,
                              struct ak_error *error);
void ak_emit_decoder(struct ak_builder *b, const struct ak_spec *spec);

#endif
