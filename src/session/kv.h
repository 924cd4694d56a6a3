/* The KV cache: a pool of pages, and a page table a sequence.
 *
 * A page holds AK_KV_PAGE_TOKENS tokens of all layers. Sequences share pages by
 * reference; a shared page is copied before it is written. Everything is
 * allocated at creation; pages of the pool cost memory once they are written.
 *
 * The state that other layers keep of a sequence is that after one number of tokens
 * alone. After a rewind, or in a fork of fewer tokens, it is that of more than there are,
 * and has to be computed again before the next ones.
 */
#ifndef AK_SESSION_KV_H
#define AK_SESSION_KV_H

#include "backend/backend.h"

struct ak_session_kv_sequence {
    bool used;
    uint32_t length;       /* tokens in the cache */
    uint32_t state_length; /* after which its state is: at least `length` */
    uint32_t *pages;       /* the first count_pages(length) are its own */
    int32_t *tokens;       /* their ids */
};

struct ak_session_kv {
    struct ak_backend *backend;
    struct ak_kv_shape shape;
    uint64_t pool_bytes;
    void *pool;           /* the backend's */
    uint32_t context;     /* the most tokens of a sequence */
    uint32_t *references; /* of each page, 0: free */
    uint32_t *free_pages; /* a stack */
    uint32_t n_free;
    struct ak_session_kv_sequence *sequences;
    uint32_t n_sequences;
    const uint32_t **tables; /* the sequences' page tables, as a batch wants them */
    uint32_t *table_block;
    int32_t *token_block;
};

/* Pages that `context` tokens need however n_sequences sequences share them out;
 * 0 where that is more than can be counted. */
uint32_t ak_session_kv_count_pages(uint32_t context, uint32_t n_sequences);

/* shape->n_pages is at least ak_session_kv_count_pages(context, n_sequences), and with states
 * there are n_states = n_sequences. On failure *out is all zero. */
ak_status ak_session_kv_create(struct ak_backend *backend, const struct ak_kv_shape *shape,
                               uint32_t context, uint32_t n_sequences, struct ak_session_kv *out,
                               struct ak_error *error);
void ak_session_kv_clear(struct ak_session_kv *kv); /* an all-zero one too */

/* An empty sequence; -1: all are in use. */
int32_t ak_session_kv_sequence_new(struct ak_session_kv *kv);
/* Gives its pages back. */
void ak_session_kv_sequence_free(struct ak_session_kv *kv, int32_t sequence);
/* NULL where there is no such sequence. */
const struct ak_session_kv_sequence *ak_session_kv_sequence(const struct ak_session_kv *kv,
                                                            int32_t sequence);

/* Free pages that n more tokens of a sequence take. */
uint32_t ak_session_kv_count_new_pages(const struct ak_session_kv *kv, int32_t sequence,
                                       uint32_t n);
/* Adds n tokens, whose keys and values the next pass writes. There are
 * ak_session_kv_count_new_pages free pages, and the length stays within the context. */
void ak_session_kv_extend(struct ak_session_kv *kv, int32_t sequence, const int32_t *tokens,
                          uint32_t n);
/* Whether the sequence's state is not that after its last token. */
bool ak_session_kv_state_is_stale(const struct ak_session_kv *kv, int32_t sequence);
/* Forgets all but the first `length` tokens, at most those that there are. */
void ak_session_kv_rewind(struct ak_session_kv *kv, int32_t sequence, uint32_t length);
/* A new sequence of the first `length` tokens of another; -1: no sequence or no
 * page is free. */
int32_t ak_session_kv_fork(struct ak_session_kv *kv, int32_t sequence, uint32_t length);

#endif
