/* Communicator: messages between the ranks that share a model, processes on one host or several.
 * Rank 0 serves the caller, and tells the others what to do. engine/cpu/ exchanges shards of
 * activations with it, engine/backends/ sends the passes, engine/session/ loads models and follows
 * rank 0, and api/ opens it.
 *
 * Messages between two ranks arrive in the order in which they were sent, and both know their
 * sizes. A communicator is used by one thread at a time. The first failure stays: all later calls
 * return it. */
#ifndef AK_ENGINE_DIST_COMM_H
#define AK_ENGINE_DIST_COMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ak_comm;

enum { AK_COMM_RANKS_MAX = 1024, AK_COMM_HOST_BYTES = 64 };

/* To or from another rank: rows of `bytes` bytes, `stride` bytes apart. */
struct ak_comm_message {
    uint32_t rank;
    void *data; /* not changed if it is sent */
    size_t bytes;
    size_t more_rows; /* after the first */
    size_t stride;
};

/* Rows of which each rank has a part. */
struct ak_comm_rows {
    void *data;
    size_t n, stride;     /* stride: in bytes */
    const size_t *begins; /* [n_ranks + 1]: a rank has bytes [begins[rank], begins[rank + 1]) */
};

/* Exchanges that are under way at the same time: one whose end is waited for at once, and two that
 * go on while this rank computes. */
enum ak_comm_lane { AK_COMM_NOW, AK_COMM_LATER, AK_COMM_LATER_TOO, AK_COMM_LANES };

struct ak_comm_ops {
    /* Begins to send and to receive; the lane is free. Then waits until all messages have been
     * received or may be overwritten. */
    ak_status (*begin)(struct ak_comm *c, enum ak_comm_lane lane, const struct ak_comm_message *out,
                       uint32_t n_out, const struct ak_comm_message *in, uint32_t n_in,
                       struct ak_error *error);
    ak_status (*finish)(struct ak_comm *c, enum ak_comm_lane lane, struct ak_error *error);
    /* Goes on with what has begun, without waiting; NULL: it goes on by itself. */
    ak_status (*progress)(struct ak_comm *c, struct ak_error *error);
    /* Waits until rank 0 sends a message, however long that takes, and tells its size. */
    ak_status (*await)(struct ak_comm *c, size_t *bytes, struct ak_error *error);
    /* Whether a rank has failed, as is known now; called by any thread. NULL: unknown */
    bool (*has_failed)(struct ak_comm *c, struct ak_error *error);
    void (*close)(struct ak_comm *c);
};

/* What was exchanged, on this rank; read by any thread. */
struct ak_comm_counts {
    atomic_ullong n_exchanges, bytes_sent, nanoseconds;
};

/* First member of every communicator. */
struct ak_comm {
    const struct ak_comm_ops *ops;
    uint32_t rank, n_ranks;
    char (*hosts)[AK_COMM_HOST_BYTES]; /* [n_ranks]: where each rank runs, for messages */
    struct ak_error failure;           /* the first one */
    bool is_under_way[AK_COMM_LANES];  /* from ak_comm_begin() on */
    struct ak_comm_counts counts;
    /* for the functions below: [n_ranks], [n_ranks], [n_ranks + 1] */
    struct ak_comm_message *out, *in;
    size_t *begins;
};

/* Sets the members of a communicator; ak_comm_close() frees what it allocates. */
ak_status ak_comm_init(struct ak_comm *c, const struct ak_comm_ops *ops, uint32_t rank,
                       uint32_t n_ranks, struct ak_error *error);
void ak_comm_clear(struct ak_comm *c); /* for `close` */

/* Where a rank runs: "node2", or "this process". */
const char *ak_comm_host(const struct ak_comm *c, uint32_t rank);

size_t ak_comm_message_bytes(const struct ak_comm_message *message);

/* The functions of the vtable, which remember a failure and count. */
ak_status ak_comm_exchange(struct ak_comm *c, const struct ak_comm_message *out, uint32_t n_out,
                           const struct ak_comm_message *in, uint32_t n_in, struct ak_error *error);
/* Begins an exchange while this rank goes on: messages must stay as they are until
 * ak_comm_finish(), or the next begin in this lane, which waits for it. ak_comm_progress(), called
 * often, lets it go on. */
ak_status ak_comm_begin(struct ak_comm *c, enum ak_comm_lane lane,
                        const struct ak_comm_message *out, uint32_t n_out,
                        const struct ak_comm_message *in, uint32_t n_in, struct ak_error *error);
ak_status ak_comm_finish(struct ak_comm *c, enum ak_comm_lane lane, struct ak_error *error);
void ak_comm_progress(struct ak_comm *c);
ak_status ak_comm_await(struct ak_comm *c, size_t *bytes, struct ak_error *error);
void ak_comm_close(struct ak_comm *c); /* NULL allowed */

/* Every rank has its part of the rows, and gets all others. In a lane other than AK_COMM_NOW it
 * only begins; `rows` itself may change then. */
ak_status ak_comm_all_gather(struct ak_comm *c, enum ak_comm_lane lane,
                             const struct ak_comm_rows *rows, struct ak_error *error);
/* The same for n_ranks items of `bytes` bytes: every rank has the item of its number. */
ak_status ak_comm_all_gather_items(struct ak_comm *c, void *items, size_t bytes,
                                   struct ak_error *error);
/* As ak_comm_all_gather, but only rank 0 gets the others' parts. `data` of another rank is where
 * its own part begins. */
ak_status ak_comm_collect(struct ak_comm *c, const struct ak_comm_rows *rows,
                          struct ak_error *error);
/* Rank 0's bytes go to all others. */
ak_status ak_comm_broadcast(struct ak_comm *c, void *data, size_t bytes, struct ak_error *error);

/* ---- Ranks as threads of this process: local.c -------------------------- */
/* Opens n_ranks communicators, one for a thread each, that exchange messages with each other. A
 * rank that waits longer than `timeout` seconds for another fails; 0: it waits for ever. All are
 * closed by the caller. */
ak_status ak_comm_open_local(uint32_t n_ranks, double timeout, struct ak_comm *out[],
                             struct ak_error *error);

/* ---- Ranks as processes under mpirun: mpi.c ----------------------------- */
/* Number of ranks that mpirun has started, and which one this is; 1 and 0: it has not started this
 * process. `rank` may be NULL. */
uint32_t ak_comm_count_mpi_ranks(uint32_t *rank);
/* Ranks of this host, and which one of them this is; 1 and 0 without mpirun. */
uint32_t ak_comm_count_mpi_neighbors(uint32_t *index);
/* Loads Open MPI and joins the other ranks. Once per process. A rank that is silent for `timeout`
 * seconds, more than 0, has failed. */
ak_status ak_comm_open_mpi(double timeout, struct ak_comm **out, struct ak_error *error);

#endif
