/* The life of akunu-server: its keys, its log, and what SIGHUP changes. */
#include "tests/apps/server/client.h"

#include <sys/stat.h>
#include <sys/un.h>

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
        { "authorization: bearer    two\r\n", 200 },
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
        pid_t pid = start_and_read(flags, ".sock\n", said);
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

/* Keys that cannot be used: none, more than 256, and files that have none. */
START_TEST(wrong_keys)
{
    enum { MOST = 256 };
    char path[] = "/tmp/akunu-keys-XXXXXX", list[2 * MOST + 2] = "";
    int fd = mkstemp(path);
    for (int i = 0; i < MOST; i++)
        strcat(list, "k,");
    strcat(list, "k");
    const struct {
        const char *flag, *value, *text, *why; /* text: of the file; NULL: there is none */
    } cases[] = {
        { "--api-key", ",", NULL, "--api-key has no key" },
        { "--api-key", list, NULL, "at most 256 keys are possible" },
        { "--api-key-file", "/nowhere", NULL, "--api-key-file /nowhere cannot be read" },
        { "--api-key-file", path, "# none\n \t\r\n", " has no key; expected one per line" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const flags[] = { "--port", "0", cases[i].flag, cases[i].value, NULL };
        if (cases[i].text)
            rewrite(fd, cases[i].text);
        refuses(flags, 2, cases[i].why);
    }
    list[2 * MOST - 1] = '\0'; /* the most */
    const char *const most[] = { "--api-key", list, NULL };
    struct child child = start_server(most);
    struct answer a = ask_with(&child, "GET", "/v1/models", "x-api-key: k\r\n", "");
    json_decref(json_of(&a, 200));
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    close(fd);
    unlink(path);
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

/* A descriptor 0 of the server's own works like any other. */
START_TEST(without_input)
{
    const char *const arguments[] = { server_path(), "--port", "0", "-m", test_model(), NULL };
    struct child child = start_program(arguments, false);
    struct answer a = ask(&child, "/v1/completions", "{\"prompt\": \"Once\", \"max_tokens\": 2}");
    json_decref(json_of(&a, 200));
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* ---- Ranks ---------------------------------------------------------------- */
/* Whether there is an mpirun. */
static bool has_mpirun(void)
{
    bool has = system("command -v mpirun >/dev/null") == 0;
    const char *required = getenv("AKUNU_REQUIRE_TOOLS");
    ck_assert_msg(has || !required || strcmp(required, "1") != 0, "no mpirun (openmpi-bin)");
    return has;
}

/* Starts a server on two ranks; rank 0 writes its process id to `path`. */
static struct child start_ranks(const char *path)
{
    /* as in tests/apps/cli/test_ranks.sh; Open MPI keeps what it allocated */
    static const char script[] =
        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; "
        "export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none; "
        "export ASAN_OPTIONS=\"${ASAN_OPTIONS:-}:detect_leaks=0\"; "
        "exec mpirun -n 2 sh -c '[ $OMPI_COMM_WORLD_RANK != 0 ] || echo $$ >\"$0\"; exec \"$@\"' "
        "\"$@\"";
    const char *const arguments[] = { "sh",   "-c",          script,       "sh",
                                      path,   server_path(), "--port",     "0",
                                      "-t",   "1",           "--metrics",  "-c",
                                      "2048", "-m",          test_model(), NULL };
    return start_program(arguments, true);
}

/* Two ranks answer as one process does. SIGTERM to rank 0 lets a running request end, and ends the
 * other rank, too. */
START_TEST(under_mpirun)
{
    static const char body[] =
        "{\"prompt\": \"Once\", \"max_tokens\": 300, \"seed\": 3, \"ignore_eos\": true}";
    char path[] = "/tmp/akunu-rank-XXXXXX", number[32] = "";
    if (!has_mpirun())
        return;
    int fd = mkstemp(path);
    struct child one = start_server(NULL), two = start_ranks(path);
    ck_assert_int_gt(read(fd, number, sizeof number - 1), 0);
    struct answer a = ask(&two, "/metrics", "");
    ck_assert_msg(strstr(a.body, "\nakunu_ranks 2\n") != NULL, "%s", a.text);
    free(a.text);
    int running = begin_request(&two, "POST", "/v1/completions", "", body);
    for (bool runs = false; !runs; free(a.text)) {
        a = ask(&two, "/metrics", "");
        runs = strstr(a.body, "\nakunu_time_to_first_token_seconds_count 1\n") != NULL;
    }
    kill(atoi(number), SIGTERM);
    a = read_answer(running);
    json_t *many = json_of(&a, 200);
    a = ask(&one, "/v1/completions", body);
    json_t *alone = json_of(&a, 200);
    ck_assert(json_equal(at(many, "choices"), at(alone, "choices")));
    json_decref(alone);
    json_decref(many);
    ck_assert_int_eq(stop_server(&two, 0), 0);
    ck_assert_int_eq(stop_server(&one, SIGTERM), 0);
    close(fd);
    unlink(path);
}
END_TEST

/* ---- Doing nothing -------------------------------------------------------- */
/* Seconds of the CPU that the server has taken. */
static double cpu_seconds(const struct child *child)
{
    clockid_t clock;
    struct timespec t;
    ck_assert_int_eq(clock_getcpuclockid(child->pid, &clock), 0);
    ck_assert_int_eq(clock_gettime(clock, &t), 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A server with nothing to do sleeps, while connections are open and a request has begun: there is
 * a second in which it takes nearly none of the CPU's time. */
START_TEST(sleeps)
{
    static const char half[] =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{";
    struct child child = start_server(NULL);
    int idle = open_connection(&child), begun = open_connection(&child);
    send_text(begun, half, strlen(half));
    struct answer a = ask(&child, "/v1/completions", "{\"prompt\": \"Once\", \"max_tokens\": 2}");
    json_decref(json_of(&a, 200));
    double used = 1.0;
    for (int i = 0; i < 10 && used > 0.02; i++) {
        double before = cpu_seconds(&child);
        nap(1.0);
        used = cpu_seconds(&child) - before;
    }
    ck_assert_double_le(used, 0.02);
    close(begun);
    close(idle);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* ---- Ending at once -------------------------------------------------------- */
/* Tells the server to end, and to wait for nothing. */
static void end_at_once(const struct child *child)
{
    kill(child->pid, SIGTERM);
    read_log(child, "shutting down");
    kill(child->pid, SIGTERM);
}

/* A server that ends drops the texts that it still has to embed, of clients that wait and of one
 * that has left. */
START_TEST(ends_while_embedding)
{
    enum { CLIENTS = 4, TEXTS = 2000 };
    struct child child = start_server(NULL);
    char *body = malloc(TEXTS * 128), *to = body;
    int fds[CLIENTS];
    to += sprintf(to, "{\"input\": [");
    for (int i = 0; i < TEXTS; i++)
        to += sprintf(to, "%s\"the panda is a bear of China, and the sea is far away\"",
                      i ? ", " : "");
    sprintf(to, "]}");
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = begin_request(&child, "POST", "/v1/embeddings", "", body);
    free(body);
    nap(0.3);
    close(fds[0]);
    nap(0.1);
    end_at_once(&child);
    ck_assert_int_eq(stop_server(&child, 0), 0);
    for (int i = 1; i < CLIENTS; i++)
        close(fds[i]);
}
END_TEST

/* A server that ends drops the large bodies that wait for their thread. */
START_TEST(ends_with_large_bodies)
{
    enum { CLIENTS = 8, BYTES = 1 << 18 };
    struct child child = start_server(NULL);
    char *body = malloc(BYTES + 64);
    int fds[CLIENTS];
    sprintf(body, "{\"content\": \"%0*d\", \"with_pieces\": true}", BYTES, 0);
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = begin_request(&child, "POST", "/tokenize", "", body);
    free(body);
    end_at_once(&child);
    ck_assert_int_eq(stop_server(&child, 0), 0);
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
}
END_TEST

/* ---- Hashing the model ------------------------------------------------------ */
/* Starts a server whose model becomes a pipe after it was loaded, and asks for a receipt, which
 * waits for the hash of that. Returns the end of the pipe that the server reads. */
static int begin_hash(struct child *child, const char *timeout, int *request)
{
    static const char body[] =
        "{\"prompt\": \"Once\", \"max_tokens\": 2, \"akunu\": {\"receipt\": true}}";
    char folder[] = "/tmp/akunu-hash-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ck_assert_int_eq(symlink(test_model(), path), 0);
    const char *const flags[] = { "-m", path, "--no-cache", "--timeout", timeout, NULL };
    *child = start_server(flags);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    *request = begin_request(child, "POST", "/v1/completions", "", body);
    int fd = open(path, O_WRONLY | O_CLOEXEC); /* when the server opens it */
    ck_assert_int_ge(fd, 0);
    unlink(path);
    rmdir(folder);
    return fd;
}

/* A request waits for the hash for --timeout seconds; 0: for any time. */
START_TEST(hash_in_time)
{
    struct child child;
    int request, fd = begin_hash(&child, "0", &request);
    nap(2.2); /* two ticks of the server */
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    close(fd);
    struct answer a = read_answer(request);
    json_t *value = json_of(&a, 200); /* SHA-256 of "abc", as in FIPS 180-4 */
    ck_assert_str_eq(text_at(value, "akunu.receipt.model"),
                     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    json_decref(value);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);

    fd = begin_hash(&child, "1", &request);
    a = read_answer(request);
    value = json_of(&a, 503);
    ck_assert_str_eq(text_at(value, "error.message"),
                     "the file of the model model.gguf was not hashed in time (--timeout)");
    json_decref(value);
    close(fd); /* the next request gets this hash */
    a = ask(&child, "/v1/completions",
            "{\"prompt\": \"Once\", \"max_tokens\": 2, \"akunu\": {\"receipt\": true}}");
    value = json_of(&a, 200); /* SHA-256 of nothing, as in FIPS 180-4 */
    ck_assert_str_eq(text_at(value, "akunu.receipt.model"),
                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    json_decref(value);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
}
END_TEST

/* A receipt of a model whose file is gone. */
START_TEST(hash_that_fails)
{
    char folder[] = "/tmp/akunu-gone-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    ck_assert_int_eq(symlink(test_model(), path), 0);
    const char *const flags[] = { "-m", path, "--no-cache", NULL };
    struct child child = start_server(flags);
    ck_assert_int_eq(unlink(path), 0);
    struct answer a =
        ask(&child, "/v1/completions",
            "{\"prompt\": \"Once\", \"max_tokens\": 2, \"akunu\": {\"receipt\": true}}");
    json_t *value = json_of(&a, 503);
    ck_assert_str_eq(text_at(value, "error.param"), "akunu.receipt");
    ck_assert_str_eq(
        text_at(value, "error.message"),
        "the file of the model model.gguf cannot be hashed; the server's log says why");
    json_decref(value);
    read_log(&child, "No such file or directory");
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    rmdir(folder);
}
END_TEST

/* A server that ends waits for the thread that hashes, which uses what is freed then. */
START_TEST(ends_while_hashing)
{
    struct child child;
    int request, fd = begin_hash(&child, "600", &request), status;
    end_at_once(&child);
    nap(0.5);
    ck_assert_int_eq(waitpid(child.pid, &status, WNOHANG), 0);
    close(fd);
    ck_assert_int_eq(stop_server(&child, 0), 0);
    close(request);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { keys,
                                   hidden_keys,
                                   logged,
                                   wrong_keys,
                                   unix_sockets,
                                   without_open_mpi,
                                   without_input,
                                   under_mpirun,
                                   sleeps,
                                   ends_while_embedding,
                                   ends_with_large_bodies,
                                   hash_in_time,
                                   hash_that_fails,
                                   ends_while_hashing,
                                   NULL };
    return run_server_tests("life", NULL, NULL, tests);
}
