/* Lexer and parser of Jinja templates: lexical tokens, and the functions that turn them into nodes
 * (node.h). Private to lexer.c, parser.c (statements), expression.c (expressions) and string.c
 * (literals). */
#ifndef AK_TEXT_TEMPLATE_JINJA_PARSER_H
#define AK_TEXT_TEMPLATE_JINJA_PARSER_H

#include "text/template/jinja/node.h"
#include "text/template/jinja/value.h"

/* ---- Tokens ------------------------------------------------------------- */
enum ak_jtoken_kind {
    AK_JT_END, /* of the template */
    AK_JT_DATA,
    AK_JT_BLOCK_BEGIN,
    AK_JT_BLOCK_END,
    AK_JT_VARIABLE_BEGIN,
    AK_JT_VARIABLE_END,
    AK_JT_NAME,
    AK_JT_STRING,
    AK_JT_INTEGER,
    AK_JT_FLOAT,
    AK_JT_ADD,
    AK_JT_SUB,
    AK_JT_DIV,
    AK_JT_FLOORDIV,
    AK_JT_MUL,
    AK_JT_MOD,
    AK_JT_POW,
    AK_JT_TILDE,
    AK_JT_LBRACKET,
    AK_JT_RBRACKET,
    AK_JT_LPAREN,
    AK_JT_RPAREN,
    AK_JT_LBRACE,
    AK_JT_RBRACE,
    AK_JT_EQ,
    AK_JT_NE,
    AK_JT_GT,
    AK_JT_GE,
    AK_JT_LT,
    AK_JT_LE,
    AK_JT_ASSIGN,
    AK_JT_DOT,
    AK_JT_COLON,
    AK_JT_PIPE,
    AK_JT_COMMA,
    AK_JT_SEMICOLON
};

struct ak_jtoken {
    enum ak_jtoken_kind kind;
    uint32_t line, column;
    struct ak_jval value; /* DATA, NAME, STRING, INTEGER, FLOAT; else MISSING */
};

struct ak_jtokens {
    struct ak_jtoken *tokens; /* the last one is AK_JT_END */
    size_t n, capacity;
};

/* Name of a kind in messages. */
const char *ak_j_token_name(enum ak_jtoken_kind kind);

/* Splits a template into tokens and strips whitespace around tags as their - and + say. */
void ak_j_lex(struct ak_jenv *j, const char *text, size_t n, struct ak_jtokens *out);

/* string.c: decodes the escapes of a string literal, given without its quotes. */
struct ak_jval ak_j_unescape(struct ak_jenv *j, const char *text, size_t n);

/* ---- Parser ------------------------------------------------------------- */
struct ak_jparser {
    struct ak_jenv *j;
    const struct ak_jtoken *now; /* the next token */
    struct ak_jdict *names;      /* interned names */
    const struct ak_jspecials *specials;
    /* innermost MACRO or CALL_BLOCK, linked outwards by `next` while it is parsed */
    struct ak_jnode *macro;
    unsigned nesting;
    unsigned loops; /* number of open for blocks that `break` may leave */
};

/* A list of nodes to append to. Zero-initialize. */
struct ak_jnodes {
    struct ak_jnode *first, **end;
};
void ak_j_add_node(struct ak_jnodes *list, struct ak_jnode *node);

struct ak_jnode *ak_j_node(struct ak_jparser *p, enum ak_jnode_kind kind,
                           const struct ak_jtoken *at);
struct ak_jval ak_j_intern(struct ak_jparser *p, struct ak_jval name);

void ak_j_parse_enter(struct ak_jparser *p); /* around each recursion of the parser */
void ak_j_parse_leave(struct ak_jparser *p);

_Noreturn void ak_j_parse_fail(struct ak_jparser *p, const struct ak_jtoken *at, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));
bool ak_j_is_token(const struct ak_jparser *p, enum ak_jtoken_kind kind);
bool ak_j_is_name(const struct ak_jparser *p, const char *name);
bool ak_j_skip(struct ak_jparser *p, enum ak_jtoken_kind kind);
bool ak_j_skip_name(struct ak_jparser *p, const char *name);
const struct ak_jtoken *ak_j_expect(struct ak_jparser *p, enum ak_jtoken_kind kind);

/* How to read a tuple without parentheses. */
struct ak_jtuple_rules {
    bool no_condition;    /* elements are not conditional expressions */
    bool parentheses;     /* inside parentheses, where it may be empty */
    const char *end_name; /* a name that ends it, besides the end of a tag and ")"; NULL: none */
};
/* A name, a constant, or a bracketed expression. */
struct ak_jnode *ak_j_parse_primary(struct ak_jparser *p);
struct ak_jnode *ak_j_parse_expression(struct ak_jparser *p);
struct ak_jnode *ak_j_parse_tuple(struct ak_jparser *p, struct ak_jtuple_rules rules);
bool ak_j_is_tuple_end(const struct ak_jparser *p, const char *end_name);
/* A target of an assignment: a name, a tuple of names, or with `member` an attribute of a
 * namespace. */
struct ak_jnode *ak_j_parse_target(struct ak_jparser *p, const char *end_name, bool member);
/* "name(args)|name…": filters over `operand`; NULL: over the text of a block. */
struct ak_jnode *ak_j_parse_filters(struct ak_jparser *p, struct ak_jnode *operand);

#endif
