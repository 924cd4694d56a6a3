/* akunu.h: run language models and encoders on the CPU.
 *
 * One header, C11 and C++17. The shape of a program:
 *
 *     model   = akunu_load_model(path, NULL);          shared, immutable
 *     session = akunu_session_new(model, NULL);        one thread's, mutable
 *     seq     = akunu_sequence_new(session);           one conversation
 *     akunu_generate(session, seq, ids, n_ids, &params, on_piece, user);
 *     akunu_embed(session, texts, n_texts, NULL, NULL, NULL, out);   or embeddings
 *
 * Errors. A function returns a status or a handle. On failure a handle is NULL,
 * and akunu_last_error() gives the calling thread's message, which says what was
 * found and what was expected. The library never aborts, exits, prints or
 * changes process-wide state.
 *
 * Threads. A model may be used by any number of threads at once. A session and
 * all that is made from it belong to one thread at a time.
 *
 * Ownership. Every …_new, …_load and …_open has its …_free, which accepts NULL.
 * Free sequences before their session and sessions before their model. Strings
 * that a function returns belong to the object that was asked.
 *
 * Versions. Structs that may grow start with `size`: fill them with their
 * …_default function, then change what you need. Enum values never change.
 */
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
    AKUNU_ERROR_CONTEXT = 5,     /* no room for that many tokens */
    AKUNU_ERROR_IO = 6,          /* reading or writing failed */
    AKUNU_ERROR_CANCELLED = 7,   /* a callback asked to stop */
    AKUNU_ERROR_SYSTEM = 8,      /* the operating system refused something else */
    AKUNU_ERROR_NUMERIC = 9      /* the model gave no number where one is needed */
};

/* "ok", "argument", "format", … Never NULL. */
AKUNU_API const char *akunu_status_name(enum akunu_status status);

/* The message of the calling thread's last failed call, "" before the first.
 * Valid until that thread's next failed call. */
AKUNU_API const char *akunu_last_error(void);

/* Its status, for callers of functions that return a handle or a number;
 * AKUNU_OK before the first failure. */
AKUNU_API enum akunu_status akunu_last_status(void);

/* "0.1.0". */
AKUNU_API const char *akunu_version(void);

/* One line about the build: compiler, ISA bundles built, optional libraries. */
AKUNU_API const char *akunu_build_info(void);

/* The best ISA bundle that this machine and build have ("avx512"). */
AKUNU_API const char *akunu_cpu_best(void);

/* Bundle number `i` that this machine and build can run, "scalar" first, the
 * best one last; NULL past the end. */
AKUNU_API const char *akunu_cpu_name(size_t i);

enum akunu_log_level { AKUNU_LOG_DEBUG = 0, AKUNU_LOG_INFO = 1, AKUNU_LOG_WARN = 2 };

/* One line without a newline. Called by the thread that called the library. */
typedef void akunu_log_fn(enum akunu_log_level level, const char *line, void *user);

/* ---- Looking into a file without loading it ----------------------------- */
/* An opened model file: headers only, tensors are mapped and not touched. */
struct akunu_file;

/* `path`: a GGUF file, or the first part of a split one; a folder of SafeTensors with
 * config.json, or one SafeTensors file beside it; a folder of NumPy arrays with manifest.json
 * and config.json; a Whisper model of before GGUF; a NumPy array. */
AKUNU_API struct akunu_file *akunu_file_open(const char *path);
/* The same with metadata in place of the file's, as in akunu_load_params; NULL allowed. */
AKUNU_API struct akunu_file *akunu_file_open_with(const char *path, const char *const *override_kv);
AKUNU_API void akunu_file_free(struct akunu_file *file);

struct akunu_file_info {
    size_t size;              /* sizeof(struct akunu_file_info), set by the caller */
    const char *format;       /* "gguf", "safetensors", "npy-dir", "whisper-ggml", "npy" */
    const char *architecture; /* "llama", "" where the file has none */
    size_t n_tensors, n_metadata;
    uint64_t bytes; /* of all parts */
};
AKUNU_API enum akunu_status akunu_file_get_info(const struct akunu_file *file,
                                                struct akunu_file_info *info);

struct akunu_tensor_info {
    size_t size;           /* set by the caller */
    const char *name;      /* as in the file */
    const char *canonical; /* akunu's name, NULL where it has none */
    const char *type;      /* "Q4_1" */
    unsigned n_dims;       /* 1 … 4 */
    uint64_t shape[4];     /* row-major: the last of n_dims is the contiguous one */
    uint64_t bytes;
    uint64_t offset; /* from the start of its file part */
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
    enum akunu_meta_type type; /* of an array: AKUNU_META_ARRAY */
    enum akunu_meta_type element_type;
    uint64_t n; /* bytes of a string, elements of an array, else 1 */
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
    const char *name;  /* as akunu_file_info has it: "gguf" */
    const char *about; /* what files these are */
};
struct akunu_architecture_info {
    size_t size;
    const char *name;  /* of GGUF's general.architecture: "qwen2moe" */
    const char *about; /* which models these are */
    /* all that files call it, `name` and config.json's model_type among them; ends in NULL */
    const char *const *names;
    bool experts; /* a mixture of experts */
};
struct akunu_type_info {
    size_t size;
    const char *name;                  /* "Q4_K" */
    unsigned block_elems, block_bytes; /* bytes of so many weights of a row */
    bool integers;                     /* products with it are of 8-bit integers, else of floats */
    /* a load lays it out anew for the kernels, else it is used where the file has it */
    bool packed;
};
struct akunu_quantisation_info {
    size_t size;
    const char *name;  /* quant_method of config.json, "mlx" for MLX's own key */
    const char *about; /* what of it is read */
};

/* Number i from 0 on; AKUNU_ERROR_ARGUMENT past the last one. Strings live as long as
 * the program. */
AKUNU_API enum akunu_status akunu_format_at(size_t i, struct akunu_format_info *info);
AKUNU_API enum akunu_status akunu_architecture_at(size_t i, struct akunu_architecture_info *info);
AKUNU_API enum akunu_status akunu_type_at(size_t i, struct akunu_type_info *info);
AKUNU_API enum akunu_status akunu_quantisation_at(size_t i, struct akunu_quantisation_info *info);

/* A device that a backend other than the CPU's can use, or could. */
struct akunu_device_info {
    size_t size;
    char backend[16];                                       /* "opencl" */
    char name[128], vendor[128], version[128], driver[128]; /* as its driver tells, ASCII */
    char features[128];                                     /* "gpu, unified memory, fp16" */
    uint64_t memory;                                        /* bytes */
    uint64_t most_allocation;                               /* in one piece */
    unsigned units, mhz;
    bool usable; /* it has what akunu's kernels need */
};
/* Number i from 0 on, as akunu_load_params' `device` counts. AKUNU_ERROR_ARGUMENT past the
 * last one; AKUNU_ERROR_UNSUPPORTED, with the reason, where this machine or build has none. */
AKUNU_API enum akunu_status akunu_device_at(size_t i, struct akunu_device_info *info);

/* ---- Tokens and text ---------------------------------------------------- */
typedef int32_t akunu_token;

/* Turns text into tokens and back. A model carries one; a file that holds a
 * vocabulary alone serves as well. */
struct akunu_tokenizer;

/* Reads only the vocabulary of the file at `path`. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load(const char *path);
/* The same with metadata in place of the file's, as in akunu_load_params; NULL allowed. */
AKUNU_API struct akunu_tokenizer *akunu_tokenizer_load_with(const char *path,
                                                            const char *const *override_kv);
AKUNU_API void akunu_tokenizer_free(struct akunu_tokenizer *tokenizer);

enum {
    AKUNU_ADD_SPECIAL = 1,  /* add what the model adds: BOS, EOS … as it says */
    AKUNU_PARSE_SPECIAL = 2 /* control tokens written in the text become those tokens */
};

/* Writes at most `capacity` ids and gives the number of ids of the whole text,
 * which may be larger, or -1 on failure. `ids` may be NULL where capacity is 0.
 * `text` is any n_bytes bytes: NUL and invalid UTF-8 are no error. */
AKUNU_API int64_t akunu_tokenize(const struct akunu_tokenizer *tokenizer, const char *text,
                                 size_t n_bytes, unsigned flags, akunu_token *ids, size_t capacity);

enum {
    AKUNU_SKIP_SPECIAL = 1, /* leave control tokens out */
    AKUNU_CONTINUE =
        2 /* the tokens go on with a text: a blank that they begin with belongs to it. Without it,
           * the blank that Llama's tokenizer puts before a text is taken away again. */
};

/* Writes at most `capacity` bytes (no NUL) and gives the number of bytes of the
 * whole text, or -1 on failure (an id outside the vocabulary). */
AKUNU_API int64_t akunu_detokenize(const struct akunu_tokenizer *tokenizer, const akunu_token *ids,
                                   size_t n_ids, unsigned flags, char *text, size_t capacity);

AKUNU_API size_t akunu_vocab_size(const struct akunu_tokenizer *tokenizer);

/* True for tokens that end a text: end of sequence, of turn, of text. */
AKUNU_API bool akunu_token_is_end(const struct akunu_tokenizer *tokenizer, akunu_token token);

/* True for control tokens and for unknown. */
AKUNU_API bool akunu_token_is_control(const struct akunu_tokenizer *tokenizer, akunu_token token);

/* The model's beginning-of-sequence token, -1 where it has none. */
AKUNU_API akunu_token akunu_token_bos(const struct akunu_tokenizer *tokenizer);

/* Puts a stream of tokens into text, never splitting a UTF-8 character. */
struct akunu_stream;
AKUNU_API struct akunu_stream *akunu_stream_new(const struct akunu_tokenizer *tokenizer,
                                                unsigned flags);
AKUNU_API void akunu_stream_free(struct akunu_stream *stream);
/* Adds one token. *text gets the characters that became complete (maybe none),
 * valid until the next call. akunu_stream_end gives what is left, incomplete
 * bytes as U+FFFD, and makes the stream ready for the next text. */
AKUNU_API enum akunu_status akunu_stream_push(struct akunu_stream *stream, akunu_token token,
                                              const char **text, size_t *n_bytes);
AKUNU_API enum akunu_status akunu_stream_end(struct akunu_stream *stream, const char **text,
                                             size_t *n_bytes);

/* ---- Grammars ----------------------------------------------------------- */
/* Which texts a model may write (akunu_sampling.grammar). Immutable; it may be used by any
 * number of threads, and must outlive the samplers and calls that it was given to. */
struct akunu_grammar;

/* From GBNF, the grammars of llama.cpp (docs/grammar.md). Messages begin with line and
 * column. A token that is referred to is looked up where the grammar is used. */
AKUNU_API struct akunu_grammar *akunu_grammar_parse(const char *text, size_t n_bytes);

enum akunu_schema_form {
    /* for a model: members in the order of the schema, little white space */
    AKUNU_SCHEMA_WRITING = 0,
    AKUNU_SCHEMA_READING = 1 /* for checking texts: any way in which JSON may be written */
};
struct akunu_schema_params {
    size_t size;
    enum akunu_schema_form form; /* AKUNU_SCHEMA_WRITING */
    /* false; a keyword that is not supported is passed over with a warning to log, else refused */
    bool lax;
    akunu_log_fn *log; /* NULL allowed */
    void *user;
};
AKUNU_API void akunu_schema_params_default(struct akunu_schema_params *params);

/* From a JSON Schema (draft 2020-12): JSON texts that it allows, and none that it forbids.
 * params may be NULL. AKUNU_ERROR_UNSUPPORTED: the message names a keyword that no grammar
 * is made of, and its place; AKUNU_ERROR_FORMAT: it is no schema. */
AKUNU_API struct akunu_grammar *akunu_grammar_from_schema(const char *schema, size_t n_bytes,
                                                          const struct akunu_schema_params *params);

/* A grammar that waits: any text may come before one of the words, which end with NULL, and
 * after it a text of `grammar`; with `again` this goes on, else the text ends there. The text
 * of control tokens counts. It need not outlive what is made of it. */
AKUNU_API struct akunu_grammar *akunu_grammar_after(const struct akunu_grammar *grammar,
                                                    const char *const *words, bool again);
AKUNU_API void akunu_grammar_free(struct akunu_grammar *grammar);

/* Is the whole text allowed? *at, which may be NULL, is the first byte that is not: n_bytes
 * where the text is, or could be with more behind it. With a tokenizer control tokens in the
 * text are those tokens; NULL: a token that the grammar names by its text stands for that text. */
AKUNU_API enum akunu_status akunu_grammar_check(const struct akunu_grammar *grammar,
                                                const struct akunu_tokenizer *tokenizer,
                                                const char *text, size_t n_bytes, bool *allowed,
                                                size_t *at);

/* ---- Chat templates ----------------------------------------------------- */
/* What turns a conversation into the prompt that a model was trained on: the Jinja templates
 * of its files, run as Hugging Face's transformers runs them, and the special tokens that they
 * name. Immutable; JSON goes in as UTF-8 text that ends in NUL. */
struct akunu_template;

/* The templates of the model at `path`; only headers and vocabulary are read. A model without
 * one has ChatML's (akunu_template_is_fallback). override_kv as in akunu_load_params, NULL
 * allowed. A template that cannot be parsed is an error, and never replaced. */
AKUNU_API struct akunu_template *akunu_template_load(const char *path,
                                                     const char *const *override_kv);
/* The same of a loaded model. The caller frees it; it may outlive the model. */
struct akunu_model;
AKUNU_API struct akunu_template *akunu_model_template(const struct akunu_model *model);
/* One template from its text. Special tokens are those of `tokens`, NULL: none. */
AKUNU_API struct akunu_template *akunu_template_parse(const char *text, size_t n_bytes,
                                                      const struct akunu_template *tokens);
AKUNU_API void akunu_template_free(struct akunu_template *chat);

/* True where the model has no template and ChatML stands in. */
AKUNU_API bool akunu_template_is_fallback(const struct akunu_template *chat);
/* Names of the templates, "default" among them unless the model has none of that name; NULL
 * past the end. */
AKUNU_API const char *akunu_template_name(const struct akunu_template *chat, size_t i);
/* The template that a conversation with or without tools takes: its text, which ends in NUL, and,
 * in *n_bytes unless that is NULL, its length. NULL where `name` is none of its templates; name
 * NULL: "tool_use" where there are tools and it exists, else "default". */
AKUNU_API const char *akunu_template_text(const struct akunu_template *chat, const char *name,
                                          bool tools, size_t *n_bytes);

struct akunu_chat {
    size_t size;
    const char *messages;  /* a list of objects: [{"role": "user", "content": "Hi"}, …] */
    const char *tools;     /* a list of objects, NULL: none */
    const char *documents; /* a list of objects, NULL: none */
    /* an object whose members the template sees as variables, special tokens' names among them:
     * {"enable_thinking": false}; NULL: none */
    const char *kwargs;
    const char *name;           /* which template, NULL: as akunu_template_text says */
    bool add_generation_prompt; /* true: end with what an answer begins with */
    /* the text ends inside this field ("content") of the last message, for the model to go on
     * with; then add_generation_prompt must be false. NULL: not so */
    const char *continue_final_message;
    const char *bos_token, *eos_token; /* in place of the model's, NULL: the model's */
    /* the time of strftime_now, in seconds since 1970, 0: the clock */
    int64_t now;
};
AKUNU_API void akunu_chat_default(struct akunu_chat *chat);

/* The prompt, which ends in a NUL beyond its *n_bytes (NULL allowed); the caller frees it with
 * akunu_text_free. NULL on failure: the message names line and column, and of what a template
 * itself refuses (raise_exception) it has the template's words. What a template may use is
 * limited (time, memory, output), so it ends whatever it holds. */
AKUNU_API char *akunu_template_render(const struct akunu_template *chat,
                                      const struct akunu_chat *input, size_t *n_bytes);

/* Frees a text that a call gave to its caller. NULL allowed. */
AKUNU_API void akunu_text_free(char *text);

/* ---- Tool calls and reasoning ------------------------------------------- */
/* Takes apart what a model writes, while it writes it: its reasoning, what it says, and
 * calls of tools, in the form in which that model was taught to make them.
 *
 *     reply = akunu_reply_new(&params, on_event, user);
 *     akunu_reply_push(reply, text, n_bytes);     for every piece that is generated
 *     akunu_reply_end(reply);
 *     puts(akunu_reply_message(reply));           the whole as a message of OpenAI's form
 *
 * Generate with `special` true: models mark these parts by control tokens. To split off
 * reasoning only, set `calls` to false; the events are then AKUNU_REPLY_REASONING and
 * AKUNU_REPLY_CONTENT, and the prompt tells whether the reasoning has begun already.
 *
 * Pieces may end anywhere: the same text gives the same message, and the same events but
 * for where texts are cut. A text that could still become a marker waits until it is
 * decided, at the latest by akunu_reply_end. Nothing is lost: what begins like a call and
 * is none comes out as content. Blanks beside a marker belong to the marker; where text
 * goes on after a call or a block of reasoning, a newline stands between. */
struct akunu_reply;

struct akunu_reply_params {
    size_t size;
    /* NULL or "auto": as the template and the vocabulary tell; else an akunu_reply_format_name */
    const char *format;
    const char *chat_template; /* the template's text, NULL where it is not known */
    /* the vocabulary, NULL where it is not known; used by akunu_reply_new alone */
    const struct akunu_tokenizer *tokenizer;
    /* the prompt as rendered, or the end of it; NULL: the model begins its answer */
    const char *prompt;
    /* a JSON list of tools in OpenAI's form; NULL: any name is one of a tool's, and values that
     * the format leaves without a type have the one that they look like */
    const char *tools;
    bool calls; /* look for calls; default true */
    /* tell reasoning apart; default true. false: it stays in the content, markers and all */
    bool reasoning;
    uint64_t seed; /* the ids of calls follow from it: give each reply another */
};
AKUNU_API void akunu_reply_params_default(struct akunu_reply_params *params);

enum akunu_reply_kind {
    AKUNU_REPLY_REASONING = 1, /* a piece of reasoning */
    AKUNU_REPLY_CONTENT = 2,   /* a piece of what is said */
    AKUNU_REPLY_CALL = 3,      /* a call begins: text is the tool's name, id the call's */
    AKUNU_REPLY_ARGUMENTS = 4, /* a piece of its arguments, JSON text */
    /* the call is complete: text is all of its arguments, an object of JSON that was checked */
    AKUNU_REPLY_CALL_END = 5,
    /* the call that began is none: text says why; as content follows what the model wrote */
    AKUNU_REPLY_BROKEN = 6
};

struct akunu_reply_event {
    size_t size;
    enum akunu_reply_kind kind;
    /* UTF-8, whole characters (bytes that are none come as U+FFFD), no NUL at the end */
    const char *text;
    size_t n_bytes;
    size_t call;    /* of calls: how many began before it, broken ones included */
    const char *id; /* of AKUNU_REPLY_CALL, NUL-terminated; else NULL */
};

/* All of an event is valid during the call only. */
typedef void akunu_reply_fn(const struct akunu_reply_event *event, void *user);

/* params NULL: the defaults; on_event NULL: no events, only the message. Everything in
 * params is copied. Fails on a format that is not known and on tools that are no list of
 * functions. */
AKUNU_API struct akunu_reply *akunu_reply_new(const struct akunu_reply_params *params,
                                              akunu_reply_fn *on_event, void *user);
AKUNU_API void akunu_reply_free(struct akunu_reply *reply);

/* The only failure is of memory. */
AKUNU_API enum akunu_status akunu_reply_push(struct akunu_reply *reply, const char *text,
                                             size_t n_bytes);
/* No more will come. A call that is not complete by now is a broken one. */
AKUNU_API enum akunu_status akunu_reply_end(struct akunu_reply *reply);

/* After akunu_reply_end, NULL before and without memory: {"role": "assistant", "content",
 * "reasoning_content", "tool_calls": [{"id", "type": "function", "function": {"name",
 * "arguments"}}]}, where content is null and the other two are left out if there is none. */
AKUNU_API const char *akunu_reply_message(struct akunu_reply *reply);
/* Why text that began like a call is content, one line each; "" where there is nothing to say. */
AKUNU_API const char *akunu_reply_notes(const struct akunu_reply *reply);
/* The format in use: "hermes", … */
AKUNU_API const char *akunu_reply_format(const struct akunu_reply *reply);
/* Number i of the formats that are known, NULL past the end. */
AKUNU_API const char *akunu_reply_format_name(size_t i);

struct akunu_calls_params {
    size_t size;
    /* OpenAI's tool_choice: "auto" (NULL too), "none", "required", a tool's name, or the object
     * that names one */
    const char *choice;
    bool parallel; /* more than one call in a reply; default true */
    /* false; what a tool's schema asks for and no grammar keeps is passed over with a warning to
     * log, else refused */
    bool lax;
    akunu_log_fn *log; /* NULL allowed */
    void *user;
};
AKUNU_API void akunu_calls_params_default(struct akunu_calls_params *params);

/* The grammar (akunu_sampling.grammar) that holds a model to calls of these tools, with
 * arguments that their schemas allow, in the form that akunu_reply reads; `reply` says which
 * one, as in akunu_reply_new, and has the tools. With "auto" any text may come: the grammar
 * begins with any marker of a call (where a format has none, with the beginning of the
 * reply), and ends with the call. With "required" and a name nothing but reasoning comes
 * before the call. calls NULL: the defaults. *out is NULL where there is nothing to
 * constrain: no tools, or "none". AKUNU_ERROR_UNSUPPORTED: the message names the keyword. */
AKUNU_API enum akunu_status akunu_grammar_of_calls(const struct akunu_reply_params *reply,
                                                   const struct akunu_calls_params *calls,
                                                   struct akunu_grammar **out);

/* ---- Models ------------------------------------------------------------- */
struct akunu_model;

/* Stages of akunu_load_model, in this order, each reported once. */
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

/* What multiplies weights with many tokens. */
enum akunu_prefill {
    AKUNU_PREFILL_CHOOSE = 0, /* as the chip profile says where `relaxed` is set, else own */
    AKUNU_PREFILL_OWN = 1,
    /* OpenBLAS, where it is found, over weights as floats; rounds otherwise */
    AKUNU_PREFILL_BLAS = 2
};

struct akunu_load_params {
    size_t size;
    const char *cpu;    /* highest ISA bundle ("avx2"); NULL: the best there is */
    unsigned n_threads; /* for packing; 0: the chip profile's, else the physical cores */
    bool strict;        /* a tensor that nothing claims is an error */
    bool warm_up;       /* touch the weights and run one token before returning */
    bool no_cache;      /* do not use the packed cache: pack into memory */
    /* its folder; NULL: $AKUNU_CACHE_DIR, $XDG_CACHE_HOME/akunu or ~/.cache/akunu */
    const char *cache_dir;
    akunu_progress_fn *progress; /* NULL: silent */
    akunu_log_fn *log;           /* NULL: silent */
    void *user;                  /* for both callbacks */
    /* a chip profile to use alone; NULL: the system's, then the user's, where there are any */
    const char *profile;
    /* faster kernels that round otherwise: bits depend on machine, batch and threads */
    bool relaxed;
    enum akunu_prefill prefill;
    /* metadata in place of the file's, "KEY=TYPE:VALUE" with TYPE int, float, bool or str; ends
     * with NULL; NULL: none */
    const char *const *override_kv;
    const char *backend; /* "cpu" or "opencl"; NULL: the CPU */
    /* of that backend: its number (akunu_device_at) or a part of its name; NULL: the first
     * usable */
    const char *device;
    /* layers on the device, the last ones, and with them the output; the CPU has those before.
     * -1, the default: all; 0: none, so that the CPU runs the model */
    int n_gpu_layers;
};
AKUNU_API void akunu_load_params_default(struct akunu_load_params *params);

/* Loads the model at `path`. params may be NULL. */
AKUNU_API struct akunu_model *akunu_load_model(const char *path,
                                               const struct akunu_load_params *params);
AKUNU_API void akunu_model_free(struct akunu_model *model);

/* What of a text's hidden states, the last ones of its tokens, becomes its embedding. */
enum akunu_pooling {
    AKUNU_POOLING_MODEL = 0, /* as the model's files say (akunu_model_info) */
    AKUNU_POOLING_MEAN = 1,  /* the mean of all tokens, those that the tokenizer adds included */
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
    const char *name;         /* the file's own, "" where it has none */
    const char *architecture; /* "llama" */
    const char *format;       /* "gguf", "safetensors", "npy-dir" */
    const char *weight_type;  /* the type that most bytes have */
    const char *cpu;          /* the ISA bundle in use */
    uint32_t n_layers, width, n_heads, n_kv_heads, head_dim, ffn_width, vocab_size;
    uint32_t context; /* what the model was made for, in tokens */
    uint64_t n_parameters;
    uint64_t token_weight_bytes; /* read for one token of decode */
    /* in the layers' matrices: the work of one prefill token is twice that */
    uint64_t matrix_parameters;
    /* of these, those that are multiplied as floats; the rest as int8 */
    uint64_t float_parameters;
    bool encoder; /* it makes embeddings and no text: akunu_embed alone runs it */
    /* of embeddings, as its files say; where they say nothing, the mean of an encoder's tokens,
     * and the last one of a language model's */
    enum akunu_pooling pooling;
    /* to unit length, as sentence-transformers' files say; from GGUF always */
    bool normalized;
};
AKUNU_API enum akunu_status akunu_model_get_info(const struct akunu_model *model,
                                                 struct akunu_model_info *info);

/* The model's own tokenizer; NULL where the file has no vocabulary. */
AKUNU_API const struct akunu_tokenizer *akunu_model_tokenizer(const struct akunu_model *model);

/* The file it came from, for its metadata and tensors. Lives with the model. */
AKUNU_API const struct akunu_file *akunu_model_file(const struct akunu_model *model);

/* The dispatch table as text, for people and tests. sampled: the variant that
 * ends in a Gumbel step; NULL where the model is an encoder. Lives with the model. */
AKUNU_API const char *akunu_model_dump(const struct akunu_model *model, bool sampled);

/* ---- The cache ---------------------------------------------------------- */
/* A model's first load packs its weights into a file of the cache folder, and
 * later ones map that file. What cannot be cached (a full disk, a folder that
 * cannot be written) is packed into memory, and the log says why in one line;
 * results are the same bits either way. Processes that load a model at the same
 * time build it once. Beside them lie the prompts that akunu_sequence_keep kept.
 * Files may be removed at any time, also while in use. */
struct akunu_cache;

enum akunu_cache_state {
    AKUNU_CACHE_READY = 1,
    AKUNU_CACHE_STALE = 2,      /* its model file is gone, or has changed since */
    AKUNU_CACHE_DAMAGED = 3,    /* not as it was written, or of another version: never used */
    AKUNU_CACHE_UNFINISHED = 4, /* left by a process that ended while building it */
    AKUNU_CACHE_BUILDING = 5    /* a process is building it at this moment */
};
AKUNU_API const char *akunu_cache_state_name(enum akunu_cache_state state); /* "ready" */

/* What is in the folder `dir` now; NULL: the folder that akunu_load_model uses. A
 * folder that does not exist is an empty cache. */
AKUNU_API struct akunu_cache *akunu_cache_open(const char *dir);
AKUNU_API void akunu_cache_free(struct akunu_cache *cache);
AKUNU_API const char *akunu_cache_path(const struct akunu_cache *cache);
AKUNU_API size_t akunu_cache_count(const struct akunu_cache *cache);

struct akunu_cache_entry {
    size_t size;         /* set by the caller */
    const char *file;    /* its name in the folder */
    const char *model;   /* path of the model file, "" where unknown */
    const char *backend; /* "cpu", "" where unknown */
    enum akunu_cache_state state;
    uint64_t bytes; /* on disk */
    /* seconds since 1970; built is 0 where unknown, used is when it was last mapped */
    int64_t built, used;
    uint64_t n_tokens; /* of a prompt; 0: packed weights */
};
/* i in 0 … count-1. Strings live as long as the cache. */
AKUNU_API enum akunu_status akunu_cache_get_entry(const struct akunu_cache *cache, size_t i,
                                                  struct akunu_cache_entry *entry);

/* Removes the file of entry i; the entry stays, so that the numbers of others do
 * not change. AKUNU_ERROR_IO: it cannot be removed, or it is being built. */
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
    /* most tokens of one pass; 0: the chip profile's, else 512; of an encoder the context */
    uint32_t batch;
    uint32_t max_sequences;            /* 0: 1, of an encoder 64 */
    unsigned n_threads;                /* 0: the chip profile's, else the physical cores */
    enum akunu_kv_type k_type, v_type; /* an encoder has no cache and takes no heed of them */
    akunu_log_fn *log;
    void *user;
    /* CPUs to pin threads to, as "0-3,8": the i-th thread to the i-th one. The calling
     * thread, which is the first, is the caller's to place. NULL: the system places them. */
    const char *cpus;
};
AKUNU_API void akunu_session_params_default(struct akunu_session_params *params);
AKUNU_API struct akunu_session *akunu_session_new(const struct akunu_model *model,
                                                  const struct akunu_session_params *params);
AKUNU_API void akunu_session_free(struct akunu_session *session);

/* Tokens that fit, over all sequences, and the largest pass. */
AKUNU_API uint32_t akunu_session_context(const struct akunu_session *session);
AKUNU_API uint32_t akunu_session_batch(const struct akunu_session *session);
AKUNU_API unsigned akunu_session_threads(const struct akunu_session *session);

struct akunu_memory {
    size_t size;
    uint64_t mapped; /* the file, in the page cache */
    /* weights in the kernels' layout: memory of this process, and the packed cache */
    uint64_t packed;
    uint64_t kv; /* the KV pool of this session */
    /* activations of this session, and the opened weights of a small encoder of floats */
    uint64_t scratch;
    uint64_t tokenizer; /* vocabulary */
    uint64_t table;     /* dispatch tables and what the backend prepared */
    uint64_t cached;    /* of packed: mapped from the packed cache, shared between processes */
};
/* session may be NULL: then kv and scratch are 0. */
AKUNU_API enum akunu_status akunu_memory_report(const struct akunu_model *model,
                                                const struct akunu_session *session,
                                                struct akunu_memory *out);

/* How often each kind of matrix kernel ran in this session, over all threads:
 * one token, a few tokens, many tokens. For tests and profiles. */
struct akunu_counters {
    size_t size;
    uint64_t passes, tokens, gemv, small_n, gemm;
};
AKUNU_API enum akunu_status akunu_session_counters(const struct akunu_session *session,
                                                   struct akunu_counters *out);

/* akunu_decode, akunu_prefill and akunu_generate are AKUNU_ERROR_UNSUPPORTED where the
 * model is an encoder. */

/* One growing text in the KV cache; a number ≥ 0, or -1 on failure. */
typedef int32_t akunu_sequence;
AKUNU_API akunu_sequence akunu_sequence_new(struct akunu_session *session);
AKUNU_API void akunu_sequence_free(struct akunu_session *session, akunu_sequence sequence);

/* Tokens in the cache. */
AKUNU_API uint32_t akunu_sequence_length(const struct akunu_session *session,
                                         akunu_sequence sequence);

/* Forgets all but the first `length` tokens. Models with layers that keep a running state
 * (lfm2, qwen3next, qwen35) compute what is left once more with the next token, unless that is
 * nothing. */
AKUNU_API enum akunu_status akunu_sequence_rewind(struct akunu_session *session,
                                                  akunu_sequence sequence, uint32_t length);

/* A new sequence that shares the first `length` tokens of another: whole pages
 * by reference, the rest by copy. The state of such models is copied with all tokens of
 * the other one, and computed again for fewer. */
AKUNU_API akunu_sequence akunu_sequence_fork(struct akunu_session *session, akunu_sequence sequence,
                                             uint32_t length);

/* Writes a sequence's tokens, keys and values to a file, which appears when it is complete, or
 * not at all; and brings them into an empty sequence of a session with the same model and the
 * same types of keys and values, on this machine or another, with the same bits.
 * AKUNU_ERROR_UNSUPPORTED: the model keeps a running state, or runs on a device.
 * AKUNU_ERROR_FORMAT: the file is damaged, of another model, or writable by others.
 * AKUNU_ERROR_CONTEXT: its text does not fit. */
AKUNU_API enum akunu_status akunu_sequence_save(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);
AKUNU_API enum akunu_status akunu_sequence_load(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);

/* Prompts that were run before, kept on disk. Files are this user's alone (mode 0600). */
struct akunu_prompt_cache {
    size_t size;
    const char *dir;    /* NULL: the folder of the packed weights */
    const char *file;   /* one file in place of the folder; NULL: none */
    uint64_t max_bytes; /* of all prompts in the folder: those not used for longest go (2 GiB) */
    uint32_t least;     /* shorter prompts are neither looked for nor kept (128 tokens) */
};
AKUNU_API void akunu_prompt_cache_default(struct akunu_prompt_cache *cache);

/* Gives an empty sequence as many of the prompt's first tokens as a kept one begins with, but
 * never all of them: run the others, ids + *n_restored and so on, and logits are the same bits
 * as without. cache may be NULL. What cannot be used (damage, another model, models with a
 * running state) is done without: then *n_restored is 0, and the session's log has a line. */
AKUNU_API enum akunu_status akunu_sequence_restore(struct akunu_session *session,
                                                   akunu_sequence sequence, const akunu_token *ids,
                                                   size_t n_ids,
                                                   const struct akunu_prompt_cache *cache,
                                                   size_t *n_restored);

/* Keeps the first n_tokens of a sequence for later prompts, unless nearly all of them are kept
 * already. What cannot be written is done without, as above. */
AKUNU_API enum akunu_status akunu_sequence_keep(struct akunu_session *session,
                                                akunu_sequence sequence, size_t n_tokens,
                                                const struct akunu_prompt_cache *cache);

/* One token of a pass. Tokens of a sequence follow its length in order. */
struct akunu_batch_token {
    akunu_token token;
    akunu_sequence sequence;
    bool logits; /* its logits are wanted */
};

/* Runs n tokens, 1 … akunu_session_batch(), of one or several sequences, in one
 * pass. On failure no sequence has changed. AKUNU_ERROR_CONTEXT: the message has
 * both counts. */
AKUNU_API enum akunu_status akunu_decode(struct akunu_session *session,
                                         const struct akunu_batch_token *tokens, size_t n);

/* Logits of token i of the last pass, vocab_size floats; NULL where they were
 * not asked for. Valid until the next pass. */
AKUNU_API const float *akunu_logits(const struct akunu_session *session, size_t i);

/* Runs a whole prompt through passes of the session's batch; at the end the last
 * token's logits are akunu_logits(session, *last). cancel: NULL, or asked before
 * every pass, true stops with AKUNU_ERROR_CANCELLED (what was run stays). */
typedef bool akunu_cancel_fn(void *user);
AKUNU_API enum akunu_status akunu_prefill(struct akunu_session *session, akunu_sequence sequence,
                                          const akunu_token *ids, size_t n, akunu_cancel_fn *cancel,
                                          void *user, size_t *last);

/* ---- Embeddings --------------------------------------------------------- */
struct akunu_embedding {
    size_t size;
    enum akunu_pooling pooling;
    enum akunu_normalize normalize;
};
AKUNU_API void akunu_embedding_default(struct akunu_embedding *embedding);

/* A text as tokens, with what its tokenizer adds (AKUNU_ADD_SPECIAL). */
struct akunu_ids {
    const akunu_token *ids;
    size_t n;
};

/* Embeds n texts: row i of out, [n, width] floats with width as in akunu_model_info, is
 * that of texts[i], the same bits whatever the other texts are. Short texts share a pass,
 * as many as the session has free sequences. Both encoders and language models make
 * embeddings; a text of an encoder is one pass, so it has at most akunu_session_batch()
 * tokens. embedding may be NULL: as the model says. cancel: NULL, or asked before every
 * pass.
 * AKUNU_ERROR_ARGUMENT: an id outside the vocabulary, a text without tokens, no free
 * sequence. AKUNU_ERROR_CONTEXT: a text is too long; the message has its number and both
 * counts. AKUNU_ERROR_UNSUPPORTED: the model's files ask for what akunu does not have.
 * AKUNU_ERROR_NUMERIC: an embedding has an element that is no number. All texts are
 * checked before the first pass; no sequence is left behind. */
AKUNU_API enum akunu_status akunu_embed(struct akunu_session *session,
                                        const struct akunu_ids *texts, size_t n,
                                        const struct akunu_embedding *embedding,
                                        akunu_cancel_fn *cancel, void *user, float *out);

/* ---- Choosing the next token -------------------------------------------- */
/* Added to a token's logit: INFINITY for a token that must come, -INFINITY for one that must not.
 */
struct akunu_logit_bias {
    akunu_token token;
    float bias;
};

/* First the bias, then the samplers in their order, then the draw. Each works as in llama.cpp, and
 * the defaults are llama.cpp's. */
struct akunu_sampling {
    size_t size;
    /* 0.8; ≤ 0: the likeliest token after bias, penalties and DRY, filters ignored */
    float temperature;
    int32_t top_k;           /* 40; ≤ 0: off */
    float top_p;             /* 0.95; ≥ 1: off */
    float min_p;             /* 0.05; ≤ 0: off */
    float repeat_penalty;    /* 1.0: off */
    int32_t repeat_last_n;   /* 64 tokens looked at; 0: off; -1: all in the context */
    float presence_penalty;  /* 0.0 */
    float frequency_penalty; /* 0.0 */
    uint64_t seed;           /* UINT64_MAX: a random one */
    bool ignore_end;         /* never choose a token that ends the text */

    /* The order, as names with ';' between or as letters; at most one of the two is given, and ""
     * leaves the bare draw. NULL both:
     * "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature", or "edskypmxt". There is
     * also "adaptive_p", "a", which chooses the token and so is always the last. A sampler that is
     * not named does nothing, one that is named twice works twice. */
    const char *samplers;
    const char *sampler_seq;

    /* 0.0: off; else the temperature is between temperature − range, at least 0, and … */
    float dynatemp_range;
    float dynatemp_exponent; /* 1.0; … + range, at (entropy / its largest)^exponent of the way */
    /* 1.0; ≤ 0, ≥ 1: off; keeps the tokens whose surprise is nearest to the entropy */
    float typical_p;
    /* -1.0; ≤ 0: off; keeps logits within so many standard deviations of the best */
    float top_n_sigma;
    /* 0.0: off; how often all but the least likely of the tokens go whose … */
    float xtc_probability;
    float xtc_threshold; /* 0.1; … probability is this or more; above 0.5: off */

    /* DRY: a token that would make a repetition of n ≥ allowed tokens longer loses
     * multiplier · base^(n − allowed); sequence breakers are strings over which none goes. */
    float dry_multiplier;       /* 0.0: off */
    float dry_base;             /* 1.75; 1 or more */
    int32_t dry_allowed_length; /* 2 */
    int32_t dry_penalty_last_n; /* 64 tokens looked at; 0: off */
    const char *const
        *dry_sequence_breakers; /* of 1 to 40 bytes, ends with NULL; NULL: "\n", ":", "\"", "*" */

    /* 0: off; 1, 2: its version, which after the temperature takes the place of all samplers */
    int32_t mirostat;
    float mirostat_tau; /* 5.0; the surprise wanted, in bits */
    float mirostat_eta; /* 0.1; how fast it is learnt */
    /* -1.0; < 0: adaptive_p just draws; else the probability to choose tokens near to, at most 1 */
    float adaptive_target;
    /* 0.9; 0 … 0.99: how long it remembers, about 1 / (1 − decay) tokens */
    float adaptive_decay;

    const struct akunu_logit_bias *logit_bias; /* n of them; those of one token add up */
    size_t n_logit_bias;

    /* NULL: any text. Tokens that it does not allow are taken away before all samplers; tokens that
     * end the text are allowed where the grammar may end, and where it must a text ends by itself.
     * akunu_sample takes each token that it chooses for the next one of the text. */
    const struct akunu_grammar *grammar;
};
AKUNU_API void akunu_sampling_default(struct akunu_sampling *sampling);

/* Checks what can be checked without a model; akunu_sampler_new and akunu_generate do so too.
 * AKUNU_ERROR_ARGUMENT: the message names the field, what it is and what it may be. */
AKUNU_API enum akunu_status akunu_sampling_check(const struct akunu_sampling *sampling);

struct akunu_sampler;
AKUNU_API struct akunu_sampler *akunu_sampler_new(const struct akunu_model *model,
                                                  const struct akunu_sampling *sampling);
AKUNU_API void akunu_sampler_free(struct akunu_sampler *sampler);
/* The seed in use, for a text to be made again. */
AKUNU_API uint64_t akunu_sampler_seed(const struct akunu_sampler *sampler);
/* Tells the sampler of a token that is in the context, for the penalties. */
AKUNU_API void akunu_sampler_accept(struct akunu_sampler *sampler, akunu_token token);
/* Chooses from vocab_size logits, which stay as they are. -1 on failure. */
AKUNU_API akunu_token akunu_sample(struct akunu_sampler *sampler, const float *logits);

/* ln of the probability that the model gives a token: of the softmax of its logits as they are,
 * before bias, samplers and temperature. OpenAI's `logprobs` and `top_logprobs` and llama.cpp's
 * `n_probs` are these. */
struct akunu_logprob {
    akunu_token token;
    float logprob;
};
/* Of vocab_size logits: that of `token` to *logprob, and the n_top likeliest ones, the likeliest
 * first, to top, which may be NULL where n_top is 0. Where fewer tokens than that have a logit that
 * is a number, the others are token -1 with minus infinity. AKUNU_ERROR_ARGUMENT: the token is none
 * of the vocabulary, or n_top is more than that. */
AKUNU_API enum akunu_status akunu_logprobs(const float *logits, size_t vocab_size,
                                           akunu_token token, float *logprob,
                                           struct akunu_logprob *top, size_t n_top);

/* ---- Generating --------------------------------------------------------- */
/* Guessing the next tokens, so that one pass makes several. It changes the speed alone: a text is
 * the same without it, at every temperature. How much is guessed is chosen all the while by how
 * often guesses were right and by what passes take. */
enum akunu_speculation {
    AKUNU_SPECULATION_AUTO = 0, /* all that there is, where it is possible */
    AKUNU_SPECULATION_NONE = 1,
    AKUNU_SPECULATION_NGRAM = 2, /* by what followed the same tokens earlier in the text */
    AKUNU_SPECULATION_DRAFT = 3  /* by a draft model alone */
};

/* The log-probability of a token that was chosen, and of the n_top likeliest ones, as
 * akunu_logprobs gives them. */
typedef void akunu_logprobs_fn(akunu_token token, float logprob, const struct akunu_logprob *top,
                               size_t n_top, void *user);

struct akunu_generation {
    size_t size;
    int64_t max_tokens; /* -1: until the text or the context ends */
    struct akunu_sampling sampling;
    bool special; /* control tokens appear in the text */

    /* Where something was asked for, or a draft session is given, that it is not possible is
     * AKUNU_ERROR_UNSUPPORTED: models with a running state, devices, relaxed rounding. */
    enum akunu_speculation speculation;
    /* A session of a smaller model of the same vocabulary (else AKUNU_ERROR_ARGUMENT, which says
     * where they differ), with room for as many tokens, and a sequence in it, whose text is made to
     * follow this one: keep both for the next call. NULL: none. */
    struct akunu_session *draft;
    akunu_sequence draft_sequence;
    uint32_t draft_max; /* guesses a pass, at most 15 (0: 15) */
    uint32_t draft_min; /* fewer are not worth a pass (0: 1) */
    float draft_p_min;  /* a draft model stops where it is less sure than this (0) */

    /* NULL, or told of each token just before on_piece is, which of several choices tells the
     * number. It gets the same `user`, changes no text and costs a walk over the vocabulary a
     * token. */
    akunu_logprobs_fn *on_logprobs;
    uint32_t n_top_logprobs; /* at most the vocabulary's size */

    /* The text ends before the first of these in it; what could begin one is told when it does
     * not. At most 64 of 1 to 1024 bytes. */
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
    double prompt_seconds; /* until the first token is chosen */
    /* from there on: a pass for each token but the first, or for several */
    double generate_seconds;
    uint64_t n_drafted, n_accepted; /* tokens that were guessed, and that were right */
};

/* Appends the prompt's ids to the sequence, then generates. Nothing is
 * allocated per token. A token that ends the text is neither told nor counted.
 * But for AKUNU_STOP_END the last token told is not in the sequence yet: where
 * the text is to go on, the next call's ids begin with it. on_piece may be NULL;
 * it is also called with token -1 at the end where bytes were left. cancel: NULL,
 * or asked before every pass, of the prompt too; true ends with
 * AKUNU_ERROR_CANCELLED. It and on_piece get `user`. generation may be NULL: the
 * defaults. result may be NULL; it is filled in on failure too. */
AKUNU_API enum akunu_status akunu_generate(struct akunu_session *session, akunu_sequence sequence,
                                           const akunu_token *ids, size_t n_ids,
                                           const struct akunu_generation *generation,
                                           akunu_piece_fn *on_piece, akunu_cancel_fn *cancel,
                                           void *user, struct akunu_result *result);

/* As akunu_piece_fn, of choice number `choice`, 0 … n-1. Return false to stop that choice. */
typedef bool akunu_choice_fn(size_t choice, akunu_token token, const char *text, size_t n_bytes,
                             void *user);

/* Continues one prompt n times at once: the prompt is run once and its pages are shared, and each
 * pass takes a token of every choice. Choice i is the text that akunu_generate gives with the
 * seed + i. sequences[0] is the caller's; the others are filled in with forks of it, for the caller
 * to free, and with -1 on failure. The session needs n sequences (max_sequences), passes of n
 * tokens and a context for the prompt once and all continuations. Nothing is guessed. results:
 * NULL, or n of them, each with its size. AKUNU_ERROR_CONTEXT: no page was free for a fork. */
AKUNU_API enum akunu_status
akunu_generate_choices(struct akunu_session *session, akunu_sequence *sequences, size_t n,
                       const akunu_token *ids, size_t n_ids,
                       const struct akunu_generation *generation, akunu_choice_fn *on_piece,
                       akunu_cancel_fn *cancel, void *user, struct akunu_result *results);

/* ---- Converting --------------------------------------------------------- */
/* `fraction` of the work done, 0 … 1. Return false to stop. */
typedef bool akunu_convert_fn(double fraction, void *user);

struct akunu_convert_params {
    size_t size;
    /* of matrices: "F32", "F16", "BF16", "Q8_0"; NULL: as stored, what GGUF has no type for as
     * F32. Vectors are F32; rows that do not fill blocks are F16. */
    const char *type;
    /* tokenizer.ggml.pre; NULL: the known pre-tokenizer that cuts words as the model's does */
    const char *pre;
    bool overwrite;                 /* replace a file that is at the destination */
    const char *const *override_kv; /* as in akunu_load_params */
    akunu_convert_fn *progress;     /* called every few megabytes; NULL allowed */
    akunu_log_fn *log;              /* NULL allowed */
    void *user;
};
AKUNU_API void akunu_convert_params_default(struct akunu_convert_params *params);

/* Writes the model at `from`, of any format that can be loaded, as one GGUF file `to`,
 * tokenizer and metadata included, for akunu and for llama.cpp. It takes memory for a
 * tensor at most. The file appears when it is complete, or not at all, and no file of the
 * model is ever replaced.
 * AKUNU_ERROR_ARGUMENT: `to` is there already; AKUNU_ERROR_UNSUPPORTED: GGUF has no place
 * for something of the model, or no program reads such models as GGUF (speech);
 * AKUNU_ERROR_IO: it cannot be written, or would not fit. */
AKUNU_API enum akunu_status akunu_convert(const char *from, const char *to,
                                          const struct akunu_convert_params *params);

/* ---- Measuring ---------------------------------------------------------- */
/* The machine under the program, as the system describes it. */
struct akunu_chip {
    size_t size;               /* set by the caller */
    char name[64];             /* "" where unknown */
    uint32_t cores;            /* physical ones that this process may run on */
    uint32_t hardware_threads; /* of these cores */
    uint32_t numa_nodes;
    uint64_t l1d_bytes, l2_bytes, l3_bytes; /* of one core, shared or not; 0: none, or unknown */
    uint64_t memory_bytes;
};
AKUNU_API enum akunu_status akunu_get_chip(struct akunu_chip *out);

/* What this machine can do with all of n_threads together: bytes a second read
 * from memory, and operations a second, where a multiply-add counts as two. */
struct akunu_roofline {
    size_t size; /* set by the caller */
    double read_bytes_per_second, int8_ops_per_second;
    double f32_ops_per_second;
    double bf16_ops_per_second; /* 0: no instruction for it, or none that `cpu` uses */
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
/* Measures what the bits of `what` say, the rest of *out is 0; a tenth of a second or less a bit.
 * cpu: the ISA bundle whose instructions count; NULL: the best there is. */
AKUNU_API enum akunu_status akunu_measure(const char *cpu, unsigned n_threads, unsigned what,
                                          struct akunu_roofline *out);

/* The same of what a model runs on: the CPU with the model's bundle, or a device, whose
 * reading alone is measured. Where both have layers, read_bytes_per_second is that of a
 * pass, which reads the weights of one after those of the other. */
AKUNU_API enum akunu_status akunu_measure_model(const struct akunu_model *model, unsigned n_threads,
                                                unsigned what, struct akunu_roofline *out);

/* The same for everything and the best bundle. */
AKUNU_API enum akunu_status akunu_measure_roofline(unsigned n_threads, struct akunu_roofline *out);

/* A chip profile: what is chosen for a machine. 0: as detected. A file of it, in
 * YAML, is used by every load (akunu_load_params.profile). It never changes a bit
 * of a result. */
struct akunu_profile {
    size_t size;            /* set by the caller */
    uint32_t threads;       /* else the physical cores */
    uint32_t prefill_chunk; /* tokens of one pass over a prompt, where a session asks for none */
    /* Most tokens of a pass (1 … 16) for which the kernels of few tokens are taken, for
     * weights with a scale for each 32, for the K-types, for floats. */
    uint32_t small_n_scale32, small_n_scale256, small_n_float;
    /* Prompts of these weights run through OpenBLAS where rounding is relaxed. */
    bool blas_scale32, blas_scale256, blas_float;
};

/* `fraction` of the work done, 0 … 1. Return false to stop. */
typedef bool akunu_tune_fn(double fraction, void *user);

/* Measures which kernels are best for how many tokens, and fills in small_n_… and blas_…
 * where that is not the default; the rest of *out is 0. The fastest of n_runs runs of each
 * counts: 5 are sure enough and take some seconds, 1 is a quick look. cpu as in
 * akunu_measure; progress may be NULL. */
AKUNU_API enum akunu_status akunu_tune(const char *cpu, unsigned n_threads, unsigned n_runs,
                                       akunu_tune_fn *progress, void *user,
                                       struct akunu_profile *out);

/* Writes the file at `path`, at once or not at all; what is 0 is left out. */
AKUNU_API enum akunu_status akunu_profile_write(const struct akunu_profile *profile,
                                                const char *path);

#ifdef __cplusplus
}
#endif

#endif
