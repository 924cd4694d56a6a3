/* Errors inside the library.
 *
 * A function that can fail returns ak_status and takes a struct ak_error that
 * it fills before it returns anything but AKUNU_OK. The error may be NULL
 * where the caller does not want the message.
 */
#ifndef AK_BASE_ERROR_H
#define AK_BASE_ERROR_H

#include <stdarg.h>

#include "akunu/akunu.h"

typedef enum akunu_status ak_status;

enum { AK_ERROR_MESSAGE_BYTES = 1024 };

struct ak_error {
    ak_status status;
    char message[AK_ERROR_MESSAGE_BYTES];
};

/* Records `status` and the formatted message, cut at a UTF-8 boundary where it
 * is too long, with control characters made visible; returns `status`. */
ak_status ak_fail(struct ak_error *error, ak_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Out of memory while making `what`, which wanted `bytes` (0: unknown). */
ak_status ak_fail_memory(struct ak_error *error, const char *what, unsigned long long bytes);

/* Puts "PREFIX: " before the message that is there already. */
void ak_error_prefix(struct ak_error *error, const char *prefix);

/* Returns the status of `call` from the calling function unless it is fine. */
#define AK_TRY(call)                                                                               \
    do {                                                                                           \
        ak_status ak_try_status = (call);                                                          \
        if (ak_try_status != AKUNU_OK)                                                             \
            return ak_try_status;                                                                  \
    } while (0)

#endif
