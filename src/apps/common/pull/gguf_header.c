/* Walks the header of a GGUF file. The bytes are untrusted: every length is checked against a limit
 * before it is added. */
#include "apps/common/pull/gguf_header.h"

#include <stdbool.h>
#include <string.h>

static const uint64_t max_length = (uint64_t)1 << 40;

struct cursor {
    const unsigned char *bytes;
    uint64_t n, at;
    bool damaged;
};

/* Steps over `n` bytes; false if they are not all there. */
static bool skip(struct cursor *c, uint64_t n)
{
    if (n > max_length)
        c->damaged = true;
    else
        c->at += n;
    return !c->damaged && c->at <= c->n;
}

static uint64_t read_little_endian(struct cursor *c, unsigned n_bytes)
{
    uint64_t value = 0, at = c->at;
    if (!skip(c, n_bytes))
        return 0;
    for (unsigned i = n_bytes; i-- > 0;)
        value = value << 8 | c->bytes[at + i];
    return value;
}

static bool skip_text(struct cursor *c)
{
    uint64_t n = read_little_endian(c, 8);
    return c->at <= c->n && skip(c, n);
}

enum { GGUF_STRING = 8, GGUF_ARRAY = 9, N_TYPES = 13 };

static bool skip_value(struct cursor *c, uint64_t type)
{
    static const unsigned char sizes[N_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    if (type == GGUF_STRING)
        return skip_text(c);
    if (type < N_TYPES && sizes[type])
        return skip(c, sizes[type]);
    if (type != GGUF_ARRAY) {
        c->damaged = true;
        return false;
    }
    uint64_t element = read_little_endian(c, 4), n = read_little_endian(c, 8);
    if (c->at > c->n)
        return false;
    if (element < N_TYPES && sizes[element])
        return skip(c, n > max_length ? max_length + 1 : n * sizes[element]);
    if (element != GGUF_STRING)
        c->damaged = true;
    for (uint64_t i = 0; !c->damaged && i < n; i++)
        if (!skip_text(c))
            return false;
    return !c->damaged;
}

static bool skip_entry(struct cursor *c)
{
    if (!skip_text(c))
        return false;
    uint64_t type = read_little_endian(c, 4);
    return c->at <= c->n && skip_value(c, type);
}

static bool skip_tensor(struct cursor *c)
{
    if (!skip_text(c))
        return false;
    uint64_t n_dims = read_little_endian(c, 4);
    return c->at <= c->n && skip(c, n_dims * 8 + 4 + 8);
}

uint64_t app_gguf_header_size(const unsigned char *bytes, size_t n)
{
    struct cursor c = { bytes, n, 0, false };
    if (n >= 4 && memcmp(bytes, "GGUF", 4) != 0)
        return 0;
    (void)skip(&c, 4);
    uint64_t version = read_little_endian(&c, 4), n_tensors = read_little_endian(&c, 8);
    uint64_t n_entries = read_little_endian(&c, 8);
    if (n >= 8 && version != 2 && version != 3)
        return 0;
    bool goes_on = c.at <= n;
    for (uint64_t i = 0; goes_on && i < n_entries; i++)
        goes_on = skip_entry(&c);
    for (uint64_t i = 0; goes_on && i < n_tensors; i++)
        goes_on = skip_tensor(&c);
    return c.damaged ? 0 : c.at;
}
