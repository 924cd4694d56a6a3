/* Matching of markers and names in the unread text of a reply parser. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/toolcall/parser.h"

enum ak_tc_match ak_tc_match_marker(const struct ak_tc_parser *r, size_t from, const char *marker)
{
    size_t n = strlen(marker), have = r->text.n - from;

    if (memcmp(r->text.bytes + from, marker, ak_min_size(n, have)) != 0)
        return AK_TC_MATCH_NO;
    return have >= n ? AK_TC_MATCH_YES : AK_TC_MATCH_PARTIAL;
}

enum ak_tc_match ak_tc_match_loose_marker(const struct ak_tc_parser *r, size_t from,
                                          const char *marker, size_t *after)
{
    const char *text = r->text.bytes;
    size_t n_whitespace = 0;

    for (; *marker; marker++) {
        if (*marker == ' ') {
            while (from < r->text.n && ak_tc_is_whitespace(text[from]) &&
                   n_whitespace++ < AK_TC_WHITESPACE_MAX)
                from++;
            continue;
        }
        if (from == r->text.n)
            return AK_TC_MATCH_PARTIAL;
        if (text[from++] != *marker)
            return AK_TC_MATCH_NO;
    }
    *after = from;
    return AK_TC_MATCH_YES;
}

enum ak_tc_result ak_tc_skip_whitespace(struct ak_tc_parser *r, const char *also)
{
    while (r->pos < r->text.n) {
        char c = r->text.bytes[r->pos];
        if (!ak_tc_is_whitespace(c) && !(c && strchr(also, c)))
            return AK_TC_CONTINUE;
        r->pos++;
    }
    return AK_TC_NEED_MORE;
}

enum ak_tc_result ak_tc_read_word(struct ak_tc_parser *r, const char *stops, size_t *n)
{
    const char *text = r->text.bytes + r->pos;
    size_t have = r->text.n - r->pos;

    for (*n = 0; *n <= AK_TC_NAME_MAX; ++*n) {
        if (*n == have)
            return AK_TC_NEED_MORE;
        if (ak_tc_is_whitespace(text[*n]) || !text[*n] || strchr(stops, text[*n]))
            return AK_TC_CONTINUE;
    }
    return ak_tc_set_malformed(r, "a name of more than %d bytes", AK_TC_NAME_MAX);
}

enum ak_tc_result ak_tc_set_malformed(struct ak_tc_parser *r, const char *format, ...)
{
    char message[256];
    va_list list;

    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    ak_fail(&r->call_error, AKUNU_ERROR_FORMAT, "%s", message);
    return AK_TC_MALFORMED;
}
