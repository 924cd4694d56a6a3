/* The message of the calling thread's last failed call. */
#ifndef AK_API_ERROR_H
#define AK_API_ERROR_H

#include "base/error.h"

/* Keeps `error`, whose status is not AKUNU_OK, for akunu_last_error and
 * akunu_last_status; returns its status. */
enum akunu_status ak_api_fail(const struct ak_error *error);

#endif
