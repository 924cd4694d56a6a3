/* Grammars as data: grammar expressions, which define the allowed texts.
 *
 * An expression is referred to by its index in `exprs`. Rules name expressions, so that expressions
 * can refer to each other and to themselves. The texts of a grammar are those of its root. Texts
 * are bytes: the builder spells characters out in UTF-8 (chars.h), and later stages see bytes only.
 * A finished grammar is immutable and independent of a vocabulary; any number of matchers may use
 * it at once (matcher.h).
 *
 * Grammars come from GBNF (gbnf.c), from JSON Schema (schema/schema.h), from the tools of a request
 * (text/toolcall/), or from C (builder.h). engine/session/, speech/transcribe/, api/ and bench/ run
 * them with a matcher. */
#ifndef AK_TEXT_GRAMMAR_GRAMMAR_H
#define AK_TEXT_GRAMMAR_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/refs.h"

enum ak_grammar_expr_kind {
    AK_GRAMMAR_EXPR_NOTHING,     /* matches no text, not even the empty one */
    AK_GRAMMAR_EXPR_EMPTY,       /* the empty text */
    AK_GRAMMAR_EXPR_BYTES,       /* one byte of sets[a] */
    AK_GRAMMAR_EXPR_LITERAL,     /* the b bytes from bytes[a] on; b ≥ 1 */
    AK_GRAMMAR_EXPR_SEQUENCE,    /* the b expressions from lists[a] on, in order; b ≥ 2 */
    AK_GRAMMAR_EXPR_ALTERNATION, /* any of the b expressions from lists[a] on; b ≥ 2 */
    AK_GRAMMAR_EXPR_REPEAT, /* expression a, b to c times; c = AK_GRAMMAR_UNBOUNDED: no limit */
    /* rules[a]; b: 0, or a rule reference that allows the same next AK_GRAMMAR_LOOKAHEAD_BYTES
     * bytes (its representative) */
    AK_GRAMMAR_EXPR_RULE,
    AK_GRAMMAR_EXPR_TOKEN,   /* token tokens[a]; b = 1: any other that does not end a text */
    AK_GRAMMAR_EXPR_MEMBERS, /* the members of an object: members[a] */
    /* any text up to a keyword of automata[a], then its continuation; b = 1: the text may also end
     * without a keyword */
    AK_GRAMMAR_EXPR_UNTIL,
};

#define AK_GRAMMAR_UNBOUNDED UINT32_MAX

/* Short lookahead. Most tokens have at most as many bytes, so later bytes do not affect them. */
enum { AK_GRAMMAR_LOOKAHEAD_BYTES = 32 };

struct ak_grammar_expr {
    uint8_t kind;     /* enum ak_grammar_expr_kind */
    bool nullable;    /* matches the empty text */
    bool productive;  /* matches some finite text */
    uint32_t a, b, c; /* see enum ak_grammar_expr_kind */
};

struct ak_grammar_byte_set {
    uint64_t bits[4];
};

static inline bool ak_grammar_byte_set_has(const struct ak_grammar_byte_set *s, unsigned char byte)
{
    return s->bits[byte >> 6] >> (byte & 63) & 1;
}

struct ak_grammar_rule {
    char *name; /* for messages; may be empty */
    uint32_t expr;
    uint32_t line, column; /* of its definition in GBNF, from 1; 0: not from GBNF */
};

/* A token of the matcher's vocabulary, by number or by text. */
struct ak_grammar_token_ref {
    char *text;       /* NULL: by number */
    uint32_t n, id;   /* bytes of `text`; number */
    uint32_t literal; /* expression of the text, for a matcher without a vocabulary */
};

/* A member of an object, or all members with unlisted names. */
struct ak_grammar_member {
    uint32_t expr; /* name, colon and value */
    bool required;
    bool is_repeatable; /* unlisted names: any number of times; otherwise at most once */
};

/* The members of an object, separated by commas. */
struct ak_grammar_members {
    uint32_t first, n;  /* range of the grammar's `member` array */
    uint32_t comma;     /* expression */
    uint32_t low, high; /* minimum and maximum number of members */
    bool ordered;       /* in the order of the array; otherwise in any order */
};

/* Keyword automaton (Aho and Corasick): finds the first of some keywords. Starts in state 0. */
struct ak_grammar_keyword_automaton {
    uint16_t (*next)[256]; /* [n], transitions by byte; n + i: keyword i is complete */
    uint32_t n;            /* states */
    /* lists[continuations + i]: the expression after keyword i */
    uint32_t continuations, n_continuations;
};

struct ak_grammar {
    struct ak_refs refs;
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
    uint32_t root; /* expression */
};

/* Public handle of the C API. */
struct akunu_grammar {
    struct ak_grammar *inner;
};

/* One more owner of the grammar, who frees it too. */
struct ak_grammar *ak_grammar_ref(struct ak_grammar *g);
void ak_grammar_free(struct ak_grammar *g); /* NULL allowed */

/* Does the grammar allow any text? A schema may forbid every value. */
static inline bool ak_grammar_is_productive(const struct ak_grammar *g)
{
    return g->exprs[g->root].productive;
}

/* Compiles GBNF as llama.cpp reads it. Texts begin with the rule named `root`, a C string. Messages
 * about a place begin with "line:column: ". Refused: rules without a definition or with two, left
 * recursion, repeat counts above AK_GRAMMAR_GBNF_REPEAT_MAX, and grammars without a finite text. */
enum { AK_GRAMMAR_GBNF_BYTES_MAX = 4 << 20, AK_GRAMMAR_GBNF_NESTING_MAX = 200 };
#define AK_GRAMMAR_GBNF_REPEAT_MAX 1000000000u
ak_status ak_grammar_from_gbnf(const char *text, size_t n_bytes, const char *root,
                               struct ak_grammar **out, struct ak_error *error);

/* Lazy grammar: any text without a trigger, then, after the first trigger, a text of
 * `continuation`; with `again` repeatedly. The trigger is not part of that text. Triggers may be
 * split among tokens in any way, and match the text of control tokens. `continuation` is copied. */
enum { AK_GRAMMAR_KEYWORD_BYTES_MAX = 4096 };
struct ak_grammar_trigger {
    const char *text;
    size_t n;
};
ak_status ak_grammar_make_lazy(const struct ak_grammar *continuation,
                               const struct ak_grammar_trigger *triggers, size_t n, bool again,
                               struct ak_grammar **out, struct ak_error *error);

/* The texts of `g`, each also after a space. `g` is copied. */
ak_status ak_grammar_allow_space(const struct ak_grammar *g, struct ak_grammar **out,
                                 struct ak_error *error);

#endif
