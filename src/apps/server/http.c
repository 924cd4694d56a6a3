/* The event loop and libmicrohttpd behind it. The library runs without a thread of its own: its
 * epoll descriptor is one of ours, beside signals, wakes and the sockets of exchanges that wait.
 *
 * What the library (0.9.75) does not do is done here:
 * - A suspended connection is not watched; a client that leaves is seen by our own epoll set.
 * - Its time-out counts idle time, so a byte a second would hold a connection for ever: headers and
 *   bodies have deadlines. Only answers that are not read have that time-out.
 * - Repeated lengths, and a length beside chunks, pass its strict mode: they are refused.
 * - Of a client that leaves in the middle of a body it waits for the rest: we look.
 * - It must not be stopped while connections are suspended: all are resumed first. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "apps/server/headers.h"
#include "apps/server/http_internal.h"
#include "apps/server/tls.h"

/* What an epoll event is about; else it is an exchange. */
static char about_daemon, about_wake, about_signal;

char http_failure[HTTP_FAILURE_BYTES];

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
        !http_grow(x, &x->body, &x->body_capacity, 2 * (x->n_body + n))) {
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
                http_new_exchange(info->socket_context, mhd, method, url, version) :
                NULL;
        *own = x;
        if (!x)
            return MHD_NO;
        /* a response that is queued here ends the connection, and what was sent after it is lost */
        if (!begin_request(x) && x->is_refused)
            return x->response ? http_queue_response(x) : MHD_NO;
        return MHD_YES;
    }
    if (*n_data > 0) {
        add_body(x, data, *n_data);
        *n_data = 0;
        return MHD_YES;
    }
    if (x->client_gone)
        return MHD_NO;
    if (x->state == RECEIVING && !x->is_finished) {
        x->state = WAITING;
        s->handlers.handle(x, s->handlers.user);
    }
    if (x->client_gone)
        return MHD_NO;
    if (x->response)
        return http_queue_response(x);
    if (x->is_finished) /* there was no memory for the response */
        return MHD_NO;
    http_suspend(x);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **own,
                         enum MHD_RequestTerminationCode code)
{
    struct http_exchange *x = *own;
    (void)cls, (void)mhd;
    if (x)
        http_end_exchange(x, code != MHD_REQUEST_TERMINATED_COMPLETED_OK || x->client_gone);
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
        .server = s, .fd = info->connect_fd, .since = http_now(), .next = s->connections
    };
    c->link = &s->connections;
    if (c->next)
        c->next->link = &c->next;
    s->connections = c;
    s->n_connections++;
    name_client(mhd, c);
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
    *why = http_failure;
    snprintf(http_failure, HTTP_FAILURE_BYTES, "out of memory");
    if (!s)
        return NULL;
    *s = (struct http_server){
        .handlers = *handlers, .params = *params, .listener = -1, .signals = -1
    };
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    s->signals = open_signals(s);
    s->listener = http_open_listener(s);
    if (s->listener < 0) {
        http_free(s);
        return NULL;
    }
    if (params->tls_key && !http_set_certificate(params->tls_key, params->tls_certificate, why)) {
        http_free(s);
        return NULL;
    }
    snprintf(http_failure, HTTP_FAILURE_BYTES, "the HTTP server cannot be started");
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
                http_resume(c->exchange);
            }
        http_resume_all(s);
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
    http_resume(x);
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

/* Works until there is nothing to do, under the lock. Returns the milliseconds to wait for events;
 * -1: the server stops. */
static int run_until_idle(struct http_server *s, double *next_tick)
{
    enum { TICK_MS = 1000 };
    while (!s->stops) {
        http_resume_all(s);
        MHD_run(s->daemon);
        if (s->to_resume) /* an answer came at once */
            continue;
        double left = *next_tick - http_now();
        if (left <= 0.0) {
            *next_tick = http_now() + 1e-3 * TICK_MS;
            http_close_idle(s);
            http_check_deadlines(s);
            s->handlers.tick(s->handlers.user);
            continue;
        }
        MHD_UNSIGNED_LONG_LONG own = TICK_MS;
        int timeout = (int)(left * 1e3) + 1;
        if (MHD_get_timeout(s->daemon, &own) == MHD_YES && own < (unsigned)timeout)
            timeout = (int)own;
        return timeout;
    }
    return -1;
}

bool http_run(struct http_server *s, const char **why)
{
    enum { EVENTS_MAX = 64 };
    struct epoll_event events[EVENTS_MAX];
    double next_tick = http_now();
    for (int n = 0; n >= 0 || errno == EINTR;) {
        pthread_mutex_lock(s->params.lock);
        for (int i = 0; i < n; i++)
            take_event(s, &events[i]);
        int timeout = run_until_idle(s, &next_tick);
        pthread_mutex_unlock(s->params.lock);
        if (timeout < 0)
            return true;
        n = epoll_wait(s->epoll, events, EVENTS_MAX, timeout);
    }
    snprintf(http_failure, HTTP_FAILURE_BYTES, "waiting for events: %s", strerror(errno));
    *why = http_failure;
    return false;
}
