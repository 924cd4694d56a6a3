/* A conversation as the prompt that the model expects. */
#ifndef AK_APPS_COMMON_PROMPT_H
#define AK_APPS_COMMON_PROMPT_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/options.h"

/* The template that the model has and the flags select; NULL after a message, with the exit code in
 * *code. */
struct akunu_template *app_chat_template(const struct app_options *options,
                                         const struct app_model_session *loaded, int *code);

/* Reads the system message of -sys or -sysf; *text is a string, or has no bytes if there is none.
 * Free text->bytes. Returns an exit code, after a message unless it is APP_EXIT_OK. */
int app_read_system(const struct app_options *options, struct app_text *text);

/* {"role": role, "content": text}; NULL if out of memory. */
json_t *app_message(const char *role, const char *text, size_t n);

/* Renders a JSON list of messages, up to where the answer begins, as --kwargs and --reasoning ask
 * for it, and without reasoning if its budget is 0; *n its bytes. Free it with free. NULL after a
 * message. */
char *app_render_prompt(const struct app_options *options, const struct akunu_template *template,
                        const json_t *messages, size_t *n);

/* The same with a JSON list of tools (NULL: none) and without a message: the library has it, unless
 * AKUNU_ERROR_MEMORY is returned. */
enum akunu_status app_try_render(const struct app_options *options,
                                 const struct akunu_template *template, const json_t *messages,
                                 const char *tools, char **prompt, size_t *n);

/* Tokenizes a prompt that a template rendered; free *ids. Returns an exit code as above. */
int app_tokenize_prompt(const struct akunu_tokenizer *tokenizer, const char *prompt, size_t n,
                        akunu_token **ids, size_t *n_ids);

/* The prompt cache that the flags ask for; false: none. --no-cache disables it, unless a file is
 * named. */
bool app_prompt_cache(const struct app_options *options, struct akunu_prompt_cache *cache);

/* ---- Reasoning: reasoning.c ---------------------------------------------- */
/* Says so if --reasoning is given and the template has no variable for it. */
void app_check_reasoning(const struct app_options *options, const struct akunu_template *template);

/* All zero: nothing was found or reported yet. */
struct app_reasoning {
    struct akunu_reasoning found;
    bool is_reported; /* that the budget has no effect */
};

/* Has the answer to `prompt` keep to --reasoning-budget, which has no effect, and says so once, if
 * the template has no reasoning. *generation will point to *reasoning. Returns an exit code as
 * above. */
int app_reasoning_limit(const struct app_options *options, const struct akunu_template *template,
                        const struct akunu_tokenizer *tokenizer, const char *prompt,
                        struct app_reasoning *reasoning,
                        struct akunu_generation_params *generation);

/* --kwargs and, unless it has them, the variables that turn reasoning on, off, or to an effort, as
 * --reasoning does. To be freed; NULL: out of memory. */
char *app_reasoning_kwargs(const struct app_options *options, const char *when);

/* Appends to a rendered prompt of *n bytes, from malloc, what makes the answer begin after
 * reasoning: nothing if the template could turn it off (`is_off`) or has none. The library has the
 * message of an error, unless it is AKUNU_ERROR_MEMORY. */
enum akunu_status app_reasoning_skip(const struct akunu_template *template, char **prompt,
                                     size_t *n, bool is_off);

#endif
