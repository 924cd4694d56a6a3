/* Lexer: splits a template into text and tags, and tags into tokens. Strips whitespace around tags
 * by trim_blocks, lstrip_blocks and the signs "-" and "+". */
#include <string.h>

#include "base/unicode.h"
#include "text/template/jinja/parser.h"
#include "text/template/jinja/string.h"

struct lexer {
    struct ak_jenv *j;
    const char *text;
    size_t n, at;
    bool line_starting; /* `at` is at the beginning of a line */
    size_t counted;     /* offset of `line` and `column` */
    uint32_t line, column;
    char open[AK_JINJA_NESTING_MAX]; /* open brackets of the current tag */
    unsigned n_open;
    struct ak_jtokens *out;
};

static const struct {
    char text[3];
    enum ak_jtoken_kind kind;
} operators[] = {
    /* longer ones first */
    { "//", AK_JT_FLOORDIV }, { "**", AK_JT_POW },      { "==", AK_JT_EQ },
    { "!=", AK_JT_NE },       { ">=", AK_JT_GE },       { "<=", AK_JT_LE },
    { "+", AK_JT_ADD },       { "-", AK_JT_SUB },       { "/", AK_JT_DIV },
    { "*", AK_JT_MUL },       { "%", AK_JT_MOD },       { "~", AK_JT_TILDE },
    { "[", AK_JT_LBRACKET },  { "]", AK_JT_RBRACKET },  { "(", AK_JT_LPAREN },
    { ")", AK_JT_RPAREN },    { "{", AK_JT_LBRACE },    { "}", AK_JT_RBRACE },
    { ">", AK_JT_GT },        { "<", AK_JT_LT },        { "=", AK_JT_ASSIGN },
    { ".", AK_JT_DOT },       { ":", AK_JT_COLON },     { "|", AK_JT_PIPE },
    { ",", AK_JT_COMMA },     { ";", AK_JT_SEMICOLON },
};
enum { N_OPERATORS = sizeof operators / sizeof *operators };

const char *ak_j_token_name(enum ak_jtoken_kind kind)
{
    switch (kind) {
    case AK_JT_END: return "the end of the template";
    case AK_JT_DATA: return "text";
    case AK_JT_BLOCK_BEGIN: return "the beginning of a statement";
    case AK_JT_BLOCK_END: return "the end of a statement";
    case AK_JT_VARIABLE_BEGIN: return "the beginning of an expression";
    case AK_JT_VARIABLE_END: return "the end of an expression";
    case AK_JT_NAME: return "a name";
    case AK_JT_STRING: return "a string";
    case AK_JT_INTEGER: return "an integer";
    case AK_JT_FLOAT: return "a float";
    default: break;
    }
    for (size_t i = 0; i < N_OPERATORS; i++)
        if (operators[i].kind == kind)
            return operators[i].text;
    return "something";
}

/* ---- Positions ---------------------------------------------------------- */
/* Sets line and column to those of `at`, which never goes back. */
static void set_position(struct lexer *l, size_t at)
{
    for (; l->counted < at; l->counted++) {
        unsigned char c = (unsigned char)l->text[l->counted];
        l->line += c == '\n';
        l->column = c == '\n' ? 1 : l->column + ((c & 0xC0) != 0x80);
    }
    l->j->line = l->line;
    l->j->column = l->column;
}

static _Noreturn void fail_lexer(struct lexer *l, const char *what)
{
    set_position(l, l->at);
    ak_j_fail_as(l->j, AKUNU_ERROR_FORMAT, "%s", what);
}

static void emit(struct lexer *l, enum ak_jtoken_kind kind, size_t at, struct ak_jval value)
{
    struct ak_jtokens *out = l->out;
    if (out->n == out->capacity) {
        size_t capacity = out->capacity ? 2 * out->capacity : 64;
        out->tokens = ak_j_grow(l->j, out->tokens, out->n, capacity, sizeof *out->tokens);
        out->capacity = capacity;
    }
    set_position(l, at);
    out->tokens[out->n++] = (struct ak_jtoken){ kind, l->j->line, l->j->column, value };
}

static const struct ak_jval no_value = { .kind = AK_J_MISSING };

/* ---- Lookahead ---------------------------------------------------------- */
static bool is_at(const struct lexer *l, size_t at, const char *text)
{
    size_t n = strlen(text);
    return l->n - at >= n && memcmp(l->text + at, text, n) == 0;
}

static size_t skip_whitespace(const struct lexer *l, size_t at)
{
    struct ak_jstr s = { .bytes = l->text, .n = l->n };
    for (size_t next; at < l->n && ak_j_is_whitespace(ak_j_char_at(&s, at, &next));)
        at = next;
    return at;
}

static void move_to(struct lexer *l, size_t at)
{
    l->line_starting = at > 0 && at > l->at ? l->text[at - 1] == '\n' : l->line_starting;
    l->at = at;
}

/* If a tag ends here, the offset after it, else 0. The end is `end` with an optional sign: "-"
 * strips all whitespace after it, no sign strips one newline if `trim`. */
static size_t tag_end(const struct lexer *l, size_t at, const char *end, bool plus, bool trim)
{
    if (at < l->n && l->text[at] == '-' && is_at(l, at + 1, end))
        return skip_whitespace(l, at + 1 + strlen(end));
    if (plus && at < l->n && l->text[at] == '+' && is_at(l, at + 1, end))
        return at + 1 + strlen(end);
    if (!is_at(l, at, end))
        return 0;
    at += strlen(end);
    return at + (trim && at < l->n && l->text[at] == '\n');
}

static size_t skip_sign(const struct lexer *l, size_t at)
{
    return at + (at < l->n && (l->text[at] == '-' || l->text[at] == '+'));
}

/* If "{% raw %}" or "{% endraw %}" begins here, the offset after it, else 0. */
static size_t raw_tag(const struct lexer *l, size_t at, const char *name, bool is_end)
{
    at = skip_whitespace(l, skip_sign(l, at + 2));
    if (!is_at(l, at, name))
        return 0;
    at = skip_whitespace(l, at + strlen(name));
    return tag_end(l, at, "%}", is_end, is_end);
}

/* ---- Text between tags -------------------------------------------------- */
/* Emits the text up to a tag at `end` without the whitespace that the tag strips: with "-" all of
 * it; without a sign, if the tag is not an expression and is first on its line, its indentation. */
static void emit_data(struct lexer *l, size_t end, bool is_tag)
{
    size_t begin = l->at, stop = end;
    struct ak_jstr s = { .bytes = l->text + begin, .n = end - begin };
    char sign = end + 2 < l->n ? l->text[end + 2] : ' ';
    if (sign == '-') {
        size_t first;
        ak_j_strip_range(&s, NULL, false, true, &first, &stop);
        stop += begin;
    } else if (sign != '+' && is_tag) {
        size_t line = end;
        while (line > begin && l->text[line - 1] != '\n')
            line--;
        if ((line > begin || l->line_starting) && line < end && skip_whitespace(l, line) >= end)
            stop = line;
    }
    if (stop > begin)
        emit(l, AK_JT_DATA, begin, ak_j_string_at(l->j, l->text + begin, stop - begin));
}

static void skip_comment(struct lexer *l, size_t begin)
{
    for (size_t at = begin + 2; at + 1 < l->n; at++) {
        const char *end = memmem(l->text + at, l->n - at, "#}", 2);
        if (!end)
            break;
        at = (size_t)(end - l->text);
        bool sign = at > begin + 2 && (l->text[at - 1] == '-' || l->text[at - 1] == '+');
        move_to(l, tag_end(l, at - sign, "#}", true, true));
        return;
    }
    l->at = begin;
    fail_lexer(l, "this comment has no end #}");
}

/* Emits raw text; l->at is after "{% raw %}". */
static void lex_raw(struct lexer *l, size_t tag)
{
    for (size_t at = l->at; at + 1 < l->n; at++) {
        const char *begin = memmem(l->text + at, l->n - at, "{%", 2);
        if (!begin)
            break;
        at = (size_t)(begin - l->text);
        size_t end = raw_tag(l, at, "endraw", true);
        if (end) {
            emit_data(l, at, true);
            move_to(l, end);
            return;
        }
    }
    l->at = tag;
    fail_lexer(l, "this raw block has no {% endraw %}");
}

/* ---- Inside tags -------------------------------------------------------- */
static size_t digits(const struct lexer *l, size_t at)
{
    size_t begin = at;
    while (at < l->n && ((l->text[at] >= '0' && l->text[at] <= '9') ||
                         (l->text[at] == '_' && at > begin && l->text[at - 1] != '_' &&
                          at + 1 < l->n && l->text[at + 1] >= '0' && l->text[at + 1] <= '9')))
        at++;
    return at - begin;
}

/* Length of the float that begins here; 0: none. */
static size_t float_length(const struct lexer *l)
{
    size_t n = digits(l, l->at), at = l->at + n;
    if (n == 0 || (l->at > 0 && l->text[l->at - 1] == '.'))
        return 0;
    size_t part = at < l->n && l->text[at] == '.' ? digits(l, at + 1) : 0;
    at += part ? part + 1 : 0;
    size_t exponent = 0, e = at;
    if (e < l->n && (l->text[e] | 0x20) == 'e') {
        e = skip_sign(l, e + 1);
        exponent = digits(l, e);
    }
    if (!part && !exponent)
        return 0;
    return (exponent ? e + exponent : at) - l->at;
}

static bool is_digit_of(char c, unsigned base)
{
    unsigned value = c >= '0' && c <= '9'                   ? (unsigned)(c - '0') :
                     (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (unsigned)((c | 0x20) - 'a') + 10 :
                                                              99;
    return value < base;
}

static size_t integer_length(const struct lexer *l)
{
    size_t at = l->at;
    char first = l->text[at], second = at + 1 < l->n ? (char)(l->text[at + 1] | 0x20) : ' ';
    if (first < '0' || first > '9')
        return 0;
    unsigned base = first != '0'  ? 10 :
                    second == 'b' ? 2 :
                    second == 'o' ? 8 :
                    second == 'x' ? 16 :
                                    1;
    at += base == 10 || base == 1 ? 1 : 2;
    size_t begin = at;
    for (;;) {
        size_t next = at + (at < l->n && l->text[at] == '_');
        if (next >= l->n || !is_digit_of(l->text[next], base))
            break;
        at = next + 1;
    }
    return base != 10 && base != 1 && at == begin ? 1 : at - l->at; /* "0x" is 0, then a name */
}

static void lex_number(struct lexer *l, size_t n, bool is_float)
{
    struct ak_jval value = { .kind = is_float ? AK_J_FLOAT : AK_J_INT };
    bool fine = is_float ? ak_j_parse_float(l->text + l->at, n, &value.as.number) :
                           ak_j_parse_int(l->text + l->at, n, 0, &value.as.integer);
    if (!fine)
        fail_lexer(l,
                   is_float ? "this number is too long" : "this integer does not fit into 64 bits");
    emit(l, is_float ? AK_JT_FLOAT : AK_JT_INTEGER, l->at, value);
    move_to(l, l->at + n);
}

static size_t name_length(const struct lexer *l)
{
    struct ak_jstr s = { .bytes = l->text, .n = l->n };
    size_t at = l->at;
    for (size_t next; at < l->n; at = next) {
        uint32_t c = ak_j_char_at(&s, at, &next);
        if (c != '_' && !ak_is_word_char(c) && !(c >= 0x80 && ak_is_number(c)))
            break;
    }
    return at - l->at;
}

static void lex_name(struct lexer *l, size_t n)
{
    if (l->text[l->at] >= '0' && l->text[l->at] <= '9')
        fail_lexer(l, "a name cannot begin with a digit");
    emit(l, AK_JT_NAME, l->at, ak_j_string_at(l->j, l->text + l->at, n));
    move_to(l, l->at + n);
}

static void lex_string(struct lexer *l)
{
    char quote = l->text[l->at];
    size_t end = l->at + 1;
    while (end < l->n && l->text[end] != quote)
        end += l->text[end] == '\\' ? 2 : 1;
    if (end >= l->n)
        fail_lexer(l, "this string has no end");
    set_position(l, l->at);
    emit(l, AK_JT_STRING, l->at, ak_j_unescape(l->j, l->text + l->at + 1, end - l->at - 1));
    move_to(l, end + 1);
}

static void balance(struct lexer *l, char c)
{
    if (c == '(' || c == '[' || c == '{') {
        if (l->n_open == AK_JINJA_NESTING_MAX)
            fail_lexer(l, "brackets nest deeper than 200, the limit");
        l->open[l->n_open++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (l->n_open == 0 || l->open[l->n_open - 1] != c)
            fail_lexer(l, l->n_open ? "this bracket closes one of another kind" :
                                      "this bracket closes none");
        l->n_open--;
    }
}

static void lex_operator(struct lexer *l)
{
    for (size_t i = 0; i < N_OPERATORS; i++) {
        if (is_at(l, l->at, operators[i].text)) {
            balance(l, operators[i].text[0]);
            emit(l, operators[i].kind, l->at, no_value);
            move_to(l, l->at + strlen(operators[i].text));
            return;
        }
    }
    fail_lexer(l, "this character has no place in a tag");
}

static void lex_word(struct lexer *l)
{
    size_t n, space = skip_whitespace(l, l->at);
    if (space > l->at)
        move_to(l, space);
    else if ((n = float_length(l)) > 0)
        lex_number(l, n, true);
    else if ((n = integer_length(l)) > 0)
        lex_number(l, n, false);
    else if ((n = name_length(l)) > 0)
        lex_name(l, n);
    else if (l->text[l->at] == '\'' || l->text[l->at] == '"')
        lex_string(l);
    else
        lex_operator(l);
}

static void lex_tag(struct lexer *l, bool is_block)
{
    l->n_open = 0;
    while (l->at < l->n) {
        size_t end = l->n_open > 0 ? 0 :
                     is_block      ? tag_end(l, l->at, "%}", true, true) :
                                     tag_end(l, l->at, "}}", false, false);
        if (end) {
            emit(l, is_block ? AK_JT_BLOCK_END : AK_JT_VARIABLE_END, l->at, no_value);
            move_to(l, end);
            return;
        }
        lex_word(l);
    }
}

/* ---- The whole template ------------------------------------------------- */
static size_t find_tag(const struct lexer *l)
{
    for (size_t at = l->at; at + 1 < l->n; at++) {
        const char *brace = memchr(l->text + at, '{', l->n - at - 1);
        if (!brace)
            return SIZE_MAX;
        at = (size_t)(brace - l->text);
        if (brace[1] == '%' || brace[1] == '{' || brace[1] == '#')
            return at;
    }
    return SIZE_MAX;
}

static void lex_from(struct lexer *l, size_t tag)
{
    char kind = l->text[tag + 1];
    emit_data(l, tag, kind != '{');
    size_t raw = kind == '%' ? raw_tag(l, tag, "raw", false) : 0;
    if (raw) {
        l->at = tag;
        move_to(l, raw);
        lex_raw(l, tag);
    } else if (kind == '#') {
        skip_comment(l, tag);
    } else {
        emit(l, kind == '%' ? AK_JT_BLOCK_BEGIN : AK_JT_VARIABLE_BEGIN, tag, no_value);
        move_to(l, skip_sign(l, tag + 2));
        lex_tag(l, kind == '%');
    }
}

/* Copies the text with all newlines as "\n" and without the last one. */
static void normalize(struct lexer *l, const char *text, size_t n)
{
    char *out = ak_j_alloc(l->j, n + 1, 1);
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\r')
            out[l->n++] = text[i];
        else if (i + 1 == n || text[i + 1] != '\n')
            out[l->n++] = '\n';
    }
    l->n -= l->n > 0 && out[l->n - 1] == '\n';
    l->text = out;
}

void ak_j_lex(struct ak_jenv *j, const char *text, size_t n, struct ak_jtokens *out)
{
    struct lexer l = { .j = j, .line_starting = true, .line = 1, .column = 1, .out = out };
    normalize(&l, text, n);
    for (size_t tag; (tag = find_tag(&l)) != SIZE_MAX;)
        lex_from(&l, tag);
    if (l.at < l.n)
        emit(&l, AK_JT_DATA, l.at, ak_j_string_at(j, l.text + l.at, l.n - l.at));
    emit(&l, AK_JT_END, l.n, no_value);
}
