/* Messages on standard error, exit codes, Ctrl-C and progress, so that all commands behave
 * alike. */
#ifndef AK_APPS_COMMON_MESSAGE_H
#define AK_APPS_COMMON_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "akunu/akunu.h"

/* Exit codes that scripts rely on. */
enum app_exit {
    APP_EXIT_OK = 0,
    APP_EXIT_FAILURE = 1, /* at run time: reading, writing, a full context */
    APP_EXIT_USAGE = 2,   /* a wrong flag or value, or no input */
    APP_EXIT_MODEL = 3,   /* the model is unreadable or unsupported */
    APP_EXIT_MEMORY = 4,
    APP_EXIT_INTERRUPTED = 130
};

/* Maps the library's statuses to exit codes; nothing else does. */
int app_exit_code(enum akunu_status status);

/* The program's name in messages: akunu-cli unless another was set. `name` must stay. */
void app_set_program(const char *name);
const char *app_program(void);

/* Prints one line "akunu-cli: …" on standard error and returns the exit code of its name. */
int app_fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int app_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int app_fail_memory(void);

/* Prints the message of the library's last failed call and returns its exit code. */
int app_fail_library(void);

/* `text` for a message: control characters are escaped, long text is shortened. */
enum { APP_SHOWN_BYTES = 100 };
const char *app_show_text(const char *text, char out[APP_SHOWN_BYTES]);

/* A warning, and a note that terminals show dimmed. */
void app_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void app_aside(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints one line for the user, as it is. */
void app_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether escape sequences may be written to `stream`: it is a terminal that knows them, and
 * NO_COLOR is unset or empty. */
bool app_supports_color(FILE *stream);

/* --color: on and off count instead of NO_COLOR. */
enum app_color { APP_COLOR_AUTO = 0, APP_COLOR_ON = 1, APP_COLOR_OFF = 2 };
void app_set_color(enum app_color color);

/* Tokens per second; 0 if no time passed. */
static inline double app_rate(double n_tokens, double seconds)
{
    return seconds > 0.0 ? n_tokens / seconds : 0.0;
}

/* "3 days", "2 hours", "now": how long ago a time in seconds since 1970 was; "-" if it is not
 * positive. */
void app_format_age(int64_t since, char *out, size_t capacity);

/* ---- UTF-8 -------------------------------------------------------------- */
/* Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates. */

/* Bytes of the first character of `text`; 0 if it is malformed or n is 0. */
size_t app_utf8_length(const char *text, size_t n);
/* Bytes at the beginning of n > 0 that are no character and that one U+FFFD stands for: those that
 * could begin a character, as in Python's errors="replace", or a single one. */
size_t app_utf8_malformed_length(const char *text, size_t n);

/* ---- Ctrl-C ------------------------------------------------------------- */
/* The first Ctrl-C asks the work to stop; a second one ends the program. */

/* Installs the handler. A closed pipe and a file at the size limit become write errors instead of
 * signals. */
void app_interrupt_install(void);

/* What a Ctrl-C does before it ends the program; only what a signal handler may do. */
void app_interrupt_at_exit(void (*fn)(void));

/* While `at_once`, the first Ctrl-C ends the program too: for calls that wait for input and do not
 * ask app_is_interrupted. */
void app_interrupt_ends(bool at_once);

/* Whether Ctrl-C was pressed. */
bool app_is_interrupted(void);

/* Acknowledges Ctrl-C: the next one counts as the first again. */
void app_interrupt_clear(void);

/* ---- Progress: progress.c ----------------------------------------------- */
/* A progress line on a terminal. */

/* Seconds of a monotonic clock. */
double app_seconds(void);

struct app_progress {
    bool enabled; /* standard error is a terminal, and the work has not ended */
    bool shown;
    double started, drawn;
    int width; /* columns of the longest line */
};

struct app_progress app_progress_begin(void);

/* Shows "WHAT [##########              ] 43 %" once the work has taken a second, at most ten times
 * per second. `fraction` is 0 … 1. */
void app_progress_show(struct app_progress *progress, const char *what, double fraction);

/* The same with a note behind it. */
void app_progress_show_note(struct app_progress *progress, const char *what, double fraction,
                            const char *note);

/* Clears the line, for a message. */
void app_progress_clear(struct app_progress *progress);

/* Clears the line for good: more of the work shows none. */
void app_progress_end(struct app_progress *progress);

/* A call of the library that writes files: its progress and its log, as the callbacks that are
 * given this as `user`. Progress has the time that is left, "2:05 left", once enough is done to
 * tell, and ends the call on Ctrl-C. */
struct app_work {
    struct app_progress progress;
    const char *doing; /* "converting" */
    bool verbose;
};
bool app_work_progress(double fraction, void *user);
void app_work_log(enum akunu_log_level level, const char *line, void *user);

#endif
