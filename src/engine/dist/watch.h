/* Watch: a connection of each rank to rank 0, over which both say every second that they are there.
 * It notices at once that a rank has ended, and after a while that it is stopped or cut off, also
 * while a rank computes or waits for nothing. mpi.c opens it beside Open MPI, which would wait. */
#ifndef AK_ENGINE_DIST_WATCH_H
#define AK_ENGINE_DIST_WATCH_H

#include <stdbool.h>

#include "engine/dist/comm.h"

struct ak_watch;

/* How to reach rank 0: a secret, a port, and addresses. */
enum { AK_WATCH_ADDRESSES_MAX = 16 };
struct ak_watch_address {
    uint64_t secret;
    uint32_t n;
    uint32_t ip[AK_WATCH_ADDRESSES_MAX]; /* IPv4, network order */
    uint16_t port;                       /* network order */
};

/* On rank 0: listens, on this host alone if all ranks are here. */
ak_status ak_watch_listen(bool is_local, struct ak_watch **out, struct ak_watch_address *address,
                          struct ak_error *error);
/* On the others: connects. */
ak_status ak_watch_connect(const struct ak_comm *comm, const struct ak_watch_address *address,
                           struct ak_watch **out, struct ak_error *error);
/* Starts watching; rank 0 first waits for the others. A rank that is silent for `timeout` seconds
 * counts as failed. `comm` must outlive it. */
ak_status ak_watch_start(struct ak_watch *w, const struct ak_comm *comm, double timeout,
                         struct ak_error *error);
/* Whether a rank has failed, and which. Called by any thread. */
bool ak_watch_has_failed(struct ak_watch *w, struct ak_error *error);
/* Says that this rank leaves, unless its communicator has failed, and stops. NULL allowed. */
void ak_watch_free(struct ak_watch *w);

#endif
