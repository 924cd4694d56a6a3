/* Which files leave the cache folder: what a new file replaces, and the least recently used ones
 * above the limit. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/utf8.h"
#include "files/store/store.h"

enum { DISK_SHARE = 5, DAY = 24 * 60 * 60 };

void ak_store_evict_replaced(int dir, struct ak_store_entry *entries, size_t n, const char *keep,
                             const struct ak_store_header *header)
{
    for (size_t i = 0; i < n; i++) {
        struct ak_store_entry *e = &entries[i];
        bool replaced = e->built > 0 && e->kind == AK_STORE_PACKED && header->source[0] != '\0' &&
                        strcmp(e->header.source, header->source) == 0 &&
                        strcmp(e->header.backend, header->backend) == 0;
        if (strcmp(e->name, keep) != 0 && (e->state == AKUNU_CACHE_UNFINISHED || replaced) &&
            ak_store_remove(dir, e->name))
            e->bytes = 0;
    }
}

/* Packed weights are about as large as the model they come from. A fifth of the disk holds those of
 * a 70-billion-parameter model in four bits on 256 GB, and leaves room for the models. */
uint64_t ak_store_default_limit(int dir)
{
    struct statvfs disk;
    if (fstatvfs(dir, &disk) != 0 || disk.f_blocks == 0)
        return UINT64_MAX;
    return disk.f_blocks / DISK_SHARE * disk.f_frsize;
}

const char *ak_store_show_size(uint64_t bytes, char out[AK_STORE_SIZE_BYTES])
{
    if (bytes < 1000000)
        snprintf(out, AK_STORE_SIZE_BYTES, "%.1f kB", (double)bytes / 1e3);
    else if (bytes < 1000000000)
        snprintf(out, AK_STORE_SIZE_BYTES, "%.1f MB", (double)bytes / 1e6);
    else
        snprintf(out, AK_STORE_SIZE_BYTES, "%.1f GB", (double)bytes / 1e9);
    return out;
}

static void log_removal(const struct ak_store_entry *e, uint64_t bytes_max,
                        const struct ak_log *log, enum akunu_log_level level)
{
    char size[AK_STORE_SIZE_BYTES], limit[AK_STORE_SIZE_BYTES], shown[AK_SHOW_BYTES];
    bool packed = e->kind == AK_STORE_PACKED;
    long long days = ((long long)time(NULL) - e->used) / DAY;
    ak_log_line(log, level, "removed %s%s%s (%s, used %lld day%s ago), because all %s may take %s",
                packed ? "the packed weights of " : "a prompt",
                packed && e->header.source[0] ? ak_show_path(e->header.source, shown) : "",
                packed && !e->header.source[0] ? e->name : "", ak_store_show_size(e->bytes, size),
                days, days == 1 ? "" : "s", packed ? "packed weights" : "kept prompts",
                ak_store_show_size(bytes_max, limit));
}

static struct ak_store_entry *find_oldest(struct ak_store_entry *entries, size_t n,
                                          enum ak_store_kind kind, const char *keep)
{
    struct ak_store_entry *oldest = NULL;
    for (size_t i = 0; i < n; i++) {
        struct ak_store_entry *e = &entries[i];
        bool may_go = e->kind == kind && e->bytes > 0 && strcmp(e->name, keep) != 0;
        if (may_go && (!oldest || e->used < oldest->used))
            oldest = e;
    }
    return oldest;
}

void ak_store_evict_oldest(int dir, struct ak_store_entry *entries, size_t n,
                           enum ak_store_kind kind, const char *keep, uint64_t bytes_max,
                           const struct ak_log *log, enum akunu_log_level level)
{
    struct ak_store_entry *oldest;
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += entries[i].kind == kind ? entries[i].bytes : 0;
    while (bytes > bytes_max && (oldest = find_oldest(entries, n, kind, keep)) != NULL) {
        bool removed = ak_store_remove_unused(dir, oldest->name);
        if (removed)
            log_removal(oldest, bytes_max, log, level);
        if (removed || errno == ENOENT)
            bytes -= oldest->bytes;
        oldest->bytes = 0; /* it is gone, or in use: not tried again */
    }
}

bool ak_store_is_first(const struct ak_store_entry *entries, size_t n, enum ak_store_kind kind,
                       const char *name)
{
    for (size_t i = 0; i < n; i++) {
        bool temp =
            entries[i].state == AKUNU_CACHE_UNFINISHED || entries[i].state == AKUNU_CACHE_BUILDING;
        if (entries[i].kind == kind && !temp && strcmp(entries[i].name, name) != 0)
            return false;
    }
    return true;
}
