/* Packs weights on all threads, window by window of the block, and advises the system which
 * source pages to read ahead and to drop. */
#include "base/chip.h"
#include "base/mem.h"
#include "engine/pack/pack.h"
#include "files/weights/composed.h"

enum { WINDOW_BYTES = 1 << 20 };

static uint32_t group_rows(const struct ak_pack_weight *packed)
{
    return packed->backend->ops->group_rows(packed->backend, packed->layout);
}

static uint64_t group_bytes(const struct ak_pack_weight *packed)
{
    return ak_pack_bytes(packed->backend, packed->layout, packed->parts[0].view,
                         group_rows(packed));
}

static uint64_t n_groups_of(const struct ak_pack_weight *packed, const struct ak_pack_part *part)
{
    uint32_t rows = group_rows(packed);
    return ((uint64_t)part->rows + rows - 1) / rows;
}

uint64_t ak_pack_slack(const struct ak_pack_job *job)
{
    uint64_t max = 0;
    for (uint32_t i = 0; i < job->weights->n_packed; i++) {
        uint64_t bytes = group_bytes(&job->weights->packed[i]);
        max = bytes > max ? bytes : max;
    }
    return max;
}

/* Rows of a part that are in a range of the block. */
struct rows {
    uint32_t first, n;
    uint64_t at; /* block byte where they begin */
};

/* Rows of groups [first, last); false: there are none. */
static bool rows_of(const struct ak_pack_weight *packed, const struct ak_pack_part *part,
                    uint64_t first, uint64_t last, struct rows *out)
{
    if (first >= last)
        return false;
    out->first = (uint32_t)first * group_rows(packed);
    out->n = last == n_groups_of(packed, part) ? part->rows - out->first :
                                                 (uint32_t)(last - first) * group_rows(packed);
    out->at = part->offset + first * group_bytes(packed);
    return true;
}

/* Where the range begins and ends in a part that has some of it; false: it has none. */
static bool clip(const struct ak_pack_weight *packed, const struct ak_pack_part *part,
                 const struct ak_pack_range *range, uint64_t *begin, uint64_t *end)
{
    uint64_t bytes = n_groups_of(packed, part) * group_bytes(packed);
    if (bytes == 0 || part->offset >= range->end || part->offset + bytes <= range->begin)
        return false;
    *begin = range->begin > part->offset ? range->begin - part->offset : 0;
    *end = range->end - part->offset < bytes ? range->end - part->offset : bytes;
    return true;
}

static bool rows_in(const struct ak_pack_weight *packed, const struct ak_pack_part *part,
                    const struct ak_pack_range *range, struct rows *out)
{
    uint64_t bytes = group_bytes(packed), begin, end;
    return clip(packed, part, range, &begin, &end) &&
           rows_of(packed, part, (begin + (range->both_ends ? 0 : bytes - 1)) / bytes,
                   (end + bytes - 1) / bytes, out);
}

/* Without those of groups that the range cuts, which another thread may be reading. */
static bool whole_rows_in(const struct ak_pack_weight *packed, const struct ak_pack_part *part,
                          const struct ak_pack_range *range, struct rows *out)
{
    uint64_t bytes = group_bytes(packed), begin, end;
    return clip(packed, part, range, &begin, &end) &&
           rows_of(packed, part, (begin + bytes - 1) / bytes, end / bytes, out);
}

/* The embedding's rows are read again for every token: if it is packed (tied output), its source
 * stays in the page cache. */
static enum ak_file_advice choose_advice(const struct ak_pack_job *job, const struct ak_view *view)
{
    return job->evict_source && view->plane[0].data != job->weights->embedding->plane[0].data ?
               AK_FILE_DROP_CACHE :
               AK_FILE_DONTNEED;
}

static bool has_row_planes(const struct ak_view *view)
{
    return !view->composed_tensor || view->composed_tensor->scheme->is_row_major;
}

/* The matrices that a part comes from: of experts, one each. */
static const struct ak_view *list_matrices(const struct ak_pack_weight *packed,
                                           const struct ak_pack_part *part, uint32_t *n)
{
    const struct ak_view *experts = part->view->expert_views;
    *n = experts ? packed->n_experts : 1;
    return experts ? experts : part->view;
}

static void advise_all(const struct ak_pack_job *job, const struct ak_view *view,
                       enum ak_file_advice use)
{
    for (int i = 0; i < AK_VIEW_PLANES_MAX; i++)
        if (view->plane[i].data)
            ak_provider_advise(job->source, view->plane[i].data, view->plane[i].bytes, use);
}

/* If every row is spread over the planes, all of them are read ahead with the first row and dropped
 * after the last one (count_done). */
static void advise_source(const struct ak_pack_job *job, const struct ak_view *view, uint32_t first,
                          uint32_t n, enum ak_file_advice use)
{
    const struct ak_composed_tensor *a = view->composed_tensor;
    if (!has_row_planes(view)) {
        if (use == AK_FILE_WILLNEED && first == 0)
            advise_all(job, view, use);
        return;
    }
    uint64_t step = view->is_interleaved ? 2 : 1;
    for (int i = 0; i < AK_VIEW_PLANES_MAX; i++) {
        uint64_t row_bytes = view->plane[i].bytes / (a ? a->rows : view->rows);
        if (row_bytes > 0)
            ak_provider_advise(job->source,
                               (const uint8_t *)view->plane[i].data +
                                   (view->first_row + first * step) * row_bytes,
                               ((n - 1) * step + 1) * row_bytes, use);
    }
}

/* Those of `rows` that belong to one matrix, from row `row` on. */
struct piece {
    const struct ak_view *view;
    uint32_t first, n;
};

static struct piece find_piece(const struct ak_view *view, uint32_t row, const struct rows *rows)
{
    uint32_t end = rows->first + rows->n;
    if (!view->expert_views)
        return (struct piece){ view, row, end - row };
    uint32_t each = view->expert_views->rows, left = each - row % each;
    return (struct piece){ &view->expert_views[row / each], row % each,
                           left < end - row ? left : end - row };
}

static void advise_rows(const struct ak_pack_job *job, const struct ak_view *view,
                        const struct rows *rows, enum ak_file_advice use)
{
    struct piece piece;
    for (uint32_t row = rows->first; row < rows->first + rows->n; row += piece.n) {
        piece = find_piece(view, row, rows);
        advise_source(job, piece.view, piece.first, piece.n, use);
    }
}

static void pack_rows(const struct ak_pack_weight *packed, const struct ak_view *view,
                      const struct rows *rows, uint8_t *out)
{
    uint64_t bytes = group_bytes(packed);
    struct piece piece;
    for (uint32_t row = rows->first; row < rows->first + rows->n; row += piece.n) {
        piece = find_piece(view, row, rows);
        packed->backend->ops->pack(packed->backend, packed->layout, piece.view, piece.first,
                                   piece.n, out + (row - rows->first) / group_rows(packed) * bytes);
    }
}

/* Of the rows of a part that were packed. */
static void drop_source(const struct ak_pack_job *job, const struct ak_pack_weight *packed,
                        const struct ak_pack_part *part, const struct ak_pack_range *range,
                        const struct rows *rows)
{
    struct rows whole;
    advise_rows(job, part->view, rows, AK_FILE_DONTNEED);
    if (choose_advice(job, part->view) == AK_FILE_DROP_CACHE &&
        whole_rows_in(packed, part, range, &whole))
        advise_rows(job, part->view, &whole, AK_FILE_DROP_CACHE);
}

/* A job's ranges do not overlap: a part is packed once the ranges have covered its bytes. */
static bool is_done(const struct ak_pack_weight *packed, const struct ak_pack_part *part)
{
    return atomic_load(&part->n_packed_bytes) == n_groups_of(packed, part) * group_bytes(packed);
}

/* Several parts may come from one merged tensor. */
static bool is_tensor_done(const struct ak_pack_weight *packed, const struct ak_pack_part *part)
{
    bool done = true;
    for (uint32_t i = 0; i < packed->n_parts; i++)
        if (packed->parts[i].view->plane[0].data == part->view->plane[0].data)
            done = done && is_done(packed, &packed->parts[i]);
    return done;
}

static void count_done(const struct ak_pack_job *job, const struct ak_pack_weight *packed,
                       struct ak_pack_part *part, const struct ak_pack_range *range)
{
    uint64_t begin, end;
    if (!job->source || !clip(packed, part, range, &begin, &end))
        return;
    atomic_fetch_add(&part->n_packed_bytes, end - begin);
    if (!is_tensor_done(packed, part))
        return;
    uint32_t n;
    const struct ak_view *views = list_matrices(packed, part, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!has_row_planes(&views[i]))
            advise_all(job, &views[i], choose_advice(job, &views[i]));
}

void ak_pack_range(const struct ak_pack_job *job, const struct ak_pack_range *range, uint8_t *out)
{
    struct rows rows;
    for (uint32_t i = 0; i < job->weights->n_packed; i++) {
        struct ak_pack_weight *packed = &job->weights->packed[i];
        for (uint32_t j = 0; j < packed->n_parts; j++) {
            struct ak_pack_part *part = &packed->parts[j];
            if (rows_in(packed, part, range, &rows)) {
                pack_rows(packed, part->view, &rows, out + (rows.at - range->origin));
                if (job->source)
                    drop_source(job, packed, part, range, &rows);
            }
            count_done(job, packed, part, range);
        }
    }
}

void ak_pack_read_ahead(const struct ak_pack_job *job, uint64_t begin, uint64_t end)
{
    struct ak_pack_range range = { .begin = begin, .end = end };
    struct rows rows;
    for (uint32_t i = 0; job->source && i < job->weights->n_packed; i++) {
        const struct ak_pack_weight *packed = &job->weights->packed[i];
        for (uint32_t j = 0; j < packed->n_parts; j++)
            if (rows_in(packed, &packed->parts[j], &range, &rows))
                advise_rows(job, packed->parts[j].view, &rows, AK_FILE_WILLNEED);
    }
}

void ak_pack_set_block(struct ak_weights *w)
{
    for (uint32_t i = 0; i < w->n_packed; i++)
        for (uint32_t j = 0; j < w->packed[i].n_parts; j++)
            if (w->packed[i].bytes)
                w->packed[i].parts[j].data = w->block + w->packed[i].parts[j].offset;
}

/* ---- Windows ------------------------------------------------------------ */
/* All that is packed is read ahead. Where a page is missing nevertheless, the kernel must not read
 * megabytes around it or behind what it has read before: they are packed already, or another
 * rank's. */
static void begin_reading(const struct ak_pack_job *job)
{
    for (uint32_t i = 0; job->source && i < job->weights->n_packed; i++) {
        const struct ak_pack_weight *packed = &job->weights->packed[i];
        if (group_bytes(packed) == 0)
            continue; /* read in place */
        for (uint32_t j = 0, n; j < packed->n_parts; j++) {
            const struct ak_view *views = list_matrices(packed, &packed->parts[j], &n);
            for (uint32_t k = 0; k < n; k++)
                advise_all(job, &views[k], AK_FILE_RANDOM);
        }
    }
    ak_pack_read_ahead(job, 0, AK_PACK_READ_AHEAD_BYTES);
}

ak_status ak_pack_windows_create(const struct ak_pack_job *job, uint64_t bytes,
                                 struct ak_pack_windows *out, struct ak_error *error)
{
    struct ak_numa_nodes nodes;
    ak_numa_detect(&nodes);
    size_t n = (size_t)((job->weights->block_bytes + bytes - 1) / bytes);
    for (uint32_t i = 0; i < job->weights->n_packed; i++)
        for (uint32_t j = 0; j < job->weights->packed[i].n_parts; j++)
            atomic_store(&job->weights->packed[i].parts[j].n_packed_bytes, 0);
    *out = (struct ak_pack_windows){ .job = job,
                                     .bytes = bytes,
                                     .n = n,
                                     .numa_local = nodes.n > 1,
                                     .taken = ak_alloc(n, sizeof *out->taken) };
    begin_reading(job);
    return out->taken ? AKUNU_OK : ak_fail_memory(error, "the list of windows", n);
}

void ak_pack_windows_clear(struct ak_pack_windows *w)
{
    ak_free(w->taken);
}

/* The thread that reads byte `at` of the block in a pass: each part's rows are split evenly. */
static unsigned find_reader(const struct ak_pack_job *job, uint64_t at)
{
    for (uint32_t i = 0; i < job->weights->n_packed; i++) {
        const struct ak_pack_weight *packed = &job->weights->packed[i];
        uint64_t group = group_bytes(packed);
        for (uint32_t j = 0; j < packed->n_parts; j++) {
            const struct ak_pack_part *part = &packed->parts[j];
            uint64_t bytes = n_groups_of(packed, part) * group;
            if (at >= part->offset && at - part->offset < bytes)
                return (unsigned)((at - part->offset) / group * ak_pool_threads(job->pool) /
                                  (bytes / group));
        }
    }
    return 0;
}

bool ak_pack_windows_take(const struct ak_pack_windows *w, unsigned thread, size_t *next,
                          uint64_t *begin)
{
    for (size_t end = w->numa_local ? 2 * w->n : w->n; *next < end; ++*next) {
        size_t i = *next % w->n;
        *begin = i * w->bytes;
        if (end - *next > w->n && find_reader(w->job, *begin + w->bytes / 2) != thread)
            continue;
        if (!atomic_exchange_explicit(&w->taken[i], 1, memory_order_relaxed))
            return true;
    }
    return false;
}

/* ---- Into memory of this process ---------------------------------------- */
struct run {
    const struct ak_pack_job *job;
    struct ak_pack_windows windows;
    atomic_ullong done;
    atomic_bool cancelled;
};

static void pack_task(void *context, unsigned thread)
{
    struct run *run = context;
    const struct ak_pack_job *job = run->job;
    uint64_t total = job->weights->block_bytes, begin;
    size_t next = 0;
    while (!atomic_load(&run->cancelled) &&
           ak_pack_windows_take(&run->windows, thread, &next, &begin)) {
        struct ak_pack_range range = { .begin = begin, .end = begin + WINDOW_BYTES };
        ak_pack_read_ahead(job, begin + AK_PACK_READ_AHEAD_BYTES,
                           begin + AK_PACK_READ_AHEAD_BYTES + WINDOW_BYTES);
        ak_pack_range(job, &range, job->weights->block);
        uint64_t done = atomic_fetch_add(&run->done, WINDOW_BYTES);
        if (thread == 0 && job->progress && !job->progress((double)done / (double)total, job->user))
            atomic_store(&run->cancelled, true);
    }
}

ak_status ak_pack_weights(const struct ak_pack_job *job, struct ak_error *error)
{
    struct ak_weights *w = job->weights;
    struct run run = { .job = job };
    if (w->block_bytes == 0)
        return AKUNU_OK;
    w->block = ak_pages_alloc(w->block_bytes);
    if (!w->block)
        return ak_fail_memory(error, "the packed weights", w->block_bytes);
    AK_TRY(ak_pack_windows_create(job, WINDOW_BYTES, &run.windows, error));
    ak_pool_run(job->pool, pack_task, &run);
    ak_pack_windows_clear(&run.windows);
    if (atomic_load(&run.cancelled))
        return ak_fail(error, AKUNU_ERROR_CANCELLED, "loading was cancelled");
    ak_pack_set_block(w);
    return job->source ? ak_provider_check_weights(job->source, error) : AKUNU_OK;
}
