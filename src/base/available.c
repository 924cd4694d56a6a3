/* Memory still available: the smaller of what /proc/meminfo and the control group report. */
#include "base/available.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"

/* The number after `key` in `text`; UINT64_MAX if there is none. */
static uint64_t number_behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    char *end;
    if (!at)
        return UINT64_MAX;
    at += strlen(key);
    unsigned long long value = strtoull(at, &end, 10);
    return end != at ? value : UINT64_MAX;
}

static uint64_t system_available(void)
{
    char text[4096];
    if (ak_system_read("/proc/meminfo", text, sizeof text)) {
        uint64_t kib = number_behind(text, "MemAvailable:");
        if (kib <= UINT64_MAX / 1024)
            return kib * 1024;
    }
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

/* Bytes left below the limit of the control group (cgroup v2). In a container the root of the
 * hierarchy is the container's own group. Page cache does not count as used: the kernel drops
 * it when memory is needed. */
static uint64_t group_available(void)
{
    char text[4096];
    if (!ak_system_read("/sys/fs/cgroup/memory.max", text, sizeof text))
        return UINT64_MAX;
    uint64_t limit = number_behind(text, ""); /* "max" if there is no limit */
    if (!ak_system_read("/sys/fs/cgroup/memory.stat", text, sizeof text))
        return limit;
    uint64_t used = number_behind(text, "anon ");
    if (limit == UINT64_MAX || used == UINT64_MAX)
        return limit;
    return limit > used ? limit - used : 0;
}

uint64_t ak_available_memory(void)
{
    uint64_t system = system_available(), group = group_available();
    return group < system ? group : system;
}
