/* What this process holds, to see that something was released: open files, threads and mapped
 * models. */
#ifndef AK_TESTS_PROCESS_H
#define AK_TESTS_PROCESS_H

#include "tests/test.h"
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Entries of a folder, "." and ".." among them. */
static inline size_t test_count_entries(const char *path)
{
    size_t n = 0;
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Open file descriptors, and two more entries. */
static inline size_t test_count_open(void)
{
    return test_count_entries("/proc/self/fd");
}

/* Threads, and two more entries. */
static inline size_t test_count_threads(void)
{
    return test_count_entries("/proc/self/task");
}

static inline void *test_own_id(void *id)
{
    *(pid_t *)id = gettid();
    return NULL;
}

/* test_count_threads, after a thread has come and gone: ThreadSanitizer adds one of its own with
 * the first that a process starts. */
static inline size_t test_count_first_threads(void)
{
    pthread_t thread;
    pid_t id;
    char path[64];
    ck_assert_int_eq(pthread_create(&thread, NULL, test_own_id, &id), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    snprintf(path, sizeof path, "/proc/self/task/%d", (int)id);
    while (access(path, F_OK) == 0)
        usleep(1000);
    return test_count_threads();
}

/* No more threads than `n`; those that were joined may be listed a moment longer. */
static inline void test_await_threads(size_t n)
{
    for (int i = 0; i < 5000 && test_count_threads() > n; i++)
        usleep(1000);
    ck_assert_uint_le(test_count_threads(), n);
}

/* No GGUF or SafeTensors file is mapped. */
static inline void test_check_unmapped(void)
{
    char line[4352];
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps))
        ck_assert_msg(!strstr(line, ".gguf") && !strstr(line, ".safetensors"), "%s", line);
    fclose(maps);
}

#endif
