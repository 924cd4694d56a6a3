/* The prompt of akunu_session_complete: a text as it is, or a message or conversation by the chat
 * template, as token ids. */
#include "api/handles.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The template to use; the model's are read once per session. */
static ak_status get_templates(struct akunu_session *session,
                               const struct akunu_completion_params *completion,
                               const struct ak_tmpl_set **out, struct ak_error *error)
{
    *out = (const struct ak_tmpl_set *)completion->chat_template;
    if (*out)
        return AKUNU_OK;
    if (!session->templates)
        AK_TRY(ak_tmpl_open(session->inner->model->provider, &session->templates, error));
    *out = session->templates;
    return AKUNU_OK;
}

/* ---- Messages ----------------------------------------------------------- */
static ak_status add_message(json_t *messages, const char *role, const char *text, size_t n,
                             struct ak_error *error)
{
    json_t *content = json_stringn(text, n);
    if (!content)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the %s message is not valid UTF-8", role);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", content);
    return message && json_array_append_new(messages, message) == 0 ?
               AKUNU_OK :
               ak_fail_memory(error, "a message", n);
}

/* Sets *out to a JSON list of the messages, to be freed with free. */
static ak_status make_messages(const char *system, const char *text, size_t n_bytes, char **out,
                               struct ak_error *error)
{
    json_t *messages = json_array();
    ak_status status = messages ? AKUNU_OK : ak_fail_memory(error, "a message", n_bytes);
    if (status == AKUNU_OK && system)
        status = add_message(messages, "system", system, strlen(system), error);
    if (status == AKUNU_OK)
        status = add_message(messages, "user", text, n_bytes, error);
    if (status == AKUNU_OK && !(*out = json_dumps(messages, JSON_COMPACT)))
        status = ak_fail_memory(error, "a message", n_bytes);
    json_decref(messages);
    return status;
}

static ak_status render_prompt(const struct ak_tmpl_set *templates,
                               const struct akunu_completion_params *completion, const char *text,
                               size_t n_bytes, char **prompt, size_t *n_prompt,
                               struct ak_error *error)
{
    struct akunu_chat input;
    char *messages = NULL;
    akunu_chat_default(&input, sizeof input);
    AK_TRY(ak_api_copy_in(&input, sizeof input, completion->chat, "akunu_chat", error));
    if (completion->chat && !input.messages)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the conversation has no messages");
    if (!completion->chat)
        AK_TRY(make_messages(completion->system, text, n_bytes, &messages, error));
    if (messages)
        input.messages = messages;
    ak_status status = ak_tmpl_render(templates, &input, prompt, n_prompt, error);
    free(messages);
    return status;
}

/* ---- Tokens ------------------------------------------------------------- */
static ak_status encode_prompt(const struct ak_tokenizer *t, const char *text, size_t n_bytes,
                               unsigned flags, int32_t bos, int32_t **ids, size_t *n_ids,
                               struct ak_error *error)
{
    size_t n;
    AK_TRY(ak_tok_encode(t, text, n_bytes, flags, NULL, 0, &n, error));
    *ids = ak_alloc(n + 1, sizeof **ids);
    if (!*ids)
        return ak_fail_memory(error, "a prompt", (n + 1) * sizeof **ids);
    AK_TRY(ak_tok_encode(t, text, n_bytes, flags, *ids, n, n_ids, error));
    if (bos >= 0 && (n == 0 || (*ids)[0] != bos)) {
        memmove(*ids + 1, *ids, n * sizeof **ids);
        (*ids)[0] = bos;
        ++*n_ids;
    }
    return AKUNU_OK;
}

/* The token that begins every text of the model; -1: none does. Most templates write it themselves,
 * some leave it to the tokenizer. */
static int32_t find_added_bos(const struct ak_tokenizer *t)
{
    int32_t first = -1;
    size_t n;
    struct ak_error ignored = { 0 };
    ak_tok_encode(t, "", 0, AKUNU_ADD_SPECIAL, &first, 1, &n, &ignored);
    return n > 0 && first == ak_tok_bos(t) ? first : -1;
}

static ak_status check_request(const struct ak_model *model, const char *text, size_t n_bytes,
                               const struct akunu_completion_params *completion,
                               struct ak_error *error)
{
    if ((unsigned)completion->form > AKUNU_PROMPT_RAW)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the form of the prompt is %d, which is none of the forms that there are",
                       (int)completion->form);
    if (completion->chat && (text || n_bytes > 0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "both a text and a conversation are given, where one is expected");
    if (!completion->chat && !text)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "neither a text nor a conversation is given");
    if (!model->tokenizer)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the model has no vocabulary: it takes and gives no text");
    return AKUNU_OK;
}

ak_status ak_api_make_prompt(struct akunu_session *session, const char *text, size_t n_bytes,
                             const struct akunu_completion_params *completion, int32_t **ids,
                             size_t *n_ids, struct ak_error *error)
{
    const struct ak_model *model = session->inner->model;
    const struct ak_tmpl_set *templates = NULL;
    AK_TRY(check_request(model, text, n_bytes, completion, error));
    AK_TRY(ak_session_needs_text(session->inner, error));
    bool is_raw = !completion->chat && completion->form == AKUNU_PROMPT_RAW;
    if (!is_raw) {
        AK_TRY(get_templates(session, completion, &templates, error));
        is_raw = !completion->chat && completion->form == AKUNU_PROMPT_AUTO &&
                 ak_tmpl_is_fallback(templates);
    }
    if (completion->system && (is_raw || completion->chat))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "a system message is given, which only the form of a message takes%s",
                       completion->chat ? ": put it into the conversation" : "");
    if (is_raw) {
        AK_TRY(encode_prompt(model->tokenizer, text, n_bytes,
                             AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL, -1, ids, n_ids, error));
    } else {
        char *prompt = NULL;
        size_t n_prompt = 0;
        ak_status status =
            render_prompt(templates, completion, text, n_bytes, &prompt, &n_prompt, error);
        if (status == AKUNU_OK)
            status = encode_prompt(model->tokenizer, prompt, n_prompt, AKUNU_PARSE_SPECIAL,
                                   find_added_bos(model->tokenizer), ids, n_ids, error);
        ak_free(prompt);
        AK_TRY(status);
    }
    return *n_ids > 0 ? AKUNU_OK :
                        ak_fail(error, AKUNU_ERROR_ARGUMENT,
                                "the prompt is empty: there is no token to begin with");
}
