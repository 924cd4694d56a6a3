/* New files: without a name until they are whole, or named *.part on file systems that have no
 * unnamed files. */
#include "apps/cli/quality/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/message.h"

static int fail_write(const struct cli_new_file *f, const char *path)
{
    return app_fail("cannot write %s %s: %s", f->flag, path, strerror(errno));
}

static char *part_name(const struct cli_new_file *f)
{
    char *part;
    return asprintf(&part, "%s.%ld.part", f->path, (long)getpid()) < 0 ? NULL : part;
}

/* A descriptor of a file in the folder of f->path; -1: errno says why. */
static int open_part(struct cli_new_file *f, mode_t mode)
{
    char *copy = strdup(f->path);
    if (!copy)
        return -1;
    int fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    free(copy);
    if (fd >= 0)
        return fd;
    f->part = part_name(f);
    fd = f->part ? open(f->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) : -1;
    if (fd < 0) {
        free(f->part);
        f->part = NULL;
    }
    return fd;
}

int cli_new_file_begin(const char *flag, const char *path, struct cli_new_file *out)
{
    struct stat st;
    bool is_there = stat(path, &st) == 0;
    *out = (struct cli_new_file){ .flag = flag };
    if (is_there && !S_ISREG(st.st_mode))
        return app_fail_usage("%s %s: there is something that is not a regular file", flag, path);
    out->path = is_there ? realpath(path, NULL) : strdup(path);
    int fd = out->path ? open_part(out, is_there ? st.st_mode & 0777 : 0666) : -1;
    out->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (out->file)
        return APP_EXIT_OK;
    int code = fail_write(out, path);
    if (fd >= 0)
        close(fd);
    if (out->part)
        unlink(out->part);
    free(out->part);
    free(out->path);
    *out = (struct cli_new_file){ 0 };
    return code;
}

/* Moves a whole file to its name. */
static bool give_name(struct cli_new_file *f)
{
    char unnamed[64];
    if (!f->part) {
        snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", fileno(f->file));
        char *part = part_name(f);
        if (!part || linkat(AT_FDCWD, unnamed, AT_FDCWD, part, AT_SYMLINK_FOLLOW) != 0) {
            free(part);
            return false;
        }
        f->part = part;
    }
    return rename(f->part, f->path) == 0;
}

int cli_new_file_end(struct cli_new_file *f, int code)
{
    if (!f->file)
        return code;
    bool whole = code == APP_EXIT_OK && !ferror(f->file) && fflush(f->file) == 0 && give_name(f);
    if (!whole && code == APP_EXIT_OK)
        code = fail_write(f, f->path);
    if (!whole && f->part)
        unlink(f->part);
    fclose(f->file);
    free(f->part);
    free(f->path);
    *f = (struct cli_new_file){ 0 };
    return code;
}
