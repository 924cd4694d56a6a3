/* Table of tool-call formats, and of the markers of reasoning. Detection takes the first format
 * with a matching signature, so specific formats come before general ones. */
#include "text/toolcall/toolcall.h"

#include <string.h>

#define DSML "<｜DSML｜"
#define DSML_END "</｜DSML｜"

/* Shared by several formats. */
#define OBJECT_IN_TOOL_CALL                                                                        \
    {                                                                                              \
        .arguments = AK_TC_ARGS_JSON_CALL, .begin = "<tool_call>", .end = " </tool_call>"          \
    }
#define BARE_OBJECT                                                                                \
    {                                                                                              \
        .arguments = AK_TC_ARGS_JSON_CALL, .is_bare = true                                         \
    }
#define BARE_PYTHON                                                                                \
    {                                                                                              \
        .arguments = AK_TC_ARGS_PYTHON, .is_bare = true, .is_list = true                           \
    }

#define MISTRAL_ARGS                                                                               \
    {                                                                                              \
        .arguments = AK_TC_ARGS_JSON, .begin = "[TOOL_CALLS]", .name_end = "[ARGS]",               \
        .id_begin = "[CALL_ID]"                                                                    \
    }
#define DEEPSEEK(begin_, name_end_, end_)                                                          \
    {                                                                                              \
        .arguments = AK_TC_ARGS_JSON, .section = "<｜tool▁calls▁begin｜>",                         \
        .section_end = "<｜tool▁calls▁end｜>", .begin = begin_, .name_end = name_end_, .end = end_ \
    }
#define DEEPSEEK_FENCED                                                                            \
    DEEPSEEK("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", " ```json", " ``` <｜tool▁call▁end｜>")
#define DEEPSEEK_PLAIN DEEPSEEK("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", " <｜tool▁call▁end｜>")
#define DSML_SYNTAX(section_)                                                                      \
    {                                                                                              \
        .arguments = AK_TC_ARGS_PARAMETERS, .section = DSML section_,                              \
        .section_end = DSML_END section_, .begin = DSML "invoke name=\"", .name_end = "\">",       \
        .end = " " DSML_END "invoke>", .key = DSML "parameter name=\"", .key_end = "\"",           \
        .value = ">", .value_end = DSML_END "parameter>", .is_typed = true                         \
    }

static const struct ak_tc_format formats[] = {
    {
        /* gpt-oss; the syntax is that of one message: harmony.c reads its header */
        .name = "harmony",
        .harmony = true,
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON } },
        .n_syntaxes = 1,
        .signature = { "<|channel|>", "<|message|>" },
        .token = "<|channel|>",
    },
    {
        .name = "gemma4",
        .syntaxes = { { .arguments = AK_TC_ARGS_GEMMA,
                        .begin = "<|tool_call>call:",
                        .end = " <tool_call|>",
                        .quote = "<|\"|>" } },
        .n_syntaxes = 1,
        .signature = { "<|tool_call>call:" },
        .token = "<|tool_call>",
        /* only the end: the model omits the beginning */
        .ignored_markers = { "<channel|>" },
    },
    {
        .name = "functiongemma",
        .syntaxes = { { .arguments = AK_TC_ARGS_GEMMA,
                        .begin = "<start_function_call>call:",
                        .end = " <end_function_call>",
                        .quote = "<escape>" } },
        .n_syntaxes = 1,
        .signature = { "<start_function_call>" },
        .token = "<start_function_call>",
        .ignored_markers = { "<start_function_response>" }, /* the model stops here */
    },
    {
        .name = "deepseek-v3.2",
        .syntaxes = { DSML_SYNTAX("function_calls>"), DSML_SYNTAX("tool_calls>") },
        .n_syntaxes = 2,
        .signature = { "DSML" },
    },
    {
        .name = "deepseek-r1", /* first releases of V3 and R1: a fenced block */
        .syntaxes = { DEEPSEEK_FENCED, DEEPSEEK_PLAIN },
        .n_syntaxes = 2,
        .signature = { "tool▁calls▁begin", "```json" },
    },
    {
        .name = "deepseek-v3.1",
        .syntaxes = { DEEPSEEK_PLAIN, DEEPSEEK_FENCED },
        .n_syntaxes = 2,
        .signature = { "tool▁calls▁begin" },
        .token = "<｜tool▁calls▁begin｜>",
    },
    {
        .name = "kimi-k2",
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON,
                        .section = "<|tool_calls_section_begin|>",
                        .section_end = "<|tool_calls_section_end|>",
                        .begin = "<|tool_call_begin|>",
                        .name_end = " <|tool_call_argument_begin|>",
                        .end = " <|tool_call_end|>",
                        .name_is_id = true,
                        .ends_reasoning = true } },
        .n_syntaxes = 1,
        .signature = { "<|tool_calls_section_begin|>" },
        .token = "<|tool_calls_section_begin|>",
    },
    {
        .name = "mistral", /* from v11 of its tokenizer on */
        .syntaxes = { MISTRAL_ARGS,
                      { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "[TOOL_CALLS]",
                        .is_list = true } },
        .n_syntaxes = 2,
        .signature = { "[TOOL_CALLS]", "[ARGS]" },
        .token = "[ARGS]",
    },
    {
        .name = "mistral-list", /* Mistral 7B v0.3, Nemo, Large 2 */
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "[TOOL_CALLS]",
                        .is_list = true,
                        .json_id = "id",
                        .id_is_last = true },
                      MISTRAL_ARGS },
        .n_syntaxes = 2,
        .signature = { "[TOOL_CALLS]" },
        .token = "[TOOL_CALLS]",
    },
    {
        .name = "lfm2",
        .syntaxes = { { .arguments = AK_TC_ARGS_PYTHON,
                        .begin = "<|tool_call_start|>",
                        .end = " <|tool_call_end|>",
                        .is_list = true },
                      { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<|tool_call_start|>",
                        .end = " <|tool_call_end|>",
                        .is_list = true } },
        .n_syntaxes = 2,
        .signature = { "List of tools: " },
        .token = "<|tool_call_start|>",
    },
    {
        .name = "command-r7b", /* Command R7B, Command A */
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<|START_ACTION|>",
                        .end = " <|END_ACTION|>",
                        .is_list = true,
                        .json_name = "tool_name",
                        .json_arguments = "parameters",
                        .json_id = "tool_call_id" } },
        .n_syntaxes = 1,
        .signature = { "<|START_ACTION|>" },
        .token = "<|START_ACTION|>",
        .ignored_markers = { "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>",
                             "<|END_TEXT|>" },
    },
    {
        .name = "minimax-m2",
        .syntaxes = { { .arguments = AK_TC_ARGS_PARAMETERS,
                        .section = "<minimax:tool_call>",
                        .section_end = "</minimax:tool_call>",
                        .begin = "<invoke name=\"",
                        .name_end = "\">",
                        .end = " </invoke>",
                        .key = "<parameter name=\"",
                        .key_end = "\">",
                        .value_end = "</parameter>" } },
        .n_syntaxes = 1,
        .signature = { "<minimax:tool_call>" },
        .token = "<minimax:tool_call>",
    },
    {
        .name = "seed-oss",
        .syntaxes = { { .arguments = AK_TC_ARGS_PARAMETERS,
                        .section = "<seed:tool_call>",
                        .section_end = "</seed:tool_call>",
                        .begin = "<function=",
                        .name_end = ">",
                        .end = " </function>",
                        .key = "<parameter=",
                        .key_end = ">",
                        .value_end = "</parameter>" } },
        .n_syntaxes = 1,
        .signature = { "<seed:tool_call>" },
        .token = "<seed:tool_call>",
    },
    {
        .name = "glm", /* GLM 4.5 to 4.7 */
        .syntaxes = { { .arguments = AK_TC_ARGS_PARAMETERS,
                        .begin = "<tool_call>",
                        .name_end = "",
                        .end = " </tool_call>",
                        .key = "<arg_key>",
                        .key_end = "</arg_key>",
                        .value = " <arg_value>",
                        .value_end = "</arg_value>" },
                      OBJECT_IN_TOOL_CALL },
        .n_syntaxes = 2,
        .signature = { "<tool_call>", "<arg_key>" },
        .token = "<arg_key>",
    },
    {
        .name = "qwen3-coder", /* Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5 */
        .syntaxes = { { .arguments = AK_TC_ARGS_PARAMETERS,
                        .section = "<tool_call>",
                        .section_end = "</tool_call>",
                        .begin = "<function=",
                        .name_end = ">",
                        .end = " </function>",
                        .key = "<parameter=",
                        .key_end = ">",
                        .value_end = "</parameter>",
                        .has_newlines = true },
                      OBJECT_IN_TOOL_CALL },
        .n_syntaxes = 2,
        .signature = { "<tool_call>", "<function=", "<parameter=" },
    },
    {
        .name = "functionary-v3.1",
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON,
                        .begin = "<function=",
                        .name_end = ">",
                        .end = " </function>" } },
        .n_syntaxes = 1,
        .signature = { "<function=", "</function>" },
    },
    {
        .name = "nemotron-v2",
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<TOOLCALL>",
                        .end = " </TOOLCALL>",
                        .is_list = true } },
        .n_syntaxes = 1,
        .signature = { "<TOOLCALL>" },
        .token = "<TOOLCALL>",
    },
    {
        .name = "apriel", /* and MiniMax-M1, which writes one call per line */
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<tool_calls>",
                        .end = " </tool_calls>",
                        .is_list = true } },
        .n_syntaxes = 1,
        .signature = { "<tool_calls>" },
    },
    {
        .name = "smollm3",
        .syntaxes = { OBJECT_IN_TOOL_CALL,
                      { .arguments = AK_TC_ARGS_PYTHON, .begin = "<code>", .end = " </code>" } },
        .n_syntaxes = 2,
        .signature = { "xml_tools", "python_tools" },
    },
    {
        .name = "hermes", /* Hermes 2 and 3, Qwen 2.5 and 3, QwQ, Granite 4 */
        .syntaxes = { OBJECT_IN_TOOL_CALL },
        .n_syntaxes = 1,
        .signature = { "<tool_call>" },
        .token = "<tool_call>",
    },
    {
        .name = "phi4-mini",
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<|tool_call|>",
                        .end = " <|/tool_call|>",
                        .is_list = true },
                      { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "functools",
                        .is_list = true,
                        .is_bare = true } },
        .n_syntaxes = 2,
        .signature = { "<|tool|>", "<|/tool|>" },
        .token = "<|/tool_call|>",
    },
    {
        .name = "granite", /* 3.0 to 3.3 */
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<|tool_call|>",
                        .is_list = true },
                      { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<tool_call>",
                        .end = " </tool_call>",
                        .is_list = true } },
        .n_syntaxes = 2,
        .signature = { "<|tool_call|>" },
        .token = "<|tool_call|>",
        .ignored_markers = { "<response>", "</response>" },
    },
    {
        .name = "functools", /* Firefunction 2 */
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "functools",
                        .is_list = true,
                        .is_bare = true } },
        .n_syntaxes = 1,
        .signature = { "functools" },
    },
    {
        .name = "llama3",
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .is_bare = true,
                        .json_arguments = "parameters" },
                      { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "<|python_tag|>",
                        .json_arguments = "parameters" },
                      { .arguments = AK_TC_ARGS_PYTHON, .begin = "<|python_tag|>" },
                      BARE_PYTHON }, /* Llama 4 */
        .n_syntaxes = 4,
        .signature = { "<|start_header_id|>", "\"parameters\"" },
        .token = "<|python_tag|>",
    },
    {
        .name = "command-r", /* Command R and R+ */
        .syntaxes = { { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "Action:",
                        .end = " ```",
                        .is_list = true,
                        .is_bare = true,
                        .json_name = "tool_name",
                        .json_arguments = "parameters" } },
        .n_syntaxes = 1,
        .signature = { "Action:", "```json", "tool_name" },
    },
    {
        .name = "gemma", /* Gemma 2 and 3 have no markers of their own; these are common */
        .syntaxes = { { .arguments = AK_TC_ARGS_PYTHON, .begin = "```tool_code", .end = " ```" },
                      { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "```json",
                        .end = " ```",
                        .is_bare = true },
                      BARE_OBJECT,
                      BARE_PYTHON },
        .n_syntaxes = 4,
        .signature = { "<start_of_turn>" },
        .token = "<start_of_turn>",
    },
    {
        .name = "python", /* [f(a=1)], as Llama 4 and ToolACE write it */
        .syntaxes = { BARE_PYTHON },
        .n_syntaxes = 1,
    },
    {
        .name =
            "generic", /* a model that was taught no format; a grammar makes it write this one */
        .syntaxes = { BARE_OBJECT,
                      { .arguments = AK_TC_ARGS_JSON_CALL,
                        .begin = "```json",
                        .end = " ```",
                        .is_bare = true } },
        .n_syntaxes = 2,
    },
};

static const struct ak_tc_reasoning reasonings[] = {
    { "<think>", "</think>", false },
    { "[THINK]", "[/THINK]", true },
    { "<seed:think>", "</seed:think>", true },
    { "<|START_THINKING|>", "<|END_THINKING|>", true },
    { "<|channel>thought", "<channel|>", true },
    { "<|inner_prefix|>", "<|inner_suffix|>", true },
    { "<mm:think>", "</mm:think>", true },
    { "◁think▷", "◁/think▷", false },
    { "<thought>", "</thought>", false },
    { "<reasoning>", "</reasoning>", false },
    { "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", false },
};

const struct ak_tc_format *ak_tc_format_at(size_t i)
{
    return i < sizeof formats / sizeof formats[0] ? &formats[i] : NULL;
}

const struct ak_tc_format *ak_tc_find_format(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

const struct ak_tc_reasoning *ak_tc_reasoning_at(size_t i)
{
    return i < sizeof reasonings / sizeof reasonings[0] ? &reasonings[i] : NULL;
}
