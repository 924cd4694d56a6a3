/* A fast hash against accidents: it tells files apart that differ by chance, and
 * is no defense against files that are made to agree. */
#ifndef AK_BASE_HASH_H
#define AK_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Adds `bytes` bytes to the running hash in state, which begins as any two
 * numbers. Pieces count as pieces: "ab", "c" differs from "a", "bc". */
void ak_hash128(const void *data, size_t bytes, uint64_t state[2]);

#endif
