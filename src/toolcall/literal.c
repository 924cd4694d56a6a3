#include "toolcall/literal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "toolcall/scan.h"
#include "toolcall/tools.h"

enum state { BEGIN, FIRST, NEXT, COLON, VALUE, AFTER, STRING };

/* How far one step went. */
enum went { ON, WAIT, DONE, BAD, FAILED };

struct reader {
    struct ak_literal *l;
    const char *text;
    size_t n, at;
    bool closed;
    struct ak_buffer *json;
    struct ak_error *error;
};

static enum went put(struct reader *r, const char *text, size_t n)
{
    return ak_buffer_add(r->json, text, n, r->error) == AKUNU_OK ? ON : FAILED;
}

static enum went put_escaped(struct reader *r, const char *text, size_t n)
{
    return ak_json_escape(text, n, r->json, r->error) == AKUNU_OK ? ON : FAILED;
}

static char end(const struct ak_literal *l)
{
    return l->ends[l->depth - 1];
}

/* Members are named in dicts and in the arguments themselves. */
static bool named(const struct ak_literal *l)
{
    return end(l) == '}' || l->depth == 1;
}

static enum went open(struct reader *r, char c)
{
    struct ak_literal *l = r->l;

    if (l->depth == AK_LITERAL_MOST_DEPTH)
        return BAD;
    l->any[l->depth] = false;
    l->ends[l->depth++] = (char)(c == '{' ? '}' : c == '[' ? ']' : ')');
    l->state = FIRST;
    r->at++;
    return put(r, named(l) ? "{" : "[", 1);
}

static enum went close(struct reader *r)
{
    struct ak_literal *l = r->l;
    bool object = named(l);

    l->depth--;
    l->state = AFTER;
    r->at++;
    enum went went = put(r, object ? "}" : "]", 1);
    return went == ON && l->depth == 0 ? DONE : went;
}

static enum went begin(struct reader *r)
{
    char c = r->text[r->at];
    return c == (r->l->quote ? '{' : '(') ? open(r, c) : BAD;
}

/* Gemma's quote is several bytes; Python's is ' or ". ON: one stands here, and r->at is behind it.
 */
static enum went quote(struct reader *r, bool name)
{
    struct ak_literal *l = r->l;
    size_t n = l->quote ? strlen(l->quote) : 1, have = r->n - r->at;

    if (l->quote && memcmp(r->text + r->at, l->quote, ak_min_size(n, have)) != 0)
        return BAD;
    if (have < n)
        return WAIT;
    l->end = r->text[r->at];
    l->name = name;
    l->state = STRING;
    r->at += n;
    return put(r, "\"", 1);
}

static bool begins_string(const struct reader *r)
{
    char c = r->text[r->at];
    return r->l->quote ? c == r->l->quote[0] : c == '"' || c == '\'';
}

/* A word or a number, up to what may stand behind it. */
static enum went word(struct reader *r, const char **start, size_t *n)
{
    *start = r->text + r->at;
    for (*n = 0; r->at + *n < r->n; ++*n) {
        char c = (*start)[*n];
        if (*n > AK_LITERAL_MOST_HELD)
            return BAD;
        if (ak_is_blank(c) || strchr(",:=()[]{}'\"<", c)) {
            r->at += *n;
            return *n ? ON : BAD;
        }
    }
    return r->closed ? BAD : WAIT;
}

/* A name without quotes, and what separates it from its value. */
static enum went bare_name(struct reader *r)
{
    const char *name;
    size_t n, from = r->at;
    enum went went = word(r, &name, &n);

    if (went != ON)
        return went;
    while (r->at < r->n && ak_is_blank(r->text[r->at]))
        r->at++;
    if (r->at == r->n || r->at - from > AK_LITERAL_MOST_HELD) {
        bool much = r->at - from > AK_LITERAL_MOST_HELD;
        r->at = from;
        return much ? BAD : WAIT;
    }
    if (r->text[r->at] != (r->l->quote ? ':' : '='))
        return BAD;
    r->at++;
    r->l->state = VALUE;
    if (put(r, "\"", 1) != ON || put_escaped(r, name, n) != ON)
        return FAILED;
    return put(r, "\": ", 3);
}

/* Before an element: its name where it has one, or the end of what is open. */
static enum went element(struct reader *r)
{
    struct ak_literal *l = r->l;

    if (r->text[r->at] == end(l))
        return close(r);
    bool *any = &l->any[l->depth - 1], before = *any;
    size_t n = r->json->n;
    if (before && put(r, ", ", 2) != ON)
        return FAILED;
    *any = true;
    if (!named(l)) {
        l->state = VALUE;
        return ON;
    }
    enum went went = begins_string(r) && l->depth > 1 ? quote(r, true) :
                     l->quote || l->depth == 1        ? bare_name(r) :
                                                        BAD;
    if (went == WAIT) { /* again later, from the comma on */
        *any = before;
        r->json->n = n;
    }
    return went;
}

static enum went scalar(struct reader *r)
{
    static const char *const words[][2] = { { "True", "true" },   { "False", "false" },
                                            { "None", "null" },   { "true", "true" },
                                            { "false", "false" }, { "null", "null" } };
    const char *start;
    size_t n;
    enum went went = word(r, &start, &n);

    if (went != ON)
        return went;
    r->l->state = AFTER;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (n == strlen(words[i][0]) && memcmp(start, words[i][0], n) == 0)
            return put(r, words[i][1], strlen(words[i][1]));
    struct ak_scan scan = { .state = AK_SCAN_VALUE, .depth = 1 };
    bool number = start[0] == '-' || (start[0] >= '0' && start[0] <= '9');
    for (size_t i = 0; i < n && number; i++)
        number = ak_scan_byte(&scan, start[i]) == AK_SCAN_MORE;
    if (number && ak_scan_byte(&scan, ' ') == AK_SCAN_MORE)
        return put(r, start, n);
    if (!r->l->quote)
        return BAD;
    /* Gemma leaves the quotes out at times. */
    if (put(r, "\"", 1) != ON || put_escaped(r, start, n) != ON)
        return FAILED;
    return put(r, "\"", 1);
}

static enum went value(struct reader *r)
{
    char c = r->text[r->at];

    if (c == '[' || c == '{' || (c == '(' && !r->l->quote))
        return open(r, c);
    return begins_string(r) ? quote(r, false) : scalar(r);
}

static enum went after(struct reader *r)
{
    if (r->text[r->at] == end(r->l))
        return close(r);
    if (r->text[r->at] != ',')
        return BAD;
    r->at++;
    r->l->state = NEXT;
    return ON;
}

static enum went end_string(struct reader *r, size_t n)
{
    r->at += n;
    if (put(r, "\"", 1) != ON)
        return FAILED;
    r->l->state = r->l->name ? COLON : AFTER;
    return ON;
}

static enum went colon(struct reader *r)
{
    if (r->text[r->at] != ':')
        return BAD;
    r->at++;
    r->l->state = VALUE;
    return put(r, ": ", 2);
}

static int hex(const char *text, size_t n, uint32_t *code)
{
    *code = 0;
    for (size_t i = 0; i < n; i++) {
        const char *digits = "0123456789abcdefABCDEF",
                   *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return -1;
        uint32_t value = (uint32_t)(digit - digits);
        *code = *code * 16 + (value > 15 ? value - 6 : value);
    }
    return 0;
}

/* One of Python's escapes. A surrogate stays one: JSON writes pairs of them. */
static enum went escape(struct reader *r)
{
    const char *text = r->text + r->at;
    size_t have = r->n - r->at;
    uint32_t code;

    if (have < 2)
        return WAIT;
    char c = text[1];
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (have < 2 + digits)
        return WAIT;
    r->at += 2 + digits;
    if (digits) {
        char json[16];
        if (hex(text + 2, digits, &code) != 0 || code > 0x10FFFF)
            return BAD;
        int n = code < 0x10000 ? snprintf(json, sizeof json, "\\u%04x", code) :
                                 snprintf(json, sizeof json, "\\u%04x\\u%04x",
                                          0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
        return put(r, json, (size_t)n);
    }
    const char *letter = c ? strchr("n\nt\tr\rb\bf\fa\av\v\\\\''\"\"", c) : NULL;
    if (letter)
        return put_escaped(r, letter + 1, 1);
    /* the line goes on; any other stays as it is */
    return c == '\n' ? ON : put_escaped(r, text, 2);
}

static enum went python_string(struct reader *r)
{
    size_t n = 0;

    while (r->at + n < r->n && r->text[r->at + n] != r->l->end && r->text[r->at + n] != '\\')
        n++;
    if (n) {
        r->at += n;
        return put_escaped(r, r->text + r->at - n, n);
    }
    return r->text[r->at] == '\\' ? escape(r) : end_string(r, 1);
}

static enum went gemma_string(struct reader *r)
{
    const char *quote = r->l->quote, *text = r->text + r->at;
    size_t have = r->n - r->at, n_quote = strlen(quote), n = 0;

    while (n < have && memcmp(text + n, quote, ak_min_size(n_quote, have - n)) != 0)
        n++;
    if (n) {
        r->at += n;
        return put_escaped(r, text, n);
    }
    return have < n_quote ? WAIT : end_string(r, n_quote);
}

static enum went step(struct reader *r)
{
    switch ((enum state)r->l->state) {
    case BEGIN: return begin(r);
    case FIRST:
    case NEXT: return element(r);
    case COLON: return colon(r);
    case VALUE: return value(r);
    case AFTER: return after(r);
    case STRING: return r->l->quote ? gemma_string(r) : python_string(r);
    }
    return BAD;
}

enum ak_literal_step ak_literal_read(struct ak_literal *l, const char *text, size_t n, bool closed,
                                     size_t *used, struct ak_buffer *json, struct ak_error *error)
{
    struct reader r = { l, text, n, 0, closed, json, error };
    enum went went = ON;

    while (went == ON && r.at < n) {
        if (l->state != STRING && ak_is_blank(text[r.at]))
            r.at++;
        else
            went = step(&r);
    }
    *used = r.at;
    return went == DONE   ? AK_LITERAL_DONE :
           went == BAD    ? AK_LITERAL_BAD :
           went == FAILED ? AK_LITERAL_FAILED :
                            AK_LITERAL_MORE;
}

enum ak_literal_step ak_literal_value(const char *text, size_t n, struct ak_buffer *json,
                                      struct ak_error *error)
{
    struct ak_literal l = { .state = VALUE, .depth = 1, .ends = ")" };
    size_t used;
    enum ak_literal_step step = ak_literal_read(&l, text, n, true, &used, json, error);

    return step == AK_LITERAL_MORE ?
               used == n && l.state == AFTER && l.depth == 1 ? AK_LITERAL_DONE : AK_LITERAL_BAD :
               step;
}
