/* State of akunu-server, and what the files that answer requests share. All of it is read and
 * changed under its lock, which http_run and the worker's thread take turns to hold; the
 * scheduler's thread only adds to the list of events, and the loader's thread fills in the model
 * before `state` says that it is ready.
 *
 * A function is called under the lock, unless its comment says "Needs no lock": then it touches
 * only the request that it is given, what a model keeps while it is in use, and what never changes.
 * No function releases a lock that its caller holds. */
#ifndef AK_APPS_SERVER_SERVER_H
#define AK_APPS_SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include <jansson.h>

#include "akunu/akunu.h"
#include "apps/common/input.h"
#include "apps/common/load.h"
#include "apps/common/options.h"
#include "apps/common/receipt.h"
#include "apps/server/api.h"
#include "apps/server/http.h"

enum server_state { SERVER_LOADING = 0, SERVER_READY = 1, SERVER_FAILED = 2 };

enum { SERVER_KEYS_MAX = 256, SERVER_HASH_BYTES = 32, SERVER_CODES_MAX = 16 };

/* API keys, as SHA-256. None: requests need none. */
struct server_keys {
    unsigned char hashes[SERVER_KEYS_MAX][SERVER_HASH_BYTES];
    size_t n;
};

/* Distribution of seconds, as Prometheus counts it. */
enum { SERVER_BUCKETS = 14 };
struct server_histogram {
    uint64_t counts[SERVER_BUCKETS + 1], n;
    double sum;
};

struct server_route;
struct server_event;
struct server_job;
struct server_embedder;
struct server_speech;
struct server_waiter;

/* What an exchange's data begins with: whoever answers it. */
struct server_owner {
    void (*leave)(void *self);   /* the exchange has ended */
    void (*drained)(void *self); /* the client has read most of a stream; NULL: nothing */
};

/* Handles requests with large bodies: worker.c. */
struct server_worker {
    pthread_cond_t has_task;
    pthread_t thread;
    struct server_task *tasks;
    bool runs, is_busy, stops;
};

/* Hashes the file of a model: receipt.c. */
struct server_hasher {
    pthread_t thread;
    struct server_model *model;
    char sha256[65];
    bool runs;
    _Atomic bool is_done, stops;
};

struct server {
    pthread_mutex_t lock;
    const struct app_options *options;
    int argc; /* arguments, for presets and for reading the configuration again */
    char **argv;
    bool is_verbose; /* the log has /health, too */
    bool logs_json;
    struct http_server *http;
    struct server_worker worker;
    struct server_hasher hasher;
    struct server_keys keys;
    enum server_state state; /* of the model that is loaded at the start */
    int exit_code;           /* of its load, if it failed */
    bool drains, has_reported;
    int64_t created; /* when the program started, in seconds since 1970 */

    struct server_model *models; /* [n_models]; the first is loaded at the start if -m names it */
    size_t n_models;
    bool has_first;
    struct server_model *loading; /* by the loader's thread; NULL: there is none */
    pthread_t loader;
    bool loader_runs;
    _Atomic bool has_loaded;           /* the loader is done */
    struct akunu_pool *pool;           /* threads of all models */
    struct akunu_scheduler_stats past; /* counts of models that were dropped */

    struct server_job *jobs; /* that have not ended */
    _Atomic uint64_t n_jobs; /* so far, for ids */
    pthread_mutex_t events_lock;
    struct server_event *first_event, **last_event; /* under events_lock; in their order */

    uint64_t *n_requests; /* [route][SERVER_CODES_MAX]: by route and code */
    struct server_histogram first_token, next_token;
    double audio_seconds; /* that were transcribed */
};

/* ---- Models: model.c ---------------------------------------------------- */
enum { SERVER_ID_BYTES = 256 };

enum server_model_state {
    SERVER_MODEL_ABSENT = 0,  /* not loaded */
    SERVER_MODEL_WANTED = 1,  /* it is loaded next */
    SERVER_MODEL_LOADING = 2, /* the loader's thread has it */
    SERVER_MODEL_READY = 3,
    SERVER_MODEL_CLOSING = 4 /* it is dropped when its last request has ended */
};

struct server_model {
    struct server *server;
    struct app_options own; /* of a preset */
    const struct app_options *options;
    char id[SERVER_ID_BYTES]; /* for clients */
    enum server_model_state state;
    int exit_code; /* of the last load */
    struct app_model_session loaded;
    struct akunu_template *template;
    const char *template_text;
    struct akunu_scheduler *scheduler; /* NULL: the model is an encoder, or of speech */
    struct server_embedder *embedder;  /* NULL: it is a speech model */
    struct server_speech *speech;      /* NULL: it is none */
    struct akunu_vad *vad;             /* of a speech model; NULL: there are no weights of one */
    char sha256[65];                   /* of the file or folder, for receipts; "": unknown */
    bool wants_hash;
    bool is_dropped;  /* by the loader that runs */
    uint64_t wanted;  /* its turn among those that are WANTED */
    uint64_t bytes;   /* of memory, when it was loaded last; 0: unknown */
    size_t n_users;   /* what has been asked of it and is not answered yet */
    double last_used; /* seconds of app_seconds */
    struct server_waiter *waiters;
};

/* Finds what the server can load: -m, and the presets of the configuration. Returns an exit code,
 * after a message unless it is APP_EXIT_OK. */
int server_list_models(struct server *s);
void server_close_models(struct server *s);
/* The model that a request names, or the only one there is. NULL: it has answered. */
struct server_model *server_find_model(struct server *s, struct http_exchange *x, const char *name);
/* Begins to load a model, if no other is being loaded and there is memory for it. */
void server_want_model(struct server_model *m);
/* Takes over a model that was loaded, and loads the next one that is wanted. */
void server_take_models(struct server *s);

/* Who asks: requests of different keys, or without keys of different addresses, take turns. */
uint64_t server_identify_client(const struct http_exchange *x);

/* ---- Answers: answer.c. None needs a lock. ------------------------------ */
/* Answers with a JSON value, which is freed; NULL: out of memory. */
void server_answer(struct http_exchange *x, unsigned code, json_t *value);

/* Answers with an error in the form of the API. `param` and `code_name` may be NULL. */
void server_fail(struct http_exchange *x, unsigned code, const char *param, const char *code_name,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
void server_fail_memory(struct http_exchange *x);
/* The API that the exchange asks: that of its route, or of the route whose path is most alike. */
const struct server_api *server_api_of(const struct http_exchange *x);
/* Answers with the message of the library's last failed call, which was about `param`. */
void server_fail_library(struct http_exchange *x, const char *param);
/* Likewise about element i of n in `param`, which the message names if there are several. */
void server_fail_library_at(struct http_exchange *x, const char *param, size_t i, size_t n);
/* The object of an error, in the form of the API that the exchange asks. */
json_t *server_error(const struct http_exchange *x, unsigned code, const char *param,
                     const char *code_name, const char *message);

/* ---- Requests: json_in.c. None needs a lock. ---------------------------- */
/* The body as a JSON object, whose levels, keys and size are bounded; NULL: it has answered. Free
 * it with json_decref. */
json_t *server_read_object(const struct server *s, struct http_exchange *x);

/* Members of a body. They answer with a 400 that names the member, and return false, if it has
 * another type or is out of range. A member that is missing or null leaves *out as it is. */
bool server_get_bool(struct http_exchange *x, const json_t *body, const char *name, bool *out);
bool server_get_integer(struct http_exchange *x, const json_t *body, const char *name, int64_t low,
                        int64_t high, int64_t *out);
bool server_get_real(struct http_exchange *x, const json_t *body, const char *name, double low,
                     double high, double *out);
bool server_get_string(struct http_exchange *x, const json_t *body, const char *name,
                       const char **out);
/* Answers with a 400: the member has another kind of value. */
void server_fail_member(struct http_exchange *x, const char *name, const json_t *found,
                        const char *expected);

/* ---- Forms: form_in.c. None needs a lock. ------------------------------- */
/* Whether the body is multipart/form-data, as its Content-Type says. */
bool server_is_form(const struct http_exchange *x);
/* Such a body as an object: texts, lists of texts for names that end in "[]", and "file" as {"at":
 * …, "n": …, "name": …}, its place in the body. NULL: it has answered. */
json_t *server_read_form(struct http_exchange *x);
/* Members of a form, as server_get_bool and server_get_real. */
bool server_form_get_bool(struct http_exchange *x, const json_t *form, const char *name, bool *out);
bool server_form_get_real(struct http_exchange *x, const json_t *form, const char *name, double low,
                          double high, double *out);

/* ---- Server-sent events: sse.c ------------------------------------------ */
/* Writes "data: VALUE", and frees the value; `name` NULL: without a line "event: NAME". Begins the
 * stream before the first one. False: out of memory, or the client is gone. */
bool server_sse_send(struct http_exchange *x, const char *name, json_t *value);
/* Writes "data: [DONE]" and ends the stream. */
void server_sse_close(struct http_exchange *x);

/* ---- Sampling: params.c. None needs a lock. ----------------------------- */
/* What a request asks for beside its prompt. It points into the body and must not be copied. */
struct server_params {
    struct akunu_sampling_params sampling;
    struct akunu_generation_params generation;
    struct akunu_reasoning reasoning;
    struct akunu_logit_bias bias[APP_MAX_TEXTS * 16];
    const char *stops[64];
    char samplers[512]; /* names of a list */
    int64_t n, n_top;   /* completions; most likely tokens per token, -1: no log-probabilities */
    bool stream, include_usage;
    double timeout;
    bool receipt, prompt_logprobs;
    struct akunu_grammar *grammar;    /* to be freed; NULL: none */
    struct app_constraint constraint; /* of the grammar, for the receipt */
};
/* Reads the members that all APIs share; the flags are the defaults. False: it has answered. */
bool server_read_params(struct server_model *m, struct http_exchange *x, const json_t *body,
                        struct server_params *out);
/* Refuses an `n` of more than 1, for APIs with one answer. False: it has answered. */
bool server_check_one_choice(struct http_exchange *x, const struct server_params *p);
/* Reads the grammar of "grammar" or "json_schema", if one of them is there. False: it has answered.
 */
bool server_read_grammar(struct http_exchange *x, const json_t *body, struct server_params *params);
/* Sampling and limits under llama-server's names; NULL: out of memory. */
json_t *server_settings(const struct server_params *params);

/* ---- Routes: route.c ---------------------------------------------------- */
bool server_check(struct http_exchange *x, struct server *s);
void server_route(struct http_exchange *x, struct server *s);
void server_count_answer(struct http_exchange *x, struct server *s);
size_t server_count_routes(void);
/* "POST /v1/completions"; NULL past the end. */
const char *server_route_name(size_t i);

/* What a request that was prepared does to the server's state. `run` is called once, and takes
 * `own`; NULL: nothing, as it is answered. */
struct server_commit {
    void (*run)(struct server_model *m, struct http_exchange *x, void *own);
    void *own;
};

/* A request to a model, on which the functions below are called in this order. */
struct server_request {
    struct server *server;
    struct http_exchange *x;
    json_t *body;               /* NULL: there is none */
    const char *name;           /* of the model; NULL: any */
    struct server_model *model; /* in use; NULL: it has answered, or waits for the model */
    struct server_commit commit;
};
/* Reads the body. False: it has answered. Needs no lock. */
bool server_read_request(struct server *s, struct http_exchange *x, struct server_request *out);
/* Finds the model, and takes it in use. False: it has answered, or the exchange waits for its model
 * and is handled from the beginning then. */
bool server_use_model(struct server_request *r);
/* Has the model's handler answer, or prepare what is committed. Needs no lock. */
void server_prepare_request(struct server_request *r);
/* Commits it, if the model is in use, and frees the body; also after a function that was false. */
void server_end_request(struct server_request *r);
/* All of it. */
void server_ask_model(struct server *s, struct http_exchange *x);
/* The model was loaded or hashed: hands the requests that wait to it. Not `good`: it failed, and
 * so do they. */
void server_end_waiting(struct server_model *m, bool good);
/* Answers those that have waited for the model longer than --timeout. */
void server_expire_waiters(struct server_model *m);

/* ---- Large bodies: worker.c --------------------------------------------- */
/* server_ask_model in this thread, or in the worker's if the body is large. */
void server_handle(struct server *s, struct http_exchange *x);
/* Waits for the request that the worker handles, and drops those that it does not. Without the
 * lock. */
void server_stop_worker(struct server *s);

/* Answers what is no model's. */
typedef void server_handler(struct server *s, struct http_exchange *x);
server_handler server_models, server_model_by_name;                         /* models.c */
server_handler server_health;                                               /* native.c */
server_handler server_ollama_version, server_ollama_tags, server_ollama_ps; /* ollama.c */
server_handler server_page;                                                 /* page.c */
server_handler server_metrics;                                              /* metrics.c */

/* What a model that is ready can do, in Ollama's words: ["completion", …]; "transcription" if it is
 * of speech. */
json_t *server_capabilities(const struct server_model *m); /* models.c */

/* Answers for a model that is in use, or prepares what is committed. `body`: the request's object,
 * NULL for GET; it is freed after that. Needs no lock. */
typedef struct server_commit server_model_handler(struct server_model *m, struct http_exchange *x,
                                                  const json_t *body);
static const struct server_commit server_answered = { NULL, NULL };
server_model_handler server_chat_completions, server_chat_count,       /* openai_chat.c */
    server_completions;                                                /* openai_completions.c */
server_model_handler server_props, server_tokenize, server_detokenize, /* native.c */
    server_apply_template;
server_model_handler server_messages, server_count_tokens; /* anthropic.c */
server_model_handler server_ollama_show, server_ollama_chat, server_ollama_generate; /* ollama.c */
server_model_handler server_completion, server_infill;           /* completion.c */
server_model_handler server_responses, server_responses_count;   /* responses.c */
server_model_handler server_embeddings;                          /* embed.c */
server_model_handler server_slots;                               /* slots.c */
server_model_handler server_rerank;                              /* rerank.c */
server_model_handler server_transcriptions, server_translations; /* transcriptions.c */

/* ---- Keys: keys.c ------------------------------------------------------- */
/* Reads the flags' keys and the key file. False: *why has a message. */
bool server_read_keys(const struct app_options *options, struct server_keys *out,
                      char why[APP_SHOWN_BYTES * 4]);
bool server_has_key(const struct server_keys *keys, const char *given);
/* Overwrites the keys among the arguments and in the environment, which the system shows to others,
 * and returns a copy of the arguments for the rest of the program's life. */
char **server_hide_keys(int argc, char **argv);

/* ---- systemd: systemd.c ------------------------------------------------- */
/* The socket that a service manager listens on for this program (sd_listen_fds(3)); -1: none. */
int server_given_listener(void);
/* Tells the service manager, if there is one, what goes on (sd_notify(3)). */
void server_notify(const char *state);

/* ---- Metrics: metrics.c ------------------------------------------------- */
void server_observe(struct server_histogram *h, double seconds);

/* ---- Receipts: receipt.c ------------------------------------------------ */
bool server_wants_receipt(const json_t *body);
/* False: it has answered. */
bool server_read_receipt(struct http_exchange *x, const json_t *body, bool *out);
/* Begins to hash the file of a model whose wants_hash is true, and takes the hash when it is done.
 */
void server_take_hash(struct server *s);
void server_stop_hasher(struct server *s);

/* ---- Log: log.c --------------------------------------------------------- */
/* Counts of tokens that an exchange has in http_counts. */
enum { SERVER_PROMPT = 0, SERVER_CACHED = 1, SERVER_GENERATED = 2 };
/* Names the exchange, in the header X-Request-Id and in the log. */
void server_name_exchange(const struct server *s, struct http_exchange *x);
/* A line about an exchange that ended: no text, no key and no path of this machine. */
void server_log_exchange(struct server *s, struct http_exchange *x, bool client_gone);

#endif
