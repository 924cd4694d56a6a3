/* Conversations that programs give as JSON: checks, and what is adapted for templates. */
#ifndef AK_APPS_COMMON_CONVERSATION_H
#define AK_APPS_COMMON_CONVERSATION_H

#include <jansson.h>

#include "apps/common/message.h"

enum { APP_DESCRIBED_BYTES = APP_SHOWN_BYTES + 32, APP_PROBLEM_BYTES = 512 };

/* What a value is: "a list"; "nothing" if it is NULL. Strings and numbers are shown. */
void app_describe_json(const json_t *value, char out[APP_DESCRIBED_BYTES]);

/* Checks a list of messages and joins contents in parts. False: `why` says what was found where,
 * and what is expected; "": out of memory. */
bool app_conversation_check(json_t *messages, char why[APP_PROBLEM_BYTES]);

/* Makes "developer" a system message: most templates do not know the role, and would leave the
 * message out. False: out of memory. */
bool app_conversation_name_developer(json_t *messages, const char *template_text);

/* Makes objects of arguments that are JSON text, as OpenAI writes them: most templates print an
 * object as JSON, and text as a string in quotes. *changed: there were such arguments. False: out
 * of memory. */
bool app_conversation_parse_arguments(json_t *messages, bool *changed);

#endif
