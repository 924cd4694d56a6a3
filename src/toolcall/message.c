/* The whole reply as one message of OpenAI's form. */
#include <stdlib.h>

#include "toolcall/parser.h"

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
