#include "cli/message.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_exit_of(enum akunu_status status)
{
    switch (status) {
    case AKUNU_OK: return CLI_EXIT_OK;
    case AKUNU_ERROR_ARGUMENT: return CLI_EXIT_USAGE;
    case AKUNU_ERROR_FORMAT: return CLI_EXIT_MODEL;
    case AKUNU_ERROR_UNSUPPORTED: return CLI_EXIT_MODEL;
    case AKUNU_ERROR_MEMORY: return CLI_EXIT_MEMORY;
    case AKUNU_ERROR_CONTEXT: return CLI_EXIT_FAILURE;
    case AKUNU_ERROR_IO: return CLI_EXIT_FAILURE;
    case AKUNU_ERROR_CANCELLED: return CLI_EXIT_INTERRUPTED;
    case AKUNU_ERROR_SYSTEM: return CLI_EXIT_FAILURE;
    case AKUNU_ERROR_NUMERIC: return CLI_EXIT_FAILURE;
    }
    return CLI_EXIT_FAILURE;
}

bool cli_colour(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (no_color && *no_color)
        return false;
    return isatty(fileno(stream)) && terminal && strcmp(terminal, "dumb") != 0;
}

/* `colour` is an SGR number: 31 red, 33 yellow, 2 dim. */
static void say(int colour, const char *prefix, const char *format, va_list arguments)
{
    bool coloured = cli_colour(stderr);
    if (coloured)
        fprintf(stderr, "\033[%dm", colour);
    fputs(prefix, stderr);
    vfprintf(stderr, format, arguments);
    fputs(coloured ? "\033[0m\n" : "\n", stderr);
}

int cli_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(31, "akunu-cli: ", format, arguments);
    va_end(arguments);
    return CLI_EXIT_USAGE;
}

int cli_failure(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(31, "akunu-cli: ", format, arguments);
    va_end(arguments);
    return CLI_EXIT_FAILURE;
}

int cli_no_memory(void)
{
    cli_failure("out of memory");
    return CLI_EXIT_MEMORY;
}

int cli_library_failure(void)
{
    enum akunu_status status = akunu_last_status();
    if (status == AKUNU_ERROR_CANCELLED)
        return CLI_EXIT_INTERRUPTED; /* whoever pressed Ctrl-C knows */
    cli_failure("%s", akunu_last_error());
    return cli_exit_of(status);
}

void cli_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(33, "akunu-cli: ", format, arguments);
    va_end(arguments);
}

void cli_aside(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(2, "", format, arguments);
    va_end(arguments);
}
