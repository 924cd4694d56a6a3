/* The window moves forward in large steps and keeps what stands a little before, which scanners go
 * back to after a look ahead: without that, a look ahead at the end of the window would read the
 * whole window twice. */
#include "speech/audio/bytes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void ak_bytes_open(struct ak_bytes *b, int fd, int64_t size)
{
    b->fd = fd;
    b->size = size;
    b->first = 0;
    b->n = 0;
}

static void fill_window(struct ak_bytes *b, int64_t at)
{
    int64_t back = at - AK_BYTES_WINDOW / 4;
    b->first = at > b->first && back > b->first ? back : at;
    b->n = 0;
    while (b->n < AK_BYTES_WINDOW) {
        ssize_t got =
            pread(b->fd, b->window + b->n, AK_BYTES_WINDOW - b->n, b->first + (int64_t)b->n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        b->n += (size_t)got;
    }
}

const unsigned char *ak_bytes_at(struct ak_bytes *b, int64_t at, size_t n)
{
    if (at < 0 || n > AK_BYTES_MAX || at > b->size || (int64_t)n > b->size - at)
        return NULL;
    if (at < b->first || at - b->first > (int64_t)b->n ||
        (int64_t)b->n - (at - b->first) < (int64_t)n)
        fill_window(b, at);
    return b->n - (size_t)(at - b->first) >= n ? b->window + (at - b->first) : NULL;
}

bool ak_bytes_are(struct ak_bytes *b, int64_t at, const void *expected, size_t n)
{
    const unsigned char *found = ak_bytes_at(b, at, n);
    return found && memcmp(found, expected, n) == 0;
}

int64_t ak_bytes_find(struct ak_bytes *b, int64_t at, const void *wanted, size_t n)
{
    const unsigned char *bytes;
    while ((bytes = ak_bytes_at(b, at, n)) != NULL) {
        size_t have = b->n - (size_t)(at - b->first);
        const unsigned char *found = memmem(bytes, have, wanted, n);
        if (found)
            return at + (found - bytes);
        at += (int64_t)(have - n + 1);
    }
    return -1;
}

int64_t ak_bytes_find_any(struct ak_bytes *b, int64_t at, const char *set, size_t n)
{
    bool wanted[256] = { false };
    const unsigned char *bytes;
    for (size_t i = 0; i < n; i++)
        wanted[(unsigned char)set[i]] = true;
    while ((bytes = ak_bytes_at(b, at, 1)) != NULL) {
        size_t have = b->n - (size_t)(at - b->first), i = 0;
        while (i < have && !wanted[bytes[i]])
            i++;
        at += (int64_t)i;
        if (i < have)
            return at;
    }
    return -1;
}

uint64_t ak_bytes_big(const unsigned char *from, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | from[i];
    return value;
}

uint64_t ak_bytes_little(const unsigned char *from, size_t n)
{
    uint64_t value = 0;
    for (size_t i = n; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

void ak_bytes_put(unsigned char *to, size_t n, uint64_t value, bool big)
{
    for (size_t i = 0; i < n; i++)
        to[big ? n - 1 - i : i] = (unsigned char)(value >> 8 * i);
}
