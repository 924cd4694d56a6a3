/* The limit of the cache folder: the least recently used files go first, none that is in use. */
#include "tests/test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/store.h"

enum { BLOCK = 256 * 1024 };

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

/* As pack/cache.c maps it: the lock outlives the descriptor. */
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
    char size[AK_STORE_SIZE_BYTES];
    ck_assert_str_eq(ak_store_show_size(0, size), "0.0 kB");
    ck_assert_str_eq(ak_store_show_size(999900, size), "999.9 kB");
    ck_assert_str_eq(ak_store_show_size(145300000, size), "145.3 MB");
    ck_assert_str_eq(ak_store_show_size(UINT64_C(51200000000), size), "51.2 GB");
    ck_assert_uint_gt(ak_store_default_limit(dir), 0);
    ck_assert_uint_eq(ak_store_default_limit(-1), UINT64_MAX);
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
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
