/* Tool calls of a reply: the streaming reply parser and the grammar for calls, behind handles. */
#include "api/handles.h"
#include "base/mem.h"
#include "text/toolcall/toolcall.h"

#include <string.h>

struct akunu_reply {
    struct ak_tc_parser *inner;
};

void akunu_reply_params_default(struct akunu_reply_params *params, size_t size)
{
    static const struct akunu_reply_params full = { .calls = true, .reasoning = true };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status find_format(const struct akunu_reply_params *p, const struct ak_tc_format **out,
                             struct ak_error *error)
{
    if (!p->format || strcmp(p->format, "auto") == 0) {
        *out = ak_tc_detect_format(p->chat_template, p->tokenizer ? p->tokenizer->inner : NULL);
        return AKUNU_OK;
    }
    *out = ak_tc_find_format(p->format);
    if (!*out)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no format of tool calls has the name \"%s\"",
                       p->format);
    return AKUNU_OK;
}

static ak_status create_parser(const struct akunu_reply_params *given, akunu_reply_fn *on_event,
                               void *user, struct ak_tc_parser **out, struct ak_error *error)
{
    struct akunu_reply_params p;
    struct ak_tc_parser_params settings = { .on_event = on_event, .user = user };

    akunu_reply_params_default(&p, sizeof p);
    AK_TRY(ak_api_copy_in(&p, sizeof p, given, "akunu_reply_params", error));
    AK_TRY(find_format(&p, &settings.format, error));
    settings.prompt = p.prompt;
    settings.tools = p.tools;
    settings.calls = p.calls;
    settings.reasoning = p.reasoning;
    settings.seed = p.seed;
    return ak_tc_parser_create(&settings, out, error);
}

static ak_status find_reasoning(const struct akunu_reply_params *given, struct akunu_reasoning *out,
                                size_t size, struct ak_error *error)
{
    struct akunu_reply_params p;
    const struct ak_tc_format *format;

    akunu_reply_params_default(&p, sizeof p);
    AK_TRY(ak_api_copy_in(&p, sizeof p, given, "akunu_reply_params", error));
    AK_TRY(find_format(&p, &format, error));
    struct ak_tc_reasoning_use found = ak_tc_find_reasoning(format, p.chat_template, p.prompt);
    struct akunu_reasoning own = { .size = size,
                                   .budget = -1,
                                   .begin = found.begin,
                                   .end = found.end,
                                   .closing = found.closing,
                                   .begins_anywhere = found.begins_anywhere,
                                   .is_open = found.is_open };
    return ak_api_copy_out(out, size, &own, sizeof own, "akunu_reasoning", error);
}

enum akunu_status akunu_get_reasoning(const struct akunu_reply_params *params,
                                      struct akunu_reasoning *reasoning, size_t size)
{
    struct ak_error error = { 0 };
    find_reasoning(params, reasoning, size, &error);
    return ak_api_finish(&error);
}

void akunu_tool_grammar_params_default(struct akunu_tool_grammar_params *params, size_t size)
{
    static const struct akunu_tool_grammar_params full = { .parallel = true };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status create_grammar(const struct akunu_reply_params *reply,
                                const struct akunu_tool_grammar_params *calls,
                                struct ak_grammar **out, struct ak_error *error)
{
    struct akunu_reply_params p;
    struct akunu_tool_grammar_params c;
    struct ak_tc_grammar_params rules = { 0 };

    akunu_reply_params_default(&p, sizeof p);
    akunu_tool_grammar_params_default(&c, sizeof c);
    AK_TRY(ak_api_copy_in(&p, sizeof p, reply, "akunu_reply_params", error));
    AK_TRY(ak_api_copy_in(&c, sizeof c, calls, "akunu_tool_grammar_params", error));
    AK_TRY(find_format(&p, &rules.format, error));
    rules.tokenizer = p.tokenizer ? p.tokenizer->inner : NULL;
    rules.chat_template = p.chat_template;
    rules.prompt = p.prompt;
    rules.tools = p.tools;
    rules.content = c.content ? c.content->inner : NULL;
    rules.choice = c.choice;
    rules.parallel = c.parallel;
    rules.lax = c.lax;
    rules.log = (struct ak_log){ c.log, c.user };
    return ak_tc_build_grammar(&rules, out, error);
}

enum akunu_status akunu_grammar_from_tools(const struct akunu_reply_params *reply,
                                           const struct akunu_tool_grammar_params *calls,
                                           struct akunu_grammar **out)
{
    struct ak_error error = { 0 };
    struct ak_grammar *inner = NULL;

    if (!out) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "where the grammar goes is NULL");
        return ak_api_finish(&error);
    }
    *out = NULL;
    create_grammar(reply, calls, &inner, &error);
    if (error.status == AKUNU_OK && inner && !(*out = ak_alloc(1, sizeof **out)))
        ak_fail_memory(&error, "a grammar", sizeof **out);
    if (error.status != AKUNU_OK) {
        ak_grammar_free(inner);
        return ak_api_finish(&error);
    }
    if (inner)
        (*out)->inner = inner;
    return AKUNU_OK;
}

struct akunu_reply *akunu_reply_new(const struct akunu_reply_params *params,
                                    akunu_reply_fn *on_event, void *user)
{
    struct ak_error error = { 0 };
    struct akunu_reply *reply = ak_alloc(1, sizeof *reply);

    if (!reply)
        ak_fail_memory(&error, "a reply", sizeof *reply);
    else
        create_parser(params, on_event, user, &reply->inner, &error);
    if (error.status == AKUNU_OK)
        return reply;
    ak_api_finish(&error);
    akunu_reply_free(reply);
    return NULL;
}

void akunu_reply_free(struct akunu_reply *reply)
{
    if (!reply)
        return;
    ak_tc_parser_free(reply->inner);
    ak_free(reply);
}

enum akunu_status akunu_reply_push(struct akunu_reply *reply, const char *text, size_t n_bytes)
{
    struct ak_error error = { 0 };

    if (!reply || (!text && n_bytes))
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the reply, or its text, is NULL");
    else
        ak_tc_parser_push(reply->inner, text ? text : "", n_bytes, &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_reply_end(struct akunu_reply *reply)
{
    struct ak_error error = { 0 };

    if (!reply)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the reply is NULL");
    else
        ak_tc_parser_end(reply->inner, &error);
    return ak_api_finish(&error);
}

const char *akunu_reply_message(struct akunu_reply *reply)
{
    struct ak_error error = { 0 };
    const char *message = NULL;

    if (!reply)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the reply is NULL");
    else
        ak_tc_parser_message(reply->inner, &message, &error);
    if (!message)
        ak_api_finish(&error);
    return message;
}

const char *akunu_reply_notes(const struct akunu_reply *reply)
{
    return reply ? ak_tc_parser_notes(reply->inner) : "";
}

const char *akunu_reply_format(const struct akunu_reply *reply)
{
    return reply ? ak_tc_parser_format(reply->inner)->name : "";
}

const char *akunu_reply_format_name(size_t i)
{
    const struct ak_tc_format *format = ak_tc_format_at(i);
    return format ? format->name : NULL;
}
