/* Several processes that mpirun has started for one command (ranks): rank 0 runs the command, the
 * others follow. */
#ifndef AK_APPS_COMMON_RANKS_H
#define AK_APPS_COMMON_RANKS_H

#include <stdbool.h>

#include "apps/common/options.h"

struct cli_ranks {
    struct akunu_comm *comm; /* NULL: mpirun has not started this process */
    bool follows;            /* this is not rank 0 */
};

/* What ranks other than 0 print would be printed once per rank: from now on they print only why
 * they fail. */
void cli_ranks_hush(void);
/* Joins the other ranks, if there are some; the command's models are then shared. */
int cli_ranks_join(struct cli_options *o, struct cli_ranks *out);
int cli_ranks_follow(const struct cli_ranks *ranks);
void cli_ranks_leave(struct cli_ranks *ranks);

#endif
