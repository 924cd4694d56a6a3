/* akunu/core.h: the base of the public API. It loads models, runs sessions, makes embeddings and
 * generates text. Included by all other public headers; compiles alone. */
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
    AKUNU_ERROR_ARGUMENT = 1,    /* a value the caller gave is out of range */
    AKUNU_ERROR_FORMAT = 2,      /* a file cannot be read, is damaged or of an unknown format */
    AKUNU_ERROR_UNSUPPORTED = 3, /* a valid file or request that akunu cannot serve */
    AKUNU_ERROR_MEMORY = 4,      /* out of memory */
    AKUNU_ERROR_CONTEXT = 5,     /* the tokens do not fit the context or the pass */
    AKUNU_ERROR_IO = 6,          /* reading or writing failed */
    AKUNU_ERROR_CANCELLED = 7,   /* a callback asked to stop */
    AKUNU_ERROR_SYSTEM = 8,      /* the operating system refused something else */
    AKUNU_ERROR_NUMERIC = 9,     /* the model gave no finite number where one is needed */
    AKUNU_ERROR_BUSY = 10        /* the session is in use by another call */
};

/* "ok", "argument", "format", … Never NULL. */
AKUNU_API const char *akunu_status_name(enum akunu_status status);

/* Message of the calling thread's last failed call; "" before the first. Valid until that thread's
 * next failed call. */
AKUNU_API const char *akunu_last_error(void);

/* Status of that call, for functions that return a handle or a number; AKUNU_OK before the first
 * failure. */
AKUNU_API enum akunu_status akunu_last_status(void);

/* "0.1.0". */
AKUNU_API const char *akunu_version(void);

/* One line about the build: compiler, ISA bundles built, optional libraries. */
AKUNU_API const char *akunu_build_info(void);

/* In the order of their weight. */
enum akunu_log_level {
    AKUNU_LOG_DEBUG = 0,
    AKUNU_LOG_INFO = 1,
    /* nothing is wrong, but a person should know: what is kept on disk for the first time, and what
     * the cache's limit removed */
    AKUNU_LOG_NOTICE = 2,
    AKUNU_LOG_WARN = 3
};

/* `fraction` of the work done, 0 … 1. Return false to stop with AKUNU_ERROR_CANCELLED. */
typedef bool akunu_fraction_fn(double fraction, void *user);

/* A log line without newline. Called by the thread that called the library. */
typedef void akunu_log_fn(enum akunu_log_level level, const char *line, void *user);

/* ---- Models ------------------------------------------------------------- */
struct akunu_model;
struct akunu_tokenizer; /* text.h */
struct akunu_file;      /* files.h */
typedef int32_t akunu_token;

/* Stages of akunu_model_load, in this order. Each is reported when it ends, even if there was
 * nothing to do; AKUNU_STAGE_WEIGHTS reports its progress too. */
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
AKUNU_API const char *akunu_load_stage_name(enum akunu_load_stage stage);

/* `fraction` of the stage done, 0 … 1. Return false to cancel the load. */
typedef bool akunu_progress_fn(enum akunu_load_stage stage, double fraction, void *user);

/* Library for products of weights and many tokens. */
enum akunu_prefill {
    AKUNU_PREFILL_AUTO = 0, /* as the chip profile says if `relaxed` is set, else own */
    AKUNU_PREFILL_OWN = 1,
    AKUNU_PREFILL_BLAS = 2 /* OpenBLAS, if found, on weights as floats; rounds differently */
};

enum akunu_rope_scaling {
    AKUNU_ROPE_SCALING_MODEL = 0, /* the model's; linear if it has none */
    AKUNU_ROPE_SCALING_NONE = 1,
    AKUNU_ROPE_SCALING_LINEAR = 2, /* position interpolation */
    AKUNU_ROPE_SCALING_YARN = 3
};

/* Rotary positions: values that replace the model's, with llama.cpp's names and meanings. A model's
 * own divisors (Llama 3.1, LongRoPE) stay, and the scaling comes on top of them. */
struct akunu_rope {
    enum akunu_rope_scaling scaling;
    float freq_base;        /* 0: the model's */
    float freq_scale;       /* 1 / the factor of the context; 0: the model's */
    uint32_t yarn_orig_ctx; /* tokens of the unscaled context; 0: the model's */
    /* share of the unscaled frequency in pairs that turn often; 0: 1 for YaRN; below 0: none */
    float yarn_ext_factor;
    /* multiplies cosine and sine, beside the factors of the model and of YaRN; 0: 1 */
    float yarn_attn_factor;
    float yarn_beta_fast, yarn_beta_slow; /* 0: the model's, else 32 and 1 */
};

struct akunu_comm; /* akunu/comm.h */

/* How the processes of a comm divide a model. */
enum akunu_split {
    /* each has some rows of every weight: a token takes less time, and many exchanges */
    AKUNU_SPLIT_ROWS = 0,
    /* each has some of the layers: one exchange per process and pass, for slow links. They compute
     * parts of a prompt at the same time, and a token one after another */
    AKUNU_SPLIT_LAYERS = 1
};

/* LoRA adapter: a GGUF file or a PEFT folder. */
struct akunu_adapter {
    const char *path;
    float scale; /* multiplies what it adds; 0: it is checked, and not used */
};

/* $NAME: the environment variable, then the default. */
struct akunu_load_params {
    size_t size;
    const char *cpu;    /* highest ISA bundle ("avx2"); NULL: $AKUNU_CPU, the best available */
    unsigned n_threads; /* for packing; 0: $AKUNU_THREADS, the profile's, the physical cores */
    bool strict;        /* an unused tensor is an error */
    bool warm_up;       /* touch the weights and run one token before returning */
    bool no_cache;      /* do not use the packed cache: pack into memory */
    /* cache folder; NULL: $AKUNU_CACHE_DIR, $XDG_CACHE_HOME/akunu or ~/.cache/akunu */
    const char *cache_dir;
    akunu_progress_fn *progress; /* NULL: silent */
    akunu_log_fn *log;           /* NULL: silent */
    void *user;                  /* for both callbacks */
    /* the only chip profile to use; NULL: $AKUNU_PROFILE, the system's and then the user's */
    const char *profile;
    /* faster kernels that round differently: results depend on machine, batch and threads */
    bool relaxed;
    enum akunu_prefill prefill;
    /* metadata that replaces the file's, "KEY=TYPE:VALUE" with TYPE int, float, bool or str; ends
     * with NULL; NULL: none. AKUNU_ERROR_ARGUMENT: neither has the file the key nor is it read */
    const char *const *override_kv;
    const char *backend; /* "cpu" or "opencl"; NULL: $AKUNU_BACKEND, the CPU */
    /* device of that backend: its number (akunu_device_at) or a part of its name; NULL:
     * $AKUNU_DEVICE, the first usable */
    const char *device;
    /* layers on the device: the last ones, with the output; the CPU runs the others. -1 (default):
     * all; 0: none */
    int n_gpu_layers;
    /* bytes that all packed weights in the cache folder may take: the least recently used are
     * removed, none that a process has mapped. 0: a fifth of the disk; UINT64_MAX: no limit */
    uint64_t cache_limit;
    struct akunu_rope rope; /* AKUNU_ERROR_UNSUPPORTED for models without rotary positions */
    /* adapters, of which the sum is added. They run beside the model's weights, which stay as they
     * are. AKUNU_ERROR_FORMAT: not an adapter, or of other sizes than the model;
     * AKUNU_ERROR_UNSUPPORTED: not a plain LoRA, or for another architecture */
    const struct akunu_adapter *adapters;
    size_t n_adapters;
    /* quantizes the model while it is packed: a type or a mix as in akunu_quantize_params ("Q8_0",
     * "Q4_K_M"); NULL: weights as stored. Results equal those of the file that akunu_file_quantize
     * makes, in bits, and so do the errors. AKUNU_ERROR_ARGUMENT: the type is unknown or needs
     * importance, or the model is quantized already; AKUNU_ERROR_UNSUPPORTED: no path is given, or
     * GGUF cannot express the model */
    const char *quantize;
    const char *importance; /* for `quantize`: file of an importance matrix; NULL: none */
    /* the processes that share the model, each with its part of the weights (akunu/comm.h); NULL:
     * this one has all of it. The CPU's backend alone */
    struct akunu_comm *comm;
    enum akunu_split split; /* with `comm` */
    /* keys of the configuration that are read as if the file did not have them, by their whole
     * names ("hidden_act", "llama.rope.scaling.type"), so that one that is not supported does not
     * refuse the model; ends with NULL; NULL: none */
    const char *const *ignore_keys;
};
AKUNU_API void akunu_load_params_default(struct akunu_load_params *params, size_t size);

/* Loads the model at `path`. params may be NULL. */
AKUNU_API struct akunu_model *akunu_model_load(const char *path,
                                               const struct akunu_load_params *params);
/* The same from a file that is open for reading, whatever its name: a GGUF file in one part, read
 * from its beginning wherever the descriptor stands. The descriptor stays the caller's, who may
 * close it after the call. A file without a name (deleted, or a memfd) is packed into memory,
 * without the packed cache. AKUNU_ERROR_ARGUMENT: fd is not open. AKUNU_ERROR_FORMAT: not a regular
 * file, not readable, or not GGUF. AKUNU_ERROR_UNSUPPORTED: a part of a split file. */
AKUNU_API struct akunu_model *akunu_model_load_fd(int fd, const struct akunu_load_params *params);
/* What was made from the model keeps working. */
AKUNU_API void akunu_model_free(struct akunu_model *model);

/* Which of a text's last hidden states become its embedding. */
enum akunu_pooling {
    AKUNU_POOLING_MODEL = 0, /* as the model's files say (akunu_model_info) */
    AKUNU_POOLING_MEAN = 1,  /* the mean of all tokens, including those that the tokenizer adds */
    AKUNU_POOLING_CLS = 2,   /* the first token's */
    AKUNU_POOLING_LAST = 3,  /* the last token's */
    AKUNU_POOLING_MAX = 4,   /* the largest value of each element over all tokens */
    AKUNU_POOLING_MEAN_SQRT = 5,    /* the sum of all tokens, divided by the root of their number */
    AKUNU_POOLING_WEIGHTED_MEAN = 6 /* a mean in which token i, from 1 on, counts i times */
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
    const char *weight_type;  /* the type of most bytes */
    const char *cpu;          /* the ISA bundle in use */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size;
    uint32_t context; /* the model's own, in tokens */
    uint64_t n_parameters;
    /* read for one token of decode; of experts those that are used */
    uint64_t token_weight_bytes;
    /* in the layers' matrices; a prefill token takes twice as many operations */
    uint64_t matrix_parameters;
    uint64_t float_parameters; /* of these, multiplied as floats; the rest as int8 */
    bool encoder;              /* it makes embeddings and no text: use akunu_session_embed */
    /* pooling of embeddings, as its files say; by default the mean of an encoder's tokens, and the
     * last token of a language model; AKUNU_POOLING_MODEL: several kinds, whose results are joined
     */
    enum akunu_pooling pooling;
    /* embeddings have unit length: as sentence-transformers' files say; always for GGUF */
    bool normalized;
    uint32_t ranks; /* scores that akunu_session_rank gives a pair; 0: the model is no reranker */
    /* speech models: log-mel filters, and positions of the encoder, each two frames of 10 ms; 0: no
     * speech model */
    uint32_t n_mels, encoder_context;
    uint32_t n_encoder_layers; /* of speech models; else 0. n_layers are the decoder's */
};
AKUNU_API enum akunu_status akunu_model_get_info(const struct akunu_model *model,
                                                 struct akunu_model_info *info, size_t size);

/* The model's tokenizer; NULL: the file has no vocabulary. */
AKUNU_API const struct akunu_tokenizer *akunu_model_tokenizer(const struct akunu_model *model);

/* The file it came from, for its metadata and tensors. Lives with the model. */
AKUNU_API const struct akunu_file *akunu_model_file(const struct akunu_model *model);

/* ---- Thread pools ------------------------------------------------------- */
/* Threads that several sessions share (akunu_session_params.pool), so that ten sessions do not
 * start ten times as many threads as there are cores. Sessions that share a pool run one pass at a
 * time: the others wait for it, also in other threads. The calling thread works too, as thread 0.
 * Any number of threads may use a pool at once. */
struct akunu_pool;

/* n_threads includes the calling thread; 0: $AKUNU_THREADS, the physical cores. cpus as in
 * akunu_session_params, NULL allowed. AKUNU_ERROR_ARGUMENT: more than 4096 threads, or a CPU that
 * this process lacks. AKUNU_ERROR_MEMORY: a thread cannot be started. */
AKUNU_API struct akunu_pool *akunu_pool_new(unsigned n_threads, const char *cpus);
/* Sessions that use the pool keep it alive. */
AKUNU_API void akunu_pool_free(struct akunu_pool *pool);
/* Number of threads; 0: pool is NULL. */
AKUNU_API unsigned akunu_pool_threads(const struct akunu_pool *pool);

/* ---- Sessions ----------------------------------------------------------- */
/* Sequences, their KV cache, and the memory of a pass. A session runs one call at a time: another,
 * from a callback or from another thread, fails with AKUNU_ERROR_BUSY and changes nothing.
 * akunu_session_decode, akunu_session_prefill and akunu_session_generate fail with
 * AKUNU_ERROR_UNSUPPORTED for encoders. */
struct akunu_session;

/* Types of keys and values. The quantized ones need heads of a multiple of 32 elements; devices
 * have F16, F32, BF16, Q8_0 and Q4_0. */
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

/* Which tokens of a text stay in the KV cache if only some can: those to which the text's last
 * tokens pay most attention, or the last ones. The first tokens stay in any case. */
enum akunu_kv_choice { AKUNU_KV_IMPORTANT = 0, AKUNU_KV_RECENT = 1 };

/* Fewest tokens that may stay. */
#define AKUNU_KV_KEEP_MIN 256

struct akunu_session_params {
    size_t size;
    uint32_t context; /* tokens over all sequences; 0: the model's, bounded by memory */
    /* max. tokens of a pass; 0: the chip profile's, else 512; 64 if processes share the model by
     * layers; for encoders the context, which speech models have at least */
    uint32_t batch;
    uint32_t max_sequences;            /* 0: 1, for encoders 64 */
    unsigned n_threads;                /* 0: as in akunu_load_params */
    enum akunu_kv_type k_type, v_type; /* ignored for encoders and speech */
    akunu_log_fn *log;
    void *user;
    /* CPUs to pin threads to, as "0-3,8": thread i to entry i. Thread 0 is the calling thread,
     * which the caller pins. NULL: no pinning */
    const char *cpus;
    /* threads shared with other sessions; n_threads is then 0 or the pool's, and cpus NULL. NULL:
     * threads of its own */
    struct akunu_pool *pool;
    /* bytes that the KV cache takes at most if context is 0; 0: half of the available memory */
    uint64_t kv_bytes_max;
    /* speech models: windows of audio that may be encoded at once, beside max_sequences texts; 0: 1
     */
    uint32_t max_windows;
    /* After a prompt, by akunu_session_prefill, akunu_session_generate or a scheduler, only about
     * this many tokens of its sequence stay in the KV cache, as by akunu_sequence_evict; 0: all,
     * else at least AKUNU_KV_KEEP_MIN */
    uint32_t kv_keep;
    enum akunu_kv_choice kv_choice; /* which ones */
};
AKUNU_API void akunu_session_params_default(struct akunu_session_params *params, size_t size);
/* params may be NULL. The session keeps the model alive. */
AKUNU_API struct akunu_session *akunu_session_new(const struct akunu_model *model,
                                                  const struct akunu_session_params *params);
/* In a callback of the session: frees it when the call ends. */
AKUNU_API void akunu_session_free(struct akunu_session *session);

/* Capacity in tokens over all sequences, and the largest pass. */
AKUNU_API uint32_t akunu_session_context(const struct akunu_session *session);
AKUNU_API uint32_t akunu_session_batch(const struct akunu_session *session);
AKUNU_API unsigned akunu_session_threads(const struct akunu_session *session);

/* One growing text in the KV cache; a number ≥ 0, or -1 on failure. */
typedef int32_t akunu_sequence;
AKUNU_API akunu_sequence akunu_sequence_new(struct akunu_session *session);
AKUNU_API void akunu_sequence_free(struct akunu_session *session, akunu_sequence sequence);

/* Tokens in the cache; 0 also on failure. */
AKUNU_API uint32_t akunu_sequence_length(struct akunu_session *session, akunu_sequence sequence);

/* Truncates a sequence to its first `length` tokens. Models with recurrent state (lfm2, qwen3next,
 * qwen35) recompute it with the next token, unless the sequence is empty. */
AKUNU_API enum akunu_status akunu_sequence_rewind(struct akunu_session *session,
                                                  akunu_sequence sequence, uint32_t length);

/* A new sequence that shares the first `length` tokens of another: whole pages by reference, the
 * rest by copy. Recurrent state is copied if `length` is the whole length, else recomputed. */
AKUNU_API akunu_sequence akunu_sequence_fork(struct akunu_session *session, akunu_sequence sequence,
                                             uint32_t length);

/* Drops tokens of a sequence from the KV cache, in pages of 64, until about n_tokens are left, and
 * frees the pages for other sequences. The first 64 tokens and the last ones stay. Which others
 * stay follows, for AKUNU_KV_IMPORTANT, from the attention that the last 32 tokens pay to them, as
 * in SnapKV (Li et al. 2024, arXiv 2404.14469): these tokens run once more, and the logits of
 * earlier passes can no longer be read.
 *
 * The sequence keeps its length, and tokens their positions: a context has all of a text's tokens.
 * Those to come are computed without the dropped ones, so the text differs, but never with the
 * number of threads, the size of passes or the ISA. Dropped tokens do not come back: a sequence is
 * rewound, and forked, to at most the tokens before the first dropped one, or to at least its
 * length now; it cannot be saved.
 *
 * AKUNU_ERROR_ARGUMENT: fewer than AKUNU_KV_KEEP_MIN. AKUNU_ERROR_UNSUPPORTED: encoders, speech
 * models, models with recurrent state, and devices. */
AKUNU_API enum akunu_status akunu_sequence_evict(struct akunu_session *session,
                                                 akunu_sequence sequence, uint32_t n_tokens,
                                                 enum akunu_kv_choice choice);

/* Largest length, up to `length`, that akunu_sequence_rewind takes: `length` itself unless tokens
 * were dropped from the KV cache. 0 also on failure. */
AKUNU_API uint32_t akunu_sequence_rewindable(struct akunu_session *session, akunu_sequence sequence,
                                             uint32_t length);

/* One token of a pass. Tokens of a sequence are appended to it in their order. */
struct akunu_batch_token {
    akunu_token token;
    akunu_sequence sequence;
    bool logits; /* compute its logits */
};

/* Runs n tokens, 1 … akunu_session_batch(), of one or several sequences in one pass. On failure no
 * sequence changes. AKUNU_ERROR_CONTEXT: the message has both counts. */
AKUNU_API enum akunu_status akunu_session_decode(struct akunu_session *session,
                                                 const struct akunu_batch_token *tokens, size_t n);

/* Logits of token i of the last pass, vocab_size floats; NULL if they were not requested. Valid
 * until the next pass. Generating leaves none. */
AKUNU_API const float *akunu_session_logits(struct akunu_session *session, size_t i);

/* Runs a whole prompt in passes of the session's batch. The last token's logits are then
 * akunu_session_logits(session, *last). cancel, unless NULL, is called before every pass; true
 * stops with AKUNU_ERROR_CANCELLED, and what was run stays. */
typedef bool akunu_cancel_fn(void *user);
AKUNU_API enum akunu_status akunu_session_prefill(struct akunu_session *session,
                                                  akunu_sequence sequence, const akunu_token *ids,
                                                  size_t n, akunu_cancel_fn *cancel, void *user,
                                                  size_t *last);

/* ---- Embeddings --------------------------------------------------------- */
struct akunu_embedding {
    size_t size;
    enum akunu_pooling pooling;
    enum akunu_normalize normalize;
    /* elements of a row of `out`, as akunu_model_embedding_width says; 0: the model's width */
    size_t width;
    size_t n_prompt; /* tokens of each text's beginning that are not pooled */
};
AKUNU_API void akunu_embedding_default(struct akunu_embedding *embedding, size_t size);

/* A text as tokens, with those that its tokenizer adds (AKUNU_ADD_SPECIAL). */
struct akunu_ids {
    const akunu_token *ids;
    size_t n;
};

/* Elements of an embedding: the model's width, unless its files ask for several kinds of pooling at
 * once or cut embeddings (sentence-transformers' truncate_dim). */
AKUNU_API uint32_t akunu_model_embedding_width(const struct akunu_model *model,
                                               enum akunu_pooling pooling);

/* Numbers the texts and pairs of the next calls from `first` (0) on in messages, for a caller that
 * passes a long list in parts. */
AKUNU_API void akunu_session_number_texts(struct akunu_session *session, size_t first);

/* Embeds n texts. Row i of out, [n, width] floats with the width of `embedding`, belongs to
 * texts[i]; its bits do not depend on the other texts. Short texts share a pass, as many as the
 * session has free sequences. Both encoders and language models make embeddings. An encoder runs a
 * text in one pass, so a text has at most akunu_session_batch() tokens. embedding may be NULL: as
 * the model says. cancel, unless NULL, is called before every pass.
 *
 * AKUNU_ERROR_ARGUMENT: an id outside the vocabulary, a text without tokens behind its prompt, no
 * free sequence, another width than akunu_model_embedding_width.
 * AKUNU_ERROR_CONTEXT: a text is too long; the message has its number and both counts.
 * AKUNU_ERROR_UNSUPPORTED: the model's files ask for a pooling that akunu lacks.
 * AKUNU_ERROR_NUMERIC: an embedding has an element that is not a finite number. All texts are
 * checked before the first pass; no sequence is left behind. */
AKUNU_API enum akunu_status akunu_session_embed(struct akunu_session *session,
                                                const struct akunu_ids *texts, size_t n,
                                                const struct akunu_embedding *embedding,
                                                akunu_cancel_fn *cancel, void *user, float *out);

/* A query and a document as one text; akunu_model_encode_pair (text.h) makes its tokens. */
struct akunu_pair {
    const akunu_token *ids;
    size_t n;
    size_t second; /* the document's first token, for models that tell the two apart */
};

/* Scores n pairs with a cross-encoder or a reranker. Row i of out, [n, ranks] floats with `ranks`
 * of akunu_model_info, belongs to pairs[i]: what the model's head gives, before any sigmoid; of
 * Qwen3's rerankers in GGUF the probabilities of "yes" and "no". A higher first score means that
 * the document answers the query better. Errors and `cancel` are as in akunu_session_embed, and
 * AKUNU_ERROR_UNSUPPORTED: the model has no head. */
AKUNU_API enum akunu_status akunu_session_rank(struct akunu_session *session,
                                               const struct akunu_pair *pairs, size_t n,
                                               akunu_cancel_fn *cancel, void *user, float *out);

/* ---- Generating --------------------------------------------------------- */
struct akunu_sampling; /* sample.h */
struct akunu_logprob;

/* Speculative decoding: drafted tokens are verified in one pass. It changes only the speed: the
 * text is the same without it, at every temperature. The number of drafted tokens follows the
 * acceptance rate and the measured cost of passes. */
enum akunu_speculation {
    AKUNU_SPECULATION_AUTO = 0, /* every drafter available, if speculation is possible */
    AKUNU_SPECULATION_NONE = 1,
    AKUNU_SPECULATION_NGRAM = 2, /* what followed the same tokens earlier in the text */
    AKUNU_SPECULATION_DRAFT = 3  /* a draft model alone */
};

/* Log-probabilities of a sampled token and of the n_top most likely ones, as from
 * akunu_logprobs_compute. */
typedef void akunu_logprobs_fn(akunu_token token, float logprob, const struct akunu_logprob *top,
                               size_t n_top, void *user);

/* Reasoning that an answer begins with, between two markers, and its budget. The markers are those
 * of akunu_reply_find_reasoning (text.h), which also says if the prompt ends inside reasoning. */
struct akunu_reasoning {
    size_t size;
    /* Tokens of reasoning in an answer, without the markers. Then `closing` ends it: its tokens
     * take the place of sampled ones. Up to there the text is the one without a budget. 0:
     * reasoning is ended where it begins; -1, the default: no limit. */
    int64_t budget;
    const char *begin, *end; /* "<think>", "</think>"; NULL: answers have no reasoning */
    const char *closing;     /* ends reasoning and begins the content; usually `end` */
    bool begins_anywhere;    /* `begin` counts in the middle of a text too */
    bool is_open;            /* the prompt ends inside reasoning */
};
AKUNU_API void akunu_reasoning_default(struct akunu_reasoning *reasoning, size_t size);

/* The n_vocab logits from which a token of completion number `index` is sampled (0 unless there are
 * parallel completions). The function may change them: INFINITY forces a token, -INFINITY forbids
 * it. Valid until it returns. */
typedef void akunu_logits_fn(size_t index, float *logits, size_t n_vocab, void *user);

struct akunu_generation {
    size_t size;
    int64_t max_tokens;                    /* -1: until the text or the context ends */
    const struct akunu_sampling *sampling; /* NULL: defaults */
    bool special;                          /* control tokens appear in the text */

    /* If a kind is requested or a draft session is given but speculation is impossible, the call
     * fails with AKUNU_ERROR_UNSUPPORTED: models with recurrent state, devices, relaxed
     * rounding. */
    enum akunu_speculation speculation;
    /* A session of a smaller model with the same vocabulary (else AKUNU_ERROR_ARGUMENT, which says
     * where they differ) and the same capacity, and a sequence in it, which is made to follow this
     * text. Keep both for the next call. NULL: none. */
    struct akunu_session *draft;
    akunu_sequence draft_sequence;
    uint32_t draft_max; /* max. draft tokens per pass, at most 15 (0: 15) */
    uint32_t draft_min; /* shorter drafts are not run (0: 1) */
    float draft_p_min;  /* a draft ends at a token of lower probability (0) */

    /* Unless NULL, called for each token just before on_piece, which for parallel completions says
     * which one. It gets the same `user` and changes no text. It costs a walk over the vocabulary
     * per token. */
    akunu_logprobs_fn *on_logprobs;
    uint32_t n_top_logprobs; /* at most the vocabulary's size */

    /* Stop sequences: the text ends before the first of these. Text that could begin a stop
     * sequence is held back. At most 64, of 1 to 1024 bytes. */
    const char *const *stops;
    size_t n_stops;

    /* NULL: reasoning has no budget. A grammar that does not allow `closing` ends the budget. */
    const struct akunu_reasoning *reasoning;

    /* Unless NULL, called once for each token, in the order of the text, before the grammar, the
     * bias and the samplers. It gets the same `user`. A function that changes nothing leaves the
     * text the same. Log-probabilities are those of the logits before it. */
    akunu_logits_fn *on_logits;
};
AKUNU_API void akunu_generation_default(struct akunu_generation *generation, size_t size);

/* Callback: a new token and the characters that it completed (maybe none). Return false to stop. */
typedef bool akunu_piece_fn(akunu_token token, const char *text, size_t n_bytes, void *user);

enum akunu_stop {
    AKUNU_STOP_END = 1,      /* an end token, or the grammar allows nothing more */
    AKUNU_STOP_LENGTH = 2,   /* max_tokens */
    AKUNU_STOP_CONTEXT = 3,  /* the context is full */
    AKUNU_STOP_CALLBACK = 4, /* on_piece returned false */
    AKUNU_STOP_TEXT = 5      /* a stop sequence */
};

struct akunu_result {
    size_t size; /* sizeof(struct akunu_result), set by the caller */
    enum akunu_stop stop;
    uint64_t n_prompt, n_generated;
    double prompt_seconds;          /* until the first token is sampled */
    double generate_seconds;        /* from then on */
    uint64_t n_drafted, n_accepted; /* drafted tokens, and those accepted */
    /* akunu_session_complete: tokens of the prompt that were in the sequence, and not run again */
    uint64_t n_kept;
    size_t stop_index; /* AKUNU_STOP_TEXT: which of generation->stops was found */
    /* akunu_request.chain: over the generated tokens, the one that ends a text excluded, SHA-256
     * of the value before it (32 zero bytes before the first), the token as int32 and the logits
     * from which it was sampled as float32, little-endian: [vocab_size], before bias and samplers.
     * Else zero */
    uint8_t chain[32];
};

/* Appends the prompt's ids to the sequence, then generates. Nothing is allocated per token. A token
 * that ends the text is neither reported nor counted. Unless an end token followed it, the last
 * reported token is not in the sequence yet (akunu_sequence_length tells): to continue the text,
 * begin the next call's ids with it.
 * on_piece may be NULL; it is also called with token -1 at the end if bytes are left. cancel,
 * unless NULL, is called before every pass, of the prompt too; true ends with
 * AKUNU_ERROR_CANCELLED. Both get `user`. generation may be NULL: defaults. result may be NULL; it
 * is filled in on failure too. */
AKUNU_API enum akunu_status
akunu_session_generate(struct akunu_session *session, akunu_sequence sequence,
                       const akunu_token *ids, size_t n_ids,
                       const struct akunu_generation *generation, akunu_piece_fn *on_piece,
                       akunu_cancel_fn *cancel, void *user, struct akunu_result *result);

/* As akunu_piece_fn for completion number `index`, 0 … n-1. Return false to stop that
 * completion. */
typedef bool akunu_completion_fn(size_t index, akunu_token token, const char *text, size_t n_bytes,
                                 void *user);

/* Parallel completions: runs one prompt once, shares its pages among n completions, and takes a
 * token of each per pass. Completion i is the text of akunu_session_generate with seed + i.
 * sequences[0] is the caller's; the others are set to forks of it, for the caller to free, or to -1
 * on failure. The session needs n sequences (max_sequences), passes of n tokens, and a context for
 * the prompt once and all completions. There is no speculation. results: NULL, or n of them; set
 * the size of the first. AKUNU_ERROR_CONTEXT: no page was free for a fork. */
AKUNU_API enum akunu_status akunu_session_generate_parallel(
    struct akunu_session *session, akunu_sequence *sequences, size_t n, const akunu_token *ids,
    size_t n_ids, const struct akunu_generation *generation, akunu_completion_fn *on_piece,
    akunu_cancel_fn *cancel, void *user, struct akunu_result *results);

#ifdef __cplusplus
}
#endif

#endif
