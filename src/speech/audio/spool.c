/* The file has no name, so nothing stays behind if the process dies. */
#include "speech/audio/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "base/utf8.h"

enum { PIECE_BYTES = 1 << 16, PATH_BYTES = 4096 };

static ak_status open_unnamed(struct ak_spool *s, const char *name, struct ak_error *error)
{
    char path[PATH_BYTES], shown[AK_SHOW_BYTES];
    const char *folder = ak_env("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    s->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (s->fd < 0 && (size_t)snprintf(path, sizeof path, "%s/akunu-XXXXXX", folder) < sizeof path) {
        s->fd = mkostemp(path, O_CLOEXEC); /* a file system that has no O_TMPFILE */
        if (s->fd >= 0)
            unlink(path);
    }
    if (s->fd >= 0)
        return AKUNU_OK;
    int code = errno;
    return ak_fail(error, AKUNU_ERROR_IO, "%s: no temporary file in %s: %s", name,
                   ak_show_path(folder, shown), strerror(code));
}

ak_status ak_spool_add(struct ak_spool *s, const char *name, const void *bytes, size_t n,
                       struct ak_error *error)
{
    if (s->fd < 0)
        AK_TRY(open_unnamed(s, name, error));
    for (size_t done = 0; done < n;) {
        ssize_t put = write(s->fd, (const char *)bytes + done, n - done);
        if (put < 0 && errno != EINTR)
            return ak_fail(error, AKUNU_ERROR_IO, "%s: its temporary file: %s", name,
                           strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
    s->n += (int64_t)n;
    return AKUNU_OK;
}

ak_status ak_spool_drain(struct ak_spool *s, const char *name, int fd, struct ak_error *error)
{
    char bytes[PIECE_BYTES];
    for (;;) {
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ak_fail(error, AKUNU_ERROR_IO, "%s: cannot be read: %s", name, strerror(errno));
        AK_TRY(ak_spool_add(s, name, bytes, (size_t)got, error));
        if (got == 0)
            return AKUNU_OK;
    }
}

bool ak_spool_read(const struct ak_spool *s, int64_t at, void *bytes, size_t n)
{
    return s->fd >= 0 && pread(s->fd, bytes, n, at) == (ssize_t)n;
}

void ak_spool_close(struct ak_spool *s)
{
    if (s->fd >= 0)
        close(s->fd);
    *s = ak_spool_none();
}
