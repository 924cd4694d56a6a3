/* Saved sequences: tokens, keys and values of a text in a file, so that a later session need not
 * run the text again. Also the prompt cache on top of them.
 *
 * After the header (files/store/store.h) come the tokens as int32, at the next multiple of 64 bytes
 * the 128-bit hash of each page, and at the next multiple of 4096 the pages of the KV pool,
 * unchanged. The digest in the header covers tokens and hashes. So a page can be checked alone, and
 * a text with a common prefix reads only the pages it shares.
 *
 * The key in the header covers what keys and values depend on: the model's file, metadata
 * overrides, KV types, rounding, and the version of this program. It covers the instruction set
 * only if rounding is relaxed; otherwise results are the same bits everywhere.
 *
 * Not supported for encoders, models with recurrent state, and KV pages on a device. */
#ifndef AK_ENGINE_PERSIST_SAVE_H
#define AK_ENGINE_PERSIST_SAVE_H

#include "engine/session/session.h"
#include "files/store/store.h"

/* AKUNU_ERROR_UNSUPPORTED, with the reason, if the session's sequences cannot be saved. */
ak_status ak_save_check(const struct ak_session *s, struct ak_error *error);
void ak_save_key(const struct ak_session *s, struct ak_store_key *out);

/* An open file after its tokens were read. */
struct ak_save_file {
    int fd;
    struct ak_store_header header;
    int32_t *tokens;
    uint64_t *hashes; /* [n_pages][2] */
    uint32_t n_tokens, n_pages;
    uint64_t pages_offset;          /* bytes from the beginning of the file */
    char name[AK_STORE_NAME_BYTES]; /* for the caller */
};

/* Takes ownership of `fd`, on failure too. On failure *why is a static string. */
bool ak_save_open(int fd, const struct ak_session *s, const struct ak_store_key *key,
                  struct ak_save_file *out, const char **why);
void ak_save_close(struct ak_save_file *saved);

/* Length of the common prefix of the saved text and the n tokens at `ids`. */
uint32_t ak_save_count_common(const struct ak_save_file *saved, const int32_t *ids, size_t n);

/* Reads the first n tokens and their pages into an empty sequence; they must fit. False if the file
 * is damaged or unreadable; the sequence is then still empty. */
bool ak_save_read(const struct ak_save_file *saved, struct ak_session *s, int32_t sequence,
                  uint32_t n, const char **why);

/* Writes the first n tokens of a sequence to the empty file writer->fd, and commits it under its
 * name. */
bool ak_save_write(struct ak_session *s, int32_t sequence, uint32_t n,
                   struct ak_store_writer *writer, const char **why);

/* Bytes after the header. */
uint64_t ak_save_bytes(const struct ak_session *s, uint32_t n);

/* ---- Prompt cache: prompt_cache.c --------------------------------------- */
/* Earlier prompts on disk: a prompt with the same beginning reads its keys and values from the file
 * instead of computing them, bit for bit the same. */

/* As akunu_sequence_restore and akunu_sequence_keep; all fields of `cache` are set. If a file
 * cannot be used, the prompt is run instead and the log has one line. Fewer than n_min tokens are
 * not restored. */
ak_status ak_prompt_cache_restore(struct ak_session *s, int32_t sequence, const int32_t *ids,
                                  size_t n_ids, size_t n_min,
                                  const struct akunu_prompt_cache *cache, size_t *n_restored,
                                  struct ak_error *error);
ak_status ak_prompt_cache_keep(struct ak_session *s, int32_t sequence, size_t n_tokens,
                               const struct akunu_prompt_cache *cache, struct ak_error *error);

/* As akunu_sequence_save and akunu_sequence_load. */
ak_status ak_save_sequence(struct ak_session *s, int32_t sequence, const char *path,
                           struct ak_error *error);
ak_status ak_save_load_sequence(struct ak_session *s, int32_t sequence, const char *path,
                                struct ak_error *error);

#endif
