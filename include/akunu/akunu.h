/* akunu.h: runs language models and encoders on the CPU.
 *
 * One header, C11 and C++17. The shape of a program:
 *
 *     model   = akunu_model_load(path, NULL);          shared, immutable
 *     session = akunu_session_new(model, NULL);        one thread's, mutable
 *     seq     = akunu_sequence_new(session);           one conversation
 *     akunu_session_generate(session, seq, ids, n_ids, &params, on_piece, user);
 *     akunu_session_embed(session, texts, n_texts, NULL, NULL, NULL, out);   or embeddings
 *
 * Errors. A function returns a status or a handle. On failure a handle is NULL, and
 * akunu_last_error() returns the calling thread's message, which says what was found and what was
 * expected. The library never aborts, exits, prints or changes process-wide state.
 *
 * Threads. Any number of threads may use a model at once. A session and all that is made from it
 * belong to one thread at a time.
 *
 * Ownership. Every …_new, …_load and …_open has its …_free, which accepts NULL. Free sequences
 * before their session and sessions before their model. Strings that a function returns belong to
 * the object passed to it.
 *
 * Versions. Structs that may grow start with `size`: fill them with their …_default function, then
 * change what you need. Enum values never change. */
#ifndef AKUNU_AKUNU_H
#define AKUNU_AKUNU_H

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
    AKUNU_ERROR_FORMAT = 2,      /* a file is unreadable, damaged or of an unknown format */
    AKUNU_ERROR_UNSUPPORTED = 3, /* a valid file or request that akunu cannot serve */
    AKUNU_ERROR_MEMORY = 4,      /* out of memory */
    AKUNU_ERROR_CONTEXT = 5,     /* the tokens do not fit */
    AKUNU_ERROR_IO = 6,          /* reading or writing failed */
    AKUNU_ERROR_CANCELLED = 7,   /* a callback asked to stop */
    AKUNU_ERROR_SYSTEM = 8,      /* the operating system refused something else */
    AKUNU_ERROR_NUMERIC = 9      /* the model returned NaN where a number is needed */
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

/* The best ISA bundle of this machine and build ("avx512"). */
AKUNU_API const char *akunu_cpu_best(void);

/* ISA bundle number `i` that this machine and build can run, from "scalar" to the best; NULL past
 * the end. */
AKUNU_API const char *akunu_cpu_name(size_t i);

enum akunu_log_level { AKUNU_LOG_DEBUG = 0, AKUNU_LOG_INFO = 1, AKUNU_LOG_WARN = 2 };

/* A log line without newline. Called by the thread that called the library. */
typedef void akunu_log_fn(enum akunu_log_level level, const char *line, void *user);

/* ---- Looking into a file without loading it ----------------------------- */
/* An opened model file. Only headers are read; tensors are mapped. */
struct akunu_file;

/* `path`: a GGUF file, or the first file of a split one; a folder of SafeTensors with config.json,
 * or one SafeTensors file next to it; a folder of NumPy arrays with manifest.json and config.json;
 * a Whisper model in its format before GGUF; a NumPy array. */
AKUNU_API struct akunu_file *akunu_file_open(const char *path);
/* The same with metadata that replaces the file's, as in akunu_load_params; NULL allowed. */
AKUNU_API struct akunu_file *akunu_file_open_with(const char *path, const char *const *override_kv);
AKUNU_API void akunu_file_free(struct akunu_file *file);

struct akunu_file_info {
    size_t size;              /* sizeof(struct akunu_file_info), set by the caller */
    const char *format;       /* "gguf", "safetensors", "npy-dir", "whisper-ggml", "npy" */
    const char *architecture; /* "llama"; "" if the file names none */
    size_t n_tensors, n_metadata;
    uint64_t bytes; /* of all parts */
};
AKUNU_API enum akunu_status akunu_file_get_info(const struct akunu_file *file,
                                                struct akunu_file_info *info);

struct akunu_tensor_info {
    size_t size;           /* set by the caller */
    const char *name;      /* as in the file */
    const char *canonical; /* akunu's name; NULL: the tensor has no role */
    const char *type;      /* "Q4_1" */
    unsigned n_dims;       /* 1 … 4 */
    uint64_t shape[4];     /* row-major: the last of n_dims is the contiguous one */
    uint64_t bytes;
    uint64_t offset; /* from the start of its file */
};
/* i in 0 … n_tensors-1, in file order. */
AKUNU_API enum akunu_status akunu_file_tensor(const struct akunu_file *file, size_t i,
                                              struct akunu_tensor_info *info);

/* Dequantizes tensor i to float32, row-major. Elements [first, first+n) are
 * written to out; `first` and `n` are multiples of the row length. */
AKUNU_API enum akunu_status akunu_file_read_f32(const struct akunu_file *file, size_t i,
                                                uint64_t first, uint64_t n, float *out);

/* SHA-256 of tensor i dequantized to little-endian float32 in row-major order,
 * as 64 hexadecimal digits and a NUL. */
AKUNU_API enum akunu_status akunu_file_sha256_f32(const struct akunu_file *file, size_t i,
                                                  char out[65]);

enum akunu_meta_type {
    AKUNU_META_BOOL = 1,
    AKUNU_META_INT = 2,
    AKUNU_META_UINT = 3,
    AKUNU_META_FLOAT = 4,
    AKUNU_META_STRING = 5,
    AKUNU_META_ARRAY = 6
};
struct akunu_meta {
    size_t size;               /* set by the caller */
    const char *key;           /* UTF-8, NUL-terminated */
    enum akunu_meta_type type; /* AKUNU_META_ARRAY for an array */
    enum akunu_meta_type element_type;
    uint64_t n; /* bytes of a string, elements of an array, otherwise 1 */
    bool boolean;
    int64_t integer;
    uint64_t unsigned_integer;
    double number;
    const char *string; /* n bytes, not terminated */
};
/* Metadata entry i in file order, and element j of an array entry. */
AKUNU_API enum akunu_status akunu_file_meta(const struct akunu_file *file, size_t i,
                                            struct akunu_meta *out);
AKUNU_API enum akunu_status akunu_file_meta_element(const struct akunu_file *file, size_t i,
                                                    uint64_t j, struct akunu_meta *out);

/* ---- What this build can read ------------------------------------------- */
struct akunu_format_info {
    size_t size;       /* set by the caller */
    const char *name;  /* as in akunu_file_info: "gguf" */
    const char *about; /* what files these are */
};
struct akunu_architecture_info {
    size_t size;
    const char *name;  /* as in GGUF's general.architecture: "qwen2moe" */
    const char *about; /* which models these are */
    /* all names that files use, `name` and config.json's model_type included; ends with NULL */
    const char *const *names;
    bool experts; /* a mixture of experts */
};
struct akunu_type_info {
    size_t size;
    const char *name;                  /* "Q4_K" */
    unsigned block_elems, block_bytes; /* weights and bytes of a block */
    bool integers;                     /* products use 8-bit integers, else floats */
    /* packed for the kernels at load; otherwise read in place */
    bool packed;
};
struct akunu_quantization_info {
    size_t size;
    const char *name;  /* quant_method of config.json, "mlx" for MLX's own key */
    const char *about; /* which of its variants are read */
};

/* Entry i, from 0; AKUNU_ERROR_ARGUMENT past the last one. Strings live as long as the program. */
AKUNU_API enum akunu_status akunu_format_at(size_t i, struct akunu_format_info *info);
AKUNU_API enum akunu_status akunu_architecture_at(size_t i, struct akunu_architecture_info *info);
AKUNU_API enum akunu_status akunu_type_at(size_t i, struct akunu_type_info *info);
AKUNU_API enum akunu_status akunu_quantization_at(size_t i, struct akunu_quantization_info *info);

/* A device of a backend other than the CPU's, usable or not. */
struct akunu_device_info {
    size_t size;
    char backend[16];                                       /* "opencl" */
    char name[128], vendor[128], version[128], driver[128]; /* as the driver reports them, ASCII */
    char features[128];                                     /* "gpu, unified memory, fp16" */
    uint64_t memory;                                        /* bytes */
    uint64_t most_allocation;                               /* bytes of the largest allocation */
    unsigned units, mhz;
    bool usable; /* it supports what akunu's kernels need */
};
/* Device i, from 0, numbered as in akunu_load_params.device. AKUNU_ERROR_ARGUMENT past the last
 * one; AKUNU_ERROR_UNSUPPORTED, with the reason, if this machine or build has none. */
AKUNU_API enum akunu_status akunu_device_at(size_t i, struct akunu_device_info *info);

/* ---- Tokens and text ---------------------------------------------------- */
typedef int32_t akunu_token;

/* Converts text to tokens and back. A model has one; a file with only a vocabulary works too. */
struct akunu_tokenizer;

/* Reads only the vocabulary of the file at `path`. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load(const char *path);
/* The same with metadata that replaces the file's, as in akunu_load_params; NULL allowed. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load_with(const char *path,
                                                            const char *const *override_kv);
AKUNU_API void akunu_tokenizer_free(struct akunu_tokenizer *tokenizer);

enum {
    AKUNU_ADD_SPECIAL = 1,  /* add the special tokens that the model asks for: BOS, EOS … */
    AKUNU_PARSE_SPECIAL = 2 /* control tokens written in the text become those tokens */
};

/* Writes at most `capacity` ids. Returns the number of ids of the whole text, which may be larger,
 * or -1 on failure. `ids` may be NULL if capacity is 0. `text` is any n_bytes bytes: NUL and
 * invalid UTF-8 are allowed. */
AKUNU_API int64_t akunu_tokenizer_encode(const struct akunu_tokenizer *tokenizer, const char *text,
                                         size_t n_bytes, unsigned flags, akunu_token *ids,
                                         size_t capacity);

enum {
    AKUNU_SKIP_SPECIAL = 1, /* omit control tokens */
    AKUNU_CONTINUE = 2 /* the tokens continue a text: a leading space belongs to it. Otherwise the
                          space that Llama's tokenizer puts before a text is removed. */
};

/* Writes at most `capacity` bytes, without a NUL. Returns the number of bytes of the whole text, or
 * -1 on failure (an id outside the vocabulary). */
AKUNU_API int64_t akunu_tokenizer_decode(const struct akunu_tokenizer *tokenizer,
                                         const akunu_token *ids, size_t n_ids, unsigned flags,
                                         char *text, size_t capacity);

AKUNU_API size_t akunu_tokenizer_vocab_size(const struct akunu_tokenizer *tokenizer);

/* True for tokens that end a text: end of sequence, of turn, of text. */
AKUNU_API bool akunu_tokenizer_is_end(const struct akunu_tokenizer *tokenizer, akunu_token token);

/* True for control tokens and the unknown token. */
AKUNU_API bool akunu_tokenizer_is_control(const struct akunu_tokenizer *tokenizer,
                                          akunu_token token);

/* The model's beginning-of-sequence token; -1: it has none. */
AKUNU_API akunu_token akunu_tokenizer_bos(const struct akunu_tokenizer *tokenizer);

/* Converts a stream of tokens to text; never splits a UTF-8 character. */
struct akunu_stream;
AKUNU_API struct akunu_stream *akunu_stream_new(const struct akunu_tokenizer *tokenizer,
                                                unsigned flags);
AKUNU_API void akunu_stream_free(struct akunu_stream *stream);
/* Adds one token. *text: the characters that it completed, maybe none; valid until the next call.
 * akunu_stream_end returns the rest, incomplete bytes as U+FFFD, and resets the stream for the next
 * text. */
AKUNU_API enum akunu_status akunu_stream_push(struct akunu_stream *stream, akunu_token token,
                                              const char **text, size_t *n_bytes);
AKUNU_API enum akunu_status akunu_stream_end(struct akunu_stream *stream, const char **text,
                                             size_t *n_bytes);

/* ---- Grammars ----------------------------------------------------------- */
/* The texts that a model may write (akunu_sampling.grammar). Immutable. Any number of threads may
 * use it; it must outlive the samplers and calls that use it. */
struct akunu_grammar;

/* Parses GBNF, llama.cpp's grammars (docs/grammar.md). Messages begin with line and column. Tokens
 * are looked up where the grammar is used. */
AKUNU_API struct akunu_grammar *akunu_grammar_parse(const char *text, size_t n_bytes);

enum akunu_schema_form {
    /* for generation: members in schema order, little whitespace */
    AKUNU_SCHEMA_WRITING = 0,
    AKUNU_SCHEMA_READING = 1 /* for checking: any way to write the JSON */
};
struct akunu_schema_params {
    size_t size;
    enum akunu_schema_form form; /* AKUNU_SCHEMA_WRITING */
    /* false; true: unsupported keywords are ignored with a warning to log, false: refused */
    bool lax;
    akunu_log_fn *log; /* NULL allowed */
    void *user;
};
AKUNU_API void akunu_schema_params_default(struct akunu_schema_params *params);

/* From a JSON Schema (draft 2020-12): matches only JSON texts that the schema allows. params may be
 * NULL. AKUNU_ERROR_UNSUPPORTED: the message names the keyword and its position.
 * AKUNU_ERROR_FORMAT: it is no schema. */
AKUNU_API struct akunu_grammar *akunu_grammar_from_schema(const char *schema, size_t n_bytes,
                                                          const struct akunu_schema_params *params);

/* A lazy grammar: any text until one of the triggers in `words` (ends with NULL), then a text of
 * `grammar`. `again`: then any text until the next trigger; otherwise the text ends there. The text
 * of control tokens counts. `grammar` need not outlive the result. */
AKUNU_API struct akunu_grammar *akunu_grammar_make_lazy(const struct akunu_grammar *grammar,
                                                        const char *const *words, bool again);
AKUNU_API void akunu_grammar_free(struct akunu_grammar *grammar);

/* Checks whether the whole text is allowed. *at, which may be NULL: the first byte that is not;
 * n_bytes if the text is allowed, or could be continued to one that is. With a tokenizer control
 * tokens in the text are those tokens. NULL: a token that the grammar names by its text stands for
 * that text. */
AKUNU_API enum akunu_status akunu_grammar_check(const struct akunu_grammar *grammar,
                                                const struct akunu_tokenizer *tokenizer,
                                                const char *text, size_t n_bytes, bool *allowed,
                                                size_t *at);

/* ---- Chat templates ----------------------------------------------------- */
/* Converts a conversation to the prompt that a model was trained on: the Jinja templates of its
 * files, run as Hugging Face's transformers runs them, and the special tokens that they name.
 * Immutable. JSON is passed as UTF-8 text that ends with NUL. */
struct akunu_template;

/* The templates of the model at `path`; only headers and vocabulary are read. A model without a
 * template gets ChatML's (akunu_template_is_fallback). override_kv as in akunu_load_params, NULL
 * allowed. A template that cannot be parsed is an error and is never replaced. */
AKUNU_API struct akunu_template *akunu_template_load(const char *path,
                                                     const char *const *override_kv);
/* The same for a loaded model. The caller frees it; it may outlive the model. */
struct akunu_model;
AKUNU_API struct akunu_template *akunu_model_template(const struct akunu_model *model);
/* One template from its text. Special tokens are those of `tokens`; NULL: none. */
AKUNU_API struct akunu_template *akunu_template_parse(const char *text, size_t n_bytes,
                                                      const struct akunu_template *tokens);
AKUNU_API void akunu_template_free(struct akunu_template *chat);

/* True if the model has no template and ChatML is used. */
AKUNU_API bool akunu_template_is_fallback(const struct akunu_template *chat);
/* Name of template i; "default" is among them unless the model has none of that name. NULL past the
 * end. */
AKUNU_API const char *akunu_template_name(const struct akunu_template *chat, size_t i);
/* The text of the template for a conversation with or without tools, ending with NUL; *n_bytes,
 * unless NULL: its length. Returns NULL if there is no template `name`. name NULL: "tool_use" if
 * there are tools and it exists, else "default". */
AKUNU_API const char *akunu_template_text(const struct akunu_template *chat, const char *name,
                                          bool tools, size_t *n_bytes);

struct akunu_chat {
    size_t size;
    const char *messages;  /* JSON list of messages: [{"role": "user", "content": "Hi"}, …] */
    const char *tools;     /* a list of objects, NULL: none */
    const char *documents; /* a list of objects, NULL: none */
    /* JSON object of variables for the template, special tokens included: {"enable_thinking":
     * false}; NULL: none */
    const char *kwargs;
    const char *name;           /* template; NULL: as akunu_template_text chooses */
    bool add_generation_prompt; /* true: end with the beginning of an answer */
    /* the prompt ends inside this field ("content") of the last message, for the model to continue;
     * add_generation_prompt must then be false. NULL: off */
    const char *continue_final_message;
    const char *bos_token, *eos_token; /* replace the model's; NULL: the model's */
    /* time for strftime_now in seconds since 1970; 0: the clock */
    int64_t now;
};
AKUNU_API void akunu_chat_default(struct akunu_chat *chat);

/* Renders the prompt. It ends with a NUL after its *n_bytes (NULL allowed); free it with
 * akunu_text_free. NULL on failure: the message names line and column, or is the template's own if
 * it refused (raise_exception). Time, memory and output of a template are limited, so rendering
 * always ends. */
AKUNU_API char *akunu_template_render(const struct akunu_template *chat,
                                      const struct akunu_chat *input, size_t *n_bytes);

/* Frees a text returned to the caller. NULL allowed. */
AKUNU_API void akunu_text_free(char *text);

/* ---- Tool calls and reasoning ------------------------------------------- */
/* Parses a reply while it is generated: reasoning, content, and tool calls in the model's format.
 *
 *     reply = akunu_reply_new(&params, on_event, user);
 *     akunu_reply_push(reply, text, n_bytes);     for every piece that is generated
 *     akunu_reply_end(reply);
 *     puts(akunu_reply_message(reply));           the whole as an OpenAI message
 *
 * Generate with `special` true, because models mark these parts by control tokens. To split off
 * reasoning only, set `calls` to false. The events are then AKUNU_REPLY_REASONING and
 * AKUNU_REPLY_CONTENT, and the prompt tells whether reasoning has begun already.
 *
 * Pieces may end anywhere: the same text gives the same message and the same events, except for
 * where their texts are split. Text that could still become a marker is withheld until it is
 * decided, at the latest by akunu_reply_end. Nothing is lost: text that begins like a call but is
 * none becomes content. Whitespace next to a marker belongs to the marker. If text continues after
 * a call or a block of reasoning, a newline separates them. */
struct akunu_reply;

struct akunu_reply_params {
    size_t size;
    /* NULL or "auto": detected from template and vocabulary; else a name of
     * akunu_reply_format_name */
    const char *format;
    const char *chat_template; /* text of the template; NULL: unknown */
    /* vocabulary; NULL: unknown. Used by akunu_reply_new only */
    const struct akunu_tokenizer *tokenizer;
    /* the rendered prompt or its end; NULL: the model begins its answer */
    const char *prompt;
    /* JSON list of tools in OpenAI's form. NULL: any name is a tool's, and values without a type in
     * the format get the type that they look like */
    const char *tools;
    bool calls; /* look for calls; default true */
    /* separate the reasoning; default true. false: it stays in the content, with its markers */
    bool reasoning;
    uint64_t seed; /* ids of calls derive from it: use another one per reply */
};
AKUNU_API void akunu_reply_params_default(struct akunu_reply_params *params);

enum akunu_reply_kind {
    AKUNU_REPLY_REASONING = 1, /* a piece of reasoning */
    AKUNU_REPLY_CONTENT = 2,   /* a piece of content */
    AKUNU_REPLY_CALL = 3,      /* a call begins: text is the tool's name, id the call's */
    AKUNU_REPLY_ARGUMENTS = 4, /* a piece of its arguments, JSON text */
    /* the call is complete: text is its arguments, a checked JSON object */
    AKUNU_REPLY_CALL_END = 5,
    /* the call is invalid: text says why; what the model wrote follows as content */
    AKUNU_REPLY_BROKEN = 6
};

struct akunu_reply_event {
    size_t size;
    enum akunu_reply_kind kind;
    /* UTF-8, whole characters (invalid bytes become U+FFFD), not NUL-terminated */
    const char *text;
    size_t n_bytes;
    size_t call;    /* index of the call, broken ones included */
    const char *id; /* for AKUNU_REPLY_CALL, NUL-terminated; else NULL */
};

/* An event is valid during the call only. */
typedef void akunu_reply_fn(const struct akunu_reply_event *event, void *user);

/* params NULL: defaults. on_event NULL: no events, only the message. Everything in params is
 * copied. Fails for an unknown format, and for tools that are not a list of functions. */
AKUNU_API struct akunu_reply *akunu_reply_new(const struct akunu_reply_params *params,
                                              akunu_reply_fn *on_event, void *user);
AKUNU_API void akunu_reply_free(struct akunu_reply *reply);

/* Fails only if out of memory. */
AKUNU_API enum akunu_status akunu_reply_push(struct akunu_reply *reply, const char *text,
                                             size_t n_bytes);
/* Ends the reply. An incomplete call is a broken one. */
AKUNU_API enum akunu_status akunu_reply_end(struct akunu_reply *reply);

/* The message after akunu_reply_end; NULL before, or if out of memory: {"role": "assistant",
 * "content", "reasoning_content", "tool_calls": [{"id", "type": "function", "function": {"name",
 * "arguments"}}]}. content is null if there is none; the other two are omitted. */
AKUNU_API const char *akunu_reply_message(struct akunu_reply *reply);
/* Why text that began like a call became content, one line each; "" if there is nothing to
 * report. */
AKUNU_API const char *akunu_reply_notes(const struct akunu_reply *reply);
/* The format in use: "hermes", … */
AKUNU_API const char *akunu_reply_format(const struct akunu_reply *reply);
/* Name of known format i; NULL past the end. */
AKUNU_API const char *akunu_reply_format_name(size_t i);

struct akunu_tool_grammar_params {
    size_t size;
    /* OpenAI's tool_choice: "auto" (also NULL), "none", "required", a tool's name, or the object
     * that names one */
    const char *choice;
    bool parallel; /* more than one call in a reply; default true */
    /* false; true: what no grammar can express of a tool's schema is ignored with a warning to log,
     * false: refused */
    bool lax;
    akunu_log_fn *log; /* NULL allowed */
    void *user;
};
AKUNU_API void akunu_tool_grammar_params_default(struct akunu_tool_grammar_params *params);

/* A grammar (akunu_sampling.grammar) for calls of these tools, with arguments that their schemas
 * allow, in the format that akunu_reply parses. `reply` has the format, as in akunu_reply_new, and
 * the tools. With "auto" any text is allowed: the grammar starts at any marker of a call, or with
 * the reply if the format has no marker, and ends with the call. With "required" or a name only
 * reasoning may precede the call. calls NULL: defaults. *out is NULL if there is nothing to
 * constrain: no tools, or "none". AKUNU_ERROR_UNSUPPORTED: the message names the keyword. */
AKUNU_API enum akunu_status akunu_grammar_from_tools(const struct akunu_reply_params *reply,
                                                     const struct akunu_tool_grammar_params *calls,
                                                     struct akunu_grammar **out);

/* ---- Models ------------------------------------------------------------- */
struct akunu_model;

/* Stages of akunu_model_load, in this order, each reported once. */
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

/* `fraction` of the stage done, 0 … 1; only AKUNU_STAGE_WEIGHTS reports more
 * than once. Return false to cancel the load. */
typedef bool akunu_progress_fn(enum akunu_load_stage stage, double fraction, void *user);

/* Library for products of weights and many tokens. */
enum akunu_prefill {
    AKUNU_PREFILL_CHOOSE = 0, /* as the chip profile says if `relaxed` is set, else own */
    AKUNU_PREFILL_OWN = 1,
    /* OpenBLAS, if found, on weights as floats; rounds differently */
    AKUNU_PREFILL_BLAS = 2
};

struct akunu_load_params {
    size_t size;
    const char *cpu;    /* highest ISA bundle ("avx2"); NULL: the best available */
    unsigned n_threads; /* for packing; 0: the chip profile's, else the physical cores */
    bool strict;        /* an unused tensor is an error */
    bool warm_up;       /* touch the weights and run one token before returning */
    bool no_cache;      /* do not use the packed cache: pack into memory */
    /* cache folder; NULL: $AKUNU_CACHE_DIR, $XDG_CACHE_HOME/akunu or ~/.cache/akunu */
    const char *cache_dir;
    akunu_progress_fn *progress; /* NULL: silent */
    akunu_log_fn *log;           /* NULL: silent */
    void *user;                  /* for both callbacks */
    /* the only chip profile to use; NULL: the system's, then the user's, if they exist */
    const char *profile;
    /* faster kernels that round differently: results depend on machine, batch and threads */
    bool relaxed;
    enum akunu_prefill prefill;
    /* metadata that replaces the file's, "KEY=TYPE:VALUE" with TYPE int, float, bool or str; ends
     * with NULL; NULL: none */
    const char *const *override_kv;
    const char *backend; /* "cpu" or "opencl"; NULL: the CPU */
    /* device of that backend: its number (akunu_device_at) or a part of its name; NULL: the first
     * usable */
    const char *device;
    /* number of layers on the device: the last ones, with the output. The CPU has those before. -1,
     * the default: all; 0: none, the CPU runs the model */
    int n_gpu_layers;
};
AKUNU_API void akunu_load_params_default(struct akunu_load_params *params);

/* Loads the model at `path`. params may be NULL. */
AKUNU_API struct akunu_model *akunu_model_load(const char *path,
                                               const struct akunu_load_params *params);
AKUNU_API void akunu_model_free(struct akunu_model *model);

/* Which of a text's last hidden states become its embedding. */
enum akunu_pooling {
    AKUNU_POOLING_MODEL = 0, /* as the model's files say (akunu_model_info) */
    AKUNU_POOLING_MEAN = 1,  /* the mean of all tokens, including those that the tokenizer adds */
    AKUNU_POOLING_CLS = 2,   /* the first token's */
    AKUNU_POOLING_LAST = 3   /* the last token's */
};

enum akunu_normalize {
    AKUNU_NORMALIZE_MODEL = 0, /* as the model's files say (akunu_model_info) */
    AKUNU_NORMALIZE_NONE = 1,
    AKUNU_NORMALIZE_L2 = 2 /* to unit length */
};

struct akunu_model_info {
    size_t size;
    const char *name;         /* from the file; "": none */
    const char *architecture; /* "llama" */
    const char *format;       /* "gguf", "safetensors", "npy-dir" */
    const char *weight_type;  /* the type of most bytes */
    const char *cpu;          /* the ISA bundle in use */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size;
    uint32_t context; /* the model's own, in tokens */
    uint64_t n_parameters;
    uint64_t token_weight_bytes; /* read for one token of decode */
    /* in the layers' matrices; a prefill token takes twice as many operations */
    uint64_t matrix_parameters;
    /* of these, multiplied as floats; the rest as int8 */
    uint64_t float_parameters;
    bool encoder; /* it makes embeddings and no text: use akunu_session_embed */
    /* pooling of embeddings, as its files say; by default the mean of an encoder's tokens, and the
     * last token of a language model */
    enum akunu_pooling pooling;
    /* embeddings have unit length: as sentence-transformers' files say; always for GGUF */
    bool normalized;
};
AKUNU_API enum akunu_status akunu_model_get_info(const struct akunu_model *model,
                                                 struct akunu_model_info *info);

/* The model's tokenizer; NULL: the file has no vocabulary. */
AKUNU_API const struct akunu_tokenizer *akunu_model_tokenizer(const struct akunu_model *model);

/* The file it came from, for its metadata and tensors. Lives with the model. */
AKUNU_API const struct akunu_file *akunu_model_file(const struct akunu_model *model);

/* The dispatch table as text, for people and tests. sampled: the variant that ends with a Gumbel
 * step; NULL for an encoder. Lives with the model. */
AKUNU_API const char *akunu_model_dump(const struct akunu_model *model, bool sampled);

/* ---- The cache ---------------------------------------------------------- */
/* The first load of a model packs its weights into a file of the cache folder, and later loads map
 * that file. If that is impossible (a full disk, a read-only folder), weights are packed in memory
 * and the log says why in one line; results are the same bits. Processes that load a model at the
 * same time build the file once. The folder also holds the prompts of akunu_sequence_keep. Files
 * may be removed at any time, even while in use. */
struct akunu_cache;

enum akunu_cache_state {
    AKUNU_CACHE_READY = 1,
    AKUNU_CACHE_STALE = 2,      /* its model file was removed or has changed */
    AKUNU_CACHE_DAMAGED = 3,    /* damaged or of another version: never used */
    AKUNU_CACHE_UNFINISHED = 4, /* left behind by a process that ended while writing it */
    AKUNU_CACHE_BUILDING = 5    /* a process is writing it now */
};
AKUNU_API const char *akunu_cache_state_name(enum akunu_cache_state state); /* "ready" */

/* Lists the folder `dir`; NULL: the folder that akunu_model_load uses. A missing folder is an empty
 * cache. */
AKUNU_API struct akunu_cache *akunu_cache_open(const char *dir);
AKUNU_API void akunu_cache_free(struct akunu_cache *cache);
AKUNU_API const char *akunu_cache_path(const struct akunu_cache *cache);
AKUNU_API size_t akunu_cache_count(const struct akunu_cache *cache);

struct akunu_cache_entry {
    size_t size;         /* set by the caller */
    const char *file;    /* its name in the folder */
    const char *model;   /* path of the model file; "": unknown */
    const char *backend; /* "cpu"; "": unknown */
    enum akunu_cache_state state;
    uint64_t bytes; /* on disk */
    /* seconds since 1970; built: 0 if unknown; used: when it was last mapped */
    int64_t built, used;
    uint64_t n_tokens; /* tokens of a prompt; 0: packed weights */
};
/* i in 0 … count-1. Strings live as long as the cache. */
AKUNU_API enum akunu_status akunu_cache_get_entry(const struct akunu_cache *cache, size_t i,
                                                  struct akunu_cache_entry *entry);

/* Removes the file of entry i. The entry stays, so other indices do not change. AKUNU_ERROR_IO: it
 * cannot be removed, or is being written. */
AKUNU_API enum akunu_status akunu_cache_remove(struct akunu_cache *cache, size_t i);

/* ---- Sessions ----------------------------------------------------------- */
struct akunu_session;

enum akunu_kv_type {
    AKUNU_KV_F16 = 0,
    AKUNU_KV_F32 = 1,
    AKUNU_KV_BF16 = 2,
    AKUNU_KV_Q8_0 = 3,
    AKUNU_KV_Q4_0 = 4
};

struct akunu_session_params {
    size_t size;
    uint32_t context; /* tokens over all sequences; 0: the model's, bounded by memory */
    /* max. tokens of a pass; 0: the chip profile's, else 512; for encoders the context */
    uint32_t batch;
    uint32_t max_sequences;            /* 0: 1, for encoders 64 */
    unsigned n_threads;                /* 0: the chip profile's, else the physical cores */
    enum akunu_kv_type k_type, v_type; /* ignored for encoders */
    akunu_log_fn *log;
    void *user;
    /* CPUs to pin threads to, as "0-3,8": thread i to entry i. Thread 0 is the calling thread,
     * which the caller pins. NULL: no pinning */
    const char *cpus;
};
AKUNU_API void akunu_session_params_default(struct akunu_session_params *params);
AKUNU_API struct akunu_session *akunu_session_new(const struct akunu_model *model,
                                                  const struct akunu_session_params *params);
AKUNU_API void akunu_session_free(struct akunu_session *session);

/* Capacity in tokens over all sequences, and the largest pass. */
AKUNU_API uint32_t akunu_session_context(const struct akunu_session *session);
AKUNU_API uint32_t akunu_session_batch(const struct akunu_session *session);
AKUNU_API unsigned akunu_session_threads(const struct akunu_session *session);

struct akunu_memory {
    size_t size;
    uint64_t mapped; /* the model file, in the page cache */
    /* weights in the kernels' layout: memory of this process, and the packed cache */
    uint64_t packed;
    uint64_t kv; /* the KV pool of this session */
    /* activations of this session, and the panels of a small encoder of floats */
    uint64_t scratch;
    uint64_t tokenizer; /* vocabulary */
    uint64_t table;     /* dispatch tables and what the backend prepared */
    uint64_t cached;    /* part of `packed`: mapped from the cache, shared between processes */
};
/* session may be NULL: then kv and scratch are 0. */
AKUNU_API enum akunu_status akunu_memory_report(const struct akunu_model *model,
                                                const struct akunu_session *session,
                                                struct akunu_memory *out);

/* How often each kind of matrix kernel ran in this session, over all threads: GEMV, skinny GEMM,
 * GEMM. For tests and profiles. */
struct akunu_counters {
    size_t size;
    uint64_t passes, tokens, gemv, small_n, gemm;
};
AKUNU_API enum akunu_status akunu_session_counters(const struct akunu_session *session,
                                                   struct akunu_counters *out);

/* akunu_session_decode, akunu_session_prefill and akunu_session_generate fail with
 * AKUNU_ERROR_UNSUPPORTED for encoders. */

/* One growing text in the KV cache; a number ≥ 0, or -1 on failure. */
typedef int32_t akunu_sequence;
AKUNU_API akunu_sequence akunu_sequence_new(struct akunu_session *session);
AKUNU_API void akunu_sequence_free(struct akunu_session *session, akunu_sequence sequence);

/* Tokens in the cache. */
AKUNU_API uint32_t akunu_sequence_length(const struct akunu_session *session,
                                         akunu_sequence sequence);

/* Truncates a sequence to its first `length` tokens. Models with recurrent state (lfm2, qwen3next,
 * qwen35) recompute it with the next token, unless the sequence is empty. */
AKUNU_API enum akunu_status akunu_sequence_rewind(struct akunu_session *session,
                                                  akunu_sequence sequence, uint32_t length);

/* A new sequence that shares the first `length` tokens of another: whole pages by reference, the
 * rest by copy. Recurrent state is copied if `length` is the whole length, else recomputed. */
AKUNU_API akunu_sequence akunu_sequence_fork(struct akunu_session *session, akunu_sequence sequence,
                                             uint32_t length);

/* Writes a sequence's tokens, keys and values to a file, or reads them into an empty sequence of a
 * session with the same model and KV types, on this or another machine, with the same bits. The
 * file appears complete or not at all. AKUNU_ERROR_UNSUPPORTED: the model has recurrent state, or
 * runs on a device. AKUNU_ERROR_FORMAT: the file is damaged, of another model, or writable by
 * others. AKUNU_ERROR_CONTEXT: its text does not fit. */
AKUNU_API enum akunu_status akunu_sequence_save(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);
AKUNU_API enum akunu_status akunu_sequence_load(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);

/* Earlier prompts, kept on disk. Files are private to the user (mode 0600). */
struct akunu_prompt_cache {
    size_t size;
    const char *dir;  /* NULL: the folder of the packed weights */
    const char *file; /* one file instead of the folder; NULL: none */
    uint64_t
        max_bytes;  /* of all prompts in the folder; the least recently used are evicted (2 GiB) */
    uint32_t least; /* shorter prompts are neither looked up nor kept (128 tokens) */
};
AKUNU_API void akunu_prompt_cache_default(struct akunu_prompt_cache *cache);

/* Fills an empty sequence with the longest prefix of the prompt that a kept prompt begins with,
 * never all of it. Run the rest, from ids + *n_restored on; logits are the same bits as without the
 * cache. cache may be NULL. A file that cannot be used (damaged, another model, a model with
 * recurrent state) is skipped: *n_restored is 0 and the session's log has a line. */
AKUNU_API enum akunu_status akunu_sequence_restore(struct akunu_session *session,
                                                   akunu_sequence sequence, const akunu_token *ids,
                                                   size_t n_ids,
                                                   const struct akunu_prompt_cache *cache,
                                                   size_t *n_restored);

/* Keeps the first n_tokens of a sequence for later prompts, unless nearly all of them are kept
 * already. If the file cannot be written, it is skipped as above. */
AKUNU_API enum akunu_status akunu_sequence_keep(struct akunu_session *session,
                                                akunu_sequence sequence, size_t n_tokens,
                                                const struct akunu_prompt_cache *cache);

/* One token of a pass. Tokens of a sequence follow its length in order. */
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
 * until the next pass. */
AKUNU_API const float *akunu_session_logits(const struct akunu_session *session, size_t i);

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
};
AKUNU_API void akunu_embedding_default(struct akunu_embedding *embedding);

/* A text as tokens, with those that its tokenizer adds (AKUNU_ADD_SPECIAL). */
struct akunu_ids {
    const akunu_token *ids;
    size_t n;
};

/* Embeds n texts. Row i of out, [n, width] floats with the width of akunu_model_info, belongs to
 * texts[i]; its bits do not depend on the other texts. Short texts share a pass, as many as the
 * session has free sequences. Both encoders and language models make embeddings. An encoder runs a
 * text in one pass, so it has at most akunu_session_batch() tokens. embedding may be NULL: as the
 * model says. cancel, unless NULL, is called before every pass.
 *
 * AKUNU_ERROR_ARGUMENT: an id outside the vocabulary, a text without tokens, no free sequence.
 * AKUNU_ERROR_CONTEXT: a text is too long; the message has its number and both counts.
 * AKUNU_ERROR_UNSUPPORTED: the model's files ask for a pooling that akunu lacks.
 * AKUNU_ERROR_NUMERIC: an embedding has an element that is not a finite number. All texts are
 * checked before the first pass; no sequence is left behind. */
AKUNU_API enum akunu_status akunu_session_embed(struct akunu_session *session,
                                                const struct akunu_ids *texts, size_t n,
                                                const struct akunu_embedding *embedding,
                                                akunu_cancel_fn *cancel, void *user, float *out);

/* ---- Sampling ----------------------------------------------------------- */
/* Added to a token's logit: INFINITY forces a token, -INFINITY forbids it. */
struct akunu_logit_bias {
    akunu_token token;
    float bias;
};

/* First the bias, then the samplers in their order, then sampling. Each sampler works as in
 * llama.cpp, and the defaults are llama.cpp's. */
struct akunu_sampling {
    size_t size;
    /* 0.8; ≤ 0: the most likely token after bias, penalties and DRY; filters are ignored */
    float temperature;
    int32_t top_k;           /* 40; ≤ 0: off */
    float top_p;             /* 0.95; ≥ 1: off */
    float min_p;             /* 0.05; ≤ 0: off */
    float repeat_penalty;    /* 1.0: off */
    int32_t repeat_last_n;   /* 64 last tokens; 0: off; -1: the whole context */
    float presence_penalty;  /* 0.0 */
    float frequency_penalty; /* 0.0 */
    uint64_t seed;           /* UINT64_MAX: a random seed */
    bool ignore_end;         /* never sample a token that ends the text */

    /* The sampler chain, as names separated by ';' or as letters; at most one of the two is given.
     * "" is an empty chain. Both NULL:
     * "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature", or "edskypmxt". There is
     * also "adaptive_p", "a", which samples the token and so always comes last. A sampler that is
     * not named is off; one named twice runs twice. */
    const char *samplers;
    const char *sampler_seq;

    /* 0.0: off; else the temperature is max(0, temperature − range) … */
    float dynatemp_range;
    /* 1.0; … temperature + range, at (entropy / maximum)^exponent between them */
    float dynatemp_exponent;
    /* 1.0; ≤ 0, ≥ 1: off; keeps the tokens with a surprise nearest to the entropy */
    float typical_p;
    /* -1.0; ≤ 0: off; keeps logits within this many standard deviations of the best */
    float top_n_sigma;
    /* 0.0: off; probability of dropping all except the least likely of the tokens with a … */
    float xtc_probability;
    float xtc_threshold; /* 0.1; … probability of at least this; above 0.5: off */

    /* DRY: the logit of a token that extends a repetition of n ≥ allowed tokens is reduced by
     * multiplier · base^(n − allowed). No repetition extends over a sequence breaker. */
    float dry_multiplier;       /* 0.0: off */
    float dry_base;             /* 1.75; 1 or more */
    int32_t dry_allowed_length; /* 2 */
    int32_t dry_penalty_last_n; /* 64 last tokens; 0: off */
    const char *const
        *dry_sequence_breakers; /* of 1 to 40 bytes, ends with NULL; NULL: "\n", ":", "\"", "*" */

    /* 0: off; 1, 2: Mirostat version, which after the temperature replaces all samplers */
    int32_t mirostat;
    float mirostat_tau; /* 5.0; target surprise in bits */
    float mirostat_eta; /* 0.1; learning rate */
    /* -1.0; < 0: adaptive_p samples from the unchanged distribution; else the target probability,
     * at most 1 */
    float adaptive_target;
    /* 0.9; 0 … 0.99: it averages over about 1 / (1 − decay) tokens */
    float adaptive_decay;

    /* [n_logit_bias]; entries of the same token add up */
    const struct akunu_logit_bias *logit_bias;
    size_t n_logit_bias;

    /* NULL: any text. Tokens that the grammar forbids are removed before all samplers. Tokens that
     * end the text are allowed where the grammar may end; where it must end, the text ends by
     * itself. akunu_sampler_sample takes each sampled token as the next one of the text. */
    const struct akunu_grammar *grammar;
};
AKUNU_API void akunu_sampling_default(struct akunu_sampling *sampling);

/* Checks everything that needs no model; akunu_sampler_new and akunu_session_generate do so too.
 * AKUNU_ERROR_ARGUMENT: the message names the field, its value and the accepted values. */
AKUNU_API enum akunu_status akunu_sampling_check(const struct akunu_sampling *sampling);

struct akunu_sampler;
AKUNU_API struct akunu_sampler *akunu_sampler_new(const struct akunu_model *model,
                                                  const struct akunu_sampling *sampling);
AKUNU_API void akunu_sampler_free(struct akunu_sampler *sampler);
/* The seed in use, to reproduce a text. */
AKUNU_API uint64_t akunu_sampler_seed(const struct akunu_sampler *sampler);
/* Adds a token of the context, for the penalties. */
AKUNU_API void akunu_sampler_accept(struct akunu_sampler *sampler, akunu_token token);
/* Samples from vocab_size logits, which are not changed. -1 on failure. */
AKUNU_API akunu_token akunu_sampler_sample(struct akunu_sampler *sampler, const float *logits);

/* Natural logarithm of the probability that the model gives a token: of the softmax of the raw
 * logits, before bias, samplers and temperature. The same as OpenAI's `logprobs` and `top_logprobs`
 * and llama.cpp's `n_probs`. */
struct akunu_logprob {
    akunu_token token;
    float logprob;
};
/* From vocab_size logits: *logprob of `token`, and in `top`, which may be NULL if n_top is 0, those
 * of the n_top most likely tokens, most likely first. If fewer tokens have a logit that is a
 * number, the rest is token -1 with minus infinity. AKUNU_ERROR_ARGUMENT: the token is outside the
 * vocabulary, or n_top exceeds it. */
AKUNU_API enum akunu_status akunu_logprobs_compute(const float *logits, size_t vocab_size,
                                                   akunu_token token, float *logprob,
                                                   struct akunu_logprob *top, size_t n_top);

/* ---- Generating --------------------------------------------------------- */
/* Speculative decoding: drafted tokens are verified in one pass. It changes only the speed: the
 * text is the same without it, at every temperature. The number of drafted tokens follows the
 * acceptance rate and the measured cost of passes. */
enum akunu_speculation {
    AKUNU_SPECULATION_AUTO = 0, /* every drafter available, if speculation is possible */
    AKUNU_SPECULATION_NONE = 1,
    AKUNU_SPECULATION_NGRAM =
        2, /* prompt lookup: what followed the same tokens earlier in the text */
    AKUNU_SPECULATION_DRAFT = 3 /* a draft model alone */
};

/* Log-probabilities of a sampled token and of the n_top most likely ones, as from
 * akunu_logprobs_compute. */
typedef void akunu_logprobs_fn(akunu_token token, float logprob, const struct akunu_logprob *top,
                               size_t n_top, void *user);

struct akunu_generation {
    size_t size;
    int64_t max_tokens; /* -1: until the text or the context ends */
    struct akunu_sampling sampling;
    bool special; /* control tokens appear in the text */

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
};
AKUNU_API void akunu_generation_default(struct akunu_generation *generation);

/* A new token and the characters that it completed (maybe none). Return false to stop. */
typedef bool akunu_piece_fn(akunu_token token, const char *text, size_t n_bytes, void *user);

enum akunu_stop {
    AKUNU_STOP_END = 1,
    AKUNU_STOP_LENGTH = 2,
    AKUNU_STOP_CONTEXT = 3,
    AKUNU_STOP_CALLBACK = 4,
    AKUNU_STOP_TEXT = 5
};

struct akunu_result {
    size_t size;
    enum akunu_stop stop;
    uint64_t n_prompt, n_generated;
    double prompt_seconds; /* until the first token is sampled */
    /* after that: a pass for each token except the first, or for several */
    double generate_seconds;
    uint64_t n_drafted, n_accepted; /* drafted tokens, and those accepted */
};

/* Appends the prompt's ids to the sequence, then generates. Nothing is allocated per token. A token
 * that ends the text is neither reported nor counted. Except for AKUNU_STOP_END the last reported
 * token is not in the sequence yet: to continue the text, begin the next call's ids with it.
 * on_piece may be NULL; it is also called with token -1 at the end if bytes are left. cancel,
 * unless NULL, is called before every pass, of the prompt too; true ends with
 * AKUNU_ERROR_CANCELLED. Both get `user`. generation may be NULL: defaults. result may be NULL; it
 * is filled in on failure too. */
AKUNU_API enum akunu_status
akunu_session_generate(struct akunu_session *session, akunu_sequence sequence,
                       const akunu_token *ids, size_t n_ids,
                       const struct akunu_generation *generation, akunu_piece_fn *on_piece,
                       akunu_cancel_fn *cancel, void *user, struct akunu_result *result);

/* As akunu_piece_fn for completion number `choice`, 0 … n-1. Return false to stop that
 * completion. */
typedef bool akunu_completion_fn(size_t choice, akunu_token token, const char *text, size_t n_bytes,
                                 void *user);

/* Parallel completions: runs one prompt once, shares its pages among n completions, and takes a
 * token of each per pass. Completion i is the text of akunu_session_generate with seed + i.
 * sequences[0] is the caller's; the others are set to forks of it, for the caller to free, or to -1
 * on failure. The session needs n sequences (max_sequences), passes of n tokens, and a context for
 * the prompt once and all completions. There is no speculation. results: NULL, or n of them, each
 * with its size. AKUNU_ERROR_CONTEXT: no page was free for a fork. */
AKUNU_API enum akunu_status akunu_session_generate_parallel(
    struct akunu_session *session, akunu_sequence *sequences, size_t n, const akunu_token *ids,
    size_t n_ids, const struct akunu_generation *generation, akunu_completion_fn *on_piece,
    akunu_cancel_fn *cancel, void *user, struct akunu_result *results);

/* ---- Converting --------------------------------------------------------- */
/* `fraction` of the work done, 0 … 1. Return false to stop. */
typedef bool akunu_convert_fn(double fraction, void *user);

struct akunu_convert_params {
    size_t size;
    /* type of matrices: "F32", "F16", "BF16", "Q8_0"; NULL: as stored, or F32 if GGUF lacks the
     * type. Vectors are F32; rows that do not fill blocks are F16 */
    const char *type;
    /* tokenizer.ggml.pre; NULL: the known pre-tokenizer that splits as the model's does */
    const char *pre;
    bool overwrite;                 /* replace an existing file at the destination */
    const char *const *override_kv; /* as in akunu_load_params */
    akunu_convert_fn *progress;     /* called every few megabytes; NULL allowed */
    akunu_log_fn *log;              /* NULL allowed */
    void *user;
};
AKUNU_API void akunu_convert_params_default(struct akunu_convert_params *params);

/* Writes the model at `from`, of any format that can be loaded, to one GGUF file `to` with
 * tokenizer and metadata, for akunu and llama.cpp. Takes memory for at most one tensor. The file
 * appears complete or not at all, and no file of the model is ever replaced.
 *
 * AKUNU_ERROR_ARGUMENT: `to` exists. AKUNU_ERROR_UNSUPPORTED: GGUF cannot express something of the
 * model, or no program reads such models as GGUF (speech). AKUNU_ERROR_IO: it cannot be written, or
 * would not fit. */
AKUNU_API enum akunu_status akunu_file_convert(const char *from, const char *to,
                                               const struct akunu_convert_params *params);

/* ---- Measuring ---------------------------------------------------------- */
/* The machine, as the system describes it. */
struct akunu_chip {
    size_t size;               /* set by the caller */
    char name[64];             /* "": unknown */
    uint32_t cores;            /* physical ones that this process may run on */
    uint32_t hardware_threads; /* of these cores */
    uint32_t numa_nodes;
    uint64_t l1d_bytes, l2_bytes,
        l3_bytes; /* seen by one core, shared or not; 0: none, or unknown */
    uint64_t memory_bytes;
};
AKUNU_API enum akunu_status akunu_chip_get(struct akunu_chip *out);

/* Rooflines of this machine with all n_threads together: bytes per second read from memory, and
 * operations per second, where a multiply-add counts as two. */
struct akunu_roofline {
    size_t size; /* set by the caller */
    double read_bytes_per_second, int8_ops_per_second;
    double f32_ops_per_second;
    double bf16_ops_per_second; /* 0: no instruction for it, or `cpu` has none */
    double clock_hz;            /* of one core */
};
enum {
    AKUNU_MEASURE_READ = 1,
    AKUNU_MEASURE_INT8 = 2,
    AKUNU_MEASURE_F32 = 4,
    AKUNU_MEASURE_BF16 = 8,
    AKUNU_MEASURE_CLOCK = 16,
    AKUNU_MEASURE_ALL = 31
};
/* Measures the quantities in `what`; the rest of *out is 0. Takes at most a tenth of a second per
 * bit. cpu: ISA bundle to measure; NULL: the best available. */
AKUNU_API enum akunu_status akunu_roofline_measure(const char *cpu, unsigned n_threads,
                                                   unsigned what, struct akunu_roofline *out);

/* The same for what a model runs on: the CPU with the model's bundle, or a device, of which only
 * reading is measured. If both have layers, read_bytes_per_second is that of a pass, which reads
 * the weights of both in turn. */
AKUNU_API enum akunu_status akunu_roofline_measure_model(const struct akunu_model *model,
                                                         unsigned n_threads, unsigned what,
                                                         struct akunu_roofline *out);

/* All quantities with the best bundle. */
AKUNU_API enum akunu_status akunu_roofline_measure_all(unsigned n_threads,
                                                       struct akunu_roofline *out);

/* A chip profile: settings for a machine; 0: as detected. Every load uses its YAML file
 * (akunu_load_params.profile). It never changes a bit of a result. */
struct akunu_profile {
    size_t size;            /* set by the caller */
    uint32_t threads;       /* else the physical cores */
    uint32_t prefill_chunk; /* tokens of a pass over a prompt, if the session sets no batch */
    /* Max. tokens of a pass (1 … 16) that use the skinny GEMM kernels, for weights with a scale per
     * 32, for K-types, for floats. */
    uint32_t small_n_scale32, small_n_scale256, small_n_float;
    /* Whether prompts run through OpenBLAS for these weights if rounding is relaxed. */
    bool blas_scale32, blas_scale256, blas_float;
};

/* `fraction` of the work done, 0 … 1. Return false to stop. */
typedef bool akunu_tune_fn(double fraction, void *user);

/* Measures which kernels are best for how many tokens, and sets small_n_… and blas_… that differ
 * from the defaults; the rest of *out is 0. The fastest of n_runs runs counts: 5 are reliable and
 * take some seconds, 1 is a quick look. cpu as in akunu_roofline_measure; progress may be NULL. */
AKUNU_API enum akunu_status akunu_profile_tune(const char *cpu, unsigned n_threads, unsigned n_runs,
                                               akunu_tune_fn *progress, void *user,
                                               struct akunu_profile *out);

/* Writes the file at `path` atomically; fields that are 0 are omitted. */
AKUNU_API enum akunu_status akunu_profile_write(const struct akunu_profile *profile,
                                                const char *path);

#ifdef __cplusplus
}
#endif

#endif
