/* Grammar builder: constructs grammar expressions.
 *
 * The builder keeps the first failure and ignores what is built after it, so a caller only checks
 * the result of ak_gb_finish. Constructors simplify: an empty sequence is AK_GB_EMPTY, a sequence
 * that contains AK_GB_NOTHING is AK_GB_NOTHING. */
#ifndef AK_TEXT_GRAMMAR_BUILDER_H
#define AK_TEXT_GRAMMAR_BUILDER_H

#include "text/grammar/grammar.h"

/* Expressions of a grammar; one takes about 24 bytes with its list entry. */
enum { AK_GRAMMAR_EXPRS_MAX = 1 << 20 };

struct ak_grammar_builder {
    struct ak_grammar *g;
    ak_status status; /* of the first failure */
    struct ak_error *error;
    /* capacities of the grammar's arrays, in elements */
    uint32_t exprs_capacity, sets_capacity, bytes_capacity, lists_capacity, rules_capacity,
        tokens_capacity, member_capacity, members_capacity, automata_capacity;
    uint32_t *set_exprs; /* expression of each byte set */
    uint32_t set_exprs_capacity;
};

enum { AK_GB_NOTHING = 0, AK_GB_EMPTY = 1 }; /* the first two expressions of every grammar */

/* Growing list of expressions. Zero-initialize; free with ak_free(items). */
struct ak_gb_list {
    uint32_t *items;
    uint32_t n, capacity;
};
void ak_gb_append(struct ak_grammar_builder *b, struct ak_gb_list *list, uint32_t expr);

void ak_gb_begin(struct ak_grammar_builder *b, struct ak_error *error);
/* copy.c: begins with a copy of a finished grammar, whose expressions keep their indices. */
void ak_gb_begin_copy(struct ak_grammar_builder *b, const struct ak_grammar *from,
                      struct ak_error *error);
/* Frees an unfinished grammar; also allowed after a failed begin. */
void ak_gb_drop(struct ak_grammar_builder *b);

/* Records a failure as ak_fail does, unless there was one before. Returns AK_GB_NOTHING. */
uint32_t ak_gb_fail(struct ak_grammar_builder *b, ak_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool ak_gb_ok(const struct ak_grammar_builder *b)
{
    return b->status == AKUNU_OK;
}

uint32_t ak_gb_bytes(struct ak_grammar_builder *b, const struct ak_grammar_byte_set *set);
uint32_t ak_gb_byte_range(struct ak_grammar_builder *b, unsigned char low, unsigned char high);
uint32_t ak_gb_literal(struct ak_grammar_builder *b, const char *bytes, size_t n);
/* a NUL-terminated literal */
uint32_t ak_gb_text(struct ak_grammar_builder *b, const char *text);
uint32_t ak_gb_sequence(struct ak_grammar_builder *b, const uint32_t *exprs, uint32_t n);
uint32_t ak_gb_alternation(struct ak_grammar_builder *b, const uint32_t *exprs, uint32_t n);
/* a sequence of two */
uint32_t ak_gb_concat(struct ak_grammar_builder *b, uint32_t first, uint32_t second);
/* an alternation of two */
uint32_t ak_gb_either(struct ak_grammar_builder *b, uint32_t one, uint32_t another);
/* high = AK_GRAMMAR_UNBOUNDED: no upper limit */
uint32_t ak_gb_repeat(struct ak_grammar_builder *b, uint32_t expr, uint32_t low, uint32_t high);

/* Declares a rule, which has no expression yet. The name is copied and may be empty. */
uint32_t ak_gb_declare_rule(struct ak_grammar_builder *b, const char *name, size_t n);
void ak_gb_define_rule(struct ak_grammar_builder *b, uint32_t rule, uint32_t expr);
uint32_t ak_gb_rule_ref(struct ak_grammar_builder *b, uint32_t rule);
/* Makes the rule reference `other` the representative of `ref`: both must allow the same next
 * AK_GRAMMAR_LOOKAHEAD_BYTES bytes. */
void ak_gb_set_representative(struct ak_grammar_builder *b, uint32_t ref, uint32_t other);

/* A token by its text, or by number if `text` is NULL. `negated`: any token but that one and those
 * that end a text. */
uint32_t ak_gb_token(struct ak_grammar_builder *b, uint32_t id, const char *text, size_t n,
                     bool negated);

/* Of `layout`, `first` and `n` are ignored. */
uint32_t ak_gb_members(struct ak_grammar_builder *b, const struct ak_grammar_member *list,
                       uint32_t n, const struct ak_grammar_members *layout);
/* Keyword that a text is searched for, and the expression after it. Of keywords that end at the
 * same byte the longest counts. */
struct ak_gb_keyword {
    const char *text;
    size_t n;
    uint32_t continuation;
    bool at_start; /* counts only if nothing but whitespace precedes it */
};
/* Any text up to a keyword, and its continuation; `open`: it may also end without a keyword. */
uint32_t ak_gb_until(struct ak_grammar_builder *b, const struct ak_gb_keyword *keywords, size_t n,
                     bool open);

/* Finalizes the grammar (finalize.c). The builder is used up, also after a failure. */
ak_status ak_gb_finish(struct ak_grammar_builder *b, uint32_t root, struct ak_grammar **out);

/* finalize.c: finds productive and nullable expressions, refuses left recursion. */
ak_status ak_grammar_finalize(struct ak_grammar *g, struct ak_error *error);
/* keyword_automaton.c: `bytes` is the total length of the keywords, none of which is empty; false:
 * out of memory. */
bool ak_grammar_build_keyword_automaton(const struct ak_gb_keyword *keywords, size_t n,
                                        size_t bytes, struct ak_grammar_keyword_automaton *out);

#endif
