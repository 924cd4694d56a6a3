/* Queries to the operating system. The library calls getenv here only. */
#include "base/system.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- Time and text files ------------------------------------------------ */
double ak_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool ak_system_read(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, capacity - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool ak_system_parse_range(const char **list, unsigned long *first, unsigned long *last)
{
    char *end;
    if (!isdigit((unsigned char)**list))
        return false;
    *first = *last = strtoul(*list, &end, 10);
    if (*end == '-')
        *last = strtoul(end + 1, &end, 10);
    *list = *end == ',' ? end + 1 : "";
    return true;
}

/* ---- Environment -------------------------------------------------------- */
const char *ak_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
