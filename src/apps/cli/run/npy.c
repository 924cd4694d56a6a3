/* Writes .npy files. The header is padded, so that the data is aligned to 64 bytes. */
#include "apps/cli/run/npy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/message.h"

static int fail_write(const struct cli_npy *npy)
{
    return app_fail("cannot write --out %s: %s", npy->path, strerror(errno));
}

int cli_npy_create(const char *path, size_t rows, size_t columns, struct cli_npy *out)
{
    enum { PREFIX = 10, HEADER = 128 }; /* the length of the whole header is a multiple of 64 */
    char header[HEADER + 1];
    *out = (struct cli_npy){ .path = path, .columns = columns };
    out->file = fopen(path, "wb");
    if (!out->file)
        return fail_write(out);

    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = HEADER - PREFIX; /* little-endian 16 bits */
    header[9] = 0;
    int n =
        snprintf(header + PREFIX, sizeof header - PREFIX,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, columns);
    memset(header + PREFIX + n, ' ', (size_t)(HEADER - PREFIX - n - 1));
    header[HEADER - 1] = '\n';
    return fwrite(header, 1, HEADER, out->file) == HEADER ? APP_EXIT_OK : fail_write(out);
}

int cli_npy_row(struct cli_npy *npy, const float *values)
{
    return fwrite(values, sizeof *values, npy->columns, npy->file) == npy->columns ?
               APP_EXIT_OK :
               fail_write(npy);
}

int cli_npy_close(struct cli_npy *npy, int code)
{
    struct stat status;
    if (!npy->file)
        return code;
    bool regular = fstat(fileno(npy->file), &status) == 0 && S_ISREG(status.st_mode);
    if (fclose(npy->file) != 0 && code == APP_EXIT_OK)
        code = fail_write(npy);
    if (code != APP_EXIT_OK && regular)
        unlink(npy->path);
    npy->file = NULL;
    return code;
}
