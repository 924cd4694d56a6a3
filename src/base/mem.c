/* Allocations, and maps of large blocks. Blocks start at multiples of 2 MiB so that the kernel
 * can back them with huge pages. */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

void *ak_alloc(size_t n, size_t size)
{
    size_t bytes;
    if (!ak_mul_size(n, size, &bytes))
        return NULL;
    return calloc(bytes ? bytes : 1, 1);
}

void *ak_realloc(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (!ak_mul_size(n, size, &bytes))
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

char *ak_strndup(const char *bytes, size_t n)
{
    size_t with_nul;
    char *copy = ak_add_size(n, 1, &with_nul) ? malloc(with_nul) : NULL;
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    return copy;
}

void ak_free(void *p)
{
    free(p);
}

void *ak_alloc_aligned(size_t bytes)
{
    if (bytes > SIZE_MAX - AK_CACHE_LINE)
        return NULL;
    size_t whole = ak_round_up(bytes ? bytes : 1, AK_CACHE_LINE);
    void *p = aligned_alloc(AK_CACHE_LINE, whole);
    if (p)
        memset(p, 0, whole);
    return p;
}

/* Rounds up to whole pages, so that ak_pages_free knows the size of the map from `bytes`.
 * 64 KiB is a multiple of every page size of x86-64 and AArch64 Linux. */
static bool round_to_pages(size_t bytes, size_t *whole)
{
    enum { PAGE = 64 << 10 };
    if (bytes > SIZE_MAX - 2 * (size_t)HUGE_PAGE)
        return false;
    *whole = ak_round_up(bytes ? bytes : 1, bytes >= HUGE_PAGE ? HUGE_PAGE : PAGE);
    return true;
}

/* Maps private pages at a multiple of 2 MiB: maps 2 MiB more, then unmaps what is outside the
 * aligned part. NULL on failure. */
static char *map_aligned(size_t whole, int protection)
{
    size_t mapped = whole + HUGE_PAGE;
    char *raw = mmap(NULL, mapped, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)raw & (HUGE_PAGE - 1));
    size_t after = mapped - before - whole;
    if (before)
        munmap(raw, before);
    if (after)
        munmap(raw + before + whole, after);
    return raw + before;
}

void ak_pages_advise_huge(const void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    madvise((void *)(uintptr_t)p, bytes, MADV_HUGEPAGE);
#endif
}

void *ak_pages_alloc(size_t bytes)
{
    size_t whole;
    if (!round_to_pages(bytes, &whole))
        return NULL;
    char *p = map_aligned(whole, PROT_READ | PROT_WRITE);
    if (p && whole >= HUGE_PAGE)
        ak_pages_advise_huge(p, whole);
    return p;
}

void ak_pages_free(void *p, size_t bytes)
{
    size_t whole;
    if (p && round_to_pages(bytes, &whole))
        munmap(p, whole);
}

void ak_pages_drop(const void *p, size_t bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
              begin = ((uintptr_t)p + page - 1) / page * page,
              end = ((uintptr_t)p + bytes) / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void *ak_map_shared(int fd, uint64_t offset, size_t bytes)
{
    size_t whole;
    char *p = bytes > 0 && round_to_pages(bytes, &whole) ? map_aligned(whole, PROT_NONE) : NULL;
    if (!p)
        return NULL;
    if (mmap(p, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED) {
        munmap(p, whole);
        return NULL;
    }
    size_t used = ak_round_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
    if (used < whole)
        munmap(p + used, whole - used);
    ak_pages_advise_huge(p, used);
    return p;
}

void ak_unmap(void *p, size_t bytes)
{
    munmap(p, bytes);
}
