/* Saving and loading sequences in files, and restoring prompts from the cache of earlier ones. */
#include "persist/save.h"

#include "api/handles.h"

void akunu_prompt_cache_default(struct akunu_prompt_cache *cache)
{
    if (cache)
        *cache = (struct akunu_prompt_cache){ .size = sizeof *cache,
                                              .max_bytes = UINT64_C(2) << 30,
                                              .least = 128 };
}

static enum akunu_status finish(const struct ak_error *error)
{
    return error->status == AKUNU_OK ? AKUNU_OK : ak_api_fail(error);
}

static struct ak_session *check_path(struct akunu_session *session, const char *path,
                                     struct ak_error *error)
{
    struct ak_session *s = ak_api_session(session, error);
    if (s && !path)
        ak_fail(error, AKUNU_ERROR_ARGUMENT, "the path is NULL");
    return path ? s : NULL;
}

enum akunu_status akunu_sequence_save(struct akunu_session *session, akunu_sequence sequence,
                                      const char *path)
{
    struct ak_error error = { 0 };
    struct ak_session *s = check_path(session, path, &error);
    if (s)
        ak_save_sequence(s, sequence, path, &error);
    return finish(&error);
}

enum akunu_status akunu_sequence_load(struct akunu_session *session, akunu_sequence sequence,
                                      const char *path)
{
    struct ak_error error = { 0 };
    struct ak_session *s = check_path(session, path, &error);
    if (s)
        ak_save_load_sequence(s, sequence, path, &error);
    return finish(&error);
}

enum akunu_status akunu_sequence_restore(struct akunu_session *session, akunu_sequence sequence,
                                         const akunu_token *ids, size_t n_ids,
                                         const struct akunu_prompt_cache *cache, size_t *n_restored)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    struct akunu_prompt_cache own;
    akunu_prompt_cache_default(&own);
    if (s && (!n_restored || (!ids && n_ids > 0)))
        ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                "the ids, or where the number of restored tokens goes, are NULL");
    else if (s && ak_api_copy_in(&own, sizeof own, cache, "akunu_prompt_cache", &error) == AKUNU_OK)
        ak_prompt_cache_restore(s, sequence, ids, n_ids, &own, n_restored, &error);
    return finish(&error);
}

enum akunu_status akunu_sequence_keep(struct akunu_session *session, akunu_sequence sequence,
                                      size_t n_tokens, const struct akunu_prompt_cache *cache)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    struct akunu_prompt_cache own;
    akunu_prompt_cache_default(&own);
    if (s && ak_api_copy_in(&own, sizeof own, cache, "akunu_prompt_cache", &error) == AKUNU_OK)
        ak_prompt_cache_keep(s, sequence, n_tokens, &own, &error);
    return finish(&error);
}
