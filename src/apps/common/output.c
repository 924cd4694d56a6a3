/* Standard output with a sticky error, and escaping of untrusted text. */
#include "apps/common/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "apps/common/message.h"

struct app_output app_output_stdout(void)
{
    return (struct app_output){ .file = stdout };
}

static bool record_error(struct app_output *out, bool fine)
{
    if (!fine && out->error == 0)
        out->error = errno ? errno : EIO;
    return out->error == 0;
}

bool app_output_bytes(struct app_output *out, const void *bytes, size_t n)
{
    return out->error == 0 && record_error(out, fwrite(bytes, 1, n, out->file) == n);
}

bool app_output_text(struct app_output *out, const char *text)
{
    return app_output_bytes(out, text, strlen(text));
}

bool app_output_format(struct app_output *out, const char *format, ...)
{
    if (out->error != 0)
        return false;
    va_list arguments;
    va_start(arguments, format);
    int n = vfprintf(out->file, format, arguments);
    va_end(arguments);
    return record_error(out, n >= 0);
}

bool app_output_flush(struct app_output *out)
{
    return out->error == 0 && record_error(out, fflush(out->file) == 0);
}

bool app_output_escaped(struct app_output *out, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t length = app_utf8_length(bytes + i, n - i);
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n')
            app_output_text(out, "\\n");
        else if (c == '\t')
            app_output_text(out, "\\t");
        else if (c == '\r')
            app_output_text(out, "\\r");
        else if (c == '\\')
            app_output_text(out, "\\\\");
        else if (length == 0 || c < 0x20 || c == 0x7f)
            app_output_format(out, "\\x%02x", c);
        else if (length == 2 && c == 0xc2 &&
                 (unsigned char)bytes[i + 1] < 0xa0) /* these controls affect some terminals */
            app_output_format(out, "\\u%04x", (unsigned char)bytes[i + 1]);
        else
            app_output_bytes(out, bytes + i, length);
        i += length ? length : 1;
    }
    return out->error == 0;
}

int app_output_end(struct app_output *out, int code)
{
    app_output_flush(out);
    if (out->error == 0)
        return code;
    if (out->error == EPIPE)
        return code == APP_EXIT_INTERRUPTED ? code : APP_EXIT_OK; /* no failure: the pipe closed */
    app_fail("cannot write the output: %s", strerror(out->error));
    return code == APP_EXIT_OK ? APP_EXIT_FAILURE : code;
}
