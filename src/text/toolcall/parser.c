/* The reply parser: creation, and the loop that runs the function of the current state until it
 * needs more text. */
#include "text/toolcall/toolcall.h"

#include <stdlib.h>

#include "text/toolcall/parser.h"

ak_status ak_tc_parser_create(const struct ak_tc_parser_params *settings, struct ak_tc_parser **out,
                              struct ak_error *error)
{
    struct ak_tc_parser *r = *out = ak_alloc(1, sizeof *r);

    if (!r)
        return ak_fail_memory(error, "a reply", sizeof *r);
    r->format = settings->format;
    r->parses_calls = settings->calls;
    r->parses_reasoning = settings->reasoning;
    r->seed = settings->seed;
    r->on_event = settings->on_event;
    r->user = settings->user;
    r->reasoning = ak_tc_find_open_reasoning(settings->prompt);
    r->at_start = true;
    r->after_marker = r->reasoning && r->parses_reasoning;
    r->state = r->format->harmony ? AK_TC_STATE_HEADER : AK_TC_STATE_TEXT;
    ak_tc_set_markers(r);
    r->tool_calls = json_array();
    ak_status status =
        r->tool_calls ? ak_buffer_reserve(&r->text, 1, error) : ak_fail_memory(error, "a reply", 0);
    if (status == AKUNU_OK)
        status = ak_tc_tools_parse(settings->tools, &r->tools, error);
    if (status == AKUNU_OK)
        return status;
    ak_tc_parser_free(r);
    *out = NULL;
    return status;
}

void ak_tc_parser_free(struct ak_tc_parser *r)
{
    if (!r)
        return;
    ak_tc_tools_free(&r->tools);
    ak_buffer_free(&r->text);
    ak_buffer_free(&r->arguments);
    ak_buffer_free(&r->outputs[0]);
    ak_buffer_free(&r->outputs[1]);
    ak_buffer_free(&r->notes);
    json_decref(r->tool_calls);
    free(r->message);
    ak_free(r);
}

/* Drops consumed text once it is at least half of the buffer. */
static void drop_consumed(struct ak_tc_parser *r)
{
    size_t n =
        r->state == AK_TC_STATE_TEXT || r->state == AK_TC_STATE_HEADER ? r->pos : r->raw_begin;

    if (n < 4096 || n < r->text.n / 2)
        return;
    memmove(r->text.bytes, r->text.bytes + n, r->text.n - n);
    r->text.n -= n;
    r->pos -= n;
    r->scanned = r->scanned > n ? r->scanned - n : 0;
    r->raw_begin = 0;
    r->call.value_begin = r->call.value_begin > n ? r->call.value_begin - n : 0;
    r->call.loose_end = r->call.loose_end > n ? r->call.loose_end - n : 0;
    r->call.arguments_begin = r->call.arguments_begin > n ? r->call.arguments_begin - n : 0;
}

static enum ak_tc_result read_state(struct ak_tc_parser *r)
{
    switch (r->state) {
    case AK_TC_STATE_TEXT: return ak_tc_read_content(r);
    case AK_TC_STATE_HEADER: return ak_tc_read_harmony_header(r);
    default: return ak_tc_read_call(r);
    }
}

static ak_status parse_text(struct ak_tc_parser *r, struct ak_error *error)
{
    enum ak_tc_result result;

    do {
        result = read_state(r);
        if (result == AK_TC_MALFORMED)
            result = ak_tc_reject_call(r);
    } while (result == AK_TC_CONTINUE);
    if (result != AK_TC_FAILED)
        return AKUNU_OK;
    return ak_fail(error, r->error.status, "%s", r->error.message);
}

ak_status ak_tc_parser_push(struct ak_tc_parser *r, const char *bytes, size_t n,
                            struct ak_error *error)
{
    if (r->is_closed)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the reply has ended");
    if (r->error.status != AKUNU_OK)
        return ak_fail(error, r->error.status, "%s", r->error.message);
    drop_consumed(r);
    if (ak_tc_add_bytes(r, bytes, n) == AK_TC_FAILED)
        return ak_fail(error, r->error.status, "%s", r->error.message);
    return parse_text(r, error);
}

ak_status ak_tc_parser_end(struct ak_tc_parser *r, struct ak_error *error)
{
    if (r->is_closed)
        return AKUNU_OK;
    if (r->error.status != AKUNU_OK || ak_tc_add_end(r) == AK_TC_FAILED)
        return ak_fail(error, r->error.status, "%s", r->error.message);
    r->is_closed = true;
    return parse_text(r, error);
}

const char *ak_tc_parser_notes(const struct ak_tc_parser *r)
{
    return r->notes.n ? r->notes.bytes : "";
}

const struct ak_tc_format *ak_tc_parser_format(const struct ak_tc_parser *r)
{
    return r->format;
}
