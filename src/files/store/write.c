/* Writes cache files: positioned writes, the commit that makes a file valid, and the check for free
 * space. */
#include "files/store/store.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

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

/* First the block, then the header, which makes the file valid, then the name. A file system that
 * does not keep the time of change would leave a file that is never valid: that is an error. */
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

static bool lies_in_memory(int dir)
{
    enum { TMPFS = 0x01021994, RAMFS = (int)0x858458f6 };
    struct statfs fs;
    return fstatfs(dir, &fs) == 0 && ((int)fs.f_type == TMPFS || (int)fs.f_type == RAMFS);
}

/* A twentieth of the disk stays free, at most 1 GiB. */
uint64_t ak_store_free_space(int dir)
{
    const uint64_t max = UINT64_C(1) << 30;
    struct statvfs disk;
    if (fstatvfs(dir, &disk) != 0)
        return UINT64_MAX;
    uint64_t unit = disk.f_frsize, reserve = disk.f_blocks / 20 * unit;
    uint64_t free_bytes = disk.f_bavail * unit;
    reserve = reserve < max ? reserve : max;
    return free_bytes > reserve ? free_bytes - reserve : 0;
}

/* In memory, half of what is available. The limit of file sizes is checked because exceeding it
 * would be a signal. */
const char *ak_store_check_space(int dir, uint64_t bytes, uint64_t available_memory)
{
    struct rlimit limit;
    if (bytes > INT64_MAX - AK_STORE_BLOCK_OFFSET)
        return "it would be too large";
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < bytes + AK_STORE_BLOCK_OFFSET)
        return "it would be larger than files may be (ulimit -f)";
    if (lies_in_memory(dir) && bytes > available_memory / 2)
        return "the folder lies in memory, and it would take more than half of what is available";
    if (ak_store_free_space(dir) < bytes + AK_STORE_HEADER_BYTES)
        return "the disk has too little free space";
    return NULL;
}
