/* The packed cache: the same bits with it and without, cold and
 * warm; damaged, foreign and stale files; several processes at once, and ones
 * that are killed; folders that cannot be used; what others see of it. */
#include "tests/test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/backends/list.h"
#include "base/mem.h"
#include "tests/golden_model.h"
#include "tests/store_header.h"
#include "engine/pack/cache.h"
#include "tests/load.h"

enum { N_IDS = 8 };

/* ---- Faults ------------------------------------------------------------- */
/* The linker sends the library's calls that change files through these (cache.mk). Call
 * number fault_at, from 1 on, fails with fault_errno; where that is 0 it ends the process, a
 * write after the first half of its bytes. 0: no call is disturbed. */
static int fault_at, fault_errno;
static atomic_int n_changes, n_writes;
/* every write stores half of what it is given, and is interrupted first */
static bool short_writes;

ssize_t __real_pwrite(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at);
int __real_fallocate(int fd, int mode, off_t at, off_t n);
int __wrap_fallocate(int fd, int mode, off_t at, off_t n);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_futimens(int fd, const struct timespec times[2]);
int __wrap_futimens(int fd, const struct timespec times[2]);
int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);

/* True: this call fails, errno is set. Does not return where the process is to end. */
static bool is_disturbed(void)
{
    if (atomic_fetch_add(&n_changes, 1) + 1 != fault_at)
        return false;
    if (fault_errno == 0)
        raise(SIGKILL);
    errno = fault_errno;
    return true;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    int number = atomic_fetch_add(&n_writes, 1);
    if (short_writes && number % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (fault_errno == 0 && atomic_load(&n_changes) + 1 == fault_at)
        (void)__real_pwrite(fd, bytes, n / 2, at);
    return is_disturbed() ? -1 : __real_pwrite(fd, bytes, short_writes ? (n + 1) / 2 : n, at);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t n)
{
    return is_disturbed() ? -1 : __real_fallocate(fd, mode, at, n);
}

int __wrap_fsync(int fd)
{
    return is_disturbed() ? -1 : __real_fsync(fd);
}

int __wrap_futimens(int fd, const struct timespec times[2])
{
    return is_disturbed() ? -1 : __real_futimens(fd, times);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    return is_disturbed() ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

/* Disturbs call number `at` from now on. */
static void disturb(int at, int error)
{
    atomic_store(&n_changes, 0);
    atomic_store(&n_writes, 0);
    fault_at = at;
    fault_errno = error;
}

/* ---- Loads -------------------------------------------------------------- */
static char folder[64];    /* the cache folder of this test */
static char said[1024];    /* the warnings of the last load */
static char noticed[1024]; /* its last notice */
static uint64_t cache_limit;

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)user;
    if (level == AKUNU_LOG_WARN)
        snprintf(said, sizeof said, "%s", line);
    if (level == AKUNU_LOG_NOTICE)
        snprintf(noticed, sizeof noticed, "%s", line);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_tree(const char *path)
{
    ck_assert_int_eq(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A copy of the mixed model in the folder; valid until the next call. */
static const char *copy_mixed(void)
{
    static char copy[128];
    static char bytes[1 << 20];
    char path[4096];
    snprintf(copy, sizeof copy, "%s/copy.gguf", folder);
    int from = open(golden_path("mixed", ".gguf", path), O_RDONLY),
        to = open(copy, O_CREAT | O_WRONLY, 0600);
    ck_assert(from >= 0 && to >= 0);
    for (ssize_t n; (n = read(from, bytes, sizeof bytes)) != 0;)
        ck_assert_int_eq(write(to, bytes, (size_t)n), n);
    close(from);
    close(to);
    return copy;
}

/* Forking under an emulator hangs. */
static bool can_fork(void)
{
    const char *emulated = getenv("AK_EMULATED");
    return !emulated || !*emulated;
}

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/akunu-cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    remove_tree(folder);
}

static struct akunu_load_params params_for(const char *dir)
{
    struct akunu_load_params params;
    akunu_load_params_default(&params, sizeof params);
    params.n_threads = 2;
    params.cache_dir = dir;
    params.no_cache = !dir;
    params.log = on_log;
    params.cache_limit = cache_limit;
    said[0] = noticed[0] = '\0';
    return params;
}

struct outcome {
    float logits[GOLDEN_VOCAB];
    uint64_t cached; /* bytes mapped */
};

/* Loads a model and runs a few tokens. dir NULL: without the cache. */
static void load_path(const char *path, const char *dir, struct outcome *out)
{
    struct akunu_load_params params = params_for(dir);
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s: %s", path, akunu_last_error());
    struct akunu_session *session = golden_session(model, 2, 64, AKUNU_KV_F16);
    akunu_sequence sequence = akunu_sequence_new(session);
    struct akunu_batch_token tokens[N_IDS];
    struct akunu_memory memory;
    struct akunu_model_info info;
    for (int i = 0; i < N_IDS; i++)
        tokens[i] = (struct akunu_batch_token){ 3 + i, sequence, i == N_IDS - 1 };
    ck_assert_int_eq(akunu_session_decode(session, tokens, N_IDS), AKUNU_OK);
    ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
    ck_assert_int_eq(akunu_model_get_memory(model, session, &memory, sizeof memory), AKUNU_OK);
    memset(out, 0, sizeof *out);
    memcpy(out->logits, akunu_session_logits(session, N_IDS - 1),
           info.vocab_size * sizeof *out->logits);
    out->cached = memory.cached;
    akunu_session_free(session);
    akunu_model_free(model);
}

static void load_golden(const char *name, const char *dir, struct outcome *out)
{
    char path[4096];
    load_path(golden_path(name, ".gguf", path), dir, out);
}

/* Loads the mixed model: its logits are as ever. True: from or into the cache. */
static bool load_mixed(const char *dir)
{
    static struct outcome base;
    static bool known;
    struct outcome got;
    if (!known)
        load_golden("mixed", NULL, &base);
    known = true;
    load_golden("mixed", dir, &got);
    ck_assert_mem_eq(got.logits, base.logits, sizeof base.logits);
    return got.cached > 0;
}

/* ---- What is in the folder ---------------------------------------------- */
static size_t count(const char *dir, enum akunu_cache_state state)
{
    struct akunu_cache *cache = akunu_cache_open(dir);
    size_t n = 0;
    ck_assert_msg(cache != NULL, "%s", akunu_last_error());
    for (size_t i = 0; i < akunu_cache_count(cache); i++) {
        struct akunu_cache_entry entry;
        ck_assert_int_eq(akunu_cache_get_entry(cache, i, &entry, sizeof entry), AKUNU_OK);
        n += state == 0 || entry.state == state;
    }
    akunu_cache_free(cache);
    return n;
}

/* The path of the only file; valid until the next call. */
static const char *only_file(void)
{
    static char path[256];
    struct akunu_cache *cache = akunu_cache_open(folder);
    struct akunu_cache_entry entry;
    ck_assert_uint_eq(akunu_cache_count(cache), 1);
    ck_assert_int_eq(akunu_cache_get_entry(cache, 0, &entry, sizeof entry), AKUNU_OK);
    snprintf(path, sizeof path, "%s/%s", folder, entry.file);
    akunu_cache_free(cache);
    return path;
}

static size_t files_in(const char *dir)
{
    DIR *d = opendir(dir);
    size_t n = 0;
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* ---- Tests -------------------------------------------------------------- */
START_TEST(same_bits)
{
    struct outcome off, cold, warm;
    char dir[128];
    struct stat st;
    snprintf(dir, sizeof dir, "%s/made/for/it", folder);
    for (size_t i = 0; i < N_GOLDENS; i++) {
        load_golden(goldens[i].name, NULL, &off);
        load_golden(goldens[i].name, dir, &cold);
        ck_assert_str_eq(said, "");
        load_golden(goldens[i].name, dir, &warm);
        ck_assert_str_eq(said, "");
        ck_assert_uint_eq(off.cached, 0);
        ck_assert_uint_eq(cold.cached, warm.cached);
        ck_assert_mem_eq(cold.logits, off.logits, sizeof off.logits);
        ck_assert_mem_eq(warm.logits, off.logits, sizeof off.logits);
    }
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    ck_assert_uint_eq(count(dir, AKUNU_CACHE_READY), count(dir, 0));
    ck_assert_uint_ge(count(dir, 0), 1);
}
END_TEST

START_TEST(nothing_to_pack)
{
    struct outcome out;
    load_golden("llama-f32", folder, &out);
    ck_assert_uint_eq(out.cached, 0);
    ck_assert_uint_eq(files_in(folder), 0);
}
END_TEST

/* Any part of the block that is packed for itself is what packing the whole gives. */
START_TEST(ranges)
{
    static const uint64_t steps[] = { 4096, 12288, 1 << 16 };
    char path[4096];
    struct ak_model *model = NULL;
    struct ak_error error = { 0 };
    struct akunu_load_params params = params_for(NULL);
    ck_assert_int_eq(load_from(golden_path("mixed", ".gguf", path), &params, &model, &error),
                     AKUNU_OK);
    struct ak_weights *w = &model->weights;
    struct ak_pack_job job = { .weights = w, .backend = model->backend, .source = model->provider };
    uint64_t slack = ak_round_up(ak_pack_slack(&job), 4096);
    ck_assert_uint_gt(slack, 0);
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        uint8_t *buffer = ak_alloc_aligned(steps[s] + 2 * slack);
        for (uint64_t begin = 0; begin < w->block_bytes; begin += steps[s]) {
            uint64_t end = begin + steps[s] < w->block_bytes ? begin + steps[s] : w->block_bytes;
            struct ak_pack_range range = {
                .begin = begin, .end = end, .origin = begin - slack, .both_ends = true
            };
            memset(buffer, 0, steps[s] + 2 * slack);
            ak_pack_range(&job, &range, buffer);
            ck_assert_mem_eq(buffer + slack, w->block + begin, end - begin);
        }
        ak_free(buffer);
    }
    ak_model_free(model);
}
END_TEST

static uint8_t *dropped; /* of each byte of the source, whether it was dropped */
static const uint8_t *source;
static uint64_t source_bytes;

static void note_advice(const struct ak_provider *p, const void *data, uint64_t bytes,
                        enum ak_file_advice use)
{
    (void)p;
    uint64_t at = (uint64_t)((const uint8_t *)data - source);
    if (at >= source_bytes || bytes > source_bytes - at)
        return;
    if (use == AK_FILE_DONTNEED) /* these rows were read */
        ck_assert_ptr_null(memchr(dropped + at, 1, bytes));
    else if (use == AK_FILE_DROP_CACHE)
        memset(dropped + at, 1, bytes);
}

/* In whatever order windows are packed, none needs what another has dropped. */
START_TEST(dropped_once)
{
    enum { BYTES = 1 << 16 };
    char path[4096];
    struct ak_model *model = NULL;
    struct akunu_load_params params = params_for(NULL);
    ck_assert_int_eq(load_from(golden_path("mixed", ".gguf", path), &params, &model, NULL),
                     AKUNU_OK);
    struct ak_weights *w = &model->weights;
    struct ak_pack_job job = {
        .weights = w, .backend = model->backend, .source = model->provider, .evict_source = true
    };
    const struct ak_provider_format *format = model->provider->format;
    struct ak_provider_format noting = *format;
    noting.advise = note_advice;
    model->provider->format = &noting;
    source = ak_provider_part(model->provider, 0)->data;
    source_bytes = ak_provider_part(model->provider, 0)->bytes;
    uint64_t slack = ak_round_up(ak_pack_slack(&job), 4096), n = (w->block_bytes - 1) / BYTES + 1;
    uint8_t *buffer = ak_alloc_aligned(BYTES + 2 * slack);
    for (int order = 0; order < 2; order++) {
        dropped = ak_alloc(source_bytes, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t begin = (order ? n - 1 - i : i) * BYTES;
            struct ak_pack_range range = {
                .begin = begin, .end = begin + BYTES, .origin = begin - slack, .both_ends = true
            };
            ak_pack_range(&job, &range, buffer);
        }
        uint64_t n_dropped = 0;
        for (uint64_t i = 0; i < source_bytes; i++)
            n_dropped += dropped[i];
        ck_assert_uint_gt(n_dropped, source_bytes / 4);
        ak_free(dropped);
    }
    ak_free(buffer);
    model->provider->format = format;
    ak_model_free(model);
}
END_TEST

/* Every window once, whoever takes them; numa_local ones first where that is wanted. */
START_TEST(every_window_once)
{
    enum { THREADS = 3, BYTES = 4096 };
    char path[4096];
    struct ak_model *model = NULL;
    struct ak_pool *pool;
    struct akunu_load_params params = params_for(NULL);
    ck_assert_int_eq(load_from(golden_path("mixed", ".gguf", path), &params, &model, NULL),
                     AKUNU_OK);
    ck_assert_int_eq(ak_pool_create(THREADS, &pool, NULL), AKUNU_OK);
    struct ak_pack_job job = { .weights = &model->weights,
                               .backend = model->backend,
                               .pool = pool };
    for (int numa_local = 0; numa_local < 2; numa_local++) {
        struct ak_pack_windows windows;
        ck_assert_int_eq(ak_pack_windows_create(&job, BYTES, &windows, NULL), AKUNU_OK);
        windows.numa_local = numa_local;
        ck_assert_uint_eq(windows.n, (model->weights.block_bytes + BYTES - 1) / BYTES);
        size_t next[THREADS] = { 0 }, own = 0, taken = 0;
        uint64_t begin, last = 0;
        bool ascends = true;
        uint8_t *seen = ak_alloc(windows.n, 1);
        while (ak_pack_windows_take(&windows, 1, &next[1], &begin) &&
               (!numa_local || next[1] < windows.n)) {
            ascends &= own == 0 || begin > last;
            last = begin;
            ck_assert_uint_eq(seen[begin / BYTES]++, 0);
            own++;
        }
        ck_assert(ascends);
        ck_assert_uint_gt(own, 0);
        if (numa_local) /* a third; and the first of the second round, which was nobody's yet */
            ck_assert_uint_lt(own, windows.n / 2);
        for (unsigned thread = 0; thread < THREADS; thread++)
            while (ak_pack_windows_take(&windows, thread, &next[thread], &begin)) {
                ck_assert_uint_eq(seen[begin / BYTES]++, 0);
                taken++;
            }
        ck_assert_uint_eq(own + taken + (numa_local ? 1 : 0), windows.n);
        ak_free(seen);
        ak_pack_windows_clear(&windows);
    }
    ak_pool_free(pool);
    ak_model_free(model);
}
END_TEST

static void write_at(const char *path, long at, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
    close(fd);
}

/* Damaged: said, replaced, the same result; then it is used in silence. */
static void check_replaced(const char *what)
{
    ck_assert_msg(load_mixed(folder), "%s: not cached anew", what);
    ck_assert_msg(strstr(said, "damaged") != NULL, "%s: \"%s\"", what, said);
    ck_assert_msg(load_mixed(folder), "%s: not used", what);
    ck_assert_str_eq(said, "");
    ck_assert_uint_eq(count(folder, 0), 1);
}

START_TEST(damaged)
{
    static const long flips[] = { 0,
                                  8,
                                  12,
                                  16,
                                  23,
                                  24,
                                  31,
                                  32,
                                  63,
                                  64,
                                  96,
                                  128,
                                  2200,
                                  4063,
                                  4064,
                                  4095,
                                  AK_STORE_BLOCK_OFFSET,
                                  AK_STORE_BLOCK_OFFSET + 70000 };
    char what[64];
    load_mixed(folder);
    const char *path = only_file();
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        uint8_t byte;
        int fd = open(path, O_RDONLY);
        ck_assert_int_eq(pread(fd, &byte, 1, flips[i]), 1);
        close(fd);
        byte ^= 0x10;
        write_at(path, flips[i], &byte, 1);
        ck_assert_uint_eq(count(folder, AKUNU_CACHE_DAMAGED), 1);
        snprintf(what, sizeof what, "byte %ld", flips[i]);
        check_replaced(what);
    }
    const long lengths[] = { 0,
                             1,
                             8,
                             4095,
                             4096,
                             4097,
                             AK_STORE_BLOCK_OFFSET - 1,
                             AK_STORE_BLOCK_OFFSET,
                             AK_STORE_BLOCK_OFFSET + 1,
                             st.st_size / 2,
                             st.st_size - 1,
                             st.st_size + 1 };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct timespec times[2] = { st.st_atim, st.st_mtim };
        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert_int_eq(truncate(path, lengths[i]), 0);
        ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0); /* not even its time tells */
        snprintf(what, sizeof what, "%ld bytes", lengths[i]);
        check_replaced(what);
    }
}
END_TEST

/* No bit of a header can be another without notice. */
START_TEST(header_bits)
{
    uint8_t page[AK_STORE_HEADER_BYTES];
    struct ak_store_header made = { .block_bytes = 4096,
                                    .built = 1700000000,
                                    .source_bytes = 7,
                                    .source_mtime_ns = -5,
                                    .backend = "cpu",
                                    .source = "/models/x.gguf" },
                           got;
    memset(made.key.digest, 0xa5, sizeof made.key.digest);
    ak_store_header_write(&made, page);
    ck_assert(ak_store_header_read(page, &got));
    test_same_header(&got, &made);
    for (size_t i = 0; i < sizeof page; i++) {
        page[i] ^= (uint8_t)(1u << i % 8);
        ck_assert_msg(!ak_store_header_read(page, &got), "byte %zu", i);
        page[i] ^= (uint8_t)(1u << i % 8);
    }
    memset(made.source, 'x', sizeof made.source); /* without its end */
    ak_store_header_write(&made, page);
    ck_assert(!ak_store_header_read(page, &got));
}
END_TEST

static void pack_otherwise(const struct ak_backend *b, uint32_t layout, const struct ak_view *view,
                           uint32_t first, uint32_t n, void *to)
{
    (void)b, (void)layout, (void)view, (void)first, (void)n;
    *(uint8_t *)to = 1;
}

/* The key is of the model file, the plan and what the packer does. */
START_TEST(keys)
{
    char path[4096];
    struct ak_model *model = NULL, *copy = NULL;
    struct ak_store_key key, other;
    struct akunu_load_params params = params_for(NULL);
    ck_assert_int_eq(load_from(golden_path("mixed", ".gguf", path), &params, &model, NULL),
                     AKUNU_OK);
    ck_assert_int_eq(load_from(copy_mixed(), &params, &copy, NULL), AKUNU_OK);
    struct ak_pack_job job = { .weights = &model->weights,
                               .backend = model->backend,
                               .source = model->provider };
    ck_assert_int_eq(ak_pack_cache_key(&job, &key, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_pack_cache_key(&job, &other, NULL), AKUNU_OK);
    ck_assert_mem_eq(&key, &other, sizeof key);

    job.source = copy->provider; /* another time of change */
    ck_assert_int_eq(ak_pack_cache_key(&job, &other, NULL), AKUNU_OK);
    ck_assert_mem_ne(&key, &other, sizeof key);
    job.source = model->provider;

    uint32_t i = 0;
    while (model->weights.packed[i].bytes == 0)
        i++;
    model->weights.packed[i].layout++;
    ck_assert_int_eq(ak_pack_cache_key(&job, &other, NULL), AKUNU_OK);
    ck_assert_mem_ne(&key, &other, sizeof key);
    model->weights.packed[i].layout--;
    model->weights.packed[i].parts[0].offset += 64;
    ck_assert_int_eq(ak_pack_cache_key(&job, &other, NULL), AKUNU_OK);
    ck_assert_mem_ne(&key, &other, sizeof key);
    model->weights.packed[i].parts[0].offset -= 64;

    const struct ak_backend_ops *ops = model->backend->ops;
    struct ak_backend_ops changed = *ops;
    changed.pack = pack_otherwise;
    model->backend->ops = &changed;
    ck_assert_int_eq(ak_pack_cache_key(&job, &other, NULL), AKUNU_OK);
    ck_assert_mem_ne(&key, &other, sizeof key);
    model->backend->ops = ops;
    ak_model_free(model);
    ak_model_free(copy);
}
END_TEST

/* A file that is whole, but of another model. */
START_TEST(foreign)
{
    struct outcome out;
    char path[256], aside[128];
    load_mixed(folder);
    snprintf(path, sizeof path, "%s", only_file());
    snprintf(aside, sizeof aside, "%s/aside", folder);
    ck_assert_int_eq(rename(path, aside), 0);
    /* the same model with another time: its cache differs in nothing but the key */
    load_path(copy_mixed(), folder, &out);
    ck_assert_int_eq(rename(only_file(), path), 0);
    check_replaced("a foreign file");
}
END_TEST

/* What lies under the name is not a regular file of ours. */
START_TEST(in_the_way)
{
    char path[256], other[128];
    load_mixed(folder);
    snprintf(path, sizeof path, "%s", only_file());
    snprintf(other, sizeof other, "%s/victim", folder);
    ck_assert_int_eq(rename(path, other), 0);
    struct stat before, after;
    ck_assert_int_eq(stat(other, &before), 0);

    ck_assert_int_eq(symlink(other, path), 0); /* not followed, replaced */
    ck_assert(load_mixed(folder));
    ck_assert_int_eq(lstat(path, &after), 0);
    ck_assert(S_ISREG(after.st_mode));
    ck_assert_int_eq(unlink(path), 0);

    ck_assert_int_eq(mkfifo(path, 0600), 0); /* must not make us wait */
    check_replaced("a pipe");
    ck_assert_int_eq(unlink(path), 0);

    ck_assert_int_eq(mkdir(path, 0700), 0); /* cannot be replaced: not used */
    ck_assert(!load_mixed(folder));
    ck_assert_str_ne(said, "");
    ck_assert_int_eq(rmdir(path), 0);

    strcat(path, ".part");
    ck_assert_int_eq(symlink(other, path), 0); /* not written through */
    ck_assert(!load_mixed(folder));
    ck_assert_str_ne(said, "");
    ck_assert_int_eq(stat(other, &after), 0);
    ck_assert(after.st_size == before.st_size && after.st_mtim.tv_sec == before.st_mtim.tv_sec);
}
END_TEST

/* A model file that changed: a new cache, and the old one is gone. */
START_TEST(stale)
{
    struct outcome out;
    const char *copy = copy_mixed();
    load_path(copy, folder, &out);
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 1);
    struct timespec times[2] = { { .tv_sec = 1600000000 }, { .tv_sec = 1600000000 } };
    ck_assert_int_eq(utimensat(AT_FDCWD, copy, times, 0), 0);
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_STALE), 1);
    load_path(copy, folder, &out);
    ck_assert_str_eq(said, "");
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 1);
    ck_assert_uint_eq(count(folder, 0), 1);
    unlink(copy);
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_STALE), 1);
}
END_TEST

/* ---- Notices and the limit ---------------------------------------------- */
/* Says once per folder that something is kept. */
START_TEST(first_one_noticed)
{
    struct outcome out;
    ck_assert(load_mixed(folder));
    ck_assert_msg(strstr(noticed, "packed weights are kept for later starts: ") &&
                      strstr(noticed, folder) && strstr(noticed, "where they may take "),
                  "%s", noticed);
    ck_assert(load_mixed(folder));
    ck_assert_str_eq(noticed, "");
    load_path(copy_mixed(), folder, &out);
    ck_assert_str_eq(noticed, "");
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 2);
}
END_TEST

static struct akunu_model *load_only(const char *path)
{
    struct akunu_load_params params = params_for(folder);
    struct akunu_model *model = akunu_model_load(path, &params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

/* Two models, and a limit for one of them. */
START_TEST(limited)
{
    char path[4096];
    struct outcome out;
    struct stat st;
    struct akunu_model *model = load_only(golden_path("mixed", ".gguf", path));
    ck_assert_int_eq(stat(only_file(), &st), 0);
    cache_limit = (uint64_t)st.st_blocks * 512 * 3 / 2;
    const char *copy = copy_mixed();
    load_path(copy, folder, &out); /* the first one is in use */
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 2);
    ck_assert_str_eq(noticed, "");
    akunu_model_free(model);

    struct timespec times[2] = { { .tv_sec = 1600000000 }, { .tv_sec = 1600000000 } };
    ck_assert_int_eq(utimensat(AT_FDCWD, copy, times, 0), 0); /* packed anew */
    load_path(copy, folder, &out);
    ck_assert_uint_eq(count(folder, 0), 1);
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 1);
    ck_assert_msg(strstr(noticed, "removed the packed weights of ") &&
                      strstr(noticed, "mixed.gguf"),
                  "%s", noticed);

    cache_limit = 1000;
    ck_assert(!load_mixed(folder));
    ck_assert_msg(strstr(said, ", and all of them may take 1.0 kB (the cache limit)"), "%s", said);
    ck_assert_uint_eq(count(folder, 0), 1);
    cache_limit = UINT64_MAX;
    ck_assert(load_mixed(folder));
    ck_assert_uint_eq(count(folder, 0), 2);
    cache_limit = 0;
}
END_TEST

/* ---- Plans -------------------------------------------------------------- */
static void plan_mixed(const struct akunu_load_params *params, enum akunu_packing packing,
                       enum akunu_cache_state state, const char *reason,
                       struct akunu_load_plan *out)
{
    char path[4096];
    ck_assert_int_eq(
        akunu_get_load_plan(golden_path("mixed", ".gguf", path), params, NULL, out, sizeof *out),
        AKUNU_OK);
    ck_assert_msg(out->packing == packing && out->cache_state == state &&
                      strstr(out->reason, reason) && (*out->reason || !*reason),
                  "%s, state %d: %s", akunu_packing_name(out->packing), out->cache_state,
                  out->reason);
    ck_assert_int_eq(out->tier,
                     packing == AKUNU_PACKING_CACHED ? AKUNU_TIER_PACKED : AKUNU_TIER_SOURCE);
}

/* A plan says what the next load does, and changes nothing. */
START_TEST(planned)
{
    struct akunu_load_params params = params_for(folder);
    struct akunu_load_plan plan, before;
    char name[128];
    plan_mixed(&params, AKUNU_PACKING_KEPT, 0, "not in the cache yet", &before);
    ck_assert_uint_eq(files_in(folder), 0);
    params.cache_limit = 1000;
    plan_mixed(&params, AKUNU_PACKING_MEMORY, 0, "all of them may take 1.0 kB", &plan);
    ck_assert_str_eq(plan.cache_file, "");
    params.cache_limit = 0;
    params.no_cache = true;
    plan_mixed(&params, AKUNU_PACKING_MEMORY, 0, "not to be used", &plan);
    params.no_cache = false;

    int dir = open(folder, O_RDONLY | O_DIRECTORY);
    bool busy;
    snprintf(name, sizeof name, "%s.part", before.cache_file);
    int writer = ak_store_lock_temp(dir, name, &busy); /* as a process that packs it has */
    ck_assert_int_ge(writer, 0);
    plan_mixed(&params, AKUNU_PACKING_KEPT, AKUNU_CACHE_BUILDING, "another process", &plan);
    close(writer);
    ck_assert_int_eq(unlinkat(dir, name, 0), 0);
    close(dir);

    ck_assert(load_mixed(folder));
    plan_mixed(&params, AKUNU_PACKING_CACHED, AKUNU_CACHE_READY, "", &plan);
    ck_assert_str_eq(plan.cache_file, before.cache_file);
    ck_assert_str_eq(strrchr(only_file(), '/') + 1, plan.cache_file);
    ck_assert_int_gt(plan.built, 0);
    write_at(only_file(), AK_STORE_BLOCK_OFFSET, "x", 1);
    plan_mixed(&params, AKUNU_PACKING_KEPT, AKUNU_CACHE_DAMAGED, "damaged", &plan);
}
END_TEST

/* The sizes of a plan are those of the model and the session. */
START_TEST(planned_sizes)
{
    char path[4096];
    struct akunu_load_params params = params_for(NULL);
    struct akunu_session_params session;
    struct akunu_load_plan plan;
    struct akunu_memory memory;
    struct akunu_model_info info;
    akunu_session_params_default(&session, sizeof session);
    session.context = 200;
    session.n_threads = 2;
    for (size_t i = 0; i < N_GOLDENS; i++) {
        golden_path(goldens[i].name, ".gguf", path);
        struct akunu_model *model = akunu_model_load(path, &params);
        ck_assert_ptr_nonnull(model);
        struct akunu_session *opened = akunu_session_new(model, &session);
        ck_assert_ptr_nonnull(opened);
        ck_assert_int_eq(akunu_get_load_plan(path, &params, &session, &plan, sizeof plan),
                         AKUNU_OK);
        ck_assert_int_eq(akunu_model_get_memory(model, opened, &memory, sizeof memory), AKUNU_OK);
        ck_assert_int_eq(akunu_model_get_info(model, &info, sizeof info), AKUNU_OK);
        ck_assert_uint_eq(plan.kv_bytes, memory.kv);
        ck_assert_uint_eq(plan.token_weight_bytes, info.token_weight_bytes);
        ck_assert(plan.packed_bytes <= memory.packed && plan.in_place_bytes <= memory.mapped);
        ck_assert_uint_gt(plan.packed_bytes + plan.in_place_bytes, 0);
        ck_assert_uint_gt(plan.scratch_bytes, 0);
        akunu_session_free(opened);
        akunu_model_free(model);
    }
    ck_assert_int_eq(akunu_get_load_plan("/nonexistent", NULL, NULL, &plan, sizeof plan),
                     AKUNU_ERROR_FORMAT);
    ck_assert_int_eq(akunu_get_load_plan(NULL, NULL, NULL, &plan, sizeof plan),
                     AKUNU_ERROR_ARGUMENT);
}
END_TEST

/* ---- Processes ---------------------------------------------------------- */
START_TEST(at_once)
{
    enum { PROCESSES = 6 };
    if (!can_fork())
        return;
    load_mixed(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0)
            _exit(load_mixed(folder) && said[0] == '\0' ? 0 : 1);
    }
    for (int i = 0, status; i < PROCESSES; i++) {
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 1);
    ck_assert_uint_eq(files_in(folder), 1);
}
END_TEST

/* Killed at each call that changes a file: never more than a temporary file, which the next
 * process takes over. */
START_TEST(killed)
{
    int at = 1, n_cut = 0; /* kills that left a temporary file with a part of its bytes */
    if (!can_fork())
        return;
    load_mixed(NULL);
    for (;; at++) {
        struct stat st;
        char path[256];
        int status;
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            disturb(at, 0);
            load_mixed(folder);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) {
            ck_assert_int_eq(WEXITSTATUS(status), 0);
            break;
        }
        ck_assert_int_eq(WTERMSIG(status), SIGKILL);
        ck_assert_uint_eq(count(folder, 0), 1);
        ck_assert_uint_eq(count(folder, AKUNU_CACHE_DAMAGED), 0);
        snprintf(path, sizeof path, "%s", only_file());
        n_cut +=
            count(folder, AKUNU_CACHE_UNFINISHED) == 1 && stat(path, &st) == 0 && st.st_blocks > 0;
        ck_assert(load_mixed(folder));
        ck_assert_str_eq(said, "");
        ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 1);
        ck_assert_uint_eq(files_in(folder), 1);
        ck_assert_int_eq(unlink(only_file()), 0);
    }
    /* Room, the block, progress, the header, its time, the name, and a sync after each part. */
    ck_assert_int_ge(at, 9);
    ck_assert_int_ge(n_cut, 6);
}
END_TEST

/* Each call that changes a file fails once: the weights are packed in memory, one line says
 * so, nothing is left behind, and the next load has its cache. */
START_TEST(failing_calls)
{
    static const int errors[] = { ENOSPC, EIO };
    int n_uncached = 0, at = 1;
    for (bool reached = true; reached; at++)
        for (int i = 0; i < 2; i++) {
            disturb(at, errors[i]);
            bool cached = load_mixed(folder);
            reached = atomic_load(&n_changes) >= at;
            disturb(0, 0);
            if (!cached) {
                ck_assert_msg(strstr(said, i == 0 ? "the disk is full" : strerror(EIO)) != NULL,
                              "call %d: \"%s\"", at, said);
                ck_assert_uint_eq(files_in(folder), 0);
                ck_assert(load_mixed(folder));
                n_uncached++;
            }
            ck_assert_str_eq(said, "");
            ck_assert_uint_eq(count(folder, AKUNU_CACHE_READY), 1);
            ck_assert_int_eq(unlink(only_file()), 0);
        }
    ck_assert_int_ge(at, 9);
    ck_assert_int_ge(n_uncached, 2 * 6);
}
END_TEST

/* The system may store a part of what a write is given, and signals interrupt writes. */
START_TEST(writes_in_parts)
{
    disturb(0, 0);
    short_writes = true;
    bool cached = load_mixed(folder);
    short_writes = false;
    ck_assert(cached);
    ck_assert_int_gt(atomic_load(&n_writes), 20);
    ck_assert_str_eq(said, "");
    ck_assert(load_mixed(folder));
    ck_assert_str_eq(said, "");
}
END_TEST

static const char part[] = "0123456789abcdef0123456789abcdef.packed.part";

START_TEST(parts)
{
    struct akunu_cache_entry entry;
    int dir = ak_store_open_dir(folder, false);
    bool busy;
    int fd = ak_store_lock_temp(dir, part, &busy);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ak_store_lock_temp(dir, part, &busy), -1);
    ck_assert(busy);
    uint64_t done, total;
    ck_assert(!ak_store_get_progress(fd, &done, &total));
    ck_assert(ak_store_put_progress(fd, 3, 4) && ak_store_get_progress(fd, &done, &total) &&
              done == 3 && total == 4);

    struct akunu_cache *cache = akunu_cache_open(folder);
    ck_assert_int_eq(akunu_cache_get_entry(cache, 0, &entry, sizeof entry), AKUNU_OK);
    ck_assert_int_eq(entry.state, AKUNU_CACHE_BUILDING);
    ck_assert_int_eq(akunu_cache_remove(cache, 0), AKUNU_ERROR_IO);
    ck_assert_int_eq(akunu_cache_remove(cache, 1), AKUNU_ERROR_ARGUMENT);
    close(fd);
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_UNFINISHED), 1);
    ck_assert(load_mixed(folder)); /* cleans up behind others */
    ck_assert_uint_eq(count(folder, AKUNU_CACHE_UNFINISHED), 0);
    akunu_cache_free(cache);

    fd = ak_store_lock_temp(dir, part, &busy);
    close(fd);
    cache = akunu_cache_open(folder);
    for (size_t i = 0; i < akunu_cache_count(cache); i++)
        ck_assert_int_eq(akunu_cache_remove(cache, i), AKUNU_OK);
    ck_assert_uint_eq(files_in(folder), 0);
    ck_assert_int_eq(akunu_cache_remove(cache, 0), AKUNU_ERROR_IO); /* it is gone */
    akunu_cache_free(cache);
    close(dir);
    ck_assert_ptr_null(akunu_cache_open("/dev/null"));
    ck_assert_uint_eq(count("/nonexistent/akunu", 0), 0);
}
END_TEST

static bool on_progress(enum akunu_load_stage stage, double fraction, void *user)
{
    (void)fraction, (void)user;
    return stage != AKUNU_STAGE_WEIGHTS;
}

START_TEST(cancelled)
{
    char path[4096];
    struct akunu_load_params params = params_for(folder);
    params.n_threads = 1;
    params.progress = on_progress;
    ck_assert_ptr_null(akunu_model_load(golden_path("mixed", ".gguf", path), &params));
    ck_assert_int_eq(akunu_last_status(), AKUNU_ERROR_CANCELLED);
    ck_assert_uint_eq(files_in(folder), 0);
}
END_TEST

/* ---- Folders that cannot be used ---------------------------------------- */
START_TEST(unusable)
{
    char path[128];
    snprintf(path, sizeof path, "%s/file", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert(!load_mixed(path));
    ck_assert_msg(strstr(said, path) != NULL, "%s", said);
    ck_assert(!load_mixed("/proc/akunu"));
    ck_assert_str_ne(said, "");
    ck_assert(!load_mixed(""));
    ck_assert_str_ne(said, "");
    struct rlimit limit, small = { .rlim_cur = 4096 };
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small.rlim_max = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool cached = load_mixed(folder); /* a write beyond the limit would end the process */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert(!cached);
    ck_assert_str_ne(said, "");
    ck_assert_uint_eq(count(folder, 0), 0);
}
END_TEST

/* The guard passed over: a disk that is full in the middle. */
static bool build_in(const char *path, const char **why)
{
    char name[4096];
    struct ak_model *model = NULL;
    struct akunu_load_params params = params_for(NULL);
    bool busy, stopped;
    if (load_from(golden_path("mixed", ".gguf", name), &params, &model, NULL) != AKUNU_OK)
        return true;
    int dir = ak_store_open_dir(path, false), fd = ak_store_lock_temp(dir, part, &busy);
    struct ak_pack_job job = { .weights = &model->weights,
                               .backend = model->backend,
                               .source = model->provider };
    struct ak_store_writer build = { .dir = dir,
                                     .fd = fd,
                                     .temp_name = part,
                                     .name = "x",
                                     .header.block_bytes = model->weights.block_bytes };
    bool built = dir < 0 || fd < 0 || ak_pool_create(2, &job.pool, NULL) != AKUNU_OK ||
                 ak_pack_cache_build(&job, &build, &stopped, why);
    ak_pool_free(job.pool);
    close(fd);
    close(dir);
    ak_model_free(model);
    return built;
}

/* What a test needs of the system and does not get: a failure where AKUNU_REQUIRE_MOUNT is 1. */
static void skip(const char *test)
{
    const char *required = getenv("AKUNU_REQUIRE_MOUNT");
    ck_assert_msg(!required || strcmp(required, "1") != 0,
                  "%s: neither mounting nor another user is allowed here", test);
    printf("SKIPPED: test_cache %s: not allowed here\n", test);
    fflush(stdout);
}

enum { NOT_ALLOWED = 77 };

/* Runs `body` in a process of its own, which returns 0, NOT_ALLOWED, or what failed. */
static void run_in_child(int (*body)(void), const char *test)
{
    int status;
    if (!can_fork())
        return;
    load_mixed(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(body());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_ALLOWED)
        skip(test);
    else
        ck_assert_msg(WEXITSTATUS(status) == 0, "%s: part %d failed: \"%s\"", test,
                      WEXITSTATUS(status), said);
}

static bool put_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool put = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    close(fd);
    return put;
}

/* Mounts of this process alone; an ordinary user becomes root of a namespace for them. */
static bool mount_own(const char *options)
{
    char map[2][48];
    snprintf(map[0], sizeof map[0], "0 %u 1", (unsigned)geteuid());
    snprintf(map[1], sizeof map[1], "0 %u 1", (unsigned)getegid());
    if (unshare(CLONE_NEWNS) != 0 &&
        (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !put_text("/proc/self/setgroups", "deny") ||
         !put_text("/proc/self/uid_map", map[0]) || !put_text("/proc/self/gid_map", map[1])))
        return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", folder, "tmpfs", 0, options) == 0;
}

static int load_on_full_disk(void)
{
    const char *why = "";
    if (!mount_own("size=128k"))
        return NOT_ALLOWED;
    if (load_mixed(folder) || said[0] == '\0' || files_in(folder) != 0)
        return 1;
    return build_in(folder, &why) || strstr(why, "full") == NULL || files_in(folder) != 0 ? 2 : 0;
}

START_TEST(full_disk)
{
    run_in_child(load_on_full_disk, "full_disk");
}
END_TEST

/* A cache that is there is used; without one the model is packed in memory. */
static int load_on_read_only(void)
{
    if (!mount_own("size=64m"))
        return NOT_ALLOWED;
    if (!load_mixed(folder) || said[0] != '\0')
        return 1;
    if (mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return NOT_ALLOWED;
    if (!load_mixed(folder) || said[0] != '\0')
        return 2;
    if (mount("none", folder, NULL, MS_REMOUNT, NULL) != 0 || unlink(only_file()) != 0 ||
        mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
        return 3;
    return load_mixed(folder) || strstr(said, strerror(EROFS)) == NULL ? 4 : 0;
}

START_TEST(read_only_disk)
{
    run_in_child(load_on_read_only, "read_only_disk");
}
END_TEST

/* Permissions bind ordinary users alone. */
static int load_without_permission(void)
{
    enum { NOBODY = 65534 };
    struct outcome with, without;
    char model[128], dir[128];
    snprintf(model, sizeof model, "%s", copy_mixed());
    snprintf(dir, sizeof dir, "%s/cache", folder);
    load_path(model, NULL, &without);
    if (mkdir(dir, 0500) != 0 || chmod(folder, 0755) != 0 || chmod(model, 0644) != 0)
        return 1;
    if (geteuid() == 0 && (chown(dir, NOBODY, NOBODY) != 0 || setgroups(0, NULL) != 0 ||
                           setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return NOT_ALLOWED;
    load_path(model, dir, &with);
    if (with.cached > 0 || strstr(said, strerror(EACCES)) == NULL)
        return 2;
    if (memcmp(with.logits, without.logits, sizeof with.logits) != 0 || files_in(dir) != 0)
        return 3;
    if (chmod(dir, 0700) != 0)
        return 4;
    load_path(model, dir, &with); /* which was the folder's fault alone */
    return with.cached == 0 || said[0] != '\0' ? 5 : 0;
}

START_TEST(read_only_folder)
{
    run_in_child(load_without_permission, "read_only_folder");
}
END_TEST

START_TEST(default_folder)
{
    char *dir;
    setenv("HOME", "/home/x", 1);
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    setenv("AKUNU_CACHE_DIR", "own", 1);
    ck_assert_str_eq(dir = ak_store_default_dir(), "own");
    ak_free(dir);
    unsetenv("AKUNU_CACHE_DIR");
    ck_assert_str_eq(dir = ak_store_default_dir(), "/xdg/akunu");
    ak_free(dir);
    setenv("XDG_CACHE_HOME", "relative", 1);
    ck_assert_str_eq(dir = ak_store_default_dir(), "/home/x/.cache/akunu");
    ak_free(dir);
    unsetenv("HOME");
    ck_assert_ptr_null(ak_store_default_dir());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *tests = tcase_create("cache");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, same_bits);
    tcase_add_test(tests, nothing_to_pack);
    tcase_add_test(tests, ranges);
    tcase_add_test(tests, dropped_once);
    tcase_add_test(tests, every_window_once);
    tcase_add_test(tests, damaged);
    tcase_add_test(tests, header_bits);
    tcase_add_test(tests, keys);
    tcase_add_test(tests, foreign);
    tcase_add_test(tests, in_the_way);
    tcase_add_test(tests, stale);
    tcase_add_test(tests, first_one_noticed);
    tcase_add_test(tests, limited);
    tcase_add_test(tests, planned);
    tcase_add_test(tests, planned_sizes);
    tcase_add_test(tests, parts);
    tcase_add_test(tests, cancelled);
    tcase_add_test(tests, default_folder);
    TCase *faults = tcase_create("faults");
    tcase_add_checked_fixture(faults, set_up, tear_down);
    tcase_add_test(faults, at_once);
    tcase_add_test(faults, killed);
    tcase_add_test(faults, failing_calls);
    tcase_add_test(faults, writes_in_parts);
    TCase *folders = tcase_create("folders");
    tcase_add_checked_fixture(folders, set_up, tear_down);
    tcase_add_test(folders, unusable);
    tcase_add_test(folders, full_disk);
    tcase_add_test(folders, read_only_disk);
    tcase_add_test(folders, read_only_folder);
    suite_add_tcase(suite, tests);
    suite_add_tcase(suite, faults);
    suite_add_tcase(suite, folders);
    return test_run(suite);
}
