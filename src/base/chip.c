/* Detects the chip and the NUMA nodes, from /proc and /sys. Linux puts a page on the node of the
 * CPU that touches it first, so thread pools are pinned to nodes. */
#include "base/chip.h"

#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/system.h"
#include "base/thread.h"

/* ---- Chip --------------------------------------------------------------- */
enum { CACHES_MAX = 16, CACHE_TEXT = 128 };

/* Copies a name; runs of spaces become one. */
static void copy_name(const char *from, char out[AK_CHIP_NAME_BYTES])
{
    size_t n = 0;
    for (; *from && *from != '\n' && n + 1 < AK_CHIP_NAME_BYTES; from++)
        if (isprint((unsigned char)*from) && (*from != ' ' || (n > 0 && out[n - 1] != ' ')))
            out[n++] = *from;
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
}

/* What /proc/cpuinfo says of the first CPU in a line "key : value"; NULL: no such line. */
static const char *find_value(const char *cpuinfo, const char *key)
{
    size_t n = strlen(key);
    for (const char *line = cpuinfo; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *colon = line + n;
        if (strncmp(line, key, n) != 0)
            continue;
        colon += strspn(colon, " \t");
        if (*colon == ':')
            return colon + 1;
    }
    return NULL;
}

/* The name is "model name" on x86, else uname's machine, as "aarch64". */
static void find_chip_name(struct ak_chip *chip)
{
    static const struct {
        const char *key, *shown;
    } fields[] = { { "cpu family", "family" }, { "model", "model" }, { "CPU part", "part" } };
    char text[4096], value[AK_CHIP_NAME_BYTES], *end = chip->identity;
    const char *stop = end + sizeof chip->identity;
    struct utsname system;
    ak_system_read("/proc/cpuinfo", text, sizeof text);
    const char *name = find_value(text, "model name");
    if (name)
        copy_name(name, chip->name);
    else if (uname(&system) == 0)
        copy_name(system.machine, chip->name);
    for (const char *at = chip->name; *at; at++)
        if (*at != '"' && *at != '\\')
            *end++ = *at;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const char *found = find_value(text, fields[i].key);
        if (!found)
            continue;
        copy_name(found, value);
        end += snprintf(end, (size_t)(stop - end), ", %s %.8s", fields[i].shown, value);
    }
}

/* Parses a size such as "48K" or "32M"; 0: not a size. */
static uint64_t parse_size(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return n < (1ull << 33) ? (uint64_t)n << shift : 0;
}

/* Number of CPUs in a list such as "0-7,64-71"; 1 if the list is empty. */
static unsigned long count_list(const char *list)
{
    unsigned long n = 0, first, last;
    while (ak_system_parse_range(&list, &first, &last))
        n += last >= first && last - first < 1ul << 16 ? last - first + 1 : 1;
    return n ? n : 1;
}

/* Total size of all L3 caches, assuming that as many CPUs share each as share the first. */
static uint64_t sum_l3_bytes(uint64_t bytes, unsigned long n_sharing)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    return bytes * (cpus > 0 ? ((uint64_t)cpus + n_sharing - 1) / n_sharing : 1);
}

/* Reads the file `what` of cache `i` of the first CPU. */
static const char *read_cache_text(int i, const char *what, char text[CACHE_TEXT])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, what);
    ak_system_read(path, text, CACHE_TEXT);
    return text;
}

static void find_caches(struct ak_chip *chip)
{
    unsigned long n_sharing = 1;
    uint64_t *const sizes[] = { NULL, &chip->l1d_bytes, &chip->l2_bytes, &chip->l3_bytes };
    for (int i = 0; i < CACHES_MAX; i++) {
        char text[CACHE_TEXT];
        int level = atoi(read_cache_text(i, "level", text));
        if (level < 1 || level > 3 ||
            strncmp(read_cache_text(i, "type", text), "Instruction", 11) == 0)
            continue;
        *sizes[level] = parse_size(read_cache_text(i, "size", text));
        n_sharing =
            level == 3 ? count_list(read_cache_text(i, "shared_cpu_list", text)) : n_sharing;
    }
#ifdef _SC_LEVEL1_DCACHE_SIZE
    static const int names[] = { 0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                 _SC_LEVEL3_CACHE_SIZE };
    for (int level = 1; level <= 3; level++) {
        long bytes = *sizes[level] ? 0 : sysconf(names[level]);
        if (bytes > 0)
            *sizes[level] = (uint64_t)bytes;
    }
#endif
    chip->l3_total_bytes = sum_l3_bytes(chip->l3_bytes, n_sharing);
}

static unsigned count_nodes(void)
{
    unsigned n = 0;
    DIR *folder = opendir("/sys/devices/system/node");
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        n += strncmp(entry->d_name, "node", 4) == 0 && isdigit((unsigned char)entry->d_name[4]);
    if (folder)
        closedir(folder);
    return n ? n : 1;
}

void ak_chip_detect(struct ak_chip *out)
{
    *out = (struct ak_chip){ .cores = ak_physical_cores(), .numa_nodes = count_nodes() };
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    out->hardware_threads = ak_hardware_threads();
    out->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    find_chip_name(out);
    find_caches(out);
}

/* ---- NUMA nodes --------------------------------------------------------- */
static const char *const node_folder = "/sys/devices/system/node";

static void read_node(const char *root, unsigned long node, const cpu_set_t *allowed,
                      struct ak_numa_nodes *out)
{
    char path[256], list[4096];
    unsigned long first, last;
    cpu_set_t *cpus = &out->cpus[out->n];
    snprintf(path, sizeof path, "%s/node%lu/cpulist", root, node);
    ak_system_read(path, list, sizeof list);
    CPU_ZERO(cpus);
    for (const char *next = list; ak_system_parse_range(&next, &first, &last);)
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, allowed))
                CPU_SET(cpu, cpus);
    out->n += CPU_COUNT(cpus) > 0;
}

void ak_numa_read(const char *root, const cpu_set_t *allowed, struct ak_numa_nodes *out)
{
    char path[256], list[4096];
    unsigned long first, last;
    out->n = 0;
    snprintf(path, sizeof path, "%s/online", root);
    ak_system_read(path, list, sizeof list);
    for (const char *next = list; ak_system_parse_range(&next, &first, &last);)
        for (unsigned long node = first; node <= last && out->n < AK_NUMA_NODES_MAX; node++)
            read_node(root, node, allowed, out);
}

void ak_numa_detect(struct ak_numa_nodes *out)
{
    cpu_set_t allowed;
    out->n = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        ak_numa_read(node_folder, &allowed, out);
}
