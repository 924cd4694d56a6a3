/* The public handle of an opened file. */
#ifndef AK_API_FILE_H
#define AK_API_FILE_H

#include "weights/provider.h"

/* A handle around a provider that stays its owner's and must outlive it; NULL
 * without memory. */
struct akunu_file *ak_api_lend_file(struct ak_provider *provider);

#endif
