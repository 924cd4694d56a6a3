/* Packs into a file: in windows of 2 MiB that lie at multiples of 2 MiB, each
 * packed in memory of its thread and written in one piece. So a full disk is an
 * error and no signal, and the page cache gets large folios, which the map then
 * has as huge pages. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "pack/cache.h"

enum { WINDOW_BYTES = 2 << 20, BUFFER_ALIGN = 4096 };

struct writer {
    const struct ak_pack_job *job;
    int fd;
    uint64_t slack, buffer_bytes;
    uint8_t *buffers; /* one a thread: slack, window, slack */
    struct ak_pack_windows windows;
    atomic_ullong done;
    atomic_int failed; /* errno */
    atomic_bool cancelled;
};

int ak_store_write(int fd, const void *bytes, size_t n, uint64_t at)
{
    const uint8_t *from = bytes;
    while (n > 0) {
        ssize_t written = pwrite(fd, from, n, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        from += written;
        at += (uint64_t)written;
        n -= (size_t)written;
    }
    return 0;
}

static void write_window(struct writer *w, uint64_t begin, uint8_t *buffer)
{
    uint64_t total = w->job->weights->block_bytes;
    uint64_t end = begin + WINDOW_BYTES < total ? begin + WINDOW_BYTES : total;
    struct ak_pack_range range = {
        .begin = begin, .end = end, .origin = begin - w->slack, .both_ends = true
    };
    ak_pack_read_ahead(w->job, begin + AK_PACK_READ_AHEAD_BYTES, end + AK_PACK_READ_AHEAD_BYTES);
    memset(buffer + w->slack, 0, end - begin); /* between weights */
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
    /* Room for all of it, where the file system can promise that. */
    int failed = 0;
    if (fallocate(fd, 0, AK_STORE_BLOCK_OFFSET, (off_t)total) != 0 && errno != EOPNOTSUPP &&
        errno != ENOSYS && errno != EINTR)
        failed = errno;
    if (!failed) {
        ak_pool_run(job->pool, write_task, &w);
        failed = atomic_load(&w.failed);
        *cancelled = atomic_load(&w.cancelled);
    }
    ak_pack_windows_clear(&w.windows);
    ak_pages_free(w.buffers, bytes);
    return failed;
}

/* The block first, then the header, which makes it a cache, then its name. A
 * time that does not stay as it was set would make it one that is never valid. */
int ak_store_commit(struct ak_store_writer *writer)
{
    uint8_t page[AK_STORE_HEADER_BYTES];
    struct ak_store_header checked;
    writer->header.built = (int64_t)time(NULL);
    struct timespec times[2] = { { .tv_sec = writer->header.built },
                                 { .tv_sec = writer->header.built } };
    if (fsync(writer->fd) != 0)
        return errno;
    ak_store_header_write(&writer->header, page);
    int failed = ak_store_write(writer->fd, page, sizeof page, 0);
    if (failed)
        return failed;
    if (futimens(writer->fd, times) != 0 || fsync(writer->fd) != 0)
        return errno;
    if (!ak_store_check(writer->fd, &checked))
        return EIO;
    if (renameat(writer->dir, writer->temp_name, writer->dir, writer->name) != 0)
        return errno;
    (void)fsync(writer->dir);
    return 0;
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

/* ---- Whether it fits ---------------------------------------------------- */
static bool lies_in_memory(int dir)
{
    enum { TMPFS = 0x01021994, RAMFS = (int)0x858458f6 };
    struct statfs fs;
    return fstatfs(dir, &fs) == 0 && ((int)fs.f_type == TMPFS || (int)fs.f_type == RAMFS);
}

/* A twentieth of the disk stays free, at most 1 GiB; in memory, half of what is
 * available. Asked before, a limit of file sizes costs no signal. */
const char *ak_store_check_space(int dir, uint64_t bytes, uint64_t available_memory)
{
    const uint64_t max = UINT64_C(1) << 30;
    struct statvfs disk;
    struct rlimit limit;
    if (bytes > INT64_MAX - AK_STORE_BLOCK_OFFSET)
        return "it would be too large";
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < bytes + AK_STORE_BLOCK_OFFSET)
        return "it would be larger than files may be (ulimit -f)";
    if (lies_in_memory(dir) && bytes > available_memory / 2)
        return "the folder lies in memory, and it would take more than half of what is available";
    if (fstatvfs(dir, &disk) == 0) {
        uint64_t unit = disk.f_frsize, reserve = disk.f_blocks / 20 * unit;
        uint64_t free_bytes = disk.f_bavail * unit;
        reserve = reserve < max ? reserve : max;
        if (free_bytes < reserve || free_bytes - reserve < bytes + AK_STORE_HEADER_BYTES)
            return "the disk has too little free space";
    }
    return NULL;
}
