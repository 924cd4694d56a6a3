/* What a model is: its numbers, its architecture, its position tables. */
#ifndef AK_MODEL_MODEL_H
#define AK_MODEL_MODEL_H

#include "model/build.h"
#include "weights/provider.h"

enum { AK_SPEC_LAYERS_MAX = 4096 };

/* Hyper-parameters, the same struct from every format. */
struct ak_spec_config {
    struct ak_text architecture, name; /* as in the file */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size, context;
    float norm_eps;
    uint32_t rope_dims;
    float rope_base;
    uint32_t window;         /* 0: none */
    uint32_t global_every;   /* every n-th layer has no window; 0: not said */
    bool global_first;       /* the first one of n, else the last */
    bool context_fixed;      /* what is beyond it would be computed in another way */
    uint32_t first_position; /* row of the positions' table that the first token has */
    uint32_t n_types;        /* of tokens: rows of their table */
    uint32_t n_experts, n_experts_used, expert_width, shared_width; /* 0: none */
    /* bit of each layer that has a running state instead of attention */
    uint64_t recurrent_layers[AK_SPEC_LAYERS_MAX / 64];
    uint32_t conv_taps; /* of convolutions in layers without attention; 0: none */
    /* of layers with the gated delta rule; 0: none */
    uint32_t delta_k_heads, delta_v_heads, delta_k_dim, delta_v_dim;
    /* that stand behind these in the file, to guess at further tokens; not read */
    uint32_t n_draft_layers;
    bool tied; /* the embedding serves as output, whether or not the file has one */
    enum ak_provider_naming naming;
};

enum ak_spec_rope_scaling {
    AK_SPEC_ROPE_PLAIN,
    AK_SPEC_ROPE_LINEAR,
    AK_SPEC_ROPE_LLAMA3,
    AK_SPEC_ROPE_YARN,
    AK_SPEC_ROPE_LONGROPE
};

/* The parameters of a rotation scaling; unused ones are 0. */
struct ak_spec_rope {
    enum ak_spec_rope_scaling scaling;
    float factor, low_freq_factor, high_freq_factor;
    /* YaRN; of cosine and sine, beside what the scaling asks for */
    float beta_fast, beta_slow, magnitude;
    bool unrounded; /* YaRN's ramp may begin and end within a pair */
    uint32_t original_context;
};

/* The rotation of a layer. */
enum ak_spec_rotation { AK_SPEC_ROTATE_MAIN, AK_SPEC_ROTATE_LOCAL, AK_SPEC_ROTATE_NONE };
enum { AK_SPEC_ROPE_TABLES_MAX = 2 };

/* What layers of a kind have in common. */
struct ak_spec_layer_kind {
    uint32_t window; /* 0: none */
    enum ak_spec_rotation rotation;
};

/* What distinguishes architectures, as data. Nothing outside src/model looks
 * at an architecture's name. */
struct ak_spec_descriptor {
    enum ak_op_activation activation;
    bool ungated;      /* feed-forward: up, activation, down */
    bool layer_norm;   /* with bias; else RMS norm */
    bool no_pre_norms; /* attention and feed-forward take the residual as it is */
    bool post_norms;   /* what they give is normed before it is added */
    bool sum_norms;    /* the residual is normed after each of them was added to it */
    /* a token sees all of its text, in one pass; no logits, but hidden states */
    bool encoder;
    bool alibi; /* scores fall with the distance */
    /* a head's q is followed by as many elements, whose sigmoids what it gives is multiplied by */
    bool gated_attention;
    /* value heads h and h + delta_k_heads have the same key head, else neighbors */
    bool delta_tiled;
    /* q and k are normed as whole rows, else, where they are, head by head */
    bool qk_norm_rows;
    bool rope_interleaved; /* pairs (2i, 2i+1), else (i, i + n/2) */
    float embedding_scale, residual_scale, attention_scale;
    float attention_cap; /* of scores; 0: none */
    float logit_divisor;
    float logit_cap;                  /* 0: none */
    struct ak_spec_layer_kind local;  /* of layers, but for */
    struct ak_spec_layer_kind global; /* every n-th layer, the n-th first; */
    uint32_t global_every;            /* n = 0: no layer */
    bool global_first;                /* the first of n, else the last */
    float local_rope_base;            /* of AK_SPEC_ROTATE_LOCAL, which has no scaling */
    bool has_experts;                 /* instead of one feed-forward */
    bool normalized_experts;          /* the weights of those chosen add up to 1 */
    enum ak_role ffn_norm;            /* which norm the feed-forward or the experts take */
    enum ak_role output_norm;         /* the last one */
    uint64_t state_elems; /* floats that a layer without attention remembers of a sequence */
};

/* Dimensions that shapes are made of. */
enum ak_spec_dim {
    AK_SPEC_DIM_ONE,
    AK_SPEC_DIM_WIDTH,
    AK_SPEC_DIM_Q,
    AK_SPEC_DIM_KV,
    AK_SPEC_DIM_HEAD,
    AK_SPEC_DIM_FFN,
    AK_SPEC_DIM_VOCAB,
    AK_SPEC_DIM_ROPE_HALF,
    AK_SPEC_DIM_CONTEXT,
    AK_SPEC_DIM_TYPES,
    AK_SPEC_DIM_EXPERTS,
    AK_SPEC_DIM_EXPERT,
    AK_SPEC_DIM_SHARED,
    AK_SPEC_DIM_HEADS,
    AK_SPEC_DIM_CONV_IN,
    AK_SPEC_DIM_TAPS,
    AK_SPEC_DIM_Q_GATED,
    AK_SPEC_DIM_DELTA_QKV,
    AK_SPEC_DIM_DELTA_QKVZ,
    AK_SPEC_DIM_DELTA_V,
    AK_SPEC_DIM_DELTA_HEADS,
    AK_SPEC_DIM_DELTA_GATES,
    AK_SPEC_DIM_DELTA_HEAD
};

enum ak_family_need {
    AK_FAMILY_REQUIRED,
    AK_FAMILY_OPTIONAL,
    AK_FAMILY_REQUIRED_FROM_SECOND, /* required in all layers but the first */
    AK_FAMILY_OUTPUT_OR_TIED,       /* where absent, the embedding serves */
    AK_FAMILY_ATTENTION_ONLY,       /* required in layers with attention, none in others */
    AK_FAMILY_RECURRENT_ONLY,       /* the other way round */
    AK_FAMILY_RECURRENT_MERGED,     /* the same, but optional: where a layer has it, it needs */
    AK_FAMILY_RECURRENT_PART        /* none of these, else all */
};

/* One weight that an architecture declares. A vector has rows AK_SPEC_DIM_ONE; those of
 * experts have the rows and columns of one. `hf` is its name in Hugging Face
 * checkpoints, "{n}" for the layer, "{e}" for the expert, whose matrix is then a tensor
 * of its own; parts of one tensor have the same. */
struct ak_family_rule {
    enum ak_role role;
    enum ak_spec_dim rows, cols;
    enum ak_family_need need;
    const char *hf;
};

/* A stored tensor that holds several weights, one's rows (of vectors: elements) after
 * another's. */
struct ak_family_merged_tensor {
    enum ak_role stored;
    uint32_t n_parts;
    enum ak_role parts[3];
};

/* What other checkpoints of the family call a weight, MLX's among them. */
struct ak_family_alias {
    enum ak_role role;
    const char *hf;
};

struct ak_spec;

/* One architecture family: one file, one line in registry.c. */
struct ak_family {
    const char *const *names; /* of general.architecture and model_type, ends in NULL */
    const char *description;  /* which models these are, for people */
    const char *gguf_name;    /* what GGUF calls the architecture; NULL: as the first name */
    /* the key by which the descriptor's activation may be another; NULL: none */
    const char *activation_key;
    bool has_experts; /* where two families share a name: that of files with experts */
    /* or of those that it takes, over families before it; NULL: all */
    bool (*accepts)(const struct ak_provider *p);
    /* Completes what was read by numbers of this architecture alone; NULL: there are none. */
    ak_status (*configure)(const struct ak_provider *p, struct ak_spec_config *config,
                           struct ak_error *error);
    bool has_recurrent_layers; /* layers may have a running state instead of attention */
    /* Sets the descriptor; `config` is read and validated already. May reject what
     * this architecture cannot have. */
    ak_status (*describe)(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error);
    const struct ak_family_rule *weights;
    uint32_t n_weights;
    const struct ak_family_merged_tensor *merged_tensors;
    uint32_t n_merged_tensors;
    const struct ak_family_alias *aliases;
    uint32_t n_aliases;
    bool gguf_interleaved; /* GGUF has the rows of q and k permuted, so that pairs are neighbors */
    /* GGUF has the value heads of the gated delta rule permuted: descriptor.delta_tiled */
    bool gguf_tiled;
    bool hf_transposed; /* Hugging Face has the matrices of layers as [cols, rows] */
    /* Hugging Face numbers positions from the one after the padding token's id on */
    bool hf_padded_positions;
    bool hf_experts_transposed; /* … and those of all experts as [experts, cols, rows] */
    /* rows of experts' weights that share a tensor follow each other, else they take turns */
    bool hf_experts_concatenated;
    /* Hugging Face has norm vectors with this much subtracted, but for DELTA_NORM */
    float hf_norm_offset;
    void (*emit)(struct ak_builder *b, const struct ak_spec *spec);
};

/* How a text's embedding is made of its tokens' hidden states, as the files say. */
struct ak_spec_pooling {
    enum akunu_pooling kind; /* never AKUNU_POOLING_MODEL */
    bool is_stated;          /* the files say so, else it is the custom */
    bool is_normalized;      /* to unit length */
    char unsupported[160];   /* what the files ask for and there is none of; "" where nothing */
};

/* Everything about a model but its weights. */
struct ak_spec {
    struct ak_spec_config config;
    struct ak_spec_rope rope;
    const struct ak_family *family;
    struct ak_spec_descriptor descriptor;
    struct ak_spec_pooling pooling;
    uint32_t n_rotations;                     /* tables in use */
    float *inverse_frequencies;               /* [n_rotations][rope_dims/2], radians a position */
    float magnitude[AK_SPEC_ROPE_TABLES_MAX]; /* of cosine and sine */
    /* the same, in place of the first table in sessions whose context is at most
     * rope.original_context; NULL: none */
    float *short_frequencies;
};

/* Stages of reading, in this order. The family comes first: another architecture's
 * keys would be reported as missing. */
ak_status ak_family_find(const struct ak_provider *p, const struct ak_family **out,
                         struct ak_error *error);
/* Whether the files are those of a model that takes sound (Whisper), which is no family. */
bool ak_family_is_speech(const struct ak_provider *p);
/* How many experts the metadata of this architecture tells; 0: none. */
ak_status ak_spec_read_expert_count(const struct ak_provider *p, struct ak_text architecture,
                                    uint32_t *out, struct ak_error *error);
ak_status ak_spec_read_config(const struct ak_provider *p, const struct ak_family *family,
                              struct ak_spec_config *out, struct ak_spec_rope *rope,
                              struct ak_error *error);
/* A positive number of the architecture's own under its key, with or without the
 * prefix; `fallback` where there is none. */
ak_status ak_spec_read_positive(const struct ak_provider *p, const struct ak_spec_config *config,
                                const char *suffix, float fallback, float *out,
                                struct ak_error *error);
ak_status ak_spec_read_u32(const struct ak_provider *p, const struct ak_spec_config *config,
                           const char *suffix, uint32_t fallback, uint32_t *out,
                           struct ak_error *error);
ak_status ak_spec_read_bool(const struct ak_provider *p, const struct ak_spec_config *config,
                            const char *suffix, bool fallback, bool *out, struct ak_error *error);
/* The metadata key that holds what GGUF calls ARCHITECTURE.`key`, written to `out`.
 * False where there is none; `out` is then the key that should be there. */
enum { AK_SPEC_KEY_BYTES = 160 };
bool ak_spec_find_key(const struct ak_provider *p, struct ak_text architecture, const char *key,
                      char out[AK_SPEC_KEY_BYTES]);
/* The i-th of the keys that Hugging Face's configurations have other names for; NULL
 * past the last one. */
const char *ak_spec_renamed_key(size_t i);
/* The name in this naming convention of `key`, for messages. */
const char *ak_spec_key_name(enum ak_provider_naming naming, const char *key);
/* Each field in its range; the message names the field and the file's key. */
ak_status ak_spec_validate_config(const struct ak_spec_config *config,
                                  const struct ak_spec_rope *rope, struct ak_error *error);
ak_status ak_spec_validate_experts(const struct ak_spec_config *config, struct ak_error *error);
/* Fills the descriptor of a spec that has its family and a valid configuration. */
ak_status ak_spec_describe(const struct ak_provider *p, struct ak_spec *spec,
                           struct ak_error *error);
/* All of these stages. *out is for ak_spec_clear also after a failure. */
ak_status ak_spec_read(const struct ak_provider *p, struct ak_spec *out, struct ak_error *error);
/* Allocates inverse_frequencies; uses the file's rope_freqs where it has it. */
ak_status ak_spec_init_rope(const struct ak_provider *p, struct ak_spec *spec,
                            struct ak_error *error);

/* Pooling by modules.json and 1_Pooling/config.json (sentence-transformers), or by
 * GGUF's pooling_type; where they say nothing, the mean of an encoder's tokens, the last
 * one of other models. */
ak_status ak_spec_read_pooling(const struct ak_provider *p, const struct ak_spec *spec,
                               struct ak_spec_pooling *out, struct ak_error *error);
/* Its number in GGUF. */
uint32_t ak_spec_gguf_pooling(enum akunu_pooling kind);

/* What GGUF stores as tensors of divisors and Hugging Face's configurations have as
 * numbers: whether the model has it, and its rope_dims/2 values. After
 * ak_spec_init_rope. */
bool ak_spec_has_rope_divisors(const struct ak_spec *spec, enum ak_role role);
ak_status ak_spec_get_rope_divisors(const struct ak_provider *p, const struct ak_spec *spec,
                                    enum ak_role role, float *out, struct ak_error *error);

/* What YaRN multiplies cosine and sine by. */
float ak_spec_yarn_magnitude(float factor);

void ak_spec_clear(struct ak_spec *spec); /* half-built ones too */

/* Of layer `layer`. */
const struct ak_spec_layer_kind *ak_spec_layer(const struct ak_spec *spec, int layer);

/* Whether the layer has a running state instead of attention. */
bool ak_spec_is_recurrent(const struct ak_spec_config *config, int layer);
void ak_spec_set_recurrent(struct ak_spec_config *config, uint32_t layer);

/* The layer of the KV cache that it writes and reads, of ak_spec_kv_layers(): what an
 * encoder has there is of use until the next layer alone. */
uint32_t ak_spec_kv_layer(const struct ak_spec *spec, int layer);
uint32_t ak_spec_kv_layers(const struct ak_spec *spec);

/* Where the layer's state is among a sequence's ak_spec_state_elems() floats. */
uint64_t ak_spec_state_offset(const struct ak_spec *spec, int layer);
uint64_t ak_spec_state_elems(const struct ak_spec *spec);
/* What the convolution has of that where there is the gated delta rule, at its beginning. */
uint64_t ak_spec_conv_elems(const struct ak_spec *spec);

/* What a Hugging Face checkpoint has subtracted from a vector of this role. */
float ak_family_norm_offset(const struct ak_family *family, enum ak_role role);

/* What GGUF calls the architecture. */
const char *ak_family_gguf_name(const struct ak_family *family);

/* The tensor that the weight is a part of; NULL: one of its own. */
const struct ak_family_merged_tensor *ak_family_find_merged(const struct ak_family *family,
                                                            enum ak_role role);

uint32_t ak_spec_dim(const struct ak_spec *spec, enum ak_spec_dim dim);

/* What the family declares about a role; NULL where it has no such weight. */
const struct ak_family_rule *ak_family_find_rule(const struct ak_family *family, enum ak_role role);

/* The weight of that role in the file, by whichever name the file has; also one
 * that the family does not declare, where the format knows roles. */
bool ak_family_find_weight(const struct ak_family *family, const struct ak_provider *p,
                           enum ak_role role, int layer, struct ak_view *out);

/* What a tensor of a Hugging Face checkpoint is to the family; false: nothing. */
bool ak_family_find_role(const struct ak_family *family, const char *name, enum ak_role *role,
                         int *layer);

/* registry.c: the families, ends in NULL. */
const struct ak_family *const *ak_family_list(void);

/* The usual decoder block; families that differ only in their descriptor and
 * weights share it. The descriptor: SiLU, RMS norm, pairs in halves, no windows, and
 * q·k divided by the root of the head size. */
ak_status ak_spec_describe_decoder(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error);
void ak_build_decoder(struct ak_builder *b, const struct ak_spec *spec);
/* The descriptor of the same with experts in all layers, which the file has to have. */
ak_status ak_spec_describe_experts(const struct ak_provider *p, const struct ak_spec_config *config,
                                   struct ak_spec_descriptor *out, struct ak_error *error);

/* … and one that all tokens share. */
ak_status ak_spec_describe_shared_expert(const struct ak_provider *p,
                                         const struct ak_spec_config *config,
                                         struct ak_spec_descriptor *out, struct ak_error *error);

/* What a model with the gated delta rule has to say of it, for `configure`, and what
 * follows for its descriptor, which has all else. */
ak_status ak_spec_read_delta(const struct ak_provider *p, struct ak_spec_config *config,
                             struct ak_error *error);
/* n, where every n-th layer has attention and no other; 0: it is otherwise. */
uint32_t ak_spec_attention_interval(const struct ak_spec_config *config);
ak_status ak_spec_describe_delta(const struct ak_provider *p, const struct ak_spec_config *config,
                                 struct ak_spec_descriptor *out, struct ak_error *error);

/* The usual encoder, and its descriptor: LayerNorm after each sum, the error function's
 * GELU without a gate, no rotation, q·k divided by the root of the head size. */
void ak_spec_describe_encoder(const struct ak_spec_config *config, struct ak_spec_descriptor *out);
void ak_build_encoder(struct ak_builder *b, const struct ak_spec *spec);
/* The same of BERT and RoBERTa. */
ak_status ak_spec_describe_bert(const struct ak_provider *p, const struct ak_spec_config *config,
                                struct ak_spec_descriptor *out, struct ak_error *error);
/* The activation that `key` names; *out stays where there is no such key. Kinds of GELU
 * and SiLU are known. */
ak_status ak_spec_read_activation(const struct ak_provider *p, const struct ak_spec_config *config,
                                  const char *key, enum ak_op_activation *out,
                                  struct ak_error *error);

/* The architecture files' one symbol each. */
#define AK_FAMILY(name) extern const struct ak_family ak_family_##name;
#include "model/families.def"
#undef AK_FAMILY

#endif
