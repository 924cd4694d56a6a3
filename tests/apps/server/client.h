/* A server as a child process, and an HTTP client that sends what it is told, byte by byte. */
#ifndef AK_TESTS_APPS_SERVER_CLIENT_H
#define AK_TESTS_APPS_SERVER_CLIENT_H

#include "tests/test.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct child {
    pid_t pid;
    int port, errors; /* errors: its standard error */
    char path[108];   /* of its socket in the file system; "": it has a port */
};

static inline void nap(double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
    nanosleep(&t, NULL);
}

/* Reads standard error up to the line that has the address, which is a port, or a path of /tmp. */
static inline void read_address(struct child *child)
{
    static char text[8192];
    size_t n = 0;
    for (;;) {
        ssize_t got = read(child->errors, text + n, sizeof text - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        ck_assert_msg(got > 0, "the server ended: %.*s", (int)n, text);
        n += (size_t)got;
        text[n] = '\0';
        const char *port = strstr(text, "://127.0.0.1:"), *path = strstr(text, ": /tmp/");
        const char *address = port ? port : path;
        if (!address || !strchr(address, '\n'))
            continue;
        if (port)
            child->port = atoi(port + strlen("://127.0.0.1:"));
        else
            sscanf(path, ": %107s", child->path);
        return;
    }
}

static inline const char *test_model(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/model.gguf", getenv("AK_TEST_DATA"));
    return path;
}

/* Starts a program, found on the PATH, that tells the address of a server on standard error.
 * Without `has_input` its descriptor 0 is closed. */
static inline struct child start_program(const char *const *arguments, bool has_input)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    struct child child = { .pid = fork(), .errors = ends[0] };
    if (child.pid == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        if (!has_input)
            close(0);
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(99);
    }
    close(ends[1]);
    read_address(&child);
    fcntl(ends[0], F_SETFL, O_NONBLOCK); /* what comes later is not read; the pipe holds it */
    return child;
}

static inline const char *server_path(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/akunu-server", getenv("AK_TEST_BUILD"));
    return path;
}

/* Starts akunu-server with the tests' model and these flags, which end with NULL. */
static inline struct child start_server(const char *const *flags)
{
    const char *arguments[32] = { server_path(), "--port", "0", "-t", "2", "-c", "2048", "-m" };
    int n = 8;
    arguments[n++] = test_model();
    for (int i = 0; flags && flags[i]; i++)
        arguments[n++] = flags[i];
    if (strcmp(arguments[n - 1], "--") == 0) { /* the model without a flag, after all others */
        memmove(arguments + 7, arguments + 9, (size_t)(n - 9) * sizeof *arguments);
        arguments[n - 2] = test_model();
        arguments[n - 1] = NULL;
    }
    return start_program(arguments, true);
}

/* What the server has written to standard error since the last call. It logs an exchange when the
 * client has its answer, so the line may come later: waits for `until`. */
static inline const char *read_log(const struct child *child, const char *until)
{
    static char text[16384];
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; !strstr(text, until); i++) {
        ck_assert_msg(i < 200, "no %s in the log: %s", until, text);
        ssize_t got = read(child->errors, text + n, sizeof text - 1 - n);
        n += got > 0 ? (size_t)got : 0;
        text[n] = '\0';
        if (got <= 0)
            nap(0.05);
    }
    return text;
}

/* Ends the server; returns its exit code. */
static inline int stop_server(struct child *child, int signal)
{
    int status;
    kill(child->pid, signal);
    pid_t ended;
    do
        ended = waitpid(child->pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    ck_assert_int_eq(ended, child->pid);
    close(child->errors);
    ck_assert_msg(WIFEXITED(status), "the server ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* ---- Servers that do not start ------------------------------------------ */
/* Starts a server with these flags, which end with NULL, and without a port; `said` gets its
 * standard error up to `until`, or all of it if that does not come. */
static inline pid_t start_and_read(const char *const *flags, const char *until, char said[4096])
{
    const char *arguments[16] = { server_path(), "-t", "2", "-m", test_model() };
    int ends[2], n = 5;
    size_t length = 0;
    for (int i = 0; flags[i]; i++)
        arguments[n++] = flags[i];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(99);
    }
    close(ends[1]);
    said[0] = '\0';
    for (ssize_t got = 1; got > 0 && !strstr(said, until);) {
        got = read(ends[0], said + length, 4095 - length);
        length += got > 0 ? (size_t)got : 0;
        said[length] = '\0';
    }
    close(ends[0]);
    return pid;
}

/* A server that does not start says why, and has this exit code. */
static inline void refuses(const char *const *flags, int code, const char *why)
{
    char said[4096];
    int status;
    pid_t pid = start_and_read(flags, "a line that does not come", said);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code && strstr(said, why) &&
                      strncmp(said, "akunu-server: ", 14) == 0,
                  "status %x, expected %d: '%s' lacks '%s'", (unsigned)status, code, said, why);
}

/* ---- Requests ----------------------------------------------------------- */
enum { ANSWER_BYTES = 1 << 24 };
struct answer {
    int code;   /* 0: none came */
    char *text; /* with headers */
    const char *body;
    size_t n;
};

static inline int open_connection(const struct child *child)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)child->port) };
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    const bool is_unix = child->path[0] != '\0';
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    strcpy(un.sun_path, child->path);
    int fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(is_unix ? connect(fd, (struct sockaddr *)&un, sizeof un) :
                               connect(fd, (struct sockaddr *)&in, sizeof in),
                     0);
    struct timeval limit = { .tv_sec = 60 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static inline void send_text(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return;
        text += sent;
        n -= (size_t)sent;
    }
}

/* Joins the chunks of a body in place. */
static inline void join_chunks(struct answer *a)
{
    char *to = (char *)(uintptr_t)a->body;
    const char *from = a->body;
    for (;;) {
        char *end;
        unsigned long n = strtoul(from, &end, 16);
        from = strstr(end, "\r\n");
        if (!from || n == 0)
            break;
        memmove(to, from + 2, n);
        to += n;
        from += 2 + n + 2;
    }
    *to = '\0';
    a->n = (size_t)(to - a->body);
}

/* Reads until the server closes the connection. */
static inline struct answer read_answer(int fd)
{
    struct answer a = { .text = calloc(1, ANSWER_BYTES) };
    size_t n = 0;
    ck_assert_ptr_nonnull(a.text);
    while (n + 1 < ANSWER_BYTES) {
        ssize_t got = recv(fd, a.text + n, ANSWER_BYTES - 1 - n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    a.body = strstr(a.text, "\r\n\r\n");
    if (sscanf(a.text, "HTTP/1.1 %d", &a.code) != 1 || !a.body)
        a.code = 0;
    a.body = a.body ? a.body + 4 : "";
    a.n = n - (size_t)(a.body - a.text);
    if (a.code && strcasestr(a.text, "Transfer-Encoding: chunked"))
        join_chunks(&a);
    return a;
}

/* Sends a request, whose answer closes the connection. `headers`: lines that end with \r\n, or "".
 */
static inline int begin_request(const struct child *child, const char *method, const char *path,
                                const char *headers, const char *body)
{
    size_t capacity = strlen(body) + strlen(headers) + strlen(path) + 256;
    char *text = malloc(capacity);
    ck_assert_ptr_nonnull(text);
    int fd = open_connection(child);
    int n = snprintf(text, capacity,
                     "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s"
                     "Content-Length: %zu\r\n\r\n%s",
                     method, path, headers, strlen(body), body);
    send_text(fd, text, (size_t)n);
    free(text);
    return fd;
}

static inline struct answer ask_with(const struct child *child, const char *method,
                                     const char *path, const char *headers, const char *body)
{
    return read_answer(begin_request(child, method, path, headers, body));
}

static inline struct answer ask(const struct child *child, const char *path, const char *body)
{
    return ask_with(child, *body ? "POST" : "GET", path, "", body);
}

/* The JSON of an answer that must have this code. */
static inline json_t *json_of(struct answer *a, int code)
{
    json_error_t error;
    ck_assert_msg(a->code == code, "code %d, expected %d: %s", a->code, code, a->text);
    json_t *value = json_loads(a->body, JSON_ALLOW_NUL, &error);
    ck_assert_msg(value != NULL, "no JSON: %s", a->body);
    free(a->text);
    return value;
}

/* A string inside of a value: "choices.0.message.content". NULL: it is not there. */
static inline const json_t *at(const json_t *value, const char *path)
{
    while (value && *path) {
        char name[64];
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(name)) :
                                       json_object_get(value, name);
        path += n + (path[n] == '.');
    }
    return value;
}

static inline const char *text_at(const json_t *value, const char *path)
{
    const char *text = json_string_value(at(value, path));
    ck_assert_msg(text != NULL, "%s is no text", path);
    return text;
}

/* ---- Running ------------------------------------------------------------ */
/* The main() of a program of these tests: runs them, each between `start` and `stop`, which may be
 * NULL. `tests` ends with NULL. */
static inline int run_server_tests(const char *name, void (*start)(void), void (*stop)(void),
                                   const TTest *const *tests)
{
    if (access(server_path(), X_OK) != 0 || getenv("AK_EMULATED")) {
        printf("SKIPPED: there is no akunu-server\n");
        return 77;
    }
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);
    tcase_set_timeout(all, 240);
    tcase_add_checked_fixture(all, start, stop);
    for (; *tests; tests++)
        tcase_add_test(all, *tests);
    suite_add_tcase(suite, all);
    return test_run(suite);
}

#endif
