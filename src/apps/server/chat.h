/* A conversation as a request to the scheduler, whatever API it came through: messages, tools and
 * grammar become a prompt, and the text goes through a parser of replies. */
#ifndef AK_APPS_SERVER_CHAT_H
#define AK_APPS_SERVER_CHAT_H

#include "apps/server/job.h"

/* What a request asks for, until it is submitted. */
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
    /* sets job->own; NULL: nothing */
    bool (*prepare)(struct server_job *job, const json_t *body);
    char *prompt;
    size_t n_prompt;
    akunu_token *ids;
    size_t n_ids;
    struct akunu_grammar *content, *grammar;
    json_t *schema; /* of the content; NULL: none */
};

void server_chat_release(struct server_chat *r);
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

/* Makes the prompt and the grammar, and submits. `on_reply` gets the events of the parser with a
 * struct server_part; `begin` is called for a stream before any of them. False: it has answered. */
bool server_chat_submit(struct server_chat *r, const struct server_style *style, const char *prefix,
                        akunu_reply_fn *on_reply, void (*begin)(struct server_job *job));

/* The arguments of a call that the model wrote, as a value; NULL: out of memory. */
json_t *server_chat_arguments(const char *text);

/* Hands the text of a token to the parser: `token` of a style. */
void server_chat_token(struct server_part *part, const struct server_event *event);
/* The message of a part that has ended, as akunu_reply_message has it; NULL: out of memory. */
json_t *server_chat_message(struct server_part *part);

#endif
