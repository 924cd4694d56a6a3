/* Deadlines of requests, and the limit of connections. Clients that do not read their answers are
 * the library's: http_queue_response. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "apps/server/http_internal.h"

enum {
    HEADER_SECONDS = 10, /* from a request's first byte to its last header, or the time-out */
    BODY_SECONDS = 20,   /* for a body, or the time-out; a second more for each BODY_RATE bytes */
    BODY_RATE = 16384,
};

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

/* These seconds, or those of the time-out if it is shorter. */
static double at_most(const struct http_server *s, double seconds)
{
    double timeout = s->params.timeout;
    return timeout > 0.0 && timeout < seconds ? timeout : seconds;
}

static void check_headers(struct http_connection *c, double at)
{
    if (c->first_byte <= 0.0 && http_count_received(c->fd) > c->received)
        c->first_byte = at;
    if (c->first_byte > 0.0 && at - c->first_byte > at_most(c->server, HEADER_SECONDS))
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
    if (x->state == RECEIVING && x->code == 0 && has_left(x->connection))
        shutdown(x->connection->fd, SHUT_RDWR);
    else if (x->state == RECEIVING && x->code == 0 &&
             at - x->started > at_most(x->server, BODY_SECONDS) + (double)x->n_body / BODY_RATE)
        cut_off(x->connection);
}

void http_check_deadlines(struct http_server *s)
{
    double at = http_now();
    for (struct http_connection *c = s->connections; c; c = c->next)
        if (c->exchange)
            check_exchange(c->exchange, at);
        else
            check_headers(c, at);
}

/* Makes room for new connections: the one that is idle for the longest time goes. */
void http_close_idle(struct http_server *s)
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
