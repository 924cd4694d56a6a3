/* Exchanges: what came, suspending the connection while nothing is to be sent, and what goes out.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "apps/server/http_internal.h"

enum { WRITE_BLOCK = 32768, DRAINED_BYTES = 1 << 18 };

/* ---- Requests ----------------------------------------------------------- */
const char *http_method(const struct http_exchange *x)
{
    return x->method;
}

const char *http_path(const struct http_exchange *x)
{
    return x->path;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, name);
}

const char *http_query(const struct http_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_body(const struct http_exchange *x, size_t *n)
{
    *n = x->n_body;
    return x->body ? x->body : "";
}

void http_free_body(struct http_exchange *x)
{
    free(x->body);
    x->server->n_buffered -= x->body_capacity;
    x->body = NULL;
    x->n_body = x->body_capacity = 0;
}

bool http_is_1_0(const struct http_exchange *x)
{
    return x->is_1_0;
}

const char *http_client(const struct http_exchange *x)
{
    return x->connection->client;
}

double http_age(const struct http_exchange *x)
{
    return http_now() - x->started;
}

uint64_t http_number(const struct http_exchange *x)
{
    return x->number;
}

uint64_t *http_counts(struct http_exchange *x)
{
    return x->counts;
}

void http_set_route(struct http_exchange *x, const struct server_route *route)
{
    x->route = route;
}

const struct server_route *http_route(const struct http_exchange *x)
{
    return x->route;
}

void http_set_data(struct http_exchange *x, void *data)
{
    x->data = data;
}

void *http_data(const struct http_exchange *x)
{
    return x->data;
}

unsigned http_code(const struct http_exchange *x)
{
    return x->code;
}

size_t http_count_unread(const struct http_exchange *x)
{
    return x->out_n - x->out_at;
}

/* ---- Suspending --------------------------------------------------------- */
/* Lets the library leave the connection alone, and watches whether the client does. */
void http_suspend(struct http_exchange *x)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = x };
    if (x->is_suspended)
        return;
    x->is_suspended = true;
    MHD_suspend_connection(x->mhd);
    x->is_watched = epoll_ctl(x->server->epoll, EPOLL_CTL_ADD, x->connection->fd, &event) == 0;
}

void http_resume(struct http_exchange *x)
{
    if (!x->is_suspended || x->resumes || x->n_holds > 0)
        return;
    x->resumes = true;
    x->resumed = x->server->to_resume;
    x->server->to_resume = x;
}

void http_hold(struct http_exchange *x)
{
    x->n_holds++;
}

void http_release(struct http_exchange *x)
{
    if (--x->n_holds == 0)
        http_resume(x); /* without an answer it is suspended again */
    http_wake(x->server);
}

bool http_client_is_gone(const struct http_exchange *x)
{
    return x->client_gone;
}

void http_resume_all(struct http_server *s)
{
    while (s->to_resume) {
        struct http_exchange *x = s->to_resume;
        s->to_resume = x->resumed;
        x->resumes = x->is_suspended = false;
        if (x->is_watched)
            epoll_ctl(s->epoll, EPOLL_CTL_DEL, x->connection->fd, NULL);
        x->is_watched = false;
        MHD_resume_connection(x->mhd);
    }
}

/* ---- Buffers ------------------------------------------------------------ */
/* Enlarges a buffer of an exchange; false: it would be too much for all together. */
bool http_grow(struct http_exchange *x, char **bytes, size_t *capacity, size_t wanted)
{
    struct http_server *s = x->server;
    size_t more = wanted - *capacity, max = s->params.max_buffered;
    char *larger = max > 0 && s->n_buffered + more > max ? NULL : realloc(*bytes, wanted);
    if (!larger)
        return false;
    s->n_buffered += more;
    *bytes = larger;
    *capacity = wanted;
    return true;
}

/* ---- Answers ------------------------------------------------------------ */
void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
    struct header *header = malloc(sizeof *header);
    char *copy = strdup(value);
    if (!header || !copy) { /* the answer goes without it */
        free(header);
        free(copy);
        return;
    }
    *header = (struct header){ .name = name, .value = copy, .next = x->headers };
    x->headers = header;
}

static void free_headers(struct http_exchange *x)
{
    while (x->headers) {
        struct header *next = x->headers->next;
        free(x->headers->value);
        free(x->headers);
        x->headers = next;
    }
}

/* Queues the response, now or when the connection is resumed. */
static void set_response(struct http_exchange *x, unsigned code, const char *type,
                         struct MHD_Response *response)
{
    x->code = code;
    MHD_add_response_header(response, "Content-Type", type);
    for (const struct header *h = x->headers; h; h = h->next)
        MHD_add_response_header(response, h->name, h->value);
    if (x->is_refused)
        MHD_add_response_header(response, "Connection", "close");
    x->response = response;
    http_resume(x);
}

void http_answer(struct http_exchange *x, unsigned code, const char *type, const void *bytes,
                 size_t n)
{
    struct MHD_Response *response = NULL;
    if (x->code != 0)
        return;
    /* the library takes a pointer to data that it only reads */
    response = MHD_create_response_from_buffer(n, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
    x->is_finished = true;
    if (response)
        set_response(x, code, type, response);
    else /* out of memory: closing is all that can be done */
        http_resume(x);
}

/* The library asks for up to `max` bytes of a stream. */
static ssize_t read_stream(void *cls, uint64_t pos, char *to, size_t max)
{
    struct http_exchange *x = cls;
    size_t n = x->out_n - x->out_at;
    (void)pos;
    if (x->client_gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0 && x->is_finished)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        http_suspend(x);
        return 0;
    }
    n = n < max ? n : max;
    memcpy(to, x->out + x->out_at, n);
    x->out_at += n;
    if (x->out_at == x->out_n)
        x->out_at = x->out_n = 0;
    if (x->out_n - x->out_at < DRAINED_BYTES)
        x->server->handlers.drained(x, x->server->handlers.user);
    return (ssize_t)n;
}

bool http_begin(struct http_exchange *x, unsigned code, const char *type)
{
    if (x->code != 0 || x->client_gone)
        return false;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, WRITE_BLOCK, read_stream, x, NULL);
    if (!response)
        return false;
    x->state = STREAMING;
    set_response(x, code, type, response);
    return true;
}

bool http_write(struct http_exchange *x, const void *bytes, size_t n)
{
    if (x->client_gone || x->state != STREAMING || x->is_finished)
        return false;
    if (n == 0)
        return true;
    if (x->out_at > 0) {
        memmove(x->out, x->out + x->out_at, x->out_n - x->out_at);
        x->out_n -= x->out_at;
        x->out_at = 0;
    }
    if (x->out_n + n > x->out_capacity &&
        !http_grow(x, &x->out, &x->out_capacity, 2 * (x->out_n + n)))
        return false;
    memcpy(x->out + x->out_n, bytes, n);
    x->out_n += n;
    http_resume(x);
    return true;
}

void http_finish(struct http_exchange *x)
{
    x->is_finished = true;
    http_resume(x);
}

/* ---- Exchanges ---------------------------------------------------------- */
static void http_free_exchange(struct http_exchange *x)
{
    if (!x)
        return;
    free_headers(x);
    free(x->method);
    free(x->path);
    http_free_body(x);
    x->server->n_buffered -= x->out_capacity;
    free(x->out);
    free(x);
}

struct http_exchange *http_new_exchange(struct http_connection *c, struct MHD_Connection *mhd,
                                        const char *method, const char *path, const char *version)
{
    struct http_exchange *x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    *x = (struct http_exchange){ .server = c->server,
                                 .connection = c,
                                 .mhd = mhd,
                                 .method = strdup(method),
                                 .path = strdup(path),
                                 .is_1_0 = strcmp(version, "HTTP/1.0") == 0,
                                 .started = http_now(),
                                 .number = ++c->server->last_number };
    if (!x->method || !x->path) {
        http_free_exchange(x);
        return NULL;
    }
    c->exchange = x;
    c->server->n_exchanges++;
    c->first_byte = 0.0;
    return x;
}

uint64_t http_count_received(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t n = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.tcpi_bytes_received : 0;
}

/* Seconds without progress after which the library closes a connection; 0: never. It does not count
 * while a connection is suspended. */
static void set_timeout(struct MHD_Connection *mhd, double seconds)
{
    enum { SECONDS_MAX = 1 << 22 }; /* the library (0.9.75) has 32 bits for the milliseconds */
    MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT,
                              (unsigned)(seconds < SECONDS_MAX ? seconds : SECONDS_MAX));
}

void http_end_exchange(struct http_exchange *x, bool client_gone)
{
    struct http_connection *c = x->connection;
    if (x->is_watched)
        epoll_ctl(x->server->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    for (struct http_exchange **link = &x->server->to_resume; *link; link = &(*link)->resumed)
        if (*link == x) {
            *link = x->resumed;
            break;
        }
    x->server->n_exchanges--;
    x->server->handlers.end(x, client_gone, x->server->handlers.user);
    if (x->response)
        MHD_destroy_response(x->response);
    if (!client_gone) /* the connection may wait for its next request */
        set_timeout(x->mhd, 0.0);
    c->exchange = NULL;
    c->since = http_now();
    c->received = http_count_received(c->fd);
    http_free_exchange(x);
}

enum MHD_Result http_queue_response(struct http_exchange *x)
{
    set_timeout(x->mhd, x->server->params.timeout);
    struct MHD_Response *response = x->response;
    x->response = NULL;
    enum MHD_Result queued = MHD_queue_response(x->mhd, x->code, response);
    MHD_destroy_response(response);
    return queued;
}
