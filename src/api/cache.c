/* The cache folder behind a handle: lists its files with their states, removes them. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/handles.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/store/store.h"

struct akunu_cache {
    char *path;
    int dir; /* -1: there is no folder */
    struct ak_store_entry *entries;
    size_t n;
};

const char *akunu_cache_state_name(enum akunu_cache_state state)
{
    switch (state) {
    case AKUNU_CACHE_READY: return "ready";
    case AKUNU_CACHE_STALE: return "stale";
    case AKUNU_CACHE_DAMAGED: return "damaged";
    case AKUNU_CACHE_UNFINISHED: return "unfinished";
    case AKUNU_CACHE_BUILDING: return "building";
    }
    return "unknown";
}

static ak_status open_cache(const char *dir, struct akunu_cache *cache, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    cache->path = dir ? ak_strndup(dir, strlen(dir)) : ak_store_default_dir();
    if (!cache->path)
        return ak_fail(error, AKUNU_ERROR_SYSTEM,
                       "no folder for the cache is known: HOME is not set");
    cache->dir = ak_store_open_dir(cache->path, false);
    if (cache->dir < 0 && errno == ENOENT)
        return AKUNU_OK;
    if (cache->dir < 0)
        return ak_fail(error, AKUNU_ERROR_IO, "%s: %s", ak_show_path(cache->path, shown),
                       strerror(errno));
    ak_status status = ak_store_list(cache->dir, &cache->entries, &cache->n, error);
    if (status != AKUNU_OK)
        ak_error_prefix(error, ak_show_path(cache->path, shown));
    return status;
}

struct akunu_cache *akunu_cache_open(const char *dir)
{
    struct ak_error error = { 0 };
    struct akunu_cache *cache = ak_alloc(1, sizeof *cache);
    if (!cache) {
        ak_fail_memory(&error, "a list of caches", sizeof *cache);
    } else {
        cache->dir = -1;
        open_cache(dir, cache, &error);
    }
    if (error.status == AKUNU_OK)
        return cache;
    ak_api_finish(&error);
    akunu_cache_free(cache);
    return NULL;
}

void akunu_cache_free(struct akunu_cache *cache)
{
    if (!cache)
        return;
    if (cache->dir >= 0)
        close(cache->dir);
    ak_free(cache->entries);
    ak_free(cache->path);
    ak_free(cache);
}

const char *akunu_cache_path(const struct akunu_cache *cache)
{
    return cache ? cache->path : NULL;
}

size_t akunu_cache_count(const struct akunu_cache *cache)
{
    return cache ? cache->n : 0;
}

static ak_status find_entry(const struct akunu_cache *cache, size_t i, struct ak_error *error)
{
    if (!cache)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the cache is NULL");
    if (i >= cache->n)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "there is no cache %zu: there are %zu", i,
                       cache->n);
    return AKUNU_OK;
}

enum akunu_status akunu_cache_get_entry(const struct akunu_cache *cache, size_t i,
                                        struct akunu_cache_entry *entry, size_t size)
{
    struct ak_error error = { 0 };
    if (find_entry(cache, i, &error) != AKUNU_OK)
        return ak_api_finish(&error);
    const struct ak_store_entry *e = &cache->entries[i];
    struct akunu_cache_entry full = {
        .file = e->name,
        .model = e->header.source,
        .backend = e->header.backend,
        .state = e->state,
        .bytes = e->bytes,
        .built = e->built,
        .used = e->used,
        .n_tokens = e->header.n_tokens,
    };
    ak_api_copy_out(entry, size, &full, sizeof full, "akunu_cache_entry", &error);
    return ak_api_finish(&error);
}

enum akunu_status akunu_cache_remove(struct akunu_cache *cache, size_t i)
{
    struct ak_error error = { 0 };
    char shown[AK_SHOW_BYTES];
    if (find_entry(cache, i, &error) != AKUNU_OK)
        return ak_api_finish(&error);
    const char *name = cache->entries[i].name;
    if (ak_store_remove(cache->dir, name))
        return AKUNU_OK;
    ak_fail(&error, AKUNU_ERROR_IO, "%s/%s: %s", ak_show_path(cache->path, shown), name,
            errno == EBUSY ? "it is being built" : strerror(errno));
    return ak_api_finish(&error);
}
