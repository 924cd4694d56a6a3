/* Several processes that mpirun has started for one command (ranks): rank 0 runs the command, the
 * others follow. */
#ifndef AK_APPS_COMMON_RANKS_H
#define AK_APPS_COMMON_RANKS_H

#include <stdbool.h>

#include "apps/common/options.h"

/* What ranks other than 0 print would be printed once per rank: from now on they print only why
 * they fail. */
void app_ranks_hush(void);

/* What the program does with its options. Returns an exit code. */
typedef int app_run_fn(const struct app_options *options, void *user);

/* Runs the program: on rank 0, or where mpirun has not started this process, with the other ranks
 * sharing its models if there are some; any other rank follows rank 0 instead. */
int app_ranks_run(struct app_options *options, app_run_fn *run, void *user);

#endif
