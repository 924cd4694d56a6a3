/* akunu/comm.h: several processes that share a model, each with its part of the weights, on one
 * host or several. mpirun starts them; Open MPI is loaded at run time, and only then.
 *
 *     unsigned rank;
 *     if (akunu_comm_count(&rank) > 1) {
 *         struct akunu_comm *comm = akunu_comm_join(NULL);
 *         if (rank > 0)
 *             akunu_comm_follow(comm, NULL, NULL);     until rank 0 frees its comm
 *         else
 *             load_params.comm = comm;                 then all as in one process
 *     }
 *
 * Rank 0 loads models, makes sessions and runs them. The others load their parts of the same
 * models, by the same paths, and take part in the passes. Results are the same bits as those of one
 * process. */
#ifndef AKUNU_COMM_H
#define AKUNU_COMM_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of processes (ranks) that mpirun has started, this one included; 1: mpirun has not started
 * this process. *rank: which of them this is, from 0 on. Loads nothing. */
AKUNU_API unsigned akunu_comm_count(unsigned *rank);

struct akunu_comm_params {
    size_t size;
    double timeout; /* seconds after which a rank that does not answer counts as failed; 0: 60 */
};
AKUNU_API void akunu_comm_params_default(struct akunu_comm_params *params, size_t size);

/* Joins the other ranks, all of which have to call it; once per process. params may be NULL.
 * AKUNU_ERROR_UNSUPPORTED: Open MPI is not installed. */
AKUNU_API struct akunu_comm *akunu_comm_join(const struct akunu_comm_params *params);
/* On rank 0 it ends the others' akunu_comm_follow; free what uses it first. */
AKUNU_API void akunu_comm_free(struct akunu_comm *comm);

/* Follows rank 0 until it frees its comm. `log` gets the warnings of this rank; NULL: silent.
 * AKUNU_ERROR_IO: a rank has ended or does not answer, as the message says. AKUNU_ERROR_ARGUMENT:
 * this is rank 0. */
AKUNU_API enum akunu_status akunu_comm_follow(struct akunu_comm *comm, akunu_log_fn *log,
                                              void *user);

/* Whether another rank has failed, as is known now; akunu_last_error() then says which, and how.
 * Called by any thread. */
AKUNU_API bool akunu_comm_has_failed(struct akunu_comm *comm);

/* What this rank has exchanged so far; called by any thread. */
struct akunu_comm_counts {
    uint64_t n_exchanges, bytes_sent;
    double seconds; /* in exchanges, waiting included */
};
AKUNU_API enum akunu_status akunu_comm_get_counts(const struct akunu_comm *comm,
                                                  struct akunu_comm_counts *counts, size_t size);

#ifdef __cplusplus
}
#endif

#endif
