/* Requests byte by byte: what is refused because another program could read it in another way, what
 * browsers could be made to send, headers that do not come, and what has to work. */
#include "tests/apps/server/client.h"

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

/* Headers that do not come are a 408 after ten seconds, however slowly they come; meanwhile others
 * are served. Too slow for each run: AKUNU_TEST_FULL=1. */
START_TEST(slow_headers)
{
    static const char begin[] = "GET /health HTTP/1.1\r\nHost: ";
    if (!test_is_full())
        return;
    int fd = open_connection(&server), idle = open_connection(&server);
    send_text(fd, begin, strlen(begin));
    for (int i = 0; i < 10; i++) {
        nap(1.0);
        send_text(fd, "a", 1);
        struct answer a = ask(&server, "/health", "");
        json_decref(json_of(&a, 200));
    }
    struct answer a = read_answer(fd);
    json_decref(json_of(&a, 408));
    send_text(idle, LINE "Host: localhost\r\n" END, strlen(LINE "Host: localhost\r\n" END));
    a = read_answer(idle); /* a connection without a request stays */
    json_decref(json_of(&a, 200));
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
    const TTest *const tests[] = {
        raw_requests, headers, pipelined, too_large, slow_headers, NULL
    };
    return run_server_tests("hostile", start, stop, tests);
}
