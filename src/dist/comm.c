/* What all communicators share: the failure that stays, counts, and exchanges made of messages. */
#include "dist/comm.h"

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

static void add(atomic_ullong *count, uint64_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

ak_status ak_comm_exchange(struct ak_comm *c, const struct ak_comm_message *out, uint32_t n_out,
                           const struct ak_comm_message *in, uint32_t n_in, struct ak_error *error)
{
    if (c->failure.status != AKUNU_OK)
        return fail_again(c, error);
    double started = ak_seconds();
    ak_status status = c->ops->exchange(c, out, n_out, in, n_in, &c->failure);
    uint64_t sent = 0;
    for (uint32_t i = 0; i < n_out; i++)
        sent += out[i].bytes;
    add(&c->counts.n_exchanges, 1);
    add(&c->counts.bytes_sent, sent);
    add(&c->counts.nanoseconds, (uint64_t)((ak_seconds() - started) * 1e9));
    return status == AKUNU_OK ? AKUNU_OK : fail_again(c, error);
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

static struct ak_comm_message message_of(uint32_t rank, void *data, const size_t *begins,
                                         uint32_t shard)
{
    return (struct ak_comm_message){ rank, (uint8_t *)data + begins[shard],
                                     begins[shard + 1] - begins[shard] };
}

ak_status ak_comm_all_gather(struct ak_comm *c, void *data, const size_t *begins,
                             struct ak_error *error)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < c->n_ranks; i++) { /* not all to the same rank at once */
        uint32_t to = (c->rank + i) % c->n_ranks, from = (c->rank + c->n_ranks - i) % c->n_ranks;
        c->out[n] = message_of(to, data, begins, c->rank);
        c->in[n++] = message_of(from, data, begins, from);
    }
    return ak_comm_exchange(c, c->out, n, c->in, n, error);
}

ak_status ak_comm_all_gather_items(struct ak_comm *c, void *items, size_t bytes,
                                   struct ak_error *error)
{
    for (uint32_t i = 0; i <= c->n_ranks; i++)
        c->begins[i] = i * bytes;
    return ak_comm_all_gather(c, items, c->begins, error);
}

ak_status ak_comm_collect(struct ak_comm *c, void *data, const size_t *begins,
                          struct ak_error *error)
{
    if (c->rank > 0) {
        struct ak_comm_message own = message_of(0, data, begins, c->rank);
        return ak_comm_exchange(c, &own, 1, NULL, 0, error);
    }
    for (uint32_t i = 1; i < c->n_ranks; i++)
        c->in[i - 1] = message_of(i, data, begins, i);
    return ak_comm_exchange(c, NULL, 0, c->in, c->n_ranks - 1, error);
}

ak_status ak_comm_broadcast(struct ak_comm *c, void *data, size_t bytes, struct ak_error *error)
{
    struct ak_comm_message from = { 0, data, bytes };
    if (c->rank > 0)
        return ak_comm_exchange(c, NULL, 0, &from, 1, error);
    for (uint32_t i = 1; i < c->n_ranks; i++)
        c->out[i - 1] = (struct ak_comm_message){ i, data, bytes };
    return ak_comm_exchange(c, c->out, c->n_ranks - 1, NULL, 0, error);
}
