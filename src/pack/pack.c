/* Packs all weights on all threads: the rows of every part in pieces, handed out
 * in order to whoever is free. */
#include <stdatomic.h>

#include "base/mem.h"
#include "pack/weights.h"

enum { PIECE_BYTES = 1 << 20 };

struct job {
    struct ak_weights *weights;
    struct ak_backend *backend;
    ak_pack_progress_fn *progress;
    void *user;
    atomic_ullong next;        /* piece to take, counted over all weights */
    atomic_ullong done;        /* packed bytes */
    atomic_bool cancelled;
};

/* Rows of a piece: about PIECE_BYTES, whole tiles. */
static uint32_t piece_rows(uint64_t part_bytes, uint32_t rows)
{
    return (uint32_t)(PIECE_BYTES / (part_bytes / rows + 1) / 16 + 1) * 16;
}

static void report(struct job *job, uint64_t bytes, unsigned thread)
{
    uint64_t done = atomic_fetch_add(&job->done, bytes) + bytes;
    if (thread == 0 && job->progress && !job->progress((double)done / (double)job->weights->block_bytes, job->user))
        atomic_store(&job->cancelled, true);
}

/* Walks all pieces in order and packs those that this thread took. */
static void pack_task(void *context, unsigned thread)
{
    struct job *job = context;
    const struct ak_backend_ops *ops = job->backend->ops;
    unsigned long long piece = 0, mine = atomic_fetch_add(&job->next, 1);
    for (uint32_t i = 0; i < job->weights->n_packed; i++) {
        struct ak_packed *packed = &job->weights->packed[i];
        for (uint32_t j = 0; j < packed->n_parts; j++) {
            struct ak_packed_part *part = &packed->parts[j];
            uint64_t bytes = ops->packed_bytes(job->backend, packed->type, part->rows, packed->cols);
            uint32_t rows = bytes ? piece_rows(bytes, part->rows) : part->rows;
            for (uint32_t first = 0; bytes && first < part->rows; first += rows) {
                if (piece++ != mine)
                    continue;
                if (atomic_load(&job->cancelled))
                    return;
                uint32_t n = part->rows - first < rows ? part->rows - first : rows;
                ops->pack(job->backend, part->view, first, n, (uint8_t *)job->weights->block + part->offset);
                report(job, bytes * n / part->rows, thread);
                mine = atomic_fetch_add(&job->next, 1);
            }
        }
    }
}

static void point_at_packed(struct ak_weights *w)
{
    for (uint32_t i = 0; i < w->n_packed; i++)
        for (uint32_t j = 0; j < w->packed[i].n_parts; j++)
            if (w->packed[i].bytes)
                w->packed[i].parts[j].data = w->block + w->packed[i].parts[j].offset;
}

ak_status ak_weights_pack(struct ak_weights *w, struct ak_backend *backend, struct ak_pool *pool, ak_pack_progress_fn *progress, void *user,
                          struct ak_error *error)
{
    struct job job = { .weights = w, .backend = backend, .progress = progress, .user = user };
    if (w->block_bytes > 0) {
        w->block = ak_pages_alloc(w->block_bytes);
        if (!w->block)
            return ak_fail_memory(error, "the packed weights", w->block_bytes);
    }
    ak_pool_run(pool, pack_task, &job);
    if (atomic_load(&job.cancelled))
        return ak_fail(error, AKUNU_ERROR_CANCELLED, "loading was cancelled");
    point_at_packed(w);
    return AKUNU_OK;
}
