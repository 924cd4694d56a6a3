/* What the files of http.h share. */
#ifndef AK_APPS_SERVER_HTTP_INTERNAL_H
#define AK_APPS_SERVER_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <time.h>

#include "apps/server/http.h"

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

enum exchange_state { RECEIVING, WAITING, STREAMING };

struct http_exchange {
    struct http_server *server;
    struct http_connection *connection;
    struct MHD_Connection *mhd;
    char *method, *path;
    bool is_1_0;
    enum exchange_state state;
    bool is_suspended, is_watched, client_gone, is_finished, is_refused;
    double started;
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
    unsigned n_holds; /* http_hold without http_release: it stays suspended */
    const struct server_route *route;
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
    bool stops;
    sigset_t old_signals;
    char address[256], unix_path[108];
};

/* Seconds of a clock that only goes forward. */
static inline double http_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Exchanges: http_exchange.c ----------------------------------------- */
/* NULL: out of memory. */
struct http_exchange *http_new_exchange(struct http_connection *c, struct MHD_Connection *mhd,
                                        const char *method, const char *path, const char *version);
void http_end_exchange(struct http_exchange *x, bool client_gone);
/* Lets the library leave the connection alone, and watches whether the client does. */
void http_suspend(struct http_exchange *x);
/* Resumes the connection before the loop sleeps again, or when it is released. */
void http_resume(struct http_exchange *x);
void http_resume_all(struct http_server *s);
/* Enlarges a buffer of an exchange; false: it would be too much for all together. */
bool http_grow(struct http_exchange *x, char **bytes, size_t *capacity, size_t wanted);
/* Hands the response to the library, which closes the connection if the client reads nothing of it
 * for the time-out. */
enum MHD_Result http_queue_response(struct http_exchange *x);
/* Bytes that have come over a TCP connection. */
uint64_t http_count_received(int fd);

/* ---- Deadlines: http_deadlines.c ---------------------------------------- */
void http_check_deadlines(struct http_server *s);
/* Makes room for new connections: the one that is idle for the longest time goes. */
void http_close_idle(struct http_server *s);

/* ---- Listening: http_listen.c ------------------------------------------- */
/* The socket that s->params name; -1: http_failure says why. */
int http_open_listener(struct http_server *s);

/* The last failure of http_new or http_run. */
enum { HTTP_FAILURE_BYTES = 512 };
extern char http_failure[HTTP_FAILURE_BYTES];

#endif
