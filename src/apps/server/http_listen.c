/* Sockets to listen on. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "apps/server/http_internal.h"

static int fail_listen(const char *where, const char *why)
{
    snprintf(http_failure, HTTP_FAILURE_BYTES, "%s: %s", where, why);
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

int http_open_listener(struct http_server *s)
{
    if (s->params.listener >= 0) {
        show_address(s, s->params.listener);
        return s->params.listener;
    }
    return is_unix_path(s->params.host) ? listen_unix(s, s->params.host) :
                                          listen_tcp(s, s->params.host, s->params.port);
}
