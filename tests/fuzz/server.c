/* Requests of akunu-server: the first byte chooses the route, the rest is the body. The server is
 * the real one, with a model and its scheduler, but for its sockets: http.h is implemented here.
 * Every request is answered with one of the codes of the documentation, or goes on; then its client
 * leaves. AK_FUZZ_MODEL names the model. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/server/embedder.h"
#include "apps/server/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const paths[] = {
    "/v1/completions",
    "/v1/chat/completions",
    "/completion",
    "/v1/messages",
    "/v1/responses",
    "/api/chat",
    "/api/generate",
    "/v1/embeddings",
    "/infill",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/v1/rerank",
    "/v1/messages/count_tokens",
    "/v1/responses/input_tokens",
    "/api/show",
};

/* ---- http.h ------------------------------------------------------------- */
struct http_exchange {
    const char *path, *body;
    size_t n;
    unsigned code;
    bool is_streaming, is_finished;
    uint64_t counts[HTTP_COUNTS];
    void *data;
};

const char *http_method(const struct http_exchange *x)
{
    (void)x;
    return "POST";
}
const char *http_path(const struct http_exchange *x)
{
    return x->path;
}
const char *http_header(const struct http_exchange *x, const char *name)
{
    (void)x, (void)name;
    return NULL;
}
const char *http_query(const struct http_exchange *x, const char *name)
{
    (void)x, (void)name;
    return NULL;
}
const char *http_body(const struct http_exchange *x, size_t *n)
{
    *n = x->n;
    return x->body;
}
void http_free_body(struct http_exchange *x)
{
    (void)x;
}
const char *http_client(const struct http_exchange *x)
{
    (void)x;
    return "127.0.0.1";
}
double http_age(const struct http_exchange *x)
{
    (void)x;
    return 0.0;
}
uint64_t http_number(const struct http_exchange *x)
{
    (void)x;
    return 1;
}
uint64_t *http_counts(struct http_exchange *x)
{
    return x->counts;
}
void http_set_data(struct http_exchange *x, void *data)
{
    x->data = data;
}
void *http_data(const struct http_exchange *x)
{
    return x->data;
}
void http_hold(struct http_exchange *x)
{
    (void)x;
}
void http_release(struct http_exchange *x)
{
    (void)x;
}
bool http_client_is_gone(const struct http_exchange *x)
{
    (void)x;
    return false;
}
bool http_is_1_0(const struct http_exchange *x)
{
    (void)x;
    return false;
}
void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    (void)x, (void)name, (void)value;
}
void http_answer(struct http_exchange *x, unsigned code, const char *type, const void *bytes,
                 size_t n)
{
    static const unsigned codes[] = { 200, 400, 404, 413, 429, 503 };
    bool known = false;
    (void)type;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        known |= code == codes[i];
    json_error_t error;
    json_t *value = json_loadb(bytes, n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    /* the texts of tokens are keys of top_logprobs; jansson writes "\u0000", and does not read it
     */
    bool valid = value || json_error_code(&error) == json_error_null_byte_in_key;
    if (!known || !valid || x->code) {
        fprintf(stderr, "%s: %u after %u: %.*s\n", x->path, code, x->code, (int)n,
                (const char *)bytes);
        abort();
    }
    json_decref(value);
    x->code = code;
}
bool http_begin(struct http_exchange *x, unsigned code, const char *type)
{
    (void)type;
    x->code = code;
    x->is_streaming = true;
    return true;
}
bool http_write(struct http_exchange *x, const void *bytes, size_t n)
{
    (void)bytes, (void)n;
    if (!x->is_streaming || x->is_finished)
        abort();
    return true;
}
void http_finish(struct http_exchange *x)
{
    x->is_finished = true;
}
size_t http_count_unread(const struct http_exchange *x)
{
    (void)x;
    return 0;
}
unsigned http_code(const struct http_exchange *x)
{
    return x->code;
}
void http_wake(struct http_server *server)
{
    (void)server;
}
size_t http_count_buffered(const struct http_server *server)
{
    (void)server;
    return 0;
}
unsigned http_count_connections(const struct http_server *server)
{
    (void)server;
    return 0;
}

/* ---- The server --------------------------------------------------------- */
const struct app_command app_commands[] = {
    { .name = "server",
      .bit = APP_SERVER,
      .traits = APP_LOADS_MODEL,
      .summary = "",
      .example = "",
      .operands = { "model" } },
};
const size_t app_n_commands = 1;

const struct app_command *app_find_command(const char *name)
{
    return strcmp(name, "server") == 0 ? &app_commands[0] : NULL;
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

static struct server *open_server(void)
{
    static struct app_options options;
    static struct server s;
    static const char *const flags[] = {
        "-m", "", "--no-cache", "-c", "512", "-t", "1", "-s", "1"
    };
    enum { N = sizeof flags / sizeof *flags };
    static char *argv[N];
    for (int i = 0; i < N; i++)
        argv[i] = (char *)(uintptr_t)flags[i];
    argv[1] = getenv("AK_FUZZ_MODEL");
    if (!argv[1] || app_options_parse(&app_commands[0], N, argv, &options) != APP_EXIT_OK)
        abort();
    s = (struct server){ .options = &options, .argc = N, .argv = argv };
    pthread_mutex_init(&s.events_lock, NULL);
    pthread_mutex_init(&s.lock, NULL);
    s.last_event = &s.first_event;
    s.n_requests = calloc(server_count_routes() * SERVER_CODES_MAX, sizeof *s.n_requests);
    if (!s.n_requests || server_list_models(&s) != APP_EXIT_OK)
        abort();
    server_want_model(&s.models[0]);
    while (s.state == SERVER_LOADING) {
        server_take_models(&s);
        nap();
    }
    if (s.state != SERVER_READY)
        abort();
    return &s;
}

/* Takes what the model's threads have made. */
static void take_all(struct server *s)
{
    server_take_events(s);
    server_take_encodings(&s->models[0]);
    server_take_hash(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct server *s;
    enum { LOOKS = 20 }; /* before the client leaves */
    if (!s)
        s = open_server();
    if (n == 0)
        return 0;
    struct http_exchange x = { .path = paths[data[0] % (sizeof paths / sizeof *paths)],
                               .body = (const char *)data + 1,
                               .n = n - 1 };
    server_ask_model(s, &x);
    for (int i = 0; i < LOOKS && x.data; i++) {
        take_all(s);
        nap();
    }
    struct server_owner *owner = x.data;
    if (owner)
        owner->leave(owner);
    else if (!x.code)
        abort();
    while (s->models[0].n_users > 0) {
        take_all(s);
        nap();
    }
    return 0;
}
