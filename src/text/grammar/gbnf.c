/* Parser of GBNF, llama.cpp's notation for grammars: recursive descent that builds expressions as
 * it reads. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/grammar/chars.h"

struct parser {
    const char *at, *end;
    const char *line_start, *counted; /* `column` is the column of `counted` */
    uint32_t line, column;
    unsigned nesting;
    struct ak_grammar_builder builder;
    uint32_t *names, n_names; /* hash table of rules, open addressing; UINT32_MAX: free slot */
    uint32_t names_mask;
};

/* Column of p->at in characters, from 1. Continues where the last call on the line stopped. */
static uint32_t get_column(struct parser *p)
{
    if (p->counted < p->line_start) {
        p->counted = p->line_start;
        p->column = 1;
    }
    for (; p->counted < p->at; p->counted++)
        p->column += ((unsigned char)*p->counted & 0xc0) != 0x80;
    return p->column;
}

static uint32_t fail_gbnf(struct parser *p, const char *found, const char *expected)
{
    return ak_gb_fail(&p->builder, AKUNU_ERROR_FORMAT, "%u:%u: found %s, expected %s", p->line,
                      get_column(p), found, expected);
}

/* Fails with the character that was found. */
static uint32_t fail_unexpected(struct parser *p, const char *expected)
{
    char shown[AK_SHOW_BYTES], found[AK_SHOW_BYTES + 2];
    if (p->at >= p->end)
        return fail_gbnf(p, "the end of the grammar", expected);
    if (*p->at == '\n' || *p->at == '\r')
        return fail_gbnf(p, "the end of the line", expected);
    size_t n = ak_utf8_next(p->at, (size_t)(p->end - p->at)).bytes;
    ak_show(p->at, n, shown);
    shown[32] = '\0';
    found[0] = '"';
    size_t length = strlen(shown);
    memcpy(found + 1, shown, length);
    memcpy(found + 1 + length, "\"", 2);
    return fail_gbnf(p, found, expected);
}

static bool is_ok(const struct parser *p)
{
    return ak_gb_ok(&p->builder);
}
static int peek(const struct parser *p)
{
    return p->at < p->end ? (unsigned char)*p->at : -1;
}

static bool take_char(struct parser *p, char c)
{
    if (peek(p) != (unsigned char)c)
        return false;
    p->at++;
    return true;
}

static void skip_newline(struct parser *p)
{
    p->at += p->at[0] == '\r' && p->at + 1 < p->end && p->at[1] == '\n' ? 2 : 1;
    p->line_start = p->at;
    p->line++;
}

/* Skips spaces, tabs and comments; with `lines` also newlines. */
static void skip_whitespace(struct parser *p, bool lines)
{
    for (int c = peek(p); c >= 0; c = peek(p)) {
        if (c == ' ' || c == '\t') {
            p->at++;
        } else if (lines && (c == '\n' || c == '\r')) {
            skip_newline(p);
        } else if (c == '#') {
            while (p->at < p->end && *p->at != '\n' && *p->at != '\r')
                p->at++;
        } else {
            return;
        }
    }
}

/* ---- names -------------------------------------------------------------- */
static bool is_name_char(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static size_t read_rule_name(struct parser *p, const char **start)
{
    *start = p->at;
    while (is_name_char(peek(p)))
        p->at++;
    return (size_t)(p->at - *start);
}

static uint32_t hash_name(const char *text, size_t n)
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
        if (is_ok(p))
            p->builder.status = ak_fail_memory(p->builder.error, "a grammar", 0);
        return;
    }
    memset(names, 0xff, ((size_t)mask + 1) * sizeof *names);
    for (uint32_t i = 0; i < p->n_names; i++) {
        uint32_t at =
            hash_name(p->builder.g->rules[i].name, strlen(p->builder.g->rules[i].name)) & mask;
        while (names[at] != UINT32_MAX)
            at = (at + 1) & mask;
        names[at] = i;
    }
    ak_free(p->names);
    p->names = names;
    p->names_mask = mask;
}

/* The rule of that name, which is declared if it is new. */
static uint32_t find_or_add_rule(struct parser *p, const char *text, size_t n)
{
    if (is_ok(p) && p->n_names * 2 >= p->names_mask)
        grow_names(p);
    if (!is_ok(p))
        return 0;
    uint32_t at = hash_name(text, n) & p->names_mask;
    for (; p->names[at] != UINT32_MAX; at = (at + 1) & p->names_mask) {
        const char *known = p->builder.g->rules[p->names[at]].name;
        if (strlen(known) == n && memcmp(known, text, n) == 0)
            return p->names[at];
    }
    uint32_t made = ak_gb_declare_rule(&p->builder, text, n);
    if (is_ok(p)) {
        p->names[at] = made;
        p->n_names++;
        p->builder.g->rules[made].line = p->line;
        p->builder.g->rules[made].column = get_column(p) - (uint32_t)n;
        p->builder.g->rules[made].expr = UINT32_MAX; /* not defined yet */
    }
    return made;
}

/* ---- characters --------------------------------------------------------- */
static uint32_t parse_hex(struct parser *p, int n)
{
    uint32_t value = 0;
    for (int i = 0; i < n; i++, p->at++) {
        int c = peek(p);
        uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)c - '0' :
                         c >= 'a' && c <= 'f' ? (uint32_t)c - 'a' + 10 :
                         c >= 'A' && c <= 'F' ? (uint32_t)c - 'A' + 10 :
                                                16;
        if (digit == 16)
            return fail_unexpected(p, n == 2 ? "two hexadecimal digits" :
                                      n == 4 ? "four hexadecimal digits" :
                                               "eight hexadecimal digits");
        value = value << 4 | digit;
    }
    if (value > AK_GRAMMAR_CODE_POINT_MAX || (value >= 0xd800 && value <= 0xdfff))
        return fail_gbnf(p, "an escape that is not a character",
                         "U+0000 to U+10FFFF without surrogates");
    return value;
}

/* One character of a literal or a class, escapes resolved. */
static uint32_t parse_character(struct parser *p)
{
    if (peek(p) == '\n' || peek(p) == '\r' || p->at >= p->end)
        return fail_unexpected(p, "a character");
    if (!take_char(p, '\\')) {
        struct ak_utf8 c = ak_utf8_next(p->at, (size_t)(p->end - p->at));
        p->at += c.bytes;
        return c.code;
    }
    switch (peek(p)) {
    case 'x': p->at++; return parse_hex(p, 2);
    case 'u': p->at++; return parse_hex(p, 4);
    case 'U': p->at++; return parse_hex(p, 8);
    case 't': p->at++; return '\t';
    case 'r': p->at++; return '\r';
    case 'n': p->at++; return '\n';
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^': return (unsigned char)*p->at++;
    default: return fail_unexpected(p, "one of x u U t r n \\ \" [ ] - ^ after a backslash");
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

/* After the opening quote. Escapes never make a text longer, so the length of the source is
 * capacity enough. */
static uint32_t parse_literal(struct parser *p)
{
    const char *close = p->at;
    while (close < p->end && *close != '"' && *close != '\n')
        close += *close == '\\' && close + 1 < p->end ? 2 : 1;
    size_t n = 0;
    char *text = ak_alloc((size_t)(close - p->at) + 4, 1);
    if (!text) {
        p->builder.status = ak_fail_memory(p->builder.error, "a grammar", 0);
        return AK_GB_NOTHING;
    }
    while (is_ok(p) && !take_char(p, '"')) {
        if (p->at >= p->end || *p->at == '\n' || *p->at == '\r')
            fail_unexpected(p, "the closing quote");
        else
            n += put_utf8(parse_character(p), text + n);
    }
    uint32_t expr = ak_gb_literal(&p->builder, text, n);
    ak_free(text);
    return expr;
}

/* After the opening bracket. */
static uint32_t parse_class(struct parser *p)
{
    struct ak_grammar_char_set set = { 0 };
    bool inverted = take_char(p, '^'), empty = true;
    while (is_ok(p) && !take_char(p, ']')) {
        uint32_t low = parse_character(p), high = low;
        if (peek(p) == '-' && p->at + 1 < p->end && p->at[1] != ']') {
            p->at++;
            high = parse_character(p);
            if (is_ok(p) && high < low)
                fail_gbnf(p, "a range that falls",
                          "one from the lower character to the higher one");
        }
        ak_grammar_char_set_add(&p->builder, &set, low, high);
        empty = false;
    }
    if (is_ok(p) && empty && !inverted)
        fail_gbnf(p, "a class of no character", "at least one character");
    ak_grammar_char_set_normalize(&set);
    if (inverted)
        ak_grammar_char_set_invert(&p->builder, &set);
    uint32_t expr = ak_gb_chars(&p->builder, &set);
    ak_grammar_char_set_free(&set);
    return expr;
}

/* ---- expressions -------------------------------------------------------- */
static uint32_t parse_number(struct parser *p, const char *expected)
{
    uint64_t value = 0;
    if (peek(p) < '0' || peek(p) > '9')
        return fail_unexpected(p, expected);
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        value = value * 10 + (uint64_t)(peek(p) - '0');
        if (value > AK_GRAMMAR_GBNF_REPEAT_MAX)
            return fail_gbnf(p, "a number above 1000000000", "a smaller one");
    }
    return (uint32_t)value;
}

/* After '<': "[id]>", or the rest of a token's text, in which the angle brackets count. */
static uint32_t parse_token(struct parser *p, bool negated)
{
    const char *start = p->at - 1;
    if (take_char(p, '[')) {
        uint32_t id = parse_number(p, "a token's number");
        if (is_ok(p) && (!take_char(p, ']') || !take_char(p, '>')))
            fail_unexpected(p, "\"]>\" after a token's number");
        return ak_gb_token(&p->builder, id, NULL, 0, negated);
    }
    while (p->at < p->end && *p->at != '>' && *p->at != '\n' && *p->at != '\r')
        p->at++;
    if (!take_char(p, '>') || p->at - start == 2)
        return fail_unexpected(p, "a token's text and \">\"");
    return ak_gb_token(&p->builder, 0, start, (size_t)(p->at - start), negated);
}

static uint32_t parse_alternation(struct parser *p, bool nested);

static uint32_t parse_group(struct parser *p)
{
    if (++p->nesting > AK_GRAMMAR_GBNF_NESTING_MAX)
        return fail_gbnf(p, "more than 200 groups in each other", "fewer");
    skip_whitespace(p, true);
    uint32_t expr = parse_alternation(p, true);
    if (is_ok(p) && !take_char(p, ')'))
        fail_unexpected(p, "\")\"");
    p->nesting--;
    return expr;
}

static uint32_t parse_any_character(struct parser *p)
{
    struct ak_grammar_char_set set = { 0 };
    ak_grammar_char_set_fill(&p->builder, &set);
    uint32_t expr = ak_gb_chars(&p->builder, &set);
    ak_grammar_char_set_free(&set);
    return expr;
}

/* An item without its repeat operators; false: none begins here. */
static bool parse_item(struct parser *p, uint32_t *expr)
{
    const char *start;
    if (take_char(p, '"')) {
        *expr = parse_literal(p);
    } else if (take_char(p, '[')) {
        *expr = parse_class(p);
    } else if (take_char(p, '(')) {
        *expr = parse_group(p);
    } else if (take_char(p, '.')) {
        *expr = parse_any_character(p);
    } else if (take_char(p, '<')) {
        *expr = parse_token(p, false);
    } else if (take_char(p, '!')) {
        *expr =
            take_char(p, '<') ? parse_token(p, true) : fail_unexpected(p, "a token after \"!\"");
    } else if (is_name_char(peek(p))) {
        size_t n = read_rule_name(p, &start);
        *expr = ak_gb_rule_ref(&p->builder, find_or_add_rule(p, start, n));
    } else {
        return false;
    }
    return true;
}

/* After '{'. */
static void parse_repeat_counts(struct parser *p, uint32_t *low, uint32_t *high)
{
    skip_whitespace(p, false);
    *low = *high = parse_number(p, "a number of times");
    skip_whitespace(p, false);
    if (is_ok(p) && take_char(p, ',')) {
        skip_whitespace(p, false);
        *high =
            peek(p) == '}' ? AK_GRAMMAR_UNBOUNDED : parse_number(p, "a number of times or \"}\"");
        skip_whitespace(p, false);
    }
    if (is_ok(p) && !take_char(p, '}'))
        fail_unexpected(p, "\"}\"");
    else if (is_ok(p) && *high < *low)
        fail_gbnf(p, "fewer times at most than at least", "the smaller number first");
}

static uint32_t parse_repeats(struct parser *p, uint32_t expr, bool nested)
{
    for (skip_whitespace(p, nested); is_ok(p); skip_whitespace(p, nested)) {
        uint32_t low = 0, high = AK_GRAMMAR_UNBOUNDED;
        if (take_char(p, '+'))
            low = 1;
        else if (take_char(p, '?'))
            high = 1;
        else if (take_char(p, '{'))
            parse_repeat_counts(p, &low, &high);
        else if (!take_char(p, '*'))
            break;
        expr = ak_gb_repeat(&p->builder, expr, low, high);
    }
    return expr;
}

static uint32_t parse_sequence(struct parser *p, bool nested)
{
    struct ak_gb_list list = { 0 };
    uint32_t expr;
    while (is_ok(p) && parse_item(p, &expr))
        ak_gb_append(&p->builder, &list, parse_repeats(p, expr, nested));
    expr = ak_gb_sequence(&p->builder, list.items, list.n);
    ak_free(list.items);
    return expr;
}

static uint32_t parse_alternation(struct parser *p, bool nested)
{
    struct ak_gb_list list = { 0 };
    do {
        skip_whitespace(p, nested || list.n > 0);
        ak_gb_append(&p->builder, &list, parse_sequence(p, nested));
    } while (is_ok(p) && take_char(p, '|'));
    uint32_t expr = ak_gb_alternation(&p->builder, list.items, list.n);
    ak_free(list.items);
    return expr;
}

static void parse_definition(struct parser *p)
{
    const char *start;
    size_t n = read_rule_name(p, &start);
    if (n == 0) {
        fail_unexpected(p, "the name of a rule");
        return;
    }
    uint32_t which = find_or_add_rule(p, start, n);
    uint32_t line = p->line, at = get_column(p) - (uint32_t)n;
    skip_whitespace(p, false);
    if (is_ok(p) && (p->end - p->at < 3 || memcmp(p->at, "::=", 3) != 0))
        fail_unexpected(p, "\"::=\"");
    if (!is_ok(p))
        return;
    p->at += 3;
    skip_whitespace(p, true);
    uint32_t expr = parse_alternation(p, false);
    if (is_ok(p) && p->at < p->end && *p->at != '\n' && *p->at != '\r')
        fail_unexpected(p, "a part of a rule or the end of the line");
    if (!is_ok(p))
        return;
    struct ak_grammar_rule *r = &p->builder.g->rules[which];
    if (r->expr != UINT32_MAX) {
        ak_gb_fail(&p->builder, AKUNU_ERROR_FORMAT, "%u:%u: rule \"%s\" is defined twice", line, at,
                   r->name);
        return;
    }
    *r = (struct ak_grammar_rule){ .name = r->name, .expr = expr, .line = line, .column = at };
    skip_whitespace(p, true);
}

static uint32_t find_root(struct parser *p, const char *root)
{
    char shown[AK_SHOW_BYTES];
    for (uint32_t i = 0; is_ok(p) && i < p->n_names; i++) {
        const struct ak_grammar_rule *r = &p->builder.g->rules[i];
        if (r->expr == UINT32_MAX)
            ak_gb_fail(&p->builder, AKUNU_ERROR_FORMAT,
                       "%u:%u: rule \"%s\" is used and not defined", r->line, r->column,
                       ak_show(r->name, strlen(r->name), shown));
    }
    uint32_t known = p->n_names, which = find_or_add_rule(p, root, strlen(root));
    if (is_ok(p) && p->n_names > known)
        ak_gb_fail(&p->builder, AKUNU_ERROR_FORMAT,
                   "the grammar has no rule \"%s\", with which a text begins",
                   ak_show(root, strlen(root), shown));
    return ak_gb_rule_ref(&p->builder, which);
}

ak_status ak_grammar_from_gbnf(const char *text, size_t n_bytes, const char *root,
                               struct ak_grammar **out, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    struct parser p = { .at = text,
                        .end = text + n_bytes,
                        .line_start = text,
                        .counted = text,
                        .line = 1,
                        .column = 1 };
    *out = NULL;
    if (n_bytes > AK_GRAMMAR_GBNF_BYTES_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "the grammar has %zu bytes: %d are the most",
                       n_bytes, AK_GRAMMAR_GBNF_BYTES_MAX);
    size_t valid = ak_utf8_valid_bytes(text, n_bytes);
    ak_gb_begin(&p.builder, error);
    p.names_mask = 7;
    grow_names(&p);
    if (valid < n_bytes) {
        for (; p.at < text + valid; p.at++)
            if (*p.at == '\n') {
                p.line++;
                p.line_start = p.at + 1;
            }
        fail_gbnf(&p, "a byte that is not UTF-8", "a text in UTF-8");
    }
    skip_whitespace(&p, true);
    while (is_ok(&p) && p.at < p.end)
        parse_definition(&p);
    uint32_t start = find_root(&p, root);
    ak_free(p.names);
    AK_TRY(ak_gb_finish(&p.builder, start, out));
    if (ak_grammar_is_productive(*out))
        return AKUNU_OK;
    ak_grammar_free(*out);
    *out = NULL;
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "no text of the grammar ever ends: rule \"%s\" always needs itself again",
                   ak_show(root, strlen(root), shown));
}
