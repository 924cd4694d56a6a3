/* A conversation as a request to the scheduler, whatever API it came through: messages, tools and
 * grammar become a prompt, and the text goes through a parser of replies. */
#ifndef AK_APPS_SERVER_CHAT_H
#define AK_APPS_SERVER_CHAT_H

#include "apps/server/job.h"

/* What a request asks for, until it is submitted. No function needs a lock. */
struct server_chat {
    struct server_model *model;
    struct http_exchange *x;
    const json_t *body;
    struct server_params params;
    json_t *messages; /* checked and adapted */
    char *tools;      /* JSON; NULL: none */
    char *choice;     /* NULL: auto */
    char *kwargs;     /* JSON; NULL: none */
    bool continues;   /* the last message is the beginning of the answer */
    bool parallel;
    char *text; /* the prompt */
    size_t n_text;
    struct server_prompt prompt;   /* its tokens */
    struct akunu_grammar *content; /* of params.grammar; NULL: any */
    json_t *schema;                /* of the content; NULL: none */
    struct server_job *job;
};

/* NULL: it has answered. */
struct server_chat *server_chat_new(struct server_model *m, struct http_exchange *x,
                                    const json_t *body);
void server_chat_free(struct server_chat *r);
/* Answer that memory is short, or with the library's message about the schema; return false. */
bool server_chat_fail_memory(struct server_chat *r);
bool server_chat_set_schema(struct server_chat *r, const char *name, const char *schema);

/* server_read_params of the body, whose member `from` is called `to` in OpenAI's API. */
bool server_chat_read_params(struct server_chat *r, const char *from, const char *to);

/* The text of a content: a string, or parts of text with a newline between two. NULL: it has other
 * parts, or memory is short. */
json_t *server_content_text(const json_t *content);
/* Appends a message, which is released; NULL: memory is short. */
bool server_chat_append(struct server_chat *r, json_t *message);

/* Checks r->messages and adapts them; `name` is what they are called in answers. False: it has
 * answered. */
bool server_chat_check_messages(struct server_chat *r, const char *name);
/* Checks tools, a list of functions in OpenAI's form or NULL or null, and keeps them as r->tools.
 * False: it has answered. */
bool server_chat_set_tools(struct server_chat *r, const json_t *tools);
/* Reads chat_template_kwargs. False: it has answered. */
bool server_chat_read_kwargs(struct server_chat *r);
/* Renders and tokenizes the prompt. False: it has answered. */
bool server_chat_make_prompt(struct server_chat *r);

/* Makes the prompt, the grammar and the job. False: it has answered. */
bool server_chat_make_job(struct server_chat *r, const struct server_style *style);
/* Submits the job, if `good`: else it has answered. Takes r. */
struct server_commit server_chat_commit(struct server_chat *r, bool good);

/* The arguments of a call that the model wrote, as a value; NULL: out of memory. */
json_t *server_chat_arguments(const char *text);

/* Hands the text of a token to the parser: `token` of a style. */
void server_chat_token(struct server_part *part, const struct server_event *event);
/* The message of a part that has ended, as akunu_reply_message has it; NULL: out of memory. */
json_t *server_chat_message(struct server_part *part);

#endif
