/* The table of flags, made from options.def. */
#include "apps/common/options.h"

#include <string.h>

static const char *const kv_choices[] = { "important", "recent", NULL };
/* In the order of enum akunu_kv_type. */
static const char *const kv_types[] = { "f16",  "f32",    "bf16", "q8_0", "q4_0",
                                        "q4_1", "iq4_nl", "q5_0", "q5_1", NULL };
/* In the order of enum akunu_prefill. */
static const char *const prefills[] = { "auto", "own", "blas", NULL };
/* In the order of enum akunu_split. */
static const char *const splits[] = { "rows", "layers", NULL };
/* In the order of enum akunu_rope_scaling. */
static const char *const rope_scalings[] = { "model", "none", "linear", "yarn", NULL };
/* In the order of enum akunu_speculation. */
static const char *const speculations[] = { "auto", "none", "ngram-simple", "draft-simple", NULL };
static const char *const out_types[] = { "auto", "f32", "f16", "bf16", "q8_0", NULL };
/* In the order of enum app_stage. */
static const char *const stages[] = { "logits", "mel", "encoder", NULL };
/* In the order of enum app_color. */
static const char *const colors[] = { "auto", "on", "off", NULL };
static const char *const switches[] = { "on", "off", "auto", "1", "0", NULL };
static const char *const forms[] = { "md", "csv", "json", "jsonl", NULL };
/* In the order of embd_normalize. */
static const char *const norms[] = { "model", "-1", "2", NULL };
static const char *const embd_forms[] = { "raw", NULL };
static const char *const reasonings[] = { "on",  "off",    "true", "false",
                                          "low", "medium", "high", NULL };

static const char *const templates[] = { "chatml", "gemma", "llama3", "phi3", "zephyr", NULL };
static const char *const backends[] = { "cpu", "opencl", NULL };
/* In the order of enum akunu_pooling. */
static const char *const poolings[] = { "model", "mean",          "cls",          "last",
                                        "max",   "mean_sqrt_len", "weightedmean", NULL };

static const char *const log_formats[] = { "text", "json", NULL };
static const char *const tool_choices[] = { "auto", "none", "required", NULL };

/* ---- Sets of commands --------------------------------------------------- */
/* clang-format off */
#define IF(condition, id) | ((condition) ? (app_command_set)APP_##id : 0)
enum {
    ALL = APP_SERVER
#define COMMAND(id, function, name, traits, ...) IF(!((traits) & APP_STANDS_ALONE), id)
#include "apps/common/commands.def"
    ,
    NAMES_MODEL = APP_SERVER
#define COMMAND(id, function, name, traits, ...) IF((traits) & APP_NAMES_MODEL, id)
#include "apps/common/commands.def"
    ,
    LOADS_MODEL = APP_SERVER
#define COMMAND(id, function, name, traits, ...)                                                   \
    IF(((traits) & APP_LOADS_MODEL) == APP_LOADS_MODEL, id)
#include "apps/common/commands.def"
    ,
    WRITES_JSON = 0
#define COMMAND(id, function, name, traits, ...) IF((traits) & APP_WRITES_JSON, id)
#include "apps/common/commands.def"
};
#undef IF
/* clang-format on */

enum {
    ANSWERS = APP_RUN | APP_CHAT,  /* by the chat template */
    WRITES = ANSWERS | APP_INFILL, /* text that is sampled */
    SAMPLES = WRITES | APP_SERVER,
    TEMPLATED = ANSWERS | APP_SERVER,
    KEEPS = SAMPLES | APP_VERIFY
};

/* kind of options.def: type of the member and enum app_flag_kind */
#define KIND_bool bool : APP_FLAG_BOOL
#define KIND_text const char * : APP_FLAG_TEXT
#define KIND_i32                                                                                   \
    int32_t:                                                                                       \
    APP_FLAG_I32
#define KIND_u32                                                                                   \
    uint32_t:                                                                                      \
    APP_FLAG_U32
#define KIND_i64                                                                                   \
    int64_t:                                                                                       \
    APP_FLAG_I64
#define KIND_f32 float : APP_FLAG_F32
#define KIND_size                                                                                  \
    uint64_t:                                                                                      \
    APP_FLAG_SIZE
#define KIND_list struct app_list : APP_FLAG_LIST
#define KIND_texts struct app_texts : APP_FLAG_TEXTS
#define KIND_enum unsigned : APP_FLAG_ENUM

/* names of values in akunu/sampling.def */
#define VALUE_f32 "X"
#define VALUE_i32 "N"

/* clang-format off */
#define FLAG(name_, kind_, member_, group_, commands_, ...)                       \
    { .name = name_,                                                              \
      .kind = _Generic(((struct app_options *)0)->member_, KIND_##kind_),         \
      .offset = offsetof(struct app_options, member_),                            \
      .group = group_,                                                            \
      .commands = commands_,                                                      \
      __VA_ARGS__ },
#define BRIEF(text) .brief = text
#define ALIAS(text) .alias = text
#define VALUE(text) .value = text
#define RANGE(low_, high_) .low = low_, .high = high_
#define CHOICES(words) .choices = words
#define SUGGESTIONS(function) .suggestion_at = function
#define ONE_OF(set) .exclusive_group = APP_EXCLUSIVE_##set
#define HELP(text) .help = text
#define MODES(set) .modes = set
#define OTHERWISE(text) .otherwise = text
#define AS_DEFAULT(text) .as_default = text
#define NOTE(text) .note = text
#define REFUSED(text) .refusal = text

const struct app_flag app_flags[] = {
#include "apps/common/options.def"
};
/* clang-format on */

const char *app_out_type_name(unsigned type)
{
    return type == 0 ? NULL : out_types[type];
}

const char *app_kv_type_name(enum akunu_kv_type type)
{
    return kv_types[type];
}

const size_t app_n_flags = sizeof app_flags / sizeof *app_flags;

const char *app_flag_spelling(const struct app_flag *flag, int i)
{
    const char *const spellings[APP_N_SPELLINGS] = { flag->name, flag->alias, flag->brief };
    return spellings[i];
}

bool app_flag_is(const struct app_flag *flag, const char *name, size_t n)
{
    for (int i = 0; i < APP_N_SPELLINGS; i++) {
        const char *spelling = app_flag_spelling(flag, i);
        if (spelling && strlen(spelling) == n && memcmp(spelling, name, n) == 0)
            return true;
    }
    return false;
}
