/* Arguments as plain text between markers. A string is reported while it comes; any other value
 * only when it is complete, since its type shows only then.
 *
 * A value may contain the marker that ends values: it ends at one that another parameter or the end
 * of the call follows. If it has lines of its own (Qwen3-Coder), the marker also has to begin a
 * line. Some models leave out that newline: such an end is kept in loose_end, and counts if the
 * reply has no other. */
#include "text/toolcall/parser.h"

enum step { SEPARATOR, KEY, VALUE };

static enum ak_tc_result finish_call(struct ak_tc_parser *r, size_t after)
{
    if (!r->call_reported)
        AK_TC_TRY(ak_tc_emit_call(r));
    AK_TC_TRY(r->call.has_parameter ? ak_tc_emit_arguments(r, "}", 1) :
                                      ak_tc_emit_arguments(r, "{}", 2));
    r->pos = after;
    AK_TC_TRY(ak_tc_emit_call_end(r));
    r->state = r->section ? AK_TC_STATE_SECTION : AK_TC_STATE_TEXT;
    return r->section ? AK_TC_CONTINUE : ak_tc_begin_content(r, NULL);
}

static enum ak_tc_result read_separator(struct ak_tc_parser *r)
{
    size_t after;

    if (ak_tc_skip_whitespace(r, "") != AK_TC_CONTINUE)
        return AK_TC_NEED_MORE;
    enum ak_tc_match end = ak_tc_match_loose_marker(r, r->pos, r->syntax->end, &after),
                     key = ak_tc_match_marker(r, r->pos, r->syntax->key);
    if (end == AK_TC_MATCH_YES)
        return finish_call(r, after);
    if (end == AK_TC_MATCH_NO && key == AK_TC_MATCH_NO)
        return ak_tc_set_malformed(r, "neither \"%s\" nor \"%s\" follows", r->syntax->key,
                                   r->syntax->end + 1);
    if (key != AK_TC_MATCH_YES)
        return AK_TC_NEED_MORE;
    r->pos += strlen(r->syntax->key);
    r->call.step = KEY;
    return AK_TC_CONTINUE;
}

/* Matches the text between the name of a parameter and its value. *string gets the attribute
 * string="true" or "false" of typed parameters. */
static enum ak_tc_match match_value_begin(const struct ak_tc_parser *r, size_t from, size_t *after,
                                          bool *string)
{
    static const char *const types[] = { " string=\"true\"", " string=\"false\"" };
    const char *value = r->syntax->value ? r->syntax->value : "";

    if (!r->syntax->is_typed)
        return ak_tc_match_loose_marker(r, from, value, after);
    for (size_t i = 0; i < 2; i++) {
        enum ak_tc_match match = ak_tc_match_loose_marker(r, from, types[i], after);
        if (match == AK_TC_MATCH_PARTIAL)
            return match;
        *string = i == 0;
        if (match == AK_TC_MATCH_YES)
            return ak_tc_match_loose_marker(r, *after, value, after);
    }
    *string = false;
    return ak_tc_match_loose_marker(r, from, value, after);
}

static enum ak_tc_result put_key(struct ak_tc_parser *r, const char *key, size_t n)
{
    struct ak_buffer json = { 0 };
    const char *before = r->call.has_parameter ? ", \"" : "{\"",
               *behind = r->call.is_string ? "\": \"" : "\": ";
    bool fine = ak_buffer_add(&json, before, strlen(before), &r->error) == AKUNU_OK &&
                ak_tc_put_escaped(key, n, &json, &r->error) == AKUNU_OK &&
                ak_buffer_add(&json, behind, strlen(behind), &r->error) == AKUNU_OK;
    enum ak_tc_result result = fine ? ak_tc_emit_arguments(r, json.bytes, json.n) : AK_TC_FAILED;

    ak_buffer_free(&json);
    r->call.has_parameter = true;
    return result;
}

static enum ak_tc_result read_key(struct ak_tc_parser *r)
{
    const char *text = r->text.bytes + r->pos, *end = r->syntax->key_end;
    size_t have = r->text.n - r->pos, max = ak_min_size(have, AK_TC_NAME_MAX + strlen(end)), after;
    const char *found = memmem(text, max, end, strlen(end));
    bool string = false;

    if (!found)
        return have == max ? AK_TC_NEED_MORE :
                             ak_tc_set_malformed(r, "a parameter's name of more than %d bytes",
                                                 AK_TC_NAME_MAX);
    size_t n = (size_t)(found - text);
    enum ak_tc_match match = match_value_begin(r, r->pos + n + strlen(end), &after, &string);
    if (match != AK_TC_MATCH_YES)
        return match == AK_TC_MATCH_PARTIAL ?
                   AK_TC_NEED_MORE :
                   ak_tc_set_malformed(r, "no value follows the name of a parameter");
    if (r->syntax->has_newlines && after == r->text.n)
        return AK_TC_NEED_MORE;
    r->call.on_lines = r->syntax->has_newlines && r->text.bytes[after] == '\n';
    after += r->call.on_lines;
    r->call.has_text = false;
    r->call.loose_end = 0;
    r->call.is_string =
        r->syntax->is_typed ? string : ak_tc_tools_wants_string(&r->tools, r->name, text, n);
    if (!r->call_reported)
        AK_TC_TRY(ak_tc_emit_call(r));
    AK_TC_TRY(put_key(r, text, n));
    r->pos = r->scanned = r->call.value_begin = after;
    r->call.step = VALUE;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result put_value(struct ak_tc_parser *r, size_t end)
{
    struct ak_buffer json = { 0 };
    const char *text = r->text.bytes + r->call.value_begin;
    ak_status status = r->call.is_string ?
                           ak_tc_put_escaped(text, end - r->call.value_begin, &json, &r->error) :
                           ak_tc_put_value(text, end - r->call.value_begin, &json, &r->error);
    enum ak_tc_result result =
        status == AKUNU_OK ? ak_tc_emit_arguments(r, json.bytes, json.n) : AK_TC_FAILED;

    ak_buffer_free(&json);
    r->call.value_begin = end;
    return result;
}

/* Matches the marker that ends a value, and looks at what follows it. */
static enum ak_tc_match match_value_end(const struct ak_tc_parser *r, size_t from, size_t *after)
{
    size_t next, ignored;
    enum ak_tc_match match = ak_tc_match_marker(r, from, r->syntax->value_end);
    if (match != AK_TC_MATCH_YES)
        return match;
    *after = next = from + strlen(r->syntax->value_end);
    while (next < r->text.n && ak_tc_is_whitespace(r->text.bytes[next]))
        next++;
    enum ak_tc_match end = ak_tc_match_loose_marker(r, next, r->syntax->end, &ignored),
                     key = ak_tc_match_marker(r, next, r->syntax->key);
    return end > key ? end : key;
}

/* Reports the value up to `end`, and continues after it. */
static enum ak_tc_result finish_value(struct ak_tc_parser *r, size_t end, size_t after)
{
    AK_TC_TRY(put_value(r, end));
    if (r->call.is_string)
        AK_TC_TRY(ak_tc_emit_arguments(r, "\"", 1));
    r->pos = after;
    r->call.step = SEPARATOR;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result read_parameter(struct ak_tc_parser *r)
{
    const char *text = r->text.bytes, *end = r->syntax->value_end;
    struct ak_tc_call *call = &r->call;
    size_t i, after = 0;

    for (i = r->scanned; i < r->text.n; i++) {
        bool line = r->syntax->has_newlines && text[i] == '\n', is_text = call->has_text;
        call->has_text |= !ak_tc_is_whitespace(text[i]);
        if (text[i] != end[0] && !line)
            continue;
        enum ak_tc_match match = match_value_end(r, i + line, &after);
        bool is_loose = call->on_lines && !line && is_text;
        if (match == AK_TC_MATCH_PARTIAL) {
            call->has_text = is_text; /* looked at again */
            break;
        }
        if (match == AK_TC_MATCH_YES && !is_loose)
            return finish_value(r, i, after);
        if (match == AK_TC_MATCH_YES && !call->loose_end)
            call->loose_end = i;
    }
    r->scanned = i;
    if (call->loose_end && r->is_closed)
        return finish_value(r, call->loose_end, call->loose_end + strlen(end));
    if (call->is_string) {
        r->pos = call->loose_end ? call->loose_end : i;
        AK_TC_TRY(put_value(r, r->pos));
    }
    return AK_TC_NEED_MORE;
}

enum ak_tc_result ak_tc_read_parameters(struct ak_tc_parser *r)
{
    switch ((enum step)r->call.step) {
    case SEPARATOR: return read_separator(r);
    case KEY: return read_key(r);
    case VALUE: return read_parameter(r);
    }
    return AK_TC_MALFORMED;
}
