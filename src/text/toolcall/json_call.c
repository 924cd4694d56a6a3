/* Calls as JSON objects: {"name": …, "arguments": {…}}, one, several in a row, or a list. Members
 * may come in any order; arguments after the name are reported while they come. */
#include "text/toolcall/parser.h"

#include "base/json.h"

enum step { AT_BEGIN, IN_LIST, IN_OBJECT };

/* Models use more member names than their templates show. */
static const struct {
    const char *name;
    enum ak_tc_member member;
} members[] = {
    { "name", AK_TC_MEMBER_NAME },
    { "tool_name", AK_TC_MEMBER_NAME },
    { "arguments", AK_TC_MEMBER_ARGUMENTS },
    { "parameters", AK_TC_MEMBER_ARGUMENTS },
    { "id", AK_TC_MEMBER_ID },
    { "tool_call_id", AK_TC_MEMBER_ID },
    { "call_id", AK_TC_MEMBER_ID },
    { "function", AK_TC_MEMBER_FUNCTION },
    { "type", AK_TC_MEMBER_OTHER },
};

static enum ak_tc_result begin_object(struct ak_tc_parser *r)
{
    struct ak_tc_call *b = &r->call;

    b->scan = (struct ak_tc_scan){ 0 };
    b->level = 1;
    b->member = AK_TC_MEMBER_OTHER;
    b->is_streamed = false;
    b->n_arguments = 0;
    b->step = IN_OBJECT;
    r->scanned = r->pos;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result read_begin(struct ak_tc_parser *r)
{
    struct ak_tc_call *b = &r->call;
    size_t after;

    if (ak_tc_skip_whitespace(r, b->step == IN_LIST ? "," : "") != AK_TC_CONTINUE)
        return AK_TC_NEED_MORE;
    char c = r->text.bytes[r->pos];
    if (c == '{')
        return begin_object(r);
    if (b->step == IN_LIST && c == ']') {
        r->pos++;
        r->state = AK_TC_STATE_END;
        return AK_TC_CONTINUE;
    }
    if (b->step == AT_BEGIN && c == '[') {
        r->pos++;
        b->step = IN_LIST;
        return AK_TC_CONTINUE;
    }
    if (b->step == AT_BEGIN && c == '`') { /* a code fence inside the markers */
        enum ak_tc_match json = ak_tc_match_loose_marker(r, r->pos, "```json", &after);
        if (json == AK_TC_MATCH_NO)
            json = ak_tc_match_loose_marker(r, r->pos, "```", &after);
        if (json == AK_TC_MATCH_YES)
            r->pos = after;
        if (json != AK_TC_MATCH_NO)
            return json == AK_TC_MATCH_YES ? AK_TC_CONTINUE : AK_TC_NEED_MORE;
    }
    return ak_tc_set_malformed(
        r, "it begins with \"%c\", where an object or a list of objects is expected",
        c < ' ' || c > '~' ? '?' : c);
}

static enum ak_tc_result begin_member(struct ak_tc_parser *r, const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (n == strlen(members[i].name) && memcmp(name, members[i].name, n) == 0) {
            r->call.member = members[i].member;
            return AK_TC_CONTINUE;
        }
    r->call.member = AK_TC_MEMBER_OTHER;
    return r->syntax->is_bare ? ak_tc_set_malformed(r, "it has members that no call has") :
                                AK_TC_CONTINUE;
}

static enum ak_tc_result begin_call(struct ak_tc_parser *r)
{
    if (r->syntax->is_bare && ak_tc_tools_are_known(&r->tools) &&
        !ak_tc_tools_has(&r->tools, r->name, strlen(r->name)))
        return ak_tc_set_malformed(r, "no tool has this name");
    return ak_tc_emit_call(r);
}

static enum ak_tc_result begin_value(struct ak_tc_parser *r, size_t i)
{
    struct ak_tc_call *b = &r->call;
    char c = r->text.bytes[i];

    b->value_begin = i;
    if (b->member == AK_TC_MEMBER_FUNCTION) {
        b->member = c == '"' ? AK_TC_MEMBER_NAME : AK_TC_MEMBER_OTHER;
        b->level += c == '{' && b->level == 1;
    }
    if (b->member == AK_TC_MEMBER_NAME && c != '"')
        return ak_tc_set_malformed(r, "its name is not a string");
    if (b->member != AK_TC_MEMBER_ARGUMENTS)
        return AK_TC_CONTINUE;
    if (c != '{' && c != '"' && c != 'n')
        return ak_tc_set_malformed(r, "its arguments are no object");
    if (b->n_arguments || r->arguments.n)
        return ak_tc_set_malformed(r, "it has arguments twice");
    if (c == '{' && r->name[0]) {
        AK_TC_TRY(begin_call(r));
        b->is_streamed = true;
    }
    return AK_TC_CONTINUE;
}

/* Decodes a JSON string. */
static enum ak_tc_result decode_string(struct ak_tc_parser *r, const char *json, size_t n,
                                       json_t **out)
{
    if (ak_json_parse(json, n, out, &r->call_error) == AKUNU_OK)
        return AK_TC_CONTINUE;
    return r->call_error.status == AKUNU_ERROR_MEMORY ? ak_tc_check(r, AKUNU_ERROR_MEMORY) :
                                                        AK_TC_MALFORMED;
}

static enum ak_tc_result copy_name(struct ak_tc_parser *r, const char *json, size_t n, char *out,
                                   bool name)
{
    json_t *string;

    AK_TC_TRY(decode_string(r, json, n, &string));
    size_t length = json_string_length(string);
    bool fits = json_is_string(string) && length <= AK_TC_NAME_MAX && length > 0;
    if (fits)
        memcpy(out, json_string_value(string), length + 1);
    json_decref(string);
    return fits || !name ?
               AK_TC_CONTINUE :
               ak_tc_set_malformed(r, "its name has no bytes, or more than %d", AK_TC_NAME_MAX);
}

/* Reports arguments that could not be streamed: they came before the name, or as a string. */
static enum ak_tc_result emit_arguments(struct ak_tc_parser *r)
{
    const char *json = r->text.bytes + r->call.arguments_begin;
    size_t n = r->call.n_arguments;
    json_t *string;

    if (n == 0 || json[0] == 'n')
        return ak_tc_emit_arguments(r, "{}", 2);
    if (json[0] == '{')
        return ak_tc_emit_arguments(r, json, n);
    AK_TC_TRY(decode_string(r, json, n, &string));
    enum ak_tc_result result =
        ak_tc_emit_arguments(r, json_string_value(string), json_string_length(string));
    json_decref(string);
    return result;
}

/* Handles the value that ends before byte `end`. */
static enum ak_tc_result end_value(struct ak_tc_parser *r, size_t end)
{
    struct ak_tc_call *b = &r->call;
    const char *json = r->text.bytes + b->value_begin;
    size_t n = end - b->value_begin;
    enum ak_tc_member member = b->member;

    b->member = AK_TC_MEMBER_OTHER;
    if (member == AK_TC_MEMBER_NAME)
        return copy_name(r, json, n, r->name, true);
    if (member == AK_TC_MEMBER_ID && json[0] == '"' && !r->call_reported)
        return copy_name(r, json, n, r->id, false);
    if (member != AK_TC_MEMBER_ARGUMENTS)
        return AK_TC_CONTINUE;
    if (b->is_streamed) {
        b->is_streamed = false;
        return ak_tc_emit_arguments(r, json, n);
    }
    b->arguments_begin = b->value_begin;
    b->n_arguments = n;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result end_object(struct ak_tc_parser *r)
{
    struct ak_tc_call *b = &r->call;

    if (!r->name[0])
        return ak_tc_set_malformed(r, "it has no name");
    if (!r->call_reported) {
        if (!b->n_arguments && r->syntax->is_bare)
            return ak_tc_set_malformed(r, "it has no arguments");
        AK_TC_TRY(begin_call(r));
        AK_TC_TRY(emit_arguments(r));
    }
    AK_TC_TRY(ak_tc_emit_call_end(r));
    b->step = IN_LIST;
    if (!b->in_list)
        r->state = AK_TC_STATE_END;
    return AK_TC_CONTINUE;
}

/* Handles the effect of byte i, from the scan before and after it. */
static enum ak_tc_result track_byte(struct ak_tc_parser *r, struct ak_tc_scan was, size_t i)
{
    struct ak_tc_call *b = &r->call;
    const struct ak_tc_scan *is = &b->scan;

    if (was.depth == b->level && was.state == AK_TC_SCAN_VALUE && is->state != AK_TC_SCAN_VALUE)
        AK_TC_TRY(begin_value(r, i));
    else if (is->depth == b->level && is->state == AK_TC_SCAN_STRING && is->name &&
             was.state != AK_TC_SCAN_STRING && was.state != AK_TC_SCAN_ESCAPE &&
             was.state != AK_TC_SCAN_HEX)
        b->value_begin = i + 1;
    else if (is->depth == b->level && is->state == AK_TC_SCAN_COLON &&
             was.state == AK_TC_SCAN_STRING)
        AK_TC_TRY(begin_member(r, r->text.bytes + b->value_begin, i - b->value_begin));
    if (is->depth == b->level && is->state == AK_TC_SCAN_VALUE_END &&
        (was.state != AK_TC_SCAN_VALUE_END || was.depth != is->depth))
        AK_TC_TRY(end_value(r, i + 1));
    if (is->depth < b->level)
        b->level = is->depth;
    return AK_TC_CONTINUE;
}

/* Reports the arguments up to r->pos. */
static enum ak_tc_result emit_streamed(struct ak_tc_parser *r)
{
    struct ak_tc_call *b = &r->call;

    if (!b->is_streamed)
        return AK_TC_CONTINUE;
    size_t from = b->value_begin;
    b->value_begin = r->pos;
    return ak_tc_emit_arguments(r, r->text.bytes + from, r->pos - from);
}

static enum ak_tc_result read_object(struct ak_tc_parser *r)
{
    struct ak_tc_call *b = &r->call;

    for (size_t i = r->scanned; i < r->text.n; i++) {
        struct ak_tc_scan was = b->scan;
        enum ak_tc_scan_result step = ak_tc_scan_byte(&b->scan, r->text.bytes[i]);
        r->pos = i;
        if (step == AK_TC_SCAN_BAD) {
            AK_TC_TRY(emit_streamed(r));
            return ak_tc_set_malformed(r, "no JSON: \"%c\" is not expected there",
                                       r->text.bytes[i]);
        }
        AK_TC_TRY(track_byte(r, was, i));
        if (step == AK_TC_SCAN_DONE) {
            r->pos = i + 1;
            return end_object(r);
        }
    }
    r->pos = r->scanned = r->text.n;
    AK_TC_TRY(emit_streamed(r));
    return AK_TC_NEED_MORE;
}

enum ak_tc_result ak_tc_read_json_call(struct ak_tc_parser *r)
{
    r->call.in_list |= r->call.step == IN_LIST;
    return r->call.step == IN_OBJECT ? read_object(r) : read_begin(r);
}
