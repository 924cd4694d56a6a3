/* A model without its weights, in the same terms for every file format: hyper-parameters, rotary
 * tables, pooling, and what its architecture declares. The other folders read its members; stages.h
 * makes it from a file, and arch.h has what the files of architectures share. */
#ifndef AK_ENGINE_SPEC_MODEL_H
#define AK_ENGINE_SPEC_MODEL_H

#include "engine/spec/build.h"
#include "engine/spec/known_keys.h"
#include "files/weights/provider.h"

enum { AK_SPEC_LAYERS_MAX = 4096, AK_SPEC_ALIGNMENT_MAX = 320 };

/* Hyper-parameters. */
struct ak_spec_alignment_head {
    uint8_t layer, head;
};

struct ak_spec_config {
    struct ak_text architecture, name; /* as in the file */
    struct ak_text keys;               /* in front of GGUF's keys: the architecture, or its part */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size, context;
    float norm_eps;
    uint32_t rope_dims;
    float rope_base;
    uint32_t window;       /* 0: none */
    uint32_t global_every; /* every n-th layer has no window; 0: not stated */
    bool global_first;     /* the first of every n layers has no window; else the last */
    /* a longer context would be computed differently: the context cannot be raised */
    bool context_fixed;
    uint32_t first_position; /* row of the position table for the first token */
    uint32_t n_types;        /* rows of the token type table */
    uint32_t n_experts, n_experts_used, expert_width, shared_width; /* 0: none */
    /* bit per layer; set: recurrent state instead of attention */
    uint64_t recurrent_layers[AK_SPEC_LAYERS_MAX / 64];
    uint32_t conv_taps; /* taps of the convolutions in recurrent layers; 0: none */
    /* gated delta rule; 0: none */
    uint32_t delta_k_heads, delta_v_heads, delta_k_dim, delta_v_dim;
    /* draft (multi-token prediction) layers after these in the file; not read */
    uint32_t n_draft_layers;
    /* encoder of speech beside the decoder: layers, positions, mel filters; 0: none */
    uint32_t n_encoder_layers, encoder_context, n_mels;
    /* heads of cross-attention that follow the audio; word times come from them */
    struct ak_spec_alignment_head alignment[AK_SPEC_ALIGNMENT_MAX];
    uint32_t n_alignment;
    uint32_t n_foreign_alignment; /* heads that the file lists and the decoder does not have */
    bool tied; /* the embedding serves as output matrix, unless the file has another one */
    enum ak_provider_naming naming;
    const struct ak_arch_keys *known; /* keys that are read; NULL: any */
    /* config.json has the language model's entries in an object; has these objects */
    bool is_nested, has_rope_scaling, has_rope_parameters;
    /* layers without a window that are not every n-th: bit per layer */
    bool has_global_layers;
    uint64_t global_layers[AK_SPEC_LAYERS_MAX / 64];
};

enum ak_spec_rope_scaling {
    AK_SPEC_ROPE_PLAIN,
    AK_SPEC_ROPE_LINEAR,
    AK_SPEC_ROPE_LLAMA3,
    AK_SPEC_ROPE_YARN,
    AK_SPEC_ROPE_LONGROPE
};

/* Parameters of the rotary scaling; unused ones are 0. */
struct ak_spec_rope {
    enum ak_spec_rope_scaling scaling;
    float factor, low_freq_factor, high_freq_factor;
    /* magnitude: factor of cosine and sine beside the scaling's own; beta_*: YaRN */
    float beta_fast, beta_slow, magnitude;
    /* YaRN: share of the unscaled frequency in pairs that turn often */
    float extrapolation;
    bool unrounded; /* YaRN: the ramp's ends are not rounded to whole pairs */
    uint32_t original_context;
};

/* Rotation of a layer. */
enum ak_spec_rotation { AK_SPEC_ROTATE_MAIN, AK_SPEC_ROTATE_LOCAL, AK_SPEC_ROTATE_NONE };
enum { AK_SPEC_ROPE_TABLES_MAX = 2 };

/* Attention window and rotation of a kind of layers. */
struct ak_spec_layer_kind {
    uint32_t window; /* 0: none */
    enum ak_spec_rotation rotation;
};

/* Descriptor: what distinguishes architectures, as data. No other folder decides by an
 * architecture's name. */
struct ak_spec_descriptor {
    enum ak_op_activation activation;
    bool ungated;      /* feed-forward: up, activation, down; no gate */
    bool layer_norm;   /* norms are LayerNorm with bias; else RMS norm */
    bool no_pre_norms; /* attention and feed-forward read the residual without a norm */
    bool post_norms;   /* outputs of attention and feed-forward are normed before they are added */
    bool sum_norms;    /* the residual is normed after each addition */
    /* tokens attend in both directions, a text is one pass, and the result is hidden states */
    bool encoder;
    bool alibi; /* scores fall with the distance (ALiBi) */
    /* each head's q is followed by a gate of the same size; the head's output is multiplied by its
     * sigmoid */
    bool gated_attention;
    /* value heads h and h + delta_k_heads share a key head; else neighbors do */
    bool delta_tiled;
    /* q and k are normed as whole rows; else per head, if they are normed */
    bool qk_norm_rows;
    bool rope_interleaved; /* pairs (2i, 2i+1), else (i, i + n/2) */
    float embedding_scale, residual_scale, attention_scale;
    bool divides_by_layer; /* scores are divided by the number of the layer, 1 for the first */
    float attention_cap;   /* soft cap of scores; 0: none */
    float logit_divisor;
    float logit_cap;                  /* 0: none */
    struct ak_spec_layer_kind local;  /* layers other than the global ones */
    struct ak_spec_layer_kind global; /* every n-th layer, n = global_every */
    uint32_t global_every;            /* 0: no global layers */
    bool global_first;                /* the first of every n layers is global; else the last */
    /* rotary base of AK_SPEC_ROTATE_LOCAL, which is never scaled */
    float local_rope_base;
    bool has_experts;         /* experts instead of one feed-forward */
    bool normalized_experts;  /* the weights of a token's experts sum to 1 */
    enum ak_role ffn_norm;    /* norm before the feed-forward or the experts */
    enum ak_role output_norm; /* final norm */
    uint64_t state_elems;     /* floats of a sequence's recurrent state per layer */
};

/* Dimensions of weights. */
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
    AK_SPEC_DIM_DELTA_HEAD,
    AK_SPEC_DIM_ENCODER_CONTEXT,
    AK_SPEC_DIM_FRAMES, /* the mel frames that an encoder's position reads: four */
    AK_SPEC_DIM_FRAME_PAIR
};

enum ak_arch_need {
    AK_ARCH_REQUIRED,
    AK_ARCH_OPTIONAL,
    AK_ARCH_REQUIRED_FROM_SECOND, /* required in every layer except the first */
    AK_ARCH_OUTPUT_OR_TIED,       /* if absent, the embedding serves as output matrix */
    AK_ARCH_ATTENTION_ONLY,       /* required in layers with attention, absent in others */
    AK_ARCH_RECURRENT_ONLY,       /* required in recurrent layers, absent in others */
    AK_ARCH_RECURRENT_MERGED,     /* recurrent layers, optional: one merged matrix */
    AK_ARCH_RECURRENT_PART        /* recurrent layers: required unless the merged one is there */
};

/* A weight that an architecture declares. Vectors have rows AK_SPEC_DIM_ONE; experts' weights have
 * the rows and columns of one expert. `hf` is the name in Hugging Face checkpoints: "{n}" stands
 * for the layer, "{e}" for the expert if each expert has its own tensor. Parts of a merged tensor
 * have the same name. */
struct ak_arch_rule {
    enum ak_role role;
    enum ak_spec_dim rows, cols;
    enum ak_arch_need need;
    const char *hf;
};

/* A merged tensor: a stored tensor that holds several roles, row range after row range (vectors:
 * element range). */
struct ak_arch_merged_tensor {
    enum ak_role stored;
    uint32_t n_parts;
    enum ak_role parts[3];
};

/* Another name of a weight in checkpoints of the architecture, such as MLX's. */
struct ak_arch_alias {
    enum ak_role role;
    const char *hf;
};

/* The head that transformers' class for scores of texts has (head.c). */
enum ak_arch_head {
    AK_ARCH_HEAD_SCORE,      /* score: language models */
    AK_ARCH_HEAD_POOLER,     /* pooler.dense, then classifier: BERT */
    AK_ARCH_HEAD_CLASSIFIER, /* classifier.dense, then classifier.out_proj: RoBERTa */
    AK_ARCH_HEAD_NONE,       /* none, or one that akunu lacks */
    AK_ARCH_N_HEADS
};

struct ak_spec;

/* An architecture: one file, and one line in architectures.def. */
struct ak_arch {
    const char *const *names; /* values of general.architecture and model_type; ends in NULL */
    const char *description;  /* the models of the architecture, for people */
    const char *gguf_name;    /* GGUF's name of the architecture; NULL: the first name */
    const struct ak_arch_keys *keys; /* what it knows of configurations, by model_type */
    uint32_t n_keys;
    /* key that may override the descriptor's activation; NULL: none */
    const char *activation_key;
    bool has_experts; /* if two architectures share a name: this one takes the files with experts */
    /* if architectures share a name: true for files that this one takes, although an earlier
     * architecture has the name too; NULL: all */
    bool (*accepts)(const struct ak_provider *p);
    /* Reads this architecture's own hyper-parameters; NULL: it has none. */
    ak_status (*configure)(const struct ak_provider *p, struct ak_spec_config *config,
                           struct ak_error *error);
    enum ak_arch_head head;
    bool has_recurrent_layers; /* layers may have recurrent state instead of attention */
    /* Sets the descriptor. `config` is read and validated. Rejects values that the architecture
     * cannot have. */
    ak_status (*describe)(const struct ak_provider *p, const struct ak_spec_config *config,
                          struct ak_spec_descriptor *out, struct ak_error *error);
    const struct ak_arch_rule *weights;
    uint32_t n_weights;
    const struct ak_arch_merged_tensor *merged_tensors;
    uint32_t n_merged_tensors;
    const struct ak_arch_alias *aliases;
    uint32_t n_aliases;
    /* GGUF stores the rows of q and k permuted, so that rotated pairs are neighbors */
    bool gguf_interleaved;
    /* GGUF stores the value heads of the gated delta rule permuted: descriptor.delta_tiled */
    bool gguf_tiled;
    bool hf_transposed; /* Hugging Face stores the layers' matrices as [cols, rows] */
    /* Hugging Face counts positions from the padding token's id plus one */
    bool hf_padded_positions;
    bool hf_experts_transposed; /* Hugging Face stores expert stacks as [experts, cols, rows] */
    /* experts' weights merged in a tensor are row range after row range; else their rows
     * alternate */
    bool hf_experts_concatenated;
    /* Hugging Face stores norm vectors minus this, except DELTA_NORM */
    float hf_norm_offset;
    /* before the keys of the decoder's hyper-parameters; NULL: the architecture's name */
    const char *key_prefix;
    bool has_openai_names; /* GGUF files have OpenAI's names of tensors: ak_whisper_name */
    void (*emit)(struct ak_builder *b, const struct ak_spec *spec);
    /* the encoder in front of the decoder; NULL: there is none */
    void (*emit_encoder)(struct ak_builder *b, const struct ak_spec *spec);
};

/* How a text's embedding is made: which tokens, and what becomes of their hidden states, as the
 * files say (pooling.c, sentence.c). */
enum { AK_POOLINGS_MAX = 6 }; /* kinds whose results are joined */
struct ak_spec_pooling {
    enum akunu_pooling kinds[AK_POOLINGS_MAX]; /* [n_kinds], never AKUNU_POOLING_MODEL */
    uint32_t n_kinds;                          /* at least 1 */
    bool is_stated;                            /* the files say so; else the default */
    bool is_normalized;                        /* embeddings are scaled to unit length */
    bool leaves_prompt_out;                    /* tokens of the prompt are not pooled */
    bool cuts_left;                            /* a text that is too long loses its beginning */
    uint32_t max_tokens;                       /* longer texts are cut; 0: they are not */
    uint32_t n_elements;                       /* of an embedding; 0: all */
    struct json_t *prompts;                    /* names and texts; NULL: none */
    struct json_t *default_prompt;             /* the name of one; NULL: none */
    /* what the files ask for and is not supported, for messages; "": nothing */
    char unsupported[160];
};

/* A head for scores of pairs of texts: indices of its tensors, -1: none. */
struct ak_spec_head {
    uint32_t n_labels; /* scores; 0: the model has no head, and all else is 0 */
    uint32_t n_dense;  /* rows of the dense layer; 0: it has none */
    int64_t dense, dense_bias, out, out_bias;
    bool is_softmax; /* the scores are probabilities */
};

/* Everything about a model except its weights. */
struct ak_spec {
    struct ak_spec_config config;
    struct ak_spec_rope rope;
    /* the user's scaling, on top of Llama 3's or LongRoPE's divisors in `rope`; magnitude 0:
     * none */
    struct ak_spec_rope added_rope;
    const struct ak_arch *arch;
    struct ak_spec_descriptor descriptor;
    struct ak_spec_pooling pooling;
    struct ak_spec_head head;
    uint32_t n_rotations;                     /* tables in use */
    float *inverse_frequencies;               /* [n_rotations][rope_dims/2], radians per position */
    float magnitude[AK_SPEC_ROPE_TABLES_MAX]; /* factor of cosine and sine */
    /* replaces the first table in sessions with at most rope.original_context tokens; NULL: none */
    float *short_frequencies;

    /* Of a rank: the model that ranks share, of which `config` has the rank's heads and elements;
     * the rank, and its first heads. NULL: all of the model is computed here */
    const struct ak_spec *whole;
    enum akunu_split split;
    uint32_t n_ranks, rank, first_head, first_kv_head;
};

/* Number of rotary tables in use; 0: no layer is rotated. */
uint32_t ak_spec_count_rotations(const struct ak_spec_descriptor *d);

void ak_spec_clear(struct ak_spec *spec); /* partly built ones too */

/* ---- Ranks: shard.c ----------------------------------------------------- */
/* What a rank of n_ranks computes of a model. *out borrows all that `whole` points to, which must
 * outlive it; it is not cleared. AKUNU_ERROR_UNSUPPORTED: more ranks than heads or, split by
 * layers, than layers; or a model that is not split so. */
ak_status ak_spec_take_shard(const struct ak_spec *whole, enum akunu_split split, uint32_t n_ranks,
                             uint32_t rank, struct ak_spec *out, struct ak_error *error);
/* Whether several ranks compute it; whether each of them computes a part of every layer, or some of
 * the layers. */
bool ak_spec_is_shared(const struct ak_spec *spec);
bool ak_spec_has_shards(const struct ak_spec *spec);
bool ak_spec_has_layers(const struct ak_spec *spec);
/* The layers [first, end) that are computed here: all, unless ranks split the model by layers. */
uint32_t ak_spec_first_layer(const struct ak_spec *spec);
uint32_t ak_spec_end_layer(const struct ak_spec *spec);
/* Whether the output, after the last layer, is computed here. */
bool ak_spec_has_output(const struct ak_spec *spec);
/* Whether the weight, or rows of it, are needed here. */
bool ak_spec_has_weight(const struct ak_spec *spec, enum ak_role role, int layer);
/* How ranks divide an activation of this many elements: heads, or elements of a feed-forward
 * network. False: every rank has all of it. */
bool ak_spec_shard(const struct ak_spec *spec, enum ak_spec_dim dim, struct ak_op_shard *out);
/* What the spec's rank does with the rows of an operator. */
enum ak_op_shards ak_spec_shards(const struct ak_spec *spec, enum ak_op_linear linear);
/* How ranks divide n rows of an operator's weight, and so n elements of its output, unless these
 * are heads or elements that ranks keep. */
struct ak_op_shard ak_spec_shard_of(const struct ak_spec *spec, enum ak_op_linear linear,
                                    uint32_t n);
/* The rows of the rank, out of the n of a weight or bias that is declared with `dim`. */
void ak_spec_shard_rows(const struct ak_spec *spec, enum ak_op_linear linear, enum ak_spec_dim dim,
                        uint32_t n, uint32_t *first, uint32_t *n_rows);

/* Layers of a role: the encoder's or the decoder's, 1 outside of layers. */
uint32_t ak_spec_role_layers(const struct ak_spec *spec, enum ak_role role);

/* Window and rotation of a layer. */
const struct ak_spec_layer_kind *ak_spec_layer(const struct ak_spec *spec, int layer);

/* True if the layer has recurrent state instead of attention. */
bool ak_spec_is_recurrent(const struct ak_spec_config *config, int layer);

/* The layer's index in the KV cache, which has ak_spec_kv_layers() layers. All layers of an encoder
 * share one: its contents are needed only until the next layer. */
uint32_t ak_spec_kv_layer(const struct ak_spec *spec, int layer);
uint32_t ak_spec_kv_layers(const struct ak_spec *spec);

/* Offset of the layer's state among the ak_spec_state_elems() floats of a sequence. */
uint64_t ak_spec_state_offset(const struct ak_spec *spec, int layer);
uint64_t ak_spec_state_elems(const struct ak_spec *spec);
/* Gated delta rule: floats of the convolution at the beginning of a layer's state. */
uint64_t ak_spec_conv_elems(const struct ak_spec *spec);

uint32_t ak_spec_dim(const struct ak_spec *spec, enum ak_spec_dim dim);

#endif
