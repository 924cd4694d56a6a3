/* Arguments as an object of JSON after the name, and Gemma's, which are made into one. */
#include "toolcall/state.h"

static enum ak_progress finish(struct ak_reply *r)
{
    AK_GO(ak_emit_call_end(r));
    r->place = AK_PLACE_END;
    return AK_ON;
}

enum step { BEFORE, INSIDE };

/* Some models write nothing where a function takes nothing. */
static enum ak_progress begin(struct ak_reply *r)
{
    size_t after;

    if (ak_skip_blanks(r, "") != AK_ON)
        return AK_WAIT;
    if (r->text.bytes[r->at] == '{') {
        AK_GO(ak_emit_call(r));
        r->body.step = INSIDE;
        r->seen = r->body.mark = r->at;
        return AK_ON;
    }
    enum ak_match end =
        r->shape->end ? ak_match_loosely(r, r->at, r->shape->end, &after) : AK_MATCH_NO;
    if (end == AK_MATCH_PART)
        return AK_WAIT;
    if (end == AK_MATCH_NO)
        return ak_broken(r, "no object of arguments follows its name");
    AK_GO(ak_emit_call(r));
    AK_GO(ak_emit_arguments(r, "{}", 2));
    return finish(r);
}

enum ak_progress ak_arguments_body(struct ak_reply *r)
{
    enum ak_scan_step step = AK_SCAN_MORE;
    size_t i = r->at;

    if (r->body.step == BEFORE)
        return begin(r);
    while (i < r->text.n && step == AK_SCAN_MORE)
        step = ak_scan_byte(&r->body.scan, r->text.bytes[i++]);
    i -= step == AK_SCAN_BAD;
    AK_GO(ak_emit_arguments(r, r->text.bytes + r->at, i - r->at));
    r->at = i;
    if (step == AK_SCAN_BAD)
        return ak_broken(r, "no JSON: \"%c\" is not expected there", r->text.bytes[i]);
    return step == AK_SCAN_DONE ? finish(r) : AK_WAIT;
}

enum ak_progress ak_gemma_body(struct ak_reply *r)
{
    enum ak_literal_step step;

    if (r->body.step == BEFORE) {
        if (ak_skip_blanks(r, "") != AK_ON)
            return AK_WAIT;
        if (r->text.bytes[r->at] != '{')
            return ak_broken(r, "no object of arguments follows its name");
        AK_GO(ak_emit_call(r));
        r->body.literal.quote = r->shape->quote;
        r->body.step = INSIDE;
    }
    AK_GO(ak_emit_literal(r, &step));
    if (step == AK_LITERAL_BAD)
        return ak_broken(r, "its arguments are not in the form {key:value}");
    return step == AK_LITERAL_DONE ? finish(r) : AK_WAIT;
}
