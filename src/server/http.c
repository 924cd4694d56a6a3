/* The event loop and libmicrohttpd behind it. The library runs without a thread of its own: its
 * epoll descriptor is one of ours, beside signals, wakes and the sockets of exchanges that wait.
 *
 * What the library (0.9.75) does not do is done here:
 * - A suspended connection is not watched; a client that leaves is seen by our own epoll set.
 * - Its time-out counts idle time, so a byte a second would hold a connection for ever: headers and
 *   bodies have deadlines.
 * - Repeated lengths, and a length beside chunks, pass its strict mode: they are refused.
 * - Of a client that leaves in the middle of a body it waits for the rest: we look.
 * - It must not be stopped while connections are suspended: all are resumed first. */
#include "server/http.h"
#include "server/headers.h"
#include "server/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_SECONDS = 10, /* from a request's first byte to its last header */
    BODY_SECONDS = 20,   /* for a body, and a second more for each BODY_RATE bytes */
    BODY_RATE = 16384,
    WRITE_BLOCK = 32768,
    DRAINED_BYTES = 1 << 18,
};

struct http_connection {
    struct http_server *server;
    struct http_connection *next, **link;
    int fd;
    struct http_exchange *exchange; /* NULL: between requests */
    double since;                   /* when the connection, or its last answer, ended */
    double first_byte;              /* of the request whose headers are not complete; 0: none */
    uint64_t received;              /* bytes at `since` */
    char client[INET6_ADDRSTRLEN];
};

enum exchange_state { RECEIVING, WAITING, ANSWERED, STREAMING };

struct http_exchange {
    struct http_server *server;
    struct http_connection *connection;
    struct MHD_Connection *mhd;
    char *method, *path;
    bool is_1_0;
    enum exchange_state state;
    bool is_suspended, is_watched, client_gone, is_finished, is_refused;
    double started, last_read;
    char *body;
    size_t n_body, body_capacity;
    unsigned code;
    struct MHD_Response *response; /* until it is queued */
    struct header {
        const char *name;
        char *value;
        struct header *next;
    } * headers;
    char *out; /* written, not read yet: out[at … n) */
    size_t out_at, out_n, out_capacity;
    struct http_exchange *resumed; /* next in the list of those to resume */
    bool resumes;
    uint64_t number, counts[HTTP_COUNTS];
    bool is_held, resumes_later; /* resumes_later: when it is released */
    void *data;
};

struct http_server {
    struct http_handlers handlers;
    struct http_params params;
    struct MHD_Daemon *daemon;
    struct http_connection *connections;
    unsigned n_connections, n_exchanges;
    uint64_t last_number;
    size_t n_buffered; /* bytes of bodies and unread answers */
    struct http_exchange *to_resume;
    int listener, epoll, wake, signals;
    bool stops, is_listening;
    sigset_t old_signals;
    char address[256], unix_path[108];
};

/* What an epoll event is about; else it is an exchange. */
static char about_daemon, about_wake, about_signal;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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
    return now() - x->started;
}

uint64_t http_number(const struct http_exchange *x)
{
    return x->number;
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
static void suspend(struct http_exchange *x)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = x };
    if (x->is_suspended)
        return;
    x->is_suspended = true;
    MHD_suspend_connection(x->mhd);
    x->is_watched = epoll_ctl(x->server->epoll, EPOLL_CTL_ADD, x->connection->fd, &event) == 0;
}

/* Resumes the connection before the loop sleeps again. */
static void resume(struct http_exchange *x)
{
    x->resumes_later = x->is_held;
    if (!x->is_suspended || x->resumes || x->is_held)
        return;
    x->resumes = true;
    x->resumed = x->server->to_resume;
    x->server->to_resume = x;
}

void http_hold(struct http_exchange *x)
{
    x->is_held = true;
}

void http_release(struct http_exchange *x)
{
    x->is_held = false;
    if (x->resumes_later)
        resume(x);
    http_wake(x->server);
}

bool http_client_is_gone(const struct http_exchange *x)
{
    return x->client_gone;
}

static void resume_all(struct http_server *s)
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
static bool grow(struct http_exchange *x, char **bytes, size_t *capacity, size_t wanted)
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
    resume(x);
}

void http_answer(struct http_exchange *x, unsigned code, const char *type, const void *bytes,
                 size_t n)
{
    struct MHD_Response *response = NULL;
    if (x->code != 0)
        return;
    /* the library takes a pointer to data that it only reads */
    response = MHD_create_response_from_buffer(n, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);
    if (response) {
        x->state = ANSWERED;
        set_response(x, code, type, response);
    } else { /* out of memory: closing is all that can be done */
        x->client_gone = true;
        resume(x);
    }
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
        suspend(x);
        return 0;
    }
    n = n < max ? n : max;
    memcpy(to, x->out + x->out_at, n);
    x->out_at += n;
    x->last_read = now();
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
    x->last_read = now();
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
    if (x->out_n + n > x->out_capacity && !grow(x, &x->out, &x->out_capacity, 2 * (x->out_n + n)))
        return false;
    if (x->out_n == 0)
        x->last_read = now();
    memcpy(x->out + x->out_n, bytes, n);
    x->out_n += n;
    resume(x);
    return true;
}

void http_finish(struct http_exchange *x)
{
    x->is_finished = true;
    resume(x);
}

/* ---- Exchanges ---------------------------------------------------------- */
static void free_exchange(struct http_exchange *x)
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

static struct http_exchange *new_exchange(struct http_connection *c, struct MHD_Connection *mhd,
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
                                 .started = now(),
                                 .number = ++c->server->last_number };
    if (!x->method || !x->path) {
        free_exchange(x);
        return NULL;
    }
    c->exchange = x;
    c->server->n_exchanges++;
    c->first_byte = 0.0;
    return x;
}

static uint64_t count_received(int fd)
{
    struct tcp_info info = { 0 };
    socklen_t n = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.tcpi_bytes_received : 0;
}

static void end_exchange(struct http_exchange *x, bool client_gone)
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
    c->exchange = NULL;
    c->since = now();
    c->received = count_received(c->fd);
    free_exchange(x);
}

static enum MHD_Result queue_response(struct http_exchange *x)
{
    struct MHD_Response *response = x->response;
    x->response = NULL;
    enum MHD_Result queued = MHD_queue_response(x->mhd, x->code, response);
    MHD_destroy_response(response);
    return queued;
}

/* ---- Bodies ------------------------------------------------------------- */
static enum MHD_Result add_request_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                          const char *value)
{
    (void)kind;
    http_headers_add(cls, name, value);
    return MHD_YES;
}

static void refuse(struct http_exchange *x, unsigned code, const char *message)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "{\"error\": {\"message\": \"%s\", \"type\": \"invalid_request_error\", "
                     "\"param\": null, \"code\": null}}",
                     message);
    http_answer(x, code, "application/json", text, (size_t)n);
}

/* Checks the headers; false: the exchange is answered. */
static bool begin_request(struct http_exchange *x)
{
    const char *length = http_header(x, "Content-Length");
    struct http_headers headers = { 0 };
    MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, add_request_header, &headers);
    const char *wrong = http_headers_check(&headers, x->is_1_0);
    x->is_refused = true; /* unless it passes: the body is not read, so the connection ends */
    if (wrong) {
        refuse(x, 400, wrong);
        return false;
    }
    if (headers.bytes > HTTP_HEADER_BYTES_MAX) {
        refuse(x, 431, "the headers are larger than 16 KiB");
        return false;
    }
    if (length && strtoull(length, NULL, 10) > x->server->params.max_body) {
        char text[128];
        snprintf(text, sizeof text, "the body is larger than %zu bytes",
                 x->server->params.max_body);
        refuse(x, 413, text);
        return false;
    }
    bool has_body =
        (length && strtoull(length, NULL, 10) > 0) || http_header(x, "Transfer-Encoding") != NULL;
    x->is_refused = has_body;
    if (!x->server->handlers.check(x, x->server->handlers.user))
        return false;
    x->is_refused = false;
    return true;
}

/* Adds to the body. Beyond the limit the rest is read and dropped: the answer comes at its end. */
static void add_body(struct http_exchange *x, const char *bytes, size_t n)
{
    size_t max = x->server->params.max_body;
    if (x->code != 0)
        return;
    if (n > max - x->n_body) {
        x->is_refused = true;
        refuse(x, 413, "the body is too large");
        return;
    }
    if (x->n_body + n > x->body_capacity &&
        !grow(x, &x->body, &x->body_capacity, 2 * (x->n_body + n))) {
        x->is_refused = true;
        http_add_header(x, "Retry-After", "1");
        refuse(x, 429, "there is no memory for the body now");
        return;
    }
    memcpy(x->body + x->n_body, bytes, n);
    x->n_body += n;
}

/* ---- Callbacks of libmicrohttpd ----------------------------------------- */
/* Decodes %XX in a path or a value. With a NUL among them the text stays as it is: it would end
 * there, and could name another route. */
static size_t unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls, (void)mhd;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n_data, void **own)
{
    struct http_server *s = cls;
    struct http_exchange *x = *own;
    if (!x) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        x = info && info->socket_context ?
                new_exchange(info->socket_context, mhd, method, url, version) :
                NULL;
        *own = x;
        if (!x)
            return MHD_NO;
        /* a response that is queued here ends the connection, and what was sent after it is lost */
        if (!begin_request(x) && x->is_refused)
            return x->response ? queue_response(x) : MHD_NO;
        return MHD_YES;
    }
    if (*n_data > 0) {
        add_body(x, data, *n_data);
        *n_data = 0;
        return MHD_YES;
    }
    if (x->client_gone)
        return MHD_NO;
    if (x->code == 0 && x->state == RECEIVING) {
        x->state = WAITING;
        s->handlers.handle(x, s->handlers.user);
    }
    if (x->client_gone)
        return MHD_NO;
    if (x->response)
        return queue_response(x);
    suspend(x);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **own,
                         enum MHD_RequestTerminationCode code)
{
    struct http_exchange *x = *own;
    (void)cls, (void)mhd;
    if (x)
        end_exchange(x, code != MHD_REQUEST_TERMINATED_COMPLETED_OK || x->client_gone);
    *own = NULL;
}

static void name_client(struct MHD_Connection *mhd, struct http_connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    snprintf(c->client, sizeof c->client, "unix");
    if (address && address->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr,
                  c->client, sizeof c->client);
    else if (address && address->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                  c->client, sizeof c->client);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **own,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = cls;
    struct http_connection *c = *own;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (!c)
            return;
        *c->link = c->next;
        if (c->next)
            c->next->link = c->link;
        s->n_connections--;
        free(c);
        *own = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    c = info ? calloc(1, sizeof *c) : NULL;
    *own = c;
    if (!c)
        return;
    *c = (struct http_connection){
        .server = s, .fd = info->connect_fd, .since = now(), .next = s->connections
    };
    c->link = &s->connections;
    if (c->next)
        c->next->link = &c->next;
    s->connections = c;
    s->n_connections++;
    name_client(mhd, c);
}

/* ---- Deadlines ---------------------------------------------------------- */
/* Ends a connection to whose request nothing was answered yet. */
static void cut_off(struct http_connection *c)
{
    static const char body[] = "{\"error\": {\"message\": \"the request did not come in time\", "
                               "\"type\": \"timeout\", \"param\": null, \"code\": null}}";
    char text[512];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
    if (!c->server->params.tls_key) /* there an answer would have to be encrypted */
        (void)send(c->fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(c->fd, SHUT_RDWR);
}

static void check_headers(struct http_connection *c, double at)
{
    if (c->first_byte <= 0.0 && count_received(c->fd) > c->received)
        c->first_byte = at;
    if (c->first_byte > 0.0 && at - c->first_byte > HEADER_SECONDS)
        cut_off(c);
}

/* Whether the client has closed its sending half, and all that it sent was read. */
static bool has_left(const struct http_connection *c)
{
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void check_exchange(struct http_exchange *x, double at)
{
    double timeout = x->server->params.timeout;
    if (x->state == RECEIVING && x->code == 0 && has_left(x->connection))
        shutdown(x->connection->fd, SHUT_RDWR);
    else if (x->state == RECEIVING && x->code == 0 &&
             at - x->started > BODY_SECONDS + (double)x->n_body / BODY_RATE)
        cut_off(x->connection);
    else if (x->state == STREAMING && timeout > 0.0 && x->out_n > x->out_at &&
             at - x->last_read > timeout)
        shutdown(x->connection->fd, SHUT_RDWR);
}

static void check_deadlines(struct http_server *s)
{
    double at = now();
    for (struct http_connection *c = s->connections; c; c = c->next)
        if (c->exchange)
            check_exchange(c->exchange, at);
        else
            check_headers(c, at);
}

/* Makes room for new connections: the one that is idle for the longest time goes. */
static void close_idle(struct http_server *s)
{
    struct http_connection *longest = NULL;
    if (s->n_connections < HTTP_CONNECTIONS_MAX - 8)
        return;
    for (struct http_connection *c = s->connections; c; c = c->next)
        if (!c->exchange && (!longest || c->since < longest->since))
            longest = c;
    if (longest)
        shutdown(longest->fd, SHUT_RDWR);
}

/* ---- Listening ---------------------------------------------------------- */
static char failure[512];

static int fail_listen(const char *where, const char *why)
{
    snprintf(failure, sizeof failure, "%s: %s", where, why);
    return -1;
}

/* A Unix socket: one that nothing listens on is replaced, anything else is not. */
static int listen_unix(struct http_server *s, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat st;
    if (strlen(path) >= sizeof address.sun_path)
        return fail_listen(path, "the path of a Unix socket has at most 107 bytes");
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_listen(path, strerror(errno));
    if (lstat(path, &st) == 0) {
        bool in_use =
            !S_ISSOCK(st.st_mode) || connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
        close(fd);
        if (in_use)
            return fail_listen(path, S_ISSOCK(st.st_mode) ? "another server listens on it" :
                                                            "it exists and is not a socket");
        unlink(path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return fail_listen(path, strerror(errno));
    }
    mode_t mask = umask(0177);
    int bound = bind(fd, (struct sockaddr *)&address, sizeof address);
    umask(mask);
    if (bound != 0 || listen(fd, 1024) != 0) {
        fail_listen(path, strerror(errno));
        close(fd);
        return -1;
    }
    strcpy(s->unix_path, path);
    snprintf(s->address, sizeof s->address, "%s", path);
    return fd;
}

static void show_address(struct http_server *s, int fd)
{
    struct sockaddr_storage address = { 0 };
    socklen_t n = sizeof address;
    char host[INET6_ADDRSTRLEN] = "", port[8] = "";
    if (getsockname(fd, (struct sockaddr *)&address, &n) == 0)
        getnameinfo((struct sockaddr *)&address, n, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(s->address, sizeof s->address, strchr(host, ':') ? "%s://[%s]:%s" : "%s://%s:%s",
             s->params.tls_key ? "https" : "http", host, port);
}

static int listen_tcp(struct http_server *s, const char *host, unsigned port)
{
    char service[8], where[300];
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    int fd = -1, error = 0, on = 1;
    snprintf(service, sizeof service, "%u", port);
    snprintf(where, sizeof where, "%s port %s", host, service);
    int code = getaddrinfo(host, service, &hints, &found);
    if (code != 0)
        return fail_listen(where, gai_strerror(code));
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
        if (fd >= 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1024) == 0)
            break;
        error = errno;
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    if (fd < 0)
        return fail_listen(where, strerror(error));
    show_address(s, fd);
    return fd;
}

static bool is_unix_path(const char *host)
{
    size_t n = strlen(host);
    return n > 5 && strcmp(host + n - 5, ".sock") == 0;
}

/* ---- The server --------------------------------------------------------- */
static bool watch(struct http_server *s, int fd, void *about)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = about };
    return fd >= 0 && epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int open_signals(struct http_server *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, &s->old_signals);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static bool start_daemon(struct http_server *s)
{
    bool tls = s->params.tls_key != NULL;
    const struct MHD_OptionItem tls_options[] = {
        { MHD_OPTION_HTTPS_CERT_CALLBACK, 0, tls_callback() }, { MHD_OPTION_END, 0, NULL }
    };
    const struct MHD_OptionItem no_options[] = { { MHD_OPTION_END, 0, NULL } };
    fcntl(s->listener, F_SETFL, fcntl(s->listener, F_GETFL) | O_NONBLOCK);
    s->daemon = MHD_start_daemon(
        (tls ? MHD_USE_TLS : 0u) | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, s, MHD_OPTION_LISTEN_SOCKET, s->listener, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(3 * HTTP_HEADER_BYTES_MAX),
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CONNECTIONS_MAX, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_ARRAY,
        tls ? tls_options : no_options, MHD_OPTION_END);
    return s->daemon != NULL;
}

static int open_listener(struct http_server *s)
{
    if (s->params.listener >= 0) {
        show_address(s, s->params.listener);
        return s->params.listener;
    }
    return is_unix_path(s->params.host) ? listen_unix(s, s->params.host) :
                                          listen_tcp(s, s->params.host, s->params.port);
}

bool http_set_certificate(const char *key, const char *certificate, const char **why)
{
    struct tls_certificate *read = tls_read(key, certificate, why);
    if (read)
        tls_use(read);
    return read != NULL;
}

struct http_server *http_new(const struct http_params *params, const struct http_handlers *handlers,
                             const char **why)
{
    struct http_server *s = calloc(1, sizeof *s);
    *why = failure;
    snprintf(failure, sizeof failure, "out of memory");
    if (!s)
        return NULL;
    *s = (struct http_server){
        .handlers = *handlers, .params = *params, .listener = -1, .signals = -1
    };
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    s->signals = open_signals(s);
    s->listener = open_listener(s);
    if (s->listener < 0) {
        http_free(s);
        return NULL;
    }
    s->is_listening = true;
    if (params->tls_key && !http_set_certificate(params->tls_key, params->tls_certificate, why)) {
        http_free(s);
        return NULL;
    }
    snprintf(failure, sizeof failure, "the HTTP server cannot be started");
    const union MHD_DaemonInfo *info =
        start_daemon(s) ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info || !watch(s, info->epoll_fd, &about_daemon) || !watch(s, s->wake, &about_wake) ||
        !watch(s, s->signals, &about_signal)) {
        http_free(s);
        return NULL;
    }
    return s;
}

void http_free(struct http_server *s)
{
    if (!s)
        return;
    if (s->daemon) {
        for (struct http_connection *c = s->connections; c; c = c->next)
            if (c->exchange) {
                c->exchange->client_gone = true;
                resume(c->exchange);
            }
        resume_all(s);
        MHD_run(s->daemon);
        MHD_stop_daemon(s->daemon); /* closes the listener too */
    } else if (s->listener >= 0) {
        close(s->listener);
    }
    tls_close();
    if (s->unix_path[0])
        unlink(s->unix_path);
    if (s->epoll >= 0)
        close(s->epoll);
    if (s->wake >= 0)
        close(s->wake);
    if (s->signals >= 0)
        close(s->signals);
    pthread_sigmask(SIG_SETMASK, &s->old_signals, NULL);
    free(s);
}

const char *http_address(const struct http_server *s)
{
    return s->address;
}

void http_stop(struct http_server *s)
{
    s->stops = true;
}

void http_wake(struct http_server *s)
{
    uint64_t one = 1;
    (void)!write(s->wake, &one, sizeof one);
}

void http_close_listener(struct http_server *s)
{
    if (s->is_listening)
        MHD_quiesce_daemon(s->daemon);
    if (s->is_listening)
        close(s->listener);
    s->is_listening = false;
}

size_t http_count_buffered(const struct http_server *server)
{
    return server->n_buffered;
}

unsigned http_count_connections(const struct http_server *s)
{
    return s->n_connections;
}

unsigned http_count_exchanges(const struct http_server *s)
{
    return s->n_exchanges;
}

/* ---- The loop ----------------------------------------------------------- */
static void take_wake(struct http_server *s)
{
    uint64_t n;
    (void)!read(s->wake, &n, sizeof n);
    s->handlers.wake(s->handlers.user);
}

static void take_signals(struct http_server *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == (ssize_t)sizeof info)
        s->handlers.signal((int)info.ssi_signo, s->handlers.user);
}

/* The client has closed its connection, or its sending half. */
static void take_leave(struct http_exchange *x)
{
    x->client_gone = true;
    resume(x);
}

static void take_event(struct http_server *s, const struct epoll_event *event)
{
    if (event->data.ptr == &about_wake)
        take_wake(s);
    else if (event->data.ptr == &about_signal)
        take_signals(s);
    else if (event->data.ptr != &about_daemon)
        take_leave(event->data.ptr);
}

static bool run(struct http_server *s, const char **why)
{
    enum { EVENTS_MAX = 64, TICK_MS = 1000 };
    struct epoll_event events[EVENTS_MAX];
    double next_tick = now();
    while (!s->stops) {
        resume_all(s);
        MHD_run(s->daemon);
        if (s->to_resume) /* an answer came at once */
            continue;
        double left = next_tick - now();
        if (left <= 0.0) {
            next_tick = now() + 1e-3 * TICK_MS;
            close_idle(s);
            check_deadlines(s);
            s->handlers.tick(s->handlers.user);
            continue;
        }
        MHD_UNSIGNED_LONG_LONG own = TICK_MS;
        int timeout = (int)(left * 1e3) + 1;
        if (MHD_get_timeout(s->daemon, &own) == MHD_YES && own < (unsigned)timeout)
            timeout = (int)own;
        pthread_mutex_unlock(s->params.lock);
        int n = epoll_wait(s->epoll, events, EVENTS_MAX, timeout);
        pthread_mutex_lock(s->params.lock);
        if (n < 0 && errno != EINTR) {
            snprintf(failure, sizeof failure, "waiting for events: %s", strerror(errno));
            *why = failure;
            return false;
        }
        for (int i = 0; i < n; i++)
            take_event(s, &events[i]);
    }
    return true;
}

bool http_run(struct http_server *s, const char **why)
{
    pthread_mutex_lock(s->params.lock);
    bool good = run(s, why);
    pthread_mutex_unlock(s->params.lock);
    return good;
}
