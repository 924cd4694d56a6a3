/* akunu/comm.h: several processes that share a model. Each process holds a part of the weights;
 * they may run on one host or on several. mpirun starts them. Open MPI is loaded when
 * akunu_comm_join is called, so other programs do not need it.
 *
 *     unsigned rank;
 *     if (akunu_comm_count(&rank) > 1) {
 *         struct akunu_comm *comm = akunu_comm_join(NULL);
 *         if (rank > 0)
 *             akunu_comm_follow(comm, NULL, NULL);     returns when rank 0 frees its comm
 *         else
 *             load_params.comm = comm;                 then continue as in a single process
 *     }
 *
 * Rank 0 loads models, makes sessions and runs them. The other ranks load their parts of the same
 * models from the same paths, and take part in the passes. Results are the same bits as those of a
 * single process. */
#ifndef AKUNU_COMM_H
#define AKUNU_COMM_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the number of processes (ranks) that mpirun started, including this one, and sets *rank
 * to the number of this one, from 0. Without mpirun: 1 and rank 0. Loads nothing and cannot fail.
 */
AKUNU_API unsigned akunu_comm_count(unsigned *rank);

struct akunu_comm_params {
    size_t size;
    double timeout; /* seconds after which a rank that does not answer counts as failed; 0: 60 */
};
AKUNU_API void akunu_comm_params_default(struct akunu_comm_params *params, size_t size);

/* Joins the other ranks. Every rank calls this once; the call returns when all have done so.
 * AKUNU_ERROR_UNSUPPORTED: Open MPI is not installed. */
AKUNU_API struct akunu_comm *akunu_comm_join(const struct akunu_comm_params *params);
/* On rank 0 this ends akunu_comm_follow of the other ranks. Free the models that use it first. */
AKUNU_API void akunu_comm_free(struct akunu_comm *comm);

/* Runs this rank's part of the work of rank 0 until rank 0 frees its comm. `log` gets the warnings
 * of this rank, with `user`; NULL: silent. AKUNU_ERROR_IO: a rank has ended or does not answer; the
 * message says which. AKUNU_ERROR_ARGUMENT: this is rank 0. */
AKUNU_API enum akunu_status akunu_comm_follow(struct akunu_comm *comm, akunu_log_fn *log,
                                              void *user);

/* True if this rank knows that another one has failed; akunu_last_error() then says which, and how.
 * Any thread may call it at any time. */
AKUNU_API bool akunu_comm_has_failed(struct akunu_comm *comm);

/* What this rank has exchanged since it joined. */
struct akunu_comm_counts {
    uint64_t n_exchanges, bytes_sent;
    double seconds; /* spent in exchanges, including the time spent waiting for other ranks */
};
/* Any thread may call it at any time. */
AKUNU_API enum akunu_status akunu_comm_get_counts(const struct akunu_comm *comm,
                                                  struct akunu_comm_counts *counts, size_t size);

#ifdef __cplusplus
}
#endif

#endif
