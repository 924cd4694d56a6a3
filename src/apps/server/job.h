/* A job: an exchange whose answer is generated. It has one or more requests to the scheduler, each
 * with one or more completions; all completions of all requests are its parts. */
#ifndef AK_APPS_SERVER_JOB_H
#define AK_APPS_SERVER_JOB_H

#include "apps/server/server.h"

/* What the scheduler reported, copied for the thread of http_run. */
struct server_event {
    struct server_event *next;
    struct server_source *source;
    enum akunu_request_event_kind kind;
    size_t index; /* of the completion in its request */
    akunu_token token;
    size_t prompt_index;
    float logprob;
    struct akunu_logprob *top; /* [n_top] */
    size_t n_top;
    enum akunu_status status;
    struct akunu_result result;
    size_t n_open;
    double time;
    size_t n_bytes;
    char text[]; /* n_bytes of text, and a NUL; of AKUNU_REQUEST_END the message */
};

struct server_text {
    char *bytes; /* ends with NUL; NULL: empty */
    size_t n, capacity;
};
/* False: out of memory. */
bool server_text_add(struct server_text *t, const char *bytes, size_t n);

struct server_part {
    struct server_job *job;
    size_t index;
    struct akunu_reply *reply; /* chat: the parser; NULL: a text as it is */
    json_t *logprobs;          /* of tokens that were not reported yet */
    struct server_text text;   /* completions without a stream */
    size_t n_calls;            /* chat: that have begun */
    const char *finish;        /* why it ended; NULL: it goes on */
    double last_token;         /* when; 0: there was none */
    json_t *tokens, *receipt;  /* NULL: none is wanted, or it goes on */
};

struct server_prompt {
    akunu_token *ids; /* to be freed */
    bool *is_text;    /* [n]: written in the text of the prompt, even if it is a control token */
    size_t n;
    size_t n_whole; /* tokens of a whole text before it was cut; 0: there is no `how` */
};

/* A request to the scheduler. */
struct server_source {
    struct server_job *job;
    uint64_t id;
    size_t first; /* part of its first completion */
    bool is_submitted, has_ended;
    const struct server_prompt *prompt; /* until it is submitted */
    size_t n_prompt;
    json_t *receipt;  /* its beginning; NULL: none is wanted */
    uint64_t seed;    /* of its first completion */
    json_t *settings; /* as server_settings, for /slots */
};

struct server_style {
    const char *prefix; /* of ids */
    /* of chats: sets job->own, and needs no lock, NULL: nothing; gets the parser's events with a
     * struct server_part */
    bool (*prepare)(struct server_job *job, const json_t *body);
    akunu_reply_fn *reply;
    void (*begin)(struct server_job *job); /* it was submitted; NULL: nothing */
    void (*token)(struct server_part *part, const struct server_event *event);
    void (*prompt)(struct server_part *part, const struct server_event *event); /* NULL: none */
    void (*end)(struct server_part *part, const struct server_event *event);
    void (*done)(struct server_job *job); /* all have ended: complete the answer */
    void (*release)(struct server_job *job);
};

struct server_job {
    struct server_owner owner;       /* first: the exchange's data */
    struct server_job *next, **link; /* link: NULL before it is submitted */
    struct server_model *model;      /* has it in use once it is submitted */
    struct http_exchange *x;         /* NULL: the client is gone */
    const struct server_style *style;
    void *own; /* of the style */
    char id[48];
    int64_t created;
    bool stream, include_usage, is_paused, no_memory;
    _Atomic bool lost_event; /* the scheduler's thread had no memory for one */
    int64_t n_top;           /* -1: no log-probabilities */
    struct server_source *sources;
    size_t n_sources, n_open; /* n_open: sources that have not ended */
    struct server_part *parts;
    size_t n_parts;
    uint64_t n_prompt, n_cached, n_generated; /* of those that have ended */
    enum akunu_status status;                 /* of the first that failed */
    char message[512];
    char **stops; /* [n_stops]: copies of the request's */
    size_t n_stops;
    struct akunu_result result; /* of the first completion */
};

/* A job with n_prompts requests of params->n completions; NULL: it has answered with an error.
 * Needs no lock. */
struct server_job *server_job_new(struct server_model *m, struct http_exchange *x,
                                  const struct server_style *style,
                                  const struct server_params *params,
                                  const struct server_prompt *prompts, size_t n_prompts);
/* Submits all requests, with what server_job_new was given: the exchange's data is the job from now
 * on. Or it answers, and frees the job. */
void server_job_submit(struct server_job *job, const struct server_params *params);
/* Frees a job. Before it is submitted this needs no lock. */
void server_job_free(struct server_job *job);

/* Hands all events that have come to their jobs. */
void server_take_events(struct server *s);
void server_cancel_jobs(struct server *s);

/* A job that is not a chat's, with what it is submitted with; zeros at first. */
struct server_submission {
    struct server_params params;
    struct server_job *job;
};
/* Submits the job; without one it has answered. Takes s; NULL allowed. Needs no lock. */
struct server_commit server_submission_commit(struct server_submission *s);

/* ---- Receipts: receipt.c ------------------------------------------------ */
/* False: out of memory. Needs no lock. */
bool server_begin_receipt(struct server_source *source, const struct server_params *params,
                          const akunu_token *ids, size_t n_ids);
void server_receipt_add_token(struct server_part *part, const struct server_event *event);
void server_receipt_end(struct server_part *part, const struct server_event *event);
/* Adds "akunu" with the receipt to the last object of an answer, if it is wanted: of a completion,
 * or of all, as a list if there are several. */
void server_add_part_receipt(struct server_part *part, json_t *value);
void server_add_receipts(struct server_job *job, json_t *value);

/* ---- Prompts: prompt.c. None needs a lock. ------------------------------ */
struct server_prompts {
    struct server_prompt *list; /* [n] */
    size_t n;
    bool is_list; /* the member is a list of prompts */
};
struct akunu_embedding_text;
/* Reads a text, a list of ids and texts, or a list of such prompts, of which there are 1 to `max`;
 * `flags` are of akunu_tokenizer_encode. `how` unless NULL: how whole texts become tokens
 * instead. False: it has answered. Free *out in both cases. */
bool server_read_prompts(struct server_model *m, struct http_exchange *x, const char *name,
                         const json_t *found, unsigned flags, struct akunu_embedding_text *how,
                         size_t max, struct server_prompts *out);
void server_free_prompts(struct server_prompts *prompts);

/* ---- Server-sent events: sse.c ------------------------------------------ */
/* Writes "data: VALUE", and frees the value. Begins the stream before the first one. */
void server_sse_write(struct server_job *job, json_t *value);
/* The same under a name: "event: NAME". */
void server_sse_write_event(struct server_job *job, const char *name, json_t *value);
/* The end of server_sse_close. */
void server_sse_end(struct server_job *job);

/* ---- Shared by the APIs: openai.c. None but the last needs a lock. ------ */
/* What a text depends on beside the request: the version, "akunu-0.1.0". */
const char *server_fingerprint(void);
/* {"prompt_tokens": …, …} over all requests of the job. */
json_t *server_usage(const struct server_job *job);
/* Why a completion ended, in OpenAI's words. */
const char *server_finish_reason(const struct akunu_result *result);
/* The stop sequence that ended a completion; NULL: none did. */
const char *server_stop_text(const struct server_job *job, const struct akunu_result *result);
/* {"prompt_n": …, "prompt_ms": …, …}, as llama-server has it. */
json_t *server_timings(const struct akunu_result *result);
/* Text of one token; NULL: out of memory. `bytes` also gets its bytes as a list, unless NULL. */
json_t *server_token_text(const struct server_model *m, akunu_token token, json_t **bytes);
/* Answers a job that failed, or ends its stream with the error; false: it did not fail. */
bool server_job_failed(struct server_job *job);

/* ---- Completions of OpenAI's API: openai.c ------------------------------ */
/* Streams {"id": …, "object": `object`, …, "choices": [`choice`]}; takes the choice. */
void server_sse_write_choice(struct server_job *job, const char *object, json_t *choice);
/* Ends a job: answers with one choice per completion and the usage; or ends the stream, before that
 * with an object without choices if usage or receipts are asked for. An object is called `object`.
 */
typedef json_t *server_choice_fn(struct server_part *part);
void server_end_completions(struct server_job *job, const char *object, server_choice_fn *choice);

#endif
