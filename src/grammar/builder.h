/* Building a grammar from expressions.
 *
 * The first failure is kept in the builder, and what is built after it is not used: only
 * ak_gb_finish need be looked at. Expressions are simplified on the way: a sequence without
 * expressions is the empty text, one with an expression that has no text is nothing. */
#ifndef AK_GRAMMAR_BUILDER_H
#define AK_GRAMMAR_BUILDER_H

#include "grammar/grammar.h"

/* What a grammar may hold; an expression and its place in a list take some 24 bytes. */
enum { AK_GRAMMAR_EXPRS_MAX = 1 << 20 };

struct ak_grammar_builder {
    struct ak_grammar *g;
    ak_status status; /* of the first failure */
    struct ak_error *error;
    /* capacities of the grammar's arrays, in elements */
    uint32_t exprs_capacity, sets_capacity, bytes_capacity, lists_capacity, rules_capacity,
        tokens_capacity, member_capacity, members_capacity, automata_capacity;
    uint32_t *set_exprs; /* of each set its expression */
    uint32_t set_exprs_capacity;
};

enum { AK_GB_NOTHING = 0, AK_GB_EMPTY = 1 }; /* expressions that every grammar has */

/* A list of expressions that grows. All zero at first; free with ak_free(items). */
struct ak_gb_list {
    uint32_t *items;
    uint32_t n, capacity;
};
void ak_gb_append(struct ak_grammar_builder *b, struct ak_gb_list *list, uint32_t expr);

void ak_gb_begin(struct ak_grammar_builder *b, struct ak_error *error);
void ak_gb_drop(struct ak_grammar_builder *b); /* gives up; also after a failed begin */

/* Records a failure, as ak_fail; gives AK_GB_NOTHING. */
uint32_t ak_gb_fail(struct ak_grammar_builder *b, ak_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool ak_gb_ok(const struct ak_grammar_builder *b)
{
    return b->status == AKUNU_OK;
}

uint32_t ak_gb_bytes(struct ak_grammar_builder *b, const struct ak_grammar_byte_set *set);
uint32_t ak_gb_byte_range(struct ak_grammar_builder *b, unsigned char low, unsigned char high);
uint32_t ak_gb_literal(struct ak_grammar_builder *b, const char *bytes, size_t n);
uint32_t ak_gb_text(struct ak_grammar_builder *b, const char *text); /* a literal, terminated */
uint32_t ak_gb_sequence(struct ak_grammar_builder *b, const uint32_t *exprs, uint32_t n);
uint32_t ak_gb_alternation(struct ak_grammar_builder *b, const uint32_t *exprs, uint32_t n);
/* a sequence */
uint32_t ak_gb_concat(struct ak_grammar_builder *b, uint32_t first, uint32_t second);
/* an alternation */
uint32_t ak_gb_either(struct ak_grammar_builder *b, uint32_t one, uint32_t another);
/* high: AK_GRAMMAR_UNBOUNDED */
uint32_t ak_gb_repeat(struct ak_grammar_builder *b, uint32_t expr, uint32_t low, uint32_t high);

/* A new rule without an expression; the name is copied, and may be "". */
uint32_t ak_gb_declare_rule(struct ak_grammar_builder *b, const char *name, size_t n);
void ak_gb_define_rule(struct ak_grammar_builder *b, uint32_t rule, uint32_t expr);
uint32_t ak_gb_rule_ref(struct ak_grammar_builder *b, uint32_t rule);
/* Of two rule references: up to AK_GRAMMAR_LOOKAHEAD_BYTES bytes on, whatever may follow the one
 * may follow the other. */
void ak_gb_set_representative(struct ak_grammar_builder *b, uint32_t ref, uint32_t other);

/* By number, or where text is not NULL by its text. */
uint32_t ak_gb_token(struct ak_grammar_builder *b, uint32_t id, const char *text, size_t n,
                     bool negated);

uint32_t ak_gb_members(struct ak_grammar_builder *b, const struct ak_grammar_member *list,
                       uint32_t n, const struct ak_grammar_members *layout);
/* A word that a text is searched for, and the expression that follows it. Of words that are
 * complete at the same byte the longest one counts. */
struct ak_gb_keyword {
    const char *text;
    size_t n;
    uint32_t continuation;
    bool at_start; /* only where nothing but blanks stands before */
};
/* Any text up to one of the words; `open`: it may also end without one. */
uint32_t ak_gb_until(struct ak_grammar_builder *b, const struct ak_gb_keyword *keywords, size_t n,
                     bool open);

/* Finds out which expressions are productive and nullable, and refuses left recursion; the
 * builder is spent. */
ak_status ak_gb_finish(struct ak_grammar_builder *b, uint32_t root, struct ak_grammar **out);

/* finalize.c */
ak_status ak_grammar_finalize(struct ak_grammar *g, struct ak_error *error);
/* keyword_automaton.c: keywords of so many bytes together, none of them empty; false without
 * memory. */
bool ak_grammar_build_keyword_automaton(const struct ak_gb_keyword *keywords, size_t n,
                                        size_t bytes, struct ak_grammar_keyword_automaton *out);

#endif
