/* The progress line: shown after a second, at most ten times per second. */
#include "apps/common/message.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double app_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct app_progress app_progress_begin(void)
{
    return (struct app_progress){ .enabled = isatty(STDERR_FILENO), .started = app_seconds() };
}

void app_progress_show(struct app_progress *p, const char *what, double fraction)
{
    app_progress_show_note(p, what, fraction, "");
}

void app_progress_show_note(struct app_progress *p, const char *what, double fraction,
                            const char *note)
{
    double now = app_seconds();
    if (!p->enabled || now - p->started < 1.0 || now - p->drawn < 0.1)
        return;
    enum { CELLS = 24 };
    int filled = (int)(fraction * CELLS);
    filled = filled < 0 ? 0 : filled > CELLS ? CELLS : filled;
    int width =
        fprintf(stderr, "\r%s [%.*s%*s] %3.0f %%%s%s", what, filled, "########################",
                CELLS - filled, "", 100.0 * fraction, *note ? "  " : "", note) -
        1;
    if (width < p->width) /* a shorter note */
        fprintf(stderr, "%*s", p->width - width, "");
    p->width = width > p->width ? width : p->width;
    fflush(stderr);
    p->drawn = now;
    p->shown = true;
}

void app_progress_clear(struct app_progress *p)
{
    if (p->shown) /* spaces, for terminals without escape sequences */
        fprintf(stderr, "\r%*s\r", p->width, "");
    p->shown = false;
}

void app_progress_end(struct app_progress *p)
{
    app_progress_clear(p);
    p->enabled = false;
}

bool app_work_progress(double fraction, void *user)
{
    struct app_work *work = user;
    double passed = app_seconds() - work->progress.started;
    char note[32] = "";
    if (passed > 3.0 && fraction > 0.01 && fraction < 1.0) {
        unsigned left = (unsigned)(passed * (1.0 - fraction) / fraction);
        snprintf(note, sizeof note, "%u:%02u left", left / 60, left % 60);
    }
    app_progress_show_note(&work->progress, work->doing, fraction, note);
    return !app_is_interrupted();
}

void app_work_log(enum akunu_log_level level, const char *line, void *user)
{
    struct app_work *work = user;
    app_progress_clear(&work->progress);
    if (level >= AKUNU_LOG_NOTICE)
        app_warn("%s", line);
    else if (work->verbose)
        app_aside("%s", line);
}
