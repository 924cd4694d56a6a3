/* The reply of the chat command as JSON: one object, or with --stream a line per piece.
 * docs/json.md describes the fields. */
#include "apps/cli/chat/reply.h"

#include "apps/common/message.h"

static void print_line(struct cli_reply *r, json_t *value)
{
    if (app_json_print(&r->out, value))
        app_output_text(&r->out, "\n");
}

/* ---- Pieces ------------------------------------------------------------- */
void cli_reply_follow_call(struct cli_reply *r, const struct akunu_reply_event *event)
{
    if (event->kind == AKUNU_REPLY_CALL) {
        json_decref(r->call);
        r->call = json_pack("{s:s, s:s, s:{s:o}}", "id", event->id, "type", "function", "function",
                            "name", app_json_text(event->text, event->n_bytes));
        r->no_memory |= !r->call;
    } else if (event->kind == AKUNU_REPLY_CALL_END &&
               json_object_set_new(json_object_get(r->call, "function"), "arguments",
                                   app_json_text(event->text, event->n_bytes)) != 0) {
        r->no_memory = true;
    }
}

/* A call is printed when it is complete: until then it may turn out to be content. */
void cli_reply_print_event(struct cli_reply *r, const struct akunu_reply_event *event)
{
    const char *name = event->kind == AKUNU_REPLY_REASONING ? "reasoning" : "content";
    if (event->kind == AKUNU_REPLY_CALL_END)
        print_line(r, json_pack("{s:[O]}", "tool_calls", r->call));
    else if (event->kind == AKUNU_REPLY_REASONING || event->kind == AKUNU_REPLY_CONTENT)
        print_line(r, json_pack("{s:o}", name, app_json_text(event->text, event->n_bytes)));
}

/* ---- The end ------------------------------------------------------------ */
static const char *finish_reason(const struct akunu_result *result, bool calls, bool cancelled)
{
    if (cancelled)
        return "cancelled";
    if (result->stop == AKUNU_STOP_LENGTH || result->stop == AKUNU_STOP_CONTEXT)
        return "length";
    return calls ? "tool_calls" : "stop";
}

static json_t *usage_of(const struct cli_reply *r, const struct akunu_result *result)
{
    json_int_t n_prompt = (json_int_t)r->n_ids, n_completion = (json_int_t)result->n_generated;
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", n_prompt, "completion_tokens",
                     n_completion, "total_tokens", n_prompt + n_completion, "prompt_tokens_details",
                     "cached_tokens", (json_int_t)r->n_restored);
}

/* Tokens per second; null if nothing was measured. */
static json_t *rate(uint64_t n, double seconds)
{
    return n > 0 && seconds > 0.0 ? json_real(app_rate((double)n, seconds)) : json_null();
}

static json_t *timings_of(const struct cli_reply *r, const struct akunu_result *result)
{
    /* the first token comes with the prompt */
    uint64_t n_after_first = result->n_generated > 0 ? result->n_generated - 1 : 0;
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "load_seconds",
                     app_json_real(r->loaded.load_seconds), "prompt_seconds",
                     app_json_real(result->prompt_seconds), "generate_seconds",
                     app_json_real(result->generate_seconds), "prompt_tokens_per_second",
                     rate(result->n_prompt, result->prompt_seconds), "generate_tokens_per_second",
                     rate(n_after_first, result->generate_seconds));
}

/* A member of the message, or `otherwise`, which is released. */
static json_t *member(const json_t *message, const char *name, json_t *otherwise)
{
    json_t *found = json_object_get(message, name);
    if (!found)
        return otherwise;
    json_decref(otherwise);
    return json_incref(found);
}

void cli_reply_print_end(struct cli_reply *r, const struct akunu_result *result, bool cancelled)
{
    /* without a reply Ctrl-C came before the prompt was run */
    json_t *message = r->answer.reply ? cli_answer_message(&r->answer) : json_object();
    if (r->options->chat.hide_reasoning)
        json_object_del(message, "reasoning_content");
    bool calls = json_object_get(message, "tool_calls") != NULL;
    json_t *end =
        json_pack("{s:s, s:o, s:o, s:I}", "finish_reason", finish_reason(result, calls, cancelled),
                  "usage", usage_of(r, result), "timings", timings_of(r, result), "seed",
                  (json_int_t)r->sampling.params.seed);
    json_t *whole =
        r->options->chat.stream ?
            json_object() :
            json_pack("{s:o, s:o, s:o}", "content", member(message, "content", json_null()),
                      "reasoning", member(message, "reasoning_content", json_null()), "tool_calls",
                      member(message, "tool_calls", json_array()));
    if (!message || !end || !whole || json_object_update(whole, end) != 0) {
        json_decref(whole);
        whole = NULL;
    }
    json_decref(end);
    json_decref(message);
    print_line(r, whole);
}
