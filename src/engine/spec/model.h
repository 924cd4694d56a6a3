/* Model description: hyper-parameters, architecture, rotary tables and pooling, the same for every
 * file format. engine/session/, conversion/convert/ and conversion/compress/ read it from the file,
 * engine/pack/ binds weights by it, engine/dispatch/ builds command lists from it, and bench/ makes
 * synthetic models with it; engine/backend/, engine/backends/, engine/cpu/, opencl/, api/,
 * engine/generate/ and engine/persist/ read its members. Each architecture is implemented by one
 * file of this folder, which defines a struct ak_arch. */
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

/* Number of rotary tables in use; 0: no layer is rotated. */
uint32_t ak_spec_count_rotations(const struct ak_spec_descriptor *d);

/* YaRN's own factor of cosine and sine. */
float ak_spec_yarn_magnitude(float factor);

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
void ak_spec_set_recurrent(struct ak_spec_config *config, uint32_t layer);
/* Of layers that are not every n-th: a layer has no window; the first n layers have none. */
void ak_spec_set_global(struct ak_spec_config *config, uint32_t layer);
void ak_spec_set_global_layers(struct ak_spec_config *config, uint32_t n);
/* Sets global_every if the layers without a window are the last ones of every n. */
void ak_spec_find_interval(struct ak_spec_config *config);

/* The layer's index in the KV cache, which has ak_spec_kv_layers() layers. All layers of an encoder
 * share one: its contents are needed only until the next layer. */
uint32_t ak_spec_kv_layer(const struct ak_spec *spec, int layer);
uint32_t ak_spec_kv_layers(const struct ak_spec *spec);

/* Offset of the layer's state among the ak_spec_state_elems() floats of a sequence. */
uint64_t ak_spec_state_offset(const struct ak_spec *spec, int layer);
uint64_t ak_spec_state_elems(const struct ak_spec *spec);
/* Gated delta rule: floats of the convolution at the beginning of a layer's state. */
uint64_t ak_spec_conv_elems(const struct ak_spec *spec);

/* What Hugging Face checkpoints subtract from a norm vector of this role. */
float ak_arch_norm_offset(const struct ak_arch *arch, enum ak_role role);

/* GGUF's name of the architecture. */
const char *ak_arch_gguf_name(const struct ak_arch *arch);
/* GGUF's name of a tensor, with "{n}" for the layer; NULL: none. */
const char *ak_arch_gguf_tensor(const struct ak_arch *arch, enum ak_role role);

/* The merged tensor that holds the role; NULL: none. */
const struct ak_arch_merged_tensor *ak_arch_find_merged(const struct ak_arch *arch,
                                                        enum ak_role role);

uint32_t ak_spec_dim(const struct ak_spec *spec, enum ak_spec_dim dim);

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
