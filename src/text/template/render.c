/* Renders a conversation: does what transformers' apply_chat_template does around the template. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "base/json/wide.h"
#include "text/template/jinja/string.h"
#include "text/template/template.h"

static const char *const reasoning_fields[] = { "reasoning_content", "thinking", "reasoning" };
enum { N_REASONING = sizeof reasoning_fields / sizeof *reasoning_fields };

/* Appended to the message to continue, so that the prompt can be cut after it. */
static const char tag[] = "CONTINUE_FINAL_MESSAGE_TAG ";
enum { TAG_BYTES = sizeof tag - 1 };

static ak_status no_memory(struct ak_error *error)
{
    return ak_fail_memory(error, "a conversation", 0);
}

/* ---- Reading ------------------------------------------------------------ */
static ak_status parse_argument(const char *text, const char *what, json_t **out,
                                struct ak_error *error)
{
    ak_status status = ak_json_parse_input(text, strlen(text), out, error);
    if (status == AKUNU_ERROR_FORMAT && error)
        error->status = status = AKUNU_ERROR_ARGUMENT;
    if (status != AKUNU_OK)
        ak_error_prefix(error, what);
    return status;
}

/* Parses a list of objects. */
static ak_status parse_list(const char *text, const char *what, json_t **out,
                            struct ak_error *error)
{
    AK_TRY(parse_argument(text, what, out, error));
    if (!json_is_array(*out))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s: %s is given, where a list is expected",
                       what, ak_json_kind(*out));
    for (size_t i = 0; i < json_array_size(*out); i++)
        if (!json_is_object(json_array_get(*out, i)) || ak_wide_text(json_array_get(*out, i)))
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "%s: element %zu is %s, where an object is expected", what, i,
                           ak_json_kind(json_array_get(*out, i)));
    return AKUNU_OK;
}

/* The reasoning of a message, which has several names. Templates read one of them. */
static const json_t *get_reasoning(const json_t *message)
{
    const json_t *found = NULL;
    for (size_t i = 0; !found && i < N_REASONING; i++)
        found = json_object_get(message, reasoning_fields[i]);
    return found;
}

/* Whether the template sees a member of a message. Null content is None, as in transformers: many
 * templates read it without asking whether it is there. Another null member counts as absent,
 * because many templates take any tool_calls that are defined for a list. */
static bool is_seen(const char *key, const json_t *member)
{
    return !json_is_null(member) || strcmp(key, "content") == 0;
}

/* A copy of the message with the members that the template sees, and its reasoning as "thinking"
 * and as "reasoning_content". */
static json_t *clean_message(const json_t *message)
{
    const char *key;
    /* jansson has no const loop */
    json_t *member, *clean = json_object(), *from = (json_t *)(uintptr_t)message;
    bool fine = clean != NULL;
    json_object_foreach (from, key, member)
        if (fine && is_seen(key, member))
            fine = json_object_set(clean, key, member) == 0;
    const json_t *reasoning = fine ? get_reasoning(clean) : NULL;
    json_t *complete = reasoning ? json_object() : NULL;
    if (reasoning) { /* "thinking" comes first unless present, as in transformers */
        fine = complete &&
               json_object_set_new(complete, "thinking",
                                   json_incref((json_t *)(uintptr_t)reasoning)) == 0 &&
               json_object_update(complete, clean) == 0 &&
               json_object_set_new(complete, "reasoning_content",
                                   json_incref((json_t *)(uintptr_t)reasoning)) == 0;
        json_decref(clean);
        clean = complete;
    }
    if (fine)
        return clean;
    json_decref(clean);
    return NULL;
}

static ak_status parse_messages(const char *text, json_t **out, struct ak_error *error)
{
    AK_TRY(parse_list(text, "messages", out, error));
    if (json_array_size(*out) == 0)
        return ak_fail(
            error, AKUNU_ERROR_ARGUMENT,
            "messages: the conversation is empty, where at least one message is expected");
    for (size_t i = 0; i < json_array_size(*out); i++)
        if (json_array_set_new(*out, i, clean_message(json_array_get(*out, i))) != 0)
            return no_memory(error);
    return AKUNU_OK;
}

/* ---- Variables of a template -------------------------------------------- */
static ak_status set(json_t *variables, const char *name, json_t *value, struct ak_error *error)
{
    return json_object_set_new(variables, name, value) == 0 ? AKUNU_OK : no_memory(error);
}

static ak_status set_list(json_t *variables, const char *name, const char *text,
                          struct ak_error *error)
{
    json_t *list = NULL;
    ak_status status = text ? parse_list(text, name, &list, error) : AKUNU_OK;
    if (status == AKUNU_OK)
        return set(variables, name, text ? list : json_null(), error);
    json_decref(list);
    return status;
}

static ak_status set_token(json_t *variables, const char *name, const char *text,
                           struct ak_error *error)
{
    if (!text)
        return AKUNU_OK;
    if (!ak_is_utf8(text, strlen(text)))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s is not UTF-8", name);
    return set(variables, name, json_string(text), error);
}

static ak_status set_kwargs(json_t *variables, const char *text, struct ak_error *error)
{
    static const char *const taken[] = { "messages", "tools", "documents",
                                         "add_generation_prompt" };
    json_t *kwargs = NULL;
    ak_status status = parse_argument(text, "kwargs", &kwargs, error);
    if (status == AKUNU_OK && (!json_is_object(kwargs) || ak_wide_text(kwargs)))
        status = ak_fail(error, AKUNU_ERROR_ARGUMENT,
                         "kwargs: %s is given, where an object is expected", ak_json_kind(kwargs));
    for (size_t i = 0; status == AKUNU_OK && i < sizeof taken / sizeof *taken; i++)
        if (json_object_get(kwargs, taken[i]))
            status =
                ak_fail(error, AKUNU_ERROR_ARGUMENT,
                        "kwargs: \"%s\" is given by itself, and cannot be among them", taken[i]);
    if (status == AKUNU_OK && json_object_update(variables, kwargs) != 0)
        status = no_memory(error);
    json_decref(kwargs);
    return status;
}

static ak_status set_variables(const struct ak_tmpl_set *chat, const struct akunu_chat *input,
                               json_t *variables, struct ak_error *error)
{
    json_t *messages = NULL;
    if (json_object_update(variables, chat->tokens) != 0)
        return no_memory(error);
    AK_TRY(set_token(variables, "bos_token", input->bos_token, error));
    AK_TRY(set_token(variables, "eos_token", input->eos_token, error));
    if (input->kwargs)
        AK_TRY(set_kwargs(variables, input->kwargs, error));
    ak_status status = parse_messages(input->messages, &messages, error);
    if (status != AKUNU_OK) {
        json_decref(messages);
        return status;
    }
    AK_TRY(set(variables, "messages", messages, error));
    AK_TRY(set_list(variables, "tools", input->tools, error));
    AK_TRY(set_list(variables, "documents", input->documents, error));
    return set(variables, "add_generation_prompt", json_boolean(input->add_generation_prompt),
               error);
}

/* ---- Continuing the last message ---------------------------------------- */
struct continuation {
    char *text; /* text of the last message, to find it in the prompt; from ak_alloc */
    size_t n;
};

/* Saves the text of a string member and appends the tag to it. */
static ak_status put_tag(json_t *object, const char *field, struct continuation *last,
                         struct ak_error *error)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_string(value))
        return ak_fail(
            error, AKUNU_ERROR_ARGUMENT,
            "continue_final_message: \"%s\" of the last message is %s, where a string is expected",
            field, ak_json_kind(value));
    size_t n = json_string_length(value);
    char *tagged = ak_alloc(n + sizeof tag, 1);
    if (!tagged)
        return no_memory(error);
    memcpy(tagged, json_string_value(value), n);
    memcpy(tagged + n, tag, sizeof tag);
    if (!last->text) {
        last->text = ak_strndup(json_string_value(value), n);
        last->n = n;
    }
    bool fine =
        last->text && json_object_set_new(object, field, json_stringn(tagged, n + TAG_BYTES)) == 0;
    ak_free(tagged);
    return fine ? AKUNU_OK : no_memory(error);
}

static ak_status tag_last_part(const json_t *parts, const char *field, struct continuation *last,
                               struct ak_error *error)
{
    for (size_t i = json_array_size(parts); i-- > 0;)
        if (json_object_get(json_array_get(parts, i), "text"))
            return put_tag(json_array_get(parts, i), "text", last, error);
    return ak_fail(
        error, AKUNU_ERROR_ARGUMENT,
        "continue_final_message: no part of the last message's \"%s\" has a text to go on with",
        field);
}

static bool names_field(const struct ak_tmpl_entry *t, const char *field)
{
    return memmem(t->text, t->n_bytes, field, strlen(field)) != NULL;
}

/* Reasoning is present under several names: tags all with the same text, since it is unknown which
 * one the template reads. */
static ak_status tag_message(json_t *message, const char *field, const struct ak_tmpl_entry *t,
                             struct continuation *last, struct ak_error *error)
{
    const char *fields[N_REASONING] = { field };
    size_t n = 1;
    bool reasoning = false, known = false;
    const json_t *value = json_object_get(message, field);
    for (size_t i = 0; i < N_REASONING; i++)
        reasoning = reasoning || strcmp(field, reasoning_fields[i]) == 0;
    for (size_t i = 0; reasoning && i < N_REASONING; i++)
        if (strcmp(field, reasoning_fields[i]) != 0 &&
            json_equal(json_object_get(message, reasoning_fields[i]), value))
            fields[n++] = reasoning_fields[i];
    for (size_t i = 0; i < n; i++)
        known = known || names_field(t, fields[i]);
    if (!known)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "continue_final_message: the chat template does not use \"%s\"", field);
    if (json_is_array(value))
        return tag_last_part(value, field, last, error);
    for (size_t i = 0; i < n; i++)
        AK_TRY(put_tag(message, fields[i], last, error));
    return AKUNU_OK;
}

static ak_status tag_conversation(json_t *variables, const struct akunu_chat *input,
                                  const struct ak_tmpl_entry *t, struct continuation *last,
                                  struct ak_error *error)
{
    const char *field = input->continue_final_message;
    json_t *messages = json_object_get(variables, "messages"),
           *message = json_array_get(messages, json_array_size(messages) - 1);
    if (input->add_generation_prompt)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "continue_final_message and add_generation_prompt cannot both be asked for");
    if (!json_object_get(message, field))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "continue_final_message: the last message has no \"%s\" to go on with",
                       field);
    json_t *own = json_deep_copy(message); /* its members may be shared */
    if (!own)
        return no_memory(error);
    if (json_array_set_new(messages, json_array_size(messages) - 1, own) != 0)
        return no_memory(error);
    return tag_message(own, field, t, last, error);
}

static void strip_text(const char **text, size_t *n)
{
    struct ak_jstr s = { .bytes = *text, .n = *n };
    size_t begin, end;
    ak_j_strip_range(&s, NULL, true, true, &begin, &end);
    *text += begin;
    *n = end - begin;
}

/* The last occurrence of `part`; NULL: none. */
static const char *find_last(const char *text, size_t n, const char *part, size_t n_part)
{
    const char *found = NULL;
    for (const char *at = text; (at = memmem(at, n - (size_t)(at - text), part, n_part)); at++)
        found = at;
    return found;
}

/* Cuts the prompt at the tag. A template that trims has removed the space at the end of the tag. */
static ak_status cut_prompt(const struct continuation *last, char *prompt, size_t *n,
                            struct ak_error *error)
{
    const char *text = last->text;
    size_t n_text = last->n;
    strip_text(&text, &n_text);
    char *at = (char *)(uintptr_t)find_last(prompt, *n, tag, TAG_BYTES - 1);
    if (!at || (n_text > 0 && !memmem(prompt, *n, text, n_text)))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "continue_final_message: the last message does not appear in what the chat "
                       "template makes of it");
    bool kept = *n - (size_t)(at - prompt) >= TAG_BYTES && at[TAG_BYTES - 1] == ' ';
    struct ak_jstr s = { .bytes = prompt, .n = (size_t)(at - prompt) };
    size_t begin, end = s.n;
    if (!kept)
        ak_j_strip_range(&s, NULL, false, true, &begin, &end);
    prompt[end] = '\0';
    *n = end;
    return AKUNU_OK;
}

/* ---- The whole ---------------------------------------------------------- */
static ak_status render_template(const struct ak_tmpl_set *chat, const struct akunu_chat *input,
                                 json_t *variables, struct continuation *last, char **out,
                                 size_t *n_bytes, struct ak_error *error)
{
    const struct ak_tmpl_entry *t;
    AK_TRY(ak_tmpl_select(chat, input->name, input->tools != NULL, &t, error));
    AK_TRY(set_variables(chat, input, variables, error));
    if (input->continue_final_message)
        AK_TRY(tag_conversation(variables, input, t, last, error));
    ak_status status = ak_jinja_render(t->parsed, variables, input->now, out, n_bytes, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, "chat template");
    if (status == AKUNU_OK && input->continue_final_message)
        status = cut_prompt(last, *out, n_bytes, error);
    return status;
}

ak_status ak_tmpl_render(const struct ak_tmpl_set *chat, const struct akunu_chat *input, char **out,
                         size_t *n_bytes, struct ak_error *error)
{
    json_t *variables = json_object();
    struct continuation last = { NULL, 0 };
    *out = NULL;
    ak_status status = variables ?
                           render_template(chat, input, variables, &last, out, n_bytes, error) :
                           no_memory(error);
    ak_free(last.text);
    json_decref(variables);
    if (status == AKUNU_OK)
        return AKUNU_OK;
    ak_free(*out);
    *out = NULL;
    *n_bytes = 0;
    return status;
}
