/* Calls in Python: f(a=1, b="x"), one per line, or a list of them; also inside print( ). Arguments
 * are reported as JSON while they come. */
#include "text/toolcall/parser.h"

enum step { AT_BEGIN, FUNCTION, ARGUMENTS, CALL_END };

static enum ak_tc_result read_begin(struct ak_tc_parser *r)
{
    if (ak_tc_skip_whitespace(r, "") != AK_TC_CONTINUE)
        return AK_TC_NEED_MORE;
    r->call.in_list = r->text.bytes[r->pos] == '[';
    r->pos += r->call.in_list;
    r->call.step = FUNCTION;
    return AK_TC_CONTINUE;
}

/* Copies the name of the function without the module that some prompts show: functions. or
 * default_api., and without the .call of Llama's NAME.call(. */
static void copy_name(struct ak_tc_parser *r, const char *name, size_t n)
{
    static const char *const modules[] = { "functions.", "default_api." }, call[] = ".call";

    for (size_t i = 0; i < 2; i++)
        if (n > strlen(modules[i]) && memcmp(name, modules[i], strlen(modules[i])) == 0)
            name += strlen(modules[i]), n -= strlen(modules[i]);
    if (n > sizeof call - 1 && memcmp(name + n - (sizeof call - 1), call, sizeof call - 1) == 0)
        n -= sizeof call - 1;
    memcpy(r->name, name, n);
    r->name[n] = '\0';
}

static enum ak_tc_result read_function(struct ak_tc_parser *r)
{
    size_t n;

    if (ak_tc_skip_whitespace(r, r->call.in_list ? "," : "") != AK_TC_CONTINUE)
        return AK_TC_NEED_MORE;
    const char *text = r->text.bytes + r->pos;
    if (*text == ']' && r->call.in_list && r->has_call) { /* after a trailing comma */
        r->raw_begin = ++r->pos;
        r->state = AK_TC_STATE_END;
        return AK_TC_CONTINUE;
    }
    AK_TC_TRY(ak_tc_read_word(r, "<>[](){}\"'=,;|`", &n));
    if (n == 0 || text[n] != '(')
        return ak_tc_set_malformed(r, "no name and bracket of a function stand there");
    r->pos += n;
    if (n == 5 && memcmp(text, "print", 5) == 0 && !r->call.in_print) {
        r->call.in_print = true;
        r->pos++;
        return AK_TC_CONTINUE;
    }
    copy_name(r, text, n);
    if (r->syntax->is_bare && ak_tc_tools_are_known(&r->tools) &&
        !ak_tc_tools_has(&r->tools, r->name, strlen(r->name)))
        return ak_tc_set_malformed(r, "no tool has this name");
    r->call.literal = (struct ak_tc_literal){ 0 };
    r->call.step = ARGUMENTS;
    return ak_tc_emit_call(r);
}

static enum ak_tc_result read_arguments(struct ak_tc_parser *r)
{
    enum ak_tc_literal_result step;
    AK_TC_TRY(ak_tc_emit_literal(r, &step));
    if (step == AK_TC_LITERAL_BAD)
        return ak_tc_set_malformed(r, "its arguments are not in the form key=value");
    if (step == AK_TC_LITERAL_MORE)
        return AK_TC_NEED_MORE;
    AK_TC_TRY(ak_tc_emit_call_end(r));
    r->call.step = CALL_END;
    return AK_TC_CONTINUE;
}

/* After a call: closes print( and the list, or begins the next call. */
static enum ak_tc_result read_call_end(struct ak_tc_parser *r)
{
    size_t at = r->pos;
    enum ak_tc_match match;

    if (r->call.in_print) {
        match = ak_tc_match_loose_marker(r, r->pos, " )", &at);
        if (match == AK_TC_MATCH_PARTIAL)
            return AK_TC_NEED_MORE;
        r->call.in_print = false;
        r->pos = r->raw_begin = at;
    }
    if (r->call.in_list) {
        match = ak_tc_match_loose_marker(r, r->pos, " ]", &at);
        r->call.step = FUNCTION;
        if (match == AK_TC_MATCH_PARTIAL)
            r->call.step = CALL_END;
        if (match == AK_TC_MATCH_YES) {
            r->pos = r->raw_begin = at;
            r->state = AK_TC_STATE_END;
        }
        return match == AK_TC_MATCH_PARTIAL ? AK_TC_NEED_MORE : AK_TC_CONTINUE;
    }
    match =
        r->syntax->end ? ak_tc_match_loose_marker(r, r->pos, r->syntax->end, &at) : AK_TC_MATCH_YES;
    if (match == AK_TC_MATCH_PARTIAL)
        return AK_TC_NEED_MORE;
    r->call.step = FUNCTION;
    if (match == AK_TC_MATCH_YES)
        r->state = AK_TC_STATE_END;
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_read_python(struct ak_tc_parser *r)
{
    switch ((enum step)r->call.step) {
    case AT_BEGIN: return read_begin(r);
    case FUNCTION: return read_function(r);
    case ARGUMENTS: return read_arguments(r);
    case CALL_END: return read_call_end(r);
    }
    return AK_TC_MALFORMED;
}
