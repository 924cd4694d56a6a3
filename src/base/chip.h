/* The machine under the program: what the system says of its processor. */
#ifndef AK_BASE_CHIP_H
#define AK_BASE_CHIP_H

#include <stdint.h>

enum { AK_CHIP_NAME_BYTES = 64 };

struct ak_chip {
    char name[AK_CHIP_NAME_BYTES]; /* "AMD EPYC 9354", "" where unknown */
    unsigned cores;                /* physical ones that this process may run on */
    unsigned hardware_threads;     /* of these cores */
    unsigned numa_nodes;           /* at least 1 */
    /* of the first core, shared or not; 0: none, or unknown */
    uint64_t l1d_bytes, l2_bytes, l3_bytes;
    uint64_t l3_total_bytes; /* of all instances together */
    uint64_t memory_bytes;   /* of the machine */
};

void ak_chip_detect(struct ak_chip *out);

#endif
