/* Error messages, and lines of the host's log. Messages may contain names from model files, so
 * control characters are replaced: a file must not drive the user's terminal. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Errors ------------------------------------------------------------- */
/* Replaces control characters by '?'. */
static void show_controls(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (c[0] < 0x20 || c[0] == 0x7f)
            c[0] = '?';
        else if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) /* U+0080 … U+009F */
            c[0] = c[1] = '?';
    }
}

/* `text` is a longer text cut to `length` bytes: drops a partial UTF-8 character at its end. */
static void end_at_character(char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t wanted = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead >= 0xc0 && length - (start - 1) < wanted)
        text[start - 1] = '\0';
}

static void finish_message(struct ak_error *error, int wanted)
{
    if (wanted >= AK_ERROR_MESSAGE_BYTES)
        end_at_character(error->message, AK_ERROR_MESSAGE_BYTES - 1);
    show_controls(error->message);
}

ak_status ak_fail(struct ak_error *error, ak_status status, const char *format, ...)
{
    if (!error)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    finish_message(error, wanted);
    return status;
}

ak_status ak_fail_memory(struct ak_error *error, const char *what, unsigned long long bytes)
{
    if (bytes == 0)
        return ak_fail(error, AKUNU_ERROR_MEMORY, "out of memory for %s", what);
    if (bytes < 10000000)
        return ak_fail(error, AKUNU_ERROR_MEMORY, "out of memory for %s (%llu bytes)", what, bytes);
    if (bytes < 10000000000)
        return ak_fail(error, AKUNU_ERROR_MEMORY, "out of memory for %s (%llu MB)", what,
                       bytes / 1000000);
    return ak_fail(error, AKUNU_ERROR_MEMORY, "out of memory for %s (%llu GB)", what,
                   bytes / 1000000000);
}

void ak_error_prefix(struct ak_error *error, const char *prefix)
{
    if (!error)
        return;
    char old[AK_ERROR_MESSAGE_BYTES];
    memcpy(old, error->message, sizeof old);
    int wanted = snprintf(error->message, sizeof error->message, "%s: %s", prefix, old);
    finish_message(error, wanted);
}

/* ---- Log ---------------------------------------------------------------- */
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
