/* Parser of ECMAScript regular expressions in Unicode mode, by recursive descent. Refuses
 * lookaround, backreferences, word boundaries and properties other than general categories. */
#include "text/grammar/pattern.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "base/array.h"

struct reader {
    const char *text, *at, *end;
    struct ak_grammar_pattern *p;
    struct ak_grammar_builder builder; /* holds the failure, builds nothing */
    unsigned nesting;
};

static bool is_ok(const struct reader *r)
{
    return ak_gb_ok(&r->builder);
}
static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool take_char(struct reader *r, char c)
{
    if (peek(r) != (unsigned char)c)
        return false;
    r->at++;
    return true;
}

static uint32_t fail_pattern(struct reader *r, ak_status status, const char *what)
{
    return ak_gb_fail(&r->builder, status, "%s at character %zu", what,
                      (size_t)(r->at - r->text) + 1);
}

static uint32_t fail_format(struct reader *r, const char *what)
{
    return fail_pattern(r, AKUNU_ERROR_FORMAT, what);
}

static bool reserve_elements(struct reader *r, void *array, uint32_t *capacity, uint32_t n,
                             uint32_t more, size_t size)
{
    if (!is_ok(r) || *capacity - n >= more)
        return is_ok(r);
    if (n + more > AK_GRAMMAR_PATTERN_NODES_MAX) {
        fail_pattern(r, AKUNU_ERROR_UNSUPPORTED, "too large a pattern");
        return false;
    }
    if (ak_reserve_u32(array, capacity, n, more, size))
        return true;
    r->builder.status = ak_fail_memory(r->builder.error, "a pattern", 0);
    return false;
}

static uint32_t add_node(struct reader *r, struct ak_grammar_pattern_node n)
{
    struct ak_grammar_pattern *p = r->p;
    if (!reserve_elements(r, &p->nodes, &p->nodes_capacity, p->n_nodes, 1, sizeof *p->nodes))
        return 0;
    p->nodes[p->n_nodes] = n;
    return p->n_nodes++;
}

/* Takes ownership of the set's ranges and leaves *s empty. */
static uint32_t add_chars(struct reader *r, struct ak_grammar_char_set *s)
{
    struct ak_grammar_pattern *p = r->p;
    if (!reserve_elements(r, &p->sets, &p->sets_capacity, p->n_sets, 1, sizeof *p->sets)) {
        ak_grammar_char_set_free(s);
        return 0;
    }
    p->sets[p->n_sets] = *s;
    *s = (struct ak_grammar_char_set){ 0 };
    return add_node(
        r, (struct ak_grammar_pattern_node){ .kind = AK_GRAMMAR_PATTERN_CHARS, .a = p->n_sets++ });
}

/* Copies the items. */
static uint32_t add_list(struct reader *r, enum ak_grammar_pattern_kind kind,
                         const struct ak_gb_list *items)
{
    struct ak_grammar_pattern *p = r->p;
    if (!reserve_elements(r, &p->lists, &p->lists_capacity, p->n_lists, items->n, sizeof *p->lists))
        return 0;
    if (items->n > 0)
        memcpy(p->lists + p->n_lists, items->items, items->n * sizeof *items->items);
    p->n_lists += items->n;
    return add_node(r, (struct ak_grammar_pattern_node){
                           .kind = kind, .a = p->n_lists - items->n, .b = items->n });
}

/* ---- characters --------------------------------------------------------- */
static uint32_t parse_hex_digit(int c)
{
    return c >= '0' && c <= '9' ? (uint32_t)c - '0' :
           c >= 'a' && c <= 'f' ? (uint32_t)c - 'a' + 10 :
           c >= 'A' && c <= 'F' ? (uint32_t)c - 'A' + 10 :
                                  16;
}

static uint32_t parse_hex(struct reader *r, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++, r->at++) {
        uint32_t digit = parse_hex_digit(peek(r));
        if (digit == 16)
            return fail_format(r, "hexadecimal digits are missing");
        value = value << 4 | digit;
    }
    return value;
}

/* After "\u". */
static uint32_t parse_unicode_escape(struct reader *r)
{
    uint32_t value = 0;
    if (take_char(r, '{')) {
        do {
            uint32_t digit = parse_hex_digit(peek(r));
            if (digit == 16 || value > AK_GRAMMAR_CODE_POINT_MAX)
                return fail_format(r, "\\u{…} is not a character");
            value = value << 4 | digit;
            r->at++;
        } while (!take_char(r, '}'));
    } else {
        value = parse_hex(r, 4);
        if (value >> 10 == 0xd800 >> 10 && r->end - r->at >= 6 && r->at[0] == '\\' &&
            r->at[1] == 'u') {
            r->at += 2;
            uint32_t low = parse_hex(r, 4);
            value = low >> 10 == 0xdc00 >> 10 ? 0x10000 + ((value & 0x3ff) << 10 | (low & 0x3ff)) :
                                                UINT32_MAX;
        }
    }
    if (is_ok(r) && (value > AK_GRAMMAR_CODE_POINT_MAX || (value >= 0xd800 && value <= 0xdfff)))
        return fail_format(r, "an escape that is not a character");
    return value;
}

/* A class escape, after the backslash; false: it is a character escape. */
static bool parse_class_escape(struct reader *r, struct ak_grammar_char_set *s)
{
    int c = peek(r);
    if (c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S') {
        r->at++;
        ak_grammar_char_set_add_class(&r->builder, s, (char)c);
        return true;
    }
    if (c != 'p' && c != 'P')
        return false;
    r->at++;
    const char *start = r->at + 1,
               *close = r->at < r->end ? memchr(r->at, '}', (size_t)(r->end - r->at)) : NULL;
    if (peek(r) != '{' || !close) {
        fail_format(r, "\\p without {…}");
    } else if (!ak_grammar_char_set_add_property(&r->builder, s, start, (size_t)(close - start))) {
        fail_pattern(r, AKUNU_ERROR_UNSUPPORTED,
                     "a property of characters other than a general category");
    } else {
        r->at = close + 1;
        if (c == 'P')
            ak_grammar_char_set_invert(&r->builder, s);
    }
    return true;
}

/* A character escape, after the backslash. */
static uint32_t parse_character_escape(struct reader *r, bool in_class)
{
    int c = peek(r);
    static const char syntax[] = "^$\\.*+?()[]{}|/";
    if (c < 0)
        return fail_format(r, "a backslash at the end");
    r->at++;
    switch (c) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'v': return '\v';
    case 'f': return '\f';
    case 'r': return '\r';
    case 'x': return parse_hex(r, 2);
    case 'u': return parse_unicode_escape(r);
    case '0':
        if (peek(r) >= '0' && peek(r) <= '9')
            return fail_format(r, "an octal escape");
        return 0;
    case 'c':
        c = peek(r) | 0x20;
        if (c < 'a' || c > 'z')
            return fail_format(r, "\\c without a letter");
        r->at++;
        return (uint32_t)c & 31;
    case 'b':
        if (in_class)
            return '\b';
        r->at--;
        return fail_pattern(r, AKUNU_ERROR_UNSUPPORTED, "a word boundary (\\b)");
    case 'B': r->at--; return fail_pattern(r, AKUNU_ERROR_UNSUPPORTED, "a word boundary (\\B)");
    case 'k': r->at--; return fail_pattern(r, AKUNU_ERROR_UNSUPPORTED, "a backreference (\\k)");
    default:
        if (strchr(syntax, c) || (in_class && c == '-'))
            return (uint32_t)c;
        r->at--;
        if (c >= '1' && c <= '9')
            return fail_pattern(r, AKUNU_ERROR_UNSUPPORTED, "a backreference");
        return fail_format(r, "an unknown escape");
    }
}

static uint32_t parse_character(struct reader *r)
{
    struct ak_utf8 c = ak_utf8_next(r->at, (size_t)(r->end - r->at));
    r->at += c.bytes;
    return c.code;
}

/* One member of a class. true: a class of its own, which was added to `s`, or a failure; false: the
 * character *c. */
static bool parse_class_member(struct reader *r, struct ak_grammar_char_set *s, uint32_t *c)
{
    struct ak_grammar_char_set some = { 0 };
    if (r->at >= r->end) {
        fail_format(r, "a class without an end");
        return true;
    }
    if (!take_char(r, '\\')) {
        *c = parse_character(r);
        return false;
    }
    bool is_class = parse_class_escape(r, &some);
    for (uint32_t i = 0; i < some.n; i++)
        ak_grammar_char_set_add(&r->builder, s, some.ranges[i].low, some.ranges[i].high);
    ak_grammar_char_set_free(&some);
    if (!is_class)
        *c = parse_character_escape(r, true);
    return is_class;
}

/* After '['. */
static uint32_t parse_class(struct reader *r)
{
    struct ak_grammar_char_set s = { 0 };
    bool inverted = take_char(r, '^');
    while (is_ok(r) && !take_char(r, ']')) {
        uint32_t low = 0, high;
        bool is_class = parse_class_member(r, &s, &low);
        high = low;
        if (is_ok(r) && peek(r) == '-' && r->at + 1 < r->end && r->at[1] != ']') {
            r->at++;
            if (is_class | parse_class_member(r, &s, &high))
                fail_format(r, "a range with a class as its end");
            else if (high < low)
                fail_format(r, "a range that falls");
        }
        if (is_ok(r) && !is_class)
            ak_grammar_char_set_add(&r->builder, &s, low, high);
    }
    ak_grammar_char_set_normalize(&s);
    if (inverted)
        ak_grammar_char_set_invert(&r->builder, &s);
    return add_chars(r, &s);
}

/* ---- structure ---------------------------------------------------------- */
static uint32_t parse_alternation(struct reader *r);

/* After '('. */
static uint32_t parse_group(struct reader *r)
{
    if (take_char(r, '?')) {
        if (r->end - r->at >= 2 && r->at[0] == '<' && r->at[1] != '=' && r->at[1] != '!') {
            const char *close = memchr(r->at, '>', (size_t)(r->end - r->at));
            if (!close)
                return fail_format(r, "a group's name without an end");
            r->at = close + 1;
        } else if (!take_char(r, ':')) {
            return fail_pattern(r, AKUNU_ERROR_UNSUPPORTED,
                                peek(r) == '=' || peek(r) == '!' || peek(r) == '<' ?
                                    "lookaround (\"(?\")" :
                                    "a kind of group (\"(?\")");
        }
    }
    if (++r->nesting > AK_GRAMMAR_PATTERN_NESTING_MAX)
        return fail_pattern(r, AKUNU_ERROR_UNSUPPORTED, "groups nested too deep");
    uint32_t inner = parse_alternation(r);
    if (is_ok(r) && !take_char(r, ')'))
        fail_format(r, "a group without an end");
    r->nesting--;
    return inner;
}

static uint32_t parse_atom(struct reader *r)
{
    struct ak_grammar_char_set s = { 0 };
    int c = peek(r);
    switch (c) {
    case '(': r->at++; return parse_group(r);
    case '[': r->at++; return parse_class(r);
    case '^':
        r->at++;
        return add_node(r, (struct ak_grammar_pattern_node){ .kind = AK_GRAMMAR_PATTERN_BEGIN });
    case '$':
        r->at++;
        return add_node(r, (struct ak_grammar_pattern_node){ .kind = AK_GRAMMAR_PATTERN_END });
    case '*':
    case '+':
    case '?': return fail_format(r, "nothing to repeat");
    case '{':
    case '}':
    case ']': return fail_format(r, "an unmatched bracket");
    case '.':
        r->at++;
        ak_grammar_char_set_add_class(&r->builder, &s, '.');
        return add_chars(r, &s);
    case '\\':
        r->at++;
        if (parse_class_escape(r, &s))
            return add_chars(r, &s);
        c = (int)parse_character_escape(r, false);
        ak_grammar_char_set_add(&r->builder, &s, (uint32_t)c, (uint32_t)c);
        return add_chars(r, &s);
    default:
        c = (int)parse_character(r);
        ak_grammar_char_set_add(&r->builder, &s, (uint32_t)c, (uint32_t)c);
        return add_chars(r, &s);
    }
}

static bool parse_number(struct reader *r, uint32_t *out)
{
    if (peek(r) < '0' || peek(r) > '9')
        return false;
    uint64_t value = 0;
    for (; peek(r) >= '0' && peek(r) <= '9'; r->at++)
        value = value < UINT32_MAX ? value * 10 + (uint64_t)(peek(r) - '0') : value;
    *out = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX - 1;
    return true;
}

/* After '{'. */
static void parse_repeat_counts(struct reader *r, uint32_t *low, uint32_t *high)
{
    bool closed = parse_number(r, low);
    *high = *low;
    if (closed && take_char(r, ',') && !parse_number(r, high))
        *high = AK_GRAMMAR_UNBOUNDED;
    if (!closed || !take_char(r, '}'))
        fail_format(r, "a repeat count is expected in {…}");
    else if (*high < *low)
        fail_format(r, "repeat counts out of order");
}

static uint32_t parse_repeat(struct reader *r)
{
    uint32_t low = 0, high = AK_GRAMMAR_UNBOUNDED, inner = parse_atom(r);
    if (take_char(r, '+'))
        low = 1;
    else if (take_char(r, '?'))
        high = 1;
    else if (take_char(r, '{'))
        parse_repeat_counts(r, &low, &high);
    else if (!take_char(r, '*'))
        return inner;
    take_char(r, '?'); /* a lazy repeat matches the same texts */
    return add_node(r,
                    (struct ak_grammar_pattern_node){
                        .kind = AK_GRAMMAR_PATTERN_REPEAT, .a = inner, .low = low, .high = high });
}

static uint32_t parse_sequence(struct reader *r)
{
    struct ak_gb_list items = { 0 };
    while (is_ok(r) && peek(r) >= 0 && peek(r) != '|' && peek(r) != ')')
        ak_gb_append(&r->builder, &items, parse_repeat(r));
    uint32_t out = add_list(r, AK_GRAMMAR_PATTERN_SEQUENCE, &items);
    ak_free(items.items);
    return out;
}

static uint32_t parse_alternation(struct reader *r)
{
    struct ak_gb_list items = { 0 };
    do
        ak_gb_append(&r->builder, &items, parse_sequence(r));
    while (is_ok(r) && take_char(r, '|'));
    uint32_t out = add_list(r, AK_GRAMMAR_PATTERN_ALTERNATION, &items);
    ak_free(items.items);
    return out;
}

ak_status ak_grammar_pattern_parse(const char *text, size_t n, struct ak_grammar_pattern *out,
                                   struct ak_error *error)
{
    struct reader r = {
        .text = text, .at = text, .end = text + n, .p = out, .builder = { .error = error }
    };
    *out = (struct ak_grammar_pattern){ 0 };
    if (n > AK_GRAMMAR_PATTERN_BYTES_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "it has %zu bytes: %d are the most", n,
                       AK_GRAMMAR_PATTERN_BYTES_MAX);
    if (!ak_is_utf8(text, n))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "it is not valid UTF-8");
    out->root = parse_alternation(&r);
    if (is_ok(&r) && r.at < r.end)
        fail_format(&r, "\")\" without \"(\"");
    return r.builder.status;
}

void ak_grammar_pattern_free(struct ak_grammar_pattern *p)
{
    for (uint32_t i = 0; i < p->n_sets; i++)
        ak_grammar_char_set_free(&p->sets[i]);
    ak_free(p->nodes);
    ak_free(p->sets);
    ak_free(p->lists);
    *p = (struct ak_grammar_pattern){ 0 };
}

ak_status ak_grammar_dfa_make_pattern(const char *text, size_t n, struct ak_grammar_dfa *out,
                                      struct ak_error *error)
{
    struct ak_grammar_pattern p;
    *out = (struct ak_grammar_dfa){ 0 };
    ak_status status = ak_grammar_pattern_parse(text, n, &p, error);
    if (status == AKUNU_OK)
        status = ak_grammar_pattern_compile(&p, out, error);
    ak_grammar_pattern_free(&p);
    return status;
}
