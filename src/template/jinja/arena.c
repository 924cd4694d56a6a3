#include "template/jinja/arena.h"

#include <stdalign.h>
#include <stdint.h>

#include "base/mem.h"

enum { ALIGN = 16, BLOCK_BYTES_MIN = 16 << 10, BLOCK_BYTES_MAX = 1 << 20 };

struct ak_jarena_block {
    struct ak_jarena_block *older;
    alignas(ALIGN) char bytes[];
};

/* Blocks grow with the arena, so that a small template takes little. */
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
