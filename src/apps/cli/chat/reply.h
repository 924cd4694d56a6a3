/* State of the chat command. It reads a conversation, written by a program as JSON, and prints the
 * model's reply as text or as JSON. */
#ifndef AK_APPS_CLI_CHAT_REPLY_H
#define AK_APPS_CLI_CHAT_REPLY_H

#include <jansson.h>

#include "akunu/akunu.h"
#include "apps/cli/run/answer.h"
#include "apps/common/load.h"
#include "apps/common/options.h"
#include "apps/common/output.h"
#include "apps/common/prompt.h"
#include "apps/common/sampling.h"

struct cli_reply {
    const struct app_options *options;
    struct app_model_session loaded, draft;
    struct app_sampling sampling;
    struct akunu_generation_params generation;
    struct app_output out;
    json_t *messages;              /* checked; each content is a string or null */
    char *tools;                   /* JSON list; NULL: the model may call none */
    struct akunu_grammar *content; /* of --grammar or -j; NULL: any text */
    struct akunu_grammar *grammar; /* of the whole reply; NULL: any text */
    struct akunu_template *template;
    char *prompt; /* what the template makes of the conversation */
    akunu_token *ids;
    size_t n_ids, n_restored; /* tokens of the prompt; restored from the prompt cache */
    struct cli_answer answer; /* its parser looks for calls too */
    json_t *call;             /* the call that has begun; NULL: none */
    struct app_reasoning reasoning;
    struct app_progress progress;
    bool no_memory;
};

/* reply_input.c: read --messages and --tools, and check --tool-choice. They return an exit code,
 * after a message unless it is APP_EXIT_OK. */
int cli_reply_read_messages(struct cli_reply *reply);
int cli_reply_read_tools(struct cli_reply *reply);

/* reply_prompt.c: renders and tokenizes the prompt. Returns an exit code as above. */
int cli_reply_make_prompt(struct cli_reply *reply);

/* reply_json.c: prints an event of the parser as a line of --stream. */
void cli_reply_print_event(struct cli_reply *reply, const struct akunu_reply_event *event);

/* Starts and completes reply->call with events AKUNU_REPLY_CALL and AKUNU_REPLY_CALL_END. */
void cli_reply_follow_call(struct cli_reply *reply, const struct akunu_reply_event *event);

/* Prints the whole reply, or the last line of --stream. `cancelled`: Ctrl-C ended it. */
void cli_reply_print_end(struct cli_reply *reply, const struct akunu_result *result,
                         bool cancelled);

#endif
