/* Each argument between markers of its own, as plain text. A string is passed on as it
 * comes; of any other value the whole is needed to tell what it is. */
#include "toolcall/state.h"

enum step { BETWEEN, KEY, VALUE };

static enum ak_progress finish(struct ak_reply *r, size_t after)
{
    if (!r->begun)
        AK_GO(ak_emit_call(r));
    AK_GO(r->body.any ? ak_emit_arguments(r, "}", 1) : ak_emit_arguments(r, "{}", 2));
    r->at = after;
    AK_GO(ak_emit_call_end(r));
    r->place = r->section ? AK_PLACE_SECTION : AK_PLACE_TEXT;
    return r->section ? AK_ON : ak_prose_begin(r, NULL);
}

static enum ak_progress between(struct ak_reply *r)
{
    size_t after;

    if (ak_skip_blanks(r, "") != AK_ON)
        return AK_WAIT;
    enum ak_match end = ak_match_loosely(r, r->at, r->shape->end, &after),
                  key = ak_match(r, r->at, r->shape->key);
    if (end == AK_MATCH_YES)
        return finish(r, after);
    if (end == AK_MATCH_NO && key == AK_MATCH_NO)
        return ak_broken(r, "neither \"%s\" nor \"%s\" follows", r->shape->key, r->shape->end + 1);
    if (key != AK_MATCH_YES)
        return AK_WAIT;
    r->at += strlen(r->shape->key);
    r->body.step = KEY;
    return AK_ON;
}

/* What stands between a parameter's name and its value. string="false" is the one attribute. */
static enum ak_match value_begins(const struct ak_reply *r, size_t from, size_t *after,
                                  bool *string)
{
    static const char *const types[] = { " string=\"true\"", " string=\"false\"" };
    const char *value = r->shape->value ? r->shape->value : "";

    if (!r->shape->typed)
        return ak_match_loosely(r, from, value, after);
    for (size_t i = 0; i < 2; i++) {
        enum ak_match match = ak_match_loosely(r, from, types[i], after);
        if (match == AK_MATCH_PART)
            return match;
        *string = i == 0;
        if (match == AK_MATCH_YES)
            return ak_match_loosely(r, *after, value, after);
    }
    *string = false;
    return ak_match_loosely(r, from, value, after);
}

static enum ak_progress put_key(struct ak_reply *r, const char *key, size_t n)
{
    struct ak_buffer json = { 0 };
    const char *before = r->body.any ? ", \"" : "{\"", *behind = r->body.string ? "\": \"" : "\": ";
    bool fine = ak_buffer_add(&json, before, strlen(before), &r->error) == AKUNU_OK &&
                ak_json_escape(key, n, &json, &r->error) == AKUNU_OK &&
                ak_buffer_add(&json, behind, strlen(behind), &r->error) == AKUNU_OK;
    enum ak_progress went = fine ? ak_emit_arguments(r, json.bytes, json.n) : AK_FAILED;

    ak_buffer_free(&json);
    r->body.any = true;
    return went;
}

static enum ak_progress key(struct ak_reply *r)
{
    const char *text = r->text.bytes + r->at, *end = r->shape->key_end;
    size_t have = r->text.n - r->at, most = ak_min_size(have, AK_MOST_NAME + strlen(end)), after;
    const char *found = memmem(text, most, end, strlen(end));
    bool string = false;

    if (!found)
        return have == most ?
                   AK_WAIT :
                   ak_broken(r, "a parameter's name of more than %d bytes", AK_MOST_NAME);
    size_t n = (size_t)(found - text);
    enum ak_match match = value_begins(r, r->at + n + strlen(end), &after, &string);
    if (match != AK_MATCH_YES)
        return match == AK_MATCH_PART ? AK_WAIT :
                                        ak_broken(r, "no value follows the name of a parameter");
    if (r->shape->lines && after == r->text.n)
        return AK_WAIT;
    if (r->shape->lines && r->text.bytes[after] == '\n')
        after++;
    r->body.string = r->shape->typed ? string : ak_tools_wants_string(&r->tools, r->name, text, n);
    if (!r->begun)
        AK_GO(ak_emit_call(r));
    AK_GO(put_key(r, text, n));
    r->at = r->seen = r->body.mark = after;
    r->body.step = VALUE;
    return AK_ON;
}

static enum ak_progress put_value(struct ak_reply *r, size_t end)
{
    struct ak_buffer json = { 0 };
    const char *text = r->text.bytes + r->body.mark;
    ak_status status = r->body.string ? ak_json_escape(text, end - r->body.mark, &json, &r->error) :
                                        ak_tools_value(text, end - r->body.mark, &json, &r->error);
    enum ak_progress went =
        status == AKUNU_OK ? ak_emit_arguments(r, json.bytes, json.n) : AK_FAILED;

    ak_buffer_free(&json);
    r->body.mark = end;
    return went;
}

static enum ak_progress value(struct ak_reply *r)
{
    const char *text = r->text.bytes, *end = r->shape->value_end;
    enum ak_match match = AK_MATCH_NO;
    size_t i, n_end = strlen(end);

    for (i = r->seen; i < r->text.n; i++) {
        bool line = r->shape->lines && text[i] == '\n';
        if (text[i] != end[0] && !line)
            continue;
        match = ak_match(r, i + line, end);
        n_end = strlen(end) + line;
        if (match != AK_MATCH_NO)
            break;
    }
    r->seen = i;
    if (r->body.string)
        AK_GO(put_value(r, i));
    if (match != AK_MATCH_YES) {
        r->at = r->body.string ? i : r->at;
        return AK_WAIT;
    }
    if (r->body.string)
        AK_GO(ak_emit_arguments(r, "\"", 1));
    else
        AK_GO(put_value(r, i));
    r->at = i + n_end;
    r->body.step = BETWEEN;
    return AK_ON;
}

enum ak_progress ak_parameters_body(struct ak_reply *r)
{
    switch ((enum step)r->body.step) {
    case BETWEEN: return between(r);
    case KEY: return key(r);
    case VALUE: return value(r);
    }
    return AK_BROKEN;
}
