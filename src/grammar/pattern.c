#include "grammar/pattern.h"

#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/utf8.h"

struct reader {
    const char *text, *at, *end;
    struct ak_pattern *p;
    struct ak_build build; /* keeps the failure; builds nothing */
    unsigned nesting;
};

static bool ok(const struct reader *r)
{
    return ak_build_ok(&r->build);
}
static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != (unsigned char)c)
        return false;
    r->at++;
    return true;
}

static uint32_t fail(struct reader *r, ak_status status, const char *what)
{
    return ak_build_fail(&r->build, status, "%s at character %zu", what,
                         (size_t)(r->at - r->text) + 1);
}

static uint32_t wrong(struct reader *r, const char *what)
{
    return fail(r, AKUNU_ERROR_FORMAT, what);
}

static bool room(struct reader *r, void *array, uint32_t *capacity, uint32_t n, uint32_t more,
                 size_t size)
{
    void **at = array, *grown;
    if (!ok(r) || *capacity - n >= more)
        return ok(r);
    if (n + more > AK_PATTERN_MOST_NODES) {
        fail(r, AKUNU_ERROR_UNSUPPORTED, "too large a pattern");
        return false;
    }
    grown = ak_realloc(*at, (size_t)(n + more) * 2, size);
    if (!grown) {
        r->build.status = ak_fail_memory(r->build.error, "a pattern", 0);
        return false;
    }
    *at = grown;
    *capacity = (n + more) * 2;
    return true;
}

static uint32_t node(struct reader *r, struct ak_pattern_node n)
{
    struct ak_pattern *p = r->p;
    if (!room(r, &p->nodes, &p->room_nodes, p->n_nodes, 1, sizeof *p->nodes))
        return 0;
    p->nodes[p->n_nodes] = n;
    return p->n_nodes++;
}

/* Takes over the set. */
static uint32_t chars(struct reader *r, struct ak_char_set *s)
{
    struct ak_pattern *p = r->p;
    if (!room(r, &p->sets, &p->room_sets, p->n_sets, 1, sizeof *p->sets)) {
        ak_char_set_free(s);
        return 0;
    }
    p->sets[p->n_sets] = *s;
    *s = (struct ak_char_set){ 0 };
    return node(r, (struct ak_pattern_node){ .kind = AK_PATTERN_CHARS, .a = p->n_sets++ });
}

/* Takes over nothing: the items are copied. */
static uint32_t list(struct reader *r, enum ak_pattern_kind kind, const struct ak_part_list *items)
{
    struct ak_pattern *p = r->p;
    if (!room(r, &p->lists, &p->room_lists, p->n_lists, items->n, sizeof *p->lists))
        return 0;
    if (items->n > 0)
        memcpy(p->lists + p->n_lists, items->items, items->n * sizeof *items->items);
    p->n_lists += items->n;
    return node(
        r, (struct ak_pattern_node){ .kind = kind, .a = p->n_lists - items->n, .b = items->n });
}

/* ---- characters --------------------------------------------------------- */
static uint32_t hex_digit(int c)
{
    return c >= '0' && c <= '9' ? (uint32_t)c - '0' :
           c >= 'a' && c <= 'f' ? (uint32_t)c - 'a' + 10 :
           c >= 'A' && c <= 'F' ? (uint32_t)c - 'A' + 10 :
                                  16;
}

static uint32_t hex(struct reader *r, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++, r->at++) {
        uint32_t digit = hex_digit(peek(r));
        if (digit == 16)
            return wrong(r, "hexadecimal digits are missing");
        value = value << 4 | digit;
    }
    return value;
}

/* After "\u". */
static uint32_t unicode(struct reader *r)
{
    uint32_t value = 0;
    if (take(r, '{')) {
        do {
            uint32_t digit = hex_digit(peek(r));
            if (digit == 16 || value > AK_CHAR_MOST)
                return wrong(r, "\\u{…} is no character");
            value = value << 4 | digit;
            r->at++;
        } while (!take(r, '}'));
    } else {
        value = hex(r, 4);
        if (value >> 10 == 0xd800 >> 10 && r->end - r->at >= 6 && r->at[0] == '\\' &&
            r->at[1] == 'u') {
            r->at += 2;
            uint32_t low = hex(r, 4);
            value = low >> 10 == 0xdc00 >> 10 ? 0x10000 + ((value & 0x3ff) << 10 | (low & 0x3ff)) :
                                                UINT32_MAX;
        }
    }
    if (ok(r) && (value > AK_CHAR_MOST || (value >= 0xd800 && value <= 0xdfff)))
        return wrong(r, "an escape that is no character");
    return value;
}

/* A class after a backslash: false where it is a character. */
static bool class_escape(struct reader *r, struct ak_char_set *s)
{
    int c = peek(r);
    if (c == 'd' || c == 'D' || c == 'w' || c == 'W' || c == 's' || c == 'S') {
        r->at++;
        ak_class_of_letter(&r->build, s, (char)c);
        return true;
    }
    if (c != 'p' && c != 'P')
        return false;
    r->at++;
    const char *start = r->at + 1,
               *close = r->at < r->end ? memchr(r->at, '}', (size_t)(r->end - r->at)) : NULL;
    if (peek(r) != '{' || !close) {
        wrong(r, "\\p without {…}");
    } else if (!ak_class_of_property(&r->build, s, start, (size_t)(close - start))) {
        fail(r, AKUNU_ERROR_UNSUPPORTED, "a property of characters other than a general category");
    } else {
        r->at = close + 1;
        if (c == 'P')
            ak_char_set_invert(&r->build, s);
    }
    return true;
}

/* A character after a backslash. */
static uint32_t character_escape(struct reader *r, bool in_class)
{
    int c = peek(r);
    static const char syntax[] = "^$\\.*+?()[]{}|/";
    if (c < 0)
        return wrong(r, "a backslash at the end");
    r->at++;
    switch (c) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'v': return '\v';
    case 'f': return '\f';
    case 'r': return '\r';
    case 'x': return hex(r, 2);
    case 'u': return unicode(r);
    case '0':
        if (peek(r) >= '0' && peek(r) <= '9')
            return wrong(r, "an octal escape");
        return 0;
    case 'c':
        c = peek(r) | 0x20;
        if (c < 'a' || c > 'z')
            return wrong(r, "\\c without a letter");
        r->at++;
        return (uint32_t)c & 31;
    case 'b':
        if (in_class)
            return '\b';
        r->at--;
        return fail(r, AKUNU_ERROR_UNSUPPORTED, "a boundary of words (\\b)");
    case 'B': r->at--; return fail(r, AKUNU_ERROR_UNSUPPORTED, "a boundary of words (\\B)");
    case 'k': r->at--; return fail(r, AKUNU_ERROR_UNSUPPORTED, "a reference back (\\k)");
    default:
        if (strchr(syntax, c) || (in_class && c == '-'))
            return (uint32_t)c;
        r->at--;
        if (c >= '1' && c <= '9')
            return fail(r, AKUNU_ERROR_UNSUPPORTED, "a reference back");
        return wrong(r, "an unknown escape");
    }
}

static uint32_t character(struct reader *r)
{
    struct ak_utf8 c = ak_utf8_next(r->at, (size_t)(r->end - r->at));
    r->at += c.bytes;
    return c.code;
}

/* One member of a class; true: it is a class itself, and was added. */
static bool class_member(struct reader *r, struct ak_char_set *s, uint32_t *c)
{
    struct ak_char_set some = { 0 };
    if (r->at >= r->end) {
        wrong(r, "a class without an end");
        return true;
    }
    if (!take(r, '\\')) {
        *c = character(r);
        return false;
    }
    bool is_class = class_escape(r, &some);
    for (uint32_t i = 0; i < some.n; i++)
        ak_char_set_add(&r->build, s, some.ranges[i].low, some.ranges[i].high);
    ak_char_set_free(&some);
    if (!is_class)
        *c = character_escape(r, true);
    return is_class;
}

/* After '['. */
static uint32_t class(struct reader *r)
{
    struct ak_char_set s = { 0 };
    bool inverted = take(r, '^');
    while (ok(r) && !take(r, ']')) {
        uint32_t low = 0, high;
        bool is_class = class_member(r, &s, &low);
        high = low;
        if (ok(r) && peek(r) == '-' && r->at + 1 < r->end && r->at[1] != ']') {
            r->at++;
            if (is_class | class_member(r, &s, &high))
                wrong(r, "a range between classes");
            else if (high < low)
                wrong(r, "a range that falls");
        }
        if (ok(r) && !is_class)
            ak_char_set_add(&r->build, &s, low, high);
    }
    ak_char_set_settle(&s);
    if (inverted)
        ak_char_set_invert(&r->build, &s);
    return chars(r, &s);
}

/* ---- structure ---------------------------------------------------------- */
static uint32_t choice(struct reader *r);

/* After '('. */
static uint32_t group(struct reader *r)
{
    if (take(r, '?')) {
        if (r->end - r->at >= 2 && r->at[0] == '<' && r->at[1] != '=' && r->at[1] != '!') {
            const char *close = memchr(r->at, '>', (size_t)(r->end - r->at));
            if (!close)
                return wrong(r, "a group's name without an end");
            r->at = close + 1;
        } else if (!take(r, ':')) {
            return fail(r, AKUNU_ERROR_UNSUPPORTED,
                        peek(r) == '=' || peek(r) == '!' || peek(r) == '<' ?
                            "a look around (\"(?\")" :
                            "a kind of group (\"(?\")");
        }
    }
    if (++r->nesting > AK_PATTERN_MOST_NESTING)
        return fail(r, AKUNU_ERROR_UNSUPPORTED, "groups nested too deep");
    uint32_t inner = choice(r);
    if (ok(r) && !take(r, ')'))
        wrong(r, "a group without an end");
    r->nesting--;
    return inner;
}

static uint32_t atom(struct reader *r)
{
    struct ak_char_set s = { 0 };
    int c = peek(r);
    switch (c) {
    case '(': r->at++; return group(r);
    case '[': r->at++; return class(r);
    case '^': r->at++; return node(r, (struct ak_pattern_node){ .kind = AK_PATTERN_BEGIN });
    case '$': r->at++; return node(r, (struct ak_pattern_node){ .kind = AK_PATTERN_END });
    case '*':
    case '+':
    case '?': return wrong(r, "nothing to repeat");
    case '{':
    case '}':
    case ']': return wrong(r, "a bracket without its other one");
    case '.':
        r->at++;
        ak_class_of_letter(&r->build, &s, '.');
        return chars(r, &s);
    case '\\':
        r->at++;
        if (class_escape(r, &s))
            return chars(r, &s);
        c = (int)character_escape(r, false);
        ak_char_set_add(&r->build, &s, (uint32_t)c, (uint32_t)c);
        return chars(r, &s);
    default:
        c = (int)character(r);
        ak_char_set_add(&r->build, &s, (uint32_t)c, (uint32_t)c);
        return chars(r, &s);
    }
}

static bool number(struct reader *r, uint32_t *out)
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
static void times(struct reader *r, uint32_t *low, uint32_t *high)
{
    bool closed = number(r, low);
    *high = *low;
    if (closed && take(r, ',') && !number(r, high))
        *high = AK_MANY;
    if (!closed || !take(r, '}'))
        wrong(r, "a number of times is expected in {…}");
    else if (*high < *low)
        wrong(r, "numbers of times out of order");
}

static uint32_t repeated(struct reader *r)
{
    uint32_t low = 0, high = AK_MANY, inner = atom(r);
    if (take(r, '+'))
        low = 1;
    else if (take(r, '?'))
        high = 1;
    else if (take(r, '{'))
        times(r, &low, &high);
    else if (!take(r, '*'))
        return inner;
    take(r, '?'); /* as few as possible: the same texts */
    return node(r, (struct ak_pattern_node){
                       .kind = AK_PATTERN_REPEAT, .a = inner, .low = low, .high = high });
}

static uint32_t sequence(struct reader *r)
{
    struct ak_part_list items = { 0 };
    while (ok(r) && peek(r) >= 0 && peek(r) != '|' && peek(r) != ')')
        ak_build_append(&r->build, &items, repeated(r));
    uint32_t out = list(r, AK_PATTERN_SEQUENCE, &items);
    ak_free(items.items);
    return out;
}

static uint32_t choice(struct reader *r)
{
    struct ak_part_list items = { 0 };
    do
        ak_build_append(&r->build, &items, sequence(r));
    while (ok(r) && take(r, '|'));
    uint32_t out = list(r, AK_PATTERN_CHOICE, &items);
    ak_free(items.items);
    return out;
}

ak_status ak_pattern_parse(const char *text, size_t n, struct ak_pattern *out,
                           struct ak_error *error)
{
    struct reader r = {
        .text = text, .at = text, .end = text + n, .p = out, .build = { .error = error }
    };
    *out = (struct ak_pattern){ 0 };
    if (n > AK_PATTERN_MOST_BYTES)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "it has %zu bytes: %d are the most", n,
                       AK_PATTERN_MOST_BYTES);
    if (!ak_is_utf8(text, n))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "it is no UTF-8");
    out->root = choice(&r);
    if (ok(&r) && r.at < r.end)
        wrong(&r, "\")\" without \"(\"");
    return r.build.status;
}

void ak_pattern_free(struct ak_pattern *p)
{
    for (uint32_t i = 0; i < p->n_sets; i++)
        ak_char_set_free(&p->sets[i]);
    ak_free(p->nodes);
    ak_free(p->sets);
    ak_free(p->lists);
    *p = (struct ak_pattern){ 0 };
}

ak_status ak_dfa_pattern(const char *text, size_t n, struct ak_dfa *out, struct ak_error *error)
{
    struct ak_pattern p;
    *out = (struct ak_dfa){ 0 };
    ak_status status = ak_pattern_parse(text, n, &p, error);
    if (status == AKUNU_OK)
        status = ak_pattern_machine(&p, out, error);
    ak_pattern_free(&p);
    return status;
}
