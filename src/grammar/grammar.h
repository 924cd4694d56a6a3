/* Grammars as data: a tree of expressions that says which texts are allowed.
 *
 * An expression is a number. Rules give expressions names, so that expressions can refer to each
 * other and to themselves; a grammar's texts are those of its root. Texts are bytes: characters are
 * spelled out in UTF-8 when a grammar is built (chars.h), and nothing later knows of them. A
 * grammar is immutable once it was finished, knows of no vocabulary, and may be used by any number
 * of matchers at once (matcher.h).
 *
 * Grammars come from GBNF (gbnf.c), from JSON Schema (schema/schema.h), or from C (builder.h). */
#ifndef AK_GRAMMAR_GRAMMAR_H
#define AK_GRAMMAR_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum ak_grammar_expr_kind {
    AK_GRAMMAR_EXPR_NOTHING,     /* no text at all, not even the empty one */
    AK_GRAMMAR_EXPR_EMPTY,       /* the empty text */
    AK_GRAMMAR_EXPR_BYTES,       /* one byte of sets[a] */
    AK_GRAMMAR_EXPR_LITERAL,     /* b bytes from bytes[a] on; b ≥ 1 */
    AK_GRAMMAR_EXPR_SEQUENCE,    /* the b expressions lists[a …], one after another; b ≥ 2 */
    AK_GRAMMAR_EXPR_ALTERNATION, /* any of the b expressions lists[a …]; b ≥ 2 */
    AK_GRAMMAR_EXPR_REPEAT, /* expression a, b to c times; c = AK_GRAMMAR_UNBOUNDED: any number */
    /* rules[a]; b: 0, or an expression with the same beginnings of up to AK_GRAMMAR_LOOKAHEAD_BYTES
       bytes */
    AK_GRAMMAR_EXPR_RULE,
    AK_GRAMMAR_EXPR_TOKEN,   /* one token: tokens[a]; b: any but that one */
    AK_GRAMMAR_EXPR_MEMBERS, /* the members of an object: members[a] */
    /* any text, up to a word of automata[a] and the expression that follows it; b: that may be
       missing */
    AK_GRAMMAR_EXPR_UNTIL,
};

#define AK_GRAMMAR_UNBOUNDED UINT32_MAX

/* What lies further ahead makes no difference to most tokens. */
enum { AK_GRAMMAR_LOOKAHEAD_BYTES = 32 };

struct ak_grammar_expr {
    uint8_t kind;
    bool nullable;   /* the empty text is among its texts */
    bool productive; /* it has a text */
    uint32_t a, b, c;
};

struct ak_grammar_byte_set {
    uint64_t bits[4];
};

static inline bool ak_grammar_byte_set_has(const struct ak_grammar_byte_set *s, unsigned char byte)
{
    return s->bits[byte >> 6] >> (byte & 63) & 1;
}

struct ak_grammar_rule {
    char *name; /* for messages */
    uint32_t expr;
    uint32_t line, column; /* where it is defined; 0: not in a text */
};

/* A token of the vocabulary that matchers are bound to: by number, or by its text. */
struct ak_grammar_token_ref {
    char *text; /* NULL: by number */
    uint32_t n, id;
    uint32_t literal; /* an expression: its text, for a matcher without a vocabulary */
};

/* "name": value pairs with a comma between them, each at most once. */
struct ak_grammar_member {
    uint32_t expr; /* name, colon and value */
    bool required;
    bool is_repeatable; /* not one name but all the others: any number of times */
};

struct ak_grammar_members {
    uint32_t first, n;  /* of the grammar's list of members */
    uint32_t comma;     /* an expression */
    uint32_t low, high; /* how many there are */
    bool ordered;       /* in the order of the list, else in any */
};

/* Keyword automaton (Aho and Corasick): finds the first of some keywords. Starts in state 0. */
struct ak_grammar_keyword_automaton {
    uint16_t (*next)[256]; /* of n states; n + i: word i is complete */
    uint32_t n;
    /* lists[continuations + i]: the expression after word i */
    uint32_t continuations, n_continuations;
};

struct ak_grammar {
    struct ak_grammar_expr *exprs;
    struct ak_grammar_byte_set *sets;
    char *bytes;
    uint32_t *lists;
    struct ak_grammar_rule *rules;
    struct ak_grammar_token_ref *tokens;
    struct ak_grammar_member *member;
    struct ak_grammar_members *members;
    struct ak_grammar_keyword_automaton *automata;
    uint32_t n_exprs, n_sets, n_bytes, n_lists, n_rules, n_tokens, n_member, n_members, n_automata;
    uint32_t root; /* an expression */
};

/* The public handle. */
struct akunu_grammar {
    struct ak_grammar *inner;
};

void ak_grammar_free(struct ak_grammar *g); /* NULL allowed */

/* Has the grammar a text at all? Schemas may forbid everything. */
static inline bool ak_grammar_is_productive(const struct ak_grammar *g)
{
    return g->exprs[g->root].productive;
}

/* From GBNF, as llama.cpp has it; the first rule need not be `root`, which must exist.
 * Messages begin with "line:column: ". Refused: rules without a definition or with two,
 * left recursion, repetitions of more than AK_GRAMMAR_GBNF_REPEAT_MAX, and what has no finite text.
 */
enum { AK_GRAMMAR_GBNF_BYTES_MAX = 4 << 20, AK_GRAMMAR_GBNF_NESTING_MAX = 200 };
#define AK_GRAMMAR_GBNF_REPEAT_MAX 1000000000u
ak_status ak_grammar_from_gbnf(const char *text, size_t n_bytes, struct ak_grammar **out,
                               struct ak_error *error);

/* A grammar that waits: any text without one of the n words is allowed, and after the
 * first of them comes a text of `continuation`; with `again` this goes on. The word itself is no
 * part of that text. The words of a waiting text may be cut among tokens in any way, and
 * the text of control tokens, which may come there, counts.
 * `continuation` is copied. */
enum { AK_GRAMMAR_KEYWORD_BYTES_MAX = 4096 };
struct ak_grammar_trigger {
    const char *text;
    size_t n;
};
ak_status ak_grammar_make_lazy(const struct ak_grammar *continuation,
                               const struct ak_grammar_trigger *triggers, size_t n, bool again,
                               struct ak_grammar **out, struct ak_error *error);

#endif
