/* Calls as objects of JSON: {"name": …, "arguments": {…}}, one, some in a row, or a list.
 * Members may come in any order; arguments that come after the name are passed on at once. */
#include "toolcall/state.h"

#include "base/json.h"

enum step { BEFORE, IN_LIST, IN_OBJECT };

/* Models know more names than their templates. */
static const struct {
    const char *name;
    enum ak_member_name member;
} members[] = {
    { "name", AK_MEMBER_NAME },
    { "tool_name", AK_MEMBER_NAME },
    { "arguments", AK_MEMBER_ARGUMENTS },
    { "parameters", AK_MEMBER_ARGUMENTS },
    { "id", AK_MEMBER_ID },
    { "tool_call_id", AK_MEMBER_ID },
    { "call_id", AK_MEMBER_ID },
    { "function", AK_MEMBER_FUNCTION },
    { "type", AK_MEMBER_OTHER },
};

static enum ak_progress begin_object(struct ak_reply *r)
{
    struct ak_body *b = &r->body;

    b->scan = (struct ak_scan){ 0 };
    b->level = 1;
    b->member = AK_MEMBER_OTHER;
    b->streams = false;
    b->n_arguments = 0;
    b->step = IN_OBJECT;
    r->seen = r->at;
    return AK_ON;
}

static enum ak_progress before(struct ak_reply *r)
{
    struct ak_body *b = &r->body;
    size_t after;

    if (ak_skip_blanks(r, b->step == IN_LIST ? "," : "") != AK_ON)
        return AK_WAIT;
    char c = r->text.bytes[r->at];
    if (c == '{')
        return begin_object(r);
    if (b->step == IN_LIST && c == ']') {
        r->at++;
        r->place = AK_PLACE_END;
        return AK_ON;
    }
    if (b->step == BEFORE && c == '[') {
        r->at++;
        b->step = IN_LIST;
        return AK_ON;
    }
    if (b->step == BEFORE && c == '`') { /* a fence inside of the markers */
        enum ak_match json = ak_match_loosely(r, r->at, "```json", &after);
        if (json == AK_MATCH_NO)
            json = ak_match_loosely(r, r->at, "```", &after);
        if (json == AK_MATCH_YES)
            r->at = after;
        if (json != AK_MATCH_NO)
            return json == AK_MATCH_YES ? AK_ON : AK_WAIT;
    }
    return ak_broken(r, "it begins with \"%c\", where an object or a list of objects is expected",
                     c < ' ' || c > '~' ? '?' : c);
}

static enum ak_progress begin_member(struct ak_reply *r, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (n == strlen(members[i].name) && memcmp(name, members[i].name, n) == 0) {
            r->body.member = members[i].member;
            return AK_ON;
        }
    r->body.member = AK_MEMBER_OTHER;
    return r->shape->bare ? ak_broken(r, "it has members that no call has") : AK_ON;
}

static enum ak_progress begin_call(struct ak_reply *r)
{
    if (r->shape->bare && ak_tools_known(&r->tools) &&
        !ak_tools_has(&r->tools, r->name, strlen(r->name)))
        return ak_broken(r, "no tool has this name");
    return ak_emit_call(r);
}

static enum ak_progress begin_value(struct ak_reply *r, size_t i)
{
    struct ak_body *b = &r->body;
    char c = r->text.bytes[i];

    b->mark = i;
    if (b->member == AK_MEMBER_FUNCTION) {
        b->member = c == '"' ? AK_MEMBER_NAME : AK_MEMBER_OTHER;
        b->level += c == '{' && b->level == 1;
    }
    if (b->member == AK_MEMBER_NAME && c != '"')
        return ak_broken(r, "its name is no string");
    if (b->member != AK_MEMBER_ARGUMENTS)
        return AK_ON;
    if (c != '{' && c != '"' && c != 'n')
        return ak_broken(r, "its arguments are no object");
    if (b->n_arguments || r->arguments.n)
        return ak_broken(r, "it has arguments twice");
    if (c == '{' && r->name[0]) {
        AK_GO(begin_call(r));
        b->streams = true;
    }
    return AK_ON;
}

/* The text of a string of JSON, as one that ends in a NUL. */
static enum ak_progress decode(struct ak_reply *r, const char *json, size_t n, json_t **out)
{
    if (ak_json_parse(json, n, out, &r->why) == AKUNU_OK)
        return AK_ON;
    return r->why.status == AKUNU_ERROR_MEMORY ? ak_failed(r, AKUNU_ERROR_MEMORY) : AK_BROKEN;
}

static enum ak_progress take_name(struct ak_reply *r, const char *json, size_t n, char *out,
                                  bool name)
{
    json_t *string;

    AK_GO(decode(r, json, n, &string));
    size_t length = json_string_length(string);
    bool fits = json_is_string(string) && length <= AK_MOST_NAME && length > 0;
    if (fits)
        memcpy(out, json_string_value(string), length + 1);
    json_decref(string);
    return fits || !name ? AK_ON :
                           ak_broken(r, "its name has no bytes, or more than %d", AK_MOST_NAME);
}

/* Arguments that were not passed on as they came: before the name, or inside of a string. */
static enum ak_progress emit_arguments(struct ak_reply *r)
{
    const char *json = r->text.bytes + r->body.arguments;
    size_t n = r->body.n_arguments;
    json_t *string;

    if (n == 0 || json[0] == 'n')
        return ak_emit_arguments(r, "{}", 2);
    if (json[0] == '{')
        return ak_emit_arguments(r, json, n);
    AK_GO(decode(r, json, n, &string));
    enum ak_progress went =
        ak_emit_arguments(r, json_string_value(string), json_string_length(string));
    json_decref(string);
    return went;
}

/* The value ends before byte `end`. */
static enum ak_progress end_value(struct ak_reply *r, size_t end)
{
    struct ak_body *b = &r->body;
    const char *json = r->text.bytes + b->mark;
    size_t n = end - b->mark;
    enum ak_member_name member = b->member;

    b->member = AK_MEMBER_OTHER;
    if (member == AK_MEMBER_NAME)
        return take_name(r, json, n, r->name, true);
    if (member == AK_MEMBER_ID && json[0] == '"' && !r->begun)
        return take_name(r, json, n, r->id, false);
    if (member != AK_MEMBER_ARGUMENTS)
        return AK_ON;
    if (b->streams) {
        b->streams = false;
        return ak_emit_arguments(r, json, n);
    }
    b->arguments = b->mark;
    b->n_arguments = n;
    return AK_ON;
}

static enum ak_progress end_object(struct ak_reply *r)
{
    struct ak_body *b = &r->body;

    if (!r->name[0])
        return ak_broken(r, "it has no name");
    if (!r->begun) {
        if (!b->n_arguments && r->shape->bare)
            return ak_broken(r, "it has no arguments");
        AK_GO(begin_call(r));
        AK_GO(emit_arguments(r));
    }
    AK_GO(ak_emit_call_end(r));
    b->step = IN_LIST;
    if (!b->list)
        r->place = AK_PLACE_END;
    return AK_ON;
}

/* What the byte did, by where the scan was and where it is. */
static enum ak_progress follow(struct ak_reply *r, struct ak_scan was, size_t i)
{
    struct ak_body *b = &r->body;
    const struct ak_scan *is = &b->scan;

    if (was.depth == b->level && was.state == AK_SCAN_VALUE && is->state != AK_SCAN_VALUE)
        AK_GO(begin_value(r, i));
    else if (is->depth == b->level && is->state == AK_SCAN_STRING && is->name &&
             was.state != AK_SCAN_STRING && was.state != AK_SCAN_ESCAPE && was.state != AK_SCAN_HEX)
        b->mark = i + 1;
    else if (is->depth == b->level && is->state == AK_SCAN_COLON && was.state == AK_SCAN_STRING)
        AK_GO(begin_member(r, r->text.bytes + b->mark, i - b->mark));
    if (is->depth == b->level && is->state == AK_SCAN_AFTER &&
        (was.state != AK_SCAN_AFTER || was.depth != is->depth))
        AK_GO(end_value(r, i + 1));
    if (is->depth < b->level)
        b->level = is->depth;
    return AK_ON;
}

/* Passes on what there is of the arguments, up to r->at. */
static enum ak_progress stream(struct ak_reply *r)
{
    struct ak_body *b = &r->body;

    if (!b->streams)
        return AK_ON;
    size_t from = b->mark;
    b->mark = r->at;
    return ak_emit_arguments(r, r->text.bytes + from, r->at - from);
}

static enum ak_progress in_object(struct ak_reply *r)
{
    struct ak_body *b = &r->body;

    for (size_t i = r->seen; i < r->text.n; i++) {
        struct ak_scan was = b->scan;
        enum ak_scan_step step = ak_scan_byte(&b->scan, r->text.bytes[i]);
        r->at = i;
        if (step == AK_SCAN_BAD) {
            AK_GO(stream(r));
            return ak_broken(r, "no JSON: \"%c\" is not expected there", r->text.bytes[i]);
        }
        AK_GO(follow(r, was, i));
        if (step == AK_SCAN_DONE) {
            r->at = i + 1;
            return end_object(r);
        }
    }
    r->at = r->seen = r->text.n;
    AK_GO(stream(r));
    return AK_WAIT;
}

enum ak_progress ak_json_body(struct ak_reply *r)
{
    r->body.list |= r->body.step == IN_LIST;
    return r->body.step == IN_OBJECT ? in_object(r) : before(r);
}
