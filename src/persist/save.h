/* A text's keys and values in a file.
 *
 * Behind the header (pack/cache.h) lie the tokens, int32; at the next multiple of 64 bytes the
 * 128-bit hash of each page; at the next multiple of 4096 the pages of the KV pool as they are.
 * The header's digest is of the tokens and the hashes, so a page can be checked without the
 * others, and a text that begins alike takes as many pages as it shares.
 *
 * The header's key tells what keys and values depend on: the model's file and what was given
 * in place of its metadata, the cache's types, the rounding, and this program's version. It does
 * not tell of the machine: its bits are everywhere the same.
 *
 * Not for models that keep a running state, nor where pages lie on a device. */
#ifndef AK_PERSIST_SAVE_H
#define AK_PERSIST_SAVE_H

#include "pack/cache.h"
#include "session/session.h"

/* AKUNU_ERROR_UNSUPPORTED says why a session's texts cannot be saved. */
ak_status ak_save_check(const struct ak_session *s, struct ak_error *error);
void ak_save_key(const struct ak_session *s, struct ak_store_key *out);

/* A file that was opened and whose tokens were read. */
struct ak_save_file {
    int fd;
    struct ak_store_header header;
    int32_t *tokens;
    uint64_t *hashes; /* [n_pages][2] */
    uint32_t n_tokens, n_pages;
    uint64_t pages_offset;          /* in the file */
    char name[AK_STORE_NAME_BYTES]; /* the caller's to use */
};

/* Takes `fd` over, on failure too, where *why says what is wrong with it (valid for good). */
bool ak_save_open(int fd, const struct ak_session *s, const struct ak_store_key *key,
                  struct ak_save_file *out, const char **why);
void ak_save_close(struct ak_save_file *saved);

/* How many of the n tokens at `ids` the saved text begins with. */
uint32_t ak_save_count_common(const struct ak_save_file *saved, const int32_t *ids, size_t n);

/* Gives an empty sequence the first n tokens, for which there is room, and their pages. False
 * where the file is damaged or cannot be read: then it is empty still. */
bool ak_save_read(const struct ak_save_file *saved, struct ak_session *s, int32_t sequence,
                  uint32_t n, const char **why);

/* Writes the first n tokens of a sequence into writer->fd, which is empty, and finishes it under
 * its name. */
bool ak_save_write(struct ak_session *s, int32_t sequence, uint32_t n,
                   struct ak_store_writer *writer, const char **why);

/* Bytes behind the header. */
uint64_t ak_save_bytes(const struct ak_session *s, uint32_t n);

/* ---- Prompt cache: prompt_cache.c --------------------------------------- */
/* Texts that were run before, on disk: a prompt that begins as one of them takes its keys and
 * values from the file instead of computing them, the same bits. */

/* As akunu_sequence_restore and akunu_sequence_keep; cache is complete. What cannot be had is
 * done without, which the session's log tells in one line. */
ak_status ak_prompt_cache_restore(struct ak_session *s, int32_t sequence, const int32_t *ids,
                                  size_t n_ids, const struct akunu_prompt_cache *cache,
                                  size_t *n_restored, struct ak_error *error);
ak_status ak_prompt_cache_keep(struct ak_session *s, int32_t sequence, size_t n_tokens,
                               const struct akunu_prompt_cache *cache, struct ak_error *error);

/* As akunu_sequence_save and akunu_sequence_load. */
ak_status ak_save_sequence(struct ak_session *s, int32_t sequence, const char *path,
                           struct ak_error *error);
ak_status ak_save_load_sequence(struct ak_session *s, int32_t sequence, const char *path,
                                struct ak_error *error);

#endif
