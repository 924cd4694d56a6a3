/* Linked with the examples: what is allocated and not freed when a program ends is a failure, with
 * exit code 99. Linked with --wrap for the functions below (tests/local.mk). Memory that the C
 * library allocates for itself is not seen. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAKED = 99, CAPACITY = 1 << 20 };

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *p);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *p);

/* Addresses of live allocations: open addressing; 1 stands for a removed one. */
static uintptr_t live[CAPACITY];
static size_t n_live;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t slot_of(uintptr_t address)
{
    return (size_t)(address >> 4) * 0x9e3779b97f4a7c15u % CAPACITY;
}

static void *add(void *p)
{
    pthread_mutex_lock(&lock);
    size_t i = slot_of((uintptr_t)p);
    for (; p && live[i] > 1; i = (i + 1) % CAPACITY)
        ;
    if (p) {
        live[i] = (uintptr_t)p;
        n_live++;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

/* Ignores what was allocated elsewhere. */
static void drop(const void *p)
{
    pthread_mutex_lock(&lock);
    for (size_t i = slot_of((uintptr_t)p); p && live[i] != 0; i = (i + 1) % CAPACITY)
        if (live[i] == (uintptr_t)p) {
            live[i] = 1;
            n_live--;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t bytes)
{
    return add(__real_malloc(bytes));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return add(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return add(__real_aligned_alloc(alignment, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    drop(old);
    void *p = __real_realloc(old, bytes);
    add(p ? p : old);
    return p;
}

void __wrap_free(void *p)
{
    drop(p);
    __real_free(p);
}

__attribute__((destructor)) static void report(void)
{
    if (n_live == 0)
        return;
    fprintf(stderr, "%zu allocations were not freed\n", n_live);
    fflush(NULL);
    _exit(LEAKED);
}
