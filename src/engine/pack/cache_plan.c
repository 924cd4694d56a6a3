/* What the packed cache would do for a model, and why, without doing it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/pack/cache.h"

static void set_why(struct ak_pack_cache_plan *plan, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(plan->why, sizeof plan->why, format, arguments);
    va_end(arguments);
}

/* Looks at the file of that key. */
static void find_file(const struct ak_pack_job *job, const struct ak_store_key *key, int dir,
                      struct ak_pack_cache_plan *out)
{
    struct ak_store_header header;
    struct stat st;
    int fd = ak_store_open_file(dir, out->file);
    if (fd < 0)
        return;
    out->state = AKUNU_CACHE_DAMAGED;
    if (ak_store_check(fd, &header) && memcmp(&header.key, key, sizeof *key) == 0 &&
        header.block_bytes == job->weights->block_bytes && fstat(fd, &st) == 0) {
        out->state = AKUNU_CACHE_READY;
        out->packing = AKUNU_PACKING_CACHED;
        out->built = header.built;
        out->used = st.st_atim.tv_sec;
    }
    close(fd);
}

/* Whether a process writes the file of that key now. */
static bool is_being_built(const struct ak_store_key *key, int dir)
{
    char name[AK_STORE_NAME_BYTES];
    ak_pack_cache_temp_name(key, name);
    int fd = ak_store_open_file(dir, name);
    bool busy = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return busy;
}

/* Finds the packed weights of the same model file that cannot be used, if there are some. */
static void explain_absence(const struct ak_pack_job *job, int dir, struct ak_pack_cache_plan *out)
{
    struct ak_store_header own = { .kind = AK_STORE_PACKED };
    struct ak_store_entry *entries = NULL;
    size_t n = 0;
    set_why(out, "they are not in the cache yet");
    ak_store_header_set_source(&own, job->source);
    if (own.source[0] == '\0' || ak_store_list(dir, &entries, &n, NULL) != AKUNU_OK)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct ak_store_header *h = &entries[i].header;
        if (entries[i].built == 0 || entries[i].kind != AK_STORE_PACKED ||
            strcmp(h->source, own.source) != 0 || strcmp(h->backend, job->backend->ops->name) != 0)
            continue;
        if (h->source_bytes != own.source_bytes || h->source_mtime_ns != own.source_mtime_ns)
            set_why(out, "the model file has changed since they were packed");
        else
            set_why(out, "those in the cache are of other settings or of another version");
    }
    ak_free(entries);
}

/* Sets packing to memory if the weights cannot be kept. */
static void check_kept(const struct ak_pack_job *job, const struct ak_pack_cache_options *options,
                       const char *path, struct ak_pack_cache_plan *out)
{
    char size[AK_STORE_SIZE_BYTES], space[AK_STORE_SIZE_BYTES];
    uint64_t bytes = job->weights->block_bytes;
    int dir = ak_store_open_nearest(path);
    const char *why = dir < 0 ? strerror(errno) : NULL;
    if (!why && faccessat(dir, ".", W_OK | X_OK, AT_EACCESS) != 0)
        why = strerror(errno);
    if (why) {
        set_why(out, "the cache folder cannot be written: %s", why);
    } else if ((why = ak_store_check_space(dir, bytes, options->available_memory)) != NULL) {
        set_why(out, "%s (%s needed, %s free)", why, ak_store_show_size(bytes, size),
                ak_store_show_size(ak_store_free_space(dir), space));
    } else {
        out->limit = options->limit ? options->limit : ak_store_default_limit(dir);
        if (bytes > out->limit)
            why = "limit";
        if (why)
            set_why(out, "they take %s, and all of them may take %s",
                    ak_store_show_size(bytes, size), ak_store_show_size(out->limit, space));
    }
    if (why)
        out->packing = AKUNU_PACKING_MEMORY;
    if (dir >= 0)
        close(dir);
}

static void plan_in(const struct ak_pack_job *job, const struct ak_pack_cache_options *options,
                    const char *path, const struct ak_store_key *key,
                    struct ak_pack_cache_plan *out)
{
    int dir = ak_store_open_dir(path, false);
    out->packing = AKUNU_PACKING_KEPT;
    set_why(out, "they are not in the cache yet");
    if (dir >= 0) {
        find_file(job, key, dir, out);
        if (out->state == 0)
            explain_absence(job, dir, out);
        else
            set_why(out, out->state == AKUNU_CACHE_READY ? "" : "those in the cache are damaged");
        if (out->packing == AKUNU_PACKING_KEPT && is_being_built(key, dir)) {
            out->state = AKUNU_CACHE_BUILDING;
            set_why(out, "another process is packing them now");
        }
        close(dir);
    }
    if (out->packing == AKUNU_PACKING_KEPT && out->state != AKUNU_CACHE_BUILDING)
        check_kept(job, options, path, out);
}

void ak_pack_cache_plan_without(const struct ak_pack_job *job, struct ak_pack_cache_plan *out)
{
    bool packs = job->weights->block_bytes > 0;
    *out =
        (struct ak_pack_cache_plan){ .packing = packs ? AKUNU_PACKING_MEMORY : AKUNU_PACKING_NONE };
    set_why(out, packs ? "the cache is not to be used" :
                         "the kernels read the weights as the file has them");
}

ak_status ak_pack_cache_plan(const struct ak_pack_job *job,
                             const struct ak_pack_cache_options *options,
                             struct ak_pack_cache_plan *out, struct ak_error *error)
{
    struct ak_store_key key;
    ak_pack_cache_plan_without(job, out);
    if (out->packing == AKUNU_PACKING_NONE)
        return AKUNU_OK;
    AK_TRY(ak_pack_cache_key(job, &key, error));
    char *path =
        options->dir ? ak_strndup(options->dir, strlen(options->dir)) : ak_store_default_dir();
    ak_pack_cache_name(&key, out->file);
    if (path)
        plan_in(job, options, path, &key, out);
    else
        set_why(out, "no folder for the cache is known (HOME is not set)");
    if (out->packing == AKUNU_PACKING_MEMORY)
        out->file[0] = '\0';
    ak_free(path);
    return AKUNU_OK;
}
