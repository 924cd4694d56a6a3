/* The KV cache: a pool of pages and one page table per sequence.
 *
 * A page holds AK_KV_PAGE_TOKENS tokens of all layers. Sequences share pages by reference; a shared
 * page is copied before it is written. Everything is allocated at creation; in host memory, pages
 * of the pool take memory only once they are written.
 *
 * Pages of a sequence can be dropped (evict.c). Positions and the page table stay as they are: a
 * dropped page is AK_KV_NO_PAGE there. Later tokens are computed without it, so such a sequence is
 * rewound to what it had before its first dropped page, or to tokens after the eviction.
 *
 * The recurrent state is that after `state_length` tokens. After a rewind, or in a shorter fork, it
 * is recomputed before the next pass. */
#ifndef AK_ENGINE_SESSION_KV_H
#define AK_ENGINE_SESSION_KV_H

#include "engine/backend/backend.h"

struct ak_session_kv_sequence {
    bool used;
    uint32_t length;         /* tokens in the cache */
    uint32_t state_length;   /* tokens that the recurrent state covers; at least `length` */
    uint32_t *pages;         /* page table; ak_session_kv_pages_of(length) entries are valid */
    uint32_t n_dropped;      /* entries of it that are AK_KV_NO_PAGE */
    uint32_t evicted_length; /* its length when pages were dropped last; 0: it has all pages */
    int32_t *tokens;         /* ids of the cached tokens */
};

struct ak_session_kv {
    struct ak_backend *backend;
    struct ak_kv_shape shape;
    uint64_t pool_bytes;
    void *pool;           /* allocated by the backend */
    uint32_t context;     /* max. tokens of a sequence */
    uint32_t *references; /* per page; 0: free */
    uint32_t *free_pages; /* stack */
    uint32_t n_free;
    struct ak_session_kv_sequence *sequences;
    uint32_t n_sequences;
    const uint32_t **tables; /* page tables as struct ak_batch takes them */
    uint32_t *table_block;
    int32_t *token_block;
};

/* Pages that n tokens of one sequence fill or begin. */
static inline uint32_t ak_session_kv_pages_of(size_t n)
{
    return (uint32_t)(n / AK_KV_PAGE_TOKENS + (n % AK_KV_PAGE_TOKENS != 0));
}

/* Pages for `context` tokens in any distribution over n_sequences sequences; 0 if the number
 * overflows. */
uint32_t ak_session_kv_count_pages(uint32_t context, uint32_t n_sequences);

/* shape->n_pages is at least ak_session_kv_count_pages(context, n_sequences). With recurrent states
 * shape->n_states = n_sequences. On failure *out is all zero. */
ak_status ak_session_kv_create(struct ak_backend *backend, const struct ak_kv_shape *shape,
                               uint32_t context, uint32_t n_sequences, struct ak_session_kv *out,
                               struct ak_error *error);
void ak_session_kv_clear(struct ak_session_kv *kv); /* all-zero allowed */

/* Opens an empty sequence; -1: all are in use. */
int32_t ak_session_kv_sequence_new(struct ak_session_kv *kv);
/* Frees a sequence and its pages. */
void ak_session_kv_sequence_free(struct ak_session_kv *kv, int32_t sequence);
/* NULL if there is no such sequence. */
const struct ak_session_kv_sequence *ak_session_kv_sequence(const struct ak_session_kv *kv,
                                                            int32_t sequence);

/* Free pages needed for n more tokens of a sequence. */
uint32_t ak_session_kv_count_new_pages(const struct ak_session_kv *kv, int32_t sequence,
                                       uint32_t n);
/* Adds n tokens; the next pass writes their keys and values. ak_session_kv_count_new_pages pages
 * must be free, and the length must stay within the context. */
void ak_session_kv_extend(struct ak_session_kv *kv, int32_t sequence, const int32_t *tokens,
                          uint32_t n);
/* Whether the recurrent state is not the one after the last token. */
bool ak_session_kv_state_is_stale(const struct ak_session_kv *kv, int32_t sequence);
/* Tokens before the first dropped page. */
uint32_t ak_session_kv_count_whole(const struct ak_session_kv_sequence *s);
/* Largest length up to `length` to which the sequence can be rewound. */
uint32_t ak_session_kv_find_rewind(const struct ak_session_kv_sequence *s, uint32_t length);
/* Drops page number `index` of a sequence's table. */
void ak_session_kv_drop_page(struct ak_session_kv *kv, int32_t sequence, uint32_t index);
/* Truncates a sequence to its first `length` tokens, a length that ak_session_kv_find_rewind
 * gives. */
void ak_session_kv_rewind(struct ak_session_kv *kv, int32_t sequence, uint32_t length);
/* Opens a sequence with the first `length` tokens of another, a length that
 * ak_session_kv_find_rewind gives; -1: no sequence or no page is free. */
int32_t ak_session_kv_fork(struct ak_session_kv *kv, int32_t sequence, uint32_t length);

/* One more reference to a page that is in use, and one fewer: without any, the page is free. */
void ak_session_kv_hold_page(struct ak_session_kv *kv, uint32_t page);
void ak_session_kv_release_page(struct ak_session_kv *kv, uint32_t page);
/* Appends n tokens, at most AK_KV_PAGE_TOKENS, whose keys and values `page` begins with; the page
 * becomes shared. The sequence's last page must be full. */
void ak_session_kv_share(struct ak_session_kv *kv, int32_t sequence, uint32_t page,
                         const int32_t *tokens, uint32_t n);

#endif
