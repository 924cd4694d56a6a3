/* Bytes in, UTF-8 out: what is none becomes U+FFFD, a character that is cut waits. */
#include "toolcall/state.h"
#include "base/utf8.h"

static enum ak_progress add(struct ak_reply *r, const char *bytes, size_t n)
{
    return ak_failed(r, ak_buffer_add(&r->text, bytes, n, &r->error));
}

static enum ak_progress add_invalid(struct ak_reply *r)
{
    return add(r, "\xEF\xBF\xBD", 3);
}

/* Completes the character whose beginning came earlier; *used bytes of the new ones. */
static enum ak_progress join(struct ak_reply *r, const char *bytes, size_t n, size_t *used)
{
    for (*used = 0; r->n_cut && *used < n;) {
        r->cut[r->n_cut] = bytes[*used];
        struct ak_utf8 c = ak_utf8_next(r->cut, r->n_cut + 1);
        if (c.truncated) { /* a character has four bytes at most, so this is not the last place */
            r->n_cut++;
            ++*used;
        } else if (c.valid) {
            AK_GO(add(r, r->cut, c.bytes));
            r->n_cut = 0;
            ++*used;
        } else { /* the new byte begins something else */
            AK_GO(add_invalid(r));
            r->n_cut = 0;
        }
    }
    return AK_ON;
}

enum ak_progress ak_intake(struct ak_reply *r, const char *bytes, size_t n)
{
    size_t at;

    AK_GO(join(r, bytes, n, &at));
    while (at < n) {
        size_t valid = ak_utf8_valid_bytes(bytes + at, n - at);
        AK_GO(add(r, bytes + at, valid));
        at += valid;
        if (at == n)
            break;
        struct ak_utf8 c = ak_utf8_next(bytes + at, n - at);
        if (c.truncated) {
            memcpy(r->cut, bytes + at, c.bytes);
            r->n_cut = c.bytes;
            break;
        }
        AK_GO(add_invalid(r));
        at += c.bytes;
    }
    return AK_ON;
}

enum ak_progress ak_intake_end(struct ak_reply *r)
{
    if (!r->n_cut)
        return AK_ON;
    r->n_cut = 0;
    return add_invalid(r);
}
