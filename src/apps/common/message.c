/* Messages on standard error, exit codes, UTF-8 for messages, and Ctrl-C. */
#include "apps/common/message.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int app_exit_code(enum akunu_status status)
{
    switch (status) {
    case AKUNU_OK: return APP_EXIT_OK;
    case AKUNU_ERROR_ARGUMENT: return APP_EXIT_USAGE;
    case AKUNU_ERROR_FORMAT: return APP_EXIT_MODEL;
    case AKUNU_ERROR_UNSUPPORTED: return APP_EXIT_MODEL;
    case AKUNU_ERROR_MEMORY: return APP_EXIT_MEMORY;
    case AKUNU_ERROR_CONTEXT: return APP_EXIT_FAILURE;
    case AKUNU_ERROR_IO: return APP_EXIT_FAILURE;
    case AKUNU_ERROR_CANCELLED: return APP_EXIT_INTERRUPTED;
    case AKUNU_ERROR_SYSTEM: return APP_EXIT_FAILURE;
    case AKUNU_ERROR_NUMERIC: return APP_EXIT_FAILURE;
    case AKUNU_ERROR_BUSY: return APP_EXIT_FAILURE;
    }
    return APP_EXIT_FAILURE;
}

static enum app_color color_choice = APP_COLOR_AUTO;

void app_set_color(enum app_color color)
{
    color_choice = color;
}

bool app_supports_color(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    bool refused =
        color_choice == APP_COLOR_AUTO ? no_color && *no_color : color_choice == APP_COLOR_OFF;
    if (refused)
        return false;
    return isatty(fileno(stream)) && terminal && strcmp(terminal, "dumb") != 0;
}

static const char *program = "akunu-cli";

void app_set_program(const char *name)
{
    program = name;
}

const char *app_program(void)
{
    return program;
}

/* `color` is an SGR number: 31 red, 33 yellow, 2 dim; 0: none. `prefix` NULL: none. Each message is
 * written at once, so that lines of processes that share standard error do not mix. */
static void print_message(int color, const char *prefix, const char *format, va_list arguments)
{
    char begin[16] = "", *text;
    if (vasprintf(&text, format, arguments) < 0) {
        fputs(format, stderr);
        return;
    }
    if (color && app_supports_color(stderr))
        snprintf(begin, sizeof begin, "\033[%dm", color);
    fprintf(stderr, "%s%s%s%s%s\n", begin, prefix ? prefix : "", prefix ? ": " : "", text,
            *begin ? "\033[0m" : "");
    free(text);
}

int app_fail_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(31, program, format, arguments);
    va_end(arguments);
    return APP_EXIT_USAGE;
}

int app_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(31, program, format, arguments);
    va_end(arguments);
    return APP_EXIT_FAILURE;
}

int app_fail_memory(void)
{
    app_fail("out of memory");
    return APP_EXIT_MEMORY;
}

int app_fail_library(void)
{
    enum akunu_status status = akunu_last_status();
    if (status == AKUNU_ERROR_CANCELLED)
        return APP_EXIT_INTERRUPTED; /* the user pressed Ctrl-C and knows */
    app_fail("%s", akunu_last_error());
    return app_exit_code(status);
}

const char *app_show_text(const char *text, char out[APP_SHOWN_BYTES])
{
    static const char more[] = "\xe2\x80\xa6";
    size_t n = 0, n_text = strlen(text);
    for (size_t i = 0; i < n_text;) {
        size_t length = app_utf8_length(text + i, n_text - i);
        bool plain =
            length > 1 || (length == 1 && (unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
        if (n + 8 + sizeof more > APP_SHOWN_BYTES) {
            memcpy(out + n, more, sizeof more);
            return out;
        }
        if (plain)
            memcpy(out + n, text + i, length);
        else
            snprintf(out + n, 5, "\\x%02x", (unsigned char)text[i]);
        n += plain ? length : 4;
        i += plain ? length : 1;
    }
    out[n] = '\0';
    return out;
}

void app_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(33, program, format, arguments);
    va_end(arguments);
}

void app_aside(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(2, NULL, format, arguments);
    va_end(arguments);
}

void app_report(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message(0, NULL, format, arguments);
    va_end(arguments);
}

void app_format_age(int64_t since, char *out, size_t capacity)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = { { 24 * 60 * 60, "day" }, { 3600, "hour" }, { 60, "minute" } };
    int64_t age = since > 0 ? (int64_t)time(NULL) - since : -1;
    snprintf(out, capacity, "%s", since > 0 ? "now" : "-");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (age < units[i].seconds)
            continue;
        long long n = age / units[i].seconds;
        snprintf(out, capacity, "%lld %s%s", n, units[i].name, n == 1 ? "" : "s");
        return;
    }
}

/* ---- UTF-8 -------------------------------------------------------------- */
/* Bytes that the character has by its first one; 0: none begins so. */
static size_t read_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    return first < 0xc2 || first > 0xf4 ? 0 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/* How many of those bytes are there. */
static size_t count_good(const char *text, size_t n, size_t length)
{
    unsigned char first = (unsigned char)text[0];
    /* The second byte's range excludes overlong forms, surrogates and code points above
     * U+10FFFF. */
    unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    size_t i = 1;
    for (; i < length && i < n; i++, low = 0x80, high = 0xbf)
        if ((unsigned char)text[i] < low || (unsigned char)text[i] > high)
            break;
    return i;
}

size_t app_utf8_length(const char *text, size_t n)
{
    size_t length = n > 0 ? read_length((unsigned char)text[0]) : 0;
    return length > 0 && count_good(text, n, length) == length ? length : 0;
}

size_t app_utf8_malformed_length(const char *text, size_t n)
{
    return count_good(text, n, read_length((unsigned char)text[0]));
}

/* ---- Ctrl-C ------------------------------------------------------------- */
static volatile sig_atomic_t interrupted, ends_at_once;
static void (*volatile at_exit)(void);

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    if (interrupted || ends_at_once) {
        if (at_exit)
            at_exit();
        _exit(APP_EXIT_INTERRUPTED);
    }
    interrupted = 1;
}

void app_interrupt_at_exit(void (*fn)(void))
{
    at_exit = fn;
}

void app_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_interrupt; /* no SA_RESTART: reading the terminal must end too */
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

void app_interrupt_ends(bool at_once)
{
    ends_at_once = at_once;
}

bool app_is_interrupted(void)
{
    return interrupted != 0;
}

void app_interrupt_clear(void)
{
    interrupted = 0;
}
