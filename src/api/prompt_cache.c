/* Saving and loading sequences in files, and restoring prompts from the cache of earlier ones. */
#include "engine/persist/save.h"

#include "api/handles.h"

void akunu_prompt_cache_default(struct akunu_prompt_cache *cache, size_t size)
{
    static const struct akunu_prompt_cache full = { .max_bytes = 2000000000, .min_tokens = 128 };
    ak_api_give_default(cache, size, &full, sizeof full);
}

/* ak_save_sequence or ak_save_load_sequence. */
typedef ak_status file_fn(struct ak_session *s, int32_t sequence, const char *path,
                          struct ak_error *error);

static enum akunu_status with_path(struct akunu_session *session, akunu_sequence sequence,
                                   const char *path, file_fn *call)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && !path)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the path is NULL");
    else if (s)
        call(s, sequence, path, &error);
    return ak_api_end(session, s, &error);
}

enum akunu_status akunu_sequence_save(struct akunu_session *session, akunu_sequence sequence,
                                      const char *path)
{
    return with_path(session, sequence, path, ak_save_sequence);
}

enum akunu_status akunu_sequence_load(struct akunu_session *session, akunu_sequence sequence,
                                      const char *path)
{
    return with_path(session, sequence, path, ak_save_load_sequence);
}

enum akunu_status akunu_sequence_restore(struct akunu_session *session, akunu_sequence sequence,
                                         const struct akunu_ids *prompt,
                                         const struct akunu_prompt_cache *cache, size_t *n_restored)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    struct akunu_prompt_cache own;
    akunu_prompt_cache_default(&own, sizeof own);
    if (s && (!n_restored || !prompt || (!prompt->ids && prompt->n > 0)))
        ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                "the prompt, or where the number of restored tokens goes, is NULL");
    else if (s && ak_api_copy_in(&own, sizeof own, cache, "akunu_prompt_cache", &error) == AKUNU_OK)
        ak_prompt_cache_restore(s, sequence, prompt->ids, prompt->n, 0, &own, n_restored, &error);
    return ak_api_end(session, s, &error);
}

enum akunu_status akunu_sequence_keep(struct akunu_session *session, akunu_sequence sequence,
                                      size_t n_tokens, const struct akunu_prompt_cache *cache)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    struct akunu_prompt_cache own;
    akunu_prompt_cache_default(&own, sizeof own);
    if (s && ak_api_copy_in(&own, sizeof own, cache, "akunu_prompt_cache", &error) == AKUNU_OK)
        ak_prompt_cache_keep(s, sequence, n_tokens, &own, &error);
    return ak_api_end(session, s, &error);
}
