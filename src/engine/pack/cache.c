/* The packed cache at load: maps a valid file, waits for another process that writes it, or builds
 * it. Any failure falls back to packing in memory. */
#include "engine/pack/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { POLL_MS = 20, STUCK_MS = 15000 };

struct cache {
    struct ak_pack_job *job;
    const struct ak_pack_cache_options *options;
    char *path; /* the cache folder */
    int dir;
    struct ak_store_key key;
    char name[AK_STORE_NAME_BYTES], temp_name[AK_STORE_NAME_BYTES];
    bool damaged; /* the file of that name cannot be used */
    bool cancelled;
};

static void sleep_ms(long ms)
{
    struct timespec pause = { .tv_nsec = ms * 1000000 };
    nanosleep(&pause, NULL);
}

/* Logs why the weights are packed in memory instead of cached. */
static void log_fallback(const struct cache *c, const char *why)
{
    char shown[AK_SHOW_BYTES];
    ak_log_line(c->options->log, AKUNU_LOG_WARN, "no cache of the packed weights%s%s: %s",
                c->path ? " in " : "", c->path ? ak_show_path(c->path, shown) : "", why);
}

/* Maps the cache file and points the weights into it. The lock protects it from eviction while it
 * is mapped: the map keeps the open file, and with it the lock, beyond close(). */
static bool map_cache(const struct cache *c, int fd)
{
    struct ak_weights *w = c->job->weights;
    (void)flock(fd, LOCK_SH | LOCK_NB);
    w->block = ak_map_shared(fd, AK_STORE_BLOCK_OFFSET, w->block_bytes);
    if (!w->block)
        return false;
    w->block_mapped = true;
    ak_pack_set_block(w);
    /* records the time of use, for whoever removes unused files; the time of change stays */
    struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
    (void)futimens(fd, times);
    return true;
}

/* False: no usable cache. */
static bool find_cache(struct cache *c)
{
    struct ak_store_header header;
    int fd = openat(c->dir, c->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool valid = ak_store_check(fd, &header) && memcmp(&header.key, &c->key, sizeof c->key) == 0 &&
                 header.block_bytes == c->job->weights->block_bytes;
    c->damaged = !valid;
    valid = valid && map_cache(c, fd);
    close(fd);
    return valid;
}

/* Another process packs the same model: reports its progress as ours. True once it has ended, with
 * success or not; false if it makes no progress. */
static bool wait_for_writer(struct cache *c)
{
    uint64_t last = 0, done, total;
    for (int still = 0; still < STUCK_MS; still += POLL_MS) {
        int fd = openat(c->dir, c->temp_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
            return true;
        bool ended = flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        bool known = ak_store_get_progress(fd, &done, &total);
        close(fd);
        if (ended)
            return true;
        if (known && done != last) {
            last = done;
            still = 0;
        }
        if (c->job->progress &&
            !c->job->progress(known ? (double)done / (double)total : 0.0, c->job->user)) {
            c->cancelled = true;
            return false;
        }
        sleep_ms(POLL_MS);
    }
    return false;
}

static uint64_t limit_of(const struct cache *c)
{
    return c->options->limit ? c->options->limit : ak_store_default_limit(c->dir);
}

static void log_space(const struct cache *c, const char *reason)
{
    char size[AK_STORE_SIZE_BYTES], space[AK_STORE_SIZE_BYTES], why[192];
    snprintf(why, sizeof why, "%s (%s needed, %s free)", reason,
             ak_store_show_size(c->job->weights->block_bytes, size),
             ak_store_show_size(ak_store_free_space(c->dir), space));
    log_fallback(c, why);
}

static void log_limit(const struct cache *c)
{
    char size[AK_STORE_SIZE_BYTES], limit[AK_STORE_SIZE_BYTES], why[128];
    snprintf(why, sizeof why, "they take %s, and all of them may take %s (the cache limit)",
             ak_store_show_size(c->job->weights->block_bytes, size),
             ak_store_show_size(limit_of(c), limit));
    log_fallback(c, why);
}

static void log_built(const struct cache *c, bool first)
{
    char size[AK_STORE_SIZE_BYTES], limit[AK_STORE_SIZE_BYTES], shown[AK_SHOW_BYTES];
    const struct ak_log *log = c->options->log;
    ak_store_show_size(c->job->weights->block_bytes, size);
    if (c->damaged)
        ak_log_line(log, AKUNU_LOG_WARN,
                    "the cache of the packed weights was damaged: it is packed anew as %s",
                    c->name);
    else if (first)
        ak_log_line(log, AKUNU_LOG_NOTICE,
                    "packed weights are kept for later starts: %s in %s, where they may take %s",
                    size, ak_show_path(c->path, shown), ak_store_show_size(limit_of(c), limit));
    else
        ak_log_line(log, AKUNU_LOG_INFO, "packed weights: %s, cached for the next start as %s",
                    size, c->name);
}

static void fill_header(const struct cache *c, struct ak_store_header *header)
{
    *header = (struct ak_store_header){ .kind = AK_STORE_PACKED,
                                        .block_bytes = c->job->weights->block_bytes,
                                        .key = c->key };
    snprintf(header->backend, sizeof header->backend, "%s", c->job->backend->ops->name);
    ak_store_header_set_source(header, c->job->source);
}

/* Builds the cache in the temporary file that this process has locked, and maps it. */
static bool build_cache(struct cache *c, int fd)
{
    struct ak_store_writer build = {
        .dir = c->dir, .fd = fd, .temp_name = c->temp_name, .name = c->name
    };
    uint64_t bytes = c->job->weights->block_bytes, limit = limit_of(c);
    const char *why = ak_store_check_space(c->dir, bytes, c->options->available_memory);
    if (why || bytes > limit) {
        unlinkat(c->dir, c->temp_name, 0);
        if (why)
            log_space(c, why);
        else
            log_limit(c);
        return false;
    }
    fill_header(c, &build.header);
    c->job->evict_source = true;
    bool built = ak_pack_cache_build(c->job, &build, &c->cancelled, &why);
    c->job->evict_source = false;
    if (!built) {
        if (!c->cancelled)
            log_fallback(c, why);
        return false;
    }
    struct ak_store_entry *entries = NULL;
    size_t n = 0;
    bool listed = ak_store_list(c->dir, &entries, &n, NULL) == AKUNU_OK;
    log_built(c, listed && ak_store_is_first(entries, n, AK_STORE_PACKED, c->name));
    if (listed) {
        ak_store_evict_replaced(c->dir, entries, n, c->name, &build.header);
        ak_store_evict_oldest(c->dir, entries, n, AK_STORE_PACKED, c->name, limit, c->options->log,
                              AKUNU_LOG_NOTICE);
        ak_free(entries);
    }
    return map_cache(c, fd);
}

/* True: the weights have their block. */
static bool obtain_block(struct cache *c)
{
    bool busy = false;
    for (int tries = 0; tries < 8; tries++) {
        if (find_cache(c))
            return true;
        int fd = ak_store_lock_temp(c->dir, c->temp_name, &busy);
        if (fd >= 0) {
            bool done = find_cache(c); /* the other writer may just have finished */
            if (done)
                unlinkat(c->dir, c->temp_name, 0);
            else
                done = build_cache(c, fd);
            close(fd);
            return done;
        }
        if (!busy) {
            log_fallback(c, strerror(errno));
            return false;
        }
        if (!wait_for_writer(c))
            break;
    }
    if (!c->cancelled)
        log_fallback(c, "another process is building it and does not get on");
    return false;
}

static ak_status open_cache(struct cache *c, struct ak_error *error)
{
    AK_TRY(ak_pack_cache_key(c->job, &c->key, error));
    ak_pack_cache_name(&c->key, c->name);
    ak_pack_cache_temp_name(&c->key, c->temp_name);
    c->path = c->options->dir ? ak_strndup(c->options->dir, strlen(c->options->dir)) :
                                ak_store_default_dir();
    if (!c->path) {
        log_fallback(c, "no folder for it is known (HOME is not set)");
        return AKUNU_OK;
    }
    c->dir = ak_store_open_dir(c->path, true);
    if (c->dir < 0)
        log_fallback(c, strerror(errno));
    return AKUNU_OK;
}

ak_status ak_pack_cache_weights(struct ak_pack_job *job,
                                const struct ak_pack_cache_options *options, struct ak_error *error)
{
    struct cache c = { .job = job, .options = options, .dir = -1 };
    if (job->weights->block_bytes == 0)
        return AKUNU_OK;
    ak_status status = open_cache(&c, error);
    bool obtained = status == AKUNU_OK && c.dir >= 0 && obtain_block(&c);
    if (c.dir >= 0)
        close(c.dir);
    ak_free(c.path);
    if (status != AKUNU_OK || obtained)
        return status;
    if (c.cancelled)
        return ak_fail(error, AKUNU_ERROR_CANCELLED, "loading was cancelled");
    return ak_pack_weights(job, error);
}
