/* Maps files, and reads little-endian values from memory. Opening is careful: `path` is the
 * user's and may name a pipe, a device or something that changes meanwhile. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"

static const char *describe_kind(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a folder";
    if (S_ISFIFO(mode))
        return "a pipe";
    if (S_ISCHR(mode) || S_ISBLK(mode))
        return "a device";
    if (S_ISSOCK(mode))
        return "a socket";
    return "no regular file";
}

static ak_status fail_open(const char *path, int code, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    path = ak_show_path(path, shown);
    switch (code) {
    case ENOENT: return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: no such file", path);
    case ENOTDIR:
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: no such file (a part of the path is not a folder)", path);
    case ELOOP: return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: a loop of symbolic links", path);
    case EACCES:
    case EPERM: return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: no permission to read it", path);
    case ENXIO: /* open's error for sockets and for absent devices */
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: a socket or a device, where a regular file is expected", path);
    default:
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: cannot be opened: %s", path, strerror(code));
    }
}

static ak_status check_kind(const struct stat *st, const char *path, struct ak_error *error)
{
    if (S_ISREG(st->st_mode))
        return AKUNU_OK;
    char shown[AK_SHOW_BYTES];
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: %s, where a regular file is expected",
                   ak_show_path(path, shown), describe_kind(st->st_mode));
}

static ak_status map_file(int fd, const char *path, struct ak_file *file, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail_open(path, errno, error);
    AK_TRY(check_kind(&st, path, error));
    if (st.st_size < 0 || (uint64_t)st.st_size > SIZE_MAX / 2)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%s: %lld bytes cannot be mapped on this machine", ak_show_path(path, shown),
                       (long long)st.st_size);

    file->path = ak_strndup(path, strlen(path));
    if (!file->path)
        return ak_fail_memory(error, "a file's path", strlen(path) + 1);
    file->bytes = (uint64_t)st.st_size;
    file->device = (uint64_t)st.st_dev;
    file->inode = (uint64_t)st.st_ino;
    file->has_name = st.st_nlink > 0;
    file->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (file->bytes == 0)
        return AKUNU_OK;
    void *data = mmap(NULL, (size_t)file->bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        int code = errno;
        ak_show_path(path, shown);
        if (code == ENOMEM)
            return ak_fail_memory(error, shown, file->bytes);
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: cannot be mapped: %s", shown,
                       strerror(code));
    }
    ak_pages_advise_huge(data, (size_t)file->bytes); /* weights may be read in place */
    file->data = data;
    file->fd = fd;
    return AKUNU_OK;
}

ak_status ak_file_open(const char *path, struct ak_file *out, struct ak_error *error)
{
    *out = (struct ak_file){ 0 };
    struct stat st;
    if (stat(path, &st) != 0)
        return fail_open(path, errno, error);
    AK_TRY(check_kind(&st, path, error)); /* opening some devices has effects */

    /* `path` may name something else since then: O_NONBLOCK, so that a pipe does not block. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_open(path, errno, error);
    ak_status status = map_file(fd, path, out, error);
    if (!out->data)
        close(fd);
    if (status != AKUNU_OK)
        ak_file_close(out);
    return status;
}

/* The name that the system knows for a descriptor. */
static void name_descriptor(int fd, char name[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, PATH_MAX - 1);
    if (n > 0)
        name[n] = '\0';
    else
        snprintf(name, PATH_MAX, "descriptor %d", fd);
}

ak_status ak_file_open_fd(int fd, struct ak_file *out, struct ak_error *error)
{
    *out = (struct ak_file){ 0 };
    char name[PATH_MAX], shown[AK_SHOW_BYTES];
    int mode = fcntl(fd, F_GETFL);
    if (mode < 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%d is not an open file descriptor", fd);
    name_descriptor(fd, name);
    if ((mode & O_ACCMODE) == O_WRONLY)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: the descriptor is not open for reading",
                       ak_show_path(name, shown));
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return fail_open(name, errno, error);
    ak_status status = map_file(own, name, out, error);
    if (!out->data)
        close(own);
    if (status != AKUNU_OK)
        ak_file_close(out);
    return status;
}

void ak_file_close(struct ak_file *file)
{
    if (file->data) {
        munmap((void *)(uintptr_t)file->data, (size_t)file->bytes);
        if (file->fd >= 0)
            close(file->fd);
    }
    ak_free(file->path);
    *file = (struct ak_file){ 0 };
}

void ak_file_release(struct ak_file *file)
{
    if (file->data && file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

/* Drops pages from the page cache, but not the first and last one where other bytes are in it: they
 * may be read next, and with them the kernel would read up to megabytes around. This needs a
 * descriptor, which may have been released. */
static void drop_page_cache(const struct ak_file *file, uint64_t begin, uint64_t end)
{
    int fd =
        file->fd >= 0 ? file->fd : open(file->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return;
    posix_fadvise(fd, (off_t)begin, (off_t)(end - begin), POSIX_FADV_DONTNEED);
    if (fd != file->fd)
        close(fd);
}

/* A fault maps the pages around it too, up to a whole huge page, but none of another mapping; and
 * pages with advice of their own are one. */
static void set_apart(const struct ak_file *file, uint64_t offset, uint64_t bytes, uint64_t page)
{
    uint64_t begin = ak_round_up(offset, page), end = (offset + bytes) / page * page;
    if (begin < end)
        madvise((void *)(uintptr_t)(file->data + begin), (size_t)(end - begin), MADV_RANDOM);
}

static int map_advice(enum ak_file_advice advice)
{
    switch (advice) {
    case AK_FILE_WILLNEED: return MADV_WILLNEED;
    case AK_FILE_RANDOM: return MADV_RANDOM;
    default: return MADV_DONTNEED;
    }
}

void ak_file_advise(const struct ak_file *file, uint64_t offset, uint64_t bytes,
                    enum ak_file_advice advice)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!file->data) /* an empty file */
        return;
    if (advice == AK_FILE_COPIED)
        set_apart(file, offset, bytes, page);
    uint64_t begin = offset / page * page, end = ak_round_up(offset + bytes, page);
    madvise((void *)(uintptr_t)(file->data + begin), (size_t)(end - begin), map_advice(advice));
    if (advice == AK_FILE_DROP_CACHE)
        drop_page_cache(file, offset, offset + bytes);
}

void ak_file_advise_at(const struct ak_file *file, const void *data, uint64_t bytes,
                       enum ak_file_advice advice)
{
    /* wraps to a huge number if `data` is before the map */
    uint64_t offset = (uint64_t)((uintptr_t)data - (uintptr_t)file->data);
    if (offset < file->bytes && bytes <= file->bytes - offset)
        ak_file_advise(file, offset, bytes, advice);
}

struct ak_cursor ak_cursor_init(const void *data, uint64_t bytes)
{
    static const uint8_t nothing;
    const uint8_t *begin = data ? data : &nothing;
    return (struct ak_cursor){ begin, begin, begin + (data ? bytes : 0), false };
}

uint64_t ak_cursor_bytes_left(const struct ak_cursor *c)
{
    return c->failed ? 0 : (uint64_t)(c->end - c->next);
}

uint64_t ak_cursor_offset(const struct ak_cursor *c)
{
    return (uint64_t)(c->next - c->begin);
}

bool ak_cursor_read_bytes(struct ak_cursor *c, uint64_t n, const uint8_t **out)
{
    if (c->failed || n > (uint64_t)(c->end - c->next)) {
        c->failed = true;
        return false;
    }
    *out = c->next;
    c->next += n;
    return true;
}

bool ak_cursor_read_u8(struct ak_cursor *c, uint8_t *out)
{
    const uint8_t *b;
    if (!ak_cursor_read_bytes(c, 1, &b))
        return false;
    *out = b[0];
    return true;
}

bool ak_cursor_read_u16(struct ak_cursor *c, uint16_t *out)
{
    const uint8_t *b;
    if (!ak_cursor_read_bytes(c, 2, &b))
        return false;
    *out = (uint16_t)(b[0] | b[1] << 8);
    return true;
}

bool ak_cursor_read_u32(struct ak_cursor *c, uint32_t *out)
{
    const uint8_t *b;
    if (!ak_cursor_read_bytes(c, 4, &b))
        return false;
    *out = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    return true;
}

bool ak_cursor_read_u64(struct ak_cursor *c, uint64_t *out)
{
    const uint8_t *b;
    if (!ak_cursor_read_bytes(c, 8, &b))
        return false;
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | b[i];
    *out = value;
    return true;
}
