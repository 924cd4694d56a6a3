/* Memory available to this process. engine/session/ sizes the KV cache by it. The packed cache
 * (engine/session/load.c) and the prompt cache (engine/persist/) check it before they write to a
 * folder in memory (tmpfs). */
#ifndef AK_BASE_AVAILABLE_H
#define AK_BASE_AVAILABLE_H

#include <stdint.h>

/* Bytes available without swapping, within the limit of the control group. UINT64_MAX: unknown. */
uint64_t ak_available_memory(void);

#endif
