#include "text/pieces.h"

#include <string.h>

#include "base/mem.h"

static const uint32_t no_piece = UINT32_MAX;

static uint32_t hash_bytes(const char *bytes, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(h ^ h >> 32);
}

ak_status ak_pieces_reserve(struct ak_pieces *p, uint32_t n, uint64_t bytes, struct ak_error *error)
{
    if (n > INT32_MAX || bytes > UINT32_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "a vocabulary of %u tokens and %llu bytes: at most 2^31 and 2^32 are supported", n,
                       (unsigned long long)bytes);
    size_t n_slots = 16;
    while (n_slots / 3 * 2 < n)
        n_slots *= 2;
    p->arena = ak_alloc(bytes, 1);
    p->offsets = ak_alloc((size_t)n + 1, sizeof *p->offsets);
    p->slots = ak_alloc(n_slots, sizeof *p->slots);
    if (!p->arena || !p->offsets || !p->slots)
        return ak_fail_memory(error, "the vocabulary", bytes + n_slots * sizeof *p->slots);
    p->arena_bytes = bytes;
    p->capacity = n;
    p->slot_mask = (uint32_t)(n_slots - 1);
    for (size_t i = 0; i < n_slots; i++)
        p->slots[i].id = no_piece;
    return AKUNU_OK;
}

void ak_pieces_free(struct ak_pieces *p)
{
    ak_free(p->arena);
    ak_free(p->offsets);
    ak_free(p->slots);
    *p = (struct ak_pieces){0};
}

char *ak_pieces_next(struct ak_pieces *p)
{
    return p->arena + p->offsets[p->n];
}

void ak_pieces_append(struct ak_pieces *p, uint32_t n)
{
    p->offsets[p->n + 1] = p->offsets[p->n] + n;
    p->n++;
}

void ak_pieces_index(struct ak_pieces *p, uint32_t id)
{
    struct ak_text piece = ak_pieces_get(p, id);
    if (piece.n == 0)
        return;
    uint32_t hash = hash_bytes(piece.bytes, piece.n), at = hash & p->slot_mask;
    for (; p->slots[at].id != no_piece; at = (at + 1) & p->slot_mask) {
        if (p->slots[at].hash != hash)
            continue;
        struct ak_text other = ak_pieces_get(p, p->slots[at].id);
        if (other.n == piece.n && memcmp(other.bytes, piece.bytes, piece.n) == 0)
            return;
    }
    p->slots[at] = (struct ak_piece_slot){hash, id};
    if (p->longest < piece.n)
        p->longest = piece.n;
}

int32_t ak_pieces_find(const struct ak_pieces *p, const char *bytes, size_t n)
{
    if (n == 0 || n > p->longest)
        return -1;
    uint32_t hash = hash_bytes(bytes, n), at = hash & p->slot_mask;
    for (; p->slots[at].id != no_piece; at = (at + 1) & p->slot_mask) {
        if (p->slots[at].hash != hash)
            continue;
        struct ak_text piece = ak_pieces_get(p, p->slots[at].id);
        if (piece.n == n && memcmp(piece.bytes, bytes, n) == 0)
            return (int32_t)p->slots[at].id;
    }
    return -1;
}

void ak_pieces_drop_index(struct ak_pieces *p)
{
    ak_free(p->slots);
    p->slots = NULL;
    p->slot_mask = 0;
    p->longest = 0;
}

uint64_t ak_pieces_bytes(const struct ak_pieces *p)
{
    uint64_t slots = p->slots ? ((uint64_t)p->slot_mask + 1) * sizeof *p->slots : 0;
    return p->arena_bytes + ((uint64_t)p->capacity + 1) * sizeof *p->offsets + slots;
}
