/* Renders a conversation by the chat template, and tokenizes it. */
#include "cli/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/output.h"

int cli_read_system(const struct cli_options *o, struct cli_text *text)
{
    *text = (struct cli_text){ 0 };
    if (o->system_prompt_file)
        return cli_read_file("-sysf", o->system_prompt_file, text);
    if (!o->system_prompt || !*o->system_prompt)
        return CLI_EXIT_OK;
    text->bytes = strdup(o->system_prompt);
    text->n = text->bytes ? strlen(text->bytes) : 0;
    return text->bytes ? CLI_EXIT_OK : cli_fail_memory();
}

json_t *cli_message(const char *role, const char *text, size_t n)
{
    return json_pack("{s:s, s:o}", "role", role, "content", cli_json_text(text, n));
}

static enum akunu_status try_render(const struct akunu_template *template, const char *messages,
                                    const char *tools, const char *kwargs, char **prompt, size_t *n)
{
    struct akunu_chat input;
    akunu_chat_default(&input, sizeof input);
    input.messages = messages;
    input.tools = tools;
    input.kwargs = kwargs;
    input.add_generation_prompt = true;
    *prompt = akunu_template_render(template, &input, n);
    return *prompt ? AKUNU_OK : akunu_last_status();
}

enum akunu_status cli_try_render(const struct cli_options *o, const struct akunu_template *template,
                                 const json_t *messages, const char *tools, char **prompt,
                                 size_t *n)
{
    char *text = json_dumps(messages, JSON_COMPACT);
    *prompt = NULL;
    if (!text)
        return AKUNU_ERROR_MEMORY;
    enum akunu_status status = try_render(template, text, tools, o->kwargs, prompt, n);
    free(text);
    return status;
}

/* The prompt as the template renders it, from malloc; NULL after a message. */
static char *render(const struct akunu_template *template, const char *messages, const char *kwargs,
                    size_t *n)
{
    char *prompt, *copy = NULL;
    if (try_render(template, messages, NULL, kwargs, &prompt, n) != AKUNU_OK)
        cli_fail_library();
    else if (!(copy = malloc(*n + 1)))
        cli_fail_memory();
    else
        memcpy(copy, prompt, *n + 1);
    akunu_text_free(prompt);
    return copy;
}

/* The same without reasoning: the template turns it off, or it is opened and closed at once. */
static char *render_without_reasoning(const struct cli_options *o,
                                      const struct akunu_template *template, const char *messages,
                                      size_t *n)
{
    size_t n_usual = 0;
    char *kwargs = cli_reasoning_kwargs(o, "off"), *prompt = NULL;
    char *usual = render(template, messages, o->kwargs, &n_usual);
    if (!kwargs)
        cli_fail_memory();
    else if (usual)
        prompt = render(template, messages, kwargs, n);
    bool is_off = prompt && (*n != n_usual || memcmp(prompt, usual, *n) != 0);
    if (prompt && cli_reasoning_skip(template, &prompt, n, is_off) != CLI_EXIT_OK) {
        free(prompt);
        prompt = NULL;
    }
    free(usual);
    free(kwargs);
    return prompt;
}

char *cli_render_prompt(const struct cli_options *o, const struct akunu_template *template,
                        const json_t *messages, size_t *n)
{
    char *text = json_dumps(messages, JSON_COMPACT);
    if (!text) {
        cli_fail_memory();
        return NULL;
    }
    char *kwargs = o->reasoning ? cli_reasoning_kwargs(o, o->reasoning) : NULL;
    char *prompt = o->reasoning_budget == 0 ?
                       render_without_reasoning(o, template, text, n) :
                       render(template, text, kwargs ? kwargs : o->kwargs, n);
    free(kwargs);
    free(text);
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

int cli_tokenize_prompt(const struct akunu_tokenizer *tokenizer, const char *prompt, size_t n,
                        akunu_token **ids, size_t *n_ids)
{
    const struct cli_text text = { (char *)(uintptr_t)prompt, n };
    int code = cli_tokenize_text(tokenizer, &text, AKUNU_PARSE_SPECIAL, ids, n_ids);
    if (code != CLI_EXIT_OK)
        return code;
    akunu_token bos = akunu_tokenizer_bos(tokenizer);
    if (wants_bos(tokenizer) && (*n_ids == 0 || (*ids)[0] != bos)) {
        akunu_token *larger = realloc(*ids, (*n_ids + 1) * sizeof *larger);
        if (!larger)
            return cli_fail_memory();
        *ids = larger;
        memmove(larger + 1, larger, *n_ids * sizeof *larger);
        larger[0] = bos;
        ++*n_ids;
    }
    return *n_ids ? CLI_EXIT_OK :
                    cli_fail("the chat template makes an empty prompt of the conversation");
}

bool cli_prompt_cache(const struct cli_options *o, struct akunu_prompt_cache *cache)
{
    akunu_prompt_cache_default(cache, sizeof *cache);
    cache->dir = o->load.cache_dir;
    cache->file = o->prompt_cache;
    if (cache->file)
        cache->min_tokens = 0;
    if (o->prompt_cache_limit > 0)
        cache->max_bytes = (uint64_t)((double)o->prompt_cache_limit * 1e9);
    return !o->no_prompt_cache && (cache->file || !o->load.no_cache);
}
