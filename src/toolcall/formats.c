/* The table. Where it matters which sign is seen first, the more particular format
 * stands first: what is left at the end is told by little. */
#include "toolcall/format.h"

#include <string.h>

#define DSML "<｜DSML｜"
#define DSML_END "</｜DSML｜"

/* Shared by several formats. */
#define OBJECT_IN_TOOL_CALL                                                                        \
    {                                                                                              \
        .body = AK_BODY_JSON, .begin = "<tool_call>", .end = " </tool_call>"                       \
    }
#define BARE_OBJECT                                                                                \
    {                                                                                              \
        .body = AK_BODY_JSON, .bare = true                                                         \
    }
#define BARE_PYTHON                                                                                \
    {                                                                                              \
        .body = AK_BODY_PYTHON, .bare = true, .list = true                                         \
    }

static const struct ak_call_format formats[] = {
    {
        /* gpt-oss; the shape is one message's: harmony.c reads what stands before it */
        .name = "harmony",
        .harmony = true,
        .shapes = { { .body = AK_BODY_ARGUMENTS } },
        .n_shapes = 1,
        .signs = { "<|channel|>", "<|message|>" },
        .token = "<|channel|>",
    },
    {
        .name = "gemma4",
        .shapes = { { .body = AK_BODY_GEMMA,
                      .begin = "<|tool_call>call:",
                      .end = " <tool_call|>",
                      .quote = "<|\"|>" } },
        .n_shapes = 1,
        .signs = { "<|tool_call>call:" },
        .token = "<|tool_call>",
        .drops = { "<channel|>" }, /* without a beginning: the model closes what it left out */
    },
    {
        .name = "functiongemma",
        .shapes = { { .body = AK_BODY_GEMMA,
                      .begin = "<start_function_call>call:",
                      .end = " <end_function_call>",
                      .quote = "<escape>" } },
        .n_shapes = 1,
        .signs = { "<start_function_call>" },
        .token = "<start_function_call>",
        .drops = { "<start_function_response>" }, /* where it stops */
    },
    {
        .name = "deepseek-v3.2",
        .shapes = { { .body = AK_BODY_PARAMETERS,
                      .section = DSML "function_calls>",
                      .section_end = DSML_END "function_calls>",
                      .begin = DSML "invoke name=\"",
                      .name_end = "\">",
                      .end = " " DSML_END "invoke>",
                      .key = DSML "parameter name=\"",
                      .key_end = "\"",
                      .value = ">",
                      .value_end = DSML_END "parameter>",
                      .typed = true },
                    { .body = AK_BODY_PARAMETERS,
                      .section = DSML "tool_calls>",
                      .section_end = DSML_END "tool_calls>",
                      .begin = DSML "invoke name=\"",
                      .name_end = "\">",
                      .end = " " DSML_END "invoke>",
                      .key = DSML "parameter name=\"",
                      .key_end = "\"",
                      .value = ">",
                      .value_end = DSML_END "parameter>",
                      .typed = true } },
        .n_shapes = 2,
        .signs = { "DSML" },
    },
    {
        .name = "deepseek-r1", /* V3 and R1 as they were first: a fenced block */
        .shapes = { { .body = AK_BODY_ARGUMENTS,
                      .section = "<｜tool▁calls▁begin｜>",
                      .section_end = "<｜tool▁calls▁end｜>",
                      .begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                      .name_end = " ```json",
                      .end = " ``` <｜tool▁call▁end｜>" },
                    { .body = AK_BODY_ARGUMENTS,
                      .section = "<｜tool▁calls▁begin｜>",
                      .section_end = "<｜tool▁calls▁end｜>",
                      .begin = "<｜tool▁call▁begin｜>",
                      .name_end = "<｜tool▁sep｜>",
                      .end = " <｜tool▁call▁end｜>" } },
        .n_shapes = 2,
        .signs = { "tool▁calls▁begin", "```json" },
    },
    {
        .name = "deepseek-v3.1",
        .shapes = { { .body = AK_BODY_ARGUMENTS,
                      .section = "<｜tool▁calls▁begin｜>",
                      .section_end = "<｜tool▁calls▁end｜>",
                      .begin = "<｜tool▁call▁begin｜>",
                      .name_end = "<｜tool▁sep｜>",
                      .end = " <｜tool▁call▁end｜>" },
                    { .body = AK_BODY_ARGUMENTS,
                      .section = "<｜tool▁calls▁begin｜>",
                      .section_end = "<｜tool▁calls▁end｜>",
                      .begin = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                      .name_end = " ```json",
                      .end = " ``` <｜tool▁call▁end｜>" } },
        .n_shapes = 2,
        .signs = { "tool▁calls▁begin" },
        .token = "<｜tool▁calls▁begin｜>",
    },
    {
        .name = "kimi-k2",
        .shapes = { { .body = AK_BODY_ARGUMENTS,
                      .section = "<|tool_calls_section_begin|>",
                      .section_end = "<|tool_calls_section_end|>",
                      .begin = "<|tool_call_begin|>",
                      .name_end = " <|tool_call_argument_begin|>",
                      .end = " <|tool_call_end|>",
                      .id_name = true,
                      .in_reasoning = true } },
        .n_shapes = 1,
        .signs = { "<|tool_calls_section_begin|>" },
        .token = "<|tool_calls_section_begin|>",
    },
    {
        .name = "mistral", /* from v11 of its tokenizer on */
        .shapes = { { .body = AK_BODY_ARGUMENTS,
                      .begin = "[TOOL_CALLS]",
                      .name_end = "[ARGS]",
                      .id_begin = "[CALL_ID]" },
                    { .body = AK_BODY_JSON, .begin = "[TOOL_CALLS]", .list = true } },
        .n_shapes = 2,
        .signs = { "[TOOL_CALLS]", "[ARGS]" },
        .token = "[ARGS]",
    },
    {
        .name = "mistral-list", /* Mistral 7B v0.3, Nemo, Large 2 */
        .shapes = { { .body = AK_BODY_JSON,
                      .begin = "[TOOL_CALLS]",
                      .list = true,
                      .json_id = "id",
                      .id_last = true },
                    { .body = AK_BODY_ARGUMENTS,
                      .begin = "[TOOL_CALLS]",
                      .name_end = "[ARGS]",
                      .id_begin = "[CALL_ID]" } },
        .n_shapes = 2,
        .signs = { "[TOOL_CALLS]" },
        .token = "[TOOL_CALLS]",
    },
    {
        .name = "lfm2",
        .shapes = { { .body = AK_BODY_PYTHON,
                      .begin = "<|tool_call_start|>",
                      .end = " <|tool_call_end|>",
                      .list = true },
                    { .body = AK_BODY_JSON,
                      .begin = "<|tool_call_start|>",
                      .end = " <|tool_call_end|>",
                      .list = true } },
        .n_shapes = 2,
        .signs = { "List of tools: " },
        .token = "<|tool_call_start|>",
    },
    {
        .name = "command-r7b", /* Command R7B, Command A */
        .shapes = { { .body = AK_BODY_JSON,
                      .begin = "<|START_ACTION|>",
                      .end = " <|END_ACTION|>",
                      .list = true,
                      .json_name = "tool_name",
                      .json_arguments = "parameters",
                      .json_id = "tool_call_id" } },
        .n_shapes = 1,
        .signs = { "<|START_ACTION|>" },
        .token = "<|START_ACTION|>",
        .drops = { "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>" },
    },
    {
        .name = "minimax-m2",
        .shapes = { { .body = AK_BODY_PARAMETERS,
                      .section = "<minimax:tool_call>",
                      .section_end = "</minimax:tool_call>",
                      .begin = "<invoke name=\"",
                      .name_end = "\">",
                      .end = " </invoke>",
                      .key = "<parameter name=\"",
                      .key_end = "\">",
                      .value_end = "</parameter>" } },
        .n_shapes = 1,
        .signs = { "<minimax:tool_call>" },
        .token = "<minimax:tool_call>",
    },
    {
        .name = "seed-oss",
        .shapes = { { .body = AK_BODY_PARAMETERS,
                      .section = "<seed:tool_call>",
                      .section_end = "</seed:tool_call>",
                      .begin = "<function=",
                      .name_end = ">",
                      .end = " </function>",
                      .key = "<parameter=",
                      .key_end = ">",
                      .value_end = "</parameter>" } },
        .n_shapes = 1,
        .signs = { "<seed:tool_call>" },
        .token = "<seed:tool_call>",
    },
    {
        .name = "glm", /* GLM 4.5 to 4.7 */
        .shapes = { { .body = AK_BODY_PARAMETERS,
                      .begin = "<tool_call>",
                      .name_end = "",
                      .end = " </tool_call>",
                      .key = "<arg_key>",
                      .key_end = "</arg_key>",
                      .value = " <arg_value>",
                      .value_end = "</arg_value>" },
                    OBJECT_IN_TOOL_CALL },
        .n_shapes = 2,
        .signs = { "<tool_call>", "<arg_key>" },
        .token = "<arg_key>",
    },
    {
        .name = "qwen3-coder", /* Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5 */
        .shapes = { { .body = AK_BODY_PARAMETERS,
                      .section = "<tool_call>",
                      .section_end = "</tool_call>",
                      .begin = "<function=",
                      .name_end = ">",
                      .end = " </function>",
                      .key = "<parameter=",
                      .key_end = ">",
                      .value_end = "</parameter>",
                      .lines = true },
                    OBJECT_IN_TOOL_CALL },
        .n_shapes = 2,
        .signs = { "<tool_call>", "<function=", "<parameter=" },
    },
    {
        .name = "functionary-v3.1",
        .shapes = { { .body = AK_BODY_ARGUMENTS,
                      .begin = "<function=",
                      .name_end = ">",
                      .end = " </function>" } },
        .n_shapes = 1,
        .signs = { "<function=", "</function>" },
    },
    {
        .name = "nemotron-v2",
        .shapes = { { .body = AK_BODY_JSON,
                      .begin = "<TOOLCALL>",
                      .end = " </TOOLCALL>",
                      .list = true } },
        .n_shapes = 1,
        .signs = { "<TOOLCALL>" },
        .token = "<TOOLCALL>",
    },
    {
        .name = "apriel", /* and MiniMax-M1, whose calls stand one a line */
        .shapes = { { .body = AK_BODY_JSON,
                      .begin = "<tool_calls>",
                      .end = " </tool_calls>",
                      .list = true } },
        .n_shapes = 1,
        .signs = { "<tool_calls>" },
    },
    {
        .name = "smollm3",
        .shapes = { OBJECT_IN_TOOL_CALL,
                    { .body = AK_BODY_PYTHON, .begin = "<code>", .end = " </code>" } },
        .n_shapes = 2,
        .signs = { "xml_tools", "python_tools" },
    },
    {
        .name = "hermes", /* Hermes 2 and 3, Qwen 2.5 and 3, QwQ, Granite 4 */
        .shapes = { OBJECT_IN_TOOL_CALL },
        .n_shapes = 1,
        .signs = { "<tool_call>" },
        .token = "<tool_call>",
    },
    {
        .name = "phi4-mini",
        .shapes = { { .body = AK_BODY_JSON,
                      .begin = "<|tool_call|>",
                      .end = " <|/tool_call|>",
                      .list = true },
                    { .body = AK_BODY_JSON, .begin = "functools", .list = true, .bare = true } },
        .n_shapes = 2,
        .signs = { "<|tool|>", "<|/tool|>" },
        .token = "<|/tool_call|>",
    },
    {
        .name = "granite", /* 3.0 to 3.3 */
        .shapes = { { .body = AK_BODY_JSON, .begin = "<|tool_call|>", .list = true },
                    { .body = AK_BODY_JSON,
                      .begin = "<tool_call>",
                      .end = " </tool_call>",
                      .list = true } },
        .n_shapes = 2,
        .signs = { "<|tool_call|>" },
        .token = "<|tool_call|>",
        .drops = { "<response>", "</response>" },
    },
    {
        .name = "functools", /* Firefunction 2 */
        .shapes = { { .body = AK_BODY_JSON, .begin = "functools", .list = true, .bare = true } },
        .n_shapes = 1,
        .signs = { "functools" },
    },
    {
        .name = "llama3",
        .shapes = { { .body = AK_BODY_JSON, .bare = true, .json_arguments = "parameters" },
                    { .body = AK_BODY_JSON,
                      .begin = "<|python_tag|>",
                      .json_arguments = "parameters" },
                    { .body = AK_BODY_PYTHON, .begin = "<|python_tag|>" },
                    BARE_PYTHON }, /* Llama 4 */
        .n_shapes = 4,
        .signs = { "<|start_header_id|>", "\"parameters\"" },
        .token = "<|python_tag|>",
    },
    {
        .name = "command-r", /* Command R and R+ */
        .shapes = { { .body = AK_BODY_JSON,
                      .begin = "Action:",
                      .end = " ```",
                      .list = true,
                      .bare = true,
                      .json_name = "tool_name",
                      .json_arguments = "parameters" } },
        .n_shapes = 1,
        .signs = { "Action:", "```json", "tool_name" },
    },
    {
        .name = "gemma", /* Gemma 2 and 3 have no markers: they write what they are told to */
        .shapes = { { .body = AK_BODY_PYTHON, .begin = "```tool_code", .end = " ```" },
                    { .body = AK_BODY_JSON, .begin = "```json", .end = " ```", .bare = true },
                    BARE_OBJECT,
                    BARE_PYTHON },
        .n_shapes = 4,
        .signs = { "<start_of_turn>" },
        .token = "<start_of_turn>",
    },
    {
        .name = "python", /* [f(a=1)], as Llama 4 and ToolACE write it */
        .shapes = { BARE_PYTHON },
        .n_shapes = 1,
    },
    {
        .name = "generic", /* a model that was taught none: a grammar makes it write this */
        .shapes = { BARE_OBJECT,
                    { .body = AK_BODY_JSON, .begin = "```json", .end = " ```", .bare = true } },
        .n_shapes = 2,
    },
};

static const struct ak_thinking thinkings[] = {
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

const struct ak_call_format *ak_call_format_at(size_t i)
{
    return i < sizeof formats / sizeof formats[0] ? &formats[i] : NULL;
}

const struct ak_call_format *ak_call_format_named(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

const struct ak_thinking *ak_thinking_at(size_t i)
{
    return i < sizeof thinkings / sizeof thinkings[0] ? &thinkings[i] : NULL;
}
