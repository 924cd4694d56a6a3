/* Calls as Python writes them: f(a=1, b="x"), a list of these, or one a line; also inside
 * of print( ). Arguments are passed on as JSON while they come. */
#include "toolcall/state.h"

enum step { BEFORE, FUNCTION, ARGUMENTS, AFTER };

static enum ak_progress before(struct ak_reply *r)
{
    if (ak_skip_blanks(r, "") != AK_ON)
        return AK_WAIT;
    r->body.list = r->text.bytes[r->at] == '[';
    r->at += r->body.list;
    r->body.step = FUNCTION;
    return AK_ON;
}

/* The name of what is called, without the module that some models are shown: functions.,
 * default_api., and Llama's NAME.call(. */
static void take_name(struct ak_reply *r, const char *name, size_t n)
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

static enum ak_progress function(struct ak_reply *r)
{
    size_t n;

    if (ak_skip_blanks(r, r->body.list ? "," : "") != AK_ON)
        return AK_WAIT;
    const char *text = r->text.bytes + r->at;
    if (*text == ']' && r->body.list && r->complete) { /* after a last comma */
        r->raw = ++r->at;
        r->place = AK_PLACE_END;
        return AK_ON;
    }
    AK_GO(ak_read_word(r, "<>[](){}\"'=,;|`", &n));
    if (n == 0 || text[n] != '(')
        return ak_broken(r, "no name and bracket of a function stand there");
    r->at += n;
    if (n == 5 && memcmp(text, "print", 5) == 0 && !r->body.print) {
        r->body.print = true;
        r->at++;
        return AK_ON;
    }
    take_name(r, text, n);
    if (r->shape->bare && ak_tools_known(&r->tools) &&
        !ak_tools_has(&r->tools, r->name, strlen(r->name)))
        return ak_broken(r, "no tool has this name");
    r->body.literal = (struct ak_literal){ 0 };
    r->body.step = ARGUMENTS;
    return ak_emit_call(r);
}

static enum ak_progress arguments(struct ak_reply *r)
{
    enum ak_literal_step step;
    AK_GO(ak_emit_literal(r, &step));
    if (step == AK_LITERAL_BAD)
        return ak_broken(r, "its arguments are not in the form key=value");
    if (step == AK_LITERAL_MORE)
        return AK_WAIT;
    AK_GO(ak_emit_call_end(r));
    r->body.step = AFTER;
    return AK_ON;
}

/* After a call: the rest of what stood around it, another one, or the end. */
static enum ak_progress after(struct ak_reply *r)
{
    size_t at = r->at;
    enum ak_match match;

    if (r->body.print) {
        match = ak_match_loosely(r, r->at, " )", &at);
        if (match == AK_MATCH_PART)
            return AK_WAIT;
        r->body.print = false;
        r->at = r->raw = at;
    }
    if (r->body.list) {
        match = ak_match_loosely(r, r->at, " ]", &at);
        r->body.step = FUNCTION;
        if (match == AK_MATCH_PART)
            r->body.step = AFTER;
        if (match == AK_MATCH_YES) {
            r->at = r->raw = at;
            r->place = AK_PLACE_END;
        }
        return match == AK_MATCH_PART ? AK_WAIT : AK_ON;
    }
    match = r->shape->end ? ak_match_loosely(r, r->at, r->shape->end, &at) : AK_MATCH_YES;
    if (match == AK_MATCH_PART)
        return AK_WAIT;
    r->body.step = FUNCTION;
    if (match == AK_MATCH_YES)
        r->place = AK_PLACE_END;
    return AK_ON;
}

enum ak_progress ak_python_body(struct ak_reply *r)
{
    switch ((enum step)r->body.step) {
    case BEFORE: return before(r);
    case FUNCTION: return function(r);
    case ARGUMENTS: return arguments(r);
    case AFTER: return after(r);
    }
    return AK_BROKEN;
}
