/* Grammar of tool calls: one call, consecutive calls with their markers, the harmony format, and
 * what may precede calls. Arguments are in grammar_values.c, free text in grammar_text.c. */
#include "text/toolcall/toolcall.h"

#include <string.h>

#include "base/json.h"
#include "text/toolcall/builder.h"

enum choice { CHOICE_AUTO, CHOICE_NONE, CHOICE_REQUIRED };

/* Parses the tool choice. *named gets the tool that it names, as a string; NULL: none. */
static ak_status read_choice(const char *text, enum choice *choice, json_t **named,
                             struct ak_error *error)
{
    json_t *object = NULL;

    *choice = !text || strcmp(text, "auto") == 0 ? CHOICE_AUTO :
              strcmp(text, "none") == 0          ? CHOICE_NONE :
                                                   CHOICE_REQUIRED;
    if (*choice != CHOICE_REQUIRED || strcmp(text, "required") == 0)
        return AKUNU_OK;
    if (text[0] == '{')
        AK_TRY(ak_json_parse(text, strlen(text), &object, error));
    json_t *name =
        object ? json_object_get(json_object_get(object, "function"), "name") : json_string(text);
    if (object && !name)
        name = json_object_get(object, "name");
    if (object)
        json_incref(name);
    json_decref(object);
    *named = name;
    if (!json_is_string(name))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the choice of a tool names no function");
    return AKUNU_OK;
}

/* ---- One call ----------------------------------------------------------- */
static uint32_t build_quoted_name(struct ak_tc_builder *r, const char *name)
{
    struct ak_buffer json = { 0 };
    struct ak_grammar_builder *b = &r->gb;
    uint32_t expr = AK_GB_NOTHING;

    if (ak_tc_put_escaped(name, strlen(name), &json, NULL) == AKUNU_OK)
        expr = ak_gb_concat(
            b, ak_gb_text(b, "\""),
            ak_gb_concat(b, ak_gb_literal(b, json.bytes, json.n), ak_gb_text(b, "\"")));
    else
        ak_gb_fail(b, AKUNU_ERROR_MEMORY, "no memory for a name");
    ak_buffer_free(&json);
    return expr;
}

/* Arguments by the schema of the tool; without a schema the empty object. */
static uint32_t build_arguments(struct ak_tc_builder *r, const char *tool, const json_t *function)
{
    json_t *none =
        json_pack("{s:s, s:{}, s:b}", "type", "object", "properties", "additionalProperties", 0);
    const json_t *given = json_object_get(function, "parameters");

    r->tool = tool;
    r->root = given && !json_is_null(given) ? given : none;
    uint32_t expr = ak_tc_build_arguments(r, r->root);
    json_decref(none);
    return expr;
}

/* Member before the name: "tool_call_id": "0" */
static uint32_t build_json_id(struct ak_tc_builder *r)
{
    struct ak_grammar_builder *b = &r->gb;

    if (!r->syntax->json_id || r->syntax->id_is_last)
        return AK_GB_EMPTY;
    uint32_t digits = ak_gb_repeat(b, ak_gb_byte_range(b, '0', '9'), 1, 3);
    uint32_t exprs[] = { ak_gb_text(b, r->syntax->json_id), ak_gb_text(b, "\": \""), digits,
                         ak_gb_text(b, "\", \"") };
    return ak_gb_sequence(b, exprs, 4);
}

/* An optional id of nine letters or digits between `before` and `after`. */
static uint32_t build_id(struct ak_tc_builder *r, uint32_t before, uint32_t after)
{
    struct ak_grammar_builder *b = &r->gb;
    struct ak_grammar_byte_set set = { { 0 } };

    for (unsigned c = '0'; c <= 'z'; c++)
        if (c <= '9' || (c >= 'A' && c <= 'Z') || c >= 'a')
            set.bits[c >> 6] |= (uint64_t)1 << (c & 63);
    uint32_t letters = ak_gb_repeat(b, ak_gb_bytes(b, &set), 9, 9);
    return ak_gb_either(b, AK_GB_EMPTY, ak_gb_concat(b, before, ak_gb_concat(b, letters, after)));
}

/* {"name": "f", "arguments": {…}} */
static uint32_t build_json_call(struct ak_tc_builder *r, const json_t *function)
{
    struct ak_grammar_builder *b = &r->gb;
    const struct ak_tc_syntax *s = r->syntax;
    uint32_t exprs[] = {
        ak_gb_text(b, r->is_opened ? "\"" : "{\""),
        build_json_id(r),
        ak_gb_text(b, s->json_name ? s->json_name : "name"),
        ak_gb_text(b, "\": "),
        build_quoted_name(r, r->tool),
        ak_gb_text(b, ", \""),
        ak_gb_text(b, s->json_arguments ? s->json_arguments : "arguments"),
        ak_gb_text(b, "\": "),
        build_arguments(r, r->tool, function),
        s->id_is_last ? build_id(r, ak_gb_text(b, ", \"id\": \""), ak_gb_text(b, "\"")) :
                        AK_GB_EMPTY,
        ak_gb_text(b, "}"),
    };
    return ak_gb_sequence(b, exprs, sizeof exprs / sizeof exprs[0]);
}

/* NAME, or functions.NAME:NUMBER if the name is also the id. */
static uint32_t build_name(struct ak_tc_builder *r)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t expr = ak_gb_text(b, r->tool);

    if (!r->syntax->name_is_id)
        return expr;
    uint32_t number = ak_gb_repeat(b, ak_gb_byte_range(b, '0', '9'), 1, 3);
    return ak_gb_concat(b, ak_gb_text(b, "functions."),
                        ak_gb_concat(b, expr, ak_gb_concat(b, ak_gb_text(b, ":"), number)));
}

static uint32_t build_call(struct ak_tc_builder *r, const char *tool, const json_t *function)
{
    struct ak_grammar_builder *b = &r->gb;
    const struct ak_tc_syntax *s = r->syntax;

    r->tool = tool;
    if (s->arguments == AK_TC_ARGS_JSON_CALL)
        return build_json_call(r, function);
    if (strpbrk(tool, " \t\r\n<>[](){}\"'=,;|`"))
        return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED,
                          "the format %s cannot write the name of the tool %s",
                          r->params->format->name, tool);
    uint32_t exprs[] = {
        build_name(r),
        s->id_begin ? build_id(r, ak_tc_build_marker(r, s->id_begin), AK_GB_EMPTY) : AK_GB_EMPTY,
        ak_tc_build_loose_marker(r, s->name_end),
        s->arguments == AK_TC_ARGS_JSON ? ak_tc_build_whitespace(r) : AK_GB_EMPTY,
        build_arguments(r, tool, function),
    };
    return ak_gb_sequence(b, exprs, 5);
}

/* A call of any allowed tool: a rule, built once per syntax. */
typedef uint32_t call_fn(struct ak_tc_builder *r, const char *tool, const json_t *function);

static uint32_t build_any_call(struct ak_tc_builder *r, call_fn *make)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t *known = &r->call_rules[r->syntax - r->params->format->syntaxes][r->is_opened],
             expr = AK_GB_NOTHING;
    const char *tool;
    json_t *function;

    if (*known)
        return *known;
    json_object_foreach (r->tools->by_name, tool, function)
        if (!r->named_tool || strcmp(tool, json_string_value(r->named_tool)) == 0)
            expr = ak_gb_either(b, expr, make(r, tool, function));
    if (expr == AK_GB_NOTHING && ak_gb_ok(b))
        ak_gb_fail(b, AKUNU_ERROR_ARGUMENT, "no tool has the name %s",
                   r->named_tool ? json_string_value(r->named_tool) : "");
    uint32_t rule = ak_gb_declare_rule(b, "call", 4);
    ak_gb_define_rule(b, rule, expr);
    return *known = ak_gb_rule_ref(b, rule);
}

/* ---- Consecutive calls -------------------------------------------------- */
static bool is_in_list(const struct ak_tc_syntax *s)
{
    return s->is_list &&
           (s->arguments == AK_TC_ARGS_JSON_CALL || s->arguments == AK_TC_ARGS_PYTHON);
}

/* `inner` between the markers of one call. `first`: the begin marker was already written. */
static uint32_t build_marked_call(struct ak_tc_builder *r, uint32_t inner, bool first)
{
    struct ak_grammar_builder *b = &r->gb;
    const struct ak_tc_syntax *s = r->syntax;
    bool spaced = s->arguments == AK_TC_ARGS_JSON_CALL && s->begin;
    uint32_t begin = first || !s->begin ? AK_GB_EMPTY : ak_tc_build_marker(r, s->begin);
    uint32_t whitespace = spaced ? ak_tc_build_whitespace(r) : AK_GB_EMPTY;
    uint32_t fence =
        s->begin && strcmp(s->begin, "Action:") == 0 ? ak_gb_text(b, "```json\n") : AK_GB_EMPTY;
    uint32_t exprs[] = { begin, whitespace, fence, inner, ak_tc_build_loose_marker(r, s->end) };

    return ak_gb_sequence(b, exprs, 5);
}

/* Either a list of calls between one pair of markers, or calls with markers of their own. */
uint32_t ak_tc_build_calls(struct ak_tc_builder *r, const char *behind)
{
    struct ak_grammar_builder *b = &r->gb;
    const struct ak_tc_syntax *s = r->syntax;
    bool opened = behind && (!s->section || strcmp(behind, s->section) != 0);
    uint32_t n_more_max = r->params->parallel ? AK_GRAMMAR_UNBOUNDED : 0,
             whitespace = ak_tc_build_whitespace(r), one = build_any_call(r, build_call);

    if (is_in_list(s)) {
        uint32_t comma = ak_gb_concat(b, ak_gb_text(b, ","), whitespace);
        uint32_t more = ak_gb_repeat(b, ak_gb_concat(b, comma, one), 0, n_more_max);
        uint32_t begin = opened && !s->begin ? (uint32_t)AK_GB_EMPTY : ak_gb_text(b, "[");
        uint32_t exprs[] = { begin, whitespace, one, more, whitespace, ak_gb_text(b, "]") };
        return build_marked_call(r, ak_gb_sequence(b, exprs, 6), opened);
    }
    r->is_opened = opened && !s->begin;
    uint32_t first = r->is_opened ? build_any_call(r, build_call) : one;
    r->is_opened = false;
    uint32_t more =
        ak_gb_repeat(b,
                     ak_gb_concat(b, s->section || s->begin ? whitespace : ak_gb_text(b, "; "),
                                  build_marked_call(r, one, false)),
                     0, n_more_max);
    if (!s->section || opened) /* no section, or the model omitted its marker */
        return ak_gb_concat(b, build_marked_call(r, first, opened), more);
    uint32_t exprs[] = {
        behind ? (uint32_t)AK_GB_EMPTY : ak_tc_build_marker(r, s->section),
        whitespace,
        build_marked_call(r, one, false),
        more,
        whitespace,
        ak_tc_build_marker(r, s->section_end),
    };
    return ak_gb_sequence(b, exprs, 6);
}

/* ---- Harmony: a call is a message, others may precede it ---------------- */
/* " to=functions.NAME<|channel|>commentary json<|message|>{…}"; the recipient may also follow the
 * channel. */
static uint32_t build_harmony_call(struct ak_tc_builder *r, const char *tool,
                                   const json_t *function)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t to = ak_gb_concat(b, ak_gb_text(b, " to=functions."), ak_gb_text(b, tool));
    uint32_t channel = ak_tc_build_marker(r, "<|channel|>commentary");
    uint32_t header = ak_gb_either(b, ak_gb_concat(b, to, channel), ak_gb_concat(b, channel, to));
    uint32_t json =
        ak_gb_either(b, ak_tc_build_marker(r, "<|constrain|>json"), ak_gb_text(b, "json"));
    uint32_t type = ak_gb_either(b, AK_GB_EMPTY, ak_gb_concat(b, ak_gb_text(b, " "), json));
    uint32_t exprs[] = { header, type, ak_tc_build_marker(r, "<|message|>"),
                         build_arguments(r, tool, function) };

    return ak_gb_sequence(b, exprs, 4);
}

static uint32_t build_any_bytes(struct ak_tc_builder *r)
{
    return ak_gb_repeat(&r->gb, ak_gb_byte_range(&r->gb, 0, 255), 0, AK_GRAMMAR_UNBOUNDED);
}

/* <|channel|>NAME<|message|> */
static uint32_t build_message(struct ak_tc_builder *r, const char *channel, uint32_t text)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t exprs[] = { ak_tc_build_marker(r, "<|channel|>"), ak_gb_text(b, channel),
                         ak_tc_build_marker(r, "<|message|>"), text };

    return ak_gb_sequence(b, exprs, 4);
}

static uint32_t build_harmony(struct ak_tc_builder *r, enum choice choice)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t next = ak_gb_declare_rule(b, "messages", 8);
    uint32_t more =
        ak_gb_concat(b, ak_tc_build_marker(r, "<|start|>assistant"), ak_gb_rule_ref(b, next));
    uint32_t before = ak_tc_build_until(r, "<|end|>", more);
    uint32_t expr = choice != CHOICE_NONE ? build_any_call(r, build_harmony_call) : AK_GB_NOTHING;

    expr = ak_gb_either(b, expr, build_message(r, "analysis", before));
    expr = ak_gb_either(b, expr, build_message(r, "commentary", before));
    if (choice != CHOICE_REQUIRED)
        expr = ak_gb_either(
            b, expr,
            build_message(r, "final",
                          r->params->content ? r->params->content->root : build_any_bytes(r)));
    ak_gb_define_rule(b, next, expr);
    return ak_gb_rule_ref(b, next);
}

/* ---- The whole reply ---------------------------------------------------- */
static bool template_has(const struct ak_tc_builder *r, const struct ak_tc_reasoning *t)
{
    return r->params->chat_template && strstr(r->params->chat_template, t->begin) &&
           strstr(r->params->chat_template, t->end);
}

/* `then`, preceded by reasoning: by the rest of it if the prompt has begun it, otherwise, if the
 * template has its markers, by the whole of it or nothing. */
static uint32_t build_after_reasoning(struct ak_tc_builder *r, uint32_t then)
{
    struct ak_grammar_builder *b = &r->gb;
    const struct ak_tc_reasoning *t = ak_tc_find_open_reasoning(r->params->prompt);
    uint32_t expr = then;

    if (t)
        return ak_tc_build_reasoning(r, t, &then);
    for (size_t i = 0; (t = ak_tc_reasoning_at(i)); i++)
        if (template_has(r, t))
            expr = ak_gb_either(b, expr,
                                ak_gb_concat(b, ak_tc_build_marker(r, t->begin),
                                             ak_tc_build_reasoning(r, t, &then)));
    return expr;
}

static uint32_t build_root(struct ak_tc_builder *r, enum choice choice)
{
    const struct ak_tc_reasoning *t = ak_tc_find_open_reasoning(r->params->prompt);

    if (r->params->format->harmony)
        return build_harmony(r, choice);
    uint32_t calls = choice == CHOICE_REQUIRED || (r->params->content && choice != CHOICE_NONE) ?
                         ak_tc_build_calls(r, NULL) :
                         AK_GB_NOTHING;
    if (choice == CHOICE_REQUIRED)
        return build_after_reasoning(r, calls);
    if (r->params->content)
        return build_after_reasoning(r, ak_gb_either(&r->gb, calls, r->params->content->root));
    uint32_t text = ak_tc_build_text(r);
    return t ? ak_tc_build_reasoning(r, t, NULL) : text;
}

ak_status ak_tc_build_grammar(const struct ak_tc_grammar_params *params, struct ak_grammar **out,
                              struct ak_error *error)
{
    struct ak_tc_builder r = { .params = params, .syntax = &params->format->syntaxes[0] };
    struct ak_tc_tools tools;
    enum choice choice = CHOICE_NONE;
    json_t *named = NULL;

    *out = NULL;
    ak_status status = ak_tc_tools_parse(params->tools, &tools, error);
    if (status == AKUNU_OK)
        status = read_choice(params->choice, &choice, &named, error);
    if (status == AKUNU_OK && !json_array_size(tools.list))
        choice = CHOICE_NONE;
    if (status == AKUNU_OK && (params->content || choice != CHOICE_NONE)) {
        if (params->content)
            ak_gb_begin_copy(&r.gb, params->content, error);
        else
            ak_gb_begin(&r.gb, error);
        r.tools = &tools;
        r.named_tool = named;
        status = ak_gb_finish(&r.gb, build_root(&r, choice), out);
    }
    json_decref(named);
    ak_tc_tools_free(&tools);
    return status;
}
