/* Renders a conversation by the chat template, and tokenizes it. */
#include "apps/common/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

int app_read_system(const struct app_options *o, struct app_text *text)
{
    *text = (struct app_text){ 0 };
    if (o->chat.system_prompt_file) {
        int code = app_read_file("-sysf", o->chat.system_prompt_file, text);
        if (code == APP_EXIT_OK)
            app_drop_newline(text->bytes, &text->n);
        return code;
    }
    if (!o->chat.system_prompt || !*o->chat.system_prompt)
        return APP_EXIT_OK;
    text->bytes = strdup(o->chat.system_prompt);
    text->n = text->bytes ? strlen(text->bytes) : 0;
    return text->bytes ? APP_EXIT_OK : app_fail_memory();
}

json_t *app_message(const char *role, const char *text, size_t n)
{
    return json_pack("{s:s, s:o}", "role", role, "content", app_json_text(text, n));
}

/* Renders a conversation with these variables; *prompt comes from malloc. */
static enum akunu_status render_messages(const struct akunu_template *template,
                                         const char *messages, const char *tools,
                                         const char *kwargs, char **prompt, size_t *n)
{
    struct akunu_chat input;
    akunu_chat_default(&input, sizeof input);
    input.messages = messages;
    input.tools = tools;
    input.kwargs = kwargs;
    input.add_generation_prompt = true;
    *prompt = NULL;
    char *text = akunu_template_render(template, &input, n);
    if (!text)
        return akunu_last_status();
    if ((*prompt = malloc(*n + 1)))
        memcpy(*prompt, text, *n + 1);
    akunu_text_free(text);
    return *prompt ? AKUNU_OK : AKUNU_ERROR_MEMORY;
}

/* The same without reasoning: the template turns it off, or it is opened and closed at once. */
static enum akunu_status render_without_reasoning(const struct app_options *o,
                                                  const struct akunu_template *template,
                                                  const char *messages, const char *tools,
                                                  char **prompt, size_t *n)
{
    size_t n_usual = 0;
    char *usual = NULL, *kwargs = app_reasoning_kwargs(o, "off");
    enum akunu_status status =
        kwargs ? render_messages(template, messages, tools, o->chat.kwargs, &usual, &n_usual) :
                 AKUNU_ERROR_MEMORY;
    if (status == AKUNU_OK)
        status = render_messages(template, messages, tools, kwargs, prompt, n);
    if (status == AKUNU_OK) {
        bool is_off = *n != n_usual || memcmp(*prompt, usual, *n) != 0;
        status = app_reasoning_skip(template, prompt, n, is_off);
    }
    free(usual);
    free(kwargs);
    return status;
}

enum akunu_status app_try_render(const struct app_options *o, const struct akunu_template *template,
                                 const json_t *messages, const char *tools, char **prompt,
                                 size_t *n)
{
    char *text = app_json_write(messages, JSON_COMPACT);
    char *kwargs = o->chat.reasoning ? app_reasoning_kwargs(o, o->chat.reasoning) : NULL;
    enum akunu_status status = AKUNU_ERROR_MEMORY;
    *prompt = NULL;
    if (text && o->chat.reasoning_budget == 0)
        status = render_without_reasoning(o, template, text, tools, prompt, n);
    else if (text)
        status =
            render_messages(template, text, tools, kwargs ? kwargs : o->chat.kwargs, prompt, n);
    free(kwargs);
    free(text);
    if (status != AKUNU_OK) {
        free(*prompt);
        *prompt = NULL;
    }
    return status;
}

char *app_render_prompt(const struct app_options *o, const struct akunu_template *template,
                        const json_t *messages, size_t *n)
{
    char *prompt;
    enum akunu_status status = app_try_render(o, template, messages, NULL, &prompt, n);
    if (status == AKUNU_ERROR_MEMORY)
        app_fail_memory();
    else if (status != AKUNU_OK)
        app_fail_library();
    return prompt;
}

/* Most templates write BOS themselves; for the others the model says whether it wants one. */
static bool wants_bos(const struct akunu_tokenizer *tokenizer)
{
    akunu_token first[8];
    int64_t n = akunu_tokenizer_encode(tokenizer, "", 0, AKUNU_ADD_SPECIAL, first,
                                       sizeof first / sizeof *first);
    return n > 0 && first[0] == akunu_tokenizer_bos(tokenizer);
}

int app_tokenize_prompt(const struct akunu_tokenizer *tokenizer, const char *prompt, size_t n,
                        akunu_token **ids, size_t *n_ids)
{
    const struct app_text text = { (char *)(uintptr_t)prompt, n };
    int code = app_tokenize_text(tokenizer, &text, AKUNU_PARSE_SPECIAL, ids, n_ids);
    if (code != APP_EXIT_OK)
        return code;
    akunu_token bos = akunu_tokenizer_bos(tokenizer);
    if (wants_bos(tokenizer) && (*n_ids == 0 || (*ids)[0] != bos)) {
        akunu_token *larger = realloc(*ids, (*n_ids + 1) * sizeof *larger);
        if (!larger)
            return app_fail_memory();
        *ids = larger;
        memmove(larger + 1, larger, *n_ids * sizeof *larger);
        larger[0] = bos;
        ++*n_ids;
    }
    return *n_ids ? APP_EXIT_OK :
                    app_fail("the chat template makes an empty prompt of the conversation");
}

bool app_prompt_cache(const struct app_options *o, struct akunu_prompt_cache *cache)
{
    akunu_prompt_cache_default(cache, sizeof *cache);
    cache->dir = o->load.cache_dir;
    cache->file = o->cache.prompts;
    if (cache->file)
        cache->min_tokens = 0;
    if (o->cache.prompts_limit > 0)
        cache->max_bytes = o->cache.prompts_limit;
    if (o->cache.prompts_bytes > 0)
        cache->max_bytes = (uint64_t)o->cache.prompts_bytes;
    return !o->cache.no_prompts && (cache->file || !o->load.no_cache);
}
