/* Memory available to this process. Used to size the KV cache, and before a large cache file is
 * kept in memory. */
#ifndef AK_BASE_AVAILABLE_H
#define AK_BASE_AVAILABLE_H

#include <stdint.h>

/* Bytes available without swapping, within the limit of the control group. UINT64_MAX: unknown. */
uint64_t ak_available_memory(void);

#endif
