/* Standard output with a sticky error, and escaping of untrusted text. */
#include "apps/common/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "apps/common/message.h"

struct cli_output cli_output_stdout(void)
{
    return (struct cli_output){ .file = stdout };
}

static bool record_error(struct cli_output *out, bool fine)
{
    if (!fine && out->error == 0)
        out->error = errno ? errno : EIO;
    return out->error == 0;
}

bool cli_output_bytes(struct cli_output *out, const void *bytes, size_t n)
{
    return out->error == 0 && record_error(out, fwrite(bytes, 1, n, out->file) == n);
}

bool cli_output_text(struct cli_output *out, const char *text)
{
    return cli_output_bytes(out, text, strlen(text));
}

bool cli_output_format(struct cli_output *out, const char *format, ...)
{
    if (out->error != 0)
        return false;
    va_list arguments;
    va_start(arguments, format);
    int n = vfprintf(out->file, format, arguments);
    va_end(arguments);
    return record_error(out, n >= 0);
}

bool cli_output_flush(struct cli_output *out)
{
    return out->error == 0 && record_error(out, fflush(out->file) == 0);
}

bool cli_output_escaped(struct cli_output *out, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t length = cli_utf8_length(bytes + i, n - i);
        unsigned char c = (unsigned char)bytes[i];
        if (c == '\n')
            cli_output_text(out, "\\n");
        else if (c == '\t')
            cli_output_text(out, "\\t");
        else if (c == '\r')
            cli_output_text(out, "\\r");
        else if (c == '\\')
            cli_output_text(out, "\\\\");
        else if (length == 0 || c < 0x20 || c == 0x7f)
            cli_output_format(out, "\\x%02x", c);
        else if (length == 2 && c == 0xc2 &&
                 (unsigned char)bytes[i + 1] < 0xa0) /* these controls affect some terminals */
            cli_output_format(out, "\\u%04x", (unsigned char)bytes[i + 1]);
        else
            cli_output_bytes(out, bytes + i, length);
        i += length ? length : 1;
    }
    return out->error == 0;
}

int cli_output_end(struct cli_output *out, int code)
{
    cli_output_flush(out);
    if (out->error == 0)
        return code;
    if (out->error == EPIPE)
        return code == CLI_EXIT_INTERRUPTED ? code : CLI_EXIT_OK; /* no failure: the pipe closed */
    cli_fail("cannot write the output: %s", strerror(out->error));
    return code == CLI_EXIT_OK ? CLI_EXIT_FAILURE : code;
}
