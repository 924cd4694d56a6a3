/* The grammar is that of RFC 2046, 5.1.1: parts stand between lines of "--" and the boundary, the
 * last of which ends with "--". What stands before the first and after the last is ignored. Headers
 * of a part are read as browsers, curl and Python's clients write them. */
#include "apps/server/form.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { BOUNDARY_MAX = 70 /* RFC 2046, 5.1.1 */ };

struct reader {
    const char *at, *end;
    char line[2 + 2 + BOUNDARY_MAX]; /* CR, LF, "--" and the boundary */
    size_t n_line;
    size_t n_parts;
    char *why;
};

static bool fail_form(const struct reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool fail_form(const struct reader *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->why, HTTP_FORM_WHY_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- Parameters --------------------------------------------------------- */
static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* A value up to `end`, in quotes or up to the next ";". Returns what follows it. */
static const char *read_parameter(const char *at, const char *end, const char **value, size_t *n)
{
    if (at < end && *at == '"') {
        *value = ++at;
        while (at < end && *at != '"')
            at += *at == '\\' && at + 1 < end ? 2 : 1;
        at = at < end ? at : end;
        *n = (size_t)(at - *value);
        return at < end ? at + 1 : end;
    }
    *value = at;
    while (at < end && *at != ';')
        at++;
    *n = (size_t)(at - *value);
    while (*n > 0 && is_space((*value)[*n - 1]))
        --*n;
    return at;
}

/* The parameter of a header's value, "form-data; name=x", whatever stands first in it. */
static bool find_parameter(const char *at, const char *end, const char *name, const char **value,
                           size_t *n)
{
    while (at < end && *at != ';')
        at++;
    while (at < end) {
        while (at < end && (*at == ';' || is_space(*at)))
            at++;
        const char *found = at;
        while (at < end && *at != '=' && *at != ';')
            at++;
        size_t n_found = (size_t)(at - found);
        if (at == end || *at == ';')
            continue;
        at = read_parameter(at + 1, end, value, n);
        if (n_found == strlen(name) && strncasecmp(found, name, n_found) == 0)
            return true;
        while (at < end && *at != ';')
            at++;
    }
    return false;
}

static bool read_boundary(struct reader *r, const char *type)
{
    const char *boundary;
    size_t n;
    if (!find_parameter(type, type + strlen(type), "boundary", &boundary, &n))
        return fail_form(r, "the Content-Type names no boundary");
    if (n < 1 || n > BOUNDARY_MAX)
        return fail_form(r, "the boundary of the Content-Type has %zu characters; expected 1 to %d",
                         n, BOUNDARY_MAX);
    memcpy(r->line, "\r\n--", 4);
    memcpy(r->line + 4, boundary, n);
    r->n_line = n + 4;
    return true;
}

/* ---- Boundaries --------------------------------------------------------- */
enum delimiter { DELIMITER_NONE, DELIMITER_NEXT, DELIMITER_LAST };

/* What a boundary at `at`, which follows it, begins. A longer line is none. */
static enum delimiter read_delimiter(const struct reader *r, const char *at, const char **after)
{
    if (r->end - at >= 2 && memcmp(at, "--", 2) == 0) {
        *after = r->end;
        return DELIMITER_LAST;
    }
    while (at < r->end && is_space(*at))
        at++;
    if (r->end - at < 2 || memcmp(at, "\r\n", 2) != 0)
        return DELIMITER_NONE;
    *after = at + 2;
    return DELIMITER_NEXT;
}

/* Goes behind the next boundary. *stop: where the text before it ends. */
static enum delimiter next_delimiter(struct reader *r, const char **stop)
{
    while (r->at < r->end) {
        const char *after = NULL,
                   *found = memmem(r->at, (size_t)(r->end - r->at), r->line, r->n_line);
        if (!found)
            break;
        enum delimiter kind = read_delimiter(r, found + r->n_line, &after);
        *stop = found;
        r->at = kind == DELIMITER_NONE ? found + r->n_line : after;
        if (kind != DELIMITER_NONE)
            return kind;
    }
    return DELIMITER_NONE;
}

/* The first boundary, which may be the first line of the body. */
static enum delimiter first_delimiter(struct reader *r)
{
    const char *after = NULL, *stop, *line = r->line + 2;
    size_t n = r->n_line - 2;
    if ((size_t)(r->end - r->at) >= n && memcmp(r->at, line, n) == 0) {
        enum delimiter kind = read_delimiter(r, r->at + n, &after);
        if (kind != DELIMITER_NONE) {
            r->at = after;
            return kind;
        }
    }
    return next_delimiter(r, &stop);
}

/* ---- Parts -------------------------------------------------------------- */
/* Whether a line is the header `name`; *value: behind its colon. */
static bool is_header(const char *line, const char *end, const char *name, const char **value)
{
    size_t n = strlen(name);
    if ((size_t)(end - line) <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
        return false;
    for (*value = line + n + 1; *value < end && is_space(**value);)
        ++*value;
    return true;
}

static bool has_word(const char *value, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - value) >= n && strncasecmp(value, word, n) == 0 &&
           (value + n == end || value[n] == ';' || is_space(value[n]));
}

static bool read_disposition(const struct reader *r, const char *value, const char *end,
                             struct http_form_part *part)
{
    if (!has_word(value, end, "form-data"))
        return fail_form(r, "part %zu has a Content-Disposition other than form-data",
                         r->n_parts + 1);
    if (!find_parameter(value, end, "name", &part->name, &part->n_name) || part->n_name == 0)
        return fail_form(r, "part %zu has no name", r->n_parts + 1);
    if (!find_parameter(value, end, "filename", &part->file, &part->n_file))
        part->file = NULL;
    return true;
}

static bool read_part_header(const struct reader *r, const char *line, const char *end,
                             struct http_form_part *part)
{
    const char *value;
    if (is_header(line, end, "Content-Disposition", &value)) {
        if (part->name)
            return fail_form(r, "part %zu has two headers Content-Disposition", r->n_parts + 1);
        return read_disposition(r, value, end, part);
    }
    if (is_header(line, end, "Content-Transfer-Encoding", &value) &&
        !has_word(value, end, "binary") && !has_word(value, end, "8bit") &&
        !has_word(value, end, "7bit"))
        return fail_form(r,
                         "part %zu has a Content-Transfer-Encoding; its bytes are expected as they "
                         "are",
                         r->n_parts + 1);
    return true;
}

/* Reads the headers of a part, up to the empty line behind them. */
static bool read_headers(struct reader *r, struct http_form_part *part)
{
    const char *start = r->at;
    for (;;) {
        size_t left = (size_t)(r->end - r->at);
        const char *end = memmem(r->at, left, "\r\n", 2);
        if ((size_t)((end ? end : r->end) - start) > HTTP_FORM_HEADER_BYTES_MAX)
            return fail_form(r, "part %zu has headers of more than %d bytes", r->n_parts + 1,
                             HTTP_FORM_HEADER_BYTES_MAX);
        if (!end)
            return fail_form(r, "the body ends in the headers of part %zu", r->n_parts + 1);
        const char *line = r->at;
        r->at = end + 2;
        if (line == end)
            break;
        if (!read_part_header(r, line, end, part))
            return false;
    }
    r->at -= 2; /* the boundary of an empty part may begin here */
    return part->name || fail_form(r, "part %zu has no Content-Disposition", r->n_parts + 1);
}

static bool read_part(struct reader *r, struct http_form *out, enum delimiter *next)
{
    const char *stop = r->end;
    struct http_form_part part = { 0 };
    if (r->n_parts == HTTP_FORM_PARTS_MAX)
        return fail_form(r, "the body has more than %d parts", HTTP_FORM_PARTS_MAX);
    if (!read_headers(r, &part))
        return false;
    const char *start = r->at;
    *next = next_delimiter(r, &stop);
    if (*next == DELIMITER_NONE)
        return fail_form(r, "part %zu has no end: the body ends without its boundary",
                         r->n_parts + 1);
    part.bytes = stop > start ? start + 2 : start;
    part.n = (size_t)(stop > start ? stop - part.bytes : 0);
    out->parts[r->n_parts++] = part;
    out->n = r->n_parts;
    return true;
}

bool http_form_parse(const char *type, const char *body, size_t n, struct http_form *out,
                     char why[HTTP_FORM_WHY_BYTES])
{
    struct reader r = { .at = body, .end = body + n, .why = why };
    out->n = 0;
    if (!read_boundary(&r, type))
        return false;
    enum delimiter next = first_delimiter(&r);
    if (next == DELIMITER_NONE)
        return fail_form(&r, "the body of %zu bytes does not have the boundary of its Content-Type",
                         n);
    while (next == DELIMITER_NEXT)
        if (!read_part(&r, out, &next))
            return false;
    return true;
}
