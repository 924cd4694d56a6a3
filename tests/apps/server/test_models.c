/* akunu-server with several models, and with a bound of its memory. */
#include "tests/apps/server/client.h"

#include <sys/stat.h>

#define TEXT "/v1/completions"

static struct child server;
static char presets[] = "/tmp/akunu-presets-XXXXXX";

/* A server with -m and the presets one, two and broken; `one` is the path of the first. */
static void start_with_one(const char *one, const char *const *more)
{
    const char *flags[16] = { "--metrics", "--config", presets };
    char text[8192];
    int fd = mkstemp(presets),
        n = snprintf(text, sizeof text,
                     "models:\n  one:\n    model: %s\n    temp: 0\n  two:\n    model: %s\n"
                     "  broken:\n    model: /nowhere/secret.gguf\n",
                     one, test_model());
    ck_assert_int_eq(write(fd, text, (size_t)n), n);
    close(fd);
    n = 3;
    for (int i = 0; more && more[i]; i++)
        flags[n++] = more[i];
    flags[n] = "--";
    server = start_server(flags);
}

static void start(const char *const *more)
{
    start_with_one(test_model(), more);
}

static void stop(void)
{
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
    unlink(presets);
    strcpy(presets + strlen(presets) - 6, "XXXXXX");
}

static json_t *ask_one(const char *model, int code)
{
    char body[256];
    snprintf(body, sizeof body,
             "{\"model\": \"%s\", \"prompt\": \"Once\", \"max_tokens\": 3, \"seed\": 1}", model);
    struct answer a = ask(&server, TEXT, body);
    return json_of(&a, code);
}

static uint64_t metric(const char *name)
{
    char line[64];
    struct answer a = ask(&server, "/metrics", "");
    snprintf(line, sizeof line, "\nakunu_%s ", name);
    const char *found = strstr(a.body, line);
    ck_assert_ptr_nonnull(found);
    uint64_t value = strtoull(found + strlen(line), NULL, 10);
    free(a.text);
    return value;
}

/* Whether the model is loaded, as /v1/models says. */
static bool is_loaded(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/models/%s", name);
    struct answer a = ask(&server, path, "");
    json_t *value = json_of(&a, 200);
    bool loaded = strcmp(text_at(value, "status.value"), "loaded") == 0;
    json_decref(value);
    return loaded;
}

/* ---- Several models ----------------------------------------------------- */
START_TEST(a_request_chooses)
{
    static const char *const names[] = { "one", "two", "one:latest", "model.gguf" };
    start(NULL);
    ck_assert(is_loaded("model.gguf") && !is_loaded("one"));
    for (int i = 0; i < 4; i++) {
        json_t *value = ask_one(names[i], 200);
        ck_assert_str_eq(text_at(value, "model"), i == 2 ? "one" : names[i]);
        json_decref(value);
    }
    ck_assert(is_loaded("one") && is_loaded("two"));

    struct answer a = ask(&server, TEXT, "{\"prompt\": \"Once\", \"max_tokens\": 1}");
    json_t *value = json_of(&a, 200); /* that of -m */
    ck_assert_str_eq(text_at(value, "model"), "model.gguf");
    json_decref(value);
    value = ask_one("three", 404);
    ck_assert_str_eq(text_at(value, "error.code"), "model_not_found");
    ck_assert(strstr(text_at(value, "error.message"), "one, two, broken") != NULL);
    json_decref(value);
    a = ask(&server, TEXT, "{\"prompt\": \"Once\", \"model\": 3}");
    value = json_of(&a, 400);
    ck_assert_str_eq(text_at(value, "error.param"), "model");
    json_decref(value);
    value = ask_one("broken", 503); /* and no path of this machine */
    ck_assert(strstr(text_at(value, "error.message"), "secret") == NULL);
    json_decref(value);
    a = ask(&server, "/props?model=two", "");
    value = json_of(&a, 200);
    ck_assert_str_eq(text_at(value, "model_alias"), "two");
    json_decref(value);
    a = ask(&server, "/api/ps", "");
    value = json_of(&a, 200);
    ck_assert_uint_eq(json_array_size(at(value, "models")), 3);
    json_decref(value);
    stop();
}
END_TEST

/* Requests that come while their model is loaded wait for it; those whose client leaves do not. */
START_TEST(requests_wait)
{
    enum { N = 12 };
    static const char body[] = "{\"model\": \"%s\", \"prompt\": \"Once\", \"max_tokens\": 3}";
    int fds[N];
    start(NULL);
    for (int i = 0; i < N; i++) {
        char text[256], request[512];
        int n = snprintf(text, sizeof text, body, i % 2 ? "one" : "two");
        n = snprintf(request, sizeof request,
                     "POST " TEXT " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                     "Content-Length: %d\r\n\r\n%s",
                     n, text);
        fds[i] = open_connection(&server);
        send_text(fds[i], request, (size_t)n);
        if (i % 4 == 3)
            close(fds[i]);
    }
    for (int i = 0; i < N; i++) {
        if (i % 4 == 3)
            continue;
        struct answer a = read_answer(fds[i]);
        json_t *value = json_of(&a, 200);
        ck_assert_str_eq(text_at(value, "model"), i % 2 ? "one" : "two");
        json_decref(value);
    }
    stop();
}
END_TEST

/* ---- Memory ------------------------------------------------------------- */
/* --memory for one and a half models with passes of 128 tokens; returns their bytes. */
static uint64_t memory_of_one(char memory[32])
{
    static const char *const unlimited[] = { "-b", "128", NULL };
    start(unlimited);
    uint64_t bytes = metric("memory_bytes"), limit = bytes + bytes / 2;
    stop();
    snprintf(memory, 32, "%.6f", (double)limit / 1e9 * 8 / 7 + 0.034);
    return limit;
}

/* With room for one and a half models the one that was not used for longest goes. */
START_TEST(memory_holds_one)
{
    char memory[32];
    const char *const flags[] = { "-b", "128", "--memory", memory, NULL };
    uint64_t limit = memory_of_one(memory);
    start(flags);
    json_int_t n_cached = 0;
    for (int i = 0; i < 6; i++) {
        json_decref(ask_one(i % 2 ? "one" : "two", 200));
        json_t *again = ask_one(i % 2 ? "one" : "two", 200);
        n_cached += json_integer_value(at(again, "usage.prompt_tokens_details.cached_tokens"));
        json_decref(again);
        ck_assert_uint_le(metric("memory_bytes"), limit);
        ck_assert(is_loaded(i % 2 ? "one" : "two") && !is_loaded(i % 2 ? "two" : "one"));
    }
    /* those of dropped models count, too */
    ck_assert_uint_eq(metric("generated_tokens_total"), 36);
    ck_assert_int_gt(n_cached, 0);
    ck_assert_uint_eq(metric("prompt_tokens_cached_total"), (uint64_t)n_cached);
    stop();
}
END_TEST

/* A long answer of a model that has to go is ended first. */
START_TEST(memory_waits_for_answers)
{
    static const char body[] = "{\"model\": \"one\", \"prompt\": \"Once\", \"max_tokens\": 600, "
                               "\"ignore_eos\": true}";
    char memory[32], request[512];
    const char *const flags[] = { "-b", "128", "--memory", memory, NULL };
    memory_of_one(memory);
    start(flags);
    int n = snprintf(request, sizeof request,
                     "POST " TEXT " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                     "Content-Length: %zu\r\n\r\n%s",
                     strlen(body), body);
    int fd = open_connection(&server);
    send_text(fd, request, (size_t)n);
    while (metric("requests_running") == 0)
        nap(0.002);
    json_decref(ask_one("two", 200));
    struct answer a = read_answer(fd);
    json_t *value = json_of(&a, 200);
    ck_assert_int_eq(json_integer_value(at(value, "usage.completion_tokens")), 600);
    json_decref(value);
    stop();
}
END_TEST

/* The SHA-256 of the tests' model. */
static const char *hash_of_model(void)
{
    static char hash[65];
    char command[4200];
    snprintf(command, sizeof command, "sha256sum '%s'", test_model());
    FILE *pipe = popen(command, "r");
    ck_assert(pipe && fread(hash, 1, 64, pipe) == 64);
    pclose(pipe);
    return hash;
}

static int begin_one(const char *more)
{
    char body[256];
    snprintf(body, sizeof body, "{\"prompt\": \"Once\", \"max_tokens\": 3%s}", more);
    return begin_request(&server, "POST", TEXT, "", body);
}

static json_t *end_one(int fd)
{
    struct answer a = read_answer(fd);
    return json_of(&a, 200);
}

/* A model that has to go while its file is hashed is loaded again for those that wait, and the
 * receipt has the hash of the file that was there then. */
START_TEST(dropped_while_hashed)
{
    char folder[] = "/tmp/akunu-dropped-XXXXXX", path[64], memory[32];
    const char *const flags[] = { "-b", "128", "--memory", memory, "--no-cache", NULL };
    memory_of_one(memory);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/one.gguf", folder);
    ck_assert_int_eq(symlink(test_model(), path), 0);
    start_with_one(path, flags);
    json_decref(ask_one("one", 200));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    int hashed = begin_one(", \"model\": \"one\", \"akunu\": {\"receipt\": true}");
    int fd = open(path, O_WRONLY | O_CLOEXEC); /* when the server opens it */
    ck_assert_int_ge(fd, 0);
    int other = begin_one(", \"model\": \"two\"");
    while (is_loaded("one"))
        nap(0.01);
    int plain = begin_one(", \"model\": \"one\"");
    json_decref(ask_one("none", 404)); /* so it has come */
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink(test_model(), path), 0);
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    close(fd);
    json_decref(end_one(other));
    json_decref(end_one(plain));
    json_t *value = end_one(hashed);
    ck_assert_str_eq(text_at(value, "akunu.receipt.model"), hash_of_model());
    json_decref(value);
    stop();
    unlink(path);
    rmdir(folder);
}
END_TEST

/* Bodies that do not fit are refused, and the others are answered as before. */
START_TEST(memory_of_requests)
{
    enum { N = 200000 };
    const char *const flags[] = { "--memory", "0.1", NULL };
    start(flags);
    uint64_t before = metric("memory_bytes");
    char *body = malloc(3 * N + 64);
    strcpy(body, "{\"prompt\": [1");
    size_t n = strlen(body);
    for (int i = 1; i < N; i++, n += 2)
        memcpy(body + n, ",1", 2);
    strcpy(body + n, "]}");
    struct answer a = ask(&server, TEXT, body);
    json_decref(json_of(&a, 413));
    free(body);
    body = calloc(1, 3 << 20);
    memset(body, ' ', (3 << 20) - 1);
    a = ask(&server, TEXT, body);
    json_decref(json_of(&a, 413));
    free(body);
    json_decref(ask_one("model.gguf", 200));
    ck_assert_uint_eq(metric("memory_bytes"), before); /* without the bodies */
    stop();
}
END_TEST

static const char *mixed_model(void)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/models/mixed.gguf", getenv("AK_TEST_DATA"));
    return path;
}

/* Weights that are packed into memory count, and those that are mapped from the cache do not. */
START_TEST(memory_without_mapped_files)
{
    char folder[] = "/tmp/akunu-cache-XXXXXX", command[64];
    const char *const flags[] = { "-m", mixed_model(), "--metrics", "--cache-dir", folder, NULL },
                      *const uncached[] = { "-m", mixed_model(), "--metrics", "--no-cache", NULL };
    ck_assert_ptr_nonnull(mkdtemp(folder));
    server = start_server(uncached);
    uint64_t whole = metric("memory_bytes");
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
    for (int i = 0; i < 2; i++) { /* the first one fills the cache */
        server = start_server(flags);
        ck_assert_uint_lt(metric("memory_bytes"), whole);
        ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Without -c the context is as long as the memory allows, and no longer. */
START_TEST(memory_bounds_the_context)
{
    enum { MEMORY = 60000000, OTHERS = 32 << 20 }; /* the process and requests, as in memory.c */
    static const char longer[] = "llama.context_length=int:1000000";
    const char *const flags[] = { "-m",       mixed_model(), "-c",        "0",
                                  "--memory", "0.06",        "--metrics", "--override-kv",
                                  longer,     "--no-cache",  NULL };
    server = start_server(flags);
    uint64_t bytes = metric("memory_bytes");
    ck_assert_uint_le(bytes, MEMORY - OTHERS);
    ck_assert_uint_gt(bytes, (MEMORY - OTHERS) / 10 * 9);
    ck_assert_int_eq(stop_server(&server, SIGTERM), 0);
}
END_TEST

/* Too little for the model itself: exit code 4. */
START_TEST(memory_is_too_small)
{
    static char program[4096];
    const char *arguments[] = { program,    "-m",   test_model(), "--port", "0",
                                "--memory", "0.02", "-c",         "2048",   NULL };
    int status, null = open("/dev/null", O_WRONLY);
    snprintf(program, sizeof program, "%s/akunu-server", getenv("AK_TEST_BUILD"));
    pid_t pid = fork();
    if (pid == 0) {
        dup2(null, 2);
        execv(program, (char *const *)(uintptr_t)arguments);
        _exit(99);
    }
    close(null);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 4);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { a_request_chooses,
                                   requests_wait,
                                   memory_holds_one,
                                   memory_waits_for_answers,
                                   dropped_while_hashed,
                                   memory_of_requests,
                                   memory_without_mapped_files,
                                   memory_bounds_the_context,
                                   memory_is_too_small,
                                   NULL };
    return run_server_tests("models", NULL, NULL, tests);
}
