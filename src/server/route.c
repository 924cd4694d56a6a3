/* The table of routes, and what every request must pass: Host, Origin, key, method and type. */
#include "server/server.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct server_route {
    const char *method, *path; /* path: "/v1/models/" is a prefix */
    server_handler *handle;
    bool open;   /* needs no key */
    bool early;  /* also while the model is loaded */
    bool writes; /* not for encoders */
};

static const struct server_route routes[] = {
    { "GET", "/", server_page, true, true, false },
    { "POST", "/v1/chat/completions", server_chat_completions, false, false, true },
    { "POST", "/v1/completions", server_completions, false, false, true },
    { "POST", "/v1/chat/completions/input_tokens", server_chat_count, false, false, true },
    { "POST", "/v1/responses", server_responses, false, false, true },
    { "POST", "/v1/responses/input_tokens", server_responses_count, false, false, true },
    { "POST", "/v1/messages", server_messages, false, false, true },
    { "POST", "/v1/messages/count_tokens", server_count_tokens, false, false, true },
    { "GET", "/api/version", server_ollama_version, false, true, false },
    { "GET", "/api/tags", server_ollama_tags, false, false, false },
    { "GET", "/api/ps", server_ollama_ps, false, false, false },
    { "POST", "/api/show", server_ollama_show, false, false, false },
    { "POST", "/api/chat", server_ollama_chat, false, false, true },
    { "POST", "/api/generate", server_ollama_generate, false, false, true },
    { "POST", "/api/embed", server_embeddings, false, false, false },
    { "POST", "/v1/embeddings", server_embeddings, false, false, false },
    { "GET", "/v1/models", server_models, false, false, false },
    { "GET", "/v1/models/", server_model, false, false, false },
    { "GET", "/health", server_health, true, true, false },
    { "GET", "/v1/health", server_health, true, true, false },
    { "GET", "/props", server_props, false, false, true },
    { "POST", "/completion", server_completion, false, false, true },
    { "POST", "/completions", server_completion, false, false, true },
    { "POST", "/infill", server_infill, false, false, true },
    { "POST", "/tokenize", server_tokenize, false, false, false },
    { "POST", "/detokenize", server_detokenize, false, false, false },
    { "POST", "/apply-template", server_apply_template, false, false, true },
    { "GET", "/metrics", server_metrics, false, true, false },
};
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
    if (is_own_host(host, n) || is_listed(s->options->allowed_hosts, host, n))
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
    if (is_listed(s->options->cors_origins, origin, strlen(origin))) {
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

static bool check_type(struct http_exchange *x)
{
    const char *type = http_header(x, "Content-Type");
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
    } else if (route->writes && !s->scheduler) {
        server_fail(x, 400, "model", NULL,
                    "the model is an encoder: it makes embeddings "
                    "(/v1/embeddings), and no text");
    }
    return http_code(x) == 0;
}

bool server_check(struct http_exchange *x, struct server *s)
{
    char methods[64], shown[CLI_SHOWN_BYTES];
    const struct server_route *route = find_route(x);
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
        server_fail(x, 404, NULL, NULL, "there is no route %s", cli_show_text(http_path(x), shown));
        return false;
    }
    if (!route) {
        http_add_header(x, "Allow", methods);
        server_fail(x, 405, NULL, NULL, "%s allows %s", cli_show_text(http_path(x), shown),
                    methods);
        return false;
    }
    return check_type(x) && check_state(x, s, route);
}

void server_route(struct http_exchange *x, struct server *s)
{
    const struct server_route *route = find_route(x);
    if (check_state(x, s, route)) /* it may have changed while the body came */
        route->handle(s, x);
}

/* ---- Counting ----------------------------------------------------------- */
void server_count_answer(struct http_exchange *x, struct server *s)
{
    static const unsigned codes[] = { 200, 204, 400, 401, 403, 404, 405,
                                      408, 413, 415, 429, 431, 500, 503 };
    const struct server_route *route = find_route(x);
    size_t i = route ? (size_t)(route - routes) : N_ROUTES, k = 0;
    while (k < sizeof codes / sizeof *codes && codes[k] != http_code(x))
        k++;
    s->n_requests[i * SERVER_CODES_MAX + k]++;
}
