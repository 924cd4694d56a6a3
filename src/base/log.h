/* The library never prints: what it has to say goes to the host's callback. */
#ifndef AK_BASE_LOG_H
#define AK_BASE_LOG_H

#include "akunu/akunu.h"

struct ak_log {
    akunu_log_fn *fn; /* NULL: silent */
    void *user;
};

/* One line, without a newline; longer ones are cut. `log` may be NULL. (ak_log is
 * the logarithm of base/math.h.) */
void ak_log_line(const struct ak_log *log, enum akunu_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
