/* CPUs of this process: how many threads and cores it may use, and lists of CPUs as users write
 * them. Not in thread.c, because none of it needs a pool. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/system.h"
#include "base/thread.h"

enum { MAX_CPUS = 1 << 16 };

/* CPUs that this process may run on; the caller frees the set with CPU_FREE. NULL: unknown. The
 * kernel refuses a set that is smaller than its own, so larger ones are tried. */
static cpu_set_t *get_affinity(size_t *bytes)
{
    for (size_t n = CPU_SETSIZE; n <= MAX_CPUS; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);
        if (!set)
            return NULL;
        *bytes = CPU_ALLOC_SIZE(n);
        if (sched_getaffinity(0, *bytes, set) == 0)
            return set;
        int code = errno;
        CPU_FREE(set);
        if (code != EINVAL)
            return NULL;
    }
    return NULL;
}

/* True for the first hardware thread of a core that is in the set: each core counts once. */
static bool is_first_sibling(unsigned long cpu, const cpu_set_t *set, size_t bytes)
{
    char path[96], list[512];
    unsigned long first, last;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%lu/topology/thread_siblings_list",
             cpu);
    ak_system_read(path, list, sizeof list);
    for (const char *next = list; ak_system_parse_range(&next, &first, &last);)
        for (unsigned long i = first; i <= last && i < cpu; i++)
            if (CPU_ISSET_S(i, bytes, set))
                return false;
    return true;
}

unsigned ak_hardware_threads(void)
{
    size_t bytes;
    cpu_set_t *set = get_affinity(&bytes);
    int n = set ? CPU_COUNT_S(bytes, set) : 0;
    if (set)
        CPU_FREE(set);
    return n > 0 ? (unsigned)n : 1;
}

unsigned ak_physical_cores(void)
{
    size_t bytes;
    cpu_set_t *set = get_affinity(&bytes);
    unsigned n = 0;
    for (size_t cpu = 0; set && cpu < bytes * 8; cpu++)
        if (CPU_ISSET_S(cpu, bytes, set) && is_first_sibling(cpu, set, bytes))
            n++;
    if (set)
        CPU_FREE(set);
    return n > 0 ? n : 1;
}

/* Reads a number below AK_CPUS_MAX at *text and skips it. */
static bool read_cpu(const char **text, unsigned *out)
{
    unsigned n = 0;
    if (**text < '0' || **text > '9')
        return false;
    for (; **text >= '0' && **text <= '9' && n < AK_CPUS_MAX; (*text)++)
        n = n * 10 + (unsigned)(**text - '0');
    *out = n;
    return n < AK_CPUS_MAX;
}

static void add_cpu(struct ak_cpus *cpus, unsigned cpu)
{
    for (unsigned i = 0; i < cpus->n; i++)
        if (cpus->cpu[i] == cpu)
            return;
    cpus->cpu[cpus->n++] = (uint16_t)cpu;
}

ak_status ak_cpus_parse(const char *text, struct ak_cpus *out, struct ak_error *error)
{
    const char *next = text;
    out->n = 0;
    for (;;) {
        unsigned first, last;
        bool good = read_cpu(&next, &first);
        last = first;
        if (good && *next == '-') {
            next++;
            good = read_cpu(&next, &last) && last >= first;
        }
        if (!good || (*next != '\0' && *next != ','))
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "the CPUs are '%.100s': expected a list as 0-3,8 of numbers below %d",
                           text, AK_CPUS_MAX);
        for (unsigned cpu = first; cpu <= last; cpu++)
            add_cpu(out, cpu);
        if (*next++ == '\0')
            return AKUNU_OK;
    }
}
