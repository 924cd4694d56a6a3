/* Compares the headers of two cache files member by member: what lies between them may be
 * anything. */
#ifndef AK_TESTS_STORE_HEADER_H
#define AK_TESTS_STORE_HEADER_H

#include "files/store/store.h"
#include "tests/test.h"

static inline void test_same_header(const struct ak_store_header *a,
                                    const struct ak_store_header *b)
{
    ck_assert(a->kind == b->kind && a->block_bytes == b->block_bytes && a->built == b->built &&
              a->source_bytes == b->source_bytes && a->source_mtime_ns == b->source_mtime_ns &&
              a->n_tokens == b->n_tokens);
    ck_assert_mem_eq(&a->key, &b->key, sizeof a->key);
    ck_assert_mem_eq(a->digest, b->digest, sizeof a->digest);
    ck_assert_str_eq(a->backend, b->backend);
    ck_assert_str_eq(a->source, b->source);
}

#endif
