/* What all communicators share: the failure that stays, counts, and exchanges made of messages. */
#include "engine/dist/comm.h"

#include "base/mem.h"
#include "base/system.h"

ak_status ak_comm_init(struct ak_comm *c, const struct ak_comm_ops *ops, uint32_t rank,
                       uint32_t n_ranks, struct ak_error *error)
{
    *c = (struct ak_comm){ .ops = ops, .rank = rank, .n_ranks = n_ranks };
    c->out = ak_alloc(n_ranks, sizeof *c->out);
    c->in = ak_alloc(n_ranks, sizeof *c->in);
    c->begins = ak_alloc(n_ranks + 1u, sizeof *c->begins);
    c->hosts = ak_alloc(n_ranks, sizeof *c->hosts);
    if (c->out && c->in && c->begins && c->hosts)
        return AKUNU_OK;
    ak_comm_clear(c);
    return ak_fail_memory(error, "a communicator", n_ranks * 2 * sizeof *c->out);
}

void ak_comm_clear(struct ak_comm *c)
{
    ak_free(c->out);
    ak_free(c->in);
    ak_free(c->begins);
    ak_free(c->hosts);
    c->out = c->in = NULL; /* what clears itself as it fails may be cleared again */
    c->begins = NULL;
    c->hosts = NULL;
}

const char *ak_comm_host(const struct ak_comm *c, uint32_t rank)
{
    return c->hosts[rank][0] ? c->hosts[rank] : "this process";
}

/* Keeps a call's status, or gives the earlier failure. */
static ak_status fail_again(const struct ak_comm *c, struct ak_error *error)
{
    if (error)
        *error = c->failure;
    return c->failure.status;
}

static void add_count(atomic_ullong *count, uint64_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

static void count_seconds(struct ak_comm *c, double started)
{
    add_count(&c->counts.nanoseconds, (uint64_t)((ak_seconds() - started) * 1e9));
}

static void count_exchange(struct ak_comm *c, const struct ak_comm_message *out, uint32_t n_out,
                           double started)
{
    uint64_t sent = 0;
    for (uint32_t i = 0; i < n_out; i++)
        sent += ak_comm_message_bytes(&out[i]);
    add_count(&c->counts.n_exchanges, 1);
    add_count(&c->counts.bytes_sent, sent);
    count_seconds(c, started);
}

ak_status ak_comm_begin(struct ak_comm *c, enum ak_comm_lane lane,
                        const struct ak_comm_message *out, uint32_t n_out,
                        const struct ak_comm_message *in, uint32_t n_in, struct ak_error *error)
{
    AK_TRY(ak_comm_finish(c, lane, error));
    double started = ak_seconds();
    ak_status status = c->ops->begin(c, lane, out, n_out, in, n_in, &c->failure);
    c->is_under_way[lane] = status == AKUNU_OK;
    count_exchange(c, out, n_out, started);
    return status == AKUNU_OK ? AKUNU_OK : fail_again(c, error);
}

ak_status ak_comm_finish(struct ak_comm *c, enum ak_comm_lane lane, struct ak_error *error)
{
    if (c->failure.status != AKUNU_OK)
        return fail_again(c, error);
    if (!c->is_under_way[lane])
        return AKUNU_OK;
    double started = ak_seconds();
    ak_status status = c->ops->finish(c, lane, &c->failure);
    c->is_under_way[lane] = false;
    count_seconds(c, started);
    return status == AKUNU_OK ? AKUNU_OK : fail_again(c, error);
}

ak_status ak_comm_exchange(struct ak_comm *c, const struct ak_comm_message *out, uint32_t n_out,
                           const struct ak_comm_message *in, uint32_t n_in, struct ak_error *error)
{
    AK_TRY(ak_comm_begin(c, AK_COMM_NOW, out, n_out, in, n_in, error));
    return ak_comm_finish(c, AK_COMM_NOW, error);
}

void ak_comm_progress(struct ak_comm *c)
{
    bool is_under_way = c->is_under_way[AK_COMM_LATER] || c->is_under_way[AK_COMM_LATER_TOO];
    if (is_under_way && c->ops->progress && c->failure.status == AKUNU_OK)
        (void)c->ops->progress(c, &c->failure);
}

ak_status ak_comm_await(struct ak_comm *c, size_t *bytes, struct ak_error *error)
{
    if (c->failure.status != AKUNU_OK || c->ops->await(c, bytes, &c->failure) != AKUNU_OK)
        return fail_again(c, error);
    return AKUNU_OK;
}

void ak_comm_close(struct ak_comm *c)
{
    if (c)
        c->ops->close(c);
}

size_t ak_comm_message_bytes(const struct ak_comm_message *message)
{
    return message->bytes * (message->more_rows + 1);
}

/* Adds a rank's part of the rows, which begins at `data`, to a list, unless it is empty. */
static void append_part(struct ak_comm_message *list, uint32_t *n, uint32_t rank, void *data,
                        const struct ak_comm_rows *rows, uint32_t part)
{
    size_t bytes = rows->begins[part + 1] - rows->begins[part];
    if (bytes > 0 && rows->n > 0)
        list[(*n)++] = (struct ak_comm_message){ rank, data, bytes, rows->n - 1, rows->stride };
}

static void *part_of_rank(const struct ak_comm_rows *rows, uint32_t rank)
{
    return (uint8_t *)rows->data + rows->begins[rank];
}

ak_status ak_comm_all_gather(struct ak_comm *c, enum ak_comm_lane lane,
                             const struct ak_comm_rows *rows, struct ak_error *error)
{
    uint32_t n_out = 0, n_in = 0;
    for (uint32_t i = 1; i < c->n_ranks; i++) { /* not all to the same rank at once */
        uint32_t to = (c->rank + i) % c->n_ranks, from = (c->rank + c->n_ranks - i) % c->n_ranks;
        append_part(c->out, &n_out, to, part_of_rank(rows, c->rank), rows, c->rank);
        append_part(c->in, &n_in, from, part_of_rank(rows, from), rows, from);
    }
    AK_TRY(ak_comm_begin(c, lane, c->out, n_out, c->in, n_in, error));
    return lane == AK_COMM_NOW ? ak_comm_finish(c, lane, error) : AKUNU_OK;
}

ak_status ak_comm_all_gather_items(struct ak_comm *c, void *items, size_t bytes,
                                   struct ak_error *error)
{
    for (uint32_t i = 0; i <= c->n_ranks; i++)
        c->begins[i] = i * bytes;
    struct ak_comm_rows rows = { .data = items, .n = 1, .begins = c->begins };
    return ak_comm_all_gather(c, AK_COMM_NOW, &rows, error);
}

ak_status ak_comm_collect(struct ak_comm *c, const struct ak_comm_rows *rows,
                          struct ak_error *error)
{
    uint32_t n_out = 0, n_in = 0;
    if (c->rank > 0)
        append_part(c->out, &n_out, 0, rows->data, rows, c->rank);
    for (uint32_t i = 1; c->rank == 0 && i < c->n_ranks; i++)
        append_part(c->in, &n_in, i, part_of_rank(rows, i), rows, i);
    return ak_comm_exchange(c, c->out, n_out, c->in, n_in, error);
}

ak_status ak_comm_broadcast(struct ak_comm *c, void *data, size_t bytes, struct ak_error *error)
{
    struct ak_comm_message from = { .rank = 0, .data = data, .bytes = bytes };
    if (c->rank > 0)
        return ak_comm_exchange(c, NULL, 0, &from, 1, error);
    for (uint32_t i = 1; i < c->n_ranks; i++)
        c->out[i - 1] = (struct ak_comm_message){ .rank = i, .data = data, .bytes = bytes };
    return ak_comm_exchange(c, c->out, c->n_ranks - 1, NULL, 0, error);
}
