/* Memory: checked sizes, zeroed allocations, aligned and large blocks. */
#ifndef AK_BASE_MEM_H
#define AK_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AK_CACHE_LINE = 64 };

/* Multiply and add that tell of overflow: true means that *out is valid. */
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

/* n zeroed elements of `size` bytes; NULL where there is no memory or the
 * product overflows. n = 0 gives a pointer that may be freed. */
void *ak_alloc(size_t n, size_t size);

/* Grows or shrinks an array from ak_alloc; new elements are not zeroed. NULL on
 * failure, and then `old` is still valid. */
void *ak_realloc(void *old, size_t n, size_t size);

/* A copy of the n bytes at `bytes` with a NUL behind; NULL without memory. */
char *ak_strndup(const char *bytes, size_t n);

void ak_free(void *p);

/* Zeroed memory at a cache line, for small hot structures; free with ak_free. */
void *ak_alloc_aligned(size_t bytes);

/* Asks for large pages where the kernel has them, for whole pages: a stream through others crosses
 * one each 4 KiB. */
void ak_pages_advise_huge(const void *p, size_t bytes);

/* A large zeroed block of its own pages, aligned to 2 MiB with huge pages
 * advised where it is large enough. Free with the same `bytes`. */
void *ak_pages_alloc(size_t bytes);
void ak_pages_free(void *p, size_t bytes);
/* Gives the memory of whole pages among `bytes` back, and keeps their addresses: what a file
 * has there is read again when it is wanted, and anything else is gone, zeros in its place. */
void ak_pages_drop(const void *p, size_t bytes);

/* Maps `bytes` bytes of an open file from `offset` on (a multiple of 2 MiB),
 * read-only and shared, at a multiple of 2 MiB with huge pages advised. NULL on
 * failure. */
void *ak_map_shared(int fd, uint64_t offset, size_t bytes);
void ak_unmap(void *p, size_t bytes);

#endif
