/* The life of akunu-server: its keys, its log, and what SIGHUP changes. */
#include "tests/server/client.h"

/* What the server has written to standard error since the last call. It logs an exchange when the
 * client has its answer, so the line may come later: waits for `until`. */
static const char *read_log(const struct child *child, const char *until)
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

/* A file of /proc/PID. */
static const char *read_proc(const struct child *child, const char *name, size_t *n)
{
    static char text[65536];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)child->pid, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    *n = fread(text, 1, sizeof text, file);
    fclose(file);
    return text;
}

/* Changes the text of a file in place. */
static void rewrite(int fd, const char *text)
{
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* ---- Keys --------------------------------------------------------------- */
START_TEST(keys)
{
    char path[] = "/tmp/akunu-keys-XXXXXX", header[128];
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, "# two\none \n two#\n", 17), 17);
    const char *const flags[] = { "--api-key-file", path, NULL };
    struct child child = start_server(flags);
    static const struct {
        const char *header;
        int code;
    } cases[] = {
        { "", 401 },
        { "Authorization: Bearer one\r\n", 200 },
        { "authorization: bearer  two\r\n", 200 },
        { "x-api-key: two\r\n", 200 },
        { "x-api-key: tw\r\n", 401 },
        { "Authorization: Bearer one two\r\n", 401 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(header, sizeof header, "%s", cases[i].header);
        struct answer a = ask_with(&child, "GET", "/v1/models", header, "");
        ck_assert_msg(a.code == cases[i].code, "%s: %s", header, a.text);
        ck_assert(a.code == 200 || strcasestr(a.text, "WWW-Authenticate: Bearer"));
        free(a.text);
    }
    struct answer a = ask(&child, "/health", "");
    json_decref(json_of(&a, 200));
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, "three\n", 6, 0), 6);
    kill(child.pid, SIGHUP);
    for (int i = 0, code = 0; code != 200; i++) {
        ck_assert_int_lt(i, 100);
        nap(0.05);
        a = ask_with(&child, "GET", "/v1/models", "x-api-key: three\r\n", "");
        code = a.code;
        free(a.text);
    }
    ck_assert_int_eq(ftruncate(fd, 0), 0); /* no key: the old one stays */
    kill(child.pid, SIGHUP);
    nap(0.2);
    a = ask_with(&child, "GET", "/v1/models", "x-api-key: three\r\n", "");
    ck_assert_int_eq(a.code, 200);
    free(a.text);
    close(fd);
    unlink(path);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* A key given as an argument or in the environment works, and others of the machine cannot read it.
 */
START_TEST(hidden_keys)
{
    static const char *const flags[][3] = { { "--api-key", "secret-1,secret-2" },
                                            { "--api-key=secret-1,secret-2" },
                                            { NULL } };
    size_t n;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!flags[i][0])
            setenv("AKUNU_API_KEY", "secret-1,secret-2", 1);
        struct child child = start_server(flags[i]);
        unsetenv("AKUNU_API_KEY");
        struct answer a = ask_with(&child, "GET", "/v1/models", "x-api-key: secret-2\r\n", "");
        json_decref(json_of(&a, 200));
        a = ask_with(&child, "GET", "/v1/models", "x-api-key: secret-\r\n", "");
        json_decref(json_of(&a, 401));
        const char *text = read_proc(&child, "cmdline", &n);
        ck_assert_ptr_null(memmem(text, n, "secret", 6));
        ck_assert(!flags[i][0] || memmem(text, n, "*****************", 17));
        text = read_proc(&child, "environ", &n);
        ck_assert_ptr_null(memmem(text, n, "secret", 6));
        ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    }
}
END_TEST

/* ---- Log ---------------------------------------------------------------- */
START_TEST(logged)
{
    char path[] = "/tmp/akunu-config-XXXXXX";
    int fd = mkstemp(path);
    const char *const flags[] = { "--config", path, "--api-key", "secret", NULL };
    static const char request[] =
        "{\"prompt\": \"Once upon\", \"max_tokens\": 3, \"ignore_eos\": true}";
    rewrite(fd, "log-format: json\n");
    struct child child = start_server(flags);
    struct answer a = ask_with(&child, "POST", "/v1/completions", "x-api-key: secret\r\n", request);
    const char *id = strcasestr(a.text, "X-Request-Id: req-");
    ck_assert_ptr_nonnull(id);
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(id + 14, "\r"), id + 14);
    json_t *answer = json_of(&a, 200);
    const char *text = read_log(&child, "client_left");
    json_error_t error;
    json_t *line = json_loads(strchr(text, '{'), JSON_DISABLE_EOF_CHECK, &error);
    ck_assert_msg(line != NULL, "no JSON: %s", text);
    ck_assert_str_eq(text_at(line, "id"), name);
    ck_assert_str_eq(text_at(line, "route"), "/v1/completions");
    ck_assert_int_eq(json_integer_value(at(line, "code")), 200);
    ck_assert_int_eq(json_integer_value(at(line, "generated_tokens")), 3);
    ck_assert_int_eq(json_integer_value(at(line, "prompt_tokens")),
                     json_integer_value(at(answer, "usage.prompt_tokens")));
    ck_assert(!strstr(text, "Once") && !strstr(text, "secret") && !strstr(text, "/tmp"));
    json_decref(line);
    json_decref(answer);

    rewrite(fd, "verbose: true\n"); /* text, and with /health */
    kill(child.pid, SIGHUP);
    read_log(&child, "were read again");
    nap(0.1);
    a = ask(&child, "/health", "");
    json_decref(json_of(&a, 200));
    text = read_log(&child, "GET /health 200");
    ck_assert(strstr(text, "req-") && !strchr(text, '{'));

    rewrite(fd, "verbose: 7\n"); /* wrong: the log stays as it was */
    kill(child.pid, SIGHUP);
    read_log(&child, "the log stays as it was");
    a = ask(&child, "/health", "");
    json_decref(json_of(&a, 200));
    read_log(&child, "GET /health 200");
    close(fd);
    unlink(path);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { keys, hidden_keys, logged, NULL };
    return run_server_tests("life", NULL, NULL, tests);
}
