/* Output of the reply parser: events for the caller, and the message collected from them. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/json.h"
#include "text/toolcall/parser.h"

enum ak_tc_result ak_tc_check(struct ak_tc_parser *r, ak_status status)
{
    if (status == AKUNU_OK)
        return AK_TC_CONTINUE;
    if (r->error.status == AKUNU_OK)
        ak_fail_memory(&r->error, "a reply", 0);
    return AK_TC_FAILED;
}

static void report_event(struct ak_tc_parser *r, enum akunu_reply_kind kind, const char *text,
                         size_t n)
{
    if (!r->on_event)
        return;
    struct akunu_reply_event event = {
        .size = sizeof event,
        .kind = kind,
        .text = text,
        .n_bytes = n,
        .call = kind <= AKUNU_REPLY_CONTENT ? 0 : r->n_calls - 1,
        .id = kind == AKUNU_REPLY_CALL ? r->id : NULL,
    };
    r->on_event(&event, r->user);
}

static enum ak_tc_result report_text(struct ak_tc_parser *r, bool reasoning, const char *text,
                                     size_t n)
{
    AK_TC_TRY(ak_tc_check(r, ak_buffer_add(&r->outputs[reasoning], text, n, &r->error)));
    report_event(r, reasoning ? AKUNU_REPLY_REASONING : AKUNU_REPLY_CONTENT, text, n);
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_emit_text(struct ak_tc_parser *r, const char *text, size_t n)
{
    bool reasoning = r->reasoning && r->parses_reasoning;

    while (r->after_marker && n && ak_tc_is_whitespace(*text))
        text++, n--;
    if (n == 0)
        return AK_TC_CONTINUE;
    if (r->after_marker && r->outputs[reasoning].n)
        AK_TC_TRY(report_text(r, reasoning, "\n", 1));
    r->after_marker = false;
    return report_text(r, reasoning, text, n);
}

/* Makes an id of AK_TC_ID_BYTES letters and digits. Mistral's templates require that length; other
 * formats accept any. */
static void make_id(struct ak_tc_parser *r)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t number = r->n_calls, state[2] = { r->seed, 0x616b756e75 };

    ak_hash128(&number, sizeof number, state);
    ak_hash128(r->name, strlen(r->name), state);
    for (int i = 0; i < AK_TC_ID_BYTES; i++, state[0] /= 62)
        r->id[i] = letters[state[0] % 62];
    r->id[AK_TC_ID_BYTES] = '\0';
}

enum ak_tc_result ak_tc_emit_call(struct ak_tc_parser *r)
{
    if (!r->id[0])
        make_id(r);
    r->call_reported = true;
    r->n_calls++;
    report_event(r, AKUNU_REPLY_CALL, r->name, strlen(r->name));
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_emit_arguments(struct ak_tc_parser *r, const char *text, size_t n)
{
    if (n == 0)
        return AK_TC_CONTINUE;
    AK_TC_TRY(ak_tc_check(r, ak_buffer_add(&r->arguments, text, n, &r->error)));
    report_event(r, AKUNU_REPLY_ARGUMENTS, text, n);
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_emit_literal(struct ak_tc_parser *r, enum ak_tc_literal_result *step)
{
    struct ak_buffer json = { 0 };
    size_t used;
    *step = ak_tc_literal_read(&r->call.literal, r->text.bytes + r->pos, r->text.n - r->pos,
                               r->is_closed, &used, &json, &r->error);
    enum ak_tc_result result =
        *step == AK_TC_LITERAL_FAILED ? AK_TC_FAILED : ak_tc_emit_arguments(r, json.bytes, json.n);
    ak_buffer_free(&json);
    r->pos += used;
    return result;
}

static void reset_call(struct ak_tc_parser *r)
{
    r->call_reported = false;
    r->name[0] = r->id[0] = '\0';
    r->arguments.n = 0;
    r->call_error = (struct ak_error){ 0 };
}

static enum ak_tc_result append_call(struct ak_tc_parser *r)
{
    json_t *call =
        json_pack("{s:s, s:s, s:{s:s, s:s%}}", "id", r->id, "type", "function", "function", "name",
                  r->name, "arguments", r->arguments.bytes, r->arguments.n);
    if (!call || json_array_append_new(r->tool_calls, call) != 0)
        return ak_tc_check(r, AKUNU_ERROR_MEMORY);
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_emit_call_end(struct ak_tc_parser *r)
{
    json_t *arguments;

    if (ak_json_parse(r->arguments.bytes, r->arguments.n, &arguments, &r->call_error) != AKUNU_OK)
        return r->call_error.status == AKUNU_ERROR_MEMORY ? ak_tc_check(r, AKUNU_ERROR_MEMORY) :
                                                            AK_TC_MALFORMED;
    bool object = json_is_object(arguments);
    if (!object)
        ak_tc_set_malformed(r, "its arguments are %s, where an object is expected",
                            ak_json_kind(arguments));
    json_decref(arguments);
    if (!object)
        return AK_TC_MALFORMED;
    AK_TC_TRY(append_call(r));
    report_event(r, AKUNU_REPLY_CALL_END, r->arguments.bytes, r->arguments.n);
    reset_call(r);
    r->has_call = true;
    r->raw_begin = r->pos;
    return AK_TC_CONTINUE;
}

static enum ak_tc_result add_note(struct ak_tc_parser *r)
{
    char line[AK_ERROR_MESSAGE_BYTES + AK_TC_NAME_MAX + 64];
    int n = snprintf(line, sizeof line, "%sa call%s%s is none: %s", r->notes.n ? "\n" : "",
                     r->name[0] ? " of " : "", r->name, r->call_error.message);
    AK_TC_TRY(ak_tc_check(r, ak_buffer_add(&r->notes, line, (size_t)n, &r->error)));
    AK_TC_TRY(ak_tc_check(r, ak_buffer_reserve(&r->notes, 1, &r->error)));
    r->notes.bytes[r->notes.n] = '\0';
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_emit_malformed(struct ak_tc_parser *r)
{
    if (r->call_reported)
        report_event(r, AKUNU_REPLY_BROKEN, r->call_error.message, strlen(r->call_error.message));
    if (r->call_reported || !r->syntax || !r->syntax->is_bare)
        AK_TC_TRY(add_note(r));
    reset_call(r);
    return ak_tc_emit_text(r, r->text.bytes + r->raw_begin, r->pos - r->raw_begin);
}

/* ---- Message ------------------------------------------------------------ */
static bool set_text(json_t *message, const char *key, const struct ak_buffer *text)
{
    return json_object_set_new(message, key,
                               json_stringn(text->bytes ? text->bytes : "", text->n)) == 0;
}

static json_t *build_message(const struct ak_tc_parser *r)
{
    json_t *message = json_pack("{s:s, s:n}", "role", "assistant", "content");
    bool calls = json_array_size(r->tool_calls) > 0;

    bool fine =
        message && ((!r->outputs[0].n && calls) || set_text(message, "content", &r->outputs[0]));
    fine = fine && (!r->outputs[1].n || set_text(message, "reasoning_content", &r->outputs[1]));
    fine = fine && (!calls || json_object_set(message, "tool_calls", r->tool_calls) == 0);
    if (fine)
        return message;
    json_decref(message);
    return NULL;
}

ak_status ak_tc_parser_message(struct ak_tc_parser *r, const char **out, struct ak_error *error)
{
    *out = NULL;
    if (!r->is_closed)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the reply has not ended yet");
    if (!r->message) {
        json_t *message = build_message(r);
        r->message = message ? json_dumps(message, 0) : NULL;
        json_decref(message);
    }
    if (!r->message)
        return ak_fail_memory(error, "a message", 0);
    *out = r->message;
    return AKUNU_OK;
}
