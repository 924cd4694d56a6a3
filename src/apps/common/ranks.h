/* Several processes that mpirun has started for one command (ranks): rank 0 runs the command, the
 * others follow. */
#ifndef AK_APPS_COMMON_RANKS_H
#define AK_APPS_COMMON_RANKS_H

#include <stdbool.h>

#include "apps/common/options.h"

struct app_ranks {
    struct akunu_comm *comm; /* NULL: mpirun has not started this process */
    bool follows;            /* this is not rank 0 */
};

/* What ranks other than 0 print would be printed once per rank: from now on they print only why
 * they fail. */
void app_ranks_hush(void);
/* Joins the other ranks, if there are some; the command's models are then shared. */
int app_ranks_join(struct app_options *o, struct app_ranks *out);
int app_ranks_follow(const struct app_ranks *ranks);
void app_ranks_leave(struct app_ranks *ranks);

#endif
