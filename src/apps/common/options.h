/* Flags and commands of akunu-cli, and the flags of akunu-server. options.def has the flags of
 * every command in one table, which drives parsing, --help, the AKUNU_… environment, the keys of
 * configuration files, completion and suggestions. */
#ifndef AK_APPS_COMMON_OPTIONS_H
#define AK_APPS_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "akunu/akunu.h"

/* Places of the commands in a set. */
enum app_command_index {
#define COMMAND(id, ...) APP_INDEX_##id,
#include "apps/common/commands.def"
    APP_INDEX_SERVER /* akunu-server, a program of its own */
};

/* Sets of commands: at most 64. */
typedef uint64_t app_command_set;
enum app_command_bit {
#define COMMAND(id, ...) APP_##id = (app_command_set)1 << APP_INDEX_##id,
#include "apps/common/commands.def"
    APP_SERVER = (app_command_set)1 << APP_INDEX_SERVER
};

/* What many commands share, as bits of a set. */
enum app_trait {
    APP_NAMES_MODEL = 1,                   /* takes -m and what else names a model */
    APP_LOADS_MODEL = 2 | APP_NAMES_MODEL, /* takes the flags of loading too */
    APP_WRITES_JSON = 4,                   /* takes --json */
    APP_STANDS_ALONE = 8 /* neither the environment nor a configuration changes what it does */
};

/* What a command is about to do, as bits of a set: a flag may be for some of these only. */
enum app_mode {
    APP_MODE_CHAT = 1 << 0,     /* run: a conversation */
    APP_MODE_ANSWER = 1 << 1,   /* run: one answer, by the chat template */
    APP_MODE_CONTINUE = 1 << 2, /* run: a text that goes on as it is */
    APP_MODE_MEASURE = 1 << 3,  /* bench */
    APP_MODE_TUNE = 1 << 4,     /* bench --tune */
    APP_MODE_LIST = 1 << 5,     /* cache list */
    APP_MODE_PRUNE = 1 << 6,    /* cache prune */
    APP_MODE_SHOW = 1 << 7      /* cache show */
};

enum { APP_MAX_FLAGS = 384 };

enum app_output_form { APP_FORM_MD = 0, APP_FORM_CSV = 1, APP_FORM_JSON = 2, APP_FORM_JSONL = 3 };

/* What logits writes. */
enum app_stage { APP_STAGE_LOGITS, APP_STAGE_MEL, APP_STAGE_ENCODER };

/* Several integers in one value: "128,512". */
enum { APP_MAX_LIST = 16 };
struct app_list {
    size_t n;
    int64_t values[APP_MAX_LIST];
};

/* Values of a flag that may be repeated. */
enum { APP_MAX_TEXTS = 64 };
struct app_texts {
    size_t n;
    const char *values[APP_MAX_TEXTS + 1]; /* ends with NULL */
};

/* Values of all flags. Strings point into argv, the environment or the configuration and are NULL
 * if not given; numbers hold their defaults, which are the library's in the first eight structs.
 * The others have a struct for each subject. */
struct app_options {
    struct akunu_load_params load;
    struct akunu_session_params session; /* n_threads counts for loading, too */
    struct akunu_sampling_params sampling;
    struct akunu_generation_params generation;
    struct akunu_embedding_params embedding;
    struct akunu_convert_params convert;
    struct akunu_transcription_params transcription;
    struct akunu_vad_params vad_params;

    app_command_set command;
    const char *word; /* one of the command's words, such as "list" or "prune" */
    bool help, version;
    const char *typed[APP_MAX_FLAGS]; /* each flag as an argument has it; NULL: no argument */
    const char *config;               /* file that replaces the system's and the user's */
    struct app_config *configuration;
    const char *preset; /* of the configuration, that -m names; NULL: none */

    struct app_model_options {
        const char *name;
        const char *hf_repo, *hf_file, *url; /* become `name` or one of `names` */
        struct app_texts names;              /* -m of bench and report */
        struct app_texts override_kv, ignore_keys;
        struct app_texts adapters; /* FILE[:SCALE],… */
        const char *draft;
        float rope_scale;      /* inverse of load.rope.freq_scale; 0: not given */
        float yarn_ext_factor; /* as llama.cpp has it; below 0: not given */
        uint32_t rank_timeout; /* seconds */
        uint64_t memory;       /* bytes that the server or advise has; 0: not given */
        bool list_devices, lock_memory;
    } model;
    struct app_cache_options {
        const char *prompts; /* a file; NULL: the cache folder */
        bool no_prompts;
        uint64_t limit, prompts_limit; /* bytes; 0: the library's */
        int64_t prompts_bytes;         /* the same as prompts_limit; 0: it counts */
        bool all;                      /* of prune, as is the next */
        int64_t older_than;            /* days; -1: not given */
    } cache;
    struct app_prompt_options {
        const char *text, *file, *ids;
        struct app_texts texts; /* embed's -p */
        const char *in_prefix, *in_prefix_file, *in_suffix, *in_suffix_file;
        bool spm_infill, no_bos, no_parse_special, no_escape, no_display;
    } prompt;
    struct app_chat_options {
        bool conversation, no_conversation, single_turn;
        bool no_wrap, no_history;
        const char *system_prompt, *system_prompt_file;
        int64_t reasoning_budget; /* -1: none */
        const char *reasoning;    /* NULL: as the template has it */
        bool hide_reasoning, special, stream, no_generation_prompt;
        const char *template, *template_file;
        const char *messages, *tools, *documents; /* files */
        const char *tool_choice;                  /* NULL: auto */
        const char *kwargs, *bos_token, *eos_token;
        const char *continue_message; /* field to continue */
    } chat;
    struct app_text_options { /* of texts that are generated */
        int64_t seed;         /* -1: a random one */
        struct app_texts stops, dry_sequence_breakers, logit_bias;
        int64_t logprobs; /* most likely tokens reported per token; -1: no log-probabilities */
        int64_t n_completions;
    } text;
    struct app_grammar_options {
        const char *text, *file, *rule, *json_schema;
        bool schema_lax;
    } grammar;
    struct app_speech_options {
        struct app_texts clips; /* transcribe's -f */
        bool stream, detect_language, no_fallback, vad;
        const char *vad_model;                              /* NULL: the one that is installed */
        uint32_t rate;                                      /* of a stream: samples a second */
        bool txt, vtt, srt, csv, tsv, lrc, json, json_full; /* files that are written */
        const char *stem;                                   /* of them; NULL: the clip's name */
        bool no_prints, colors, karaoke;
        uint32_t max_line; /* characters; 0: no limit */
    } speech;
    struct app_embed_options {
        bool normalize, no_normalize;
        unsigned how_normalized; /* 0: not given, 1: no, 2: yes */
        const char *separator;   /* what ends a text; NULL: a newline in files */
        const char *prompt_name; /* NULL: the model's default one; "": none */
    } embed;
    struct app_quantize_options { /* of models that are written, and of advise */
        unsigned out_type;        /* convert: 0 as stored, else an index into the types */
        const char *type, *output_type, *embedding_type, *importance, *target_size;
        struct app_texts tensor_types;
        float target_bits, min_speed; /* min_speed: advise, tokens per second */
        bool pure, requantize, dry_run;
        bool int8, int4, int3; /* compress: one of them */
        uint32_t group_size;
        const char *awq;
        float max_kl, min_top1; /* below 0: the library's; the second in percent */
    } quantize;
    struct app_collect_options { /* imatrix */
        struct app_texts files;
        int64_t from_chunk, save_frequency; /* chunks */
        bool process_output, parse_special, own_text;
    } collect;
    struct app_quality_options {
        int64_t chunks; /* -1: all */
        const char *save_logits, *kl_base;
        const char *tasks, *save; /* eval */
        const char *base;         /* model, or results of eval */
        int64_t limit;            /* questions; 0: all */
    } quality;
    struct app_bench_options {
        struct app_list n_prompt, n_generate, depth, n_parallel;
        struct app_list batches, thread_counts; /* empty: the library's choice */
        bool load, tune, profile_show, breakdown;
        const char *profile_out;
        int64_t repetitions;
    } bench;
    struct app_output_options {
        const char *path; /* --out */
        enum app_stage stage;
        enum app_output_form form;
        bool json, sha256, markdown, ids_only, verbose;
        unsigned color; /* enum app_color */
    } output;
    struct app_server_options {
        const char *host, *alias, *api_key, *api_key_file, *cors_origins, *allowed_hosts;
        const char *ssl_key_file, *ssl_cert_file;
        int64_t port, n_sequences, queue, timeout, max_body;
        unsigned log_format; /* 1: JSON */
        bool metrics, no_slots, no_ui;
    } server;
    struct app_download_options {
        const char *url; /* pull: a URL or a repository */
        bool offline;
        int64_t connections, retries, stall_timeout; /* the last in seconds */
    } download;
    struct app_accepted_options { /* flags that ask for what is so anyway: nothing reads them */
        bool flag;
        const char *text;
        int64_t number;
        unsigned choice;
    } accepted;
};

/* The least value of a number that has to be above 0. */
#define APP_ABOVE_ZERO AKUNU_ABOVE_ZERO

/* The type of a flag's member. Numbers are in low … high. */
enum app_flag_kind {
    APP_FLAG_BOOL, /* takes no value */
    APP_FLAG_TEXT, /* const char * */
    APP_FLAG_I32,
    APP_FLAG_U32,
    APP_FLAG_I64,
    APP_FLAG_F32,
    APP_FLAG_SIZE,  /* uint64_t, bytes: "500M", "3.5G"; a plain number counts GB */
    APP_FLAG_LIST,  /* struct app_list, each in low … high; may be given several times */
    APP_FLAG_TEXTS, /* struct app_texts; may be given several times */
    APP_FLAG_ENUM   /* an index into `choices` */
};

/* Mutually exclusive groups. */
enum app_exclusive_group {
    APP_EXCLUSIVE_NONE,
    APP_EXCLUSIVE_MODEL,
    APP_EXCLUSIVE_INPUT,
    APP_EXCLUSIVE_PREFIX,
    APP_EXCLUSIVE_SUFFIX,
    APP_EXCLUSIVE_ESCAPE,
    APP_EXCLUSIVE_CONVERSATION,
    APP_EXCLUSIVE_SYSTEM,
    APP_EXCLUSIVE_TEMPLATE,
    APP_EXCLUSIVE_SAMPLERS,
    APP_EXCLUSIVE_GRAMMAR,
    APP_EXCLUSIVE_ROPE_SCALE,
    APP_EXCLUSIVE_ENCODING,
    APP_EXCLUSIVE_COUNT
};

struct app_flag {
    const char *name;  /* long name: "ctx-size" */
    const char *alias; /* another long name, or NULL */
    const char *brief; /* short name: "c", "ctk", or NULL */
    enum app_flag_kind kind;
    const char *value; /* name of the value in help; NULL for a bool */
    const char *group; /* heading in help */
    const char *help;
    app_command_set commands; /* those that take it */
    size_t offset;            /* offset of its member in struct app_options */
    double low, high;
    const char *const *choices;               /* ends with NULL */
    const char *(*suggestion_at)(size_t i);   /* word i that completion offers; NULL: `choices` */
    enum app_exclusive_group exclusive_group; /* flags that exclude each other */
    unsigned modes;         /* enum app_mode: those in which it has an effect; 0: all */
    const char *otherwise;  /* the value if none of `choices` follows; NULL: a value is needed */
    const char *as_default; /* a value that means the default: "-1" */
    const char *note;       /* what is said if it is an argument; NULL: nothing */
    const char *refusal;    /* why it cannot be given; NULL: it can */
};

/* The long name, the other one and the short one of a flag; NULL where it has none. */
enum { APP_N_SPELLINGS = 3 };
const char *app_flag_spelling(const struct app_flag *flag, int i);

/* Whether one of its spellings is the n bytes at `name`. */
bool app_flag_is(const struct app_flag *flag, const char *name, size_t n);

/* "f16": name of a value of enum akunu_kv_type. */
const char *app_kv_type_name(enum akunu_kv_type type);

/* "F16": name of a value of `out_type`; NULL: as stored. */
const char *app_out_type_name(unsigned type);

extern const struct app_flag app_flags[];
extern const size_t app_n_flags;

struct app_command {
    const char *name;
    app_command_set bit;
    unsigned traits;                               /* enum app_trait */
    int (*run)(const struct app_options *options); /* returns the exit code */
    const char *summary;
    const char *example;
    /* words that select what it does, the first one is the default; NULL: it has none */
    const char *const *words;
    /* flags that take the arguments that are not flags, in their order; see read_operands in
     * options_operands.c */
    const char *operands[2];
};

extern const struct app_command app_commands[];
extern const size_t app_n_commands;

/* "akunu-cli run"; of akunu-server only the program. */
const char *app_command_title(const struct app_command *command);

/* NULL if there is no such command. */
const struct app_command *app_find_command(const char *name);

/* Fills *options from the arguments after the command, the environment and configuration files.
 * Returns APP_EXIT_OK, or another code after a message. --help and --version end the parsing at
 * once. Call app_options_free(options) in any case. */
int app_options_parse(const struct app_command *command, int argc, char **argv,
                      struct app_options *options);
void app_options_free(struct app_options *options);

/* Checks that each flag among the arguments has an effect in `mode`, an enum app_mode. Returns
 * APP_EXIT_OK, or APP_EXIT_USAGE after a message that names the mode which the flag needs. */
int app_check_mode(const struct app_options *options, unsigned mode);

/* Print the help of the program or of one command on standard output; return the exit code. */
int app_help(void);
int app_help_command(const struct app_command *command);
int app_version(void);

/* Prints "AMD EPYC, 2 cores, L1d 32 KiB, …" without a newline. */
struct app_output;
void app_print_machine(struct app_output *out);

/* The word of `words` (n of them) that `typed` probably means; NULL: none is near. */
const char *app_find_nearest(const char *typed, const char *const *words, size_t n);

/* What to do instead of a flag or of a command that llama.cpp or ollama has and akunu-cli has not;
 * NULL: none of theirs. A flag's name is the n bytes after its dashes. */
const char *app_instead_of_flag(const char *name, size_t n);
const char *app_instead_of_command(const char *name);

/* ---- Commands ----------------------------------------------------------- */
/* One function per command; each returns the exit code. */
#define COMMAND(id, function, ...) int cli_##function(const struct app_options *options);
#include "apps/common/commands.def"

/* The part of `run` that holds a conversation in the terminal. */
int app_converse(const struct app_options *options);

/* --list-devices of any command that loads a model. */
int app_list_devices(const struct app_options *options);

#endif
