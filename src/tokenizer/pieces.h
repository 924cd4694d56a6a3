/* The bytes that each token stands for: one arena, one offset a token, and one
 * open-addressing hash from bytes to token. */
#ifndef AK_TEXT_PIECES_H
#define AK_TEXT_PIECES_H

#include "base/error.h"
#include "weights/provider.h"

struct ak_piece_slot {
    uint32_t hash, id;
};

struct ak_pieces {
    uint32_t n;        /* pieces so far */
    uint32_t capacity; /* as reserved */
    uint32_t longest;  /* bytes of the longest one in the index */
    char *arena;
    uint64_t arena_bytes;
    uint32_t *offsets; /* capacity + 1: piece i is [offsets[i], offsets[i+1]) of the arena */
    struct ak_piece_slot *slots;
    uint32_t slot_mask; /* slots - 1; a power of two, at most half full */
};

/* Makes room for n pieces of `bytes` bytes in all. p is all zero before, and may
 * be given to ak_pieces_free whatever comes back. */
ak_status ak_pieces_reserve(struct ak_pieces *p, uint32_t n, uint64_t bytes,
                            struct ak_error *error);
void ak_pieces_free(struct ak_pieces *p);

/* Where the next piece's bytes are to be written, and that n of them were. Both
 * stay within what was reserved: the caller's duty. */
char *ak_pieces_next(struct ak_pieces *p);
void ak_pieces_append(struct ak_pieces *p, uint32_t n);

/* Makes piece `id` findable, unless it is empty or an equal one is there already:
 * at the latest with ak_pieces_index_end. Several at once take less time than one
 * by one, since they do not wait for memory one after another. */
enum { AK_PIECES_AT_ONCE = 96 };
struct ak_pieces_batch {
    uint32_t ids[AK_PIECES_AT_ONCE];
    size_t n;
};
void ak_pieces_index(struct ak_pieces *p, struct ak_pieces_batch *batch, uint32_t id);
void ak_pieces_index_end(struct ak_pieces *p, struct ak_pieces_batch *batch);

/* The token that stands for these bytes, -1 where none was indexed. */
int32_t ak_pieces_find(const struct ak_pieces *p, const char *bytes, size_t n);

/* The same for n ≤ AK_PIECES_AT_ONCE texts. */
void ak_pieces_find_all(const struct ak_pieces *p, const struct ak_text *texts, size_t n,
                        int32_t *ids);

/* Gives back the index, where nothing will be looked up any more. */
void ak_pieces_drop_index(struct ak_pieces *p);

uint64_t ak_pieces_bytes(const struct ak_pieces *p);

static inline struct ak_text ak_pieces_get(const struct ak_pieces *p, uint32_t id)
{
    return (struct ak_text){ p->arena + p->offsets[id], p->offsets[id + 1] - p->offsets[id] };
}

#endif
