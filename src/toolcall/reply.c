#include "toolcall/reply.h"

#include <stdlib.h>

#include "toolcall/state.h"

ak_status ak_reply_create(const struct ak_reply_settings *settings, struct ak_reply **out,
                          struct ak_error *error)
{
    struct ak_reply *r = *out = ak_alloc(1, sizeof *r);

    if (!r)
        return ak_fail_memory(error, "a reply", sizeof *r);
    r->format = settings->format;
    r->calls = settings->calls;
    r->reasoning = settings->reasoning;
    r->seed = settings->seed;
    r->on_event = settings->on_event;
    r->user = settings->user;
    r->thinking = ak_thinking_begun(settings->prompt);
    r->fresh = true;
    r->beside = r->thinking && r->reasoning;
    r->place = r->format->harmony ? AK_PLACE_HEADER : AK_PLACE_TEXT;
    ak_prose_markers(r);
    r->tool_calls = json_array();
    ak_status status =
        r->tool_calls ? ak_buffer_reserve(&r->text, 1, error) : ak_fail_memory(error, "a reply", 0);
    if (status == AKUNU_OK)
        status = ak_tools_parse(settings->tools, &r->tools, error);
    if (status == AKUNU_OK)
        return status;
    ak_reply_free(r);
    *out = NULL;
    return status;
}

void ak_reply_free(struct ak_reply *r)
{
    if (!r)
        return;
    ak_tools_free(&r->tools);
    ak_buffer_free(&r->text);
    ak_buffer_free(&r->arguments);
    ak_buffer_free(&r->said[0]);
    ak_buffer_free(&r->said[1]);
    ak_buffer_free(&r->notes);
    json_decref(r->tool_calls);
    free(r->message);
    ak_free(r);
}

/* Drops text that nobody needs any more, once it is most of what is there. */
static void forget(struct ak_reply *r)
{
    size_t n = r->place == AK_PLACE_TEXT || r->place == AK_PLACE_HEADER ? r->at : r->raw;

    if (n < 4096 || n < r->text.n / 2)
        return;
    memmove(r->text.bytes, r->text.bytes + n, r->text.n - n);
    r->text.n -= n;
    r->at -= n;
    r->seen = r->seen > n ? r->seen - n : 0;
    r->raw = 0;
    r->body.mark = r->body.mark > n ? r->body.mark - n : 0;
    r->body.arguments = r->body.arguments > n ? r->body.arguments - n : 0;
}

static enum ak_progress step(struct ak_reply *r)
{
    switch (r->place) {
    case AK_PLACE_TEXT: return ak_prose(r);
    case AK_PLACE_HEADER: return ak_harmony_header(r);
    default: return ak_call(r);
    }
}

static ak_status run(struct ak_reply *r, struct ak_error *error)
{
    enum ak_progress went;

    do {
        went = step(r);
        if (went == AK_BROKEN)
            went = ak_call_break(r);
    } while (went == AK_ON);
    if (went != AK_FAILED)
        return AKUNU_OK;
    return ak_fail(error, r->error.status, "%s", r->error.message);
}

ak_status ak_reply_push(struct ak_reply *r, const char *bytes, size_t n, struct ak_error *error)
{
    if (r->closed)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the reply has ended");
    if (r->error.status != AKUNU_OK)
        return ak_fail(error, r->error.status, "%s", r->error.message);
    forget(r);
    if (ak_intake(r, bytes, n) == AK_FAILED)
        return ak_fail(error, r->error.status, "%s", r->error.message);
    return run(r, error);
}

ak_status ak_reply_end(struct ak_reply *r, struct ak_error *error)
{
    if (r->closed)
        return AKUNU_OK;
    if (r->error.status != AKUNU_OK || ak_intake_end(r) == AK_FAILED)
        return ak_fail(error, r->error.status, "%s", r->error.message);
    r->closed = true;
    return run(r, error);
}

const char *ak_reply_notes(const struct ak_reply *r)
{
    return r->notes.n ? r->notes.bytes : "";
}

const struct ak_call_format *ak_reply_format(const struct ak_reply *r)
{
    return r->format;
}
