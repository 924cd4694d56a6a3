/* No allocation, no lock and no string look-up while tokens are generated.
 * The linker sends the library's calls of these functions through the ones below
 * (tests/local.mk), which count on any thread while `counting` is on. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/golden_model.h"

static atomic_bool counting;
static atomic_int n_memory, n_locks, n_strings;

static void count(atomic_int *counter)
{
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add(counter, 1);
}

/* ---- Memory ------------------------------------------------------------- */
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n)
{
    count(&n_memory);
    return __real_malloc(n);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    count(&n_memory);
    return __real_calloc(n, size);
}

void *__real_realloc(void *old, size_t n);
void *__wrap_realloc(void *old, size_t n);
void *__wrap_realloc(void *old, size_t n)
{
    count(&n_memory);
    return __real_realloc(old, n);
}

void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    count(&n_memory);
    return __real_aligned_alloc(alignment, n);
}

void __real_free(void *p);
void __wrap_free(void *p);
void __wrap_free(void *p)
{
    count(&n_memory);
    __real_free(p);
}

void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    count(&n_memory);
    return __real_mmap(at, n, protection, flags, fd, offset);
}

int __real_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n);
int __wrap_munmap(void *p, size_t n)
{
    count(&n_memory);
    return __real_munmap(p, n);
}

/* ---- Locks -------------------------------------------------------------- */
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    count(&n_locks);
    return __real_pthread_mutex_lock(mutex);
}

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    count(&n_locks);
    return __real_pthread_cond_wait(condition, mutex);
}

int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    count(&n_locks);
    return __real_pthread_rwlock_rdlock(lock);
}

int __real_pthread_once(pthread_once_t *once, void (*routine)(void));
int __wrap_pthread_once(pthread_once_t *once, void (*routine)(void));
int __wrap_pthread_once(pthread_once_t *once, void (*routine)(void))
{
    count(&n_locks);
    return __real_pthread_once(once, routine);
}

/* ---- Strings ------------------------------------------------------------ */
int __real_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b);
int __wrap_strcmp(const char *a, const char *b)
{
    count(&n_strings);
    return __real_strcmp(a, b);
}

int __real_strncmp(const char *a, const char *b, size_t n);
int __wrap_strncmp(const char *a, const char *b, size_t n);
int __wrap_strncmp(const char *a, const char *b, size_t n)
{
    count(&n_strings);
    return __real_strncmp(a, b, n);
}

int __real_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n)
{
    count(&n_strings);
    return __real_memcmp(a, b, n);
}

size_t __real_strlen(const char *text);
size_t __wrap_strlen(const char *text);
size_t __wrap_strlen(const char *text)
{
    count(&n_strings);
    return __real_strlen(text);
}

char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name);
char *__wrap_getenv(const char *name)
{
    count(&n_strings);
    return __real_getenv(name);
}

/* ---- Tests -------------------------------------------------------------- */
static void start_counting(void)
{
    atomic_store(&n_memory, 0);
    atomic_store(&n_locks, 0);
    atomic_store(&n_strings, 0);
    atomic_store(&counting, true);
}

static void check_nothing_counted(void)
{
    atomic_store(&counting, false);
    ck_assert_int_eq(atomic_load(&n_memory), 0);
    ck_assert_int_eq(atomic_load(&n_locks), 0);
    ck_assert_int_eq(atomic_load(&n_strings), 0);
}

/* The counters see the library: loading does all but locking. */
START_TEST(counters_count)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    start_counting();
    struct akunu_model *model = golden_load("qwen2", NULL);
    ck_assert_int_ge(atomic_load(&n_memory), 100);
    ck_assert_int_ge(atomic_load(&n_strings), 100);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    ck_assert_int_ge(atomic_load(&n_locks), 1);
    atomic_store(&counting, false);
    akunu_model_free(model);
}
END_TEST

enum { BEFORE = 3, COUNTED = 32 };

/* Counts from token BEFORE to COUNTED tokens later. */
static bool on_piece(size_t index, akunu_token token, const char *text, size_t n_bytes, void *user)
{
    int *n = user;
    (void)index, (void)token, (void)text, (void)n_bytes;
    ++*n;
    if (*n == BEFORE)
        start_counting();
    if (*n == BEFORE + COUNTED)
        atomic_store(&counting, false);
    return true;
}

static bool on_cancel(void *user)
{
    (void)user;
    return false;
}

/* Greedy; filtered with penalties; sampled by the backend. */
static void set_mode(int mode, struct akunu_sampling_params *sampling)
{
    sampling->seed = 12;
    sampling->ignore_end = mode < 2;
    if (mode == 0)
        sampling->temperature = 0.0f;
    if (mode == 1) {
        sampling->repeat_penalty = 1.1f;
        sampling->frequency_penalty = 0.1f;
    }
    if (mode == 2) {
        sampling->temperature = 0.3f;
        sampling->top_k = 0;
        sampling->top_p = 1.0f;
        sampling->min_p = 0.0f;
    }
}

START_TEST(generating)
{
    const struct golden *golden = golden_at(_i % golden_count());
    struct golden_text text;
    struct akunu_generation_params params;
    struct akunu_sampling_params sampling;
    int n = 0;
    golden_read_text(golden->name, &text);
    struct akunu_model *model = golden_load(golden->name, NULL);
    struct akunu_session *session = golden_session(model, 2, 16, AKUNU_KV_F16);
    akunu_generation_params_default(&params, sizeof params);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    params.sampling = &sampling;
    params.max_tokens = BEFORE + COUNTED + 2;
    set_mode(_i / golden_count(), &sampling);
    params.on_piece = on_piece;
    params.cancel = on_cancel;
    params.user = &n;
    enum akunu_status status =
        akunu_session_generate(session, akunu_sequence_new(session),
                               &(struct akunu_ids){ text.ids, text.n_prompt }, &params, NULL);
    ck_assert_msg(status == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_int_eq(n >= BEFORE + COUNTED, 1);
    check_nothing_counted();
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* The same by hand: prompts, passes over two sequences, samples, rewinds and forks. */
START_TEST(by_hand)
{
    const struct golden *golden = golden_at(_i);
    struct golden_text text;
    struct akunu_sampling_params sampling;
    golden_read_text(golden->name, &text);
    struct akunu_model *model = golden_load(golden->name, NULL);
    struct akunu_session *session = golden_session(model, 2, 16, AKUNU_KV_F16);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    sampling.repeat_penalty = 1.2f;
    struct akunu_sampler *sampler = akunu_sampler_new(model, &sampling);
    akunu_sequence first = akunu_sequence_new(session);
    bool ok = true;
    for (int round = 0; round < 3; round++) {
        size_t last = 0;
        if (round == 1)
            start_counting();
        ok = ok &&
             akunu_session_prefill(session, first, &(struct akunu_ids){ text.ids, text.n_prompt },
                                   NULL, NULL, &last) == AKUNU_OK;
        akunu_sequence second = akunu_sequence_fork(session, first, 20);
        akunu_token token = akunu_sampler_sample(sampler, akunu_session_logits(session, last));
        for (int i = 0; i < 10; i++) {
            struct akunu_batch_token pass[] = { { token, first, true },
                                                { text.ids[i], second, false } };
            akunu_sampler_accept(sampler, token);
            ok = ok && akunu_session_decode(session, pass, 2) == AKUNU_OK;
            token = akunu_sampler_sample(sampler, akunu_session_logits(session, 0));
        }
        ok = ok && akunu_sequence_rewind(session, first, 0) == AKUNU_OK;
        akunu_sequence_free(session, second);
    }
    check_nothing_counted();
    ck_assert_msg(ok, "%s", akunu_last_error());
    akunu_sampler_free(sampler);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("steady");
    TCase *tests = tcase_create("steady");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, counters_count);
    tcase_add_loop_test(tests, generating, 0, 3 * golden_count());
    tcase_add_loop_test(tests, by_hand, 0, golden_count());
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
