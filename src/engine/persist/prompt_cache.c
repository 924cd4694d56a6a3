/* The prompt cache: finds the saved text with the longest common prefix in the cache folder, keeps
 * new ones and evicts the least recently used. Failures are logged; generation goes on without the
 * cache. */
#include "engine/persist/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/available.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { NEW_TOKENS_MIN = AK_KV_PAGE_TOKENS }; /* fewer new tokens are not worth a file */

/* Logs that the prompt cache is not used, and why. */
static void log_fallback(const struct ak_session *s, const char *name, const char *why)
{
    char shown[AK_SHOW_BYTES];
    ak_log_line(&s->log, AKUNU_LOG_WARN, "prompt cache: not used: %s: %s",
                ak_show_path(name, shown), why);
}

/* Sets the access time to now. A use is recorded here alone; looking at a file does not count. */
static void touch_file(int fd)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
    (void)futimens(fd, times);
}

/* ---- The folder --------------------------------------------------------- */
/* Opens the cache folder; -1: there is none, or it cannot be used. `make`: creates it, and logs a
 * failure. */
static int open_folder(const struct ak_session *s, const struct akunu_prompt_cache *cache,
                       bool make)
{
    char *path = cache->dir ? ak_strndup(cache->dir, strlen(cache->dir)) : ak_store_default_dir();
    int dir = path ? ak_store_open_dir(path, make) : -1;
    if (make && dir < 0)
        log_fallback(s, path ? path : "its folder",
                     path ? strerror(errno) : "no folder for it is known (HOME is not set)");
    ak_free(path);
    return dir;
}

/* Whether it is worth a look by ak_save_open. Headers that could not be read are zeros. */
static bool is_ours(const struct ak_store_entry *e, const struct ak_store_key *key)
{
    return memcmp(&e->header.key, key, sizeof *key) == 0;
}

/* Finds the text with the longest common prefix, *common tokens of the n at `ids`, and leaves it
 * open. */
static bool find_prompt(int dir, const struct ak_session *s, const int32_t *ids, size_t n,
                        struct ak_save_file *best, uint32_t *common)
{
    struct ak_store_entry *entries;
    struct ak_store_key key;
    size_t n_entries;
    const char *why;
    *common = 0;
    ak_save_key(s, &key);
    if (ak_store_list(dir, &entries, &n_entries, NULL) != AKUNU_OK)
        return false;
    for (size_t i = 0; i < n_entries; i++) {
        struct ak_save_file saved;
        if (!is_ours(&entries[i], &key) ||
            !ak_save_open(ak_store_open_file(dir, entries[i].name), s, &key, &saved, &why))
            continue;
        uint32_t n_common = ak_save_count_common(&saved, ids, n);
        if (n_common <= *common) {
            ak_save_close(&saved);
            continue;
        }
        if (*common > 0)
            ak_save_close(best);
        *best = saved;
        *common = n_common;
        memcpy(best->name, entries[i].name, sizeof best->name);
    }
    ak_free(entries);
    return *common > 0;
}

/* Removes texts that are a prefix of the new one. */
static void evict_prefixes(int dir, struct ak_store_entry *entries, size_t n_entries,
                           const struct ak_session *s, const char *keep, const int32_t *ids,
                           uint32_t n)
{
    struct ak_store_key key;
    const char *why;
    ak_save_key(s, &key);
    for (size_t i = 0; i < n_entries; i++) {
        struct ak_store_entry *e = &entries[i];
        struct ak_save_file saved;
        if (strcmp(e->name, keep) != 0 && is_ours(e, &key) &&
            ak_save_open(ak_store_open_file(dir, e->name), s, &key, &saved, &why)) {
            bool beginning =
                saved.n_tokens <= n && ak_save_count_common(&saved, ids, n) == saved.n_tokens;
            ak_save_close(&saved);
            if (beginning && ak_store_remove(dir, e->name))
                e->bytes = 0;
        }
    }
}

/* File names from the hash of key and text, so the same text of the same model has the same
 * name. */
static void make_names(const struct ak_session *s, const int32_t *ids, uint32_t n,
                       char name[AK_STORE_NAME_BYTES], char temp_name[AK_STORE_NAME_BYTES])
{
    struct ak_store_key key;
    struct ak_sha256 h;
    ak_save_key(s, &key);
    ak_sha256_begin(&h);
    ak_sha256_add(&h, key.digest, sizeof key.digest);
    ak_sha256_add(&h, ids, n * sizeof *ids);
    ak_sha256_end(&h, key.digest);
    ak_store_file_name(&key, AK_STORE_PROMPT_SUFFIX, name);
    ak_store_file_name(&key, AK_STORE_PROMPT_TEMP_SUFFIX, temp_name);
}

/* Writes `name` through the temporary file `temp_name`. On failure *why is set. */
static bool write_text(int dir, struct ak_session *s, int32_t sequence, uint32_t n,
                       const char *name, const char *temp_name, const char **why)
{
    struct ak_store_writer build = { .dir = dir, .temp_name = temp_name, .name = name };
    bool busy;
    *why = ak_store_check_space(dir, ak_save_bytes(s, n), ak_available_memory());
    if (*why)
        return false;
    build.fd = ak_store_lock_temp(dir, temp_name, &busy);
    if (build.fd < 0) {
        *why = busy ? "another process is writing it" : strerror(errno);
        return false;
    }
    bool saved = ak_save_write(s, sequence, n, &build, why);
    close(build.fd);
    return saved;
}

/* ---- One file ----------------------------------------------------------- */
/* Opens the folder of a path and sets *name to the name in it; -1 and errno. */
static int open_parent(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *folder = ak_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int dir = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    ak_free(folder);
    return dir;
}

/* Whether a file may be replaced: it does not exist, or is a saved text in any state. */
static bool is_replaceable(int dir, const char *name)
{
    char magic[8] = "";
    int fd = ak_store_open_file(dir, name);
    if (fd < 0)
        return errno == ENOENT;
    struct stat st;
    bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                (st.st_size == 0 || (pread(fd, magic, sizeof magic, 0) == sizeof magic &&
                                     memcmp(magic, "akunuKVS", sizeof magic) == 0));
    close(fd);
    return ours;
}

static bool write_file(struct ak_session *s, int32_t sequence, uint32_t n, const char *path,
                       const char **why)
{
    const char *name;
    int dir = open_parent(path, &name);
    static const char suffix[] = ".akunu-part";
    size_t name_bytes = strlen(name) + sizeof suffix;
    char *temp_name = ak_alloc(name_bytes, 1);
    bool written = false;
    if (dir < 0 || !temp_name) {
        *why = strerror(errno);
    } else if (!is_replaceable(dir, name)) {
        *why = "it is another file, and stays as it is";
    } else {
        snprintf(temp_name, name_bytes, "%s%s", name, suffix);
        written = write_text(dir, s, sequence, n, name, temp_name, why);
    }
    if (dir >= 0)
        close(dir);
    ak_free(temp_name);
    return written;
}

ak_status ak_save_sequence(struct ak_session *s, int32_t sequence, const char *path,
                           struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    char shown[AK_SHOW_BYTES];
    const char *why;
    AK_TRY(ak_session_find(s, sequence, &found, error));
    AK_TRY(ak_save_check(s, error));
    if (found->length == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the sequence has no tokens to save");
    if (found->n_dropped > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "parts of the sequence's KV cache were dropped: it cannot be saved");
    if (write_file(s, sequence, found->length, path, &why))
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_IO, "%s cannot be written: %s", ak_show_path(path, shown),
                   why);
}

static ak_status check_empty(const struct ak_session *s, int32_t sequence, struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    AK_TRY(ak_session_find(s, sequence, &found, error));
    if (found->length > 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the sequence has %u tokens, and must be empty",
                       (unsigned)found->length);
    return AKUNU_OK;
}

static bool has_capacity(const struct ak_session *s, int32_t sequence, uint32_t n)
{
    return n <= s->kv.context && ak_session_kv_count_new_pages(&s->kv, sequence, n) <= s->kv.n_free;
}

ak_status ak_save_load_sequence(struct ak_session *s, int32_t sequence, const char *path,
                                struct ak_error *error)
{
    struct ak_store_key key;
    struct ak_save_file saved;
    char shown[AK_SHOW_BYTES];
    const char *why;
    AK_TRY(check_empty(s, sequence, error));
    AK_TRY(ak_save_check(s, error));
    ak_save_key(s, &key);
    int fd = ak_store_open_file(AT_FDCWD, path);
    if (fd < 0)
        return ak_fail(error, AKUNU_ERROR_IO, "%s: %s", ak_show_path(path, shown), strerror(errno));
    if (!ak_save_open(fd, s, &key, &saved, &why))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s", ak_show_path(path, shown), why);
    ak_status status = AKUNU_OK;
    if (!has_capacity(s, sequence, saved.n_tokens))
        status = ak_fail(
            error, AKUNU_ERROR_CONTEXT, "%s: its text has %u tokens, and the context holds %u",
            ak_show_path(path, shown), (unsigned)saved.n_tokens, (unsigned)s->kv.context);
    else if (!ak_save_read(&saved, s, sequence, saved.n_tokens, &why))
        status = ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s", ak_show_path(path, shown), why);
    ak_save_close(&saved);
    return status;
}

/* ---- Prompts ------------------------------------------------------------ */
/* Opens the best saved text, from the folder or the one file. `log_reason`: logs why the file
 * cannot be used. */
static bool open_best(const struct ak_session *s, const struct akunu_prompt_cache *cache,
                      const int32_t *ids, size_t n, bool log_reason, struct ak_save_file *best,
                      uint32_t *common)
{
    struct ak_store_key key;
    const char *why;
    *common = 0;
    if (!cache->file) {
        int dir = open_folder(s, cache, false);
        bool found = dir >= 0 && find_prompt(dir, s, ids, n, best, common);
        if (dir >= 0)
            close(dir);
        return found;
    }
    int fd = ak_store_open_file(AT_FDCWD, cache->file);
    if (fd < 0 && errno == ENOENT)
        return false;
    ak_save_key(s, &key);
    if (!ak_save_open(fd, s, &key, best, &why)) {
        if (log_reason)
            log_fallback(s, cache->file, why);
        return false;
    }
    *common = ak_save_count_common(best, ids, n);
    return true;
}

/* Removes a damaged file, so that a good one can replace it. */
static void discard_file(const struct ak_session *s, const struct akunu_prompt_cache *cache,
                         const struct ak_save_file *saved)
{
    int dir = cache->file ? -1 : open_folder(s, cache, false);
    if (cache->file)
        (void)unlink(cache->file);
    else if (dir >= 0)
        (void)ak_store_remove(dir, saved->name);
    if (dir >= 0)
        close(dir);
}

ak_status ak_prompt_cache_restore(struct ak_session *s, int32_t sequence, const int32_t *ids,
                                  size_t n_ids, size_t n_min,
                                  const struct akunu_prompt_cache *cache, size_t *n_restored,
                                  struct ak_error *error)
{
    struct ak_save_file best;
    uint32_t common = 0;
    const char *why;
    *n_restored = 0;
    AK_TRY(check_empty(s, sequence, error));
    if (n_ids < 2 || n_ids < cache->min_tokens || ak_save_check(s, NULL) != AKUNU_OK)
        return AKUNU_OK;
    if (!open_best(s, cache, ids, n_ids - 1, true, &best, &common))
        return AKUNU_OK;
    if (common > 0 && common >= n_min && has_capacity(s, sequence, common)) {
        if (ak_save_read(&best, s, sequence, common, &why)) {
            *n_restored = common;
            touch_file(best.fd);
            ak_log_line(&s->log, AKUNU_LOG_INFO, "prompt cache: %u of %zu tokens were run before",
                        (unsigned)common, n_ids);
        } else {
            log_fallback(s, cache->file ? cache->file : best.name, why);
            discard_file(s, cache, &best);
        }
    }
    ak_save_close(&best);
    return AKUNU_OK;
}

/* Says once per folder that it holds prompts. */
static void log_first(const struct ak_session *s, const char *dir, uint32_t n, uint64_t bytes_max)
{
    char size[AK_STORE_SIZE_BYTES], limit[AK_STORE_SIZE_BYTES], shown[AK_SHOW_BYTES];
    char *path = dir ? ak_strndup(dir, strlen(dir)) : ak_store_default_dir();
    ak_log_line(&s->log, AKUNU_LOG_NOTICE,
                "prompts are kept for later runs: this one of %u tokens, %s, in %s, where they "
                "may take %s",
                (unsigned)n, ak_store_show_size(ak_save_bytes(s, n), size),
                path ? ak_show_path(path, shown) : "the cache folder",
                ak_store_show_size(bytes_max, limit));
    ak_free(path);
}

/* After a new file: says so once per folder, and removes what it makes superfluous. */
static void tidy(int dir, const struct ak_session *s, const char *name, const int32_t *ids,
                 uint32_t n, const struct akunu_prompt_cache *cache)
{
    struct ak_store_entry *entries;
    size_t n_entries;
    if (ak_store_list(dir, &entries, &n_entries, NULL) != AKUNU_OK)
        return;
    if (ak_store_is_first(entries, n_entries, AK_STORE_PROMPT, name))
        log_first(s, cache->dir, n, cache->max_bytes);
    evict_prefixes(dir, entries, n_entries, s, name, ids, n);
    ak_store_evict_oldest(dir, entries, n_entries, AK_STORE_PROMPT, name, cache->max_bytes, &s->log,
                          AKUNU_LOG_INFO);
    ak_free(entries);
}

static void keep_in_folder(struct ak_session *s, int32_t sequence, uint32_t n,
                           const struct akunu_prompt_cache *cache)
{
    const int32_t *ids = ak_session_kv_sequence(&s->kv, sequence)->tokens;
    char name[AK_STORE_NAME_BYTES], temp_name[AK_STORE_NAME_BYTES];
    const char *why = NULL;
    int dir = open_folder(s, cache, true);
    if (dir < 0)
        return;
    make_names(s, ids, n, name, temp_name);
    if (ak_save_bytes(s, n) > cache->max_bytes) {
        why = "it would take more than all kept prompts may";
    } else if (write_text(dir, s, sequence, n, name, temp_name, &why)) {
        tidy(dir, s, name, ids, n, cache);
    }
    if (why)
        log_fallback(s, "this prompt", why);
    close(dir);
}

ak_status ak_prompt_cache_keep(struct ak_session *s, int32_t sequence, size_t n_tokens,
                               const struct akunu_prompt_cache *cache, struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    struct ak_save_file best;
    uint32_t common = 0;
    const char *why;
    AK_TRY(ak_session_find(s, sequence, &found, error));
    if (n_tokens > found->length)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the sequence has %u tokens, and %zu are to be kept",
                       (unsigned)found->length, n_tokens);
    if (n_tokens == 0 || n_tokens < cache->min_tokens || ak_save_check(s, NULL) != AKUNU_OK)
        return AKUNU_OK;
    uint32_t n = (uint32_t)n_tokens;
    if (n > ak_session_kv_count_whole(found)) {
        ak_log_line(&s->log, AKUNU_LOG_INFO,
                    "prompt cache: this prompt is not kept, as parts of its KV cache were dropped");
        return AKUNU_OK;
    }
    if (open_best(s, cache, found->tokens, n, false, &best, &common)) {
        bool kept = n - common < NEW_TOKENS_MIN;
        if (kept)
            touch_file(best.fd);
        ak_save_close(&best);
        if (kept)
            return AKUNU_OK;
    }
    if (!cache->file)
        keep_in_folder(s, sequence, n, cache);
    else if (!write_file(s, sequence, n, cache->file, &why))
        log_fallback(s, cache->file, why);
    return AKUNU_OK;
}
