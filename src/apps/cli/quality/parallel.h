/* A loop over several threads, for work on the logits of a pass. */
#ifndef AK_APPS_CLI_QUALITY_PARALLEL_H
#define AK_APPS_CLI_QUALITY_PARALLEL_H

#include <stddef.h>

typedef void cli_task(size_t i, void *user);

/* Calls task(i, user) once for each i < n, in n_threads threads of which the calling one is one,
 * and returns when all are done. With threads that cannot be started it
 * takes longer. */
void cli_parallel(unsigned n_threads, size_t n, cli_task *task, void *user);

#endif
