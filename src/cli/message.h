/* What the program says on standard error, and how it ends. */
#ifndef CLI_CLI_MESSAGE_H
#define CLI_CLI_MESSAGE_H

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
int cli_exit_of(enum akunu_status status);

/* One line "akunu-cli: …" on standard error; each returns the exit code in its name. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_no_memory(void);

/* Says what the library's last failed call said and returns its exit code. */
int cli_library_failure(void);

/* `text` for a message: control characters as escapes, and not too much of it. */
enum { CLI_SHOWN_BYTES = 100 };
const char *cli_shown(const char *text, char out[CLI_SHOWN_BYTES]);

/* A warning, and an aside that a terminal shows dimmed. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_aside(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a person asked for in a chat: a line as it is. */
void cli_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether escape sequences may be written to `stream`: a terminal that knows
 * them, and NO_COLOR unset or empty. */
bool cli_supports_color(FILE *stream);

#endif
