/* How much memory this process may still take. */
#ifndef AK_BASE_AVAILABLE_H
#define AK_BASE_AVAILABLE_H

#include <stdint.h>

/* Bytes that can be had without swapping: what the kernel says is available, and
 * no more than the limit of the control group leaves. UINT64_MAX: unknown. */
uint64_t ak_available_memory(void);

#endif
