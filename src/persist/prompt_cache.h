/* Texts that were run before, on disk: a prompt that begins as one of them takes its keys and
 * values from the file instead of computing them, the same bits. */
#ifndef AK_PERSIST_PROMPT_CACHE_H
#define AK_PERSIST_PROMPT_CACHE_H

#include "persist/save.h"

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
