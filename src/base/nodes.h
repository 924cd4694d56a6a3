/* Memory nodes (NUMA). */
#ifndef AK_BASE_NODES_H
#define AK_BASE_NODES_H

#include <sched.h>

enum { AK_NUMA_NODES_MAX = 32 };

/* The nodes that have CPUs which this process may run on, and these. */
struct ak_numa_nodes {
    unsigned n;
    cpu_set_t cpus[AK_NUMA_NODES_MAX];
};

/* n = 0 where the system does not say. */
void ak_numa_detect(struct ak_numa_nodes *out);

/* The same of a folder laid out as /sys/devices/system/node. */
void ak_numa_read(const char *root, const cpu_set_t *allowed, struct ak_numa_nodes *out);

#endif
