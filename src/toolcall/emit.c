/* What leaves a reply: events for the caller, and the same collected for the message. */
#include "toolcall/state.h"

#include "base/hash.h"
#include "base/json.h"

enum ak_progress ak_failed(struct ak_reply *r, ak_status status)
{
    if (status == AKUNU_OK)
        return AK_ON;
    if (r->error.status == AKUNU_OK)
        ak_fail_memory(&r->error, "a reply", 0);
    return AK_FAILED;
}

static void tell(struct ak_reply *r, enum akunu_reply_kind kind, const char *text, size_t n)
{
    if (!r->on_event)
        return;
    struct akunu_reply_event event = {
        .size = sizeof event,
        .kind = kind,
        .text = text,
        .n_bytes = n,
        .call = kind <= AKUNU_REPLY_CONTENT ? 0 : r->n_begun - 1,
        .id = kind == AKUNU_REPLY_CALL ? r->id : NULL,
    };
    r->on_event(&event, r->user);
}

static enum ak_progress say(struct ak_reply *r, bool reasoning, const char *text, size_t n)
{
    AK_GO(ak_failed(r, ak_buffer_add(&r->said[reasoning], text, n, &r->error)));
    tell(r, reasoning ? AKUNU_REPLY_REASONING : AKUNU_REPLY_CONTENT, text, n);
    return AK_ON;
}

enum ak_progress ak_emit_text(struct ak_reply *r, const char *text, size_t n)
{
    bool reasoning = r->thinking && r->reasoning;

    while (r->beside && n && ak_is_blank(*text))
        text++, n--;
    if (n == 0)
        return AK_ON;
    if (r->beside && r->said[reasoning].n)
        AK_GO(say(r, reasoning, "\n", 1));
    r->beside = false;
    return say(r, reasoning, text, n);
}

/* Letters and digits, as many as Mistral's templates ask for; other formats take any. */
static void make_id(struct ak_reply *r)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t number = r->n_begun, state[2] = { r->seed, 0x616b756e75 };

    ak_hash128(&number, sizeof number, state);
    ak_hash128(r->name, strlen(r->name), state);
    for (int i = 0; i < AK_CALL_ID_BYTES; i++, state[0] /= 62)
        r->id[i] = letters[state[0] % 62];
    r->id[AK_CALL_ID_BYTES] = '\0';
}

enum ak_progress ak_emit_call(struct ak_reply *r)
{
    if (!r->id[0])
        make_id(r);
    r->begun = true;
    r->n_begun++;
    tell(r, AKUNU_REPLY_CALL, r->name, strlen(r->name));
    return AK_ON;
}

enum ak_progress ak_emit_arguments(struct ak_reply *r, const char *text, size_t n)
{
    if (n == 0)
        return AK_ON;
    AK_GO(ak_failed(r, ak_buffer_add(&r->arguments, text, n, &r->error)));
    tell(r, AKUNU_REPLY_ARGUMENTS, text, n);
    return AK_ON;
}

enum ak_progress ak_emit_literal(struct ak_reply *r, enum ak_literal_step *step)
{
    struct ak_buffer json = { 0 };
    size_t used;
    *step = ak_literal_read(&r->body.literal, r->text.bytes + r->at, r->text.n - r->at, r->closed,
                            &used, &json, &r->error);
    enum ak_progress went =
        *step == AK_LITERAL_FAILED ? AK_FAILED : ak_emit_arguments(r, json.bytes, json.n);
    ak_buffer_free(&json);
    r->at += used;
    return went;
}

static void next_call(struct ak_reply *r)
{
    r->begun = false;
    r->name[0] = r->id[0] = '\0';
    r->arguments.n = 0;
    r->why = (struct ak_error){ 0 };
}

static enum ak_progress keep_call(struct ak_reply *r)
{
    json_t *call =
        json_pack("{s:s, s:s, s:{s:s, s:s%}}", "id", r->id, "type", "function", "function", "name",
                  r->name, "arguments", r->arguments.bytes, r->arguments.n);
    if (!call || json_array_append_new(r->tool_calls, call) != 0)
        return ak_failed(r, AKUNU_ERROR_MEMORY);
    return AK_ON;
}

enum ak_progress ak_emit_call_end(struct ak_reply *r)
{
    json_t *arguments;

    if (ak_json_parse(r->arguments.bytes, r->arguments.n, &arguments, &r->why) != AKUNU_OK)
        return r->why.status == AKUNU_ERROR_MEMORY ? ak_failed(r, AKUNU_ERROR_MEMORY) : AK_BROKEN;
    bool object = json_is_object(arguments);
    if (!object)
        ak_broken(r, "its arguments are %s, where an object is expected", ak_json_kind(arguments));
    json_decref(arguments);
    if (!object)
        return AK_BROKEN;
    AK_GO(keep_call(r));
    tell(r, AKUNU_REPLY_CALL_END, r->arguments.bytes, r->arguments.n);
    next_call(r);
    r->complete = true;
    r->raw = r->at;
    return AK_ON;
}

static enum ak_progress note(struct ak_reply *r)
{
    char line[AK_ERROR_MESSAGE_BYTES + AK_MOST_NAME + 64];
    int n = snprintf(line, sizeof line, "%sa call%s%s is none: %s", r->notes.n ? "\n" : "",
                     r->name[0] ? " of " : "", r->name, r->why.message);
    AK_GO(ak_failed(r, ak_buffer_add(&r->notes, line, (size_t)n, &r->error)));
    AK_GO(ak_failed(r, ak_buffer_reserve(&r->notes, 1, &r->error)));
    r->notes.bytes[r->notes.n] = '\0';
    return AK_ON;
}

enum ak_progress ak_emit_broken(struct ak_reply *r)
{
    if (r->begun)
        tell(r, AKUNU_REPLY_BROKEN, r->why.message, strlen(r->why.message));
    if (r->begun || !r->shape || !r->shape->bare)
        AK_GO(note(r));
    next_call(r);
    return ak_emit_text(r, r->text.bytes + r->raw, r->at - r->raw);
}
