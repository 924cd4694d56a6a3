/* The table of routes, and what every request must pass: Host, Origin, key, method and type. */
#include "apps/server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct server_route {
    const char *method, *path; /* path: "/v1/models/" is a prefix */
    server_handler *handle;    /* NULL: the model's handler answers */
    server_model_handler *answer;
    bool open;                                  /* needs no key */
    bool early;                                 /* also while the model is loaded */
    enum { ANY, TEXTS, VECTORS, SPEECH } needs; /* what the model has to do */
    const struct server_api *api;               /* the form of its answers */
};

/* What is no model's. */
#define SERVER(method, path, api, handle, open, early)                                             \
    {                                                                                              \
        method, path, handle, NULL, open, early, ANY, &server_##api                                \
    }
/* What a model answers. */
#define MODEL(method, path, api, answer, needs)                                                    \
    {                                                                                              \
        method, path, NULL, answer, false, false, needs, &server_##api                             \
    }

static const struct server_route routes[] = {
    SERVER("GET", "/", openai, server_page, true, true),
    MODEL("POST", "/v1/chat/completions", openai, server_chat_completions, TEXTS),
    MODEL("POST", "/chat/completions", openai, server_chat_completions, TEXTS),
    MODEL("POST", "/v1/completions", openai, server_completions, TEXTS),
    MODEL("POST", "/v1/chat/completions/input_tokens", openai, server_chat_count, TEXTS),
    MODEL("POST", "/chat/completions/input_tokens", openai, server_chat_count, TEXTS),
    MODEL("POST", "/v1/responses", openai, server_responses, TEXTS),
    MODEL("POST", "/responses", openai, server_responses, TEXTS),
    MODEL("POST", "/v1/responses/input_tokens", openai, server_responses_count, TEXTS),
    MODEL("POST", "/responses/input_tokens", openai, server_responses_count, TEXTS),
    MODEL("POST", "/v1/messages", anthropic, server_messages, TEXTS),
    MODEL("POST", "/v1/messages/count_tokens", anthropic, server_count_tokens, TEXTS),
    SERVER("GET", "/api/version", ollama, server_ollama_version, false, true),
    SERVER("GET", "/api/tags", ollama, server_ollama_tags, false, false),
    SERVER("GET", "/api/ps", ollama, server_ollama_ps, false, false),
    MODEL("POST", "/api/show", ollama, server_ollama_show, ANY),
    MODEL("POST", "/api/chat", ollama, server_ollama_chat, TEXTS),
    MODEL("POST", "/api/generate", ollama, server_ollama_generate, TEXTS),
    MODEL("POST", "/api/embed", ollama, server_embeddings, VECTORS),
    MODEL("POST", "/v1/embeddings", openai, server_embeddings, VECTORS),
    MODEL("POST", "/v1/rerank", openai, server_rerank, VECTORS),
    MODEL("POST", "/v1/reranking", openai, server_rerank, VECTORS),
    MODEL("POST", "/rerank", openai, server_rerank, VECTORS),
    MODEL("POST", "/reranking", openai, server_rerank, VECTORS),
    MODEL("POST", "/v1/audio/transcriptions", openai, server_transcriptions, SPEECH),
    MODEL("POST", "/v1/audio/translations", openai, server_translations, SPEECH),
    MODEL("POST", "/inference", openai, server_transcriptions, SPEECH),
    SERVER("GET", "/v1/models", openai, server_models, false, false),
    SERVER("GET", "/models", openai, server_models, false, false),
    SERVER("GET", "/v1/models/", openai, server_model_by_name, false, false),
    SERVER("GET", "/health", openai, server_health, true, true),
    SERVER("GET", "/v1/health", openai, server_health, true, true),
    MODEL("GET", "/props", openai, server_props, TEXTS),
    MODEL("GET", "/slots", openai, server_slots, TEXTS),
    MODEL("POST", "/completion", openai, server_completion, TEXTS),
    MODEL("POST", "/completions", openai, server_completion, TEXTS),
    MODEL("POST", "/infill", openai, server_infill, TEXTS),
    MODEL("POST", "/tokenize", openai, server_tokenize, ANY),
    MODEL("POST", "/detokenize", openai, server_detokenize, ANY),
    MODEL("POST", "/apply-template", openai, server_apply_template, TEXTS),
    SERVER("GET", "/metrics", openai, server_metrics, false, true),
};
#undef SERVER
#undef MODEL
enum { N_ROUTES = sizeof routes / sizeof *routes };

size_t server_count_routes(void)
{
    return N_ROUTES + 1; /* and none of them */
}

const char *server_route_name(size_t i)
{
    return i < N_ROUTES ? routes[i].path : i == N_ROUTES ? "other" : NULL;
}

static bool has_path(const struct server_route *r, const char *path)
{
    size_t n = strlen(r->path);
    return n > 1 && r->path[n - 1] == '/' ? strncmp(path, r->path, n) == 0 && path[n] :
                                            strcmp(path, r->path) == 0;
}

static bool has_method(const struct server_route *r, const char *method)
{
    return strcmp(r->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0);
}

/* The route of a request; NULL: none has its path and method. */
static const struct server_route *find_route(const struct http_exchange *x)
{
    for (size_t i = 0; i < N_ROUTES; i++)
        if (has_path(&routes[i], http_path(x)) && has_method(&routes[i], http_method(x)))
            return &routes[i];
    return NULL;
}

static bool ends_name(char c)
{
    return c == '\0' || c == '/';
}

/* Bytes of the whole names with which both paths begin: 4 of "/v1/models" and "/v1/messages". */
static size_t count_shared(const char *a, const char *b)
{
    size_t n = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '/' || (ends_name(a[i + 1]) && ends_name(b[i + 1])))
            n = i + 1;
    return n;
}

const struct server_api *server_api_of(const struct http_exchange *x)
{
    const struct server_route *best = http_route(x);
    size_t most = 0;
    for (size_t i = 0; !http_route(x) && i < N_ROUTES; i++) {
        size_t n = count_shared(routes[i].path, http_path(x));
        if (n > most) {
            best = &routes[i];
            most = n;
        }
    }
    return best ? best->api : &server_openai;
}

/* Lists the methods of a path; false: there is no such path. */
static bool list_methods(const char *path, char *out, size_t capacity)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < N_ROUTES; i++)
        if (has_path(&routes[i], path))
            n += (size_t)snprintf(out + n, capacity - n, "%s%s%s", n ? ", " : "", routes[i].method,
                                  strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
    if (n > 0)
        snprintf(out + n, capacity - n, ", OPTIONS");
    return n > 0;
}

/* ---- Host and Origin ---------------------------------------------------- */
/* Whether `name`, n bytes, is in a list with commas. */
static bool is_listed(const char *list, const char *name, size_t n)
{
    for (const char *at = list ? list : ""; *at;) {
        size_t length = strcspn(at, ",");
        if ((length == n && strncasecmp(at, name, n) == 0) || (length == 1 && *at == '*'))
            return true;
        at += length + (at[length] == ',');
    }
    return false;
}

/* Bytes of the host in "host:port", with the brackets of an IPv6 address. */
static size_t host_length(const char *host)
{
    if (host[0] == '[') {
        size_t n = strcspn(host, "]");
        return host[n] ? n + 1 : n;
    }
    return strcspn(host, ":");
}

/* A name that no other site can have pointed at this machine: an address, or localhost. */
static bool is_own_host(const char *host, size_t n)
{
    bool digits = n > 0;
    if (n == strlen("localhost") && strncasecmp(host, "localhost", n) == 0)
        return true;
    if (host[0] == '[')
        return true;
    for (size_t i = 0; i < n; i++)
        digits &= (host[i] >= '0' && host[i] <= '9') || host[i] == '.';
    return digits;
}

static bool check_host(struct http_exchange *x, const struct server *s)
{
    const char *host = http_header(x, "Host");
    if (!host || s->keys.n > 0)
        return true;
    size_t n = host_length(host);
    if (is_own_host(host, n) || is_listed(s->options->server.allowed_hosts, host, n))
        return true;
    server_fail(x, 403, NULL, NULL,
                "the Host is not allowed: --allowed-hosts lists others than "
                "IP addresses and localhost");
    return false;
}

static bool check_origin(struct http_exchange *x, const struct server *s)
{
    const char *origin = http_header(x, "Origin"), *host = http_header(x, "Host");
    if (!origin)
        return true;
    if (is_listed(s->options->server.cors_origins, origin, strlen(origin))) {
        http_add_header(x, "Access-Control-Allow-Origin", origin);
        http_add_header(x, "Vary", "Origin");
        return true;
    }
    const char *name = strstr(origin, "://");
    if (name && host && strcasecmp(name + 3, host) == 0)
        return true;
    server_fail(x, 403, NULL, NULL,
                "the Origin is not allowed: --cors-origins lists those that "
                "are");
    return false;
}

/* ---- Keys --------------------------------------------------------------- */
static bool check_key(struct http_exchange *x, const struct server *s)
{
    static const char scheme[] = "Bearer ";
    const char *given = http_header(x, "Authorization"), *own = http_header(x, "x-api-key");
    if (s->keys.n == 0)
        return true;
    if (given && strncasecmp(given, scheme, strlen(scheme)) == 0)
        given += strlen(scheme) + strspn(given + strlen(scheme), " ");
    else
        given = NULL;
    if ((given && server_has_key(&s->keys, given)) || (own && server_has_key(&s->keys, own)))
        return true;
    server_fail(x, 401, NULL, "invalid_api_key",
                given || own ? "the API key is wrong" :
                               "an API key is needed: "
                               "Authorization: Bearer KEY");
    return false;
}

/* ---- Requests ----------------------------------------------------------- */
/* Answers the question of a browser before a request of another origin. */
static void answer_options(struct http_exchange *x, const char *methods)
{
    http_add_header(x, "Allow", methods);
    if (http_header(x, "Origin")) {
        http_add_header(x, "Access-Control-Allow-Methods", methods);
        http_add_header(x, "Access-Control-Allow-Headers",
                        "Authorization, Content-Type, "
                        "x-api-key");
        http_add_header(x, "Access-Control-Max-Age", "3600");
    }
    http_answer(x, 204, "text/plain", "", 0);
}

/* Clips come in forms, everything else as JSON. */
static bool check_type(struct http_exchange *x, const struct server_route *route)
{
    const char *type = http_header(x, "Content-Type");
    if (route->needs == SPEECH) {
        if (!server_is_form(x))
            server_fail(x, 415, NULL, NULL, "the Content-Type is not multipart/form-data");
        return http_code(x) == 0;
    }
    if (!type || strncmp(http_path(x), "/v1/", 4) != 0 || strcmp(http_method(x), "POST") != 0)
        return true;
    size_t n = strcspn(type, "; ");
    if (n == strlen("application/json") && strncasecmp(type, "application/json", n) == 0)
        return true;
    server_fail(x, 415, NULL, NULL, "the Content-Type is not application/json");
    return false;
}

static bool check_state(struct http_exchange *x, const struct server *s,
                        const struct server_route *route)
{
    if (route->early)
        return true;
    if (s->state != SERVER_READY) {
        http_add_header(x, "Retry-After", "1");
        server_fail(x, 503, NULL, NULL, "the model is loading");
    } else if (s->drains) {
        server_fail(x, 503, NULL, NULL, "the server is shutting down");
    }
    return http_code(x) == 0;
}

bool server_check(struct http_exchange *x, struct server *s)
{
    char methods[64], shown[APP_SHOWN_BYTES];
    const struct server_route *route = find_route(x);
    http_set_route(x, route);
    server_name_exchange(s, x);
    if (!check_host(x, s) || !check_origin(x, s))
        return false;
    bool known = list_methods(http_path(x), methods, sizeof methods);
    if (known && strcmp(http_method(x), "OPTIONS") == 0) {
        answer_options(x, methods);
        return false;
    }
    if (!(route && route->open) && !check_key(x, s))
        return false;
    if (!known) {
        server_fail(x, 404, NULL, NULL, "there is no route %s", app_show_text(http_path(x), shown));
        return false;
    }
    if (!route) {
        http_add_header(x, "Allow", methods);
        server_fail(x, 405, NULL, NULL, "%s allows %s", app_show_text(http_path(x), shown),
                    methods);
        return false;
    }
    return check_type(x, route) && check_state(x, s, route);
}

/* A request whose model is being loaded or hashed. Its body is read again afterwards. */
struct server_waiter {
    struct server_owner owner; /* first: the exchange's data */
    struct server_waiter *next;
    struct http_exchange *x;
    struct server_model *model;
    bool needs_hash;
};

static void leave_waiting(void *self)
{
    struct server_waiter *w = self, **link = &w->model->waiters;
    while (*link != w)
        link = &(*link)->next;
    *link = w->next;
    http_set_data(w->x, NULL);
    free(w);
}

static void wait_for(struct server_model *m, struct http_exchange *x, bool needs_hash)
{
    struct server_waiter *w = calloc(1, sizeof *w), **last = &m->waiters;
    if (!w) {
        server_fail_memory(x);
        return;
    }
    *w = (struct server_waiter){ { leave_waiting, NULL }, NULL, x, m, needs_hash };
    while (*last)
        last = &(*last)->next;
    *last = w;
    http_set_data(x, &w->owner);
    server_want_model(m);
}

/* Whether the model can do what the route is for; false: it has answered. */
static bool check_model(const struct server_model *m, struct http_exchange *x,
                        const struct server_route *route)
{
    bool good = route->needs == ANY || (route->needs == TEXTS && m->scheduler) ||
                (route->needs == VECTORS && m->embedder) || (route->needs == SPEECH && m->speech);
    if (good)
        return true;
    if (m->speech)
        server_fail(x, 400, "model", NULL,
                    "%s is a speech model: it writes down audio (/v1/audio/transcriptions), and "
                    "nothing else",
                    m->id);
    else if (route->needs == SPEECH)
        server_fail(x, 400, "model", NULL, "%s is no speech model: it takes texts, and no audio",
                    m->id);
    else
        server_fail(x, 400, "model", NULL,
                    "the model is an encoder: it makes embeddings (/v1/embeddings), and no text");
    return false;
}

bool server_read_request(struct server *s, struct http_exchange *x, struct server_request *out)
{
    const struct server_route *route = http_route(x);
    bool has_body = strcmp(route->method, "POST") == 0;
    json_t *body = !has_body              ? NULL :
                   route->needs == SPEECH ? server_read_form(x) :
                                            server_read_object(s, x);
    *out = (struct server_request){ .server = s, .x = x, .body = body };
    if (has_body)
        return body && server_get_string(x, body, "model", &out->name);
    out->name = http_query(x, "model");
    return true;
}

bool server_use_model(struct server_request *r)
{
    struct server_model *m = server_find_model(r->server, r->x, r->name);
    bool needs_hash = m && server_wants_receipt(r->body) && !m->sha256[0];
    if (m && m->state == SERVER_MODEL_READY && !needs_hash) {
        r->model = m;
        m->last_used = app_seconds();
        m->n_users++; /* it stays loaded */
    } else if (m) {
        m->wants_hash |= needs_hash;
        wait_for(m, r->x, needs_hash);
    }
    if (needs_hash)
        server_take_hash(r->server);
    return r->model;
}

void server_prepare_request(struct server_request *r)
{
    const struct server_route *route = http_route(r->x);
    if (check_model(r->model, r->x, route))
        r->commit = route->answer(r->model, r->x, r->body);
}

void server_end_request(struct server_request *r)
{
    if (r->commit.run)
        r->commit.run(r->model, r->x, r->commit.own);
    if (r->model) {
        r->model->n_users--;
        http_free_body(r->x);
    }
    json_decref(r->body);
}

void server_ask_model(struct server *s, struct http_exchange *x)
{
    struct server_request r;
    if (server_read_request(s, x, &r) && server_use_model(&r))
        server_prepare_request(&r);
    server_end_request(&r);
}

static void go_on(struct server_waiter *w)
{
    struct http_exchange *x = w->x;
    struct server *s = w->model->server;
    leave_waiting(w);
    if (!http_client_is_gone(x)) /* else the exchange ends */
        server_handle(s, x);
}

/* Whether it waits for the hash of a model that is loaded. */
static bool waits_for_hash(const struct server_waiter *w)
{
    return w->needs_hash && w->model->state >= SERVER_MODEL_READY;
}

/* Answers that the model, or the hash of its file, did not come. Both texts follow the name. */
static void fail(struct server_waiter *w, const char *no_model, const char *no_hash)
{
    struct http_exchange *x = w->x;
    const char *id = w->model->id;
    bool hashed = waits_for_hash(w);
    leave_waiting(w);
    server_fail(x, 503, hashed ? "akunu.receipt" : "model", NULL, "the %smodel %s %s",
                hashed ? "file of the " : "", id, hashed ? no_hash : no_model);
}

void server_end_waiting(struct server_model *m, bool good)
{
    size_t n = 0;
    for (const struct server_waiter *w = m->waiters; w; w = w->next)
        n++;
    for (; n > 0; n--) { /* whoever has to wait again comes last */
        struct server_waiter *w = m->waiters;
        if (good || (m->state == SERVER_MODEL_CLOSING && !w->needs_hash))
            go_on(w);
        else
            fail(w, "cannot be loaded; the server's log says why",
                 "cannot be hashed; the server's log says why");
    }
}

void server_expire_waiters(struct server_model *m)
{
    double timeout = (double)m->server->options->server.timeout;
    for (struct server_waiter *w = m->waiters, *next; w; w = next) {
        next = w->next;
        if (timeout > 0.0 && http_age(w->x) > timeout) {
            http_add_header(w->x, "Retry-After", "10");
            fail(w, "was not loaded in time (--timeout)", "was not hashed in time (--timeout)");
        }
    }
}

void server_route(struct http_exchange *x, struct server *s)
{
    const struct server_route *route = http_route(x);
    if (!check_state(x, s, route)) /* it may have changed while the body came */
        return;
    if (route->handle)
        route->handle(s, x);
    else
        server_handle(s, x);
}

/* ---- Counting ----------------------------------------------------------- */
void server_count_answer(struct http_exchange *x, struct server *s)
{
    static const unsigned codes[] = { 200, 204, 400, 401, 403, 404, 405, 408,
                                      413, 415, 429, 431, 500, 501, 503 };
    /* none if the request was refused before it was checked */
    const struct server_route *route = http_route(x) ? http_route(x) : find_route(x);
    size_t i = route ? (size_t)(route - routes) : N_ROUTES, k = 0;
    while (k < sizeof codes / sizeof *codes && codes[k] != http_code(x))
        k++;
    s->n_requests[i * SERVER_CODES_MAX + k]++;
}
