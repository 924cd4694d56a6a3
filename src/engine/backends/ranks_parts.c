/* Results of a pass that each rank has for its own heads, or its own layers: scores of
 * cross-attention, and the importance of tokens. Rank 0 collects them. Importance is a sum of
 * integers, so its bits do not depend on who adds first. */
#include "engine/backends/ranks.h"
#include "base/mem.h"

/* What a rank computes: as it was when the model was loaded. */
static struct ak_spec spec_of(const struct ak_ranks_model *model, uint32_t rank)
{
    const struct ak_spec *own = model->spec;
    struct ak_spec out;
    (void)ak_spec_take_shard(own->whole, own->split, own->n_ranks, rank, &out, NULL);
    return out;
}

/* Whether ranks differ in their heads or layers; else rank 0 has all results. */
static bool has_parts(const struct ak_spec *spec)
{
    struct ak_op_shard heads;
    return !ak_spec_has_shards(spec) || ak_spec_shard(spec, AK_SPEC_DIM_HEADS, &heads);
}

/* Positions that the batch's tokens attend to in their cross sequence. */
static size_t count_positions(const struct ak_batch *batch)
{
    return batch->cross_lengths[batch->sequences[0]];
}

/* The matrix of a layer's head; negative: it is not wanted. */
static int32_t find_matrix(const struct ak_batch_scores *s, uint32_t layer, uint32_t head)
{
    return s->matrices[(size_t)layer * s->n_heads + head];
}

static size_t count_sums(const struct ak_spec *spec, const struct ak_batch_importance *importance)
{
    return (size_t)ak_spec_kv_layers(spec) * spec->config.n_kv_heads * importance->stride;
}

/* ---- Rank 0 ------------------------------------------------------------- */
void ak_ranks_put_parts(struct ak_message *m, const struct ak_ranks_model *model,
                        const struct ak_batch *batch)
{
    const struct ak_batch_scores *s = batch->scores;
    if (s)
        ak_message_put(m, s->matrices,
                       (size_t)model->spec->config.n_layers * s->n_heads * sizeof *s->matrices);
    if (batch->importance)
        ak_message_put_u64(m, batch->importance->stride);
}

/* The scores of a rank's heads, matrix by matrix. */
static ak_status collect_scores(struct ak_comm *comm, const struct ak_spec *other, uint32_t rank,
                                const struct ak_batch *batch, struct ak_error *error)
{
    const struct ak_batch_scores *s = batch->scores;
    struct ak_comm_message in = { .rank = rank,
                                  .bytes = count_positions(batch) * sizeof(float),
                                  .more_rows = batch->n - 1,
                                  .stride = s->stride * sizeof(float) };
    for (uint32_t layer = 0; layer < other->config.n_layers; layer++)
        for (uint32_t h = 0; h < other->config.n_heads; h++) {
            int32_t matrix = find_matrix(s, layer, other->first_head + h);
            if (matrix < 0)
                continue;
            in.data = s->data + (size_t)matrix * s->matrix_stride;
            AK_TRY(ak_comm_exchange(comm, NULL, 0, &in, 1, error));
        }
    return AKUNU_OK;
}

/* Adds a rank's sums, [layers][KV heads][stride], to those of the model. */
static void add_sums(const struct ak_spec *other, const uint64_t *sums,
                     const struct ak_batch_importance *to)
{
    uint32_t first = ak_spec_kv_layer(other->whole, (int)ak_spec_first_layer(other)),
             n_heads = other->config.n_kv_heads;
    for (uint32_t i = 0; i < ak_spec_kv_layers(other) * n_heads; i++) {
        size_t head =
            (size_t)(first + i / n_heads) * to->n_kv_heads + other->first_kv_head + i % n_heads;
        for (size_t t = 0; t < to->stride; t++)
            to->sums[head * to->stride + t] += sums[i * to->stride + t];
    }
}

static ak_status collect_importance(struct ak_comm *comm, const struct ak_spec *other,
                                    uint32_t rank, const struct ak_batch_importance *to,
                                    struct ak_error *error)
{
    size_t n = count_sums(other, to);
    uint64_t *sums = ak_alloc(n, sizeof *sums);
    if (!sums)
        return ak_fail_memory(error, "the importance of tokens", n * sizeof *sums);
    struct ak_comm_message in = { .rank = rank, .data = sums, .bytes = n * sizeof *sums };
    ak_status status = ak_comm_exchange(comm, NULL, 0, &in, 1, error);
    if (status == AKUNU_OK)
        add_sums(other, sums, to);
    ak_free(sums);
    return status;
}

ak_status ak_ranks_collect_parts(struct ak_comm *comm, const struct ak_ranks_model *model,
                                 const struct ak_batch *batch, struct ak_error *error)
{
    for (uint32_t rank = 1; has_parts(model->spec) && rank < comm->n_ranks; rank++) {
        struct ak_spec other = spec_of(model, rank);
        if (batch->scores)
            AK_TRY(collect_scores(comm, &other, rank, batch, error));
        if (batch->importance)
            AK_TRY(collect_importance(comm, &other, rank, batch->importance, error));
    }
    return AKUNU_OK;
}

/* ---- The ranks that follow ---------------------------------------------- */
/* Numbers the matrices of this rank's heads among themselves; returns how many there are. */
static size_t choose_matrices(const struct ak_spec *own, const int32_t *all, int32_t *matrices)
{
    const struct ak_batch_scores wanted = { .matrices = all,
                                            .n_heads = own->whole->config.n_heads };
    uint32_t n_heads = own->config.n_heads;
    int32_t n = 0;
    for (uint32_t layer = 0; layer < own->config.n_layers; layer++)
        for (uint32_t h = 0; h < n_heads; h++)
            matrices[(size_t)layer * n_heads + h] =
                find_matrix(&wanted, layer, own->first_head + h) < 0 ? -1 : n++;
    return (size_t)n;
}

static ak_status read_scores(struct ak_ranks_parts *parts, const struct ak_spec *own,
                             const int32_t *all, struct ak_batch *batch, struct ak_error *error)
{
    size_t n_layers = own->config.n_layers, n_heads = own->config.n_heads;
    parts->matrices = ak_alloc(n_layers * n_heads, sizeof *parts->matrices);
    if (!parts->matrices)
        return ak_fail_memory(error, "scores of attention", n_layers * n_heads * sizeof(int32_t));
    size_t n = choose_matrices(own, all, parts->matrices) * batch->n * count_positions(batch);
    parts->scores = (struct ak_batch_scores){ .data = ak_alloc(n ? n : 1, sizeof(float)),
                                              .matrices = parts->matrices,
                                              .n_heads = own->config.n_heads,
                                              .matrix_stride = batch->n * count_positions(batch),
                                              .stride = count_positions(batch) };
    if (!parts->scores.data)
        return ak_fail_memory(error, "scores of attention", n * sizeof(float));
    batch->scores = &parts->scores;
    return AKUNU_OK;
}

static ak_status read_importance(struct ak_ranks_parts *parts, const struct ak_spec *own,
                                 struct ak_batch *batch, struct ak_error *error)
{
    size_t n = count_sums(own, &parts->importance);
    parts->importance.n_kv_heads = own->config.n_kv_heads;
    parts->importance.sums = ak_alloc(n, sizeof *parts->importance.sums);
    if (!parts->importance.sums)
        return ak_fail_memory(error, "the importance of tokens",
                              n * sizeof *parts->importance.sums);
    batch->importance = &parts->importance;
    return AKUNU_OK;
}

ak_status ak_ranks_read_parts(struct ak_message_reader *message, uint64_t flags,
                              const struct ak_ranks_model *model, struct ak_batch *batch,
                              struct ak_ranks_parts *parts, struct ak_error *error)
{
    const struct ak_spec *own = model->spec;
    if (flags & AK_RANKS_SCORES) {
        const int32_t *all = ak_message_take(message, (size_t)own->config.n_layers *
                                                          own->whole->config.n_heads * sizeof *all);
        if (all && batch->cross_lengths)
            AK_TRY(read_scores(parts, own, all, batch, error));
        message->is_short = message->is_short || !batch->scores;
    }
    if (flags & AK_RANKS_IMPORTANCE) {
        uint32_t n_pages = batch->positions[batch->n - 1] / AK_KV_PAGE_TOKENS + 1;
        parts->importance.stride = ak_message_get_u64(message);
        if (parts->importance.stride >= (uint64_t)n_pages * AK_KV_PAGE_TOKENS)
            AK_TRY(read_importance(parts, own, batch, error));
        message->is_short = message->is_short || !batch->importance;
    }
    return AKUNU_OK;
}

ak_status ak_ranks_send_parts(struct ak_comm *comm, const struct ak_ranks_model *model,
                              const struct ak_batch *batch, struct ak_error *error)
{
    const struct ak_batch_scores *s = batch->scores;
    struct ak_comm_message out = { .rank = 0 };
    if (!has_parts(model->spec))
        return AKUNU_OK;
    for (size_t i = 0; s && i < (size_t)model->spec->config.n_layers * s->n_heads; i++) {
        if (s->matrices[i] < 0)
            continue;
        out.data = s->data + (size_t)s->matrices[i] * s->matrix_stride;
        out.bytes = s->matrix_stride * sizeof *s->data;
        AK_TRY(ak_comm_exchange(comm, &out, 1, NULL, 0, error));
    }
    if (!batch->importance)
        return AKUNU_OK;
    out.data = batch->importance->sums;
    out.bytes = count_sums(model->spec, batch->importance) * sizeof *batch->importance->sums;
    return ak_comm_exchange(comm, &out, 1, NULL, 0, error);
}

void ak_ranks_free_parts(struct ak_ranks_parts *parts)
{
    ak_free(parts->matrices);
    ak_free(parts->scores.data);
    ak_free(parts->importance.sums);
}
