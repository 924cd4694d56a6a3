/* Packs into a file, in windows of 2 MiB at multiples of 2 MiB. A thread packs a window in its own
 * memory and writes it at once, so a full disk is an error and not a signal. The page cache gets
 * large folios, which become huge pages in the map. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "engine/pack/cache.h"

enum { WINDOW_BYTES = 2 << 20, BUFFER_ALIGN = 4096 };

struct writer {
    const struct ak_pack_job *job;
    int fd;
    uint64_t slack, buffer_bytes;
    uint8_t *buffers; /* per thread: slack, window, slack */
    struct ak_pack_windows windows;
    atomic_ullong done;
    atomic_int failed; /* errno; 0: none */
    atomic_bool cancelled;
};

static void write_window(struct writer *w, uint64_t begin, uint8_t *buffer)
{
    uint64_t total = w->job->weights->block_bytes;
    uint64_t end = begin + WINDOW_BYTES < total ? begin + WINDOW_BYTES : total;
    struct ak_pack_range range = {
        .begin = begin, .end = end, .origin = begin - w->slack, .both_ends = true
    };
    ak_pack_read_ahead(w->job, begin + AK_PACK_READ_AHEAD_BYTES, end + AK_PACK_READ_AHEAD_BYTES);
    memset(buffer + w->slack, 0, end - begin); /* gaps between weights */
    ak_pack_range(w->job, &range, buffer);
    int failed =
        ak_store_write(w->fd, buffer + w->slack, end - begin, AK_STORE_BLOCK_OFFSET + begin);
    if (failed)
        atomic_store(&w->failed, failed);
    else /* the disk may begin at once */
        sync_file_range(w->fd, (off_t)(AK_STORE_BLOCK_OFFSET + begin), (off_t)(end - begin),
                        SYNC_FILE_RANGE_WRITE);
    atomic_fetch_add(&w->done, end - begin);
}

static void write_task(void *context, unsigned thread)
{
    struct writer *w = context;
    const struct ak_pack_job *job = w->job;
    uint64_t total = job->weights->block_bytes, begin;
    size_t next = 0;
    while (!atomic_load(&w->failed) && !atomic_load(&w->cancelled) &&
           ak_pack_windows_take(&w->windows, thread, &next, &begin)) {
        write_window(w, begin, w->buffers + thread * w->buffer_bytes);
        if (thread != 0)
            continue;
        uint64_t done = atomic_load(&w->done);
        ak_store_put_progress(w->fd, done, total);
        if (job->progress && !job->progress((double)done / (double)total, job->user))
            atomic_store(&w->cancelled, true);
    }
}

static int write_block(const struct ak_pack_job *job, int fd, bool *cancelled)
{
    uint64_t total = job->weights->block_bytes;
    struct writer w = { .job = job,
                        .fd = fd,
                        .slack = ak_round_up(ak_pack_slack(job), BUFFER_ALIGN) };
    w.buffer_bytes = WINDOW_BYTES + 2 * w.slack;
    size_t bytes;
    if (!ak_mul_size(w.buffer_bytes, ak_pool_threads(job->pool), &bytes) ||
        !(w.buffers = ak_pages_alloc(bytes)))
        return ENOMEM;
    if (ak_pack_windows_create(job, WINDOW_BYTES, &w.windows, NULL) != AKUNU_OK) {
        ak_pages_free(w.buffers, bytes);
        return ENOMEM;
    }
    /* Reserves space for all of it if the file system can. */
    int failed = 0;
    if (fallocate(fd, 0, AK_STORE_BLOCK_OFFSET, (off_t)total) != 0 && errno != EOPNOTSUPP &&
        errno != ENOSYS && errno != EINTR)
        failed = errno;
    if (!failed) {
        ak_pool_run(job->pool, write_task, &w);
        failed = atomic_load(&w.failed);
        if (!failed && job->source && ak_provider_check_weights(job->source, NULL) != AKUNU_OK)
            failed = EINVAL; /* ak_pack_weights says what is wrong */
        *cancelled = atomic_load(&w.cancelled);
    }
    ak_pack_windows_clear(&w.windows);
    ak_pages_free(w.buffers, bytes);
    return failed;
}

bool ak_pack_cache_build(const struct ak_pack_job *job, struct ak_store_writer *writer,
                         bool *cancelled, const char **why)
{
    *cancelled = false;
    int failed = write_block(job, writer->fd, cancelled);
    if (!failed && !*cancelled)
        failed = ak_store_commit(writer);
    if (!failed && !*cancelled)
        return true;
    unlinkat(writer->dir, writer->temp_name, 0);
    *why = failed == ENOSPC || failed == EDQUOT ? "the disk is full" : strerror(failed);
    return false;
}
