/* GBNF, the grammars that llama.cpp reads. */
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "grammar/chars.h"
#include "base/utf8.h"

struct parser {
    const char *at, *end;
    const char *line_start, *counted; /* `column` is that of `counted` */
    uint32_t line, column;
    unsigned nesting;
    struct ak_build build;
    uint32_t *names, n_names; /* rules by hash of their name, open addressing; UINT32_MAX: free */
    uint32_t names_mask;
};

/* Columns are counted in characters; each is counted once. */
static uint32_t column(struct parser *p)
{
    if (p->counted < p->line_start) {
        p->counted = p->line_start;
        p->column = 1;
    }
    for (; p->counted < p->at; p->counted++)
        p->column += ((unsigned char)*p->counted & 0xc0) != 0x80;
    return p->column;
}

static uint32_t fail(struct parser *p, const char *found, const char *expected)
{
    return ak_build_fail(&p->build, AKUNU_ERROR_FORMAT, "%u:%u: found %s, expected %s", p->line,
                         column(p), found, expected);
}

/* Says what is there. */
static uint32_t unexpected(struct parser *p, const char *expected)
{
    char shown[AK_SHOW_BYTES], found[AK_SHOW_BYTES + 2];
    if (p->at >= p->end)
        return fail(p, "the end of the grammar", expected);
    if (*p->at == '\n' || *p->at == '\r')
        return fail(p, "the end of the line", expected);
    size_t n = ak_utf8_next(p->at, (size_t)(p->end - p->at)).bytes;
    ak_show(p->at, n, shown);
    shown[32] = '\0';
    found[0] = '"';
    size_t length = strlen(shown);
    memcpy(found + 1, shown, length);
    memcpy(found + 1 + length, "\"", 2);
    return fail(p, found, expected);
}

static bool ok(const struct parser *p)
{
    return ak_build_ok(&p->build);
}
static int peek(const struct parser *p)
{
    return p->at < p->end ? (unsigned char)*p->at : -1;
}

static bool take(struct parser *p, char c)
{
    if (peek(p) != (unsigned char)c)
        return false;
    p->at++;
    return true;
}

static void new_line(struct parser *p)
{
    p->at += p->at[0] == '\r' && p->at + 1 < p->end && p->at[1] == '\n' ? 2 : 1;
    p->line_start = p->at;
    p->line++;
}

/* Passes blanks and comments, and with `lines` the ends of lines. */
static void space(struct parser *p, bool lines)
{
    for (int c = peek(p); c >= 0; c = peek(p)) {
        if (c == ' ' || c == '\t') {
            p->at++;
        } else if (lines && (c == '\n' || c == '\r')) {
            new_line(p);
        } else if (c == '#') {
            while (p->at < p->end && *p->at != '\n' && *p->at != '\r')
                p->at++;
        } else {
            return;
        }
    }
}

/* ---- names -------------------------------------------------------------- */
static bool is_name(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static size_t name(struct parser *p, const char **start)
{
    *start = p->at;
    while (is_name(peek(p)))
        p->at++;
    return (size_t)(p->at - *start);
}

static uint32_t hash(const char *text, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

static void grow_names(struct parser *p)
{
    uint32_t mask = p->names_mask * 2 + 1, *names = ak_alloc((size_t)mask + 1, sizeof *names);
    if (!names) {
        if (ok(p))
            p->build.status = ak_fail_memory(p->build.error, "a grammar", 0);
        return;
    }
    memset(names, 0xff, ((size_t)mask + 1) * sizeof *names);
    for (uint32_t i = 0; i < p->n_names; i++) {
        uint32_t at = hash(p->build.g->rules[i].name, strlen(p->build.g->rules[i].name)) & mask;
        while (names[at] != UINT32_MAX)
            at = (at + 1) & mask;
        names[at] = i;
    }
    ak_free(p->names);
    p->names = names;
    p->names_mask = mask;
}

/* The rule of that name, which need not be defined yet. */
static uint32_t rule(struct parser *p, const char *text, size_t n)
{
    if (ok(p) && p->n_names * 2 >= p->names_mask)
        grow_names(p);
    if (!ok(p))
        return 0;
    uint32_t at = hash(text, n) & p->names_mask;
    for (; p->names[at] != UINT32_MAX; at = (at + 1) & p->names_mask) {
        const char *known = p->build.g->rules[p->names[at]].name;
        if (strlen(known) == n && memcmp(known, text, n) == 0)
            return p->names[at];
    }
    uint32_t made = ak_build_rule(&p->build, text, n);
    if (ok(p)) {
        p->names[at] = made;
        p->n_names++;
        p->build.g->rules[made].line = p->line;
        p->build.g->rules[made].column = column(p) - (uint32_t)n;
        p->build.g->rules[made].part = UINT32_MAX; /* no definition */
    }
    return made;
}

/* ---- characters --------------------------------------------------------- */
static uint32_t hex(struct parser *p, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++, p->at++) {
        int c = peek(p);
        uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)c - '0' :
                         c >= 'a' && c <= 'f' ? (uint32_t)c - 'a' + 10 :
                         c >= 'A' && c <= 'F' ? (uint32_t)c - 'A' + 10 :
                                                16;
        if (digit == 16)
            return unexpected(p, n == 2 ? "two hexadecimal digits" :
                                 n == 4 ? "four hexadecimal digits" :
                                          "eight hexadecimal digits");
        value = value << 4 | digit;
    }
    if (value > AK_CHAR_MOST || (value >= 0xd800 && value <= 0xdfff))
        return fail(p, "an escape that is no character", "U+0000 to U+10FFFF without surrogates");
    return value;
}

/* One character of a literal or a class, escapes resolved. */
static uint32_t character(struct parser *p)
{
    if (peek(p) == '\n' || peek(p) == '\r' || p->at >= p->end)
        return unexpected(p, "a character");
    if (!take(p, '\\')) {
        struct ak_utf8 c = ak_utf8_next(p->at, (size_t)(p->end - p->at));
        p->at += c.bytes;
        return c.code;
    }
    switch (peek(p)) {
    case 'x': p->at++; return hex(p, 2);
    case 'u': p->at++; return hex(p, 4);
    case 'U': p->at++; return hex(p, 8);
    case 't': p->at++; return '\t';
    case 'r': p->at++; return '\r';
    case 'n': p->at++; return '\n';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^': return (unsigned char)*p->at++;
    default: return unexpected(p, "one of x u U t r n \\ \" [ ] - ^ after a backslash");
    }
}

static size_t put_utf8(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | c);
    return n;
}

/* After the opening quote. Escapes never make a text longer, so its source has room. */
static uint32_t literal(struct parser *p)
{
    const char *close = p->at;
    while (close < p->end && *close != '"' && *close != '\n')
        close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    size_t n = 0;
    char *text = ak_alloc((size_t)(close - p->at) + 4, 1);
    if (!text) {
        p->build.status = ak_fail_memory(p->build.error, "a grammar", 0);
        return AK_BUILD_NOTHING;
    }
    while (ok(p) && !take(p, '"')) {
        if (p->at >= p->end || *p->at == '\n' || *p->at == '\r')
            unexpected(p, "the closing quote");
        else
            n += put_utf8(character(p), text + n);
    }
    uint32_t part = ak_build_literal(&p->build, text, n);
    ak_free(text);
    return part;
}

/* After the opening bracket. */
static uint32_t class(struct parser *p)
{
    struct ak_char_set set = { 0 };
    bool inverted = take(p, '^'), empty = true;
    while (ok(p) && !take(p, ']')) {
        uint32_t low = character(p), high = low;
        if (peek(p) == '-' && p->at + 1 < p->end && p->at[1] != ']') {
            p->at++;
            high = character(p);
            if (ok(p) && high < low)
                fail(p, "a range that falls", "one from the lower character to the higher one");
        }
        ak_char_set_add(&p->build, &set, low, high);
        empty = false;
    }
    if (ok(p) && empty && !inverted)
        fail(p, "a class of no character", "at least one character");
    ak_char_set_settle(&set);
    if (inverted)
        ak_char_set_invert(&p->build, &set);
    uint32_t part = ak_build_chars(&p->build, &set);
    ak_char_set_free(&set);
    return part;
}

/* ---- parts -------------------------------------------------------------- */
static uint32_t number(struct parser *p, const char *expected)
{
    uint64_t value = 0;
    if (peek(p) < '0' || peek(p) > '9')
        return unexpected(p, expected);
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        value = value * 10 + (uint64_t)(peek(p) - '0');
        if (value > AK_GBNF_MOST_TIMES)
            return fail(p, "a number above 1000000000", "a smaller one");
    }
    return (uint32_t)value;
}

/* After '<': "[id]>" or a token's text with its brackets. */
static uint32_t token(struct parser *p, bool negated)
{
    const char *start = p->at - 1;
    if (take(p, '[')) {
        uint32_t id = number(p, "a token's number");
        if (ok(p) && (!take(p, ']') || !take(p, '>')))
            unexpected(p, "\"]>\" after a token's number");
        return ak_build_token(&p->build, id, NULL, 0, negated);
    }
    while (p->at < p->end && *p->at != '>' && *p->at != '\n' && *p->at != '\r')
        p->at++;
    if (!take(p, '>') || p->at - start == 2)
        return unexpected(p, "a token's text and \">\"");
    return ak_build_token(&p->build, 0, start, (size_t)(p->at - start), negated);
}

static uint32_t alternatives(struct parser *p, bool nested);

static uint32_t group(struct parser *p)
{
    if (++p->nesting > AK_GBNF_MOST_NESTING)
        return fail(p, "more than 200 groups in each other", "fewer");
    space(p, true);
    uint32_t part = alternatives(p, true);
    if (ok(p) && !take(p, ')'))
        unexpected(p, "\")\"");
    p->nesting--;
    return part;
}

static uint32_t any_character(struct parser *p)
{
    struct ak_char_set set = { 0 };
    ak_char_set_all(&p->build, &set);
    uint32_t part = ak_build_chars(&p->build, &set);
    ak_char_set_free(&set);
    return part;
}

/* What begins here, without repetitions; false: nothing does. */
static bool item(struct parser *p, uint32_t *part)
{
    const char *start;
    if (take(p, '"')) {
        *part = literal(p);
    } else if (take(p, '[')) {
        *part = class(p);
    } else if (take(p, '(')) {
        *part = group(p);
    } else if (take(p, '.')) {
        *part = any_character(p);
    } else if (take(p, '<')) {
        *part = token(p, false);
    } else if (take(p, '!')) {
        *part = take(p, '<') ? token(p, true) : unexpected(p, "a token after \"!\"");
    } else if (is_name(peek(p))) {
        size_t n = name(p, &start);
        *part = ak_build_call(&p->build, rule(p, start, n));
    } else {
        return false;
    }
    return true;
}

/* After '{'. */
static void times(struct parser *p, uint32_t *low, uint32_t *high)
{
    space(p, false);
    *low = *high = number(p, "a number of times");
    space(p, false);
    if (ok(p) && take(p, ',')) {
        space(p, false);
        *high = peek(p) == '}' ? AK_MANY : number(p, "a number of times or \"}\"");
        space(p, false);
    }
    if (ok(p) && !take(p, '}'))
        unexpected(p, "\"}\"");
    else if (ok(p) && *high < *low)
        fail(p, "fewer times at most than at least", "the smaller number first");
}

static uint32_t repeated(struct parser *p, uint32_t part, bool nested)
{
    for (space(p, nested); ok(p); space(p, nested)) {
        uint32_t low = 0, high = AK_MANY;
        if (take(p, '+'))
            low = 1;
        else if (take(p, '?'))
            high = 1;
        else if (take(p, '{'))
            times(p, &low, &high);
        else if (!take(p, '*'))
            break;
        part = ak_build_repeat(&p->build, part, low, high);
    }
    return part;
}

static uint32_t sequence(struct parser *p, bool nested)
{
    struct ak_part_list list = { 0 };
    uint32_t part;
    while (ok(p) && item(p, &part))
        ak_build_append(&p->build, &list, repeated(p, part, nested));
    part = ak_build_sequence(&p->build, list.items, list.n);
    ak_free(list.items);
    return part;
}

static uint32_t alternatives(struct parser *p, bool nested)
{
    struct ak_part_list list = { 0 };
    do {
        space(p, nested || list.n > 0);
        ak_build_append(&p->build, &list, sequence(p, nested));
    } while (ok(p) && take(p, '|'));
    uint32_t part = ak_build_choice(&p->build, list.items, list.n);
    ak_free(list.items);
    return part;
}

static void definition(struct parser *p)
{
    const char *start;
    size_t n = name(p, &start);
    if (n == 0) {
        unexpected(p, "the name of a rule");
        return;
    }
    uint32_t which = rule(p, start, n);
    uint32_t line = p->line, at = column(p) - (uint32_t)n;
    space(p, false);
    if (ok(p) && (p->end - p->at < 3 || memcmp(p->at, "::=", 3) != 0))
        unexpected(p, "\"::=\"");
    if (!ok(p))
        return;
    p->at += 3;
    space(p, true);
    uint32_t part = alternatives(p, false);
    if (ok(p) && p->at < p->end && *p->at != '\n' && *p->at != '\r')
        unexpected(p, "a part of a rule or the end of the line");
    if (!ok(p))
        return;
    struct ak_rule *r = &p->build.g->rules[which];
    if (r->part != UINT32_MAX) {
        ak_build_fail(&p->build, AKUNU_ERROR_FORMAT, "%u:%u: rule \"%s\" is defined twice", line,
                      at, r->name);
        return;
    }
    *r = (struct ak_rule){ .name = r->name, .part = part, .line = line, .column = at };
    space(p, true);
}

static uint32_t root(struct parser *p)
{
    char shown[AK_SHOW_BYTES];
    for (uint32_t i = 0; ok(p) && i < p->n_names; i++) {
        const struct ak_rule *r = &p->build.g->rules[i];
        if (r->part == UINT32_MAX)
            ak_build_fail(&p->build, AKUNU_ERROR_FORMAT,
                          "%u:%u: rule \"%s\" is used and not defined", r->line, r->column,
                          ak_show(r->name, strlen(r->name), shown));
    }
    uint32_t known = p->n_names, which = rule(p, "root", 4);
    if (ok(p) && p->n_names > known)
        ak_build_fail(&p->build, AKUNU_ERROR_FORMAT,
                      "the grammar has no rule \"root\", with which a text begins");
    return ak_build_call(&p->build, which);
}

ak_status ak_grammar_from_gbnf(const char *text, size_t n_bytes, struct ak_grammar **out,
                               struct ak_error *error)
{
    struct parser p = { .at = text,
                        .end = text + n_bytes,
                        .line_start = text,
                        .counted = text,
                        .line = 1,
                        .column = 1 };
    *out = NULL;
    if (n_bytes > AK_GBNF_MOST_BYTES)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the grammar has %zu bytes: %d are the most",
                       n_bytes, AK_GBNF_MOST_BYTES);
    size_t valid = ak_utf8_valid_bytes(text, n_bytes);
    ak_build_begin(&p.build, error);
    p.names_mask = 7;
    grow_names(&p);
    if (valid < n_bytes) {
        for (; p.at < text + valid; p.at++)
            if (*p.at == '\n') {
                p.line++;
                p.line_start = p.at + 1;
            }
        fail(&p, "a byte that is no UTF-8", "a text in UTF-8");
    }
    space(&p, true);
    while (ok(&p) && p.at < p.end)
        definition(&p);
    uint32_t start = root(&p);
    ak_free(p.names);
    AK_TRY(ak_build_finish(&p.build, start, out));
    if (ak_grammar_possible(*out))
        return AKUNU_OK;
    ak_grammar_free(*out);
    *out = NULL;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "no text of the grammar ever ends: rule \"root\" always needs itself again");
}
