/* Errors inside the library, with the message for akunu_last_error(), and log lines for the host.
 *
 * A function that can fail returns ak_status and takes a struct ak_error, which it fills unless
 * it returns AKUNU_OK. The error may be NULL: the caller needs no message. */
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

/* Records `status` and the formatted message; returns `status`. Long messages are truncated at a
 * UTF-8 boundary; control characters become '?'. */
ak_status ak_fail(struct ak_error *error, ak_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records that `bytes` bytes (0: unknown) could not be allocated for `what`. */
ak_status ak_fail_memory(struct ak_error *error, const char *what, unsigned long long bytes);

/* Puts "PREFIX: " before the recorded message. */
void ak_error_prefix(struct ak_error *error, const char *prefix);

/* Returns from the calling function with the status of `call` unless it is AKUNU_OK. */
#define AK_TRY(call)                                                                               \
    do {                                                                                           \
        ak_status ak_try_status = (call);                                                          \
        if (ak_try_status != AKUNU_OK)                                                             \
            return ak_try_status;                                                                  \
    } while (0)

/* ---- Log ---------------------------------------------------------------- */
/* The library never prints: log lines go to the host's callback. */
struct ak_log {
    akunu_log_fn *fn; /* NULL: silent */
    void *user;
};

/* One line, without a newline; lines over 1023 bytes are truncated. `log` may be NULL. */
void ak_log_line(const struct ak_log *log, enum akunu_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
