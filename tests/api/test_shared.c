/* What programs share: models from an open file (akunu_model_load_fd), thread pools of several
 * sessions (akunu_pool_new), and models across fork. */
#include "tests/api/failure.h"
#include "tests/gguf_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOKENS_MAX = 64 };

struct text {
    struct akunu_session *session;
    akunu_token tokens[TOKENS_MAX];
    size_t n;
};

static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    struct text *t = user;
    (void)index, (void)text, (void)n_bytes;
    if (token >= 0)
        t->tokens[t->n++] = token;
    return true;
}

static void *generate(void *user)
{
    struct text *t = user;
    struct akunu_generation_params g;
    struct akunu_sampling_params p;
    akunu_token ids[40];
    for (int i = 0; i < 40; i++)
        ids[i] = 100 + i;
    akunu_generation_params_default(&g, sizeof g);
    akunu_sampling_params_default(&p, sizeof p);
    p.temperature = 0.0f;
    p.ignore_end = true;
    g.sampling = &p;
    g.max_tokens = TOKENS_MAX - 1;
    akunu_sequence sequence = akunu_sequence_new(t->session);
    t->n = 0;
    g.on_piece = on_piece;
    g.user = t;
    ck_assert_msg(akunu_session_generate(t->session, sequence, &(struct akunu_ids){ ids, 40 }, &g,
                                         NULL) == AKUNU_OK,
                  "%s", akunu_last_error());
    akunu_sequence_free(t->session, sequence);
    return NULL;
}

static struct akunu_session *open_session(const struct akunu_model *model, struct akunu_pool *pool)
{
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    ck_assert_ptr_null(params.pool);
    params.context = 128;
    params.n_threads = pool ? 0 : 1;
    params.pool = pool;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

/* The text of a model loaded by its path, and that of `model`, which is freed. */
static void check_text(struct akunu_model *model)
{
    struct text want, got;
    struct akunu_model *by_path = akunu_model_load(test_path("models/mixed.gguf"), NULL);
    ck_assert_msg(model && by_path, "%s", akunu_last_error());
    want.session = open_session(by_path, NULL);
    got.session = open_session(model, NULL);
    generate(&want);
    generate(&got);
    ck_assert(got.n == want.n &&
              memcmp(got.tokens, want.tokens, want.n * sizeof *want.tokens) == 0);
    akunu_session_free(want.session);
    akunu_session_free(got.session);
    akunu_model_free(by_path);
    akunu_model_free(model);
}

/* ---- Descriptors -------------------------------------------------------- */
static size_t count_files(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += strstr(e->d_name, ".packed") != NULL;
    closedir(d);
    return n;
}

START_TEST(descriptors)
{
    char dir[] = "/tmp/akunu-test-XXXXXX", command[64];
    struct akunu_load_params params;
    struct akunu_model_info info;
    struct test_bytes bytes = test_read("models/mixed.gguf");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    akunu_load_params_default(&params, sizeof params);
    params.cache_dir = dir;
    params.n_threads = 1;

    /* the descriptor stays the caller's, and where it stands does not matter */
    int fd = open(test_path("models/mixed.gguf"), O_RDONLY | O_CLOEXEC);
    ck_assert(fd >= 0 && lseek(fd, 100, SEEK_SET) == 100);
    struct akunu_model *model = akunu_model_load_fd(fd, &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_str_eq(info.format, "gguf");
    ck_assert_uint_eq(count_files(dir), 1);
    check_text(model);
    ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 100);
    ck_assert_int_eq(close(fd), 0);

    /* a file without a name fills no cache */
    fd = memfd_create("model", MFD_CLOEXEC);
    ck_assert_int_eq(write(fd, bytes.data, bytes.n), (ssize_t)bytes.n);
    model = akunu_model_load_fd(fd, &params);
    close(fd);
    check_text(model);
    ck_assert_uint_eq(count_files(dir), 1);
    free(bytes.data);
    snprintf(command, sizeof command, "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void refuses(int fd, enum akunu_status status, const char *said)
{
    forget();
    ck_assert_ptr_null(akunu_model_load_fd(fd, NULL));
    failed_with(status, said);
    if (fd >= 0)
        close(fd);
}

START_TEST(descriptors_refused)
{
    int pipes[2], closed = open("/", O_RDONLY), empty = memfd_create("empty", MFD_CLOEXEC),
                  short_file = memfd_create("short", MFD_CLOEXEC);
    char path[] = "/tmp/akunu-test-XXXXXX";
    struct akunu_load_params params = { .size = 8 };
    close(closed);
    refuses(-1, AKUNU_ERROR_ARGUMENT, "-1 is not an open file descriptor");
    ck_assert_ptr_null(akunu_model_load_fd(closed, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "is not an open file descriptor");
    refuses(open("/", O_RDONLY), AKUNU_ERROR_FORMAT, "a folder, where a regular file");
    ck_assert_int_eq(pipe(pipes), 0);
    refuses(pipes[0], AKUNU_ERROR_FORMAT, "a pipe, where a regular file");
    close(pipes[1]);
    close(mkstemp(path));
    refuses(open(path, O_WRONLY), AKUNU_ERROR_FORMAT, "is not open for reading");
    unlink(path);
    refuses(empty, AKUNU_ERROR_FORMAT, "where a GGUF file is expected");
    ck_assert_int_eq(write(short_file, "GGUF\3", 5), 5);
    refuses(short_file, AKUNU_ERROR_FORMAT, "memfd:short");
    refuses(open(test_path("models/gemma.txt"), O_RDONLY), AKUNU_ERROR_FORMAT, "gemma.txt: begins");
    refuses(open(test_path("gguf/split-00001-of-00003.gguf"), O_RDONLY), AKUNU_ERROR_UNSUPPORTED,
            "part 1 of a split file of 3");
    int fd = open(test_path("model.gguf"), O_RDONLY);
    ck_assert_ptr_null(akunu_model_load_fd(fd, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "akunu_load_params");
    close(fd);
}
END_TEST

/* ---- Thread pools ------------------------------------------------------- */
static size_t count_threads(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Waits until there are n threads: the kernel lists one a little longer than joining it takes. */
static void expect_threads(size_t n)
{
    size_t found = count_threads();
    for (int i = 0; i < 1000 && found > n; i++) {
        usleep(10000);
        found = count_threads();
    }
    ck_assert_uint_eq(found, n);
}

/* Sessions of two models in two threads: their texts are those of sessions with threads of their
 * own, and no session starts a thread. */
START_TEST(pools)
{
    enum { N = 4 };
    struct text texts[N], want[2];
    pthread_t threads[N];
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 1;
    params.no_cache = true;
    struct akunu_model *models[] = { akunu_model_load(test_path("model.gguf"), &params),
                                     akunu_model_load(test_path("models/mixed.gguf"), &params) };
    ck_assert(models[0] && models[1]);
    for (int i = 0; i < 2; i++) {
        want[i].session = open_session(models[i], NULL);
        generate(&want[i]);
        akunu_session_free(want[i].session);
    }
    size_t before = count_threads();
    struct akunu_pool *pool = akunu_pool_new((unsigned)_i, NULL);
    ck_assert_msg(pool != NULL, "%s", akunu_last_error());
    ck_assert_uint_eq(akunu_pool_threads(pool), (unsigned)_i);
    for (int i = 0; i < N; i++) {
        texts[i].session = open_session(models[i % 2], pool);
        ck_assert_uint_eq(akunu_session_threads(texts[i].session), (unsigned)_i);
    }
    akunu_pool_free(pool);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, generate, &texts[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(texts[i].n, want[i % 2].n);
        ck_assert_mem_eq(texts[i].tokens, want[i % 2].tokens, texts[i].n * sizeof(akunu_token));
    }
    expect_threads(before + (size_t)_i - 1);
    for (int i = 0; i < N; i++)
        akunu_session_free(texts[i].session);
    expect_threads(before);
    akunu_model_free(models[0]);
    akunu_model_free(models[1]);
}
END_TEST

/* A child of fork uses the model of its parent with a session of its own. */
START_TEST(forked)
{
    struct text want, got;
    struct akunu_session_params params;
    struct akunu_model *model = akunu_model_load(test_path("model.gguf"), NULL);
    akunu_session_params_default(&params, sizeof params);
    params.context = 128;
    params.n_threads = 2;
    want.session = akunu_session_new(model, &params);
    ck_assert_msg(want.session != NULL, "%s", akunu_last_error());
    generate(&want);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        got.session = akunu_session_new(model, &params);
        generate(&got);
        akunu_session_free(got.session);
        akunu_model_free(model);
        _exit(got.n == want.n && memcmp(got.tokens, want.tokens, got.n * sizeof *got.tokens) == 0 ?
                  0 :
                  1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    got.session = want.session;
    generate(&got);
    ck_assert_mem_eq(got.tokens, want.tokens, got.n * sizeof *got.tokens);
    akunu_session_free(want.session);
    akunu_model_free(model);
}
END_TEST

START_TEST(pools_refused)
{
    struct akunu_session_params params;
    struct akunu_model *model = akunu_model_load(test_path("model.gguf"), NULL);
    ck_assert_ptr_null(akunu_pool_new(5000, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "5000 threads");
    ck_assert_ptr_null(akunu_pool_new(2, "x"));
    failed_with(AKUNU_ERROR_ARGUMENT, "the CPUs are 'x'");
    ck_assert_ptr_null(akunu_pool_new(2, "1023"));
    failed_with(AKUNU_ERROR_ARGUMENT, "CPU 1023");
    setenv("AKUNU_THREADS", "3", 1);
    struct akunu_pool *pool = akunu_pool_new(0, NULL);
    ck_assert_uint_eq(akunu_pool_threads(pool), 3);
    akunu_pool_free(pool);
    setenv("AKUNU_THREADS", "three", 1);
    ck_assert_ptr_null(akunu_pool_new(0, NULL));
    failed_with(AKUNU_ERROR_ARGUMENT, "AKUNU_THREADS");
    unsetenv("AKUNU_THREADS");

    pool = akunu_pool_new(2, "0");
    ck_assert_msg(pool != NULL, "%s", akunu_last_error());
    akunu_session_params_default(&params, sizeof params);
    params.context = 64;
    params.pool = pool;
    params.n_threads = 3;
    ck_assert_ptr_null(akunu_session_new(model, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "n_threads is 3, and the pool has 2");
    params.n_threads = 2;
    params.cpus = "0";
    ck_assert_ptr_null(akunu_session_new(model, &params));
    failed_with(AKUNU_ERROR_ARGUMENT, "cpus is '0'");
    params.cpus = NULL;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    akunu_session_free(session);
    akunu_pool_free(pool);
    akunu_pool_free(NULL);
    ck_assert_uint_eq(akunu_pool_threads(NULL), 0);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shared");
    TCase *files = tcase_create("descriptors"), *t = tcase_create("pools");
    suite_add_tcase(suite, files);
    suite_add_tcase(suite, t);
    tcase_set_timeout(t, 120);
    tcase_add_test(files, descriptors);
    tcase_add_test(files, descriptors_refused);
    tcase_add_loop_test(t, pools, 1, 4);
    tcase_add_test(t, pools_refused);
    tcase_add_test(t, forked);
    return test_run(suite);
}
