/* Requests byte by byte: what is refused because another program could read it in another way, what
 * browsers could be made to send, headers that do not come, and what has to work. */
#include "tests/apps/server/client.h"

#include <sys/resource.h>

#define TEXT "/v1/completions"

static struct child server;

static void start(void)
{
    server = start_server(NULL);
}

static void stop(void)
{
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
}

static struct answer send_raw(const struct child *child, const char *text)
{
    int fd = open_connection(child);
    send_text(fd, text, strlen(text));
    return read_answer(fd);
}

START_TEST(raw_requests)
{
#define LINE "GET /health HTTP/1.1\r\n"
#define END "Connection: close\r\n\r\n"
    static const struct {
        const char *text;
        int code; /* 0: the connection is closed, or any 400 */
    } cases[] = {
        { LINE "Host: localhost\r\n" END, 200 },
        { LINE "Host: evil.example\r\n" END, 403 },
        { LINE "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n" END, 403 },
        { LINE "Host: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n" END, 200 },
        { LINE END, 400 },
        { "GET /health HTTP/1.0\r\n\r\n", 200 },
        { "GET /health%00x HTTP/1.1\r\nHost: localhost\r\n" END, 404 },
        { "GET /%68ealth HTTP/1.1\r\nHost: localhost\r\n" END, 200 },
        { "POST " TEXT " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n" END
          "{}",
          400 },
        { "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
          "Transfer-Encoding: chunked\r\n" END "0\r\n\r\n",
          400 },
        { "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n" END, 413 },
        { "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" END
          "7\r\n{\"promp\r\n3\r\nt\":\r\n6\r\n \"a\"}\n\r\n0\r\n\r\n",
          200 },
        { "OPTIONS /health HTTP/1.1\r\nHost: localhost\r\n" END, 204 },
        { "nonsense\r\n\r\n", 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer a = send_raw(&server, cases[i].text);
        ck_assert_msg(a.code == cases[i].code || (cases[i].code == 0 && a.code == 400),
                      "%s: %d, expected %d: %s", cases[i].text, a.code, cases[i].code, a.text);
        free(a.text);
    }
    /* two requests at once on a connection that stays */
    struct answer a =
        send_raw(&server, LINE "Host: localhost\r\n\r\n" LINE "Host: localhost\r\n" END);
    ck_assert_int_eq(a.code, 200);
    ck_assert(strstr(a.body, "HTTP/1.1 200") != NULL);
    free(a.text);
    /* a client that leaves in the middle of a body holds its connection no longer */
    static const char half[] =
        "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{";
    time_t began = time(NULL);
    int fd = open_connection(&server);
    send_text(fd, half, strlen(half));
    shutdown(fd, SHUT_WR);
    a = read_answer(fd);
    ck_assert_int_eq(a.code, 0);
    ck_assert_int_lt(time(NULL) - began, 10);
    free(a.text);
}
END_TEST

/* Asks for /health on a connection that stays. */
static void ask_health(int fd)
{
    static const char request[] = LINE "Host: localhost\r\n\r\n";
    char text[1024];
    size_t n = 0;
    send_text(fd, request, strlen(request));
    while (n == 0 || text[n - 1] != '}') {
        ssize_t got = recv(fd, text + n, sizeof text - n, 0);
        ck_assert_int_gt(got, 0);
        n += (size_t)got;
    }
    ck_assert_int_eq(strncmp(text, "HTTP/1.1 200", 12), 0);
}

/* ---- Clients that do nothing -------------------------------------------- */
/* Waits until the server has only the connections that the test has open. */
static void wait_for_connections(const struct child *child, int n)
{
    char line[64];
    snprintf(line, sizeof line, "\nakunu_connections %d\n", n + 1); /* and the one that asks */
    for (int i = 0, found = 0; !found; i++) {
        struct answer a = ask(child, "/metrics", "");
        found = strstr(a.body, line) != NULL;
        ck_assert_msg(found || i < 200, "no%sin %s", line, a.body);
        free(a.text);
        nap(0.05);
    }
}

/* Headers and bodies that do not come in time are a 408, however slowly they come, and a stream
 * that is not read is cut off; meanwhile others are served, and a connection without a request
 * stays. --timeout bounds all of these. */
START_TEST(slow_clients)
{
    static const char header[] = "GET /health HTTP/1.1\r\nHost: ",
                      idle_request[] = LINE "Host: localhost\r\n" END,
                      body[] = "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Length: 4000\r\n\r\n{",
                      unread[] =
                          "{\"prompt\": \"Once\", \"max_tokens\": 100000, \"ignore_eos\": true, "
                          "\"stream\": true, \"logprobs\": 20, \"n\": 8}";
    static const char *const flags[] = { "--timeout", "1", "--metrics", "-c", "131072", NULL };
    struct child child = start_server(flags);
    int fds[] = { open_connection(&child), open_connection(&child) },
        idle = open_connection(&child);
    int lazy = begin_request(&child, "POST", TEXT, "", unread);
    send_text(fds[0], header, strlen(header));
    send_text(fds[1], body, strlen(body));
    for (int i = 0; i < 2; i++) {
        char byte;
        while (recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0) { /* no answer yet */
            for (int k = i; k < 2; k++)
                send_text(fds[k], "a", 1);
            struct answer a = ask(&child, "/health", "");
            json_decref(json_of(&a, 200));
            nap(0.1);
        }
        struct answer a = read_answer(fds[i]);
        json_decref(json_of(&a, 408));
    }
    wait_for_connections(&child, 1);
    send_text(idle, idle_request, strlen(idle_request));
    struct answer a = read_answer(idle);
    json_decref(json_of(&a, 200));
    close(lazy);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* Begins an answer that the client does not read: of `n` tokens with their log-probabilities in a
 * stream, or 0: whole, of more than a socket holds. */
static int begin_unread(const struct child *child, int n)
{
    enum { LETTERS = 1 << 20 };
    char *body = malloc(LETTERS + 256);
    ck_assert_ptr_nonnull(body);
    if (n > 0)
        sprintf(body,
                "{\"prompt\": \"Once\", \"n_predict\": %d, \"ignore_eos\": true, \"seed\": 1, "
                "\"stream\": true, \"n_probs\": 100}",
                n);
    else
        sprintf(body, "{\"messages\": [{\"role\": \"user\", \"content\": \"%0*d\"}]}", LETTERS, 0);
    int fd = begin_request(child, "POST", n > 0 ? "/completion" : "/apply-template", "", body);
    free(body);
    return fd;
}

/* A client that does not read its answer is cut off, be it whole or a stream: also if all that is
 * left of the stream is its last block, which the library has taken. A Unix socket holds about 200
 * KB whatever the client asks for, and each of the streams is less than half a block longer than
 * the one before. A connection that waits for its next request stays. */
START_TEST(unread_answers)
{
    enum { FIRST = 20, STREAMS = 18 };
    static const char last[] = LINE "Host: localhost\r\n" END;
    char folder[] = "/tmp/akunu-unread-XXXXXX", path[64];
    const char *const flags[] = { "--host", path, "--timeout", "2", "--metrics", NULL };
    int fds[STREAMS + 1], n_whole = 0;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s.sock", folder);
    struct child child = start_server(flags);
    int kept = open_connection(&child);
    ask_health(kept);
    for (int i = 0; i <= STREAMS; i++)
        fds[i] = begin_unread(&child, i < STREAMS ? FIRST + i : 0);
    wait_for_connections(&child, 1);
    for (int i = 0; i <= STREAMS; i++) {
        struct answer a = read_answer(fds[i]);
        n_whole += strstr(a.body, i < STREAMS ? "\"stop\":true" : "assistant\\n\"}") != NULL;
        free(a.text);
    }
    ck_assert_int_lt(n_whole, STREAMS);
    send_text(kept, last, strlen(last));
    struct answer a = read_answer(kept);
    json_decref(json_of(&a, 200));
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    rmdir(folder);
}
END_TEST

/* When there are nearly as many connections as may be, the one that is idle for longest is closed,
 * and no other. */
START_TEST(many_connections)
{
    enum { MANY = 4088 }; /* HTTP_CONNECTIONS_MAX of http.h, less 8 */
    static int fds[MANY];
    char byte;
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 2 * MANY)
        return;
    limit.rlim_cur = 2 * MANY;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int i = 0; i < MANY - 1; i++)
        fds[i] = open_connection(&server);
    ask_health(fds[0]); /* so it is idle for a shorter time than the next */
    fds[MANY - 1] = open_connection(&server);
    ck_assert_int_eq(recv(fds[1], &byte, 1, 0), 0);
    close(fds[1]);
    for (int i = 0; i < MANY; i += i == 0 ? 2 : 1)
        ck_assert_int_lt(recv(fds[i], &byte, 1, MSG_DONTWAIT), 0);
    for (int i = 2; i < MANY; i += MANY - 3) { /* the oldest and the newest of the others */
        send_text(fds[i], LINE "Host: localhost\r\n" END, strlen(LINE "Host: localhost\r\n" END));
        struct answer a = read_answer(fds[i]);
        json_decref(json_of(&a, 200));
    }
    for (int i = 0; i < MANY - 1; i += i == 0 ? 3 : 1)
        close(fds[i]);
}
END_TEST

/* ---- Headers ------------------------------------------------------------ */
#define POST "POST " TEXT " HTTP/1.1\r\nHost: localhost\r\n"
#define BODY "{\"prompt\": \"a\", \"max_tokens\": 1}"
#define CHUNKS "20\r\n" BODY "\r\n0\r\n\r\n"
#define LENGTH "Content-Length: 32\r\n"

START_TEST(headers)
{
    static const struct {
        const char *text;
        int code;
        const char *said; /* "": whatever; then the answer may be the library's */
    } cases[] = {
        { POST LENGTH END BODY, 200, "choices" },
        { POST "Transfer-Encoding: CHUNKED\r\n" END CHUNKS, 200, "choices" },
        { POST LENGTH LENGTH END BODY, 400, "more than one Content-Length" },
        { POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END CHUNKS, 400,
          "more than one Transfer-Encoding" },
        { POST LENGTH "Transfer-Encoding: chunked\r\n" END CHUNKS, 400,
          "Content-Length and Transfer-Encoding" },
        { POST "Transfer-Encoding: gzip\r\n" END, 400, "expected chunked" },
        { POST "Transfer-Encoding: gzip, chunked\r\n" END CHUNKS, 400, "expected chunked" },
        { POST "Transfer-Encoding: xchunked\r\n" END CHUNKS, 400, "expected chunked" },
        { POST "Transfer-Encoding: \vchunked\r\n" END CHUNKS, 400, "control character" },
        { "POST " TEXT " HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" CHUNKS, 400, "HTTP/1.0" },
        { POST "Content-Length: +32\r\n" END BODY, 400, "" },
        { POST "Content-Length: 32, 32\r\n" END BODY, 400, "" },
        { POST "Content-Length: 0x20\r\n" END BODY, 400, "" },
        { POST "Content-Length: -1\r\n" END BODY, 400, "" },
        { POST "Content-Length:\r\n" END BODY, 400, "" },
        { POST "Content-Length: 99999999999999999999999\r\n" END BODY, 413, "" },
        { POST "Content-Length : 32\r\n" END BODY, 400, "malformed name" },
        { POST LENGTH "X A: b\r\n" END BODY, 400, "malformed name" },
        { POST LENGTH "X\001A: b\r\n" END BODY, 400, "malformed name" },
        { POST LENGTH "X-A: b\rc\r\n" END BODY, 400, "control character" },
        { POST LENGTH "Host: other\r\n" END BODY, 400, "more than one Host" },
        { POST LENGTH "no colon\r\n" END BODY, 400, "" },
        { POST "Transfer-Encoding: chunked\r\n" END "zz\r\n{}\r\n0\r\n\r\n", 400, "" },
        { POST "Transfer-Encoding: chunked\r\n" END "-2\r\n{}\r\n0\r\n\r\n", 400, "" },
        { POST "Transfer-Encoding: chunked\r\n" END "2\r\n{}X0\r\n\r\n", 400, "" },
        { POST LENGTH "Expect: 100-continue\r\n" END BODY, 100, "choices" },
        { "GET /health HTTP/2.0\r\nHost: localhost\r\n" END, 505, "" },
        { "GET http://evil/health HTTP/1.1\r\nHost: localhost\r\n" END, 404, "no route" },
        { "GET /health%zz HTTP/1.1\r\nHost: localhost\r\n" END, 404, "no route" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct answer a = send_raw(&server, cases[i].text);
        ck_assert_msg(a.code == cases[i].code && strstr(a.text, cases[i].said),
                      "%s: %d, expected %d: %s", cases[i].text, a.code, cases[i].code, a.text);
        free(a.text);
    }
}
END_TEST

/* An answer of the checks leaves the requests behind it alone. */
START_TEST(pipelined)
{
    struct answer a = send_raw(&server, LINE "Host: localhost\r\n\r\n"
                                             "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n" LINE
                                             "Host: localhost\r\n" END);
    const char *second = strstr(a.body, "HTTP/1.1 404");
    ck_assert_int_eq(a.code, 200);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_nonnull(strstr(second, "HTTP/1.1 200"));
    free(a.text);
}
END_TEST

START_TEST(too_large)
{
    char *text = malloc(100000), *to = text;
    to += sprintf(to, LINE "Host: localhost\r\nX-A: ");
    memset(to, 'a', 20000);
    strcpy(to + 20000, "\r\n" END);
    struct answer a = send_raw(&server, text);
    json_decref(json_of(&a, 431));
    to = text + sprintf(text, LINE "Host: localhost\r\n");
    for (int i = 0; i < 3000; i++)
        to += sprintf(to, "X-%d: a\r\n", i);
    strcpy(to, END);
    a = send_raw(&server, text);
    ck_assert_int_eq(a.code, 431);
    free(a.text);
    to = text + sprintf(text, "GET /");
    memset(to, 'a', 70000);
    strcpy(to + 70000, " HTTP/1.1\r\nHost: localhost\r\n" END);
    a = send_raw(&server, text);
    ck_assert_int_eq(a.code, 414);
    free(a.text);
    free(text);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { raw_requests, headers,        pipelined,        too_large,
                                   slow_clients, unread_answers, many_connections, NULL };
    return run_server_tests("hostile", start, stop, tests);
}
