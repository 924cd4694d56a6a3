#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "toolcall/state.h"

enum ak_match ak_match(const struct ak_reply *r, size_t from, const char *marker)
{
    size_t n = strlen(marker), have = r->text.n - from;

    if (memcmp(r->text.bytes + from, marker, ak_min_size(n, have)) != 0)
        return AK_MATCH_NO;
    return have >= n ? AK_MATCH_YES : AK_MATCH_PART;
}

enum ak_match ak_match_loosely(const struct ak_reply *r, size_t from, const char *marker,
                               size_t *after)
{
    const char *text = r->text.bytes;
    size_t n_blanks = 0;

    for (; *marker; marker++) {
        if (*marker == ' ') {
            while (from < r->text.n && ak_is_blank(text[from]) && n_blanks++ < AK_MOST_BLANKS)
                from++;
            continue;
        }
        if (from == r->text.n)
            return AK_MATCH_PART;
        if (text[from++] != *marker)
            return AK_MATCH_NO;
    }
    *after = from;
    return AK_MATCH_YES;
}

enum ak_progress ak_skip_blanks(struct ak_reply *r, const char *also)
{
    while (r->at < r->text.n) {
        char c = r->text.bytes[r->at];
        if (!ak_is_blank(c) && !(c && strchr(also, c)))
            return AK_ON;
        r->at++;
    }
    return AK_WAIT;
}

enum ak_progress ak_read_word(struct ak_reply *r, const char *stops, size_t *n)
{
    const char *text = r->text.bytes + r->at;
    size_t have = r->text.n - r->at;

    for (*n = 0; *n <= AK_MOST_NAME; ++*n) {
        if (*n == have)
            return AK_WAIT;
        if (ak_is_blank(text[*n]) || !text[*n] || strchr(stops, text[*n]))
            return AK_ON;
    }
    return ak_broken(r, "a name of more than %d bytes", AK_MOST_NAME);
}

enum ak_progress ak_broken(struct ak_reply *r, const char *format, ...)
{
    char message[256];
    va_list list;

    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    ak_fail(&r->why, AKUNU_ERROR_FORMAT, "%s", message);
    return AK_BROKEN;
}
