/* Token bytes table. Indexing and lookup work on batches and prefetch what the next step reads:
 * loading a large vocabulary is bound by cache misses, not by hashing. */
#include "text/tokenizer/token_bytes.h"

#include <string.h>

#include "base/mem.h"

static const uint32_t no_token = UINT32_MAX;

static uint32_t hash_bytes(const char *bytes, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(h ^ h >> 32);
}

ak_status ak_tok_bytes_reserve(struct ak_tok_bytes *p, uint32_t n, uint64_t bytes,
                               struct ak_error *error)
{
    if (n > INT32_MAX || bytes > UINT32_MAX)
        return ak_fail(
            error, AKUNU_ERROR_UNSUPPORTED,
            "a vocabulary of %u tokens and %llu bytes: at most 2^31 and 2^32 are supported", n,
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
        p->slots[i].id = no_token;
    return AKUNU_OK;
}

void ak_tok_bytes_free(struct ak_tok_bytes *p)
{
    ak_free(p->arena);
    ak_free(p->offsets);
    ak_free(p->slots);
    *p = (struct ak_tok_bytes){ 0 };
}

char *ak_tok_bytes_next(struct ak_tok_bytes *p)
{
    return p->arena + p->offsets[p->n];
}

void ak_tok_bytes_append(struct ak_tok_bytes *p, uint32_t n)
{
    p->offsets[p->n + 1] = p->offsets[p->n] + n;
    p->n++;
}

/* Whether the search ends at slot `at`: it is free or holds these bytes. */
static bool ends_search(const struct ak_tok_bytes *p, uint32_t at, uint32_t hash, const char *bytes,
                        size_t n)
{
    if (p->slots[at].id == no_token)
        return true;
    if (p->slots[at].hash != hash)
        return false;
    struct ak_text piece = ak_tok_bytes_get(p, p->slots[at].id);
    return piece.n == n && memcmp(piece.bytes, bytes, n) == 0;
}

static uint32_t search(const struct ak_tok_bytes *p, uint32_t hash, const char *bytes, size_t n)
{
    uint32_t at = hash & p->slot_mask;
    while (!ends_search(p, at, hash, bytes, n))
        at = (at + 1) & p->slot_mask;
    return at;
}

void ak_tok_bytes_index(struct ak_tok_bytes *p, struct ak_tok_bytes_batch *batch, uint32_t id)
{
    batch->ids[batch->n++] = id;
    if (batch->n == AK_TOK_BATCH_MAX)
        ak_tok_bytes_index_end(p, batch);
}

void ak_tok_bytes_index_end(struct ak_tok_bytes *p, struct ak_tok_bytes_batch *batch)
{
    uint32_t hashes[AK_TOK_BATCH_MAX];
    for (size_t i = 0; i < batch->n; i++) {
        struct ak_text piece = ak_tok_bytes_get(p, batch->ids[i]);
        hashes[i] = hash_bytes(piece.bytes, piece.n);
        __builtin_prefetch(&p->slots[hashes[i] & p->slot_mask], 1);
    }
    for (size_t i = 0; i < batch->n; i++) {
        struct ak_text piece = ak_tok_bytes_get(p, batch->ids[i]);
        uint32_t at = piece.n > 0 ? search(p, hashes[i], piece.bytes, piece.n) : 0;
        if (piece.n == 0 || p->slots[at].id != no_token)
            continue;
        p->slots[at] = (struct ak_tok_bytes_slot){ hashes[i], batch->ids[i] };
        if (p->max_bytes < piece.n)
            p->max_bytes = piece.n;
    }
    batch->n = 0;
}

int32_t ak_tok_bytes_find(const struct ak_tok_bytes *p, const char *bytes, size_t n)
{
    if (n == 0 || n > p->max_bytes)
        return -1;
    uint32_t id = p->slots[search(p, hash_bytes(bytes, n), bytes, n)].id;
    return id == no_token ? -1 : (int32_t)id;
}

/* Each step prefetches what the next step reads, for the whole batch. */
void ak_tok_bytes_find_all(const struct ak_tok_bytes *p, const struct ak_text *texts, size_t n,
                           int32_t *ids)
{
    uint32_t hashes[AK_TOK_BATCH_MAX], candidates[AK_TOK_BATCH_MAX];
    for (size_t i = 0; i < n; i++) {
        hashes[i] = hash_bytes(texts[i].bytes, texts[i].n);
        __builtin_prefetch(&p->slots[hashes[i] & p->slot_mask]);
    }
    for (size_t i = 0; i < n; i++) {
        candidates[i] = p->slots[hashes[i] & p->slot_mask].id;
        if (candidates[i] != no_token)
            __builtin_prefetch(&p->offsets[candidates[i]]);
    }
    for (size_t i = 0; i < n; i++)
        if (candidates[i] != no_token)
            __builtin_prefetch(p->arena + p->offsets[candidates[i]]);
    for (size_t i = 0; i < n; i++) {
        bool possible = texts[i].n > 0 && texts[i].n <= p->max_bytes;
        uint32_t id =
            possible ? p->slots[search(p, hashes[i], texts[i].bytes, texts[i].n)].id : no_token;
        ids[i] = id == no_token ? -1 : (int32_t)id;
    }
}

void ak_tok_bytes_drop_index(struct ak_tok_bytes *p)
{
    ak_free(p->slots);
    p->slots = NULL;
    p->slot_mask = 0;
    p->max_bytes = 0;
}

uint64_t ak_tok_bytes_memory(const struct ak_tok_bytes *p)
{
    uint64_t slots = p->slots ? ((uint64_t)p->slot_mask + 1) * sizeof *p->slots : 0;
    return p->arena_bytes + ((uint64_t)p->capacity + 1) * sizeof *p->offsets + slots;
}
