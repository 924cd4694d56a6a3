/* Allocations of the library that fail at will. A program that includes this is linked with --wrap
 * for the three functions below (tests/local.mk). */
#ifndef AK_TESTS_OUT_OF_MEMORY_H
#define AK_TESTS_OUT_OF_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void *__real_ak_alloc(size_t n, size_t size);
void *__wrap_ak_alloc(size_t n, size_t size);
void *__real_ak_realloc(void *old, size_t n, size_t size);
void *__wrap_ak_realloc(void *old, size_t n, size_t size);
char *__real_ak_strndup(const char *bytes, size_t n);
char *__wrap_ak_strndup(const char *bytes, size_t n);

static atomic_long allocations_left = -1; /* before the one that fails; negative: none will */

static bool is_refused(void)
{
    return atomic_load(&allocations_left) >= 0 && atomic_fetch_sub(&allocations_left, 1) == 0;
}

void *__wrap_ak_alloc(size_t n, size_t size)
{
    return is_refused() ? NULL : __real_ak_alloc(n, size);
}

void *__wrap_ak_realloc(void *old, size_t n, size_t size)
{
    return is_refused() ? NULL : __real_ak_realloc(old, n, size);
}

char *__wrap_ak_strndup(const char *bytes, size_t n)
{
    return is_refused() ? NULL : __real_ak_strndup(bytes, n);
}

/* Allocation number n from now on fails, 0 being the next one. */
static inline void refuse_allocation(long n)
{
    atomic_store(&allocations_left, n);
}

/* No allocation fails any more. False: none did since refuse_allocation. */
static inline bool allow_allocations(void)
{
    return atomic_exchange(&allocations_left, -1) < 0;
}

#endif
