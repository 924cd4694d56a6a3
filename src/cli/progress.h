/* One line on a terminal that tells how far slow work is. */
#ifndef AK_CLI_PROGRESS_H
#define AK_CLI_PROGRESS_H

#include <stdbool.h>

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
