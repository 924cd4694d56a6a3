/* akunu/core.h: the base of the public API: errors, models, sessions, embeddings and generating
 * text. All other public headers include it, and it compiles alone. Conventions that hold for every
 * function are at the top of akunu.h. */
#ifndef AKUNU_CORE_H
#define AKUNU_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define AKUNU_API __attribute__((visibility("default")))
#else
#define AKUNU_API
#endif

#define AKUNU_VERSION_MAJOR 0
#define AKUNU_VERSION_MINOR 1
#define AKUNU_VERSION_PATCH 0

/* ---- Status ------------------------------------------------------------- */
enum akunu_status {
    AKUNU_OK = 0,
    AKUNU_ERROR_ARGUMENT = 1,    /* a value from the caller is out of range */
    AKUNU_ERROR_FORMAT = 2,      /* a file cannot be read, is damaged or has an unknown format */
    AKUNU_ERROR_UNSUPPORTED = 3, /* a valid file or request that akunu cannot serve */
    AKUNU_ERROR_MEMORY = 4,      /* out of memory */
    AKUNU_ERROR_CONTEXT = 5,     /* the tokens do not fit the context or the pass */
    AKUNU_ERROR_IO = 6,          /* reading or writing failed */
    AKUNU_ERROR_CANCELLED = 7,   /* a callback asked to stop */
    AKUNU_ERROR_SYSTEM = 8,      /* the operating system refused something else */
    AKUNU_ERROR_NUMERIC = 9,     /* the model computed infinity or NaN where a number is needed */
    AKUNU_ERROR_BUSY = 10        /* another call uses the session, or another process the folder */
};

/* "ok", "argument", "format", … Never NULL. */
AKUNU_API const char *akunu_status_name(enum akunu_status status);

/* Message of the calling thread's last failed call; "" before the first one. Valid until the next
 * failed call of this thread. Calls that succeed leave it as it is. */
AKUNU_API const char *akunu_last_error(void);

/* Status of that call, for functions that return a handle or a number; AKUNU_OK before the first
 * failure. */
AKUNU_API enum akunu_status akunu_last_status(void);

/* Version of the library: "0.1.0". */
AKUNU_API const char *akunu_version(void);

/* One line about the build: version, compiler, architecture, ISAs. */
AKUNU_API const char *akunu_build_info(void);

/* Ordered by importance. */
enum akunu_log_level {
    AKUNU_LOG_DEBUG = 0,
    AKUNU_LOG_INFO = 1,
    /* nothing is wrong, but the user should know: files that are kept on disk for the first time,
     * or were removed because the cache reached its limit */
    AKUNU_LOG_NOTICE = 2,
    AKUNU_LOG_WARN = 3
};

/* Gets a log line, without a newline. */
typedef void akunu_log_fn(enum akunu_log_level level, const char *line, void *user);

/* Gets the fraction of the work that is done, 0 … 1. Return false to stop the call with
 * AKUNU_ERROR_CANCELLED. */
typedef bool akunu_fraction_fn(double fraction, void *user);

/* Return true to stop the call with AKUNU_ERROR_CANCELLED. The function is called often, so it
 * should only read a flag. */
typedef bool akunu_cancel_fn(void *user);

/* ---- Models ------------------------------------------------------------- */
struct akunu_model;
struct akunu_tokenizer; /* text.h */
struct akunu_file;      /* files.h */
typedef int32_t akunu_token;

/* Stages of akunu_model_load, in this order. Each one is reported when it ends, even if there was
 * nothing to do. AKUNU_STAGE_WEIGHTS also reports its progress. */
enum akunu_load_stage {
    AKUNU_STAGE_BACKEND = 1,
    AKUNU_STAGE_KERNELS = 2,
    AKUNU_STAGE_FORMAT = 3,
    AKUNU_STAGE_OPEN = 4,
    AKUNU_STAGE_CONFIG = 5,
    AKUNU_STAGE_ARCHITECTURE = 6,
    AKUNU_STAGE_PROFILE = 7,
    AKUNU_STAGE_QUIRKS = 8,
    AKUNU_STAGE_ROPE = 9,
    AKUNU_STAGE_VALIDATE = 10,
    AKUNU_STAGE_TOKENIZER = 11,
    AKUNU_STAGE_KV = 12,
    AKUNU_STAGE_SCRATCH = 13,
    AKUNU_STAGE_TABLE = 14,
    AKUNU_STAGE_SAMPLED_TABLE = 15,
    AKUNU_STAGE_WEIGHTS = 16,
    AKUNU_STAGE_WARMUP = 17,
    AKUNU_STAGE_READY = 18
};
/* "backend", "kernels", … */
AKUNU_API const char *akunu_load_stage_name(enum akunu_load_stage stage);

/* Gets the fraction of the stage that is done, 0 … 1. Return false to stop the load with
 * AKUNU_ERROR_CANCELLED. */
typedef bool akunu_progress_fn(enum akunu_load_stage stage, double fraction, void *user);

/* Library that multiplies weights with many tokens at once, as in a prompt. */
enum akunu_prefill {
    AKUNU_PREFILL_AUTO = 0, /* as the chip profile says if `relaxed` is set, otherwise own */
    AKUNU_PREFILL_OWN = 1,  /* akunu's kernels */
    AKUNU_PREFILL_BLAS = 2  /* OpenBLAS, if found, on weights as floats; rounds differently */
};

enum akunu_rope_scaling {
    AKUNU_ROPE_SCALING_MODEL = 0, /* the model's scaling; linear if it has none */
    AKUNU_ROPE_SCALING_NONE = 1,
    AKUNU_ROPE_SCALING_LINEAR = 2, /* position interpolation */
    AKUNU_ROPE_SCALING_YARN = 3
};

/* Values that replace the model's parameters of rotary positions, with llama.cpp's names and
 * meanings. Frequency divisors of the model (Llama 3.1, LongRoPE) stay, and the scaling is applied
 * in addition. */
struct akunu_rope {
    enum akunu_rope_scaling scaling;
    float freq_base;        /* 0: the model's */
    float freq_scale;       /* 1 / factor by which the context is extended; 0: the model's */
    uint32_t yarn_orig_ctx; /* tokens of the unscaled context; 0: the model's */
    /* share of the unscaled frequency in dimensions that rotate fast; 0: 1 for YaRN; negative: 0 */
    float yarn_ext_factor;
    /* multiplies cosine and sine, in addition to the factors of the model and of YaRN; 0: 1 */
    float yarn_attn_factor;
    float yarn_beta_fast, yarn_beta_slow; /* 0: the model's, or 32 and 1 if it has none */
};

struct akunu_comm; /* comm.h */

/* How the processes of a comm divide a model. */
enum akunu_split {
    /* Each process has some rows of every weight. A token takes less time, but many exchanges. */
    AKUNU_SPLIT_ROWS = 0,
    /* Each process has some of the layers. A pass takes one exchange per process, which suits slow
     * links. Processes work on parts of a prompt at the same time, but on a token in turn. */
    AKUNU_SPLIT_LAYERS = 1
};

/* LoRA adapter: a GGUF file or a PEFT folder. */
struct akunu_adapter {
    const char *path;
    float scale; /* multiplies what the adapter adds; 0: the file is checked and not used */
};

/* How a model is loaded. "$NAME, a, b" means the environment variable if it is set, then a, then b.
 * The library copies everything; `log`, `progress` and `user` are used during the load only. */
struct akunu_load_params {
    size_t size;
    const char *cpu;    /* highest ISA ("avx2"); NULL: $AKUNU_CPU, the best available */
    unsigned n_threads; /* for packing; 0: $AKUNU_THREADS, the profile's, the physical cores */
    bool strict;        /* fail if the file has a tensor that the model does not use */
    bool warm_up;       /* touch the weights and run one token before returning */
    bool no_cache;      /* pack weights into memory instead of using the packed cache */
    /* cache folder; NULL: $AKUNU_CACHE_DIR, $XDG_CACHE_HOME/akunu, ~/.cache/akunu */
    const char *cache_dir;
    akunu_progress_fn *progress; /* NULL: none */
    akunu_log_fn *log;           /* NULL: silent */
    void *user;                  /* passed to both callbacks */
    /* path of the only chip profile to use; NULL: $AKUNU_PROFILE, the system's and then the
     * user's */
    const char *profile;
    /* Use faster kernels that round differently. Results then depend on the machine, the batch and
     * the number of threads. */
    bool relaxed;
    enum akunu_prefill prefill;
    /* metadata that replaces the file's: "KEY=TYPE:VALUE", where TYPE is int, float, bool or str;
     * NULL: none. AKUNU_ERROR_ARGUMENT: a key is neither in the file nor used by the model. */
    const char *const *override_kv;
    const char *backend; /* "cpu" or "opencl"; NULL: $AKUNU_BACKEND, "cpu" */
    /* device of that backend: its number in akunu_get_device, or a part of its name; NULL:
     * $AKUNU_DEVICE, the first usable one */
    const char *device;
    /* number of layers on the device: the last ones, and the output with them; the CPU runs the
     * others. 0: none; -1: all (-1) */
    int n_gpu_layers;
    /* Limit, in bytes, of all packed weights in the cache folder. The least recently used files are
     * removed, except those that a process has mapped. 0: a fifth of the disk; UINT64_MAX: no
     * limit. */
    uint64_t cache_limit;
    struct akunu_rope rope; /* AKUNU_ERROR_UNSUPPORTED for models without rotary positions */
    /* [n_adapters]: adapters whose sum is added to the products of the model's weights, which stay
     * as they are. AKUNU_ERROR_FORMAT: not an adapter, or its shapes differ from the model's.
     * AKUNU_ERROR_UNSUPPORTED: not a plain LoRA, or made for another architecture. */
    const struct akunu_adapter *adapters;
    size_t n_adapters;
    /* Quantizes the model while it is packed, to a type or mix as in akunu_quantize_params ("Q8_0",
     * "Q4_K_M"); NULL: keep the stored types. Results and errors are those of the file that
     * akunu_quantize would write, to the bit. AKUNU_ERROR_ARGUMENT: the type is unknown or
     * needs importance, or the model is quantized already. AKUNU_ERROR_UNSUPPORTED: the model is
     * loaded without a path, or GGUF cannot express it. */
    const char *quantize;
    const char *importance; /* file of an importance matrix for `quantize`; NULL: none */
    /* processes that share the model; NULL: this process has all of it. Needs the backend "cpu". */
    struct akunu_comm *comm;
    enum akunu_split split; /* used with `comm` */
    /* Full names of keys of the configuration ("hidden_act", "llama.rope.scaling.type") that are
     * treated as absent. A model with an unsupported key can then be loaded. NULL: none. */
    const char *const *ignore_keys;
};
AKUNU_API void akunu_load_params_default(struct akunu_load_params *params, size_t size);

/* Loads the model at `path` (see akunu_file_open for the formats). The result is immutable. */
AKUNU_API struct akunu_model *akunu_model_load(const char *path,
                                               const struct akunu_load_params *params);
/* Loads a model from a descriptor that is open for reading: a GGUF file in one part, which is read
 * from its beginning whatever the position of the descriptor. The caller keeps the descriptor and
 * may close it after the call. A file without a name (deleted, or a memfd) is packed into memory
 * without the packed cache. AKUNU_ERROR_ARGUMENT: fd is not open. AKUNU_ERROR_FORMAT: not a regular
 * file, not readable, or not GGUF. AKUNU_ERROR_UNSUPPORTED: a part of a split file. */
AKUNU_API struct akunu_model *akunu_model_load_fd(int fd, const struct akunu_load_params *params);
/* Sessions and templates that were made from the model keep working. */
AKUNU_API void akunu_model_free(struct akunu_model *model);

/* How the last hidden states of a text's tokens become its embedding. */
enum akunu_pooling {
    AKUNU_POOLING_MODEL = 0,        /* as the model's files say (akunu_model_info) */
    AKUNU_POOLING_MEAN = 1,         /* mean of all tokens, special ones included */
    AKUNU_POOLING_CLS = 2,          /* the first token */
    AKUNU_POOLING_LAST = 3,         /* the last token */
    AKUNU_POOLING_MAX = 4,          /* the largest value of each element */
    AKUNU_POOLING_MEAN_SQRT = 5,    /* sum of all tokens, divided by the root of their number */
    AKUNU_POOLING_WEIGHTED_MEAN = 6 /* mean in which token i, counted from 1, has weight i */
};

enum akunu_normalize {
    AKUNU_NORMALIZE_MODEL = 0, /* as the model's files say (akunu_model_info) */
    AKUNU_NORMALIZE_NONE = 1,
    AKUNU_NORMALIZE_L2 = 2 /* to unit length */
};

struct akunu_model_info {
    const char *name;         /* from the file; "": none */
    const char *architecture; /* "llama" */
    const char *format;       /* "gguf", "safetensors", "npy-dir" */
    const char *weight_type;  /* the type that most bytes of the weights have */
    const char *cpu;          /* the ISA in use */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size;
    uint32_t context; /* tokens that the model was made for */
    uint64_t n_parameters;
    /* bytes of weights that are read to decode one token; of experts, only those in use */
    uint64_t token_weight_bytes;
    /* parameters in the matrices of layers: a token of a prompt takes twice as many operations */
    uint64_t matrix_parameters;
    uint64_t float_parameters; /* of these, multiplied as floats; the others as int8 */
    bool encoder;              /* makes embeddings and cannot generate text */
    /* Pooling of embeddings. If the files do not say: the mean for encoders, the last token for
     * language models. AKUNU_POOLING_MODEL: several kinds, whose results are concatenated. */
    enum akunu_pooling pooling;
    /* embeddings have unit length; as the files of sentence-transformers say, always for GGUF */
    bool normalized;
    uint32_t n_scores; /* scores per pair in akunu_session_score; 0: not a reranker */
    /* Speech models: log-mel filters, and positions of the encoder, 20 ms each. 0: not a speech
     * model. */
    uint32_t n_mels, encoder_context;
    uint32_t n_encoder_layers; /* of a speech model, whose decoder has n_layers; else 0 */
};
AKUNU_API enum akunu_status akunu_model_get_info(const struct akunu_model *model,
                                                 struct akunu_model_info *info, size_t size);

/* The model's tokenizer; NULL: the file has no vocabulary. */
AKUNU_API const struct akunu_tokenizer *akunu_model_tokenizer(const struct akunu_model *model);

/* The file from which the model was loaded, for its metadata and tensors. */
AKUNU_API const struct akunu_file *akunu_model_file(const struct akunu_model *model);

/* ---- Thread pools ------------------------------------------------------- */
/* Threads that several sessions share (akunu_session_params.pool), so that ten sessions do not
 * start ten times as many threads as there are cores. Sessions that share a pool run one pass at a
 * time; the others wait. The thread that calls a session works too, as thread 0. */
struct akunu_pool;

/* n_threads counts the calling thread; 0: $AKUNU_THREADS, the physical cores. cpus: as in
 * akunu_session_params, or NULL. AKUNU_ERROR_ARGUMENT: more than 4096 threads, or a CPU that this
 * process may not use. AKUNU_ERROR_MEMORY: a thread cannot be started. */
AKUNU_API struct akunu_pool *akunu_pool_new(unsigned n_threads, const char *cpus);
/* Sessions that use the pool keep it alive. */
AKUNU_API void akunu_pool_free(struct akunu_pool *pool);
/* Number of threads, including the calling one; 0: pool is NULL. */
AKUNU_API unsigned akunu_pool_threads(const struct akunu_pool *pool);

/* ---- Sessions ----------------------------------------------------------- */
/* Sequences, their KV cache, and the memory of a pass. A session runs one call at a time: a second
 * call, from a callback or from another thread, fails with AKUNU_ERROR_BUSY and changes nothing.
 * Functions that decode or generate fail with AKUNU_ERROR_UNSUPPORTED for encoders. */
struct akunu_session;

/* Types of keys and values. Quantized types need a head_dim that is a multiple of 32. Devices have
 * F16, F32, BF16, Q8_0 and Q4_0. */
enum akunu_kv_type {
    AKUNU_KV_F16 = 0,
    AKUNU_KV_F32 = 1,
    AKUNU_KV_BF16 = 2,
    AKUNU_KV_Q8_0 = 3,
    AKUNU_KV_Q4_0 = 4,
    AKUNU_KV_Q4_1 = 5,
    AKUNU_KV_IQ4_NL = 6,
    AKUNU_KV_Q5_0 = 7,
    AKUNU_KV_Q5_1 = 8
};

/* Which tokens of a text stay in the KV cache if not all do. The first tokens always stay. */
enum akunu_kv_choice {
    AKUNU_KV_IMPORTANT = 0, /* those that the last tokens of the text pay most attention to */
    AKUNU_KV_RECENT = 1     /* the last ones */
};

/* Smallest number of tokens that can be asked to stay. */
#define AKUNU_KV_KEEP_MIN 256

struct akunu_session_params {
    size_t size;
    /* capacity of the KV cache in tokens, over all sequences; 0: the model's context, or less if
     * kv_bytes_max does not allow it */
    uint32_t context;
    /* largest number of tokens in a pass; 0: the chip profile's, else 512, or 64 if processes share
     * the model by layers. For encoders and speech models at least the context. */
    uint32_t batch;
    uint32_t max_sequences;            /* 0: 1, for encoders 64 */
    unsigned n_threads;                /* 0: as in akunu_load_params */
    enum akunu_kv_type k_type, v_type; /* ignored for encoders and speech models */
    akunu_log_fn *log; /* NULL: silent. Used, with `user`, as long as the session lives. */
    void *user;
    /* CPUs to which threads are pinned, as "0-3,8": thread i to entry i. Thread 0 is the calling
     * thread, which the caller pins. NULL: threads are not pinned. */
    const char *cpus;
    /* threads to share with other sessions; n_threads must then be 0 or the pool's, and cpus NULL.
     * NULL: the session starts its own threads. */
    struct akunu_pool *pool;
    /* if `context` is 0: largest size of the KV cache in bytes; 0: half of the available memory */
    uint64_t kv_bytes_max;
    /* speech models: windows of audio that may be encoded at once, in addition to max_sequences
     * texts; 0: 1 */
    uint32_t max_windows;
    /* After a prompt was run by akunu_session_prefill, akunu_session_generate or a scheduler, about
     * this many of its tokens stay in the KV cache, as with akunu_sequence_evict. 0: all; otherwise
     * at least AKUNU_KV_KEEP_MIN. */
    uint32_t kv_keep;
    enum akunu_kv_choice kv_choice; /* which tokens kv_keep keeps */
};
AKUNU_API void akunu_session_params_default(struct akunu_session_params *params, size_t size);
/* Allocates all memory that the session will use. The session keeps the model alive. */
AKUNU_API struct akunu_session *akunu_session_new(const struct akunu_model *model,
                                                  const struct akunu_session_params *params);
/* If a callback frees the session that called it, the session is freed when that call ends. */
AKUNU_API void akunu_session_free(struct akunu_session *session);

/* Capacity in tokens over all sequences, largest number of tokens in a pass, and number of threads.
 * Callbacks may call these three. */
AKUNU_API uint32_t akunu_session_context(const struct akunu_session *session);
AKUNU_API uint32_t akunu_session_batch(const struct akunu_session *session);
AKUNU_API unsigned akunu_session_threads(const struct akunu_session *session);

/* One text in the KV cache of a session: a number from 0 on, or -1 on failure. */
typedef int32_t akunu_sequence;
/* An empty sequence. AKUNU_ERROR_ARGUMENT: all max_sequences are in use. */
AKUNU_API akunu_sequence akunu_sequence_new(struct akunu_session *session);
AKUNU_API void akunu_sequence_free(struct akunu_session *session, akunu_sequence sequence);

/* Number of tokens in the sequence; also 0 on failure. */
AKUNU_API uint32_t akunu_sequence_length(struct akunu_session *session, akunu_sequence sequence);

/* Truncates a sequence to its first `length` tokens. Models with recurrent state (lfm2, qwen3next,
 * qwen35) compute the remaining tokens again at the next pass, unless none remain. */
AKUNU_API enum akunu_status akunu_sequence_rewind(struct akunu_session *session,
                                                  akunu_sequence sequence, uint32_t length);

/* Returns a new sequence with the first `length` tokens of another. It shares whole KV pages (64
 * tokens) and copies the rest. Recurrent state is copied if `length` is the whole length, and
 * computed again otherwise. */
AKUNU_API akunu_sequence akunu_sequence_fork(struct akunu_session *session, akunu_sequence sequence,
                                             uint32_t length);

/* Drops tokens of a sequence from the KV cache, in pages of 64, until about n_tokens are left, and
 * frees the pages for other sequences. The first 64 tokens and the last ones stay. For
 * AKUNU_KV_IMPORTANT the others are chosen by the attention that the last 32 tokens pay to them, as
 * in SnapKV (Li et al. 2024, arXiv 2404.14469): these 32 tokens run once more, and the logits of
 * earlier passes can no longer be read.
 *
 * The sequence keeps its length, and every token its position. Later tokens do not see the dropped
 * ones, so the text differs from one with all tokens, but it is the same for any number of threads,
 * batch and ISA. Dropped tokens do not come back. The sequence can therefore be rewound or forked
 * only to a length that ends before the first dropped token or is at least its length now, and it
 * cannot be saved.
 *
 * AKUNU_ERROR_ARGUMENT: n_tokens is less than AKUNU_KV_KEEP_MIN. AKUNU_ERROR_UNSUPPORTED: encoders,
 * speech models, models with recurrent state, and devices. */
AKUNU_API enum akunu_status akunu_sequence_evict(struct akunu_session *session,
                                                 akunu_sequence sequence, uint32_t n_tokens,
                                                 enum akunu_kv_choice choice);

/* The largest length, at most `length`, to which the sequence can be rewound: `length` itself
 * unless tokens were dropped. Also 0 on failure. */
AKUNU_API uint32_t akunu_sequence_rewindable(struct akunu_session *session, akunu_sequence sequence,
                                             uint32_t length);

/* A text as tokens. */
struct akunu_ids {
    const akunu_token *ids; /* [n] */
    size_t n;
};

/* One token of a pass. It is appended to its sequence, after the tokens that precede it in the
 * pass. */
struct akunu_batch_token {
    akunu_token token;
    akunu_sequence sequence;
    bool logits; /* compute its logits */
};

/* Runs n tokens, 1 … akunu_session_batch(), of one or several sequences in one pass. If it fails,
 * no sequence changes. AKUNU_ERROR_CONTEXT: the tokens do not fit; the message has both counts. */
AKUNU_API enum akunu_status akunu_session_decode(struct akunu_session *session,
                                                 const struct akunu_batch_token *tokens, size_t n);

/* Logits of token i of the last pass: [vocab_size], valid until the next pass. NULL: they were not
 * asked for. akunu_session_generate leaves none. */
AKUNU_API const float *akunu_session_logits(struct akunu_session *session, size_t i);

/* Appends a prompt to a sequence, in passes of at most akunu_session_batch() tokens. Afterwards
 * akunu_session_logits(session, *last) has the logits of the prompt's last token. `cancel`, unless
 * NULL, is called before every pass; if it stops the call, tokens that were run stay. */
AKUNU_API enum akunu_status akunu_session_prefill(struct akunu_session *session,
                                                  akunu_sequence sequence,
                                                  const struct akunu_ids *prompt,
                                                  akunu_cancel_fn *cancel, void *user,
                                                  size_t *last);

/* ---- Embeddings --------------------------------------------------------- */
struct akunu_embedding_params {
    size_t size;
    enum akunu_pooling pooling;
    enum akunu_normalize normalize;
    /* elements of an embedding, which must be akunu_model_embedding_width(); 0: the model's
     * width */
    size_t width;
    size_t n_prompt;         /* tokens at the beginning of each text that pooling leaves out */
    akunu_cancel_fn *cancel; /* called before every pass; NULL: none */
    void *user;              /* passed to `cancel` */
};
AKUNU_API void akunu_embedding_params_default(struct akunu_embedding_params *embedding,
                                              size_t size);

/* Elements of an embedding: the model's width, unless its files ask for several kinds of pooling at
 * once or truncate embeddings (truncate_dim of sentence-transformers). */
AKUNU_API uint32_t akunu_model_embedding_width(const struct akunu_model *model,
                                               enum akunu_pooling pooling);

/* Sets the number (0) that error messages give to the first text or pair of the next calls. For
 * callers that pass a long list in parts. */
AKUNU_API void akunu_session_number_texts(struct akunu_session *session, size_t first);

/* Embeds n texts, whose tokens include those that the tokenizer adds (AKUNU_ADD_SPECIAL). out is
 * [n, width] floats: row i belongs to texts[i], and its bits do not depend on the other texts.
 * Encoders and language models both make embeddings. Short texts share a pass, as many as the
 * session has free sequences. An encoder runs a text in one pass, so a text has at most
 * akunu_session_batch() tokens. All texts are checked before the first pass, and no sequence is
 * left behind.
 *
 * AKUNU_ERROR_ARGUMENT: an id is outside the vocabulary, a text has no tokens after its prompt, no
 * sequence is free, or the width is wrong. AKUNU_ERROR_CONTEXT: a text is too long; the message has
 * its number and both counts. AKUNU_ERROR_UNSUPPORTED: the model's files ask for a pooling that
 * akunu lacks. AKUNU_ERROR_NUMERIC: an element of an embedding is not finite. */
AKUNU_API enum akunu_status akunu_session_embed(struct akunu_session *session,
                                                const struct akunu_ids *texts, size_t n,
                                                const struct akunu_embedding_params *embedding,
                                                float *out);

/* A query and a document as one text; akunu_model_encode_pair (text.h) makes its tokens. */
struct akunu_pair {
    const akunu_token *ids; /* [n] */
    size_t n;
    size_t second; /* index of the document's first token, for models that tell the two apart */
};

/* Scores n pairs with a cross-encoder or a reranker. out is [n, n_scores] floats with `n_scores` of
 * akunu_model_info: row i has the output of the model's head for pairs[i], before any sigmoid. For
 * Qwen3's rerankers in GGUF it has the probabilities of "yes" and "no". A higher first score means
 * that the document answers the query better. `cancel`, unless NULL, is called before every pass.
 * Errors are those of akunu_session_embed; also AKUNU_ERROR_UNSUPPORTED: the model has no head. */
AKUNU_API enum akunu_status akunu_session_score(struct akunu_session *session,
                                                const struct akunu_pair *pairs, size_t n,
                                                akunu_cancel_fn *cancel, void *user, float *out);

/* ---- Generating --------------------------------------------------------- */
struct akunu_sampling_params; /* sample.h */
struct akunu_logprob;

/* Speculative decoding drafts tokens and verifies them in one pass. It changes only the speed: the
 * text is the same without it, at every temperature. The number of drafted tokens follows the
 * acceptance rate and the measured cost of passes. */
enum akunu_speculation {
    AKUNU_SPECULATION_AUTO = 0, /* every available drafter, if the model allows speculation */
    AKUNU_SPECULATION_NONE = 1,
    AKUNU_SPECULATION_NGRAM = 2, /* drafts what followed the same tokens earlier in the text */
    AKUNU_SPECULATION_DRAFT = 3  /* a draft model only */
};

/* The reasoning with which an answer begins, between two markers, and its budget.
 * akunu_get_reasoning (text.h) finds the markers, and whether the prompt ends inside reasoning. */
struct akunu_reasoning {
    size_t size;
    /* Largest number of reasoning tokens in an answer, without the markers (-1). When it is used
     * up, the tokens of `closing` take the place of sampled ones. Until then the text is the same
     * as without a budget. 0: reasoning ends where it begins; -1: no limit. */
    int64_t budget;
    const char *begin, *end; /* "<think>", "</think>"; NULL: answers have no reasoning */
    const char *closing;     /* text that ends reasoning and begins the content; usually `end` */
    bool begins_anywhere;    /* `begin` may also be in the middle of a text */
    bool is_open;            /* the prompt ends inside reasoning */
};
AKUNU_API void akunu_reasoning_default(struct akunu_reasoning *reasoning, size_t size);

/* Gets a new token of completion `index`, and the n_bytes of UTF-8 text that it completed: whole
 * characters, or none, without a NUL. Text that is left at the end of the completion comes with
 * token -1. index is 0 unless there are parallel completions. Return false to end the completion
 * (AKUNU_STOP_CALLBACK). */
typedef bool akunu_piece_fn(size_t index, akunu_token token, const char *text, size_t n_bytes,
                            void *user);

/* Gets the log-probability of a sampled token of completion `index`, and the n_top most likely
 * tokens, as in akunu_logprobs_compute. */
typedef void akunu_logprobs_fn(size_t index, akunu_token token, float logprob,
                               const struct akunu_logprob *top, size_t n_top, void *user);

/* Gets the logits [n_vocab] from which the next token of completion `index` is sampled, and may
 * change them: INFINITY forces a token, -INFINITY forbids it. */
typedef void akunu_logits_fn(size_t index, float *logits, size_t n_vocab, void *user);

struct akunu_generation_params {
    size_t size;
    int64_t max_tokens;                           /* -1: until the text or the context ends (-1) */
    const struct akunu_sampling_params *sampling; /* NULL: defaults */
    akunu_piece_fn *on_piece;                     /* NULL: none */
    akunu_cancel_fn *cancel; /* called before every pass, also of the prompt; NULL: none */
    void *user;              /* passed to all callbacks of this struct */
    bool special;            /* the text includes control tokens */

    /* AKUNU_ERROR_UNSUPPORTED: a kind is requested, or a draft session is given, but the model does
     * not allow speculation: models with recurrent state, devices, relaxed rounding. */
    enum akunu_speculation speculation;
    /* A session of a smaller model with the same vocabulary and of the same capacity, and a
     * sequence in it, which follows this text. Pass both again in the next call. NULL: none.
     * AKUNU_ERROR_ARGUMENT: the vocabularies differ; the message says where. */
    struct akunu_session *draft;
    akunu_sequence draft_sequence;
    uint32_t draft_max; /* most draft tokens per pass, at most 15; 0: 15 */
    uint32_t draft_min; /* shorter drafts are not run; 0: 1 */
    float draft_p_min;  /* a draft ends at a token of lower probability */

    /* Called for each token, just before on_piece. It changes no text, but takes a walk over the
     * vocabulary per token. NULL: none. */
    akunu_logprobs_fn *on_logprobs;
    uint32_t n_top_logprobs; /* at most the size of the vocabulary */

    /* [n_stops] stop sequences: the text ends before the first one that occurs in it. Text that
     * could begin a stop sequence is withheld. At most 64, of 1 to 1024 bytes each. */
    const char *const *stops;
    size_t n_stops;

    /* NULL: reasoning has no budget. A grammar that does not allow `closing` ends the budget. */
    const struct akunu_reasoning *reasoning;

    /* Called once for each token, in the order of the text, before grammar, bias and samplers.
     * Log-probabilities are those of the logits before the call. NULL: none. */
    akunu_logits_fn *on_logits;
};
AKUNU_API void akunu_generation_params_default(struct akunu_generation_params *generation,
                                               size_t size);

enum akunu_stop {
    AKUNU_STOP_END = 1,      /* an end token, or the grammar allows nothing more */
    AKUNU_STOP_LENGTH = 2,   /* max_tokens */
    AKUNU_STOP_CONTEXT = 3,  /* the context is full */
    AKUNU_STOP_CALLBACK = 4, /* on_piece returned false */
    AKUNU_STOP_TEXT = 5      /* a stop sequence */
};

struct akunu_result {
    size_t size;
    enum akunu_stop stop; /* why the text ended */
    /* tokens of the prompt that were run; generated tokens, without the one that ended the text */
    uint64_t n_prompt, n_generated;
    double prompt_seconds;          /* until the first token was sampled */
    double generate_seconds;        /* from then on */
    uint64_t n_drafted, n_accepted; /* drafted tokens, and how many of them were accepted */
    uint64_t n_kept;   /* akunu_session_complete: tokens of the prompt that the sequence had */
    size_t stop_index; /* for AKUNU_STOP_TEXT: index in generation->stops */
    /* akunu_request.chain: last value of a hash chain over the generated tokens, without the one
     * that ended the text. Each value is the SHA-256 of the value before it (32 zero bytes at
     * first), the token as int32, and the logits [vocab_size] from which it was sampled as float32,
     * before bias and samplers; both are little-endian. Otherwise 0. */
    uint8_t chain[32];
};
AKUNU_API void akunu_result_default(struct akunu_result *result, size_t size);

/* Appends a prompt to a sequence, then generates text. Nothing is allocated per token. A token that
 * ends the text is neither reported nor counted. The last reported token is in the sequence only if
 * such a token followed it; akunu_sequence_length tells. To continue the text, begin the next
 * prompt with a token that is not in the sequence yet. `result` may be NULL; it is also filled if
 * the call fails or is cancelled. */
AKUNU_API enum akunu_status akunu_session_generate(struct akunu_session *session,
                                                   akunu_sequence sequence,
                                                   const struct akunu_ids *prompt,
                                                   const struct akunu_generation_params *generation,
                                                   struct akunu_result *result);

/* Parallel completions: runs one prompt once, shares its KV pages among n completions, and runs a
 * token of each in one pass. Completion i is the text of akunu_session_generate with seed + i.
 *
 * sequences[0] is the caller's. The call sets the others to forks of it, which the caller frees, or
 * to -1 if it fails. The session needs n sequences (max_sequences), passes of n tokens, and a
 * context for the prompt and all completions. Nothing is drafted. results is NULL, or an array of n
 * structs, the first of which has its default. AKUNU_ERROR_CONTEXT: no KV page was free for a fork.
 */
AKUNU_API enum akunu_status
akunu_session_generate_parallel(struct akunu_session *session, akunu_sequence *sequences, size_t n,
                                const struct akunu_ids *prompt,
                                const struct akunu_generation_params *generation,
                                struct akunu_result *results);

#ifdef __cplusplus
}
#endif

#endif
