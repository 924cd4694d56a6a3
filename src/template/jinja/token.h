/* Words of a template. */
#ifndef AK_TEMPLATE_JINJA_TOKEN_H
#define AK_TEMPLATE_JINJA_TOKEN_H

#include "template/jinja/value.h"

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
    struct ak_jval value; /* of data, a name, a string or a number */
};

struct ak_jtokens {
    struct ak_jtoken *tokens; /* the last one is AK_JT_END */
    size_t n, capacity;
};

/* What a token of this kind is called in messages. */
const char *ak_j_token_name(enum ak_jtoken_kind kind);

/* Cuts a template into tokens, blanks around tags taken away as they say. */
void ak_j_lex(struct ak_jenv *j, const char *text, size_t n, struct ak_jtokens *out);

/* What stands between the quotes of a string, without its escapes. */
struct ak_jval ak_j_unescape(struct ak_jenv *j, const char *text, size_t n);

#endif
