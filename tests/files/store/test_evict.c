/* The cache folder: its place, its files and their headers, what a list of them says, the space
 * that a new one needs. The limit: the least recently used files go first, none that is in use. */
#include "tests/test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "files/store/store.h"
#include "tests/out_of_memory.h"
#include "tests/process.h"
#include "tests/store_header.h"

enum { BLOCK = 256 * 1024, UNKNOWN = 100 }; /* UNKNOWN: number of a file without a model's path */

/* ---- Calls of the system ------------------------------------------------ */
/* The linker sends the library's calls through these (tests/local.mk). */
static const struct statvfs *disk; /* what fstatvfs says; NULL: the truth */
static uint32_t file_system;       /* its type, as fstatfs says; 0: the truth */
static bool refuses_streams;       /* fdopendir fails */

int __real_fstatvfs(int fd, struct statvfs *out);
int __wrap_fstatvfs(int fd, struct statvfs *out);
int __real_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);

int __wrap_fstatvfs(int fd, struct statvfs *out)
{
    if (!disk || fd < 0)
        return __real_fstatvfs(fd, out);
    *out = *disk;
    return 0;
}

int __wrap_fstatfs(int fd, struct statfs *out)
{
    if (!file_system)
        return __real_fstatfs(fd, out);
    *out = (struct statfs){ .f_type = file_system };
    return 0;
}

DIR *__wrap_fdopendir(int fd)
{
    errno = ENOMEM;
    return refuses_streams ? NULL : __real_fdopendir(fd);
}

/* ---- Files -------------------------------------------------------------- */
static char folder[64];
static int dir;
static char said[4096]; /* all lines of the log */

static void on_log(enum akunu_log_level level, const char *line, void *user)
{
    (void)user;
    ck_assert_int_eq(level, AKUNU_LOG_NOTICE);
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

static const struct ak_log log_all = { on_log, NULL };

static void set_up(void)
{
    snprintf(folder, sizeof folder, "/tmp/akunu-evict-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_ge(dir = ak_store_open_dir(folder, false), 0);
    said[0] = '\0';
}

static void tear_down(void)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        (void)unlinkat(dir, e->d_name, 0);
    closedir(d);
    close(dir);
    rmdir(folder);
}

/* The name of the file of that number; valid until the call after the next three. */
static const char *name_of(int number, enum ak_store_kind kind)
{
    static char names[4][AK_STORE_NAME_BYTES];
    static int next;
    struct ak_store_key key = { { (uint8_t)number } };
    char *name = names[next++ % 4];
    ak_store_file_name(
        &key, kind == AK_STORE_PACKED ? AK_STORE_PACKED_SUFFIX : AK_STORE_PROMPT_SUFFIX, name);
    return name;
}

static bool exists(int number, enum ak_store_kind kind)
{
    struct stat st;
    return fstatat(dir, name_of(number, kind), &st, 0) == 0;
}

/* Writes a file that was used `minutes` ago; the bytes it takes. */
static uint64_t make_file(int number, enum ak_store_kind kind, int minutes)
{
    static uint8_t block[BLOCK];
    char temp_name[AK_STORE_NAME_BYTES];
    bool busy;
    struct stat st;
    const char *name = name_of(number, kind);
    struct ak_store_writer writer = {
        .dir = dir,
        .temp_name = temp_name,
        .name = name,
        .header = { .kind = kind, .block_bytes = BLOCK, .key = { { (uint8_t)number } } },
    };
    snprintf(writer.header.backend, sizeof writer.header.backend, "cpu");
    if (number < UNKNOWN)
        snprintf(writer.header.source, sizeof writer.header.source, "/models/%d.gguf", number);
    snprintf(temp_name, sizeof temp_name, "%s.part", name);
    memset(block, number, sizeof block);
    ck_assert_int_ge(writer.fd = ak_store_lock_temp(dir, temp_name, &busy), 0);
    ck_assert_int_eq(
        ak_store_write(writer.fd, block, BLOCK,
                       kind == AK_STORE_PACKED ? AK_STORE_BLOCK_OFFSET : AK_STORE_HEADER_BYTES),
        0);
    ck_assert_int_eq(ak_store_commit(&writer), 0);
    struct timespec times[2] = { { .tv_sec = time(NULL) - 60 * minutes },
                                 { .tv_nsec = UTIME_OMIT } };
    ck_assert_int_eq(futimens(writer.fd, times), 0);
    ck_assert_int_eq(fstat(writer.fd, &st), 0);
    close(writer.fd);
    return (uint64_t)st.st_blocks * 512;
}

static void evict(enum ak_store_kind kind, const char *keep, uint64_t bytes_max)
{
    struct ak_store_entry *entries;
    size_t n;
    ck_assert_int_eq(ak_store_list(dir, &entries, &n, NULL), AKUNU_OK);
    ak_store_evict_oldest(dir, entries, n, kind, keep, bytes_max, &log_all, AKUNU_LOG_NOTICE);
    ak_free(entries);
}

static bool is_first(enum ak_store_kind kind, const char *name)
{
    struct ak_store_entry *entries;
    size_t n;
    ck_assert_int_eq(ak_store_list(dir, &entries, &n, NULL), AKUNU_OK);
    bool first = ak_store_is_first(entries, n, kind, name);
    ak_free(entries);
    return first;
}

START_TEST(oldest_first)
{
    static const int minutes[] = { 3000, 20, 40, 30 };
    uint64_t bytes = 0;
    for (int i = 0; i < 4; i++)
        bytes = make_file(i, AK_STORE_PACKED, minutes[i]);
    make_file(4, AK_STORE_PROMPT, 5000);
    evict(AK_STORE_PACKED, name_of(1, AK_STORE_PACKED), 4 * bytes);
    ck_assert_str_eq(said, "");
    evict(AK_STORE_PACKED, name_of(1, AK_STORE_PACKED), 4 * bytes - 1);
    ck_assert(!exists(0, AK_STORE_PACKED) && exists(2, AK_STORE_PACKED));
    ck_assert_msg(strstr(said, "removed the packed weights of /models/0.gguf (") &&
                      strstr(said, "used 2 days ago), because all packed weights may take 1."),
                  "%s", said);
    evict(AK_STORE_PACKED, name_of(1, AK_STORE_PACKED), bytes);
    ck_assert(exists(1, AK_STORE_PACKED) && !exists(2, AK_STORE_PACKED) &&
              !exists(3, AK_STORE_PACKED));
    ck_assert(strstr(said, "2.gguf") < strstr(said, "3.gguf"));
    evict(AK_STORE_PACKED, name_of(1, AK_STORE_PACKED), 1); /* the new one is never removed */
    ck_assert(exists(1, AK_STORE_PACKED) && exists(4, AK_STORE_PROMPT));
    evict(AK_STORE_PROMPT, "", 1);
    ck_assert(!exists(4, AK_STORE_PROMPT));
    ck_assert_ptr_nonnull(strstr(said, "removed a prompt ("));
}
END_TEST

/* As engine/pack/cache.c maps it: the lock outlives the descriptor. */
START_TEST(in_use)
{
    uint64_t bytes = make_file(0, AK_STORE_PACKED, 50);
    make_file(1, AK_STORE_PACKED, 40);
    make_file(2, AK_STORE_PACKED, 30);
    int fd = openat(dir, name_of(0, AK_STORE_PACKED), O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
    const uint8_t *map = mmap(NULL, BLOCK, PROT_READ, MAP_SHARED, fd, AK_STORE_BLOCK_OFFSET);
    ck_assert_ptr_ne(map, MAP_FAILED);
    close(fd);
    evict(AK_STORE_PACKED, name_of(2, AK_STORE_PACKED), 2 * bytes);
    ck_assert(exists(0, AK_STORE_PACKED) && !exists(1, AK_STORE_PACKED));
    errno = 0;
    ck_assert(!ak_store_remove_unused(dir, name_of(0, AK_STORE_PACKED)) && errno == EBUSY);
    ck_assert_ptr_null(strstr(said, "0.gguf"));
    ck_assert_int_eq(munmap((void *)(uintptr_t)map, BLOCK), 0);
    evict(AK_STORE_PACKED, name_of(2, AK_STORE_PACKED), bytes);
    ck_assert(!exists(0, AK_STORE_PACKED) && exists(2, AK_STORE_PACKED));
}
END_TEST

START_TEST(being_written)
{
    bool busy;
    char temp_name[AK_STORE_NAME_BYTES];
    struct stat st;
    snprintf(temp_name, sizeof temp_name, "%s.part", name_of(0, AK_STORE_PACKED));
    int fd = ak_store_lock_temp(dir, temp_name, &busy);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ak_store_write(fd, folder, sizeof folder, 0), 0);
    evict(AK_STORE_PACKED, "", 1);
    ck_assert_int_eq(fstatat(dir, temp_name, &st, 0), 0);
    close(fd);
    evict(AK_STORE_PACKED, "", 1); /* its writer is gone */
    ck_assert_int_ne(fstatat(dir, temp_name, &st, 0), 0);
}
END_TEST

START_TEST(first_of_its_kind)
{
    ck_assert(is_first(AK_STORE_PACKED, "x"));
    make_file(0, AK_STORE_PACKED, 0);
    ck_assert(is_first(AK_STORE_PACKED, name_of(0, AK_STORE_PACKED)));
    ck_assert(is_first(AK_STORE_PROMPT, "x"));
    make_file(1, AK_STORE_PACKED, 0);
    ck_assert(!is_first(AK_STORE_PACKED, name_of(0, AK_STORE_PACKED)));
}
END_TEST

START_TEST(sizes)
{
    static const struct statvfs ten = { .f_blocks = 10, .f_frsize = 512 }, none = { .f_frsize = 1 };
    char size[AK_STORE_SIZE_BYTES];
    ck_assert_str_eq(ak_store_show_size(0, size), "0.0 kB");
    ck_assert_str_eq(ak_store_show_size(999900, size), "999.9 kB");
    ck_assert_str_eq(ak_store_show_size(145300000, size), "145.3 MB");
    ck_assert_str_eq(ak_store_show_size(UINT64_C(51200000000), size), "51.2 GB");
    disk = &ten; /* a fifth */
    ck_assert_uint_eq(ak_store_default_limit(dir), 2 * 512);
    ck_assert_uint_eq(ak_store_default_limit(-1), UINT64_MAX);
    disk = &none;
    ck_assert_uint_eq(ak_store_default_limit(dir), UINT64_MAX);
    disk = NULL;
}
END_TEST

/* Files that a model's own packed weights replace: those of the same model file and backend, and
 * what writers left. */
START_TEST(replaced)
{
    static const struct {
        const char *source, *backend;
        bool stays[4];
    } cases[] = {
        { "/models/0.gguf", "cpu", { false, true, true, true } },
        { "/models/0.gguf", "opencl", { true, true, true, true } },
        { "/models/9.gguf", "cpu", { true, true, true, true } },
        { "/models/1.gguf", "cpu", { true, true, true, true } }, /* the new one itself */
        { "", "cpu", { true, true, true, true } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_store_entry *entries;
        struct ak_store_header header = { 0 };
        struct stat st;
        char abandoned[AK_STORE_NAME_BYTES], written[AK_STORE_NAME_BYTES];
        bool busy;
        size_t n;
        for (int k = 0; k < 2; k++)
            make_file(k, AK_STORE_PACKED, 1);
        make_file(UNKNOWN, AK_STORE_PACKED, 1);
        make_file(0, AK_STORE_PROMPT, 1);
        snprintf(abandoned, sizeof abandoned, "%s.part", name_of(7, AK_STORE_PACKED));
        snprintf(written, sizeof written, "%s.part", name_of(8, AK_STORE_PROMPT));
        close(ak_store_lock_temp(dir, abandoned, &busy));
        int fd = ak_store_lock_temp(dir, written, &busy);
        snprintf(header.source, sizeof header.source, "%s", cases[i].source);
        snprintf(header.backend, sizeof header.backend, "%s", cases[i].backend);
        ck_assert_int_eq(ak_store_list(dir, &entries, &n, NULL), AKUNU_OK);
        ck_assert_uint_eq(n, 6);
        ak_store_evict_replaced(dir, entries, n, name_of(1, AK_STORE_PACKED), &header);
        ck_assert(exists(0, AK_STORE_PACKED) == cases[i].stays[0]);
        ck_assert(exists(1, AK_STORE_PACKED) == cases[i].stays[1]);
        ck_assert(exists(UNKNOWN, AK_STORE_PACKED) == cases[i].stays[2]);
        ck_assert(exists(0, AK_STORE_PROMPT) == cases[i].stays[3]);
        ck_assert_int_ne(fstatat(dir, abandoned, &st, 0), 0);
        ck_assert_int_eq(fstatat(dir, written, &st, 0), 0);
        for (size_t k = 0; k < n; k++) /* what is gone takes no bytes */
            ck_assert((entries[k].bytes == 0) == (fstatat(dir, entries[k].name, &st, 0) != 0 ||
                                                  strcmp(entries[k].name, written) == 0));
        ak_free(entries);
        close(fd);
    }
}
END_TEST

/* ---- The list ----------------------------------------------------------- */
/* All cache files by name, and nothing else; without memory or a stream there is no list. Nothing
 * stays open, even if the first descriptor is free. */
START_TEST(list)
{
    static const int numbers[] = { 3, 1, 2, 0, UNKNOWN };
    enum { N = sizeof numbers / sizeof *numbers };
    struct ak_store_entry *entries;
    size_t n, n_open = test_count_open();
    for (int i = 0; i < N; i++)
        make_file(numbers[i], i % 2 ? AK_STORE_PROMPT : AK_STORE_PACKED, numbers[i]);
    close(openat(dir, "0123456789abcdef0123456789abcdef.other", O_CREAT | O_WRONLY, 0600));
    close(openat(dir, "0123456789abcdef0123456789abcdeg.packed", O_CREAT | O_WRONLY, 0600));
    close(openat(dir, "0123456789abcdef0123456789abcde.packed", O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(ak_store_list(dir, &entries, &n, NULL), AKUNU_OK);
    ck_assert_uint_eq(n, N);
    for (int i = 0; i < N; i++) {
        struct stat st;
        int number = i == 4 ? UNKNOWN : i;
        enum ak_store_kind kind = i == 0 || i == 1 ? AK_STORE_PROMPT : AK_STORE_PACKED;
        ck_assert_str_eq(entries[i].name, name_of(number, kind));
        ck_assert_int_eq(entries[i].kind, kind);
        ck_assert_int_eq(fstatat(dir, entries[i].name, &st, 0), 0);
        ck_assert_int_eq(entries[i].built, st.st_mtim.tv_sec);
        ck_assert_int_eq(entries[i].used, st.st_atim.tv_sec);
        ck_assert_uint_eq(entries[i].bytes, (uint64_t)st.st_blocks * 512);
        /* there is no such model */
        ck_assert_int_eq(entries[i].state,
                         number == UNKNOWN ? AKUNU_CACHE_READY : AKUNU_CACHE_STALE);
    }
    ak_free(entries);
    for (long i = 0; i < N; i++) {
        struct ak_error error = { 0 };
        refuse_allocation(i);
        ck_assert_int_eq(ak_store_list(dir, &entries, &n, &error), AKUNU_ERROR_MEMORY);
        ck_assert(allow_allocations());
        ck_assert(!entries && n == 0);
        char wanted[32];
        snprintf(wanted, sizeof wanted, "(%zu bytes)", ((size_t)i + 1) * sizeof *entries);
        ck_assert_msg(strstr(error.message, wanted) != NULL, "%s", error.message);
    }
    ck_assert_uint_eq(test_count_open(), n_open);
    int first = dup(0);
    close(0);
    ck_assert_int_eq(ak_store_list(dir, &entries, &n, NULL), AKUNU_OK);
    ck_assert_uint_eq(n, N);
    ak_free(entries);
    refuses_streams = true;
    ck_assert_int_eq(ak_store_list(dir, &entries, &n, NULL), AKUNU_ERROR_IO);
    refuses_streams = false;
    ck_assert(!entries && n == 0);
    errno = EPERM;
    ck_assert_int_eq(ak_store_open_file(dir, name_of(1, AK_STORE_PROMPT)), 0);
    close(0);
    ck_assert_int_eq(dup(first), 0);
    close(first);
    ck_assert_uint_eq(test_count_open(), n_open);
}
END_TEST

/* A file that is not whole, or of another kind than its name says, is damaged: without a time. */
START_TEST(damaged)
{
    static const enum akunu_cache_state expected[] = { AKUNU_CACHE_DAMAGED, AKUNU_CACHE_DAMAGED,
                                                       AKUNU_CACHE_DAMAGED, AKUNU_CACHE_READY };
    struct ak_store_entry *entries;
    size_t n;
    for (int i = 0; i < 4; i++)
        make_file(UNKNOWN + i, i == 2 ? AK_STORE_PROMPT : AK_STORE_PACKED, 0);
    int fd = openat(dir, name_of(UNKNOWN, AK_STORE_PACKED), O_RDWR);
    ck_assert_int_eq(pwrite(fd, "x", 1, 100), 1); /* in the header */
    close(fd);
    fd = openat(dir, name_of(UNKNOWN + 1, AK_STORE_PACKED), O_RDWR);
    ck_assert_int_eq(ftruncate(fd, AK_STORE_BLOCK_OFFSET), 0);
    close(fd);
    ck_assert_int_eq(renameat(dir, name_of(UNKNOWN + 2, AK_STORE_PROMPT), dir,
                              name_of(UNKNOWN + 2, AK_STORE_PACKED)),
                     0);
    ck_assert_int_eq(ak_store_list(dir, &entries, &n, NULL), AKUNU_OK);
    ck_assert_uint_eq(n, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_msg(entries[i].state == expected[i], "file %d: state %d", i, entries[i].state);
        ck_assert((entries[i].built > 0) == (expected[i] == AKUNU_CACHE_READY));
        ck_assert_int_eq(entries[i].kind, AK_STORE_PACKED);
    }
    ak_free(entries);
}
END_TEST

/* ---- Locks -------------------------------------------------------------- */
/* A temporary file has one writer, begins empty, and is nobody else's file. */
START_TEST(one_writer)
{
    static const char name[] = "0123456789abcdef0123456789abcdef.packed.part";
    bool busy = true;
    struct stat st;
    size_t n_open = test_count_open();
    int fd = openat(dir, name, O_CREAT | O_WRONLY, 0666); /* what another writer left */
    ck_assert_int_eq(write(fd, "left", 4), 4);
    close(fd);
    ck_assert_int_ge(fd = ak_store_lock_temp(dir, name, &busy), 0);
    ck_assert(!busy && fstat(fd, &st) == 0 && st.st_size == 0 && (st.st_mode & 0777) == 0600);
    ck_assert_int_eq(ak_store_lock_temp(dir, name, &busy), -1);
    ck_assert(busy);
    errno = 0;
    ck_assert(!ak_store_remove(dir, name) && errno == EBUSY);
    close(fd);
    ck_assert_int_eq(linkat(dir, name, dir, "another name", 0), 0);
    errno = 0;
    ck_assert_int_eq(ak_store_lock_temp(dir, name, &busy), -1);
    ck_assert(!busy && errno == EPERM);
    ck_assert(ak_store_remove(dir, name));
    ck_assert_int_eq(symlinkat("another name", dir, name), 0);
    ck_assert_int_eq(ak_store_lock_temp(dir, name, &busy), -1);
    ck_assert(!busy && errno == ELOOP);
    errno = 0;
    ck_assert(!ak_store_remove(dir, "another name") && errno == EINVAL);
    ck_assert_uint_eq(test_count_open(), n_open);
}
END_TEST

/* A folder, a lock and a file to remove work as well if their descriptor is 0, the lowest. */
START_TEST(first_descriptor)
{
    static const char name[] = "0123456789abcdef0123456789abcdef.packed.part";
    bool busy;
    int first = dup(0), fd;
    close(0);
    size_t n_open = test_count_open();
    errno = ENOENT;
    ck_assert_int_eq(ak_store_open_dir(folder, true), 0);
    ck_assert_uint_eq(test_count_open(), n_open + 1);
    close(0);
    ck_assert_int_eq(ak_store_lock_temp(dir, name, &busy), 0);
    ck_assert_int_ge(fd = dup(0), 1); /* keeps the lock */
    close(0);
    errno = 0;
    ck_assert(!ak_store_remove(dir, name) && errno == EBUSY);
    close(fd);
    ck_assert(ak_store_remove(dir, name));
    ck_assert_uint_eq(test_count_open(), n_open);
    ck_assert_int_eq(dup(first), 0);
    close(first);
}
END_TEST

/* ---- Headers ------------------------------------------------------------ */
static void check_header(const uint8_t page[AK_STORE_HEADER_BYTES],
                         const struct ak_store_header *expected)
{
    struct ak_store_header got = { 0 };
    ck_assert(ak_store_header_read(page, &got));
    test_same_header(&got, expected);
}

/* A header is as store.h says, by byte; read, it is the one that was written. With another bit it
 * is none; tried are all bytes of numbers and some of the others. */
START_TEST(headers)
{
    static uint8_t page[AK_STORE_HEADER_BYTES], sum[AK_SHA256_BYTES];
    static struct ak_store_header header, got;
    const uint32_t version = 1, order = 0x01020304;
    struct ak_sha256 h;
    memset(&header, 0, sizeof header); /* what is compared whole has no undefined bytes */
    header.block_bytes = 0x1122334455667788;
    header.built = 1700000000;
    header.source_bytes = 77;
    header.source_mtime_ns = -5;
    header.n_tokens = 99;
    header.digest[0] = 3;
    header.digest[1] = UINT64_MAX;
    memset(header.key.digest, 0x5a, sizeof header.key.digest);
    snprintf(header.backend, sizeof header.backend, "cpu");
    snprintf(header.source, sizeof header.source, "/models/a.gguf");
    for (int kind = AK_STORE_PACKED; kind <= AK_STORE_PROMPT; kind++) {
        header.kind = (enum ak_store_kind)kind;
        memset(page, 0xff, sizeof page);
        ak_store_header_write(&header, page);
        ck_assert_mem_eq(page, kind == AK_STORE_PACKED ? "akunuPKD" : "akunuKVS", 8);
        ck_assert_mem_eq(page + 8, &version, 4);
        ck_assert_mem_eq(page + 12, &order, 4);
        ck_assert_mem_eq(page + 16, &header.block_bytes, 8);
        ck_assert_mem_eq(page + 24, &header.built, 8);
        ck_assert_mem_eq(page + 32, header.key.digest, 32);
        ck_assert_mem_eq(page + 64, &header.source_bytes, 8);
        ck_assert_mem_eq(page + 72, &header.source_mtime_ns, 8);
        ck_assert_mem_eq(page + 80, &header.n_tokens, 8);
        ck_assert_mem_eq(page + 88, "\0\0\0\0\0\0\0\0", 8);
        ck_assert_mem_eq(page + 96, header.backend, 32);
        ck_assert_mem_eq(page + 128, header.source, 2048);
        ck_assert_mem_eq(page + 2176, header.digest, 16);
        for (size_t i = 2192; i < 4064; i++)
            ck_assert_uint_eq(page[i], 0);
        ak_sha256_begin(&h);
        ak_sha256_add(&h, page, 4064);
        ak_sha256_end(&h, sum);
        ck_assert_mem_eq(page + 4064, sum, sizeof sum);
        check_header(page, &header);
        for (size_t i = 0; i < sizeof page; i += i < 200 || i >= 4064 ? 1 : 31) {
            page[i] ^= (uint8_t)(1 << i % 8);
            ck_assert_msg(!ak_store_header_read(page, &got), "byte %zu", i);
            page[i] ^= (uint8_t)(1 << i % 8);
        }
        check_header(page, &header);
    }
}
END_TEST

static const char *source_path;

static void take_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out)
{
    (void)p;
    *out = (struct ak_provider_fingerprint){ .path = source_path, .bytes = 77, .mtime_ns = -5 };
}

/* Makes folders in `base` until the path is of n bytes; `path` has room for them. */
static void make_long_path(const char *base, char *path, size_t n)
{
    size_t at = strlen(base);
    memcpy(path, base, at + 1);
    while (at < n) {
        size_t part = n - at - 1 < 200 ? n - at - 1 : 200;
        part -= n - at - 1 == part + 1; /* the next one has a byte, too */
        path[at] = '/';
        memset(path + at + 1, 'd', part);
        path[at += part + 1] = '\0';
        ck_assert_int_eq(mkdir(path, 0700), 0);
    }
}

/* A header has the absolute path of the model file, or none where it is too long or unknown. */
START_TEST(sources)
{
    static const struct ak_provider_format format = { .fingerprint = take_fingerprint };
    static const struct ak_provider provider = { .format = &format };
    static const size_t lengths[] = { 100, AK_STORE_SOURCE_BYTES - 1, AK_STORE_SOURCE_BYTES };
    char *base = realpath(folder, NULL), path[AK_STORE_SOURCE_BYTES + 3];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct ak_store_header header = { 0 };
        make_long_path(base, path, lengths[i]);
        char linked[sizeof path + 2];
        snprintf(linked, sizeof linked, "%s/.", path);
        source_path = linked;
        ak_store_header_set_source(&header, &provider);
        ck_assert_str_eq(header.source, lengths[i] < AK_STORE_SOURCE_BYTES ? path : "");
        ck_assert_uint_eq(header.source_bytes, 77);
        ck_assert_int_eq(header.source_mtime_ns, -5);
        for (; strlen(path) > strlen(base); *strrchr(path, '/') = '\0')
            ck_assert_int_eq(rmdir(path), 0);
    }
    struct ak_store_header header = { 0 };
    snprintf(path, sizeof path, "%s/missing", base);
    source_path = path;
    ak_store_header_set_source(&header, &provider);
    ck_assert_str_eq(header.source, "");
    ck_assert_uint_eq(header.source_bytes, 77);
    free(base);
}
END_TEST

/* A whole file: what makes it another than the one that was committed. */
START_TEST(whole_files)
{
    static const mode_t modes[] = { 0600, 0644, 0400, 0620, 0602 };
    static const char byte[1] = { 1 };
    struct ak_store_header header;
    make_file(1, AK_STORE_PROMPT, 0);
    int fd = openat(dir, name_of(1, AK_STORE_PROMPT), O_RDWR);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        ck_assert_int_eq(fchmod(fd, modes[i]), 0);
        ck_assert_msg(ak_store_check(fd, &header) == !(modes[i] & 022), "mode %o",
                      (unsigned)modes[i]);
    }
    ck_assert_int_eq(fchmod(fd, 0600), 0);
    ck_assert_uint_eq(header.block_bytes, BLOCK);
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = header.built } };
    if (geteuid() == 0) {
        ck_assert_int_eq(fchown(fd, 1, (gid_t)-1), 0);
        ck_assert(!ak_store_check(fd, &header));
        ck_assert_int_eq(fchown(fd, 0, (gid_t)-1), 0);
    }
    ck_assert(ak_store_check(fd, &header));
    times[1].tv_nsec = 1; /* written to since then */
    ck_assert_int_eq(futimens(fd, times), 0);
    ck_assert(!ak_store_check(fd, &header));
    times[1] = (struct timespec){ .tv_sec = header.built + 1 };
    ck_assert_int_eq(futimens(fd, times), 0);
    ck_assert(!ak_store_check(fd, &header));
    times[1].tv_sec--;
    ck_assert_int_eq(ftruncate(fd, AK_STORE_HEADER_BYTES + BLOCK - 1), 0);
    ck_assert_int_eq(futimens(fd, times), 0);
    ck_assert(!ak_store_check(fd, &header));
    ck_assert_int_eq(pwrite(fd, byte, 1, AK_STORE_HEADER_BYTES + BLOCK - 1), 1);
    ck_assert_int_eq(futimens(fd, times), 0);
    ck_assert(ak_store_check(fd, &header));
    close(fd);
    ck_assert(!ak_store_check(dir, &header));
}
END_TEST

START_TEST(progress)
{
    static const struct {
        uint64_t done, total;
        bool is_progress;
    } cases[] = { { 0, 1, true },  { 3, 7, true }, { 7, 7, true }, { UINT64_MAX, UINT64_MAX, true },
                  { 8, 7, false }, { 0, 0, false } };
    int fd = openat(dir, "progress", O_CREAT | O_RDWR, 0600);
    uint64_t done = 1, total = 2;
    ck_assert(!ak_store_get_progress(fd, &done, &total));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert(ak_store_put_progress(fd, cases[i].done, cases[i].total));
        done = total = 5;
        ck_assert(ak_store_get_progress(fd, &done, &total) == cases[i].is_progress);
        ck_assert_uint_eq(done, cases[i].is_progress ? cases[i].done : 5);
        ck_assert_uint_eq(total, cases[i].is_progress ? cases[i].total : 5);
    }
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), 1);
    ck_assert(!ak_store_get_progress(fd, &done, &total));
    close(fd);
}
END_TEST

/* ---- Space -------------------------------------------------------------- */
/* A twentieth of the disk stays free, at most 1 GiB; the rest is for files. */
START_TEST(free_space)
{
    static const struct {
        uint64_t blocks, available, unit, expected;
    } cases[] = {
        { 1000, 500, 4096, 450 * 4096 },
        { 1000, 51, 4096, 4096 },
        { 1000, 50, 4096, 0 },
        { 1000, 10, 4096, 0 },
        { 1 << 30, 1 << 20, 4096, (UINT64_C(1) << 32) - (1 << 30) },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct statvfs own = { .f_blocks = cases[i].blocks,
                                     .f_bavail = cases[i].available,
                                     .f_frsize = cases[i].unit };
        disk = &own;
        ck_assert_uint_eq(ak_store_free_space(dir), cases[i].expected);
        if (cases[i].expected > 4096) { /* a header is a page */
            ck_assert_ptr_null(
                ak_store_check_space(dir, cases[i].expected - 4096, UINT64_C(1) << 40));
            ck_assert_str_eq(ak_store_check_space(dir, cases[i].expected - 4095, UINT64_C(1) << 40),
                             "the disk has too little free space");
        }
        disk = NULL;
    }
    ck_assert_uint_eq(ak_store_free_space(-1), UINT64_MAX);
}
END_TEST

/* The limit of file sizes counts the 2 MiB before a packed block. */
START_TEST(limited_files)
{
    static const struct statvfs large = { .f_blocks = 1 << 30,
                                          .f_bavail = 1 << 30,
                                          .f_frsize = 4096 };
    static const char refused[] = "it would be larger than files may be (ulimit -f)";
    struct rlimit before, limit;
    disk = &large;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 3 << 20;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_ptr_null(ak_store_check_space(dir, 1 << 20, UINT64_C(1) << 40));
    ck_assert_str_eq(ak_store_check_space(dir, (1 << 20) + 1, UINT64_C(1) << 40), refused);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_str_eq(ak_store_check_space(dir, UINT64_MAX, UINT64_MAX), "it would be too large");
    disk = NULL;
}
END_TEST

/* A folder in memory may take half of what is available. */
START_TEST(folders_in_memory)
{
    static const struct {
        uint32_t type;
        bool in_memory;
    } cases[] = { { 0x01021994, true }, { 0x858458f6, true }, { 0xef53, false } };
    static const struct statvfs large = { .f_blocks = 1000, .f_bavail = 1000, .f_frsize = 4096 };
    disk = &large;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_system = cases[i].type;
        ck_assert_ptr_null(ak_store_check_space(dir, 10000, 20000));
        const char *refusal = ak_store_check_space(dir, 10001, 20000);
        if (cases[i].in_memory)
            ck_assert_pstr_eq(refusal, "the folder lies in memory, and it would take more than "
                                       "half of what is available");
        else
            ck_assert_ptr_null(refusal);
    }
    file_system = 0;
    disk = NULL;
}
END_TEST

/* ---- The folder --------------------------------------------------------- */
/* Folders of the environment: own, XDG's, the home's; paths that are not absolute do not count. */
START_TEST(default_folder)
{
    static const struct {
        const char *own, *cache, *home, *expected;
    } cases[] = {
        { "/a", "/b", "/c", "/a" },
        { "a%s", "/b", "/c", "a%s" },
        { NULL, "/b", "/c", "/b/akunu" },
        { NULL, "b", "/c", "/c/.cache/akunu" },
        { NULL, NULL, "/c%s", "/c%s/.cache/akunu" },
        { NULL, NULL, "c", NULL },
        { NULL, NULL, NULL, NULL },
    };
    static const char *const names[] = { "AKUNU_CACHE_DIR", "XDG_CACHE_HOME", "HOME" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *values[] = { cases[i].own, cases[i].cache, cases[i].home };
        for (int k = 0; k < 3; k++)
            ck_assert_int_eq(values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]), 0);
        char *path = ak_store_default_dir();
        ck_assert((path != NULL) == (cases[i].expected != NULL));
        if (path)
            ck_assert_str_eq(path, cases[i].expected);
        ak_free(path);
    }
}
END_TEST

static bool is_same_folder(int a, int b)
{
    struct stat of_a, of_b;
    return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

/* A folder is made with its parents, if that is asked for; the nearest one that exists is found. */
START_TEST(opened_folders)
{
    static const char *const missing[] = { "x", "x/", "x/y/z", "y/x" };
    char path[96];
    struct stat st;
    int here = open(".", O_RDONLY | O_DIRECTORY), root = open("/", O_RDONLY | O_DIRECTORY), fd;
    size_t n_open = test_count_open();
    snprintf(path, sizeof path, "%s/a/b/c", folder);
    ck_assert_int_eq(ak_store_open_dir(path, false), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_ge(fd = ak_store_open_nearest(path), 0);
    ck_assert(is_same_folder(fd, dir));
    close(fd);
    ck_assert_int_eq(fchdir(dir), 0);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        ck_assert_int_ge(fd = ak_store_open_nearest(missing[i]), 0);
        ck_assert_msg(is_same_folder(fd, dir), "%s", missing[i]);
        close(fd);
    }
    ck_assert_int_eq(ak_store_open_dir("", true), -1);
    ck_assert_int_ge(fd = ak_store_open_nearest("/no-such-folder/of-akunu"), 0);
    ck_assert(is_same_folder(fd, root));
    close(fd);
    ck_assert_int_ge(fd = ak_store_open_dir(path, true), 0);
    ck_assert(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0700);
    close(fd);
    ck_assert_int_ge(fd = ak_store_open_nearest(path), 0);
    close(fd);
    close(openat(dir, "file", O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(ak_store_open_nearest("file/below"), -1);
    ck_assert_int_eq(errno, ENOTDIR);
    ck_assert_int_eq(ak_store_open_dir("file/below", true), -1);
    for (int i = 0; i < 3; i++, *strrchr(path, '/') = '\0')
        ck_assert_int_eq(rmdir(path), 0);
    ck_assert_uint_eq(test_count_open(), n_open);
    ck_assert_int_eq(fchdir(here), 0);
    close(here);
    close(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("evict");
    TCase *tests = tcase_create("evict");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, oldest_first);
    tcase_add_test(tests, in_use);
    tcase_add_test(tests, being_written);
    tcase_add_test(tests, first_of_its_kind);
    tcase_add_test(tests, sizes);
    tcase_add_test(tests, replaced);
    tcase_add_test(tests, list);
    tcase_add_test(tests, damaged);
    tcase_add_test(tests, one_writer);
    tcase_add_test(tests, first_descriptor);
    tcase_add_test(tests, headers);
    tcase_add_test(tests, sources);
    tcase_add_test(tests, whole_files);
    tcase_add_test(tests, progress);
    tcase_add_test(tests, free_space);
    tcase_add_test(tests, limited_files);
    tcase_add_test(tests, folders_in_memory);
    tcase_add_test(tests, default_folder);
    tcase_add_test(tests, opened_folders);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
