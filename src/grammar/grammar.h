/* Grammars as data: a tree of parts that says which texts are allowed.
 *
 * A part is a number. Rules give parts names, so that parts can refer to each other and
 * to themselves; a grammar's texts are those of its root. Texts are bytes: characters
 * are spelled out in UTF-8 when a grammar is built (chars.h), and nothing later knows of
 * them. A grammar is immutable once it was finished, knows of no vocabulary, and may be
 * used by any number of matchers at once (matcher.h).
 *
 * Grammars come from GBNF (gbnf.c), from JSON Schema (schema.h), or from C (build.h). */
#ifndef AK_TEXT_GRAMMAR_GRAMMAR_H
#define AK_TEXT_GRAMMAR_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum ak_part_kind {
    AK_PART_NOTHING,  /* no text at all, not even the empty one */
    AK_PART_EMPTY,    /* the empty text */
    AK_PART_BYTES,    /* one byte of sets[a] */
    AK_PART_LITERAL,  /* b bytes from bytes[a] on; b ≥ 1 */
    AK_PART_SEQUENCE, /* the b parts lists[a …], one after another; b ≥ 2 */
    AK_PART_CHOICE,   /* any of the b parts lists[a …]; b ≥ 2 */
    AK_PART_REPEAT,   /* part a, b to c times; c = AK_MANY: any number */
    /* rules[a]; b: 0, or a part with the same beginnings of up to AK_NEAR_BYTES bytes */
    AK_PART_RULE,
    AK_PART_TOKEN,   /* one token: tokens[a]; b: any but that one */
    AK_PART_MEMBERS, /* the members of an object: members[a] */
    /* any text, up to a word of words[a] and the part that follows it; b: that may be missing */
    AK_PART_UNTIL,
};

#define AK_MANY UINT32_MAX

/* What lies further ahead makes no difference to most tokens. */
enum { AK_NEAR_BYTES = 32 };

struct ak_part {
    uint8_t kind;
    bool nullable; /* the empty text is among its texts */
    bool possible; /* it has a text */
    uint32_t a, b, c;
};

struct ak_byte_set {
    uint64_t bits[4];
};

static inline bool ak_byte_set_has(const struct ak_byte_set *s, unsigned char byte)
{
    return s->bits[byte >> 6] >> (byte & 63) & 1;
}

struct ak_rule {
    char *name; /* for messages */
    uint32_t part;
    uint32_t line, column; /* where it is defined; 0: not in a text */
};

/* A token of the vocabulary that matchers are bound to: by number, or by its text. */
struct ak_token_name {
    char *text; /* NULL: by number */
    uint32_t n, id;
    uint32_t literal; /* a part: its text, for a matcher without a vocabulary */
};

/* "name": value pairs with a comma between them, each at most once. */
struct ak_member {
    uint32_t part; /* name, colon and value */
    bool required;
    bool many; /* not one name but all the others: any number of times */
};

struct ak_members {
    uint32_t first, n;  /* of the grammar's list of members */
    uint32_t comma;     /* a part */
    uint32_t low, high; /* how many there are */
    bool ordered;       /* in the order of the list, else in any */
};

/* A machine that finds the first of some words (Aho and Corasick). It begins in state 0. */
struct ak_words {
    uint16_t (*next)[256]; /* of n states; n + i: word i is complete */
    uint32_t n;
    uint32_t thens, n_thens; /* lists[thens + i]: the part after word i */
};

struct ak_grammar {
    struct ak_part *parts;
    struct ak_byte_set *sets;
    char *bytes;
    uint32_t *lists;
    struct ak_rule *rules;
    struct ak_token_name *tokens;
    struct ak_member *member;
    struct ak_members *members;
    struct ak_words *words;
    uint32_t n_parts, n_sets, n_bytes, n_lists, n_rules, n_tokens, n_member, n_members, n_words;
    uint32_t root; /* a part */
};

/* The public handle. */
struct akunu_grammar {
    struct ak_grammar *inner;
};

void ak_grammar_free(struct ak_grammar *g); /* NULL allowed */

/* Has the grammar a text at all? Schemas may forbid everything. */
static inline bool ak_grammar_possible(const struct ak_grammar *g)
{
    return g->parts[g->root].possible;
}

/* From GBNF, as llama.cpp has it; the first rule need not be `root`, which must exist.
 * Messages begin with "line:column: ". Refused: rules without a definition or with two,
 * left recursion, repetitions of more than AK_GBNF_MOST_TIMES, and what has no finite text. */
enum { AK_GBNF_MOST_BYTES = 4 << 20, AK_GBNF_MOST_NESTING = 200 };
#define AK_GBNF_MOST_TIMES 1000000000u
ak_status ak_grammar_from_gbnf(const char *text, size_t n_bytes, struct ak_grammar **out,
                               struct ak_error *error);

/* A grammar that waits: any text without one of the n words is allowed, and after the
 * first of them comes a text of `then`; with `again` this goes on. The word itself is no
 * part of that text. The words of a waiting text may be cut among tokens in any way, and
 * the text of control tokens, which may come there, counts.
 * `then` is copied. */
enum { AK_WORDS_MOST_BYTES = 4096 };
struct ak_word {
    const char *text;
    size_t n;
};
ak_status ak_grammar_waiting(const struct ak_grammar *then, const struct ak_word *words, size_t n,
                             bool again, struct ak_grammar **out, struct ak_error *error);

#endif
