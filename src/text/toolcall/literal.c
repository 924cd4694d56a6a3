/* Conversion of Python and Gemma literals to JSON. Each step reads one element, quote, character or
 * bracket, or needs more text. */
#include "text/toolcall/scan.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "text/toolcall/toolcall.h"

enum state { BEGIN, FIRST, NEXT, COLON, VALUE, VALUE_END, STRING };

/* Result of one step. */
enum result { CONTINUE, NEED_MORE, DONE, BAD, FAILED };

struct reader {
    struct ak_tc_literal *l;
    const char *text;
    size_t n, pos;
    bool is_closed;
    struct ak_buffer *json;
    struct ak_error *error;
};

static enum result put(struct reader *r, const char *text, size_t n)
{
    return ak_buffer_add(r->json, text, n, r->error) == AKUNU_OK ? CONTINUE : FAILED;
}

static enum result put_escaped(struct reader *r, const char *text, size_t n)
{
    return ak_tc_put_escaped(text, n, r->json, r->error) == AKUNU_OK ? CONTINUE : FAILED;
}

static char get_closer(const struct ak_tc_literal *l)
{
    return l->closers[l->depth - 1];
}

/* Elements have names in dicts and in the arguments themselves. */
static bool has_names(const struct ak_tc_literal *l)
{
    return get_closer(l) == '}' || l->depth == 1;
}

static enum result open_value(struct reader *r, char c)
{
    struct ak_tc_literal *l = r->l;

    if (l->depth == AK_TC_LITERAL_DEPTH_MAX)
        return BAD;
    l->has_element[l->depth] = false;
    l->closers[l->depth++] = (char)(c == '{' ? '}' : c == '[' ? ']' : ')');
    l->state = FIRST;
    r->pos++;
    return put(r, has_names(l) ? "{" : "[", 1);
}

static enum result close_value(struct reader *r)
{
    struct ak_tc_literal *l = r->l;
    bool object = has_names(l);

    l->depth--;
    l->state = VALUE_END;
    r->pos++;
    enum result result = put(r, object ? "}" : "]", 1);
    return result == CONTINUE && l->depth == 0 ? DONE : result;
}

static enum result read_begin(struct reader *r)
{
    char c = r->text[r->pos];
    return c == (r->l->quote ? '{' : '(') ? open_value(r, c) : BAD;
}

/* Reads an opening quote: Gemma's marker, or ' or " of Python. `name`: it opens the name of a
 * member. */
static enum result read_quote(struct reader *r, bool name)
{
    struct ak_tc_literal *l = r->l;
    size_t n = l->quote ? strlen(l->quote) : 1, have = r->n - r->pos;

    if (l->quote && memcmp(r->text + r->pos, l->quote, ak_min_size(n, have)) != 0)
        return BAD;
    if (have < n)
        return NEED_MORE;
    l->quote_char = r->text[r->pos];
    l->in_name = name;
    l->state = STRING;
    r->pos += n;
    return put(r, "\"", 1);
}

static bool begins_string(const struct reader *r)
{
    char c = r->text[r->pos];
    return r->l->quote ? c == r->l->quote[0] : c == '"' || c == '\'';
}

/* Reads a word or a number up to a delimiter. */
static enum result read_word(struct reader *r, const char **start, size_t *n)
{
    *start = r->text + r->pos;
    for (*n = 0; r->pos + *n < r->n; ++*n) {
        char c = (*start)[*n];
        if (*n > AK_TC_LITERAL_HELD_MAX)
            return BAD;
        if (ak_tc_is_whitespace(c) || strchr(",:=()[]{}'\"<", c)) {
            r->pos += *n;
            return *n ? CONTINUE : BAD;
        }
    }
    return r->is_closed ? BAD : NEED_MORE;
}

/* Reads a name without quotes and the separator before its value. */
static enum result read_bare_name(struct reader *r)
{
    const char *name;
    size_t n, from = r->pos;
    enum result result = read_word(r, &name, &n);

    if (result != CONTINUE)
        return result;
    while (r->pos < r->n && ak_tc_is_whitespace(r->text[r->pos]))
        r->pos++;
    if (r->pos == r->n || r->pos - from > AK_TC_LITERAL_HELD_MAX) {
        bool much = r->pos - from > AK_TC_LITERAL_HELD_MAX;
        r->pos = from;
        return much ? BAD : NEED_MORE;
    }
    if (r->text[r->pos] != (r->l->quote ? ':' : '='))
        return BAD;
    r->pos++;
    r->l->state = VALUE;
    if (put(r, "\"", 1) != CONTINUE || put_escaped(r, name, n) != CONTINUE)
        return FAILED;
    return put(r, "\": ", 3);
}

/* Before an element: reads its name, if elements have names, or the closing bracket. */
static enum result read_element(struct reader *r)
{
    struct ak_tc_literal *l = r->l;

    if (r->text[r->pos] == get_closer(l))
        return close_value(r);
    bool *has_element = &l->has_element[l->depth - 1], before = *has_element;
    size_t n = r->json->n;
    if (before && put(r, ", ", 2) != CONTINUE)
        return FAILED;
    *has_element = true;
    if (!has_names(l)) {
        l->state = VALUE;
        return CONTINUE;
    }
    enum result result = begins_string(r) && l->depth > 1 ? read_quote(r, true) :
                         l->quote || l->depth == 1        ? read_bare_name(r) :
                                                            BAD;
    if (result == NEED_MORE) { /* undo, to try again from the comma */
        *has_element = before;
        r->json->n = n;
    }
    return result;
}

static enum result read_scalar(struct reader *r)
{
    static const char *const words[][2] = { { "True", "true" },   { "False", "false" },
                                            { "None", "null" },   { "true", "true" },
                                            { "false", "false" }, { "null", "null" } };
    const char *start;
    size_t n;
    enum result result = read_word(r, &start, &n);

    if (result != CONTINUE)
        return result;
    r->l->state = VALUE_END;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (n == strlen(words[i][0]) && memcmp(start, words[i][0], n) == 0)
            return put(r, words[i][1], strlen(words[i][1]));
    struct ak_tc_scan scan = { .state = AK_TC_SCAN_VALUE, .depth = 1 };
    bool number = start[0] == '-' || (start[0] >= '0' && start[0] <= '9');
    for (size_t i = 0; i < n && number; i++)
        number = ak_tc_scan_byte(&scan, start[i]) == AK_TC_SCAN_MORE;
    if (number && ak_tc_scan_byte(&scan, ' ') == AK_TC_SCAN_MORE)
        return put(r, start, n);
    if (!r->l->quote)
        return BAD;
    /* Gemma sometimes omits the quotes. */
    if (put(r, "\"", 1) != CONTINUE || put_escaped(r, start, n) != CONTINUE)
        return FAILED;
    return put(r, "\"", 1);
}

static enum result read_literal(struct reader *r)
{
    char c = r->text[r->pos];

    if (c == '[' || c == '{' || (c == '(' && !r->l->quote))
        return open_value(r, c);
    return begins_string(r) ? read_quote(r, false) : read_scalar(r);
}

static enum result read_separator(struct reader *r)
{
    if (r->text[r->pos] == get_closer(r->l))
        return close_value(r);
    if (r->text[r->pos] != ',')
        return BAD;
    r->pos++;
    r->l->state = NEXT;
    return CONTINUE;
}

static enum result end_string(struct reader *r, size_t n)
{
    r->pos += n;
    if (put(r, "\"", 1) != CONTINUE)
        return FAILED;
    r->l->state = r->l->in_name ? COLON : VALUE_END;
    return CONTINUE;
}

static enum result read_colon(struct reader *r)
{
    if (r->text[r->pos] != ':')
        return BAD;
    r->pos++;
    r->l->state = VALUE;
    return put(r, ": ", 2);
}

static int parse_hex(const char *text, size_t n, uint32_t *code)
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

/* Reads an escape of Python. A surrogate is kept, since JSON writes pairs of them. */
static enum result read_escape(struct reader *r)
{
    const char *text = r->text + r->pos;
    size_t have = r->n - r->pos;
    uint32_t code;

    if (have < 2)
        return NEED_MORE;
    char c = text[1];
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (have < 2 + digits)
        return NEED_MORE;
    r->pos += 2 + digits;
    if (digits) {
        char json[16];
        if (parse_hex(text + 2, digits, &code) != 0 || code > 0x10FFFF)
            return BAD;
        int n = code < 0x10000 ? snprintf(json, sizeof json, "\\u%04x", code) :
                                 snprintf(json, sizeof json, "\\u%04x\\u%04x",
                                          0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
        return put(r, json, (size_t)n);
    }
    const char *letter = c ? strchr("n\nt\tr\rb\bf\fa\av\v\\\\''\"\"", c) : NULL;
    if (letter)
        return put_escaped(r, letter + 1, 1);
    /* a continued line; an unknown escape stays as it is */
    return c == '\n' ? CONTINUE : put_escaped(r, text, 2);
}

static enum result read_python_string(struct reader *r)
{
    size_t n = 0;

    while (r->pos + n < r->n && r->text[r->pos + n] != r->l->quote_char &&
           r->text[r->pos + n] != '\\')
        n++;
    if (n) {
        r->pos += n;
        return put_escaped(r, r->text + r->pos - n, n);
    }
    return r->text[r->pos] == '\\' ? read_escape(r) : end_string(r, 1);
}

static enum result read_gemma_string(struct reader *r)
{
    const char *quote = r->l->quote, *text = r->text + r->pos;
    size_t have = r->n - r->pos, n_quote = strlen(quote), n = 0;

    while (n < have && memcmp(text + n, quote, ak_min_size(n_quote, have - n)) != 0)
        n++;
    if (n) {
        r->pos += n;
        return put_escaped(r, text, n);
    }
    return have < n_quote ? NEED_MORE : end_string(r, n_quote);
}

static enum result read_state(struct reader *r)
{
    switch ((enum state)r->l->state) {
    case BEGIN: return read_begin(r);
    case FIRST:
    case NEXT: return read_element(r);
    case COLON: return read_colon(r);
    case VALUE: return read_literal(r);
    case VALUE_END: return read_separator(r);
    case STRING: return r->l->quote ? read_gemma_string(r) : read_python_string(r);
    }
    return BAD;
}

enum ak_tc_literal_result ak_tc_literal_read(struct ak_tc_literal *l, const char *text, size_t n,
                                             bool closed, size_t *used, struct ak_buffer *json,
                                             struct ak_error *error)
{
    struct reader r = { l, text, n, 0, closed, json, error };
    enum result result = CONTINUE;

    while (result == CONTINUE && r.pos < n) {
        if (l->state != STRING && ak_tc_is_whitespace(text[r.pos]))
            r.pos++;
        else
            result = read_state(&r);
    }
    *used = r.pos;
    return result == DONE   ? AK_TC_LITERAL_DONE :
           result == BAD    ? AK_TC_LITERAL_BAD :
           result == FAILED ? AK_TC_LITERAL_FAILED :
                              AK_TC_LITERAL_MORE;
}

enum ak_tc_literal_result ak_tc_literal_convert(const char *text, size_t n, struct ak_buffer *json,
                                                struct ak_error *error)
{
    struct ak_tc_literal l = { .state = VALUE, .depth = 1, .closers = ")" };
    size_t used;
    enum ak_tc_literal_result step = ak_tc_literal_read(&l, text, n, true, &used, json, error);

    return step == AK_TC_LITERAL_MORE ? used == n && l.state == VALUE_END && l.depth == 1 ?
                                        AK_TC_LITERAL_DONE :
                                        AK_TC_LITERAL_BAD :
                                        step;
}
