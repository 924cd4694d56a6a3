/* What the program says on standard error, and how it ends. */
#ifndef AK_CLI_MESSAGE_H
#define AK_CLI_MESSAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "akunu/akunu.h"

/* Exit codes that scripts rely on. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILURE = 1, /* at run time: reading, writing, no room in the context */
    CLI_EXIT_USAGE = 2,   /* a flag, a value, or nothing to work on */
    CLI_EXIT_MODEL = 3,   /* the model is unreadable or unsupported */
    CLI_EXIT_MEMORY = 4,
    CLI_EXIT_INTERRUPTED = 130
};

/* The one place where the library's statuses become exit codes. */
int cli_exit_code(enum akunu_status status);

/* One line "akunu-cli: …" on standard error; each returns the exit code in its name. */
int cli_fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail_memory(void);

/* Says what the library's last failed call said and returns its exit code. */
int cli_fail_library(void);

/* `text` for a message: control characters as escapes, and not too much of it. */
enum { CLI_SHOWN_BYTES = 100 };
const char *cli_show_text(const char *text, char out[CLI_SHOWN_BYTES]);

/* A warning, and an aside that a terminal shows dimmed. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_aside(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a person asked for in a chat: a line as it is. */
void cli_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether escape sequences may be written to `stream`: a terminal that knows
 * them, and NO_COLOR unset or empty. */
bool cli_supports_color(FILE *stream);

#endif
