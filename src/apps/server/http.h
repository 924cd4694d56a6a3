/* HTTP server over libmicrohttpd: one thread, which runs http_run, calls all handlers.
 *
 * An exchange is a request and its answer. After the headers `check` may answer at once; after the
 * body `handle` answers, at once or later from the same thread. All handlers and functions are
 * called under params.lock, which http_run holds except while it waits. Another thread only calls
 * http_wake, unless `handle` called http_hold for it. */
#ifndef AK_APPS_SERVER_HTTP_H
#define AK_APPS_SERVER_HTTP_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;
struct server_route;
struct http_exchange;

struct http_handlers {
    /* The headers are there. False: it has answered, and the body is not read. */
    bool (*check)(struct http_exchange *x, void *user);
    /* The whole request is there. */
    void (*handle)(struct http_exchange *x, void *user);
    /* The exchange ends: it was answered, or the client is gone. It is freed afterwards. */
    void (*end)(struct http_exchange *x, bool client_gone, void *user);
    /* The client has read most of what http_write was given. */
    void (*drained)(struct http_exchange *x, void *user);
    void (*wake)(void *user); /* after http_wake */
    void (*tick)(void *user); /* about once a second */
    void (*signal)(int number, void *user);
    void *user;
};

enum { HTTP_CONNECTIONS_MAX = 4096, HTTP_HEADER_BYTES_MAX = 16384 };

struct http_params {
    const char *host; /* a name or an address; a path that ends in ".sock": a Unix socket */
    unsigned port;    /* 0: a free one */
    int listener;     /* a socket that listens already; -1: host and port */
    const char *tls_key, *tls_certificate; /* PEM texts, for http_new; NULL: plain HTTP */
    size_t max_body;                       /* bytes */
    size_t max_buffered; /* bytes of bodies and unread answers together; 0: no limit */
    double timeout; /* seconds in which a client has to read or to send something; 0: any time */
    pthread_mutex_t *lock;
};

/* Listens, and blocks SIGTERM, SIGINT and SIGHUP, which go to handlers->signal from now on. NULL:
 * *why has a message, valid until the next call. */
struct http_server *http_new(const struct http_params *params, const struct http_handlers *handlers,
                             const char **why);
/* Replaces the certificate and its key, PEM texts, for connections that begin later. False: *why
 * says what is wrong, and nothing changes. */
bool http_set_certificate(const char *key, const char *certificate, const char **why);
/* Closes all connections; open exchanges end. NULL allowed. */
void http_free(struct http_server *server);

/* "http://127.0.0.1:8080", "https://[::1]:8080" or a path. */
const char *http_address(const struct http_server *server);
/* Runs until http_stop; false: *why has a message. */
bool http_run(struct http_server *server, const char **why);
/* Makes http_run return. */
void http_stop(struct http_server *server);
/* Has the thread call handlers->wake soon. For any thread and for signal handlers. */
void http_wake(struct http_server *server);
/* Bytes of bodies and of answers that were not read. */
size_t http_count_buffered(const struct http_server *server);
unsigned http_count_connections(const struct http_server *server);
/* Requests that are not answered to their last byte. */
unsigned http_count_exchanges(const struct http_server *server);

/* ---- Requests ----------------------------------------------------------- */
const char *http_method(const struct http_exchange *x);
const char *http_path(const struct http_exchange *x); /* without the query */
/* NULL: there is none. Names in any case. */
const char *http_header(const struct http_exchange *x, const char *name);
const char *http_query(const struct http_exchange *x, const char *name);
const char *http_body(const struct http_exchange *x, size_t *n);
/* The body is not needed any more. */
void http_free_body(struct http_exchange *x);
bool http_is_1_0(const struct http_exchange *x);
/* "127.0.0.1"; "unix": a Unix socket. */
const char *http_client(const struct http_exchange *x);
/* Seconds since the headers came. */
double http_age(const struct http_exchange *x);

/* Number of the exchange, from 1. */
uint64_t http_number(const struct http_exchange *x);
/* Whatever the handlers keep with the exchange: HTTP_COUNTS counts, which begin with 0, and data.
 */
enum { HTTP_COUNTS = 3 };
uint64_t *http_counts(struct http_exchange *x);
/* The route that the path and the method name; NULL: none. */
void http_set_route(struct http_exchange *x, const struct server_route *route);
const struct server_route *http_route(const struct http_exchange *x);
void http_set_data(struct http_exchange *x, void *data);
void *http_data(const struct http_exchange *x);

/* ---- Other threads ------------------------------------------------------ */
/* Keeps the exchange until http_release, also if the client leaves. Meanwhile one other thread has
 * it, and needs no lock to read the request, to add headers, and to call http_answer and http_code.
 * Whoever holds it twice releases it twice. */
void http_hold(struct http_exchange *x);
void http_release(struct http_exchange *x);
bool http_client_is_gone(const struct http_exchange *x);

/* ---- Answers ------------------------------------------------------------ */
/* Adds a header to the answer that comes. The name lives as long as the program. */
void http_add_header(struct http_exchange *x, const char *name, const char *value);
/* Answers with these n bytes, which are copied. */
void http_answer(struct http_exchange *x, unsigned code, const char *type, const void *bytes,
                 size_t n);
/* Begins an answer of unknown length; http_write adds to it, http_finish ends it. False: out of
 * memory, or the client is gone. */
bool http_begin(struct http_exchange *x, unsigned code, const char *type);
bool http_write(struct http_exchange *x, const void *bytes, size_t n);
void http_finish(struct http_exchange *x);
/* Bytes that the client has not read yet. */
size_t http_count_unread(const struct http_exchange *x);
/* The code of the answer; 0: none yet. */
unsigned http_code(const struct http_exchange *x);

#endif
