/* Arguments after the name: a JSON object, or Gemma's form, which is converted to one. */
#include "text/toolcall/parser.h"

static enum ak_tc_result finish_call(struct ak_tc_parser *r)
{
    AK_TC_TRY(ak_tc_emit_call_end(r));
    r->state = AK_TC_STATE_END;
    return AK_TC_CONTINUE;
}

enum step { AT_BEGIN, IN_ARGUMENTS };

/* Some models write no arguments at all if a function has no parameters. */
static enum ak_tc_result begin_arguments(struct ak_tc_parser *r)
{
    size_t after;

    if (ak_tc_skip_whitespace(r, "") != AK_TC_CONTINUE)
        return AK_TC_NEED_MORE;
    if (r->text.bytes[r->pos] == '{') {
        AK_TC_TRY(ak_tc_emit_call(r));
        r->call.step = IN_ARGUMENTS;
        r->scanned = r->call.value_begin = r->pos;
        return AK_TC_CONTINUE;
    }
    enum ak_tc_match end = r->syntax->end ?
                               ak_tc_match_loose_marker(r, r->pos, r->syntax->end, &after) :
                               AK_TC_MATCH_NO;
    if (end == AK_TC_MATCH_PARTIAL)
        return AK_TC_NEED_MORE;
    if (end == AK_TC_MATCH_NO)
        return ak_tc_set_malformed(r, "no object of arguments follows its name");
    AK_TC_TRY(ak_tc_emit_call(r));
    AK_TC_TRY(ak_tc_emit_arguments(r, "{}", 2));
    return finish_call(r);
}

enum ak_tc_result ak_tc_read_json_arguments(struct ak_tc_parser *r)
{
    enum ak_tc_scan_result step = AK_TC_SCAN_MORE;
    size_t i = r->pos;

    if (r->call.step == AT_BEGIN)
        return begin_arguments(r);
    while (i < r->text.n && step == AK_TC_SCAN_MORE)
        step = ak_tc_scan_byte(&r->call.scan, r->text.bytes[i++]);
    i -= step == AK_TC_SCAN_BAD;
    AK_TC_TRY(ak_tc_emit_arguments(r, r->text.bytes + r->pos, i - r->pos));
    r->pos = i;
    if (step == AK_TC_SCAN_BAD)
        return ak_tc_set_malformed(r, "no JSON: \"%c\" is not expected there", r->text.bytes[i]);
    return step == AK_TC_SCAN_DONE ? finish_call(r) : AK_TC_NEED_MORE;
}

enum ak_tc_result ak_tc_read_gemma(struct ak_tc_parser *r)
{
    enum ak_tc_literal_result step;

    if (r->call.step == AT_BEGIN) {
        if (ak_tc_skip_whitespace(r, "") != AK_TC_CONTINUE)
            return AK_TC_NEED_MORE;
        if (r->text.bytes[r->pos] != '{')
            return ak_tc_set_malformed(r, "no object of arguments follows its name");
        AK_TC_TRY(ak_tc_emit_call(r));
        r->call.literal.quote = r->syntax->quote;
        r->call.step = IN_ARGUMENTS;
    }
    AK_TC_TRY(ak_tc_emit_literal(r, &step));
    if (step == AK_TC_LITERAL_BAD)
        return ak_tc_set_malformed(r, "its arguments are not in the form {key:value}");
    return step == AK_TC_LITERAL_DONE ? finish_call(r) : AK_TC_NEED_MORE;
}
