/* The life of akunu-server: its keys, its log, and what SIGHUP changes. */
#include "tests/apps/server/client.h"

#include <sys/stat.h>
#include <sys/un.h>

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
/* All members of a line: time and seconds are of their form, the others what they must be. */
static void check_line(json_t *line, const char *id, const json_t *n_prompt)
{
    struct tm utc = { 0 };
    const char *end = strptime(text_at(line, "time"), "%Y-%m-%dT%H:%M:%SZ", &utc);
    ck_assert(end && !*end);
    ck_assert(json_is_real(at(line, "seconds")) && json_real_value(at(line, "seconds")) > 0.0);
    json_object_del(line, "time");
    json_object_del(line, "seconds");
    json_t *expected =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:O, s:i, s:i, s:b}", "id", id, "client", "127.0.0.1",
                  "method", "POST", "route", "/v1/completions", "code", 200, "prompt_tokens",
                  n_prompt, "cached_tokens", 0, "generated_tokens", 3, "client_left", 0);
    char *text = json_dumps(line, 0);
    ck_assert_msg(json_equal(line, expected), "%s", text);
    free(text);
    json_decref(expected);
}

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
    check_line(line, name, at(answer, "usage.prompt_tokens"));
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

/* ---- Starting ------------------------------------------------------------- */
/* Starts a server with these flags, which end with NULL, and without a port; `said` gets its
 * standard error up to `until`, or all of it if that does not come. */
static pid_t start_with(const char *const *flags, const char *until, char said[4096])
{
    static char program[4096];
    const char *arguments[16] = { program, "-t", "2", "-m", test_model() };
    int ends[2], n = 5;
    size_t length = 0;
    snprintf(program, sizeof program, "%s/akunu-server", getenv("AK_TEST_BUILD"));
    for (int i = 0; flags[i]; i++)
        arguments[n++] = flags[i];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execv(program, (char *const *)(uintptr_t)arguments);
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
static void refuses(const char *const *flags, int code, const char *why)
{
    char said[4096];
    int status;
    pid_t pid = start_with(flags, "a line that does not come", said);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code && strstr(said, why),
                  "status %x, expected %d: '%s' lacks '%s'", (unsigned)status, code, said, why);
}

static int bind_unix(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strcpy(address.sun_path, path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* A socket in the file system, for its owner alone. One that a server has left there is replaced;
 * what else is there stays. */
START_TEST(unix_sockets)
{
    char folder[] = "/tmp/akunu-life-XXXXXX", path[64], said[4096], too_long[200];
    const char *flags[] = { "--host", path, NULL };
    static const char request[] =
        "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct stat st;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s.sock", folder);
    strcpy(address.sun_path, path);
    for (int left = 0; left < 2; left++) {
        if (left)
            close(bind_unix(path));
        pid_t pid = start_with(flags, ".sock\n", said);
        ck_assert_msg(strstr(said, path) != NULL, "%s", said);
        ck_assert_int_eq(lstat(path, &st), 0);
        ck_assert_uint_eq(st.st_mode, S_IFSOCK | 0600);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status;
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
        send_text(fd, request, strlen(request));
        struct answer a = read_answer(fd);
        close(fd);
        json_decref(json_of(&a, 200));
        refuses(flags, 1, "another server listens on it");
        kill(pid, SIGTERM);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        ck_assert_int_ne(lstat(path, &st), 0); /* it is removed */
    }
    close(open(path, O_CREAT | O_WRONLY, 0600));
    refuses(flags, 1, "it exists and is not a socket");
    unlink(path);
    memset(too_long, 'a', 150);
    strcpy(too_long + 150, ".sock");
    flags[1] = too_long;
    refuses(flags, 1, "the path of a Unix socket has at most 107 bytes");
    rmdir(folder);
}
END_TEST

/* Under mpirun it joins the other ranks, or ends. */
START_TEST(without_open_mpi)
{
    static const char *const flags[] = { "--port", "0", NULL };
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("AKUNU_MPI", "/nowhere", 1);
    refuses(flags, 3, "mpirun has started 2 ranks, and /nowhere cannot be loaded");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("AKUNU_MPI");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        keys, hidden_keys, logged, unix_sockets, without_open_mpi, NULL
    };
    return run_server_tests("life", NULL, NULL, tests);
}
