/* Processor, caches, memory and NUMA nodes of this machine. engine/backend/ and engine/session/
 * choose chip profiles by the processor, engine/cpu/roofline.c sizes its probes by the caches,
 * api/roofline.c and bench/ report all. The thread pool and engine/pack/ use the NUMA nodes, to
 * keep memory local to the threads that read it. */
#ifndef AK_BASE_CHIP_H
#define AK_BASE_CHIP_H

#include <sched.h>
#include <stdint.h>

enum { AK_CHIP_NAME_BYTES = 64, AK_CHIP_IDENTITY_BYTES = 128 };

struct ak_chip {
    char name[AK_CHIP_NAME_BYTES]; /* "AMD EPYC 9354"; "": unknown */
    /* the name and what tells generations apart that have the same, as virtual ones do: "AMD EPYC,
     * family 25, model 17", "aarch64, part 0xd40"; printable, without quotes and backslashes */
    char identity[AK_CHIP_IDENTITY_BYTES];
    unsigned cores;            /* physical cores that this process may run on */
    unsigned hardware_threads; /* of these cores */
    unsigned numa_nodes;       /* at least 1 */
    /* caches of the first core, private or shared; 0: none, or unknown */
    uint64_t l1d_bytes, l2_bytes, l3_bytes;
    uint64_t l3_total_bytes; /* sum of all L3 caches */
    uint64_t memory_bytes;   /* physical memory; 0: unknown */
};

void ak_chip_detect(struct ak_chip *out);

/* ---- NUMA nodes --------------------------------------------------------- */
enum { AK_NUMA_NODES_MAX = 32 };

/* Nodes with CPUs that this process may run on. */
struct ak_numa_nodes {
    unsigned n;
    cpu_set_t cpus[AK_NUMA_NODES_MAX];
};

/* n = 0 if the system does not report nodes. */
void ak_numa_detect(struct ak_numa_nodes *out);

/* The same, from a folder laid out as /sys/devices/system/node. */
void ak_numa_read(const char *root, const cpu_set_t *allowed, struct ak_numa_nodes *out);

#endif
