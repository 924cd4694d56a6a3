/* Memory: sizes with overflow checks, zeroed allocations, aligned blocks, mapped blocks. The
 * library allocates through this header only. */
#ifndef AK_BASE_MEM_H
#define AK_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AK_CACHE_LINE = 64 };

/* Multiply and add with overflow check: true means that *out is valid. */
static inline bool ak_mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool ak_add_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool ak_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool ak_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline size_t ak_round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static inline size_t ak_min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t ak_max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* n zeroed elements of `size` bytes. NULL: out of memory, or the product overflows. n = 0 gives a
 * pointer to free. */
void *ak_alloc(size_t n, size_t size);

/* Grows or shrinks an array from ak_alloc; new elements are not zeroed. On failure returns NULL
 * and `old` stays valid. */
void *ak_realloc(void *old, size_t n, size_t size);

/* A copy of n bytes with a NUL after them. NULL: out of memory. */
char *ak_strndup(const char *bytes, size_t n);

void ak_free(void *p);

/* Zeroed memory aligned to a cache line, for small hot structures. Free with ak_free. */
void *ak_alloc_aligned(size_t bytes);

/* Advises huge pages for whole pages: fewer TLB misses when streaming. */
void ak_pages_advise_huge(const void *p, size_t bytes);

/* A large zeroed block of separate pages, aligned to 2 MiB. Huge pages are advised from 2 MiB on.
 * Free with the same `bytes`. */
void *ak_pages_alloc(size_t bytes);
void ak_pages_free(void *p, size_t bytes);
/* Drops the whole pages inside [p, p + bytes) and keeps the address range. Pages of a file are
 * read again on access; all others read as zeros. */
void ak_pages_drop(const void *p, size_t bytes);

/* Maps `bytes` bytes of an open file from `offset` (a multiple of 2 MiB), read-only and shared,
 * at a multiple of 2 MiB, with huge pages advised. NULL on failure. */
void *ak_map_shared(int fd, uint64_t offset, size_t bytes);
void ak_unmap(void *p, size_t bytes);

#endif
