/* The history file. Every use holds a lock of it (flock), so lines stay whole and none is lost; a
 * file system without locks goes without. */
#include "apps/cli/chat/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

char *cli_history_path(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (state && state[0] == '/')
        n = asprintf(&path, "%s/akunu/history", state);
    else if (home && *home)
        n = asprintf(&path, "%s/.local/state/akunu/history", home);
    return n < 0 ? NULL : path;
}

/* Creates the folders on the way to a file, for their owner alone. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* Opens and locks a regular file; -1: errno says why not, and is 0 for what is no file, such as
 * /dev/null, by which some people keep no history. */
static int open_history(const char *path, int flags)
{
    struct stat info;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return -1;
    int lock = (flags & O_ACCMODE) == O_RDONLY ? LOCK_SH : LOCK_EX;
    while (flock(fd, lock) != 0 && errno == EINTR)
        ;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        return fd;
    close(fd);
    errno = 0;
    return -1;
}

/* The last bytes of the file, at most `capacity`, from the beginning of a line; NULL: none. */
static char *read_end(int fd, size_t capacity, size_t *n)
{
    struct stat info;
    char *text = malloc(capacity + 1);
    ssize_t got = -1;
    if (text && fstat(fd, &info) == 0) {
        off_t begin = info.st_size > (off_t)capacity ? info.st_size - (off_t)capacity : 0;
        got = pread(fd, text, capacity, begin);
        if (got > 0 && begin > 0) {
            char *newline = memchr(text, '\n', (size_t)got);
            size_t dropped = newline ? (size_t)(newline - text) + 1 : (size_t)got;
            memmove(text, text + dropped, (size_t)got - dropped);
            got -= (ssize_t)dropped;
        }
    }
    if (got <= 0) {
        free(text);
        return NULL;
    }
    text[got] = '\0';
    *n = (size_t)got;
    return text;
}

void cli_history_read(const char *path, void (*each)(const char *line, void *user), void *user)
{
    size_t n = 0;
    int fd = open_history(path, O_RDONLY);
    char *text = fd >= 0 ? read_end(fd, CLI_HISTORY_BYTES, &n) : NULL;
    if (fd >= 0)
        close(fd);
    for (char *line = text, *end; text && line < text + n; line = end + 1) {
        end = line + strcspn(line, "\n");
        *end = '\0';
        if (*line)
            each(line, user);
    }
    free(text);
}

static bool write_all(int fd, const char *text, size_t n, off_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t wrote = pwrite(fd, text + done, n - done, at + (off_t)done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        done += (size_t)wrote;
    }
    return true;
}

/* Drops the older half of the file; returns its size. The newer half is at the beginning before the
 * rest is cut off, so it is not lost if the program ends here. */
static off_t shorten(int fd, off_t size)
{
    size_t n = 0;
    char *text = read_end(fd, CLI_HISTORY_BYTES / 2, &n);
    if (text && write_all(fd, text, n, 0) && ftruncate(fd, (off_t)n) == 0)
        size = (off_t)n;
    free(text);
    return size;
}

/* Appends a line to the open file. */
static int append_line(int fd, const char *line)
{
    char *text = NULL, last = '\n';
    struct stat info;
    int error = 0;
    if (fstat(fd, &info) != 0)
        return errno;
    off_t size = info.st_size;
    if (size + (off_t)strlen(line) + 2 > CLI_HISTORY_BYTES)
        size = shorten(fd, size);
    if (size > 0 && pread(fd, &last, 1, size - 1) != 1)
        return EIO;
    int n = asprintf(&text, "%s%s\n", last == '\n' ? "" : "\n", line);
    if (n < 0)
        return ENOMEM;
    errno = EIO;
    if (!write_all(fd, text, (size_t)n, size)) {
        error = errno;
        (void)!ftruncate(fd, size);
    }
    free(text);
    return error;
}

int cli_history_add(const char *path, const char *line, bool *created)
{
    *created = false;
    if (strlen(line) > CLI_HISTORY_LINE || strchr(line, '\n') || !*line)
        return 0;
    int fd = open_history(path, O_RDWR);
    if (fd < 0 && errno == ENOENT) {
        char *folders = strdup(path);
        if (!folders)
            return ENOMEM;
        make_folders(folders);
        free(folders);
        fd = open_history(path, O_RDWR | O_CREAT);
        *created = fd >= 0;
    }
    if (fd < 0)
        return errno;
    (void)!fchmod(fd, 0600); /* of another's file it stays as it is */
    int error = append_line(fd, line);
    close(fd);
    return error;
}
