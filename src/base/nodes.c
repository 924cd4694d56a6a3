/* Memory nodes: on a machine with several of them a page lies near the CPUs of the
 * thread that touches it first. */
#include <pthread.h>
#include <stdio.h>

#include "base/nodes.h"
#include "base/system.h"

static const char *const SYSTEM = "/sys/devices/system/node";

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
        ak_numa_read(SYSTEM, &allowed, out);
}
