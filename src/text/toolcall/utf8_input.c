/* Input of the reply parser: makes bytes valid UTF-8. Invalid bytes become U+FFFD, an incomplete
 * character waits for its last bytes. */
#include "text/toolcall/parser.h"
#include "base/utf8.h"

static enum ak_tc_result append_utf8(struct ak_tc_parser *r, const char *bytes, size_t n)
{
    return ak_tc_check(r, ak_buffer_add(&r->text, bytes, n, &r->error));
}

static enum ak_tc_result add_invalid(struct ak_tc_parser *r)
{
    return append_utf8(r, "\xEF\xBF\xBD", 3);
}

/* Completes a character that began in earlier input; *used gets the number of bytes taken. */
static enum ak_tc_result complete_char(struct ak_tc_parser *r, const char *bytes, size_t n,
                                       size_t *used)
{
    for (*used = 0; r->n_partial && *used < n;) {
        r->partial[r->n_partial] = bytes[*used];
        struct ak_utf8 c = ak_utf8_next(r->partial, r->n_partial + 1);
        if (c.truncated) { /* at most four bytes, so `partial` has room */
            r->n_partial++;
            ++*used;
        } else if (c.valid) {
            AK_TC_TRY(append_utf8(r, r->partial, c.bytes));
            r->n_partial = 0;
            ++*used;
        } else { /* the new byte does not belong to it */
            AK_TC_TRY(add_invalid(r));
            r->n_partial = 0;
        }
    }
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_add_bytes(struct ak_tc_parser *r, const char *bytes, size_t n)
{
    size_t at;

    AK_TC_TRY(complete_char(r, bytes, n, &at));
    while (at < n) {
        size_t valid = ak_utf8_valid_bytes(bytes + at, n - at);
        AK_TC_TRY(append_utf8(r, bytes + at, valid));
        at += valid;
        if (at == n)
            break;
        struct ak_utf8 c = ak_utf8_next(bytes + at, n - at);
        if (c.truncated) {
            memcpy(r->partial, bytes + at, c.bytes);
            r->n_partial = c.bytes;
            break;
        }
        AK_TC_TRY(add_invalid(r));
        at += c.bytes;
    }
    return AK_TC_CONTINUE;
}

enum ak_tc_result ak_tc_add_end(struct ak_tc_parser *r)
{
    if (!r->n_partial)
        return AK_TC_CONTINUE;
    r->n_partial = 0;
    return add_invalid(r);
}
