/* What the program says on standard error, and how it ends. */
#ifndef AK_CLI_MESSAGE_H
#define AK_CLI_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
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

/* ---- UTF-8 -------------------------------------------------------------- */
/* Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates. */

/* Bytes of the character that `text` begins with, 0 where it is malformed or n is 0. */
size_t cli_utf8_length(const char *text, size_t n);

/* ---- Ctrl-C ------------------------------------------------------------- */
/* Ctrl-C: the first asks the work to stop, a second one ends the program. */

/* Installs the handler and makes a closed pipe, and a file as large as files may be, an error of
 * writing instead of a signal. */
void cli_interrupt_install(void);

/* Whether Ctrl-C was pressed. */
bool cli_is_interrupted(void);

/* Takes notice of it: the next one is a first one again. */
void cli_interrupt_clear(void);

/* ---- Progress: progress.c ----------------------------------------------- */
/* One line on a terminal that tells how far slow work is. */

/* Seconds of a clock that only goes forward. */
double cli_seconds(void);

struct cli_progress {
    bool enabled; /* standard error is a terminal */
    bool shown;
    double started, drawn;
};

struct cli_progress cli_progress_begin(void);

/* Shows "WHAT [##########              ] 43 %" once the work has taken a second, ten times a second
 * at most. `fraction` is 0 … 1. */
void cli_progress_show(struct cli_progress *progress, const char *what, double fraction);

/* Takes the line away. */
void cli_progress_end(struct cli_progress *progress);

#endif
