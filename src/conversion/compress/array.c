/* Arrays in the making: PART while they are written, then NAME.npy. Version 1 of NumPy's format,
 * with a header that is always as long, so that the size of a file tells whether it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conversion/compress/compress.h"

static ak_status fail_write(const struct ak_compress_array *a, int code)
{
    return ak_fail(a->error, AKUNU_ERROR_IO, "tensors/%s: cannot write: %s", a->name,
                   strerror(code));
}

static void format_part(const struct ak_compress_array *a, char out[AK_COMPRESS_NAME_BYTES + 32])
{
    snprintf(out, AK_COMPRESS_NAME_BYTES + 32, "%s.part", a->name);
}

ak_status ak_compress_write_all(int fd, const char *name, const void *data, size_t n,
                                struct ak_error *error)
{
    for (size_t at = 0; at < n;) {
        ssize_t written = write(fd, (const char *)data + at, n - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return ak_fail(error, AKUNU_ERROR_IO, "%s: cannot write: %s", name,
                           strerror(written < 0 ? errno : ENOSPC));
        at += (size_t)written;
    }
    return AKUNU_OK;
}

/* "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4), }" */
static ak_status write_header(struct ak_compress_array *a, const char *type, unsigned n_dims,
                              const uint64_t *shape)
{
    enum { PREFIX = 10 };
    char header[AK_COMPRESS_HEADER_BYTES + 1];
    int n = snprintf(header + PREFIX, sizeof header - PREFIX,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (unsigned d = 0; d < n_dims; d++)
        n += snprintf(header + PREFIX + n, sizeof header - PREFIX - (size_t)n, "%llu,%s",
                      (unsigned long long)shape[d], d + 1 < n_dims ? " " : "");
    n += snprintf(header + PREFIX + n, sizeof header - PREFIX - (size_t)n, "), }");
    memset(header + PREFIX + n, ' ', sizeof header - PREFIX - (size_t)n);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = AK_COMPRESS_HEADER_BYTES - PREFIX;
    header[9] = 0;
    header[AK_COMPRESS_HEADER_BYTES - 1] = '\n';
    return ak_compress_array_write(a, header, AK_COMPRESS_HEADER_BYTES);
}

ak_status ak_compress_array_open(struct ak_compress_array *a, int folder, const char *safe,
                                 const char *suffix, const char *type, unsigned n_dims,
                                 const uint64_t *shape, uint64_t bytes, struct ak_error *error)
{
    char part[AK_COMPRESS_NAME_BYTES + 32];
    *a = (struct ak_compress_array){ .folder = folder, .fd = -1, .error = error };
    snprintf(a->name, sizeof a->name, "%s%s.npy", safe, suffix);
    format_part(a, part);
    a->fd = openat(folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (a->fd < 0)
        return fail_write(a, errno);
    off_t all = (off_t)(bytes + AK_COMPRESS_HEADER_BYTES);
    if (fallocate(a->fd, 0, 0, all) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return ak_compress_array_close(a, fail_write(a, errno));
    ak_status status = write_header(a, type, n_dims, shape);
    return status == AKUNU_OK ? status : ak_compress_array_close(a, status);
}

ak_status ak_compress_array_write(struct ak_compress_array *a, const void *data, size_t n)
{
    return ak_compress_write_all(a->fd, a->name, data, n, a->error);
}

ak_status ak_compress_array_close(struct ak_compress_array *a, ak_status status)
{
    char part[AK_COMPRESS_NAME_BYTES + 32];
    if (a->fd < 0)
        return status;
    format_part(a, part);
    if (status == AKUNU_OK &&
        (fdatasync(a->fd) != 0 || renameat(a->folder, part, a->folder, a->name) != 0))
        status = fail_write(a, errno);
    if (status != AKUNU_OK)
        unlinkat(a->folder, part, 0);
    close(a->fd);
    a->fd = -1;
    return status;
}

void ak_compress_array_remove(int folder, const char *safe, const char *suffix)
{
    char name[AK_COMPRESS_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s%s.npy", safe, suffix);
    unlinkat(folder, name, 0);
}
