/* Processes that share models: joining, following, counts. */
#include "api/handles.h"

#include "engine/dist/message.h"
#include "engine/session/follow.h"

unsigned akunu_comm_count(unsigned *rank)
{
    uint32_t own, n = ak_comm_count_mpi_ranks(&own);
    if (rank)
        *rank = own;
    return n;
}

static const struct akunu_comm_params defaults = { .timeout = 60.0 };

void akunu_comm_params_default(struct akunu_comm_params *params, size_t size)
{
    ak_api_give_default(params, size, &defaults, sizeof defaults);
}

static ak_status join_ranks(const struct akunu_comm_params *given, struct ak_ranks **out,
                            struct ak_error *error)
{
    struct akunu_comm_params params;
    struct ak_comm *comm;
    akunu_comm_params_default(&params, sizeof params);
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_comm_params", error));
    if (!(params.timeout >= 0.0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "timeout is %g: expected seconds",
                       params.timeout);
    if (ak_comm_count_mpi_ranks(NULL) == 1)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "mpirun has not started this process");
    AK_TRY(
        ak_comm_open_mpi(params.timeout > 0.0 ? params.timeout : defaults.timeout, &comm, error));
    ak_status status = ak_ranks_create(comm, out, error);
    if (status != AKUNU_OK)
        ak_comm_close(comm);
    return status;
}

struct akunu_comm *akunu_comm_join(const struct akunu_comm_params *params)
{
    struct ak_error error = { 0 };
    struct ak_ranks *ranks = NULL;
    join_ranks(params, &ranks, &error);
    ak_api_finish(&error);
    return (struct akunu_comm *)ranks;
}

void akunu_comm_free(struct akunu_comm *handle)
{
    struct ak_ranks *ranks = ak_ranks_from_handle(handle);
    if (ranks && ak_ranks_comm(ranks)->rank == 0) {
        struct ak_message m = { 0 };
        ak_message_put_u64(&m, AK_MESSAGE_END);
        (void)ak_ranks_send(ranks, &m, NULL);
    }
    ak_ranks_free(ranks);
}

enum akunu_status akunu_comm_follow(struct akunu_comm *handle, akunu_log_fn *log, void *user)
{
    struct ak_error error = { 0 };
    const struct ak_log to = { log, user };
    if (!handle || ak_ranks_comm(ak_ranks_from_handle(handle))->rank == 0)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "rank 0 does not follow, and others need a comm");
    else
        (void)ak_follow(ak_ranks_comm(ak_ranks_from_handle(handle)), ak_api_open_quantized, &to,
                        &error);
    return ak_api_finish(&error);
}

bool akunu_comm_has_failed(struct akunu_comm *handle)
{
    struct ak_error error = { 0 };
    struct ak_comm *comm = handle ? ak_ranks_comm(ak_ranks_from_handle(handle)) : NULL;
    if (!comm || !comm->ops->has_failed || !comm->ops->has_failed(comm, &error))
        return false;
    ak_api_finish(&error);
    return true;
}

enum akunu_status akunu_comm_get_counts(const struct akunu_comm *comm,
                                        struct akunu_comm_counts *counts, size_t size)
{
    struct ak_error error = { 0 };
    struct akunu_comm_counts own = { 0 };
    if (!comm) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "no comm is given");
        return ak_api_finish(&error);
    }
    const struct ak_comm_counts *c = &ak_ranks_comm((const struct ak_ranks *)comm)->counts;
    own.n_exchanges = atomic_load_explicit(&c->n_exchanges, memory_order_relaxed);
    own.bytes_sent = atomic_load_explicit(&c->bytes_sent, memory_order_relaxed);
    own.seconds = (double)atomic_load_explicit(&c->nanoseconds, memory_order_relaxed) * 1e-9;
    ak_api_copy_out(counts, size, &own, sizeof own, "akunu_comm_counts", &error);
    return ak_api_finish(&error);
}
