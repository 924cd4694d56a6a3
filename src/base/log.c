#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void ak_log_line(const struct ak_log *log, enum akunu_log_level level, const char *format, ...)
{
    if (!log || !log->fn)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log->fn(level, line, log->user);
}
