/* The arena, and failures and limits of an environment. */
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "text/template/jinja/environment.h"

/* ---- Arena -------------------------------------------------------------- */
enum { ALIGN = 16, BLOCK_BYTES_MIN = 16 << 10, BLOCK_BYTES_MAX = 1 << 20 };

struct ak_jarena_block {
    struct ak_jarena_block *older;
    alignas(ALIGN) char bytes[];
};

/* Blocks grow with the arena, so that small templates need little memory. */
static size_t block_size(const struct ak_jarena *arena, size_t wanted)
{
    size_t size = ak_max_size(BLOCK_BYTES_MIN, ak_min_size(arena->bytes, BLOCK_BYTES_MAX));
    return ak_max_size(size, wanted);
}

static bool add_block(struct ak_jarena *arena, size_t wanted)
{
    size_t size = block_size(arena, wanted);
    if (arena->bytes >= arena->max_bytes || size > arena->max_bytes - arena->bytes)
        return false;
    struct ak_jarena_block *block = ak_alloc(1, sizeof *block + size);
    if (!block)
        return false;
    block->older = arena->blocks;
    arena->blocks = block;
    arena->next = block->bytes;
    arena->end = block->bytes + size;
    arena->bytes += size;
    return true;
}

void *ak_j_arena_alloc(struct ak_jarena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = ak_round_up(bytes ? bytes : 1, ALIGN);
    if ((size_t)(arena->end - arena->next) < bytes && !add_block(arena, bytes))
        return NULL;
    void *p = arena->next;
    arena->next += bytes;
    return p;
}

bool ak_j_arena_extend(struct ak_jarena *arena, const void *p, size_t old_bytes, size_t bytes)
{
    const char *begin = p;
    if (!begin || bytes > SIZE_MAX / 2 ||
        begin + ak_round_up(old_bytes ? old_bytes : 1, ALIGN) != arena->next)
        return false;
    size_t more = ak_round_up(bytes, ALIGN) - (size_t)(arena->next - begin);
    if (bytes < old_bytes || (size_t)(arena->end - arena->next) < more)
        return false;
    arena->next += more;
    return true;
}

void ak_j_arena_free(struct ak_jarena *arena)
{
    while (arena->blocks) {
        struct ak_jarena_block *older = arena->blocks->older;
        ak_free(arena->blocks);
        arena->blocks = older;
    }
    *arena = (struct ak_jarena){ .max_bytes = arena->max_bytes };
}

/* ---- Failures and limits ------------------------------------------------ */
static _Noreturn void fail_with(struct ak_jenv *j, ak_status status, const char *format,
                                va_list arguments)
{
    char message[AK_ERROR_MESSAGE_BYTES];
    vsnprintf(message, sizeof message, format, arguments);
    if (j->line)
        ak_fail(j->error, status, "line %u, column %u: %s", j->line, j->column, message);
    else
        ak_fail(j->error, status, "%s", message);
    j->steps = status; /* read after the longjmp: j->error may be NULL */
    longjmp(j->failed, 1);
}

_Noreturn void ak_j_fail(struct ak_jenv *j, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_with(j, AKUNU_ERROR_ARGUMENT, format, arguments);
    va_end(arguments);
}

_Noreturn void ak_j_fail_as(struct ak_jenv *j, ak_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_with(j, status, format, arguments);
    va_end(arguments);
}

static _Noreturn void fail_for_memory(struct ak_jenv *j, size_t bytes)
{
    if (bytes > j->arena.max_bytes - j->arena.bytes)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                     "the template makes more than %zu MiB of values, the limit",
                     j->arena.max_bytes >> 20);
    ak_j_fail_as(j, AKUNU_ERROR_MEMORY, "out of memory for a chat template (%zu bytes)", bytes);
}

void *ak_j_alloc(struct ak_jenv *j, size_t n, size_t size)
{
    size_t bytes;
    if (!ak_mul_size(n, size, &bytes))
        bytes = SIZE_MAX;
    void *p = ak_j_arena_alloc(&j->arena, bytes);
    if (!p)
        fail_for_memory(j, ak_max_size(bytes, 1 << 20));
    return p;
}

void *ak_j_grow(struct ak_jenv *j, void *old, size_t n_old, size_t n, size_t size)
{
    if (old && n <= SIZE_MAX / 2 / size &&
        ak_j_arena_extend(&j->arena, old, n_old * size, n * size))
        return old;
    void *p = ak_j_alloc(j, n, size);
    if (n_old)
        memcpy(p, old, n_old * size);
    return p;
}

void ak_j_spend(struct ak_jenv *j, uint64_t n)
{
    if (n > j->steps)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "the template takes more than %d steps, the limit",
                     AK_JINJA_STEPS_MAX);
    j->steps -= n;
}

void ak_j_enter(struct ak_jenv *j)
{
    if (++j->depth > AK_JINJA_DEPTH_MAX)
        ak_j_fail_as(
            j, AKUNU_ERROR_UNSUPPORTED,
            "the template nests deeper than %d, the limit: does a macro call itself without end?",
            AK_JINJA_DEPTH_MAX);
}
